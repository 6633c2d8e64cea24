"""What is known of a law: a frame around the part that is looked for.

f(y) = known(y) + factor(y) * unknown(y), written as a template with a gap, such as
-0.1*y + □ or 0.5*y*(1 - □). As constants are fitted by least squares that are linear in the
values of f, what is known moves to the other side, and the search is for the unknown part
alone.
"""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np
from jaxtyping import Bool, Float

from nsode_jax.expressions.expression import Expression, ExpressionError
from nsode_jax.expressions.notation import parse, unknown_names
from nsode_jax.expressions.operators import CONSTANT, NEGATIVE_CONSTANT, VARIABLE
from nsode_jax.observed.regression import Regression

GAP = "□"
"""Where the unknown part stands; `?` is read as the same."""

_GAPS = (GAP, "?")
_GAP_NAME = "gap"
_NEAR_ZERO = 1e-12
"""Of the size of the data."""

_MAGNITUDES = np.geomspace(1e-18, 1e18, 36 * 8 + 1)
_PROBES = np.concatenate([_MAGNITUDES, -_MAGNITUDES])
"""Values that hardly any data are far from."""

_LINEAR = 1e-9


class FrameError(ValueError):
    """What is known cannot be used; the message is one line."""


@dataclasses.dataclass(frozen=True)
class Frame:
    """A law with a gap, in which it is linear.

    Attributes:
      template: prefix notation over y and the gap.
      factors: names of unknown factors of the whole law, for which 1 stands in the template:
        they cannot be told from the unknown part.
    """

    template: Expression
    factors: tuple[str, ...] = ()

    @classmethod
    def of(cls, text: str, values: Float[np.ndarray, " values"] | None = None) -> Frame:
        """Reads a law with a gap such as "0.5*y*(1 - □)", or a part that the rest is added to.

        Args:
          text: the law.
          values: of y in the data, for which it has to hold, if they are known by now.

        Raises:
          FrameError: if it cannot be read, or is not linear in the gap.
        """
        names = unknown_names(text, (VARIABLE, _GAP_NAME))
        try:
            parsed = parse(text, (VARIABLE, *_GAPS, *names))
        except ExpressionError as error:
            raise FrameError(str(error)) from None
        prefix = tuple(_GAP_NAME if token in _GAPS else token for token in parsed)
        if _GAP_NAME not in prefix:
            prefix = ("add", *prefix, _GAP_NAME)
        written = Expression(prefix, (VARIABLE, _GAP_NAME, *names))
        probes = _PROBES if values is None else np.concatenate([_PROBES, values])
        for name in names:
            if not _is_factor(written, name, probes):
                raise FrameError(
                    f"give a number for {name} in {text!r}: only a factor of the whole law may "
                    "have a name"
                )
        prefix = tuple(1.0 if token in names else token for token in written.prefix)
        frame = cls(Expression(prefix, (VARIABLE, _GAP_NAME)), names)
        frame._check(text, probes)
        return frame

    def note(self, whole: Expression, size: float) -> str:
        """What to say of factors with a name, of the law that was found; empty without any.

        Args:
          whole: the law.
          size: the largest magnitude of y.
        """
        if not self.factors:
            return ""
        names = " and ".join(self.factors)
        told = f"{names} cannot be told from the unknown part; 1 stands for it."
        y = np.array(_NEAR_ZERO * size)
        with np.errstate(all="ignore"):
            near = float(whole.evaluate(y) / self._with(0.0, y))
        if len(self.factors) > 1 or not math.isfinite(near) or not near:
            return told
        return f"{told} If that part is to be 0 at y = 0, {names} = {near:.5g}."

    def _check(self, text: str, probes: Float[np.ndarray, " probes"]) -> None:
        """Refuses what is not linear in the gap where it is defined; `applied` tells where not."""
        rates = np.array([self._with(value, probes) for value in (0.0, 1.0, 2.0)])
        rates = rates[:, np.isfinite(rates).all(axis=0)]
        if not rates.size:
            return
        with np.errstate(over="ignore"):
            bent = np.abs(rates[2] - 2 * rates[1] + rates[0])
        if (bent > _LINEAR * np.abs(rates).max(axis=0)).any():
            raise FrameError(f"{text!r} must be linear in the unknown part, such as y*(1 - {GAP})")
        if (rates[1] == rates[0]).all():
            raise FrameError(f"in {text!r} the unknown part does not count")

    def _with(self, gap: float, y: Float[np.ndarray, "*values"]) -> Float[np.ndarray, "*values"]:
        with np.errstate(all="ignore"):
            return np.asarray(self.template.evaluate(y, np.full(np.shape(y), gap)))

    def law(self, unknown: Expression) -> Expression:
        """The whole law; not in canonical form, so that what is known can be seen in it."""
        prefix: list[str | float] = []
        for token in self.template.prefix:
            prefix += unknown.prefix if token == _GAP_NAME else (token,)
        return Expression(tuple(prefix))

    def unknown_constants(self, unknown: Expression) -> Bool[np.ndarray, " constants"]:
        """Which constants of the whole law are those of the unknown part."""
        looked_for: list[bool] = []
        for token in self.template.prefix:
            looked_for += [True] * len(unknown.prefix) if token == _GAP_NAME else [False]
        kinds = self.law(unknown).skeleton.tokens
        places = [kind in (CONSTANT, NEGATIVE_CONSTANT) for kind in kinds]
        return np.array(looked_for, bool)[places]

    def applied(self, form: Regression) -> Regression:
        """A form of the data for the unknown part in place of the law.

        Raises:
          FrameError: if the known part is undefined where there are data, or the unknown part
            does not count there.
        """
        known = self._with(0.0, form.nodes)
        factor = self._with(1.0, form.nodes) - known
        if not (np.isfinite(known).all() and np.isfinite(factor).all()):
            place = form.nodes[~(np.isfinite(known) & np.isfinite(factor))][0]
            raise FrameError(
                f"the known part is undefined at y = {place:.6g}, where there are data"
            )
        if not factor.any():
            raise FrameError("the unknown part does not count where there are data")
        return dataclasses.replace(
            form, operator=form.operator * factor, target=form.target - form.operator @ known
        )

    def in_units(self, value: float, time: float) -> Frame:
        """The frame for values divided by one unit and times by another.

        The unknown part changes as a law does: divided by value / time.
        """
        if value == time == 1.0:
            return self
        gap: tuple[str | float, ...] = ("mul", value / time, _GAP_NAME)
        prefix: list[str | float] = ["mul", time / value]
        for token in self.template.prefix:
            if token == VARIABLE:
                prefix += ["mul", value, VARIABLE]
            elif token == _GAP_NAME:
                prefix += gap
            else:
                prefix.append(token)
        return Frame(Expression(tuple(prefix), self.template.variables))

    @functools.cached_property
    def text(self) -> str:
        """With the gap as a square."""
        return self.template.infix.replace(_GAP_NAME, GAP)


def _is_factor(written: Expression, name: str, probes: Float[np.ndarray, " probes"]) -> bool:
    """Whether a law is proportional to a name in it."""
    others = {n: 1.3 for n in written.variables if n not in (VARIABLE, name)}
    rates = []
    for value in (1.0, 2.0):
        at = {VARIABLE: probes, name: value, **others}
        columns = np.broadcast_arrays(*(at[variable] for variable in written.variables))
        with np.errstate(all="ignore"):
            rates.append(written.evaluate(*columns))
    return bool(np.allclose(rates[1], 2 * rates[0], rtol=1e-9, atol=0.0, equal_nan=True))
