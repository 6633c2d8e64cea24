"""Formulas whose constants have names, such as r*y*(1 - y/K)."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Bool, Float

from nsode_jax.expressions.expression import Expression, ExpressionError
from nsode_jax.expressions.notation import NAME, parse, to_latex, unknown_names
from nsode_jax.expressions.operators import (
    CONSTANT,
    NEGATIVE_CONSTANT,
    TIME,
    VARIABLES,
)

_MARK = 1e50
"""A formula is read with the number `_MARK * (1 + i / 64)` in place of name i."""

_MOST_NAMES = 64


@dataclasses.dataclass(frozen=True)
class NamedFormula:
    """A right-hand side with named constants: f(y), or f of several variables.

    Attributes:
      text: the formula as it was written.
      names: of the constants, in the order of their first place in the text.
      template: prefix notation, an index into `names` where a constant stands.
      variables: of the formula.
    """

    text: str
    names: tuple[str, ...]
    template: tuple[str | float | int, ...]
    variables: tuple[str, ...] = VARIABLES

    @classmethod
    def parse(cls, text: str, variables: tuple[str, ...] = VARIABLES) -> NamedFormula:
        """Reads a formula: what is neither a variable, pi nor a function is a constant's name.

        Raises:
          ExpressionError: if it cannot be read; nothing in the text is executed.
        """
        names = unknown_names(text, variables)
        if len(names) > _MOST_NAMES:
            raise ValueError(f"more than {_MOST_NAMES} names in {text!r}")
        parse(text, (*variables, *names))  # So that errors are in the words of the text.
        marks = {name: _MARK * (1 + i / _MOST_NAMES) for i, name in enumerate(names)}
        # In parentheses, so that a minus in front is an operator and no sign of the number.
        marked = NAME.sub(lambda m: f"({marks[m[0]]!r})" if m[0] in marks else m[0], text)
        places: dict[str | float, int] = {mark: i for i, mark in enumerate(marks.values())}
        prefix = Expression.from_infix(marked, variables).prefix
        return cls(text, names, tuple(places.get(token, token) for token in prefix), variables)

    @classmethod
    def of_user(cls, text: str, variables: tuple[str, ...] = VARIABLES) -> NamedFormula:
        """As `parse` what a user writes of data, where `t` is the time and no constant.

        Raises:
          ExpressionError: likewise, or if laws of these variables do not depend on the time, or
            if several constants are there but no variable.
        """
        formula = cls.parse(text, variables)
        if TIME in formula.names:
            raise ExpressionError(
                f"the formula {text!r} has the time {TIME} in it, which these laws do not depend on"
            )
        if len(formula.names) > 1 and not set(formula.template) & set(variables):
            of = " or ".join(variables)
            raise ExpressionError(f"the formula {text!r} has no {of} in it, which laws are of")
        return formula

    @classmethod
    def of(cls, law: Expression, free: Bool[np.ndarray, " constants"]) -> NamedFormula:
        """A law with the names c1, c2, ... for its constants that are free."""
        names = tuple(f"c{i + 1}" for i in range(int(free.sum())))
        template: list[str | float | int] = []
        chosen, found = iter(free), 0
        for token, kind in zip(law.prefix, law.skeleton.tokens, strict=True):
            if kind in (CONSTANT, NEGATIVE_CONSTANT) and next(chosen):
                template.append(found)
                found += 1
            else:
                template.append(token)
        written = tuple(names[token] if isinstance(token, int) else token for token in template)
        return cls(Expression(written, (*law.variables, *names)).infix, names, tuple(template))

    def with_values(
        self, values: Sequence[float] | Float[np.ndarray, " names"] | Mapping[str, float]
    ) -> Expression:
        """The formula with a value for each name, in the order of `names` if not by name."""
        if isinstance(values, Mapping):
            values = [values[name] for name in self.names]
        if len(values) != len(self.names):
            raise ValueError(f"{self.text} has {len(self.names)} constants, got {len(values)}")
        prefix = tuple(float(values[t]) if isinstance(t, int) else t for t in self.template)
        return Expression(prefix, self.variables)

    def latex(self, digits: int = 6) -> str:
        """In LaTeX with the names of its constants, also those that no variable may have."""
        prefix = tuple(self.names[t] if isinstance(t, int) else t for t in self.template)
        return to_latex(prefix, digits)

    def evaluate(
        self, values: Sequence[float] | Float[np.ndarray, " names"], y: Float[np.ndarray, "..."]
    ) -> Float[np.ndarray, "..."]:
        """f at each y; NaN or inf where it is undefined."""
        return self.with_values(values).evaluate(y)


def names_note(text: str, variables: Sequence[str]) -> str | None:
    """Which names in a formula of the user's own are taken as constants; None if none is."""
    names = unknown_names(text, variables)
    if not names:
        return None
    are = "is taken as a constant" if len(names) == 1 else "are taken as constants"
    known = f"variable{' is' if len(variables) == 1 else 's are'} {', '.join(variables)}"
    note = f"In {text!r} {', '.join(names)} {are}, to be fitted; the {known}."
    found = re.findall(NAME, text)
    again = [name for name in names if found.count(name) > 1]
    if again:
        note += f" {', '.join(again)} may take another value in each of its places."
    return note
