"""A law for each of many series: results, resume, what goes wrong."""

import multiprocessing
import os
import signal
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from nsode_jax import discover as command
from nsode_jax.discovery import Discovery, discover_each, pipeline
from nsode_jax.discovery import each as module
from nsode_jax.discovery.each import EachError, find_each, result_file
from nsode_jax.discovery.pipeline import DiscoveryError
from nsode_jax.dynamics.limits import Limits
from nsode_jax.search.sources import Proposals

T = np.linspace(0.0, 4.0, 20)
OPTIONS = {"effort": "fast", "sources": ("named laws",)}


def decay(rate):
    return T, 3.0 * np.exp(-rate * T)


def test_each_series_has_its_law(tmp_path):
    series = {"slow": decay(0.4), "fast/A1": decay(0.9), "short": (T[:4], T[:4])}
    table = discover_each(series, tmp_path, processes=1, **OPTIONS)
    assert list(table.index) == list(series)
    assert table.loc["short", "error"].startswith("Only 4 usable points")
    for label, rate in (("slow", 0.4), ("fast/A1", 0.9)):
        assert table.loc[label, "error"] == "" and table.loc[label, "r2"] > 0.9999
        found = Discovery.load(result_file(tmp_path, label)).best
        assert found.expression.evaluate(np.array([2.0])) == pytest.approx(-2 * rate, rel=1e-6)
    assert (tmp_path / "laws.csv").read_text().startswith("series,formula,name")


def test_what_is_done_is_not_done_again(tmp_path, monkeypatch):
    series = {"a": decay(0.4), "b": decay(0.5)}
    discover_each({"a": series["a"]}, tmp_path, processes=1, **OPTIONS)
    before = result_file(tmp_path, "a").stat().st_mtime_ns
    asked = []
    work = module._discover_one

    def watched(task, **rest):
        asked.append(task[0])
        return work(task, **rest)

    monkeypatch.setattr(module, "_discover_one", watched)
    shares = []
    table = discover_each(
        series, tmp_path, processes=1, progress=lambda _, share=0.0: shares.append(share), **OPTIONS
    )
    assert asked == ["b"] and result_file(tmp_path, "a").stat().st_mtime_ns == before
    # The first is of the line that says what is done already.
    assert (table["error"] == "").all() and shares == [0.0, 0.5, 1.0]


def test_several_processes_find_the_same(tmp_path):
    series = {f"{rate:.1f}": decay(rate) for rate in (0.3, 0.5, 0.7)}
    alone = discover_each(series, tmp_path / "one", processes=1, **OPTIONS)
    together = discover_each(series, tmp_path / "two", processes=2, **OPTIONS)
    assert list(alone["formula"]) == list(together["formula"])


