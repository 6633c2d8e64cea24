"""Known errors of measurement: chi-squared, constants with the errors that follow, weights."""

import numpy as np
import pytest
from scipy import stats

from nsode_jax.console.scalar import as_given
from nsode_jax.discovery.measurement_errors import judged_by_their_errors
from nsode_jax.discovery.own_constants import discover_own_constants
from nsode_jax.discovery.pipeline import discover
from nsode_jax.discovery.series import read_series, thin
from nsode_jax.discovery.weighting import Weighting, weighting
from nsode_jax.dynamics.limits import Limits
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.dynamics.vectors import TrajectoryError
from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting.fit import Origin
from nsode_jax.fitting.trajectory_fitting import covariance, fit_trajectories
from nsode_jax.observed.dataset import Dataset
from nsode_jax.observed.integral import integral_form
from nsode_jax.observed.noise_scale import expected_noise
from nsode_jax.residuals.censored import censored_misfit
from nsode_jax.residuals.goodness import chi_squared, goodness_of_fit
from nsode_jax.results.persistence import load, save
from nsode_jax.selection.score import independent_share, score
from nsode_jax.tables.table import read_measurements

T = np.linspace(0.0, 12.0, 25)
R, K, Y0 = 0.63, 9.7, 0.83
LAW = Expression.from_infix("0.6*y - 0.06*y**2")
TRUTH = K / (1 + (K / Y0 - 1) * np.exp(-R * T))
UNEVEN = 0.03 + 0.06 * TRUTH


def logistic(errors, seed):
    """The values, measured with these errors."""
    return TRUTH + errors * np.random.default_rng(seed).standard_normal(T.size)


def fitted(y, sigma, law=LAW):
    (series,), _ = read_series(T, y, sigma)
    data = Dataset.of([series])
    return data, fit_trajectories(data, law, (y[0],), Origin("test"))


@pytest.fixture(scope="module")
def many():
    """Sixty series with errors that grow, fitted with these known."""
    return [fitted(logistic(UNEVEN, seed), UNEVEN) for seed in range(60)]


def test_goodness_of_fit_of_the_right_law_is_uniform(many):
    assert stats.kstest([goodness_of_fit(*each) for each in many], "uniform").pvalue > 0.01


def test_the_constants_are_within_their_intervals_at_the_stated_rate(many):
    inside = 0
    for data, fit in many:
        errors = np.sqrt(np.diag(covariance(data, fit)))
        fixed = np.array(fit.expression.constants)[errors > 0] - (R, -R / K)
        inside += int((np.abs(fixed) <= 1.96 * errors[errors > 0]).sum())
    assert 0.88 <= inside / 120 <= 0.99


def test_a_wrong_law_does_not_fit():
    decay = Expression.from_infix("4.7 - 0.5*y")
    chances = [goodness_of_fit(*fitted(logistic(0.2, seed), 0.2, decay)) for seed in range(5)]
    assert max(chances) < 1e-6


def test_weighing_by_the_errors_beats_ignoring_them(many):
    ignored = [fitted(logistic(UNEVEN, seed), None) for seed in range(60)]
    known, unknown = (
        np.sqrt(np.mean([(fit.expression.constants[0] - R) ** 2 for _, fit in fits]))
        for fits in (many, ignored)
    )
    assert known < 0.7 * unknown


def test_the_scale_of_the_errors_is_that_of_the_constants():
    """Not that of the residuals: of four times the errors, four times the standard errors."""
    y = logistic(0.2, 0)
    one, four = (covariance(*fitted(y, sigma)) for sigma in (0.2, 0.8))
    np.testing.assert_allclose(four, 16 * one, rtol=1e-6)


def test_chi_squared_is_the_sum_of_standardized_squares():
    data, fit = fitted(logistic(UNEVEN, 3), UNEVEN)
    found = chi_squared(data, fit)
    left = (fit_solution(fit) - data.y) / UNEVEN
    assert found.value == pytest.approx(float(left @ left), rel=1e-6)
    assert found.freedom == T.size - 3


def fit_solution(fit):
    r, c = fit.expression.constants[0], abs(fit.expression.constants[1])
    k = r / c
    return k / (1 + (k / fit.y0s[0] - 1) * np.exp(-r * T))


# --- the score -------------------------------------------------------------------


