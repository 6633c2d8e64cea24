"""Tests for laws of second order, with time or inputs, whose answers are known."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import solve_ivp

from nsode_jax.evaluation.driven_systems import (
    CASES,
    NOISES,
    evaluate,
    main,
    same_structure,
    table,
    within,
)
from nsode_jax.expressions.expression import Expression


def case_of(name):
    return next(case for case in CASES if case.name == name)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_runs_follow_the_laws(case):
    for number in (0, 1):
        seen = case.run(number)
        assert np.isfinite(seen).all() and (np.ptp(seen, axis=0) > 0).all()
    assert same_structure(case.expressions, case.expressions)
    assert np.abs(case.run(0) - case.run(1)).max() > 0.1


def test_the_runs_are_those_of_scipy():
    case = case_of("van der Pol")
    solved = solve_ivp(
        lambda t, y: [y[1], 1.5 * y[1] - 1.3 * y[0] ** 2 * y[1] - 1.1 * y[0]],
        (0, case.duration), case.starts[1], t_eval=case.t, rtol=1e-10, atol=1e-10,
    )  # fmt: skip
    assert_allclose(case.run(1)[:, 0], solved.y[0], atol=1e-6)


def test_structures():
    def laws(text):
        return [Expression.from_infix(text, ("x", "v"))]

    assert same_structure(laws("2*v + 3*x"), laws("-0.1*x - v/3"))
    assert not same_structure(laws("2*v + 3*x"), laws("2*v + 3*x + 1e-3*x**2"))
    assert same_structure(laws("sin(x)"), laws("0.9*sin(x)"))
    assert not same_structure(laws("2*v + 3*x**2"), laws("2*v + 3*x**3"))


def test_a_damped_oscillator_is_found_from_noisy_positions():
    line = evaluate(case_of("damped oscillator"), 0.01, seed=0)
    assert line["structure"] and line["generalization_r2"] > 0.99
    assert line["constants"] == 2 and line["within"] >= 1


def test_a_reaction_that_fades_is_found():
    line = evaluate(case_of("fading reaction"), 0.01, seed=0)
    assert line["structure"], line["laws"]


def test_a_relaxation_oscillator_is_found_in_noise():
    """Terms with a pole on the path fitted its noise, and no system had a solution."""
    line = evaluate(case_of("van der Pol"), 0.03, seed=0)
    assert line["structure"], line["laws"]


def test_a_pendulum_is_found_in_noise():
    """Along smooth curves, whose velocities are wrong, a cubic fits as well."""
    line = evaluate(case_of("pendulum"), 0.03, seed=0)
    assert line["structure"], line["laws"]


def test_what_is_superfluous_is_left_out():
    """Without it the fit had been in a worse minimum before, and was not tried from here."""
    line = evaluate(case_of("Duffing"), 0.01, seed=0)
    assert line["structure"], line["laws"]


def test_the_table_counts(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("nsode_jax.evaluation.driven_systems.CASES", CASES[:1])
    monkeypatch.setattr("nsode_jax.evaluation.driven_systems.NOISES", NOISES[:1])
    path = tmp_path / "results.jsonl"
    assert main([str(path)]) == 0
    first = capsys.readouterr().out
    assert "| harmonic oscillator | **right**, 1.000 |" in first
    assert "| right structure, other run predicted | 1, 1 of 1; " in first
    before = path.read_text()
    assert main([str(path)]) == 0  # All is there already.
    assert path.read_text() == before and capsys.readouterr().out.strip() in first
    missed = {"name": "pendulum", "noise": 0.0, "error": "none", "seconds": 1.0}
    assert "| pendulum | no solution |" in table([missed])


def test_constants_within_their_intervals():
    class Found:
        laws = (Expression.from_infix("2.0*v + 3.0*x", ("x", "v")),)
        constants = (2.0, 3.0)
        confidence_intervals = ((1.9, 2.1), (2.9, 3.1))

    truth = [Expression.from_infix("3.05*x + 2.2*v", ("x", "v"))]
    assert within(Found(), truth) == (1, 2)  # pyright: ignore[reportArgumentType]


def test_a_coefficient_of_exactly_one_has_to_be_that():
    class Found:
        laws = (Expression.from_infix("x + 3*v", ("x", "v")),)
        constants = (3.0,)
        confidence_intervals = ((2.9, 3.1),)

    for text, held in (("x + 3.05*v", 2), ("1.1*x + 3.05*v", 1)):
        truth = [Expression.from_infix(text, ("x", "v"))]
        assert within(Found(), truth) == (held, 2)  # pyright: ignore[reportArgumentType]


def test_the_documentation_shows_the_committed_results():
    docs = Path(__file__).parent.parent / "docs"
    lines = (docs / "evaluation" / "systems" / "driven.jsonl").read_text("utf-8").splitlines()
    shown = table([json.loads(line) for line in lines])
    assert shown in (docs / "results.md").read_text("utf-8")
