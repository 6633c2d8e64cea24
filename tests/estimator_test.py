"""The regressor: scikit-learn's own checks, and predictions that mean something."""

import inspect
import math
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import validate_data

from nsode_jax.discovery import estimator
from nsode_jax.discovery.estimator import NSODERegressor
from nsode_jax.discovery.pipeline import DiscoveryError, discover
from nsode_jax.dynamics.trajectory import clean
from nsode_jax.dynamics.vectors import TrajectoryError
from nsode_jax.expressions.expression import Expression
from nsode_jax.reporting.discovery import Discovery
from nsode_jax.results.result import Candidate

T = np.linspace(0.0, 6.0, 25)


def found(law, *trajectories):
    """A stand-in for `discover`: this law, from the first value of each series."""
    candidate = Candidate(
        expression=Expression.from_infix(law),
        y0s=tuple(float(data.y[0]) for data in trajectories),
        start_times=tuple(float(data.t[0]) for data in trajectories),
        r2=1.0,
        residual_rms=0.0,
        score=0.0,
    )
    return Discovery((candidate,), trajectories, (), 0.0)


@pytest.fixture
def finds(monkeypatch):
    """Has `discover` find a given law in any data, and remembers its arguments."""

    def install(law):
        calls = []

        def stand_in(t, y, **options):
            calls.append((t, y, options))
            series = zip(t, y) if isinstance(t, list) else [(t, y)]
            return found(law, *(clean(*pair)[0] for pair in series))

        monkeypatch.setattr(estimator, "discover", stand_in)
        return calls

    return install


# --- scikit-learn's checks -----------------------------------------------------------


class OfFirstColumn(NSODERegressor):
    """The regressor on the first of several columns.

    scikit-learn's checks feed matrices, and skip estimators of one-dimensional input.
    """

    def fit(self, X, y):
        X = validate_data(self, X)
        super().fit(X[:, :1], y)
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X):
        X = validate_data(self, X, reset=False) if hasattr(self, "discovery_") else X
        return super().predict(X[:, 0])

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array, tags.input_tags.two_d_array = False, True
        return tags


@parametrize_with_checks([OfFirstColumn(beams=0, samples=0)])
def test_scikit_learn_checks(estimator, check, monkeypatch):
    """The contract of an estimator; a straight line stands in for the search of laws."""

    def straight_line(t, y, **options):
        data, _ = clean(t, y)
        slope = np.polyfit(data.t, data.y, 1)[0]
        return found(repr(float(slope)), data)

    monkeypatch.setattr("nsode_jax.discovery.estimator.discover", straight_line)
    check(estimator)


def test_tags_are_those_of_one_dimensional_input():
    tags = NSODERegressor().__sklearn_tags__()
    assert tags.input_tags.one_d_array and not tags.input_tags.two_d_array
    assert tags.target_tags.required and not tags.input_tags.allow_nan


def test_parameters_mirror_discover(finds):
    calls = finds("-y")
    given = {"weights": "mine", "effort": "fast", "beams": 3, "samples": 4}
    given |= {"sources": ["library"], "candidates": ["y - y**2"]}
    given |= {"operators": ["exp"], "max_symbols": 7, "robust": True}
    given |= {"zero_at_zero": True, "known": "0.1*y", "named_laws": "none"}
    assert set(given) | {"random_state"} == set(NSODERegressor().get_params())
    NSODERegressor(random_state=5, **given).fit(T, np.exp(-T))
    assert calls[0][2] == given | {"seed": 5, "sigma": None}
    known = inspect.signature(discover).parameters
    assert set(calls[0][2]) == set(known) - {"t", "y", "limits", "progress"}
    for name, value in NSODERegressor().get_params().items():
        assert value == known["seed" if name == "random_state" else name].default


@pytest.mark.parametrize("random_state", [None, np.random.RandomState(3), np.int64(3)])
def test_any_random_state_is_a_seed(finds, random_state):
    calls = finds("-y")
    NSODERegressor(random_state=random_state).fit(T, np.exp(-T))
    assert type(calls[0][2]["seed"]) is int and calls[0][2]["seed"] >= 0


# --- predictions -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def logistic():
    """A real search, on unsorted data in one column."""
    t = np.random.default_rng(0).permutation(T)
    y = 3.0 / (1.0 + 5.0 * np.exp(-1.1 * t))
    model = NSODERegressor(effort="fast", beams=0, samples=0)
    return model.fit(t[:, None], y)


def solution(t):
    return 3.0 / (1.0 + 5.0 * np.exp(-1.1 * np.asarray(t)))


