"""Several equations as one sequence."""

import pytest

from nsode_jax.expressions.coupled import (
    SystemConfig,
    divided,
    joined,
    skeleton_of,
)
from nsode_jax.expressions.expression import Expression, ExpressionError

KEY = "add mul c y1 mul -c mul y1 y2 | mul -c t"


def test_the_default_is_the_scalar_equation():
    assert SystemConfig().states == SystemConfig().variables() == ("y",)
    assert SystemConfig(explicit_time=True).variables() == ("y", "t")


def test_variables_are_those_of_the_quantities_that_a_system_has():
    system = SystemConfig(3, explicit_time=True)
    assert system.states == ("y1", "y2", "y3")
    assert system.variables() == ("y1", "y2", "y3", "t")
    assert system.variables(1) == ("y1", "t")


@pytest.mark.parametrize("number", [0, 5])
def test_other_numbers_of_quantities_are_refused(number):
    with pytest.raises(ValueError, match=f"num_states must be 1 to 4, got {number}"):
        SystemConfig(number)


def test_a_key_is_read_back():
    skeleton = SystemConfig(2, explicit_time=True).skeleton(KEY)
    assert skeleton.key == KEY
    assert [part.key for part in skeleton.parts] == KEY.split(" | ")
    assert skeleton.parts[1].variables == ("y1", "y2", "t")
    assert SystemConfig().skeleton("mul -c y").parts[0].variables == ("y",)


@pytest.mark.parametrize("key", ["mul c y1 | mul c y1 | c", "mul c y1 |", "mul c y1 | t"])
def test_what_is_no_key_is_refused(key):
    with pytest.raises(ExpressionError):
        SystemConfig(2).skeleton(key)


def test_constants_are_shared_out_in_the_order_of_the_equations():
    skeleton = SystemConfig(2, explicit_time=True).skeleton(KEY)
    laws = skeleton.with_constants([1.5, -0.5, -2.0])
    assert [law.infix for law in laws] == ["1.5*y1 - 0.5*(y1*y2)", "-2*t"]
    assert skeleton_of(laws) == skeleton
    for constants in ([1.5, -0.5], [1.5, -0.5, -2.0, 1.0]):
        with pytest.raises(ExpressionError, match="constants"):
            skeleton.with_constants(constants)


def test_sequences_are_joined_and_divided():
    laws = [Expression.from_infix(text, ("y1", "y2")).prefix for text in ("2*y2", "y1", "-y2")]
    tokens = joined(laws)
    assert tokens == ("mul", 2.0, "y2", "|", "y1", "|", "neg", "y2")
    assert divided(tokens) == laws
    assert divided(laws[0]) == laws[:1]
    assert divided(("y1", "|")) == [("y1",), ()]
