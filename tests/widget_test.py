"""The widget for notebooks, without a browser."""

import builtins
import sys

import pytest
from observing import logistic_discovery, plate_discovery, prey_discovery

from nsode_jax.system.extras import MissingExtra


@pytest.fixture
def ipywidgets():
    return pytest.importorskip("ipywidgets", reason="the extra `notebook` is not installed")


def html_of(widget):
    """All that the widget shows as HTML."""
    children = getattr(widget, "children", ())
    own = widget.value if type(widget).__name__ == "HTML" else ""
    return own + "".join(map(html_of, children))


def test_a_slider_moves_the_law(ipywidgets):
    widget = logistic_discovery().explore("hours", "mass")
    assert [label[:2] for label, _ in widget.chooser.options] == ["1.", "2."]
    assert "(90.0%)" in widget.chooser.options[0][0]
    assert "R² = 0.999" in html_of(widget) and "logistic growth" in html_of(widget)
    before = html_of(widget)
    widget.sliders["c0"].value = 1.2
    assert "R² = 0.999" not in html_of(widget)
    assert "candidate 1, moved" in html_of(widget)
    (reset,) = [part for part in widget.children if isinstance(part, ipywidgets.Button)]
    reset.click()
    assert widget.sliders["c0"].value == pytest.approx(0.9)
    assert "candidate 1, moved" not in html_of(widget)
    assert len(html_of(widget)) == pytest.approx(len(before), rel=0.01)


def test_another_law_has_other_sliders(ipywidgets):
    widget = logistic_discovery().explore()
    widget.chooser.value = 1
    assert list(widget.sliders) == ["c0", "y0"]
    assert "candidate 2" in html_of(widget)


def test_a_system(ipywidgets):
    widget = prey_discovery().explore("years")
    widget.sliders["c3"].value *= 1.2
    assert "solution" in html_of(widget) and widget.seen.is_moved


def test_constants_of_their_own(ipywidgets):
    widget = plate_discovery().explore("hours", "OD")
    (reset,) = [part for part in widget.children if isinstance(part, ipywidgets.Button)]
    assert not widget.sliders and reset.layout.display == "none"
    assert "carrying capacity" in html_of(widget)
    widget.chooser.value = 1
    assert widget.seen.place == 1 and "carrying capacity" not in html_of(widget)


@pytest.mark.parametrize("found", [logistic_discovery, prey_discovery, plate_discovery])
def test_a_missing_package_is_a_line(found, monkeypatch):
    original = builtins.__import__

    def absent(name, *arguments, **named):
        if name == "ipywidgets":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return original(name, *arguments, **named)

    monkeypatch.delitem(sys.modules, "nsode_jax.reporting.widget", raising=False)
    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(MissingExtra, match=r"^explore\(\) needs ipywidgets, .*\[notebook\]'$"):
        found().explore()
