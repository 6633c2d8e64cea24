"""Pictures of systems: what is in each panel."""

import dataclasses
import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from observing import discovered, prey_discovery

from nsode_jax.discovery.systems import as_candidates
from nsode_jax.dynamics.measured_inputs import measured_inputs
from nsode_jax.dynamics.system import System, integrate
from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting.fit import Origin
from nsode_jax.fitting.shooting import fit_system
from nsode_jax.fitting.trajectory_fitting import ROUGH
from nsode_jax.observed.observations import Observations, Run
from nsode_jax.reporting.pictures import new_figure
from nsode_jax.reporting.system_discovery import SystemDiscovery
from nsode_jax.reporting.system_plot import draw_planes, draw_residuals, draw_solutions, plot


@pytest.fixture(scope="module")
def found():
    return prey_discovery(runs=2)


def legend(figure):
    return [text.get_text() for each in figure.legends for text in each.get_texts()]


def markers(axes):
    """The points of each run that a panel shows."""
    lines = [line for line in axes.get_lines() if line.get_linestyle() == "None"]
    return [line for line in lines if line.get_color() == "#4d4d4d"]


def test_each_quantity_has_a_panel_with_all_runs(found):
    figure = new_figure(6, 4)
    draw_solutions(figure, found, "hours")
    above, below = figure.axes
    assert [axes.get_ylabel() for axes in figure.axes] == ["prey", "hunters"]
    assert (above.get_xlabel(), below.get_xlabel()) == ("", "hours")
    for k, axes in enumerate(figure.axes):
        for run, line in zip(found.runs, markers(axes), strict=True):
            assert_allclose(line.get_ydata(), run.y[:, k])
    assert legend(figure) == ["fitted solution", "± 2 residuals (RMS)", "data, 2 runs"]


def test_residuals_lie_about_zero(found):
    figure = new_figure(6, 4)
    draw_residuals(figure, found, "t")
    for axes, rms in zip(figure.axes, found.best.residuals, strict=True):
        values = np.concatenate([line.get_ydata() for line in markers(axes)])
        assert np.sqrt(np.mean(values**2)) == pytest.approx(rms, rel=1e-3)
        low, high = axes.get_ylim()
        assert low < values.min() and values.max() < high and low == pytest.approx(-high)


def test_the_portrait_shows_where_solutions_go_and_rest(found):
    figure = new_figure(6, 6)
    draw_planes(figure, found)
    (axes,) = figure.axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("prey", "hunters")
    names = legend(figure)
    assert {"dprey/dt = 0", "dhunters/dt = 0", "centre", "data, 2 runs"} <= set(names)
    fixed = [line for line in axes.get_lines() if line.get_label() == "centre"]
    centre = next(point for point in found.fixed_points().points if point.kind == "centre")
    assert_allclose([*fixed[0].get_xdata(), *fixed[0].get_ydata()], centre.states)
    assert axes.patches  # Arrows.


@pytest.mark.parametrize(
    ("system", "equations", "start", "panels"),
    [
        (System(("y",), explicit_time=True), ("1.3*cos(2.1*t) - 0.7*y",), (2.0,), 1),
        (System(("y",), order=2), ("-4.1*y - 0.4*v",), (1.0, 0.0), 2),
        (System(("y", "z"), explicit_time=True), ("cos(t) - y", "y - z"), (1.0, 1.0), 3),
        (System(("x", "y", "z")), ("-x", "x - y", "y - 0.5*z"), (1.0, 0.5, 0.1), 6),
        (System(("x", "y"), order=2), ("-x", "x - 2*y"), (1.0, 0.5, 0.0, 0.0), 5),
    ],
    ids=["forced", "second order", "two forced", "three", "two of second order"],
)
def test_every_system_has_its_picture(system, equations, start, panels, tmp_path):
    found = discovered(system, equations, start)
    figure = plot(found, tmp_path / "x.png", "hours")
    shown = [axes for part in (figure, *figure.subfigs) for axes in part.axes]
    assert len({id(axes) for axes in shown if axes.get_visible()}) == panels
    assert "R² = " in figure.get_suptitle()
    assert (tmp_path / "x.png").stat().st_size > 10_000
    title = figure._suptitle.get_window_extent()
    legends = [one for part in figure.subfigs for one in part.legends]
    assert legends and not any(title.overlaps(one.get_window_extent()) for one in legends)


def test_numbers_of_small_planes_stand_apart():
    equations, start = ("-4.2*x + 1.1*z", "0.8*x - 0.8*z"), (0.1, -0.05, 0.0, 0.0)
    found = discovered(System(("x", "z"), order=2), equations, start, noise=0.001)
    figure = plot(found)
    for axes in figure.subfigs[1].axes:
        shown = [label for label in axes.get_xticklabels() if label.get_text()]
        left, right = axes.get_xlim()
        boxes = [one.get_window_extent() for one in shown if left <= one.get_position()[0] <= right]
        assert not any(one.overlaps(other) for one, other in itertools.pairwise(boxes))


@pytest.mark.filterwarnings("error")
def test_a_field_with_a_pole_is_drawn():
    found = discovered(System(("x", "y")), ("1/(x + 0.5) - x", "sqrt(x) - y"), (0.5, 2.0))
    draw_planes(new_figure(4, 4), found)


def test_pieces_are_drawn_as_they_were_fitted():
    found = prey_discovery(segments=3)
    figure = new_figure(6, 4)
    draw_solutions(figure, found, "t")
    assert "fitted solutions, 3 pieces each run" in legend(figure)
    solid = [line for line in figure.axes[0].get_lines() if line.get_linestyle() == "-"]
    assert len(solid) == 3
    ends = [line.get_xdata()[[0, -1]] for line in solid]
    assert ends[0][1] == ends[1][0] and ends[2][1] == found.runs[0].t[-1]


def test_inputs_are_drawn_below():
    t = np.linspace(0.0, 5.0, 40)
    system = System(("y",), ("u",))
    u = np.sin(t)[:, None]
    law = Expression.from_infix("u - y", system.variables)
    y = integrate([law], [1.0], t, measured_inputs(t, u))
    data = Observations(system, (Run(t, y, u),))
    fit = fit_system(data, [law], [Origin("test")], stopping=ROUGH)
    found = SystemDiscovery(as_candidates(data, [(fit, 0.0)]), data.runs, (), 0.0)
    figure = new_figure(6, 4)
    draw_solutions(figure, found, "hours")
    assert [axes.get_ylabel() for axes in figure.axes] == ["y", "u"]
    assert [axes.get_xlabel() for axes in figure.axes] == ["", "hours"]
    (line,) = figure.axes[1].get_lines()
    assert_allclose(line.get_ydata(), np.sin(line.get_xdata()), atol=0.01)


def test_quantities_over_decades_are_drawn_by_shares():
    equations = ("-1.2*x", "1.2*x - 0.6*y")
    found = discovered(System(("x", "y")), equations, (100.0, 1.0), noise=0.0)
    (run,) = found.runs
    sizes = np.stack([run.y[:, 0] / 5, np.ones(len(run))], axis=1)
    found = dataclasses.replace(found, runs=(dataclasses.replace(run, noise_sizes=sizes),))
    figure = new_figure(8.0, 5.0)
    draw_solutions(figure, found, "t")
    assert [axes.get_yscale() for axes in figure.axes] == ["log", "linear"]
    figure = new_figure(8.0, 5.0)
    draw_residuals(figure, found, "t")
    assert [axes.get_ylabel() for axes in figure.axes] == ["x\nshare of value", "y\ndata − law"]
