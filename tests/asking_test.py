"""What the page makes of a file before the search: the command's reading, from memory."""

import dataclasses
import gzip
import io
import shlex
import zipfile

import numpy as np
import pytest
from numpy.testing import assert_allclose

from nsode_jax.app.asking import (
    CONTROLS,
    LARGEST,
    MOST_UNPACKED,
    Asked,
    Table,
    in_words_of_the_page,
    time_and_value,
    what_was_read,
)
from nsode_jax.console.arguments import InputError, parse
from nsode_jax.console.commands import command_of
from nsode_jax.discover import main
from nsode_jax.dynamics.vectors import TrajectoryError
from nsode_jax.tables.files import Contents
from nsode_jax.tables.quantities import Quantities

NOISY = [f"{t},{np.exp(-0.1 * t):.6f},{0.01 * (1 + t)},{np.cos(t)}" for t in range(20)]
LINES = [f"{t},{np.exp(-0.1 * t):.6f},{np.cos(t):.6f},{t**2}" for t in range(20)]


def table(text, name="data.csv"):
    return Table(Contents(name, text.encode()))


def test_columns_are_guessed_and_can_be_chosen():
    read = table("\n".join(["time [h],mass,position,area", *LINES]))
    assert list(read.columns) == ["time [h]", "mass", "position", "area"]
    assert read.guess() == Asked("time [h]", ("mass",))
    assert read.rows[1] == ("1", "0.904837", "0.540302", "1")
    chosen = read.read(Asked("time [h]", ("position",)))
    assert_allclose(chosen.trajectories[0].y, np.cos(np.arange(20)), atol=1e-6)
    assert what_was_read(chosen) == "20 points of position over time [h] from 0 to 19"
    assert time_and_value(chosen) == ("time [h]", "position")


def test_several_columns_are_quantities_or_replicates():
    read = table("\n".join(["t,a,b,c", *LINES]))
    coupled = Asked("t", ("a", "b"))
    quantities = read.read(coupled)
    assert isinstance(quantities, Quantities)
    assert quantities.names == ("a", "b") and quantities.values[0].shape == (20, 2)
    assert what_was_read(quantities) == "20 points of a, b over t from 0 to 19"
    assert time_and_value(quantities) == ("t", "y")
    replicates = read.read(Asked("t", ("a", "b"), replicates=True))
    assert replicates.labels == ("a", "b")


def test_series_are_told_apart():
    labelled = [f"{line},{'ab'[row % 2]}" for row, line in enumerate(LINES)]
    read = table("\n".join(["t,a,b,c,well", *labelled]))
    with pytest.raises(TrajectoryError, match="--series well"):
        read.read(Asked("t", ("a",)))
    assert read.guess() == Asked("t", ("a",), series="well")
    assert read.read(read.guess()).labels == ("a", "b")
    assert len(read.read(Asked("t", ("a", "b"), series="well")).times) == 2


def test_all_columns_of_values_can_be_taken():
    read = table("\n".join(["t,y,y_sd,stimulus", *NOISY]))
    assert read.all_values(Asked("t", errors=("y_sd",))) == ("y",)
    read = table("\n".join(["t,a,b,c", *LINES]))
    assert read.all_values(Asked("t", ("a",), inputs=("c",))) == ("a", "b")


def test_roles_are_guessed():
    read = table("\n".join(["t,y,y_sd,stimulus", *NOISY]))
    assert read.guess() == Asked("t", ("y",), inputs=("stimulus",))
    read = table("\n".join(["t,y,y_sd,z", *NOISY]))
    assert read.guess() == Asked("t", ("y",), errors=("y_sd",))
    assert read.read(read.guess()).trajectories[0].errors is not None
    assert read.errors_of(Asked("t", ("y", "z"))) == read.errors_of(Asked("t", ("z",))) == ()
    # A number would be an error itself.
    assert table("\n".join(["t,y,sd,sd", *NOISY])).guess().errors == ()


