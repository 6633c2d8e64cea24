"""Constants that fit the data: integral matching for all, trajectory matching for the best.

Stage 1 compares y(t_j) - y(t_i) with the integral of f along a smooth curve
through the data, over all pairs (i, j). It solves no ODE, so it is cheap and
cannot diverge, and it takes no derivatives of noisy data. Constants that f
depends on linearly are solved for exactly; the others by Levenberg-Marquardt.

Stage 2 integrates the law and fits constants and initial value to the data
themselves. A clean-up follows: terms and constants that do not pay for their
length are dropped, exponents near whole numbers become whole.

Constants are always varied relative to their size, so nothing here depends on
the units of the data.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from jaxtyping import Bool, Float
from scipy.interpolate import CubicSpline
from scipy.linalg import cho_solve_banded, cholesky_banded
from scipy.optimize import isotonic_regression, least_squares

from nsode_jax.discovery.rank import Fit, is_plain, residual_floor, score, scores
from nsode_jax.dynamics.solve import solve
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.canonical import TimeLimitExceeded, canonicalize
from nsode_jax.expressions.expression import (
    Expression,
    ExpressionError,
    Prefix,
    Skeleton,
    subtree_end,
)
from nsode_jax.expressions.operators import CONSTANT, NEGATIVE_CONSTANT, OPERATORS, UNIT, VARIABLE

Progress = Callable[[str, float], None]
"""Called with what is being done and the share of the work done, in [0, 1]."""

_FAILED = 1e3
"""Residual, in standard deviations of the data, where a law is undefined."""

_HUGE = 1e100
"""Values above this would overflow when squared; they count as undefined."""

_STAGE1_FLOOR = 1e-4
"""What interpolation between the data leaves undecided in stage 1."""


def refine(
    trajectory: Trajectory,
    proposals: Sequence[Expression],
    *,
    seed: int = 0,
    matched: int = 24,
    polished: int = 8,
    integrated: int = 100,
    seconds: float = 40.0,
    progress: Progress | None = None,
) -> list[Fit]:
    """Fits the constants of proposed laws.

    Args:
      trajectory: the data, any units; a few hundred points at most.
      proposals: canonical laws in the data's units, most likely first. Several
        with one skeleton serve as starting points for it. Each is also tried
        with a coefficient before every term.
      seed: seed of the restarts.
      matched: most laws that get stage 2, with a rough tolerance.
      polished: how many of them are then fitted until nothing changes.
      integrated: how many laws are integrated and returned at all.
      seconds: stage 2 and the clean-up stop starting new work after so much CPU
        time of this thread (so that a busy machine does not change the result).
        Far above what is usually needed; a guard, not a tuning knob.
      progress: told what is going on.

    Returns:
      Fits in no particular order, several per skeleton perhaps; see `rank`. Laws
      that are undefined along the data are left out.
    """
    deadline = time.thread_time() + seconds
    report = progress or (lambda message, share: None)
    rng = np.random.default_rng(seed)
    form = IntegralForm.from_trajectory(trajectory)

    report("fitting constants", 0.0)
    sources = list(range(len(proposals)))
    known = {proposal.skeleton.unsigned_key for proposal in proposals}
    laws = list(proposals)
    for i, proposal in enumerate(proposals):
        general = with_coefficients(proposal)
        if general.skeleton.unsigned_key not in known:
            known.add(general.skeleton.unsigned_key)
            laws.append(general)
            sources.append(i)
    drafts = _fit_all_integrals(
        form, laws, sources, rng, lambda share: report("fitting constants", share)
    )
    chosen = _canonical_drafts(drafts, integrated)
    margin = _margin(trajectory)
    fits: list[Fit] = []
    for i, draft in enumerate(chosen):
        report("matching trajectories", i / max(len(chosen), 1))
        hopeful = i < matched and draft.score < chosen[0].score + margin
        effort = ROUGH if hopeful and time.thread_time() < deadline else NO_FIT
        fits.append(
            match_trajectory(trajectory, draft.expression, form.y0, draft.source, effort=effort)
        )
    values = scores(fits, trajectory)
    for i in sorted(range(len(fits)), key=values.__getitem__)[:polished]:
        if not fits[i].diverged and time.thread_time() < deadline:
            fits[i] = _polished(trajectory, fits[i])
    report("simplifying", 0.0)
    fits += _clean_up(trajectory, form, fits, deadline)
    report("simplifying", 1.0)
    return fits


def _margin(trajectory: Trajectory) -> float:
    """A law whose score is so much above the best cannot be made to win.

    Stage 1 and rough fits misjudge residuals, but hardly by a factor of two.
    """
    return SLACK + len(trajectory) * math.log(4.0)


# --- stage 1: integral matching ----------------------------------------------


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
        smooth = _smooth(t, y)(np.concatenate([t[:1], times]))
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


def _smooth(
    t: Float[np.ndarray, "time"], y: Float[np.ndarray, "time"]
) -> Callable[[np.ndarray], np.ndarray]:
    """A monotone smooth curve through the data, within their range.

    Solutions of a scalar autonomous ODE are monotone, so wiggles are noise.
    """
    scaled = (t - t[0]) / (t[-1] - t[0])
    level, size = y.mean(), y.std() or 1.0
    values = (y - level) / size
    smoothed = _smoothing_spline_values(scaled, values)
    if np.sqrt(np.mean((smoothed - values) ** 2)) > 1e-3:
        curve = CubicSpline(scaled, smoothed, bc_type="natural")
    else:  # The data are clean, and interpolation is more exact.
        curve = CubicSpline(scaled, values)

    def evaluate(times: np.ndarray) -> np.ndarray:
        raw = np.clip(curve((times - t[0]) / (t[-1] - t[0])), values.min(), values.max())
        both = [isotonic_regression(raw, increasing=up).x for up in (True, False)]
        return level + size * min(both, key=lambda x: float(np.sum((x - raw) ** 2)))

    return evaluate


def _smoothing_spline_values(
    t: Float[np.ndarray, "time"], y: Float[np.ndarray, "time"]
) -> Float[np.ndarray, "time"]:
    """The cubic smoothing spline at the data, smoothed by generalized cross-validation.

    Reinsch's form: (R + p Q'Q) g = Q'y, x = y - p Q g, with banded matrices. Degrees
    of freedom count 1.4 times in the criterion, which keeps it from following the
    noise of short series. SciPy's `make_smoothing_spline` fails on uneven times
    ("ill-posed"); dense decompositions are slow where BLAS threads share few cores.

    Args:
      t: times from 0 to 1, at least 4, shape [time].
      y: values, shape [time].
    """
    step = np.diff(t)
    before, after = 1 / step[:-1], 1 / step[1:]
    q = np.stack([before, -before - after, after])  # Column j of Q, rows j, j+1, j+2.
    inner = t.size - 2
    gram = np.zeros((3, inner))  # R, upper bands: [2] diagonal, [1] and [0] above it.
    gram[2] = (step[:-1] + step[1:]) / 3
    gram[1, 1:] = step[1:-1] / 6
    rough = np.zeros((3, inner))  # Q'Q likewise.
    rough[2] = (q**2).sum(axis=0)
    rough[1, 1:] = q[1, :-1] * q[0, 1:] + q[2, :-1] * q[1, 1:]
    rough[0, 2:] = q[2, :-2] * q[0, 2:]
    right = q[0] * y[:-2] + q[1] * y[1:-1] + q[2] * y[2:]

    best, smoothed = np.inf, y
    for penalty in t.size * np.geomspace(1e-16, 10.0, 50):
        try:
            factor = cholesky_banded(gram + penalty * rough)
        except np.linalg.LinAlgError:
            continue
        inverse = cho_solve_banded((factor, False), np.eye(inner))
        trace = (rough[2] * inverse.diagonal()).sum()
        for band in (1, 2):
            trace += 2 * (rough[2 - band, band:] * inverse.diagonal(band)).sum()
        curvature = inverse @ right
        residual = np.zeros(t.size)
        for row in range(3):
            residual[row : row + inner] += penalty * q[row] * curvature
        freedom = 1 - 1.4 * (1 - penalty * trace / t.size)
        if freedom > 0.01 and (residual**2).mean() / freedom**2 < best:
            best, smoothed = (residual**2).mean() / freedom**2, y - residual
    return smoothed


@dataclasses.dataclass(frozen=True)
class _Draft:
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


def _exponents(skeleton: Skeleton) -> Bool[np.ndarray, "constants"]:
    """Which constants are exponents of a power."""
    found, index = np.zeros(skeleton.num_constants, bool), 0
    ends = {
        subtree_end(skeleton.tokens, i + 1) for i, t in enumerate(skeleton.tokens) if t == "pow"
    }
    for i, token in enumerate(skeleton.tokens):
        if token in (CONSTANT, NEGATIVE_CONSTANT):
            found[index] = i in ends  # The second argument starts where the first ends.
            index += 1
    return found


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
        if not (np.abs(integrals) < _HUGE).all():
            break
        jacobian = (integrals[1:] - integrals[0]) / step[:, None]  # [varied, time]
        size = np.sqrt((jacobian**2).sum(axis=1))
        if not (size < _HUGE).all():
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
    if not (np.abs(trial) < _HUGE).all():
        return constants, None
    values = evaluate_batch(skeleton, trial, form.nodes)
    with np.errstate(all="ignore"):
        parts = form.integrate(np.concatenate([values[:1], values[1:] - values[:1]]))
    if not (np.abs(parts) < _HUGE).all():  # NaN fails too.
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
    usable = (np.abs(residual) < _FAILED).all() and (np.abs(constants) < _HUGE).all()
    return constants, residual if usable else None


def _integral_score(form: IntegralForm, expression: Expression, floor: float) -> float:
    """Score of a law as it is, by its integral residual."""
    constants = np.array(expression.constants)
    _, residual = _solve_linear(form, expression.skeleton, constants, np.arange(0))
    error = math.inf if residual is None else float(np.sqrt(np.mean(residual**2)))
    return score(expression, error, form.target.size, floor)


def _fit_all_integrals(
    form: IntegralForm,
    laws: Sequence[Expression],
    sources: Sequence[int],
    rng: np.random.Generator,
    report: Callable[[float], None],
    restarted: int = 60,
) -> list[_Draft]:
    """Stage 1 of every skeleton, best first; the best get restarts."""
    groups: dict[str, list[int]] = {}
    for i, law in enumerate(laws):
        groups.setdefault(law.skeleton.unsigned_key, []).append(i)
    drafts = []
    for done, members in enumerate(groups.values()):
        report(0.7 * done / len(groups))
        options = [
            _draft(form, laws[i].skeleton, np.array(laws[i].constants), sources[i])
            for i in members[:2]
        ]
        drafts.append(min(options, key=lambda draft: draft.score))
    drafts.sort(key=lambda draft: draft.score)
    for i, draft in enumerate(drafts[:restarted]):
        report(0.7 + 0.3 * i / restarted)
        if not draft.nonlinear or draft.error < _STAGE1_FLOOR:
            continue
        constants = np.array(draft.expression.constants)
        for _ in range(2):
            # Around the best fit so far, by a factor of 2 or so.
            start = constants * np.exp(0.8 * rng.standard_normal(constants.size))
            again = _draft(form, draft.expression.skeleton, start, draft.source)
            if again.score < draft.score:
                drafts[i] = draft = again
    return sorted(drafts, key=lambda draft: draft.score)


def _draft(
    form: IntegralForm, skeleton: Skeleton, start: Float[np.ndarray, "constants"], source: int
) -> _Draft:
    """Stage 1 from one starting point, with whole and with free exponents."""
    exponents = _exponents(skeleton)
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
        value = score(expression, error, form.target.size, _STAGE1_FLOOR)
        if best is None or value < best.score:
            nonlinear = bool((mask & ~linear_constants(skeleton)).any())
            best = _Draft(expression, error, value, source, nonlinear)
    return best or _Draft(skeleton.with_constants(start), math.inf, math.inf, source, False)


def _canonical(expression: Expression) -> Expression | None:
    """Canonical form, or None where there is none."""
    try:
        return canonicalize(expression)
    except (ExpressionError, TimeLimitExceeded):
        return None


def _canonical_drafts(drafts: Sequence[_Draft], limit: int) -> list[_Draft]:
    """The best drafts in canonical form (signs may have changed), each skeleton once."""
    chosen: dict[str, _Draft] = {}
    for draft in drafts:
        if len(chosen) == limit or not math.isfinite(draft.score):
            break
        expression = _canonical(draft.expression)
        if expression is not None:
            key = expression.skeleton.unsigned_key
            chosen.setdefault(key, dataclasses.replace(draft, expression=expression))
    return list(chosen.values())


# --- stage 2: trajectory matching --------------------------------------------


@dataclasses.dataclass(frozen=True)
class Effort:
    """Relative tolerance and most iterations of a Levenberg-Marquardt fit."""

    tolerance: float
    iterations: int


NO_FIT = Effort(1.0, 0)
ROUGH = Effort(1e-4, 10)
FULL = Effort(1e-9, 30)


def match_trajectory(
    trajectory: Trajectory,
    expression: Expression,
    y0: float,
    source: int = 0,
    *,
    effort: Effort | None = None,
    seconds: float = 2.0,
) -> Fit:
    """Fits constants and initial value so that the solution meets the data.

    Constants that are small whole or half numbers stay as they are.

    Args:
      trajectory: the data.
      expression: the law, constants near enough that it has a solution.
      y0: initial value to start from.
      source: passed on to the fit.
      effort: tolerance and limit of the iterations; `FULL` if left out.
      seconds: CPU time. A stiff or oscillating law may be slow to solve; its fit
        ends here.

    Returns:
      The best fit found; `converged` says whether it met its tolerance.
    """
    effort = effort or FULL
    constants = np.array(expression.constants)
    free = np.array([not is_plain(c) for c in constants], bool)
    t, y = trajectory.t, trajectory.y
    spread = float(y.std()) or 1.0
    scale = np.concatenate([[spread], np.abs(constants[free])])
    atol = 1e-9 * float(np.abs(y).max())
    stop = time.thread_time() + seconds
    best = (math.inf, np.array([y0 / spread]))

    def law(relative: np.ndarray) -> Expression:
        values = constants.copy()
        values[free] = relative[1:] * scale[1:]
        return expression.skeleton.with_constants(values)

    def residual(relative: np.ndarray) -> np.ndarray:
        nonlocal best
        if time.thread_time() > stop:
            raise _OutOfTime
        try:
            solution = solve(law(relative), relative[0] * spread, t, atol=atol)
        except ExpressionError:  # A constant overflowed.
            solution = None
        if solution is None:
            return np.full(y.shape, _FAILED)
        values = np.clip((solution - y) / spread, -_FAILED, _FAILED)
        rms = float(np.sqrt(np.mean(values**2)))
        if rms < best[0]:
            best = rms, relative.copy()
        return values

    start = np.concatenate([[y0], constants[free]]) / scale
    converged = False
    try:
        # The smoothed first value may lie beyond a barrier; the measured one may not.
        for first in (y0, float(y[0])):
            start[0] = first / spread
            residual(start)
            if math.isfinite(best[0]):
                break
        if effort.iterations and math.isfinite(best[0]) and start.size <= y.size:
            # Steps of 1e-5: the solver's own error, 1e-9, must stay well below.
            result = least_squares(
                residual, start, method="lm", x_scale="jac", diff_step=1e-5,
                ftol=effort.tolerance, xtol=effort.tolerance, gtol=1e-12,
                max_nfev=effort.iterations * (start.size + 1),
            )
            converged = result.status > 0
    except _OutOfTime:
        pass
    rms, relative = best
    if not math.isfinite(rms):
        return Fit(expression, y0, math.inf, -math.inf, False, source)
    fitted_y0 = float(relative[0] * spread)
    return Fit(law(relative), fitted_y0, rms * spread, 1 - rms**2, converged, source)


class _OutOfTime(Exception):
    """The fit of one law has used up its time."""


def _polished(trajectory: Trajectory, fit: Fit) -> Fit:
    """The fit continued to full tolerance; never a worse one."""
    again = match_trajectory(trajectory, fit.expression, fit.y0, fit.source)
    return again if again.residual_rms <= fit.residual_rms else fit


# --- clean-up ------------------------------------------------------------------


def _clean_up(
    trajectory: Trajectory,
    form: IntegralForm,
    fits: Sequence[Fit],
    deadline: float,
    *,
    rounds: int = 3,
    parents: int = 6,
    children: int = 8,
) -> list[Fit]:
    """Simpler relatives of the best laws that are worth their loss of fit.

    Each round takes the best laws, shortens each by one step or rounds one
    constant, refits, and keeps what scores no worse than its parent.
    """
    found: list[Fit] = []
    floor = max(residual_floor(trajectory.y), _STAGE1_FLOOR)
    tried = {fit.expression.skeleton.unsigned_key for fit in fits}
    pool = list(fits)
    expanded: set[Prefix] = set()
    for _ in range(rounds):
        values = scores(pool, trajectory)
        order = sorted(range(len(pool)), key=values.__getitem__)[:parents]
        new: list[Fit] = []
        for i in order:
            parent = pool[i]
            out_of_reach = values[i] > values[order[0]] + _margin(trajectory)
            if parent.diverged or out_of_reach or parent.expression.prefix in expanded:
                continue
            expanded.add(parent.expression.prefix)
            for rounded in _rounded(parent.expression):
                if time.thread_time() > deadline:
                    return found
                fit = _match_child(trajectory, rounded, parent, values[i])
                if scores([fit], trajectory)[0] <= values[i]:
                    new.append(fit)
            drafts = []
            for shorter in _shortened(parent.expression):
                key = shorter.skeleton.unsigned_key
                if key not in tried:
                    tried.add(key)
                    constants = np.array(shorter.constants)
                    drafts.append(_draft(form, shorter.skeleton, constants, parent.source))
            # Stage 1 against stage 1: interpolation limits what it can resolve.
            limit = _integral_score(form, parent.expression, floor) + SLACK
            drafts = [
                d for d in sorted(drafts, key=lambda d: d.score)[:children]
                if score(d.expression, d.error, len(trajectory), floor) <= limit
            ]
            for draft in _canonical_drafts(drafts, children):
                if time.thread_time() > deadline:
                    return found
                fit = _match_child(trajectory, draft.expression, parent, values[i])
                if scores([fit], trajectory)[0] <= values[i]:
                    new.append(fit)
        if not new:
            break
        found += new
        pool += new
    return found


SLACK = 30.0
"""Rough fits are estimates: laws may score this much worse and still be tried."""


def _match_child(
    trajectory: Trajectory, expression: Expression, parent: Fit, parent_score: float
) -> Fit:
    """Stage 2 of a simpler law, in full only where it can reach its parent's score."""
    fit = match_trajectory(trajectory, expression, parent.y0, parent.source, effort=ROUGH)
    # On clean data a rough fit is far from the floor, though the law may be exact.
    reach = math.inf if fit.r2 > 1 - 1e-9 else SLACK
    if not fit.diverged and scores([fit], trajectory)[0] <= parent_score + reach:
        fit = _polished(trajectory, fit)
    return fit


