"""Tables written as text, read, and refused."""

import pytest

from nsode_jax.dynamics.vectors import TrajectoryError
from nsode_jax.tables.files import Contents
from nsode_jax.tables.table import Measurements, read_measurements


def read_text(text: str, **options) -> Measurements:
    """What is read of a file with this text."""
    return read_measurements(Contents("data.csv", text.encode()), **options)


def read_rows(rows, delimiter=",", **options) -> Measurements:
    """What is read of these cells."""
    lines = (delimiter.join(map(str, row)) for row in rows)
    return read_text("\n".join(lines), **options)


def refusal(function, *args, **kwargs) -> str:
    """The message of the TrajectoryError, which must be one line."""
    with pytest.raises(TrajectoryError) as caught:
        function(*args, **kwargs)
    message = str(caught.value)
    assert message and "\n" not in message
    return message
