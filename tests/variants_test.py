"""Laws near a law."""

import numpy as np
import pytest
from solved import canonical_law

from nsode_jax.search.variants import (
    factored_law,
    rounded_laws,
    shortened_laws,
    with_coefficients,
    without_negligible,
)


@pytest.mark.parametrize(
    ("text", "factored"),
    [
        ("0.3*log(y)*y + 0.2*y", "(0.3*log(y) + 0.2)*y"),
        ("0.3*y*exp(0.4*y) - 0.7*y", "(0.3*exp(0.4*y) - 0.7)*y"),
        ("0.5*y/(1.2 + y) - 0.3*y", "(0.5/(1.2 + y) - 0.3)*y"),
    ],
)
def test_a_common_factor_is_taken_out(text, factored):
    law, expected = canonical_law(text), canonical_law(factored)
    assert factored_law(law) == expected
    assert expected.evaluate(1.7) == pytest.approx(law.evaluate(1.7), rel=1e-14)
    assert expected.complexity < law.complexity


@pytest.mark.parametrize("text", ["0.3*y", "0.3 - 0.2*y", "0.3*y - 0.2*y**2", "sin(y)*0.4 + y"])
def test_without_a_common_factor_nothing_is(text):
    assert factored_law(canonical_law(text)) is None


def test_shorter_laws_lack_one_part():
    shorter = {law.infix for law in shortened_laws(canonical_law("0.3*sin(y) - 0.2*y"))}
    assert {"0.3*sin(y)", "-0.2*y"} <= shorter
    assert all(law.complexity < 7 for law in shortened_laws(canonical_law("0.3*sin(y) - 0.2*y")))


def test_nearly_whole_exponents_become_whole():
    assert canonical_law("0.3*y**2 - 0.4*y") in set(
        rounded_laws(canonical_law("0.3*y**2.07 - 0.4*y"))
    )
    assert canonical_law("0.3*y**2 - y") in set(rounded_laws(canonical_law("0.3*y**2 - 1.0002*y")))
    assert list(rounded_laws(canonical_law("0.3*y**2 - 0.41*y"))) == []


def test_every_term_gets_a_coefficient():
    assert (
        with_coefficients(canonical_law("y - sin(y)")).skeleton
        == canonical_law("2*y - 3*sin(y)").skeleton
    )


@pytest.mark.parametrize(
    ("text", "shorter"),
    [
        ("exp(4.68*exp(0.5*y)) + 2.8e-08", "exp(4.68*exp(0.5*y))"),
        ("0.7*y - 0.3*y**2 - 3.25e-19*y**8", "0.7*y - 0.3*y**2"),
        ("0.7*sin(2.1*y + 1e-12*y**2)", "0.7*sin(2.1*y)"),
        ("0.7*y + 1e-11 - 1e-12/y", "0.7*y"),
        ("0.7*y - 1e-06*y**2", "0.7*y - 1e-06*y**2"),
    ],
)
def test_terms_that_nobody_could_see_are_left_out(text, shorter):
    nodes = np.linspace(0.4, 2.3, 40)
    assert without_negligible(canonical_law(text), nodes, 1e-8) == canonical_law(shorter)


def test_a_term_that_matters_where_values_are_small_stays():
    law = canonical_law("1.57 + 24.3*y")
    assert without_negligible(law, np.geomspace(1e-2, 1e30, 60), 1e-8) == law


def test_a_term_may_go_where_f_has_a_zero():
    law = canonical_law("0.7*y - 0.7*y**2 - 1e-12")
    assert without_negligible(law, np.linspace(0.5, 1.0, 51), 1e-8) == canonical_law(
        "0.7*y - 0.7*y**2"
    )


def test_what_was_dropped_adds_up():
    law = canonical_law("y" + "".join(f" + 6e-09*y**{n}" for n in range(2, 8)))
    nodes = np.linspace(0.4, 1.0, 40)
    kept = without_negligible(law, nodes, 1e-8)
    assert kept.complexity < law.complexity
    change = np.abs(kept.evaluate(nodes) - law.evaluate(nodes)).max()
    assert 0 < change <= 1e-8 * np.abs(law.evaluate(nodes)).max()
