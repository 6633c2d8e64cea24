"""How well constants are known beside such as compensate each other."""

import numpy as np
import pytest
from solved import logistic

from nsode_jax.discovery import discover

T = np.linspace(0.0, 12.0, 25)


@pytest.fixture(scope="module")
def series():
    """Four logistic series of different rates and capacities."""
    rng = np.random.default_rng(3)
    constants = [(0.6, 1.2), (0.9, 1.5), (1.2, 0.9), (0.8, 1.1)]
    return [logistic(T, r, k, 0.1) + 0.02 * rng.normal(size=T.size) for r, k in constants]


def of(found, name):
    """Values, standard errors and what is said of one constant."""
    place = found.best.names.index(name)
    said = {one.name: str(one) for one in found.best.compared()}[name]
    return found.best.constants[:, place], found.best.standard_errors[:, place], said


def test_a_pair_that_compensates_leaves_the_others_known(series):
    values = [1e6 * y for y in series]
    pair = discover(T, values, constants="own", law="a*b*y*(1 - y/K) + 0*z")
    right = discover(T, values, constants="own", law="r*y*(1 - y/K)")
    for name in ("a", "b", "z"):
        _, errors, said = of(pair, name)
        assert np.isnan(errors).all() and "data of no series determine it" in said
    capacities, errors, said = of(pair, "K")
    expected, expected_errors, expected_said = of(right, "K")
    assert capacities == pytest.approx(expected, rel=1e-4)
    # Constants that nothing determines take degrees of freedom all the same: 20 of 22.
    assert errors == pytest.approx(expected_errors * np.sqrt(22 / 20), rel=1e-3)
    assert "differs between the series" in said and "differs between the series" in expected_said


@pytest.mark.parametrize("shared", [["a"], ["a", "K"]])
def test_so_it_does_where_one_of_the_pair_is_shared(series, shared):
    pair = discover(T, series, constants="own", law="a*b*y*(1 - y/K)", shared=shared)
    right = discover(T, series, constants="own", law="r*y*(1 - y/K)", shared=shared[1:])
    for name in ("a", "b"):
        assert np.isnan(of(pair, name)[1]).all()
    assert of(pair, "K")[0] == pytest.approx(of(right, "K")[0], rel=1e-4)
    assert of(pair, "K")[1] == pytest.approx(of(right, "K")[1], rel=0.06)


def test_a_shared_constant_is_known_beside_a_pair_of_each_series():
    rng = np.random.default_rng(1)
    values = [logistic(T, r, 1.2, 0.1) + 0.02 * rng.normal(size=T.size) for r in (0.5, 0.8)]
    pair = discover(T, values, constants="own", law="a*b*y*(1 - y/K)", shared=["K"])
    right = discover(T, values, constants="own", law="r*y*(1 - y/K)", shared=["K"])
    assert np.isnan(of(pair, "a")[1]).all() and np.isnan(of(pair, "b")[1]).all()
    assert of(pair, "K")[1] == pytest.approx(of(right, "K")[1], rel=0.06)
    values, errors, said = of(pair, "K")
    assert (np.abs(values - 1.2) < 4 * errors).all() and said.startswith("K = 1.19")
