"""The network as a source of candidates: its proposals for several views of the data."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.canonical import TimeLimitExceeded
from nsode_jax.expressions.constants import linear_constants
from nsode_jax.expressions.expression import Expression, ExpressionError
from nsode_jax.fitting.fit import Origin
from nsode_jax.fitting.progress import Progress
from nsode_jax.observed.dataset import Dataset
from nsode_jax.observed.regression import Regression
from nsode_jax.observed.scaling import AffineView, candidate_views
from nsode_jax.search.population import Draft, draft_laws
from nsode_jax.search.sources import Proposal, Proposals

_STARTS_PER_SKELETON = 2
_MOST_PROPOSALS = 60
_MOST_VIEWS = 4
_MOST_VIEWS_IN_ALL = 8


@runtime_checkable
class Proposer(Protocol):
    """What is needed of the network; see `nsode_jax.decoding.propose`."""

    def propose(
        self, trajectories: Sequence[Trajectory], *, beams: int, samples: int, seed: int
    ) -> list[list[tuple[Expression, float]]]:
        """Per trajectory: laws in its own variables with their log-probability."""
        ...


@dataclasses.dataclass(frozen=True)
class NetworkSource:
    """Laws that a pretrained network reads from the data.

    Attributes:
      weights: name or path of the network's weights; unused with `proposer`.
      beams: width of the beam search, per view of the data.
      samples: laws drawn from the network beside it, per view.
      proposer: proposes laws instead of the network.
    """

    weights: str = "small"
    beams: int = 64
    samples: int = 64
    proposer: Proposer | None = None
    name: str = "network"

    def propose(
        self, data: Dataset, form: Regression, *, seed: int, progress: Progress
    ) -> Proposals:
        """The proposals of all views that fit best, in the units of the data, best first."""
        if not (self.beams or self.samples):
            return Proposals((), "no laws of the network")
        proposer = self.proposer
        if proposer is None:
            from nsode_jax.decoding.propose import Proposer as Network  # Slow to import.

            proposer = Network.from_pretrained(self.weights)
        views, seen = _views(data)
        proposed = proposer.propose(seen, beams=self.beams, samples=self.samples, seed=seed)
        number = sum(map(len, proposed))
        return Proposals(
            tuple(self._restored(form, views, proposed)), f"{number:,} laws of the network"
        )

    def _restored(
        self,
        form: Regression,
        views: Sequence[AffineView],
        proposed: Sequence[Sequence[tuple[Expression, float]]],
    ) -> list[Proposal]:
        """Fitted in the variables of their view; only the best are restored.

        One skeleton is tried a few times only, as initial guesses of the constants
        that f does not depend on linearly; the others need none.
        """
        found: list[tuple[Draft, AffineView]] = []
        for view, laws in zip(views, proposed, strict=True):
            tried: dict[str, int] = {}
            kept: list[Proposal] = []
            for expression, log_probability in sorted(laws, key=lambda pair: -pair[1]):
                key = expression.skeleton.unsigned_key
                tried[key] = tried.get(key, 0) + 1
                nonlinear = not linear_constants(expression.skeleton).all()
                if tried[key] <= (_STARTS_PER_SKELETON if nonlinear else 1):
                    kept.append(Proposal(expression, Origin(self.name, log_probability)))
            scaled = form.rescaled(view.a, view.b, view.c)
            found += [(draft, view) for draft in draft_laws(scaled, kept)]
        found.sort(key=lambda pair: pair[0].score)
        restored: dict[Expression, Proposal] = {}
        for draft, view in found[:_MOST_PROPOSALS]:
            try:
                law = view.restore(draft.expression)
            except (ExpressionError, TimeLimitExceeded):
                continue
            restored.setdefault(law, Proposal(law, draft.origin))
        return list(restored.values())


def _views(data: Dataset) -> tuple[list[AffineView], list[Trajectory]]:
    """Views of the data, and the data seen that way; fewer of each the more series."""
    # Those that move most tell most.
    chosen = sorted(data, key=lambda trajectory: -np.ptp(trajectory.y))
    each = max(1, min(_MOST_VIEWS, _MOST_VIEWS_IN_ALL // len(chosen)))
    pairs = [
        (view, view.apply(trajectory))
        for trajectory in chosen[:_MOST_VIEWS_IN_ALL]
        for view in candidate_views(trajectory, each)
    ]
    return [view for view, _ in pairs], [seen for _, seen in pairs]
