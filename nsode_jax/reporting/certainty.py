"""How sure one may be of the first law, in one sentence that all candidates have a say in."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Hashable

import numpy as np

from nsode_jax.expressions.canonical import canonicalize
from nsode_jax.expressions.constants import structure
from nsode_jax.expressions.expression import ExpressionError
from nsode_jax.results.diagnostics import POOR_R2
from nsode_jax.results.formatting import listed, probability_text
from nsode_jax.results.own_constants import FormCandidate, FormResult
from nsode_jax.results.result import Candidate, Result
from nsode_jax.results.system_result import SystemCandidate, SystemResult
from nsode_jax.search.variants import with_coefficients
from nsode_jax.selection.form import form_of

_STANDS_OUT, _LIKELIER = 0.9, 0.5
_RIVAL = 1 / 3
"""A law with so large a share of the first one's probability is its rival."""

_CONSIDERED, _LEAST = 0.005, 0.0005


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
    forms = _by_form(result)
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
    explained = float(np.median(result.best.r2))
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


def first_form_probability(result: Result | SystemResult | FormResult) -> float:
    """Of all candidates together that have the form of the first."""
    return sum(result.candidates[rank - 1].probability for rank in _by_form(result)[0])


def _by_form(result: Result | SystemResult | FormResult) -> list[list[int]]:
    """The ranks of the candidates of each form, from 1 on."""
    forms: dict[Hashable, list[int]] = {}
    for rank, candidate in enumerate(result.candidates, start=1):
        forms.setdefault(_form(candidate), []).append(rank)
    return list(forms.values())


def _form(candidate: Candidate | SystemCandidate | FormCandidate) -> Hashable:
    """What candidates of one form have in common; those that hardly count have none."""
    if candidate.probability >= _LEAST:
        with contextlib.suppress(ExpressionError):
            if isinstance(candidate, Candidate):
                return form_of(candidate.expression)
            if isinstance(candidate, SystemCandidate):
                general = [with_coefficients(canonicalize(law)) for law in candidate.laws]
                return tuple((structure(law), law.skeleton.signs) for law in general)
    return id(candidate)
