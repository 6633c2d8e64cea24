"""The command line `python -m nsode_jax.discover`, with a stand-in for the pipeline."""

import dataclasses
import importlib
import io
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import nsode_jax.discover as cli
from nsode_jax.console import terminal
from nsode_jax.console.arguments import parse
from nsode_jax.discovery import pipeline
from nsode_jax.dynamics.trajectory import clean
from nsode_jax.expressions.expression import Expression
from nsode_jax.modeling.pretrained import WeightsError
from nsode_jax.reporting.discovery import Discovery
from nsode_jax.results.result import Candidate

ROOT = Path(__file__).parent.parent
YEAST = ROOT / "examples" / "yeast_growth.csv"
T = np.arange(12.0)


def law_of(formula, r2, probability, errors=None):
    covariance = None if errors is None else np.diag(np.square(errors))
    rms = 5.0 if np.isfinite(r2) else np.inf
    expression = Expression.from_infix(formula)
    return Candidate(
        expression, (9.9,), (0.0,), r2, rms, 0.0, probability=probability, covariance=covariance
    )


LAWS = (
    law_of("0.54143210987*y - 0.00081532101*y**2", 0.9996, 0.975, (0.0034, 0.0000071, 0.0)),
    law_of("2.26*y - 0.3459*y*log(y)", 0.9971, 0.0249),
    law_of("exp(y)", -np.inf, 0.0),
)


@pytest.fixture
def calls(monkeypatch, tmp_path):
    """Replaces the pipeline; collects what it was asked. Runs in an empty folder."""
    monkeypatch.chdir(tmp_path)
    asked = []

    def discover(t, y, *, progress=None, **options):
        asked.append({"t": t, "y": y, **options})
        progress("decoding", 0.0)
        progress("decoding", 0.5)
        progress("fitting", 0.0)
        return Discovery(LAWS, (clean(t, y)[0],), ("The fit was checked.",), 1.5, ("3 laws",))

    monkeypatch.setattr(pipeline, "discover", discover)
    return asked


def options_of(call):
    return {name: value for name, value in call.items() if name not in ("t", "y")}


@pytest.fixture
def write(tmp_path):
    def write_table(y, t=T, name="data.csv", header="t,y\n"):
        path = tmp_path / name
        path.write_text(header + "".join(f"{a},{b}\n" for a, b in zip(t, y)))
        return str(path)

    return write_table


def refused(capsys, *arguments) -> str:
    """Runs with input to refuse; gives back the one line on stderr."""
    assert cli.main([str(a) for a in arguments]) == 2
    output = capsys.readouterr()
    assert output.err.startswith("nsode_jax.discover: error: ")
    assert output.err.count("\n") == 1 and "Traceback" not in output.err
    return output.err


def test_a_law_is_found_and_drawn(calls, capsys, tmp_path):
    assert cli.main([str(YEAST)]) == 0
    output = capsys.readouterr()
    lines = output.out.splitlines()
    assert lines[0] == "19 points of yeast_amount over time_h from 0 to 18"
    start = lines.index("dyeast_amount/dtime_h = 0.5414*yeast_amount - 0.0008153*yeast_amount**2")
    assert lines[start + 1 : start + 8] == [
        "with yeast_amount = 9.9 at time_h = 0, R² = 0.99960, residual 5",
        "constants, with standard errors that hold if this form is right:",
        "  0.5414 ± 0.0034",
        "  -0.0008153 ± 0.0000071",
        "fixed points:",
        "  0 (unstable, beyond the data)",
        "  664.1 ± 7.1 (stable, beyond the data)",
    ]
    sure, foretold, advice, tried, note = lines[start + 8 : start + 13]
    assert foretold == "beyond the data: by all 2 laws that matter y levels off at 664 to 688."
    assert sure.startswith("how sure: 97.5% that the first form is right")
    assert advice.startswith("to measure next: 2 laws matter; they differ most at t = ")
    assert (tried, note) == ("tried: 3 laws.", "note: The fit was checked.")
    assert lines[-1] == "picture: yeast_growth_law.png"
    assert (tmp_path / "yeast_growth_law.png").read_bytes().startswith(b"\x89PNG")
    # One line per stage, however often it is reported.
    assert output.err.count("decoding") == 1 and "fitting" in output.err
    np.testing.assert_array_equal(calls[0]["t"], np.arange(19.0))
    assert options_of(calls[0]) == dict(
        weights="small",
        effort="default",
        beams=None,
        samples=None,
        sources=("network", "named laws", "enumeration", "library"),
        candidates=[],
        operators=None,
        max_symbols=None,
        zero_at_zero=False,
        known=None,
        robust=False,
        named_laws=None,
        limits=(),
        sigma=None,
        seed=0,
    )


