"""Constants that might make a prediction equal to the truth, found in three ways.

Linear least squares where all of them are coefficients, SymPy's `match` (the paper's way),
and a nonlinear fit from several starts. Whether they do is for `structure` to check.
"""

from __future__ import annotations

import collections
import functools
import itertools
from collections.abc import Callable, Iterator

import numpy as np
import sympy
from jaxtyping import Bool, Float

from nsode_jax.expressions.canonical import (
    NotRepresentable,
    TimeLimitExceeded,
    Y,
    time_limit,
)
from nsode_jax.expressions.constants import linear_constants
from nsode_jax.expressions.expression import Expression, Skeleton
from nsode_jax.expressions.operators import CONSTANT, NEGATIVE_CONSTANT, OPERATORS, VARIABLE

_MATCH_SECONDS = 0.5
_EQUAL_RTOL = 1e-10
_FIT_STARTS, _FIT_ITERATIONS = 12, 60
_FROM_PRODUCTS, _MOST_PRODUCTS = 12, 81
"""Starts of constants that are products and ratios of the truth's, and of so many of these."""

_STEP, _LONGEST_STEP = 1e-7, 2.0  # Of the logarithms of constants.
_SOLVED = 1e-22
_HOPELESS = 1e-2
"""Sum of squared relative errors from which on no rounding makes a fit exact."""
_PATIENCE = 12  # Steps in which a start must come nearer by half, or it is given up.
# Both signs, small and large, and no round numbers: those may sit on a pole.
_MAGNITUDES = np.geomspace(0.0317, 21.3, 24)
POINTS = np.concatenate([-_MAGNITUDES[::-1], _MAGNITUDES])


class Target:
    """The truth, with its values on the points of comparison."""

    def __init__(self, expression: Expression):
        self.expression = expression
        values = expression.evaluate(POINTS)
        # Beyond that a double cannot tell terms apart.
        self.usable = ~(np.abs(values) > 1e12)
        self.values = values[self.usable]
        self.points = POINTS[self.usable]
        self.finite: Bool[np.ndarray, " points"] = np.isfinite(self.values)
        typical = np.median(np.abs(self.values[self.finite])) if self.finite.any() else 1.0
        self.tolerance = _EQUAL_RTOL * (np.abs(self.values) + 1e-3 * (typical or 1.0))


@functools.lru_cache(maxsize=16)
def target_of(truth: Expression) -> Target:
    return Target(truth)


def proposals(target: Target, prediction: Expression) -> Iterator[Float[np.ndarray, " constants"]]:
    """Constants that might make the prediction equal to the truth."""
    skeleton = prediction.skeleton
    if skeleton.num_constants == 0:
        yield np.zeros(0)
        return
    if linear_constants(skeleton).all():
        yield from _linear_fit(target, skeleton)
        return
    for constants in _fits(target, prediction):
        yield constants
        whole = np.rint(constants)
        near = np.abs(constants - whole) < 1e-5 * np.maximum(1.0, np.abs(whole))
        # y**2.0000001 is undefined below zero, where y**2 is not.
        yield np.where(near, whole, constants)
    yield from _matches(target.expression, skeleton)


def _linear_fit(target: Target, skeleton: Skeleton) -> Iterator[Float[np.ndarray, " constants"]]:
    """The only constants that can do, where f is linear in all of them."""
    points, values = target.points[target.finite], target.values[target.finite]
    constants = np.array(skeleton.signs, np.float64)

    def evaluate(constants: Float[np.ndarray, " constants"]) -> Float[np.ndarray, " points"]:
        return skeleton.with_constants(constants).evaluate(points)

    with np.errstate(invalid="ignore"):
        first = evaluate(constants)
        doubled = [evaluate(constants + one * constants) for one in np.eye(constants.size)]
        columns = np.stack(doubled, axis=1) - first[:, None]
    usable = np.isfinite(columns).all(axis=1) & np.isfinite(first)
    if usable.sum() < constants.size:
        return
    weights = _EQUAL_RTOL / target.tolerance[target.finite][usable]
    system = columns[usable] * weights[:, None]
    scale = np.linalg.norm(system, axis=0)
    system = system / np.where(scale == 0.0, 1.0, scale)
    # A second step takes back what rounding cost the first.
    factors = np.ones(constants.size)
    for _ in range(2):
        residuals = (values - evaluate(factors * constants))[usable] * weights
        if not np.isfinite(residuals).all():
            return
        change = np.linalg.lstsq(system, residuals, rcond=None)[0]
        factors = factors + change / np.where(scale == 0.0, 1.0, scale)
        if (factors == 0.0).any() or not np.isfinite(factors).all():
            return
    yield factors * constants


