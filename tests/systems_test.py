"""Discovery of several quantities, of laws of time and inputs, and of second order."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from observing import observed

from nsode_jax.discover import main
from nsode_jax.discovery import SystemDiscovery, discover
from nsode_jax.dynamics.measured_inputs import measured_inputs
from nsode_jax.dynamics.system import System, integrate
from nsode_jax.evaluation.driven_systems import same_structure
from nsode_jax.expressions.expression import Expression

COUNTS = Path(__file__).parent.parent / "examples" / "lynx_hare.csv"


@pytest.fixture(scope="module")
def counts() -> SystemDiscovery:
    table = pd.read_csv(COUNTS)
    return discover(table["year"].to_numpy(), table[["hare", "lynx"]], effort="fast")


def test_lynx_and_hare_have_the_four_signs_of_lotka_and_volterra(counts):
    def rate(law, hare, lynx):
        return float(law.evaluate(hare, lynx))

    hares, lynxes = counts.best.laws
    assert rate(hares, 20.0, 0.0) > 0 and rate(hares, 20.0, 40.0) < rate(hares, 20.0, 0.0)
    assert rate(lynxes, 0.0, 20.0) < 0 and rate(lynxes, 60.0, 20.0) > rate(lynxes, 0.0, 20.0)
    assert {law.complexity for law in counts.best.laws} == {9}
    assert counts.best.r2 > 0.9
    assert counts.system.observed == ("hare", "lynx")


def test_a_result_says_what_it_found(counts):
    text = str(counts)
    assert "dhare/dt = " in text and "±" in text and "rank" in text
    assert counts.best.latex().startswith(r"\begin{aligned}\frac{d\mathrm{hare}}{dt} &= ")
    hares, lynxes = counts.best.to_sympy()
    assert str(hares.lhs) == "Derivative(hare(t), t)" and "lynx(t)" in str(lynxes.rhs)
    # What is left of the hares is alike from year to year: the right law may well be another one.
    total = sum(candidate.probability for candidate in counts.candidates)
    assert total == pytest.approx(0.5)
    assert "that none of those found is" in text
    years = counts.runs[0].t
    seen = counts.predict(years)
    residuals = np.sqrt(np.mean((seen - counts.runs[0].y) ** 2, axis=0))
    np.testing.assert_allclose(residuals, counts.best.residuals, rtol=1e-3)
    assert counts.predict([0.0, 1.0], y0=[20.0, 5.0]).shape == (2, 2)
    with pytest.raises(ValueError, match="y0 needs 2 values: hare, lynx"):
        counts.predict([0.0, 1.0], y0=[20.0])


def test_a_system_that_explains_nothing_is_not_to_be_trusted():
    noise = np.random.default_rng(0).standard_normal((30, 2))
    found = discover(np.arange(30.0), noise, effort="fast")
    assert found.best.r2 < 0.5
    assert any("do not trust it: the noise is too large" in note for note in found.notes)


def test_what_is_not_explained_is_named():
    t = np.linspace(0.0, 10.0, 40)
    random = np.random.default_rng(0)
    y = np.stack([3 * np.exp(-0.5 * t), 5.0 + random.standard_normal(40)], axis=1)
    y[:, 0] += 0.02 * random.standard_normal(40)
    found = discover(t, y, names=("drug", "noise"), effort="fast")
    assert found.best.r2s[0] > 0.99
    named = [note for note in found.notes if "of the variance of" in note]
    assert [" of noise is explained" in note for note in named] == [True]


def test_quantities_over_decades_are_found_from_their_large_and_their_small_values():
    """A drug that is absorbed and excreted: in the units of y the small values say nothing."""
    system = System(("gut", "blood"))
    laws = [
        Expression.from_infix(text, system.states) for text in ("-1.2*gut", "1.2*gut - 0.6*blood")
    ]
    t = np.linspace(0.0, 10.0, 30)
    clean = integrate(laws, np.array([100.0, 0.01]), t)
    noisy = clean * np.exp(0.1 * np.random.default_rng(0).standard_normal(clean.shape))
    found = discover(t, noisy, names=system.states, effort="fast")
    assert same_structure(found.best.laws, laws)
    assert found.best.predict(found.runs[0].t)[-1] == pytest.approx(clean[-1], rel=0.15)
    assert any("gut and blood span decades" in note for note in found.notes)
    assert not found.runs[0].scales[0].linear


def test_an_input_that_is_on_or_off_has_no_powers():
    t = np.linspace(0.0, 20.0, 81)
    stimulus = ((t % 8) < 4).astype(float)[:, None]
    system = System(("y",), ("u",))
    law = Expression.from_infix("2*u - 0.5*y", system.variables)
    y = integrate([law], np.array([0.5]), t, measured_inputs(t, stimulus, (True,)))
    y += 0.05 * np.random.default_rng(0).standard_normal(y.shape)
    best = discover(t, y, inputs=stimulus, input_names=("u",), effort="fast").best
    assert same_structure(best.laws, [law])
    assert best.probability > 0.5


def test_a_damped_oscillator_is_found_from_noisy_positions():
    data, _ = observed(System(("y",), order=2), ("-4.1*y - 0.4*v",), (1.0, 0.0), noise=0.02)
    best = discover(data.runs[0].t, data.runs[0].y[:, 0], order=2, effort="fast").best
    (law,) = best.laws
    assert law.complexity == 7
    for name, true in (("y", -4.1), ("v", -0.4)):
        values = {"y": 0.0, "v": 0.0, name: 1.0}
        assert float(law.evaluate(*values.values())) == pytest.approx(true, abs=0.05)


def test_a_forced_law_is_found_with_its_constants_within_their_intervals():
    system = System(("y",), explicit_time=True)
    t = np.linspace(0.0, 12.0, 120)
    true = Expression.from_infix("1.3*cos(2.1*t) - 0.7*y", system.variables)
    clean = integrate([true], [2.0], t)[:, 0]
    noisy = clean + 0.02 * np.random.default_rng(1).standard_normal(t.size)
    best = discover(t, noisy, explicit_time=True, effort="fast").best
    assert best.laws[0].skeleton.unsigned_key == "sub mul c cos mul c t mul c y".replace(
        "sub", best.laws[0].prefix[0]
    )
    for (low, high), constant in zip(best.confidence_intervals, (1.3, 2.1, 0.7)):
        assert min(abs(low), abs(high)) <= constant <= max(abs(low), abs(high))


def test_lorenz_has_the_right_structure_first():
    names, t = ("x", "y", "z"), np.linspace(0.0, 4.0, 120)
    texts = ("10*y - 10*x", "28*x - x*z - y", "x*y - 2.667*z")
    true = [Expression.from_infix(text, names) for text in texts]
    y = integrate(true, [2.3, 8.1, 12.4], t)
    best = discover(t, y, names=names, effort="fast").best
    points = np.random.default_rng(0).uniform(-20.0, 30.0, (3, 40))
    for found, law in zip(best.laws, true, strict=True):
        expected = law.evaluate(*points)
        np.testing.assert_allclose(found.evaluate(*points), expected, atol=1e-2 * expected.std())
    assert [law.complexity for law in best.rounded()] <= [7, 11, 9]


def test_a_heater_that_is_switched_is_held_between_rows():
    """As a curve it began to heat in the row before, and constants were 6 standard errors off."""
    t = np.arange(240) / 2
    heater = np.where((t % 40 < 20) & (t > 5), 80.0, 0.0)
    exact = [22.0]
    for u in heater[:-1]:  # The solution of T' = 0.09 u - 0.12 (T - 20), half a minute on.
        rest = 20.0 + 0.09 * u / 0.12
        exact.append(rest + (exact[-1] - rest) * np.exp(-0.06))
    noisy = np.array(exact) + 0.1 * np.random.default_rng(5).standard_normal(t.size)
    found = discover(t, noisy, inputs=heater, names="T", input_names=("heater",), effort="fast")
    best = found.best
    law = Expression.from_infix("0.09*heater - 0.12*T + 2.4", best.system.variables)
    assert same_structure(best.laws, [law]) and best.probability > 0.9
    sizes = np.sort(np.abs(best.constants))
    errors = np.sqrt(np.diag(best.covariance))[np.argsort(np.abs(best.constants))]
    assert (np.abs(sizes - [0.09, 0.12, 2.4]) < 3 * errors).all()
    assert any("heater changes in steps: each value was taken to hold" in n for n in found.notes)


def test_a_measured_input_is_used():
    names, t = ("y", "u"), np.linspace(0.0, 10.0, 120)
    u = np.where(np.sin(1.3 * t) > 0, 2.0, 0.0) + 0.3 * t
    law = Expression.from_infix("0.8*u - 0.5*y", names)
    y = integrate([law], [1.0], t, measured_inputs(t, u[:, None]))
    found = discover(t, y[:, 0], inputs=u, input_names=("u",), effort="fast")
    points = np.random.default_rng(0).uniform(0.0, 4.0, (2, 20))
    rates = found.best.laws[0].evaluate(*points)
    np.testing.assert_allclose(rates, law.evaluate(*points), atol=0.02)
    np.testing.assert_allclose(found.predict(t)[:, 0], y[:, 0], atol=0.02)
    with pytest.raises(ValueError, match="needs the inputs u"):
        found.best.predict(t, y0=[1.0])


def test_the_command_line_takes_several_quantities(capsys, tmp_path):
    out = str(tmp_path / "report")
    assert main([str(COUNTS), "--value", "hare,lynx", "--effort", "fast", "--out", out]) == 0
    printed = capsys.readouterr().out
    assert "dhare/dt = " in printed and "dlynx/dt = " in printed
    assert printed.endswith(f"report: {out}/report.html\nJSON: {out}/discovery.json\n")
    read = SystemDiscovery.load(tmp_path / "report" / "discovery.json")
    assert str(read.best) in printed


def test_options_that_a_kind_of_discovery_lacks_are_refused_in_words():
    t, y = np.arange(20.0), np.exp(-0.1 * np.arange(20.0))
    for values, options, message in (
        (y, {"names": ["a"]}, "names: not for one quantity with dy/dt = f"),
        (
            [y, y],
            {"constants": "own", "robust": True},
            "robust: not for series that",
        ),
        (y, {"order": 2, "robust": True}, "robust: for one quantity with dy/dt = f.y. only"),
        (y, {"efort": "fast"}, "discover has no option efort"),
    ):
        with pytest.raises(ValueError, match=message):
            discover(t, values, **options)
