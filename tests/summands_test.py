"""The terms of a sum."""

from nsode_jax.expressions.expression import Expression
from nsode_jax.expressions.summands import summands

NAMES = ("x", "y")


def test_summands_add_up_to_the_law():
    law = Expression.from_infix("1.5*x - (0.3*x*y - sin(y)) + 2", NAMES)
    parts = [Expression(part, NAMES) for part in summands(law)]
    assert len(parts) == 4
    assert sum(float(part.evaluate(0.7, 1.9)) for part in parts) == float(law.evaluate(0.7, 1.9))
