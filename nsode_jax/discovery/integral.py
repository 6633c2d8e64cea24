"""Integral matching: constants from y(t_j) - y(t_i) = integral of f, without solving an ODE.

f is integrated along a smooth curve through the data and compared over all pairs
(i, j). That is cheap, cannot diverge, and takes no derivatives of noisy data.
Constants that f depends on linearly are solved for exactly; the others by
Levenberg-Marquardt. Constants are varied relative to their size, so nothing here
depends on the units of the data.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Bool, Float

from nsode_jax.discovery.rank import score
from nsode_jax.discovery.smoothing import monotone_curve
from nsode_jax.discovery.variants import canonical_or_none, exponent_constants
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.expression import Expression, Skeleton
from nsode_jax.expressions.operators import CONSTANT, NEGATIVE_CONSTANT, OPERATORS, UNIT, VARIABLE

FAILED = 1e3
"""Residual, in standard deviations of the data, where a law is undefined."""

HUGE = 1e100
"""Values above this would overflow when squared; they count as undefined."""

INTERPOLATION_FLOOR = 1e-4
"""Residual that interpolation between the data leaves undecided, relative likewise."""


@dataclasses.dataclass(frozen=True)
class IntegralForm:
    """The data prepared for y(t_j) - y(t_i) = integral of f(y) dt.

    With a free constant of integration the sum over all pairs (i, j) is n times
    the sum of squares about the mean, so n centered residuals say it all.

    Attributes:
      nodes: smoothed data at Gauss-Legendre nodes between the observation times,
        shape [(time - 1) * order].
      weights: their weights, in units of time, shape [time - 1, order].
      target: the data, centered and divided by their standard deviation, [time].
      spread: that standard deviation.
      y0: smoothed value at the first time.
    """

    nodes: Float[np.ndarray, "nodes"]
    weights: Float[np.ndarray, "intervals order"]
    target: Float[np.ndarray, "time"]
    spread: float
    y0: float

    @classmethod
    def from_trajectory(cls, trajectory: Trajectory) -> IntegralForm:
        """Smooths the data and lays out the quadrature."""
        t, y = trajectory.t, trajectory.y
        spread = float(y.std()) or 1.0
        order = 4 if len(trajectory) <= 100 else 2
        points, weights = np.polynomial.legendre.leggauss(order)
        half = np.diff(t)[:, None] / 2  # [intervals, 1]
        times = (t[:-1, None] + half * (1 + points)).ravel()
        smooth = monotone_curve(t, y)(np.concatenate([t[:1], times]))
        return cls(
            nodes=smooth[1:],
            weights=half * weights,
            target=(y - y.mean()) / spread,
            spread=spread,
            y0=float(smooth[0]),
        )

    def integrate(
        self, values: Float[np.ndarray, "batch nodes"]
    ) -> Float[np.ndarray, "batch time"]:
        """Integrals of f up to each time, centered and scaled like `target`."""
        with np.errstate(all="ignore"):
            increments = (values.reshape(-1, *self.weights.shape) * self.weights).sum(-1)
        integral = np.zeros((len(values), len(self.target)))
        with np.errstate(all="ignore"):  # f may be undefined; callers look for NaN.
            np.cumsum(increments, axis=1, out=integral[:, 1:])
            return (integral - integral.mean(axis=1, keepdims=True)) / self.spread


@dataclasses.dataclass(frozen=True)
class Draft:
    """A law after stage 1; `error` is relative to the data's spread."""

    expression: Expression
    error: float
    score: float
    source: int
    nonlinear: bool


def evaluate_batch(
    skeleton: Skeleton,
    constants: Float[np.ndarray, "batch constants"],
    y: Float[np.ndarray, "nodes"],
) -> Float[np.ndarray, "batch nodes"]:
    """One skeleton at many values of its constants; NaN or inf where undefined."""
    stack: list[np.ndarray] = []
    column = constants.shape[1]
    with np.errstate(all="ignore"):
        for token in reversed(skeleton.tokens):
            if token == VARIABLE:
                stack.append(y)
            elif token == UNIT:
                stack.append(np.float64(1.0))
            elif token in (CONSTANT, NEGATIVE_CONSTANT):
                column -= 1
                stack.append(constants[:, column, None])
            else:
                operator = OPERATORS[token]
                stack.append(operator.numpy(*(stack.pop() for _ in range(operator.arity))))
    return np.broadcast_to(stack.pop(), (len(constants), len(y)))


