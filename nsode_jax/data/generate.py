"""Training examples: random equations, their constants and their solutions.

Paper, section 2.1: skeletons are drawn and deduplicated first; then each gets
several sets of constants, each equation several initial values, and every
solution that passes the quality check becomes a record. All random numbers of a
skeleton derive from the seed and its key, so the records do not depend on how
many processes share the work.
"""

from __future__ import annotations

import collections
import dataclasses
import hashlib
import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from jaxtyping import Float

from nsode_jax.data.vocabulary import NotEncodable, Vocabulary
from nsode_jax.dynamics.solve import SolverConfig, trusted_solution
from nsode_jax.expressions.canonical import (
    NotRepresentable,
    TimeLimitExceeded,
    canonicalize,
    is_trivial,
    time_limit,
)
from nsode_jax.expressions.constants import resample_constants
from nsode_jax.expressions.expression import Expression, Skeleton
from nsode_jax.expressions.sampling import EquationPrior, sample_expression

_TREES_PER_TASK = 500
_SKELETONS_PER_TASK = 20
_MAX_EMPTY_ROUNDS = 20


@dataclasses.dataclass(frozen=True)
class GenerationConfig:
    """What to generate. The defaults are the paper's, but for the number of skeletons.

    Attributes:
      prior: distribution over equations.
      solver: how they are solved.
      num_skeletons: unique skeletons to draw.
      simplify: whether SymPy's `simplify` runs on each drawn equation.
      max_complexity: longer equations are dropped (the length of a target less
        one for the end token).
      constants_per_skeleton: N_const, sets of constants for each skeleton.
      max_constants_per_skeleton: skeletons of a rare complexity (the short ones)
        get up to so many sets, in inverse proportion to how many skeletons share
        the complexity.
      initial_values_per_ode: N_iv, initial values for each equation.
      seconds_per_ode: limit of processor time for all solutions of an equation.
      validation_share: share of the skeletons, by hash, that make the validation
        split.
      seed: of all random numbers.
    """

    prior: EquationPrior = EquationPrior()
    solver: SolverConfig = SolverConfig()
    num_skeletons: int = 1000
    simplify: bool = True
    max_complexity: int = 63
    constants_per_skeleton: int = 25
    max_constants_per_skeleton: int = 25
    initial_values_per_ode: int = 25
    seconds_per_ode: float = 5.0
    validation_share: float = 0.01
    seed: int = 0

    def __post_init__(self):
        for name in ("num_skeletons", "constants_per_skeleton", "initial_values_per_ode"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if not 0.0 <= self.validation_share < 1.0:
            raise ValueError(f"validation_share must lie in [0, 1), got {self.validation_share}")


@dataclasses.dataclass(frozen=True, eq=False)
class Record:
    """One training example: an equation and one clean solution of it.

    Attributes:
      skeleton: of the equation.
      constants: of the equation, in prefix order, float64.
      max_time: the solution covers [0, max_time].
      y: the solution on a regular grid, shape [time], float64.
    """

    skeleton: Skeleton
    constants: Float[np.ndarray, "constants"]
    max_time: float
    y: Float[np.ndarray, "time"]

    @property
    def expression(self) -> Expression:
        """The equation with its constants."""
        return self.skeleton.with_constants(self.constants)

    @property
    def t(self) -> Float[np.ndarray, "time"]:
        """Times of the solution."""
        return np.linspace(0.0, self.max_time, self.y.size)


def stream(seed: int, *labels: str | int) -> np.random.Generator:
    """An independent random stream for a seed and a label."""
    text = "/".join(str(label) for label in (seed, *labels))
    digest = hashlib.sha256(text.encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "big"))


def split_of(skeleton: Skeleton, config: GenerationConfig) -> str:
    """`train` or `validation`, by a hash of the key: stable over runs and sizes."""
    digest = hashlib.sha256(f"split/{skeleton.key}".encode()).digest()
    share = int.from_bytes(digest[:8], "big") / 2**64
    return "validation" if share < config.validation_share else "train"


def _draw_skeletons(
    task: tuple[GenerationConfig, int],
) -> tuple[list[str], collections.Counter]:
    """Keys of the skeletons of one batch of random trees, and what was dropped."""
    config, index = task
    rng = stream(config.seed, "trees", index)
    keys, counts = [], collections.Counter(trees=_TREES_PER_TASK)
    for _ in range(_TREES_PER_TASK):
        expression = sample_expression(config.prior, rng)
        try:
            skeleton = canonicalize(expression, simplify=config.simplify).skeleton
        except NotRepresentable:
            counts["outside the language"] += 1
        except TimeLimitExceeded:
            counts["simplification too slow"] += 1
        else:
            if is_trivial(skeleton):
                counts["constant equation"] += 1
            elif len(skeleton.tokens) > config.max_complexity:
                counts["too long"] += 1
            else:
                keys.append(skeleton.key)
    return keys, counts


