"""Hugging Face's `generate` with a beam, as the other side of benchmarks.decoding.

    TORCH_PYTHON benchmarks/torch_generate.py FOLDER

A BART of the sizes in FOLDER/job.json, with random parameters: the same layers, heads,
widths and vocabulary, an encoder of as many positions, and as many tokens to write, with
<eos> forbidden so that no search ends before that. It needs PyTorch and transformers,
nothing of nsode_jax. Each line of stdin is answered with the seconds of one search.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import torch
import transformers
from transformers import BartConfig, BartForConditionalGeneration, GenerationConfig

PAD, BOS, EOS = 0, 1, 2


def main() -> None:
    job = json.loads((Path(sys.argv[1]) / "job.json").read_text())
    torch.set_num_threads(job["threads"])
    torch.manual_seed(0)
    transformers.logging.set_verbosity_error()
    sizes, steps = job["model"], job["steps"]
    patches = sizes["num_points"] // sizes["patch_size"]
    config = BartConfig(
        vocab_size=sizes["vocabulary_size"],
        max_position_embeddings=max(patches, steps + 1),
        d_model=sizes["width"],
        encoder_layers=sizes["layers"],
        decoder_layers=sizes["layers"],
        encoder_attention_heads=sizes["heads"],
        decoder_attention_heads=sizes["heads"],
        encoder_ffn_dim=sizes["hidden_width"],
        decoder_ffn_dim=sizes["hidden_width"],
        dropout=0.0,
        pad_token_id=PAD,
        bos_token_id=BOS,
        eos_token_id=EOS,
        decoder_start_token_id=BOS,
        forced_eos_token_id=None,
    )
    model = BartForConditionalGeneration(config).eval()
    settings = GenerationConfig(
        num_beams=job["beams"],
        num_return_sequences=job["beams"],
        do_sample=False,
        length_penalty=0.0,
        min_new_tokens=steps,
        max_new_tokens=steps,
        pad_token_id=PAD,
        bos_token_id=BOS,
        eos_token_id=EOS,
        decoder_start_token_id=BOS,
    )
    inputs = torch.randint(EOS + 1, sizes["vocabulary_size"], (job["batch"], patches))
    mask = torch.ones_like(inputs)

    taken = []
    hook = model.model.decoder.register_forward_hook(lambda *_: taken.append(1))
    written = model.generate(inputs, attention_mask=mask, generation_config=settings)
    hook.remove()
    facts = {
        "version": f"transformers {transformers.__version__}, PyTorch {torch.__version__}",
        "parameters": sum(p.numel() for p in model.parameters()),
        "steps": len(taken),
        "candidates": len(written),
    }
    print(json.dumps(facts), flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        model.generate(inputs, attention_mask=mask, generation_config=settings)
        print(json.dumps({"seconds": time.perf_counter() - start}), flush=True)


if __name__ == "__main__":
    main()