def test_the_table_is_aligned(calls, capsys):
    cli.main([str(YEAST)])
    lines = capsys.readouterr().out.splitlines()
    top = next(i for i, line in enumerate(lines) if line.startswith("rank"))
    header, *rows = lines[top : top + 4]
    at = header.index("dy/dt =")
    assert header.split()[:4] == ["rank", "probability", "R²", "complexity"]
    assert [row[at:] for row in rows] == [
        "0.5414*y - 0.0008153*y**2",
        "2.26*y - 0.3459*y*log(y)",
        "exp(y)",
    ]
    assert [row.split()[:4] for row in rows] == [
        ["1", "97.5%", "0.99960", "9"],
        ["2", "2.5%", "0.99710", "10"],
        ["3", "<0.1%", "diverges", "2"],
    ]
    assert all(row[at - 3 : at] == row[at - 3] + "  " for row in rows)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_shows_the_share_that_is_done(calls, monkeypatch, capsys):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    assert cli.main([str(YEAST)]) == 0
    shown = re.sub(r"\[ *[\d.]+ s\]", "[s]", screen.getvalue())
    assert shown == (
        "[s] loading\n[s] decoding\r[s] decoding  50%\r[s] decoding     \n"
        "[s] fitting\n[s] done, 3 candidates\n"
    )


def test_elsewhere_progress_is_plain_lines(calls, capsys):
    cli.main([str(YEAST)])
    error = capsys.readouterr().err
    assert "\r" not in error and "%" not in error
    assert [line.split("] ")[1] for line in error.splitlines()] == [
        "loading",
        "decoding",
        "fitting",
        "done, 3 candidates",
    ]


def test_a_message_after_progress_has_a_line_of_its_own(calls, monkeypatch):
    def no_law(*args, progress, **kwargs):
        progress("fitting", 0.25)
        raise pipeline.DiscoveryError("No law.")

    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(pipeline, "discover", no_law)
    assert cli.main([str(YEAST)]) == 1
    assert screen.getvalue().endswith("fitting     \nnsode_jax.discover: No law.\n")


def test_notes_are_broken_between_words_on_a_terminal(monkeypatch):
    note = "word " * 40
    assert terminal.remark("note", note) == "note: " + note
    monkeypatch.setattr(terminal, "columns", lambda: 80)
    lines = terminal.remark("note", note).splitlines()
    assert len(lines) == 3 and all(len(line) <= 80 for line in lines)
    assert lines[0].startswith("note: word") and lines[1].startswith("      word")


def test_options_reach_the_pipeline(calls, capsys, write, tmp_path):
    path = write(T + 1, header="a,b\n")
    options = "--time b --value a --weights tiny --effort thorough --beams 7 --samples 0 --seed 3"
    options += " --sources network --try 0.5*y --try y-y**2 --robust"
    out = str(tmp_path / "new" / "report")
    assert cli.main([path, *options.split(), "--candidates", "1", "--out", out]) == 0
    out = capsys.readouterr().out
    np.testing.assert_array_equal(calls[0]["t"], T + 1)
    assert options_of(calls[0]) == dict(
        weights="tiny",
        effort="thorough",
        beams=7,
        samples=0,
        sources=("network",),
        candidates=["0.5*y", "y-y**2"],
        operators=None,
        max_symbols=None,
        zero_at_zero=False,
        known=None,
        robust=True,
        named_laws=None,
        limits=(),
        sigma=None,
        seed=3,
    )
    assert "\n   1  " in out and "\n   2  " not in out
    report = (tmp_path / "new" / "report" / "report.md").read_text(encoding="utf-8")
    chosen = "effort = thorough, beams = 7, samples = 0, weights = tiny, seed = 3, "
    chosen += r"sources = network, robust = True, tried = 0.5\*y; y-y\*\*2"  # As Markdown needs it.
    assert f"Options: {chosen}" in report


