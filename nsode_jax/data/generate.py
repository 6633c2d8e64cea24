"""What is generated of a skeleton: its constants, and solutions.

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
import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from nsode_jax.data.reserved_skeletons import is_held_out
from nsode_jax.data.vocabulary import NotEncodable, Vocabulary
from nsode_jax.dynamics.solve import SolverConfig, trusted_solutions
from nsode_jax.expressions.canonical import NotRepresentable, canonicalize
from nsode_jax.expressions.constants import resample_constants
from nsode_jax.expressions.coupled import SCALAR, SystemConfig, SystemSkeleton, skeleton_of
from nsode_jax.expressions.expression import Expression
from nsode_jax.expressions.operators import TIME
from nsode_jax.expressions.sampling import EquationPrior
from nsode_jax.system.settings import require_at_least_1, require_shares

Laws = tuple[Expression, ...]
"""The equations of a system, one for each quantity."""


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
        the complexity; at least constants_per_skeleton.
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
        split. One with other signs of its constants may be in the training.
      fresh_law_share: share of the equations drawn as training goes that are fresh laws
        (`sampling.sample_law`), as frequent as in the prior, instead of skeletons of a
        bank. These are then the paper's trees alone: they have at most
        `prior.max_operators` operators.
      records_per_shard: about how many records a file holds.
      seed: of all random numbers.
      system: what the equations are about.
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
    # Not in the text that tells data apart: see `settings`.
    system: SystemConfig = dataclasses.field(default=SCALAR, repr=False)

    def __post_init__(self):
        require_at_least_1(
            self,
            "num_skeletons",
            "max_complexity",
            "constants_per_skeleton",
            "initial_values_per_ode",
            "records_per_shard",
        )
        least, most = self.constants_per_skeleton, self.max_constants_per_skeleton
        if most < least:
            raise ValueError(
                f"max_constants_per_skeleton {most} is below constants_per_skeleton {least}"
            )
        if not 0.0 < self.seconds_per_tree < math.inf:
            raise ValueError(
                f"seconds_per_tree must be positive and finite, got {self.seconds_per_tree}"
            )
        if not 0.0 <= self.min_time <= self.solver.max_time:
            raise ValueError(f"min_time must lie in [0, max_time], got {self.min_time}")
        require_shares(self, "heavy_initial_share", "rescaled_share", "fresh_law_share")
        for name in ("heavy_initial_values", "rescaled_size"):
            low, high = getattr(self, name)
            if not 0.0 < low <= high < math.inf:
                raise ValueError(
                    f"{name} must be two sizes, 0 < low <= high < inf, got {low}, {high}"
                )
        if not 0.0 <= self.validation_share < 1.0:
            raise ValueError(f"validation_share must lie in [0, 1), got {self.validation_share}")


def settings(config: GenerationConfig) -> dict[str, Any]:
    """All that decides what is generated, as plain JSON.

    There are data sets, banks and runs that are older than systems: of one quantity the
    settings do not name it.
    """
    fields = json.loads(json.dumps(dataclasses.asdict(config)))
    if config.system == SCALAR:
        del fields["system"]
    return fields


@dataclasses.dataclass(frozen=True, eq=False)
class Record:
    """One training example: the equations of a system and one clean solution of it.

    Attributes:
      skeleton: of the equations.
      constants: of the equations, in prefix order, float64.
      max_time: the solution covers [0, max_time].
      y: the solution on a regular grid, shape [time], of several quantities
        [time, states], float64.
    """

    skeleton: SystemSkeleton
    constants: Float[np.ndarray, " constants"]
    max_time: float
    y: Float[np.ndarray, "time ..."]

    @property
    def laws(self) -> tuple[Expression, ...]:
        """The equations with their constants."""
        return self.skeleton.with_constants(self.constants)

    @property
    def expression(self) -> Expression:
        """The equation of a single quantity with its constants."""
        (law,) = self.laws
        return law

    @property
    def t(self) -> Float[np.ndarray, " time"]:
        """Times of the solution."""
        return np.linspace(0.0, self.max_time, len(self.y))


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


def draw_records(
    config: GenerationConfig,
    skeleton: SystemSkeleton,
    rng: np.random.Generator,
    known: set[Laws] | None = None,
) -> tuple[list[Record], collections.Counter[str]]:
    """The equations of a skeleton, their solutions, and how many were dropped why.

    Rescaled equations differ from all others, since their units are random.

    Args:
      config: what to generate.
      skeleton: of the equations.
      rng: random numbers.
      known: equations that were drawn before; the same are not used again, and new
        ones are added.

    Returns:
      At most `initial_values_per_ode` records, all of the same equations.
    """
    counts: collections.Counter[str] = collections.Counter()
    known = set() if known is None else known
    laws = _with_new_constants(skeleton, config, rng)
    if laws is None:
        counts["no constants keep the skeleton"] += 1
        return [], counts
    solver, states = config.solver, len(laws)
    duration = _log_uniform((config.min_time or solver.max_time, solver.max_time), rng)
    initial_values = _sample_initial_values(config, states, rng)
    rescaled = rng.random() < config.rescaled_share
    sizes = [_log_uniform(config.rescaled_size, rng) for _ in laws]
    if not rescaled and laws in known:
        counts["equation drawn before"] += 1
        return [], counts

    t = np.linspace(0.0, duration, solver.num_points)
    solved = trusted_solutions(laws[0] if states == 1 else laws, initial_values, solver, t)
    kept = [y for y in solved if y is not None]
    counts["no trusted solution"] += len(initial_values) - len(kept)
    units: Sequence[float] = [1.0] * states
    if rescaled and kept:
        largest = np.max([np.abs(y).max(axis=0) for y in kept], axis=0).reshape(states)
        # In other units of time alone, if need be.
        for units in ([float(a / b) for a, b in zip(largest, sizes, strict=True)], [1.0] * states):
            other = _in_units(laws, units, duration / solver.max_time)
            if other is not None and _belongs(other, skeleton, config):
                counts["rescaled"] += len(kept)
                laws, duration = other, solver.max_time
                break
    if not _is_encodable(laws, config):
        counts["constant outside the grid"] += len(kept)
        return [], counts
    known.add(laws)
    counts["equations"] += 1
    counts["kept"] += len(kept)
    skeleton, constants = skeleton_of(laws), np.concatenate([law.constants for law in laws])
    unit = units[0] if states == 1 else np.array(units)
    return [Record(skeleton, constants, duration, y / unit) for y in kept], counts


def _with_new_constants(
    skeleton: SystemSkeleton, config: GenerationConfig, rng: np.random.Generator
) -> Laws | None:
    laws = []
    for part in skeleton.parts:
        law = resample_constants(part, config.prior, rng)
        if law is None:
            return None
        laws.append(law)
    return tuple(laws)


def _log_uniform(limits: tuple[float, float], rng: np.random.Generator, size=None):
    low, high = limits
    return low * (high / low) ** rng.random(size)


def _sample_initial_values(
    config: GenerationConfig, states: int, rng: np.random.Generator
) -> Float[np.ndarray, "n states"]:
    shape = config.initial_values_per_ode, states
    limit = config.solver.max_initial_value
    values = rng.uniform(-limit, limit, shape)
    if config.heavy_initial_share:
        heavy = np.copysign(_log_uniform(config.heavy_initial_values, rng, shape), values)
        values = np.where(rng.random(shape) < config.heavy_initial_share, heavy, values)
    return values


def _in_units(laws: Laws, units: Sequence[float], time: float) -> Laws | None:
    """The laws of z_k = y_k/u_k in time s = t/time: dz_k/ds = (time/u_k) f_k(u z, time s)."""
    variables = laws[0].variables
    scales = dict(zip(variables, units)) | ({TIME: time} if TIME in variables else {})

    def rescaled(law: Expression, unit: float) -> Expression:
        inside = [
            token
            for part in law.prefix
            for token in (("mul", scales[part], part) if part in scales else (part,))
        ]
        return canonicalize(Expression(("mul", time / unit, *inside), variables))

    try:
        return tuple(rescaled(law, unit) for law, unit in zip(laws, units, strict=True))
    except NotRepresentable:
        return None


def _belongs(rescaled: Laws, skeleton: SystemSkeleton, config: GenerationConfig) -> bool:
    """Whether rescaled equations can stand where some of the skeleton were drawn."""
    if not _is_encodable(rescaled, config):
        return False
    new, share = skeleton_of(rescaled), config.validation_share
    return not is_held_out(new.key) and split_of(new.key, share) == split_of(skeleton.key, share)


def _is_encodable(laws: Laws, config: GenerationConfig) -> bool:
    try:
        Vocabulary.of(config.system).encode_system(laws, config.max_complexity + 1)
    except NotEncodable:
        return False
    return True


def skeleton_records(
    config: GenerationConfig, work: tuple[str, int]
) -> tuple[list[Record], collections.Counter[str]]:
    """All records of a skeleton, and how many were dropped why.

    Args:
      config: what to generate.
      work: the key of the skeleton and the number of its sets of constants.
    """
    key, sets = work
    skeleton, rng = config.system.skeleton(key), stream(config.seed, "solutions", key)
    known: set[Laws] = set()
    records: list[Record] = []
    counts: collections.Counter[str] = collections.Counter()
    for _ in range(sets):
        new_records, new_counts = draw_records(config, skeleton, rng, known)
        records += new_records
        counts += new_counts
    return records, counts
