"""Data parallelism: the only file that knows about `jax.pmap`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flax.jax_utils
import jax
import numpy as np

AXIS = "devices"

PyTree = Any


def replicate(tree: PyTree) -> PyTree:
    """A copy of every array on each local device; leaves get a leading axis."""
    return flax.jax_utils.replicate(tree)


def unreplicate(tree: PyTree) -> PyTree:
    """The first device's copy."""
    return flax.jax_utils.unreplicate(tree)


def shard(batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Splits the leading axis over the local devices: [batch, ...] --> [devices, each, ...].

    Raises:
      ValueError: if the devices do not divide the batch.
    """
    devices = jax.local_device_count()
    size = len(next(iter(batch.values())))
    if size % devices:
        raise ValueError(f"{devices} local devices do not divide a batch of {size}")
    return {k: v.reshape(devices, size // devices, *v.shape[1:]) for k, v in batch.items()}


def mean_over_devices(tree: PyTree) -> PyTree:
    """Inside a parallel function: the mean over all devices of all processes."""
    return jax.lax.pmean(tree, AXIS)


def parallel(function: Callable, donate: tuple[int, ...] = ()) -> Callable:
    """Runs a function on every device, each with its part of the arguments' leading axis."""
    return jax.pmap(function, axis_name=AXIS, donate_argnums=donate)
