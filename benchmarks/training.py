"""How long an optimizer step takes on a CPU, beside PyTorch, measured side by side.

    python benchmarks/training.py [--configs paper,small] [--rounds 10] [--batch_paper 1]
        [--torch_python PATH] [--torch_compile] [--json FILE]

Ours is the compiled step of nsode_jax.training.step. The others, in
benchmarks/torch_transformer.py, are the layers of `torch.nn` with fused attention (with
--torch_compile also compiled) and, as in the paper, Hugging Face's BigBird with full
attention. PyTorch and transformers may live in another environment: --torch_python is its
interpreter. What cannot be imported there is left out.

All start from the same parameters and take the same steps on one batch: loss, gradient,
its norm and clipping, AdamW; no dropout, no warm-up and no average of the weights. Each has
a process of its own with as many threads as there are cores. They take turns step by step,
and ratios are of the steps of one round, so the machine's changing speed affects all alike.
The rate of large matrix products is measured by the same process right before and after
each step; utilization is the model's operations per second relative to it.

A round counts only while other processes leave the machine alone (`others` is the share
of it that they took). With one of two cores taken, steps of small.py take us twice as long
and PyTorch, whose threads wait for each other after every operation, up to twenty times.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from nsode_jax.config import Config, load
from nsode_jax.data.encode import encode_trajectories
from nsode_jax.data.vocabulary import BOS, PAD, Vocabulary
from nsode_jax.expressions.expression import Expression
from nsode_jax.modeling.config import ModelConfig
from nsode_jax.modeling.transformer import Model
from nsode_jax.training.config import TrainingConfig
from nsode_jax.training.parallel import on_each_device, replicate, shard
from nsode_jax.training.speed import flops_per_example, peak_flops
from nsode_jax.training.step import Batch, init_state, make_train_step

ROOT = Path(__file__).resolve().parents[1]
TORCH_SIDE = ROOT / "benchmarks" / "torch_transformer.py"
OURS = "ours"
WARM_UP_STEPS = 2
MAX_OTHERS = 0.15
"""Share of the machine that other processes may use in a round that counts."""
MOST_ROUNDS = 4
"""So many times the rounds that were asked for are tried until enough count."""


class WorkerFailed(RuntimeError):
    """A process that should take steps ended; the message is its last word."""


# --- the job: one batch, one set of parameters -----------------------------------------


def draw_batch(config: Config, size: int, seed: int) -> Batch:
    """Logistic growth from random values, in the shapes of a config.

    Where the config's data hold short series, so many of these are short.
    """
    rng, vocabulary, form = np.random.default_rng(seed), Vocabulary(), config.model.example_format
    trajectories, targets = [], []
    for _ in range(size):
        rate, capacity, start = rng.uniform((0.5, 1.0, 0.1), (3.0, 4.0, 0.9))
        short = rng.random() < config.corruption.sparse_share
        points = int(rng.integers(8, form.num_points)) if short else form.num_points
        t = np.linspace(0.0, 4.0, points)
        y = capacity / (1.0 + (capacity / start - 1.0) * np.exp(-rate * t))
        trajectories.append((t, y))
        law = Expression.from_infix(f"{rate:.6f}*y - {rate / capacity:.6f}*y**2")
        targets.append(vocabulary.encode(law, form.max_length))
    words, mask = encode_trajectories(trajectories, form)
    low, fraction = map(np.stack, zip(*targets))
    return {"words": words, "mask": mask, "low": low, "fraction": fraction}


def write_job(folder: Path, config: Config, batch_size: int, seed: int = 0) -> None:
    """The files that the processes start from."""
    training = dataclasses.replace(
        config.training,
        optimizer="adamw",  # What the others have.
        warmup_steps=0,
        schedule="constant",
        decay_steps=0,
        ema_decay=0.0,
        accumulate=1,
    )
    job = {
        "model": dataclasses.asdict(config.model),
        "training": dataclasses.asdict(training),
        "threads": threads(),
        "pad": PAD,
        "bos": BOS,
    }
    (folder / "job.json").write_text(json.dumps(job))
    np.savez(folder / "batch.npz", **draw_batch(config, batch_size, seed))
    leaves = jax.tree_util.tree_leaves_with_path(Model(config.model).init(seed))
    arrays = {"/".join(str(key.key) for key in path): leaf for path, leaf in leaves}
    np.savez(folder / "params.npz", **arrays)


def threads() -> int:
    """Cores that this process may use."""
    has_affinity = hasattr(os, "sched_getaffinity")
    return len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1


# --- our side, in a process of its own ---------------------------------------------------


def work(folder: Path) -> None:
    """Answers each line of stdin with one measured step, as a line of JSON."""
    job = json.loads((folder / "job.json").read_text())
    model, config = Model(ModelConfig(**job["model"])), TrainingConfig(**job["training"])
    with np.load(folder / "batch.npz") as file:
        batch = shard(dict(file))
    with np.load(folder / "params.npz") as file:
        paths, tree = jax.tree_util.tree_flatten_with_path(model.shapes())
        leaves = [file["/".join(str(key.key) for key in path)] for path, _ in paths]
    state = replicate(init_state(model, config, jax.tree.unflatten(tree, leaves)))
    del leaves
    wish = on_each_device(0)
    step = make_train_step(model, config, Vocabulary()).lower(state, batch, wish).compile()
    facts = {
        "version": f"JAX {jax.__version__}",
        "parameters": model.num_parameters()["total"],
        "xla_temporaries": step.memory_analysis().temp_size_in_bytes,
    }
    print(json.dumps(facts), flush=True)
    rate = peak_flops.__wrapped__  # Measured anew each time.
    for _ in sys.stdin:
        before, start = rate("float32"), time.perf_counter()
        state, metrics = jax.block_until_ready(step(state, batch, wish))
        seconds = time.perf_counter() - start
        read = {name: float(metrics[name][0]) for name in ("loss", "gradient_norm")}
        print(json.dumps({"seconds": seconds, "rates": [before, rate("float32")], **read}))
        sys.stdout.flush()


# --- processes that take turns -----------------------------------------------------------


def busy_seconds() -> float:
    """Processor time that all processes had so far, other guests' included; NaN if unknown."""
    try:
        numbers = Path("/proc/stat").read_text().split("\n")[0].split()[1:9]
    except FileNotFoundError:
        return float("nan")
    user, nice, system, _idle, _io, irq, soft_irq, steal = map(int, numbers)
    return (user + nice + system + irq + soft_irq + steal) / os.sysconf("SC_CLK_TCK")


