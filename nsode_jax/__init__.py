"""Finds the law dy/dt = f(y) behind a time series."""

from pathlib import Path

__version__ = "0.1.0"

# `configs` and `data_builders` stand at the top of the repository and, in an installed wheel,
# inside this package. From either they are imported as `nsode_jax.configs` and
# `nsode_jax.data_builders`.
_folder = Path(__file__).parent
if not (_folder / "configs").is_dir():
    __path__.append(str(_folder.parent))
