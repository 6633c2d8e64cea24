"""How well the constants of many series are known: those of their own, and those all share.

Constants may compensate each other, as a and b of a*b*y do. The others are known nevertheless.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from nsode_jax.fitting.linearized import dependence
from nsode_jax.fitting.trajectory_fitting import LEAST_SINGULAR, Problem

_INVOLVED = 1e-5
"""Share in a direction that changes no solution: more than the derivatives are wrong by."""


class Known(NamedTuple):
    """What the data of all series tell of the constants, to first order.

    Attributes:
      covariances: of the constants of each series; NaN where the data do not determine
        them, shape [series, constants, constants].
      directions: how many of all parameters' directions the data determine.
      widened: by what factor residuals that are alike make the variances larger.
    """

    covariances: Float[np.ndarray, "series constants constants"]
    directions: int
    widened: float


def known_constants(
    problems: Sequence[Problem],
    noise: Float[np.ndarray, " series"],
    shared: Bool[np.ndarray, " constants"],
) -> Known:
    """What is known of constants, from the linearized solutions.

    Residuals that are alike from one observation to the next, in all series together, count less.

    Args:
      problems: the fit of each series is its `best`.
      noise: of each series, relative to its spread; NaN if it is unknown.
      shared: which constants are the same in all series.
    """
    number = shared.size
    result = np.full((len(problems), number, number), math.nan)
    linear = {
        i: part
        for i, problem in enumerate(problems)
        if math.isfinite(problem.best_rms) and math.isfinite(noise[i])
        if (part := problem.linearized(problem.best))
    }
    is_shared = np.append(shared, False)
    # What the shared constants are known by, when each series' own are fitted too.
    left_to_shared, squares, own = [], np.zeros(int(shared.sum())), {}
    for i, part in linear.items():
        jacobian = part.jacobian / noise[i]
        of_own, of_shared = jacobian[:, ~is_shared], jacobian[:, is_shared]
        told = _told(of_own, problems[i].nearness)
        left_to_shared.append(of_shared - told.basis @ (told.basis.T @ of_shared))
        squares += (of_shared**2).sum(axis=0)
        own[i] = told, told.inverse @ of_own.T @ of_shared
    directions = sum(told.basis.shape[1] for told, _ in own.values())
    common = None
    if own and shared.any():
        nearness = min(problems[i].nearness for i in own)
        common = _told(np.concatenate(left_to_shared), nearness, np.sqrt(squares))
        directions += common.basis.shape[1]
    widened = dependence([part.residual / noise[i] for i, part in linear.items()], directions)
    for i, (told, change) in own.items():
        full = np.zeros((is_shared.size,) * 2)
        full[np.ix_(~is_shared, ~is_shared)] = told.inverse
        unknown = np.zeros(is_shared.size, bool)
        unknown[~is_shared] = _involved(told.null)
        if common is not None:
            full[np.ix_(is_shared, is_shared)] = common.inverse
            full[np.ix_(~is_shared, is_shared)] = -change @ common.inverse
            full[np.ix_(is_shared, ~is_shared)] = -(change @ common.inverse).T
            full[np.ix_(~is_shared, ~is_shared)] += change @ common.inverse @ change.T
            unknown[is_shared] = _involved(common.null)
            follows = told.lengths[:, None] * change / common.lengths
            unknown[~is_shared] |= _involved(follows @ common.null)
        full[unknown] = full[:, unknown] = math.nan
        scale = problems[i].scale[:number]
        result[i] = widened * full[:number, :number] * np.outer(scale, scale)
    return Known(result, directions, widened)


class _Told(NamedTuple):
    """What a Jacobian J tells of its parameters.

    Attributes:
      basis: orthonormal, of what the parameters can change, shape [rows, directions].
      inverse: pseudo-inverse of J'J, shape [columns, columns].
      null: orthonormal directions of the parameters, each times its length, that change nothing,
        shape [columns, rest].
      lengths: of the columns, shape [columns].
    """

    basis: Float[np.ndarray, "rows directions"]
    inverse: Float[np.ndarray, "columns columns"]
    null: Float[np.ndarray, "columns rest"]
    lengths: Float[np.ndarray, " columns"]


def _told(
    columns: Float[np.ndarray, "rows columns"],
    nearness: float,
    size: Float[np.ndarray, " columns"] | None = None,
) -> _Told:
    """By singular values, relative to lengths as of `trust_region.root_of_inverse`."""
    lengths = np.sqrt((columns**2).sum(axis=0)) if size is None else size
    lengths = np.where(lengths > 0, lengths, 1.0)
    basis, triangle = np.linalg.qr(columns / lengths)
    u, singular, v = np.linalg.svd(triangle)
    least = LEAST_SINGULAR * nearness * max(singular[0], 1.0)
    rank = int((singular >= least).sum())
    root = v[:rank].T / singular[:rank] / lengths[:, None]
    return _Told(basis @ u[:, :rank], root @ root.T, v[rank:].T, lengths)


def _involved(directions: Float[np.ndarray, "parameters rest"]) -> Bool[np.ndarray, " parameters"]:
    """Which parameters have a share in some directions."""
    return np.sqrt((directions**2).sum(axis=1)) > _INVOLVED