def with_coefficients(expression: Expression) -> Expression:
    """The law with a factor before every term that has none: y - c*y**2 gets one.

    The network's units are not the data's, so a factor of 1 means little.
    """
    prefix = expression.prefix

    def walk(start: int, sign: float) -> Prefix:
        token, end = prefix[start], subtree_end(prefix, start)
        if token in ("add", "sub"):
            middle = subtree_end(prefix, start + 1)
            second = -sign if token == "sub" else sign
            return ("add", *walk(start + 1, sign), *walk(middle, second))
        if token == "neg":
            return walk(start + 1, -sign)
        if not isinstance(token, str):
            return (sign * token,)
        head = start
        while prefix[head] in ("mul", "div"):
            head += 1
        if isinstance(prefix[head], str) or prefix[start:head + 1] == ("div", 1.0):
            return ("mul", sign, *prefix[start:end])
        return (*prefix[start:head], sign * prefix[head], *prefix[head + 1:end])

    general = Expression(walk(0, 1.0))
    # A factor of exactly 1 would vanish in the canonical form.
    values = [1.001 * c if abs(c) == 1.0 else c for c in general.constants]
    return _canonical(general.skeleton.with_constants(values)) or expression


def _rounded(expression: Expression) -> Iterator[Expression]:
    """The law with exponents, or nearly whole constants, made whole or half numbers.

    An exponent of 1 or 0 merges terms, as in y**1.00001 - 0.3*y.
    """
    skeleton, constants = expression.skeleton, np.array(expression.constants)
    exponents = _exponents(skeleton)
    near = np.array([not is_plain(c) and abs(c) < 10 for c in constants], bool)
    whole, half = np.round(constants), np.round(2 * constants) / 2
    options = []
    for i in np.flatnonzero(near & exponents):
        options += [(i, value) for value in sorted({whole[i], half[i]})]
    for i in np.flatnonzero(near & ~exponents):
        if 0 < abs(whole[i] - constants[i]) <= 1e-3 and whole[i] != 0:
            options.append((i, whole[i]))
    together = np.where(near & exponents, whole, constants)
    variants = [np.where(np.arange(constants.size) == i, value, constants) for i, value in options]
    if len(options) > 1:
        variants.append(together)
    for values in variants:
        rounded = _canonical(skeleton.with_constants(values))
        if rounded is not None and rounded != expression:
            yield rounded


