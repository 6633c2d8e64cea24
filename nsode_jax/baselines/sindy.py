"""SINDy: sparse linear combinations of given functions, fitted by PySINDy."""

from __future__ import annotations

import itertools
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float

from nsode_jax.expressions.expression import Expression
from nsode_jax.expressions.operators import VARIABLES
from nsode_jax.expressions.prefix import joined, times

THRESHOLDS = tuple(np.logspace(-5, 0, 10))
"""Coefficients below these are set to zero (paper, appendix E)."""

ALPHAS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2)
"""Ridge penalties (paper, appendix E)."""

ORDERS = (2, 3, 5, 7, 9)
"""Of finite differences (paper, appendix E)."""

FUNCTIONS = ("sin", "cos", "exp", "sqrt", "log")
"""Those of the paper, beside the powers of y."""

# Every iteration but the last removes a term, and there are at most 16: the paper's
# other choice, 100, gives the same.
_MAX_ITERATIONS = 20

_LARGEST = 1e8
"""Beside columns of larger values, least squares in float64 does not see the others."""


def sparse_laws(
    y: Float[np.ndarray, " time"] | Float[np.ndarray, "time variables"],
    slope: Float[np.ndarray, " time"],
    degrees: Sequence[int],
    thresholds: Sequence[float] = THRESHOLDS,
    alphas: Sequence[float] = ALPHAS,
    functions: Sequence[str] = FUNCTIONS,
    names: tuple[str, ...] = VARIABLES,
) -> list[Expression]:
    """A law for every setting, many of them equal.

    Values and slopes are computed once, and PySINDy's optimizer is called on them, which
    is what its `SINDy.fit` comes to; that would compute them anew for every setting.

    Args:
      y: values, shape [time]; of several variables [time, variables].
      slope: what the laws give there, dy/dt, shape [time].
      degrees: of the polynomials to try, of all variables together.
      thresholds, alphas: settings of the optimizer.
      functions: of a variable; polynomials are tried with and without them.
      names: of the variables.

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
        for degree, added in itertools.product(degrees, ((), functions)):
            terms, features = library(y.reshape(slope.size, -1), degree, added, names)
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
    values: Float[np.ndarray, "time variables"],
    degree: int,
    functions: Sequence[str],
    names: tuple[str, ...] = VARIABLES,
) -> tuple[list[Expression], Float[np.ndarray, "time terms"]]:
    """The monomials up to `degree` and functions of one variable, each with its values.

    Those that are undefined or too large somewhere on the data are left out, as in the
    paper, which removed a function where it broke the fit.
    """
    powers = (
        Counter(chosen)
        for total in range(1, degree + 1)
        for chosen in itertools.combinations_with_replacement(names, total)
    )
    monomials = ("*".join(f"{name}**{power}" for name, power in one.items()) for one in powers)
    of_one = (f"{function}({name})" for function in functions for name in names)
    terms, columns = [], []
    for text in ("1", *monomials, *of_one):
        term = Expression.from_infix(text, names)
        column = term.evaluate(*values.T)
        if (np.abs(column) < _LARGEST).all():
            terms.append(term)
            columns.append(column)
    return terms, np.stack(columns, axis=1)


def _combination(
    coefficients: Float[np.ndarray, " terms"], terms: Sequence[Expression]
) -> Expression:
    pairs = zip(coefficients.tolist(), terms, strict=True)
    return Expression(
        joined("add", (times(c, term.prefix) for c, term in pairs if c)), terms[0].variables
    )
