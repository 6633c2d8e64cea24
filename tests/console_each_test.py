"""The command for many series with a law each: what cannot be used, what is said at the end."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from reading import read_text, refusal

from nsode_jax import discover as command
from nsode_jax.console.each import _kind
from nsode_jax.discovery import Discovery, discover_each, pipeline
from nsode_jax.discovery.each_folder import OtherOptions, result_file
from nsode_jax.reporting.tables import laws_table

T = np.arange(12.0)
ASKED = ["--each", "--effort", "fast", "--sources", "named laws", "--processes", "1"]
CONSTANT = "The values are constant (all 0.042 up to rounding)"


def decay(rate):
    return 5 * np.exp(-rate * T)


def table(*columns, names):
    rows = zip(T, *columns, strict=True)
    lines = [",".join("" if np.isnan(x) else f"{x:.5g}" for x in row) for row in rows]
    return "\n".join([f"time,{names}", *lines])


def long_table(**series):
    rows = [f"{name},{t:g},{y:.6g}" for name, values in series.items() for t, y in zip(T, values)]
    return "\n".join(["well,time,y", *rows])


@pytest.fixture(scope="module")
def found():
    """Of a decay, and of values that rise and fall."""
    options = {"effort": "fast", "sources": ("named laws",)}
    return {
        "decay": pipeline.discover(T, decay(0.3), **options),
        "wave": pipeline.discover(T, np.sin(T) + 2, **options),
    }


@pytest.fixture
def at_once(monkeypatch, found):
    """Nothing is searched: the law of a decay, or of a wave where the values rise again."""
    asked = []

    def discover(t, y, **options):
        asked.append(np.asarray(y))
        return found["wave" if (np.diff(y) > 0).any() else "decay"]

    monkeypatch.setattr(pipeline, "discover", discover)
    return asked


# --- what cannot be used ---------------------------------------------------------


def test_series_that_cannot_be_used_leave_the_others():
    columns = decay(0.3), np.full(12, 0.042), np.full(12, np.nan), decay(0.2)
    text = table(*columns, names="A1,blank,none,A2")
    read = read_text(text, replicates=True, each=True)
    assert read.labels == ("A1", "A2") and len(read.trajectories) == len(read.limits) == 2
    assert [(place, label) for place, label, _ in read.refused] == [(1, "blank"), (2, "none")]
    reasons = [reason for *_, reason in read.refused]
    assert reasons[0].startswith(CONSTANT) and reasons[1].startswith("Only 0 usable points")
    assert f"2 of 4 series cannot be used; the first, 'blank': {CONSTANT}" in read.notes[0]
    # Of one law for all it is an error, as it was.
    assert refusal(read_text, text, replicates=True).startswith(f"Series 'blank': {CONSTANT}")


def test_a_column_that_is_named_may_be_empty():
    text = table(decay(0.3), np.full(12, np.nan), decay(0.2), names="A1,A2,A3")
    named = {"value": "A1,A2,A3", "replicates": True}
    (refused,) = read_text(text, each=True, **named).refused
    assert refused[:2] == (1, "A2")
    assert "it is empty" in refusal(read_text, text, **named)


def test_bad_cells_errors_and_few_points_are_of_their_series_alone():
    rows = [f"{name},{t},{np.exp(-0.1 * t):.4f},0.1" for name in "abcd" for t in range(12)]
    rows[2] = "a,2,0.8,-1"
    rows[12] = "b,0,oops,0.1"
    rows = rows[:-6]
    text = "\n".join(["s,time,y,sd", *rows])
    read = read_text(text, series="s", value="y", sigma="sd", each=True)
    assert read.labels == ("c",)
    refused = {label: reason for _, label, reason in read.refused}
    assert "must be positive and finite" in refused["a"] and "line 4" in refused["a"]
    assert "'oops'" in refused["b"] and refused["d"].startswith("Only 6 usable points")


def test_a_clock_that_goes_back_is_of_its_series_alone():
    rows = [f"{s},{8 + t}:00,{np.exp(-0.1 * t):.4f}" for s in "ab" for t in range(12)]
    rows[5] = "a,7:00,0.6"
    text = "\n".join(["s,clock,y", *rows])
    read = read_text(text, series="s", each=True)
    assert read.labels == ("b",) and "clock times" in read.refused[0].reason
    assert "clock times" in refusal(read_text, text, series="s")


def test_without_any_series_the_file_is_refused():
    text = table(np.full(12, 0.042), np.full(12, 2.0), names="A1,A2")
    message = refusal(read_text, text, replicates=True, each=True)
    assert message.startswith(f"None of the 2 series can be used. Series 'A1': {CONSTANT}")


def test_each_series_has_a_row_in_the_order_of_the_file(tmp_path, capsys, at_once):
    file, out = tmp_path / "wide.csv", tmp_path / "laws"
    text = table(decay(0.3), np.full(12, 0.042), decay(0.2), names="A1,blank,A2")
    file.write_text(text)
    asked = [str(file), "--replicates", *ASKED, "--out", str(out)]
    assert command.main(asked) == 0
    laws = pd.read_csv(out / "laws.csv", index_col="series")
    assert list(laws.index) == ["A1", "blank", "A2"] and len(at_once) == 2
    assert laws.loc["blank", "error"].startswith(CONSTANT)
    assert laws["error"].isna().tolist() == [True, False, True]
    printed = capsys.readouterr().out
    assert "laws for 2 of 3 series" in printed and f"note: blank: {CONSTANT}" in printed
    # Its earlier result is of other data.
    file.write_text(text.replace("0.042", "0.043", 1))
    assert command.main(asked) == 0 and result_file(out, "blank").exists()
    file.write_text(text)
    assert command.main(asked) == 0 and not result_file(out, "blank").exists()
    assert "data of 1 changed: done anew" in capsys.readouterr().err


# --- what is said of the laws ----------------------------------------------------


def test_what_no_law_explains_is_no_law(tmp_path, capsys, at_once):
    file, out = tmp_path / "long.csv", tmp_path / "laws"
    file.write_text(long_table(a=decay(0.3), b=np.sin(T) + 2, c=decay(0.4)))
    asked = [str(file), "--series", "well", *ASKED, "--out", str(out)]
    assert command.main(asked) == 0
    printed = capsys.readouterr().out.splitlines()
    assert "laws for 2 of 3 series" in printed
    assert "     2  first-order reaction (exponential decay)" in printed
    assert "not to be believed: the best laws of 1 series: b" in printed
    assert "     1  The best law explains only #% of the variance of the data" in printed
    laws = pd.read_csv(out / "laws.csv", index_col="series")
    assert laws["believable"].tolist() == [True, False, True]
    assert "no such law can explain this series" in laws.loc["b", "notes"]
    assert " | The best law explains only" in laws.loc["b", "notes"]
    file.write_text(long_table(b=np.sin(T) + 2, d=np.cos(T) + 2))
    assert command.main(asked) == 0
    assert "laws for 0 of 2 series" in capsys.readouterr().out


def test_a_law_is_believable_as_the_single_command_says(found):
    """Not where it explains little, nor where none of those found is likely to be right."""
    laws = laws_table([*found.items(), ("none", "wrong")])
    assert laws["believable"].tolist()[:2] == [True, False] and pd.isna(laws.loc["none", "notes"])
    assert laws.loc["none", "error"] == "wrong"
    best, *others = found["decay"].candidates
    unlikely = [dataclasses.replace(one, probability=0.0) for one in others]
    for probability, believable in ((0.5, True), (0.05, False)):
        first = dataclasses.replace(best, probability=probability)
        one = dataclasses.replace(found["decay"], candidates=(first, *unlikely))
        assert laws_table([("a", one)]).loc["a", "believable"] == believable


def test_the_probability_of_the_form_is_that_of_all_its_candidates(found):
    first = dataclasses.replace(found["decay"].best, probability=0.25)
    other = dataclasses.replace(first, expression=first.expression.rounded(2))
    one = dataclasses.replace(found["decay"], candidates=(first, other))
    row = laws_table([("a", one)]).loc["a"]
    assert row["probability"] == 0.25 and row["form_probability"] == 0.5


@pytest.mark.parametrize(
    ("note", "kind"),
    [
        (
            "3 other forms explain the data about as well: the form of the law is not certain "
            "(probability of the first 42%).",
            "# other forms explain the data about as well",
        ),
        (
            "The first 4 points (until 2.5) do not follow the law of the others; they lie above "
            "it. A lag phase? To leave them out, try --from 3.",
            "The first # points (until #) do not follow the law of the others",
        ),
        ("2 of 15 rows dropped: time or value is missing.", "# of # rows dropped"),
        ("The values do not change.", "The values do not change"),
    ],
)
def test_notes_are_counted_by_their_kind(note, kind):
    assert _kind(note) == kind


def test_failures_beyond_the_first_are_counted(tmp_path, capsys, at_once):
    columns = [decay(0.3), *(np.full(12, float(k)) for k in range(1, 8))]
    file = tmp_path / "wide.csv"
    file.write_text(table(*columns, names=",".join(f"w{k}" for k in range(8))))
    asked = [str(file), "--time", "time", "--replicates", *ASKED, "--out", str(tmp_path / "laws")]
    assert command.main(asked) == 0
    printed = capsys.readouterr().out
    assert "laws for 1 of 8 series" in printed and "note: w5: The values" in printed
    assert "note: w6" not in printed and "2 more failed (column error of the table)" in printed


# --- what is in the folder already -----------------------------------------------


def test_what_is_in_the_folder_is_told(tmp_path, at_once):
    said = []
    first = {name: (T, decay(rate)) for name, rate in (("a", 0.3), ("b", 0.4), ("c", 0.5))}

    def run(**series):
        said.clear()
        discover_each(
            series, tmp_path, processes=1, progress=lambda stage, share=0.0: said.append(stage)
        )
        return said[0]

    assert run(**first) == "finding a law for each series"
    assert run(**first, d=(T, decay(0.6))) == "3 of 4 series done already"
    changed = {name: (t, 2 * y) for name, (t, y) in first.items() if name != "c"}
    assert run(**changed) == (
        "data of 2 changed: done anew; results of 2 others stay, which are not in laws.csv"
    )
    assert (tmp_path / "c.json").exists()
    assert run(b=changed["b"], e=(T, decay(0.6))) == (
        "1 of 2 series done already; results of 3 others stay, which are not in laws.csv"
    )


def test_options_that_differ_are_named(tmp_path, capsys, at_once):
    file, out = tmp_path / "long.csv", tmp_path / "laws"
    file.write_text(long_table(a=decay(0.3), b=decay(0.4)))
    asked = [str(file), "--series", "well", *ASKED, "--out", str(out)]
    assert command.main(asked) == 0
    assert command.main([*asked, "--try", "-y", "--max-symbols", "9"]) == 2
    assert "results of other options (--try, --max-symbols differ): choose" in (
        capsys.readouterr().err
    )
    with pytest.raises(OtherOptions) as caught:
        discover_each({"a": (T, decay(0.3))}, out, effort="fast")
    assert "seed" in caught.value.names and "effort" not in caught.value.names
    # Where there are no results, nothing is lost.
    for result in (result_file(out, "a"), result_file(out, "b")):
        assert isinstance(Discovery.load(result), Discovery)
        result.unlink()
    assert command.main([*asked, "--try", "-y"]) == 0
