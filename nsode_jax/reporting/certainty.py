"""How sure one may be of the first law, in one sentence that all candidates have a say in."""

from __future__ import annotations

import math

import numpy as np

from nsode_jax.results.by_form import by_form
from nsode_jax.results.diagnostics import POOR_R2, explained_share
from nsode_jax.results.formatting import listed, probability_text
from nsode_jax.results.own_constants import FormResult
from nsode_jax.results.result import Result
from nsode_jax.results.system_result import SystemResult

_STANDS_OUT, _LIKELIER = 0.9, 0.5
_RIVAL = 1 / 3
"""A law with so large a share of the first one's probability is its rival."""

_CONSIDERED = 0.005

_NO_LAW_LIKELY = 0.75
"""Probability of no law that was found, between that of data that contradict all of them (0.5)
and that of a series that no law dy/dt = f(y) can explain (`turning.NO_LAW`, 0.95)."""


def certainty_text(result: Result | SystemResult | FormResult) -> str:
    """What the probabilities of all candidates say of the first form, and of laws not found.

    Candidates of one form, such as y - 0.3*y**2 and 0.9*y - 0.3*y**2, count together.

    Args:
      result: what was found; its candidates in order.

    Returns:
      A sentence, empty where probabilities are unknown.
    """
    probabilities = [candidate.probability for candidate in result.candidates]
    if any(map(math.isnan, probabilities)):
        return ""
    forms = by_form(result.candidates)
    first, *others = (sum(probabilities[rank - 1] for rank in ranks) for ranks in forms)
    unfound = max(0.0, 1.0 - sum(probabilities))
    rivals = sum(other >= _RIVAL * first for other in others)
    considered = sum(other >= _CONSIDERED for other in others)
    alike = [r for r in forms[0] if probabilities[r - 1] >= _CONSIDERED]
    which = f" (laws {listed(alike)})" if len(alike) > 1 else ""
    parts = [f"{probability_text(first)} that the first form{which} is right"]
    if considered:
        several = f"one of {considered} others" if considered > 1 else "the other one"
        parts.append(f"{probability_text(sum(others))} that {several} is")
    if unfound >= _CONSIDERED:
        parts.append(f"{probability_text(unfound)} that none of those found is")
    explained = _explained(result)
    if not explained >= POOR_R2:
        verdict = (
            f"but the best explains only {max(explained, 0.0):.0%} of the variance of the data: "
            "believe none"
        )
    elif rivals:
        verdict = f"the data do not tell it from {rivals} {'other' if rivals == 1 else 'others'}"
    elif first >= _STANDS_OUT:
        verdict = "it stands out"
    elif first >= _LIKELIER:
        verdict = "it is the likeliest by far, but not certain"
    else:
        verdict = "many forms fit about as well"
    return f"{', '.join(parts)}: {verdict}."


def is_believable(result: Result) -> bool:
    """Whether a law was found that may be right.

    The best must explain the data, and they must not be such as no law dy/dt = f(y) explains.
    """
    unfound = 1.0 - sum(candidate.probability for candidate in result.candidates)
    return _explained(result) >= POOR_R2 and not unfound > _NO_LAW_LIKELY


def _explained(result: Result | SystemResult | FormResult) -> float:
    """Share of the variance of the data that the first law explains."""
    if isinstance(result, Result):
        return explained_share(result.best, result.trajectories)
    return float(np.median(result.best.r2))


def first_form_probability(result: Result | SystemResult | FormResult) -> float:
    """Of all candidates together that have the form of the first."""
    return sum(result.candidates[rank - 1].probability for rank in by_form(result.candidates)[0])
