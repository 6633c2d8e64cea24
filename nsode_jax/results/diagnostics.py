"""Plain sentences on how far a discovery can be trusted."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.constants import is_plain
from nsode_jax.fitting.fit import Fit, Origin
from nsode_jax.fitting.linearized import Linearized
from nsode_jax.fitting.trajectory_fitting import linearized
from nsode_jax.observed.dataset import Dataset
from nsode_jax.residuals.beginning import odd_beginning
from nsode_jax.residuals.goodness import constants_differ, lack_of_fit
from nsode_jax.results.by_form import by_form
from nsode_jax.results.formatting import probability_text, time_text
from nsode_jax.results.result import Candidate

LIKELY = 0.05
"""A law whose posterior probability is above this cannot be told from the best."""

_SAME_CURVE = 0.05
POOR_R2 = 0.9
"""Who explains less of the variance of the data explains them badly."""
_UNCERTAIN = 0.5
_BADLY, _MANY = 5.0, 1000
_UNSEEN = 0.01  # Of the spread.
_DIFFERENT = 0.01
"""Probability below which series are said to differ: so often, at most, of such that do not."""

BAD_FIT, _TOO_GOOD_FIT = 0.01, 0.99
"""Probabilities by chi-squared that are worth a word."""


def diagnose(
    candidates: Sequence[Candidate],
    trajectories: Sequence[Trajectory],
    *,
    lag_known: bool = False,
) -> tuple[str, ...]:
    """What a careful colleague would add to the table of candidates.

    Args:
      candidates: ranked laws with their probabilities.
      trajectories: the data they were fitted to.
      lag_known: whether the first points have been spoken of.
    """
    best, data = candidates[0], Dataset.of(trajectories)
    linear = _linearized(best, data)
    times = np.concatenate([trajectory.t for trajectory in trajectories])
    begin_alike = len({float(trajectory.t[0]) for trajectory in trajectories}) == 1
    of_data = (*_goodness(best, trajectories), *_replicates(best, data, linear, times))
    of_data += _own_constants(data, linear)
    if best.converged and begin_alike and not lag_known:
        of_data += _lag(linear, times)
    if (explained := explained_share(best, trajectories)) < POOR_R2:
        return (*of_data, poor_fit(explained, "law", "law dy/dt = f(y)"))
    return (
        *of_data,
        *_rivals(candidates, trajectories),
        *_vague_constants(best),
        *_prediction(best, data),
    )


def explained_share(best: Candidate, trajectories: Sequence[Trajectory]) -> float:
    """Share of the variance of the data that a law explains; -inf without a solution.

    As the values count or all alike, whichever is more: where the small ones are mostly noise
    and count as much as the large ones, a law may well explain these.
    """
    if best.r2 >= POOR_R2 or not math.isfinite(best.r2):
        return best.r2
    left = [one.y - best.solution(one.t, i) for i, one in enumerate(trajectories)]
    about = [one.y - one.y.mean() for one in trajectories]
    squares = [float(np.sum(np.concatenate(parts) ** 2)) for parts in (left, about)]
    alike = 1 - squares[0] / squares[1]
    return max(best.r2, alike) if math.isfinite(alike) else best.r2


def poor_fit(r2: float, what: str, kind: str) -> str:
    """A word on a law or a system, the best one, that hardly explains the data."""
    return (
        f"The best {what} explains only {max(r2, 0.0):.0%} of the variance of the data; do not "
        f"trust it: the noise is too large, or no {kind} fits."
    )


def _goodness(best: Candidate, trajectories: Sequence[Trajectory]) -> tuple[str, ...]:
    """A word if the residuals of the best law are not what known errors of measurement give."""
    sigma, probability = trajectories[0].sigma, best.goodness_of_fit
    if sigma is None or math.isnan(probability) or BAD_FIT <= probability <= _TOO_GOOD_FIT:
        return ()
    count = sum(map(len, trajectories))
    # What is known of a law is not fitted, and has no error.
    fitted = sum(error != 0.0 for error in best.standard_errors)
    freedom = count - fitted - len(trajectories)
    if freedom < 1:
        return ()
    ratio = best.residual_rms / sigma * math.sqrt(count / freedom)
    found = (
        f"the residuals of the best law are {ratio:.2g} times the measurement errors (chi-squared "
        f"{ratio**2 * freedom:.3g} for {freedom} degrees of freedom, probability "
        f"{probability_text(probability)})"
    )
    if probability > _TOO_GOOD_FIT:
        return (
            f"The measurement errors seem too large: {found}. Are they standard deviations of "
            "single values?",
        )
    return (
        f"The measurement errors do not account for the data: {found}. They are too small, or no "
        "law that was found is right. The standard errors of the constants follow from the "
        f"measurement errors as given; those from the residuals would be {ratio:.2g} times as "
        "large.",
    )


def _linearized(best: Candidate, data: Dataset) -> Linearized | None:
    """The fit of the best law to first order; what is known of it was not fitted."""
    fit = Fit(best.expression, best.y0s, best.residual_rms, best.r2, best.converged, Origin(""))
    linear = None if fit.diverged else linearized(data, fit)
    if linear is None:
        return None
    pairs = zip(best.expression.constants, best.standard_errors, strict=True)
    fitted = [error != 0.0 for constant, error in pairs if not is_plain(constant)]
    columns = [*fitted, *[True] * len(data)]
    return Linearized(linear.residual, linear.jacobian[:, columns])


def _replicates(
    best: Candidate, data: Dataset, linear: Linearized | None, times: np.ndarray
) -> tuple[str, ...]:
    """What series that share their times tell of the errors of measurement, and of the law."""
    if linear is None or data.sigma is not None or math.isnan(best.goodness_of_fit):
        return ()
    found = lack_of_fit(linear, times, data.weights)
    if found is None:
        return ()
    said = (
        f"By the scatter of the series at the times that they share, about their solutions, the "
        f"measurement error is {found.scatter * data.spread:.2g} ({found.freedom} degrees of "
        "freedom)"
    )
    if found.probability >= BAD_FIT:
        return (f"{said}; it accounts for what the best law leaves.",)
    return (
        f"{said}; that does not account for what the best law misses in all of them alike (test "
        f"for lack of fit, probability {probability_text(found.probability)}): the form is wrong, "
        "or something disturbed all series at once.",
    )


def _own_constants(data: Dataset, linear: Linearized | None) -> tuple[str, ...]:
    """A word if constants that are common to all series do not explain them."""
    if linear is None:
        return ()
    sigma = None if data.sigma is None else data.sigma / data.spread
    probability = constants_differ(linear, [len(series) for series in data], sigma)
    if not probability < _DIFFERENT:
        return ()
    return (
        "The series differ by more than noise from one law with common constants (probability "
        f"{probability_text(probability)}). If they are not replicates, they may follow one form "
        'with constants of their own: --constants own (in Python constants="own").',
    )


def _lag(linear: Linearized | None, times: np.ndarray) -> tuple[str, ...]:
    """A word if the first points do not follow the law of the others."""
    found = None if linear is None else odd_beginning(linear, times)
    if found is None:
        return ()
    number, later = int((times <= found.until).sum()), times[times > found.until].min()
    return (
        f"The first {number} points (until {time_text(found.until)}) do not follow the law of the "
        f"others; they lie {'above' if found.side > 0 else 'below'} it. A lag phase? To leave them "
        f"out, try --from {time_text(later)} (in Python, the times from there on).",
    )


def _rivals(candidates: Sequence[Candidate], trajectories: Sequence[Trajectory]) -> tuple[str, ...]:
    """A word if other forms are nearly as good, and whether they differ where it matters."""
    first, *others = ([candidates[rank - 1] for rank in ranks] for ranks in by_form(candidates))
    rivals = [form[0] for form in others if sum(c.probability for c in form) > LIKELY]
    rivals = [law for law in rivals if math.isfinite(law.r2)]
    if not rivals:
        return ()
    best, data = candidates[0], Dataset(tuple(trajectories))
    inside = data.values(101)
    f = best.expression.evaluate(inside)
    size = np.nanmax(np.abs(data.telling(f, inside)))
    difference = max(
        float(np.nanmax(np.abs(data.telling(rival.expression.evaluate(inside) - f, inside)))) / size
        for rival in rivals[:5]
    )
    count = "1 other form explains" if len(rivals) == 1 else f"{len(rivals)} other forms explain"
    return (
        f"{count} the data about as well: the form of the law is not certain "
        f"(probability of the first {sum(c.probability for c in first):.0%}). "
        + (
            f"Where there are data they hardly differ (by {difference:.0%} of the largest rate); "
            "beyond, they may."
            if difference < _SAME_CURVE
            else f"They differ by up to {difference:.0%} of the largest rate even where there are "
            "data: more data, or less noise, would tell them apart."
        ),
    )


def _vague_constants(best: Candidate) -> tuple[str, ...]:
    """A word if a constant of the best law is hardly determined."""
    if best.covariance is None:
        if any(c != round(c) for c in best.expression.constants):
            return ("The data do not determine all constants of the best law.",)
        return ()
    vague = [
        (value, error)
        for value, error in zip(best.expression.constants, best.standard_errors, strict=True)
        if error > _UNCERTAIN * abs(value)
    ]
    if not vague:
        return ()
    listed = ", ".join(f"{value:.2g} ± {error:.1g}" for value, error in vague)
    return (f"The data hardly determine these constants of the best law: {listed}.",)


def _prediction(best: Candidate, data: Dataset) -> tuple[str, ...]:
    """A word if the best law predicts badly, also to the eye, what it was not fitted to."""
    error, residual = best.held_out_rms, best.residual_rms
    least = max(_BADLY * residual, _UNSEEN * data.spread)
    if math.isnan(error) or error <= least or residual == 0:
        return ()
    if math.isinf(error):
        return (
            "Fitted without the first or the last quarter of the data, the best law has no "
            "solution there: take care beyond the data.",
        )
    times = f"{error / residual:.0f}" if error < _MANY * residual else f"more than {_MANY}"
    return (
        "Fitted without the first or the last quarter of the data, the best law predicts that "
        f"quarter with an error {times} times its residual: take care beyond the data.",
    )