def _matches(truth: Expression, skeleton: Skeleton) -> Iterator[Float[np.ndarray, " constants"]]:
    """Constants found by SymPy's `match`, as written and expanded."""
    # Values that do not combine to anything, to be replaced by wildcards.
    signs = skeleton.signs
    markers = [s * (1.0 + (0.6180339887 * (i + 1)) % 1.0) for i, s in enumerate(signs)]
    wildcards = [
        sympy.Wild(f"w{i}", exclude=[Y], properties=[lambda k, s=s: (s * k).is_positive])
        for i, s in enumerate(signs)
    ]
    found: list[dict] = []
    try:
        with time_limit(_MATCH_SECONDS):
            target, marked = _as_sympy(truth), skeleton.with_constants(markers).to_sympy()
            replacements = {}
            for marker, wildcard in zip(markers, wildcards):
                replacements[sympy.Float(marker)] = wildcard
                replacements[sympy.Float(-marker)] = -wildcard  # 1/y**c is y**(-c).
            pattern = marked.xreplace(replacements)
            if not set(wildcards) <= pattern.atoms(sympy.Wild):
                return
            for change in (lambda e: e, sympy.expand):
                changed, wild = change(target), change(pattern)
                match = _same_parts(changed, wild) and changed.match(wild)
                if match:
                    found.append(match)
    except (NotRepresentable, TimeLimitExceeded):
        pass
    except (TypeError, ValueError, ArithmeticError, AttributeError, RecursionError):
        pass  # `match` fails in its own ways on some patterns; the fit comes next.
    for match in found:
        try:
            yield np.array([float(match[wildcard]) for wildcard in wildcards])
        except (KeyError, TypeError):
            continue


@functools.lru_cache(maxsize=16)
def _as_sympy(truth: Expression) -> sympy.Expr:
    return truth.to_sympy()


def _same_parts(expression: sympy.Expr, pattern: sympy.Expr) -> bool:
    """Whether y and each function occur equally often, without which `match` cannot succeed."""

    def count(tree: sympy.Expr) -> collections.Counter:
        parts = (part for part in sympy.preorder_traversal(tree) if part.has(Y))
        return collections.Counter(
            part.func for part in parts if part == Y or isinstance(part, sympy.Function)
        )

    return count(expression) == count(pattern)


def _fits(target: Target, prediction: Expression) -> Iterator[Float[np.ndarray, " constants"]]:
    """Constants found by Levenberg-Marquardt, from several starting points at once.

    First of positive y alone, where a law hardly has a pole, which a fit does not get across.
    """
    starts, positive = _starts(target, prediction), target.finite & (target.points > 0)
    yield from _fits_to(target, positive, prediction.skeleton, starts)
    if (target.finite != positive).any():
        yield from _fits_to(target, target.finite, prediction.skeleton, starts)


def _starts(target: Target, prediction: Expression) -> Float[np.ndarray, "starts constants"]:
    """Logarithms of constants: the prediction's own, the truth's, of products of these, of any."""
    own = np.abs(prediction.constants)
    theirs = np.log([abs(c) for c in target.expression.constants if c] or [1.0])
    powers = itertools.product((0, 1, -1), repeat=theirs.size)
    products = [np.dot(power, theirs) for power in itertools.islice(powers, _MOST_PRODUCTS)]
    random = np.random.default_rng(0)
    starts = random.normal(0.0, 1.0, (_FIT_STARTS, own.size))
    starts[0], starts[1] = np.log(np.where(own == 0.0, 1.0, own)), np.resize(theirs, own.size)
    return np.concatenate([starts, random.choice(products, (_FROM_PRODUCTS, own.size))])


