"""Statistics of a data set: they add up, survive JSON and can be drawn."""

import collections
import json

from nsode_jax.data.statistics import Statistics
from nsode_jax.expressions.expression import Skeleton

LOGISTIC = Skeleton.from_key("add mul -c pow y c mul c y")
DECAY = Skeleton.from_key("mul -c y")


def test_complexities_and_operators_are_counted():
    statistics = Statistics.of([LOGISTIC, DECAY, DECAY])
    assert statistics.complexities == {9: 1, 3: 2}
    assert statistics.operators == {"add": 1, "mul": 4, "pow": 1}


def test_statistics_add_up_and_survive_json():
    a, b = Statistics.of([LOGISTIC]), Statistics(collections.Counter(kept=3))
    b.add(DECAY, examples=3)
    back = Statistics.from_json(json.loads(json.dumps(b.to_json())))
    assert back == b
    a += back
    assert a.counts == {"kept": 3}
    assert a.complexities == {9: 1, 3: 3}
    assert a.operators == {"add": 1, "mul": 5, "pow": 1}


def test_report_and_picture(tmp_path):
    statistics = Statistics(collections.Counter({"kept": 1500, "no trusted solution": 500}))
    statistics.add(LOGISTIC, 500)
    statistics.add(DECAY, 1000)
    lines = statistics.report().splitlines()
    assert lines[1].split() == ["kept", "1,500"]
    row = next(line for line in lines if line.split()[:1] == ["3"])
    assert row.split() == ["3", "1,000", "66.7%", "#" * 40]
    statistics.plot(tmp_path / "x.png", "equations")
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
    assert "none" in Statistics().report()
    Statistics().plot(tmp_path / "empty.png")
