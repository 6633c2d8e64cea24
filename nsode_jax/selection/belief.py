"""The prior in force: that of the package, or one with named laws of the user's own.

It is what one believes while a search runs, so it is set around the search (`believing`)
and not handed from function to function.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
from collections.abc import Iterator
from pathlib import Path

from nsode_jax.expressions.expression import Expression, Skeleton, subtree_end
from nsode_jax.expressions.operators import CONSTANT, NEGATIVE_CONSTANT
from nsode_jax.selection.catalogue import Catalogue
from nsode_jax.selection.complexity import exponent_places
from nsode_jax.selection.prior import EXPONENT_BASE, Prior

NO_LAWS = "none"
"""Stands for a catalogue without laws: of operators only it is known how common they are."""

NamedLaws = Catalogue | str | Path | None
"""Laws of the user's own beside those of the package: a catalogue, or the file of one; None
for no others, `NO_LAWS` for no named laws at all."""

_IN_FORCE: contextvars.ContextVar[Prior | None] = contextvars.ContextVar("prior", default=None)


def in_force() -> Prior:
    """What is believed of laws before there are data."""
    return _IN_FORCE.get() or Prior.load()


@contextlib.contextmanager
def believing(named_laws: NamedLaws) -> Iterator[Prior]:
    """Lets a prior be in force for a while.

    Args:
      named_laws: see `NamedLaws`.

    Raises:
      CatalogueError: if a file of laws cannot be read.
    """
    token = _IN_FORCE.set(_prior(named_laws))
    try:
        yield in_force()
    finally:
        _IN_FORCE.reset(token)


def own_laws(named_laws: NamedLaws) -> Catalogue:
    """The laws of the user's own alone.

    Raises:
      CatalogueError: if a file of laws cannot be read.
    """
    if named_laws is None or named_laws == NO_LAWS:
        return Catalogue(())
    return named_laws if isinstance(named_laws, Catalogue) else Catalogue.read(named_laws)


def _prior(named_laws: NamedLaws) -> Prior:
    if named_laws is None:
        return in_force()
    if named_laws == NO_LAWS:
        return Prior.load(catalogue=False)
    return _with_laws(own_laws(named_laws))


@functools.lru_cache(maxsize=4)
def _with_laws(own: Catalogue) -> Prior:
    return Prior.from_catalogue(Catalogue.load(own.laws))


def log_prior(law: Expression | Skeleton) -> float:
    """`Prior.log_prior` of the prior in force."""
    return in_force().log_prior(law)


def written_log_prior(law: Expression) -> float:
    """`OperatorModel.log_probability` of a law as it is written, canonical or not.

    As the canonical form in arbitrary units does, it writes a difference as a sum, and a
    coefficient before every term.
    """
    prefix, form = law.prefix, []
    exponents = exponent_places(prefix)
    starts = [0]
    while starts:
        start = starts.pop()
        token = prefix[start]
        if token in ("add", "sub"):
            form.append("add")
            starts += [subtree_end(prefix, start + 1), start + 1]
        elif token == "neg":
            starts.append(start + 1)
        else:
            if isinstance(token, str) and token not in ("mul", "div"):
                form += ["mul", CONSTANT]
            for place in range(start, subtree_end(prefix, start)):
                form.append(_token_of_form(prefix[place], place in exponents))
    return in_force().operators.log_probability(tuple(form))


def _token_of_form(token: str | float, is_exponent: bool) -> str:
    if isinstance(token, str):
        return "add" if token == "sub" else token
    if is_exponent and f"{token:g}" in EXPONENT_BASE:
        return f"{token:g}"
    return NEGATIVE_CONSTANT if token < 0 else CONSTANT
