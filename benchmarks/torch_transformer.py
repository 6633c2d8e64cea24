"""The network of nsode_jax in PyTorch, as the other side of benchmarks/training.py.

    TORCH_PYTHON benchmarks/torch_transformer.py FOLDER torch | compiled | bigbird

`torch` and `compiled` are the layers of `torch.nn` with their fused attention, the latter
under `torch.compile`. `bigbird` is Hugging Face's BigBird with full attention, which the
paper used; it is always post-norm and has its own gelu and no fused attention. All start
from the parameters in FOLDER, so that with post-norm all three and nsode_jax have the same
loss and gradient. It needs NumPy, PyTorch and, for `bigbird`, transformers, nothing of
nsode_jax.
"""

from __future__ import annotations

import functools
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

EPSILON = 1e-6
"""Of layer normalization, Flax's default."""

Arrays = dict[str, np.ndarray]
"""Parameters of nsode_jax by their path, such as `encoder/0/up/kernel`."""


def read_bits(words: Tensor, patches: int) -> Tensor:
    """Words [batch, points, channels, 2] as bits, high first: [batch, patches, inputs]."""
    shifts = torch.arange(31, -1, -1, dtype=words.dtype)
    bits = (words[..., None] >> shifts) & 1
    return bits.reshape(words.shape[0], patches, -1).float()


def two_hot_loss(logits: Tensor, low: Tensor, fraction: Tensor, pad: int) -> Tensor:
    """Cross-entropy less the targets' entropy, mean over what is not padding."""
    log_p = F.log_softmax(logits, dim=-1)
    high = (low + 1).clamp(max=logits.shape[-1] - 1)

    def pick(index: Tensor) -> Tensor:
        return log_p.gather(-1, index[..., None])[..., 0]

    cross_entropy = -(1 - fraction) * pick(low) - fraction * pick(high)
    entropy = -torch.xlogy(1 - fraction, 1 - fraction) - torch.xlogy(fraction, fraction)
    written = (low != pad).float()
    return ((cross_entropy - entropy) * written).sum() / written.sum()


# --- parameters of nsode_jax, copied into modules --------------------------------------


def copy_linear(module: nn.Linear, arrays: Arrays, path: str) -> None:
    module.weight.copy_(torch.from_numpy(arrays[f"{path}/kernel"].T))
    module.bias.copy_(torch.from_numpy(arrays[f"{path}/bias"]))


def copy_norm(module: nn.LayerNorm, arrays: Arrays, path: str) -> None:
    module.weight.copy_(torch.from_numpy(arrays[f"{path}/scale"]))
    module.bias.copy_(torch.from_numpy(arrays[f"{path}/bias"]))


def copy_embedding(module: nn.Embedding, arrays: Arrays, path: str) -> None:
    module.weight.copy_(torch.from_numpy(arrays[f"{path}/embedding"]))


def copy_attention(module: nn.MultiheadAttention, arrays: Arrays, path: str) -> None:
    parts = [f"{path}/{name}" for name in ("query", "key", "value")]
    kernels = np.concatenate([arrays[f"{part}/kernel"].T for part in parts])
    module.in_proj_weight.copy_(torch.from_numpy(kernels))
    biases = np.concatenate([arrays[f"{part}/bias"] for part in parts])
    module.in_proj_bias.copy_(torch.from_numpy(biases))
    copy_linear(module.out_proj, arrays, f"{path}/out")


# --- networks ----------------------------------------------------------------------------


class EncoderDecoder(nn.Module):
    """What both networks share: the ends, which are no part of a library."""

    def __init__(self, sizes: SimpleNamespace):
        super().__init__()
        self.patches = sizes.num_points // sizes.patch_size
        channels = 1 + sizes.num_states * (2 if sizes.derivative_channel else 1)
        self.patch_projection = nn.Linear(64 * sizes.patch_size * channels, sizes.width)
        self.output = nn.Linear(sizes.width, sizes.vocabulary_size)

    def copy(self, arrays: Arrays) -> None:
        copy_linear(self.patch_projection, arrays, "patch_projection")
        copy_linear(self.output, arrays, "output")

    @staticmethod
    def soft_embed(table: Tensor, low: Tensor, fraction: Tensor) -> Tensor:
        """(1 - fraction) E[low] + fraction E[low + 1]."""
        high = (low + 1).clamp(max=table.shape[0] - 1)
        upper = fraction[..., None]
        return (1 - upper) * F.embedding(low, table) + upper * F.embedding(high, table)

    def observed(self, mask: Tensor) -> Tensor:
        """Which patches hold an observed point, [batch, patches]."""
        return mask.reshape(mask.shape[0], self.patches, -1).any(-1)


