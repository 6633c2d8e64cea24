"""Named laws: what science already knows of scalar autonomous equations, as a table.

The table is `named_laws.toml`. A law is known by its form (see `form`): the signs of its
terms and its plain exponents, in arbitrary units. Laws of several fields share a form;
logistic growth is also autocatalysis, and an epidemic without recovery.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.resources
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nsode_jax.expressions.expression import ExpressionError
from nsode_jax.expressions.operators import VARIABLE
from nsode_jax.selection.form import Form, form_of
from nsode_jax.selection.named_formula import NamedFormula
from nsode_jax.system.files import one_line

_TABLE = "named_laws.toml"
OWN = "own"
"""Field of laws whose table names none."""

_OWN_FREQUENCY = 30.0
"""As frequent as what stands in every textbook: somebody thought of it for these data."""

_DRAWS = 6
"""Random constants of a law, by which the signs that its terms can have are found."""

_UNIT = re.compile(
    r"(?P<one>1)?(?P<value>value(\*\*(?P<power>-?[\d.]+|\([^()]*\)))?)?"
    r"(?P<rate>/time(\*\*(?P<order>\d))?)?(?P<time>time)?"
)


class CatalogueError(ValueError):
    """An entry of the table cannot be read."""


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A constant of a named law.

    Attributes:
      name: as in the formula.
      meaning: in words.
      positive: whether it must be; else it may have either sign.
      unit: in those of y and t, such as "value/time".
      starts: values at which a fit may begin, of parameters without a unit.
    """

    name: str
    meaning: str
    positive: bool
    unit: str
    starts: tuple[float, ...] = ()

    def dimension(self, values: Mapping[str, float]) -> tuple[float, float]:
        """Exponents of the units of y and of t; those of y may depend on other parameters.

        Raises:
          CatalogueError: if the unit cannot be read.
        """
        match = _UNIT.fullmatch(self.unit)
        if not self.unit or match is None:
            raise CatalogueError(f"cannot read the unit {self.unit!r} of {self.name}")
        value = 0.0
        if match["value"]:
            power = NamedFormula.parse(match["power"] or "1")
            value = float(power.with_values(values).evaluate(0.0))
        time = 1.0 if match["time"] else (-float(match["order"] or 1) if match["rate"] else 0.0)
        return value, time


@dataclasses.dataclass(frozen=True)
class NamedLaw:
    """An entry of the catalogue.

    Attributes:
      name, field, reference: in words.
      formula: in customary parameters.
      also: other writings of the same law.
      order: pairs of parameters, or of y and a parameter, the first smaller than the second.
      frequency: how often one meets the law, relative to the others.
      parameters: of the formula, in the order of its names.
    """

    name: str
    field: str
    reference: str
    formula: NamedFormula
    also: tuple[NamedFormula, ...]
    order: tuple[tuple[str, str], ...]
    frequency: float
    parameters: tuple[Parameter, ...]

    @classmethod
    def from_entry(cls, entry: Mapping[str, Any], source: str = _TABLE) -> NamedLaw:
        """Reads one `[[law]]` of a table, `source` in messages.

        Raises:
          CatalogueError: saying what is wrong with which law.
        """
        name = entry.get("name", "a law without a name")
        try:
            formula = NamedFormula.parse(entry["formula"])
            rows = entry["parameters"]
            if set(rows) != set(formula.names):
                raise CatalogueError(f"its parameters are {set(rows)}, not {set(formula.names)}")
            parameters = []
            for key in formula.names:
                meaning, sign, unit, *starts = rows[key]
                if sign not in ("+", "any"):
                    raise CatalogueError(f"the sign of {key} is {sign!r}")
                parameters.append(Parameter(key, meaning, sign == "+", unit, tuple(starts)))
                parameters[-1].dimension(dict.fromkeys(formula.names, 1.0))
            return cls(
                name=entry["name"],
                field=entry.get("field", OWN),
                reference=entry.get("reference", ""),
                formula=formula,
                also=tuple(map(NamedFormula.parse, entry.get("also", ()))),
                order=tuple((small, large) for small, large in entry.get("order", ())),
                frequency=float(entry.get("frequency", _OWN_FREQUENCY)),
                parameters=tuple(parameters),
            )
        except (KeyError, ValueError, TypeError) as error:
            missing = isinstance(error, KeyError)
            said = f"it has no {error.args[0]}" if missing else one_line(error)
            raise CatalogueError(f"{source}: {name}: {said}") from error

    def to_entry(self) -> dict[str, Any]:
        """What `from_entry` reads."""
        return {
            "name": self.name,
            "field": self.field,
            "reference": self.reference,
            "formula": self.formula.text,
            "also": [writing.text for writing in self.also],
            "order": [list(pair) for pair in self.order],
            "frequency": self.frequency,
            "parameters": {
                p.name: [p.meaning, "+" if p.positive else "any", p.unit, *p.starts]
                for p in self.parameters
            },
        }

    @property
    def order_of_parameters(self) -> tuple[tuple[str, str], ...]:
        """The pairs of `order` in which y is not."""
        return tuple(pair for pair in self.order if VARIABLE not in pair)

    def admits(self, values: Sequence[float], y: float | None = None) -> bool:
        """Whether parameters have the signs and the order that the law asks for.

        Args:
          values: of the parameters.
          y: where the data are, for laws that hold on one side of a parameter only; None
            for anywhere.
        """
        by_name = dict(zip(self.formula.names, values))
        order = self.order_of_parameters
        if y is not None:
            by_name[VARIABLE], order = y, self.order
        return all(
            math.isfinite(v) and (v > 0 or not p.positive) for p, v in zip(self.parameters, values)
        ) and all(by_name[small] < by_name[large] for small, large in order)

    def typical(self, value: float, rate: float, start: int = 0) -> list[float]:
        """Sizes that the parameters may have, from those of y and of dy/dt.

        Args:
          value, rate: such sizes, positive.
          start: which of the starting values of parameters without a unit to take.
        """
        pure = {
            p.name: p.starts[start % len(p.starts)] if p.starts else 1.0 for p in self.parameters
        }
        sizes = []
        for parameter in self.parameters:
            of_value, of_time = parameter.dimension(pure)
            logarithm = (of_value + of_time) * math.log(value) - of_time * math.log(rate)
            size = math.exp(min(max(logarithm, -100.0), 100.0))
            sizes.append(size * pure[parameter.name])
        return sizes

    def draw(self, rng: np.random.Generator) -> list[float]:
        """Random parameters that the law admits."""
        sizes = np.exp(rng.normal(0.0, 1.0, len(self.parameters)))
        signs = [1 if p.positive or rng.random() < 0.5 else -1 for p in self.parameters]
        values = dict(zip(self.formula.names, (sizes * signs).tolist()))
        for small, large in self.order_of_parameters:
            values[small], values[large] = sorted((values[small], values[large]))
        return list(values.values())

    @functools.cached_property
    def forms(self) -> frozenset[Form]:
        """The forms that the law has, one or more for each pattern of signs."""
        rng = np.random.default_rng(0)
        patterns = 2 ** sum(not p.positive for p in self.parameters)
        laws = [self.formula.with_values(self.draw(rng)) for _ in range(_DRAWS * patterns)]
        for writing in self.also:
            draws = np.exp(rng.normal(0.0, 1.0, (_DRAWS, len(writing.names))))
            laws += [writing.with_values(values) for values in draws.tolist()]
        forms = set()
        for law in laws:
            try:
                forms.add(form_of(law))
            except ExpressionError:  # Such constants leave the range of numbers.
                continue
        return frozenset(forms)


