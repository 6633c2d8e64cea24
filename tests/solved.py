"""Laws with their solutions, exact and ours, for tests of solving, fitting and search."""

import numpy as np

from nsode_jax.dynamics.solve import solve
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.canonical import canonicalize
from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting.fit import Origin
from nsode_jax.fitting.guesses import initial_guesses
from nsode_jax.fitting.least_squares import fit_laws
from nsode_jax.observed.dataset import Dataset
from nsode_jax.observed.integral import integral_form
from nsode_jax.observed.regression import Regression
from nsode_jax.search.population import Population, draft_laws
from nsode_jax.search.sources import Proposal

CLOSED_FORMS = [
    ("-0.7*y", 2.0, lambda t: 2.0 * np.exp(-0.7 * t)),
    ("3", -1.0, lambda t: -1.0 + 3.0 * t),
    ("2.4*y - 0.6*y**2", 0.5, lambda t: 4 / (1 + 7 * np.exp(-2.4 * t))),
    ("-y**2", 1.0, lambda t: 1 / (1 + t)),
    ("1/y", 1.0, lambda t: np.sqrt(1 + 2 * t)),
    ("cos(y)", 0.0, lambda t: 2 * np.arctan(np.tanh(t / 2))),
    ("exp(-y)", 0.0, lambda t: np.log(1 + t)),
    ("sqrt(y)", 1.0, lambda t: (1 + t / 2) ** 2),
]
"""Laws, initial values and solutions."""

# Laws with their initial value and the end of the observation.
LAWS = {
    "logistic": ("1.3*y - 0.7*y**2", 0.1, 4.0),
    "linear": ("2.5 - 0.8*y", 0.1, 5.0),
    "sqrt": ("1.7*sqrt(y) - 0.6*y", 0.3, 6.0),
    "sin": ("1.3*sin(1.7*y)", 0.1, 4.0),
    "gompertz": ("-0.37*y*log(0.21*y)", 0.1, 6.0),
    "decay": ("-0.7*y", -2.0, 4.0),
}


def canonical_law(text: str) -> Expression:
    return canonicalize(Expression.from_infix(text))


def laws(variables, *texts: str) -> list[Expression]:
    """Of these variables, as they are written."""
    return [Expression.from_infix(text, tuple(variables)) for text in texts]


def logistic(t, r=1.0, capacity=2.0, y0=0.1):
    """Logistic growth by its closed form."""
    return capacity / (1 + (capacity / y0 - 1) * np.exp(-r * t))


def solved(text: str, y0: float, end: float, points: int = 100) -> Trajectory:
    t = np.linspace(0.0, end, points)
    return Trajectory(t, solve(canonical_law(text), y0, t, rtol=1e-11, atol=1e-11))


def solved_law(name: str, points: int = 60, y0: float | None = None) -> Trajectory:
    """The solution of one of `LAWS`."""
    text, first, end = LAWS[name]
    return solved(text, first if y0 is None else y0, end, points)


def form_of(*series: Trajectory) -> Regression:
    return integral_form(Dataset.of(series))


def fitted_laws(form: Regression, *texts: str) -> list[tuple[Expression, float]]:
    """Each law with fitted constants, and its error."""
    guesses = [initial_guesses(canonical_law(text))[0] for text in texts]
    constants, errors = fit_laws(form, guesses)
    return [
        (guess.expression.skeleton.with_constants(values), error)
        for guess, values, error in zip(guesses, constants, errors, strict=True)
    ]


def population_of(form: Regression, *texts: str) -> Population:
    population = Population(form)
    proposals = [Proposal(canonical_law(text), Origin(text)) for text in texts]
    population.add(draft_laws(form, proposals))
    return population
