"""Candidates of one form, such as y - 0.3*y**2 and 0.9*y - 0.3*y**2, which count together."""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Sequence

from nsode_jax.expressions.canonical import canonicalize
from nsode_jax.expressions.constants import structure
from nsode_jax.expressions.expression import ExpressionError
from nsode_jax.results.form_candidate import FormCandidate
from nsode_jax.results.result import Candidate
from nsode_jax.results.system_result import SystemCandidate
from nsode_jax.search.variants import with_coefficients
from nsode_jax.selection.form import form_of

_LEAST = 0.0005
"""Probability below which a candidate is not looked at: it hardly counts."""


def by_form(
    candidates: Sequence[Candidate] | Sequence[SystemCandidate] | Sequence[FormCandidate],
) -> list[list[int]]:
    """The ranks of the candidates of each form, from 1 on; that of the first candidate first."""
    forms: dict[Hashable, list[int]] = {}
    for rank, candidate in enumerate(candidates, start=1):
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
