"""A lag phase before a common law is told of, and hardly ever where there is none."""

import numpy as np
import pytest

from nsode_jax.discovery.lag import lag_phase
from nsode_jax.discovery.law_search import data_form
from nsode_jax.discovery.pipeline import discover
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting.fit import Origin
from nsode_jax.fitting.trajectory_fitting import fit_trajectories
from nsode_jax.observed.dataset import Dataset

LOGISTIC = Expression.from_infix("0.6*y - 0.06*y**2")
BENT = Expression.from_infix("4.6*y**2/(y**2 + 6.5) - 0.43*y")
"""What the search finds for logistic growth after a lag."""


def growth(n, seed, lag, noise=0.1):
    t = np.linspace(0.0, 12.0, n)
    y = 9.7 / (1 + (9.7 / 0.83 - 1) * np.exp(-0.63 * np.maximum(t - lag, 0.0)))
    return t, y + noise * np.random.default_rng((n, seed)).standard_normal(n)


def looked_for(*series, law):
    data = Dataset.of([Trajectory(t, y) for t, y in series])
    fit = fit_trajectories(data, law, [y[0] for _, y in series], Origin("test"))
    return lag_phase(data, data_form(data), fit)


def test_it_is_found_though_the_best_law_bends_to_it():
    for seed in range(4):
        found = looked_for(growth(40, seed, 3.2), law=BENT)
        assert found is not None and 2.4 < found.until < 3.6
        assert found.later == pytest.approx(found.until + 12 / 39)
        rate, decline = found.fit.expression.constants[:2]
        assert (rate, -rate / decline) == (
            pytest.approx(0.63, abs=0.06),
            pytest.approx(9.7, abs=0.4),
        )


def test_replicates_lag_together():
    found = looked_for(*[growth(20, seed, 3.2) for seed in range(3)], law=BENT)
    assert found is not None and 2.4 < found.until < 3.8 and found.count % 3 == 0


def test_without_a_lag_none_is_found():
    for n in (10, 15, 25, 50, 100):
        for seed in range(4):
            assert looked_for(growth(n, seed, 0.0), law=LOGISTIC) is None


def test_clean_data_do_not_ask():
    assert looked_for(growth(40, 0, 0.0, noise=1e-9), law=LOGISTIC) is None


@pytest.mark.parametrize("unit", [1.0, 1e6])
def test_a_discovery_names_the_lag_the_law_and_the_option(unit):
    """In the units of the data and on the clock of the file."""
    t, y = growth(40, 1, 3.2)
    found = discover(
        1900.0 + t, unit * y, effort="fast", sources=("library",), max_symbols=12, seed=1
    )
    (note,) = [note for note in found.notes if "lag phase" in note.lower()]
    at = float(note.split("--from ")[1].split()[0])
    assert 1902.4 < at < 1904.0 and np.isclose(1900.0 + t, at, rtol=1e-9).any()
    law = Expression.from_infix(note.split("dy/dt = ")[1].split(",")[0])
    assert law.evaluate(4.0 * unit) == pytest.approx(unit * 0.63 * 4 * (1 - 4 / 9.7), rel=0.1)