def test_what_is_asked_is_what_the_command_is_asked():
    asked = Asked("t", ("a", "b"), "well", inputs=("c",), explicit_time=True, second_order=True)
    given = "x --time t --value a,b --series well --input c --explicit-time --order 2".split()
    assert asked.options("x") == parse(given)
    asked = Asked("t", ("a", "b"), replicates=True, own="constants", errors=("c",), effort="fast")
    given = "x --time t --value a,b --replicates --constants own --sigma c --effort fast".split()
    assert asked.options("x") == parse(given)
    assert parse(shlex.split(asked.command("x"))[1:]) == asked.options("x")
    asked = Asked(
        "t", ("a",), sigma="0.05", start="2.5", end="-1", decimal=",", thousands=" ",
        dates="day-first", robust=True, zero_at_zero=True, tried="-0.1*y", known="0.5*y*(1 - ?)",
    )  # fmt: skip
    given = "x --time t --value a --sigma 0.05 --from 2.5 --to=-1 --decimal , --dates day-first"
    given = [*given.split(), "--thousands", " ", "--robust", "--zero-at-zero", "--try", "-0.1*y"]
    given += ["--known", "0.5*y*(1 - ?)"]
    assert asked.options("x") == parse(given)
    assert parse(shlex.split(asked.command("x"))[1:]) == asked.options("x")
    asked = Asked(
        "t", ("a",), "w", own="constants", form="r*y*(1 - y/K)", bounds="0 < r < 5", shared="K",
        effort="fast",
    )  # fmt: skip
    given = "x --time t --value a --series w --constants own --shared K --form".split()
    # Of a form that is known nothing is searched.
    assert asked.options("x") == parse([*given, "r*y*(1 - y/K)", "--bounds", "0 < r < 5"])
    asked = Asked("t", ("a",), "w", own="law", shared="K")
    given = "x.csv --time t --value a --series w --each".split()
    assert asked.options("x.csv") == parse(given)
    # The command needs a folder.
    assert parse(shlex.split(asked.command("x.csv"))[1:]) == parse([*given, "--out", "x_laws"])
    # What does not show is not asked for.
    alone = Asked("t", ("a",), replicates=True, own="constants", shared="K", bounds="K > 0")
    assert alone.options("x") == parse(["x", "--time", "t", "--value", "a"])
    assert Asked("--time", ("-x",)).options("x").value == "-x"


def test_inputs_and_options_of_systems_are_read():
    read = table("\n".join(["t,a,b,c", *LINES]))
    driven = read.read(Asked("t", ("a",), inputs=("b", "c"), second_order=True))
    assert driven.names == ("a",) and driven.input_names == ("b", "c")
    assert driven.values[0].shape == (20, 1) and driven.inputs[0].shape == (20, 2)
    assert what_was_read(driven) == "20 points of a over t from 0 to 19, with the inputs b, c"
    own = Asked("t", ("a", "b"), replicates=True, own="constants")
    assert read.read(own).labels == ("a", "b")
    assert command_of(own.options("x")).__name__.endswith("own_constants")
    each = dataclasses.replace(own, own="law")
    assert read.read(each).labels == ("a", "b")
    assert command_of(each.options("x")).__name__.endswith("each")


