"""Compiled programs kept on disk, so that only the first run of a command waits for XLA."""

from __future__ import annotations

import hashlib
import os
import platform
from pathlib import Path

import jax

_MIN_SECONDS = 0.5
"""Programs that compile faster are not worth a file."""


def keep_compiled_programs() -> None:
    """Makes JAX keep what it compiles under `$XDG_CACHE_HOME/nsode_jax` (`~/.cache`).

    For command lines; a library must not change JAX's settings. A folder that the
    user chose (`JAX_COMPILATION_CACHE_DIR`) stays. Every kind of processor gets a folder
    of its own, as the home of a cluster is shared by machines of several kinds.
    """
    if jax.config.values["jax_compilation_cache_dir"]:
        return
    try:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        folder = home / "nsode_jax" / f"compiled-{_processor()}"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        return  # No home, or not ours to write: compile every time.
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", _MIN_SECONDS)


def _processor() -> str:
    """Eight characters that differ where machine code may not run."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        features = next(line for line in lines if line.startswith(("flags", "Features")))
    except (OSError, StopIteration):
        features = platform.processor()
    return hashlib.sha256(f"{platform.machine()} {features}".encode()).hexdigest()[:8]