class Worker:
    """A process that takes a step when asked; a context manager that ends it."""

    def __init__(self, name: str, command: Sequence[str], folder: Path):
        """Starts it.

        Raises:
          OSError: if there is no such program.
          WorkerFailed: if it ends before it is ready.
        """
        self.name = name
        self._errors = open(folder / f"{name}.err", "w+")
        count = str(threads())
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
            "JAX_PLATFORMS": "cpu",
            "XLA_FLAGS": "",  # One device with all cores.
            "NPROC": count,  # Threads of XLA.
            "OMP_NUM_THREADS": count,
            "MKL_NUM_THREADS": count,
        }
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env=environment,
                text=True,
            )
        except OSError:  # No such interpreter.
            self._errors.close()
            raise
        assert self._process.stdin is not None and self._process.stdout is not None
        self._requests, self._answers = self._process.stdin, self._process.stdout
        try:
            self.facts = self._answer()
        except WorkerFailed:
            self.__exit__()
            raise

    def step(self) -> dict[str, Any]:
        """Takes a step.

        Returns:
          `seconds` of the step; `rates`, operations per second of matrix products before
          and after it; `others`, share of the machine's cores that other processes used
          meanwhile; `loss` and `gradient_norm` before the step.

        Raises:
          WorkerFailed: if the process ended.
        """
        start, busy, own = time.perf_counter(), busy_seconds(), self._own_seconds()
        with contextlib.suppress(BrokenPipeError):  # Its answer will be missing, too.
            self._requests.write("\n")
            self._requests.flush()
        answer = self._answer()
        others = (busy_seconds() - busy) - (self._own_seconds() - own)
        share = others / (time.perf_counter() - start) / (os.cpu_count() or 1)
        return {**answer, "others": max(share, 0.0)}

    def _own_seconds(self) -> float:
        """Processor time of the process so far, NaN if unknown."""
        try:
            numbers = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        except FileNotFoundError:
            return float("nan")
        return (int(numbers[11]) + int(numbers[12])) / os.sysconf("SC_CLK_TCK")

    def _answer(self) -> dict[str, Any]:
        line = self._answers.readline()
        if not line:
            code = self._process.wait()
            self._errors.seek(0)
            last = self._errors.read().strip().splitlines()[-1:]
            raise WorkerFailed(last[0] if last else f"exit code {code}")
        return json.loads(line)

    def peak_megabytes(self) -> float:
        """Most resident memory so far, start and compilation included; NaN if unknown.

        That is Linux's VmHWM. `ru_maxrss` of a child is at least what its parent held
        when it started it.
        """
        try:
            status = Path(f"/proc/{self._process.pid}/status").read_text()
        except FileNotFoundError:
            return float("nan")
        return int(status.split("VmHWM:")[1].split()[0]) / 1024

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_) -> None:
        with contextlib.suppress(BrokenPipeError):
            self._requests.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._answers.close()
        self._errors.close()