def test_what_is_damaged_is_done_again(tmp_path):
    series = {"a": decay(0.4)}
    discover_each(series, tmp_path, processes=1, **OPTIONS)
    whole = result_file(tmp_path, "a").read_text()
    for damaged in (whole[: len(whole) // 2], "", "[]"):
        result_file(tmp_path, "a").write_text(damaged)
        table = discover_each(series, tmp_path, processes=1, **OPTIONS)
        assert table.loc["a", "error"] == "" and table.loc["a", "r2"] > 0.999


def test_a_model_in_the_current_folder_is_no_option(tmp_path, monkeypatch):
    series, folder = {"a": decay(0.4)}, tmp_path / "results"
    discover_each(series, folder, processes=1, **OPTIONS)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.json").write_text('{"of": "something else"}')
    assert discover_each(series, folder, processes=1, **OPTIONS).loc["a", "error"] == ""


@pytest.mark.parametrize(
    "series, message", [({}, "no series"), ({" ": decay(0.4)}, "needs a label")]
)
def test_what_cannot_be_used_is_refused(series, message, tmp_path):
    with pytest.raises(EachError, match=message):
        discover_each(series, tmp_path)


def test_other_options_need_another_folder(tmp_path):
    discover_each({"a": decay(0.4)}, tmp_path, processes=1, **OPTIONS)
    with pytest.raises(EachError, match=r"results of other options \(seed differs\)"):
        discover_each({"a": decay(0.4)}, tmp_path, processes=1, **{**OPTIONS, "seed": 1})
    result_file(tmp_path, "a").unlink()
    other = OPTIONS | {"seed": 1}
    table = discover_each({"a": decay(0.4)}, tmp_path, processes=1, **other)  # Nothing is lost.
    assert table.loc["a", "error"] == ""


def test_what_has_changed_is_done_anew(tmp_path, monkeypatch):
    """Whatever has changed: times, values, errors of measurement, limits. The rest stays."""
    asked = []
    found = pipeline.discover(*decay(0.4), **OPTIONS)

    def watched(task, folder, **rest):
        asked.append(task[0])
        found.save(result_file(folder, task[0]))
        return task[0], ""

    monkeypatch.setattr(module, "_discover_one", watched)
    t, y = decay(0.4)
    limits = Limits(np.array([5.0]), np.array([0.5]), np.array([True]))
    other = Limits(np.array([5.0]), np.array([0.4]), np.array([True]))

    def run(**series):
        asked.clear()
        discover_each(series, tmp_path, processes=1, **OPTIONS)
        return asked

    assert run(a=(t, y), b=(t, y, 0.1)) == ["a", "b"]
    assert run(a=(list(t), list(y), None, None), b=(t, y, 0.1)) == []
    assert run(a=(t, y + 1e-9), b=(t, y, 0.2)) == ["a", "b"]
    assert run(a=(t + 1e-9, y + 1e-9)) == ["a"]
    assert run(b=(t, y, np.full(t.size, 0.2), limits)) == ["b"]
    assert run(b=(t, y, np.full(t.size, 0.2), other), c=(t, y)) == ["b", "c"]
    assert run(a=(t + 1e-9, y + 1e-9), c=(t, y)) == []


LAWS = """[[law]]
name = "barrel"
field = "home"
reference = "mine"
formula = "-k*y"
parameters = { k = ["outflow", "+", "1/time", 1.0] }
"""


@pytest.mark.parametrize("changed", ["candidates", "named_laws", "weights", "sigma"])
def test_other_options_are_noticed(tmp_path, monkeypatch, changed):
    """Also where only what an option stands for has changed, such as a file."""

    def save(task, folder, **_):
        result_file(folder, task[0]).write_text("{}")
        return task[0], ""

    monkeypatch.setattr(module, "_discover_one", save)
    laws, weights = tmp_path / "laws.toml", tmp_path / "weights"
    weights.mkdir()
    laws.write_text(LAWS)
    (weights / "model.json").write_text('{"sha256": "1"}')

    def run(**options):
        given = {"named_laws": laws, "weights": str(weights), "candidates": ("-y",), "sigma": 0.1}
        given |= {"sources": ("named laws",)}  # So that the weights are not read.
        discover_each({"a": decay(0.4)}, tmp_path / "out", processes=1, **given | options)

    run()
    run(candidates=["-y"], named_laws=str(laws), sigma=np.float64(0.1))
    laws.write_text(LAWS.replace("-k*y", "-k*y**2") if changed == "named_laws" else LAWS)
    if changed == "weights":
        (weights / "model.json").write_text('{"sha256": "2"}')
    others = {"candidates": {"candidates": ("-2*y",)}, "sigma": {"sigma": 0.2}}
    with pytest.raises(EachError, match=rf"results of other options \({changed} differs\)"):
        run(**others.get(changed, {}))


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--order", "2"], "--order 2 does not go with --each"),
        (["--explicit-time"], "--explicit-time does not go with --each"),
        (["--constants", "own"], "--constants own does not go with --each"),
        (["--value", "t,y"], "--each is for one quantity"),
        (["--try", "0.5*("], "'0.5*(': the formula ends too early"),
        ([], "--each takes several series"),
    ],
)
def test_the_command_refuses_in_one_line(arguments, message, tmp_path, capsys):
    file = tmp_path / "one.csv"
    np.savetxt(file, np.column_stack(decay(0.4)), delimiter=",", header="t,y", comments="")
    asked = [str(file), "--each", "--out", str(tmp_path / "laws"), *arguments]
    assert command.main(asked) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def test_the_command(tmp_path, capsys):
    file = tmp_path / "wide.csv"
    columns = np.column_stack([T, decay(0.4)[1], decay(0.8)[1]])
    np.savetxt(file, columns, delimiter=",", header="t,A1,A2", comments="", fmt="%.6f")
    out = tmp_path / "laws"
    asked = ["--replicates", "--each", "--effort", "fast", "--sources", "named laws"]
    assert command.main([str(file), *asked, "--processes", "1"]) == 2
    assert "--each takes --out" in capsys.readouterr().err
    assert command.main([str(file), *asked, "--processes", "1", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "laws for 2 of 2 series" in printed and "2  " in printed
    assert {"A1.json", "A2.json", "laws.csv"} <= {path.name for path in out.iterdir()}


def test_errors_and_limits_of_each_series_count(tmp_path):
    t, y = decay(0.5)
    noise = 0.1 * np.random.default_rng(0).normal(size=t.size)
    limits = Limits(np.array([5.0]), np.array([0.5]), np.array([True]))
    series = {"a": (t, y + noise, np.full(t.size, 0.1), limits), "b": (t, y + noise, None, None)}
    table = discover_each(series, tmp_path, processes=1, **OPTIONS)
    assert (table["error"] == "").all()
    known, unknown = (Discovery.load(result_file(tmp_path, label)).best for label in series)
    assert 0.01 < known.goodness_of_fit < 0.99 and np.isnan(unknown.goodness_of_fit)
    # Without them the results are others.
    discover_each({"a": (t, y + noise)}, tmp_path, processes=1, **OPTIONS)
    assert np.isnan(Discovery.load(result_file(tmp_path, "a")).best.goodness_of_fit)


def test_limits_reach_the_search_of_each_series(tmp_path, monkeypatch):
    given = []

    def watched(t, y, **options):
        given.append(options)
        raise DiscoveryError("watched")

    monkeypatch.setattr(pipeline, "discover", watched)
    limits = Limits(np.array([5.0]), np.array([0.5]), np.array([True]))
    discover_each({"a": (*decay(0.5), 0.1, limits), "b": decay(0.5)}, tmp_path, processes=1)
    assert given == [{"sigma": 0.1, "limits": (limits,)}, {}]


def test_what_no_series_can_do_is_refused_once(tmp_path, capsys):
    data = tmp_path / "series.csv"
    rows = [f"{k},{i},{i + k}" for k in (1, 2) for i in range(9)]
    data.write_text("\n".join(["s,t,y", *rows]))
    out = tmp_path / "out"
    asked = [str(data), "--series", "s", "--each", "--effort", "fast"]
    assert command.main([*asked, "--out", str(out), "--weights", "none"]) == 2
    assert "error: no weights 'none'" in capsys.readouterr().err and not out.exists()
    assert command.main([*asked, "--out", str(data.with_suffix("")) + "/"]) in (0, 1)
    (tmp_path / "file").touch()
    assert command.main([*asked, "--out", str(tmp_path / "file")]) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.endswith("file' (it is a file); choose another folder with --out")


def test_a_bad_table_of_named_laws_is_refused_once(tmp_path, capsys):
    data = tmp_path / "series.csv"
    rows = [f"{k},{i},{i + k}" for k in (1, 2) for i in range(9)]
    data.write_text("\n".join(["s,t,y", *rows]))
    out = tmp_path / "out"
    asked = [str(data), "--series", "s", "--each", "--out", str(out)]
    assert command.main([*asked, "--named-laws", str(tmp_path / "none.toml")]) == 2
    error = capsys.readouterr().err
    assert "argument --named-laws: cannot read named laws from" in error
    assert error.count("none.toml") == 1 and not out.exists()


@pytest.mark.parametrize("processes", [1, 2])
def test_what_fails_in_one_series_does_not_end_the_others(tmp_path, processes):
    """Whatever it is: an error that nobody foresaw, or the end of the process."""
    series = {"a": decay(0.4), "bad": (T[:-1], decay(0.5)[1][:-1]), "b": decay(0.5)}
    said = "a worker process died" if processes == 2 else "ZeroDivisionError: on purpose"
    options = {"effort": "fast", "sources": ("named laws", _Fails())}
    table = discover_each(series, tmp_path, processes=processes, **options)
    assert said in table.loc["bad", "error"] and list(table["error"] == "") == [True, False, True]
    if processes == 1:
        found = find_each({"bad": series["bad"]}, processes=1, **options)
        assert found == {"bad": "ZeroDivisionError: on purpose"}


class _Fails:
    """A source that cannot read series of 19 points; a process of its own ends there."""

    name = "fails"

    def propose(self, data, form, *, seed, progress):
        if data.count != len(T) - 1:
            return Proposals((), "nothing")
        if multiprocessing.parent_process() is not None:
            os.kill(os.getpid(), signal.SIGKILL)
        raise ZeroDivisionError("on purpose")


def test_times_that_cannot_be_read_leave_the_others_in_one_unit(tmp_path):
    start = datetime(2020, 3, 1)
    dates = {
        name: [start + timedelta(hours=pace * i) for i in range(20)]
        for name, pace in (("short", 0.1), ("long", 50), ("mixed", 50))
    }
    dates["mixed"][0] = dates["mixed"][0].replace(tzinfo=UTC)
    dates["text"] = ["soon"] * 20
    series = {name: (times, decay(0.4)[1]) for name, times in dates.items()}
    table = discover_each(series, tmp_path, processes=1, **OPTIONS)
    assert list(table["error"] == "") == [True, True, False, False]
    assert "time zone" in table.loc["mixed", "error"]
    assert "list of real numbers" in table.loc["text", "error"]
    notes = [Discovery.load(result_file(tmp_path, name)).notes[0] for name in ("short", "long")]
    assert notes[0] == notes[1] and "converted to days" in notes[0]


def test_dates_beside_numbers_are_refused_at_once(tmp_path):
    days = np.datetime64("2020-03-01") + np.arange(20)
    with pytest.raises(EachError, match="give all in one way"):
        discover_each({"a": decay(0.4), "b": (days, decay(0.4)[1])}, tmp_path, **OPTIONS)


def test_dates_of_all_series_have_one_unit(tmp_path):
    """What changes in hours and what changes in days stand in one table."""
    start = np.datetime64("2020-03-01T00")
    hours = np.arange(20) * 3
    series = {
        name: (start + (pace * hours).astype("timedelta64[h]"), 5 * np.exp(-0.04 * pace * hours))
        for name, pace in (("short", 1), ("long", 2))
    }
    table = discover_each(series, tmp_path, processes=1, **OPTIONS)
    assert (table["formula"] == "-0.96*y").all()  # 0.04 an hour.
    found = Discovery.load(result_file(tmp_path, "short"))
    assert "days since 2020-03-01" in found.notes[0]


@pytest.mark.parametrize("label", ["options", "Options", "\u7ec6" * 60, "a/b" * 90])
def test_any_label_has_a_file(tmp_path, label):
    (row,) = discover_each({label: decay(0.4)}, tmp_path, processes=1, **OPTIONS).itertuples()
    assert row.Index == label and row.error == "" and row.formula == "-0.4*y"
    other = result_file(tmp_path, label + "x")
    assert other != result_file(tmp_path, label) and len(other.name.encode()) < 255
    again = discover_each({label: decay(0.4)}, tmp_path, processes=1, **OPTIONS)
    assert again.loc[label, "error"] == ""


def test_series_of_one_name_have_a_law_each(tmp_path, capsys):
    file, out = tmp_path / "groups.csv", tmp_path / "laws.of.groups"
    rows = np.column_stack([T, *(decay(rate)[1] for rate in (0.4, 0.5, 0.6, 0.7))])
    lines = [",".join(f"{value:.6f}" for value in row) for row in rows]
    names = ",Control,,Treated,\ntime,rep1,rep2,rep1,rep2\n"
    file.write_text(names + "\n".join(lines))
    out.mkdir()  # A folder, though its name ends like a file's.
    asked = ["--replicates", "--each", "--effort", "fast", "--sources", "named laws"]
    assert command.main([str(file), *asked, "--processes", "1", "--out", str(out)]) == 0
    assert "laws for 4 of 4 series" in capsys.readouterr().out
