"""Bounds on the constants of a known form: the arithmetic, the fit, what is told, the command."""

import math

import numpy as np
import pytest
from solved import logistic

from nsode_jax import discover as command
from nsode_jax.console.arguments import InputError, parse
from nsode_jax.discovery import discover
from nsode_jax.fitting.bounds import Bounds
from nsode_jax.reporting.report_own_constants import what_to_be_wary_of

TIMES = np.linspace(0.0, 20.0, 25)
FORM = "r*y*(1 - y/K)"


@pytest.fixture(scope="module")
def series():
    """Three, the capacities 1.2, 1.0 and 1.5, with noise."""
    rng = np.random.default_rng(0)
    laws = ((0.5, 1.2), (0.8, 1.0), (0.4, 1.5))
    return [logistic(TIMES, *law, 0.05) + 0.02 * rng.normal(size=TIMES.size) for law in laws]


# --- the arithmetic --------------------------------------------------------------


def test_values_are_mirrored_into_their_bounds():
    bounds = Bounds(
        np.array([0.0, -math.inf, 1.0, -math.inf]), np.array([math.inf, 0, 3, math.inf])
    )
    values = np.array([[-2.0, 5.0, 0.5, -7.0], [2.0, -5.0, 7.5, 7.0]])
    expected = [[2.0, -5.0, 1.5, -7.0], [2.0, -5.0, 2.5, 7.0]]
    assert bounds.reflected(values) == pytest.approx(np.array(expected))
    at_zero = bounds.reflected(np.zeros(4))
    assert at_zero[0] > 0 > at_zero[1] and bounds.holds(at_zero) and at_zero.all()


def test_bounds_are_of_constants_that_there_are():
    assert Bounds.of({}, ("r", "K")) is None
    found = Bounds.of({"K": (0, None)}, ("r", "K"))
    assert found is not None
    assert found.low.tolist() == [-math.inf, 0.0] and found.high.tolist() == [math.inf, math.inf]
    with pytest.raises(ValueError, match="there is no q to be bounded"):
        Bounds.of({"q": (0, None)}, ("r", "K"))
    with pytest.raises(ValueError, match="nothing is between the bounds of K"):
        Bounds.of({"K": (1, 1)}, ("r", "K"))


@pytest.mark.parametrize("ends", [5, None, "12", (1, 2, 3), ("a", 2)])
def test_what_is_no_pair_is_refused_in_words(ends):
    with pytest.raises(ValueError, match=r"^bounds of r are \(low, high\)"):
        discover(TIMES, np.exp(-TIMES), constants="own", law="-r*y", bounds={"r": ends})
    with pytest.raises(ValueError, match=r"^bounds are \{name: \(low, high\)\}"):
        Bounds.of(ends, ("r", "K"))


# --- the fit ---------------------------------------------------------------------


def test_bounds_that_the_data_keep_change_nothing(series):
    free = discover(TIMES, series, constants="own", law=FORM)
    bounds = {"K": (0, None), "r": (0, 5)}
    within = discover(TIMES, series, constants="own", law=FORM, bounds=bounds)
    assert within.best.constants == pytest.approx(free.best.constants, rel=1e-5)
    assert within.best.standard_errors == pytest.approx(free.best.standard_errors, rel=1e-3)
    assert not within.best.pressed.any() and "pressed" not in str(within)


@pytest.mark.parametrize("shared", [(), ("r",)])
def test_a_constant_pressed_against_its_bound_is_told(series, shared):
    found = discover(
        TIMES, series, constants="own", law=FORM, bounds={"K": (None, 1.3)}, shared=shared
    )
    place = found.best.names.index("K")
    assert found.best.constants[:, place].max() == pytest.approx(1.3, rel=1e-4)
    assert found.best.pressed[:, place].tolist() == [False, False, True]
    assert "K is pressed against its bound for 3:" in str(found)
    assert found.best.confidence_intervals[2, place, 1] <= 1.3


@pytest.mark.parametrize(
    "bounds, seed",
    [({"K": (0, 1)}, 0), ({"K": (0.5, 1)}, 0), ({"K": (0, 1), "r": (0, 5)}, 1)],
)
def test_bounds_that_exclude_the_best_constants_give_the_best_within(bounds, seed):
    """With K held at 1, rates of change fit best where f is 0 everywhere; solutions do not."""
    t = np.linspace(0.0, 12.0, 20)
    y = logistic(t, 0.9, 1.2, 0.1) + 0.02 * np.random.default_rng(seed).normal(size=t.size)
    found = discover(t, y, constants="own", law=FORM, bounds=bounds)
    held = discover(t, y, constants="own", law="r*y*(1 - y)")
    assert found.best.constants[0] == pytest.approx([held.best.constants[0, 0], 1.0], rel=1e-3)
    assert found.best.r2[0] == pytest.approx(held.best.r2[0], abs=1e-5)
    assert found.best.pressed.tolist() == [[False, True]]
    said = "R² is below 0.9: do not trust the constants there; the noise is too large, or the form"
    assert said in str(found) and any(said in one for one in what_to_be_wary_of(found))
    assert "R² is below" not in str(discover(t, y, constants="own", law=FORM))