class TorchTransformer(EncoderDecoder):
    """The layers of `torch.nn`."""

    def __init__(self, sizes: SimpleNamespace):
        super().__init__(sizes)
        self.is_pre_norm = sizes.norm == "pre"
        layer = {
            "d_model": sizes.width,
            "nhead": sizes.heads,
            "dim_feedforward": sizes.hidden_width,
            "dropout": 0.0,
            "activation": functools.partial(F.gelu, approximate="tanh"),  # As Flax's gelu.
            "layer_norm_eps": EPSILON,
            "batch_first": True,
            "norm_first": self.is_pre_norm,
        }
        self.encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(**layer), sizes.layers, enable_nested_tensor=False
        )
        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(**layer), sizes.layers)
        self.encoder_positions = nn.Embedding(self.patches, sizes.width)
        self.decoder_positions = nn.Embedding(sizes.max_length, sizes.width)
        self.token_embedding = nn.Embedding(sizes.vocabulary_size, sizes.width)
        self.encoder_norm = nn.LayerNorm(sizes.width, eps=EPSILON)
        self.decoder_norm = nn.LayerNorm(sizes.width, eps=EPSILON)

    def copy(self, arrays: Arrays) -> None:
        super().copy(arrays)
        for name in ("encoder_positions", "decoder_positions", "token_embedding"):
            copy_embedding(getattr(self, name), arrays, name)
        for name in ("encoder", "decoder"):
            copy_norm(getattr(self, f"{name}_norm"), arrays, f"{name}_norm")
            for i, layer in enumerate(getattr(self, name).layers):
                norms = ["self_norm", "feed_forward_norm"]
                copy_attention(layer.self_attn, arrays, f"{name}/{i}/self_attention")
                if name == "decoder":
                    norms.insert(1, "cross_norm")
                    copy_attention(layer.multihead_attn, arrays, f"{name}/{i}/cross_attention")
                for j, norm in enumerate(norms, 1):
                    copy_norm(getattr(layer, f"norm{j}"), arrays, f"{name}/{i}/{norm}")
                copy_linear(layer.linear1, arrays, f"{name}/{i}/up")
                copy_linear(layer.linear2, arrays, f"{name}/{i}/down")

    def forward(self, words: Tensor, mask: Tensor, low: Tensor, fraction: Tensor) -> Tensor:
        hidden = ~self.observed(mask)
        x = self.patch_projection(read_bits(words, self.patches)) + self.encoder_positions.weight
        x = x if self.is_pre_norm else self.encoder_norm(x)
        memory = self.encoder(x, src_key_padding_mask=hidden)
        memory = self.encoder_norm(memory) if self.is_pre_norm else memory

        x = self.soft_embed(self.token_embedding.weight, low, fraction)
        x = x + self.decoder_positions.weight
        x = x if self.is_pre_norm else self.decoder_norm(x)
        x = self.decoder(
            x,
            memory,
            tgt_mask=nn.Transformer.generate_square_subsequent_mask(low.shape[1]),
            tgt_is_causal=True,
            memory_key_padding_mask=hidden,
        )
        return self.output(self.decoder_norm(x) if self.is_pre_norm else x)