def test_the_law_is_found(logistic):
    assert logistic.expression_ == logistic.discovery_.best.expression
    assert_allclose(
        logistic.expression_.evaluate(np.array([1.0, 2.0])), [1.1 * 2 / 3, 2.2 / 3], rtol=1e-6
    )
    assert logistic.n_features_in_ == 1
    assert logistic.candidates_["formula"][0] == logistic.discovery_.best.rounded().infix
    assert logistic.score(T, solution(T)) > 1 - 1e-9


def test_predictions_at_any_times_in_any_order(logistic):
    t = np.array([9.0, -2.0, 3.3, 0.0, 3.3, -5.0, 40.0])
    assert_allclose(logistic.predict(t), solution(t), rtol=1e-6)
    assert_allclose(logistic.predict(t[:, None]), logistic.predict(t), rtol=0)
    assert_allclose([logistic.predict([time])[0] for time in t], logistic.predict(t), rtol=1e-7)


def test_survives_pickling_and_cloning(logistic):
    again = pickle.loads(pickle.dumps(logistic))
    assert_array_equal(again.predict(T), logistic.predict(T))
    with pytest.raises(NotFittedError):
        clone(logistic).predict(T)


def test_works_in_pipelines_and_cross_validation(finds):
    finds("-0.5*y")
    model = NSODERegressor()
    y = 2.0 * np.exp(-0.5 * T)
    assert cross_val_score(model, T, y, cv=2).shape == (2,)
    hours = make_pipeline(FunctionTransformer(lambda t: t / 60.0), model)
    assert_allclose(
        hours.fit(60.0 * T[:, None], y).predict(np.array([[60.0]])), [2 * math.exp(-0.5)]
    )


def test_beyond_a_blow_up_the_last_value_is_held(finds):
    finds("y**2")
    t = np.linspace(0.0, 0.9, 10)
    model = NSODERegressor().fit(t, 1 / (1 - t))  # Infinite at 1.
    assert_allclose(model.predict([-9.0, 0.95, 0.99]), [0.1, 20.0, 100.0], rtol=1e-5)
    with pytest.warns(UserWarning, match="does not exist at 2 of 3 times"):
        late = model.predict([0.5, 1.5, 700.0])
    assert late[0] == pytest.approx(2.0)
    assert late[1] == late[2] > 100.0
    with pytest.warns(UserWarning, match="does not exist"):
        assert model.predict([50.0]) == late[1]  # The same alone as among others.


def test_before_a_beginning_the_first_value_is_held(finds):
    finds("log(y)")  # It comes from 1, falls to 0 and ends there.
    model = NSODERegressor().fit(np.linspace(2.0, 3.0, 10), np.linspace(0.5, 0.2, 10))
    assert_allclose(model.predict([-100.0]), [1.0])
    with pytest.warns(UserWarning, match="1 of 1 times"):
        assert 0.0 <= model.predict([100.0])[0] < 0.01

    finds("1/y")  # y = sqrt(2 t): begins at 0.
    t = np.linspace(1.0, 3.0, 10)
    model = NSODERegressor().fit(t, np.sqrt(2 * t))
    with pytest.warns(UserWarning, match="1 of 2 times"):
        first, inside = model.predict([-1.0, 0.5])
    assert inside == pytest.approx(1.0)
    assert 0.0 <= first < 0.1


