"""Fitted laws get their name, their customary parameters and errors; others get none."""

import math

import numpy as np
import pytest

from nsode_jax.expressions.canonical import canonicalize
from nsode_jax.expressions.expression import Expression
from nsode_jax.selection.catalogue import Catalogue
from nsode_jax.selection.naming import NamedParameter, name_of, unit_text


def _name(text: str, low: float, high: float, **keywords):
    return name_of(Expression.from_infix(text), low, high, **keywords)


@pytest.mark.parametrize(
    ("text", "low", "high", "start", "values"),
    [
        ("0.547*y - 0.000825*y**2", 9, 660, "logistic growth", {"r": 0.547, "K": 663.03}),
        ("0.5*(8 - y)*y", 1, 7, "logistic growth", {"r": 4.0, "K": 8.0}),
        ("0.3*y*(1 - y/20)*(y/4 - 1)", 2, 18, "growth with a strong Allee", {"A": 4, "K": 20}),
        ("y*(0.3 - 0.1*log(y))", 2, 18, "Gompertz", {"r": 0.1, "K": math.exp(3)}),
        ("2*y**0.6666666667 - 0.5*y", 2, 18, "von Bertalanffy growth in mass", {"a": 2.0}),
        ("3/(2 + y) - 1.5", 0.1, 9, "Michaelis-Menten", {"V": 1.5, "K": 2.0}),
        ("-y/(0.2 + 0.5*y)", 0.1, 9, "Michaelis-Menten", {"V": 2.0, "K": 0.4}),
        ("-0.1*(y - 20)**1.25", 22, 90, "cooling by natural convection", {"A": 20.0}),
        ("1e-9*(300**4 - y**4)", 310, 900, "cooling by radiation", {"s": 1e-9, "A": 300.0}),
        ("-3*(exp(2*y) - 1)", 0.1, 1, "discharge of a capacitor through a diode", {"V": 0.5}),
        ("9.81 - 0.3*y**2", 0, 5, "fall with quadratic drag", {"v": math.sqrt(9.81 / 0.3)}),
        ("-7", 1, 5, "zero-order", {"k": 7.0}),
        ("0.526*y - 0.01048*y**2", 50.2, 1e6, "logistic growth", {"r": 0.526, "K": 50.19}),
        ("-0.01048*y**2", 50.2, 1e6, "second-order reaction", {"k": 0.01048}),
        ("1 - 0.4*sin(y)", 0.1, 3, "overdamped pendulum with", {"a": 1.0, "b": 0.4}),
    ],
)
def test_names_and_parameters(text, low, high, start, values):
    name = _name(text, low, high)
    assert name.law.name.startswith(start)
    found = {parameter.name: parameter.value for parameter in name.parameters}
    assert {key: found[key] for key in values} == pytest.approx(values, rel=1e-4)
    assert all(math.isnan(parameter.standard_error) for parameter in name.parameters)


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("0.47*1.78**y - 0.59", 0.1, 3),
        ("0.5*y + 0.02*y**2", 1, 9),  # No logistic: its capacity would be negative.
        ("1 - 0.4*sin(0.3*y)", 0.1, 3),  # No angle.
        ("log(3*y)**8", 1, 9),
        ("sqrt(2 - y)", 1, 3),  # Not defined.
        ("0", 1, 3),
    ],
)
def test_other_laws_have_no_name(text, low, high):
    assert _name(text, low, high) is None


def test_a_law_of_one_side_of_a_parameter_has_its_name_only_there():
    text = "1.3*(26.5 - y)/(114 - y)"  # A product never is more than the substrate was.
    assert _name(text, 1, 20).law.name == "enzyme kinetics (Michaelis-Menten), product"
    assert _name(text, 20, 27).law.name == "enzyme kinetics (Michaelis-Menten), product"  # Noise.
    assert _name(text, 40, 90) is None


