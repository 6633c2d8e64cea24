"""The methods that are compared: from observations to ranked laws.

`nsode` is the network alone: what its beam search writes, ranked by its probability.
`nsode-paper` is the same network decoded as in the paper. `nsode+refine` is the whole of
`discover`, `nsode-unnamed` the same without the named laws. They never share a column. The
others are the baselines of the paper and of today (room `baselines`).
"""

from __future__ import annotations

import dataclasses
import functools
import math
import types
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import sympy
from jaxtyping import Float

from nsode_jax.baselines import scalar as baselines
from nsode_jax.expressions.canonical import (
    NotRepresentable,
    TimeLimitExceeded,
    Y,
    time_limit,
)
from nsode_jax.expressions.expression import Expression, ExpressionError
from nsode_jax.selection.belief import NO_LAWS

if TYPE_CHECKING:
    from nsode_jax.decoding.propose import Proposer
    from nsode_jax.dynamics.trajectory import Trajectory
    from nsode_jax.observed.scaling import AffineView

MOST_BEAMS = 1536
"""The paper's width of the beam search, and its largest k."""

_MAX_DEGREE = 10  # Of SINDy's polynomials, in the paper.


@dataclasses.dataclass(frozen=True)
class Answer:
    """A candidate of a method.

    Attributes:
      expression: f; None if what the method wrote is no formula, which is a miss.
      solution_r2: share of the observations' variance that its solution explains, where
        the method says so.
    """

    expression: Expression | None
    solution_r2: float | None = None


class MethodError(Exception):
    """Why a method has no answer, in one line."""


class Series(NamedTuple):
    """What a method is given.

    Attributes:
      t, y: times and values, shape [time].
      hints: what it is told of the truth, as arguments of its function.
    """

    t: Float[np.ndarray, " time"]
    y: Float[np.ndarray, " time"]
    hints: Mapping[str, Any] = types.MappingProxyType({})


Outcome = Sequence[Answer] | MethodError
"""Candidates for one series, best first, or why there are none."""


Fit = Callable[..., Sequence[Outcome]]
"""From several series, and settings by name, to the outcome for each."""


@dataclasses.dataclass(frozen=True)
class Method:
    """A way to find laws.

    Attributes:
      title: its name for people.
      fit: finds them.
      defaults: its settings beside the seed; `fit` takes these and the seed.
      wants_degree: whether it is told the highest power of y in the truth, as the paper
        told SINDy; never on ODEBench.
      uses_network: whether it needs JAX.
      together: series that it is best given at once; the others take one after another.
    """

    title: str
    fit: Fit
    defaults: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    wants_degree: bool = False
    uses_network: bool = False
    together: int = 1


# --- ours ---------------------------------------------------------------------


def nsode(series: Sequence[Series], *, weights: str, beams: int, seed: int) -> list[list[Answer]]:
    """The network's beams, most probable first; all series are decoded as one batch.

    It reads one view of each series: as it is, if it is in the range of its training
    (4 units of time, values up to 5), else scaled to it. The seed changes nothing.
    """
    from nsode_jax.observed.scaling import candidate_views

    trajectories = _trajectories(series)
    views = [candidate_views(trajectory, 1)[0] for trajectory in trajectories]
    seen = [view.apply(trajectory) for view, trajectory in zip(views, trajectories)]
    proposals = _network(weights).propose(seen, beams=beams, seed=seed)
    return [_restored(view, [law for law, _ in laws]) for view, laws in zip(views, proposals)]


def _restored(view: AffineView, laws: Sequence[Expression]) -> list[Answer]:
    found: dict[Expression, None] = {}
    for law in laws:
        try:
            found.setdefault(view.restore(law, absorb=False))
        except ExpressionError:
            continue
    return [Answer(law) for law in found]


def nsode_paper(
    series: Sequence[Series], *, weights: str, beams: int, seed: int
) -> list[list[Answer]]:
    """The beams of the paper's decoding, all of them, as they are written.

    No grammar, constants not merged, the series read as they are. The seed changes nothing.
    """
    written = _network(weights).propose_freely(_trajectories(series), beams=beams)
    return [[Answer(law) for law in laws] for laws in written]


def _trajectories(series: Sequence[Series]) -> list[Trajectory]:
    from nsode_jax.dynamics.trajectory import Trajectory

    return [Trajectory(one.t, one.y) for one in series]


