"""The picture: what it shows, and that hostile names and wild candidates do no harm."""

import dataclasses

import numpy as np
import pytest
from matplotlib.transforms import Bbox
from numpy.testing import assert_allclose

from nsode_jax.discovery import discover
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.expression import Expression
from nsode_jax.reporting.discovery import Discovery
from nsode_jax.reporting.pareto import draw_pareto
from nsode_jax.reporting.pictures import as_label
from nsode_jax.reporting.plot import draw_residuals, new_figure, plot
from nsode_jax.reporting.plot_series import plot_series
from nsode_jax.reporting.text import candidate_table
from nsode_jax.results.result import Candidate


@dataclasses.dataclass(frozen=True)
class Solved(Candidate):
    """A candidate whose solution is given."""

    solved: object = None

    def predict(self, t, y0=None, trajectory=0):
        return self.solved(np.asarray(t))


def law_of(formula, r2, solution, rms=0.0, **known):
    expression = Expression.from_infix(formula)
    return Solved(expression, (0.1,), (0.0,), r2, rms, 0.0, solved=solution, **known)


def discovery_of(data, candidates):
    data = data if isinstance(data, tuple) else (data,)
    return Discovery(tuple(candidates), data, (), 1.0)


def logistic(t):
    return 2.0 / (1.0 + np.exp(3.0 - t))


LOGISTIC = law_of("y*(1 - y/2)", 0.9996, logistic)
LINE = law_of("0.3 + 0*y", 0.91, lambda t: 0.3 * t)
TWIN = law_of("1.001*y - 0.5*y*y", 0.9995, logistic)
WILD = law_of("exp(y)", -np.inf, lambda t: np.full(t.shape, np.nan), np.inf)
DATA = Trajectory(np.linspace(0, 10, 25), logistic(np.linspace(0, 10, 25)))


def labels(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def line(axes, label):
    return next(line for line in axes.get_lines() if line.get_label() == label)


def test_data_solution_and_law_are_drawn():
    figure = plot(discovery_of(DATA, [LOGISTIC, TWIN, WILD, LINE]), None, "hours", "mass")
    solution, law = figure.axes
    assert (solution.get_xlabel(), solution.get_ylabel()) == ("hours", "mass")
    assert (law.get_xlabel(), law.get_ylabel()) == ("mass", "d mass / d hours")
    # The twin looks like the best, and the wild one has no solution.
    assert labels(solution) == ["best law, R² = 0.99960", "data", "candidate 4, R² = 0.91000"]
    assert_allclose(line(solution, "data").get_ydata(), DATA.y)
    best = line(solution, "best law, R² = 0.99960")
    assert_allclose(best.get_ydata(), logistic(best.get_xdata()))
    assert len(best.get_xdata()) > 200
    assert_allclose(line(law, "stable fixed point").get_xdata(), [2.0])
    assert "R² = 0.99960" in figure.get_suptitle() and "dy/dt" in figure.get_suptitle()


@pytest.mark.parametrize("ending", ["png", "pdf", "svg"])
def test_saves(tmp_path, ending):
    path = tmp_path / f"law.{ending}"
    plot(discovery_of(DATA, [LOGISTIC]), path)
    start = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}[ending]
    assert path.read_bytes().startswith(start)


def test_leaves_pyplot_alone(tmp_path):
    from matplotlib import pyplot

    plot(discovery_of(DATA, [LOGISTIC]), tmp_path / "law.png")
    assert pyplot.get_fignums() == []


def test_names_are_shown_as_they_are(tmp_path):
    names = ("cost in $ (or $\\frac$)", "质量 " * 30)
    figure = plot(discovery_of(DATA, [LOGISTIC]), tmp_path / "law.png", *names)
    assert figure.axes[0].get_xlabel() == r"cost in \$ (or \$\frac\$)"
    assert len(figure.axes[0].get_ylabel()) == 40
    assert figure.axes[1].get_ylabel() == "rate of change"


def test_a_long_formula_fits_the_width(tmp_path):
    formula = " + ".join(f"0.123*sin(1.1{i}*y)**3/(2.5{i} + exp(0.01*y))" for i in range(2))
    figure = plot(discovery_of(DATA, [law_of(formula, 0.95, logistic)]))
    endless = " + ".join([formula] * 6)
    short = plot(discovery_of(DATA, [law_of(endless, 0.95, logistic)]))
    assert "sin" in figure.get_suptitle() and "complexity" in short.get_suptitle()
    for drawn in (figure, short):
        extent = drawn._suptitle.get_window_extent(drawn.canvas.get_renderer())
        assert 0 <= extent.x0 and extent.x1 <= drawn.bbox.width


