"""What is generated: random skeletons, their constants, and solutions.

Paper, section 2.1 and appendix B. All random numbers derive from the seed and a
label (the number of a batch of trees, the key of a skeleton), so what is
generated does not depend on how the work is shared. Limits on the work for one
equation count evaluations, not seconds, for the same reason. Only SymPy's
`simplify` has a limit of processor time: a tree that comes close to it (about one
in a thousand takes longer) may be dropped in one run and kept in another.
"""

from __future__ import annotations

import collections
import dataclasses
import hashlib

import numpy as np
from jaxtyping import Float
from sympy.core.cache import clear_cache

from nsode_jax.data.reserved_skeletons import is_held_out
from nsode_jax.data.vocabulary import NotEncodable, Vocabulary
from nsode_jax.dynamics.solve import SolverConfig, trusted_solutions
from nsode_jax.expressions.canonical import (
    NotRepresentable,
    TimeLimitExceeded,
    canonicalize,
    is_trivial,
)
from nsode_jax.expressions.constants import resample_constants
from nsode_jax.expressions.expression import Expression, Skeleton
from nsode_jax.expressions.operators import VARIABLE
from nsode_jax.expressions.sampling import EquationPrior, sample_expression, sample_law

TREES_PER_BATCH = 500
_MAX_LAWS = 10_000


@dataclasses.dataclass(frozen=True)
class GenerationConfig:
    """What to generate. The defaults are the paper's, but for the number of skeletons.

    Attributes:
      prior: distribution over equations.
      solver: how they are solved.
      num_skeletons: unique skeletons to draw.
      simplify: whether SymPy's `simplify` runs on each drawn equation.
      seconds_per_tree: limit of processor time for the simplification of one.
      max_complexity: longer equations are dropped (the length of a target less
        one for the end token).
      constants_per_skeleton: N_const, sets of constants for each skeleton.
      max_constants_per_skeleton: skeletons of a rare complexity (the short ones)
        get up to so many sets, in inverse proportion to how many skeletons share
        the complexity.
      initial_values_per_ode: N_iv, initial values for each equation.
      min_time: solutions cover [0, T] with T log-uniform from here to
        solver.max_time; 0 means that all have T = max_time.
      heavy_initial_share: share of the initial values whose magnitude is drawn
        log-uniformly from `heavy_initial_values` instead.
      heavy_initial_values: smallest and largest of these magnitudes.
      rescaled_share: share of the equations that are rewritten, exactly, for
        units in which the solutions cover all of [0, solver.max_time] and have a
        largest value drawn log-uniformly from `rescaled_size`: what discovery
        makes of real data.
      rescaled_size: smallest and largest such value.
      known_test_skeletons: whether the skeletons that the test sets `iv` and
        `constants` presume known are among the first ones drawn.
      validation_share: share of the skeletons, by hash, that make the validation
        split.
      fresh_law_share: share of the equations drawn as training goes that are fresh laws
        (`sampling.sample_law`), as frequent as in the prior, instead of skeletons of a
        bank. These are then the paper's trees alone: they have at most
        `prior.max_operators` operators.
      records_per_shard: about how many records a file holds.
      seed: of all random numbers.
    """

    prior: EquationPrior = EquationPrior()
    solver: SolverConfig = SolverConfig()
    num_skeletons: int = 1000
    simplify: bool = True
    seconds_per_tree: float = 1.0
    max_complexity: int = 63
    constants_per_skeleton: int = 25
    max_constants_per_skeleton: int = 25
    initial_values_per_ode: int = 25
    min_time: float = 0.0
    heavy_initial_share: float = 0.0
    heavy_initial_values: tuple[float, float] = (0.05, 50.0)
    rescaled_share: float = 0.0
    rescaled_size: tuple[float, float] = (0.5, 5.0)
    known_test_skeletons: bool = True
    validation_share: float = 0.01
    fresh_law_share: float = 0.0
    records_per_shard: int = 20_000
    seed: int = 0

    def __post_init__(self):
        for name in (
            "num_skeletons",
            "max_complexity",
            "constants_per_skeleton",
            "initial_values_per_ode",
            "records_per_shard",
        ):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.seconds_per_tree <= 0:
            raise ValueError(f"seconds_per_tree must be positive, got {self.seconds_per_tree}")
        if not 0.0 <= self.min_time <= self.solver.max_time:
            raise ValueError(f"min_time must lie in [0, max_time], got {self.min_time}")
        for name in ("heavy_initial_share", "rescaled_share", "fresh_law_share"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ValueError(f"{name} must lie in [0, 1], got {getattr(self, name)}")
        for name in ("heavy_initial_values", "rescaled_size"):
            low, high = getattr(self, name)
            if not 0.0 < low <= high:
                raise ValueError(f"{name} must be two sizes, 0 < low <= high, got {low}, {high}")
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
    constants: Float[np.ndarray, " constants"]
    max_time: float
    y: Float[np.ndarray, " time"]

    @property
    def expression(self) -> Expression:
        """The equation with its constants."""
        return self.skeleton.with_constants(self.constants)

    @property
    def t(self) -> Float[np.ndarray, " time"]:
        """Times of the solution."""
        return np.linspace(0.0, self.max_time, self.y.size)


def stream(seed: int, *labels: str | int) -> np.random.Generator:
    """An independent random stream for a seed and a label."""
    text = "/".join(str(label) for label in (seed, *labels))
    digest = hashlib.sha256(text.encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "big"))


