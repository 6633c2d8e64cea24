"""Problems drawn from the prior: laws, constants, initial values and noise.

On them it is known how often a stated probability is right, and on them constants of the
score may be chosen: they are no test set.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

import numpy as np
from jaxtyping import Float

from nsode_jax.dynamics import dop853
from nsode_jax.dynamics.stack_machine import Program
from nsode_jax.expressions.canonical import canonicalize
from nsode_jax.expressions.expression import Expression, ExpressionError
from nsode_jax.expressions.operators import (
    CONSTANT,
    NEGATIVE_CONSTANT,
    OPERATORS,
    VARIABLE,
)
from nsode_jax.observed.scaling import AffineView
from nsode_jax.selection.catalogue import Catalogue
from nsode_jax.selection.form import form_of
from nsode_jax.selection.prior import OperatorModel, Prior

NOISES = (0.0, 0.01, 0.02, 0.05, 0.1)
"""Standard deviation of the noise, relative to that of the values."""

LENGTHS = (10, 20, 40, 100)
"""Numbers of observations."""

NAMED, LEFT_OUT, OTHER = "named", "left out", "other"
KINDS = (NAMED, LEFT_OUT, OTHER)
"""Where the law is from: the catalogue, a field of it that the prior is not given, or the
model of operators."""

CYCLE = len(KINDS) * len(NOISES) * len(LENGTHS)
"""So many problems have each of them once."""

_MOST_TOKENS = 13
_TOLERANCE = 1e-10
_LEAST_SPREAD = 0.05
_LEAST_CHANGE, _SHARE_CHANGING = 0.01, 0.3
_LONGEST = 20.0
_LARGEST_JUMP = 0.5
_MOST_STEPS = 2000


@dataclasses.dataclass(frozen=True, eq=False)
class Simulated:
    """A series whose law is known.

    Attributes:
      seed: that gave it.
      kind: one of `KINDS`.
      field: of science, that the prior is not to be given; "" for none.
      law: the true f, in the units of t and y.
      noise: relative to the standard deviation of the values.
      t, y: the observations, shape [time].
    """

    seed: int
    kind: str
    field: str
    law: Expression
    noise: float
    t: Float[np.ndarray, " time"]
    y: Float[np.ndarray, " time"]

    def catalogue(self) -> Catalogue:
        """The named laws that the search may know."""
        known = Catalogue.load()
        return known.without_fields(self.field) if self.field else known


def simulate(seed: int) -> Simulated:
    """The problem of a seed: kinds, noises and lengths take turns, the rest is random."""
    rng = np.random.default_rng((17, seed))
    kind = KINDS[seed % len(KINDS)]
    noise = NOISES[seed // len(KINDS) % len(NOISES)]
    length = LENGTHS[seed // (len(KINDS) * len(NOISES)) % len(LENGTHS)]
    for law, field in _laws(kind, rng):
        found = _observed(law, length, rng)
        if found is None:
            continue
        t, y, law = found
        y = y + noise * y.std() * rng.standard_normal(length)
        return Simulated(seed, kind, field if kind == LEFT_OUT else "", law, noise, t, y)
    raise AssertionError("there are always more laws")


def _laws(kind: str, rng: np.random.Generator) -> Iterator[tuple[Expression, str]]:
    """Random laws of a kind, with their field, in units in which they are of size 1."""
    catalogue, operators = Catalogue.load(), Prior.load().operators
    weights = np.array([law.frequency for law in catalogue.laws])
    while True:
        if kind == OTHER:
            law = _random_law(operators, rng)
            if law is not None:
                yield law, ""
            continue
        entry = catalogue.laws[rng.choice(len(weights), p=weights / weights.sum())]
        yield entry.formula.with_values(entry.draw(rng)), entry.field


def _random_law(operators: OperatorModel, rng: np.random.Generator) -> Expression | None:
    """A draw from the model of operators; None if it is too long, or no law of y."""
    form = operators.draw(rng, _MOST_TOKENS)
    if form is None or VARIABLE not in form:
        return None
    try:
        return canonicalize(Expression(tuple(_with_number(token, rng) for token in form)))
    except ExpressionError:
        return None


def _with_number(token: str, rng: np.random.Generator) -> str | float:
    """A token of a form as one of an expression; a constant gets a random size."""
    if token in (CONSTANT, NEGATIVE_CONSTANT):
        return float(np.exp(rng.normal())) * (1.0 if token == CONSTANT else -1.0)
    return token if token == VARIABLE or token in OPERATORS else float(token)


def _observed(
    law: Expression, length: int, rng: np.random.Generator
) -> tuple[Float[np.ndarray, " time"], Float[np.ndarray, " time"], Expression] | None:
    """Exact values at even times and the law, in random units; None if little happens."""
    y0 = float(np.exp(rng.normal()))
    rate = abs(float(law.evaluate(y0)))
    if not 1e-6 < rate < 1e6:
        return None
    duration = abs(y0) / rate * math.exp(rng.uniform(math.log(0.5), math.log(_LONGEST)))
    t = np.linspace(0.0, duration, length)
    try:
        program = Program.from_expression(law)
    except ExpressionError:
        return None
    atol = _TOLERANCE * abs(y0)
    y = dop853.integrate(
        program, np.array([y0]), t, rtol=_TOLERANCE, atol=atol, max_steps=_MOST_STEPS
    ).y[0]
    if not np.isfinite(y).all():
        return None
    span, changes = np.ptp(y), np.abs(np.diff(y))
    changing = np.mean(changes > _LEAST_CHANGE * span)
    if y.std() < _LEAST_SPREAD * np.abs(y).max() or changing < _SHARE_CHANGING:
        return None
    if changes.max() > _LARGEST_JUMP * span:
        return None
    value, time = float(np.exp(rng.uniform(-2.0, 7.0))), float(np.exp(rng.uniform(-3.0, 3.0)))
    try:
        told = AffineView(0.0, time, 0.0, value).restore(law)
        if form_of(told) != form_of(law):  # Of an angle the unit is not arbitrary.
            value, told = 1.0, AffineView(0.0, time, 0.0, 1.0).restore(law)
    except ExpressionError:
        return None
    return t * time, y * value, told
