"""Batches of like length: the same examples in other batches, cut; positions."""

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from batches import same

from nsode_jax.data.vocabulary import EOS, PAD
from nsode_jax.training.like_length import CHUNK, LikeLength, target_lengths

LENGTH, SIZE = 14, 6


class Drawn(Iterator):
    """Batches of random targets, a function of the seed and their number alone."""

    def __init__(self, seed: int = 0):
        self.seed, self.next = seed, 0

    def __next__(self):
        rng = np.random.default_rng((self.seed, self.next))
        self.next += 1
        lengths = rng.integers(2, LENGTH + 1, SIZE)
        places = np.arange(LENGTH)
        low = np.where(places < lengths[:, None] - 1, 5, PAD)
        low[places == lengths[:, None] - 1] = EOS
        names = np.arange(SIZE) + SIZE * (self.next - 1)
        return {"words": names, "low": low, "fraction": rng.random((SIZE, LENGTH))}

    def get_state(self):
        return {"next": self.next}

    def set_state(self, state):
        self.next = state["next"]


def test_a_chunk_holds_the_same_examples_cut_behind_their_ends():
    plain = list(itertools.islice(Drawn(), CHUNK))
    whole = {name: np.concatenate([b[name] for b in plain]) for name in plain[0]}
    batches = list(itertools.islice(LikeLength(Drawn(), 4), CHUNK))
    assert sorted(np.concatenate([b["words"] for b in batches])) == list(whole["words"])
    shapes = set()
    for batch in batches:
        length = batch["low"].shape[1]
        lengths = target_lengths(batch["low"])
        assert batch["fraction"].shape == batch["low"].shape == (SIZE, length)
        assert length == LENGTH or length % 4 == 0
        assert length - 4 < lengths.max() <= length
        for name, row, weights in zip(batch["words"], batch["low"], batch["fraction"], strict=True):
            np.testing.assert_array_equal(row, whole["low"][name, :length])
            np.testing.assert_array_equal(weights, whole["fraction"][name, :length])
            assert not whole["low"][name, length:].any()
        shapes.add(length)
    assert len(shapes) > 2
    # They differ by a position or two, where those that were drawn differ by ten.
    spread = np.mean([np.ptp(target_lengths(b["low"])) for b in batches])
    assert spread < 0.3 * np.mean([np.ptp(target_lengths(b["low"])) for b in plain])


def test_short_and_long_batches_take_turns():
    longest = [b["low"].shape[1] for b in itertools.islice(LikeLength(Drawn(), 1), CHUNK)]
    half = CHUNK // 2
    assert abs(sum(longest[:half]) - sum(longest[half:])) <= 8
    assert all(a < b for a, b in zip(longest[::2], longest[1::2], strict=True))


@pytest.mark.parametrize("taken", [0, 1, 7, 8, 13])
def test_a_position_is_gone_on_from(taken):
    batches = LikeLength(Drawn(), 4)
    for _ in range(taken):
        next(batches)
    position = batches.get_state()
    then = list(itertools.islice(batches, 2 * CHUNK))
    again = LikeLength(Drawn(), 4)
    next(again)
    again.set_state(position)
    assert again.get_state() == position
    assert all(same(a, b) for a, b in zip(then, itertools.islice(again, len(then)), strict=True))
