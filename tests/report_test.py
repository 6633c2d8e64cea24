"""The report: what it says and shows, that it needs nothing beside it, that names do no harm."""

import base64
import html.parser
import re

import numpy as np
import pytest
from solved import logistic

import nsode_jax
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.expression import Expression
from nsode_jax.reporting import report
from nsode_jax.reporting.discovery import Discovery
from nsode_jax.reporting.report import write_report
from nsode_jax.results.analysis import residual_remark
from nsode_jax.results.result import Candidate

PICTURES = ("fit.png", "law.png", "residuals.png", "pareto.png", "next.png")
T = np.linspace(0, 10, 40)


def law_of(formula, y0s=(0.1,), probability=0.9, errors=None, rms=0.05):
    covariance = None if errors is None else np.diag(np.square(errors))
    return Candidate(
        Expression.from_infix(formula),
        tuple(y0s),
        (0.0,) * len(y0s),
        0.995,
        rms,
        0.0,
        probability=probability,
        covariance=covariance,
    )


def noise(seed=0, size=T.size):
    return 0.05 * np.random.default_rng(seed).normal(size=size)


def discovery_of(*noises, laws=None, notes=("Mind the gap.",)):
    starts = (0.1, 3.0, 1.0)[: len(noises)]
    series = tuple(Trajectory(T, logistic(T, y0=y0) + e) for y0, e in zip(starts, noises))
    best = law_of("y - 0.5*y**2", starts, errors=(0.0034, 0.0))
    other = law_of("2.26*y - 0.3459*y*log(y)", starts, probability=0.1, rms=0.2)
    return Discovery(tuple(laws or (best, other)), series, notes, 12.3, ("7 named laws", "guesses"))


class Page(html.parser.HTMLParser):
    """The elements of a page: (tag, attributes), and its text."""

    def __init__(self, source):
        super().__init__()
        self.elements, self.words = [], []
        self.feed(source)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "deep" / "report"
    options = {"effort": "fast", "seed": 7}
    written = write_report(discovery_of(noise()), folder, "hours", "mass", "yeast.csv", options)
    assert {path.name for path in written} == {path.name for path in folder.iterdir()}
    assert written[0] == folder / "report.html"
    return folder


def test_files(folder):
    expected = {"report.html", "report.md", "discovery.json", *PICTURES}
    assert {path.name for path in folder.iterdir()} == expected
    for name in PICTURES:
        assert (folder / name).read_bytes().startswith(b"\x89PNG")
    assert Discovery.load(folder / "discovery.json").best.infix == "y - 0.5*y**2"


@pytest.mark.parametrize("name", ["report.html", "report.md"])
def test_what_both_say(folder, name):
    source = (folder / name).read_text(encoding="utf-8")
    text = Page(source).text if name.endswith("html") else source.replace("\\", "")
    for words in (
        "The law of mass over hours",
        "y is mass, t is hours. The fitted solution starts at y = 0.1 at t = 0.",
        "R² = 0.99500; residual (root mean square) 0.05; probability 90.0%.",
        "Mind the gap.",
        "-0.5000 ± 0.0034",
        "-0.5067 to -0.4933",
        "unstable",
        "2.26*y - 0.3459*y*log(y)",
        "All 2:",
        "Data: yeast.csv",
        "Points fitted: 40, from 0 to 10",
        "Options: effort = fast, seed = 7",
        f"Program: nsode_jax {nsode_jax.__version__}",
        "Laws tried: 7 named laws; guesses.",
        "Search: 12.3 s",
        'Discovery.load("discovery.json")',
        "The residuals show no pattern",
        "what all of them together leave of 100% is that none of them is. The complexity counts",
    ):
        assert words in text


def test_the_page_needs_nothing_beside_it(folder):
    page = Page((folder / "report.html").read_text(encoding="utf-8"))
    images = page.all("img")
    assert len(images) == 1 + len(PICTURES) and all(image["alt"] for image in images)
    assert images[0]["alt"] == "dy/dt = y - 0.5*y**2"
    kinds = [image["src"].partition(";base64,")[0] for image in images]
    assert kinds == ["data:image/svg+xml", *["data:image/png"] * len(PICTURES)]
    embedded = {base64.b64decode(image["src"].partition(",")[2]) for image in images}
    assert {(folder / name).read_bytes() for name in PICTURES} < embedded
    assert not page.all("script") and not page.all("link")
    assert not [value for _, a in page.elements for key, value in a.items() if key == "href"]


def test_markdown_names_the_pictures_and_the_formula(folder):
    text = (folder / "report.md").read_text(encoding="utf-8")
    assert re.findall(r"!\[.+\]\((.+)\)", text) == list(PICTURES)
    assert "$$\n\\frac{dy}{dt} = y - 0.5 y^{2}\n$$" in text
    table = text[text.index("| rank") :].split("\n\n")[0].splitlines()
    assert table[1] == "| ---: | ---: | ---: | ---: | ---: | ---: | :--- |"
    assert table[2] == "| 1 | 90.0% | 0.99500 | 0.05 | 7 | - | `y - 0.5*y**2` |"


