"""What is seen of a law whose constants are moved."""

import base64
import dataclasses
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose
from observing import PREY, discovered, logistic_discovery, plate_discovery, prey_discovery
from scipy.integrate import solve_ivp

from nsode_jax.discovery.own_constants import discover_own_constants
from nsode_jax.dynamics.system import System
from nsode_jax.expressions.expression import Expression
from nsode_jax.reporting.exploration import START
from nsode_jax.reporting.form_exploration import FormExploration
from nsode_jax.reporting.law_exploration import LawExploration
from nsode_jax.reporting.report import write_report
from nsode_jax.reporting.system_exploration import SystemExploration


@pytest.fixture(scope="module")
def prey():
    return prey_discovery()


def pictures(exploration):
    """The SVG of each picture, after its description."""
    for tag in exploration.pictures_html():
        parts = re.fullmatch(r'<img src="data:image/svg\+xml;base64,(.*)" alt="(.*)">', tag)
        yield parts[2], base64.b64decode(parts[1]).decode()


def test_a_law_as_it_was_fitted():
    found = logistic_discovery(notes=("Mind <the> gap.",))
    seen = LawExploration(found, "hours", "mass [g]")
    assert seen.shown.best is found.best and not seen.is_moved
    assert seen.names == "dy/dt = c0*y + c1*y**2"
    assert "R² = 0.999" in seen.law_html()
    details = seen.details_html()
    for words in (
        *("logistic growth", "0.9000 ± 0.0040", "<h2>Fixed points</h2>", "unstable"),
        *("How sure: 90.0% that the first form is right", "Mind &lt;the&gt; gap."),
    ):
        assert words in details, words
    assert seen.latex().startswith(r"\frac{dy}{dt} = ")
    assert "def vector_field(t, y, args=None):" in seen.python()
    (fit, first), (law, _) = pictures(seen)
    assert fit == "The data and the solution of candidate 1" and first.rstrip().endswith("</svg>")
    assert law.startswith("f(y) of candidate 1")


def test_sliders_reach_to_either_side():
    seen = LawExploration(logistic_discovery())
    assert [slider.name for slider in seen.sliders] == ["c0", "c1", START]
    for slider in seen.sliders:
        assert slider.low < slider.value < slider.high
    assert_allclose([(s.value, s.high) for s in seen.sliders[:2]], [(0.9, 1.35), (-0.3, -0.15)])


def test_everything_follows_a_moved_constant():
    seen = LawExploration(logistic_discovery())
    before, details = seen.law_html(), seen.details_html()
    seen.move(c0=1.2)
    seen.move(**{START: 0.2})
    assert seen.is_moved and seen.shown.best.y0 == 0.2
    assert seen.shown.best.expression.constants == (1.2, -0.3, 2.0)
    assert seen.shown.best.r2 < 0.9 and seen.law_html() != before
    assert "1.2,  # c0" in seen.python() and "1.2" in seen.latex()
    assert next(pictures(seen))[0] == "The data and the solution of candidate 1, moved"
    # Errors are those of the fit.
    assert seen.details_html() == details
    seen.reset()
    assert not seen.is_moved and seen.law_html() == before


def test_a_constant_moved_back_is_not_moved():
    seen = LawExploration(logistic_discovery())
    fitted = seen.sliders[1].value
    seen.move(c1=2.0)
    seen.move(c1=fitted)
    assert not seen.is_moved
    # As a browser puts it on the nearest step.
    seen.move(c1=np.nextafter(fitted, 1.0))
    assert not seen.is_moved and "moved" not in next(pictures(seen))[0]


def test_there_may_be_no_solution():
    seen = LawExploration(logistic_discovery())
    seen.move(c0=50.0, c1=5.0)
    assert "there is no solution" in seen.law_html()
    assert len(list(pictures(seen))) == 2


def test_another_candidate():
    seen = LawExploration(logistic_discovery())
    seen.move(c0=1.2)
    seen.choose(1)
    assert seen.names == "dy/dt = c0*y" and not seen.is_moved
    assert [slider.name for slider in seen.sliders] == ["c0", START]
    assert [row[0] for row in seen.table.rows] == ["1", "2"]


def test_names_of_constants_agree_wherever_they_stand(tmp_path):
    """Of a law whose terms are shown in another order than they are stored in."""
    found = logistic_discovery()
    a, b = found.best.expression.constants[0], found.best.expression.constants[1]
    law = Expression.from_infix(f"{b}*y**2 + {a}*y")
    best = dataclasses.replace(found.best, expression=law, covariance=None)
    found = dataclasses.replace(found, candidates=(best,))
    seen = LawExploration(found)
    assert seen.names == "dy/dt = c0*y + c1*y**2"
    assert [slider.value for slider in seen.sliders[:2]] == [a, b]
    assert list(best.constants_table()["value"][:2]) == [a, b]
    assert seen.python().index(f"{a!r},  # c0") < seen.python().index(f"{b!r},  # c1")
    for text in (seen.details_html(), write_report(found, tmp_path)[0].read_text("utf-8")):
        rows = re.findall(r"<td>(c\d)</td>\s*<td>(-?)", text)
        assert rows == [("c0", ""), ("c1", "-")]
    seen.move(c1=-0.2)
    assert seen.shown.best.expression.constants[0] == -0.2


