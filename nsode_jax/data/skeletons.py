"""Random skeletons: one tree for each quantity, in canonical form, of one split.

Paper, section 2.1 and appendix A.
"""

from __future__ import annotations

import collections
from collections.abc import Callable

import numpy as np
from sympy.core.cache import clear_cache

from nsode_jax.data.generate import GenerationConfig, split_of, stream
from nsode_jax.data.reserved_skeletons import is_held_out
from nsode_jax.expressions.canonical import (
    NotRepresentable,
    TimeLimitExceeded,
    canonicalize,
    is_trivial,
)
from nsode_jax.expressions.coupled import SystemConfig, SystemSkeleton, skeleton_of
from nsode_jax.expressions.expression import Expression
from nsode_jax.expressions.sampling import sample_expression, sample_law

TREES_PER_BATCH = 500
_MAX_FRESH = 10_000


def draw_skeletons(
    config: GenerationConfig, batch: int
) -> tuple[list[str], collections.Counter[str]]:
    """Keys of the skeletons of one batch of random trees, and how many were dropped why."""
    rng = stream(config.seed, "trees", batch)
    if config.simplify:  # How long SymPy takes must not depend on what came before.
        clear_cache()
    keys, counts = [], collections.Counter(trees=TREES_PER_BATCH)
    for _ in range(TREES_PER_BATCH):
        skeleton = _draw_skeleton(sample_expression, config, rng)
        if isinstance(skeleton, str):
            counts[skeleton] += 1
        else:
            keys.append(skeleton.key)
    return keys, counts


def _draw_skeleton(
    sample: Callable[..., Expression], config: GenerationConfig, rng: np.random.Generator
) -> SystemSkeleton | str:
    """A skeleton of trees, one for each quantity (appendix A), or why it is dropped."""
    states = _draw_number_of_states(config.system, rng)
    variables = config.system.variables(states)
    trees = [sample(config.prior, rng, variables) for _ in range(states)]
    try:
        laws = [
            canonicalize(tree, simplify=config.simplify, seconds=config.seconds_per_tree)
            for tree in trees
        ]
    except NotRepresentable:
        return "outside the language"
    except TimeLimitExceeded:
        return "simplification too slow"
    skeleton = skeleton_of(laws)
    if any(map(is_trivial, skeleton.parts)):
        return "constant equation"
    if len(skeleton.tokens) > config.max_complexity:
        return "too long"
    if is_held_out(skeleton.key):
        return "held out for testing"
    return skeleton


def _draw_number_of_states(system: SystemConfig, rng: np.random.Generator) -> int:
    return 1 if system.num_states == 1 else int(rng.integers(1, system.num_states + 1))


def draw_fresh(
    config: GenerationConfig, split: str, rng: np.random.Generator, *, laws: bool
) -> SystemSkeleton:
    """A fresh skeleton of one split.

    Args:
      config: what to draw.
      split: `train` or `validation`.
      rng: random numbers.
      laws: only the forms of known laws (`sampling.sample_law`), instead of the prior as
        it is.

    Raises:
      RuntimeError: if thousands of skeletons in a row cannot be used.
    """
    for _ in range(_MAX_FRESH):
        skeleton = _draw_skeleton(sample_law if laws else sample_expression, config, rng)
        if isinstance(skeleton, str):
            continue
        if split_of(skeleton.key, config.validation_share) == split:
            return skeleton
    raise RuntimeError(f"{_MAX_FRESH} fresh skeletons in a row cannot be used for {split}")