def test_a_runaway_candidate_does_not_squeeze_the_data():
    runaway = law_of("y**3", 0.5, lambda t: 10.0 ** (4 * t))
    figure = plot(discovery_of(DATA, [LOGISTIC, runaway]))
    assert figure.axes[0].get_ylim()[1] < 3
    assert figure.axes[1].get_ylim()[1] < 2


@pytest.mark.parametrize("scale", [1e-120, 1e-12, 1e12, 1e100])
def test_any_unit(tmp_path, scale):
    data = Trajectory(DATA.t, DATA.y * scale)
    law = law_of(f"y*(1 - {0.5 / scale!r}*y)", 1.0, lambda t: scale * logistic(t))
    figure = plot(discovery_of(data, [law]), tmp_path / "law.png")
    assert_allclose(line(figure.axes[1], "stable fixed point").get_xdata(), [2 * scale])


def test_a_law_undefined_on_part_of_the_range(tmp_path):
    law = law_of("log(y - 1)", -np.inf, lambda t: np.where(t < 2, t, np.inf))
    figure = plot(discovery_of(DATA, [law]), tmp_path / "law.png")
    assert "diverges" in labels(figure.axes[0])[0]


def test_a_pole_is_a_gap():
    for formula, gaps in (("1/(y - 0.5)", 1), ("y*(1 - y/2)", 0), ("1/(y - 0.5)**2", 0)):
        best = law_of(formula, 0.9, logistic)
        axes = plot(discovery_of(DATA, [best])).axes[1]
        curve = max(axes.get_lines(), key=lambda drawn: len(drawn.get_xdata()))
        assert np.isnan(curve.get_ydata()).sum() == gaps


def test_long_names_leave_the_picture_whole():
    name = "optical density at 600 nm, " * 3
    for draw in (draw_pareto, lambda *a: draw_residuals(*a[:2], "t", a[2])):
        figure = new_figure(7.6, 4.6)
        axes = figure.subplots()
        draw(axes, discovery_of(DATA, [LINE, LOGISTIC]), name)
        figure.draw_without_rendering()
        box = axes.yaxis.label.get_window_extent()
        assert 0 <= box.y0 and box.y1 <= figure.bbox.height


def test_many_points_are_thinned():
    t = np.linspace(0, 6, 100_000)
    figure = plot(discovery_of(Trajectory(t, logistic(t)), [LOGISTIC]))
    assert "data (500 of 100000 points)" in labels(figure.axes[0])


def test_every_series_is_drawn():
    series = tuple(Trajectory(DATA.t + shift, logistic(DATA.t)) for shift in (0.0, 3.0, 5.0))
    solution = Candidate(LOGISTIC.expression, (logistic(0.0),) * 3, (0.0, 3.0, 5.0), 1.0, 0.1, 0.0)
    axes, law = plot(discovery_of(series, [solution])).axes
    assert labels(axes) == ["best law, R² = 1.00000", "± 2 residuals (RMS)", "data, 3 series"]
    dots = [drawn for drawn in axes.get_lines() if drawn.get_linestyle() == "None"]
    curves = [drawn for drawn in axes.get_lines() if drawn.get_linestyle() == "-"]
    for trajectory, dot, curve in zip(series, dots, curves, strict=True):
        assert_allclose(dot.get_xdata(), trajectory.t)
        assert_allclose(dot.get_ydata(), trajectory.y)
        assert_allclose(curve.get_ydata(), logistic(curve.get_xdata() - trajectory.t[0]), 1e-6)
    assert len({dot.get_marker() for dot in dots}) == 3
    assert len(line(law, "slopes of the data").get_xdata()) == 3 * 23


def test_noise_has_a_band_two_residuals_wide():
    axes = plot(discovery_of(DATA, [law_of("y*(1 - y/2)", 0.99, logistic, 0.1)])).axes[0]
    (band,) = axes.collections
    low, high = band.get_datalim(axes.transData).intervaly
    assert_allclose([low, high], [logistic(0) - 0.2, logistic(10) + 0.2])
    assert not plot(discovery_of(DATA, [LOGISTIC])).axes[0].collections


class TestBandOfTheLaw:
    def drawn(self, variance):
        known = None if variance is None else np.diag([variance, 0.0])
        best = law_of("y - 0.5*y**2", 0.99, logistic, covariance=known)
        return plot(discovery_of(DATA, [best])).axes[1]

    def test_is_that_of_the_constants(self):
        axes = self.drawn(0.02**2)
        (band,) = axes.collections
        x, edge = band.get_paths()[0].vertices.T
        half = np.abs(edge - (x - 0.5 * x**2))
        assert_allclose(half, 1.959964 * 0.02 * x**2, atol=1e-6)
        assert "95% band of f" in labels(axes)

    def test_as_thin_as_the_line_is_not_named(self):
        assert "95% band of f" not in labels(self.drawn(1e-20))

    @pytest.mark.parametrize("variance", [None, np.nan, np.inf, 1e4])
    def test_that_says_nothing_is_left_out(self, variance):
        assert not self.drawn(variance).collections