HOSTILE = "<script>alert(1)</script> \"'&amp; | `x` $\\frac$ [a](javascript:b) \n# *_~"


def test_what_is_said_of_the_picture_has_the_digits_of_the_table(tmp_path):
    series = Trajectory(T, 1004.9 + 8 * np.exp(-T))
    law = law_of("1004.932 - y", (1012.9,), errors=(0.055,))
    write_report(Discovery((law,), (series,), (), 1.0), tmp_path)
    (alt,) = (
        image["alt"]
        for image in Page((tmp_path / "report.html").read_text(encoding="utf-8")).all("img")
        if "Fixed points" in image["alt"]
    )
    assert alt.endswith("Fixed points: 1004.932 ± 0.055 (stable).")


def test_hostile_names_are_text(tmp_path):
    found = discovery_of(noise(), notes=(HOSTILE,))
    write_report(found, tmp_path, HOSTILE, HOSTILE, HOSTILE, {"weights": HOSTILE})
    source = (tmp_path / "report.html").read_text(encoding="utf-8")
    page, shown = Page(source), " ".join(HOSTILE.split())
    assert not page.all("script") and not page.all("a")
    assert page.text.count(shown) >= 5
    assert any(shown in image["alt"] for image in page.all("img"))
    policy = next(a["content"] for a in page.all("meta") if "http-equiv" in a)
    assert policy.startswith("default-src 'none'")

    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "<script" not in text.replace("\\<", "")
    assert "[a]" not in text.replace("\\[", "") and "\n# *" not in text
    # The bar of a name does not split a cell.
    header = next(line for line in text.splitlines() if line.endswith("range of the data |"))
    assert len(re.findall(r"(?<!\\)\|", header)) == 4


def test_several_series(tmp_path):
    write_report(discovery_of(noise(0), noise(1), noise(2)), tmp_path)
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "y = 0.1 at t = 0; y = 3 at t = 0; y = 1 at t = 0." in text
    assert "Points fitted: 40 + 40 + 40," in text and "120 observations of y" in text


def test_a_law_without_constants_or_fixed_points(tmp_path):
    write_report(discovery_of(noise(), laws=[law_of("exp(y)", rms=np.inf)]), tmp_path)
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "The law has no constants." in text and "None in the range of the data" in text


def test_unknown_errors(tmp_path):
    write_report(
        discovery_of(noise(), laws=[law_of("1.23456789 - y", probability=np.nan)]), tmp_path
    )
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "| 1.235 | unknown | not determined by the data |" in text
    assert "1.235 ± unknown" in text and "probability -." in text


def test_a_formula_too_long_to_save_costs_only_the_json(tmp_path):
    endless = law_of(" + ".join(["0.001*sin(y)"] * 100))
    (tmp_path / "discovery.json").write_text("of an earlier report")
    written = write_report(discovery_of(noise(), laws=[endless]), tmp_path)
    assert not (tmp_path / "discovery.json").exists()
    assert "discovery.json" not in {path.name for path in written}
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "too long for a file" in text and "Discovery.load" not in text


@pytest.mark.parametrize("scale", [1e-140, 1e-12, 1e12, 1e140])
def test_any_unit(tmp_path, scale):
    series = (Trajectory(T, scale * (logistic(T) + noise())),)
    law = law_of(f"y - {0.5 / scale!r}*y**2", (0.1 * scale,), 0.9, (0.003 / scale, 0), 0.05 * scale)
    write_report(Discovery((law,), series, (), 1.0), tmp_path)


def test_what_was_found_is_saved_though_a_picture_fails(tmp_path, monkeypatch):
    def fails(*_):
        raise ValueError("no picture")

    monkeypatch.setattr(report, "_pictures", fails)
    with pytest.raises(ValueError, match="no picture"):
        write_report(discovery_of(noise()), tmp_path)
    assert (tmp_path / "discovery.json").is_file()


def test_an_unwritable_folder(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError):
        write_report(discovery_of(noise()), tmp_path / "file")


def test_a_pattern_in_the_residuals_is_to_be_wary_of(tmp_path):
    found = discovery_of(0.1 * np.sin(T))
    write_report(found, tmp_path)
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert f"- {residual_remark(found).text}" in text


def test_without_a_solution(tmp_path):
    law = law_of("100 + y**5", rms=np.inf)
    series = Trajectory([1.0, 2.0, 3.0], [0.0, 1.0, 0.5])
    write_report(Discovery((law,), (series,), (), 1.0), tmp_path)
