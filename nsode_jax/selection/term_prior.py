"""How probable a term of an equation of several quantities is before there are data.

Which kinds of terms the sciences use is counted in a table of systems (`systems.toml`): most
are linear, or products of two quantities, and most have the quantity itself whose rate they
are part of. A kind that is not there is as probable as kinds
that are there once make it (Good 1953, Biometrika 40), and the less so the longer it is.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import importlib.resources
import itertools
import math
import re
import tomllib
from collections.abc import Mapping

from nsode_jax.expressions.canonical import canonicalize
from nsode_jax.expressions.constants import is_plain
from nsode_jax.expressions.expression import Expression, ExpressionError
from nsode_jax.expressions.notation import NAME
from nsode_jax.expressions.operators import OPERATORS
from nsode_jax.expressions.prefix import Prefix
from nsode_jax.expressions.summands import summands

Kind = tuple[str | float, ...]
"""A term in canonical form: S for the quantity itself, letters for its other variables, c for
what is fitted."""

TIME = "t"
_OWN, _LETTERS = "S", "ABCDEF"
_FITTED = "c"
_GENERIC = 0.7134
_MOST_VARIABLES = 4

_CONTINUED = 2 * math.log(1.5)
"""Score of one term more: an equation has three on average."""

_TOKEN = 1.5
"""Nats that a token costs a kind that was never seen."""


@dataclasses.dataclass(frozen=True)
class TermPrior:
    """Probabilities of terms by their kind.

    Attributes:
      counts: how often each kind was seen.
      plain: share of the terms whose coefficient was no number of their own.
    """

    counts: Mapping[Kind, int]
    plain: float

    @classmethod
    @functools.cache
    def load(cls) -> TermPrior:
        """That of the table that comes with the package."""
        laws = [law for _, laws in known_systems() for law in laws]
        parts = [(part, law.variables) for law in laws for part in summands(law)]
        plain = sum(itertools.starmap(has_plain_coefficient, parts))
        return cls(collections.Counter(known_kinds()), plain / len(parts))

    @functools.cached_property
    def _total(self) -> int:
        return sum(self.counts.values())

    @functools.cached_property
    def _unseen(self) -> float:
        once = sum(1 for count in self.counts.values() if count == 1)
        return (once + 1) / (self._total + 1)

    def cost(self, term: Prefix, variables: tuple[str, ...], own: str) -> float:
        """Minus twice the logarithm of the probability of a term, its constants aside.

        Args:
          term: prefix notation, with a coefficient or without.
          variables: that an equation may have.
          own: that whose rate of change the equation is.
        """
        kind, ways = kind_of(_pattern(term), variables, own)
        present = len({token for token in kind if str(token) in _LETTERS})
        others = sum(variable not in (TIME, own) for variable in variables)
        choices = ways * math.comb(max(others, present), present)
        known = (1 - self._unseen) * self.counts.get(kind, 0) / self._total
        length = sum(isinstance(token, str) for token in kind)
        unknown = self._unseen * math.exp(-_TOKEN * max(length - 2, 0))
        return -2 * math.log((known + unknown) / choices) + _CONTINUED


def coefficients_cost(law: Expression) -> float:
    """Minus twice the logarithm of the probability that terms have a coefficient, or none."""
    plain = TermPrior.load().plain
    return -2 * sum(
        math.log(plain if has_plain_coefficient(part, law.variables) else 1 - plain)
        for part in summands(law)
    )


def has_plain_coefficient(term: Prefix, variables: tuple[str, ...]) -> bool:
    """Whether a term is multiplied by 1, or another plain number, and by none that is fitted."""
    return _has_plain_coefficient(_pattern(term), variables)


@functools.lru_cache(maxsize=20_000)
def _has_plain_coefficient(pattern: Prefix, variables: tuple[str, ...]) -> bool:
    # A coefficient more is a constant more, unless there is one already.
    fitted = sum(not isinstance(token, str) and not is_plain(token) for token in pattern)
    return _canonical(pattern, variables).count(_FITTED) > fitted


def term_cost(law: Expression, own: str) -> float:
    """Minus twice the logarithm of the prior probability of the terms of an equation.

    Args:
      law: the equation.
      own: the variable whose rate of change it is.
    """
    prior = TermPrior.load()
    return sum(prior.cost(part, law.variables, own) for part in summands(law))


@functools.lru_cache(maxsize=20_000)
def kind_of(term: Prefix, variables: tuple[str, ...], own: str) -> tuple[Kind, int]:
    """The kind of a term, and in how many ways its letters can be given to other variables."""
    present = tuple(v for v in variables if v in term and v not in (TIME, own))[:_MOST_VARIABLES]
    written = set()
    for letters in itertools.permutations(_LETTERS[: len(present)]):
        renamed = {own: _OWN} | dict(zip(present, letters, strict=True))
        prefix = tuple(renamed.get(str(token), token) for token in term)
        written.add(_canonical(prefix, (_OWN, *_LETTERS[: len(present)], TIME)))
    return min(written, key=str), len(written)


def canonical_term(term: Prefix, variables: tuple[str, ...]) -> Kind:
    """A term in canonical form, its constants aside."""
    return _canonical(_pattern(term), variables)


@functools.lru_cache(maxsize=20_000)
def _canonical(prefix: Prefix, variables: tuple[str, ...]) -> Kind:
    """The term with a coefficient, in canonical form, its fitted constants all alike."""
    law = Expression(("mul", _GENERIC, *prefix) if prefix else (_GENERIC,), variables)
    try:
        law = canonicalize(law)
    except ExpressionError:
        pass
    return tuple(
        token if isinstance(token, str) or is_plain(token) else _FITTED for token in law.prefix
    )


def _pattern(term: Prefix) -> Prefix:
    """The term with one number for all that is fitted, each a little different."""
    found = itertools.count(1)
    return tuple(
        token if isinstance(token, str) or is_plain(token) else _GENERIC + 0.01 * next(found)
        for token in term
    )


# --- the table -------------------------------------------------------------------


@functools.cache
def known_systems() -> list[tuple[str, tuple[Expression, ...]]]:
    """The name and the equations of every system of the table; states are x0, x1, ..."""
    file = importlib.resources.files("nsode_jax.selection") / "systems.toml"
    systems = tomllib.loads(file.read_text(encoding="utf-8"))["system"]
    return [
        (one["name"], tuple(read_equation(text, tuple(texts)) for text in texts.values()))
        for one in systems
        for texts in [one["equations"]]
    ]


def known_kinds() -> list[Kind]:
    """Of every term of every system of the table."""
    return [
        kind_of(_pattern(part), law.variables, f"x{own}")[0]
        for _, laws in known_systems()
        for own, law in enumerate(laws)
        for part in summands(law)
    ]


def read_equation(text: str, states: tuple[str, ...]) -> Expression:
    """An equation of the table; its constants get numbers that are not plain."""
    renamed = {state: f"x{i}" for i, state in enumerate(states)}
    numbers = itertools.count(1)

    def written(match: re.Match[str]) -> str:
        name = match[0]
        if name in renamed:
            return renamed[name]
        if name == TIME or name in OPERATORS:
            return name
        return f"({_GENERIC + 0.013 * next(numbers)!r})"

    return Expression.from_infix(NAME.sub(written, text), (*renamed.values(), TIME))
