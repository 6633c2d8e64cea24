"""Noise, gaps, few points and windows."""

import numpy as np
import pytest

from nsode_jax.dynamics.corrupt import CorruptionConfig, corrupt, evenly_spaced

T = np.linspace(0.0, 4.0, 256)
Y = 3.0 + np.sin(T)


def test_default_only_thins():
    t, y = corrupt(T, Y, 64, CorruptionConfig(), np.random.default_rng(0))
    assert t.size == 64
    assert t[0] == 0.0 and 0.98 * 4.0 < t[-1] <= 4.0
    assert np.isin(y, Y).all()


def test_sparse_series_have_eight_points_and_up_in_order():
    rng = np.random.default_rng(0)
    config = CorruptionConfig(sparse_share=1.0, irregular_share=0.5)
    sizes = []
    for _ in range(500):
        t, y = corrupt(T, Y, 128, config, rng)
        sizes.append(t.size)
        assert (np.diff(t) > 0).all()
        assert t[0] == 0.0
        assert t.size == y.size
    assert min(sizes) == 8
    assert max(sizes) > 100


@pytest.mark.parametrize("available", [9, 20, 64, 150, 256, 1024])
def test_regular_series_have_equal_steps_and_nearly_all_of_the_time(available):
    for count in range(8, min(available, 200) + 1):
        index = evenly_spaced(available, count)
        assert index[0] == 0 and 8 <= index.size <= count and index[-1] < available
        assert len(set(np.diff(index))) == 1
        if available >= 64:  # Of few points, eight at equal distances may be all in one half.
            assert index[-1] >= 0.85 * (available - 1)


def test_series_are_regular_unless_asked_otherwise():
    config = CorruptionConfig(sparse_share=0.5, irregular_share=0.0, window_share=0.5)
    for seed in range(100):
        t, _ = corrupt(T, Y, 128, config, np.random.default_rng(seed))
        np.testing.assert_allclose(np.diff(t), t[1], rtol=1e-9)


def test_windows_start_at_time_zero_and_keep_their_length():
    rng = np.random.default_rng(0)
    config = CorruptionConfig(window_share=1.0, min_window=0.25)
    spans = [corrupt(T, Y, 128, config, rng)[0][-1] for _ in range(300)]
    assert min(spans) >= 0.98
    assert max(spans) <= 4.0
    assert np.std(spans) > 0.5


def test_noise_levels_stay_in_their_range():
    rng = np.random.default_rng(0)
    config = CorruptionConfig(noisy_share=1.0, min_noise=0.01, max_noise=0.1)
    kinds = {"multiplicative": 0, "additive": 0}
    for _ in range(300):
        t, y = corrupt(T, Y, 256, config, rng)
        np.testing.assert_array_equal(t, T)
        residual = y - Y
        multiplicative, additive = np.std(residual / Y), np.std(residual) / np.std(Y)
        # Y is about five times its standard deviation: the two cannot be confused
        # at the ends of the range, and each level lies in it as one or the other.
        in_range = [0.008 < level < 0.12 for level in (multiplicative, additive)]
        assert any(in_range)
        kinds["multiplicative"] += in_range == [True, False]
        kinds["additive"] += in_range == [False, True]
    assert min(kinds.values()) > 30


def test_same_random_numbers_same_series():
    config = CorruptionConfig(noisy_share=0.5, sparse_share=0.5, window_share=0.5)
    first = corrupt(T, Y, 128, config, np.random.default_rng(7))
    second = corrupt(T, Y, 128, config, np.random.default_rng(7))
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def test_dropped_points_are_up_to_half_and_in_order():
    rng = np.random.default_rng(0)
    config = CorruptionConfig(dropped_share=1.0, max_dropped=0.5)
    sizes = []
    for _ in range(300):
        t, y = corrupt(T, Y, 86, config, rng)
        assert (np.diff(t) > 0).all()
        assert t[0] == 0.0
        assert t.size == y.size
        assert np.isin(y, Y).all()
        sizes.append(t.size)
    assert 43 <= min(sizes) < 48
    assert 82 < max(sizes) <= 86
    # Never fewer than discovery accepts.
    t, _ = corrupt(T[:9], Y[:9], 9, CorruptionConfig(dropped_share=1.0, max_dropped=1.0), rng)
    assert t.size >= 8


@pytest.mark.parametrize(
    ("field", "value"),
    [("noisy_share", 1.1), ("max_dropped", -0.1), ("min_noise", 0.2), ("copies", 0)],
)
def test_impossible_settings_are_refused(field, value):
    with pytest.raises(ValueError, match=field):
        CorruptionConfig(**{field: value})


def test_quantities_are_observed_together_each_with_noise_of_its_size():
    both = np.stack([Y, 100.0 * np.cos(T)], axis=1)
    config = CorruptionConfig(noisy_share=1.0, min_noise=0.05, max_noise=0.05)
    rng, relative = np.random.default_rng(0), []
    for _ in range(200):
        t, y = corrupt(T, both, 128, config, rng)
        assert y.shape == (t.size, 2)
        clean = np.stack([3.0 + np.sin(t), 100.0 * np.cos(t)], axis=1)
        relative.append(np.std(y - clean, axis=0) / np.std(both, axis=0))
    np.testing.assert_allclose(np.median(relative, axis=0)[1], 0.05, rtol=0.2)
    assert np.median(relative, axis=0)[0] < 0.25  # Relative to the value it is larger.


def test_one_column_is_corrupted_as_a_series_is():
    config = CorruptionConfig(noisy_share=0.5, sparse_share=0.5, dropped_share=0.5)
    for seed in range(20):
        t, y = corrupt(T, Y, 128, config, np.random.default_rng(seed))
        same_t, column = corrupt(T, Y[:, None], 128, config, np.random.default_rng(seed))
        np.testing.assert_array_equal(t, same_t)
        np.testing.assert_allclose(y, column[:, 0], rtol=1e-12)


def test_times_stay_where_laws_depend_on_them():
    config = CorruptionConfig(window_share=1.0, min_window=0.25)
    rng, firsts = np.random.default_rng(0), []
    for _ in range(20):
        t, y = corrupt(T, Y, 64, config, rng, from_zero=False)
        np.testing.assert_array_equal(y, 3.0 + np.sin(t))
        firsts.append(t[0])
    assert max(firsts) > 0.5
