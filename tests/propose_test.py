"""Candidates of the shipped weights: exact scores, valid laws, the same on any devices."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsode_jax.data.encode import encode_trajectories
from nsode_jax.data.vocabulary import NotEncodable
from nsode_jax.decoding import propose
from nsode_jax.decoding.grammar import constant_modes
from nsode_jax.decoding.propose import Proposer
from nsode_jax.decoding.sampling import PLAIN, Sampling
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.expression import Expression, ExpressionError
from nsode_jax.modeling.pretrained import load_pretrained
from nsode_jax.training.loss import decoder_inputs

T = np.linspace(0.0, 4.0, 60)
SERIES = [
    Trajectory(T, 3.0 / (1.0 + 9.0 * np.exp(-2.0 * T))),
    Trajectory(T, 2.0 * np.exp(-T)),
    Trajectory(T, np.sin(T) + 1.5),
]


@pytest.fixture(scope="module")
def weights():
    return load_pretrained("small")


@pytest.fixture(scope="module")
def proposer(weights):
    return Proposer(*weights)


def result_of(proposer, series, beams, samples=0):
    """The raw result: of the beam search, or of sampling where `samples`."""
    words, mask = encode_trajectories(
        [(x.t, x.y) for x in series], proposer.model.config.example_format
    )
    spread, params = proposer._spread(samples or beams)
    fixed = proposer.model, proposer._table, samples or beams, spread
    if samples:
        key = jax.random.key(0)
        return jax.device_get(propose._sample(*fixed, PLAIN, params, words, mask, key))
    return jax.device_get(propose._beam(*fixed, True, params, words, mask))


@functools.partial(jax.jit, static_argnums=(0, 1))
def teacher_forced(model, table, params, words, mask, tokens, low, fraction):
    memory = model.encode(params, words, mask)
    memory = jax.tree.map(lambda x: jnp.repeat(x, len(tokens), axis=0), memory)
    logits = model.decode(params, memory, *decoder_inputs(low, fraction))
    mass, _ = constant_modes(jax.nn.log_softmax(logits), table)
    gained = jnp.take_along_axis(mass, tokens[..., None], axis=-1)[..., 0]
    return jnp.where(tokens != table.pad, gained, 0.0).sum(-1)


def rescored(proposer, series, result):
    """log p of every row, all its positions read at once."""
    model, table = proposer.model, proposer._table
    words, mask = encode_trajectories([(series.t, series.y)], model.config.example_format)
    rows = result.tokens[0], result.low[0], result.fraction[0]
    return teacher_forced(model, table, proposer.params, words, mask, *rows)


@pytest.mark.parametrize("samples", [0, 32])
def test_scores_are_exact(proposer, samples):
    result = result_of(proposer, SERIES[:1], 32, samples)
    assert np.isfinite(result.log_probability).all()
    if not samples:
        assert (np.diff(result.log_probability[0]) <= 0).all()
    np.testing.assert_allclose(
        rescored(proposer, SERIES[0], result), result.log_probability[0], atol=1e-4
    )


def test_every_candidate_is_a_law(proposer):
    for result in (result_of(proposer, SERIES, 64), result_of(proposer, SERIES, 0, samples=64)):
        for row in range(len(SERIES)):
            for low, fraction in zip(result.low[row], result.fraction[row], strict=True):
                try:
                    proposer.vocabulary.decode(low, fraction)
                except ExpressionError as error:
                    pytest.fail(str(error))


def test_of_no_trajectories_there_are_no_candidates(proposer):
    assert proposer.propose([], beams=4, samples=4) == proposer.propose_freely([], beams=4) == []


def test_a_batch_is_its_trajectories_alone(proposer):
    together = proposer.propose(SERIES, beams=16)
    for series, candidates in zip(SERIES, together, strict=True):
        (alone,) = proposer.propose([series], beams=16)
        assert [e.skeleton for e, _ in alone] == [e.skeleton for e, _ in candidates]
        np.testing.assert_allclose([p for _, p in alone], [p for _, p in candidates], atol=1e-4)


def test_the_papers_beams_stand_as_written(proposer):
    """Repetitions and what is no formula stay in their places; the best beam is greedier."""
    (free,), (ours,) = (
        proposer.propose_freely(SERIES[:1], beams=64),
        proposer.propose(SERIES[:1], beams=64),
    )
    assert len(free) == 64
    laws = [law for law in free if law is not None]
    assert len({law.skeleton for law in laws}) < len(laws)  # Near-copies are not merged.
    assert len({law.skeleton for law in laws}) < len({law.skeleton for law, _ in ours})


def test_what_is_no_formula_is_none(proposer):
    vocabulary = proposer.vocabulary
    plus, y = vocabulary.symbols.index("add"), vocabulary.symbols.index("y")
    low = np.array([[[plus, y, vocabulary.eos], [y, y, vocabulary.eos], [y, vocabulary.eos, 0]]])
    scores = np.array([[-1.0, -2.0, -3.0]])
    result = propose.BeamResult(low, low, np.zeros(low.shape), scores, np.array([[3, 3, 2]]))
    written = [laws and laws[0].infix for laws, _ in proposer._written(result, 0)]
    assert written == [None, None, "y"]
    assert [law.infix for (law,), _ in proposer._candidates([result], 0)] == ["y"]


def test_what_was_written_twice_is_one_candidate(proposer):
    """Beam search and sampling compute in an order of their own: the last digits differ."""
    vocabulary = proposer.vocabulary
    plus, y, eos = (vocabulary.symbols.index(name) for name in ("add", "y", "<eos>"))
    grid, step = vocabulary.grid_start, vocabulary.grid[1] - vocabulary.grid[0]

    def result(log_p, *constants):  # y + c
        low = np.array([[[plus, y, grid + token, eos] for token, _ in constants]])
        fraction = np.array([[[0.0, 0.0, part, 0.0] for _, part in constants]])
        return propose.BeamResult(low, low, fraction, np.array([log_p]), np.full(low.shape[:2], 4))

    beams = result([-1.0, -2.0, -3.0], (12, 0.25), (12, 0.75), (15, 0.9999999))
    samples = result([-1.5, -0.5, -3.5, -9.0], (12, 0.2500001), (12, 0.75), (16, 0.0), (12, 0.3))
    found = proposer._candidates([beams, samples], 0)
    assert [log_p for _, log_p in found] == [-0.5, -1.0, -3.0, -9.0]
    constants = [(law.constants[0] - vocabulary.grid[12]) / step for (law,), _ in found]
    np.testing.assert_allclose(constants, [0.75, 0.25, 3.9999999, 0.3], atol=1e-9)


def test_beams_and_samples_write_no_law_twice(proposer):
    t = np.linspace(0.0, 4.0, 40)
    (found,) = proposer.propose([Trajectory(t, 3.0 * np.exp(-0.7 * t))], beams=100, samples=30)
    alike = {tuple(x if isinstance(x, str) else round(x, 3) for x in e.prefix) for e, _ in found}
    assert len(alike) == len(found) > 100


def test_beams_and_samples_are_united(proposer):
    (beams,), (samples,), (both,) = (
        proposer.propose(SERIES[:1], beams=b, samples=s) for b, s in ((8, 0), (0, 8), (8, 8))
    )
    assert {e for e, _ in both} == {e for e, _ in beams} | {e for e, _ in samples}
    scores = [p for _, p in both]
    assert scores == sorted(scores, reverse=True)
    assert both == proposer.propose(SERIES[:1], beams=8, samples=8)[0]
    other = proposer.propose(SERIES[:1], beams=0, samples=8, seed=1)[0]
    assert {e for e, _ in other} != {e for e, _ in samples}


def test_samples_are_drawn_as_asked(proposer):
    def drawn(**sampling):
        settings = dict(beams=0, samples=16, sampling=Sampling(**sampling))
        return proposer.propose(SERIES[:1], **settings)[0]

    assert drawn() == proposer.propose(SERIES[:1], beams=0, samples=16)[0]
    # The narrowest ones write one law, whose score is the network's own.
    ((law, log_p),) = drawn(top_k=1)
    for narrow in (dict(top_p=1e-6), dict(temperature=1e-4)):
        assert drawn(**narrow) == [(law, pytest.approx(log_p, rel=1e-4))]
    assert len(drawn(temperature=2.0)) > 1


@pytest.mark.devices
def test_eight_devices_equal_one(weights, proposer):
    spread = Proposer(*weights, devices=jax.devices())
    assert len(jax.devices()) == 8
    for settings in (dict(beams=16), dict(beams=0, samples=16)):
        one, many = (p.propose(SERIES[:2], **settings) for p in (proposer, spread))
        for a, b in zip(one, many, strict=True):
            assert [e.skeleton for e, _ in a] == [e.skeleton for e, _ in b]
            np.testing.assert_allclose([p for _, p in a], [p for _, p in b], atol=1e-4)


@pytest.mark.devices
def test_beams_that_the_devices_do_not_divide_are_spread_over_fewer(weights):
    proposer = Proposer(*weights, devices=jax.devices())
    assert proposer._spread(12)[0].mesh.size == 4
    assert proposer._spread(7)[0].mesh.size == 1


def test_token_by_token_the_score_is_that_of_the_beam(proposer):
    result = result_of(proposer, SERIES[:1], 8)
    for row in range(4):
        law = proposer.vocabulary.decode(result.low[0, row], result.fraction[0, row])
        places = proposer.token_probabilities(SERIES[0], law, most=3)
        assert len(places) == result.lengths[0, row] == len(law.prefix) + 1
        total = sum(np.log(place.probability) for place in places)
        np.testing.assert_allclose(total, result.log_probability[0, row], atol=1e-3)
        assert places[-1].token == "<eos>"
        for place in places:
            assert len(place.others) == 3
            shares = [share for _, share in place.others]
            assert shares == sorted(shares, reverse=True) and sum(shares) <= 1.0 + 1e-5
            # What is written is among what may be, unless it is unlikely.
            assert place.token in dict(place.others) or place.probability <= shares[-1]


def test_a_law_that_cannot_be_written_is_refused(proposer):
    with pytest.raises(NotEncodable, match="outside the grid"):
        proposer.token_probabilities(SERIES[0], Expression.from_infix("1000.5*y"))
