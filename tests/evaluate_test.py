"""The command line of the evaluation, with a discovery that knows the answers."""

import dataclasses
import json
import shutil

import numpy as np
import pytest

from nsode_jax import evaluate
from nsode_jax.discovery import pipeline
from nsode_jax.dynamics.vectors import TrajectoryError
from nsode_jax.evaluation import methods, protocol
from nsode_jax.evaluation.results import read_runs
from nsode_jax.evaluation.testsets import odebench, textbook
from nsode_jax.expressions.expression import Expression
from nsode_jax.modeling.pretrained import SHIPPED_WEIGHTS


@dataclasses.dataclass(frozen=True)
class FakeCandidate:
    expression: Expression
    r2: float = 1.0


@dataclasses.dataclass(frozen=True)
class FakeDiscovery:
    candidates: tuple[FakeCandidate, ...]


class FakeDiscover:
    """Returns a wrong law, then the true one; refuses compound interest."""

    def __init__(self):
        self.calls = 0

    def __call__(self, t, y, *, weights, effort, beams, samples, seed):
        self.calls += 1
        assert t.shape == y.shape == (1024,)
        problem = next(p for p in textbook() if p.y0 == y[0] and np.allclose(p.solve(), y))
        if problem.name == "compound interest":
            raise TrajectoryError("the series is constant")
        wrong = FakeCandidate(Expression.from_infix("sin(y) - 100"), r2=-np.inf)
        return FakeDiscovery((wrong, FakeCandidate(problem.expression)))


@pytest.fixture
def fake(monkeypatch):
    discover = FakeDiscover()
    monkeypatch.setattr(pipeline, "discover", discover)
    return discover


def run(tmp_path, *more):
    arguments = ["--sets", "textbook", "--processes", "0", "--out", str(tmp_path)]
    return evaluate.main([*arguments, *more])


def results_file(tmp_path, method="nsode+refine", name="textbook"):
    return tmp_path / method / f"{name}.jsonl"


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_one_line_per_problem_and_the_totals(fake, tmp_path, capsys):
    assert run(tmp_path) == 0
    results = lines(results_file(tmp_path))
    assert [result["name"] for result in results] == [problem.name for problem in textbook()]
    first = results[0]
    assert (first["truth"], first["complexity"]) == ("0.6*y**2 + 2*y + 0.1", 11)
    settings = dict(method="nsode+refine", weights="small", effort="default", beams=None)
    settings |= dict(samples=None, seed=0, noise=0.0, drop=0.0)
    assert {name: first[name] for name in settings} == settings
    assert first["rank"] == dict.fromkeys(first["rank"], 2)
    wrong, right = first["candidates"]
    assert (wrong["skeleton"], wrong["allclose"], wrong["solution_r2"]) == (False, False, None)
    assert (right["skeleton"], right["allclose"], right["r2"]) == (True, True, 1.0)
    assert (right["rank"], first["num_candidates"]) == (2, 2)

    refused = next(result for result in results if result["name"] == "compound interest")
    assert refused["candidates"] == [] and refused["error"] == "the series is constant"
    assert set(refused["rank"].values()) == {None} and "reconstruction_r2" not in refused

    output = capsys.readouterr().out
    assert "(the series is constant)" in output
    assert "of 12 problems" in output
    totals = {line.split()[0]: line.split()[1:] for line in output.splitlines()[-7:] if line}
    assert totals["skeleton"] == ["11", "0"]
    assert totals["skeleton_and_allclose"] == ["11", "0"]
    assert totals["reconstruction"][-1] == "0.0%"  # The first candidate is always wrong.


def test_a_run_goes_on_where_it_was_killed(fake, tmp_path, capsys):
    assert run(tmp_path) == 0
    file = results_file(tmp_path)
    whole = file.read_text().splitlines(keepends=True)
    file.write_text("".join(whole[:5]) + whole[5][:40])
    fake.calls = 0
    capsys.readouterr()
    assert run(tmp_path) == 0
    assert fake.calls == 7
    assert "5 of 12 problems are done already" in capsys.readouterr().out
    assert [result["name"] for result in lines(file)] == [p.name for p in textbook()]


def test_results_of_other_settings_are_not_mixed(fake, tmp_path, capsys):
    assert run(tmp_path) == 0
    capsys.readouterr()
    assert run(tmp_path, "--beams", "7") == 2
    error = capsys.readouterr().err
    assert "holds results of beams None" in error and error.count("\n") == 1
    assert len(lines(results_file(tmp_path))) == 12