@dataclasses.dataclass
class Measured:
    """Of one implementation.

    Attributes:
      name: of the implementation.
      version: of its library.
      parameters: how many are trained.
      loss, gradient_norm: of the first step.
      last_loss: of the last step.
      seconds: of each step that counts.
      rates: operations per second of matrix products around each of these, a mean of two.
      others: share of the machine's cores that other processes used meanwhile.
      peak: most resident memory in MB, start and compilation included.
      xla_temporaries: MB that XLA plans for besides arguments and results; of ours.
    """

    name: str
    version: str
    parameters: int
    loss: float
    gradient_norm: float
    last_loss: float = float("nan")
    seconds: list[float] = dataclasses.field(default_factory=list)
    rates: list[float] = dataclasses.field(default_factory=list)
    others: list[float] = dataclasses.field(default_factory=list)
    peak: float = float("nan")
    xla_temporaries: float = 0.0


def commands(folder: Path, torch_python: str, torch_compile: bool) -> dict[str, list[str]]:
    """The command of each implementation by name, ours first."""
    theirs = {"PyTorch": "torch"}
    if torch_compile:
        theirs["PyTorch, compiled"] = "compiled"
    theirs["BigBird"] = "bigbird"
    ours = [sys.executable, str(Path(__file__).resolve()), "--worker", str(folder)]
    return {
        OURS: ours,
        **{k: [torch_python, str(TORCH_SIDE), str(folder), v] for k, v in theirs.items()},
    }


def measure(
    config: Config, batch_size: int, rounds: int, torch_python: str, torch_compile: bool = False
) -> tuple[list[Measured], list[str]]:
    """Steps of all implementations in turns; and remarks on what is left out.

    Raises:
      WorkerFailed: if ours cannot start, or any ends once it has.
    """
    measured, remarks = {}, []
    with tempfile.TemporaryDirectory() as temporary, contextlib.ExitStack() as stack:
        folder = Path(temporary)
        write_job(folder, config, batch_size)
        workers = []
        for name, command in commands(folder, torch_python, torch_compile).items():
            try:
                worker = stack.enter_context(Worker(name, command, folder))
                first, *_ = [worker.step() for _ in range(WARM_UP_STEPS)]
            except (WorkerFailed, OSError) as error:
                if name == OURS:
                    raise
                remarks.append(f"{name} is left out: {error}")
                continue
            facts = worker.facts
            measured[name] = Measured(
                name, facts["version"], facts["parameters"], first["loss"], first["gradient_norm"],
                xla_temporaries=facts.get("xla_temporaries", 0) / 2**20,
            )  # fmt: skip
            workers.append(worker)
        quiet, busy = [], []
        while len(quiet) < rounds and len(quiet) + len(busy) < MOST_ROUNDS * rounds:
            turn = (len(quiet) + len(busy)) % len(workers)
            answers = {w.name: w.step() for w in workers[turn:] + workers[:turn]}
            is_busy = any(answer["others"] > MAX_OTHERS for answer in answers.values())
            (busy if is_busy else quiet).append(answers)
        for worker in workers:
            measured[worker.name].peak = worker.peak_megabytes()
    for answers in quiet or busy:
        for name, answer in answers.items():
            of = measured[name]
            of.seconds.append(answer["seconds"])
            of.rates.append(sum(answer["rates"]) / 2)
            of.others.append(answer["others"])
            of.last_loss = answer["loss"]
    if busy:
        remarks.append(
            f"in {len(busy)} of {len(quiet) + len(busy)} rounds other processes used more than "
            f"{MAX_OTHERS:.0%} of the machine; "
            + ("they are not counted" if quiet else "THE TABLE IS OF A BUSY MACHINE")
        )
    return list(measured.values()), remarks


