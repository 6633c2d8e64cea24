"""The settings of a training run."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class TrainingConfig:
    """Training. The defaults are the paper's (appendix B.3) where it gives one.

    Attributes:
      dataset: name of a TFDS data set, or `online:` and the name or the file of a
        skeleton bank, for examples that are drawn as training goes.
      data_dir: folder of the TFDS data set.
      data_workers: processes that draw from a bank; threads that read a data set.
      steps: optimizer steps.
      batch_size: examples per step, over all devices of all processes.
      accumulate: parts in which a device works through its share of a batch, one
        after the other, to save memory; the step is the same.
      learning_rate: its peak, reached after the warm-up.
      warmup_steps: steps over which the learning rate rises linearly from 0.
      schedule: `constant` after the warm-up, or `cosine` decay to 0 at `steps`.
      clip_norm: gradients with a larger norm are scaled down to it; 0 leaves them.
      adam_b2: second-moment decay of AdamW.
      weight_decay: of AdamW.
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
      seed: of the parameters and of the order of the data.
    """

    dataset: str = "nsode/paper"
    data_dir: str = "~/nsode_data"
    data_workers: int = 1
    steps: int = 1_000_000
    batch_size: int = 600
    accumulate: int = 1
    learning_rate: float = 1e-4
    warmup_steps: int = 10_000
    schedule: str = "constant"
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
    seed: int = 0

    def __post_init__(self):
        if self.schedule not in ("constant", "cosine"):
            raise ValueError(f"schedule must be 'constant' or 'cosine', got {self.schedule!r}")
        if not 0 <= self.ema_decay < 1:
            raise ValueError(f"ema_decay must be at least 0 and below 1, got {self.ema_decay}")
        for name in (
            "steps",
            "batch_size",
            "accumulate",
            "max_skipped",
            "log_every",
            "validate_every",
            "save_every",
            "keep_last",
        ):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        for name in ("clip_norm", "max_gradient_norm", "validation_batches", "patience"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative, got {getattr(self, name)}")