def test_a_law_that_explains_little_is_not_to_be_trusted():
    found = logistic_discovery()
    assert "do not trust it" not in LawExploration(found).law_html()
    best = dataclasses.replace(found.best, r2=-0.01, y0s=(1e-9,))
    seen = LawExploration(dataclasses.replace(found, candidates=(best,)))
    assert "It explains only 0% of the variance of the data; do not trust it." in seen.law_html()
    seen.move(c1=-0.2)  # Of what one has moved that is no news.
    assert "do not trust it" not in seen.law_html()


def test_an_unknown_slider_is_refused():
    with pytest.raises(KeyError, match="no constant c7"):
        LawExploration(logistic_discovery()).move(c7=1.0)


def test_a_system(prey):
    seen = SystemExploration(prey, "years")
    assert len(seen.names.splitlines()) == 2 and seen.names.count("c3") == 1
    assert [slider.name for slider in seen.sliders] == ["c0", "c1", "c2", "c3"]
    assert_allclose([slider.value for slider in seen.sliders], prey.best.constants)
    assert [alt for alt, _ in pictures(seen)] == [
        "The data and the fitted solutions",
        "Solutions in the plane of the states",
    ]
    details = seen.details_html()
    assert "law of" in details and "centre" in details
    assert r"\begin{aligned}" in seen.latex() and "def vector_field" in seen.python()


def test_a_moved_system(prey):
    seen = SystemExploration(prey)
    seen.move(c3=1.1 * prey.best.constants[3])
    assert seen.shown.best.constants[:3] == prey.best.constants[:3]
    assert seen.shown.best.r2 < prey.best.r2
    assert prey.system == PREY


def test_the_second_law_of_a_system_may_have_a_square():
    found = discovered(System(("a", "b")), ("-0.5*a", "0.3*a**2 - 0.4*b"), (1.0, 0.5))
    seen = SystemExploration(found)
    assert seen.names.splitlines()[1] in ("db/dt = c1*a**2 + c2*b", "db/dt = c1*b + c2*a**2")
    seen.move(c2=9.0)
    assert 9.0 in seen.shown.best.laws[1].constants and 2.0 in seen.shown.best.laws[1].constants


def test_of_the_time():
    system = System(("y",), explicit_time=True)
    seen = SystemExploration(discovered(system, ("1.3*cos(2.1*t) - 0.7*y",), (2.0,)))
    assert len(list(pictures(seen))) == 1 and "Fixed points" not in seen.details_html()


def test_of_second_order_the_letters_are_explained():
    system = System(("angle",), order=2)
    seen = SystemExploration(discovered(system, ("-1.1*angle - 0.2*v",), (1.0, 0.0)), "s")
    assert "t is s; v is dangle/dt." in seen.law_html()
    assert [alt for alt, _ in pictures(seen)][1] == "Solutions in the plane of the states"
    assert "stable focus" in seen.details_html()


@pytest.fixture(scope="module")
def plate():
    return plate_discovery(notes=("Mind the gap.",))


def test_constants_of_each_series(plate):
    seen = FormExploration(plate, "hours", "OD")
    assert not seen.sliders and [row[3] for row in seen.table.rows] == ["logistic growth", "-"]
    assert "In 3 series R² is 0.99" in seen.law_html()
    assert [re.search('alt="(.*)"', tag)[1] for tag in seen.pictures_html()] == [
        "Every series and its solution",
        "The constants of every series",
    ]
    details = seen.details_html()
    for words in (
        *("This is logistic growth.", "carrying capacity", "<h2>Each series</h2>", "&lt;b&gt;"),
        *("How sure: 90.0% that the first form is right", "Mind the gap."),
    ):
        assert words in details, words
    assert seen.latex() == r"\frac{dy}{dt} = r y \left(1 - \frac{y}{K}\right)"


def test_one_series_is_not_compared_with_itself(plate):
    series = plate.trajectories[0]
    alone = discover_own_constants(series.t, series.y, law=plate.best.formula.text)
    seen = FormExploration(alone)
    assert len(seen.pictures_html()) == 1
    details = seen.details_html()
    assert "95% interval" in details
    assert not any(words in seen.law_html() + details for words in ("median", "series", "shared"))
    assert "R²: 0.99" in str(alone)


def test_the_program_of_many_series_solves_each(plate):
    space = {}
    exec(FormExploration(plate).python(), space)  # noqa: S102
    for number, label in enumerate(plate.labels):
        start, y0 = space["STARTS"][label]
        t = plate.trajectories[number].t
        solved = solve_ivp(
            space["vector_field"], (start, t[-1]), [y0], args=(label,), t_eval=t, rtol=1e-9
        )
        assert_allclose(solved.y[0], plate.best.solution(t, number), rtol=1e-5)
    best = plate.best
    lost = np.array([best.constants[0], [np.nan, np.nan], best.constants[2]])
    program = dataclasses.replace(
        plate, candidates=(dataclasses.replace(best, constants=lost),)
    ).to_source()
    assert "'A1'" in program and "<b>" not in program and "nan" not in program


def test_another_form(plate):
    seen = FormExploration(plate)
    seen.choose(1)
    assert seen.names == "dy/dt = a - b*y" and "This is" not in seen.details_html()
    with pytest.raises(KeyError, match="no constant c0"):
        seen.move(c0=1.0)


def test_many_series_need_all_the_room(plate):
    assert FormExploration(plate).side_by_side
    many = dataclasses.replace(plate, labels=tuple(map(str, range(24))))
    assert not FormExploration(many).side_by_side
