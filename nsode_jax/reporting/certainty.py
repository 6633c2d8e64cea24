"""How sure one may be of the first law, in one sentence that all candidates have a say in."""

from __future__ import annotations

import math

from nsode_jax.results.formatting import probability_text
from nsode_jax.results.own_constants import FormResult
from nsode_jax.results.result import Result
from nsode_jax.results.system_result import SystemResult

_STANDS_OUT, _LIKELIER = 0.9, 0.5
_RIVAL = 1 / 3
"""A law with so large a share of the first one's probability is its rival."""

_CONSIDERED = 0.005


def certainty_text(result: Result | SystemResult | FormResult) -> str:
    """What the probabilities of all candidates say of the first, and of laws not found.

    Args:
      result: what was found; its candidates in order.

    Returns:
      A sentence, empty where probabilities are unknown.
    """
    probabilities = [candidate.probability for candidate in result.candidates]
    if any(map(math.isnan, probabilities)):
        return ""
    first, *others = probabilities
    unfound = max(0.0, 1.0 - sum(probabilities))
    rivals = sum(other >= _RIVAL * first for other in others)
    considered = sum(other >= _CONSIDERED for other in others)
    parts = [f"{probability_text(first)} that the first form is right"]
    if considered:
        several = f"one of {considered} others" if considered > 1 else "the other one"
        parts.append(f"{probability_text(sum(others))} that {several} is")
    if unfound >= _CONSIDERED:
        parts.append(f"{probability_text(unfound)} that none of those found is")
    if rivals:
        verdict = f"the data do not tell it from {rivals} {'other' if rivals == 1 else 'others'}"
    elif first >= _STANDS_OUT:
        verdict = "it stands out"
    elif first >= _LIKELIER:
        verdict = "it is the likeliest by far, but not certain"
    else:
        verdict = "many forms fit about as well"
    return f"{', '.join(parts)}: {verdict}."


__all__ = ["certainty_text"]
