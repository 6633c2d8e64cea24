"""SINDy: sparse linear combinations of given functions, fitted by PySINDy."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float

from nsode_jax.expressions.expression import Expression

THRESHOLDS = tuple(np.logspace(-5, 0, 10))
"""Coefficients below these are set to zero (paper, appendix E)."""

ALPHAS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2)
"""Ridge penalties (paper, appendix E)."""

ORDERS = (2, 3, 5, 7, 9)
"""Of finite differences (paper, appendix E)."""

_FUNCTIONS = ("sin(y)", "cos(y)", "exp(y)", "sqrt(y)", "log(y)")

# Every iteration but the last removes a term, and there are at most 16: the paper's
# other choice, 100, gives the same.
_MAX_ITERATIONS = 20

_LARGEST = 1e8
"""Beside columns of larger values, least squares in float64 does not see the others."""


def sparse_laws(
    y: Float[np.ndarray, " time"],
    slope: Float[np.ndarray, " time"],
    degrees: Sequence[int],
    thresholds: Sequence[float] = THRESHOLDS,
    alphas: Sequence[float] = ALPHAS,
) -> list[Expression]:
    """A law for every setting, many of them equal.

    Values and slopes are computed once, and PySINDy's optimizer is called on them, which
    is what its `SINDy.fit` comes to; that would compute them anew for every setting.

    Args:
      y: values, shape [time].
      slope: dy/dt there, shape [time].
      degrees: highest powers of y to try.
      thresholds, alphas: settings of the optimizer.

    Raises:
      ImportError: if PySINDy is missing.
    """
    from pysindy.optimizers import STLSQ
    from sklearn import config_context

    laws = []
    # Its checks of arguments and values take longer than the fits.
    fast = config_context(assume_finite=True, skip_parameter_validation=True)
    with fast, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Where nothing is above the threshold.
        for degree, functions in itertools.product(degrees, ((), _FUNCTIONS)):
            terms, features = library(y, degree, functions)
            for threshold, alpha in itertools.product(thresholds, alphas):
                optimizer = STLSQ(threshold, alpha, _MAX_ITERATIONS)
                coefficients = optimizer.fit(features, slope).coef_[0]
                if coefficients.any():
                    laws.append(_combination(coefficients, terms))
    return laws


def finite_differences(
    t: Float[np.ndarray, " time"], y: Float[np.ndarray, " time"]
) -> Iterator[Float[np.ndarray, " time"]]:
    """PySINDy's estimates of dy/dt, one for each of `ORDERS` that the series is long enough for.

    Raises:
      ImportError: if PySINDy is missing.
    """
    from pysindy.differentiation import FiniteDifference

    for order in ORDERS:
        if t.size > order + 1:
            yield np.asarray(FiniteDifference(order=order)(y, t))


def library(
    y: Float[np.ndarray, " time"], degree: int, functions: Sequence[str]
) -> tuple[list[Expression], Float[np.ndarray, "time terms"]]:
    """The powers of y up to `degree` and the functions, each with its values.

    Those that are undefined or too large somewhere on the data are left out, as in the
    paper, which removed a function where it broke the fit.
    """
    terms, columns = [], []
    for text in ("1", *(f"y**{power}" for power in range(1, degree + 1)), *functions):
        term = Expression.from_infix(text)
        values = term.evaluate(y)
        if (np.abs(values) < _LARGEST).all():
            terms.append(term)
            columns.append(values)
    return terms, np.stack(columns, axis=1)


def _combination(
    coefficients: Float[np.ndarray, " terms"], terms: Sequence[Expression]
) -> Expression:
    prefix: tuple[str | float, ...] = ()
    for coefficient, term in zip(coefficients.tolist(), terms):
        if coefficient:
            product = ("mul", coefficient, *term.prefix)
            prefix = ("add", *prefix, *product) if prefix else product
    return Expression(prefix)
