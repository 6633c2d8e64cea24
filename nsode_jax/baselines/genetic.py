"""gplearn: genetic programming without fitted constants.

Its operators are protected: they return something for every argument. A program is
written with ours as it acts on the data; elsewhere the two may differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from nsode_jax.expressions.expression import Expression, ExpressionError, Prefix
from nsode_jax.expressions.operators import VARIABLE

PARSIMONY = (0.0005, 0.001, 0.01, 0.05, 0.1, 0.2, 0.5, "auto")
"""Penalties of length (paper, appendix E)."""

_CONSTANT_RANGE = (-10.0, 10.0)
_GUARD = 0.001
"""gplearn's: division by less gives 1, the logarithm of less 0."""

_RTOL = 1e-6
_WORST_FITNESS = -1.0

Values = Float[np.ndarray, " time"]


def evolved_programs(
    y: Values,
    slope: Values,
    seed: int,
    parsimony: Sequence[float | str] = PARSIMONY,
    population_size: int = 1000,
    generations: int = 20,
) -> Iterator[Expression]:
    """The programs of the last generation of all runs, those of the highest R^2 first.

    Left out are programs that cannot be written with our operators on these data.

    Args:
      y: values, shape [time].
      slope: dy/dt there, shape [time].
      seed: of the runs.
      parsimony: one run for each penalty of length.
      population_size, generations: gplearn's defaults.

    Raises:
      ImportError: if gplearn is missing.
    """
    from gplearn.fitness import make_fitness
    from gplearn.functions import make_function
    from gplearn.genetic import SymbolicRegressor

    power = make_function(function=protected_power, name="pow", arity=2, wrap=False)
    programs = []
    for penalty in parsimony:
        regressor = SymbolicRegressor(
            population_size=population_size,
            generations=generations,
            stopping_criteria=1.0,  # The default, 0, is reached at once where more is better.
            const_range=_CONSTANT_RANGE,
            function_set=("add", "sub", "mul", "div", "sin", "cos", "sqrt", "log", "neg", power),
            metric=make_fitness(function=fitness, greater_is_better=True, wrap=False),
            parsimony_coefficient=penalty,
            random_state=seed,
        )
        with np.errstate(all="ignore"):
            regressor.fit(y[:, None], slope)
        programs += regressor._programs[-1]
    programs.sort(key=lambda program: -program.raw_fitness_)
    for program in programs:
        with np.errstate(all="ignore"):
            expression = as_expression(program, y)
        if expression is not None:
            yield expression


def fitness(slope: Values, prediction: Values, weight: Values) -> float:
    """R^2, but at least -1: gplearn's automatic penalty is a covariance with it."""
    with np.errstate(over="ignore"):
        error = float(np.sum(weight * (slope - prediction) ** 2))
    total = float(np.sum(weight * (slope - np.average(slope, weights=weight)) ** 2))
    score = 1.0 - error / total if total else _WORST_FITNESS
    return max(score, _WORST_FITNESS) if np.isfinite(score) else _WORST_FITNESS


def protected_power(base: Values, exponent: Values) -> Values:
    """|base|^exponent, and 1 where that is not finite."""
    with np.errstate(all="ignore"):
        power = np.power(np.abs(base, dtype=np.float64), exponent)
    return np.where(np.isfinite(power), power, 1.0)


def as_expression(program: Any, y: Values) -> Expression | None:
    """A program in our operators, or None if no expression takes its values on the data.

    Args:
      program: of gplearn, in prefix order: functions, numbers, and 0 for y.
      y: the data, shape [time].
    """
    prefix, _, _ = _translate(program.program, 0, y)
    try:
        expression = Expression(prefix)
    except ExpressionError:
        return None
    values = np.asarray(program.execute(y[:, None]), np.float64)
    close = np.abs(expression.evaluate(y) - values) <= _RTOL * np.abs(values).max()
    return expression if close.all() else None


def _translate(program: Sequence[Any], start: int, y: Values) -> tuple[Prefix, Values, int]:
    """Prefix and values of the subtree at `start`, and the index after it."""
    node = program[start]
    if isinstance(node, (int, np.integer)):
        return (VARIABLE,), y, start + 1
    if not hasattr(node, "arity"):
        return (float(node),), np.full(y.shape, float(node)), start + 1
    arguments, values, position = [], [], start + 1
    for _ in range(node.arity):
        prefix, value, position = _translate(program, position, y)
        arguments.append(prefix)
        values.append(value)
    return _call(node.name, arguments, values), node(*values), position


def _call(name: str, arguments: Sequence[Prefix], values: Sequence[Values]) -> Prefix:
    """A protected operator in ours, given its arguments and their values on the data."""
    first, last = arguments[0], arguments[-1]
    small = (np.abs(values[-1]) <= _GUARD).all()
    if name == "div" and small:
        return (1.0,)
    if name == "log" and small:
        return (0.0,)
    if name in ("sqrt", "log", "pow") and (values[0] < 0).any():
        first = ("sqrt", "pow", *first, 2.0)  # The absolute value.
    if len(arguments) == 1:
        return (name, *first)
    return (name, *first, *last)
