"""Names for laws: is a fitted law one that science has a name for, and what are its parameters?

A law is compared with the entries of the catalogue that have its form. Their customary
parameters are those whose f is the fitted one; that they exist, with the signs that the
entry asks for, is what makes the law that entry. What hardly contributes over the data is
left out first, and exponents that are whole numbers but for rounding made whole: so a law
that is a limit of another one gets its own name.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import scipy.optimize
from jaxtyping import Float

from nsode_jax.expressions.canonical import canonicalize
from nsode_jax.expressions.display import value_with_error
from nsode_jax.expressions.expression import Expression, ExpressionError
from nsode_jax.expressions.operators import VARIABLE
from nsode_jax.expressions.prefix import substituted, times
from nsode_jax.selection.catalogue import Catalogue, NamedLaw
from nsode_jax.selection.form import form_of
from nsode_jax.selection.sameness import PLACES, SAME, places_between, reductions, sizes_of

_EXACT, _TRIED = 1e-9, 4
"""Equal but for rounding; of solutions that are not so many are looked at."""

_FACTOR = 1.2345

_STARTS = 32
_SAME_MINIMUM = 6
_SPREAD = 1.0
_MOST_STEPS = 50
_NEAR, _LONGER = 3 * SAME, 10
_PRECISELY = {"method": "lm", "xtol": 1e-9, "ftol": 1e-9}
_ROUNDING = 1e-8  # Of difference quotients.


@dataclasses.dataclass(frozen=True)
class NamedParameter:
    """A parameter of a named law, as it follows from a fit.

    Attributes:
      name, meaning: as in the catalogue.
      value: in the units of the data.
      standard_error: by the delta method; NaN if that of the fit is unknown.
      unit: such as "/h", from the columns' units; empty if there is none.
    """

    name: str
    meaning: str
    value: float
    standard_error: float
    unit: str

    def __str__(self) -> str:
        known = math.isfinite(self.standard_error)
        shown = value_with_error(self.value, self.standard_error) if known else f"{self.value:.4g}"
        return f"{self.name} = {shown} {self.unit}".rstrip()


@dataclasses.dataclass(frozen=True)
class Name:
    """What a law is called.

    Attributes:
      law: the entry of the catalogue.
      parameters: in the order of its formula.
      others: names of other entries with as many parameters that the law equals as well.
      reduced: the law without what hardly contributes, if something was left out.
    """

    law: NamedLaw
    parameters: tuple[NamedParameter, ...]
    others: tuple[str, ...]
    reduced: Expression | None

    def __str__(self) -> str:
        return f"{self.law.name}: {', '.join(map(str, self.parameters))}"


def name_of(
    expression: Expression,
    low: float,
    high: float,
    covariance: Float[np.ndarray, "constants constants"] | None = None,
    *,
    value_unit: str = "",
    time_unit: str = "",
    catalogue: Catalogue | None = None,
) -> Name | None:
    """The name of a fitted law, or None if it has none.

    Args:
      expression: f, with fitted constants.
      low, high: range of y over which f counts: that of the data.
      covariance: of `expression.constants`.
      value_unit, time_unit: of the columns, such as "g/L" and "h".
      catalogue: where to look; by default the one that comes with the package.

    Returns:
      The entry with the fewest parameters among those that f equals over the range, the
      most frequent of them; None also where f is undefined somewhere, or 0 everywhere.
    """
    if not low < high:
        return None  # Values of f at one y are no law.
    catalogue = catalogue or Catalogue.load()
    places = places_between(low, high)
    rates = expression.evaluate(places)
    if not np.isfinite(rates).all() or not np.abs(rates).max() > 0:
        return None
    for reduced in reductions(expression, places, rates):
        matches = _matches(reduced, places, catalogue)
        if not matches:
            continue
        law, values = matches[0]
        errors = _standard_errors(law, values, expression, covariance, places)
        by_name = dict(zip(law.formula.names, values))
        parameters = tuple(
            NamedParameter(
                p.name, p.meaning, v, e, unit_text(*p.dimension(by_name), value_unit, time_unit)
            )
            for p, v, e in zip(law.parameters, values, errors)
        )
        others = tuple(other.name for other, _ in matches[1:])
        return Name(law, parameters, others, None if reduced is expression else reduced)
    return None


# --- customary parameters ---------------------------------------------------------


def _matches(
    expression: Expression, places: Float[np.ndarray, " places"], catalogue: Catalogue
) -> list[tuple[NamedLaw, list[float]]]:
    """Entries that the law equals, with their parameters, the best name first."""
    try:
        candidates = catalogue.by_form.get(form_of(expression), ())
    except ExpressionError:
        return []
    found: list[tuple[NamedLaw, list[float]]] = []
    for law in sorted(candidates, key=lambda law: (len(law.parameters), -law.frequency)):
        if found and len(law.parameters) > len(found[0][1]):
            break  # It has a parameter to spare, and is no other name but a wider law.
        values = _parameters(law, expression, places)
        if values is not None:
            found.append((law, values))
    return found


def _parameters(
    law: NamedLaw, expression: Expression, places: Float[np.ndarray, " places"]
) -> list[float] | None:
    """Those with which an entry equals a law: exactly, if it can be written as that is."""
    scale = float(np.abs(places).max()), float(np.abs(expression.evaluate(places)).max())
    middle = float(places.mean())
    exact = _with_constants_of(expression, law, law.typical(*scale), middle)
    if exact is not None:
        return exact
    nearest = None
    for difference, values in itertools.islice(
        _solutions(law, expression.evaluate, places), _TRIED
    ):
        if difference <= _EXACT:
            return values
        # In a narrow valley quite other parameters have nearly the same f over the data.
        exact = _with_constants_of(expression, law, values, middle)
        if exact is not None:
            return exact
        nearest = min(nearest or (difference, values), (difference, values))
    return nearest and nearest[1]


def _with_constants_of(
    expression: Expression, law: NamedLaw, values: list[float], middle: float
) -> list[float] | None:
    """Parameters with which an entry is written with the very constants of a law."""
    shown, sizes = _in_other_units(expression), np.array(values)
    if not sizes.all():
        return None

    def misfit(factors: Float[np.ndarray, " parameters"]) -> Float[np.ndarray, " constants"]:
        written = _in_other_units(law.formula.with_values((sizes * factors).tolist()))
        if written.skeleton != shown.skeleton:
            raise ExpressionError("it is written in another way")
        return np.array(written.constants) / np.array(shown.constants) - 1.0

    try:
        fit = scipy.optimize.least_squares(misfit, np.ones(sizes.size), max_nfev=_MOST_STEPS)
    except ValueError:
        return None
    exact = (sizes * fit.x).tolist()
    return exact if law.admits(exact, middle) and np.abs(fit.fun).max() < _EXACT else None


def _in_other_units(law: Expression) -> Expression:
    """In canonical form, in units in which no constant is just 1 and thus not written."""
    inside = substituted(law.prefix, {VARIABLE: times(_FACTOR, (VARIABLE,))})
    return canonicalize(Expression(times(_FACTOR, inside)))


def solve_parameters(
    law: NamedLaw,
    rate: Callable[[Float[np.ndarray, " places"]], Float[np.ndarray, " places"]],
    places: Float[np.ndarray, " places"],
) -> list[float] | None:
    """Parameters with which a named law equals a function.

    Args:
      law: an entry of the catalogue.
      rate: f.
      places: values of y at which they are compared.

    Returns:
      Parameters that the entry admits; None if there are none.
    """
    return next((values for _, values in _solutions(law, rate, places)), None)


def _solutions(
    law: NamedLaw,
    rate: Callable[[Float[np.ndarray, " places"]], Float[np.ndarray, " places"]],
    places: Float[np.ndarray, " places"],
) -> Iterator[tuple[float, list[float]]]:
    """From one start after another: the difference, as a share of f's size, and parameters."""
    rates = rate(places)
    size = sizes_of(rates, places)
    scale = float(np.abs(places).max()), float(size.max())
    rng = np.random.default_rng(0)

    def misfit(free: Float[np.ndarray, " parameters"]) -> Float[np.ndarray, " places"]:
        difference = (law.formula.evaluate(units * free, places) - rates) / size
        return np.where(np.isfinite(difference), np.clip(difference, -1e6, 1e6), 1e6)

    missed: list[float] = []
    for start in range(_STARTS):
        units = np.array(law.typical(*scale, start))
        free = np.exp(rng.normal(0.0, _SPREAD if start else 0.0, units.size))
        # Not in their logarithms, where all values near 0 look like a minimum.
        steps = _MOST_STEPS * (units.size + 1)
        fit = scipy.optimize.least_squares(misfit, free, **_PRECISELY, max_nfev=steps)
        if fit.status == 0 and fit.cost <= _NEAR**2 * places.size:
            # Stopped in a narrow valley that may lead to it.
            fit = scipy.optimize.least_squares(
                misfit, fit.x, **_PRECISELY, max_nfev=_LONGER * steps
            )
        values = _in_order(law, _with_signs(law, (units * fit.x).tolist()))
        difference = float((np.abs(law.formula.evaluate(values, places) - rates) / size).max())
        if difference <= SAME and law.admits(values, float(places.mean())):
            yield difference, values
        elif math.isfinite(difference):
            missed.append(fit.cost)
            again = sum(math.isclose(fit.cost, other, rel_tol=1e-3) for other in missed)
            if again == _SAME_MINIMUM:
                return  # It is reached again and again: the best that there is.


