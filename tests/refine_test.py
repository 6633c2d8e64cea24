import numpy as np
import pytest
from solved import canonical_law, solved

from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.fitting import trajectory_fitting
from nsode_jax.fitting.fit import Fit, Origin
from nsode_jax.fitting.trajectory_fitting import fit_trajectories
from nsode_jax.observed.dataset import Dataset
from nsode_jax.observed.derivative import derivative_form
from nsode_jax.observed.integral import integral_form
from nsode_jax.search import refine as module
from nsode_jax.search.effort import RefineConfig
from nsode_jax.search.refine import fit_asked_for, refine
from nsode_jax.search.sources import Proposal
from nsode_jax.search.variants import with_coefficients
from nsode_jax.selection.ranking import rank

# Laws and a range of times and an initial value over which they show their shape.
LAWS = {
    "logistic": ("1.3*y - 0.7*y**2", 0.1, 4.0),
    "linear": ("2.5 - 0.8*y", 0.1, 5.0),
    "quadratic": ("0.7 + 0.3*y - 0.41*y**2", -0.8, 4.0),
    "sqrt": ("1.7*sqrt(y) - 0.6*y", 0.3, 6.0),
    "sin": ("1.3*sin(1.7*y)", 0.1, 4.0),
    "gompertz": ("-0.37*y*log(0.21*y)", 0.1, 6.0),
    "power": ("1.1*y**1.7 - 2.3*y", 1.5, 3.0),
}

# What a network might propose: right and wrong shapes, constants off by a lot.
HANDFUL = (
    "2*y - 0.3*y**2.2",
    "1.1 - 0.3*y",
    "0.2 + 1.1*y - 0.2*y**2",
    "0.6*sqrt(y) - 0.4*y",
    "0.8*sin(1.2*y)",
    "-0.9*y*log(0.5*y)",
    "0.4*y**1.4 - 1.2*y",
    "0.5*y",
    "0.9*exp(-0.5*y)",
    "1.4*y/(1.3 + y)",
)


SHORT = RefineConfig(generations=1, children=64)


def _data(name: str, points: int = 60, noise: float = 0.0, seed: int = 0) -> Dataset:
    series = solved(*LAWS[name], points)
    errors = noise * series.y.std() * np.random.default_rng(seed).standard_normal(points)
    return Dataset.of([Trajectory(series.t, series.y + errors)])


def _proposals(laws) -> list[Proposal]:
    return [Proposal(canonical_law(text), Origin("test", -1.0 - i)) for i, text in enumerate(laws)]


def _form(data: Dataset):
    return derivative_form(data) or integral_form(data)


def _ranked(data: Dataset, laws) -> list[Fit]:
    form = _form(data)
    fits = refine(data, form, _proposals(laws), config=SHORT)
    return [fit for fit, _ in rank(fits, data, form)]


def _best(data: Dataset, laws) -> Fit:
    return _ranked(data, laws)[0]


@pytest.mark.parametrize("name", LAWS)
def test_clean_data_give_the_law_with_exact_constants(name):
    data = _data(name)
    best = _best(data, HANDFUL)
    truth = canonical_law(LAWS[name][0])
    assert best.expression.skeleton == truth.skeleton
    np.testing.assert_allclose(best.expression.constants, truth.constants, rtol=1e-5)
    assert best.y0s[0] == pytest.approx(LAWS[name][1], rel=1e-6)
    assert best.converged
    assert best.r2 > 1 - 1e-12


@pytest.mark.parametrize("name", ["logistic", "linear", "sqrt"])
def test_noise_of_five_percent_leaves_the_skeleton(name):
    data = _data(name, points=100, noise=0.05)
    best = _best(data, HANDFUL)
    truth = canonical_law(LAWS[name][0])
    assert best.expression.skeleton == truth.skeleton
    np.testing.assert_allclose(best.expression.constants, truth.constants, rtol=0.2)


def test_an_ill_fated_law_neither_hangs_nor_wins(monkeypatch):
    data = _data("logistic")
    # Blow-up, leaving the domain, overflow, fast oscillation, undefined throughout.
    laws = ["y**9", "log(y - 5)", "exp(exp(exp(y)))", "sin(1e8*y)*1e6", "sqrt(-y)", "1/(y - 0.5)"]
    steps = []
    integrate = trajectory_fitting.dop853.integrate

    def counted(*arguments, **options):
        solutions = integrate(*arguments, **options)
        steps.append(int(solutions.steps.sum()))
        return solutions

    monkeypatch.setattr(trajectory_fitting.dop853, "integrate", counted)
    ranked = _ranked(data, [*laws, "y - y**2"])
    # No solution takes more than its limit, and few come near it.
    assert max(steps) <= 2 * trajectory_fitting._MAX_SOLVER_STEPS + 2
    assert np.mean(steps) < 200
    assert ranked[0].expression.skeleton == canonical_law("y - 0.5*y**2.2").skeleton or (
        ranked[0].expression.skeleton == canonical_law("1.3*y - 0.7*y**2").skeleton
    )
    diverged = [fit.diverged for fit in ranked]
    assert diverged == sorted(diverged)
    assert all(np.isneginf(fit.r2) and not fit.converged for fit in ranked if fit.diverged)


