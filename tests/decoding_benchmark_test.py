"""`benchmarks.decoding` on smoke sizes, without PyTorch."""

import dataclasses
import json
import sys

import numpy as np
import pytest
from nsode_jax.configs import smoke

from benchmarks.decoding import (
    candidates,
    hugging_face,
    memory,
    networks,
    products,
    searching,
    turns,
)
from benchmarks.training import WorkerFailed
from nsode_jax.config import from_config_dict
from nsode_jax.data.vocabulary import EOS, PAD, Vocabulary

MODEL = from_config_dict(smoke.get_config()).model
STEPS = 6


@pytest.fixture(scope="module")
def network():
    return networks.random_network("smoke", MODEL, STEPS)


def test_a_single_beam_of_random_parameters_takes_all_steps(network):
    memory = network.encode(*network.inputs(1))
    assert searching.count_steps(network, memory, beams=1) == STEPS


def test_products_of_attention():
    rng = np.random.default_rng(0)
    query, keys, values = (rng.normal(size=s) for s in ((3, 8), (5, 3, 8), (5, 3, 8)))
    scores = np.einsum("rhd,lrhd->lrh", query.reshape(3, 2, 4), keys[:4].reshape(4, 3, 2, 4))
    expected = np.einsum("lrh,lrhd->rhd", scores, values[:4].reshape(4, 3, 2, 4)).reshape(3, 8)
    values[4] = np.nan  # Not written yet.
    found = products.attend_to_written(query, keys, values, 3, heads=2)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)

    query, keys, values = (rng.normal(size=s) for s in ((2, 3, 8), (2, 7, 2, 4), (2, 7, 2, 4)))
    expected = np.empty((2, 3, 2, 4))
    for b, h in np.ndindex(2, 2):
        scores = query.reshape(2, 3, 2, 4)[b, :, h] @ keys[b, :, h].T
        expected[b, :, h] = scores @ values[b, :, h]
    found = products.attend_to_memory(query, keys, values)
    np.testing.assert_allclose(found, expected.reshape(2, 3, 8), rtol=1e-4, atol=1e-5)


def test_products_are_those_that_are_counted(network):
    model, rows = network.model, 64  # So many that all else is little.
    memory = network.encode(*network.inputs(1))
    inputs = products.product_inputs(model, 1, rows, steps=2)
    arguments = (network.params, memory, *inputs, 2, MODEL.heads)
    for attention in (False, True):
        assert np.isfinite(products.products(*arguments, attention)).all()
    # XLA counts the body of a loop once.
    found = products.products.lower(*arguments, False).compile().cost_analysis()["flops"]
    expected = products.product_flops(MODEL, rows, 1, attention=False)
    assert expected == pytest.approx(found, rel=0.02)
    # Scores and their use, of one layer: the patches in each step, and 1 and 2 positions.
    more = products.product_flops(MODEL, 1, 2, True) - products.product_flops(MODEL, 1, 2, False)
    assert more == 2 * 2 * MODEL.width * (2 * MODEL.num_patches + 1 + 2)


def test_the_table_of_searches(network):
    # Of shipped weights, steps are counted.
    counting = dataclasses.replace(network, is_trained=True)
    some = network.gflop(8, STEPS)
    report = searching.search_report(counting, [1], [8, 9], max_gflop=some, budget=0.0)
    (_, header), (row, line), (nothing, left_out) = report
    assert "6 positions" in header
    assert (row.batch, row.beams, row.steps) == (1, 8, STEPS)
    assert len(row.search) == len(row.products) == len(row.projections) == turns.MIN_TURNS
    assert row.cold > max(row.search) > 0 and min(row.products) > 0
    assert line.split()[:2] == ["1", "8"]
    json.dumps(dataclasses.asdict(row))
    assert nothing is None and left_out.split()[:4] == ["1", "9", "left", "out:"]


def test_ratios_are_of_one_turn():
    times = [2.0, 4.0, 9.0], [0.5, 1.0, 3.0], [1.0, 2.0, 3.0]
    row = searching.Searched("smoke", 1, 16, 8, 30.0, 5.0, *times, others=0.25)
    cells = searching.search_line(row).split()
    assert cells[:4] == ["1", "16", "5.0", "4.0000"]
    assert cells[5:9] == ["8", "500.00", "2.0000", "15.0"]  # Steps, ms, products, GFLOP/s.
    assert cells[9:] == ["2.00", "(2.00-2.50)", "4.00", "(3.50-4.00)", "25%"]
    generated = hugging_face.Generated("smoke", 3, 8, "1.0", times[2], times[0], others=0.0)
    assert "2.0 (2.0-2.5) times as fast" in hugging_face.generate_line(generated)


def test_without_torch_there_is_no_comparison(network):
    with pytest.raises((WorkerFailed, OSError), match="/no/python"):
        hugging_face.measure_generate(network, 3, "/no/python", 0.0)


def test_candidates_are_counted(network):
    vocabulary = Vocabulary()
    y, plus = (vocabulary.symbols.index(symbol) for symbol in ("y", "add"))
    rows = [[y, EOS, PAD], [plus, y, EOS], [y, y, EOS], [plus, y, y]]
    assert candidates.incomplete(np.array(rows), np.zeros((4, 3)), vocabulary) == 2
    assert candidates.repeated(np.array([rows[0], rows[1], rows[0], rows[0]])) == 2
    assert candidates.repeated(np.empty((0, 3))) == 0
    shares = candidates.measure_candidates(network, beams=8, count=1)
    assert all(0 <= x <= 1 for x in (shares.incomplete, shares.repeated, shares.repeated_merged))
    assert shares.incomplete > 0  # Of random parameters.


def test_trajectories_are_where_models_were_trained():
    found = networks.trajectories(3)
    assert len(found) == 3
    assert all(np.isfinite(y).all() and np.abs(y).max() <= 5 for _, y in found)
    with pytest.raises(ValueError, match="only"):
        networks.trajectories(10_000)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_of_a_process():
    row = memory.measure_memory("smoke", MODEL, beams=4, length=4)
    assert 50 < row.before <= row.peak < 5000
    assert row.keys_values == 1 * 2 * MODEL.width * 4 * 4 * 4 / 2**20
    assert row.seconds > 0
    assert f"{row.peak:,.0f} MB" in memory.memory_line(row, MODEL)


def test_shipped_weights_are_found_by_their_name():
    small, random = networks.load_network("small", 5), networks.load_network("smoke", 99)
    assert small.is_trained and small.max_length == small.model.config.max_length > 5
    assert not random.is_trained and random.max_length == MODEL.max_length
