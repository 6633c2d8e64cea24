"""Plain sentences on what speaks against a form, or against constants that series share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float

from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.residuals.pattern import pattern_of
from nsode_jax.results.comparison import EQUAL, p_said
from nsode_jax.results.diagnostics import POOR_R2
from nsode_jax.results.form_candidate import FormCandidate, first_of

_NEGLIGIBLE = 1e-5
"""Of the spread of a series: smaller residuals are the solver's."""


def remarks_on(
    form: FormCandidate, trajectories: Sequence[Trajectory], labels: Sequence[str]
) -> tuple[str, ...]:
    """What is to be said of the fit of a form, without a point at the end.

    Args:
      form: with the constants of every series.
      trajectories: the series.
      labels: what they are called.
    """
    return (
        *_on_fit(form, labels),
        *_on_residuals(form, trajectories),
        *_on_sharing(form),
        *_on_bounds(form, labels),
    )


def _on_fit(form: FormCandidate, labels: Sequence[str]) -> tuple[str, ...]:
    """A sentence if the form has solutions that hardly explain some series."""
    poor = np.isfinite(form.r2) & (form.r2 < POOR_R2)
    if not poor.any():
        return ()
    cause = "the form" if form.bounds is None else "the form, or a bound,"
    return (
        f"R² is below {POOR_R2}{_where(poor, labels)}: do not trust the constants there; the "
        f"noise is too large, or {cause} does not fit",
    )


def _on_residuals(form: FormCandidate, trajectories: Sequence[Trajectory]) -> tuple[str, ...]:
    """A sentence if residuals are alike from one time to the next."""
    pattern = pattern_of(_residuals(form, trajectories))
    if not pattern.is_systematic:
        return ()
    causes = ["the form"]
    causes += ["a bound"] if form.bounds is not None else []
    causes += [f"{_ones(form)} for all"] if form.shared and len(trajectories) > 1 else []
    return (
        f"The residuals are not random: {pattern.counted}; {' or '.join(causes)} misses something "
        "systematic, or the noise is correlated",
    )


def _residuals(
    form: FormCandidate, trajectories: Sequence[Trajectory]
) -> list[Float[np.ndarray, " time"]]:
    """Weighted residuals of each series that has a solution, relative to their size."""
    found = []
    for i, series in enumerate(trajectories):
        if not _NEGLIGIBLE**2 < 1 - form.r2[i] < np.inf:
            continue
        left = series.weights * (series.y - form.solution(series.t, i))
        left = left[np.isfinite(left)]
        if left.any():
            found.append(left / np.sqrt(np.mean(left**2)))
    return found


def _on_sharing(form: FormCandidate) -> tuple[str, ...]:
    """A sentence if the series differ by more than noise in what they were made to share."""
    if not form.shared_p_value < EQUAL:
        return ()
    one = len(form.shared) == 1
    return (
        f"The series contradict {_ones(form)} ({p_said(form.shared_p_value)}): "
        f"{'it is' if one else 'they are'} not the same in all, or the form does not fit; "
        "do not trust the constants and their errors",
    )


def _ones(form: FormCandidate) -> str:
    """Such as `one K and one r`."""
    return " and ".join(f"one {name}" for name in form.shared)


def _on_bounds(form: FormCandidate, labels: Sequence[str]) -> tuple[str, ...]:
    """A sentence for each constant that is at its bound in some series."""
    return tuple(
        f"{name} is pressed against its bound{_where(at_bound, labels)}: the data would have it "
        "beyond, and its error, as if it were free, says little"
        for name, at_bound in zip(form.names, form.pressed.T, strict=True)
        if at_bound.any()
    )


def _where(chosen: Bool[np.ndarray, " series"], labels: Sequence[str]) -> str:
    """Such as ` for 3, 7`: the first of the chosen series; nothing if there is only one."""
    which = [label for label, is_chosen in zip(labels, chosen) if is_chosen]
    return f" for {first_of(which)}" if len(labels) > 1 else ""
