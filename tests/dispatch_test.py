"""Which discovery is asked for, whatever data come in."""

import numpy as np
import pytest

from nsode_jax.discovery import dispatch

T = np.linspace(0.0, 5.0, 12)
WAVES = np.stack([np.sin(T), np.cos(T)], axis=1)


@pytest.fixture
def asked(monkeypatch):
    """Which discovery was called, and with which data."""
    calls = []

    def system(t, y, *, inputs=None, explicit_time=False, order=1):
        calls.append(("system", t, y, inputs))

    def scalar(t, y):
        calls.append(("scalar", t, y, None))

    monkeypatch.setattr(dispatch.systems, "discover_system", system)
    monkeypatch.setattr(dispatch.pipeline, "discover", scalar)
    return calls


def test_rows_are_those_of_a_table(asked):
    dispatch.discover(T, WAVES.tolist())
    dispatch.discover(T.tolist(), [tuple(row) for row in WAVES])
    for kind, _, y, _ in asked:
        assert kind == "system"
        np.testing.assert_array_equal(y, WAVES)


def test_a_column_of_rows_is_one_quantity(asked):
    dispatch.discover(T, WAVES[:, :1].tolist())
    ((kind, _, y, _),) = asked
    assert kind == "scalar"
    np.testing.assert_array_equal(np.ravel(y), WAVES[:, 0])


def test_series_stay_series(asked):
    for y in (list(WAVES.T), [list(column) for column in WAVES.T], [WAVES[:, 0]] * T.size):
        dispatch.discover(T, y)
    dispatch.discover([T, T[:9]], [WAVES[:, 0], WAVES[:9, 0]])
    assert [kind for kind, *_ in asked] == ["scalar"] * 4
    assert all(isinstance(y, list) for _, _, y, _ in asked)


@pytest.mark.parametrize("times", [T, np.stack([T, T + 1.0])])
def test_an_array_of_runs_is_a_list_of_them(asked, times):
    dispatch.discover(times, np.stack([WAVES, -WAVES]))
    forced = np.stack([WAVES, -WAVES])[:, :, :1]
    dispatch.discover(times, np.stack([WAVES, -WAVES]), inputs=forced)
    assert [kind for kind, *_ in asked] == ["system"] * 2
    for _, t, y, inputs in asked:
        assert isinstance(y, list) and [part.shape for part in y] == [(12, 2)] * 2
        assert isinstance(t, list) == (times.ndim == 2)
        assert inputs is None or [part.shape for part in inputs] == [(12, 1)] * 2
