"""Which few terms make up an equation: sparse regression by the score, not by a threshold.

Forward steps from nothing and backward steps from everything are taken by a beam, then terms
are exchanged one by one until the score falls no more.
"""

from __future__ import annotations

import dataclasses
import heapq
import math
from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Float

from nsode_jax.expressions.prefix import Prefix
from nsode_jax.observed.regression import Regression
from nsode_jax.search.terms import sum_of
from nsode_jax.selection.score import misfit
from nsode_jax.selection.system_score import equation_score

Subset = frozenset[int]

_ROUNDING = 1e-12
"""Of the largest effect that a term's values might have: a smaller one is none."""

_DEPENDENT = 1e-9
"""A term of which less than this share is not in the others adds nothing but its noise."""


@dataclasses.dataclass(frozen=True)
class SparseConfig:
    """How widely subsets are searched.

    Attributes:
      width: subsets that are kept at each size.
      most_terms: of an equation.
      exchanged: subsets, the best, whose terms are exchanged.
    """

    width: int = 24
    most_terms: int = 7
    exchanged: int = 10


class SubsetSearch:
    """All subsets of some terms that were looked at, with their scores."""

    def __init__(self, form: Regression, terms: Sequence[Prefix], variables: tuple[str, ...]):
        self._form = form
        values = values_along(form, terms, variables)
        with np.errstate(all="ignore"):
            columns = form.operator @ values
        size = np.linalg.norm(columns, axis=0)
        rounding = _ROUNDING * np.linalg.norm(form.operator) * np.abs(values).max(axis=0)
        known = np.flatnonzero((size > rounding) & (size < 1e100))
        self.terms = [terms[i] for i in known.tolist()]
        self._size, self._columns = size[known], columns[:, known] / size[known]
        exact = float(misfit(1.0, form.count, form.floor))
        self._cost = np.array([_price(form, term, variables) - exact + 3.0 for term in self.terms])
        # Only what the terms span is ever asked for.
        q, self._design = np.linalg.qr(self._columns)
        self._target = q.T @ form.target
        self._rest = form.remainder + max(
            float(form.target @ form.target - self._target @ self._target), 0.0
        )
        self.scores: dict[Subset, float] = {}

    def run(self, config: SparseConfig, begun: Sequence[Sequence[Prefix]] = ()) -> None:
        """Forward, backward, and exchanges.

        Args:
          config: how widely.
          begun: sets of terms, from each of which the search goes backward too.
        """
        self._forward(config)
        if len(self.terms) < min(40, self._form.count / 3):
            self._backward(frozenset(range(len(self.terms))), max(config.width // 4, 2))
        places = {term: place for place, term in enumerate(self.terms)}
        for terms in begun:
            self._backward(frozenset(places[term] for term in terms if term in places), 1)
        tried: set[Subset] = set()
        while True:
            best = [s for s in self.best(config.exchanged) if s not in tried]
            if not best:
                return
            for subset in best:
                tried.add(subset)
                for gone in subset:
                    smaller = subset - {gone}
                    self.score(smaller)
                    self._extend(smaller, 3)
                if len(subset) < config.most_terms:
                    self._extend(subset, 3)

    def best(self, number: int) -> list[Subset]:
        """So many subsets, best first."""
        return heapq.nsmallest(number, self.scores, key=lambda s: self.scores[s])

    def score(self, subset: Subset) -> float:
        """Of a subset with its best coefficients."""
        if subset not in self.scores:
            members = sorted(subset)
            design = self._design[:, members]
            left = self._target
            if members:
                coefficients, *_ = np.linalg.lstsq(design, self._target, rcond=1e-13)
                left = self._target - design @ coefficients
            self.scores[subset] = self._value(float(left @ left), self._cost[members].sum())
        return self.scores[subset]

    def least(self, subset: Subset) -> float:
        """What a subset would score if it left nothing."""
        exact = float(misfit(0.0, self._form.count, self._form.floor))
        return exact + float(self._cost[sorted(subset)].sum())

    def error(self, subset: Subset) -> tuple[Float[np.ndarray, " terms"], float]:
        """Coefficients of the terms in their order, and the relative residual."""
        members = sorted(subset)
        design = self._columns[:, members]
        found, *_ = np.linalg.lstsq(design, self._form.target, rcond=1e-13)
        left = self._form.target - design @ found
        square = float(left @ left) + self._form.remainder
        return found / self._size[members], math.sqrt(square / self._form.count)

    def _value(self, square: float, cost: float) -> float:
        rms = math.sqrt(max(square + self._rest, 0.0) / self._form.count)
        return float(misfit(rms, self._form.count, self._form.floor)) + cost

    def _extend(self, subset: Subset, number: int) -> list[tuple[float, Subset]]:
        """The best of the subsets with one term more."""
        members = sorted(subset)
        left = Left.of(self._design[:, members], self._target)
        gain = left.gains(self._design)
        gain[members] = 0.0
        squares = np.maximum(float(left.target @ left.target) - gain, 0.0) + self._rest
        rms = np.sqrt(squares / self._form.count)
        values = misfit(rms, self._form.count, self._form.floor)
        values = values + self._cost + self._cost[members].sum()
        values[members] = math.inf
        found = []
        for j in np.argsort(values)[:number]:
            if math.isfinite(values[j]):
                larger = subset | {int(j)}
                self.scores.setdefault(larger, float(values[j]))
                found.append((float(values[j]), larger))
        return found

    def _forward(self, config: SparseConfig) -> None:
        beam: Iterable[Subset] = [frozenset()]
        for _ in range(config.most_terms):
            found: dict[Subset, float] = {}
            for subset in beam:
                found |= {larger: value for value, larger in self._extend(subset, config.width)}
            beam = heapq.nsmallest(config.width, found, key=lambda s: found[s])

    def _backward(self, whole: Subset, width: int) -> None:
        beam: Iterable[Subset] = [whole]
        for _ in range(len(whole) - 1):
            found = {subset - {gone} for subset in beam for gone in subset}
            beam = heapq.nsmallest(width, found, key=self.score)


@dataclasses.dataclass(frozen=True, eq=False)
class Left:
    """What some terms leave of a target.

    Attributes:
      basis: orthonormal, of the terms.
      target: without its part in them.
    """

    basis: Float[np.ndarray, "rows terms"]
    target: Float[np.ndarray, " rows"]

    @classmethod
    def of(
        cls, columns: Float[np.ndarray, "rows terms"], target: Float[np.ndarray, " rows"]
    ) -> Left:
        """What columns leave."""
        basis, _ = np.linalg.qr(columns)
        return cls(basis, target - basis @ (basis.T @ target))

    def gains(self, columns: Float[np.ndarray, "rows members"]) -> Float[np.ndarray, " members"]:
        """By how much each column lowers the sum of squares of what is left."""
        whole = (columns**2).sum(axis=0)
        columns = columns - self.basis @ (self.basis.T @ columns)
        size = (columns**2).sum(axis=0)
        with np.errstate(all="ignore"):
            gains = (self.target @ columns) ** 2 / size
        return np.where((size > _DEPENDENT * whole) & np.isfinite(gains), gains, 0.0)


def values_along(
    form: Regression, terms: Sequence[Prefix], variables: tuple[str, ...]
) -> Float[np.ndarray, "nodes terms"]:
    """The terms along the data; zeros where one is not finite everywhere, and cannot be used."""
    values = np.zeros((np.shape(form.nodes)[-1], len(terms)))
    for i, term in enumerate(terms):
        along = sum_of([term], [1.0], variables).evaluate(*np.atleast_2d(form.nodes))
        if np.isfinite(along).all():
            values[:, i] = along
    return values


def _price(form: Regression, term: Prefix, variables: tuple[str, ...]) -> float:
    """What an equation of this term alone would score that explains nothing."""
    return equation_score(sum_of([term], [0.123], variables), 1.0, form)
