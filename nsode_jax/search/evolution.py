"""Laws found by evolution: the best so far with a part added, dropped or exchanged.

A law just outside the proposals is reached by a few small changes of one of them.
Every generation makes some hundred children of the best laws, fits their constants
by the integral form, all at once, and keeps what is short and fits: a genetic search
(Koza 1992), in which constants are not guessed but fitted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from nsode_jax.expressions.constants import linear_constants
from nsode_jax.expressions.expression import Expression, Prefix, subtree_end
from nsode_jax.expressions.operators import FUNCTIONS, OPERATORS, VARIABLE
from nsode_jax.fitting.fit import Origin
from nsode_jax.fitting.progress import Progress, silent
from nsode_jax.observed.regression import Regression
from nsode_jax.search.population import Draft, Population, draft_laws, identity
from nsode_jax.search.sources import Proposal
from nsode_jax.search.variants import canonical_or_none, shortened_laws
from nsode_jax.selection.complexity import weighted_complexity

MAX_COMPLEXITY = 24.0
"""Of the laws that evolution makes, as `weighted_complexity` counts."""

_PARENTS = 40
_PATIENCE = 3
_LONGEST = 36  # Tokens of a child before it is simplified.
_UNARY = tuple(token for token, function in FUNCTIONS.items() if function.arity == 1)


def evolve(
    form: Regression,
    population: Population,
    rng: np.random.Generator,
    *,
    generations: int,
    children: int,
    progress: Progress = silent,
) -> None:
    """Adds descendants of the population's best laws to it.

    Args:
      form: the data.
      population: drafts to begin with; changed.
      rng: of the choices.
      generations: at most; three without a better law end the search.
      children: new laws per generation.
      progress: told the share done.
    """
    scale = form.size
    tried: set[str] = set()
    best, since = math.inf, 0
    for generation in range(generations):
        progress("searching near the best", generation / max(generations, 1))
        first = population.best(1)
        if form.exact and first and first[0].error <= form.floor:
            return  # Nothing can fit better, and what is simpler was tried.
        leader = min((draft.score for draft in first), default=math.inf)
        since = 0 if leader < best - 1.0 else since + 1
        best = min(best, leader)
        if since >= _PATIENCE:
            return
        parents = [*population.best(_PARENTS), *population.front()]
        if not parents:
            return
        proposals: list[Proposal] = []
        for law, origin in _children(parents, rng, scale):
            key = identity(law, form)
            # What was tried once may be tried again from other constants, but not often.
            if (key in tried and rng.random() > 0.05) or weighted_complexity(law) > MAX_COMPLEXITY:
                continue
            tried.add(key)
            proposals.append(Proposal(law, origin))
            if len(proposals) == children:
                break
        population.add(draft_laws(form, proposals))
        population.trim()


def restart(form: Regression, population: Population, rng: np.random.Generator, count: int) -> None:
    """Fits the best laws again from constants around those found, by a factor of 2 or so."""
    proposals = []
    for draft in population.best(count):
        skeleton = draft.expression.skeleton
        if draft.error < form.floor or linear_constants(skeleton).all():
            continue
        constants = np.array(draft.expression.constants)
        for _ in range(2):
            start = constants * np.exp(0.8 * rng.standard_normal(constants.size))
            proposals.append(Proposal(skeleton.with_constants(start), draft.origin))
    population.add(draft_laws(form, proposals))


# --- children ----------------------------------------------------------------------


def _children(
    parents: Sequence[Draft], rng: np.random.Generator, scale: float
) -> Iterator[tuple[Expression, Origin]]:
    """Random changes of random parents, better ones more often; ends after enough failures."""
    for draft in parents[:8]:
        for shorter in shortened_laws(draft.expression):
            yield shorter, draft.origin.descendant()
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
            yield child, parent.origin.descendant()


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
    root = prefix[start]
    operator = OPERATORS.get(root) if isinstance(root, str) else None
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