def _fits_to(
    target: Target,
    usable: Bool[np.ndarray, " points"],
    skeleton: Skeleton,
    starts: Float[np.ndarray, "starts constants"],
) -> Iterator[Float[np.ndarray, " constants"]]:
    """Constants with which a prediction is nearly the truth on some of the points."""
    signs = np.array(skeleton.signs, np.float64)
    points, values = target.points[usable], target.values[usable]
    weights = _EQUAL_RTOL / target.tolerance[usable]
    if points.size < signs.size + 2:
        return
    function = _as_function(skeleton)

    def residuals(
        logs: Float[np.ndarray, "starts constants"],
    ) -> Float[np.ndarray, "starts points"]:
        constants = signs * np.exp(np.clip(logs, -30.0, 30.0))
        with np.errstate(all="ignore"):
            error = (function(points, constants.T[:, :, None]) - values) * weights
        return np.clip(np.where(np.isfinite(error), error, 0.0), -1e6, 1e6)

    logs, errors = _levenberg_marquardt(residuals, starts)
    for place in np.argsort(errors):
        found = logs[place]
        if errors[place] > _HOPELESS:
            return
        if np.isfinite(found).all() and np.abs(found).max() < 30.0:
            yield signs * np.exp(found)


def _as_function(skeleton: Skeleton) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """f(y, constants), where `constants[i]` may be an array that y broadcasts with."""
    constant = itertools.count()

    def build(start: int) -> tuple[Callable, int]:
        token = skeleton.tokens[start]
        if token in (CONSTANT, NEGATIVE_CONSTANT):
            place = next(constant)
            return (lambda y, c: c[place]), start + 1
        if token == VARIABLE:
            return (lambda y, c: y), start + 1
        if token not in OPERATORS:
            return (lambda y, c: np.float64(1.0)), start + 1  # The one of 1/x.
        operator, arguments, position = OPERATORS[token], [], start + 1
        for _ in range(operator.arity):
            argument, position = build(position)
            arguments.append(argument)
        return (lambda y, c: operator.numpy(*(a(y, c) for a in arguments))), position

    return build(0)[0]


def _levenberg_marquardt(
    residuals: Callable[[Float[np.ndarray, "starts n"]], Float[np.ndarray, "starts points"]],
    starts: Float[np.ndarray, "starts n"],
) -> tuple[Float[np.ndarray, "starts n"], Float[np.ndarray, " starts"]]:
    """Minimizes the sum of squares from all starts together; SciPy's takes one at a time.

    Returns:
      Where each start led, and the sum of squares there.
    """
    ends, errors = starts.copy(), np.full(len(starts), np.inf)
    alive = np.arange(len(starts))  # Where each of the rows below has started.
    x, n = starts.copy(), starts.shape[1]
    damping = np.full(len(starts), 1e-2)
    at = residuals(x)
    error = (at**2).sum(axis=1)
    history = [error]
    for _ in range(_FIT_ITERATIONS):
        # [starts, n, n] shifted copies --> one call.
        shifted = residuals((x[:, None, :] + _STEP * np.eye(n)).reshape(len(x) * n, n))
        jacobian = (shifted.reshape(len(x), n, -1) - at[:, None, :]) / _STEP
        normal = jacobian @ jacobian.transpose(0, 2, 1)
        diagonal = np.einsum("snn->sn", normal)
        floor = 1e-12 * diagonal.max(axis=1, keepdims=True) + 1e-300
        lifted = damping[:, None] * diagonal + floor
        gradient = np.einsum("snp,sp->sn", jacobian, at)
        step = np.linalg.solve(normal + lifted[:, :, None] * np.eye(n), gradient[:, :, None])
        moved = x - np.clip(step[:, :, 0], -_LONGEST_STEP, _LONGEST_STEP)
        at_moved = residuals(moved)
        error_moved = (at_moved**2).sum(axis=1)
        better = error_moved < error
        x[better], at[better] = moved[better], at_moved[better]
        error = np.where(better, error_moved, error)
        damping = np.clip(np.where(better, 0.1 * damping, 5.0 * damping), 1e-12, 1e8)
        ends[alive], errors[alive] = x, error
        history = [*history[-_PATIENCE:], error]
        stuck = error > 0.5 * history[0] if len(history) > _PATIENCE else np.zeros(len(x), bool)
        if error.min() < _SOLVED or stuck.all():
            break
        if stuck.any():
            alive, x, at, error, damping, *history = (
                values[~stuck] for values in (alive, x, at, error, damping, *history)
            )
    return ends, errors
