"""The documentation: its code runs, its links lead somewhere, and it is short where it must be."""

import re
from pathlib import Path

import matplotlib
import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
_LINK = re.compile(r"\]\(([^)#]+)(#[^)]*)?\)")
_INCLUDED = re.compile(r'^--8<-- "([^"]+)"$', flags=re.MULTILINE)


def text_of(page: Path) -> str:
    """A page as it is shown: with the files that it includes."""
    text = page.read_text(encoding="utf-8")
    return _INCLUDED.sub(lambda found: (ROOT / found[1]).read_text(encoding="utf-8"), text)


def python_of(page: Path) -> list[str]:
    """The blocks of Python of a page, in order."""
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_the_guide_runs_as_it_stands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    matplotlib.use("agg")
    names: dict = {"named": ["named laws"]}
    blocks = python_of(ROOT / "docs" / "guide.md")
    for block in blocks:
        # What is tested is that the calls are right: all searches are of little effort, and but
        # for the first they try the laws that have names.
        block = re.sub(r'(discover\((t|hours), .*effort="fast")\)', r"\1, sources=named)", block)
        exec(block.replace("discover(t, y)", 'discover(t, y, effort="fast")'), names)  # noqa: S102 - our own page.
    assert len(blocks) >= 8
    assert {"law.png", "law.json", "plate.png", "laws"} <= {
        path.name for path in tmp_path.iterdir()
    }
    assert "logistic" in str(names["best"].name)


def test_python_in_other_pages_can_be_read():
    for page in PAGES:
        for block in python_of(page):
            compile(block, str(page), "exec")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    for target, _ in _LINK.findall(text_of(page)):
        if not target.startswith(("http://", "https://", "mailto:")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_changelog_is_read_where_it_is_included():
    assert "Keep a Changelog" in text_of(ROOT / "docs" / "changelog.md")


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 140


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in (ROOT / "docs").rglob("*.md"):
        assert page.relative_to(ROOT / "docs").as_posix() in navigation
