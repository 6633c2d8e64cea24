"""Validation: the metrics of weights on a fixed set, and the best so far."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable

import jax

from nsode_jax.data.vocabulary import Vocabulary
from nsode_jax.modeling.transformer import Model, Params
from nsode_jax.training.loss import means
from nsode_jax.training.parallel import parallel, shard, sum_over_devices, unreplicate
from nsode_jax.training.step import Batch, batch_sums


def make_validation_step(model: Model, vocabulary: Vocabulary) -> Callable:
    """Sums over all devices, (params, batch) -> sums; params replicated, batch sharded."""
    return parallel(
        lambda params, batch: sum_over_devices(batch_sums(model, params, batch, vocabulary))
    )


def validate(step: Callable, params: Params, data: Iterable[Batch]) -> dict[str, float]:
    """Means over all positions of some batches.

    Args:
      step: of `make_validation_step`.
      params: replicated.
      data: batches of this process.

    Returns:
      The means of `loss.two_hot_sums`; none of them if there are no batches.
    """
    total = None
    for batch in data:
        sums = unreplicate(step(params, shard(batch)))
        total = sums if total is None else jax.tree.map(lambda a, b: a + b, total, sums)
    return {name: float(value) for name, value in means(total).items()} if total else {}


@dataclasses.dataclass
class BestValidation:
    """The lowest validation loss of a run.

    Attributes:
      loss: the lowest so far; None before the first.
      step: when it was.
      since: validations since then.
    """

    loss: float | None = None
    step: int = 0
    since: int = 0

    def update(self, step: int, loss: float) -> bool:
        """Takes note of a validation. Returns whether it is the best so far."""
        if math.isfinite(loss) and (self.loss is None or loss < self.loss):
            self.loss, self.step, self.since = loss, step, 0
            return True
        self.since += 1
        return False