class TestResiduals:
    def test_over_time_with_lines_at_two_sigma(self):
        noise = 0.1 * np.random.default_rng(0).normal(size=25)
        found = discovery_of(Trajectory(DATA.t, DATA.y + noise), [LOGISTIC])
        axes = new_figure(5, 4).subplots()
        draw_residuals(axes, found, "h", "mass", "They wave.")
        assert_allclose(line(axes, "data").get_ydata(), noise)
        sigma = np.sqrt(np.mean(noise**2))
        dashed = [drawn for drawn in axes.get_lines() if drawn.get_linestyle() == "--"]
        assert_allclose(sorted(drawn.get_ydata()[0] for drawn in dashed), [-2 * sigma, 2 * sigma])
        assert axes.get_title() == "They wave."
        assert (axes.get_xlabel(), axes.get_ylabel()) == ("h", "mass: data − law")

    def test_bars_are_in_the_units_of_what_is_drawn(self):
        axes = new_figure(5, 4).subplots()
        draw_residuals(axes, over_decades(known=True), "h", "cells")
        (bars,) = axes.collections
        half = [np.ptp(segment[:, 1]) / 2 for segment in bars.get_segments()]
        assert_allclose(half, 0.1, rtol=0.06)
        assert axes.get_ylim()[0] < min(segment[:, 1].min() for segment in bars.get_segments())

    def test_where_there_is_no_solution(self):
        found = discovery_of(DATA, [WILD])
        axes = new_figure(5, 4).subplots()
        draw_residuals(axes, found, "t", "y")
        assert np.isnan(line(axes, "data").get_ydata()).all()


def over_decades(known=False):
    """Growth through six decades, each value noisy by a tenth of itself."""
    t = np.linspace(0, 16, 33)
    y = 1e3 * np.exp(0.9 * t)
    series = Trajectory(t, y)
    if known:
        series = series.with_errors(0.1 * y, 0.1 * float(y.mean()))
    else:
        series = dataclasses.replace(series, noise=y / y.mean())
    rms = 0.08 * y.mean()
    law = law_of("0.9*y", 0.99, lambda t: 1.05e3 * np.exp(0.9 * t), rms)
    return discovery_of(series, [law, law_of("0.9*y - 1e-9*y**2", 0.99, logistic, 1.5 * rms)])


def test_counts_that_fall_to_zero_are_drawn(tmp_path):
    t = np.arange(12.0)
    y = np.round(60 * np.exp(-0.5 * t))
    assert y.min() == 0.0
    noise = np.hypot(y, 0.5)
    series = Trajectory(t, y, noise=noise / np.sqrt(1 / np.mean(noise**-2.0)))
    found = discovery_of(series, [law_of("-0.5*y", 0.99, lambda t: 60 * np.exp(-0.5 * t), 0.5)])
    figure = plot(found, tmp_path / "counts.png")
    assert (tmp_path / "counts.png").stat().st_size > 0
    assert figure.axes[0].get_yscale() == "linear"
    low, high = figure.axes[0].get_ylim()
    assert low < 0.0 and high > 60.0


