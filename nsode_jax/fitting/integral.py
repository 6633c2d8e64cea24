"""Integral matching: constants from y(t_j) - y(t_i) = integral of f, without solving an ODE.

f is integrated along a smooth curve through the data and compared over all pairs
(i, j). That is cheap, cannot diverge, and takes no derivatives of noisy data. As f
depends on y only, its values on a grid of the observed range say it all: the
integrals are a fixed matrix times these values, whatever the length of the series.
All laws are fitted at once by Levenberg-Marquardt, jitted (`fit_integrals`).
Constants are varied relative to their effect, so nothing here depends on the units.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float
from scipy.interpolate import CubicSpline

from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.constants import exponent_constants, linear_constants
from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting import programs as programs_module
from nsode_jax.fitting.dataset import Dataset
from nsode_jax.fitting.programs import CAPACITY, MAX_CONSTANTS, Programs, fits, pack
from nsode_jax.fitting.smoothing import is_clean, lagrange_weights, monotone_curve

INTERPOLATION_FLOOR = 3e-5
"""Residual, in standard deviations of the data, that interpolation leaves undecided."""

_GRID = 64
_HUGE = 1e100
"""Values above this would overflow when squared; they count as undefined."""

_MAX_ITERATIONS = 12
_THREADS = 2
_FIRST_DAMPING, _LEAST_DAMPING, _MOST_DAMPING = 1e-3, 1e-12, 1e8
_TOLERANCE = 1e-4


@dataclasses.dataclass(frozen=True)
class IntegralForm:
    """The data prepared for y(t_j) - y(t_i) = integral of f(y) dt.

    With a free constant of integration per trajectory the sum over all pairs (i, j)
    is the sum of squares about its mean. Least squares only see the part of the data
    in the range of the matrix, so both are reduced to that (by QR).

    Attributes:
      grid: values of y at which f is evaluated, increasing, shape [grid].
      matrix: from f on the grid to the residual's model, shape [grid, grid].
      target: the data likewise, in standard deviations, shape [grid].
      remainder: sum of squares that no f can explain, in the same units squared.
      count: number of observations.
      spread: of the data, see `Dataset`.
      y0s: smoothed value at the first time, per trajectory.
    """

    grid: Float[np.ndarray, " grid"]
    matrix: Float[np.ndarray, "grid grid"]
    target: Float[np.ndarray, " grid"]
    remainder: float
    count: int
    spread: float
    y0s: tuple[float, ...]

    @classmethod
    def from_dataset(cls, data: Dataset) -> IntegralForm:
        """Smooths the data and lays out the quadrature."""
        spread = data.spread
        target = np.concatenate([_centered(t.y, t.weights) for t in data]) / spread
        curves = [_quadrature(trajectory) for trajectory in data]
        grid = _grid(
            np.concatenate([nodes for nodes, _, _ in curves]),
            np.concatenate([weights.ravel() for _, weights, _ in curves]),
        )
        blocks = []
        for trajectory, (nodes, weights, _) in zip(data, curves, strict=True):
            # [intervals, order, grid] --> increments [intervals, grid]
            parts = _interpolation(grid, nodes).reshape(*weights.shape, grid.size)
            increments = (parts * weights[..., None]).sum(axis=1)
            integrals = np.concatenate([np.zeros((1, grid.size)), np.cumsum(increments, axis=0)])
            blocks.append(_centered(integrals, trajectory.weights) / spread)
        design = np.concatenate(blocks)
        q, r = np.linalg.qr(design)
        reduced = q.T @ target
        matrix = np.zeros((grid.size, grid.size))
        matrix[: len(r)] = r
        return cls(
            grid=grid,
            matrix=matrix,
            target=np.pad(reduced, (0, grid.size - reduced.size)),
            remainder=max(float(target @ target - reduced @ reduced), 0.0),
            count=target.size,
            spread=spread,
            y0s=tuple(y0 for _, _, y0 in curves),
        )

    def rescaled(self, a: float, b: float, c: float) -> IntegralForm:
        """The form for g with dz/ds = g(z), where z = (y - b) / a and s runs c times slower."""
        return dataclasses.replace(
            self,
            grid=(self.grid - b) / a,
            matrix=self.matrix * (a / c),
            y0s=tuple((y0 - b) / a for y0 in self.y0s),
        )


def _centered(
    values: Float[np.ndarray, " time *columns"], weights: Float[np.ndarray, " time"]
) -> Float[np.ndarray, " time *columns"]:
    """Weighted values about their weighted mean, which is a free constant's optimum."""
    squares = weights**2 / np.sum(weights**2)
    mean = np.tensordot(squares, values, axes=1)
    return ((values - mean).T * weights).T


