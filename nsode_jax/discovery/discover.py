"""From a measured series to ranked laws dy/dt = f(y): the whole pipeline.

clean -> thin -> views -> propose (the network) -> restore units -> add polynomials
-> refine -> rank
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from jaxtyping import Float
from scipy.optimize import isotonic_regression

from nsode_jax.discovery.integral import linear_constants
from nsode_jax.discovery.rank import Fit, rank
from nsode_jax.discovery.refine import Progress, refine
from nsode_jax.discovery.result import Candidate, Discovery
from nsode_jax.discovery.scaling import AffineView, candidate_views
from nsode_jax.dynamics.trajectory import Trajectory, clean
from nsode_jax.expressions.canonical import TimeLimitExceeded, canonicalize
from nsode_jax.expressions.expression import Expression, ExpressionError

MAX_POINTS = 300
"""Longer series are reduced to so many points before fitting."""

_STARTS_PER_SKELETON = 2


class DiscoveryError(RuntimeError):
    """No law could be found. The message is one line for the person with the data."""


class Proposer(Protocol):
    """What `discover` needs of the network; see `nsode_jax.decoding.propose`."""

    def propose(
        self, trajectories: Sequence[Trajectory], *, beams: int, samples: int, seed: int
    ) -> list[list[tuple[Expression, float]]]:
        """Per trajectory: laws in its own variables with their log-probability."""
        ...


def discover(
    t: Float[np.ndarray, "time"] | Sequence[float],
    y: Float[np.ndarray, "time"] | Sequence[float],
    *,
    weights: str = "small",
    beams: int = 64,
    samples: int = 64,
    polynomial_degree: int = 3,
    seed: int = 0,
    progress: Progress | None = None,
    proposer: Proposer | None = None,
) -> Discovery:
    """Finds laws dy/dt = f(y) behind one series.

    Args:
      t: times, shape [time], any units.
      y: values, shape [time], any units. NaNs, repeated and unsorted times are
        dealt with and noted; series above `MAX_POINTS` are thinned for fitting.
      weights: name or path of the network's weights; unused with `proposer`.
      beams: proposals of the beam search per view of the data; 0 for none.
      samples: laws drawn from the network per view, beside those.
      polynomial_degree: polynomials in y up to this degree, with any of their terms,
        are tried whatever is proposed, since the simplest laws must not be missed by
        chance; 0 tries none.
      seed: seed of everything random.
      progress: called with a message and the share done of that step, in [0, 1].
      proposer: proposes laws instead of the network.

    Returns:
      Ranked candidates in the data's units.

    Raises:
      TrajectoryError: if the series cannot be used.
      DiscoveryError: if no proposed law has a solution near the data.
    """
    started = time.monotonic()
    report = progress or (lambda message, share: None)
    trajectory, cleaning_notes = clean(t, y)
    trajectory, thinning_notes = thin(trajectory)
    notes = [*cleaning_notes, *thinning_notes, *_warnings(trajectory)]

    report("reading the data", 0.0)
    if proposer is None:
        from nsode_jax.decoding.propose import Proposer as Network  # JAX is slow to import.

        proposer = Network.from_pretrained(weights)
    views = candidate_views(trajectory)
    report("proposing laws", 0.0)
    scaled = [view.apply(trajectory) for view in views]
    proposed = proposer.propose(scaled, beams=beams, samples=samples, seed=seed)
    report("proposing laws", 1.0)

    laws = _restore(views, proposed)
    laws += [(law, math.nan) for law in polynomials(polynomial_degree)]
    if not laws:
        raise DiscoveryError("The network proposed no usable law for this series.")
    fits = refine(trajectory, [law for law, _ in laws], seed=seed, progress=progress)
    ranked = rank(fits, trajectory)
    if not ranked or ranked[0][0].diverged:
        raise DiscoveryError(
            f"None of the {len(laws)} proposed laws has a solution near the data; "
            "try more beams or samples, or another seed."
        )
    candidates = tuple(
        _candidate(fit, score, laws[fit.source][1], trajectory) for fit, score in ranked
    )
    if candidates[0].r2 < 0.9:
        notes.append(
            f"The best law explains only {max(candidates[0].r2, 0.0):.0%} of the variance of the "
            "data; do not trust it."
        )
    return Discovery(candidates, (trajectory,), tuple(notes), time.monotonic() - started)


def _candidate(fit: Fit, score: float, log_probability: float, trajectory: Trajectory) -> Candidate:
    return Candidate(
        expression=fit.expression,
        y0s=(fit.y0,),
        start_times=(float(trajectory.t[0]),),
        r2=fit.r2,
        residual_rms=fit.residual_rms,
        log_probability=log_probability,
        converged=fit.converged,
        score=score,
    )


def _restore(
    views: Sequence[AffineView], proposed: Sequence[Sequence[tuple[Expression, float]]]
) -> list[tuple[Expression, float]]:
    """Proposals of all views in the data's units, most probable first.

    One skeleton is kept a few times only, as starting points for the constants
    that f does not depend on linearly; the others need none.
    """
    pairs = [
        (view, expression, log_probability)
        for view, proposals in zip(views, proposed, strict=True)
        for expression, log_probability in proposals
    ]
    pairs.sort(key=lambda pair: -pair[2])
    seen: dict[tuple, int] = {}
    laws: dict[Expression, float] = {}
    for view, expression, log_probability in pairs:
        # Views with these in common give the same skeleton in the data's units.
        key = (expression.skeleton.unsigned_key, view.a == 1.0, view.b)
        seen[key] = seen.get(key, 0) + 1
        nonlinear = not linear_constants(expression.skeleton).all()
        if seen[key] > (_STARTS_PER_SKELETON if nonlinear else 1):
            continue
        try:
            law = view.restore(expression)
        except (ExpressionError, TimeLimitExceeded):
            continue
        laws.setdefault(law, log_probability)
    return list(laws.items())


def polynomials(degree: int) -> list[Expression]:
    """A polynomial for every set of powers of y up to a degree, shortest first.

    Its coefficients are placeholders: f is linear in them, so fitting needs no start.
    """
    powers = ["0.7", "0.7*y", *(f"0.7*y**{power}" for power in range(2, degree + 1))]
    sums = (
        " + ".join(terms)
        for size in range(1, len(powers) + 1)
        for terms in itertools.combinations(powers, size)
    )
    return [canonicalize(Expression.from_infix(text)) for text in sums] if degree > 0 else []


# --- long series ---------------------------------------------------------------


def thin(
    trajectory: Trajectory, max_points: int = MAX_POINTS
) -> tuple[Trajectory, tuple[str, ...]]:
    """At most `max_points` points that stand for a longer series.

    The series is cut into blocks, half of them spread evenly over the rows and
    half over the changes of y, so that a short transient in a long record keeps
    its points. A block of five or more points becomes the value of its
    least-squares parabola in the middle: noise is averaged, and the curvature of
    clean data is not. Smaller blocks become one of their points.

    Args:
      trajectory: any series.
      max_points: most points to return.

    Returns:
      The points, and a note if there were more.
    """
    total = len(trajectory)
    if total <= max_points:
        return trajectory, ()
    t, y = trajectory.t, trajectory.y

    coarse = np.linspace(0, total, min(total, 4096) + 1).astype(int)
    means = np.add.reduceat(y, coarse[:-1]) / np.diff(coarse)
    change = np.abs(np.diff(means, prepend=means[0]))
    # A noisy or steadily changing record has changes everywhere: only what stands
    # out counts (beyond 5 standard deviations if all of it is noise).
    change = np.maximum(change - 8 * np.median(change), 0.0)
    even = np.full(change.size, 1.0 / change.size)
    density = even if change.sum() == 0 else (even + change / change.sum()) / 2
    position = np.concatenate([[0.0], np.cumsum(density)]) / density.sum()
    edges = np.interp(np.linspace(0, 1, max_points + 1), position, coarse)
    edges = np.unique(np.round(edges).astype(int))

    blocks = list(zip(edges[:-1], edges[1:], strict=True))
    times, values = np.empty(len(blocks)), np.empty(len(blocks))
    for i, (start, end) in enumerate(blocks):
        if end - start < 5:
            middle = (start + end - 1) // 2
            times[i], values[i] = t[middle], y[middle]
            continue
        times[i] = t[start:end].mean()
        unit = (t[end - 1] - t[start]) / 2
        design = np.vander((t[start:end] - times[i]) / unit, 3, increasing=True)
        level = y[start]
        values[i] = level + np.linalg.lstsq(design, y[start:end] - level, rcond=None)[0][0]
    note = (
        f"The series has {total} points; laws were fitted to {len(blocks)} that stand for them "
        "(local averages or samples), and R2 refers to those."
    )
    return Trajectory(times, values), (note,)


# --- what to be wary of ----------------------------------------------------------


def _warnings(trajectory: Trajectory) -> list[str]:
    """A word where no law dy/dt = f(y) can explain the data: they rise and fall."""
    t, y = trajectory.t, trajectory.y
    # Noise: how far each point lies from the line through its neighbours.
    share = (t[1:-1] - t[:-2]) / (t[2:] - t[:-2])
    deviation = y[1:-1] - (1 - share) * y[:-2] - share * y[2:]
    noise = float(np.sqrt(np.mean(deviation**2 / (1 + share**2 + (1 - share) ** 2))))
    best = min(
        float(np.sqrt(np.mean((isotonic_regression(y, increasing=up).x - y) ** 2)))
        for up in (True, False)
    )
    if best > 0.1 * y.std() and best > 2 * noise:
        return [
            "The values rise and fall by more than noise, but every solution of dy/dt = f(y) only "
            "rises or only falls: no such law can explain this series."
        ]
    return []


__all__ = [
    "Candidate",
    "Discovery",
    "DiscoveryError",
    "Proposer",
    "discover",
    "polynomials",
    "thin",
]
