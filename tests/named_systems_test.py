"""Which systems have a name, and what they cost."""

import math

import pytest
from solved import laws

from nsode_jax.selection.named_systems import SHARE, named_system, system_cost

PREY = (
    "predator and prey (Lotka 1925, Volterra 1926), or growth cycle of wages and employment "
    "(Goodwin 1967)"
)


@pytest.mark.parametrize(
    ("texts", "name"),
    [
        (("0.5*a - 0.02*a*b", "0.01*a*b - 0.8*b"), PREY),
        (("0.01*a*b - 0.8*a", "0.5*b - 0.02*a*b"), PREY),
        (("b", "-2.1*a - 0.3*b"), "harmonic oscillator with damping"),
        (("b", "-2.1*sin(a) - 0.3*b"), "pendulum with damping"),
        (("0.5*a - 0.02*a*b", "0.01*a*b - 0.8*b + 0.1*a**4"), None),
        (("0.3*b", "-a**3"), None),
        (("0.5*a + 0.02*a*b", "0.01*a*b - 0.8*b"), None),
    ],
)
def test_systems_are_known_whatever_their_states_are_called(texts, name):
    assert named_system(laws("ab", *texts), ("a", "b")) == name


def test_what_an_input_or_the_time_enters_has_no_name():
    names = ("a", "b", "u")
    known = ("0.5*a - 0.02*a*b", "0.01*a*b - 0.8*b")
    assert named_system(laws(names, *known), ("a", "b")) == PREY
    texts = ("0.5*a - 0.02*a*b + u", "0.01*a*b - 0.8*b")
    assert named_system(laws(names, *texts), ("a", "b")) is None


def test_a_named_system_costs_little_whatever_its_terms():
    name = PREY
    assert system_cost(60.0, name, 2) == pytest.approx(system_cost(80.0, name, 2), abs=1e-6)
    assert system_cost(20.0, None, 2) == pytest.approx(20.0 - 2 * math.log(1 - SHARE))
    assert system_cost(20.0, name, 2) < 20.0
    # Simple terms are worth more than a name.
    assert system_cost(4.0, name, 2) < system_cost(4.0, None, 2)
    assert system_cost(4.0, name, 2) > 4.0
