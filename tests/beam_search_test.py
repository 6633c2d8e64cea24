"""Beam search against brute force, a plain Python reference, greedy, and a hand-drawn graph.

The model here is tiny but has what matters: a cache with a time axis that must
follow its beam, soft tokens that change what comes next, and a context per
trajectory that is closed over.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from decoded import allowed, greedy, open_slots_after, soft

from nsode_jax.decoding.beam_search import beam_search, gather_beams
from nsode_jax.decoding.grammar import TokenTable
from nsode_jax.decoding.steps import BeamResult, Decoding, own_positions

PAD, BOS, EOS, Y, ADD, SIN = range(6)
# <pad> <bos> <eos> y add sin and a grid of three constants.
TABLE = TokenTable((0, 0, 0, 0, 2, 1, 0, 0, 0), BOS, EOS, PAD, grid_start=6, grid_size=3)
WIDTH = 8


def prefixes(stored, ancestors):
    """What each beam has read: [length, batch, beams, ...] --> [batch, beams, length, ...]."""
    batch, beams, length = ancestors.shape
    position = jnp.arange(length)[None, None, :]
    trajectory = jnp.arange(batch)[:, None, None]
    return stored[
        jnp.broadcast_to(position, ancestors.shape),
        jnp.broadcast_to(trajectory, ancestors.shape),
        ancestors,
    ]


class TinyModel:
    """One random decoder, as a step function in JAX and as a plain function in NumPy."""

    def __init__(self, seed, batch, max_length, table=TABLE, sharpness=2.0):
        rng = np.random.default_rng(seed)
        self.table, self.max_length = table, max_length
        self.embedding = rng.normal(0, 1, (table.size, WIDTH))
        self.query = rng.normal(0, 0.7, (WIDTH, WIDTH))
        self.out = rng.normal(0, sharpness / WIDTH**0.5, (WIDTH, table.size))
        self.out[:, EOS] += 0.3
        self.context = rng.normal(0, 1, (batch, WIDTH))

    def cache(self, batch, beams):
        # What is not written yet may hold anything.
        unwritten = jnp.full((self.max_length, batch, beams, WIDTH), jnp.nan)
        return {"keys": unwritten, "memory": unwritten}

    def step_fn(self, context=None):
        context = jnp.asarray(self.context if context is None else context)
        embedding, query, out = map(jnp.asarray, (self.embedding, self.query, self.out))

        def step(cache, ancestors, low, fraction, position):
            high = jnp.minimum(low + 1, self.table.size - 1)
            weight = fraction[..., None]
            token = (1 - weight) * embedding[low] + weight * embedding[high]
            cache = {**cache, "keys": cache["keys"].at[position].set(token)}
            keys = prefixes(cache["keys"], ancestors)
            before = prefixes(cache["memory"], ancestors)[:, :, position - 1]
            memory = token + jnp.where(position > 0, 0.5 * before, 0.0)
            scores = jnp.einsum("bkth,bkh->bkt", keys, jnp.tanh(token @ query))
            seen = (jnp.arange(self.max_length) <= position)[None, None, :]
            attention = jax.nn.softmax(jnp.where(seen, scores, -jnp.inf), axis=-1)
            read = jnp.einsum("bkt,bkth->bkh", attention, jnp.where(seen[..., None], keys, 0.0))
            logits = jnp.tanh(context[:, None, :] + read + memory) @ out
            return logits, {**cache, "memory": cache["memory"].at[position].set(memory)}

        return step

    def log_p(self, row, fed):
        """Log-probabilities [vocab] after the soft tokens `fed`, <bos> first; no cache."""
        tokens = np.stack(
            [
                (1 - f) * self.embedding[low]
                + f * self.embedding[min(low + 1, self.table.size - 1)]
                for low, f in fed
            ]
        )
        scores = tokens @ np.tanh(tokens[-1] @ self.query)
        attention = np.exp(scores - scores.max())
        read = attention @ tokens / attention.sum()
        memory = sum(token * 0.5**age for age, token in enumerate(tokens[::-1]))
        logits = np.tanh(self.context[row] + read + memory) @ self.out
        return logits - np.log(np.exp(logits - logits.max()).sum()) - logits.max()


def top_of_mode(token, log_p, table):
    """The grid token reached by always going on to the likelier neighbour."""
    grid = range(table.grid_start, table.grid_start + table.grid_size)
    while True:
        best = max((j for j in (token - 1, token, token + 1) if j in grid), key=lambda j: log_p[j])
        if best == token:
            return token
        token = best


def with_modes(log_p, table):
    """{token: log p}, each mode of the grid with its whole probability at its top."""
    modes = {}
    for token in range(table.size):
        on_grid = table.grid_start <= token < table.grid_start + table.grid_size
        top = top_of_mode(token, log_p, table) if on_grid else token
        modes[top] = np.logaddexp(modes.get(top, -np.inf), log_p[token])
    return modes


def reference_beam_search(
    model,
    row,
    beams,
    max_length,
    grammar=True,
    merge_constants=False,
):
    """Lists, float64, no cache, no early end. Gives [(log p, tokens, soft tokens)]."""
    live, finished = [(0.0, (), ((BOS, 0.0),))], []
    for _ in range(max_length):
        candidates = []
        for total, tokens, fed in live:
            log_p = model.log_p(row, fed)
            gain = with_modes(log_p, model.table) if merge_constants else dict(enumerate(log_p))
            for token in allowed(tokens, max_length, model.table, grammar):
                if token not in gain:
                    continue
                grown = (*tokens, token)
                new = (total + gain[token], grown, (*fed, soft(log_p, token, model.table)))
                if token == EOS:
                    finished.append(new)
                else:
                    candidates.append(new)
        live = sorted(candidates, reverse=True)[:beams]
    return sorted(finished, reverse=True)[:beams]


def jitted_search(model, batch, beams, **settings):
    """A compiled search of `batch` trajectories, from their contexts to NumPy arrays."""
    decoding = Decoding(model.table, batch, model.max_length, **settings)
    cache = model.cache(batch, beams)
    run = jax.jit(lambda context: beam_search(model.step_fn(context), cache, decoding, beams))
    return lambda context: jax.tree.map(np.asarray, run(context))


def search(model, **settings):
    """`beam_search` of all trajectories of a model."""
    return jitted_search(model, len(model.context), **settings)(model.context)


def written(result, row, beam):
    """(tokens, soft tokens) of one candidate, without padding."""
    length = result.lengths[row, beam]
    at = (row, beam, slice(length))
    soft_tokens = tuple(zip(result.low[at].tolist(), result.fraction[at].tolist(), strict=True))
    return tuple(result.tokens[at].tolist()), soft_tokens


def found(result, row):
    return int(np.isfinite(result.log_probability[row]).sum())


def assert_same_candidates(result, row, expected):
    assert found(result, row) == len(expected)
    for beam, (log_p, tokens, fed) in enumerate(expected):
        assert written(result, row, beam)[0] == tokens
        np.testing.assert_allclose(result.log_probability[row, beam], log_p, atol=1e-4)
        np.testing.assert_array_equal(
            result.low[row, beam, : len(tokens)], [low for low, _ in fed[1:]]
        )
        np.testing.assert_allclose(
            result.fraction[row, beam, : len(tokens)], [f for _, f in fed[1:]], atol=1e-4
        )


def all_expressions(max_length, table):
    """Every complete prefix expression with <eos>, by trying all sequences of tokens."""
    writable = [t for t in range(table.size) if t not in (table.pad, table.bos, table.eos)]
    for length in range(1, max_length):
        for tokens in itertools.product(writable, repeat=length):
            slots = [open_slots_after(tokens[:n], table) for n in range(length + 1)]
            if slots[-1] == 0 and all(slots[:-1]):
                yield (*tokens, table.eos)


def score(model, row, tokens):
    """(log p, soft tokens) of a given sequence of chosen tokens, teacher-forced in NumPy."""
    total, fed = 0.0, ((BOS, 0.0),)
    for token in tokens:
        log_p = model.log_p(row, fed)
        total, fed = total + log_p[token], (*fed, soft(log_p, token, model.table))
    return total, fed


@pytest.mark.parametrize("max_length", [2, 5])
def test_equal_to_brute_force(max_length):
    model = TinyModel(0, batch=2, max_length=max_length)
    expressions = list(all_expressions(max_length, TABLE))
    assert len(expressions) == {2: 4, 5: 80}[max_length]
    result = search(model, beams=100)
    for row in range(2):
        scored = [(*score(model, row, tokens), tokens) for tokens in expressions]
        expected = sorted(((s, tokens, fed) for s, fed, tokens in scored), reverse=True)
        assert_same_candidates(result, row, expected)
        assert (result.tokens[row, len(expected) :] == PAD).all()
        assert (result.lengths[row, len(expected) :] == 0).all()


def test_equal_to_brute_force_without_grammar():
    model = TinyModel(1, batch=1, max_length=3)
    writable = [t for t in range(TABLE.size) if t not in (PAD, BOS, EOS)]
    sequences = [
        (*tokens, EOS) for n in range(3) for tokens in itertools.product(writable, repeat=n)
    ]
    scored = [(*score(model, 0, tokens), tokens) for tokens in sequences]
    expected = sorted(((s, tokens, fed) for s, fed, tokens in scored), reverse=True)
    assert_same_candidates(search(model, beams=60, grammar=False), 0, expected)


@pytest.mark.parametrize("beams", [1, 2, 3, 7])
@pytest.mark.parametrize("grammar", [True, False])
def test_equal_to_the_reference_beam_by_beam(beams, grammar):
    model = TinyModel(2, batch=3, max_length=9)
    result = search(model, beams=beams, grammar=grammar)
    for row in range(3):
        expected = reference_beam_search(model, row, beams, 9, grammar)
        assert_same_candidates(result, row, expected)


# A grid of seven points, so that a distribution over it can have two modes.
BIMODAL = TokenTable((0, 0, 0, 0, 2, 1) + (0,) * 7, BOS, EOS, PAD, grid_start=6, grid_size=7)


def formulas(result, row):
    return [tuple(result.low[row, i]) for i in range(found(result, row))]


@pytest.mark.parametrize("beams", [2, 7])
def test_merged_constants_leave_no_copies(beams):
    model = TinyModel(4, batch=3, max_length=8, table=BIMODAL)
    result = search(model, beams=beams, merge_constants=True)
    with_copies = search(model, beams=beams)
    copies = 0
    for row in range(3):
        expected = reference_beam_search(model, row, beams, 8, merge_constants=True)
        assert_same_candidates(result, row, expected)
        assert len(set(formulas(result, row))) == found(result, row)
        copies += found(with_copies, row) - len(set(formulas(with_copies, row)))
    assert beams < 7 or copies > 0  # What the option is for does happen without it.


def test_merged_constants_keep_all_probability():
    # Of one token: <bos> c <eos> or <bos> y <eos>, so nothing is lost but <eos>'s rivals.
    model = TinyModel(4, batch=3, max_length=2, table=BIMODAL)
    merged, apart = search(model, beams=8, merge_constants=True), search(model, beams=8)
    for row in range(3):
        gain = with_modes(model.log_p(row, ((BOS, 0.0),)), BIMODAL)
        tops = [token for token in gain if token == Y or token >= BIMODAL.grid_start]
        assert found(merged, row) == len(tops) < found(apart, row) == 8
        for beam in range(len(tops)):
            (token, _), fed = written(merged, row, beam)
            last = model.log_p(row, ((BOS, 0.0), fed[0]))[EOS]
            np.testing.assert_allclose(
                merged.log_probability[row, beam], gain[token] + last, atol=1e-4
            )


def run_greedy(model, grammar):
    batch = len(model.context)
    decoding = Decoding(model.table, batch, model.max_length, grammar)
    cache = model.cache(batch, 1)
    run = jax.jit(lambda context: greedy(model.step_fn(context), cache, decoding))
    return jax.tree.map(np.asarray, run(model.context))


def test_one_beam_is_greedy():
    model = TinyModel(0, batch=64, max_length=10)
    one, plain = search(model, beams=1), run_greedy(model, grammar=True)
    for name in BeamResult._fields:
        np.testing.assert_allclose(getattr(one, name), getattr(plain, name), atol=1e-5)
    assert len({written(one, row, 0)[0] for row in range(64)}) >= 5


def test_greedy_takes_the_best_token_of_each_step():
    model = TinyModel(4, batch=6, max_length=8)
    result = run_greedy(model, grammar=True)
    for row in range(6):
        tokens = ()
        fed = ((BOS, 0.0),)
        while not tokens or tokens[-1] != EOS:
            log_p = model.log_p(row, fed)
            token = max(allowed(tokens, 8, TABLE, True), key=lambda t: log_p[t])
            tokens, fed = (*tokens, token), (*fed, soft(log_p, token, TABLE))
        assert written(result, row, 0)[0] == tokens


def test_without_grammar_one_beam_is_at_least_as_good_as_greedy():
    model = TinyModel(5, batch=16, max_length=8)
    one, plain = search(model, beams=1, grammar=False), run_greedy(model, grammar=False)
    assert (one.log_probability >= plain.log_probability - 1e-5).all()
    unfinished = (plain.tokens != EOS).all(-1)
    np.testing.assert_array_equal(np.isneginf(plain.log_probability), unfinished)


def test_a_batch_of_eight_is_eight_single_runs():
    model = TinyModel(6, batch=8, max_length=9)
    together, single = search(model, beams=5), jitted_search(model, 1, beams=5)
    for row in range(8):
        alone = single(model.context[row : row + 1])
        for name in BeamResult._fields:
            np.testing.assert_allclose(
                getattr(together, name)[row], getattr(alone, name)[0], atol=1e-5
            )
    assert len({written(together, row, 0)[0] for row in range(8)}) > 2


def test_scores_are_sorted_distinct_and_equal_teacher_forced_rescoring():
    model, beams = TinyModel(7, batch=4, max_length=12), 16
    result = search(model, beams=beams)
    assert (np.diff(result.log_probability, axis=1) <= 0).all()
    assert np.isfinite(result.log_probability).all()

    step, cache = jax.jit(model.step_fn()), model.cache(4, beams)
    own = own_positions(4, beams, 12)
    low, fraction = jnp.full((4, beams), BOS), jnp.zeros((4, beams))
    total = 0.0
    for position in range(12):
        logits, cache = step(cache, own, low, fraction, jnp.asarray(position))
        token = jnp.asarray(result.tokens[:, :, position])
        gained = jnp.take_along_axis(jax.nn.log_softmax(logits), token[..., None], -1)[..., 0]
        total += jnp.where(position < result.lengths, gained, 0.0)
        low = jnp.asarray(result.low[:, :, position])
        fraction = jnp.asarray(result.fraction[:, :, position])
    np.testing.assert_allclose(total, result.log_probability, atol=1e-4)

    for row in range(4):
        candidates = [written(result, row, beam) for beam in range(beams)]
        assert len({tokens for tokens, _ in candidates}) == beams
        for (tokens, fed), log_p in zip(candidates, result.log_probability[row], strict=True):
            np.testing.assert_allclose(score(model, row, tokens)[0], log_p, atol=1e-4)
            assert all(0 <= f <= 1 and (f == 0 or 6 <= low <= 7) for low, f in fed)


@pytest.mark.parametrize("max_length", [2, 3, 7, 12])
def test_every_candidate_is_a_complete_expression_within_the_limit(max_length):
    # A model in love with operators, which would never end by itself.
    model = TinyModel(8, batch=3, max_length=max_length)
    model.out *= 0.2
    model.context[:, 0], model.out[0, ADD], model.out[0, SIN] = 3.0, 4.0, 3.0
    result = search(model, beams=20)
    for row in range(3):
        assert found(result, row) == min(20, {2: 4, 3: 8}.get(max_length, 20))
        for beam in range(found(result, row)):
            tokens, _ = written(result, row, beam)
            slots = [open_slots_after(tokens[:n], TABLE) for n in range(len(tokens))]
            assert tokens[-1] == EOS and slots[-1] == 0 and all(slots[:-1])
            assert len(tokens) <= max_length
            assert (result.tokens[row, beam, len(tokens) :] == PAD).all()
            assert (result.low[row, beam, len(tokens) :] == PAD).all()
            assert (result.fraction[row, beam, len(tokens) :] == 0).all()


def test_without_grammar_candidates_may_be_malformed():
    model = TinyModel(9, batch=4, max_length=6)
    result = search(model, beams=10, grammar=False)
    tokens = [written(result, row, beam)[0] for row in range(4) for beam in range(10)]
    assert all(t[-1] == EOS and EOS not in t[:-1] and not {PAD, BOS} & set(t) for t in tokens)
    assert any(open_slots_after(t[:-1], TABLE) != 0 for t in tokens)


# A hand-drawn graph; an arrow has the probability of its token, and what is not drawn has none:
#
#   <bos> --0.6--> y --0.5--> <eos>          <bos> --0.4--> sin --0.9--> y' --1.0--> <eos>
#                  y --0.5--> y                             sin --0.1--> sin
#
# where y' is a y after any sin. Strings and probabilities, worked out by hand:
#   sin y      0.4 * 0.9       = 0.36, the best, though y is the better first token
#   y          0.6 * 0.5       = 0.3
#   y y        0.6 * 0.5 * 0.5 = 0.15, not an expression
#   sin sin y  0.4 * 0.1 * 0.9 = 0.036, and a tenth for each further sin
def markov_step(cache, ancestors, low, fraction, position):
    del fraction
    before = prefixes(cache["sins"], ancestors)[:, :, position - 1]
    after_sin = jnp.where(position > 0, before, 0) + (low == SIN)
    bos = jnp.zeros(9).at[jnp.asarray([Y, SIN])].set(jnp.asarray([0.6, 0.4]))
    y_first = jnp.zeros(9).at[jnp.asarray([EOS, Y])].set(jnp.asarray([0.5, 0.5]))
    y_after_sin = jnp.zeros(9).at[EOS].set(1.0)
    sin = jnp.zeros(9).at[jnp.asarray([Y, SIN])].set(jnp.asarray([0.9, 0.1]))
    after_y = jnp.where(after_sin[..., None] > 0, y_after_sin[None, None], y_first[None, None])
    probability = jnp.where(low[..., None] == Y, after_y, bos[None, None])
    probability = jnp.where(low[..., None] == SIN, sin[None, None], probability)
    return jnp.log(probability + 1e-30), {"sins": cache["sins"].at[position].set(after_sin)}


def search_markov(beams, max_length=6, grammar=True, step=markov_step):
    cache = {"sins": jnp.zeros((max_length, 1, beams), jnp.int32)}
    decoding = Decoding(TABLE, 1, max_length, grammar)
    return jax.jit(lambda cache: beam_search(step, cache, decoding, beams))(cache)


def candidates_of(result, above=1e-6):
    """{tokens without <eos>: probability}, in order of rank."""
    probability = np.exp(np.asarray(result.log_probability[0]))
    result = jax.tree.map(np.asarray, result)
    return {
        written(result, 0, i)[0][:-1]: pytest.approx(p, rel=1e-4)
        for i, p in enumerate(probability)
        if p > above
    }


def test_hand_drawn_graph():
    expected = {(SIN, Y): 0.36, (Y,): 0.3, (SIN, SIN, Y): 0.036, (SIN, SIN, SIN, Y): 0.0036}
    result = candidates_of(search_markov(beams=4))
    assert result == expected and list(result) == list(expected)
    # One beam follows the most probable first token and misses the best string.
    assert candidates_of(search_markov(beams=1)) == {(Y,): 0.3}


def test_hand_drawn_graph_without_grammar():
    expected = {(SIN, Y): 0.36, (Y,): 0.3, (Y, Y): 0.15, (Y, Y, Y): 0.075}
    result = candidates_of(search_markov(beams=4, grammar=False))
    assert result == expected and list(result) == list(expected)


def test_hand_drawn_graph_with_a_limit_that_shuts_out_long_strings():
    assert candidates_of(search_markov(beams=4, max_length=3)) == {(SIN, Y): 0.36, (Y,): 0.3}
    assert candidates_of(search_markov(beams=4, max_length=2)) == {(Y,): 0.3}


def test_the_search_ends_as_soon_as_nothing_better_can_come():
    # After <bos> sin y the two best are known (0.36, 0.3) and the best live beam has 0.04. A step
    # that was still taken would poison every score.
    def poisoned_from(last):
        def step(cache, ancestors, low, fraction, position):
            logits, cache = markov_step(cache, ancestors, low, fraction, position)
            return jnp.where(position >= last, jnp.nan, logits), cache

        return step

    result = search_markov(beams=2, max_length=30, step=poisoned_from(3))
    assert candidates_of(result) == {(SIN, Y): 0.36, (Y,): 0.3}
    assert np.isnan(search_markov(2, max_length=30, step=poisoned_from(2)).log_probability).any()


def test_gather_beams_moves_whole_rows_of_every_array():
    tree = {"a": jnp.arange(24.0).reshape(2, 3, 4), "b": jnp.arange(6).reshape(2, 3)}
    moved = gather_beams(tree, jnp.asarray([[2, 0, 0, 1], [1, 1, 2, 0]]))
    for row, kept in enumerate([[2, 0, 0, 1], [1, 1, 2, 0]]):
        np.testing.assert_array_equal(moved["a"][row], tree["a"][row, np.asarray(kept)])
        np.testing.assert_array_equal(moved["b"][row], tree["b"][row, np.asarray(kept)])


def test_lower_precision_logits_are_scored_in_float32():
    model = TinyModel(10, batch=1, max_length=4)
    step = model.step_fn()

    def half(cache, *arguments):
        logits, cache = step(cache, *arguments)
        return logits.astype(jnp.bfloat16), cache

    result = beam_search(half, model.cache(1, 3), Decoding(TABLE, batch=1, max_length=4), beams=3)
    assert result.log_probability.dtype == jnp.float32


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"beams": 0}, "at least 1"),
        ({"max_length": 1}, "at least 2"),
        ({"table": TokenTable((0, 0, 0, 0), BOS, EOS, PAD, 4, 0)}, "9 logits, not 4"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(change, message):
    model = TinyModel(0, batch=2, max_length=5)
    settings = dict(table=TABLE, batch=2, max_length=5) | change
    beams = settings.pop("beams", 3)
    with pytest.raises(ValueError, match=message):
        beam_search(model.step_fn(), model.cache(2, 3), Decoding(**settings), beams)
