"""Programs of many expressions evaluated in JAX, with their derivatives.

One compiled loop runs the tiles of `programs`. The derivatives with respect to the constants
and to the variables come from one loop back over the tiles (reverse mode; every result is
used once, so nothing is added up on the way).
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from nsode_jax.expressions.operators import OPERATORS, Operator
from nsode_jax.fitting.programs import FIRST_CONSTANT, NOTHING, ONE, SQUARE, TILE, Programs


def _derivatives() -> dict[int, Callable]:
    """Per opcode: (x, z) -> value and its derivatives with respect to both.

    Those below are as JAX would find them, but use the value, and are right at the edges
    of the domain. Other operators are left to JAX.
    """

    def found_by_jax(operator: Operator) -> Callable:
        function = getattr(jnp, operator.jax)

        def run(x, z):
            one = jnp.ones_like(x)
            if operator.arity == 1:
                return *jax.jvp(function, (x,), (one,)), jnp.zeros_like(x)
            value, left = jax.jvp(lambda x: function(x, z), (x,), (one,))
            _, right = jax.jvp(lambda z: function(x, z), (z,), (one,))
            return value, left, right

        return run

    def of(token: str, left: Callable, right: Callable | None = None) -> Callable:
        operator = OPERATORS[token]
        function = getattr(jnp, operator.jax)

        def run(x, z):
            value = function(x, z) if operator.arity == 2 else function(x)
            none = jnp.zeros_like(value)
            return value, left(x, z, value), none if right is None else right(x, z, value)

        return run

    def one(x, z, v):
        return jnp.ones_like(v)

    def minus_one(x, z, v):
        return -jnp.ones_like(v)

    def base(x, z, v):
        # At 0: 1 for an exponent of 1, otherwise 0 or infinite.
        at_zero = jnp.where(z == 1.0, 1.0, jnp.where(z > 1.0, 0.0, jnp.inf))
        return jnp.where(x == 0.0, at_zero, z * v / x)

    def exponent(x, z, v):
        # A negative base allows whole exponents only, which cannot be varied.
        return jnp.where(x > 0.0, v * jnp.log(x), 0.0)

    table = {
        "add": (one, one),
        "sub": (one, minus_one),
        "mul": (lambda x, z, v: z, lambda x, z, v: x),
        "div": (lambda x, z, v: 1.0 / z, lambda x, z, v: -v / z),
        "pow": (base, exponent),
        "sin": (lambda x, z, v: jnp.cos(x),),
        "cos": (lambda x, z, v: -jnp.sin(x),),
        "exp": (lambda x, z, v: v,),
        "sqrt": (lambda x, z, v: 0.5 / v,),
        "log": (lambda x, z, v: 1.0 / x,),
        "neg": (minus_one,),
    }
    functions = {
        operator.opcode: of(token, *table[token]) if token in table else found_by_jax(operator)
        for token, operator in OPERATORS.items()
    }
    functions[SQUARE] = lambda x, z: (x * x, 2.0 * x, jnp.zeros_like(x))
    functions[NOTHING] = lambda x, z: (x, jnp.zeros_like(x), jnp.zeros_like(x))
    return functions


@functools.cache
def _branches() -> tuple[Callable, ...]:
    functions = _derivatives()
    return tuple(functions[opcode] for opcode in range(NOTHING + 1))


def _start(programs: Programs, constants: Array, y: Array) -> Array:
    """Memory before the first tile, shape [row, points]."""
    # Rows of tiles that are not run are never used: filling them would take longer
    # than many a tile.
    points = y.shape[-1]
    memory = jax.lax.empty((programs.layout.rows, points), y.dtype)
    variables = 1 if y.ndim == 1 else len(y)
    memory = memory.at[:variables].set(y.reshape(variables, points)).at[ONE].set(1.0)
    flat = jnp.concatenate([constants.reshape(-1, 1), programs.fixed.reshape(-1, 1)])
    flat = jnp.broadcast_to(flat, (flat.size, points))
    return jax.lax.dynamic_update_slice(memory, flat, (FIRST_CONSTANT, 0))


def _num_tiles(programs: Programs) -> Array:
    return jnp.sum(programs.opcode != NOTHING)


def evaluate(
    programs: Programs,
    constants: Float[Array, "expressions constants"],
    y: Float[Array, " points"] | Float[Array, "variables points"],
) -> tuple[Float[Array, "expressions points"], Bool[Array, "expressions points"]]:
    """f at each point, for each expression.

    Args:
      programs: the expressions.
      constants: values of those that may vary, instead of `programs.constants`.
      y: where; of several variables all their values, in their order.

    Returns:
      Values, and where they are defined (finite); values are NaN or inf elsewhere.
    """
    branches = [lambda x, z, f=f: f(x, z)[0] for f in _branches()]

    first_result = programs.layout.first_result

    def body(tile, memory):
        left, right = memory[programs.arguments[0, tile]], memory[programs.arguments[1, tile]]
        value = jax.lax.switch(programs.opcode[tile], branches, left, right)
        return jax.lax.dynamic_update_slice(memory, value, (first_result + tile * TILE, 0))

    memory = jax.lax.fori_loop(0, _num_tiles(programs), body, _start(programs, constants, y))
    values = memory[programs.result]
    return values, jnp.isfinite(values)


def evaluate_with_gradient(
    programs: Programs,
    constants: Float[Array, "expressions constants"],
    y: Float[Array, " points"] | Float[Array, "variables points"],
) -> tuple[
    Float[Array, "expressions points"],
    Float[Array, "expressions points"] | Float[Array, "expressions variables points"],
    Float[Array, "expressions constants points"],
]:
    """f, its derivatives by the variables and by the constants at each point.

    Given values of one variable as an axis [points], df/dy has none for variables.

    Args and undefined values: see `evaluate`. The derivative with respect to an
    exponent is 0 where the base is not positive.
    """
    branches, layout = _branches(), programs.layout
    first_result = layout.first_result
    points = y.shape[-1]
    partials = jax.lax.empty((2, layout.rows + 1, points), y.dtype)
    partials = partials.at[:, layout.root].set(1.0).at[:, layout.nowhere].set(0.0)

    def forward(tile, state):
        memory, partials = state
        left, right = memory[programs.arguments[0, tile]], memory[programs.arguments[1, tile]]
        value, *slopes = jax.lax.switch(programs.opcode[tile], branches, left, right)
        row = first_result + tile * TILE
        memory = jax.lax.dynamic_update_slice(memory, value, (row, 0))
        return memory, jax.lax.dynamic_update_slice(partials, jnp.stack(slopes), (0, row, 0))

    count = _num_tiles(programs)
    memory, partials = jax.lax.fori_loop(
        0, count, forward, (_start(programs, constants, y), partials)
    )
    adjoint = jax.lax.empty((layout.rows + 1, points), y.dtype)
    adjoint = adjoint.at[layout.root].set(1.0).at[layout.nowhere].set(0.0)

    def backward(step, adjoint):
        tile = count - 1 - step
        parent = programs.parent[tile]
        value = adjoint[parent] * partials[programs.side[tile], parent]
        return jax.lax.dynamic_update_slice(adjoint, value, (first_result + tile * TILE, 0))

    adjoint = jax.lax.fori_loop(0, count, backward, adjoint)

    def of_leaves(parent, side):
        return adjoint[parent] * partials[side, parent]

    slope = of_leaves(programs.leaf_parent, programs.leaf_side)  # [expressions, leaves, points]
    if y.ndim == 1:
        slope = slope.sum(axis=1)
    else:
        which = programs.leaf_variable[:, None] == jnp.arange(len(y))[None, :, None]
        slope = jnp.where(which[..., None], slope[:, None], 0.0).sum(axis=2)
    gradient = of_leaves(programs.constant_parent, programs.constant_side)
    return memory[programs.result], slope, gradient