def _shortened(expression: Expression) -> Iterator[Expression]:
    """Laws with one term, factor, constant or function left out, in canonical form."""
    prefix = expression.prefix
    for start, token in enumerate(prefix):
        operator = OPERATORS.get(token) if isinstance(token, str) else None
        if operator is None:
            continue
        spans, position = [], start + 1
        for _ in range(operator.arity):
            end = subtree_end(prefix, position)
            spans.append(prefix[position:end])
            position = end
        options: list[Prefix] = []
        if operator.arity == 1:
            options = [spans[0]] if token != "neg" else []
        elif token in ("add", "sub"):
            options = [spans[0], spans[1] if token == "add" else ("neg", *spans[1])]
        elif token == "mul":
            options = [_signed(spans[1], spans[0]), _signed(spans[0], spans[1])]
        elif token == "div":
            options = [spans[0]] if spans[0] != (1.0,) else []
            options.append(_signed(("div", 1.0, *spans[1]), spans[0]))
        elif token == "pow":
            options = [spans[0]]
        for option in options:
            shorter = _canonical(Expression((*prefix[:start], *option, *prefix[position:])))
            if shorter is not None and shorter.complexity < expression.complexity:
                yield shorter


def _signed(kept: Prefix, dropped: Prefix) -> Prefix:
    """What stays of a product, with the sign of the constant that goes."""
    negative = not isinstance(dropped[0], str) and dropped[0] < 0
    return ("neg", *kept) if negative else kept
