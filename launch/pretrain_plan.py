"""Measures what this machine can do and writes the settings of a run of limited time.

    python launch/pretrain_plan.py --config configs/base.py --workdir RUN --seconds 400

The batch is the smallest with which the device outruns the generator of examples:
small batches learn more from a sample. The number of steps, at which the learning
rate reaches 0, is what the slower of the two manages in the time that training has.
If that is off by 15% nothing is lost: a cosine is then at 5% of its peak, or the run
ends a little early. RUN/plan.flags gets the overrides for `nsode_jax.train`, one a
line, and RUN/plan.json the measurements.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_STARTED = time.monotonic()

from absl import app, flags  # noqa: E402
from ml_collections import config_flags  # noqa: E402

_CONFIG = config_flags.DEFINE_config_file("config", None, "A file such as configs/base.py.")
_WORKDIR = flags.DEFINE_string("workdir", None, "Folder for plan.flags and plan.json.")
_SECONDS = flags.DEFINE_float("seconds", None, "Of planning and training together.")
_BATCHES = flags.DEFINE_list("batch_sizes", ["256", "512", "1024", "2048"], "To choose from.")
_LIMIT = flags.DEFINE_float("limit", 40.0, "Seconds after which no larger batch is tried.")
_DRAW = flags.DEFINE_float("draw_seconds", 5.0, "Over which the generator is measured.")
_MEASURED = flags.DEFINE_string("measured", "", "File that keeps the rates for another run.")
_SEARCH = flags.DEFINE_bool("search_weights", True, "Go on from shipped weights of this model.")
_MAX_STEPS = flags.DEFINE_integer("max_steps", 0, "No more steps than that; 0 for no limit.")

_HEADROOM = 1.25
"""The device is fast enough if it outruns the generator by this factor."""
_WAITING = 24
"""Batches per worker that may have been drawn ahead, before the clock starts."""
_FINISH_SECONDS = 20.0
"""Of the last validation, checkpoint and export, and of leaving Python."""
_VALIDATION_EXAMPLES = 4096
_PARTS = 6
"""Validations and saves of a run."""


def main(argv: list[str]) -> None:
    """Measures, chooses and writes."""
    del argv
    import jax

    from nsode_jax.config import from_config_dict

    assert _WORKDIR.value is not None and _SECONDS.value is not None  # They are required.
    workdir = Path(_WORKDIR.value)
    workdir.mkdir(parents=True, exist_ok=True)
    config = from_config_dict(_CONFIG.value)
    device = jax.devices()[0]
    start_seconds = time.monotonic() - _STARTED
    situation = {
        "device": device.device_kind,
        "jax": jax.__version__,
        "model": dataclasses.asdict(config.model),
        "batch_sizes": [int(size) for size in _BATCHES.value],
        "generator_workers": config.training.data_workers,
    }
    rates = _measured_before(situation) or _measure(config, situation["batch_sizes"])
    drawn = rates["generator_samples_per_second"]
    best = choose(rates["batches"], drawn)

    # What is left, less what the training process needs before and after its loop.
    left = _SECONDS.value - (time.monotonic() - _STARTED) - start_seconds - _FINISH_SECONDS
    settings = schedule(config, best, drawn, max(left, 1.0), _MAX_STEPS.value)
    init_from = newest_weights(config) if _SEARCH.value else ""
    if init_from and not config.training.init_from:
        settings["init_from"] = init_from
    lines = [f"--config.training.{name}={value}" for name, value in settings.items()]
    (workdir / "plan.flags").write_text("\n".join(lines) + "\n")
    plan = {
        "situation": situation,
        "rates": rates,
        "start_seconds": round(start_seconds, 1),
        "plan_seconds": round(time.monotonic() - _STARTED, 1),
        "settings": settings,
    }
    text = json.dumps(plan)
    (workdir / "plan.json").write_text(text + "\n")
    if _MEASURED.value:
        Path(_MEASURED.value).write_text(text + "\n")
    print(text, flush=True)


def _measured_before(situation: dict[str, Any]) -> dict[str, Any] | None:
    """The rates that an earlier plan has measured, if it was in the same situation."""
    try:
        plan = json.loads(Path(_MEASURED.value).read_text())
    except (OSError, json.JSONDecodeError):
        return None
    return plan["rates"] if plan.get("situation") == situation else None


def _measure(config: Any, sizes: list[int]) -> dict[str, Any]:
    """Samples per second of the generator, and of the device for one batch size or more."""
    examples = _examples(config, sizes[0])
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        # The workers start and compile while the device's program is compiled.
        first = thread.submit(next, examples)
        measured = [_measure_steps(config, sizes[0])]
        first.result()
    drawn = _draw_rate(examples, sizes[0], config.training.data_workers, _DRAW.value)
    examples.close()
    for size in sizes[1:]:
        compile_seconds = measured[-1]["compile_seconds"]
        late = time.monotonic() - _STARTED + compile_seconds > _LIMIT.value
        if late or measured[-1]["samples_per_second"] >= _HEADROOM * drawn:
            break
        measured.append(_measure_steps(config, size))
    return {"generator_samples_per_second": round(drawn), "batches": measured}


def _examples(config: Any, batch_size: int) -> Any:
    from nsode_jax.data.online import OnlineBatches, OnlineConfig
    from nsode_jax.training.inputs import ONLINE

    if not config.training.dataset.startswith(ONLINE):
        raise app.UsageError(f"a plan needs a data set {ONLINE}..., got {config.training.dataset}")
    return OnlineBatches(
        OnlineConfig(
            config.training.dataset.removeprefix(ONLINE),
            config.generation,
            config.corruption,
            config.model.example_format,
            "train",
            batch_size,
            config.training.seed + 1,  # Not the examples of the run.
        ),
        config.training.data_workers,
    )


def _measure_steps(config: Any, batch_size: int, seconds: float = 1.5) -> dict[str, float]:
    """Samples per second of the training step, with the batch sent from the host."""
    import jax
    import numpy as np

    from nsode_jax.data.vocabulary import Vocabulary
    from nsode_jax.modeling.transformer import Model
    from nsode_jax.training.parallel import on_each_device, replicate, shard
    from nsode_jax.training.step import init_state, make_train_step

    c = config.model
    rng = np.random.default_rng(0)
    # Random bits: a device is faster on zeros.
    batch = {
        "words": rng.integers(0, 2**32, (batch_size, c.num_points, c.channels, 2), dtype=np.uint32),
        "mask": np.ones((batch_size, c.num_points), bool),
        "low": rng.integers(3, c.vocabulary_size - 1, (batch_size, c.max_length), dtype=np.int32),
        "fraction": rng.random((batch_size, c.max_length), dtype=np.float32),
    }
    model, wish = Model(c), on_each_device(0)
    step = make_train_step(model, config.training, Vocabulary())
    state = replicate(init_state(model, config.training))
    begin = time.monotonic()
    state, _ = step(state, shard(batch), wish)
    jax.block_until_ready(state)
    compiled = time.monotonic()
    count = 0
    while time.monotonic() - compiled < seconds:
        for _ in range(4):
            state, _ = step(state, shard(batch), wish)
        jax.block_until_ready(state)
        count += 4
    rate = count * batch_size / (time.monotonic() - compiled)
    return {
        "batch_size": batch_size,
        "samples_per_second": round(rate),
        "compile_seconds": round(compiled - begin, 1),
    }


def _draw_rate(examples: Iterator[Any], batch_size: int, workers: int, seconds: float) -> float:
    """Samples per second that the generator sustains."""
    for _ in range(_WAITING * workers):
        next(examples)
    begin, count = time.monotonic(), 0
    while count < 8 or time.monotonic() - begin < seconds:
        next(examples)
        count += 1
    return count * batch_size / (time.monotonic() - begin)


def choose(measured: list[dict[str, float]], drawn: float) -> dict[str, float]:
    """The smallest batch with which the device outruns the generator, else the fastest."""
    for row in measured:
        if row["samples_per_second"] >= _HEADROOM * drawn:
            return row
    return max(measured, key=lambda row: row["samples_per_second"])


def schedule(
    config: Any, best: dict[str, float], drawn: float, seconds: float, max_steps: int
) -> dict[str, Any]:
    """Settings of a training loop that has so many seconds.

    Args:
      config: of the run.
      best: a row of `_measure_steps`.
      drawn: samples per second of the generator.
      seconds: that the loop has, compilation included.
      max_steps: 0 for no limit.
    """
    batch_size = int(best["batch_size"])
    rate = min(best["samples_per_second"], drawn)
    steps = int(max(seconds - best["compile_seconds"], 1.0) * rate / batch_size)
    steps = max(min(steps, max_steps or steps), 1)
    part = max(steps // _PARTS, 1)
    share = config.training.decay_steps / config.training.steps
    return {
        "batch_size": batch_size,
        "steps": steps,
        "warmup_steps": max(min(config.training.warmup_steps, steps // 20), 1),
        "decay_steps": round(share * steps),
        "max_seconds": round(seconds, 1),
        "validate_every": part,
        "validation_batches": max(_VALIDATION_EXAMPLES // batch_size, 1) if not max_steps else 1,
        "save_every": part,
        "log_every": max(min(config.training.log_every, steps // 10), 1),
    }


def newest_weights(config: Any) -> str:
    """Name of the shipped weights of this very model that have seen most, or ''."""
    from nsode_jax.data.vocabulary import Vocabulary
    from nsode_jax.modeling.pretrained import SHIPPED_WEIGHTS
    from nsode_jax.training.run_config import pretrained_params

    found, vocabulary = [], Vocabulary.of(config.generation.system)
    for path in sorted(SHIPPED_WEIGHTS.glob("*/model.json")):
        try:
            _, card = pretrained_params(path.parent.name, config.model, vocabulary)
        except ValueError:  # Of another model.
            continue
        found.append((card.get("samples_seen", 0), path.parent.name))
    return max(found)[1] if found else ""


if __name__ == "__main__":
    flags.mark_flags_as_required(["config", "workdir", "seconds"])
    app.run(main)
