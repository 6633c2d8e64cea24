"""Data parallelism: the only file that knows about `jax.pmap` and `jax.distributed`."""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import flax.jax_utils
import jax
import jax.flatten_util
import numpy as np

# There is no public way to the address of process 0 and the store that all processes share.
from jax._src import distributed
from jax.experimental import multihost_utils

from nsode_jax.system.files import in_words
from nsode_jax.training.lifeline import Lifeline

AXIS = "devices"

PyTree = Any

_JOIN_SECONDS = 300
"""So long a process waits for the others to start."""
_HEARTBEAT_SECONDS = 60
"""JAX ends all processes when one, which may just hang, has been silent for so long."""


class CannotJoin(RuntimeError):
    """There are no other processes to train with, or they cannot be reached."""


@contextlib.contextmanager
def joined_processes(
    coordinator: str | None = None, num_processes: int | None = None, process_id: int | None = None
) -> Iterator[None]:
    """Within its context this is one of several processes that train together.

    To be entered before anything else touches JAX. If the context is left by an exception,
    or a process dies, all processes end at once with exit code 1 and one line on stderr;
    collective operations would otherwise wait for the lost one. `SystemExit` is such an
    exception, and keeps its code.

    Args:
      coordinator: HOST:PORT, a free port on the machine of process 0. Without these three
        SLURM, Open MPI, GKE or the TPU pod tell them.
      num_processes: how many there are.
      process_id: number of this one, from 0.

    Raises:
      CannotJoin: if there is no such job, it has one process, or the others cannot
        be reached.
    """
    # JAX would abort with a stack trace.
    patience = threading.Timer(_JOIN_SECONDS, _give_up)
    patience.daemon = True
    patience.start()
    try:
        jax.distributed.initialize(
            coordinator,
            num_processes,
            process_id,
            # What is said explicitly holds, also within a job of SLURM.
            cluster_detection_method="deactivate" if coordinator else None,
            initialization_timeout=_JOIN_SECONDS + 30,
            heartbeat_timeout_seconds=_HEARTBEAT_SECONDS,
        )
        job = distributed.global_state
        if job.num_processes == 1 or job.coordinator_address is None or job.client is None:
            raise CannotJoin("the job to join has only one process; leave out --distributed")
        host = job.coordinator_address.rsplit(":", 1)[0].strip("[]")
        lifeline = Lifeline(job.process_id, job.num_processes, host, job.client)
    except OSError as error:
        raise CannotJoin(f"the processes cannot reach one another: {in_words(error)}") from error
    except CannotJoin:
        raise
    except (RuntimeError, TypeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise CannotJoin(f"no job of several processes to join: {reason}") from error
    finally:
        patience.cancel()
    try:
        # Connects them for collective operations. Later, when one compiles longer than
        # another, CPUs would give up after 30 seconds.
        multihost_utils.sync_global_devices("joined")
        yield
    except BaseException as error:
        if isinstance(error, SystemExit):
            lifeline.fail(error.code if isinstance(error.code, int) else 1)
        lifeline.fail(1, error)
    lifeline.goodbye()


def _give_up() -> None:
    print(
        f"nsode_jax.train: error: the other processes have not joined within {_JOIN_SECONDS} s",
        file=sys.stderr,
        flush=True,
    )
    os._exit(2)


def is_shared(folder: Path) -> bool:
    """Whether all processes find the same folder under this name, the same answer in each."""
    if jax.process_count() == 1:
        return True
    number = int(multihost_utils.broadcast_one_to_all(np.int32(secrets.randbits(31))))
    mark = folder / f"shared-{number}"
    if jax.process_index() == 0:
        mark.touch()
    multihost_utils.sync_global_devices("the mark is there")
    # Gathered, so that nobody goes on before all have looked.
    seen = bool(np.all(multihost_utils.process_allgather(np.array(mark.exists()))))
    if jax.process_index() == 0:
        mark.unlink()
    return seen


def is_same(tree: PyTree) -> bool:
    """Whether all processes hold the same NumPy arrays, the same answer in each."""
    if jax.process_count() == 1:
        return True
    checksum = 0
    for leaf in jax.tree.leaves(tree):
        checksum = zlib.crc32(np.ascontiguousarray(leaf).tobytes(), checksum)
    found = multihost_utils.process_allgather(np.uint32(checksum))
    return bool(np.all(found == checksum))


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
    types = {leaf.dtype for leaf in jax.tree.leaves(tree)}
    if jax.process_count() == 1 or jax.default_backend() != "cpu" or len(types) > 1:
        return jax.lax.psum(tree, AXIS)
    # Between processes on CPUs each array costs milliseconds, however small: all in one.
    flat, unflatten = jax.flatten_util.ravel_pytree(tree)
    return unflatten(jax.lax.psum(flat, AXIS))


def max_over_devices(tree: PyTree) -> PyTree:
    """Inside a parallel function: the maximum over all devices of all processes."""
    return jax.lax.pmax(tree, AXIS)


def parallel(function: Callable, donate: tuple[int, ...] = ()) -> Callable:
    """Runs a function on every device, each with its part of the arguments' leading axis."""
    return jax.pmap(function, axis_name=AXIS, donate_argnums=donate)
