"""Known parts of a law: reading, units, and the search for the rest."""

import numpy as np
import pytest

from nsode_jax import discover as command
from nsode_jax.discovery import discover
from nsode_jax.dynamics.solve import solve
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting.fit import Origin
from nsode_jax.fitting.trajectory_fitting import fit_trajectories
from nsode_jax.observed.dataset import Dataset
from nsode_jax.observed.derivative import derivative_form
from nsode_jax.observed.frame import Frame, FrameError
from nsode_jax.observed.integral import integral_form
from nsode_jax.observed.scaling import working_units
from nsode_jax.search.sources import Restriction

TRUE = Expression.from_infix("0.5*y*(1 - (y/3)**2) - 0.1*y")
REST = Expression.from_infix("0.5*y - 0.0555555555555555555*y**3")
TIMES = np.linspace(0.0, 10.0, 40)
VALUES = solve(TRUE, 0.2, TIMES)
PLACES = np.linspace(0.1, 2.5, 20)


@pytest.mark.parametrize(
    "text, unknown, law",
    [
        ("-0.1*y", "0.3*y + 1/y", "-0.1*y + (0.3*y + 1/y)"),
        ("0.5*y*(1 - □)", "0.3*y", "0.5*y*(1 - 0.3*y)"),
        ("0.5*y*(1 - ?)", "0.3*y", "0.5*y*(1 - 0.3*y)"),
        ("?/(1 + y) - 2", "sin(y)", "sin(y)/(1 + y) - 2"),
        ("r*y*(1 - ?)", "0.3*y", "y*(1 - 0.3*y)"),
    ],
)
def test_the_gap_is_filled(text, unknown, law):
    whole = Frame.of(text).law(Expression.from_infix(unknown))
    assert whole.evaluate(PLACES) == pytest.approx(Expression.from_infix(law).evaluate(PLACES))


def test_constants_of_the_rest_are_told_from_those_that_are_known():
    frame, rest = Frame.of("0.5*y*(1 - ?)"), Expression.from_infix("0.3*y + 1/y + 0.7")
    unknown = frame.unknown_constants(rest)
    constants = np.array(frame.law(rest).constants)
    assert sorted(constants[unknown]) == [0.3, 0.7]
    assert 0.5 in constants[~unknown]


@pytest.mark.parametrize(
    "text, message",
    [
        ("y*?**2", "must be linear"),
        ("0*? + y", "does not count"),
        ("y + *?", "cannot read the formula"),
        ("y*(1 - ?/K)", "give a number for K"),
        ("__import__('os')", "cannot read the formula"),
    ],
)
def test_what_is_no_frame_is_refused(text, message):
    with pytest.raises(FrameError, match=message) as refusal:
        Frame.of(text)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("form_of", [derivative_form, integral_form])
def test_forms_of_the_data_are_for_the_rest(form_of):
    """The residual of the rest in the framed form is that of the law in the plain one."""
    trajectory = Trajectory(TIMES, VALUES)
    plain = form_of(Dataset.of([trajectory]))
    framed = form_of(Dataset.of([trajectory], frame=Frame.of("-0.1*y")))
    assert framed.residual(REST) == pytest.approx(plain.residual(TRUE), rel=1e-6, abs=1e-12)
    assert framed.residual(TRUE) > 100 * framed.residual(REST)


@pytest.mark.parametrize("text", ["-0.1*y", "0.5*y*(1 - ?)"])
def test_a_change_of_units_changes_nothing(text):
    given = Dataset.of([Trajectory(1e4 * TIMES, 1e6 * VALUES)], frame=Frame.of(text))
    units = working_units(given)
    assert units.a > 1 and units.c > 1
    data = units.apply_to(given)
    rest = Expression.from_infix("0.3*y - 0.02*y**2")
    restored = units.restore(rest)
    y = 1e6 * PLACES
    inside = data.whole(rest).evaluate(y / units.a) * units.a / units.c
    assert given.whole(restored).evaluate(y) == pytest.approx(inside, rel=1e-9)


def test_solutions_follow_the_whole_law():
    data = Dataset.of([Trajectory(TIMES, VALUES)], frame=Frame.of("-0.1*y"))
    fit = fit_trajectories(data, Expression.from_infix("0.45*y - 0.05*y**3"), [0.2], Origin(""))
    assert fit.r2 > 1 - 1e-9
    assert fit.expression.evaluate(PLACES) == pytest.approx(REST.evaluate(PLACES), rel=1e-4)