class TestPareto:
    laws = [
        law_of("y - 0.5*y**2", 0.99, logistic, 0.02),
        law_of("0.3 + 0*y", 0.5, logistic, 0.5),
        law_of("y", 0.1, logistic, 1.0),
        law_of("y - 0.5*y**2 + 0.001*sin(y)", 0.991, logistic, 0.019),
        law_of("exp(y) - y - y - y", 0.2, logistic, 0.9),
        WILD,
    ]

    def drawn(self, laws):
        figure = new_figure(7.6, 4.6)
        axes = figure.subplots()
        draw_pareto(axes, discovery_of(DATA, laws), "mass")
        return axes

    def test_candidates_front_and_best(self):
        axes = self.drawn(self.laws)
        assert axes.get_yscale() == "log" and "mass" in axes.get_ylabel()
        everything = line(axes, "candidates")
        assert_allclose(everything.get_ydata(), [0.02, 0.5, 1.0, 0.019, 0.9])
        front = line(axes, "no shorter law is as good")
        assert_allclose(front.get_ydata(), [1.0, 0.5, 0.02, 0.019])
        assert_allclose(front.get_xdata(), [1, 5, 7, 12])
        assert line(axes, "best law").get_ydata() == [0.02]

    def test_labels_name_the_best_and_do_not_meet(self):
        axes = self.drawn(self.laws)
        assert "y - 0.5*y**2" in [text.get_text() for text in axes.texts]
        renderer = axes.figure.canvas.get_renderer()
        boxes = [text.get_window_extent(renderer) for text in axes.texts]
        assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
        assert all(box.x1 <= axes.get_window_extent().x1 for box in boxes)

    def test_ticks_of_complexity_are_whole_and_the_circle_is_not_hidden(self):
        laws = [law_of("y - 0.5*y**2", 0.99, logistic, 0.02), law_of("y", 0.1, logistic, 0.2)]
        axes = self.drawn(laws)
        axes.figure.draw_without_rendering()
        assert all(tick == round(tick) for tick in axes.get_xticks())
        x, y = axes.transData.transform((laws[0].complexity, 0.02))
        radius = 6 * axes.figure.dpi / 72
        circle = Bbox.from_extents(x - radius, y - radius, x + radius, y + radius)
        renderer = axes.figure.canvas.get_renderer()
        assert not any(circle.overlaps(text.get_window_extent(renderer)) for text in axes.texts)

    def test_over_decades_residuals_are_shares_as_in_the_table(self):
        found, axes = over_decades(), new_figure(7.6, 4.6).subplots()
        draw_pareto(axes, found, "cells")
        assert axes.get_ylabel() == "residual (RMS), as a share of each value"
        assert_allclose(line(axes, "candidates").get_ydata(), [0.08, 0.12], rtol=0.02)
        shown = candidate_table(found, 2, wide=True)
        column = shown.header.index("residual")
        assert [row[column] for row in shown.rows] == ["0.08 of each value", "0.12 of each value"]

    def test_a_residual_of_zero_and_a_law_alone(self):
        for laws in ([LOGISTIC], self.laws[:1], [WILD]):
            axes = self.drawn(laws)
            assert np.isfinite(axes.get_ylim()).all()
            axes.figure.draw_without_rendering()


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("-0.5*y**2 + y", r"y - 0.5\,y^{2}"),
        ("-0.5*y**2 - y", r"-0.5\,y^{2} - y"),
        ("2*y*log(y)", r"2\,y\,\log\left(y\right)"),
        ("1.2e-9*y/(3 + y)", r"\frac{1.2 \cdot 10^{-9}\,y}{3 + y}"),
    ],
)
def test_title_shows_the_formula(text, latex):
    law = law_of(text, 0.99, logistic)
    title = plot(discovery_of(DATA, [law])).get_suptitle()
    assert title.startswith(rf"$dy/dt \;=\; {latex}$")


def test_known_errors_of_measurement_are_bars():
    known = DATA.with_errors(np.linspace(0.1, 0.3, 25), 0.2)
    axes = plot(discovery_of(known, [LOGISTIC])).axes[0]
    (bars,) = axes.collections
    ends = np.array([segment[:, 1] for segment in bars.get_segments()])
    assert_allclose(ends, np.stack([DATA.y - known.errors, DATA.y + known.errors], axis=1))


def test_bars_of_known_errors_are_whole():
    known = DATA.with_errors(np.linspace(0.1, 0.3, 25), 0.2)
    low, high = plot(discovery_of(known, [LOGISTIC])).axes[0].get_ylim()
    assert low < (DATA.y - known.errors).min() and high > (DATA.y + known.errors).max()
    # But for one so large that the value says nothing.
    vague = DATA.with_errors(np.where(np.arange(25) == 3, 1e6, 0.1), 0.1)
    low, high = plot(discovery_of(vague, [LOGISTIC])).axes[0].get_ylim()
    assert high - low < 3 * np.ptp(DATA.y) * 1.2


def test_names_are_cut_and_units_are_not():
    name = "the day on which the sample was taken from the field"
    shown = as_label(f"{name} [days since 2020-03-01]")
    assert shown.startswith("the day on w") and shown.endswith("… [days since 2020-03-01]")
    assert len(shown) <= 40 and as_label(name) == f"{name[:39]}…"
    assert as_label("mass [g]") == "mass [g]"
    dated = "Timestamp [minutes since 2024-03-01 08:00]"  # A short name with a long unit.
    assert as_label(dated) == dated


def test_labels_of_series_keep_their_ends_and_their_panels():
    wells = [f"{row}{column}" for row in "ABCD" for column in "12345"]
    labels = [f"strain of the third plate, well {well}" for well in wells]
    found = discover(
        DATA.t,
        [DATA.y] * len(labels),
        constants="own",
        law="r*y*(1 - y/K)",
        labels=labels,
    )
    figure = plot_series(found)
    figure.draw_without_rendering()
    renderer = figure.canvas.get_renderer()
    panels = [axes for axes in figure.axes if axes.get_visible()]
    assert [axes.get_title()[-2:] for axes in panels] == wells
    boxes = [axes.title.get_window_extent(renderer) for axes in panels]
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
    assert all(0 <= box.x0 and box.x1 <= figure.bbox.width for box in boxes)


def test_a_notebook_shows_the_figure():
    data, size = new_figure(4.0, 2.0)._repr_png_()
    assert data.startswith(b"\x89PNG") and size == {"width": 300, "height": 150}
