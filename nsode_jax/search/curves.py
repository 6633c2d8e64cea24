"""Which curves through the data serve a search: smooth ones, or those through all values.

Values that change as fast as they are measured are foretold by their neighbours as badly as
noisy ones, and smoothing takes away what is true of them. Laws tell the two apart: simple
equations explain exact data along the curves through all values, and noisy ones along smooth ones.
"""

from __future__ import annotations

from nsode_jax.fitting.components import component_forms
from nsode_jax.observed.observations import Observations
from nsode_jax.search.equations import products
from nsode_jax.search.sparse import SparseConfig, SubsetSearch

_BETTER = 50.0
"""By so much equations must score better along curves through all values."""

_QUICK = SparseConfig(width=12, exchanged=5)


def with_serving_curves(data: Observations) -> Observations:
    """The runs with curves through all values, where polynomials explain these far better."""
    exact = data.through_values
    return exact if _score(exact) < _score(data) - _BETTER else data


def _score(data: Observations) -> float:
    """Of the best polynomials of low degree, one for each equation."""
    total = 0.0
    for form in component_forms(data):
        search = SubsetSearch(form, products(data.system, form.nodes), data.system.variables)
        search.run(_QUICK)
        total += search.scores[search.best(1)[0]]
    return total
