"""How probable laws are, by their scores, and that the right one was not found."""

from __future__ import annotations

import math
from collections.abc import Sequence

from nsode_jax.selection.score import noisy_share

UNSEEN = 0.2
"""How probable it is that the right law is not among those that were found in noise. It makes
stated probabilities right for simulated laws (`evaluation.calibration`)."""

UNSEEN_CONTRADICTED = 0.5
"""The same where the data contradict even the best laws: what they leave is alike from one
observation to the next, or more than known errors account for. Either something is wrong with
the errors, or none of these laws is right: one is as likely as the other. Of 288 simulated
problems with independent noise none came to that, whether the right law was found or not."""


def posterior_probabilities(values: Sequence[float], unseen: float = 0.0) -> list[float]:
    """Posterior probability of each law: it falls as exp(-score / 2).

    Args:
      values: scores, at least one of them finite.
      unseen: probability that the right law is none of them.
    """
    least = min(values)
    shares = [math.exp(-(value - least) / 2) for value in values]
    return [(1 - unseen) * share / sum(shares) for share in shares]


def unseen_probability(relative_rms: float, contradicted: bool = False) -> float:
    """Probability that the right law was not found, from the residual of the best that was.

    A law that explains all but what is systematic at most is hardly ever a wrong one.

    Args:
      relative_rms: residual divided by the standard deviation of the data.
      contradicted: whether the data contradict the best laws.
    """
    most = UNSEEN_CONTRADICTED if contradicted else UNSEEN
    return most * noisy_share(relative_rms)
