"""Data that are refused."""

import pytest

from nsode_jax.dynamics.trajectory import TrajectoryError


def refusal(function, *args, **kwargs) -> str:
    """The message of the TrajectoryError, which must be one line."""
    with pytest.raises(TrajectoryError) as caught:
        function(*args, **kwargs)
    message = str(caught.value)
    assert message and "\n" not in message
    return message
