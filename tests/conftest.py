"""Sets the stage before any test imports JAX."""

import os
import tempfile

# Simulated devices deadlock on few cores unless XLA's thread pool is larger than
# the machine; XLA reads NPROC once, when JAX is first imported.
os.environ["NPROC"] = "16"
os.environ["XLA_FLAGS"] = (
    os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
).strip()
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["JAX_NUMPY_RANK_PROMOTION"] = "raise"
os.environ["MPLBACKEND"] = "Agg"
# Runs of one config compile the same programs; each is compiled once.
_cache = tempfile.TemporaryDirectory(prefix="nsode_jax_compiled_")
os.environ["JAX_COMPILATION_CACHE_DIR"] = _cache.name
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.2"

from absl import flags  # noqa: E402

# Grain's worker processes and TFDS read absl flags, which nothing parses here.
flags.FLAGS.mark_as_parsed()
