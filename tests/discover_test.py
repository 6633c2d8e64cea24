import functools
import math

import numpy as np
import pytest
from scipy.signal import lfilter

from nsode_jax.discovery.pipeline import (
    DiscoveryError,
    discover,
)
from nsode_jax.discovery.series import MAX_POINTS, read_series, thin
from nsode_jax.dynamics.solve import solve
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.dynamics.vectors import TrajectoryError
from nsode_jax.expressions.canonical import canonicalize
from nsode_jax.expressions.constants import exponent_constants, structure
from nsode_jax.expressions.expression import Expression, ExpressionError
from nsode_jax.expressions.operators import VARIABLE
from nsode_jax.expressions.sampling import EquationPrior, sample_expression
from nsode_jax.fitting import trajectory_fitting
from nsode_jax.fitting.fit import Origin
from nsode_jax.fitting.trajectory_fitting import covariance, fit_trajectories
from nsode_jax.observed.dataset import Dataset
from nsode_jax.results.result import Candidate
from nsode_jax.search.network import NetworkSource
from nsode_jax.search.sources import Proposal, Proposals
from nsode_jax.selection.form import form_of
from nsode_jax.selection.probabilities import unseen_probability

# Growth of a yeast culture, measured hourly (Carlson, 1913), in arbitrary units.
YEAST_TIME = np.arange(19.0)
YEAST = np.array([
    9.6, 18.3, 29.0, 47.2, 71.1, 119.1, 174.6, 257.3, 350.7, 441.0, 513.3, 559.7, 594.8, 629.4,
    640.8, 651.1, 655.9, 659.6, 661.8,
])  # fmt: skip