def test_same_seed_same_result():
    data = _data("sin", points=30, noise=0.02)
    form, laws = _form(data), _proposals(HANDFUL[:5])
    once, again = (refine(data, form, laws, seed=3, config=SHORT) for _ in range(2))
    assert once == again


def test_signs_may_change():
    data = _data("linear")
    best = _best(data, ["-1 + 0.3*y"])
    np.testing.assert_allclose(best.expression.constants, (-0.8, 2.5), rtol=1e-5)


def test_terms_without_a_coefficient_get_one():
    assert (
        with_coefficients(canonical_law("y - y**2")).skeleton
        == canonical_law("2*y - 3*y**2").skeleton
    )
    assert (
        with_coefficients(canonical_law("1/(1 + y)")).skeleton
        == canonical_law("2/(3 + y)").skeleton
    )
    assert with_coefficients(canonical_law("3*sin(y)")) == canonical_law("3*sin(y)")
    data = _data("logistic")
    best = _best(data, ["y - y**2"])
    np.testing.assert_allclose(best.expression.constants, (-0.7, 2.0, 1.3), rtol=1e-5)


def test_superfluous_terms_are_dropped():
    data = _data("logistic")
    best = _best(data, ["y - 0.5*y**2 + 0.1*y**3 + 0.2"])
    assert best.expression.skeleton == canonical_law("1.3*y - 0.7*y**2").skeleton


def test_progress_is_told():
    told = []
    data = _data("linear")
    refine(
        data,
        _form(data),
        _proposals(["1 - y"]),
        config=SHORT,
        progress=lambda message, share: told.append(share),
    )
    assert told
    assert all(0 <= share <= 1 for share in told)


def test_every_fit_knows_where_it_comes_from():
    data = _data("gompertz", points=100, noise=0.05)
    form, proposals = _form(data), _proposals(["0.9*y - 0.1*y**2", "-0.9*y*log(0.5*y)"])
    fits = refine(data, form, proposals, config=SHORT)
    assert {fit.origin.log_probability for fit in fits} <= {-1.0, -2.0}
    keys = {proposal.expression.skeleton.unsigned_key for proposal in proposals}
    for fit in fits:
        if not fit.origin.evolved:
            assert fit.expression.skeleton.unsigned_key in keys
    assert any(fit.origin.evolved for fit in fits)


@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_a_law_that_is_asked_for_is_fitted_however_bad(noise):
    data = _data("logistic", noise=noise)
    form = _form(data)
    right, wrong, undefined = (
        fit_asked_for(data, form, [proposal])
        for proposal in _proposals(["0.9*y - 0.4*y**2", "-3*y", "log(y - 90)"])
    )
    np.testing.assert_allclose(right.expression.constants, (-0.7, 2.0, 1.3), rtol=0.1)
    assert right.origin == Origin("test", -1.0)
    assert wrong.expression.skeleton.unsigned_key == "mul c y" and wrong.r2 > 0.5
    assert undefined.diverged and undefined.expression == canonical_law("log(y - 90)")


def test_a_term_is_dropped_only_if_the_solution_does_not_need_it(monkeypatch):
    """A wall just beyond the nodes is nothing there, and all to the solution that meets it."""
    t = np.linspace(0.0, 8.0, 40)
    data = Dataset.of([Trajectory(t, np.minimum(1.5 * t + 0.5, 9.0))])
    wall = canonical_law("1.5 - exp(17*y - 153)")
    fit = fit_trajectories(data, wall, [0.5], Origin("test"))
    assert fit.r2 > 0.999
    line = canonical_law("1.5")
    monkeypatch.setattr(module, "without_negligible", lambda *_: line)
    assert module._without_negligible(data, _form(data), fit) is fit
    # Before the wall nothing is lost, and what is left of the law is what was judged.
    data = Dataset.of([Trajectory(t[:20], 1.5 * t[:20] + 0.5)])
    fit = fit_trajectories(data, wall, [0.5], Origin("test"))
    shorter = module._without_negligible(data, _form(data), fit)
    assert shorter.expression == line and shorter.converged == fit.converged
    left = shorter.y0s[0] + 1.5 * t[:20] - data.y
    assert shorter.residual_rms == pytest.approx(np.sqrt(np.mean(left**2)), abs=1e-9)


def test_simple_laws_are_fitted_where_the_smooth_curve_misleads():
    """A jump of the values that no law explains bends the constants of the integral form."""
    t = np.linspace(0.0, 8.0, 57)
    y = 80 / (1 + 60 * np.exp(-1.5 * t))
    y[22:] += 10 * np.exp(-0.3 * (t[22:] - t[22]))
    data = Dataset.of([Trajectory(t, y)])
    form = _form(data)
    proposals = _proposals(["1.4*y - 0.02*y**2"])
    config = RefineConfig(generations=0, children=1, matched=0, polished=0)
    fit = refine(data, form, proposals, config=config)[0]
    assert fit.expression.skeleton.unsigned_key == "add mul c pow y c mul c y"
    best = fit_asked_for(data, form, proposals[:1])
    assert fit.residual_rms < 1.001 * best.residual_rms