def _with_signs(law: NamedLaw, values: list[float]) -> list[float]:
    """The values, positive where they must be: of squares the fit finds either root.

    Where the sign does matter, f differs and the values are refused.
    """
    return [abs(v) if p.positive else v for p, v in zip(law.parameters, values)]


def _in_order(law: NamedLaw, values: list[float]) -> list[float]:
    """The values, those that must be in order exchanged if they are not.

    Only roots of f are in an order, which may be exchanged; where they may not, the
    values are left to be refused.
    """
    by_name = dict(zip(law.formula.names, values))
    for small, large in law.order_of_parameters:
        if by_name[small] > by_name[large]:
            by_name[small], by_name[large] = by_name[large], by_name[small]
    return list(by_name.values())


def _standard_errors(
    law: NamedLaw,
    values: Sequence[float],
    expression: Expression,
    covariance: Float[np.ndarray, "constants constants"] | None,
    places: Float[np.ndarray, " places"],
) -> list[float]:
    """By the delta method: both laws' f changes in the same way with their constants."""
    if covariance is None:
        return [math.nan] * len(values)
    by_parameter = _sensitivities(lambda v: law.formula.evaluate(v, places), values)
    skeleton = expression.skeleton
    by_constant = _sensitivities(
        lambda v: skeleton.with_constants(v).evaluate(places), expression.constants
    )
    if not (np.isfinite(by_parameter).all() and np.isfinite(by_constant).all()):
        return [math.nan] * len(values)
    sizes = np.linalg.norm(by_parameter, axis=0)
    sizes = np.where(sizes > 0, sizes, 1.0)
    change = np.linalg.lstsq(by_parameter / sizes, by_constant, rcond=None)[0]
    # A parameter that no constant moves, such as a factor of 1, has no error but rounding.
    change[np.abs(change) < _ROUNDING * np.linalg.norm(by_constant, axis=0)] = 0.0
    change /= sizes[:, None]
    variances = np.einsum("ij,jk,ik->i", change, np.asarray(covariance), change)
    return np.sqrt(np.where(variances >= 0, variances, np.nan)).tolist()