def test_decay_is_not_growth():
    assert "growth" not in str(_name("-0.5*y", 1, 9))
    assert _name("-0.5*y + 0.02*y**2", 1, 9).law.name.startswith("quadratic growth with loss")


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("-3*y/(2000000 + y)", "first-order reaction"),
        ("0.5*y - 0.02*y**2.0000001", "logistic growth"),
        ("0.5*y - 0.02*y**2 + 0.0000001*y**3", "logistic growth"),
        ("3 - 0.000000001*exp(y)", "uniform acceleration"),
    ],
)
def test_a_limit_is_named_as_what_it_is(text, start):
    name = _name(text, 1.0, 9.0)
    assert name.law.name.startswith(start)
    assert name.reduced is not None


def test_a_fitted_exponent_is_named_as_the_simpler_law_only_where_it_is_one():
    assert len(_name("0.5*y - 0.02*y**2", 1, 24).parameters) == 2
    richards = _name("0.5*y - 0.02*y**2.3", 1, 11)
    assert richards.law.name.startswith("theta-logistic")
    assert len(richards.parameters) == 3


@pytest.mark.parametrize("scale", [1e-12, 1e12])
@pytest.mark.parametrize("rate", [1e-9, 1e6])
def test_scales_do_not_matter(scale, rate):
    for law, values in (
        ("logistic growth (Verhulst)", [rate, scale]),
        ("Gompertz growth", [rate, scale]),
    ):
        entry = next(e for e in Catalogue.load().laws if e.name == law)
        expression = entry.formula.with_values(values)
        name = name_of(expression, 0.05 * scale, 0.8 * scale)
        assert name.law is entry
        found = [parameter.value for parameter in name.parameters]
        assert found == pytest.approx(values, rel=1e-4)


def test_one_value_of_y_has_no_name():
    assert _name("0.5*y - 0.02*y**2", 3, 3) is None


def test_errors_by_the_delta_method():
    law = Expression.from_infix("0.547*y - 0.000825*y**2")
    r, b = 0.547, 0.000825
    rate, loss = law.constants.index(r), law.constants.index(-b)
    covariance = np.zeros((3, 3))  # The exponent was not fitted.
    covariance[rate, rate], covariance[loss, loss] = 9e-6, 4e-12
    covariance[rate, loss] = covariance[loss, rate] = 2e-9
    name = _name("0.547*y - 0.000825*y**2", 9, 660, covariance=covariance, time_unit="h")
    errors = {parameter.name: parameter.standard_error for parameter in name.parameters}
    by_rate, by_loss = 1 / b, r / b**2  # Of K = r / b by the constants r and -b.
    variance = by_rate**2 * 9e-6 + by_loss**2 * 4e-12 + 2 * by_rate * by_loss * 2e-9
    assert errors["K"] == pytest.approx(math.sqrt(variance), rel=1e-5)
    assert errors["r"] == pytest.approx(3e-3, rel=1e-5)


def test_what_no_constant_moves_has_no_error():
    law = Expression.from_infix("y**2/(y**2 + 300) - 0.305*y + 0.976")
    errors = [17.0 if c == 300 else 1e-4 if c == -0.305 else 0.01 if c == 0.976 else 0.0
              for c in law.constants]  # fmt: skip
    covariance = np.diag(np.square(errors))
    name = _name(law.infix, 3, 100, covariance=covariance)
    assert {p.name: p.standard_error > 0 for p in name.parameters} == {
        "a": True, "b": False, "K": True, "d": True
    }  # fmt: skip
    assert "b = 1," in str(name)


def test_the_sentence():
    covariance = np.diag([3.6e-5, 0.0, 0.0])
    name = _name("0.547*y - 0.000825*y**2", 9, 660, covariance=covariance, time_unit="h")
    assert str(name) == "logistic growth (Verhulst): r = 0.5470 ± 0.0060 /h, K = 663.0 ± 7.3"
    assert "autocatalysis" in name.others


