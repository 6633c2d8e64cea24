"""Baselines: their parts against closed forms, the libraries themselves on easy laws."""

import functools
import math
import stat
import sys

import numpy as np
import pytest

from nsode_jax.baselines import feynman, genetic, sindy
from nsode_jax.baselines import scalar as baselines
from nsode_jax.baselines.operon import operon_front, to_expression, without_rounding
from nsode_jax.baselines.scalar import BaselineError, NotInstalled, distinct, ranked_by_solution
from nsode_jax.baselines.sindy import library, sparse_laws
from nsode_jax.baselines.slopes import Slopes, differentiate, local_polynomials
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.evaluation.testsets import textbook
from nsode_jax.expressions.canonical import canonicalize
from nsode_jax.expressions.expression import Expression

LOGISTIC = canonicalize(Expression.from_infix("0.9*y - 0.3*y**2"))


def logistic_solution(t):
    """The closed form of dy/dt = 0.9 y - 0.3 y^2 from y(0) = 0.2."""
    return 3.0 / (1.0 + 14.0 * np.exp(-0.9 * t))


def uneven_times(count, seed=0):
    return np.sort(np.random.default_rng(seed).uniform(0.0, 10.0, count))


def noisy(y, level, seed=0):
    return y * (1.0 + level * np.random.default_rng(seed).standard_normal(y.size))


def laws(*texts):
    return [Expression.from_infix(text) for text in texts]


# --- derivatives --------------------------------------------------------------


def test_local_polynomials_are_exact_for_polynomials_on_uneven_times():
    t = uneven_times(40)
    y, slope = t**4 - 3 * t**2 + 5, 4 * t**3 - 6 * t
    values, slopes, _ = local_polynomials(t, y, window=9, degree=4)
    np.testing.assert_allclose(values, y, rtol=1e-8, atol=1e-6)
    np.testing.assert_allclose(slopes, slope, rtol=1e-8, atol=1e-4)


def test_the_narrowest_window_is_a_finite_difference():
    t = np.linspace(0.0, 1.0, 11)
    y = np.exp(t)
    values, slopes, leverage = local_polynomials(t, y, window=3, degree=2)
    np.testing.assert_allclose(values, y)
    np.testing.assert_allclose(leverage, 1.0)
    np.testing.assert_allclose(slopes[1:-1], (y[2:] - y[:-2]) / 0.2)


def test_leverage_predicts_the_error_of_a_point_left_out():
    t, y = uneven_times(15), np.random.default_rng(1).standard_normal(15)
    values, _, leverage = local_polynomials(t, y, window=15, degree=2)
    others = np.arange(15) != 6
    left_out = np.polyval(np.polyfit(t[others], y[others], 2), t[6])
    assert (y[6] - values[6]) / (1 - leverage[6]) == pytest.approx(y[6] - left_out)


def test_slopes_of_clean_data_are_nearly_exact():
    t = np.linspace(0.0, 10.0, 150)
    slopes = differentiate(t, logistic_solution(t))
    np.testing.assert_allclose(slopes.slope, LOGISTIC.evaluate(logistic_solution(t)), atol=1e-4)


@pytest.mark.parametrize("t", [np.linspace(0.0, 10.0, 150), uneven_times(75)])
def test_slopes_of_noisy_data_are_smoothed(t):
    truth = LOGISTIC.evaluate(logistic_solution(t))
    y = noisy(logistic_solution(t), 0.05)
    error = np.sqrt(np.mean((differentiate(t, y).slope - truth) ** 2))
    unsmoothed = np.sqrt(np.mean((local_polynomials(t, y, 3, 2)[1] - truth) ** 2))
    assert error < 0.5 * truth.std()
    assert error < 0.05 * unsmoothed


def test_short_series_have_slopes():
    t = np.linspace(0.0, 1.0, 8)
    np.testing.assert_allclose(differentiate(t, 2 * t).slope, 2.0)


# --- candidates ---------------------------------------------------------------


def test_solutions_rank_the_laws():
    t = np.linspace(0.0, 10.0, 100)
    series = Trajectory(t, noisy(logistic_solution(t), 0.02))
    slopes = Slopes(logistic_solution(t), LOGISTIC.evaluate(logistic_solution(t)))
    ranked = ranked_by_solution(
        laws("9 + y**3", "0.3*y", "0.9*y - 0.3*y**2 + 1e-7*sin(y)", "0.9*y - 0.3*y**2"),
        series,
        slopes,
    )
    assert ranked[0] == LOGISTIC  # The shorter of two equally good ones.
    assert ranked[-1].skeleton.key == canonicalize(*laws("9 + y**3")).skeleton.key


