"""Operon: genetic programming in C++ whose constants are fitted by Levenberg-Marquardt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from nsode_jax.expressions.expression import Expression, ExpressionError, Prefix
from nsode_jax.expressions.operators import VARIABLE, VARIABLES

_FUNCTIONS = ("add", "sub", "mul", "div", "pow", "sin", "cos", "exp", "sqrt", "log")
_TOKENS = {name.capitalize(): name for name in _FUNCTIONS}

_RESOLUTION = 1e-6


def operon_front(
    y: Float[np.ndarray, " time"] | Float[np.ndarray, "time variables"],
    slope: Float[np.ndarray, " time"],
    seed: int,
    max_evaluations: int = 250_000,
    names: tuple[str, ...] = VARIABLES,
) -> list[Expression]:
    """The Pareto front of R^2 and length, shortest first.

    Args:
      y: values, shape [time]; of several variables [time, variables].
      slope: dy/dt there, shape [time].
      seed: of the evolution.
      max_evaluations: of candidates, those of the local search included; the default
        takes a few seconds.
      names: of the variables.

    Raises:
      ImportError: if PyOperon is missing.
    """
    from pyoperon.sklearn import SymbolicRegressor

    regressor = SymbolicRegressor(
        allowed_symbols=",".join((*_FUNCTIONS, "constant", "variable")),
        objectives=["r2", "length"],
        optimizer_iterations=5,
        population_size=500,
        max_length=30,
        max_evaluations=max_evaluations,
        n_threads=1,  # Evaluation runs several problems side by side.
        random_state=seed,
    )
    regressor.fit(y.reshape(slope.size, -1), slope)
    variables = dict(zip(regressor.variables_, names, strict=True))
    laws = []
    for model in regressor.pareto_front_:
        try:
            laws.append(
                without_rounding(to_expression(model["tree"], variables), np.abs(slope).max())
            )
        except ExpressionError:  # A constant that is not finite.
            continue
    return laws


def without_rounding(expression: Expression, size: float) -> Expression:
    """The expression without an intercept that is rounding: Operon adds one to every model.

    Args:
      expression: as `to_expression` gives it.
      size: the largest value that was fitted; Operon computes in single precision.
    """
    match expression.prefix:
        case ("add", float(intercept), *rest) if abs(intercept) < _RESOLUTION * size:
            return Expression(tuple(rest), expression.variables)
    return expression


def to_expression(tree: Any, variables: Mapping[int, str] | None = None) -> Expression:
    """The expression of one of Operon's trees.

    Args:
      tree: as its models have it.
      variables: names of the variables by Operon's hashes, in their order; all are y by
        default.

    Raises:
      ExpressionError: if a constant of it is not finite.
    """
    nodes = tree.Nodes  # Postfix, each operator preceded by its first argument.

    def subtree(root: int) -> Prefix:
        node = nodes[root]
        if node.IsVariable:  # Every variable carries a factor.
            name = VARIABLE if variables is None else variables[node.HashValue]
            return ("mul", float(node.Value), name)
        if node.IsConstant:
            return (float(node.Value),)
        prefix: Prefix = (_TOKENS[node.Type.name],)
        child = root - 1
        for _ in range(node.Arity):
            prefix += subtree(child)
            child -= nodes[child].Length + 1
        return prefix

    names = VARIABLES if variables is None else tuple(variables.values())
    return Expression(subtree(len(nodes) - 1), names)
