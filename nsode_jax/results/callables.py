"""A law as a function for NumPy or JAX, and as a vector field for diffrax."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from jaxtyping import Float

from nsode_jax.expressions.expression import Expression
from nsode_jax.expressions.operators import OPERATORS, UNIT

if TYPE_CHECKING:
    import jax

BACKENDS = ("numpy", "jax")


def to_callable(expression: Expression, backend: str = "numpy") -> Callable[[Any], Any]:
    """The law as a function f(y) from an array to an array of the same shape.

    Args:
      expression: f.
      backend: `numpy` computes in float64 and gives NaN or inf where f is undefined.
        `jax` computes in the type of y, and can be jitted, mapped and differentiated.

    Raises:
      ValueError: if there is no such backend.
    """
    if backend == "numpy":
        return expression.evaluate
    if backend != "jax":
        raise ValueError(f"backend must be {' or '.join(BACKENDS)}, got {backend!r}")
    # Python numbers, since they do not change the type of the array they meet.
    constants = tuple(map(float, expression.constants))

    def f(y: Float[jax.Array, "..."] | float) -> Float[jax.Array, "..."]:
        return evaluate_jax(expression, (y,), constants)

    return f


def vector_field(expression: Expression) -> Callable[[Any, Any, Any], Any]:
    """The law as (t, y, args) -> dy/dt, as `diffrax.ODETerm` takes it.

    `args` is None for the expression's own constants, or an array of others, shape
    [constants], in the order of `expression.constants`; solutions can be
    differentiated with respect to them. The derivative with respect to an exponent
    is NaN where its base is negative, as it is in mathematics.

    The field raises ValueError if `args` has another shape.
    """
    own = tuple(map(float, expression.constants))

    def field(
        t: Float[jax.Array, ""] | float,
        y: Float[jax.Array, "..."] | float,
        args: Float[jax.Array, " constants"] | None = None,
    ) -> Float[jax.Array, "..."]:
        del t  # Autonomous.
        if args is None:
            return evaluate_jax(expression, (y,), own)
        import jax.numpy as jnp

        args = jnp.asarray(args)
        if args.shape != (len(own),):
            raise ValueError(
                f"the law has constants of shape ({len(own)},), got args of shape {args.shape}"
            )
        return evaluate_jax(expression, (y,), args)

    return field


def evaluate_jax(
    expression: Expression,
    values: Sequence[Float[jax.Array, "..."] | float],
    constants: Sequence[float] | Float[jax.Array, " constants"],
) -> Float[jax.Array, "..."]:
    """f in JAX, with these constants in place of the expression's own.

    Args:
      expression: f.
      values: one array for each variable, of the same shape.
      constants: as many as those of f.
    """
    import jax.numpy as jnp  # Slow to import.

    kind = jnp.result_type(*values, float)
    variables = {
        name: jnp.asarray(value, kind)
        for name, value in zip(expression.variables, values, strict=True)
    }
    skeleton = expression.skeleton
    next_constant = skeleton.num_constants
    # Read backwards, a prefix is a stack program: arguments come before their operator.
    stack: list[Any] = []
    for token in reversed(skeleton.tokens):
        operator = OPERATORS.get(token)
        if operator:
            arguments = [stack.pop() for _ in range(operator.arity)]
            if token == "pow" and _is_whole(arguments[1]):
                arguments[1] = int(arguments[1])  # JAX multiplies such powers out.
            stack.append(getattr(jnp, operator.jax)(*arguments))
        elif token in variables:
            stack.append(variables[token])
        elif token == UNIT:
            stack.append(1.0)
        else:
            next_constant -= 1
            stack.append(constants[next_constant])
    (value,) = stack
    first = variables[expression.variables[0]]
    return jnp.broadcast_to(jnp.asarray(value, jnp.result_type(value, first)), first.shape)


def _is_whole(exponent: Any) -> bool:
    """Whether an exponent is a known, small whole number."""
    return isinstance(exponent, float) and exponent.is_integer() and abs(exponent) <= 100