def test_what_is_better_than_expected_counts_as_chi_squared():
    """And what is much worse by the logarithm, as if errors were unknown; without a step."""
    data, _ = fitted(logistic(0.2, 0), 0.2)
    form = integral_form(data)
    assert form.sigma == pytest.approx(0.2 / data.spread)

    def misfit(ratio):
        plain = Expression.from_infix("y")
        return score(plain, ratio * form.sigma, form) - score(plain, 0.0, form)

    n = T.size
    assert misfit(0.5) == pytest.approx(0.25 * n, rel=1e-6)
    assert misfit(40.0) - misfit(10.0) == pytest.approx((n - 1) * np.log(16.0), rel=1e-3)
    ratios = np.linspace(0.8, 1.3, 200)
    assert 0 < np.diff([misfit(ratio) for ratio in ratios]).max() < 0.5


def test_observations_that_errors_account_for_count_in_full():
    drift = 0.2 * np.sin(T / 2)
    data, fit = fitted(TRUTH + drift, 0.2)
    unknown, same = fitted(TRUTH + drift, None)
    assert independent_share([fit], data) == 1.0
    assert independent_share([same], unknown) < 0.7


# --- what is given ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("sigma", "words"),
    [
        (0.0, "must be positive"),
        (-0.1, "must be positive"),
        (np.inf, "positive and finite; got inf"),
        (np.nan, "is not a number"),
        ("wide", "real numbers"),
        (np.full(24, 0.1), "25 values but 24 measurement errors"),
        (np.full((25, 2), 0.1), "shape (25, 2)"),
        (np.where(np.arange(25) == 3, 0.0, 0.1), "got 0 in 1 row (first: row 4)"),
    ],
)
def test_errors_that_are_none_are_refused(sigma, words):
    with pytest.raises(TrajectoryError) as refused:
        read_series(T, TRUTH, sigma)
    assert words in str(refused.value) and "\n" not in str(refused.value)


def test_a_row_without_an_error_is_dropped():
    sigma = np.full(25, 0.1)
    sigma[[4, 9]] = np.nan
    (series,), (note,) = read_series(T, TRUTH, sigma)
    assert len(series) == 23 and "2 of 25 rows dropped" in note and "measurement error" in note
    assert series.noise is None and series.sigma == pytest.approx(0.1)


def test_a_repeated_time_is_averaged_by_the_errors():
    t, y = np.append(T, T[-1]), np.append(TRUTH, TRUTH[-1] + 1.0)
    (series,), _ = read_series(t, y, np.append(np.full(25, 0.1), 0.2))
    assert series.y[-1] == pytest.approx(TRUTH[-1] + 0.2)
    assert series.errors[-1] == pytest.approx(0.1 * np.sqrt(0.8))
    np.testing.assert_allclose(series.errors[:-1], 0.1)


def test_long_series_keep_the_errors_of_their_averages():
    t = np.linspace(0.0, 10.0, 24_000)
    errors = 0.02 * (1 + t)
    rng = np.random.default_rng(0)
    y = np.exp(-0.3 * t) + errors * rng.standard_normal(t.size)
    short, _ = thin(Trajectory(t, y).with_errors(errors, 0.05), 1200)
    left = (short.y - np.exp(-0.3 * short.t)) / short.errors
    assert 0.93 < left.std() < 1.07


@pytest.mark.parametrize("sigma", [0.2, [0.2, 0.2], [np.full(25, 0.2), 0.2]])
def test_several_series_share_one_scale(sigma):
    series, _ = read_series([T, T], [TRUTH, TRUTH + 1], sigma)
    assert [one.sigma for one in series] == [pytest.approx(0.2)] * 2
    series, _ = read_series([T, T], [TRUTH, TRUTH + 1], [0.1, 0.3])
    assert series[0].sigma == series[1].sigma
    for one, errors in zip(series, (0.1, 0.3), strict=True):
        np.testing.assert_allclose(one.errors, errors)


def test_errors_of_several_series_are_refused_in_the_wrong_number():
    with pytest.raises(TrajectoryError, match="2 series of values but 3"):
        read_series([T, T], [TRUTH, TRUTH + 1], [0.1, 0.2, 0.3])
    with pytest.raises(TrajectoryError, match="some series and not for others"):
        read_series([T, T], [TRUTH, TRUTH + 1], [0.1, None])


