"""A system in words, and as a table."""

import dataclasses

from observing import discovered, prey_discovery

from nsode_jax.dynamics.system import System


def test_a_terminal_shows_the_laws_their_constants_and_where_they_rest():
    lines = str(prey_discovery(notes=("Mind the gap.",))).splitlines()
    assert lines[0].startswith("dprey/dt = 1.1") and lines[1].startswith("dhunters/dt = ")
    assert lines[2].startswith("with prey = ") and "at t = 0, R² = 0.99" in lines[2]
    assert lines[3] == "constants, with standard errors that hold if these forms are right:"
    assert lines[4].startswith("  dprey/dt: 1.10") and " ± " in lines[5]
    assert lines[6] == "fixed points:" and "(centre; eigenvalues ±" in lines[7]
    assert any(line.startswith("rank  probability") for line in lines)
    assert lines[-1] == "note: Mind the gap."


def test_whole_exponents_are_no_fitted_constants():
    found = discovered(System(("x",), explicit_time=True), ("1.5 - 0.4*x**2",), (0.2,))
    constants = next(line for line in str(found).splitlines() if line.startswith("  dx/dt: "))
    assert constants.count("±") == 2 and " 2" not in constants.replace("± ", "")


def test_a_curve_of_fixed_points_is_one_line():
    found = discovered(System(("s", "i")), ("-0.5*s*i", "0.5*s*i - 0.2*i"), (2.0, 0.1))
    lines = str(found).splitlines()
    assert lines[lines.index("fixed points:") + 1] == "  a curve of them"


def test_a_notebook_shows_the_same():
    found = prey_discovery(notes=("a < b",))
    assert r"\begin{aligned}" in found._repr_markdown_()
    page = found._repr_html_()
    for words in ("dprey/dt = ", "<table>", "Fixed point: prey = ", "Note: a &lt; b"):
        assert words in page


def test_systems_of_ones_own_are_there_whatever_their_rank():
    found = prey_discovery()
    first, second = found.candidates
    own = dataclasses.replace(second, asked_for=True)
    found = dataclasses.replace(found, candidates=(*(first,) * 7, own))
    lines = str(found).splitlines()
    equations = str(own).splitlines()
    place = next(i for i, line in enumerate(lines) if line.startswith("   8 "))
    assert lines[place].endswith(equations[0])
    assert lines[place + 1].strip() == equations[1] + "  (yours)"
    assert str(found).count("(yours)") == 1 and found._repr_html_().count("(yours)") == 1
    assert found.table()["asked_for"].tolist() == [False] * 7 + [True]


def test_the_table_has_a_column_for_each_equation():
    table = prey_discovery().table()
    assert list(table.columns[:3]) == ["rank", "dprey/dt", "dhunters/dt"]
    assert table["rank"].tolist() == [1, 2] and table["r2"][0] > 0.99 > table["r2"][1]
    assert len(prey_discovery().table(1)) == 1
