"""Constants of thousands of different laws at once: Levenberg-Marquardt, jitted.

Constants are varied relative to their effect, so nothing here depends on the units.
"""

from __future__ import annotations

import collections
import dataclasses
import math
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from nsode_jax.fitting.guesses import Batch, InitialGuess, batches_of
from nsode_jax.fitting.programs import Programs
from nsode_jax.fitting.tile_machine import evaluate_with_gradient
from nsode_jax.observed.regression import Regression

MOST_ITERATIONS = 12

_HUGE = 1e100
"""Values above this would overflow when squared; they count as undefined."""

_THREADS = 2
_FIRST_DAMPING, _LEAST_DAMPING, _MOST_DAMPING = 1e-3, 1e-12, 1e8
_TOLERANCE = 1e-4

_REFINEMENTS = 8
"""Of a solution of normal equations by what it leaves: columns such as y and y**2 of values far
from 0 are nearly alike, and one solution of theirs is far from exact."""


class Fitted(NamedTuple):
    """A batch of laws with the constants that fit best.

    Attributes:
      guesses: index of each law's guess in the list that was packed, shape [laws].
      constants: those that varied, in their order, shape [laws, constants].
      residuals: root mean square in units of the regression's target; inf where f is
        undefined on the data, shape [laws].
      starts: number of the start that led there, shape [laws].
    """

    guesses: Int[np.ndarray, " laws"]
    constants: Float[np.ndarray, "laws constants"]
    residuals: Float[np.ndarray, " laws"]
    starts: Int[np.ndarray, " laws"]

    def laws(self, guesses: Sequence[InitialGuess]) -> Iterator[Float[np.ndarray, " constants"]]:
        """All constants of each law, those that did not vary included."""
        for place, number in enumerate(self.guesses):
            guess = guesses[number]
            if guess.starts is None:
                constants = np.array(guess.expression.constants)
            else:
                constants = guess.starts[self.starts[place] % len(guess.starts)].copy()
            constants[guess.free] = self.constants[place, : guess.free.sum()]
            yield constants


def fit_batches(
    regression: Regression,
    batches: Iterable[Batch],
    iterations: int = MOST_ITERATIONS,
    *,
    tried: int = 2,
) -> Iterator[Fitted]:
    """Fits every batch, in order.

    Args:
      regression: the data.
      batches: laws; they are taken as they are needed, so an endless number may come.
      iterations: most steps of the fit.
      tried: steps from each of several starts, before the best of them is gone on from.

    Yields:
      The batches with their constants.
    """
    data = _in_a_usual_shape(regression)

    def fit(batch: Batch) -> Fitted:
        start = batch.starts, batch.fixed
        several = len(batch.starts) > 1
        with jax.enable_x64(True):
            answer = (
                _fit_from_best(batch.programs, batch.linear, *start, *data, tried, iterations)
                if several
                else (*_fit(batch.programs, batch.linear, *data, iterations), 0)
            )
        laws = batch.guesses.size
        fitted, costs = (np.asarray(part)[:laws] for part in answer[:2])
        residuals = np.sqrt((costs + regression.remainder) / regression.count)
        begun = np.broadcast_to(answer[2], batch.linear.shape[:1])[:laws]
        return Fitted(batch.guesses, fitted, residuals, begun)

    # One batch leaves a core idle: two are on their way, and the next are packed meanwhile.
    with ThreadPoolExecutor(_THREADS) as pool:
        pending: collections.deque[Future] = collections.deque()
        for batch in batches:
            pending.append(pool.submit(fit, batch))
            if len(pending) > _THREADS:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()


def _in_a_usual_shape(
    regression: Regression,
) -> tuple[
    Float[np.ndarray, "*variables nodes"],
    Float[np.ndarray, "rows nodes"],
    Float[np.ndarray, " rows"],
]:
    """Nodes, operator and target, filled up with what changes nothing, to one of few shapes.

    The fit is compiled for each shape, which takes longer than many fits. The regressions of
    systems have as many rows as there are observations, those of one quantity have few shapes.
    """
    nodes, operator, target = regression.nodes, regression.operator, regression.target
    if nodes.ndim == 1:
        return nodes, operator, target
    rows, more = (_usual_size(size) - size for size in operator.shape)
    return (
        np.pad(nodes, ((0, 0), (0, more)), mode="edge"),  # f is defined there.
        np.pad(operator, ((0, rows), (0, more))),
        np.pad(target, (0, rows)),
    )


def _usual_size(size: int) -> int:
    """The next power of two, or three quarters of it."""
    power = 1 << (size - 1).bit_length()
    return 3 * power // 4 if size <= 3 * power // 4 else power


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
    for fitted in fit_batches(regression, batches_of(guesses)):
        laws = zip(fitted.guesses, fitted.laws(guesses), fitted.residuals, strict=True)
        for i, values, residual in laws:
            if math.isfinite(residual):
                constants[i], errors[i] = values, residual
    return constants, errors


class _Point(NamedTuple):
    """Constants of all laws, and what they leave over.

    Attributes:
      constants: shape [laws, constants].
      cost: sum of squares, inf where f is undefined, shape [laws].
      residual: shape [laws, rows].
      jacobian: minus its derivatives, shape [laws, constants, rows].
    """

    constants: Float[Array, "laws constants"]
    cost: Float[Array, " laws"]
    residual: Float[Array, "laws rows"]
    jacobian: Float[Array, "laws constants rows"]


