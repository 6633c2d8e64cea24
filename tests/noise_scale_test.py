"""Values that span decades: the scale in which their noise is alike, and laws found in it."""

import numpy as np
import pytest

from nsode_jax.discovery.law_search import data_form
from nsode_jax.discovery.own_constants import discover_own_constants
from nsode_jax.discovery.pipeline import discover
from nsode_jax.discovery.series import read_series
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.expression import Expression
from nsode_jax.observed.dataset import Dataset
from nsode_jax.observed.noise_scale import LINEAR, NoiseScale, expected_noise, scale_of
from nsode_jax.reporting.plot import draw_fit, draw_law
from nsode_jax.reporting.text import fit_text

SOURCES = ("named laws", "library")


def _growth(points: int, noise: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Bacteria from 1e3 to 1e9 by dy/dt = 0.9 y - 9e-10 y^2, with relative noise."""
    t = np.linspace(0.0, 24.0, points)
    exact = 1e9 / (1 + (1e9 / 1e3 - 1) * np.exp(-0.9 * t))
    return t, exact * (1 + noise * np.random.default_rng(seed).standard_normal(points))


def _decay(points: int, noise: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Copies of a virus from 1e6 to 25 by dy/dt = 20 - 0.8 y, likewise."""
    t = np.linspace(0.0, 20.0, points)
    exact = 25 + (1e6 - 25) * np.exp(-0.8 * t)
    return t, exact * (1 + noise * np.random.default_rng(seed).standard_normal(points))


@pytest.mark.parametrize("scale", [LINEAR, NoiseScale(0.3, 2.0), NoiseScale(1e-200, 0.1)])
def test_the_scale_and_back(scale):
    y = np.array([-2.0, 1e-3, 0.5, 7e40])
    assert scale.inverse(scale.forward(y)) == pytest.approx(y, rel=1e-9)
    step = 1e-6 * np.abs(y)
    slope = (scale.forward(y + step) - scale.forward(y - step)) / (2 * step)
    assert scale.slope(y) == pytest.approx(slope, rel=1e-6)


def test_the_scale_of_known_noise():
    y = np.geomspace(1e-3, 1e3, 20)
    found = scale_of(y, 0.1 * np.hypot(y, 0.5))
    assert found.level == pytest.approx(0.5, rel=0.3)
    assert found.factor == pytest.approx(10.0, rel=0.2)
    assert scale_of(y, np.ones(20)) is LINEAR
    assert scale_of(y, 1.0 / y) is LINEAR  # Noise that falls as values grow.


@pytest.mark.parametrize("series", [_growth, _decay])
@pytest.mark.parametrize("points", [12, 40])
def test_noise_by_share_is_expected_of_such_values(series, points):
    noise = expected_noise([Trajectory(*series(points, 0.1))])
    y = series(points, 0.0)[1]
    assert noise is not None
    shares = noise / y
    assert shares.max() / shares.min() < 3


@pytest.mark.parametrize("points", [12, 40])
def test_constant_noise_is_expected_where_small_values_scatter_as_large_ones(points):
    t = np.linspace(0.0, 8.0, points)
    for seed in range(10):
        y = 100 * np.exp(-t) + np.random.default_rng(seed).standard_normal(points)
        noise = expected_noise([Trajectory(t, y)])
        assert noise is None or noise.max() < 60 * noise.min()


def test_nothing_is_expected_of_values_of_one_size():
    t = np.linspace(0.0, 5.0, 30)
    y = (5 - 3 * np.exp(-t)) * (1 + 0.1 * np.random.default_rng(0).standard_normal(30))
    assert expected_noise([Trajectory(t, y)]) is None


@pytest.mark.parametrize("points", [30, 400])
def test_forms_tell_the_true_law_from_its_largest_term(points):
    """Of exact values, sparse or dense: 20 in 20 - 0.8 y is nothing beside 1e6."""
    data = Dataset.of([Trajectory(*_decay(points, 0.0))])
    laws = [Expression.from_infix(law) for law in ("20 - 0.8*y", "-0.8*y")]
    form = data_form(data.with_noise(expected_noise(data.trajectories)))
    right, wrong = (form.residual(law) for law in laws)
    assert right < 1e-3 < 0.1 < wrong


@pytest.mark.parametrize(
    ("series", "law"), [(_growth, "0.9*y - 9e-10*y**2"), (_decay, "20 - 0.8*y")]
)
def test_the_law_is_found_by_all_decades(series, law):
    found = discover(*series(16, 0.1), effort="fast", sources=SOURCES)
    truth = Expression.from_infix(law)
    y = np.geomspace(series(2, 0.0)[1].min(), series(2, 0.0)[1].max(), 9)[1:-1]
    assert found.best.expression.evaluate(y) == pytest.approx(truth.evaluate(y), rel=0.15)
    assert any("span decades" in note for note in found.notes)


def test_a_logarithm_is_no_difference_of_huge_powers():
    """8778*y - 8773*y**1.00003 is one over all decades, and fits as well."""
    t = np.linspace(0.0, 20.0, 30)
    y = 1e9 * 1e-7 ** np.exp(-0.25 * t)
    y *= 1 + 0.1 * np.random.default_rng(0).standard_normal(30)
    found = discover(t, y, effort="fast", sources=SOURCES)
    assert str(found.best.name).startswith("Gompertz")


@pytest.mark.parametrize("decades", [8, 40])
def test_exact_values_are_solved_exactly_over_all_decades(decades):
    """What feeds the growth is seen in the smallest values alone; the largest are 1e40."""
    t = np.linspace(0.0, decades / 10, 400)
    y = 0.42 * np.exp(24.3 * t) - 0.065
    found = discover(t, y, effort="fast", sources=SOURCES)
    assert found.best.expression.constants == pytest.approx([24.3, 24.3 * 0.065], rel=1e-6)
    assert found.best.residual_rms < 1e-7


def test_series_with_constants_of_their_own():
    """Of a known law, whose constants constant noise would leave to the largest values."""
    t = np.linspace(0.0, 24.0, 15)
    rates, rng = (0.6, 0.9, 1.2), np.random.default_rng(3)
    series = [1e9 / (1 + 999_999 * np.exp(-rate * t)) for rate in rates]
    noisy = [y * (1 + 0.1 * rng.standard_normal(t.size)) for y in series]
    found = discover_own_constants([t] * 3, noisy, law="r*y*(1 - y/K)")
    assert found.best.constants[:, 0] == pytest.approx(rates, rel=0.05)
    assert any("span decades" in note for note in found.notes)
    figure = found.plot()
    assert {axes.get_yscale() for axes in figure.axes if axes.get_visible()} == {"log"}


def test_known_errors_are_not_judged_anew():
    t, y = _growth(12, 0.1)
    assert expected_noise([Trajectory(t, y, sigma=1.0)]) is None
    assert expected_noise([Trajectory(t, y, noise=y / y.mean())]) is None


def test_the_result_speaks_of_shares():
    found = discover(*_growth(16, 0.1), effort="fast", sources=SOURCES)
    share = float(fit_text(found).split("residual ")[1].split(" of each value")[0])
    assert 0.04 < share < 0.2
    advice = found.next_measurement()
    assert advice is None or advice.difference < 100  # Times the noise, of values of 1e9 too.
    from matplotlib.figure import Figure

    axes, law = Figure().subplots(2)
    draw_fit(axes, found, "t", "y")
    assert axes.get_yscale() == "log"
    draw_law(law, found, "t", "y")
    assert law.get_xscale() == "log"


def test_single_values_beside_averages_are_no_scale_of_noise():
    """A million points of a decay that is soon over: the few large values are single ones."""
    t = np.linspace(0.0, 1000.0, 1_000_000)
    (series,), _ = read_series(t, 1 + 100 * np.exp(-t))
    assert series.noise.max() > 10 * series.noise.min()
    assert Dataset.of([series]).noise_scale == LINEAR
