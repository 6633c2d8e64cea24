"""Draws the paper's random test sets: python -m nsode_jax.evaluation.draw_testsets.

The drawn sets are committed (`evaluation/data/*.tsv`, `data/keys/known.txt`), so that a
score means the same tomorrow. They follow section 3.1 of the paper:

  iv         5,793 equations of a data set of the paper's prior, with other initial values;
             all skeletons differ, whatever the signs of their constants, and at most 2,000
             have the same number of operators
  constants  2,720 of its skeletons, with other constants and initial values, at most
             1,000 of a number of operators
  iv-163     163 problems of iv, as evenly over the complexities as there are enough

The order is random, so that the first problems of a set are a random sample of it.

The data set has 60,000 skeletons; that of the paper has more, as we read it 250,000. What a
test set presumes known must be what training has seen: only skeletons count that the
shipped bank holds too, up to signs, in the training split of its first 100,000. From all of
these configs/small.py drew its examples then. Today half of them are fresh laws, and of the
bank only skeletons of at most five operators are drawn (`data.online.skeletons_of`: 47,647),
so those of some problems are not (`testsets.NOT_DRAWN`: 480 of iv, 196 of constants, 45 of
iv-163). iv's constants are those of the data set `nsode/paper`. Trees
are made canonical by our own algebra alone; SymPy's `simplify` would merge a few more
(6 of 1,886 skeletons) and take hours.

Two sets are older and stay as they are. `skeletons` are 100 skeletons of the paper's prior,
apart from 10,000 that were known then; every bank and data set has been kept free of them
since (`reserved_skeletons`). `iv-163-even` was drawn from an iv of 500 problems, and so has
19 or 20 problems at each complexity from 5 to 11.

The sets stay as they were drawn. Their keys follow the canonical form: when its rules
change, `--only-keys` writes these anew.

As in the paper, a solution may hardly move: then no method can tell the law.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import functools
import itertools
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from nsode_jax.data.bank import SkeletonBank
from nsode_jax.data.generate import GenerationConfig, stream
from nsode_jax.data.progress import StageProgress
from nsode_jax.dynamics.solve import trusted_solutions
from nsode_jax.evaluation.testsets import TEST_SETS, write_drawn
from nsode_jax.expressions.canonical import canonicalize, is_trivial
from nsode_jax.expressions.constants import resample_constants
from nsode_jax.expressions.expression import Expression, Skeleton
from nsode_jax.expressions.operators import CONSTANT, NEGATIVE_CONSTANT, OPERATORS
from nsode_jax.system.workers import Workers

SEED = 2022
DATA_SET_SKELETONS = 60_000
TRAINING_BANK, TRAINING_SKELETONS = "base", 100_000

SIZES = {"iv": (5793, 2000), "constants": (2720, 1000)}
"""Problems of a set, and most of them with the same number of operators."""

SMALL_SET, SMALL_SET_SIZE = "iv-163", 163

_MAX_TRIES = 25
_DIGITS = 6  # Of an initial value, after the point.

Drawn = tuple[Expression, float]


def draw_testsets(
    config: GenerationConfig, workers: Workers, progress=lambda *_: None
) -> dict[str, list[Drawn]]:
    """Equations and initial values of each set.

    Args:
      config: of the data set.
      workers: who draws.
      progress: called with the stage, the amount done and the total.
    """
    bank = SkeletonBank.draw(config, workers, progress=progress)
    trained = _trained_skeletons(config)
    known = dict.fromkeys(filter(None, (trained.get(_unsigned(key)) for key in bank.keys)))
    sets = {name: _draw(name, list(known), config, workers, progress) for name in SIZES}
    return sets | {SMALL_SET: few_per_complexity(sets["iv"], SMALL_SET_SIZE)}


def _unsigned(key: str) -> str:
    return key.replace(NEGATIVE_CONSTANT, CONSTANT)


def _trained_skeletons(config: GenerationConfig) -> dict[str, str]:
    """By unsigned key, one key of each skeleton that training drew from the bank."""
    found: dict[str, str] = {}
    for key, _ in SkeletonBank.load(TRAINING_BANK).first(TRAINING_SKELETONS).work(config, "train"):
        found.setdefault(_unsigned(key), key)
    return found


def _draw(
    name: str, keys: Sequence[str], config: GenerationConfig, workers: Workers, progress
) -> list[Drawn]:
    size, most = SIZES[name]
    by_operators: collections.Counter[int] = collections.Counter()
    problems: list[Drawn] = []

    def wanted() -> Iterator[str]:
        for key in stream(SEED, name).permutation(keys).tolist():
            if by_operators[_operators(key)] < most:
                yield key

    for key, drawn in workers.map(functools.partial(_problem, name, config), wanted()):
        operators = _operators(key)
        # Workers run ahead: the class may have been filled since the key was handed out.
        if drawn is None or by_operators[operators] == most:
            continue
        by_operators[operators] += 1
        problems.append(drawn)
        progress(name, len(problems), size)
        if len(problems) == size:
            return [problems[i] for i in stream(SEED, name, "order").permutation(size)]
    raise RuntimeError(f"{name}: only {len(problems)} of {size} problems found")


def _operators(key: str) -> int:
    return sum(token in OPERATORS for token in key.split())


def _problem(name: str, config: GenerationConfig, key: str) -> tuple[str, Drawn | None]:
    """An equation of a skeleton, and an initial value that it can be solved from."""
    rng = stream(SEED, name, key)
    # The stream of the data set gives the constants that the data set has.
    constants = stream(config.seed, "solutions", key) if name == "iv" else rng
    expression = resample_constants(Skeleton.from_key(key), config.prior, constants)
    if expression is None:
        return key, None
    limit = config.solver.max_initial_value
    starts = rng.uniform(-limit, limit, _MAX_TRIES).round(_DIGITS).tolist()
    # LSODA counts, but takes seconds to fail where our own solver sees at once that it must.
    fast = dataclasses.replace(config.solver, method="dop853")
    for y0, y in zip(starts, trusted_solutions(expression, starts, fast)):
        if y is not None and trusted_solutions(expression, [y0], config.solver)[0] is not None:
            return key, (expression, y0)
    return key, None


def few_per_complexity(problems: Sequence[Drawn], size: int) -> list[Drawn]:
    """So many problems, evenly over the complexities, in the order of the set."""
    rank: collections.Counter[int] = collections.Counter()
    ranked = []
    for index, (expression, _) in enumerate(problems):
        ranked.append((rank[expression.complexity], index))
        rank[expression.complexity] += 1
    return [problems[i] for i in sorted(index for _, index in sorted(ranked)[:size])]


def save(sets: dict[str, list[Drawn]], package: Path) -> None:
    """Writes the committed files below the folder of the package."""
    names = {problem: f"iv-{i:04d}" for i, problem in enumerate(sets["iv"])}
    for name, problems in sets.items():
        rows = [
            # Problems of iv keep their names.
            (names[problem] if name == SMALL_SET else f"{name}-{i:04d}", *problem)
            for i, problem in enumerate(problems)
        ]
        write_drawn(package / "evaluation" / "data" / f"{name}.tsv", rows)
    save_keys(package)


def reserved_keys() -> dict[str, list[str]]:
    """Keys of `data/reserved_skeletons`, in today's canonical form, by the file's name."""

    def skeletons(*names: str) -> Iterator[Skeleton]:
        for problem in itertools.chain.from_iterable(TEST_SETS[name]() for name in names):
            if problem.expression is not None:
                yield canonicalize(problem.expression).skeleton

    known = (s.key for s in skeletons(*SIZES, "iv-163-even") if not is_trivial(s))
    held_out = {skeleton.unsigned_key for skeleton in skeletons("skeletons")}
    return {"held_out": sorted(held_out), "known": list(dict.fromkeys(known))}


def save_keys(package: Path) -> None:
    """Writes the keys of the committed sets below the folder of the package."""
    for name, content in reserved_keys().items():
        text = "".join(f"{key}\n" for key in content)
        (package / "data" / "keys" / f"{name}.txt").write_text(text, encoding="utf-8")


def main(argv: Sequence[str] | None = None) -> int:
    """Draws the sets anew and overwrites the committed files. Returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="nsode_jax.evaluation.draw_testsets", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--package", type=Path, default=Path(__file__).parents[1])
    parser.add_argument("--processes", type=int, default=None)
    parser.add_argument(
        "--only-keys", action="store_true", help="write the keys of the committed sets anew"
    )
    arguments = parser.parse_args(argv)
    if arguments.only_keys:
        save_keys(arguments.package)
        return 0
    config = GenerationConfig(
        num_skeletons=DATA_SET_SKELETONS, simplify=False, known_test_skeletons=False
    )
    progress = StageProgress()
    with Workers(arguments.processes) as workers:
        sets = draw_testsets(config, workers, progress)
    progress.close()
    save(sets, arguments.package)
    for name, problems in sets.items():
        print(f"{name}: {len(problems)} problems")
    return 0


if __name__ == "__main__":
    sys.exit(main())