@jax.jit
def _fit(
    programs: Programs,
    linear: Bool[Array, "laws constants"],
    nodes: Float[Array, "*variables nodes"],
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

    def look(constants: Float[Array, "laws constants"]) -> _Point:
        values, _, gradient = evaluate_with_gradient(programs, constants, nodes)
        residual = target[None] - values @ operator.T
        cost = jnp.sum(residual**2, axis=-1)
        usable = jnp.abs(values).max(axis=-1) < _HUGE  # NaN is not.
        jacobian = jnp.where(jnp.isfinite(gradient), gradient, 0.0) @ operator.T
        cost = jnp.where(usable & (cost < _HUGE), cost, jnp.inf)
        return _Point(constants, cost, residual, jacobian)

    exact = jnp.full(capacity, _LEAST_DAMPING)

    def solve_linear(point: _Point) -> _Point:
        """The same with the linear constants at their optimum, where that is better."""
        alone = point._replace(jacobian=jnp.where(linear[..., None], point.jacobian, 0.0))
        solved = look(_step(alone, exact, _REFINEMENTS))
        return _where(solved.cost < point.cost, solved, point)

    def iterate(state):
        iteration, point, damping, done = state
        trial = solve_linear(look(_step(point, damping)))
        accepted = (trial.cost < point.cost) & ~done
        gained = point.cost - trial.cost
        # Finished: a step that gained nothing to speak of, or no step that gains.
        finished = (accepted & (gained < _TOLERANCE * point.cost)) | (damping > _MOST_DAMPING)
        damping = jnp.where(accepted, jnp.maximum(damping / 10.0, _LEAST_DAMPING), damping * 10.0)
        return iteration + 1, _where(accepted, trial, point), damping, done | finished

    point = solve_linear(look(jnp.asarray(programs.constants)))
    # What is linear in all its constants is at its optimum.
    done = ~jnp.isfinite(point.cost) | jnp.all(linear, axis=-1)
    state = 0, point, jnp.full(capacity, _FIRST_DAMPING), done
    _, point, _, _ = jax.lax.while_loop(
        lambda state: (state[0] < iterations) & ~jnp.all(state[-1]), iterate, state
    )
    return point.constants, point.cost


def _where(chosen: Bool[Array, " laws"], new: _Point, old: _Point) -> _Point:
    """The new point of the chosen laws, the old one of others."""
    return jax.tree.map(
        lambda a, b: jnp.where(chosen.reshape(-1, *(1,) * (a.ndim - 1)), a, b), new, old
    )


def _step(
    point: _Point, damping: Float[Array, " laws"], refinements: int = 0
) -> Float[Array, "laws constants"]:
    """Constants after a step, solved for once and so many times more by what is left."""
    size = jnp.sqrt(jnp.sum(point.jacobian**2, axis=-1))
    size = jnp.where((size > 0.0) & (size < _HUGE), size, 1.0)
    # Columns of unit length make the damping independent of units.
    jacobian = point.jacobian / size[..., None]
    normal = jnp.einsum("pcr,pdr->pcd", jacobian, jacobian)

    def refine(_, state):
        step, left = state
        more = _solve_normal(normal, jnp.einsum("pcr,pr->pc", jacobian, left), damping)
        more = jnp.where(jnp.isfinite(more), more, 0.0)
        return step + more, left - jnp.einsum("pcr,pc->pr", jacobian, more)

    state = refine(0, (jnp.zeros_like(point.constants), point.residual))
    step, _ = jax.lax.fori_loop(0, refinements, refine, state)
    return point.constants + step / size


@jax.jit
def _fit_from_best(
    programs: Programs,
    linear: Bool[Array, "laws constants"],
    starts: Float[Array, "starts laws constants"],
    fixed: Float[Array, "starts laws fixed"],
    nodes: Float[Array, "*variables nodes"],
    operator: Float[Array, "rows nodes"],
    target: Float[Array, " rows"],
    tried: Int[Array, ""],
    iterations: Int[Array, ""],
) -> tuple[Float[Array, "laws constants"], Float[Array, " laws"], Int[Array, " laws"]]:
    """A few steps from every start; all steps from where the best of them led.

    Returns:
      Constants and cost as in `_fit`, and the number of the best start.
    """
    number, capacity, _ = starts.shape

    def fit_from(turn, state):
        """One start more; at last the best."""
        constants, cost, best = state
        last = turn == number
        chosen = jnp.where(last, best, turn)
        begun = dataclasses.replace(
            programs,
            constants=jnp.where(last, constants, starts[turn]),
            fixed=jnp.take_along_axis(
                fixed, jnp.broadcast_to(chosen, capacity)[None, :, None], axis=0
            )[0],
        )
        steps = jnp.where(last, iterations, tried)
        fitted, fitted_cost = _fit(begun, linear, nodes, operator, target, steps)
        improved = fitted_cost < cost
        return (
            jnp.where(improved[:, None], fitted, constants),
            jnp.where(improved, fitted_cost, cost),
            jnp.where(improved, chosen, best),
        )

    nothing = starts[0], jnp.full(capacity, jnp.inf), jnp.zeros(capacity, int)
    return jax.lax.fori_loop(0, number + 1, fit_from, nothing)


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
