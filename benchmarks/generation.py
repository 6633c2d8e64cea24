"""How fast training data are generated, measured side by side on this machine.

    python benchmarks/generation.py [--odes 200] [--initial_values 5] [--trees 2000]

Solvers, on random equations of the paper's prior, all initial values counted,
the ones without a solution too: SciPy's odeint (LSODA) with NumPy callbacks as
SymPy makes them, odeint with `math` callbacks, and ours. They take turns
equation by equation and processor time is counted, so other load on the machine
slows all alike. Targets: 12 and 4 times the two, and 1.8 with two processes.

Canonical forms, of random trees of the paper's prior: with and without SymPy's
`simplify`, in turns. Target: 1,500 trees/s without.

Examples, fresh from the shipped bank with the prior of configs/base.py, solved,
corrupted and encoded: how many a core makes.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import functools
import multiprocessing
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import sympy
from scipy.integrate import ODEintWarning, odeint

from nsode_jax.config import load
from nsode_jax.data.online import OnlineBatches, OnlineConfig
from nsode_jax.dynamics import dop853
from nsode_jax.dynamics.solve import (
    SolverConfig,
    derivative_error,
    solutions,
    solve,
    trusted_solutions,
)
from nsode_jax.dynamics.stack_machine import Program
from nsode_jax.expressions.canonical import (
    NotRepresentable,
    TimeLimitExceeded,
    Y,
    canonicalize,
    is_trivial,
)
from nsode_jax.expressions.expression import Expression
from nsode_jax.expressions.sampling import EquationPrior, sample_expression

CONFIG = SolverConfig(method="dop853")
GRID = CONFIG.grid
MAX_DEVIATION = 1e-6
"""Largest difference of two solutions relative to 1 + |y|."""


@dataclasses.dataclass(frozen=True)
class Case:
    """A random equation and its initial values."""

    expression: Expression
    initial_values: np.ndarray


def draw_cases(odes: int, initial_values: int, seed: int) -> list[Case]:
    """Equations of the paper's prior in canonical form, without constant ones."""
    rng = np.random.default_rng(seed)
    cases = []
    while len(cases) < odes:
        try:
            expression = canonicalize(sample_expression(EquationPrior(), rng))
        except (NotRepresentable, TimeLimitExceeded):
            continue
        if not is_trivial(expression.skeleton):
            limit = CONFIG.max_initial_value
            cases.append(Case(expression, rng.uniform(-limit, limit, initial_values)))
    return cases


# --- solvers, each from a case to y [n, time] with rows of NaN ------------------


@functools.cache
def numpy_callback(expression: Expression) -> Callable:
    return sympy.lambdify(Y, expression.to_sympy(), "numpy")


def odeint_numpy(case: Case) -> np.ndarray:
    f = numpy_callback(case.expression)
    y = np.full((case.initial_values.size, GRID.size), np.nan)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", ODEintWarning)
        for row, y0 in zip(y, case.initial_values):
            try:
                solution, info = odeint(
                    lambda y, _: f(y),
                    y0,
                    GRID,
                    rtol=CONFIG.tolerance,
                    atol=CONFIG.tolerance,
                    mxstep=500,
                    full_output=True,
                )
            except ArithmeticError:  # Of Python numbers that SymPy left in the formula.
                continue
            if info["message"] == "Integration successful.":
                row[:] = solution[:, 0]
    return y


def odeint_math(case: Case, tolerance: float = CONFIG.tolerance) -> np.ndarray:
    y = np.full((case.initial_values.size, GRID.size), np.nan)
    for row, y0 in zip(y, case.initial_values):
        solution = solve(case.expression, y0, GRID, rtol=tolerance, atol=tolerance)
        if solution is not None:
            row[:] = solution
    return y


def ours(case: Case) -> np.ndarray:
    return solutions(case.expression, case.initial_values, GRID, method="dop853")


def trusted(case: Case) -> list[np.ndarray | None]:
    return trusted_solutions(case.expression, case.initial_values, CONFIG)