@functools.lru_cache(maxsize=1)
def _network(weights: str) -> Proposer:
    from nsode_jax.decoding.propose import Proposer  # JAX is slow to import.

    return Proposer.from_pretrained(weights)


def weights_of(settings: Mapping[str, Any]) -> dict[str, str]:
    """What the weights are that the settings of a method name, for its results.

    Returns:
      `weights_sha256`; nothing if the method has no weights.

    Raises:
      WeightsError: if they are missing or damaged.
    """
    if "weights" not in settings:
        return {}
    from nsode_jax.modeling.pretrained import checksum  # JAX is slow to import.

    return {"weights_sha256": checksum(settings["weights"])}


def _one_by_one(fit: Callable[..., Sequence[Answer]]) -> Fit:
    """A method of one series, `fit(t, y, **settings)`, as one of several."""

    @functools.wraps(fit)
    def each(series: Sequence[Series], **settings: Any) -> list[Outcome]:
        outcomes: list[Outcome] = []
        for t, y, hints in series:
            try:
                outcomes.append(fit(t, y, **settings, **hints))
            except MethodError as refusal:
                outcomes.append(refusal)
        return outcomes

    return each


@_one_by_one
def nsode_refine(
    t: Float[np.ndarray, " time"], y: Float[np.ndarray, " time"], **settings: Any
) -> list[Answer]:
    """All candidates of `discover`, in its ranking."""
    from nsode_jax.discovery.pipeline import DiscoveryError, discover
    from nsode_jax.dynamics.vectors import TrajectoryError

    try:
        found = discover(t, y, **settings)
    except (TrajectoryError, DiscoveryError) as refusal:
        raise MethodError(str(refusal)) from refusal
    return [
        Answer(candidate.expression, candidate.r2 if math.isfinite(candidate.r2) else None)
        for candidate in found.candidates
    ]


# --- the baselines ------------------------------------------------------------


def _baseline(fit: Callable[..., list[Expression]]) -> Fit:
    @_one_by_one
    @functools.wraps(fit)
    def wrapped(
        t: Float[np.ndarray, " time"], y: Float[np.ndarray, " time"], **settings: Any
    ) -> list[Answer]:
        try:
            return [Answer(law) for law in fit(t, y, **settings)]
        except baselines.BaselineError as error:
            raise MethodError(str(error)) from error

    return wrapped


def degree_of(law: Expression | None) -> int:
    """The highest whole power of y in a law, at least 1 and at most 10.

    Laws that our operators cannot express count as linear.
    """
    if law is None:
        return 1
    try:
        with time_limit(1.0):
            expanded = sympy.expand(law.to_sympy())
    except (NotRepresentable, TimeLimitExceeded):
        return 1
    powers = [
        int(power.exp)
        for power in expanded.atoms(sympy.Pow)
        if power.base == Y and power.exp.is_number and power.exp == int(power.exp)
    ]
    return min(max([1, *powers]), _MAX_DEGREE)


_NETWORK = {"weights": "small", "beams": MOST_BEAMS}
_TOGETHER = 2
"""Series in a batch; on a CPU more gain nothing, on an accelerator --batch can be larger."""

METHODS: dict[str, Method] = {
    "nsode": Method("NSODE", nsode, _NETWORK, uses_network=True, together=_TOGETHER),
    "nsode-paper": Method(
        "NSODE, paper's decoding", nsode_paper, _NETWORK, uses_network=True, together=_TOGETHER
    ),
    "nsode+refine": Method(
        "NSODE + refine",
        nsode_refine,
        {"weights": "small", "effort": "default", "beams": None, "samples": None},
        uses_network=True,
    ),
    "nsode-unnamed": Method(
        "NSODE + refine, no named laws",
        functools.partial(nsode_refine, named_laws=NO_LAWS),
        {"weights": "small", "effort": "default", "beams": None, "samples": None},
        uses_network=True,
    ),
    "sindy": Method("SINDy", _baseline(baselines.sindy), wants_degree=True),
    "gplearn": Method("GPLearn", _baseline(baselines.gplearn)),
    "operon": Method("Operon", _baseline(baselines.operon)),
    "aifeynman": Method("AIFeynman", _baseline(baselines.aifeynman)),
}
"""By the name that the command line knows, in the order of the tables."""
