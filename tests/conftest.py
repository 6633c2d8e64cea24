"""Sets the stage before any test imports JAX."""

import os

# Simulated devices deadlock on few cores unless XLA's thread pool is larger than
# the machine; XLA reads NPROC once, when JAX is first imported.
os.environ["NPROC"] = "16"
os.environ["XLA_FLAGS"] = (
    os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
).strip()
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["JAX_NUMPY_RANK_PROMOTION"] = "raise"
os.environ["MPLBACKEND"] = "Agg"

from absl import flags  # noqa: E402

# Grain's worker processes and TFDS read absl flags, which nothing parses here.
flags.FLAGS.mark_as_parsed()