def in_turns(cases: list[Case], solvers: dict[str, Callable]) -> tuple[dict, dict]:
    """Seconds of processor time [case], and the results, of each solver by name."""
    seconds, results = {name: [] for name in solvers}, {name: [] for name in solvers}
    names = list(solvers)
    for solver in solvers.values():
        solver(cases[0])  # Compiles.
    for case in cases:  # Making the callbacks is not counted.
        numpy_callback(case.expression), case.expression.compile()
    for i, case in enumerate(cases):
        for name in names[i % len(names) :] + names[: i % len(names)]:
            start = time.process_time()
            results[name].append(solvers[name](case))
            seconds[name].append(time.process_time() - start)
    return {name: np.array(used) for name, used in seconds.items()}, results


# --- agreement -------------------------------------------------------------------


def accepted_rows(case: Case, y: np.ndarray) -> np.ndarray:
    """Which solutions pass the quality check, shape [n]."""
    is_solved = np.isfinite(y).all(axis=1)
    return np.logical_and(is_solved, derivative_error(case.expression, y, GRID[1]) <= 1.0)


def deviation(a: np.ndarray, b: np.ndarray) -> float:
    return float((np.abs(a - b) / (1.0 + np.abs(b))).max())


def steps_exhausted(case: Case) -> int:
    """How many solutions ours gives up because they need too many steps."""
    program = Program.from_expression(case.expression)
    found = dop853.integrate(
        program,
        case.initial_values,
        GRID,
        rtol=CONFIG.tolerance,
        atol=CONFIG.tolerance,
        max_steps=CONFIG.max_steps,
    )
    return int((found.status == dop853.TOO_MANY_STEPS).sum())


def agreement(cases: list[Case], lsoda: list, own: list) -> Iterator[str]:
    """Lines on which trajectories both accept, and how far these are apart."""
    both, only_lsoda, only_own, deviations = 0, 0, 0, []
    for case, reference, solved in zip(cases, lsoda, own):
        ok_reference, ok_own = accepted_rows(case, reference), accepted_rows(case, solved)
        both += int((ok_reference & ok_own).sum())
        only_lsoda += int((ok_reference & ~ok_own).sum())
        only_own += int((ok_own & ~ok_reference).sum())
        for i in np.flatnonzero(ok_reference & ok_own):
            deviations.append((deviation(reference[i], solved[i]), case, i, solved[i]))
    deviations.sort(key=lambda found: -found[0])
    sizes = [found[0] for found in deviations]
    yield f"accepted by both {both}, by LSODA only {only_lsoda}, by ours only {only_own}"
    yield f"ours gave up after {CONFIG.max_steps} steps: {sum(map(steps_exhausted, cases))}"
    yield f"deviation: median {np.median(sizes):.1e}, 99% {np.quantile(sizes, 0.99):.1e}, " + (
        f"largest {sizes[0]:.1e}"
    )
    for size, case, i, y in deviations:
        if size <= MAX_DEVIATION:
            break
        # LSODA with a thousandth of the tolerance tells which of the two is off.
        exact = odeint_math(Case(case.expression, case.initial_values[i : i + 1]), 1e-12)[0]
        coarse = odeint_math(Case(case.expression, case.initial_values[i : i + 1]))[0]
        yield (
            f"  {size:.1e} of {case.expression} from {case.initial_values[i]:.3f}; against LSODA "
            f"at 1e-12: LSODA {deviation(coarse, exact):.1e}, ours {deviation(y, exact):.1e}"
        )


# --- several processes -------------------------------------------------------------


def _work(cases: list[Case]) -> int:
    return sum(y is not None for case in cases for y in trusted(case))


def _wall_seconds(pool: concurrent.futures.Executor, shares: list[list[Case]]) -> float:
    start = time.perf_counter()
    list(pool.map(_work, shares))
    return time.perf_counter() - start