class BigBird(EncoderDecoder):
    """Two BigBirds of Hugging Face with full attention; soft embeddings come from outside."""

    def __init__(self, sizes: SimpleNamespace):
        super().__init__(sizes)
        from transformers import BigBirdConfig, BigBirdModel

        def bird(tokens: int, positions: int, **kind) -> BigBirdModel:
            config = BigBirdConfig(
                attention_type="original_full",
                vocab_size=tokens,
                max_position_embeddings=positions,
                type_vocab_size=1,
                hidden_size=sizes.width,
                num_hidden_layers=sizes.layers,
                num_attention_heads=sizes.heads,
                intermediate_size=sizes.hidden_width,
                hidden_dropout_prob=0.0,
                attention_probs_dropout_prob=0.0,
                layer_norm_eps=EPSILON,
                use_cache=False,
                **kind,
            )
            return BigBirdModel(config, add_pooling_layer=False)

        self.encoder = bird(1, self.patches)
        self.decoder = bird(
            sizes.vocabulary_size, sizes.max_length, is_decoder=True, add_cross_attention=True
        )
        # Of no use here: words of an encoder of numbers, and types of tokens.
        self.encoder.embeddings.word_embeddings.requires_grad_(False)
        for side in (self.encoder, self.decoder):
            side.embeddings.token_type_embeddings.requires_grad_(False)
        # transformers 5.24 gives the encoder's output to the decoder's self-attention too,
        # which then attends to that, and gives the cross-attention no mask.
        for layer in self.decoder.encoder.layer:
            layer.attention.register_forward_pre_hook(self._no_encoder, with_kwargs=True)
            layer.crossattention.register_forward_pre_hook(self._masked, with_kwargs=True)

    @staticmethod
    def _no_encoder(_, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        return args, {**kwargs, "encoder_hidden_states": None, "encoder_attention_mask": None}

    @staticmethod
    def _masked(_, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        return args, {**kwargs, "encoder_attention_mask": kwargs["attention_mask"]}

    def copy(self, arrays: Arrays) -> None:
        super().copy(arrays)
        copy_embedding(self.decoder.embeddings.word_embeddings, arrays, "token_embedding")
        for name in ("encoder", "decoder"):
            bird = getattr(self, name)
            copy_embedding(bird.embeddings.position_embeddings, arrays, f"{name}_positions")
            bird.embeddings.token_type_embeddings.weight.zero_()
            copy_norm(bird.embeddings.LayerNorm, arrays, f"{name}_norm")
            for i, layer in enumerate(bird.encoder.layer):
                attentions = [("self", layer.attention)]
                if name == "decoder":
                    attentions.append(("cross", layer.crossattention))
                for kind, module in attentions:
                    for part in ("query", "key", "value"):
                        path = f"{name}/{i}/{kind}_attention/{part}"
                        copy_linear(getattr(module.self, part), arrays, path)
                    dense = module.output.dense
                    copy_linear(dense, arrays, f"{name}/{i}/{kind}_attention/out")
                    copy_norm(module.output.LayerNorm, arrays, f"{name}/{i}/{kind}_norm")
                copy_linear(layer.intermediate.dense, arrays, f"{name}/{i}/up")
                copy_linear(layer.output.dense, arrays, f"{name}/{i}/down")
                copy_norm(layer.output.LayerNorm, arrays, f"{name}/{i}/feed_forward_norm")

    def forward(self, words: Tensor, mask: Tensor, low: Tensor, fraction: Tensor) -> Tensor:
        observed = self.observed(mask)
        x = self.patch_projection(read_bits(words, self.patches))
        memory = self.encoder(inputs_embeds=x, attention_mask=observed).last_hidden_state
        table = self.decoder.embeddings.word_embeddings.weight
        x = self.decoder(
            inputs_embeds=self.soft_embed(table, low, fraction),
            encoder_hidden_states=memory,
            encoder_attention_mask=observed,
        ).last_hidden_state
        return self.output(x)


# --- one step --------------------------------------------------------------------------


def make_step(model: nn.Module, batch: dict[str, Tensor], job: dict) -> Callable[[], dict]:
    """One optimizer step on the batch; returns the loss and the gradient's norm before it."""
    settings, pad = job["training"], job["pad"]
    low, fraction = batch["low"], batch["fraction"]
    inputs = F.pad(low[:, :-1], (1, 0), value=job["bos"]), F.pad(fraction[:, :-1], (1, 0))
    # `fused` is the fastest of PyTorch's three implementations.
    optimizer = torch.optim.AdamW(
        [p for p in model.parameters() if p.requires_grad],
        lr=settings["learning_rate"],
        betas=(0.9, settings["adam_b2"]),
        weight_decay=settings["weight_decay"],
        fused=True,
    )

    def step() -> dict:
        optimizer.zero_grad()
        logits = model(batch["words"], batch["mask"], *inputs)
        loss = two_hot_loss(logits, low, fraction, pad)
        loss.backward()
        parameters = optimizer.param_groups[0]["params"]
        if settings["clip_norm"]:
            norm = nn.utils.clip_grad_norm_(parameters, settings["clip_norm"])
        else:
            norm = nn.utils.get_total_norm([p.grad for p in parameters])
        optimizer.step()
        return {"loss": loss.item(), "gradient_norm": norm.item()}

    return step


@torch.no_grad()
def product_rate() -> float:
    """Operations per second of large matrix products, measured as `speed.peak_flops` does."""
    size = 1024
    matrix = torch.full((size, size), 1 / size)
    matrix @ matrix
    products, start = 0, time.perf_counter()
    while (seconds := time.perf_counter() - start) < 0.2:
        for _ in range(4):
            matrix @ matrix
        products += 4
    return products * 2.0 * size**3 / seconds


def main() -> None:
    folder, kind = Path(sys.argv[1]), sys.argv[2]
    job = json.loads((folder / "job.json").read_text())
    torch.set_num_threads(job["threads"])
    with np.load(folder / "params.npz") as file:
        arrays = dict(file)
    with np.load(folder / "batch.npz") as file:
        batch = {name: torch.from_numpy(array) for name, array in file.items()}
    # Few operations take unsigned words, and indices are to be int64.
    batch["words"], batch["low"] = batch["words"].view(torch.int32), batch["low"].long()

    version = f"PyTorch {torch.__version__.partition('+')[0]}"
    if kind == "bigbird":
        import transformers

        version = f"transformers {transformers.__version__}, {version}"
    model = (BigBird if kind == "bigbird" else TorchTransformer)(SimpleNamespace(**job["model"]))
    with torch.no_grad():
        model.copy(arrays)
    model.train()
    parameters = sum(p.numel() for p in model.parameters() if p.requires_grad)
    step = make_step(torch.compile(model) if kind == "compiled" else model, batch, job)
    del arrays

    print(json.dumps({"version": version, "parameters": parameters}), flush=True)
    for _ in sys.stdin:
        before, start = product_rate(), time.perf_counter()
        numbers = step()
        seconds = time.perf_counter() - start
        answer = {"seconds": seconds, "rates": [before, product_rate()], **numbers}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