@pytest.mark.parametrize("known", ["-0.1*y", "0.5*y*(1 - ?)"])
def test_the_rest_is_found_beside_what_is_known(known):
    random = np.random.default_rng(0)
    noisy = VALUES + 0.01 * VALUES.std() * random.normal(size=TIMES.size)
    found = discover(TIMES, noisy, known=known, effort="fast")
    best = found.best
    assert best.r2 > 0.999
    rates = best.expression.evaluate(PLACES)
    assert np.abs(rates - TRUE.evaluate(PLACES)).max() < 0.03
    frame = Frame.of(known)
    first = frame.template.prefix[: frame.template.prefix.index("gap")]
    assert best.expression.prefix[: len(first)] == first  # What is known can be seen.
    # What is known has no error; the rest has.
    fixed = [e == 0.0 for e in best.standard_errors]
    assert fixed[0] and not all(fixed)


def test_a_factor_with_a_name_is_told_afterwards():
    found = discover(TIMES, VALUES, known="r*y*(1 - ?)", effort="fast")
    note = next(note for note in found.notes if "cannot be told" in note)
    assert "r = 0.4" in note  # f is 0.4*y near 0.


def test_what_is_known_must_be_defined_where_there_are_data():
    for known in ("log(y - 1)", "sqrt(-1 - y**2) + ?"):
        with pytest.raises(FrameError, match="undefined at y = "):
            discover(TIMES, VALUES, known=known, effort="fast")
    with pytest.raises(FrameError, match="does not count where there are data"):
        discover(TIMES, VALUES, known="exp(-1e6*y)*?", effort="fast")


@pytest.mark.parametrize("size", [1e-12, 1e9])
def test_a_factor_with_a_name_is_the_same_in_all_units(size):
    found = discover(
        TIMES, size * VALUES, known="k*y*(1 - ?)", effort="fast", sources="enumeration"
    )
    assert any("k = 0.4" in note for note in found.notes)


def test_the_gap_must_be_linear_where_there_are_data():
    """Which is a narrow range that only the data tell."""
    text = "sqrt(y - 300)*sqrt(301 - y)*?**2"
    values = np.linspace(300.1, 300.9, 20)
    assert Frame.of(text.replace("**2", ""), values)
    with pytest.raises(FrameError, match="must be linear"):
        Frame.of(text, values)


@pytest.mark.parametrize("known", [
    "-0.3*sqrt(y - 10)", "-0.3*sqrt(-y)", "0.01*log(y - 5e4)",
    "exp(-1000000*y)*?", "sqrt(y)*sqrt(0.001 - y)*?", "sqrt(y - 300)*sqrt(301 - y)*?",
])  # fmt: skip
def test_it_need_not_be_defined_elsewhere(known):
    law = Frame.of(known).law(Expression.from_infix("y"))
    assert law.infix.split("*")[0].split("(")[0] == known.split("*")[0].split("(")[0]


def test_nothing_comes_of_nothing():
    found = discover(TIMES, VALUES, zero_at_zero=True, effort="fast")
    assert all(abs(c.expression.evaluate(1e-100)) < 1e-40 for c in found.candidates)
    assert found.best.expression.evaluate(PLACES) == pytest.approx(TRUE.evaluate(PLACES), rel=1e-3)


@pytest.mark.parametrize(
    "law, zero",
    [("0.5*y - y**2", 1), ("y*log(y)", 1), ("sqrt(y)", 1), ("y/(1 + y)", 1), ("sin(y)", 1),
     ("exp(y) - 1", 1), ("0.3*exp(8*y)", 0), ("0.01 + 1e6*y**6", 0),
     ("exp(y)", 0), ("0.1 - y", 0), ("1/y", 0), ("log(y)", 0)],
)  # fmt: skip
def test_which_laws_vanish_at_zero(law, zero):
    assert Restriction(zero_at_zero=True).admits(Expression.from_infix(law)) == bool(zero)


def test_the_command(tmp_path, capsys):
    file = tmp_path / "known.csv"
    np.savetxt(file, np.column_stack([TIMES, VALUES]), delimiter=",", header="t,y", comments="")
    asked = [str(file), "--effort", "fast", "--out", str(tmp_path / "law.png")]
    assert command.main([*asked, "--known", "-0.1*y"]) == 0
    assert "- 0.1*y" in capsys.readouterr().out
    assert command.main([*asked, "--known", "y*?**2"]) == 2
    error = capsys.readouterr().err
    assert "must be linear" in error and error.count("\n") == 1
    assert command.main([*asked, "--known", "-0.1*y", "--sources", "network"]) == 2
    assert "needs another source than the network" in capsys.readouterr().err


def test_no_fit_breaks_what_was_asked_of_it():
    """A power that the fit makes 0 is a constant: an approach to a limit invites it."""
    t = np.array([0.0, 1, 3, 5, 7, 9, 11, 13, 15])
    y = np.array([1.2, 0.905, 0.526, 0.317, 0.2, 0.133, 0.094, 0.071, 0.058])
    found = discover(t, y, zero_at_zero=True, effort="fast", sources=("named laws",))
    condition = Restriction(zero_at_zero=True)
    assert all(condition.admits(one.expression) for one in found.candidates)
