"""Tests for results as lines of JSON."""

from nsode_jax.evaluation.json_lines import finish


def test_only_what_is_missing_is_done(tmp_path, capsys):
    path = tmp_path / "results.jsonl"
    done = []

    def work(number):
        def task():
            done.append(number)
            return {"number": number, "square": number**2}

        return task

    def run(*numbers):
        tasks = {number: work(number) for number in numbers}
        return finish(path, tasks, lambda line: line["number"], lambda line: str(line["square"]))

    assert [line["square"] for line in run(2, 3)] == [4, 9]
    assert capsys.readouterr().out == "4\n9\n"
    assert run(3, 2) == run(2, 3) and done == [2, 3] and capsys.readouterr().out == ""
    with path.open("a") as file:  # As of a process that was killed.
        file.write('{"number": 5, "squ')
    assert [line["square"] for line in run(3, 5)] == [4, 9, 25]
    assert path.read_text().splitlines()[-1] == '{"number": 5, "square": 25}'
