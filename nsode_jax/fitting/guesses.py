"""Where fits of thousands of laws begin, in batches of laws that take as long."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import jax
import numpy as np
from jaxtyping import Bool, Float, Int

from nsode_jax.expressions.constants import exponent_constants, linear_constants
from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting.programs import LARGE, SMALL, Layout, Programs, fits, pack


@dataclasses.dataclass(frozen=True)
class InitialGuess:
    """Where the fit of a law begins.

    Attributes:
      expression: the law with the constants to start from.
      free: which of the constants may change.
      starts: several constants to start from, all of them, in place of the law's own,
        shape [starts, constants]; None for those alone.
    """

    expression: Expression
    free: Bool[np.ndarray, " constants"]
    starts: Float[np.ndarray, "starts constants"] | None = None


def initial_guesses(expression: Expression) -> list[InitialGuess]:
    """Starts of a law: with whole exponents that stay, and with all constants free.

    Exponents that are whole already are meant so, and are not freed.
    """
    exponents = exponent_constants(expression.skeleton)
    constants = np.array(expression.constants)
    free = np.ones(constants.size, bool)
    if not exponents.any():
        return [InitialGuess(expression, free)]
    whole = np.where(exponents, np.round(constants), constants)
    fixed = InitialGuess(expression.skeleton.with_constants(whole), free & ~exponents)
    if (whole == constants).all():
        return [fixed]
    if np.isin(whole[exponents], (0.0, 1.0)).any():
        return [InitialGuess(expression, free)]
    return [fixed, InitialGuess(expression, free)]


@dataclasses.dataclass(frozen=True, eq=False)
class Batch:
    """Laws that are fitted together, packed once for any data.

    Attributes:
      programs: the laws with the constants to start from.
      linear: which of the constants that vary f is linear in, True beyond them, shape
        [capacity, constants].
      guesses: index of each law's guess in the list that was packed, shape [laws].
      starts: what to start from, of the constants that vary, shape
        [starts, capacity, constants]; a law with fewer starts repeats its own.
      fixed: likewise, of those that do not.
    """

    programs: Programs
    linear: Bool[np.ndarray, "capacity constants"]
    guesses: Int[np.ndarray, " laws"]
    starts: Float[np.ndarray, "starts capacity constants"]
    fixed: Float[np.ndarray, "starts capacity fixed"]


def batches_of(
    guesses: Sequence[InitialGuess], layouts: Sequence[Layout] = (SMALL, LARGE)
) -> Iterator[Batch]:
    """Packs each law in the first of the layouts that it fits; what fits none is left out."""
    # Together those that take as long, for all go on until the last is done.
    waiting = sorted(range(len(guesses)), key=lambda i: _work(guesses[i]))
    for layout in layouts:
        fitting = [i for i in waiting if fits(guesses[i].expression, guesses[i].free, layout)]
        taken = set(fitting)
        waiting = [i for i in waiting if i not in taken]
        yield from _pack([guesses[i] for i in fitting], np.array(fitting, int), layout)


def _pack(
    guesses: Sequence[InitialGuess], indices: Int[np.ndarray, " guesses"], layout: Layout
) -> Iterator[Batch]:
    done = 0
    with jax.enable_x64(True):
        laws, free = [guess.expression for guess in guesses], [guess.free for guess in guesses]
        for programs, count in pack(laws, free, layout):
            linear = np.ones((layout.capacity, layout.constants), bool)
            packed = guesses[done : done + count]
            for place, guess in enumerate(packed):
                kind = linear_constants(guess.expression.skeleton)[guess.free]
                linear[place, : kind.size] = kind
            starts, fixed = _starts(packed, programs)
            yield Batch(programs, linear, indices[done : done + count], starts, fixed)
            done += count


def _starts(
    guesses: Sequence[InitialGuess], programs: Programs
) -> tuple[
    Float[np.ndarray, "starts capacity constants"], Float[np.ndarray, "starts capacity fixed"]
]:
    """What to start from: of the constants that vary, and of the others."""
    number = max(1 if guess.starts is None else len(guess.starts) for guess in guesses)
    starts = np.repeat(np.asarray(programs.constants)[None], number, 0)
    fixed = np.repeat(np.asarray(programs.fixed)[None], number, 0)
    for place, guess in enumerate(guesses):
        if guess.starts is not None:
            values = guess.starts[np.arange(number) % len(guess.starts)]
            starts[:, place, : guess.free.sum()] = values[:, guess.free]
            fixed[:, place, : (~guess.free).sum()] = values[:, ~guess.free]
    return starts, fixed


def _work(guess: InitialGuess) -> tuple[int, int]:
    """How long a guess takes: its starts, and the constants that are not solved for."""
    nonlinear = guess.free & ~linear_constants(guess.expression.skeleton)
    return 1 if guess.starts is None else len(guess.starts), int(nonlinear.sum())
