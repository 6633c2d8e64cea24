"""Points drawn by hand."""

import xml.etree.ElementTree as ET

from numpy.testing import assert_allclose

from nsode_jax.app.asking import Table
from nsode_jax.app.sketch import HEIGHT, WIDTH, Sketch


def drawn(sketch):
    read = Table(sketch.contents())
    trajectory = read.read(read.guess()).trajectories[0]
    return trajectory.t, trajectory.y


def test_points_are_where_they_were_drawn():
    sketch = Sketch(t_end=20.0, y_end=4.0)
    root = ET.fromstring(f"<svg>{sketch.svg()}</svg>")
    frame = {name: float(root.find("rect").get(name)) for name in ("x", "y", "width", "height")}
    for share in range(11):
        sketch.press(
            frame["x"] + frame["width"] * share / 10,
            frame["y"] + frame["height"] * (1 - share / 20),
        )
        sketch.release()
    t, y = drawn(sketch)
    assert_allclose(t, [2.0 * share for share in range(11)], atol=1e-4)
    assert_allclose(y, [0.2 * share for share in range(11)], atol=1e-4)


def test_a_stroke_adds_points_that_are_apart():
    sketch = Sketch()
    sketch.press(100.0, 200.0)
    added = [sketch.drag(100.0 + x, 200.0 - x / 2) for x in range(1, 121)]
    sketch.release()
    assert not sketch.drag(400.0, 100.0)
    assert len(sketch) == 1 + sum(added) and 8 <= len(sketch) <= 11
    assert sketch.is_enough


def test_a_click_on_a_point_takes_it_away():
    sketch = Sketch()
    sketch.press(100.0, 200.0)
    sketch.press(300.0, 200.0)
    sketch.press(303.0, 198.0)
    assert sketch.points == [(100.0, 200.0)] and not sketch.is_enough


def test_points_stay_on_the_canvas_and_have_times_of_their_own():
    sketch = Sketch()
    sketch.press(-50.0, 1e6)
    sketch.press(1e6, -50.0)
    sketch.press(200.0, 50.0)
    sketch.press(200.5, 150.0)
    assert len(sketch) == 3
    assert all(0 < x < WIDTH and 0 < y < HEIGHT for x, y in sketch.points)


def test_the_picture_holds_the_points():
    sketch = Sketch()
    for x in (100.0, 200.0, 300.0):
        sketch.press(x, 100.0)
    root = ET.fromstring(f"<svg>{sketch.svg()}</svg>")
    assert len(root.findall("circle")) == 3 and len(root.findall("polyline")) == 1
    sketch.clear()
    assert "circle" not in sketch.svg()