def test_laws_are_listed_once():
    assert list(distinct(laws("y + 1", "1 + y", "2*y/2", "y"))) == [
        canonicalize(law) for law in laws("y + 1", "y")
    ]


def test_laws_that_cannot_be_used_are_left_out():
    nested = Expression(("sin",) * 150 + ("y",))
    long = Expression(("add",) * 600 + tuple(x for i in range(600) for x in ("sin", "y")) + ("y",))
    undefined = Expression(("log", -1.0))  # Has no canonical form and stays as it is.
    assert undefined in list(distinct([nested, undefined, *laws("y")]))
    assert nested not in list(distinct([nested]))
    assert all(len(law.prefix) < 1000 for law in distinct([long]))


@pytest.mark.parametrize(
    ("name", "module", "fit"),
    [
        ("PySINDy", "pysindy.optimizers", functools.partial(baselines.sindy, degree=None)),
        ("gplearn", "gplearn.fitness", baselines.gplearn),
        ("PyOperon", "pyoperon.sklearn", baselines.operon),
    ],
)
def test_a_missing_extra_is_named(monkeypatch, name, module, fit):
    monkeypatch.setitem(sys.modules, module, None)
    t = np.linspace(0.0, 10.0, 50)
    with pytest.raises(NotInstalled, match=rf"{name} needs .* 'nsode_jax\[baselines\]'"):
        fit(t, logistic_solution(t), seed=0)


@pytest.mark.parametrize("y", [np.ones(50), np.full(50, np.nan), np.arange(49.0)])
def test_a_series_that_cannot_be_used_is_refused(y):
    with pytest.raises(BaselineError):
        baselines.operon(np.linspace(0.0, 1.0, 50), y, seed=0)


# --- SINDy --------------------------------------------------------------------


def test_the_library_leaves_out_what_is_undefined_or_too_large():
    functions = ("sin", "exp", "sqrt", "log")
    terms, features = library(np.array([[-1.0], [2.0]]), 2, functions)
    assert [term.infix for term in terms] == ["1", "y**1", "y**2", "sin(y)", "exp(y)"]
    np.testing.assert_allclose(features[1], [1.0, 2.0, 4.0, math.sin(2.0), math.exp(2.0)])
    terms, _ = library(np.array([[1.0], [100.0]]), 1, functions)
    assert [term.infix for term in terms] == ["1", "y**1", "sin(y)", "sqrt(y)", "log(y)"]


def test_the_library_of_two_variables_has_their_products():
    terms, features = library(np.array([[2.0, 3.0]]), 2, ["cos"], ("a", "b"))
    expected = ["1", "a**1", "b**1", "a**2", "a**1*b**1", "b**2", "cos(a)", "cos(b)"]
    assert [term.infix for term in terms] == expected
    np.testing.assert_allclose(features[0], [1, 2, 3, 4, 6, 9, math.cos(2), math.cos(3)])


def test_sindy_finds_the_logistic_equation():
    pytest.importorskip("pysindy")
    t = np.linspace(0.0, 10.0, 150)
    found = baselines.sindy(t, logistic_solution(t), degree=2, seed=0)
    assert found[0].skeleton == LOGISTIC.skeleton
    np.testing.assert_allclose(found[0].constants, LOGISTIC.constants, rtol=1e-3)
    assert len(set(found)) == len(found)


def test_sindy_takes_noisy_uneven_series():
    pytest.importorskip("pysindy")
    t = uneven_times(75)
    y = noisy(logistic_solution(t), 0.05)
    found = baselines.sindy(t, y, degree=2, seed=0)
    assert found == baselines.sindy(t, y, degree=2, seed=1)  # No random numbers.
    error = found[0].evaluate(logistic_solution(t)) - LOGISTIC.evaluate(logistic_solution(t))
    assert np.sqrt(np.mean(error**2)) < 0.1


