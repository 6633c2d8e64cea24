"""A system as functions for NumPy, JAX and diffrax, and as the text of a Python program."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from nsode_jax.results.callables import BACKENDS, evaluate_jax
from nsode_jax.results.source import program
from nsode_jax.results.system_result import SystemCandidate

if TYPE_CHECKING:
    import jax


def to_callable(candidate: SystemCandidate, backend: str = "numpy") -> Callable[..., Any]:
    """The right-hand sides as a function f(y, u, t) of states, inputs and time.

    y is [..., states], u [..., inputs] and t [...]; what the system has not is left out. The
    result has the shape of y: the derivative of each state, those of velocities included.

    Raises:
      ValueError: if there is no such backend.
    """
    if backend not in BACKENDS:
        raise ValueError(f"backend must be {' or '.join(BACKENDS)}, got {backend!r}")
    if backend == "jax":
        own = candidate.constants
        return lambda y, u=None, t=None: _evaluate_jax(candidate, own, y, u, t)

    def f(
        y: ArrayLike,
        u: ArrayLike | None = None,
        t: Float[np.ndarray, "..."] | float | None = None,
    ) -> Float[np.ndarray, "... states"]:
        y = np.asarray(y, np.float64)
        values = _variables(candidate, y, u if u is None else np.asarray(u), t)
        shape = y.shape[:-1]
        derivatives = [equation.evaluate(*values) for equation in candidate.equations]
        return np.stack([np.broadcast_to(each, shape) for each in derivatives], axis=-1)

    return f


def vector_field(
    candidate: SystemCandidate, inputs: Callable[[Any], Any] | None = None
) -> Callable[[Any, Any, Any], Any]:
    """The system as (t, y, args) -> dy/dt in JAX, as `diffrax.ODETerm` takes it.

    Args:
      candidate: the system.
      inputs: function of the time that gives the inputs, shape [inputs], where there are any.

    Returns:
      The field. Its `args` is None for the system's own constants, or an array of others,
      shape [constants], in the order of `candidate.constants`; solutions can be
      differentiated with respect to them.

    Raises:
      ValueError: if the system has inputs and they are not given; from the field, if `args`
        has another shape.
    """
    names, own = candidate.system.inputs, candidate.constants
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
        return _evaluate_jax(candidate, constants, y, u, t)

    return field


def _evaluate_jax(candidate: SystemCandidate, constants: Any, y: Any, u: Any, t: Any) -> Any:
    import jax.numpy as jnp

    y = jnp.asarray(y)
    values = _variables(candidate, y, u if u is None else jnp.asarray(u), t)
    values = [jnp.broadcast_to(value, y.shape[:-1]) for value in values]
    # Of the known equations of velocities none has constants.
    derivatives, start = [], 0
    for equation in candidate.equations:
        end = start + len(equation.constants)
        derivatives.append(evaluate_jax(equation, values, constants[start:end]))
        start = end
    return jnp.stack(derivatives, axis=-1)


def _variables(candidate: SystemCandidate, y: Any, u: Any, t: Any) -> list[Any]:
    """The values of the variables of the laws, in their order."""
    system = candidate.system
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


# --- text ----------------------------------------------------------------------------


def to_source(candidate: SystemCandidate, backend: str = "numpy") -> str:
    """The text of a Python program that holds the system; see `source.program`."""
    system = candidate.system
    return program(system.observed, system.states, system.inputs, candidate.equations, backend)