def test_results_of_other_weights_are_not_mixed(fake, tmp_path, capsys):
    """The shipped weights keep their name when they are replaced."""
    weights = tmp_path / "weights"
    shutil.copytree(SHIPPED_WEIGHTS / "small", weights)
    model = weights / "model.json"
    assert run(tmp_path, "--weights", str(weights)) == 0
    file = results_file(tmp_path)
    written, sha256 = lines(file), json.loads(model.read_text())["sha256"]
    assert {line["weights_sha256"] for line in written} == {sha256}

    model.write_text(model.read_text().replace(sha256, "0123"))
    capsys.readouterr()
    assert run(tmp_path, "--weights", str(weights)) == 2
    assert f"holds results of weights_sha256 {sha256}: choose" in capsys.readouterr().err

    # As they were written before results said so: a report reads them, nothing is added.
    for line in written:
        del line["weights_sha256"]
    file.write_text("".join(json.dumps(line) + "\n" for line in written))
    assert run(tmp_path, "--weights", str(weights)) == 2
    error = capsys.readouterr().err
    assert "does not say of which weights" in error and error.count("\n") == 1
    assert len(read_runs(tmp_path)[0].results) == 12


def test_corrupted_data_have_their_own_file(fake, tmp_path, monkeypatch):
    """Here the observations are clean, so that the fake discovery knows them."""
    monkeypatch.setattr(protocol, "observe", lambda problem, y, *_: (problem.t, y))
    assert run(tmp_path, "--noise", "0.05", "--drop", "0.5") == 0
    path = results_file(tmp_path, name="textbook-noise0.05-drop0.5")
    assert {(line["noise"], line["drop"]) for line in lines(path)} == {(0.05, 0.5)}


def test_the_network_alone_is_ranked_by_its_probability(tmp_path, monkeypatch):
    """In its own variables: y0 = 9 is beyond its range, so it reads the series scaled."""

    class FakeNetwork:
        def propose(self, trajectories, *, beams, seed):
            assert beams == 3 and all(np.abs(seen.y).max() <= 5.0 for seen in trajectories)
            laws = ["sin(y)", "0.4*y", "0.4*y", "log(y)"]
            found = [(Expression.from_infix(law), -i) for i, law in enumerate(laws)]
            return [found for _ in trajectories]

    monkeypatch.setattr(methods, "_network", lambda weights: FakeNetwork())
    problems = [p for p in textbook() if p.y0 == 9.0]
    settings = {"weights": "small", "beams": 3, "seed": 0}
    results = protocol.evaluate_problems(problems, "nsode", settings)
    assert [result["name"] for result in results] == [problem.name for problem in problems]
    result = next(r for r in results if r["name"] == "compound interest")
    assert result["num_candidates"] == 3 and result["rank"]["skeleton"] == 2
    assert result["rank"]["allclose"] is None
    restored = Expression.from_infix(result["candidates"][1]["formula"])
    assert restored.constants == pytest.approx([0.4])


def test_the_papers_decoding_counts_all_beams(tmp_path, monkeypatch, capsys):
    """The series as they are; repetitions and what is no formula keep their ranks."""

    class FakeNetwork:
        def propose_freely(self, trajectories, *, beams):
            assert max(np.abs(seen.y).max() for seen in trajectories) >= 9.0
            right = [Expression.from_infix(law) for law in ("sin(y)", "sin(y)", "0.4*y")]
            return [[None, *right] for _ in trajectories]

    monkeypatch.setattr(methods, "_network", lambda weights: FakeNetwork())
    arguments = ["--method", "nsode", "--decoding", "paper", "--batch", "12"]
    assert run(tmp_path, *arguments) == 0
    results = {line["name"]: line for line in lines(results_file(tmp_path, "nsode-paper"))}
    result = results["compound interest"]
    assert (result["num_candidates"], result["rank"]["skeleton"]) == (4, 4)
    assert result["candidates"][0]["formula"] is None and not result["candidates"][0]["allclose"]
    assert result["reconstruction_r2"] is None
    assert "(no formula)" in capsys.readouterr().out
    assert run(tmp_path, "--decoding", "paper") == 2  # Discovery has decoding of its own.
    assert "--decoding paper has no meaning for" in capsys.readouterr().err
    assert evaluate.main(["report", str(tmp_path), "--out", str(tmp_path / "report")]) == 0


