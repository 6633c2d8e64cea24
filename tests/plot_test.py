"""The picture: what it shows, and that hostile names and wild candidates do no harm."""

import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_allclose

from nsode_jax.discovery.plot import fixed_points, plot, slopes
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.expression import Expression


@dataclasses.dataclass
class FakeCandidate:
    formula: str
    r2: float
    solution: object

    @property
    def expression(self):
        return Expression.from_infix(self.formula)

    @property
    def complexity(self):
        return self.expression.complexity

    def predict(self, t, y0=None):
        return self.solution(np.asarray(t))


@dataclasses.dataclass
class FakeDiscovery:
    trajectory: Trajectory
    candidates: list

    @property
    def best(self):
        return self.candidates[0]


def logistic(t):
    return 2.0 / (1.0 + np.exp(3.0 - t))


LOGISTIC = FakeCandidate("y*(1 - y/2)", 0.9996, logistic)
LINE = FakeCandidate("0.3 + 0*y", 0.91, lambda t: 0.3 * t)
TWIN = FakeCandidate("1.001*y - 0.5*y*y", 0.9995, logistic)
WILD = FakeCandidate("exp(y)", -np.inf, lambda t: np.full(t.shape, np.nan))
DATA = Trajectory(np.linspace(0, 10, 25), logistic(np.linspace(0, 10, 25)))


def labels(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def line(axes, label):
    return next(line for line in axes.get_lines() if line.get_label() == label)


def test_data_solution_and_law_are_drawn():
    figure = plot(FakeDiscovery(DATA, [LOGISTIC, TWIN, WILD, LINE]), None, "hours", "mass")
    solution, law = figure.axes
    assert (solution.get_xlabel(), solution.get_ylabel()) == ("hours", "mass")
    assert (law.get_xlabel(), law.get_ylabel()) == ("mass", "d mass / d hours")
    # The twin looks like the best, and the wild one has no solution.
    assert labels(solution) == ["best law, R² = 0.9996", "data", "candidate 4, R² = 0.9100"]
    assert_allclose(line(solution, "data").get_ydata(), DATA.y)
    best = line(solution, "best law, R² = 0.9996")
    assert_allclose(best.get_ydata(), logistic(best.get_xdata()))
    assert len(best.get_xdata()) > 200
    assert_allclose(line(law, "stable fixed point").get_xdata(), [2.0])
    assert "R² = 0.9996" in figure.get_suptitle() and "dy/dt" in figure.get_suptitle()


@pytest.mark.parametrize("ending", ["png", "pdf", "svg"])
def test_saves(tmp_path, ending):
    path = tmp_path / f"law.{ending}"
    plot(FakeDiscovery(DATA, [LOGISTIC]), path)
    start = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}[ending]
    assert path.read_bytes().startswith(start)


def test_leaves_pyplot_alone(tmp_path):
    from matplotlib import pyplot

    plot(FakeDiscovery(DATA, [LOGISTIC]), tmp_path / "law.png")
    assert pyplot.get_fignums() == []


def test_names_are_shown_as_they_are(tmp_path):
    names = ("cost in $ (or $\\frac$)", "质量 " * 30)
    figure = plot(FakeDiscovery(DATA, [LOGISTIC]), tmp_path / "law.png", *names)
    assert figure.axes[0].get_xlabel() == r"cost in \$ (or \$\frac\$)"
    assert len(figure.axes[0].get_ylabel()) == 40
    assert figure.axes[1].get_ylabel() == "rate of change"


def test_a_long_formula_fits_the_width(tmp_path):
    formula = " + ".join(f"0.123*sin(1.1{i}*y)**3/(2.5{i} + exp(0.01*y))" for i in range(2))
    figure = plot(FakeDiscovery(DATA, [FakeCandidate(formula, 0.95, logistic)]))
    endless = " + ".join([formula] * 6)
    short = plot(FakeDiscovery(DATA, [FakeCandidate(endless, 0.95, logistic)]))
    assert "sin" in figure.get_suptitle() and "complexity" in short.get_suptitle()
    for drawn in (figure, short):
        extent = drawn._suptitle.get_window_extent(drawn.canvas.get_renderer())
        assert 0 <= extent.x0 and extent.x1 <= drawn.bbox.width


