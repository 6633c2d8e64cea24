"""Values of which only a limit is known: a law must not contradict them."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from nsode_jax.discovery.pipeline import discover
from nsode_jax.dynamics.limits import Limits
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting.fit import Fit, Origin
from nsode_jax.observed.dataset import Dataset
from nsode_jax.reporting.plot import plot
from nsode_jax.residuals.censored import censored_misfit
from nsode_jax.results.persistence import load

T = np.linspace(2.0, 5.0, 12)
SERIES = Trajectory(T, 1.5 * np.exp(-(T - 2.0)))


def _misfit(law: str, *limits: tuple[float, float, bool], rms: float = 0.05) -> float:
    data = Dataset.of([SERIES], [Limits(*map(np.array, zip(*limits)))])
    return censored_misfit(
        Fit(Expression.from_infix(law), (1.5,), rms, 0.9, True, Origin("test")), data
    )


def test_it_is_the_likelihood_of_being_on_the_side_of_the_limit():
    for t, limit, below in ((6.0, 0.1, True), (8.0, 0.01, False)):
        room = (limit - 1.5 * math.exp(2.0 - t)) / 0.05 * (1 if below else -1)
        expected = -2 * float(norm.logcdf(room))
        assert _misfit("-y", (t, limit, below)) == pytest.approx(expected, rel=1e-6)


def test_a_contradiction_costs_and_agreement_does_not():
    assert _misfit("-y", (9.0, 0.1, True)) < 0.1
    assert _misfit("0.5 - y", (9.0, 0.1, True)) > 60
    assert _misfit("0.5 - y", (9.0, 0.1, False)) < 1e-6
    both = ((9.0, 0.1, True), (12.0, 0.1, True))
    assert _misfit("0.5 - y", *both) == pytest.approx(2 * _misfit("0.5 - y", both[1]), rel=0.01)


def test_what_tells_nothing_costs_nothing():
    assert _misfit("0.5 - y", (1.0, 0.1, True), (9.0, math.nan, True)) == 0.0
    assert censored_misfit(
        Fit(Expression.from_infix("y"), (1.5,), math.inf, -math.inf, False, Origin("test")),
        Dataset.of([SERIES], [Limits(np.array([9.0]), np.array([0.1]), np.array([True]))]),
    ) == 0.0  # fmt: skip


def test_a_law_that_ends_before_a_limit_contradicts_it():
    assert _misfit("-1/y", (9.0, 0.1, True)) > 1e5


def test_limits_between_and_at_the_times_of_the_data_count():
    assert _misfit("0.5 - y", (2.0, 0.1, True), (3.3, 0.1, True)) > 400


def test_noise_at_a_limit_is_that_of_values_of_its_size():
    """Of exponential growth measured to 10%: a law 2% short of a limit is a fifth of sigma off."""
    t = np.linspace(0.0, 12.0, 49)
    y = 3.0 * np.exp(t)
    noise = y / np.sqrt(1 / np.mean(y**-2.0))  # The mean of 1 / square is 1.
    limit = Limits(np.array([13.0]), np.array([1.02 * 3.0 * np.exp(13.0)]), np.array([False]))
    data = Dataset((Trajectory(t, y, noise),), (limit,))
    rms = 0.1 * 3.0 / noise[0]
    fit = Fit(Expression.from_infix("y"), (3.0,), rms, 1.0, True, Origin(""))
    assert censored_misfit(fit, data) == pytest.approx(-2 * norm.logcdf(-0.2 / 1.02), rel=0.03)


def test_limits_need_a_side_each():
    with pytest.raises(ValueError, match="as many"):
        Limits(np.array([1.0]), np.array([0.1, 0.2]), np.array([True]))


@pytest.mark.parametrize(("unit", "unit_of_time"), [(1.0, 1.0), (1e6, 1e-4)])
def test_limits_decide_between_laws(unit, unit_of_time):
    """In few noisy values a decay to zero and one to 0.2 are alike; "<0.1" tells them apart."""
    t = np.linspace(0.0, 1.5, 10)
    y = 1.5 * np.exp(-1.3 * t) + 0.03 * np.random.default_rng(3).standard_normal(10)
    limits = Limits(
        unit_of_time * np.array([5.0, 6.0, 8.0]), unit * np.full(3, 0.02), np.full(3, True)
    )
    told = []
    for known in ((), (limits,)):
        own = f"{0.15 * unit / unit_of_time} - {1.5 / unit_of_time}*y"
        found = discover(
            unit_of_time * t,
            unit * y,
            effort="fast",
            sources=("library",),
            candidates=[own],
            limits=known,
        )
        (rest,) = (c for c in found.candidates if c.origin == "user")
        told.append((rest.probability, rest.predict([8.0 * unit_of_time])[0] / unit))
    assert told[0][1] > 0.05  # It rests above the limit, ...
    assert told[1][0] < 0.7 * told[0][0]  # ... which makes it less probable.


def test_each_series_has_its_limits():
    with pytest.raises(ValueError, match="2 limits for 1 series"):
        discover(SERIES.t, SERIES.y, sources=("library",), limits=[Limits([], [], [])] * 2)


def test_they_are_kept_in_the_result_and_drawn(tmp_path):
    limits = Limits([6.0, 6.5, 7.0, 1.0], [0.1, 0.1, np.nan, 2.0], [True, True, True, False])
    found = discover(
        SERIES.t, SERIES.y, effort="fast", sources=("library",), limits=[limits], candidates=["-y"]
    )
    found.save(tmp_path / "found.json")
    (kept,) = load(tmp_path / "found.json").limits
    for name in ("t", "limit", "below"):
        np.testing.assert_array_equal(getattr(kept, name), getattr(limits, name))

    axes = plot(found).axes[0]
    drawn = {line.get_label(): line.get_xydata().tolist() for line in axes.lines}
    assert drawn["value is below"] == [[6.0, 0.1], [6.5, 0.1]]
    assert drawn["value is above"] == [[1.0, 2.0]]
    assert axes.get_ylim()[1] > 2.0
    (solution,) = (line for line in axes.lines if line.get_label().startswith("best law"))
    assert solution.get_xdata().max() == 7.0