@pytest.mark.parametrize("name", ["x.png", "x.pdf", "x.svg", "deep/er/x.PNG"])
def test_out_as_a_picture(calls, tmp_path, name):
    assert cli.main([str(YEAST), "--out", name]) == 0
    assert (tmp_path / name).stat().st_size > 1000


@pytest.mark.parametrize("out", ["report", "report/", "deep/er/report"])
def test_out_as_a_folder(calls, capsys, tmp_path, write, out):
    y = [1, 2, np.nan, *range(4, 13)]
    assert cli.main([write(y), "--out", out]) == 0
    folder = tmp_path / out
    lines = capsys.readouterr().out.splitlines()
    out = out.rstrip("/")
    assert lines[-2:] == [f"report: {out}/report.html", f"JSON: {out}/discovery.json"]
    assert {path.name for path in folder.iterdir()} == {
        *("report.html", "report.md", "discovery.json"),
        *("fit.png", "law.png", "residuals.png", "pareto.png", "next.png"),
    }
    assert Discovery.load(folder / "discovery.json").best.infix == LAWS[0].infix
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "Data: data.csv" in page and "Options: effort = default" in page
    # What was done to the file, and what the pipeline said.
    assert "1 of 12 rows dropped" in page and "The fit was checked." in page


def test_names_that_are_no_words_are_bracketed(calls, capsys, write):
    path = write(T * 2 + 1, header="time (h),mass\\1 $\n")
    assert cli.main([path]) == 0
    law = "d[mass\\1 $]/d[time (h)] = 0.5414*[mass\\1 $] - 0.0008153*[mass\\1 $]**2"
    assert law in capsys.readouterr().out.splitlines()


def test_what_was_done_to_the_data_is_said(calls, capsys, write):
    y = [1, 2, np.nan, *range(4, 13)]
    assert cli.main([write([*y, 5.0], t=[*T[::-1], 7])]) == 0
    out = capsys.readouterr().out
    assert "note: 1 of 13 rows dropped" in out
    assert "note: Times were not in increasing order" in out
    assert "note: 1 time occurred more than once" in out
    assert "11 points of y over t" in out
    # A mean of two counts as two.
    np.testing.assert_array_equal(calls[0]["t"], [0, 1, 2, 3, 4, 5, 6, 7, 7, 8, 10, 11])


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (T[:7], "at least 8"),
        (np.where(T < 6, np.nan, T), "6 rows dropped"),
        (0 * T + 3, "constant"),
        (1e300 * (T + 1), "too large"),
        (1e-300 * T, "too small"),
        (["x"] * 12, "no two columns of numbers"),
    ],
)
def test_bad_series(calls, capsys, write, y, words):
    assert words in refused(capsys, write(y))
    assert not calls


