"""Settings as they are given: one where several may be, and such as are out of range."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def listed(values: Any) -> tuple[Any, ...]:
    """What an option takes several of; one by itself is meant as one, a text above all."""
    several = isinstance(values, Iterable) and not isinstance(values, str)
    return tuple(values) if several else (values,)


def require_at_least_1(settings: object, *names: str) -> None:
    """Refuses counts below 1.

    Args:
      settings: with these attributes.
      *names: of them.

    Raises:
      ValueError: naming the first that is, and its value.
    """
    for name in names:
        if not (value := getattr(settings, name)) >= 1:  # NaN is no count either.
            raise ValueError(f"{name} must be at least 1, got {value}")


def require_shares(settings: object, *names: str) -> None:
    """Refuses shares below 0 or above 1, likewise."""
    for name in names:
        if not 0.0 <= (value := getattr(settings, name)) <= 1.0:
            raise ValueError(f"{name} must lie in [0, 1], got {value}")