def test_errors_finer_than_solutions_only_weigh():
    (series,), _ = read_series(T, TRUTH, 1e-9 * UNEVEN)
    data, (note,) = judged_by_their_errors(Dataset.of([series]))
    assert data.sigma is None and data.weights.std() > 0 and "finer" in note


def test_a_limit_is_as_hard_as_the_errors_say():
    (series,), _ = read_series(T, TRUTH, 0.2)
    limits = (Limits(np.array([12.0]), np.array([TRUTH[-1] - 0.2]), np.array([True])),)
    data = Dataset.of([series], limits)
    fit = fit_trajectories(data, LAW, (Y0,), Origin("test"))
    assert censored_misfit(fit, data) == pytest.approx(-2 * stats.norm.logcdf(-1.0), rel=1e-3)


# --- what stands for many ----------------------------------------------------------


def decay(t, seed=0):
    """With noise of 0.3 in each value."""
    t = np.asarray(t)
    return 1 + 10 * np.exp(-t) + 0.3 * np.random.default_rng(seed).standard_normal(t.size)


def noise_of_one(series):
    """Of deviations from the true decay, each by the noise that its value is said to have."""
    return float(np.std((series.y - 1 - 10 * np.exp(-series.t)) * series.weights))


def test_averages_of_a_long_series_count_by_what_they_are_averages_of():
    """Not as the single points that stand where it changes fast."""
    t = np.linspace(0.0, 1000.0, 100_000)
    (series,), _ = read_series(t, decay(t))
    assert series.sigma is None and np.mean(series.weights**2) == pytest.approx(1.0)
    raw = series.noise > 0.9 * series.noise.max()
    parts = [Trajectory(series.t[of], series.y[of], series.noise[of]) for of in (raw, ~raw)]
    assert min(map(len, parts)) > 50
    assert noise_of_one(parts[0]) == pytest.approx(noise_of_one(parts[1]), rel=0.25)


def test_nothing_is_said_of_growing_noise_or_outliers_where_only_averages_differ():
    t = np.linspace(0.0, 1000.0, 100_000)
    short = np.linspace(0.0, 4.0, 24)
    for times in ([t], [t[:60_000] / 150, short]):
        series, _ = read_series(times, [decay(one, seed) for seed, one in enumerate(times)])
        data = Dataset.of(series)
        law = Expression.from_infix("0.98 - 1.01*y")
        fit = fit_trajectories(data, law, [11.0] * len(series), Origin("test"))
        assert weighting(data, [(fit, 0.0)], False, [0.0, 0.0]) == Weighting(None, ())
        robust = weighting(data, [(fit, 0.0)], True, [0.0, 0.0]).noise * data.weights
        assert robust.max() < 2.5 and np.mean(robust == 1.0) > 0.7


def test_series_of_averages_and_of_single_values_share_one_scale():
    t, short = np.linspace(0.0, 4.0, 60_000), np.linspace(0.0, 4.0, 240)
    series, _ = read_series([t, short], [decay(t), decay(short, 1)])
    assert noise_of_one(series[0]) == pytest.approx(noise_of_one(series[1]), rel=0.25)
    assert np.mean(np.concatenate([one.weights for one in series]) ** 2) == pytest.approx(1.0)


def test_a_mean_of_repeated_times_counts_as_often_as_it_was_measured():
    t = np.append(T, np.full(40, T[-1]))
    y = np.append(TRUTH, np.full(40, TRUTH[-1] + 0.41))
    (series,), _ = read_series(t, y)
    assert series.y[-1] == pytest.approx(TRUTH[-1] + 0.4)
    assert series.sigma is None and np.mean(series.weights**2) == pytest.approx(1.0)
    np.testing.assert_allclose(series.weights[-1] / series.weights[:-1], np.sqrt(41))
    both, _ = read_series([t, T], [y, TRUTH])
    assert both[1].noise[0] == both[0].noise[0] == pytest.approx(np.sqrt(41) * both[0].noise[-1])


