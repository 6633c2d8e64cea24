"""The methods that are compared: from observations to ranked laws.

`nsode` is the paper's: what the network writes, ranked by its probability.
`nsode+refine` is ours: the whole of `discover`. They never share a column. The others are
the baselines of the paper and of today (`baselines.py`).
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import sympy
from jaxtyping import Float

from nsode_jax.evaluation import baselines
from nsode_jax.expressions.canonical import (
    NotRepresentable,
    TimeLimitExceeded,
    Y,
    time_limit,
    to_sympy,
)
from nsode_jax.expressions.expression import Expression, ExpressionError

if TYPE_CHECKING:
    from nsode_jax.decoding.propose import Proposer

MOST_BEAMS = 1536
"""The paper's width of the beam search, and its largest k."""

_MAX_DEGREE = 10  # Of SINDy's polynomials, in the paper.


@dataclasses.dataclass(frozen=True)
class Answer:
    """A candidate of a method.

    Attributes:
      expression: f.
      solution_r2: share of the observations' variance that its solution explains, where
        the method says so.
    """

    expression: Expression
    solution_r2: float | None = None


class MethodError(Exception):
    """Why a method has no answer, in one line."""


@runtime_checkable
class Fit(Protocol):
    """Candidates for one series, best first, without repetitions."""

    def __call__(
        self, t: Float[np.ndarray, " time"], y: Float[np.ndarray, " time"], **settings: Any
    ) -> Sequence[Answer]: ...


@dataclasses.dataclass(frozen=True)
class Method:
    """A way to find laws.

    Attributes:
      title: its name for people.
      fit: finds them. Raises MethodError.
      defaults: its settings beside the seed; `fit` takes these and the seed.
      wants_degree: whether it is told the highest power of y in the truth, as the paper
        told SINDy; never on ODEBench.
      uses_network: whether it needs JAX.
    """

    title: str
    fit: Fit
    defaults: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    wants_degree: bool = False
    uses_network: bool = False


# --- ours ---------------------------------------------------------------------


def nsode(
    t: Float[np.ndarray, " time"],
    y: Float[np.ndarray, " time"],
    *,
    weights: str,
    beams: int,
    seed: int,
) -> list[Answer]:
    """The network's beams, most probable first.

    It reads one view of the series: as it is, if it is in the range of its training
    (4 units of time, values up to 5), else scaled to it. The seed changes nothing.
    """
    from nsode_jax.dynamics.trajectory import Trajectory
    from nsode_jax.fitting.scaling import candidate_views

    trajectory = Trajectory(t, y)
    view = candidate_views(trajectory, 1)[0]
    (proposals,) = _network(weights).propose([view.apply(trajectory)], beams=beams, seed=seed)
    laws: dict[Expression, None] = {}
    for expression, _ in proposals:
        try:
            laws.setdefault(view.restore(expression, absorb=False))
        except (ExpressionError, TimeLimitExceeded):
            continue
    return [Answer(law) for law in laws]


@functools.lru_cache(maxsize=1)
def _network(weights: str) -> Proposer:
    from nsode_jax.decoding.propose import Proposer  # JAX is slow to import.

    return Proposer.from_pretrained(weights)


def nsode_refine(
    t: Float[np.ndarray, " time"], y: Float[np.ndarray, " time"], **settings: Any
) -> list[Answer]:
    """All candidates of `discover`, in its ranking."""
    from nsode_jax.discovery.pipeline import DiscoveryError, discover
    from nsode_jax.dynamics.trajectory import TrajectoryError

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
            expanded = sympy.expand(to_sympy(law))
    except (NotRepresentable, TimeLimitExceeded):
        return 1
    powers = [
        int(power.exp)
        for power in expanded.atoms(sympy.Pow)
        if power.base == Y and power.exp.is_number and power.exp == int(power.exp)
    ]
    return min(max([1, *powers]), _MAX_DEGREE)


METHODS: dict[str, Method] = {
    "nsode": Method("NSODE", nsode, {"weights": "small", "beams": MOST_BEAMS}, uses_network=True),
    "nsode+refine": Method(
        "NSODE + refine",
        nsode_refine,
        {"weights": "small", "effort": "default", "beams": None, "samples": None},
        uses_network=True,
    ),
    "sindy": Method("SINDy", _baseline(baselines.sindy), wants_degree=True),
    "gplearn": Method("GPLearn", _baseline(baselines.gplearn)),
    "operon": Method("Operon", _baseline(baselines.operon)),
    "aifeynman": Method("AIFeynman", _baseline(baselines.aifeynman)),
}
"""By the name that the command line knows, in the order of the tables."""
