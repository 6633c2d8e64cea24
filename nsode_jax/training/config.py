"""The settings of a training run, and with those of its data and its model all of them."""

from __future__ import annotations

import dataclasses
import math

from nsode_jax.data.generate import GenerationConfig
from nsode_jax.dynamics.corrupt import CorruptionConfig
from nsode_jax.modeling.config import ModelConfig
from nsode_jax.system.settings import require_at_least_1


@dataclasses.dataclass(frozen=True)
class TrainingConfig:
    """Training. The defaults are the paper's (appendix B.3) where it gives one.

    Attributes:
      dataset: name of a TFDS data set, or `online:` and the name or the file of a
        skeleton bank, for examples that are drawn as training goes; `online:` alone
        draws every skeleton from the prior.
      data_dir: folder of the TFDS data set.
      data_workers: processes that draw from a bank; threads that read a data set.
      steps: optimizer steps.
      batch_size: examples per step, over all devices of all processes.
      accumulate: parts in which a device works through its share of a batch, one
        after the other, to save memory; the step is the same.
      length_multiple: batches are made of targets of like length and cut to a multiple
        of so many positions, each a shape that is compiled once. As the loss is the mean
        over the tokens of a batch, those of short targets then count for more. With 0, or
        more than one process, batches are mixed and padded to the model's `max_length`.
      optimizer: `adamw`, or `muon`: that for the matrices of the blocks and of the patch
        projection, AdamW for the rest.
      learning_rate: its peak, reached after the warm-up.
      warmup_steps: steps over which the learning rate rises linearly from 0.
      schedule: `constant` after the warm-up, or `cosine` decay to 0 at `steps`.
      decay_steps: of a constant schedule the last steps, over which the rate falls to 0
        in a line.
      clip_norm: gradients with a larger norm are scaled down to it; 0 leaves them.
      adam_b2: second-moment decay of AdamW.
      weight_decay: of AdamW and Muon, times the learning rate.
      ema_decay: of the moving average of the weights that is validated and
        exported; 0 uses the weights themselves.
      max_gradient_norm: steps with a larger one are skipped; 0 skips only those
        that are not finite.
      max_skipped: so many skipped steps in a row end the run.
      log_every: steps between two lines of metrics.
      validate_every: steps between two validations.
      validation_batches: batches of each; 0 does not validate.
      patience: validations in a row that bring no improvement and end the run; 0
        never does.
      save_every: steps between two checkpoints; one is also saved with every best
        validation.
      keep_last: latest checkpoints that are kept, besides the best one.
      max_seconds: end cleanly so long after the start, compilation included; 0 means no
        limit.
      init_from: exported weights that a fresh run starts from: a folder, or the
        name of shipped ones. Empty: random parameters.
      branch_from: workdir of another run, whose newest checkpoint a fresh run goes on
        from, step, momenta and position in the data included.
      seed: of the parameters and of the order of the data.
    """

    dataset: str = "nsode/paper"
    data_dir: str = "~/nsode_data"
    data_workers: int = 1
    steps: int = 1_000_000
    batch_size: int = 600
    accumulate: int = 1
    length_multiple: int = 0
    optimizer: str = "adamw"
    learning_rate: float = 1e-4
    warmup_steps: int = 10_000
    schedule: str = "constant"
    decay_steps: int = 0
    clip_norm: float = 0.0
    adam_b2: float = 0.999
    weight_decay: float = 0.0
    ema_decay: float = 0.0
    max_gradient_norm: float = 0.0
    max_skipped: int = 10
    log_every: int = 100
    validate_every: int = 2000
    validation_batches: int = 20
    patience: int = 0
    save_every: int = 2000
    keep_last: int = 2
    max_seconds: float = 0.0
    init_from: str = ""
    branch_from: str = ""
    seed: int = 0

    def __post_init__(self):
        if self.schedule not in ("constant", "cosine"):
            raise ValueError(f"schedule must be 'constant' or 'cosine', got {self.schedule!r}")
        if self.optimizer not in ("adamw", "muon"):
            raise ValueError(f"optimizer must be 'adamw' or 'muon', got {self.optimizer!r}")
        if self.decay_steps and self.schedule != "constant":
            raise ValueError(f"decay_steps end a constant schedule, not a {self.schedule} one")
        if self.init_from and self.branch_from:
            raise ValueError(
                "a run starts from weights, init_from, or a run, branch_from: not both"
            )
        for name in ("ema_decay", "adam_b2"):
            value = getattr(self, name)
            if not 0 <= value < 1:
                raise ValueError(f"{name} must be at least 0 and below 1, got {value}")
        require_at_least_1(
            self,
            "steps",
            "batch_size",
            "accumulate",
            "max_skipped",
            "log_every",
            "validate_every",
            "save_every",
            "keep_last",
        )
        for name in (
            "data_workers",
            "length_multiple",
            "learning_rate",
            "warmup_steps",
            "decay_steps",
            "clip_norm",
            "weight_decay",
            "max_gradient_norm",
            "validation_batches",
            "patience",
            "max_seconds",
        ):
            if not 0 <= (value := getattr(self, name)) < math.inf:
                raise ValueError(f"{name} must not be negative, and be finite, got {value}")


@dataclasses.dataclass(frozen=True)
class Config:
    """All that defines a run: its data, its model and its training."""

    generation: GenerationConfig = GenerationConfig()
    corruption: CorruptionConfig = CorruptionConfig()
    model: ModelConfig = ModelConfig()
    training: TrainingConfig = TrainingConfig()