def test_sindy_is_pysindys_own():
    pysindy = pytest.importorskip("pysindy")
    t = np.linspace(0.0, 10.0, 60)
    y, slope = logistic_solution(t), LOGISTIC.evaluate(logistic_solution(t))
    model = pysindy.SINDy(
        optimizer=pysindy.STLSQ(threshold=0.1, alpha=0.05),
        feature_library=pysindy.PolynomialLibrary(degree=2),
    )
    model.fit(y[:, None], t=t, x_dot=slope[:, None])
    law = sparse_laws(y, slope, [2], [0.1], [0.05])[0]  # Without functions.
    np.testing.assert_allclose(law.evaluate(y), model.predict(y[:, None])[:, 0], rtol=1e-10)


def test_sindy_thresholds_coefficients():
    pytest.importorskip("pysindy")
    y = np.linspace(0.1, 3.0, 40)
    (law,) = distinct(sparse_laws(y, 2.0 * y + 0.01 * y**2, [2], [0.1], [1e-6]))
    assert law.skeleton.key == "mul c y"


# --- gplearn ------------------------------------------------------------------


def test_protected_power():
    base, exponent = np.array([2.0, -2.0, 0.0, 1e300]), np.array([3.0, 3.0, -1.0, 2.0])
    np.testing.assert_array_equal(genetic.protected_power(base, exponent), [8.0, 8.0, 1.0, 1.0])


def test_fitness_is_r2_not_below_minus_one():
    slope, weight = np.array([1.0, 2.0, 3.0, 4.0]), np.ones(4)
    assert genetic.fitness(slope, slope, weight) == 1.0
    assert genetic.fitness(slope, slope + [0.5, -0.5, 0.5, -0.5], weight) == pytest.approx(0.8)
    assert genetic.fitness(slope, slope * 1e200, weight) == -1.0
    assert genetic.fitness(slope, np.full(4, np.nan), weight) == -1.0


NEGATIVE, POSITIVE = np.linspace(-3.0, -1.0, 20), np.linspace(1.0, 3.0, 20)

# (program, data, its formula).
PROGRAMS = [
    (["add", 0, "mul", 2.5, 0], POSITIVE, "y + 2.5*y"),
    (["sub", "neg", 0, "div", 1.5, 0], POSITIVE, "-y - (1.5/y)"),
    (["sqrt", 0], POSITIVE, "sqrt(y)"),
    (["sqrt", 0], NEGATIVE, "sqrt(sqrt(y**2))"),
    (["log", 0], POSITIVE, "log(y)"),
    (["log", 0], NEGATIVE, "log(sqrt(y**2))"),
    (["pow", 0, 2.5], POSITIVE, "y**2.5"),
    (["pow", 0, 2.5], NEGATIVE, "sqrt(y**2)**2.5"),
    (["sin", "cos", 0], NEGATIVE, "sin(cos(y))"),
    (["div", 0, "sub", 0, 0], POSITIVE, "1"),  # Division by 0 everywhere.
    (["log", "sub", 0, 0], POSITIVE, "0"),
    ([0], POSITIVE, "y"),
]  # fmt: skip

# Protected at some of the data only: no expression of ours.
WITHOUT_EXPRESSION = [
    (["div", 1.0, 0], np.array([0.0, 1.0, 2.0])),
    (["log", 0], np.array([1e-5, 1.0, 2.0])),
    (["pow", 0, -1.0], np.array([0.0, 1.0, 2.0])),
]


def gplearn_program(nodes):
    functions = pytest.importorskip("gplearn.functions")
    program = pytest.importorskip("gplearn._program")._Program
    known = dict(functions._function_map)
    known["pow"] = functions.make_function(
        function=genetic.protected_power, name="pow", arity=2, wrap=False
    )
    return program(
        function_set=list(known.values()),
        arities={},
        init_depth=(2, 6),
        init_method="half and half",
        n_features=1,
        const_range=(-1.0, 1.0),
        metric=None,
        p_point_replace=0.05,
        parsimony_coefficient=0.001,
        random_state=None,
        program=[known[node] if isinstance(node, str) else node for node in nodes],
    )


@pytest.mark.parametrize(("nodes", "y", "formula"), PROGRAMS)
def test_programs_are_written_as_they_act(nodes, y, formula):
    program = gplearn_program(nodes)
    expression = genetic.as_expression(program, y)
    assert expression == Expression.from_infix(formula)
    np.testing.assert_allclose(expression.evaluate(y), program.execute(y[:, None]), rtol=1e-6)


