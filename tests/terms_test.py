"""Tests for the terms of which equations of systems are made."""

import math

import numpy as np

from nsode_jax.expressions.expression import Expression
from nsode_jax.search.terms import functions


def worst(terms, variables, values):
    """The largest magnitude of each term along a fine path through the values."""
    grid = np.array([np.linspace(row.min(), row.max(), 4001) for row in values])
    with np.errstate(all="ignore"):
        laws = [Expression(term, variables) for term in terms]
        return [float(np.nanmax(np.abs(law.evaluate(*grid)), initial=0.0)) for law in laws]


def test_no_term_has_a_pole_among_the_values():
    values = np.array([np.linspace(-2.0, 3.0, 50), np.linspace(0.5, 4.0, 50)])
    terms = functions(("x", "y"), values)
    # A logarithm at 0 is none: what is undefined somewhere is left out by the search.
    assert max(worst([t for t in terms if "log" not in t], ("x", "y"), values)) < 1e4
    written = {" ".join(map(str, term)) for term in terms}
    assert "div 1.0 y" in written and "div 1.0 x" not in written


def test_no_two_terms_are_the_same_function_of_the_values():
    x = np.linspace(0.0, 1.0, 50)
    written = {
        unit: {
            " ".join(map(str, term))
            for term in functions(("x", "y"), unit * np.array([x, 0.7 - x]))
        }
        for unit in (1.0, 1e-6)
    }
    for names in written.values():
        assert "mul x sqrt pow x 2.0" not in names and "mul y sqrt pow y 2.0" in names
    bent = {"sin x", "cos x", "exp x", "mul sin x cos x", "sin sub x y", "exp add x y"}
    assert bent <= written[1.0]
    assert not any({"sin", "cos", "exp"} & set(name.split()) for name in written[1e-6])
    nearly = functions(("x",), np.array([x - 0.02]))
    assert ("mul", "x", "sqrt", "pow", "x", 2.0) not in nearly


def test_phases_may_run_apart():
    t = np.linspace(0.0, 50.0, 200)
    terms = functions(("a", "b"), np.array([1.1 * t, 0.2 * t]))
    assert ("sin", "sub", "a", "b") in terms and ("sin", "a") not in terms


def test_an_angle_may_be_in_degrees():
    swing = np.linspace(-150.0, 140.0, 50)
    wave = ("sin", "mul", math.pi / 180, "x")
    assert wave in functions(("x",), swing[None])
    for values in (swing / 100, swing + 200, 1000 * swing):
        assert wave not in functions(("x",), values[None])
