"""Laws have one form whatever the units, the constants and the way they are written."""

import numpy as np
import pytest

from nsode_jax.expressions.expression import Expression, NotRepresentable
from nsode_jax.selection.form import form_of


def _form(text: str) -> str:
    return " ".join(form_of(Expression.from_infix(text)))


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("y - y**2", "add mul -c pow y 2 mul c y"),
        ("0.3*y*(1 - y/7)", "add mul -c pow y 2 mul c y"),
        ("3 - y", "add mul -c y c"),
        ("-2*y**1.3", "mul -c pow y c"),
        ("1/y", "div c y"),
        ("sqrt(y)", "mul c sqrt y"),
        ("exp(y)", "mul c exp mul c y"),
        ("1.78**y", "mul c exp mul c y"),
        ("1 - sin(y)", "add mul -c sin y c"),
        ("1 - sin(0.3*y)", "add mul -c sin mul c y c"),
        ("3", "c"),
    ],
)
def test_forms(text, form):
    assert _form(text) == form


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("3*y/(2 + y)", "y/(0.1 + 4*y)"),
        ("2*y**2 - y**3 - y", "-y**3 - 4*y + 5*y**2"),
        ("y**4 - y**2", "-7*y**2 + y**4"),
        ("y*(2 - y)*(5 - y)", "y*(0.3 - y)*(11 - y)"),
        ("exp(y + 2)", "0.1*exp(3*y)"),
        ("2*y*log(3/y)", "-0.5*y*log(y/7)"),
        ("log(2/(1 + y))**2", "3*log(0.4 + y)**2"),
    ],
)
def test_one_law_has_one_form(one, other):
    assert _form(one) == _form(other)


@pytest.mark.parametrize(
    ("one", "other"), [("y**2", "y**3"), ("y**2", "y**2.1"), ("y", "-y"), ("y - y**2", "y**2 - y")]
)
def test_exponents_and_signs_are_told_apart(one, other):
    assert _form(one) != _form(other)


def test_units_do_not_change_a_form():
    rng = np.random.default_rng(0)
    for text in ("y*log(3/y)", "2*y/(1 + y**2) - y", "4 - y**0.6", "exp(-2/y) - y", "y**3 - y"):
        for m, k in np.exp(rng.normal(0, 2, (5, 2))).tolist():
            assert _form(f"{m!r}*({text.replace('y', f'({k!r}*y)')})") == _form(text)


def test_exponents_of_a_skeleton_count_as_fitted():
    assert " ".join(form_of(Expression.from_infix("2*y**2").skeleton)) == "mul c pow y c"


def test_what_has_no_canonical_form_has_no_form():
    with pytest.raises(NotRepresentable):
        form_of(Expression.from_infix("y + log(-1)"))