def split_of(key: str, validation_share: float) -> str:
    """Split of a skeleton by a hash of its key: stable over runs and sizes."""
    digest = hashlib.sha256(f"split/{key}".encode()).digest()
    share = int.from_bytes(digest[:8], "big") / 2**64
    return "validation" if share < validation_share else "train"


def draw_skeletons(
    config: GenerationConfig, batch: int
) -> tuple[list[str], collections.Counter[str]]:
    """Keys of the skeletons of one batch of random trees, and how many were dropped why."""
    rng = stream(config.seed, "trees", batch)
    if config.simplify:  # How long SymPy takes must not depend on what came before.
        clear_cache()
    keys, counts = [], collections.Counter(trees=TREES_PER_BATCH)
    for _ in range(TREES_PER_BATCH):
        tree = sample_expression(config.prior, rng)
        skeleton = _skeleton_of(tree, config)
        if isinstance(skeleton, str):
            counts[skeleton] += 1
        else:
            keys.append(skeleton.key)
    return keys, counts


def _skeleton_of(tree: Expression, config: GenerationConfig) -> Skeleton | str:
    """The skeleton of a tree, or why it is dropped."""
    try:
        skeleton = canonicalize(
            tree, simplify=config.simplify, seconds=config.seconds_per_tree
        ).skeleton
    except NotRepresentable:
        return "outside the language"
    except TimeLimitExceeded:
        return "simplification too slow"
    if is_trivial(skeleton):
        return "constant equation"
    if len(skeleton.tokens) > config.max_complexity:
        return "too long"
    if is_held_out(skeleton.key):
        return "held out for testing"
    return skeleton


def draw_law(config: GenerationConfig, split: str, rng: np.random.Generator) -> Skeleton:
    """The skeleton of a fresh law, of one split.

    Raises:
      RuntimeError: if thousands of laws in a row cannot be used.
    """
    for _ in range(_MAX_LAWS):
        skeleton = _skeleton_of(sample_law(config.prior, rng), config)
        if isinstance(skeleton, str):
            continue
        if split_of(skeleton.key, config.validation_share) == split:
            return skeleton
    raise RuntimeError(f"{_MAX_LAWS} laws in a row cannot be used for {split}")


