"""Data parallelism: the only file that knows about `jax.pmap` and `jax.distributed`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flax.jax_utils
import jax
import numpy as np

AXIS = "devices"

PyTree = Any


class CannotJoin(RuntimeError):
    """There are no other processes to train with, or they cannot be reached."""


def join_processes() -> None:
    """Joins the other processes of a job, as SLURM, Open MPI, GKE or a TPU pod tell of them.

    To be called before anything else touches JAX.

    Raises:
      CannotJoin: if there is no such job, it has one process, or the others cannot
        be reached.
    """
    try:
        jax.distributed.initialize()
    except (RuntimeError, TypeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise CannotJoin(f"no job of several processes to join: {reason}") from error
    if jax.process_count() == 1:
        raise CannotJoin("the job to join has only one process")


def replicate(tree: PyTree) -> PyTree:
    """A copy of every array on each local device; leaves get a leading axis."""
    # Of NumPy arrays, or each shape would have to be compiled for; and along the axis of
    # what parallel functions return, or their second call would compile them again.
    return flax.jax_utils.replicate(jax.device_get(tree), axis_name=AXIS)


def unreplicate(tree: PyTree) -> PyTree:
    """The first local device's copy, as NumPy arrays of their own."""

    def first(leaf: jax.Array) -> np.ndarray:
        # The ellipsis keeps scalars arrays, which Orbax needs.
        return np.array(leaf.addressable_shards[0].data)[0, ...]

    return jax.tree.map(first, tree)


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


def on_each_device(value: int) -> np.ndarray:
    """A number of this process, as an argument of a parallel function."""
    return np.full(jax.local_device_count(), value, np.int32)


def sum_over_devices(tree: PyTree) -> PyTree:
    """Inside a parallel function: the sum over all devices of all processes."""
    return jax.lax.psum(tree, AXIS)


def max_over_devices(tree: PyTree) -> PyTree:
    """Inside a parallel function: the maximum over all devices of all processes."""
    return jax.lax.pmax(tree, AXIS)


def parallel(function: Callable, donate: tuple[int, ...] = ()) -> Callable:
    """Runs a function on every device, each with its part of the arguments' leading axis."""
    return jax.pmap(function, axis_name=AXIS, donate_argnums=donate)
