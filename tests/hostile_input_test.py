"""What nobody should give us, as formulas and as files: one line of refusal, and nothing runs."""

import itertools
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from nsode_jax.dynamics.trajectory import Trajectory, clean
from nsode_jax.dynamics.vectors import TrajectoryError
from nsode_jax.expressions.expression import Expression, ExpressionError
from nsode_jax.tables.table import read_table

FORMULAS = {
    "import": "__import__('os')",
    "import without quotes": "__import__(os)",
    "class": "().__class__",
    "attribute": "y.__class__",
    "method": "y.real",
    "call of a number": "2(3)",
    "call of y": "y(1)",
    "lambda": "lambda: 0",
    "exec": "exec('y = 1')",
    "eval": "eval(y)",
    "open": "open(y)",
    "walrus": "(y := 1)",
    "assignment": "y = 1",
    "conditional": "y if y else y",
    "comprehension": "[y for y in y]",
    "comparison": "y == y",
    "boolean": "y and y",
    "f-string": "f'{y}'",
    "f-string that calls": 'f"{__import__(1)}"',
    "string": "'y'",
    "bytes": "b'y'",
    "template": "{y}",
    "shell": "`ls`; $(ls)",
    "comment": "y # y",
    "two statements": "y; y",
    "index": "y[0]",
    "tuple": "y, y",
    "star": "*y",
    "decorator": "@y",
    "imaginary": "1j",
    "hexadecimal": "0x10",
    "underscore in a number": "1_000",
    "modulo": "y % 2",
    "floor division": "y // 2",
    "bitwise": "y & ~y",
    "infinite number": "1e999",
    "infinity": "inf",
    "nan": "nan",
    "true": "True",
    "none": "None",
    "null": "\0",
    "null at the end": "y\0",
    "null inside": "y + \0 y",
    "escape": "y\x1b[2J",
    "zero width": "y\u200b",
    "right to left": "\u202ey",
    "cyrillic y": "\u0443",
    "cyrillic i in sin": "s\u0456n(y)",
    "fullwidth y": "\uff59",
    "fullwidth parentheses": "\uff08y\uff09",
    "greek question mark": "y\u037e",
    "superscript": "y\u00b2",
    "fraction": "\u00bd*y",
    "lone surrogate": "\ud800",
    "empty": "",
    "spaces": " \n\t ",
    "open parenthesis": "(",
    "parentheses": "(" * 100_000 + "y" + ")" * 100_000,
    "unclosed parentheses": "(" * 1_000_000,
    "nested functions": "sin(" * 100_000 + "y" + ")" * 100_000,
    "minus signs": "-" * 1_000_000 + "y",
    "plus signs": "+" * 1_000_000 + "y",
    "tower of powers": "y" + "**y" * 100_000,
    "long number": "1" * 1_000_000,
    "long name": "a" * 1_000_000,
    "long underscores": "_" * 1_000_000,
    "a million spaces": " " * 1_000_000,
    "a million words": "y " * 500_000,
}


@pytest.mark.parametrize("name", FORMULAS)
def test_formulas_are_refused_quickly(name, monkeypatch):
    def run(*args, **kwargs):
        raise AssertionError("text of the formula was run")

    for builtin in ("eval", "exec", "compile", "__import__"):
        monkeypatch.setattr(f"builtins.{builtin}", run)
    start = time.process_time()
    with pytest.raises(ExpressionError) as caught:
        Expression.from_infix(FORMULAS[name])
    monkeypatch.undo()
    assert time.process_time() - start < 10  # Hangs are meant; the slowest takes half a second.
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["9**9**9**9", "9**9**9**9*y", "y**9**9**9", "1/0", "log(-1)"])
def test_numbers_that_explode_are_never_computed_exactly(text):
    # They are of our grammar, so they parse; in floats they are infinite or undefined.
    expression = Expression.from_infix(text)
    assert not np.isfinite(expression.evaluate(2.0))


def test_the_refusal_of_a_long_formula_is_short():
    with pytest.raises(ExpressionError) as caught:
        Expression.from_infix("a" * 1_000_000)
    assert len(str(caught.value)) < 1000


def test_a_sum_of_a_million_characters_is_refused():
    with pytest.raises(ExpressionError):
        Expression.from_infix("y" + "+y" * 500_000)


def test_a_long_sum_is_refused_or_works():
    try:
        expression = Expression.from_infix("y" + "+y" * 1000)
    except ExpressionError:
        return
    assert expression.evaluate(1.0) == 1001


def test_digits_of_other_scripts_are_refused():
    with pytest.raises(ExpressionError):
        Expression.from_infix("\u0663*y")  # Arabic-Indic three.


@pytest.mark.parametrize("thing", [None, 3, b"y", ["y"]])
def test_what_is_no_text_is_refused(thing):
    with pytest.raises(ExpressionError):
        Expression.from_infix(thing)


# --- files and arrays ---------------------------------------------------------

SERIES = "t,y\n" + "".join(f"{i},{i * i}\n" for i in range(12))


def read_or_refusal(path, **columns) -> Trajectory | str:
    """The trajectory, or the one line of the refusal; any other error fails the test."""
    try:
        return read_table(path, **columns)[0]
    except TrajectoryError as error:
        assert str(error) and "\n" not in str(error)
        return str(error)