def test_bad_files(calls, capsys, tmp_path):
    assert "no file 'absent.csv'" in refused(capsys, "absent.csv")
    assert "folder" in refused(capsys, tmp_path)
    (tmp_path / "empty.csv").touch()
    assert "empty" in refused(capsys, "empty.csv")
    (tmp_path / "picture.csv").write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00")
    assert "not a text file" in refused(capsys, "picture.csv")
    assert not calls


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--time", "day"], "no column 'day'"),
        (["--value", "3"], "no column '3'"),
        (["--value", "time_h", "--time", "1"], "same column"),
        (["--beams", "-1"], "whole number"),
        (["--effort", "huge"], "choose from"),
        (["--polynomials", "2"], "unrecognized arguments"),
        (["--sources", "network", "--beams", "0", "--samples", "0"], "leaves no law to try"),
        (
            ["--sources", "network,oracle"],
            "'oracle' is not one of network, named laws, enumeration, library",
        ),
        (["--sources", ""], "is not one of"),
        (["--try", "y +"], "'y +': the formula ends too early"),
        (["--try", "__import__('os')"], "unexpected character"),
        (["--try", "a*y*sin(w*t)"], "has the time t in it, which these laws do not depend on"),
        (["--form", "a*y*sin(w*t)"], "has the time t in it, which these laws do not depend on"),
        (["--form", "r*N*(1 - N/K)"], "has no y in it, which laws are of"),
        (["--form", "yeast_amount"], "write y for yeast_amount, the values, in 'yeast"),
        (["--try", "0.5*yeast_amount"], "write y for yeast_amount, the values, in '0.5*yeast"),
        (["--try", "r*time_h*y"], "has the time time_h in it, which these laws do not depend on"),
        (["--known", "y*(1 - ?"], "'y*(1 - ?': expected ')', found the end"),
        (["--known", "y*(1 - ?/K)"], "give a number for K"),
        (["--form", "r y"], "'r y': unexpected 'y' at 3; is a * missing?"),
        (["--form", "r*y", "--bounds", "K > 0"], "the law has the constants r; there is no K"),
        (
            ["--form", "r*y", "--shared", "K", "--constants", "own", "--series", "1"],
            "the form has the constants r; there is no K",
        ),
        (["--no-library"], "unrecognized arguments: --no-library"),
        (["--beams", "many"], "whole number"),
        (["--samples", "-1"], "whole number"),
        (["--candidates", "0"], "whole number"),
        (["--seed", "-1"], "whole number"),
        (["--sed", "1"], "unrecognized arguments: --sed"),
        (["--out"], "expected one argument"),
        (["--out", "x.docx"], "neither a folder nor a picture"),
    ],
)
def test_bad_options(calls, capsys, options, words):
    assert words in refused(capsys, YEAST, *options)
    assert not calls


@pytest.mark.parametrize("option", ["--try", "--known", "--form", "--bounds", "--from", "--to"])
def test_an_option_is_no_value_of_the_one_before(calls, capsys, option):
    said = refused(capsys, YEAST, option, "--effort", "fast")
    assert f"argument {option}: expected one argument" in said


def test_values_may_begin_with_a_minus():
    options = vars(parse(["data.csv", "--from", "-11e0", "--to", "-1:30", "--known", "-y"]))
    assert [options[name] for name in ("from", "to", "known")] == ["-11e0", "-1:30", "-y"]


def test_the_report_names_the_table_of_laws(calls, tmp_path):
    assert cli.main([str(YEAST), "--named-laws", "none", "--out", str(tmp_path / "report")]) == 0
    assert "named\\_laws = none" in (tmp_path / "report" / "report.md").read_text(encoding="utf-8")


def test_no_arguments(calls, capsys):
    assert "required: file" in refused(capsys)


def test_unwritable_output_is_refused_before_the_search(calls, capsys, tmp_path):
    (tmp_path / "file").touch()
    assert "cannot be written" in refused(capsys, YEAST, "--out", "file/x.png")
    assert "cannot be written" in refused(capsys, YEAST, "--out", "file")
    (tmp_path / "yeast_growth_law.png").mkdir()
    assert "cannot be written" in refused(capsys, YEAST)
    assert not calls


def test_trying_the_output_leaves_no_empty_file_behind(monkeypatch, calls, capsys, tmp_path):
    def missing_weights(*args, **kwargs):
        raise WeightsError("there are no weights 'huge'; shipped: small")

    monkeypatch.setattr(pipeline, "discover", missing_weights)
    assert cli.main([str(YEAST), "--weights", "huge"]) == 2
    assert cli.main([str(YEAST), "--weights", "huge", "--out", "new/report"]) == 2
    error = "nsode_jax.discover: error: there are no weights 'huge'; shipped: small"
    assert capsys.readouterr().err.splitlines()[-1] == error
    assert not list(tmp_path.iterdir())


def test_no_law_found(monkeypatch, calls, capsys):
    def no_law(*args, **kwargs):
        raise pipeline.DiscoveryError("No law.")

    monkeypatch.setattr(pipeline, "discover", no_law)
    assert cli.main([str(YEAST)]) == 1
    assert capsys.readouterr().err.splitlines()[-1] == "nsode_jax.discover: No law."