def _sensitivities(
    function: Callable[[Sequence[float]], Float[np.ndarray, " places"]], values: Sequence[float]
) -> Float[np.ndarray, "places values"]:
    """Derivatives of f by its constants."""
    columns = []
    for i, value in enumerate(values):
        step = 1e-6 * (abs(value) or 1.0)
        above, below = list(values), list(values)
        above[i], below[i] = value + step, value - step
        columns.append((function(above) - function(below)) / (above[i] - below[i]))
    return np.stack(columns, axis=1) if columns else np.zeros((PLACES, 0))


# --- units as text -----------------------------------------------------


def unit_text(of_value: float, of_time: float, value_unit: str, time_unit: str) -> str:
    """A unit from those of the columns: (0, -1) with "h" is "/h", (1, -1) with "g" "g/h".

    Args:
      of_value, of_time: exponents of the units of y and t.
      value_unit, time_unit: such as "g/L" and "h"; empty if unknown, or none.
    """
    above, below = "", ""
    for power, unit in ((of_value, value_unit), (of_time, time_unit)):
        if not unit or abs(power) < 1e-12:
            continue
        compound = any(sign in unit for sign in "/* ·")
        alone = power == 1 and not above and (of_time == 0 or unit is time_unit)
        shown = f"({unit})" if compound and not alone else unit
        shown += f"^{abs(power):.3g}" if abs(power) != 1 else ""
        if power > 0:
            above += ("*" if above else "") + shown
        else:
            below += f"/{shown}"
    return above + below
