"""Skeletons that the test sets presume known, or never seen, in training.

Two lists of keys ship with the package, one key a line. `held_out.txt` are those
of the test set `skeletons`: no data set or bank contains them, whatever the signs
of the constants. `known.txt` are those of the test sets `iv`, `constants` (paper,
section 3.1) and `iv-163-even`: other initial values and constants of skeletons that
were trained on. Both are in the canonical form of today (`evaluation/draw_testsets`).
"""

from __future__ import annotations

import functools
import importlib.resources

from nsode_jax.expressions.operators import CONSTANT, NEGATIVE_CONSTANT


def is_held_out(key: str) -> bool:
    """Whether a skeleton, by its key, is held out, whatever the signs of its constants."""
    return key.replace(NEGATIVE_CONSTANT, CONSTANT) in held_out_keys()


@functools.cache
def held_out_keys() -> frozenset[str]:
    """Unsigned keys of the skeletons that training must not see."""
    return frozenset(_read("held_out.txt"))


@functools.cache
def known_keys() -> tuple[str, ...]:
    """Keys of the skeletons that training is presumed to have seen."""
    return _read("known.txt")


def _read(name: str) -> tuple[str, ...]:
    file = importlib.resources.files("nsode_jax.data") / "keys" / name
    return tuple(file.read_text(encoding="utf-8").splitlines())