def test_each_method_takes_its_own_options_only(tmp_path, capsys):
    assert run(tmp_path, "--method", "sindy", "--effort", "fast") == 2
    assert "--effort has no meaning for the method sindy" in capsys.readouterr().err
    assert run(tmp_path, "--method", "nsode", "--samples", "5") == 2
    assert "--samples has no meaning for the method nsode" in capsys.readouterr().err
    assert not results_file(tmp_path, "nsode").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--sets", "textbok"],
            "unknown test set 'textbok': known are iv, iv-500, constants, constants-250, skeletons",
        ),
        (["--sets", ","], "names no test set"),
        (["--method", "magic"], "invalid choice: 'magic'"),
        (["--beams", "-1"], "--beams must be at least 0, got -1"),
        (["--method", "nsode", "--beams", "0"], "--beams must be at least 1, got 0"),
        (["--beams", "many"], "invalid int value: 'many'"),
        (["--samples", "-1"], "--samples must be at least 0, got -1"),
        (["--drop", "1"], "--drop must be between 0 and 0.9, got 1.0"),
        (["--noise", "-0.1"], "--noise must be between 0 and 1, got -0.1"),
        (["--noise", "nan"], "--noise must be between 0 and 1, got nan"),
        (["--batch", "0"], "--batch must be at least 1, got 0"),
        (["--processes", "-1"], "--processes must be at least 0, got -1"),
        (["--time-limit", "0"], "--time-limit must be at least 1, got 0.0"),
        (["--effort", "much"], "invalid choice: 'much'"),
        (["--frobnicate"], "--frobnicate"),
        (["--out", "/dev/null/results"], "/dev/null"),
        (["report"], "required: results"),
        (["report", "nowhere"], "there is no folder nowhere"),
    ],
)
def test_bad_arguments_get_one_line_and_code_2(
    fake, tmp_path, monkeypatch, capsys, arguments, message
):
    monkeypatch.chdir(tmp_path)
    assert evaluate.main(arguments) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
    assert fake.calls == 0


@pytest.mark.parametrize("text", ["my diary\n", "my diary", "{}\n", "[1]\n"])
def test_a_foreign_file_is_left_alone(fake, tmp_path, capsys, text):
    file = results_file(tmp_path)
    file.parent.mkdir()
    file.write_text(text)
    assert run(tmp_path) == 2
    assert "is not a result file" in capsys.readouterr().err
    assert file.read_text() == text


def test_unusable_weights_end_the_run(tmp_path, capsys):
    assert run(tmp_path, "--weights", "large") == 2
    error = capsys.readouterr().err
    assert error.startswith("nsode_jax.evaluate: error: no weights 'large'")
    assert error.count("\n") == 1
    assert not results_file(tmp_path).exists()


@pytest.mark.parametrize("processes", ["0", "1"])
def test_a_method_that_is_not_installed_is_no_miss(tmp_path, monkeypatch, capsys, processes):
    monkeypatch.delenv("NSODE_AIFEYNMAN_PYTHON", raising=False)
    assert run(tmp_path, "--method", "aifeynman", "--processes", processes) == 2
    error = capsys.readouterr().err
    assert "set NSODE_AIFEYNMAN_PYTHON to the path" in error and error.count("\n") == 1
    assert not results_file(tmp_path, "aifeynman").exists()


def test_from_the_command_to_the_report(fake, tmp_path, capsys):
    assert run(tmp_path) == 0
    capsys.readouterr()
    out = tmp_path / "report"
    assert evaluate.main(["report", str(tmp_path), "--out", str(out)]) == 0
    assert str(out / "report.md") in capsys.readouterr().out.splitlines()
    rows = [line.split(" | ") for line in (out / "report.md").read_text().splitlines()]
    table_1, table_8 = (row[2:4] for row in rows if row[1:3] == ["skeleton", "91.7"])
    assert table_1 == table_8 == ["91.7", "0.0"]  # Any of the candidates, the first.


def test_observations_follow_the_protocol():
    problem = odebench()[0]
    y = problem.solve()
    t, clean = protocol.observe(problem, y, 0.0, 0.0, 0)
    assert np.array_equal(t, problem.t) and np.array_equal(clean, y)
    t, noisy = protocol.observe(problem, y, 0.05, 0.5, 0)
    assert t.size == 75 and (np.diff(t) > 0).all()
    xi = noisy / np.interp(t, problem.t, y) - 1
    assert 0.035 < xi.std() < 0.065
    again = protocol.observe(problem, y, 0.05, 0.5, 0)
    assert np.array_equal(noisy, again[1])
    assert not np.array_equal(noisy, protocol.observe(problem, y, 0.05, 0.5, 1)[1])


def test_solutions_are_compared_from_both_initial_values(monkeypatch, tmp_path, capsys):
    """Here all laws but the first are wrong, and one has no solution from the other value."""
    truths = {problem.name: problem.expression for problem in odebench()}
    first, *_ = truths

    def discover(t, y, **settings):
        return FakeDiscovery((FakeCandidate(next(laws)),))

    wrong = Expression.from_infix("log(y - 1e9)")
    laws = iter([truths[first], *[wrong] * 45])
    monkeypatch.setattr(pipeline, "discover", discover)
    assert run(tmp_path, "--sets", "odebench") == 0
    results = lines(results_file(tmp_path, name="odebench"))
    assert results[0]["reconstruction_r2"] > 0.999 and results[0]["generalization_r2"] > 0.999
    assert results[1]["reconstruction_r2"] is None and results[1]["generalization_r2"] is None
    totals = [line.split() for line in capsys.readouterr().out.splitlines() if "R2 > 0.9" in line]
    assert [line[-1] for line in totals] == ["2.2%", "2.2%"]
