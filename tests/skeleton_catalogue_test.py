"""The catalogue that ships, and files of catalogues."""

import collections
import gzip

import pytest

from nsode_jax.expressions.canonical import canonicalize
from nsode_jax.expressions.enumeration import enumerate_skeletons
from nsode_jax.expressions.expression import Expression, Skeleton
from nsode_jax.expressions.skeleton_catalogue import (
    Catalogue,
    compose,
    count_skeletons,
    shipped_catalogue,
)


@pytest.fixture(scope="module")
def small():
    counts = count_skeletons(0, trees=3000)
    return compose(enumerate_skeletons(4), counts, beyond=50, trees=3000)


def test_the_shipped_catalogue_is_complete():
    catalogue = shipped_catalogue()
    assert catalogue.complete_to >= 7
    levels = enumerate_skeletons(5)
    assert set(catalogue.skeletons_up_to(5)) == {key for level in levels for key in level}
    assert len(set(catalogue.keys)) == len(catalogue.keys) == len(catalogue.frequencies)
    sizes = [len(key.split()) for key in catalogue.skeletons_up_to(7)]
    assert sizes == sorted(sizes) and len(sizes) > 30_000


def test_commonest_come_first(small):
    frequency = dict(zip(small.keys, small.frequencies))
    for symbols in (3, 4):
        level = [key for key in small.keys if len(key.split()) == symbols]
        assert [frequency[key] for key in level] == sorted(map(frequency.get, level), reverse=True)
    beyond = small.commonest_beyond(4, 50)
    assert len(beyond) == 50 and all(len(key.split()) > 4 for key in beyond)
    assert [frequency[key] for key in beyond] == sorted(map(frequency.get, beyond), reverse=True)
    assert small.keys[-50:] == beyond
    assert small.commonest_beyond(4, 3) == beyond[:3]


def test_a_size_that_is_not_complete_is_refused(small):
    with pytest.raises(ValueError, match="complete up to 4 symbols, not 5"):
        small.skeletons_up_to(5)


def test_an_alphabet_of_ones_own(small):
    without_waves = small.with_operators("add sub mul div pow exp log".split())
    assert 0 < len(without_waves.keys) < len(small.keys)
    assert not any({"sin", "cos", "sqrt"} & set(key.split()) for key in without_waves.keys)
    assert "add mul c y c" not in without_waves.skeletons_up_to(4)
    assert "add exp y c" in without_waves.skeletons_up_to(4)


def test_counts_do_not_depend_on_how_the_work_is_shared():
    counts = count_skeletons(3, trees=400)
    assert counts == count_skeletons(3, trees=400)
    assert counts != count_skeletons(4, trees=400)
    assert isinstance(counts, collections.Counter)
    assert all("-c" not in key and "y" in Skeleton.from_key(key).tokens for key in counts)


def test_round_trip_and_damage(small, tmp_path):
    path = tmp_path / "small.gz"
    small.save(path)
    data = path.read_bytes()
    again = Catalogue.load(path)
    assert (again.keys, again.frequencies) == (small.keys, small.frequencies)
    assert (again.complete_to, again.trees) == (4, 3000)
    again.save(path)
    assert path.read_bytes() == data
    text = gzip.decompress(data).decode()
    for damaged in (data[:100], b"none", gzip.compress(text.replace("sin", "cos").encode())):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="damaged"):
            Catalogue.load(path)


def test_common_laws_are_in_the_catalogue():
    keys = set(shipped_catalogue().keys)
    laws = ("0.3*y - 0.1*y**2", "2*y/(1 + y) - 0.3*y", "y*(1 - y)*(y - 0.3)", "2*exp(-y) - 0.4*y")
    for law in laws:
        assert canonicalize(Expression.from_infix(law)).skeleton.unsigned_key in keys, law
