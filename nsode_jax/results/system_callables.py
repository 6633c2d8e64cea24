"""A system as functions for NumPy, JAX and diffrax."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from nsode_jax.dynamics.system import System
from nsode_jax.expressions.expression import Expression
from nsode_jax.results.callables import BACKENDS, evaluate_jax

if TYPE_CHECKING:
    import jax


def to_callable(
    system: System, equations: Sequence[Expression], backend: str = "numpy"
) -> Callable[..., Any]:
    """The right-hand sides as a function f(y, u, t) of states, inputs and time.

    y is [..., states], u [..., inputs] and t [...]; what the system has not is left out. The
    result has the shape of y: the derivative of each state, those of velocities included.

    Args:
      system: what the variables are.
      equations: a right-hand side for each state.
      backend: `numpy` or `jax`.

    Raises:
      ValueError: if there is no such backend.
    """
    if backend not in BACKENDS:
        raise ValueError(f"backend must be {' or '.join(BACKENDS)}, got {backend!r}")
    if backend == "jax":
        own = _constants(equations)
        return lambda y, u=None, t=None: _evaluate_jax(system, equations, own, y, u, t)

    def f(
        y: ArrayLike,
        u: ArrayLike | None = None,
        t: Float[np.ndarray, "..."] | float | None = None,
    ) -> Float[np.ndarray, "... states"]:
        y = np.asarray(y, np.float64)
        values = _variables(system, y, u if u is None else np.asarray(u), t)
        shape = y.shape[:-1]
        derivatives = [equation.evaluate(*values) for equation in equations]
        return np.stack([np.broadcast_to(each, shape) for each in derivatives], axis=-1)

    return f


def vector_field(
    system: System,
    equations: Sequence[Expression],
    inputs: Callable[[Any], Any] | None = None,
) -> Callable[[Any, Any, Any], Any]:
    """The system as (t, y, args) -> dy/dt in JAX, as `diffrax.ODETerm` takes it.

    Args:
      system: what the variables are.
      equations: a right-hand side for each state.
      inputs: function of the time that gives the inputs, shape [inputs], where there are any.

    Returns:
      The field. Its `args` is None for the system's own constants, or an array of others,
      shape [constants], one equation after the other; solutions can be
      differentiated with respect to them.

    Raises:
      ValueError: if the system has inputs and they are not given; from the field, if `args`
        has another shape.
    """
    names, own = system.inputs, _constants(equations)
    if names and inputs is None:
        raise ValueError(f"vector_field needs inputs, a function of t that gives {names}")

    def field(
        t: Float[jax.Array, ""] | float,
        y: Float[jax.Array, " states"],
        args: Float[jax.Array, " constants"] | None = None,
    ) -> Float[jax.Array, " states"]:
        import jax.numpy as jnp

        constants: Any = own
        if args is not None:
            constants = jnp.asarray(args)
            if constants.shape != (len(own),):
                raise ValueError(
                    f"the laws have constants of shape ({len(own)},), got args of shape "
                    f"{constants.shape}"
                )
        u = None if inputs is None else jnp.atleast_1d(jnp.asarray(inputs(t)))
        return _evaluate_jax(system, equations, constants, y, u, t)

    return field


def _constants(equations: Sequence[Expression]) -> tuple[float, ...]:
    return tuple(constant for law in equations for constant in law.constants)


def _evaluate_jax(
    system: System, equations: Sequence[Expression], constants: Any, y: Any, u: Any, t: Any
) -> Any:
    import jax.numpy as jnp

    y = jnp.asarray(y)
    values = _variables(system, y, u if u is None else jnp.asarray(u), t)
    values = [jnp.broadcast_to(value, y.shape[:-1]) for value in values]
    derivatives, start = [], 0
    for equation in equations:
        end = start + len(equation.constants)
        derivatives.append(evaluate_jax(equation, values, constants[start:end]))
        start = end
    return jnp.stack(derivatives, axis=-1)


def _variables(system: System, y: Any, u: Any, t: Any) -> list[Any]:
    """The values of the variables of the laws, in their order."""
    if y.shape[-1:] != (len(system.states),):
        raise ValueError(f"y needs {len(system.states)} states last: {', '.join(system.states)}")
    values = [y[..., i] for i in range(len(system.states))]
    if system.inputs:
        if u is None or u.shape[-1:] != (len(system.inputs),):
            raise ValueError(f"u needs {len(system.inputs)} inputs: {', '.join(system.inputs)}")
        values += [u[..., i] for i in range(len(system.inputs))]
    if system.explicit_time:
        if t is None:
            raise ValueError("these laws depend on the time: give t")
        values.append(t)
    return values