# --- the report -----------------------------------------------------------------------


def spread(values: Sequence[float] | np.ndarray, form: str) -> tuple[str, str]:
    """The median, and the quartiles around it."""
    low, median, high = np.quantile(values, (0.25, 0.5, 0.75))
    return f"{median:{form}}", f"({low:{form}}-{high:{form}})"


def report(config: Config, batch_size: int, measured: Sequence[Measured]) -> Iterator[str]:
    """The table and what it leaves open; all times are medians with their quartiles."""
    model, ours = config.model, measured[0]
    flops = batch_size * flops_per_example(model)
    yield (
        f"{batch_size} x {model.num_points} points in patches of {model.patch_size}, "
        f"{model.layers}+{model.layers} layers of width {model.width}, {model.norm}-norm: "
        f"{flops / 1e9:,.1f} GFLOP a step; {len(ours.seconds)} rounds, {threads()} threads"
    )
    yield (
        f"{'':18}{'parameters':>11}{'s/step':>9}  {'quartiles':15}{'of ours':>8}  {'quartiles':12}"
        f"{'GFLOP/s':>8}{'product':>9}{'utilized':>9}{'others':>8}{'peak MB':>9}"
    )
    for row in measured:
        seconds, rates = np.array(row.seconds), np.array(row.rates)
        time_step, times = spread(seconds, ".3f")
        ratio, ratios = spread(seconds / np.array(ours.seconds), ".2f")
        yield (
            f"{row.name:18}{row.parameters:11,}{time_step:>9}  {times:15}{ratio:>8}  {ratios:12}"
            f"{np.median(flops / seconds) / 1e9:8.1f}{np.median(rates) / 1e9:9.1f}"
            f"{np.median(flops / seconds / rates):9.0%}"
            f"{np.median(row.others):8.0%}{row.peak:9,.0f}"
        )
    yield f"XLA plans {ours.xla_temporaries:,.0f} MB of temporaries for our step"
    yield from agreement(model, measured)


def agreement(model: ModelConfig, measured: Sequence[Measured]) -> Iterator[str]:
    """A line on each other implementation: does it do the same job?"""
    ours = measured[0]
    yield (
        f"{OURS} ({ours.version}): loss {ours.loss:.5f}, gradient norm {ours.gradient_norm:.5f}, "
        f"last loss {ours.last_loss:.5f}"
    )
    for row in measured[1:]:
        more = row.parameters / ours.parameters - 1
        is_close = abs(more) <= 0.01 and np.isclose(row.loss, ours.loss, rtol=1e-3)
        is_close &= np.isclose(row.gradient_norm, ours.gradient_norm, rtol=1e-2)
        verdict = "the same" if is_close else "NOT THE SAME"
        if row.name == "BigBird" and model.norm == "pre" and not is_close:
            verdict = "another network, BigBird is post-norm"
        yield (
            f"{row.name} ({row.version}): loss {row.loss:.5f}, gradient norm "
            f"{row.gradient_norm:.5f}, last loss {row.last_loss:.5f}, {more:+.2%} parameters: "
            f"{verdict}"
        )


def main():
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--configs", default="paper,small", help="names of files in configs/")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--batch_paper", type=int, default=1, help="batch size of paper.py")
    parser.add_argument("--torch_python", default=sys.executable, help="an interpreter")
    parser.add_argument("--torch_compile", action="store_true")
    parser.add_argument("--json", type=Path, help="file for all single measurements")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        work(args.worker)
        return
    everything = {}
    for name in args.configs.split(","):
        config = load(ROOT / "configs" / f"{name}.py")
        batch_size = args.batch_paper if name == "paper" else config.training.batch_size
        measured, remarks = measure(
            config, batch_size, args.rounds, args.torch_python, args.torch_compile
        )
        print(f"\nconfigs/{name}.py, ", end="")
        for line in [*report(config, batch_size, measured), *remarks]:
            print(line, flush=True)
        everything[name] = [dataclasses.asdict(row) for row in measured]
    if args.json:
        args.json.write_text(json.dumps(everything, indent=1))


if __name__ == "__main__":
    main()
