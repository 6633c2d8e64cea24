"""The report of a system: what it says and shows."""

import pytest
from observing import discovered, prey_discovery

from nsode_jax.discovery import SystemDiscovery
from nsode_jax.dynamics.system import System
from nsode_jax.reporting.system_report import write_report
from nsode_jax.results.uncertainty import constants_as_shown


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    found = prey_discovery(notes=("Mind the gap.",))
    found.save(folder / "before.json")
    write_report(found, folder, "years", "prey.csv", {"effort": "fast"})
    return folder


def test_the_files(folder):
    written = {path.name for path in folder.iterdir()} - {"before.json"}
    assert written == {
        *("report.html", "report.md", "discovery.json"),
        *("fit.png", "residuals.png", "portrait.png"),
    }
    assert str(SystemDiscovery.load(folder / "discovery.json")) == str(
        SystemDiscovery.load(folder / "before.json")
    )


def test_what_it_says(folder):
    page = (folder / "report.md").read_text(encoding="utf-8")
    assert page.startswith("# The laws of prey, hunters over years\n")
    assert r"\begin{aligned}\frac{d\mathrm{prey}}{dt} &= " in page
    for words in (
        "t is years.",
        "Mind the gap.",
        "The fitted solution starts at prey = ",
        "| quantity | R² | residual (root mean square) |",
        "| law of | constant | value | standard error | 95% interval |",
        "| prey | hunters | kind | eigenvalues (1/time) | in the range of the data |",
        "| centre | ± 0.991i | yes |",
        "dhunters/dt = ",
        "def vector_field(t, y, args=None):",
        "- Data: prey.csv\n- Points fitted: 120, from 0 to 8\n- Options: effort = fast",
        'discovery = SystemDiscovery.load("discovery.json")',
    ):
        assert words in page, words
    for picture in ("fit", "residuals", "portrait"):
        assert f"({picture}.png)" in page


def test_the_page_needs_nothing_beside_it(folder):
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert page.count('<img src="data:image/') == 4
    assert "<script" not in page and 'src="http' not in page


@pytest.mark.parametrize(
    ("system", "equations", "start", "pictures"),
    [
        (System(("y",), explicit_time=True), ("1.3*cos(2.1*t) - 0.7*y",), (2.0,), []),
        (System(("x", "y", "z")), ("-x", "x - y", "y - 0.5*z"), (1.0, 0.5, 0.1), ["pairs.png"]),
        (System(("s", "i")), ("-0.5*s*i", "0.5*s*i - 0.2*i"), (2.0, 0.1), ["portrait.png"]),
    ],
    ids=["of time", "three", "epidemic"],
)
def test_other_systems(system, equations, start, pictures, tmp_path):
    found = discovered(system, equations, start)
    written = write_report(found, tmp_path)
    names = [path.name for path in written[2:-1]]
    assert names == ["fit.png", "residuals.png", *pictures]
    page = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert ("## Fixed points" in page) == (not system.explicit_time)
    assert ("There is a curve of fixed points too." in page) == ("s" in system.observed)


def test_constants_stand_as_in_the_formula():
    """Of x' = 2 - 0.3 x the fit may hold the terms in another order."""
    found = discovered(System(("x",), explicit_time=True), ("-0.3*x + 2",), (1.0,), noise=0.001)
    ((first, second),) = constants_as_shown(found.best.laws, found.best.standard_errors)
    assert str(found.best).startswith("dx/dt = 2") or str(found.best).startswith("dx/dt = 1.99")
    assert first.value == pytest.approx(2.0, abs=0.01) and second.value < 0.0
    assert first.low < first.value < first.high