def draw_records(
    config: GenerationConfig,
    skeleton: Skeleton,
    rng: np.random.Generator,
    known: set[Expression] | None = None,
) -> tuple[list[Record], collections.Counter[str]]:
    """One equation of a skeleton, its solutions, and how many were dropped why.

    A rescaled equation differs from all others, since its units are random.

    Args:
      config: what to generate.
      skeleton: of the equation.
      rng: random numbers.
      known: equations that were drawn before; the same are not used again, and a new
        one is added.

    Returns:
      At most `initial_values_per_ode` records, all of the same equation.
    """
    counts: collections.Counter[str] = collections.Counter()
    known = set() if known is None else known
    expression = resample_constants(skeleton, config.prior, rng)
    if expression is None:
        counts["no constants keep the skeleton"] += 1
        return [], counts
    solver = config.solver
    duration = _log_uniform((config.min_time or solver.max_time, solver.max_time), rng)
    initial_values = _sample_initial_values(config, rng)
    rescaled = rng.random() < config.rescaled_share
    size = _log_uniform(config.rescaled_size, rng)
    if not rescaled and expression in known:
        counts["equation drawn before"] += 1
        return [], counts

    t = np.linspace(0.0, duration, solver.num_points)
    kept = [y for y in trusted_solutions(expression, initial_values, solver, t) if y is not None]
    counts["no trusted solution"] += len(initial_values) - len(kept)
    unit = 1.0
    if rescaled and kept:
        largest = max(float(np.abs(y).max()) for y in kept)
        for unit in (largest / size, 1.0):  # In other units of time alone, if need be.
            other = _in_units(expression, unit, duration / solver.max_time)
            if other is not None and _belongs(other, skeleton, config):
                counts["rescaled"] += len(kept)
                expression, duration = other, solver.max_time
                break
    if not _is_encodable(expression, config):
        counts["constant outside the grid"] += len(kept)
        return [], counts
    known.add(expression)
    counts["equations"] += 1
    counts["kept"] += len(kept)
    constants = np.asarray(expression.constants)
    return [Record(expression.skeleton, constants, duration, y / unit) for y in kept], counts


def _log_uniform(limits: tuple[float, float], rng: np.random.Generator, size=None):
    low, high = limits
    return low * (high / low) ** rng.random(size)


def _sample_initial_values(
    config: GenerationConfig, rng: np.random.Generator
) -> Float[np.ndarray, " n"]:
    count, limit = config.initial_values_per_ode, config.solver.max_initial_value
    values = rng.uniform(-limit, limit, count)
    if config.heavy_initial_share:
        heavy = np.copysign(_log_uniform(config.heavy_initial_values, rng, count), values)
        values = np.where(rng.random(count) < config.heavy_initial_share, heavy, values)
    return values


def _in_units(expression: Expression, value: float, time: float) -> Expression | None:
    """The law of z = y/value in time s = t/time: dz/ds = (time/value) f(value z)."""
    inside = [
        token
        for part in expression.prefix
        for token in (("mul", value, VARIABLE) if part == VARIABLE else (part,))
    ]
    try:
        return canonicalize(Expression(("mul", time / value, *inside)))
    except NotRepresentable:
        return None


def _belongs(rescaled: Expression, skeleton: Skeleton, config: GenerationConfig) -> bool:
    """Whether a rescaled equation can stand where one of the skeleton was drawn."""
    if not _is_encodable(rescaled, config):
        return False
    new, share = rescaled.skeleton, config.validation_share
    return not is_held_out(new.key) and split_of(new.key, share) == split_of(skeleton.key, share)


def _is_encodable(expression: Expression, config: GenerationConfig) -> bool:
    try:
        _VOCABULARY.encode(expression, config.max_complexity + 1)
    except NotEncodable:
        return False
    return True


_VOCABULARY = Vocabulary()


def skeleton_records(
    config: GenerationConfig, work: tuple[str, int]
) -> tuple[list[Record], collections.Counter[str]]:
    """All records of a skeleton, and how many were dropped why.

    Args:
      config: what to generate.
      work: the key of the skeleton and the number of its sets of constants.
    """
    key, sets = work
    skeleton, rng = Skeleton.from_key(key), stream(config.seed, "solutions", key)
    known: set[Expression] = set()
    records: list[Record] = []
    counts: collections.Counter[str] = collections.Counter()
    for _ in range(sets):
        new_records, new_counts = draw_records(config, skeleton, rng, known)
        records += new_records
        counts += new_counts
    return records, counts
