"""Numbers as text: as many digits as they have, and no more."""

import numpy as np

from nsode_jax.results.formatting import probability_text, r2_text, time_text, value_within


def test_probabilities():
    shown = [probability_text(p) for p in (1.0, 0.9784, 0.0006, 0.0001, 0.0, np.nan)]
    assert shown == ["100.0%", "97.8%", "0.1%", "<0.1%", "<0.1%", "-"]


def test_r2():
    shown = [r2_text(r2) for r2 in (1.0, 0.99996, -0.5, -1234.0, -np.inf, np.nan)]
    assert shown == ["1.00000", "0.99996", "-0.50000", "-1.2e+03", "diverges", "unknown"]


def test_times():
    assert [time_text(t) for t in (0.0, 1_700_000_123.0, 0.1 + 0.2)] == ["0", "1700000123", "0.3"]


def test_values_within_a_tolerance():
    assert value_within(1234.5678, 0.01) == "1234.57"
    assert value_within(1234.5678, 100.0) == "1235"
    assert value_within(1 / 3, 0.0) == "0.333333333333"