@dataclasses.dataclass(frozen=True)
class Catalogue:
    """Named laws, found by their form."""

    laws: tuple[NamedLaw, ...]

    @classmethod
    @functools.cache
    def load(cls, own: tuple[NamedLaw, ...] = ()) -> Catalogue:
        """The table that comes with the package, with more laws; each catalogue is made once.

        Args:
          own: laws that are added; one of a name that there is takes that one's place.
        """
        if own:
            names = {law.name for law in own}
            return cls((*own, *(law for law in cls.load().laws if law.name not in names)))
        file = importlib.resources.files("nsode_jax.selection") / _TABLE
        return cls._of_table(file.read_text(encoding="utf-8"), _TABLE)

    @classmethod
    def read(cls, path: str | Path) -> Catalogue:
        """Laws of one's own, a table like that of the package.

        Of each law `name`, `formula` and `parameters` are needed.

        Raises:
          CatalogueError: if there is no such file, or it cannot be read.
        """
        try:
            return cls._of_table(Path(path).read_text(encoding="utf-8"), str(path))
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is no text in UTF-8"
            raise CatalogueError(f"cannot read named laws from {path}: {reason}") from error

    @classmethod
    def _of_table(cls, text: str, source: str) -> Catalogue:
        try:
            entries = tomllib.loads(text).get("law")
        except tomllib.TOMLDecodeError as error:
            raise CatalogueError(f"{source} is no table in TOML: {error}") from error
        if not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
            raise CatalogueError(f"{source} has no [[law]]")
        return cls(tuple(NamedLaw.from_entry(entry, source) for entry in entries))

    def beyond_package(self) -> tuple[NamedLaw, ...]:
        """The laws that the package's own catalogue does not have."""
        known = set(Catalogue.load().laws)
        return tuple(law for law in self.laws if law not in known)

    @property
    def fields(self) -> tuple[str, ...]:
        """Of science, in the order of the table."""
        return tuple(dict.fromkeys(law.field for law in self.laws))

    def without_fields(self, *fields: str) -> Catalogue:
        """The catalogue as one would have it who had never heard of some fields.

        Raises:
          ValueError: if there is no such field.
        """
        unknown = sorted(set(fields) - set(self.fields))
        if unknown:
            raise ValueError(f"no such field: {', '.join(unknown)}; there are {self.fields}")
        return Catalogue(tuple(law for law in self.laws if law.field not in fields))

    @functools.cached_property
    def by_form(self) -> Mapping[Form, tuple[NamedLaw, ...]]:
        """The laws that can have a form, most frequent first."""
        found: dict[Form, list[NamedLaw]] = {}
        for law in self.laws:
            for form in sorted(law.forms):
                found.setdefault(form, []).append(law)
        return {
            form: tuple(sorted(laws, key=lambda law: -law.frequency))
            for form, laws in found.items()
        }