def scaling(cases: list[Case], processes: int = 2, rounds: int = 5, repeats: int = 5) -> float:
    """How many times faster several processes are than one, median of the rounds."""
    shares = [cases[i::20] for i in range(20)] * repeats
    spawn = multiprocessing.get_context("spawn")
    with (
        concurrent.futures.ProcessPoolExecutor(1, spawn) as one,
        concurrent.futures.ProcessPoolExecutor(processes, spawn) as several,
    ):
        _wall_seconds(one, shares[:20])  # Starts and compiles.
        _wall_seconds(several, shares[:40])
        ratios = [
            _wall_seconds(one, shares) / _wall_seconds(several, shares) for _ in range(rounds)
        ]
    return float(np.median(ratios))


def solver_report(cases: list[Case]) -> Iterator[str]:
    """The lines of the part on solvers."""
    solvers = {
        "odeint, NumPy": odeint_numpy,
        "odeint, math": odeint_math,
        "ours": ours,
        "ours, checked": trusted,
    }
    seconds, results = in_turns(cases, solvers)
    count = sum(case.initial_values.size for case in cases)
    yield f"{len(cases)} equations, {count} initial values, {GRID.size} points"
    # A few wild equations take LSODA most of its time, so the median matters too.
    yield f"{'':16}{'per second':>12}{'vs NumPy':>10}{'vs math':>10}   median of the equations"
    references = seconds["odeint, NumPy"], seconds["odeint, math"]
    for name, used in seconds.items():
        totals = "".join(f"{reference.sum() / used.sum():10.1f}" for reference in references)
        medians = "".join(f"{np.median(reference / used):10.1f}" for reference in references)
        yield f"{name:16}{count / used.sum():12,.0f}{totals}   {medians}"
    yield from agreement(cases, results["odeint, math"], results["ours"])


# --- canonical forms -------------------------------------------------------------


def canonical_report(trees: int, seed: int) -> Iterator[str]:
    """The lines of the part on canonical forms."""
    rng = np.random.default_rng(seed)
    start = time.process_time()
    drawn = [sample_expression(EquationPrior(), rng) for _ in range(trees)]
    sampling = time.process_time() - start
    seconds, forms, dropped = [0.0, 0.0], ([], []), [0, 0]
    for tree in drawn:
        for simplify in (False, True):
            start = time.process_time()
            try:
                forms[simplify].append(canonicalize(tree, simplify=simplify).skeleton)
            except (NotRepresentable, TimeLimitExceeded) as error:
                forms[simplify].append(None)
                dropped[simplify] += isinstance(error, TimeLimitExceeded)
            seconds[simplify] += time.process_time() - start
    yield f"{trees} random trees, drawn at {trees / sampling:,.0f}/s"
    both = [(plain, simple) for plain, simple in zip(*forms) if plain and simple]
    for name, i in (("canonical form", 0), ("with simplify", 1)):
        unique = len({pair[i] for pair in both})
        yield (
            f"{name:16}{trees / seconds[i]:10,.0f} trees/s on a core, {unique} skeletons of "
            f"{len(both)} trees, {dropped[i]} took more than 1 s"
        )


# --- examples --------------------------------------------------------------------


def online_report(batches: int = 40) -> str:
    """The line on fresh examples from the bank."""
    wide = load(Path(__file__).parents[1] / "configs" / "base.py")
    config = OnlineConfig(
        "base", wide.generation, wide.corruption, wide.model.example_format, "train", 64, seed=0
    )
    examples = OnlineBatches(config, processes=0)
    next(examples)  # Reads the bank and compiles.
    for _ in range(7):  # To the end of the chunk that is there already.
        next(examples)
    start = time.process_time()
    for _ in range(batches):
        next(examples)
    seconds = time.process_time() - start
    return f"fresh examples of configs/base.py: {64 * batches / seconds:,.0f} a second on a core"


def main():
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--odes", type=int, default=200)
    parser.add_argument("--initial_values", type=int, default=5)
    parser.add_argument("--trees", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    cases = draw_cases(args.odes, args.initial_values, args.seed)
    for line in solver_report(cases):
        print(line, flush=True)
    print(f"two processes instead of one: {scaling(cases):.2f} times as fast")
    for line in canonical_report(args.trees, args.seed):
        print(line, flush=True)
    print(online_report())


if __name__ == "__main__":
    main()