def test_signs_are_kept_where_a_form_can_be_written_in_two_ways(series):
    found = discover(
        TIMES, series[0], constants="own", law="-a*y*(1 - y/K)", bounds={"a": (None, 0)}
    )
    assert found.best.constants[0] == pytest.approx([-0.5, 1.2], rel=0.1)
    assert found.best.r2[0] > 0.99 and len(found.labels) == 1


def test_a_form_that_is_known_needs_few_points(tmp_path, capsys):
    """Six points of a second-order reaction (k = 2.589)."""
    t = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.5])
    file, out = tmp_path / "six.csv", tmp_path / "picture.png"
    c = 2.0 / (1 + 2.589 * 2.0 * t)
    np.savetxt(file, np.column_stack([t, c]), delimiter=",", header="t,c", comments="")
    assert command.main([str(file)]) == 2
    assert "fewer of a law whose form is known (--form)" in capsys.readouterr().err
    asked = ["--form", "-k*y**2", "--sigma", "0.01", "--out", str(out)]
    assert command.main([str(file), *asked]) == 0
    said = capsys.readouterr().out
    assert "k = 2.589" in said and "goodness of fit 100.0%" in said
    with pytest.raises(ValueError, match="at least 3 points are needed"):
        discover(t[:2], c[:2], constants="own", law="-k*y**2")


# --- the command -----------------------------------------------------------------


@pytest.mark.parametrize(
    "text, bounds",
    [
        ("K > 0, 0 < r < 5", {"K": (0, None), "r": (0, 5)}),
        ("a<-1e-3,K>=2", {"a": (None, -1e-3), "K": (2, None)}),
        ("-2<=b", {"b": (-2, None)}),
    ],
)
def test_bounds_are_read(text, bounds):
    assert parse(["f.csv", "--form", FORM, "--bounds", text]).bounds == bounds


@pytest.mark.parametrize("text", ["K", "K > x", "5 > r", "0 < r > 5", "K > 0, K < 5"])
def test_what_is_no_bound_is_refused(text):
    with pytest.raises(InputError, match="is no bound such as|stands twice"):
        parse(["f.csv", "--form", FORM, "--bounds", text])


def test_a_form_with_bounds_in_one_command(series, tmp_path, capsys):
    file, out = tmp_path / "growth.csv", tmp_path / "picture.png"
    np.savetxt(file, np.column_stack([TIMES, series[0]]), delimiter=",", header="t,y", comments="")
    asked = ["--form", FORM, "--bounds", "0 < r < 0.3", "--out", str(out)]
    assert command.main([str(file), *asked]) == 0
    said = capsys.readouterr().out
    assert "r is pressed against its bound: the data would have it beyond" in said
    assert out.exists()


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--bounds", "K > 0"], "--bounds goes with --form"),
        (["--form", FORM, "--bounds", "q > 0"], "there is no q to be bounded"),
        (["--form", FORM, "--effort", "fast"], "--effort is of a search"),
        (["--form", FORM, "--sources", "library"], "--sources is of a search"),
        (["--form", FORM, "--max-symbols", "9"], "--max-symbols is of a search"),
        (["--form", FORM, "--each", "--out", "folder"], "--form does not go with --each"),
        (["--form", FORM, "--replicates"], "--form for 2 series takes --constants own"),
    ],
)
def test_what_does_not_go_together_is_refused_in_one_line(
    series, arguments, message, tmp_path, capsys
):
    file = tmp_path / "two.csv"
    columns = series[:2] if "--replicates" in arguments else series[:1]
    np.savetxt(file, np.column_stack([TIMES, *columns]), delimiter=",", comments="",
               header="t,a,b" if len(columns) == 2 else "t,y")  # fmt: skip
    assert command.main([str(file), *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error.splitlines()[-1] and "Traceback" not in error


def test_options_of_a_search_are_refused_beside_a_form(series):
    for option in ({"effort": "fast"}, {"operators": ("pow",)}, {"zero_at_zero": True}):
        with pytest.raises(ValueError, match="is of a search"):
            discover(TIMES, series, constants="own", law=FORM, **option)
    with pytest.raises(ValueError, match="bounds are for a law whose constants are named"):
        discover(TIMES, series, constants="own", bounds={"K": (0, None)})
