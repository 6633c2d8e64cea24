"""The evaluation of lag phases: what is asked, and how it is counted."""

from types import SimpleNamespace

import numpy as np
import pytest

from nsode_jax.evaluation import lag_phases
from nsode_jax.evaluation.lag_phases import NONE, table, with_lag, without_lag


@pytest.fixture
def told(monkeypatch):
    """The data that were searched; the result tells of a lag until 2.5."""
    seen = []

    def discover(t, y, **options):
        seen.append((t, y))
        return SimpleNamespace(notes=("A lag phase of 9 points (until 2.5), then dy/dt = y.",))

    monkeypatch.setattr(lag_phases, "discover", discover)
    return seen


def test_a_series_rests_and_then_follows_its_law(told):
    line = with_lag("logistic growth", 0.0, 40, 0.2)
    ((t, y),) = told
    resting = t <= 2.4
    assert (y[resting] == 0.5).all() and (np.diff(y[~resting]) > 0).all()
    late = t[~resting] - 2.4
    np.testing.assert_allclose(y[~resting], 10 / (1 + 19 * np.exp(-0.6 * late)), rtol=1e-5)
    assert line["told"] == 2.5 and line["close"]
    assert not with_lag("logistic growth", 0.02, 40, 0.1 + 0.3)["close"]


def test_lags_are_counted(told):
    lines = [with_lag("exponential growth", 0.02, 20, share) for share in (0.2, 0.5)]
    none = without_lag(10)
    assert none["law"] == NONE and none["noise"] == 0.05
    rows = table([*lines, none, {**none, "told": None}]).splitlines()
    assert rows[2] == "| no lag | 2 | 1 |  |" and rows[3] == "| a lag | 2 | 2 | 1 |"
