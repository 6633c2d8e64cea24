"""The command line for systems, with a stand-in for the search."""

import numpy as np
import pytest
from observing import prey_discovery

from nsode_jax.discover import main
from nsode_jax.discovery import SystemDiscovery, systems
from nsode_jax.discovery.pipeline import DiscoveryError

HEADER = "t,prey,hunters,u\n"


@pytest.fixture(scope="module")
def found():
    return prey_discovery(notes=("The fit was checked.",))


@pytest.fixture
def calls(monkeypatch, tmp_path, found):
    """Replaces the search; collects what it was asked. Runs in an empty folder with a table."""
    monkeypatch.chdir(tmp_path)
    asked = []

    def discover_system(t, y, **options):
        asked.append({"t": t, "y": y, **options})
        return found

    monkeypatch.setattr(systems, "discover_system", discover_system)
    t = np.linspace(0.0, 5.0, 30)
    rows = zip(t, np.sin(t) + 2, np.cos(t) + 2, t**2)
    text = "".join(",".join(map(str, row)) + "\n" for row in rows)
    (tmp_path / "data.csv").write_text(HEADER + text)
    return asked


def test_a_picture_is_drawn_where_one_is(calls, capsys, tmp_path, found):
    assert main(["data.csv", "--value", "prey,hunters"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("30 points of prey, hunters over t from ")
    assert str(found.best) in out and "note: The fit was checked." in out
    assert "(centre; eigenvalues" in out
    assert out.endswith("picture: data_law.png\n")
    assert (tmp_path / "data_law.png").read_bytes().startswith(b"\x89PNG")


def test_options_reach_the_search(calls, tmp_path):
    options = "--value 2,hunters --input u --order 2 --explicit-time --effort thorough"
    options += " --operators pow,exp --max-symbols 9 --out report"
    arguments = ["data.csv", *options.split(), "--try", "a*prey; b*hunters"]
    assert main(arguments) == 0
    (call,) = calls
    del call["progress"]
    (values,), (inputs,) = call.pop("y"), call.pop("inputs")
    assert (values.shape, inputs.shape) == ((30, 2), (30, 1))
    del call["t"]
    assert call == {
        "explicit_time": True,
        "order": 2,
        "names": ("prey", "hunters"),
        "input_names": ("u",),
        "candidates": ["a*prey; b*hunters"],
        "operators": ("pow", "exp"),
        "max_symbols": 9,
        "effort": "thorough",
    }
    page = (tmp_path / "report" / "report.md").read_text(encoding="utf-8")
    chosen = r"effort = thorough, order = 2, explicit time = True, operators = pow, exp, "
    assert chosen + r"max\_symbols = 9, tried = a\*prey; b\*hunters" in page
    assert SystemDiscovery.load(tmp_path / "report" / "discovery.json").best is not None


def test_names_with_commas_stand_in_quotation_marks(calls, tmp_path):
    text = (tmp_path / "data.csv").read_text().replace("prey", '"prey, g"', 1)
    (tmp_path / "data.csv").write_text(text)
    assert main(["data.csv", "--value", '"prey, g",hunters', "--input", "u"]) == 0
    assert calls[0]["names"] == ("prey, g", "hunters")


@pytest.mark.parametrize("option", ["--explicit-time", "--order 2"])
def test_the_only_column_needs_no_name(calls, tmp_path, option):
    rows = "".join(f"{t},{np.sin(t)}\n" for t in np.linspace(0.0, 5.0, 30))
    (tmp_path / "one.csv").write_text("t/s,x/mm\n" + rows)
    assert main(["one.csv", *option.split()]) == 0
    assert calls[0]["names"] == ("x/mm",)


def test_rows_that_are_fitted_are_counted_before_the_search(calls, capsys, tmp_path):
    cells = [[t, 2 + np.sin(t), 2 + np.cos(t)] for t in np.linspace(0.0, 5.0, 30)]
    cells[3][1] = cells[5][1] = cells[8][2] = "NA"
    text = "t,prey,hunters\n" + "".join(",".join(map(str, row)) + "\n" for row in cells)
    (tmp_path / "gaps.csv").write_text(text)
    assert main(["gaps.csv", "--value", "prey,hunters"]) == 0
    note, read, *_ = capsys.readouterr().out.splitlines()
    assert note.startswith("note: 3 of 30 rows dropped: where one of prey, hunters is missing")
    assert read.startswith("27 points of prey, hunters over t from 0 to 5")


def test_names_in_laws_of_ones_own_are_said_to_be_constants(calls, capsys):
    own = "a*prey - b*prey*hunter; c*hunters"
    assert main(["data.csv", "--value", "prey,hunters", "--try", own]) == 0
    said = f"note: In {own!r} a, b, hunter, c are taken as constants, to be fitted; "
    assert said + "the variables are prey, hunters.\n" in capsys.readouterr().out
    assert main(["data.csv", "--value", "prey,hunters", "--try", "2*prey; 3*hunters"]) == 0
    assert "to be fitted" not in capsys.readouterr().out


def test_a_quantity_may_be_constant_in_a_run(calls, tmp_path):
    rows = [f"{run},{t},{2 + np.sin(t)},{k * np.cos(t)},{k}" for k, run in enumerate("ab")
            for t in np.linspace(0, 5, 30)]  # fmt: skip
    (tmp_path / "data.csv").write_text("run,t,prey,hunters,u\n" + "\n".join(rows))
    asked = ["data.csv", "--value", "prey,hunters", "--input", "u", "--series", "run"]
    assert main(asked) == 0
    assert [np.ptp(inputs) for inputs in calls[0]["inputs"]] == [0, 0]
    assert np.ptp(calls[0]["y"][0][:, 1]) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--value prey,hunters --seed 1", "--seed is for one quantity"),
        ("--value prey,hunters --beams 9", "--beams is for one quantity"),
        ("--value prey,hunters --robust", "--robust is for one quantity"),
        ("--value prey,hunters --out x.docx", "neither a folder nor a picture"),
        ("--value prey,fox", "no column 'fox'"),
        ("--value prey,hunters,u,t", "none is left for the times"),
        ("--value prey,prey", "named twice"),
        ("--explicit-time", "name the columns that have laws, one or several"),
        ("--order 2 --input u", "'data.csv' has 2 columns of values"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(calls, capsys, options, message):
    assert main(["data.csv", *options.split()]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
    assert not calls


def test_no_laws_found(calls, monkeypatch, capsys):
    def none(*arguments, **options):
        raise DiscoveryError("No law.")

    monkeypatch.setattr(systems, "discover_system", none)
    assert main(["data.csv", "--value", "prey,hunters"]) == 1
    assert capsys.readouterr().err.splitlines()[-1] == "nsode_jax.discover: No law."