class _Proposer:
    """Stands in for the network: the given laws among random ones, for every view."""

    def __init__(self, laws=(), num_random=0):
        self._laws = [canonicalize(Expression.from_infix(law)) for law in laws]
        self._num_random = num_random
        self.seen = []

    def propose(self, trajectories, *, beams, samples, seed):
        self.seen += trajectories
        rng = np.random.default_rng(seed)
        laws = []
        while len(laws) < self._num_random:
            try:
                law = canonicalize(sample_expression(EquationPrior(), rng))
            except ExpressionError:
                continue
            if VARIABLE in law.prefix:
                laws.append(law)
        laws = laws[: len(laws) // 2] + self._laws + laws[len(laws) // 2 :]
        return [[(law, -1.0 - i) for i, law in enumerate(laws)] for _ in trajectories]


def _with(proposer) -> list:
    """The usual sources with something else in place of the network."""
    return [NetworkSource(proposer=proposer), "library"]


_quick = functools.partial(discover, effort="fast")


@pytest.fixture(scope="module")
def yeast():
    return discover(YEAST_TIME, YEAST, sources=_with(_Proposer(["2.7*y - 0.6*y**2.3"], 100)))


def test_yeast_grows_logistically(yeast):
    best = yeast.best
    assert best.expression.skeleton.key == "add mul -c pow y c mul c y"
    slope, exponent, rate = best.expression.constants
    assert exponent == 2.0
    assert 0.50 < rate < 0.58
    assert 640 < -rate / slope < 690
    assert best.r2 > 0.99
    assert best.converged
    assert yeast.seconds > 0


def test_candidates_are_distinct_and_ordered(yeast):
    scores = [candidate.score for candidate in yeast.candidates]
    assert scores == sorted(scores)
    structures = [structure(candidate.expression) for candidate in yeast.candidates]
    assert len(set(structures)) == len(structures) > 20


def test_candidate_in_other_forms(yeast):
    best = yeast.best
    f = best.expression.evaluate(300.0)
    assert Expression.from_infix(best.infix) == best.expression
    assert float(best.to_sympy().subs("y", 300.0)) == pytest.approx(f)
    assert "y^{2}" in best.latex()
    assert best.complexity == 9


def test_prediction_of_the_data_and_beyond(yeast):
    best = yeast.best
    fitted = best.predict(YEAST_TIME)
    assert fitted[0] == best.y0
    r2 = 1 - np.sum((fitted - YEAST) ** 2) / np.sum((YEAST - YEAST.mean()) ** 2)
    assert r2 == pytest.approx(best.r2, abs=1e-9)
    np.testing.assert_allclose(best.predict([5.0, 9.5]), best.predict([0, 5.0, 9.5])[1:], rtol=1e-6)
    assert best.predict([100.0])[0] == pytest.approx(best.predict([0.0, 100.0])[1])
    # Autonomous: with an initial value of one's own, any time is the first.
    np.testing.assert_allclose(
        best.predict([-5.0, -4.0], y0=50.0), best.predict([7.0, 8.0], y0=50.0), rtol=1e-6
    )


def test_impossible_predictions_are_refused(yeast):
    with pytest.raises(ValueError, match="before the data"):
        yeast.best.predict([-1.0, 2.0])
    with pytest.raises(ValueError, match="increasing"):
        yeast.best.predict([2.0, 1.0])


def test_prediction_is_nan_after_blow_up():
    square = Candidate(Expression.from_infix("y**2"), (1.0,), (0.0,), 1.0, 0.0, 0.0)
    t = np.linspace(0.0, 2.0, 21)
    y = square.predict(t)
    np.testing.assert_allclose(y[:10], 1 / (1 - t[:10]), rtol=1e-6)
    assert np.isnan(y[11:]).all()
    outside = Candidate(Expression.from_infix("log(y)"), (-1.0,), (0.0,), 1.0, 0.0, 0.0)
    assert np.isnan(outside.predict(t)[1:]).all()


@pytest.mark.parametrize("value_unit", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("time_unit", [1e-3, 1.0, 1e6])
def test_units_do_not_matter(value_unit, time_unit):
    t = np.linspace(0.0, 4.0, 50)
    y = solve(Expression.from_infix("1.3*y - 0.7*y**2"), 0.1, t, rtol=1e-11, atol=1e-11)
    laws = ["2*y - 0.3*y**2", "1 - y", "0.8*sin(1.2*y)", "-y*log(0.5*y)"]
    found = _quick(t * time_unit + 3 * time_unit, y * value_unit, sources=_with(_Proposer(laws)))
    assert found.best.expression.skeleton.key == "add mul -c pow y c mul c y"
    expected = (-0.7 / time_unit / value_unit, 2.0, 1.3 / time_unit)
    np.testing.assert_allclose(found.best.expression.constants, expected, rtol=1e-5)


def test_the_network_sees_values_in_its_range():
    proposer = _Proposer(["y - y**2"])
    _quick(YEAST_TIME * 3600, YEAST * 1e3, sources=_with(proposer))
    for seen in proposer.seen:
        assert seen.t[0] == 0.0
        assert seen.t[-1] == pytest.approx(4.0)
        assert np.abs(seen.y).max() <= 5 * (1 + 1e-9)


def test_data_no_law_fits():
    for proposer in (_Proposer(["log(-y)", "sqrt(-1-y)"]), _Proposer([])):
        with pytest.raises(DiscoveryError, match="No usable law"):
            _quick(YEAST_TIME, YEAST, sources=[NetworkSource(proposer=proposer)])
    with pytest.raises(DiscoveryError, match="None of the 1 proposed laws has a solution"):
        _quick(YEAST_TIME, YEAST, sources=[], candidates=["log(-y)"])


def test_the_library_is_tried_whatever_is_proposed():
    found = _quick(YEAST_TIME, YEAST, sources=_with(_Proposer(["sin(y)"])))
    assert found.best.expression.skeleton.key == "add mul -c pow y c mul c y"
    assert found.best.origin.startswith("library")
    assert math.isnan(found.best.log_probability)


def test_no_network_is_loaded_without_beams_and_samples(monkeypatch):
    def refusing(*arguments, **settings):
        raise AssertionError("the network was loaded")

    monkeypatch.setattr("nsode_jax.decoding.propose.Proposer.from_pretrained", refusing)
    found = _quick(YEAST_TIME, YEAST, beams=0, samples=0)
    assert found.best.r2 > 0.99


def test_options_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="effort must be one of fast, default, thorough"):
        discover(YEAST_TIME, YEAST, effort="much")
    with pytest.raises(ValueError, match="beams must not be negative"):
        _quick(YEAST_TIME, YEAST, beams=-1)
    with pytest.raises(ValueError, match="there is no law to try"):
        _quick(YEAST_TIME, YEAST, beams=0, samples=0, sources=["network"])
    with pytest.raises(ValueError, match="there is no law to try"):
        _quick(YEAST_TIME, YEAST, sources=[])
    with pytest.raises(ValueError, match="sources must be among network, .*library, got 'oracle'"):
        _quick(YEAST_TIME, YEAST, sources=["oracle"])
    with pytest.raises(ExpressionError):
        _quick(YEAST_TIME, YEAST, candidates=["y + import os"])


def test_one_text_is_a_list_of_one():
    """No letters of a law, of a source or of an operator are taken for such."""
    options = {"candidates": "0.5*y*(1 - y/6)", "sources": "named laws", "operators": "exp"}
    one = _quick(YEAST_TIME, YEAST, **options)
    several = _quick(YEAST_TIME, YEAST, **{name: [text] for name, text in options.items()})
    assert [law.expression for law in one.candidates] == [
        law.expression for law in several.candidates
    ]
    assert any(law.origin == "user" for law in one.candidates)


def test_several_series_share_one_law():
    """Each alone sees too little of f: one below both fixed points, one above."""
    law = Expression.from_infix("0.8*y*(1 - y/3)*(y/0.5 - 1)")
    t = np.linspace(0.0, 3.0, 50)
    starts = (0.4, 0.7, 5.0)
    rng = np.random.default_rng(0)
    series = [solve(law, y0, t) * (1 + 0.003 * rng.standard_normal(t.size)) for y0 in starts]
    found = _quick(t, series, beams=0, samples=0)
    assert len(found.trajectories) == 3
    np.testing.assert_allclose(found.best.y0s, starts, rtol=0.02)
    grid = np.linspace(0.3, 5.0, 40)
    truth = law.evaluate(grid)
    assert np.abs(found.best.expression.evaluate(grid) - truth).max() < 0.05 * np.abs(truth).max()
    again = found.best.predict(t, trajectory=2)
    assert np.abs(again - series[2]).max() < 0.1


def test_series_that_do_not_match_are_refused():
    with pytest.raises(TrajectoryError, match="2 series of times but 3 of values"):
        _quick([YEAST_TIME] * 2, [YEAST] * 3, beams=0, samples=0)
    with pytest.raises(TrajectoryError, match="Series 2 of 2: "):
        _quick(YEAST_TIME, [YEAST, np.ones(19)], beams=0, samples=0)
    with pytest.raises(TrajectoryError, match="one of values"):
        _quick([YEAST_TIME] * 2, YEAST, beams=0, samples=0)


def test_constants_come_with_their_uncertainty():
    """In repeated measurements the intervals hold the truth as often as they say."""
    law = canonicalize(Expression.from_infix("1.3*y - 0.7*y**2"))
    t = np.linspace(0.0, 6.0, 80)
    clean = solve(law, 0.1, t)
    rng = np.random.default_rng(5)
    held = []
    for _ in range(40):
        y = clean + 0.02 * rng.standard_normal(t.size)
        data = Dataset.of([Trajectory(t, y)])
        fit = fit_trajectories(data, law, [0.1], Origin("test"))
        errors = np.sqrt(np.diag(covariance(data, fit)))
        away = np.abs(np.array(fit.expression.constants) - law.constants)
        held += list((away <= 1.96 * errors)[errors > 0])
    assert len(held) == 80  # The exponent 2 is no fitted constant.
    assert 0.85 <= np.mean(held) <= 1.0


def test_a_discovery_reports_weights_and_errors(yeast):
    told = sum(candidate.probability for candidate in yeast.candidates)
    unseen = unseen_probability(yeast.best.residual_rms / YEAST.std())
    assert told + unseen == pytest.approx(1.0) and 0 < unseen < 0.2
    slope, exponent, rate = yeast.best.standard_errors
    assert exponent == 0.0
    assert 0.0 < rate < 0.03 and 0.0 < slope < 1e-4
    assert yeast.pareto_front[0].complexity < yeast.best.complexity


def test_errors_that_are_alike_make_it_doubtful_that_the_law_was_found():
    t = np.linspace(0.0, 20.0, 80)
    exact, white = 3.0 - 2.9 * np.exp(-0.3 * t), np.random.default_rng(4).standard_normal(80)
    stated = []
    for noise in (white, lfilter([0.6], [1, -0.8], white)):
        found = discover(t, exact + 0.1 * noise, effort="fast", sources=["named laws"])
        stated.append(1 - sum(candidate.probability for candidate in found.candidates))
    assert stated == pytest.approx([0.2, 0.5], abs=0.01)


def test_ten_noisy_points_of_an_approach_to_a_limit():
    """A straight line (R2 0.86) must not be sure to be right; an F test rejects it at 0.01."""
    x = [113.08, 140.71, 178.91, 209.32, 243.03, 274, 322.8, 374.4, 408.18, 462.36]
    y = [9592, 9508, 9394, 9277, 9114, 8919, 8937, 8915, 8780, 8872]
    found = discover(x, y, effort="fast", sources=("named laws", "library"))
    told = {form_of(c.expression): c.probability for c in found.candidates}
    laws = ("53.8 - 0.0062*y", "-2.3", "-0.3*y")
    approach, *straight = (form_of(Expression.from_infix(law)) for law in laws)
    assert told[approach] == max(told.values()) and 0.15 < told[approach] < 0.6
    assert sum(told.get(key, 0.0) for key in straight) < 0.2
    assert not any("do not trust" in note for note in found.notes)


def test_a_diverging_candidate_comes_last():
    t = np.linspace(0.0, 3.0, 40)
    found = _quick(
        t, np.exp(-t), sources=_with(_Proposer(["-0.3*y", "exp(exp(5*y))", "1e3 + y**9"]))
    )
    assert found.best.expression.constants == pytest.approx((-1.0,)) or found.best.infix == "-y"
    diverged = [np.isneginf(candidate.r2) for candidate in found.candidates]
    assert diverged == sorted(diverged)


def test_unusable_data_are_refused():
    with pytest.raises(TrajectoryError):
        _quick([0, 1, 2], [1, 2, 3], sources=_with(_Proposer(["y"])))
    with pytest.raises(TrajectoryError):
        _quick(np.arange(20.0), np.ones(20), sources=_with(_Proposer(["y"])))


def test_a_series_that_rises_and_falls_is_noted():
    t = np.linspace(0.0, 12.0, 80)
    found = _quick(t, np.sin(t) + 2, sources=_with(_Proposer(["1 - y", "cos(y)"])))
    assert any("rise and fall" in note for note in found.notes)
    assert any("do not trust" in note for note in found.notes)
    assert sum(candidate.probability for candidate in found.candidates) == pytest.approx(0.05)


def test_noise_alone_is_not_rising_and_falling(yeast):
    assert not any("rise and fall" in note for note in yeast.notes)


def test_a_long_series_is_thinned():
    t = np.linspace(0.0, 18.0, 100_000)
    rng = np.random.default_rng(0)
    y = 663 / (1 + 70 * np.exp(-0.547 * t)) + 20 * rng.standard_normal(t.size)
    found = _quick(t, y, sources=_with(_Proposer(["y - 0.7*y**2", "y", "-y*log(0.5*y)"])))
    assert len(found.trajectory) <= MAX_POINTS
    assert any("100000 points" in note for note in found.notes)
    slope, _, rate = found.best.expression.constants
    assert rate == pytest.approx(0.547, rel=0.01)
    assert -rate / slope == pytest.approx(663, rel=0.01)


@pytest.mark.parametrize("number", [1, 3])
def test_dates_in_a_list_of_series_are_told_of_once(number):
    days = np.datetime64("2020-03-01") + np.arange(12)
    series, notes = read_series([days] * number, [np.exp(-0.1 * np.arange(12))] * number)
    assert len(series) == number and series[-1].t.tolist() == list(range(12))
    assert notes == ("The times are dates; they were converted to days since 2020-03-01.",)


def test_thinning_keeps_clean_curves():
    t = np.linspace(0.0, 10.0, 20_000)
    kept, notes = thin(Trajectory(t, np.sin(t)))
    assert (kept.t[[0, -1]] == t[[0, -1]]).all()
    assert 200 <= len(kept) <= MAX_POINTS
    assert len(notes) == 1
    np.testing.assert_allclose(kept.y, np.sin(kept.t), atol=1e-7)


def test_thinning_keeps_a_short_transient():
    t = np.arange(86_400.0)
    kept, _ = thin(Trajectory(t, 1 - np.exp(-t / 60)))
    assert (kept.t < 300).sum() > 50
    np.testing.assert_allclose(kept.y, 1 - np.exp(-kept.t / 60), atol=1e-3)


def test_thinning_leaves_short_series():
    data = Trajectory(YEAST_TIME, YEAST)
    assert thin(data) == (data, ())


def test_shifted_data():
    t = np.linspace(0.0, 5.0, 40)
    found = _quick(t, 1000 + 3 * np.exp(-0.9 * t), sources=_with(_Proposer(["0.3 - 0.5*y", "y"])))
    slope, offset = found.best.expression.constants
    assert slope == pytest.approx(-0.9, rel=1e-4)
    assert -offset / slope == pytest.approx(1000, rel=1e-6)


def test_few_points():
    t = np.linspace(0.0, 4.0, 8)
    found = _quick(t, 2 * np.exp(-0.7 * t), sources=_with(_Proposer(["0.3*y", "1 - y", "y**3"])))
    assert found.best.expression.constants == pytest.approx((-0.7,), rel=1e-5)
    assert math.isfinite(found.best.score)


def _random_law(seed: int):
    """A law from the prior and a clean trajectory of it that moves."""
    rng = np.random.default_rng(seed)
    t = np.linspace(0.0, 4.0, 80)
    while True:
        try:
            law = canonicalize(sample_expression(EquationPrior(), rng))
        except ExpressionError:
            continue
        y = solve(law, rng.uniform(-3, 3), t)
        if VARIABLE not in law.prefix or y is None or np.abs(y).max() > 5:
            continue
        # A jump between two points would tell nothing of its law.
        if 0.3 < np.ptp(y) and np.abs(np.diff(y)).max() < 0.1 * np.ptp(y):
            return law, t, y


@functools.cache
def _found(seed: int, unit: float, unit_of_time: float):
    _, t, y = _random_law(seed)
    return _quick(t * unit_of_time, y * unit, beams=0, samples=0)


@pytest.mark.parametrize("seed", [0, 2, 5])
@pytest.mark.parametrize(("unit", "unit_of_time"), [(1e-6, 1e6), (1e6, 1e-6)])
def test_a_rescaled_random_law_is_found_rescaled(seed, unit, unit_of_time):
    _, _, y = _random_law(seed)
    plain, rescaled = _found(seed, 1.0, 1.0), _found(seed, unit, unit_of_time)
    assert plain.best.r2 > 1 - 1e-9 and rescaled.best.r2 > 1 - 1e-9
    inside = np.linspace(*np.quantile(y, [0.02, 0.98]), 40)
    rate = plain.best.expression.evaluate(inside)
    other = rescaled.best.expression.evaluate(inside * unit) * unit_of_time / unit
    # Where the law itself is not among them: two others that the data do not tell from it.
    assert np.abs(other - rate).max() < 1e-4 * np.abs(rate).max()


@pytest.mark.parametrize("unit", [1e-12, 1e12])
def test_tiny_and_huge_values(unit):
    t = np.linspace(0.0, 4.0, 40)
    y = 2 * unit * np.exp(-0.7 * t)
    found = _quick(t, y, beams=0, samples=0)
    assert found.best.expression.constants == pytest.approx((-0.7,), rel=1e-6)


def test_a_million_rows_take_little_more_than_a_thousand(monkeypatch):
    rng = np.random.default_rng(0)
    steps, integrate = [], trajectory_fitting.dop853.integrate

    def counted(*arguments, **options):
        solutions = integrate(*arguments, **options)
        steps[-1] += int(solutions.steps.sum())
        return solutions

    monkeypatch.setattr(trajectory_fitting.dop853, "integrate", counted)
    for rows in (1_000, 1_000_000):
        t = np.linspace(0.0, 8.0, rows)
        y = 3 / (1 + 9 * np.exp(-1.1 * t)) + 0.02 * rng.standard_normal(rows)
        steps.append(0)
        found = _quick(t, y, beams=0, samples=0)
        assert len(found.trajectory) <= MAX_POINTS
        assert found.best.expression.evaluate(1.5) == pytest.approx(1.1 * 0.75, rel=0.05)
    assert 0 < steps[1] < 3 * steps[0]


def test_decreasing_and_negative_times():
    t = np.linspace(-3.0, 1.0, 40)
    y = 2 * np.exp(-0.7 * t)
    found = _quick(t[::-1], y[::-1], beams=0, samples=0)
    assert found.best.expression.constants == pytest.approx((-0.7,), rel=1e-6)
    assert found.best.start_time == -3.0


# --- laws of one's own -----------------------------------------------------------------

OWN = {
    "logistic": "0.5*y*(1 - y/600)",
    "wrong": "0.03*sqrt(y) - 0.01",
    "without a solution": "log(-y)",
    "an oddity": "0.5*y - 0.0008*y**2 + 1e-7*sin(3*y)",
}


@pytest.mark.parametrize(("unit", "unit_of_time"), [(1.0, 1.0), (1.0, 86_400.0), (1e6, 3.6e12)])
def test_laws_of_ones_own_are_fitted_and_listed_in_any_units(unit, unit_of_time):
    """Their constants are those of the data given, whatever units are searched in."""
    rate = 1 / unit_of_time
    laws = {
        name: f"{unit * rate!r}*({text.replace('y', f'(y/{unit!r})')})"
        for name, text in OWN.items()
    }
    t, y = YEAST_TIME * unit_of_time, YEAST * unit
    found = _quick(t, y, sources=["library"], candidates=list(laws.values()))
    asked = [candidate for candidate in found.candidates if candidate.origin == "user"]
    assert len(asked) == len(laws)
    assert found.best in asked and found.best.expression.skeleton.unsigned_key.count("pow") == 1
    grid = np.linspace(20.0, 600.0, 30)
    truth = Expression.from_infix("0.547*y*(1 - y/663)").evaluate(grid) * unit * rate
    np.testing.assert_allclose(found.best.expression.evaluate(grid * unit), truth, rtol=0.05)
    assert sum(np.isneginf(candidate.r2) for candidate in asked) == 1
    sources = {candidate.origin.split(",")[0] for candidate in found.candidates}
    assert sources == {"user", "library"}


def test_a_law_of_ones_own_starts_from_its_own_constants():
    """In other units than those of the data none of these would be near."""
    t = np.linspace(0.0, 4.0, 60) * 86_400
    y = solve(Expression.from_infix("1.3*sin(9*y) + 2"), 0.1, t / 86_400, rtol=1e-11, atol=1e-11)
    own = "1.5e-5*sin(8.98*y) + 2.3e-5"
    found = _quick(t, y * 1.0, sources=[], candidates=[own])
    assert found.best.origin == "user"
    np.testing.assert_allclose(
        np.sort(found.best.expression.constants), [1.3 / 86_400, 2 / 86_400, 9.0], rtol=1e-4
    )


@pytest.mark.parametrize(("unit", "unit_of_time"), [(1.0, 1.0), (1e-6, 3600.0)])
def test_named_constants_of_a_law_of_ones_own_are_fitted(unit, unit_of_time):
    law = "V*y/(K + y) - d*y"
    t = np.linspace(0.0, 30.0, 60)
    y = solve(Expression.from_infix("3*y/(2 + y) - 0.3*y"), 0.2, t, rtol=1e-10, atol=1e-10)
    noisy = y + 0.02 * np.random.default_rng(0).standard_normal(t.size)
    found = _quick(t * unit_of_time, noisy * unit, sources=[], candidates=law)
    assert found.notes[0] == (
        f"In {law!r} V, K, d are taken as constants, to be fitted; the variable is y."
    )
    grid = np.linspace(0.5, 7.5, 30)
    (own,) = [candidate for candidate in found.candidates if candidate.origin == "user"]
    truth = (3 * grid / (2 + grid) - 0.3 * grid) * unit / unit_of_time
    np.testing.assert_allclose(
        own.expression.evaluate(grid * unit), truth, atol=0.05 * np.abs(truth).max()
    )


def test_only_the_law_that_was_written_is_ones_own():
    """Its special cases, which the search makes of it, are not; nor is theta lost."""
    t = np.linspace(0.0, 12.0, 40)
    y = 8 / (1 + 15 * np.exp(-0.9 * t)) + 0.05 * np.random.default_rng(0).standard_normal(t.size)
    found = _quick(t, y, sources=["library"], candidates="r*y*(1 - (y/K)**theta)")
    (own,) = [candidate for candidate in found.candidates if candidate.asked_for]
    assert any(0.0 < error for error in own.standard_errors)
    (theta,) = np.array(own.expression.constants)[exponent_constants(own.expression.skeleton)]
    assert theta == pytest.approx(2.0, abs=0.3) and theta != 2.0
    assert found.table()["asked_for"].sum() == found.table(1)["asked_for"].sum() == 1


def test_in_a_robust_search_too():
    """Whose second pass begins with what the first one found."""
    t = np.linspace(0.0, 12.0, 40)
    y = 8 / (1 + 15 * np.exp(-0.9 * t)) + 0.05 * np.random.default_rng(0).standard_normal(t.size)
    y[7] += 2.0
    law = "r*y*(1 - (y/K)**theta)"
    found = _quick(t, y, sources=["library"], candidates=law, robust=True)
    assert sum(candidate.asked_for for candidate in found.candidates) == 1


def test_a_source_of_ones_own():
    """Anything that follows the protocol; it proposes in working units."""

    class Guesses:
        name = "guesses"

        def propose(self, data, form, *, seed, progress):
            assert data.size < 1e4 and form.count == data.count
            law = Proposal(Expression.from_infix("0.5*y - 0.1*y**2"), Origin(self.name))
            return Proposals((law,), "a guess")

    found = _quick(YEAST_TIME, YEAST * 1e9, sources=[Guesses()])
    assert found.best.r2 > 0.99
    assert {candidate.origin.split(",")[0] for candidate in found.candidates} == {"guesses"}
    assert found.tried == ("a guess",)


# --- numbers as people have them -----------------------------------------------------------

T9 = [0, 1, 3, 5, 7, 9, 11, 13, 15]
Y9 = [1.2, 0.905, 0.526, 0.317, 0.2, 0.133, 0.094, 0.071, 0.058]


def _as_jax(values):
    import jax.numpy as jnp

    return jnp.array(values, dtype=jnp.float32)


@pytest.fixture(scope="module")
def of_nine():
    """What is found in the nine points as they are."""
    return _quick(T9, Y9, beams=0, samples=0)


@pytest.mark.parametrize("convert", [np.float32, np.float16, _as_jax])
def test_single_precision_gives_the_same_law(convert, of_nine):
    """1.2 is meant, not 1.2000000477: the rounding of the data is evidence."""
    values = convert(Y9)
    found = _quick(convert(T9), values, beams=0, samples=0)
    np.testing.assert_array_equal(found.trajectory.y, Y9)
    assert [c.infix for c in found.candidates] == [c.infix for c in of_nine.candidates]
    assert [c.probability for c in found.candidates] == [c.probability for c in of_nine.candidates]


@pytest.fixture(scope="module")
def without_the_network():
    return _quick(YEAST_TIME, YEAST, beams=0, samples=0)


@pytest.mark.parametrize("offset", [1.7e9, -2.1e9])
def test_times_far_from_zero_change_nothing(offset, without_the_network):
    """Seconds since 1970, say: a law does not know the time."""
    plain, late = without_the_network, _quick(YEAST_TIME + offset, YEAST, beams=0, samples=0)
    assert late.best.start_time == offset
    assert late.notes == plain.notes
    for one, other in zip(plain.candidates, late.candidates, strict=True):
        assert one.expression == other.expression and one.y0s == other.y0s
        assert (one.score, one.probability, one.r2) == (
            other.score,
            other.probability,
            other.r2,
        )
        np.testing.assert_equal(other.held_out_rms, one.held_out_rms)
        np.testing.assert_equal(other.covariance, one.covariance)
    times = np.array([0.0, 3.5, 17.0, 40.0])
    np.testing.assert_allclose(
        late.best.predict(times + offset), plain.best.predict(times), rtol=1e-9
    )