def test_unknown_covariance_gives_unknown_errors():
    covariance = np.full((3, 3), np.nan)
    name = _name("0.547*y - 0.000825*y**2", 9, 660, covariance=covariance)
    assert all(math.isnan(parameter.standard_error) for parameter in name.parameters)
    assert "±" not in str(name)


@pytest.mark.parametrize(
    ("powers", "units", "text"),
    [
        ((0, -1), ("g/L", "h"), "/h"),
        ((1, 0), ("g/L", "h"), "g/L"),
        ((1, -1), ("g/L", "h"), "(g/L)/h"),
        ((-1, -1), ("mM", "s"), "/mM/s"),
        ((0.5, -1), ("m", "s"), "m^0.5/s"),
        ((-3, -1), ("K", "min"), "/K^3/min"),
        ((0, 1), ("V", "s"), "s"),
        ((1, -1), ("", "h"), "/h"),
        ((1, -1), ("", ""), ""),
        ((0, 0), ("g", "h"), ""),
        ((3, -2), ("m", "s"), "m^3/s^2"),
    ],
)
def test_units(powers, units, text):
    assert unit_text(*powers, *units) == text


def test_every_law_is_named_with_its_parameters():
    rng = np.random.default_rng(5)
    missed = []
    y, fine = np.linspace(0.05, 0.95, 40), np.linspace(0.05, 0.95, 4000)
    for law in Catalogue.load().laws:
        for _ in range(50):  # No data reach across a pole, or where the law does not hold.
            values = law.draw(rng)
            rates = np.abs(law.formula.evaluate(values, fine))
            steady = np.isfinite(rates).all() and rates.max() < 20 * np.median(rates)
            if steady and law.admits(values, 0.5):
                break
        expression = law.formula.with_values(values)
        name = name_of(expression, y[0], y[-1])
        if name is None:
            missed.append(law.name)
            continue
        if name.law is law:
            found = [parameter.value for parameter in name.parameters]
            difference = np.abs(law.formula.evaluate(found, y) - expression.evaluate(y)).max()
            assert difference <= 2e-4 * np.abs(expression.evaluate(y)).max()
        else:
            assert len(name.parameters) <= len(law.parameters)
    assert not missed


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (0.5471, 0.0056, "r = 0.5471 ± 0.0056"),
        (663.0, 1.7, "r = 663.0 ± 1.7"),
        (1.0, 1.3e-12, "r = 1.0000000000000 ± 0.0000000000013"),
        (1234.5678, 2e-5, "r = 1234.567800 ± 0.000020"),
        (2.5e-7, 3e-9, "r = (2.500 ± 0.030)e-07"),
        (0.1, 0.0, "r = 0.1"),
        (0.12345, np.nan, "r = 0.1235"),
    ],
)
def test_parameters_have_the_digits_that_their_errors_leave(value, error, text):
    assert str(NamedParameter("r", "rate", value, error, "")) == text


@pytest.mark.parametrize(
    "formula, low, high",
    [
        ("7.089480059823049*y - 7.063007926141776*y**0.9954533379532023", 1.73, 2.9076),
        ("2.0957020776530797*y - 2.0643*y**0.9903239692847198", 0.0622, 0.0945),
        ("y - 0.0113926*y**2 - 28.818*y/(y + 110.015)", 0.5, 3.0),
        ("0.7*y - 0.0113926*y**2 - 0.09*y/(y + 1)", 0.05, 0.2),
    ],
)
def test_parameters_are_those_of_the_constants_that_are_shown(formula, low, high):
    """Where powers are nearly 1 quite other parameters have the same f to a millionth."""
    law = canonicalize(Expression.from_infix(formula))
    name = name_of(law, low, high)
    values = [parameter.value for parameter in name.parameters]
    written = canonicalize(name.law.formula.with_values(values))
    elsewhere = np.linspace(3 * high, 30 * high, 5)
    assert written.evaluate(elsewhere) == pytest.approx(law.evaluate(elsewhere), rel=1e-5)
