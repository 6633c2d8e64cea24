"""Laws found by evolution: the best so far with a part added, dropped or exchanged.

A law just outside the proposals is reached by a few small changes of one of them.
Every generation makes some hundred children of the best laws, fits their constants
by the integral form, all at once, and keeps what is short and fits: a genetic search
(Koza 1992), in which constants are not guessed but fitted.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from nsode_jax.fitting.integral import (
    INTERPOLATION_FLOOR,
    IntegralForm,
    Start,
    fit_integrals,
    starts_of,
)
from nsode_jax.fitting.programs import fits
from nsode_jax.selection.rank import length, optimistic_score, score
from nsode_jax.search.variants import canonical_or_none, shortened_laws
from nsode_jax.expressions.constants import linear_constants
from nsode_jax.expressions.expression import Expression, Prefix, subtree_end
from nsode_jax.expressions.operators import OPERATORS, VARIABLE

MAX_LENGTH = 24.0
"""Longest law that evolution makes, as `rank.length` counts."""

_POOL = 150
_PARENTS = 40
_PATIENCE = 3
_LONGEST = 36  # Tokens of a child before it is simplified.
_UNARY = ("sin", "cos", "exp", "sqrt", "log")


@dataclasses.dataclass(frozen=True)
class Draft:
    """A law fitted by the integral form; `error` is relative to the data's spread.

    Attributes:
      expression: the law, not necessarily canonical.
      error: root mean square residual, relative to the spread of the data.
      score: of that residual, `rank.optimistic_score` at first, `rank.score` in a pool.
      source: index of the proposal that it descends from.
    """

    expression: Expression
    error: float
    score: float
    source: int


def draft_laws(
    form: IntegralForm, laws: Sequence[Expression], sources: Sequence[int]
) -> list[Draft]:
    """Every law fitted from its own constants; one that is undefined is left out."""
    starts: list[Start] = []
    owners: list[int] = []
    for i, law in enumerate(laws):
        options = [start for start in starts_of(law) if fits(start.expression, start.free)]
        starts += options
        owners += [i] * len(options)
    constants, errors = fit_integrals(form, starts)
    best: dict[int, Draft] = {}
    for start, owner, values, error in zip(starts, owners, constants, errors, strict=True):
        if not math.isfinite(error):
            continue
        try:
            fitted = start.expression.skeleton.with_constants(values)
        except ValueError:  # A constant left the range of numbers.
            continue
        value = optimistic_score(fitted, float(error), form.count, INTERPOLATION_FLOOR)
        if owner not in best or value < best[owner].score:
            best[owner] = Draft(fitted, float(error), value, sources[owner])
    return list(best.values())


class Pool:
    """The best draft of each skeleton, signs of constants aside, for one set of data."""

    def __init__(self, form: IntegralForm) -> None:
        self._count = form.count
        self._drafts: dict[str, Draft] = {}

    def add(self, drafts: Sequence[Draft]) -> None:
        """Takes them in; of one skeleton the best stays."""
        limit = self._limit()
        # Only what may stay is worth its canonical form.
        for draft in sorted(drafts, key=lambda draft: draft.score)[: 2 * _POOL]:
            if draft.score > limit:
                break
            canonical = canonical_or_none(draft.expression)
            if canonical is None or VARIABLE not in canonical.prefix and draft.error > 0.5:
                continue
            value = score(canonical, draft.error, self._count, INTERPOLATION_FLOOR)
            key = canonical.skeleton.unsigned_key
            if key not in self._drafts or value < self._drafts[key].score:
                self._drafts[key] = dataclasses.replace(draft, expression=canonical, score=value)

    def _limit(self) -> float:
        """Drafts with a worse score would soon be forgotten."""
        values = sorted(draft.score for draft in self._drafts.values())
        return values[_POOL] if len(values) > _POOL else math.inf

    def best(self, count: int) -> list[Draft]:
        """So many drafts, best first."""
        return sorted(self._drafts.values(), key=lambda draft: draft.score)[:count]

    def trim(self) -> None:
        """Forgets all but the best and those on the front of error and length."""
        kept = {id(draft) for draft in [*self.best(_POOL), *self.front()]}
        self._drafts = {key: d for key, d in self._drafts.items() if id(d) in kept}

    def front(self) -> list[Draft]:
        """Drafts that no shorter one fits as well as, shortest first."""
        front: list[Draft] = []
        for draft in sorted(self._drafts.values(), key=lambda d: (length(d.expression), d.error)):
            if not front or draft.error < front[-1].error:
                front.append(draft)
        return front


def evolve(
    form: IntegralForm,
    pool: Pool,
    rng: np.random.Generator,
    *,
    generations: int,
    children: int,
    deadline: float = math.inf,
    report: Callable[[float], None] = lambda share: None,
) -> None:
    """Adds descendants of the pool's best laws to it.

    Args:
      form: the data.
      pool: drafts to begin with; changed.
      rng: of the choices.
      generations: at most; three without a better law end the search.
      children: new laws per generation.
      deadline: CPU time of this thread (`time.thread_time()`) after which no
        generation is begun.
      report: told the share done.
    """
    scale = float(np.abs(form.grid).max()) or 1.0
    tried: set[str] = set()
    best, since = math.inf, 0
    for generation in range(generations):
        report(generation / max(generations, 1))
        leader = min((draft.score for draft in pool.best(1)), default=math.inf)
        since = 0 if leader < best - 1.0 else since + 1
        best = min(best, leader)
        if time.thread_time() > deadline or since >= _PATIENCE:
            return
        parents = [*pool.best(_PARENTS), *pool.front()]
        if not parents:
            return
        laws, sources = [], []
        for law, source in _children(parents, rng, scale):
            key = law.skeleton.unsigned_key
            # A skeleton once tried may be tried again from other constants, but not often.
            if (key in tried and rng.random() > 0.05) or length(law) > MAX_LENGTH:
                continue
            tried.add(key)
            laws.append(law)
            sources.append(source)
            if len(laws) == children:
                break
        pool.add(draft_laws(form, laws, sources))
        pool.trim()


def restart(form: IntegralForm, pool: Pool, rng: np.random.Generator, count: int) -> None:
    """Fits the best laws again from constants around those found, by a factor of 2 or so."""
    laws, sources = [], []
    for draft in pool.best(count):
        skeleton = draft.expression.skeleton
        if draft.error < INTERPOLATION_FLOOR or linear_constants(skeleton).all():
            continue
        constants = np.array(draft.expression.constants)
        for _ in range(2):
            start = constants * np.exp(0.8 * rng.standard_normal(constants.size))
            laws.append(skeleton.with_constants(start))
            sources.append(draft.source)
    pool.add(draft_laws(form, laws, sources))


# --- children ----------------------------------------------------------------------


def _children(
    parents: Sequence[Draft], rng: np.random.Generator, scale: float
) -> Iterator[tuple[Expression, int]]:
    """Random changes of random parents, better ones more often; ends after enough failures."""
    for draft in parents[:8]:
        for shorter in shortened_laws(draft.expression):
            yield shorter, draft.source
    for _ in range(20_000):
        parent = parents[int(len(parents) * rng.random() ** 1.5)]
        mate = parents[int(len(parents) * rng.random() ** 1.5)]
        prefix = _change(parent.expression.prefix, mate.expression.prefix, rng, scale)
        if rng.random() < 0.25:
            prefix = _change(prefix, mate.expression.prefix, rng, scale)
        if len(prefix) > _LONGEST or VARIABLE not in prefix:
            continue
        try:
            child = canonical_or_none(Expression(prefix))
        except ValueError:
            continue
        if child is not None and VARIABLE in child.prefix:
            yield child, parent.source


def _change(prefix: Prefix, mate: Prefix, rng: np.random.Generator, scale: float) -> Prefix:
    """One random change: a part added, multiplied, exchanged or dropped."""
    kind = rng.random()
    part = _building_block(rng, scale)
    if kind < 0.22:
        return ("add", *prefix, "mul", 1.0 + rng.random(), *part)
    if kind < 0.34:
        factor = part if rng.random() < 0.5 else ("add", 1.0 + rng.random(), *_scaled(part, rng))
        return (rng.choice(["mul", "div"]), *prefix, *factor)
    start, end = _random_subtree(prefix, rng)
    if kind < 0.52:
        return (*prefix[:start], *part, *prefix[end:])
    if kind < 0.64:
        mate_start, mate_end = _random_subtree(mate, rng)
        return (*prefix[:start], *mate[mate_start:mate_end], *prefix[end:])
    if kind < 0.74:  # A constant or y becomes a sum.
        extra = ("mul", 0.3 * rng.standard_normal(), *part)
        return (*prefix[:start], "add", *prefix[start:end], *extra, *prefix[end:])
    if kind < 0.84:
        function = str(rng.choice(_UNARY))
        inner = prefix[start:end]
        if prefix[start] in _UNARY:  # Exchanged.
            return (*prefix[:start], function, *prefix[start + 1 :])
        factor = float(np.exp(0.5 * rng.standard_normal())) / scale
        return (*prefix[:start], function, "mul", factor, *inner, *prefix[end:])
    if kind < 0.92:
        exponent = float(rng.choice([2.0, 3.0, -1.0, 0.5, 1.5, 4.0]))
        return (*prefix[:start], "pow", *prefix[start:end], exponent, *prefix[end:])
    operator = OPERATORS.get(prefix[start]) if isinstance(prefix[start], str) else None
    if operator is not None and operator.arity == 2:
        if rng.random() < 0.5:
            other = str(rng.choice(["add", "mul", "div", "sub"]))
            return (*prefix[:start], other, *prefix[start + 1 :])
        middle = subtree_end(prefix, start + 1)
        kept = prefix[start + 1 : middle] if rng.random() < 0.5 else prefix[middle:end]
        return (*prefix[:start], *kept, *prefix[end:])
    return (*prefix[:start], *part, *prefix[end:])


def _scaled(part: Prefix, rng: np.random.Generator) -> Prefix:
    return ("mul", float(rng.choice([-1.0, 1.0]) * np.exp(rng.standard_normal())), *part)


def _random_subtree(prefix: Prefix, rng: np.random.Generator) -> tuple[int, int]:
    start = int(rng.integers(len(prefix)))
    return start, subtree_end(prefix, start)


def _building_block(rng: np.random.Generator, scale: float) -> Prefix:
    """A small function of y, with constants that suit values of size `scale`."""
    rate = float(np.exp(0.7 * rng.standard_normal())) / scale
    sign = float(rng.choice([-1.0, 1.0]))
    blocks: tuple[Prefix, ...] = (
        (VARIABLE,),
        (1.0 + float(rng.random()),),
        ("pow", VARIABLE, 2.0),
        ("pow", VARIABLE, 3.0),
        ("pow", VARIABLE, float(rng.choice([4.0, 5.0, 6.0, -1.0, -2.0, 0.5, 1.5]))),
        ("sqrt", VARIABLE),
        ("div", 1.0, VARIABLE),
        ("log", VARIABLE),
        ("log", "add", 1.0 + float(rng.random()), "mul", rate, VARIABLE),
        ("exp", "mul", sign * rate, VARIABLE),
        ("exp", VARIABLE) if scale < 20 else ("exp", "mul", -rate, VARIABLE),
        ("sin", VARIABLE) if scale < 20 else ("sin", "mul", rate, VARIABLE),
        ("cos", VARIABLE) if scale < 20 else ("cos", "mul", rate, VARIABLE),
        ("sin", "mul", 3 * rate, VARIABLE),
        ("cos", "mul", 3 * rate, VARIABLE),
        ("add", VARIABLE, sign / rate),
        ("div", VARIABLE, "add", 1 / rate, VARIABLE),
        ("div", 1.0, "add", 1.0, "mul", rate, VARIABLE),
        ("div", 1.0, "add", 1.0, "pow", "mul", rate, VARIABLE, 2.0),
        ("mul", VARIABLE, "exp", "mul", -rate, VARIABLE),
        ("mul", VARIABLE, "log", VARIABLE),
        ("pow", VARIABLE, float(0.3 + 2.5 * rng.random())),
    )
    return blocks[int(rng.integers(len(blocks)))]
