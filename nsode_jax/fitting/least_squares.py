"""Constants of thousands of different laws at once: Levenberg-Marquardt, jitted.

Constants are varied relative to their effect, so nothing here depends on the units.
"""

from __future__ import annotations

import collections
import dataclasses
import math
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from nsode_jax.expressions.constants import exponent_constants, linear_constants
from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting.programs import (
    LARGE,
    SMALL,
    Layout,
    Programs,
    evaluate_with_gradient,
    fits,
    pack,
)
from nsode_jax.fitting.regression import Regression

MOST_ITERATIONS = 12

_HUGE = 1e100
"""Values above this would overflow when squared; they count as undefined."""

_THREADS = 2
_FIRST_DAMPING, _LEAST_DAMPING, _MOST_DAMPING = 1e-3, 1e-12, 1e8
_TOLERANCE = 1e-4


@dataclasses.dataclass(frozen=True)
class InitialGuess:
    """Where the fit of a law begins.

    Attributes:
      expression: the law with the constants to start from.
      free: which of the constants may change.
    """

    expression: Expression
    free: Bool[np.ndarray, " constants"]


def initial_guesses(expression: Expression) -> list[InitialGuess]:
    """Starts of a law: with whole exponents that stay, and with all constants free.

    Exponents that are whole already are meant so, and are not freed.
    """
    exponents = exponent_constants(expression.skeleton)
    constants = np.array(expression.constants)
    free = np.ones(constants.size, bool)
    if not exponents.any():
        return [InitialGuess(expression, free)]
    whole = np.where(exponents, np.round(constants), constants)
    fixed = InitialGuess(expression.skeleton.with_constants(whole), free & ~exponents)
    if (whole == constants).all():
        return [fixed]
    if np.isin(whole[exponents], (0.0, 1.0)).any():
        return [InitialGuess(expression, free)]
    return [fixed, InitialGuess(expression, free)]


@dataclasses.dataclass(frozen=True, eq=False)
class Batch:
    """Laws that are fitted together, packed once for any data.

    Attributes:
      programs: the laws with the constants to start from.
      linear: which of the constants that vary f is linear in, True beyond them, shape
        [capacity, constants].
      guesses: index of each law's guess in the list that was packed, shape [laws].
    """

    programs: Programs
    linear: Bool[np.ndarray, "capacity constants"]
    guesses: Int[np.ndarray, " laws"]


def batches_of(
    guesses: Sequence[InitialGuess], layouts: Sequence[Layout] = (SMALL, LARGE)
) -> Iterator[Batch]:
    """Packs each law in the first of the layouts that it fits; what fits none is left out."""
    # Together those that need few iterations, for all go on until the last is done.
    waiting = sorted(range(len(guesses)), key=lambda i: _num_nonlinear(guesses[i]))
    for layout in layouts:
        fitting = [i for i in waiting if fits(guesses[i].expression, guesses[i].free, layout)]
        taken = set(fitting)
        waiting = [i for i in waiting if i not in taken]
        yield from _pack([guesses[i] for i in fitting], np.array(fitting, int), layout)


def _pack(
    guesses: Sequence[InitialGuess], indices: Int[np.ndarray, " guesses"], layout: Layout
) -> Iterator[Batch]:
    done = 0
    with jax.enable_x64(True):
        laws, free = [guess.expression for guess in guesses], [guess.free for guess in guesses]
        for programs, count in pack(laws, free, layout):
            linear = np.ones((layout.capacity, layout.constants), bool)
            for place in range(count):
                varied = free[done + place]
                kind = linear_constants(laws[done + place].skeleton)[varied]
                linear[place, : kind.size] = kind
            yield Batch(programs, linear, indices[done : done + count])
            done += count


def fit_batches(
    regression: Regression, batches: Iterable[Batch], iterations: int = MOST_ITERATIONS
) -> Iterator[tuple[Batch, Float[np.ndarray, "laws constants"], Float[np.ndarray, " laws"]]]:
    """Fits every batch, in order.

    Args:
      regression: the data.
      batches: laws; they are taken as they are needed, so an endless number may come.
      iterations: most steps of the fit.

    Yields:
      The batch, the constants that varied, and the root mean square of the residual in
      units of the regression's target; inf where f is undefined on the data.
    """
    data = regression.nodes, regression.operator, regression.target

    def fit(batch: Batch) -> tuple[Batch, np.ndarray, np.ndarray]:
        with jax.enable_x64(True):
            fitted, costs = _fit(batch.programs, batch.linear, *data, iterations)
            laws = batch.guesses.size
            fitted, costs = np.asarray(fitted)[:laws], np.asarray(costs)[:laws]
        return batch, fitted, np.sqrt((costs + regression.remainder) / regression.count)

    # One batch leaves a core idle: two are on their way, and the next are packed meanwhile.
    with ThreadPoolExecutor(_THREADS) as pool:
        pending: collections.deque[Future] = collections.deque()
        for batch in batches:
            pending.append(pool.submit(fit, batch))
            if len(pending) > _THREADS:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()