def linear_constants(skeleton: Skeleton) -> Bool[np.ndarray, "constants"]:
    """Constants in which, jointly and with the others held, f is affine."""
    counter = iter(range(skeleton.num_constants))

    def walk(start: int) -> tuple[set[int], int]:
        token = skeleton.tokens[start]
        if token in (CONSTANT, NEGATIVE_CONSTANT):
            return {next(counter)}, start + 1
        operator = OPERATORS.get(token)
        if operator is None:
            return set(), start + 1
        arguments, position = [], start + 1
        for _ in range(operator.arity):
            linear, position = walk(position)
            arguments.append(linear)
        if token in ("add", "sub", "neg"):
            return set().union(*arguments), position
        if token == "mul":  # Bilinear: one side at a time.
            return max(arguments, key=len), position
        return (arguments[0] if token == "div" else set()), position

    linear = np.zeros(skeleton.num_constants, bool)
    linear[list(walk(0)[0])] = True
    return linear


def fit_integral(
    form: IntegralForm,
    skeleton: Skeleton,
    start: Float[np.ndarray, "constants"],
    free: Bool[np.ndarray, "constants"],
    max_iterations: int = 20,
) -> tuple[Float[np.ndarray, "constants"], float]:
    """Constants that minimize the integral residual, from one starting point.

    Levenberg-Marquardt over the free constants; after each step the linear ones
    are solved for exactly (algorithm 2 of Ruhe and Wedin, 1980, for separable
    least squares). A law that is linear in its constants needs no iteration.

    Args:
      form: the data.
      skeleton: the law.
      start: constants to start from, shape [constants].
      free: which of them may change.
      max_iterations: most steps.

    Returns:
      Constants and the root mean square of the residual relative to the spread
      of the data; inf if f is undefined on the data.
    """
    is_linear = linear_constants(skeleton) & free
    linear, varied = np.flatnonzero(is_linear), np.flatnonzero(free)
    constants, residual = _solve_linear(form, skeleton, start, linear)
    if residual is None:
        return start, math.inf
    cost = float(residual @ residual)
    damping = 1e-3
    for _ in range(max_iterations if varied.size > linear.size else 0):
        step = 1e-6 * np.where(constants[varied] == 0, 1.0, np.abs(constants[varied]))
        moved = np.repeat(constants[None], varied.size + 1, axis=0)
        moved[np.arange(1, varied.size + 1), varied] += step
        integrals = form.integrate(evaluate_batch(skeleton, moved, form.nodes))
        if not (np.abs(integrals) < HUGE).all():
            break
        jacobian = (integrals[1:] - integrals[0]) / step[:, None]  # [varied, time]
        size = np.sqrt((jacobian**2).sum(axis=1))
        if not (size < HUGE).all():
            break
        # Columns of unit length make the damping independent of units.
        size = np.where(size > 0, size, 1.0)
        jacobian /= size[:, None]
        normal, gradient = jacobian @ jacobian.T, jacobian @ residual
        accepted = False
        for _ in range(6):
            update = np.linalg.solve(normal + damping * np.eye(varied.size), gradient) / size
            trial = constants.copy()
            trial[varied] += update
            trial, trial_residual = _solve_linear(form, skeleton, trial, linear)
            if trial_residual is not None and trial_residual @ trial_residual < cost:
                accepted = True
                break
            damping *= 10.0
        if not accepted:
            break
        constants, residual, previous = trial, trial_residual, cost
        cost = float(residual @ residual)
        damping = max(damping / 10.0, 1e-10)
        if previous - cost < 1e-6 * previous:
            break
    return constants, math.sqrt(cost / len(form.target))


