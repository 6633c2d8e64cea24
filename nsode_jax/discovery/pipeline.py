"""From measured series to ranked laws dy/dt = f(y): the whole pipeline.

read -> views -> propose (the network) -> fit and restore units -> add the library
-> refine and search nearby -> rank -> uncertainty
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from jaxtyping import Float

from nsode_jax.fitting.holdout import held_out_error
from nsode_jax.fitting.integral import IntegralForm
from nsode_jax.search.library import library
from nsode_jax.fitting.trajectory_fitting import covariance
from nsode_jax.selection.rank import Fit, rank, spread_of, weights_of
from nsode_jax.search.refine import Progress, RefineConfig, refine
from nsode_jax.reporting.result import Candidate, Discovery
from nsode_jax.fitting.scaling import AffineView, candidate_views, working_units
from nsode_jax.search.evolution import Draft, draft_laws
from nsode_jax.discovery.series import read_series
from nsode_jax.reporting.diagnostics import verdict
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.canonical import TimeLimitExceeded
from nsode_jax.expressions.constants import linear_constants
from nsode_jax.expressions.expression import Expression, ExpressionError

_STARTS_PER_SKELETON = 2
_MOST_PROPOSALS = 60
_MOST_VIEWS = 4
_MOST_VIEWS_IN_ALL = 8
_WITH_UNCERTAINTY = 30
"""So many candidates, the best, get a covariance of their constants."""

_HELD_OUT = 10
"""So many are fitted again to a part of the data, to predict the rest."""


class DiscoveryError(RuntimeError):
    """No law could be found. The message is one line for the person with the data."""


class Proposer(Protocol):
    """What `discover` needs of the network; see `nsode_jax.decoding.propose`."""

    def propose(
        self, trajectories: Sequence[Trajectory], *, beams: int, samples: int, seed: int
    ) -> list[list[tuple[Expression, float]]]:
        """Per trajectory: laws in its own variables with their log-probability."""
        ...


@dataclasses.dataclass(frozen=True)
class Effort:
    """How much work a discovery takes.

    Attributes:
      beams: width of the beam search, per view of the data.
      samples: laws drawn from the network beside it, per view.
      refine: what happens to them.
    """

    beams: int
    samples: int
    refine: RefineConfig


EFFORTS: dict[str, Effort] = {
    "fast": Effort(
        16, 16, RefineConfig(generations=3, children=128, matched=20, polished=10, returned=50)
    ),
    "default": Effort(64, 64, RefineConfig()),
    "thorough": Effort(
        256,
        256,
        RefineConfig(
            generations=40, children=512, matched=120, polished=30, returned=200, seconds=600.0
        ),
    ),
}
"""By name; "thorough" takes minutes."""


def discover(
    t: Float[np.ndarray, " time"] | Sequence,
    y: Float[np.ndarray, " time"] | Sequence,
    *,
    weights: str = "small",
    effort: str = "default",
    beams: int | None = None,
    samples: int | None = None,
    use_library: bool = True,
    seed: int = 0,
    progress: Progress | None = None,
    proposer: Proposer | None = None,
) -> Discovery:
    """Finds laws dy/dt = f(y) behind one series, or behind several that follow one law.

    Args:
      t: times, shape [time], any units; for several series a list of such, or the
        times that they share.
      y: values, shape [time], any units, or a list of such. NaNs, repeated and
        unsorted times are dealt with and noted; long series are thinned for fitting.
      weights: name or path of the network's weights; unused with `proposer`.
      effort: "fast", "default" or "thorough", a name in `EFFORTS`.
      beams: proposals of the beam search per view of the data; by the effort if left
        out. With neither beams nor samples the network is not even loaded.
      samples: laws drawn from the network per view, beside those; likewise.
      use_library: whether polynomials and sums of simple functions are tried
        whatever the network proposes (`library`).
      seed: seed of everything random.
      progress: called with a message and the share done of that step, in [0, 1].
      proposer: proposes laws instead of the network.

    Returns:
      Ranked candidates in the data's units.

    Raises:
      TrajectoryError: if the series cannot be used.
      DiscoveryError: if no law was found that has a solution near the data.
      ValueError: if an option is not what it should be.
    """
    started = time.monotonic()
    report = progress or (lambda message, share: None)
    work = _work(effort, beams, samples)
    if not (work.beams or work.samples or use_library):
        raise ValueError("without beams, samples and the library there is no law to try")
    trajectories, notes = read_series(t, y)

    report("reading the data", 0.0)
    units = working_units(trajectories)
    given, trajectories = trajectories, tuple(_in_units(units, t) for t in trajectories)
    form = IntegralForm.from_trajectories(trajectories)
    laws: list[tuple[Expression, float]] = []
    if work.beams or work.samples:
        if proposer is None:
            from nsode_jax.decoding.propose import Proposer as Network  # JAX is slow to import.

            proposer = Network.from_pretrained(weights)
        report("proposing laws", 0.0)
        views, scaled = _views(trajectories)
        proposed = proposer.propose(scaled, beams=work.beams, samples=work.samples, seed=seed)
        report("proposing laws", 1.0)
        laws = _restore(form, views, proposed)
    if use_library:
        laws += [(law, math.nan) for law in library(float(np.abs(form.grid).max()))]
    if not laws:
        raise DiscoveryError("The network proposed no usable law for this series.")

    fits = refine(
        trajectories,
        [law for law, _ in laws],
        seed=seed,
        config=work.refine,
        form=form,
        progress=progress,
    )
    ranked = _in_given_units(rank(fits, trajectories), units)
    if not ranked or ranked[0][0].diverged:
        raise DiscoveryError(
            f"None of the {len(laws)} proposed laws has a solution near the data; "
            "try a greater effort or another seed."
        )
    candidates = _candidates(ranked, [p for _, p in laws], given)
    notes = (*notes, *verdict(candidates, given))
    return Discovery(candidates, given, notes, time.monotonic() - started)


def _in_units(units: AffineView, trajectory: Trajectory) -> Trajectory:
    """The trajectory in other units, from time 0 on."""
    elapsed = dataclasses.replace(trajectory, t=trajectory.t - trajectory.t[0])
    return dataclasses.replace(units.apply(elapsed), noise=trajectory.noise)


def _in_given_units(
    ranked: Sequence[tuple[Fit, float]], units: AffineView
) -> list[tuple[Fit, float]]:
    """Fits in the units of the data; a law that cannot be written in them is left out."""
    if units.a == units.c == 1.0:
        return list(ranked)
    restored = []
    for fit, score in ranked:
        try:
            expression = units.restore(fit.expression)
        except (ExpressionError, TimeLimitExceeded):
            continue
        y0s = tuple(y0 * units.a for y0 in fit.y0s)
        rms = fit.residual_rms * units.a
        fit = dataclasses.replace(fit, expression=expression, y0s=y0s, residual_rms=rms)
        restored.append((fit, score))
    return restored


def _work(effort: str, beams: int | None, samples: int | None) -> Effort:
    """The effort with what was set by hand.

    Raises:
      ValueError: if there is no such effort, or a number is negative.
    """
    if effort not in EFFORTS:
        raise ValueError(f"effort must be one of {', '.join(EFFORTS)}, got {effort!r}")
    work = EFFORTS[effort]
    for name, value in (("beams", beams), ("samples", samples)):
        if value is not None:
            if value < 0:
                raise ValueError(f"{name} must not be negative, got {value}")
            work = dataclasses.replace(work, **{name: value})
    return work


def _views(
    trajectories: Sequence[Trajectory],
) -> tuple[list[AffineView], list[Trajectory]]:
    """Views of the data, and the data seen that way; fewer of each the more series."""
    # Those that move most tell most.
    chosen = sorted(trajectories, key=lambda trajectory: -np.ptp(trajectory.y))
    each = max(1, min(_MOST_VIEWS, _MOST_VIEWS_IN_ALL // len(chosen)))
    pairs = [
        (view, view.apply(trajectory))
        for trajectory in chosen[:_MOST_VIEWS_IN_ALL]
        for view in candidate_views(trajectory, each)
    ]
    return [view for view, _ in pairs], [seen for _, seen in pairs]


def _candidates(
    ranked: Sequence[tuple[Fit, float]],
    log_probabilities: Sequence[float],
    trajectories: Sequence[Trajectory],
) -> tuple[Candidate, ...]:
    shares = weights_of([score for _, score in ranked])
    spread = spread_of(trajectories)
    held_out = [held_out_error(trajectories, fit) * spread for fit, _ in ranked[:_HELD_OUT]]
    held_out += [math.nan] * (len(ranked) - len(held_out))
    return tuple(
        Candidate(
            expression=fit.expression,
            y0s=fit.y0s,
            start_times=tuple(float(trajectory.t[0]) for trajectory in trajectories),
            r2=fit.r2,
            residual_rms=fit.residual_rms,
            score=score,
            log_probability=log_probabilities[fit.source],
            converged=fit.converged,
            weight=share,
            held_out_rms=held_out[place],
            covariance=covariance(trajectories, fit) if place < _WITH_UNCERTAINTY else None,
        )
        for place, ((fit, score), share) in enumerate(zip(ranked, shares, strict=True))
    )


def _restore(
    form: IntegralForm,
    views: Sequence[AffineView],
    proposed: Sequence[Sequence[tuple[Expression, float]]],
) -> list[tuple[Expression, float]]:
    """The proposals that fit best, of all views, in the data's units, best first.

    They are fitted in the variables of their view, and only the best are restored.
    One skeleton is tried a few times only, as starting points for the constants
    that f does not depend on linearly; the others need none.
    """
    found: list[tuple[Draft, AffineView, float]] = []
    for view, proposals in zip(views, proposed, strict=True):
        seen: dict[str, int] = {}
        kept: list[tuple[Expression, float]] = []
        for expression, log_probability in sorted(proposals, key=lambda pair: -pair[1]):
            key = expression.skeleton.unsigned_key
            seen[key] = seen.get(key, 0) + 1
            nonlinear = not linear_constants(expression.skeleton).all()
            if seen[key] <= (_STARTS_PER_SKELETON if nonlinear else 1):
                kept.append((expression, log_probability))
        laws = [expression for expression, _ in kept]
        scaled = form.rescaled(view.a, view.b, view.c)
        drafts = draft_laws(scaled, laws, range(len(laws)))
        found += [(draft, view, kept[draft.source][1]) for draft in drafts]
    found.sort(key=lambda item: item[0].score)
    laws: dict[Expression, float] = {}
    for draft, view, log_probability in found[:_MOST_PROPOSALS]:
        try:
            law = view.restore(draft.expression)
        except (ExpressionError, TimeLimitExceeded):
            continue
        laws.setdefault(law, log_probability)
    return list(laws.items())


__all__ = ["EFFORTS", "DiscoveryError", "Effort", "Proposer", "discover"]