def test_a_runaway_candidate_does_not_squeeze_the_data():
    runaway = FakeCandidate("y**3", 0.5, lambda t: 10.0 ** (4 * t))
    figure = plot(FakeDiscovery(DATA, [LOGISTIC, runaway]))
    assert figure.axes[0].get_ylim()[1] < 3
    assert figure.axes[1].get_ylim()[1] < 2


@pytest.mark.parametrize("scale", [1e-120, 1e-12, 1e12, 1e100])
def test_any_unit(tmp_path, scale):
    data = Trajectory(DATA.t, DATA.y * scale)
    law = FakeCandidate(f"y*(1 - {0.5 / scale!r}*y)", 1.0, lambda t: scale * logistic(t))
    figure = plot(FakeDiscovery(data, [law]), tmp_path / "law.png")
    assert_allclose(line(figure.axes[1], "stable fixed point").get_xdata(), [2 * scale])


def test_a_law_undefined_on_part_of_the_range(tmp_path):
    law = FakeCandidate("log(y - 1)", -np.inf, lambda t: np.where(t < 2, t, np.inf))
    figure = plot(FakeDiscovery(DATA, [law]), tmp_path / "law.png")
    assert "diverges" in labels(figure.axes[0])[0]


def test_many_points_are_thinned():
    t = np.linspace(0, 6, 100_000)
    figure = plot(FakeDiscovery(Trajectory(t, logistic(t)), [LOGISTIC]))
    assert "data (500 of 100000 points)" in labels(figure.axes[0])


class TestSlopes:
    def test_of_a_parabola_are_exact(self):
        t = np.linspace(-1, 2, 50)
        y, slope = slopes(Trajectory(t, t**2))
        assert_allclose(y, t[1:-1] ** 2, atol=1e-15)
        assert_allclose(slope, 2 * t[1:-1], atol=1e-12)

    def test_noise_is_averaged_in_long_series(self):
        t = np.linspace(0, 1, 20_000)
        noise = 0.01 * np.random.default_rng(0).normal(size=t.size)
        y, slope = slopes(Trajectory(t, 3 * t + noise))
        assert len(y) <= 100
        assert np.abs(slope - 3).max() < 0.3


class TestFixedPoints:
    def test_stability(self):
        roots = fixed_points(Expression.from_infix("y*(1 - y)*(y - 0.4)"), np.linspace(-1, 2, 300))
        assert_allclose([y for y, _ in roots], [0.0, 0.4, 1.0], atol=1e-8)
        assert [stable for _, stable in roots] == [True, False, True]

    def test_on_the_grid_and_on_its_ends(self):
        roots = fixed_points(Expression.from_infix("y*(1 - y)"), np.linspace(0, 1, 11))
        assert roots == [(0.0, False), (1.0, True)]
        assert fixed_points(Expression.from_infix("y"), np.linspace(-1, 1, 3)) == [(0.0, False)]

    def test_a_pole_is_none(self):
        assert fixed_points(Expression.from_infix("1/(y - 0.55)"), np.linspace(0, 1, 11)) == []

    def test_zero_everywhere_is_no_point(self):
        assert fixed_points(Expression.from_infix("0*y"), np.linspace(0, 1, 11)) == []

    def test_where_f_is_undefined(self):
        roots = fixed_points(Expression.from_infix("log(y)"), np.linspace(-3, 3, 100))
        assert_allclose([y for y, _ in roots], [1.0])


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("-0.5*y**2 + y", r"y - 0.5\,y^{2}"),
        ("-0.5*y**2 - y", r"-0.5\,y^{2} - y"),
        ("1.2e-9*y/(3 + y)", r"\frac{1.2 \cdot 10^{-9}\,y}{3 + y}"),
    ],
)
def test_title_shows_the_formula(text, latex):
    law = FakeCandidate(text, 0.99, logistic)
    title = plot(FakeDiscovery(DATA, [law])).get_suptitle()
    assert title.startswith(rf"$dy/dt \;=\; {latex}$")