@pytest.mark.parametrize(("nodes", "y"), WITHOUT_EXPRESSION)
def test_programs_that_cannot_be_written_are_left_out(nodes, y):
    assert genetic.as_expression(gplearn_program(nodes), y) is None


def test_gplearn_evolves_programs():
    pytest.importorskip("gplearn")
    y = np.linspace(0.5, 3.0, 30)
    runs = [
        list(genetic.evolved_programs(y, y * y + y, 0, [0.001], population_size=100, generations=5))
        for _ in range(2)
    ]
    assert runs[0] == runs[1]
    scores = [genetic.fitness(y * y + y, law.evaluate(y), np.ones(30)) for law in runs[0]]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] > 0.9


# --- Operon -------------------------------------------------------------------


def test_operon_finds_a_simple_law():
    pytest.importorskip("pyoperon")
    y = np.linspace(0.5, 6.0, 60)
    front = operon_front(y, 2.0 * np.sin(y), 0, max_evaluations=20_000)
    assert front == operon_front(y, 2.0 * np.sin(y), 0, max_evaluations=20_000)
    errors = [np.abs(law.evaluate(y) - 2.0 * np.sin(y)).max() for law in front]
    assert min(errors) < 1e-3


def test_operon_takes_noisy_uneven_series(monkeypatch):
    pytest.importorskip("pyoperon")
    monkeypatch.setattr(
        baselines, "operon_front", lambda y, slope, seed: operon_front(y, slope, seed, 20_000)
    )
    t = uneven_times(75)
    found = baselines.operon(t, noisy(logistic_solution(t), 0.05), seed=0)
    error = found[0].evaluate(logistic_solution(t)) - LOGISTIC.evaluate(logistic_solution(t))
    assert np.sqrt(np.mean(error**2)) < 0.1


def test_trees_are_written_in_the_order_of_their_arguments():
    regressors = pytest.importorskip("pyoperon.sklearn")
    y = np.linspace(0.5, 3.0, 40)
    regressor = regressors.SymbolicRegressor(
        allowed_symbols="sub,div,pow,constant,variable",
        objectives=["r2", "length"],
        max_evaluations=10_000,
        random_state=0,
    )
    regressor.fit(y[:, None], 3.0 - 1.0 / y)
    trees = [model["tree"] for model in regressor.pareto_front_]
    operators = {node.Type.name for tree in trees for node in tree.Nodes}
    assert {"Sub", "Div"} & operators
    for tree in trees:  # Operon calculates in single precision.
        values = regressor.evaluate_model(tree, y[:, None])
        np.testing.assert_allclose(to_expression(tree).evaluate(y), values, rtol=1e-3, atol=1e-3)


# --- AI Feynman ---------------------------------------------------------------

# As AI Feynman wrote it, shortened: errors, complexity, formula.
SOLUTION = """\
22.714 5.0139 752.09 37.784 32.311 1/(-4.121173468189*(cos((log(x0)+1)))**(-1))
28.693 4.7778 716.68 44.259 27.433 sqrt(0.044354136176+(x0*sin(pi)))
24.311 4.6215 693.23 50.094 24.616 atan(-0.023483613839+(x0*(x0-1)))
24.623 4.6184 692.77 50.252 24.564 -3.352851999727+pi
20.706 4.3712 655.69 60.636 20.695 -0.29*x0**4 + 0.85*x0**3 + 1.57*x0**2 - 1.35*x0
"""


def test_a_solution_file_is_read():
    found = feynman.laws_in(SOLUTION)
    assert [law.infix for law in found] == [
        "1/(-4.121173468189*cos(log(y) + 1)**(-1))",
        "sqrt(0.044354136176 + y*sin(3.141592653589793))",
        "-3.352851999727 + 3.141592653589793",
        "-0.29*y**4 + 0.85*y**3 + 1.57*y**2 - 1.35*y",
    ]


@pytest.mark.parametrize(
    ("formula", "ours"),
    [
        ("x0 + E", f"y + {math.e!r}"),
        ("1E-5*x0", "1E-5*y"),
        ("2*tan(x0 + 1)", "2*(sin(y + 1)/cos(y + 1))"),
        ("Abs(sin(x0)*abs(x0))", "sqrt((sin(y)*sqrt((y)**2))**2)"),
        ("atan(x0)", "atan(y)"),
    ],
)
def test_functions_that_we_lack_are_rewritten(formula, ours):
    assert feynman.in_our_notation(formula) == ours