def test_known_errors_are_passed_on(calls, tmp_path):
    rows = (f"{t},{5 - 0.1 * t},{0.1 + 0.01 * t}" for t in T)
    (tmp_path / "data.csv").write_text("\n".join(["t,y,sd", *rows]))
    assert cli.main(["data.csv", "--sigma", "sd"]) == 0
    np.testing.assert_allclose(calls[0]["sigma"], 0.1 + 0.01 * T)
    assert cli.main(["data.csv", "--value", "y", "--sigma", "0.2"]) == 0
    np.testing.assert_allclose(calls[1]["sigma"], 0.2)


def run(*arguments, cwd, code="from nsode_jax.discover import main; sys.exit(main(sys.argv[1:]))"):
    """Runs in a process of its own, and tells whether JAX was imported there."""
    script = "import atexit, sys; atexit.register(lambda: print('jax' in sys.modules)); " + code
    return subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda write: "absent.csv",
        lambda write: write(T[:5]),
        lambda write: write(0 * T),
        lambda write: write(1e300 * (1 + T)),
        lambda write: write(1e-300 * T),
        lambda write: write(["x"] * 12),
    ],
    ids=["missing", "short", "constant", "1e300", "1e-300", "text"],
)
def test_bad_input_is_answered_at_once_and_without_a_traceback(write, tmp_path, make):
    result = run(make(write), cwd=tmp_path)
    assert result.returncode == 2
    assert result.stderr.startswith("nsode_jax.discover: error: ")
    assert result.stderr.count("\n") == 1
    assert result.stdout == "False\n"  # No JAX, nothing else printed.


def test_as_a_module(tmp_path):
    result = subprocess.run(
        [sys.executable, "-m", "nsode_jax.discover", "absent.csv"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 2 and result.stdout == ""
    assert result.stderr == "nsode_jax.discover: error: There is no file 'absent.csv'.\n"


def test_several_series_of_one_law(tmp_path, capsys):
    """Without the network: two cooling bodies, one law."""
    file = tmp_path / "cooling.csv"
    rows = [f"{name},{t},{20 + start * math.exp(-0.3 * t):.6f}"
            for name, start in (("cup", 60), ("pot", 25)) for t in range(12)]  # fmt: skip
    file.write_text("\n".join(["body,minutes,degrees", *rows]))
    options = "--series body --effort fast --beams 0 --samples 0 --out".split()
    assert cli.main([str(file), *options, str(tmp_path / "x.png")]) == 0
    output = capsys.readouterr().out
    assert "24 points of degrees over minutes from 0 to 11, 2 series" in output
    assert "ddegrees/dminutes = 6 - 0.3*degrees" in output


def test_names_and_advice_are_looked_for_once(calls, monkeypatch, tmp_path):
    asked = []

    def count(module, name):
        original = getattr(importlib.import_module(module), name)

        def counted(*arguments, **options):
            asked.append((name, str(arguments[0])))
            return original(*arguments, **options)

        monkeypatch.setattr(f"{module}.{name}", counted)

    count("nsode_jax.results.result", "name_of")
    count("nsode_jax.reporting.discovery", "next_measurement")
    # Of new candidates, which no other test has asked.
    laws = tuple(dataclasses.replace(law) for law in LAWS)
    monkeypatch.setattr(sys.modules[__name__], "LAWS", laws)
    assert cli.main([str(YEAST), "--out", str(tmp_path / "report")]) == 0
    assert [name for name, _ in asked].count("next_measurement") == 1
    first = [text for name, text in asked if name == "name_of" and text == laws[0].infix]
    assert len(first) <= 2  # With the units of the columns, and in the file without.


def test_help_lists_the_options_by_what_they_are_about(capsys):
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    told = capsys.readouterr().out
    groups = [line for line in told.splitlines() if line.endswith(":") and line[0] != " "]
    assert groups[1:] == [
        "the table:",
        "the kind of law:",
        "what is known of the law:",
        "the search:",
        "the results:",
    ]
    assert told.startswith("usage: python -m nsode_jax.discover file [options]\n")


@pytest.mark.parametrize("module", ["discover", "evaluate", "train"])
def test_nobody_need_read_all_of_the_output(module):
    """As in `| head`: no traceback."""
    command = [sys.executable, "-m", f"nsode_jax.{module}", "--help"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT)
    process.stdout.close()
    assert process.stderr.read() == b"" and process.wait() in (0, 141)
