"""How fast a run is, and how much of its devices' arithmetic it uses."""

from __future__ import annotations

import functools
import time

import jax
import jax.numpy as jnp

from nsode_jax.modeling.config import ModelConfig

_BENCHMARK_SECONDS = 0.2


def flops_per_example(config: ModelConfig, length: int | None = None) -> float:
    """Operations of the matrix products of one training example.

    Args:
      config: of the model.
      length: positions of a target, `max_length` by default.

    A multiplication and an addition count as two, and the gradient takes twice the
    forward pass. Padding is counted, recomputation (`remat`) is not.
    """
    patches, length = config.num_patches, length or config.max_length
    width, hidden = config.width, config.hidden_width
    bits = 64 * config.channels * config.patch_size
    projection, feed_forward = 2 * width**2, 4 * width * hidden
    encoder_block = patches * (4 * projection + 4 * width * patches + feed_forward)
    self_attention = length * (4 * projection + 4 * width * length)
    cross_attention = length * (2 * projection + 4 * width * patches) + patches * 2 * projection
    decoder_block = self_attention + cross_attention + length * feed_forward
    ends = 2 * width * (patches * bits + length * config.vocabulary_size)
    return 3.0 * (ends + config.layers * (encoder_block + decoder_block))


@functools.cache
def peak_flops(dtype: str) -> float:
    """Measured operations per second of large matrix products on all local devices at once."""
    size = 1024 if jax.default_backend() == "cpu" else 8192
    product = jax.jit(lambda a: a @ a)
    matrices = [
        jax.device_put(jnp.full((size, size), 1 / size, dtype), device)
        for device in jax.local_devices()
    ]
    jax.block_until_ready([product(m) for m in matrices])  # Compiled here.
    products, start = 0, time.perf_counter()
    while (seconds := time.perf_counter() - start) < _BENCHMARK_SECONDS:
        for _ in range(4):
            results = [product(m) for m in matrices]
            products += len(results)
        jax.block_until_ready(results)
    return products * 2.0 * size**3 / seconds


def peak_memory() -> dict[str, float]:
    """Most memory that was ever in use at once on one of the local devices.

    Returns:
      `peak_memory_gib`; nothing where the devices do not tell, as CPUs.
    """
    stats = [device.memory_stats() or {} for device in jax.local_devices()]
    peaks = [each["peak_bytes_in_use"] for each in stats if "peak_bytes_in_use" in each]
    return {"peak_memory_gib": max(peaks) / 2**30} if peaks else {}


class Speed:
    """Rates since the last report, without the pauses for validation and saving.

    The clock starts when the first step has ended: that one is compiled, and not counted.
    """

    def __init__(self, config: ModelConfig, batch_size: int, peak: float):
        """
        Args:
          config: of the model.
          batch_size: examples per step, over all devices.
          peak: operations per second of all devices, from `peak_flops`.
        """
        self._batch, self._peak = batch_size, peak
        self._config = config
        self._compiled = False
        self._restart()

    def _restart(self) -> None:
        self._start, self._waited, self._steps = time.perf_counter(), 0.0, 0
        self._tokens, self._flops = 0.0, 0.0

    def waited(self, seconds: float) -> None:
        """Counts time, just over, for which devices that had nothing to do had no batch."""
        self._waited += seconds

    def stepped(self, length: int) -> None:
        """Counts a step that has ended, with targets of so many positions."""
        if self._compiled:
            self._steps += 1
            self._tokens += self._batch * (self._config.num_patches + length)
            self._flops += self._batch * flops_per_example(self._config, length)
        else:
            self._compiled = True
            self._restart()

    def paused(self, seconds: float) -> None:
        """Leaves out time, just over, in which no step ran."""
        self._start += seconds

    def report(self) -> dict[str, float]:
        """Rates since the last report.

        Returns:
          `samples_per_second`; `tokens_per_second`, patches and target positions,
          padding included; `flops_utilization`, matrix products of the model
          relative to the measured peak; `input_wait`, share of the time for which
          the devices waited for a batch (an upper bound). Nothing if no step has been
          counted since.
        """
        if not self._steps:
            return {}
        seconds = max(time.perf_counter() - self._start, 1e-9)
        rates = {
            "samples_per_second": self._steps * self._batch / seconds,
            "tokens_per_second": self._tokens / seconds,
            "flops_utilization": self._flops / seconds / self._peak,
            "input_wait": self._waited / seconds,
        }
        self._restart()
        return rates