def _solve_skeleton(
    config: GenerationConfig, skeleton: Skeleton, sets: int
) -> tuple[list[Record], collections.Counter]:
    rng, vocabulary = stream(config.seed, "solutions", skeleton.key), Vocabulary()
    records, counts = [], collections.Counter()
    for _ in range(sets):
        expression = resample_constants(skeleton, config.prior, rng)
        if expression is None:
            counts["no constants keep the skeleton"] += 1
            continue
        try:
            vocabulary.encode(expression, config.max_complexity + 1)
        except NotEncodable:
            counts["constant outside the grid"] += 1
            continue
        limit = config.solver.max_initial_value
        initial_values = rng.uniform(-limit, limit, config.initial_values_per_ode)
        constants = np.asarray(expression.constants)
        try:
            with time_limit(config.seconds_per_ode):
                for y0 in initial_values:
                    y = trusted_solution(expression, y0, config.solver)
                    if y is None:
                        counts["no trusted solution"] += 1
                    else:
                        counts["kept"] += 1
                        records.append(Record(skeleton, constants, config.solver.max_time, y))
        except TimeLimitExceeded:
            counts["solver too slow"] += 1
    return records, counts


def _solve_skeletons(
    task: tuple[GenerationConfig, list[tuple[str, int]]],
) -> tuple[list[Record], collections.Counter]:
    config, work = task
    records, counts = [], collections.Counter()
    for key, sets in work:
        new_records, new_counts = _solve_skeleton(config, Skeleton.from_key(key), sets)
        records += new_records
        counts += new_counts
    return records, counts


class Generator:
    """Draws the skeletons of a config once and yields the records of its splits.

    Attributes:
      counts: how many trees and solutions were kept, and dropped for what reason.
    """

    def __init__(
        self,
        config: GenerationConfig,
        processes: int | None = None,
        progress: Callable[[str, int, int], None] = lambda stage, done, total: None,
    ):
        """
        Args:
          config: what to generate.
          processes: worker processes; all cores by default, 0 works in this one.
          progress: called with the stage, the amount done and the total.
        """
        self.config = config
        self.counts: collections.Counter = collections.Counter()
        self._processes = (os.cpu_count() or 1) if processes is None else processes
        self._progress = progress
        self._skeletons: list[Skeleton] | None = None

    def skeletons(self) -> list[Skeleton]:
        """The unique skeletons, in the order in which they were first drawn.

        Raises:
          RuntimeError: if the prior holds fewer than the config asks for.
        """
        if self._skeletons is None:
            target, found, empty_rounds = self.config.num_skeletons, {}, 0
            with self._map() as run:
                tasks = ((self.config, i) for i in _count())
                for keys, counts in run(_draw_skeletons, tasks):
                    before = len(found)
                    found.update(dict.fromkeys(keys))
                    counts["duplicate skeleton"] += len(keys) - (len(found) - before)
                    self.counts += counts
                    self._progress("skeletons", min(len(found), target), target)
                    empty_rounds = 0 if len(found) > before else empty_rounds + 1
                    if len(found) >= target:
                        break
                    if empty_rounds >= _MAX_EMPTY_ROUNDS:
                        raise RuntimeError(
                            f"the prior holds no more than about {len(found)} skeletons; "
                            f"lower num_skeletons from {target}"
                        )
            self._skeletons = [Skeleton.from_key(key) for key in list(found)[:target]]
        return self._skeletons

    def constant_sets(self) -> dict[Skeleton, int]:
        """How many sets of constants each skeleton gets."""
        config = self.config
        sharing = collections.Counter(len(s.tokens) for s in self.skeletons())
        most = max(sharing.values())
        return {
            s: max(
                config.constants_per_skeleton,
                min(
                    config.max_constants_per_skeleton,
                    round(config.constants_per_skeleton * most / sharing[len(s.tokens)]),
                ),
            )
            for s in self.skeletons()
        }

    def records(self, split: str) -> Iterator[tuple[str, Record]]:
        """Records of a split with a unique key each."""
        sets = self.constant_sets()
        work = [(s.key, sets[s]) for s in sets if split_of(s, self.config) == split]
        chunks = [
            work[i : i + _SKELETONS_PER_TASK] for i in range(0, len(work), _SKELETONS_PER_TASK)
        ]
        with self._map() as run:
            for done, (records, counts) in enumerate(
                run(_solve_skeletons, ((self.config, chunk) for chunk in chunks)), 1
            ):
                self.counts += counts
                self._progress(split, done, len(chunks))
                for i, record in enumerate(records):
                    yield f"{done - 1}_{i}", record

    def _map(self) -> _ParallelMap:
        return _ParallelMap(self._processes)


def _count() -> Iterator[int]:
    i = 0
    while True:
        yield i
        i += 1


class _ParallelMap:
    """An ordered map over worker processes that draws on its input lazily."""

    def __init__(self, processes: int):
        self._pool = None
        # Spawned, not forked: the parent may hold threads of JAX.
        if processes:
            self._pool = multiprocessing.get_context("spawn").Pool(processes)
            self._ahead = 4 * processes

    def __enter__(self):
        return self._run

    def __exit__(self, *exception):
        if self._pool:
            self._pool.terminate()

    def _run(self, function: Callable, tasks: Iterator | Sequence) -> Iterator:
        if self._pool is None:
            yield from map(function, tasks)
            return
        pending: collections.deque = collections.deque()
        for task in tasks:
            pending.append(self._pool.apply_async(function, (task,)))
            if len(pending) >= self._ahead:
                yield pending.popleft().get()
        while pending:
            yield pending.popleft().get()
