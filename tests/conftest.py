"""Sets the stage before any test imports JAX."""

import dataclasses
import os
import tempfile
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["JAX_NUMPY_RANK_PROMOTION"] = "raise"
os.environ["MPLBACKEND"] = "Agg"
# Runs of one config compile the same programs; each is compiled once. Several test processes
# (pytest-xdist) share what the first one, which starts them, has made.
if "PYTEST_XDIST_WORKER" not in os.environ:
    _cache = tempfile.TemporaryDirectory(prefix="nsode_jax_compiled_")
    os.environ["JAX_COMPILATION_CACHE_DIR"] = _cache.name
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.2"

import pytest  # noqa: E402
from absl import flags  # noqa: E402
from typechecking import check_calls, forget_calls  # noqa: E402

# In tests the calls of these rooms and modules are checked against their types and shapes, but
# for modules whose functions Numba compiles as they are, those that refuse wrong data in words of
# their own, and those that walk through formulas: these know few arrays, and are called so often
# that a discovery would take nearly twice as long. Others join as their hints become true.
CHECKED = (
    "data", "decoding/grammar.py", "dynamics", "fitting", "modeling/attention.py", "observed",
    "reporting", "residuals", "results", "search", "selection", "system", "tables",
)  # fmt: skip
_COMPILED = ("dop853", "dop853_system", "stack_machine")
_REFUSING = ("trajectory", "vectors", "limits")
_OFTEN = ("form", "complexity", "prior", "belief", "variants")
_PACKAGE = Path(__file__).parent.parent / "nsode_jax"
_FILES = [
    file
    for place in map(_PACKAGE.joinpath, CHECKED)
    for file in (sorted(place.glob("*.py")) if place.is_dir() else [place])
    if file.stem not in ("__init__", *_COMPILED, *_REFUSING, *_OFTEN)
]
check_calls([f"nsode_jax.{file.parent.name}.{file.stem}" for file in _FILES])

# Grain's worker processes and TFDS read absl flags, which nothing parses here.
flags.FLAGS.mark_as_parsed()


def pytest_configure(config):
    """One device and one thread where only tests that need no more are chosen.

    Eight simulated devices deadlock on few cores unless XLA's thread pool is larger than the
    machine, and both make small programs, as those of a discovery, slower by half. XLA reads
    these once, when JAX is first used.
    """
    alone = config.option.markexpr == "not devices"
    os.environ["NPROC"] = "1" if alone else "16"
    if not alone:
        flags_before = os.environ.get("XLA_FLAGS", "")
        os.environ["XLA_FLAGS"] = f"{flags_before} --xla_force_host_platform_device_count=8"


def pytest_runtest_setup():
    """Checks the calls that the next test makes."""
    forget_calls()


@pytest.fixture(scope="session")
def smoke_config(tmp_path_factory):
    """configs/smoke.py, with its data set generated."""
    from nsode_jax.configs import smoke
    from nsode_jax.data_builders.nsode.nsode_dataset_builder import Builder

    from nsode_jax.config import from_config_dict

    folder = tmp_path_factory.mktemp("data")
    Builder(config="smoke", data_dir=str(folder), processes=2).download_and_prepare()
    config = from_config_dict(smoke.get_config())
    training = dataclasses.replace(config.training, data_dir=str(folder))
    return dataclasses.replace(config, training=training)


@pytest.fixture(scope="session")
def smoke_run(smoke_config, tmp_path_factory):
    """Workdir and last validation of a finished run of 30 steps on 8 devices."""
    from nsode_jax.training.loop import train

    c, workdir = smoke_config, tmp_path_factory.mktemp("run")
    training = dataclasses.replace(c.training, log_every=1)
    return workdir, train(dataclasses.replace(c, training=training), workdir).validation


@pytest.fixture
def x64():
    """Arrays of JAX in double precision."""
    import jax

    with jax.enable_x64(True):
        yield
