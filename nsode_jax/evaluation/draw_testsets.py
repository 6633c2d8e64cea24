"""Draws the paper's random test sets: python -m nsode_jax.evaluation.draw_testsets.

The drawn sets are committed (`evaluation/data/*.json`, `data/keys/*.txt`), so that
a score means the same tomorrow. They follow section 3.1 of the paper in smaller
numbers, from a data set of the paper's prior:

  iv         its equations, with other initial values; all skeletons differ, and no
             number of operators has more than a share of the problems
  constants  its skeletons, with other constants and initial values
  iv-163     163 problems of iv, as evenly over the complexities as there are enough
  skeletons  equations whose skeletons are not in it, and are kept out of every
             training set from now on

The sets stay as they were drawn. Their keys follow the canonical form: when its rules
change, `--only-keys` writes these anew.

As in the paper, a solution may hardly move (8 of the 163 do, by less than 1e-6): then
no method can tell the law.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from nsode_jax.data.bank import SkeletonBank
from nsode_jax.data.generate import GenerationConfig, draw_skeletons, split_of, stream
from nsode_jax.data.progress import StageProgress
from nsode_jax.data.workers import Workers
from nsode_jax.dynamics.solve import trusted_solutions
from nsode_jax.evaluation.testsets import TEST_SETS
from nsode_jax.expressions.canonical import canonicalize, is_trivial
from nsode_jax.expressions.constants import resample_constants
from nsode_jax.expressions.expression import Expression, Skeleton
from nsode_jax.expressions.operators import OPERATORS

SEED = 20221
KNOWN_SKELETONS = 10_000
_MAX_TRIES = 25

# Of 5793 problems of iv at most 2000 had the same number of operators, of 2720
# problems of constants at most 1000.
SIZES = {"iv": (500, 2000 / 5793), "constants": (250, 1000 / 2720), "skeletons": (100, 1.0)}
SMALL_SET, SMALL_SET_SIZE = "iv-163", 163

Drawn = tuple[Expression, float]


def draw_testsets(
    config: GenerationConfig, workers: Workers, progress=lambda *_: None
) -> dict[str, list[Drawn]]:
    """Equations and initial values of each set.

    Args:
      config: of the paper; its bank of `num_skeletons` is what training has seen.
      workers: who draws the bank.
      progress: called with the stage, the amount done and the total.
    """
    bank = SkeletonBank.draw(config, workers, progress=progress)
    known = [key for key in bank.keys if split_of(key, config.validation_share) == "train"]
    shuffled = iter(stream(SEED, "known").permutation(known).tolist())
    sets = {
        "iv": _draw("iv", shuffled, config, same_constants=True),
        "constants": _draw("constants", shuffled, config),
        "skeletons": _draw("skeletons", _novel(set(bank.keys), config), config),
    }
    sets[SMALL_SET] = _few_per_complexity(sets["iv"])
    return sets


def _draw(
    name: str, keys: Iterable[str], config: GenerationConfig, same_constants: bool = False
) -> list[Drawn]:
    size, share = SIZES[name]
    by_operators: collections.Counter[int] = collections.Counter()
    problems: list[Drawn] = []
    for key in keys:
        skeleton = Skeleton.from_key(key)
        operators = sum(token in OPERATORS for token in skeleton.tokens)
        if by_operators[operators] >= share * size:
            continue
        # The stream of the data set gives the constants that the data set has.
        rng = stream(SEED, name, key)
        constants = stream(config.seed, "solutions", key) if same_constants else rng
        expression = resample_constants(skeleton, config.prior, constants)
        if expression is None:
            continue
        limit = config.solver.max_initial_value
        for y0 in rng.uniform(-limit, limit, _MAX_TRIES):
            if trusted_solutions(expression, [y0], config.solver)[0] is not None:
                problems.append((expression, float(y0)))
                by_operators[operators] += 1
                break
        if len(problems) == size:
            return problems
    raise RuntimeError(f"{name}: only {len(problems)} of {size} problems found")


def _novel(known: set[str], config: GenerationConfig) -> Iterator[str]:
    """Skeletons of random trees that differ from all known ones by more than signs."""
    seen = {Skeleton.from_key(key).unsigned_key for key in known}
    for batch in itertools.count(10**6):  # Far behind the batches of any bank.
        for key in draw_skeletons(config, batch)[0]:
            unsigned = Skeleton.from_key(key).unsigned_key
            if unsigned not in seen:
                seen.add(unsigned)
                yield key


def _few_per_complexity(problems: Sequence[Drawn]) -> list[Drawn]:
    """As many as wanted, evenly over the complexities, in the order of the set."""
    rank: collections.Counter[int] = collections.Counter()
    ranked = []
    for index, (expression, _) in enumerate(problems):
        ranked.append((rank[expression.complexity], index))
        rank[expression.complexity] += 1
    chosen = sorted(index for _, index in sorted(ranked)[:SMALL_SET_SIZE])
    return [problems[i] for i in chosen]


def save(sets: dict[str, list[Drawn]], package: Path) -> None:
    """Writes the committed files below the folder of the package."""
    for name, problems in sets.items():
        equations = [
            {"name": f"{name}-{i:03d}", "f": expression.infix, "y0": y0}
            for i, (expression, y0) in enumerate(problems)
        ]
        if name == SMALL_SET:  # Problems of iv keep their names.
            numbers = {problem: f"iv-{i:03d}" for i, problem in enumerate(sets["iv"])}
            equations = [
                {**e, "name": numbers[problem]}
                for e, problem in zip(equations, problems, strict=True)
            ]
        lines = ",\n".join(json.dumps(equation) for equation in equations)
        text = f'{{"seed": {SEED}, "equations": [\n{lines}\n]}}\n'
        (package / "evaluation" / "data" / f"{name}.json").write_text(text, encoding="utf-8")
    save_keys(sets, package)


def reserved_keys(sets: Mapping[str, Iterable[Expression]]) -> dict[str, list[str]]:
    """Keys of `data/reserved_skeletons`, in today's canonical form, by the file's name."""
    held_out = {canonicalize(f).skeleton.unsigned_key for f in sets["skeletons"]}
    known = [canonicalize(f).skeleton for name in ("iv", "constants") for f in sets[name]]
    distinct = dict.fromkeys(skeleton.key for skeleton in known if not is_trivial(skeleton))
    return {"held_out": sorted(held_out), "known": list(distinct)}


def save_keys(sets: Mapping[str, Sequence[Drawn]], package: Path) -> None:
    """Writes the lists of reserved skeletons below the folder of the package."""
    equations = {name: [f for f, _ in problems] for name, problems in sets.items()}
    for name, content in reserved_keys(equations).items():
        text = "".join(f"{key}\n" for key in content)
        (package / "data" / "keys" / f"{name}.txt").write_text(text, encoding="utf-8")


def main(argv: Sequence[str] | None = None) -> int:
    """Draws the sets anew and overwrites the committed files. Returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="nsode_jax.evaluation.draw_testsets", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--package", type=Path, default=Path(__file__).parents[1])
    parser.add_argument("--processes", type=int, default=None)
    parser.add_argument(
        "--only-keys", action="store_true", help="write the keys of the committed sets anew"
    )
    arguments = parser.parse_args(argv)
    if arguments.only_keys:
        committed = {name: TEST_SETS[name]() for name in SIZES}
        sets = {name: [(p.law, p.y0) for p in problems] for name, problems in committed.items()}
        save_keys(sets, arguments.package)
        return 0
    config = GenerationConfig(num_skeletons=KNOWN_SKELETONS, known_test_skeletons=False)
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
