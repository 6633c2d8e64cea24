"""Packages that only some uses need: the extras of pyproject.toml."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


class MissingExtra(ModuleNotFoundError):
    """A package of an extra is not installed; the message says how to install it."""


@contextlib.contextmanager
def extra(name: str, purpose: str) -> Iterator[None]:
    """Around the imports of packages that an extra brings.

        with extra("train", "reading a stored data set"):
            import grain

    Args:
      name: of the extra.
      purpose: what the packages are for, in the words of the user.

    Raises:
      MissingExtra: if one of them is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingExtra(
            f"{purpose} needs {error.name}, which is not installed: "
            f"pip install 'nsode_jax[{name}]'",
            name=error.name,
        ) from error
