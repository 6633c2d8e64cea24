"""Attention by head against the definition in NumPy, and against JAX's own with gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nsode_jax.modeling import attention
from nsode_jax.modeling.config import ModelConfig
from nsode_jax.modeling.transformer import Model

BATCH, QUERIES, KEYS, HEADS, HEAD = 2, 5, 7, 3, 4


def operands():
    rng = np.random.default_rng(0)

    def normal(length):
        return rng.standard_normal((BATCH, length, HEADS, HEAD)).astype(np.float32)

    return normal(QUERIES), normal(KEYS), normal(KEYS)


MASKS = {
    "keys": np.arange(KEYS)[None, None, None] < np.array([3, 7]).reshape(BATCH, 1, 1, 1),
    "queries and keys": np.tril(np.ones((QUERIES, KEYS), bool))[None, None],
}


def by_definition(query, keys, values, mask):
    result = np.zeros(query.shape)
    mask = np.broadcast_to(mask, (BATCH, 1, QUERIES, KEYS))
    for batch, i, head in np.ndindex(BATCH, QUERIES, HEADS):
        seen = mask[batch, 0, i]
        scores = keys[batch, seen, head] @ query[batch, i, head] / np.sqrt(HEAD)
        weights = np.exp(scores) / np.exp(scores).sum()
        result[batch, i, head] = weights @ values[batch, seen, head]
    return result


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("function", [attention.attention, attention.attention_by_head])
def test_it_is_the_definition(function, mask):
    expected = by_definition(*map(np.float64, operands()), mask)
    np.testing.assert_allclose(jax.jit(function)(*operands(), mask), expected, atol=1e-6)


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_gradients_by_head_are_those_of_all_heads(mask):
    gradient = np.random.default_rng(1).standard_normal((BATCH, QUERIES, HEADS, HEAD))
    gradient = gradient.astype(np.float32)

    def pulled_back(function):
        return jax.jit(lambda *x: jax.vjp(lambda *x: function(*x, mask), *x)[1](gradient))(
            *operands()
        )

    expected = pulled_back(plain)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6),
        pulled_back(attention.attention_by_head),
        expected,
    )


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_by_head_is_as_exact_in_bfloat16_as_all_heads(mask):
    rng = np.random.default_rng(2)
    rounded = [jnp.asarray(part, jnp.bfloat16) for part in operands()]
    gradient = jnp.asarray(rng.standard_normal((BATCH, QUERIES, HEADS, HEAD)), jnp.bfloat16)

    def of(function, dtype):
        out, back = jax.vjp(lambda *x: function(*x, mask), *(x.astype(dtype) for x in rounded))
        assert out.dtype == dtype
        found = out, *back(gradient.astype(dtype))
        return [np.asarray(part, np.float32) for part in found]

    exact = of(plain, jnp.float32)
    errors = [
        [np.linalg.norm(a - b) for a, b in zip(of(function, jnp.bfloat16), exact, strict=True)]
        for function in (attention.attention_by_head, plain)
    ]
    assert np.all(np.array(errors[0]) <= 1.2 * np.array(errors[1])), errors


def plain(query, keys, values, mask):
    return jax.nn.dot_product_attention(query, keys, values, mask=mask)


def test_large_scores_go_by_head_on_a_cpu(monkeypatch):
    if jax.default_backend() != "cpu":
        pytest.skip("accelerators take all heads at once")
    config = ModelConfig(
        num_points=8, max_length=8, layers=1, heads=2, width=8, hidden_width=8, norm="post"
    )
    model = Model(config)
    words = np.random.default_rng(0).integers(0, 2**32, (2, 8, 2, 2), dtype=np.uint32)
    arguments = model.init(0), words, np.arange(8) < np.array([[4], [8]])
    all_heads = jax.jit(model.encode)(*arguments)
    monkeypatch.setattr(attention, "_CACHED_SCORES", 1)
    lowered = jax.jit(lambda *x: model.encode(*x)).lower(*arguments)
    assert "while" in lowered.as_text()
    by_head = lowered.compile()(*arguments)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), by_head, all_heads)


@pytest.mark.parametrize("position", [0, 2, 5])
@pytest.mark.parametrize(
    "function",
    [attention.cached_attention, attention._all_positions, attention._by_position],
    ids=["cached_attention", "all positions", "by position"],
)
def test_cached_attention_follows_the_sources(function, position):
    length, rows = 6, 5
    rng = np.random.default_rng(position)
    query = rng.standard_normal((rows, HEADS, HEAD)).astype(np.float32)
    keys, values = rng.standard_normal((2, length, rows, HEADS * HEAD)).astype(np.float32)
    source = rng.integers(0, rows, (length, rows))
    keys[position + 1 :] = values[position + 1 :] = np.nan  # Not written yet.

    expected = np.zeros(query.shape)
    for row, head in np.ndindex(rows, HEADS):
        dims = slice(head * HEAD, (head + 1) * HEAD)
        at = np.arange(position + 1)
        of = source[at, row]
        scores = keys[at, of, dims] @ query[row, head] / np.sqrt(HEAD)
        expected[row, head] = np.exp(scores) / np.exp(scores).sum() @ values[at, of, dims]
    attended = jax.jit(function)(query, keys, values, source, position)
    np.testing.assert_allclose(attended, expected, atol=1e-5)