def fit_laws(
    regression: Regression, guesses: Sequence[InitialGuess]
) -> tuple[list[Float[np.ndarray, " constants"]], Float[np.ndarray, " guesses"]]:
    """Constants that minimize the residual, from each initial guess, all at once.

    Args:
      regression: the data.
      guesses: laws with what to vary; those too large for a program fail.

    Returns:
      The constants of each law, and the root mean square of its residual in units of
      the regression's target; inf where f is undefined on the data.
    """
    constants = [np.array(guess.expression.constants) for guess in guesses]
    errors = np.full(len(guesses), math.inf)
    for batch, fitted, residuals in fit_batches(regression, batches_of(guesses)):
        for i, values, residual in zip(batch.guesses, fitted, residuals, strict=True):
            if math.isfinite(residual):
                free = guesses[i].free
                constants[i][free] = values[: free.sum()]
                errors[i] = residual
    return constants, errors


def _num_nonlinear(guess: InitialGuess) -> int:
    return int((guess.free & ~linear_constants(guess.expression.skeleton)).sum())


@jax.jit
def _fit(
    programs: Programs,
    linear: Bool[Array, "laws constants"],
    nodes: Float[Array, " nodes"],
    operator: Float[Array, "rows nodes"],
    target: Float[Array, " rows"],
    iterations: Int[Array, ""],
) -> tuple[Float[Array, "laws constants"], Float[Array, " laws"]]:
    """Levenberg-Marquardt for all laws: constants and cost; inf where undefined.

    Before the first step and after each the constants that f depends on linearly are
    solved for exactly (algorithm 2 of Ruhe and Wedin, 1980, for separable least
    squares): the optimum of c in c*y**p runs away as p changes.
    """
    capacity, _ = programs.constants.shape

    def look(constants):
        """(cost, residual [laws, rows], Jacobian [laws, constants, rows])."""
        values, _, gradient = evaluate_with_gradient(programs, constants, nodes)
        residual = target[None] - values @ operator.T
        cost = jnp.sum(residual**2, axis=-1)
        usable = jnp.abs(values).max(axis=-1) < _HUGE  # NaN is not.
        jacobian = jnp.where(jnp.isfinite(gradient), gradient, 0.0) @ operator.T
        return jnp.where(usable & (cost < _HUGE), cost, jnp.inf), residual, jacobian

    def propose(constants, residual, jacobian, damping):
        size = jnp.sqrt(jnp.sum(jacobian**2, axis=-1))
        size = jnp.where((size > 0.0) & (size < _HUGE), size, 1.0)
        # Columns of unit length make the damping independent of units.
        jacobian = jacobian / size[..., None]
        normal = jnp.einsum("pcr,pdr->pcd", jacobian, jacobian)
        gradient = jnp.einsum("pcr,pr->pc", jacobian, residual)
        step = _solve_normal(normal, gradient, damping) / size
        return constants + jnp.where(jnp.isfinite(step), step, 0.0)

    def better(old, new, accepted):
        shape = (-1,) + (1,) * (old.ndim - 1)
        return jnp.where(accepted.reshape(shape), new, old)

    exact = jnp.full(capacity, _LEAST_DAMPING)

    def solve_linear(constants, cost, residual, jacobian):
        """The same with the linear constants at their optimum, where that is better."""
        solved = propose(constants, residual, jnp.where(linear[..., None], jacobian, 0.0), exact)
        solved_cost, solved_residual, solved_jacobian = look(solved)
        accepted = solved_cost < cost
        return (
            better(constants, solved, accepted),
            better(cost, solved_cost, accepted),
            better(residual, solved_residual, accepted),
            better(jacobian, solved_jacobian, accepted),
        )

    def iterate(state):
        iteration, constants, cost, residual, jacobian, damping, done = state
        trial = propose(constants, residual, jacobian, damping)
        trial, trial_cost, trial_residual, trial_jacobian = solve_linear(trial, *look(trial))
        accepted = (trial_cost < cost) & ~done
        gained = cost - trial_cost
        # Finished: a step that gained nothing to speak of, or no step that gains.
        finished = (accepted & (gained < _TOLERANCE * cost)) | (damping > _MOST_DAMPING)
        damping = jnp.where(accepted, jnp.maximum(damping / 10.0, _LEAST_DAMPING), damping * 10.0)
        return (
            iteration + 1,
            better(constants, trial, accepted),
            better(cost, trial_cost, accepted),
            better(residual, trial_residual, accepted),
            better(jacobian, trial_jacobian, accepted),
            damping,
            done | finished,
        )

    start = jnp.asarray(programs.constants)
    constants, cost, residual, jacobian = solve_linear(start, *look(start))
    damping = jnp.full(capacity, _FIRST_DAMPING)
    # What is linear in all its constants is at its optimum.
    done = ~jnp.isfinite(cost) | jnp.all(linear, axis=-1)
    state = 0, constants, cost, residual, jacobian, damping, done
    state = jax.lax.while_loop(
        lambda state: (state[0] < iterations) & ~jnp.all(state[-1]), iterate, state
    )
    return state[1], state[2]


def _solve_normal(
    normal: Float[Array, "laws constants constants"],
    gradient: Float[Array, "laws constants"],
    damping: Float[Array, " laws"],
) -> Float[Array, "laws constants"]:
    """Solves the damped normal equations by elimination, side by side for all laws.

    They are small and positive definite, so no pivoting is needed; LAPACK would be
    called once for every law.
    """
    number = gradient.shape[1]
    normal = normal + damping[:, None, None] * jnp.eye(number)[None]
    system = jnp.concatenate([normal, gradient[..., None]], axis=-1)
    for k in range(number):
        row = system[:, k : k + 1] / system[:, k : k + 1, k : k + 1]
        others = (jnp.arange(number) != k)[None, :, None]
        system = jnp.where(others, system - system[:, :, k : k + 1] * row, row)
    return system[..., -1]
