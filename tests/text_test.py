"""What a result says in a terminal and in a notebook."""

import dataclasses
import html

import numpy as np
import pytest
from observing import CANDIDATES, candidate_of

from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.reporting.discovery import Discovery
from nsode_jax.reporting.text import (
    candidate_table,
    law_text,
    start_text,
    table_text,
)
from nsode_jax.results.uncertainty import constants_as_shown

FOUND = Discovery(
    CANDIDATES,
    (Trajectory([0, 1, 2], [1, 2, 4]),),
    ("Beware of <b> & |.",),
    2.5,
    ("3 laws", "a few"),
)


class TestText:
    def test_terminal(self):
        lines = str(FOUND).splitlines()
        assert lines[0] == "dy/dt = 0.5321*y - 0.0008123*y**2"
        assert lines[1] == "with y = 1 at t = 0, R² = 0.99000, residual 0.1"
        heading = "constants, with standard errors that hold if this form is right:"
        assert lines[2:5] == [heading, "  0.5321 ± 0.0034", "  -0.0008123 ± 0.0000021"]
        assert lines[5:7] == ["fixed points:", "  0 (unstable, beyond the data)"]
        assert lines[8].split() == ["rank", "probability", "R²", "complexity", "dy/dt", "="]
        assert lines[9] == "   1        90.0%   0.99000           9  0.5321*y - 0.0008123*y**2"
        assert lines[11] == "   3            -  diverges           2  exp(y)"
        assert lines[-2:] == ["tried: 3 laws; a few.", "note: Beware of <b> & |."]
        assert repr(FOUND) == "<Discovery: dy/dt = 0.5321*y - 0.0008123*y**2, best of 4>"

    def test_many_candidates_are_cut(self):
        many = Discovery(CANDIDATES * 2, FOUND.trajectories, (), 1.0)
        assert "(3 more candidates: table() lists all)" in str(many)
        assert "3 more candidates" in many._repr_html_() and "3 more" in many._repr_markdown_()

    def test_notebook(self):
        page = FOUND._repr_html_()
        assert "Beware of <b>" not in page and html.escape("Beware of <b> & |.") in page
        assert page.count("<tr>") == 5 and page.count("<code>") == 5
        assert "<pre><code>dy/dt = 0.5321*y - 0.0008123*y**2</code></pre>" in page
        markdown = FOUND._repr_markdown_().splitlines()
        assert markdown[:3] == ["$$", r"\frac{dy}{dt} = 0.5321 y - 0.0008123 y^{2}", "$$"]
        rows = [line for line in markdown if line.startswith("|")]
        assert len(rows) == 6 and {row.count("|") for row in rows} == {6}

    def test_several_trajectories_are_counted(self):
        law = candidate_of("y", y0s=(1.0, 2.0, 3.0), start_times=(0.0, 0.0, 1.0))
        found = Discovery((law,), FOUND.trajectories, (), 1.0)
        assert "y = 1 at t = 0 (and 2 more trajectories)," in str(found)


class TestLaw:
    def test_in_the_words_of_the_file(self):
        lines = law_text(FOUND, "hours", "mass").splitlines()
        assert lines[0] == "dmass/dhours = 0.5321*mass - 0.0008123*mass**2"
        assert lines[1].startswith("with mass = 1 at hours = 0, ")

    @pytest.mark.parametrize("name", ["log", "time (h)", "y\\1"])
    def test_names_that_could_be_a_part_of_a_formula_are_bracketed(self, name):
        assert law_text(FOUND, "t", name).startswith(f"d[{name}]/dt = 0.5321*[{name}] - ")

    def test_large_times_keep_their_digits(self):
        law = candidate_of("y", start_times=(1_700_000_123.0,))
        found = Discovery((law,), FOUND.trajectories, (), 1.0)
        assert "y = 1 at t = 1700000123," in str(found)

    def test_the_start_is_as_exact_as_the_law(self):
        law = candidate_of("y", y0s=(1234.5678,), residual_rms=0.01)
        assert start_text(law, 0) == "y = 1234.568 at t = 0"

    def test_constants_stand_as_in_the_formula(self):
        law = candidate_of("-0.00082*y**2 + 0.547*y", np.diag([1e-5, 0.0, 0.005]) ** 2)
        assert law.rounded().infix.startswith("0.547*y")
        (shown,) = constants_as_shown((law.expression,), law.standard_errors)
        assert [c[:2] for c in shown] == [("c0", 0.547), ("c1", -0.00082), ("exponent", 2.0)]
        assert shown[0][2:] == pytest.approx((0.005, 0.5372, 0.5568))
        assert list(law.constants_table().index) == ["c0", "c1", "exponent"]
        assert law.constants_table().loc["c1", "value"] == -0.00082


class TestTable:
    def test_wide(self):
        table = candidate_table(FOUND, 2, wide=True)
        assert table.header == tuple("rank probability R² residual complexity origin".split()) + (
            "dy/dt =",
        )
        assert table.rows[0][1:6] == ("90.0%", "0.99000", "0.1", "9", "network")
        assert len(table.rows) == 2 and table.rows[1][5] == "-"

    def test_is_aligned(self):
        header, *rows = table_text(FOUND, 3).splitlines()
        at = header.index("dy/dt =")
        assert [row[at:] for row in rows] == ["0.5321*y - 0.0008123*y**2", "0.3*y", "exp(y)"]
        assert all(row[at - 3 : at] == row[at - 3] + "  " for row in rows)

    def test_is_cut_to_a_terminal(self):
        long = candidate_of(" + ".join(f"{i}.5*sin({i}.25*y)" for i in range(1, 9)))
        found = Discovery((long,), FOUND.trajectories, (), 1.0)
        full, cut = table_text(found, 5).splitlines(), table_text(found, 5, 80).splitlines()
        assert len(full[1]) > 120 and full[0] == cut[0]
        assert cut[1] == full[1][:77] + "..."
        own = dataclasses.replace(found, candidates=(dataclasses.replace(long, origin="user"),))
        assert table_text(own, 5, 80).splitlines()[1] == full[1][:68] + "...  (yours)"

    def test_laws_of_ones_own_are_there_whatever_their_rank(self):
        *others, last = CANDIDATES
        own = dataclasses.replace(last, origin="user")
        found = Discovery((*others, *others, own), FOUND.trajectories, (), 1.0)
        *_, rank_3, mine = table_text(found, 3).splitlines()
        assert rank_3.split()[0] == "3" and mine.split()[0] == "7"
        assert mine.endswith("0.31*y + 0.1*y**3  (yours)")
        assert "(1 more candidate: table() lists all)" in str(found)
        assert candidate_table(found, 3, wide=True).rows[-1][5] == "user"