@pytest.mark.parametrize("seed", range(5))
def test_damaged_files_are_read_or_refused(tmp_path, seed):
    random = np.random.default_rng(seed)
    path = tmp_path / "data.csv"
    odd = [
        b'"',
        b"\r",
        b"\n",
        b",",
        b";",
        b"\t",
        b" ",
        b"#",
        b"'",
        b"-",
        b":",
        b"/",
        b"\xff",
        b"e9",
    ]
    dated = SERIES.replace("\n", "T00:00,7\n").replace("t,y", "2020-01-01")
    for source, _ in itertools.product((SERIES, dated), range(20)):
        data = source.encode()
        for _ in range(random.integers(1, 9)):
            at, cut = random.integers(len(data)), random.integers(3)
            data = data[:at] + odd[random.integers(len(odd))] + data[at + cut :]
        path.write_bytes(data[: random.integers(1, len(data) + 1)])
        read_or_refusal(path)


@pytest.mark.parametrize("name", ["data.csv", "data.parquet", "data.csv.gz"])
def test_noise_is_refused(tmp_path, name):
    random = np.random.default_rng(0)
    for start in (b"", b"\x1f\x8b\x08", b"PAR1", b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf", b"PK"):
        (tmp_path / name).write_bytes(start + random.bytes(500))
        assert isinstance(read_or_refusal(tmp_path / name), str)


def test_a_damaged_parquet_is_read_or_refused(tmp_path):
    path = tmp_path / "data.parquet"
    pd.DataFrame({"t": range(12), "y": range(12)}).to_parquet(path)
    whole = path.read_bytes()
    for end in range(4, len(whole), len(whole) // 20):
        path.write_bytes(whole[:end])
        assert isinstance(read_or_refusal(path), str)


@pytest.mark.parametrize(
    "cell",
    [
        "=cmd|' /C calc'!A0",  # What spreadsheets would run.
        "__import__('os')",
        "\u0663",
        "1_000",
        "0x10",
        "1j",
        "9" * 5000,
        "1e999",
        "x" * 200_000,
        "9999-99-99",
        "99:99:99",
        "2020-01-01T00:00+99:99",
        "%s%n{0}",
        "\u202e1",
        "<script>",
        "'; DROP TABLE y; --",
    ],
)
def test_odd_cells_are_missing(tmp_path, cell):
    """Among the others one is missing and named; at the end of a series it is refused."""
    path = tmp_path / "data.csv"
    for odd in (f'12,"{cell}"\n', f'"{cell}",144\n'):
        path.write_text(SERIES + odd + "13,169\n", encoding="utf-8")
        assert len(read_or_refusal(path)) == 13
        path.write_text(SERIES + odd, encoding="utf-8")
        read = read_or_refusal(path)
        assert "at an end" in read if isinstance(read, str) else len(read) == 12
    path.write_text("t,y\n" + "".join(f'{i},"{cell}"\n' for i in range(12)), encoding="utf-8")
    assert isinstance(read_or_refusal(path), str)
    path.write_text("t,y\n" + "".join(f'"{cell}",{i}\n' for i in range(12)), encoding="utf-8")
    assert isinstance(read_or_refusal(path), str)


@pytest.mark.parametrize(
    "path", ["", ".", "\0", "a\0b", "x" * 5000, "/dev/null", "/root/\ud800", "data.csv/", "a\nb"]
)
def test_odd_paths_are_refused(path):
    assert isinstance(read_or_refusal(path), str)


@pytest.mark.parametrize("column", ["", "0", "-1", "1.0", "9" * 5000, "\u0661", "y\0", "*", "t,y"])
def test_odd_columns_are_refused(tmp_path, column):
    (tmp_path / "data.csv").write_text(SERIES)
    assert "no column" in read_or_refusal(tmp_path / "data.csv", time=column)
    assert "no column" in read_or_refusal(tmp_path / "data.csv", value=column)


def test_a_name_with_a_line_break_stays_in_one_line(tmp_path):
    (tmp_path / "data.csv").write_text('t,"y\ny"\n' + SERIES[4:].replace("9", "3"))
    _, _, names = read_table(tmp_path / "data.csv")
    assert names == ("t", "y y") or names == ("t", "yy")


@pytest.mark.parametrize(
    "thing", [None, 3, "abc", b"abc", {}, {1, 2}, object(), [object()] * 12, [[1], [1, 2]] * 6]
)
def test_odd_arrays_are_refused(thing):
    for arguments in ((thing, range(12)), (range(12), thing), (thing, thing)):
        with pytest.raises(TrajectoryError) as caught:
            clean(*arguments)
        assert "\n" not in str(caught.value)


def test_the_command_line_answers_in_one_line(tmp_path):
    (tmp_path / "data.csv").write_text(SERIES.replace(",", ";,\0"))
    command = [sys.executable, "-m", "nsode_jax.discover", str(tmp_path / "data.csv")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert result.returncode == 2 and result.stdout == ""
    assert result.stderr.count("\n") == 1 and "error" in result.stderr