@pytest.mark.parametrize(
    "asked",
    [
        Asked("t", ("a", "b"), replicates=True, explicit_time=True),
        Asked("t", ("a", "b"), errors=("c",)),
        Asked("t", ("a",), errors=("c",), second_order=True),
        Asked("t", ("a",), inputs=("a",)),
        Asked("t", ("a",), errors=("a",)),
        Asked("t", (), explicit_time=True),
        Asked("t", ("a", "b"), replicates=True, own="constants", second_order=True),
        Asked("t", ("a", "b"), series="well", own="constants"),
        Asked("t", ("a", "b"), known="-0.1*y"),
        Asked("t", ("a", "b"), form="r*y"),
        Asked("t", ("a", "b"), replicates=True, form="r*y"),
        Asked("t", ("a", "b"), replicates=True, own="constants", robust=True),
        Asked("t", ("a", "b"), replicates=True, own="law", form="r*y"),
        Asked("t", ("a", "b"), replicates=True, own="law", explicit_time=True),
        Asked("t", ("a",), form="r*y", known="-0.1*y"),
        Asked("t", ("a",), form="r*y", zero_at_zero=True),
        Asked("t", ("a",), form="r*y", bounds="K > 0"),
        Asked("t", ("a",), form="r*y +"),
        Asked("t", ("a",), form="0.5*y"),
        Asked("t", ("a",), form="a*y + b*y**2 + c*y**3", end="3"),
        Asked("t", ("a", "b"), tried="r*a; b*("),
        Asked("t", ("a", "b"), tried="r*a"),
        Asked("t", ("a", "b"), end="5"),
        Asked("t", ("a",), second_order=True, tried="-k*a*("),
        Asked("t", ("a", "b", "c", "d", "e")),
        Asked("t", ("a",), known="y*(1 - ?"),
        Asked("t", ("a",), tried="0.5*a"),
        Asked("t", ("a",), sigma="-1"),
        Asked("t", ("a",), sigma="one"),
        Asked("t", ("a",), start="18"),
        Asked("t", ("a",), end="noon"),
    ],
)
def test_what_does_not_go_together_is_answered_as_by_the_command(
    asked, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    text = "\n".join(["t,a,b,c,well", *(f"{line},x" for line in LINES)])
    (tmp_path / "data.csv").write_text(text)
    monkeypatch.setattr("nsode_jax.discover.parse", lambda argv: asked.options("data.csv"))
    assert main(["data.csv"]) == 2
    said = capsys.readouterr().err.removeprefix("nsode_jax.discover: error: ")
    with pytest.raises((TrajectoryError, InputError)) as raised:
        table(text).read(asked)
    assert str(raised.value) == said.rstrip("\n")
    assert "--" not in in_words_of_the_page(str(raised.value))


def test_what_is_no_option_of_the_command_is_answered_in_the_words_of_the_page():
    read = table("\n".join(["t,a,b,c", *LINES]))
    with pytest.raises(InputError) as raised:
        read.read(Asked("t", ("a",), form="r*y", bounds="r"))
    said = in_words_of_the_page(str(raised.value))
    assert said == "“bounds of constants”: 'r' is no bound such as K > 0 or 0 < r < 5"
    assert read.ends(Asked("t")) == ("0", "19") and read.ends(Asked()) == ("", "")


def test_options_have_the_names_of_their_controls():
    said = in_words_of_the_page("--order 2 and --constants own; --series-x, --valued --value a")
    assert said == (
        f"“{CONTROLS['--order 2']}” and “{CONTROLS['--constants own']}”; "
        "--series-x, --valued “values” a"
    )


@pytest.mark.parametrize(
    ("names", "keys"),
    [
        ("t,y,z,w", ["t", "y", "z", "w"]),
        ("t,y,y,w", ["t", "2", "3", "w"]),
        ('t,"y, measured",z,restart', ["t", "2", "z", "restart"]),
        ("t,3,1,w", ["t", "3", "1", "w"]),
        ("t,,z,w", ["t", "2", "z", "w"]),
    ],
    ids=["names", "twice", "commas", "numbers", "none"],
)
def test_every_column_has_a_key_that_finds_it(names, keys):
    read = table("\n".join([names, *LINES]))
    assert list(read.columns) == keys
    values = read.read(Asked(keys[0], (keys[2],))).trajectories[0].y
    assert_allclose(values, np.cos(np.arange(20)), atol=1e-6)


@pytest.mark.parametrize(
    "text", ["hello\nworld\n", "", "t,y\n1,2\n2,3\n", "t,y\n" + "1,a\n" * 9, "a,b,c\n1,2\n"]
)
def test_bad_files_are_answered_as_by_the_command(text, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.csv").write_text(text)
    assert main(["bad.csv"]) == 2
    said = capsys.readouterr().err.removeprefix("nsode_jax.discover: error: ")
    with pytest.raises(TrajectoryError) as raised:
        read = table(text, "bad.csv")
        read.read(read.guess())
    assert str(raised.value) == said.rstrip("\n")


def test_one_column_cannot_be_both():
    read = table("\n".join(["t,a,b,c", *LINES]))
    for values in (("t",), ("t", "a")):
        with pytest.raises(TrajectoryError, match="same column"):
            read.read(Asked("t", values))


def test_too_large_is_too_large():
    with pytest.raises(TrajectoryError, match=r"'big.csv' has more than 10 MB"):
        Table(Contents("big.csv", b" " * (LARGEST + 1)))


def test_unpacked_it_may_be_too_large_as_well():
    packed = gzip.compress(b" " * (MOST_UNPACKED + 1))
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("sheet", b" " * (MOST_UNPACKED + 1))
    for raw in (packed, archive.getvalue()):
        assert len(raw) < LARGEST
        with pytest.raises(TrajectoryError, match=r"has more than 100 MB"):
            Table(Contents("bomb", raw))


@pytest.mark.parametrize(
    "raw",
    [b"\x1f\x8b", b"PK\x03\x04", gzip.compress(b"t,y", mtime=0)[:-4]],
    ids=["gzip", "zip", "cut off"],
)
def test_a_damaged_archive_is_answered_in_a_line(raw):
    with pytest.raises(TrajectoryError, match="cannot be read"):
        Table(Contents("damaged", raw))


def test_spreadsheets_too():
    openpyxl = pytest.importorskip("openpyxl")
    book, buffer = openpyxl.Workbook(), io.BytesIO()
    book.active.append(["t", "y"])
    for row in range(10):
        book.active.append([row, row**2])
    book.save(buffer)
    read = Table(Contents("data.xlsx", buffer.getvalue()))
    assert read.guess() == Asked("t", ("y",))
    assert_allclose(read.read(read.guess()).trajectories[0].y, np.arange(10) ** 2)