def _solve_linear(
    form: IntegralForm,
    skeleton: Skeleton,
    constants: Float[np.ndarray, "constants"],
    linear: np.ndarray,
) -> tuple[Float[np.ndarray, "constants"], Float[np.ndarray, "time"] | None]:
    """Replaces the constants at indices `linear` by their optimum.

    Returns:
      All constants and the residual; None for it where f is undefined.
    """
    trial = np.repeat(constants[None], linear.size + 1, axis=0)
    trial[:, linear] = 0.0
    trial[np.arange(1, linear.size + 1), linear] = 1.0
    if not (np.abs(trial) < HUGE).all():
        return constants, None
    values = evaluate_batch(skeleton, trial, form.nodes)
    with np.errstate(all="ignore"):
        parts = form.integrate(np.concatenate([values[:1], values[1:] - values[:1]]))
    if not (np.abs(parts) < HUGE).all():  # NaN fails too.
        return constants, None
    residual = form.target - parts[0]
    if linear.size:
        size = np.sqrt((parts[1:] ** 2).sum(axis=1))
        size = np.where(size > 0, size, 1.0)
        design = (parts[1:] / size[:, None]).T  # [time, linear]
        best = np.linalg.lstsq(design, residual, rcond=1e-11)[0]
        constants = constants.copy()
        constants[linear] = best / size
        residual = residual - design @ best
    usable = (np.abs(residual) < FAILED).all() and (np.abs(constants) < HUGE).all()
    return constants, residual if usable else None


def integral_score(form: IntegralForm, expression: Expression, floor: float) -> float:
    """Score of a law as it is, by its integral residual."""
    constants = np.array(expression.constants)
    _, residual = _solve_linear(form, expression.skeleton, constants, np.arange(0))
    error = math.inf if residual is None else float(np.sqrt(np.mean(residual**2)))
    return score(expression, error, form.target.size, floor)


def fit_all_integrals(
    form: IntegralForm,
    laws: Sequence[Expression],
    sources: Sequence[int],
    rng: np.random.Generator,
    report: Callable[[float], None],
    restarted: int = 60,
) -> list[Draft]:
    """Stage 1 of every skeleton, best first; the best get restarts."""
    groups: dict[str, list[int]] = {}
    for i, law in enumerate(laws):
        groups.setdefault(law.skeleton.unsigned_key, []).append(i)
    drafts = []
    for done, members in enumerate(groups.values()):
        report(0.7 * done / len(groups))
        options = [
            draft_law(form, laws[i].skeleton, np.array(laws[i].constants), sources[i])
            for i in members[:2]
        ]
        drafts.append(min(options, key=lambda draft: draft.score))
    drafts.sort(key=lambda draft: draft.score)
    for i, draft in enumerate(drafts[:restarted]):
        report(0.7 + 0.3 * i / restarted)
        if not draft.nonlinear or draft.error < INTERPOLATION_FLOOR:
            continue
        constants = np.array(draft.expression.constants)
        for _ in range(2):
            # Around the best fit so far, by a factor of 2 or so.
            start = constants * np.exp(0.8 * rng.standard_normal(constants.size))
            again = draft_law(form, draft.expression.skeleton, start, draft.source)
            if again.score < draft.score:
                drafts[i] = draft = again
    return sorted(drafts, key=lambda draft: draft.score)


def draft_law(
    form: IntegralForm, skeleton: Skeleton, start: Float[np.ndarray, "constants"], source: int
) -> Draft:
    """Stage 1 from one starting point, with whole and with free exponents."""
    exponents = exponent_constants(skeleton)
    free = np.ones(start.size, bool)
    attempts = []
    if exponents.any():
        whole = np.round(start)
        if not np.isin(whole[exponents], (0.0, 1.0)).any():
            attempts.append((np.where(exponents, whole, start), free & ~exponents))
    attempts.append((start, free))
    best = None
    for begin, mask in attempts:
        constants, error = fit_integral(form, skeleton, begin, mask)
        if not math.isfinite(error):
            continue
        expression = skeleton.with_constants(constants)
        value = score(expression, error, form.target.size, INTERPOLATION_FLOOR)
        if best is None or value < best.score:
            nonlinear = bool((mask & ~linear_constants(skeleton)).any())
            best = Draft(expression, error, value, source, nonlinear)
    return best or Draft(skeleton.with_constants(start), math.inf, math.inf, source, False)


def canonical_drafts(drafts: Sequence[Draft], limit: int) -> list[Draft]:
    """The best drafts in canonical form (signs may have changed), each skeleton once."""
    chosen: dict[str, Draft] = {}
    for draft in drafts:
        if len(chosen) == limit or not math.isfinite(draft.score):
            break
        expression = canonical_or_none(draft.expression)
        if expression is not None:
            key = expression.skeleton.unsigned_key
            chosen.setdefault(key, dataclasses.replace(draft, expression=expression))
    return list(chosen.values())