def _quadrature(
    trajectory: Trajectory,
) -> tuple[Float[np.ndarray, " nodes"], Float[np.ndarray, "intervals order"], float]:
    """A curve through the data at Gauss-Legendre nodes between them, weights, first value."""
    t, y = trajectory.t, trajectory.y
    clean = is_clean(t, y)
    order = 4 if clean or len(trajectory) <= 100 else 2
    points, weights = np.polynomial.legendre.leggauss(order)
    if not clean:
        half = np.diff(t)[:, None] / 2  # [intervals, 1]
        times = (t[:-1, None] + half * (1 + points)).ravel()
        smooth = monotone_curve(t, y)(np.concatenate([t[:1], times]))
        return smooth[1:], half * weights, float(smooth[0])
    # A steep transient between few points is a straight piece of the path (t, y).
    steps = np.hypot(np.diff(t) / np.ptp(t), np.diff(y) / np.ptp(y))
    path = np.concatenate([[0.0], np.cumsum(steps)])
    half = steps[:, None] / 2
    at = (path[:-1, None] + half * (1 + points)).ravel()
    speed = CubicSpline(path, t)(at, 1).reshape(-1, order)
    return CubicSpline(path, y)(at), half * weights * speed, float(y[0])


def _grid(
    nodes: Float[np.ndarray, " nodes"], weights: Float[np.ndarray, " nodes"]
) -> Float[np.ndarray, " grid"]:
    """Values over the range of the nodes: half of them even, half where time is spent."""
    order = np.argsort(nodes)
    share = np.cumsum(weights[order])
    low, high = nodes.min(), nodes.max()
    even = np.linspace(low, high, _GRID // 2)
    dense = np.interp(np.linspace(0, share[-1], _GRID // 2 + 2)[1:-1], share, nodes[order])
    grid = np.sort(np.concatenate([even, dense]))
    # Neighbours must differ: what is too close goes, wide gaps are halved instead.
    kept = [grid[0]]
    for value in grid[1:]:
        if value - kept[-1] > 1e-4 * (high - low):
            kept.append(value)
    kept[-1] = high
    while len(kept) < _GRID:
        widest = int(np.argmax(np.diff(kept)))
        kept.insert(widest + 1, (kept[widest] + kept[widest + 1]) / 2)
    return np.array(kept)


def _interpolation(
    grid: Float[np.ndarray, " grid"], at: Float[np.ndarray, " points"]
) -> Float[np.ndarray, "points grid"]:
    """Weights of the cubic through the four neighbours of each point."""
    first = np.clip(np.searchsorted(grid, at) - 2, 0, grid.size - 4)
    columns = first[:, None] + np.arange(4)
    result = np.zeros((at.size, grid.size))
    np.put_along_axis(result, columns, lagrange_weights(grid[columns], at), axis=1)
    return result


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


def fit_integrals(
    form: IntegralForm, starts: Sequence[InitialGuess]
) -> tuple[list[Float[np.ndarray, " constants"]], Float[np.ndarray, " starts"]]:
    """Constants that minimize the integral residual, from each start, all at once.

    Args:
      form: the data.
      starts: laws with what to vary; those too large for a program fail.

    Returns:
      The constants of each law, and the root mean square of its residual relative
      to the spread of the data; inf where f is undefined on the data.
    """
    constants = [np.array(start.expression.constants) for start in starts]
    errors = np.full(len(starts), math.inf)
    usable = [i for i, start in enumerate(starts) if fits(start.expression, start.free)]
    # Together those that need few iterations, for all go on until the last is done.
    usable.sort(key=lambda i: _num_nonlinear(starts[i]))
    data = form.grid, form.matrix, form.target

    def fit(programs: Programs, members: Sequence[int]) -> None:
        linear = np.zeros((CAPACITY, MAX_CONSTANTS), bool)
        for place, i in enumerate(members):
            free = starts[i].free
            linear[place, : free.sum()] = linear_constants(starts[i].expression.skeleton)[free]
        with jax.enable_x64(True):
            fitted, costs = map(np.asarray, _fit(programs, linear, *data))
        for place, i in enumerate(members):
            if math.isfinite(costs[place]):
                free = starts[i].free
                constants[i][free] = fitted[place, : free.sum()]
                errors[i] = math.sqrt((costs[place] + form.remainder) / form.count)

    # One set of programs leaves a core idle: two are on their way, and the next are
    # packed meanwhile.
    with jax.enable_x64(True), ThreadPoolExecutor(_THREADS) as pool:
        tasks, done = [], 0
        laws = [starts[i].expression for i in usable]
        for programs, count in pack(laws, [starts[i].free for i in usable]):
            tasks.append(pool.submit(fit, programs, usable[done : done + count]))
            done += count
        for task in tasks:
            task.result()
    return constants, errors


def _num_nonlinear(start: InitialGuess) -> int:
    return int((start.free & ~linear_constants(start.expression.skeleton)).sum())


@jax.jit
def _fit(
    programs: Programs,
    linear: Bool[Array, "laws constants"],
    grid: Float[Array, " grid"],
    matrix: Float[Array, "grid grid"],
    target: Float[Array, " grid"],
) -> tuple[Float[Array, "laws constants"], Float[Array, " laws"]]:
    """Levenberg-Marquardt for all laws: constants and cost; inf where undefined.

    Before the first step and after each the constants that f depends on linearly are
    solved for exactly (algorithm 2 of Ruhe and Wedin, 1980, for separable least
    squares): the optimum of c in c*y**p runs away as p changes.
    """

    def look(constants):
        """(cost, residual [laws, grid], Jacobian [laws, constants, grid])."""
        values, _, gradient = programs_module.evaluate_with_gradient(programs, constants, grid)
        residual = target[None] - values @ matrix.T
        cost = jnp.sum(residual**2, axis=-1)
        usable = jnp.abs(values).max(axis=-1) < _HUGE  # NaN is not.
        jacobian = jnp.where(jnp.isfinite(gradient), gradient, 0.0) @ matrix.T
        return jnp.where(usable & (cost < _HUGE), cost, jnp.inf), residual, jacobian

    def propose(constants, residual, jacobian, damping):
        size = jnp.sqrt(jnp.sum(jacobian**2, axis=-1))
        size = jnp.where((size > 0.0) & (size < _HUGE), size, 1.0)
        # Columns of unit length make the damping independent of units.
        jacobian = jacobian / size[..., None]
        normal = jnp.einsum("pcg,pdg->pcd", jacobian, jacobian)
        normal += damping[:, None, None] * jnp.eye(MAX_CONSTANTS)[None]
        gradient = jnp.einsum("pcg,pg->pc", jacobian, residual)
        normal = jnp.where(jnp.isfinite(normal), normal, jnp.eye(MAX_CONSTANTS)[None])
        step = jnp.linalg.solve(normal, gradient[..., None])[..., 0] / size
        return constants + jnp.where(jnp.isfinite(step), step, 0.0)

    def better(old, new, accepted):
        shape = (-1,) + (1,) * (old.ndim - 1)
        return jnp.where(accepted.reshape(shape), new, old)

    exact = jnp.full(CAPACITY, _LEAST_DAMPING)

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
    damping = jnp.full(CAPACITY, _FIRST_DAMPING)
    state = 0, constants, cost, residual, jacobian, damping, ~jnp.isfinite(cost)
    state = jax.lax.while_loop(
        lambda state: (state[0] < _MAX_ITERATIONS) & ~jnp.all(state[-1]), iterate, state
    )
    return state[1], state[2]