@pytest.mark.parametrize(
    "formula",
    [
        "__import__('os').system('touch owned')",
        "().__class__",
        "x0; import os",
        "x1 + x0",
        "zoo",
        "nan*x0",
        "tan(" * 40 + "x0" + ")" * 40,
        "tan(x0",
        "abs(" * 3000,
        "(" * 5000 + "x0" + ")" * 5000,
        "",
    ],
)
def test_hostile_formulas_are_refused(formula):
    assert feynman.laws_in(f"1 2 3 4 5 {formula}") == []


def test_hostile_files_are_refused():
    assert feynman.laws_in("\x00\x01 nothing\n1 2 3\n\n") == []


def fake_environment(folder, monkeypatch, body):
    """A Python whose AI Feynman does as told."""
    (folder / "torch.py").write_text("manual_seed = set_num_threads = print\n")
    (folder / "aifeynman.py").write_text(f"def run_aifeynman(folder, data, *_, **__):\n  {body}\n")
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{folder}" exec "{sys.executable}" "$@"\n')
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv(baselines.FEYNMAN_PYTHON, str(python))


def test_ai_feynman_is_run_in_its_own_environment(tmp_path, monkeypatch):
    formulas = "\\n".join(f"1 2 3 4 5 {text}" for text in ("x0", "0.9*x0 - 0.3*x0**2", "asin(x0)"))
    fake_environment(
        tmp_path, monkeypatch, f'open("results/solution_" + data, "w").write("{formulas}")'
    )
    t = np.linspace(0.0, 10.0, 50)
    found = baselines.aifeynman(t, logistic_solution(t), seed=0)
    assert found == [LOGISTIC, canonicalize(*laws("y"))]


def test_a_failure_of_ai_feynman_is_reported(tmp_path, monkeypatch):
    fake_environment(tmp_path, monkeypatch, 'raise RuntimeError("no gfortran")')
    t = np.linspace(0.0, 10.0, 50)
    with pytest.raises(BaselineError, match="AI Feynman failed: RuntimeError: no gfortran"):
        baselines.aifeynman(t, logistic_solution(t), seed=0)


@pytest.mark.parametrize("python", ["", "/nowhere/python"])
def test_a_missing_environment_is_named(monkeypatch, python):
    monkeypatch.setenv(baselines.FEYNMAN_PYTHON, python)
    t = np.linspace(0.0, 10.0, 50)
    with pytest.raises(NotInstalled, match=f"NSODE_AIFEYNMAN_PYTHON to .* not to '{python}'"):
        baselines.aifeynman(t, logistic_solution(t), seed=0)


def test_more_iterations_of_sindy_change_nothing(monkeypatch):
    """So that half of the paper's grid can be left out."""
    pytest.importorskip("pysindy")
    problem = next(p for p in textbook() if p.name == "autonomous Stuart-Landau")
    y = problem.solve()
    slope = problem.law.evaluate(y)
    few = sindy.sparse_laws(y, slope, [5])
    monkeypatch.setattr(sindy, "_MAX_ITERATIONS", 100)
    assert sindy.sparse_laws(y, slope, [5]) == few
    assert len(few) > 100


@pytest.mark.parametrize("size", [4, 12])
def test_finite_differences_of_pysindy(size):
    pytest.importorskip("pysindy")
    t = np.linspace(0.0, 1.0, size) ** 1.5
    slopes = list(sindy.finite_differences(t, 1.0 + 3.0 * t**2))
    assert len(slopes) == (1 if size == 4 else 5)
    for slope in slopes:
        assert slope == pytest.approx(6.0 * t, abs=1e-8)


def test_an_intercept_that_is_rounding_is_no_term_of_operons():
    law = Expression(("add", -1.6e-8, "mul", -0.27, "sqrt", "y"))
    assert without_rounding(law, 0.2) == Expression(("mul", -0.27, "sqrt", "y"))
    assert without_rounding(law, 1e-3) == law
    assert without_rounding(Expression(("y",)), 1.0) == Expression(("y",))


def test_a_failure_inside_a_library_is_reported():
    """Operon computes in single precision, which ends at 3e38."""
    pytest.importorskip("pyoperon")
    t = np.linspace(0.0, 4.0, 100)
    with pytest.raises(BaselineError, match="PyOperon failed: ValueError: .*infinity"):
        baselines.operon(t, np.exp(25.0 * t), seed=0)
