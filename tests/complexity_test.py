"""What counts as complex, as it is written and in arbitrary units."""

import numpy as np
import pytest

from nsode_jax.expressions.expression import Expression
from nsode_jax.selection.complexity import (
    fitted_exponents,
    in_arbitrary_units,
    tangents,
    weighted_complexity,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("y", 1),
        ("2*y", 3),
        ("y**2", 2),
        ("y**3", 3),
        ("y**1.38", 5),
        ("exp(y)", 3),
        ("sin(y)", 4),
        ("sin(0.7*y)", 9),
        ("(y + 0.7)**2", 7),
        ("(y + 0.7)**3", 5),
    ],
)
def test_weighted_complexity(text, expected):
    assert weighted_complexity(Expression.from_infix(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.53*y - 0.001*y**2", (8, 2)),  # As they are: constants for all units.
        ("y - y**2", (8, 2)),
        ("16.4 - y", (5, 2)),
        ("y**3", (5, 1)),
        ("sqrt(y)", (4, 1)),
        ("0.3/y", (3, 1)),
        ("y**1.38", (7, 2)),
        ("exp(y)", (7, 2)),
        ("sin(y)", (8, 2)),
        ("(3.1*y**2 + 2.2)/(0.7*y**2 + 1.9)", (13, 3)),  # One of the four is too many.
        ("2*y/(y + 0.3) + 7*y/(y + 0.9)", (15, 4)),
        ("y/(1 + y)", (9, 2)),
        ("-0.3*log(0.2*y)*y", (9, 2)),
        ("log(-3 - y**2)", (8, 2)),  # Defined nowhere.
    ],
)
def test_complexity_and_constants_in_arbitrary_units(text, expected):
    assert in_arbitrary_units(Expression.from_infix(text)) == expected


Y = np.linspace(0.5, 2.0, 7)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.5*y - 3*y**2", [0.5 * Y, -3 * Y**2]),
        ("y - 3*y**2", [-3 * Y**2, Y]),  # The factor of y is not written.
        ("y**1.7", [1.7 * np.log(Y) * Y**1.7, Y**1.7]),
        ("exp(y)", [np.exp(Y), Y * np.exp(Y)]),
        ("sqrt(y)", [np.sqrt(Y)]),
    ],
)
def test_tangents_span_the_laws_nearby(text, expected):
    law = Expression.from_infix(text)
    found = tangents(law, in_arbitrary_units(law)[1], Y)
    assert found.shape == (len(expected), Y.size)
    # The same directions: neither adds to the rank of the other.
    both = np.concatenate([found, np.array(expected)])
    singular = np.linalg.svd(both, compute_uv=False)
    assert (singular > 1e-6 * singular[0]).sum() == len(expected)
    written = len(law.constants) - text.count("**2")
    np.testing.assert_allclose(found[:written], np.array(expected)[:written], rtol=1e-6)


def test_exponents_that_were_fitted():
    law = Expression.from_infix("2.5*y**2 - 3.1*y**1.38 + exp(0.7*y)**3")
    assert fitted_exponents(law) == [1.38]
