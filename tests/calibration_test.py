"""Stated probabilities are right on simulated laws that no constant was chosen on."""

import math
from pathlib import Path

import numpy as np
import pytest

from nsode_jax.discovery.law_search import data_form
from nsode_jax.discovery.series import read_series
from nsode_jax.evaluation import calibration
from nsode_jax.evaluation.calibration import (
    draw,
    is_held_out,
    is_right,
    main,
    read,
    reliability,
    stated,
    table,
)
from nsode_jax.evaluation.simulated_laws import CYCLE, KINDS, LEFT_OUT, LENGTHS, NOISES, simulate
from nsode_jax.expressions.constants import is_plain
from nsode_jax.expressions.expression import Expression
from nsode_jax.observed.dataset import Dataset
from nsode_jax.observed.scaling import working_units
from nsode_jax.selection.complexity import fitted_exponents
from nsode_jax.selection.prior import Prior
from nsode_jax.selection.score import EDGE_COST, NUMBER_COST, cancellation, counted_numbers, laplace

POOLS = read(
    Path(__file__).parent.parent / "docs" / "evaluation" / "calibration" / "pools.jsonl.gz"
)
HELD_OUT = [pool for pool in POOLS if is_held_out(pool)]


def test_stated_probabilities_are_right():
    assert len(HELD_OUT) >= 60
    assert reliability(HELD_OUT).error <= 0.06
    first = reliability(HELD_OUT, first_only=True)
    told, right = (np.average(v, weights=first.count) for v in (first.stated, first.right))
    assert abs(told - right) <= 0.1


def test_also_where_the_prior_does_not_know_the_field():
    assert reliability([pool for pool in POOLS if pool["kind"] == LEFT_OUT]).error <= 0.06


def test_probabilities_leave_room_for_what_was_not_found():
    for pool in POOLS:
        total = sum(stated(pool))
        assert total <= 1.0
        if pool["noise"]:
            assert total < 0.95


def test_stored_scores_are_those_of_today():
    """From what they were made of; a candidate at an edge costs more, and digits are few."""
    known, priors, compared, taken = Prior.load(), {}, 0, 0
    for pool in POOLS[:60]:
        field = pool["field"]
        if field not in priors:
            priors[field] = known.without_fields(field) if field else known
        problem = simulate(pool["seed"])
        given = Dataset.of(read_series(problem.t, problem.y)[0])
        form = data_form(working_units(given).apply_to(given))
        for candidate in pool["candidates"]:
            law = Expression.from_infix(candidate["law"])
            log_prior = priors[field].log_prior(law)
            # Constants of few digits may look plain.
            if abs(log_prior - candidate["log_prior"]) > 0.01:
                continue
            share = pool["share"]
            information = [share * value for value in candidate["information"]]
            count = share * pool["count"]
            value = laplace(candidate["rms"], information, count, 1, pool["floor"])
            value += sum(math.log(abs(e)) ** 2 for e in fitted_exponents(law))
            value += cancellation(law, form)
            value += NUMBER_COST * counted_numbers(law, candidate["rms"]) - 2 * log_prior
            gap = candidate["score"] - value
            compared += 1
            if gap < -0.5:  # It took the place, and the score, of one like it.
                taken += 1
                continue
            assert min(abs(gap), abs(gap - EDGE_COST)) < 0.5
    assert compared > 400 and taken < 0.01 * compared


def _pool(seed: int, *candidates: tuple[float, bool]) -> dict:
    """A problem without noise whose candidates have scores and are right or not."""
    listed = [{"score": score, "right": right, "rms": 1e-9} for score, right in candidates]
    known = {"noise": 0.0, "count": 10, "kind": "named", "share": 1.0}
    return known | {"seed": seed, "candidates": listed}


def test_reliability_is_counted_by_hand():
    even = [(0.0, True), (0.0, False)]
    pools = [_pool(0, *even), _pool(1, *even), _pool(2, (0.0, True), (99.0, False))]
    found = reliability(pools)
    assert found.stated == pytest.approx((0.5, 1.0))
    assert found.right == pytest.approx((0.5, 1.0))
    assert found.count == (4, 1)  # What is stated to be next to impossible is not counted.
    assert found.error == pytest.approx(0.0)
    first = reliability(pools, first_only=True)
    assert first.right == (1.0, 1.0) and first.count == (2, 1)
    assert first.error == pytest.approx(2 / 3 * 0.5)


def test_the_table_and_the_picture_are_of_the_problems_held_out():
    pools = [_pool(0, (0.0, False)), _pool(CYCLE, (0.0, True), (0.0, False))]
    rows = [row.split("|")[1:-1] for row in table(pools).splitlines()]
    by_name = {row[0].strip(): [cell.strip() for cell in row[1:]] for row in rows[2:]}
    assert by_name["chosen on"][:3] == ["1", "0%", "100%"]
    assert by_name["held out"][:3] == by_name["- named"][:3] == ["1", "100%", "50%"]
    (axes,) = draw(pools).axes
    assert "1 simulated problem" in axes.get_title()


def test_a_law_is_right_by_its_form_or_by_what_it_says():
    truth = Expression.from_infix("0.5*y - 0.1*y**2")
    assert is_right(truth, Expression.from_infix("0.7*y*(1 - y/9)"), 1.0, 3.0)
    assert is_right(truth, Expression.from_infix("0.5*y - 0.1*y**2 + 0.00001"), 1.0, 3.0)
    assert not is_right(truth, Expression.from_infix("0.4*y - 0.02*y**3"), 1.0, 3.0)


def test_a_run_goes_on_where_it_stopped(tmp_path, monkeypatch, capsys):
    made = []

    def fake(problem):
        made.append(problem.seed)
        return _pool(problem.seed, (0.0, True))

    monkeypatch.setattr(calibration, "pool", fake)
    path = tmp_path / "pools.jsonl.gz"
    main([str(path), "--problems", "2"])
    main([str(path), "--problems", "4"])
    assert made == [0, 1, 2, 3]
    assert [pool["seed"] for pool in read(path)] == made
    assert "| chosen on | 4 | 100% | 100% |" in capsys.readouterr().out
    with pytest.raises(SystemExit):  # None is held out yet.
        main([str(path), "--figure", str(tmp_path / "figure.png")])
    main([str(path), "--problems", str(CYCLE + 1), "--figure", str(tmp_path / "figure.png")])
    assert (tmp_path / "figure.png").exists()


def test_a_pool_holds_the_true_law():
    """Of a noise-free problem; no law of the field that is left out is proposed by name."""
    problem = simulate(1)
    assert problem.kind == LEFT_OUT and problem.noise == 0.0
    pool = calibration.pool(problem)
    best = pool["candidates"][0]
    assert best["right"] and stated(pool)[0] > 0.9
    law = Expression.from_infix(best["law"])
    assert best["numbers"] == sum(not is_plain(c) for c in law.constants)


def test_problems_are_the_same_every_time_and_take_turns():
    one, other = simulate(7), simulate(7)
    np.testing.assert_array_equal(one.y, other.y)
    problems = [simulate(seed) for seed in range(15)]
    assert {problem.kind for problem in problems} == set(KINDS)
    assert {problem.noise for problem in problems} == set(NOISES)
    assert {len(simulate(15 * i).t) for i in range(4)} == set(LENGTHS)
    for problem in problems:
        assert np.isfinite(problem.y).all() and np.ptp(problem.y) > 0
        assert bool(problem.field) == (problem.kind == LEFT_OUT)
        if problem.field:
            assert problem.field not in problem.catalogue().fields