def test_noise_that_grows_does_so_beside_what_values_are_means_of():
    """Of values that span decades, before a law is known, and of others, by their law."""
    random = np.random.default_rng(0)
    t, number = np.linspace(0.0, 9.0, 80), np.where(np.arange(80) % 2, 9, 1)
    for rate, noise_of in ((1.5, None), (0.3, weighting)):
        y = 1e5 * np.exp(-rate * t) * (1 + 0.1 * random.standard_normal(80) / np.sqrt(number))
        (series,), _ = read_series(np.repeat(t, number), np.repeat(y, number))
        if noise_of is None:
            noise = expected_noise([series])
        else:
            data, law = Dataset.of([series]), Expression.from_infix("-0.29*y")
            fit = fit_trajectories(data, law, [1e5], Origin("test"))
            noise = noise_of(data, [(fit, 0.0)], False, [0.0]).noise
        expected = np.exp(-rate * t) / np.sqrt(number)
        assert np.std(np.log(noise / expected)) < 0.2
        assert np.mean(noise**-2.0) == pytest.approx(1.0)


@pytest.mark.parametrize("grows", [False, True])
def test_series_with_constants_of_their_own_keep_what_values_are_means_of(grows):
    t, number = np.linspace(0.0, 3.0, 24), np.where(np.arange(24) % 2, 9, 1)
    random, series = np.random.default_rng(0), []
    for rate in np.linspace(0.6, 1.4, 12):
        y = 20 * np.exp(-rate * t)
        noise = 0.1 * random.standard_normal(24) / np.sqrt(number)
        series.append(np.repeat(y + noise * (y if grows else 4.0), number))
    found = discover_own_constants([np.repeat(t, number)] * 12, series, law="-k*y")
    assert any("grows with the values" in note for note in found.notes) == grows
    size = np.exp(-0.6 * t) if grows else 1.0
    ratios = found.trajectories[0].weights / np.sqrt(number) * size
    assert np.log(ratios).std() < 0.2


def test_a_file_tells_how_often_values_were_measured(tmp_path):
    rows = [f"{t},{y}" for t, y in zip(T, TRUTH, strict=True)]
    (tmp_path / "data.csv").write_text("\n".join(["t,y", *rows, *[f"{T[-1]},9.6"] * 8]))
    (read,) = read_measurements(tmp_path / "data.csv").trajectories
    (series,), _ = read_series(*as_given([read]))
    np.testing.assert_allclose(series.weights[-1] / series.weights[:-1], 3.0)


# --- discovery ---------------------------------------------------------------------


def run(y, **options):
    return discover(T, y, effort="fast", sources=("library",), max_symbols=11, **options)


@pytest.fixture(scope="module")
def known():
    return run(logistic(0.2, 1), sigma=0.2)


def test_a_discovery_states_its_goodness_of_fit(known, tmp_path):
    best = known.best
    left = (best.predict(T) - logistic(0.2, 1)) / 0.2
    numbers = sum(error > 0 for error in best.standard_errors)
    expected = stats.chi2.sf(left @ left, T.size - numbers - 1)
    assert best.goodness_of_fit == pytest.approx(expected, rel=1e-3)
    assert f"goodness of fit {best.goodness_of_fit:.1%}" in str(known)
    assert not any("measurement errors" in note for note in known.notes)
    save(known, tmp_path / "law.json")
    again = load(tmp_path / "law.json")
    assert again.best.goodness_of_fit == best.goodness_of_fit
    assert again.trajectories[0].sigma == known.trajectories[0].sigma == pytest.approx(0.2)


def test_errors_that_are_too_small_or_too_large_are_told_of():
    small, large = (run(logistic(0.2, 1), sigma=sigma) for sigma in (0.05, 0.8))
    assert small.best.goodness_of_fit < 0.01 < 0.99 < large.best.goodness_of_fit
    assert any("do not account for the data" in note for note in small.notes)
    assert any("seem too large" in note for note in large.notes)


def test_without_known_errors_nothing_is_stated():
    found = run(logistic(0.2, 1))
    assert np.isnan(found.best.goodness_of_fit) and "goodness" not in str(found)


def test_an_outlier_is_named_by_the_known_errors_and_robust_fits_resist_it():
    y = logistic(0.1, 2)
    y[18] += 2.0
    plain, robust = run(y, sigma=0.1), run(y, sigma=0.1, robust=True)
    for found in (plain, robust):
        (note,) = [note for note in found.notes if "far from the law" in note]
        assert f"{y[18]:.6g} at t = 9" in note
    assert np.isnan(robust.best.goodness_of_fit)
    (series,) = robust.trajectories
    assert series.noise.argmax() == 18 and series.noise[18] > 3
    errors = [np.abs(found.best.predict(T) - TRUTH).max() for found in (robust, plain)]
    assert errors[0] < errors[1]