def test_times_that_differ_by_rounding_from_the_first(finds):
    finds("-y")
    t = np.linspace(0.3, 3.0, 10)
    model = NSODERegressor().fit(t, np.exp(-t))
    near = [0.1 * 3, np.nextafter(0.3, 0), np.nextafter(0.3, 1), 1.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_allclose(model.predict(near), np.exp(-np.array(near)), rtol=1e-8)


def test_several_series(finds):
    calls = finds("-0.5*y")
    t = [T, T[:10] + 1.0]
    y = [2.0 * np.exp(-0.5 * T), 7.0 * np.exp(-0.5 * T[:10])]
    model = NSODERegressor().fit(t, y)
    assert len(calls[0][0]) == len(calls[0][1]) == 2
    assert_allclose(model.predict([2.0]), [2.0 * math.exp(-1.0)])
    assert_allclose(model.predict([2.0], trajectory=1), [7.0 * math.exp(-0.5)])
    with pytest.raises(ValueError, match="trajectory must be from 0 to 1, got 2"):
        model.predict([2.0], trajectory=2)
    with pytest.raises(ValueError, match="3 series of times but 2 of values"):
        NSODERegressor().fit([T, T, T], y)
    shared = NSODERegressor().fit(T, [y[0], y[0] + 1.0])
    assert len(shared.discovery_.trajectories) == 2


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_numbers_mean_what_they_show(finds, dtype):
    calls = finds("-0.5*y")
    y = np.array([1.2, 0.905, 0.526, 0.317, 0.2, 0.133, 0.094, 0.071, 0.058])
    t = 0.1 * np.arange(9)
    NSODERegressor().fit(t.astype(dtype)[:, None], y.astype(dtype))
    NSODERegressor().fit([t.astype(dtype)] * 2, [y.astype(dtype)] * 2)
    assert_array_equal(calls[0][1][0], y)
    assert_array_equal(calls[1][1][1], y)
    assert calls[0][0][0].dtype == np.float64


# --- data that tell no law -----------------------------------------------------------------


def test_constant_values():
    with pytest.warns(UserWarning, match="dy/dt = 0 stands in.*do not change"):
        model = NSODERegressor().fit(T, np.full(T.size, 4.0))
    assert model.expression_.infix == "0"
    assert_array_equal(model.predict([-3.0, 100.0]), [4.0, 4.0])
    assert model.discovery_.best.r2 == 1.0
    assert math.isnan(model.discovery_.best.probability)  # It stands in; nothing was compared.
    assert not model.discovery_.best.constants_table()["standard_error"].any()
    assert "stands in" in str(model.discovery_)


def test_too_few_times():
    with pytest.warns(UserWarning, match="3 different times in all; at least 8 are needed"):
        model = NSODERegressor().fit([0, 1, 2, 2], [1.0, 2.0, 2.0, 4.0])
    assert_array_equal(model.predict([5.0]), [2.0])  # Of the averages 1, 2, 3.


def test_points_of_all_series_count_together():
    """As of `discover`: three series of 6 points are 18."""
    t = np.linspace(0.0, 3.0, 6)
    y = [y0 * np.exp(-0.5 * t) for y0 in (1.0, 2.0, 3.0)]
    model = NSODERegressor(effort="fast", sources="named laws").fit([t] * 3, y)
    assert model.expression_.evaluate(2.0) == pytest.approx(-1.0, rel=1e-9)


def test_no_law_found(monkeypatch):
    def fails(*arguments, **options):
        raise DiscoveryError("None of the 3 proposed laws has a solution.")

    monkeypatch.setattr(estimator, "discover", fails)
    with pytest.warns(UserWarning, match="None of the 3 proposed"):
        model = NSODERegressor().fit([T, T], [T, T + 10.0])
    assert_allclose(model.predict(T, trajectory=1), np.full(T.size, 13.0))
    best = model.discovery_.best
    assert best.residual_rms == pytest.approx(T.std())
    both = np.concatenate([T, T + 10.0])
    assert best.r2 == pytest.approx(1 - T.var() / both.var())


def test_unusable_data_are_refused():
    with pytest.raises(ValueError, match="X has 2 features, but NSODERegressor is expecting 1"):
        NSODERegressor().fit(np.ones((20, 2)), T[:20])
    with pytest.raises(ValueError, match="Input t contains NaN"):
        NSODERegressor().fit([*T[1:], math.nan], T)
    with pytest.raises(ValueError, match="Input y contains NaN"):
        NSODERegressor().fit(T, [*T[1:], math.nan])
    with pytest.raises(TrajectoryError, match="too large"):
        NSODERegressor(beams=0, samples=0).fit(T, T * 1e200)


def test_dates_are_refused_rather_than_counted_in_some_unit():
    days = np.datetime64("2026-01-01") + np.arange(20).astype("timedelta64[D]")
    for times in (days, list(days), days - days[0], pd.Series(days), pd.DataFrame({"t": days})):
        with pytest.raises(ValueError, match="takes times as numbers, not dates or durations"):
            NSODERegressor().fit(times, T[:20])


def test_known_errors_of_measurement_are_passed_on():
    rng = np.random.default_rng(0)
    t = np.linspace(0.0, 6.0, 20)
    y = 5 * np.exp(-0.43 * t) + 0.05 * rng.standard_normal(20)
    model = NSODERegressor(effort="fast", sources=("library",))
    for sigma in (0.05, np.full(20, 0.05)):
        found = model.fit(t, y, sigma=sigma).discovery_
        assert found.trajectory.sigma == pytest.approx(0.05)
        assert 0 < found.best.goodness_of_fit <= 1
    with pytest.raises(ValueError, match="20 values but 3"):
        model.fit(t, y, sigma=[0.1, 0.2, 0.3])
