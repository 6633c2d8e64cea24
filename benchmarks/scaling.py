"""What training on more devices takes: the tables of docs/scaling.md.

    python -m benchmarks.scaling                       # the arithmetic, in a second
    python -m benchmarks.scaling --measure [--rounds 20] [--steps 3]

The arithmetic multiplies what the code counts (operations and parameters of each config)
and what was measured (examples a core draws) by what vendors state of their devices and by
the assumptions that are printed with it.

--measure compares one process with two, each pinned to a core of its own, all with the
same examples a process and step of configs/small.py and without an input pipeline. Four
take turns: one process on the first core, one on the second, these two at once but each
for itself, and two that train together. The last two share the machine's memory, and its
other load, alike; they differ by what training together costs. Then it measures how many stored
examples of configs/base.py a core corrupts and encodes. Linux only.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import math
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from nsode_jax.config import Config, load
from nsode_jax.data.generate import GenerationConfig
from nsode_jax.modeling.transformer import Model
from nsode_jax.training.speed import flops_per_example

ROOT = Path(__file__).resolve().parents[1]
CONFIGS = ("paper", "base", "small")

UTILIZATION = 0.3
"""Assumed share of a device's peak: 45% of the rate of matrix products, as measured on a
CPU, of which an accelerator is taken to reach two thirds of its peak."""
DRAWN, STORED = 1_800, 2_400
"""Examples of base.py that a core draws, or corrupts and encodes of a stored set, a second."""
SOLVED, KEPT = 7_281, 0.453
"""Trajectories that a core solves and checks a second, and the share of them that is kept."""
TREES, WITHOUT_CONSTANTS = 1_244_000, 0.1175
"""Trees drawn for the 250,000 skeletons of configs/paper.py, without SymPy's `simplify`, and the
share of these that have no constants."""
SOLVED_BY_LSODA, SIMPLIFIED = 594, 27
"""Trajectories that a core solves with SciPy's LSODA a second; trees that it simplifies."""
LEAST_STEP = 5e-3
"""Assumed seconds that a step takes at least: hundreds of kernels, their dispatch by the
host, latency of the network."""
SAMPLES = {"63M x 18": 63e6 * 18, "1B": 1e9, "10B": 1e10}
POD = 256


@dataclasses.dataclass(frozen=True)
class Device:
    """An accelerator, as its vendor describes it.

    Attributes:
      name: of the device.
      peak: operations per second in bfloat16, without sparsity.
      link: bytes per second that it sends to the others, in one direction.
      vcpus: hardware threads of its machine, for each device.
    """

    name: str
    peak: float
    link: float
    vcpus: float


DEVICES = (
    Device("A100", 312e12, 25e9, 96 / 8),
    Device("H100", 989e12, 50e9, 208 / 8),
    Device("TPU v5e", 197e12, 100e9, 112 / 4),
    Device("TPU v5p", 459e12, 600e9, 208 / 4),
)


def solutions(config: GenerationConfig) -> float:
    """Solutions that a data set holds: of a skeleton without constants there is one equation."""
    equations = WITHOUT_CONSTANTS + config.constants_per_skeleton * (1 - WITHOUT_CONSTANTS)
    return config.num_skeletons * equations * config.initial_values_per_ode * KEPT


def storing(config: Config) -> str:
    """What storing a data set takes, in a paragraph."""
    skeletons, points = config.generation.num_skeletons, config.model.num_points
    kept, each = solutions(config.generation), 2 * 8 * points
    ours, lsoda = (kept / KEPT / rate / 3600 for rate in (SOLVED, SOLVED_BY_LSODA))
    return (
        f"Storing is for the paper's protocol: {kept / 1e6:.1f} million solutions of {points} "
        f"points, where {KEPT:.0%} of the attempts pass the checks, at {SOLVED:,} attempts a "
        f"second and core, take **{ours:.1f} core-hours** (with SciPy's LSODA, {SOLVED_BY_LSODA} a "
        f"second, {lsoda:.0f}), and {kept * each / 1e12:.2f} TB ({each / 1024:.0f} KiB each). "
        f"Simplifying with SymPy, {SIMPLIFIED} trees a second, adds "
        f"{TREES / SIMPLIFIED / 3600:.1f} core-hours for the {TREES:,} trees of {skeletons:,} "
        f"skeletons, {WITHOUT_CONSTANTS:.0%} of which hold no constants."
    )


def chip_rate(device: Device, config: Config) -> float:
    """Examples a second of one device, if nothing else limits it."""
    return device.peak * UTILIZATION / flops_per_example(config.model)


def fed_rate(device: Device, per_core: float) -> float:
    """Examples a second that the cores of a device's machine make for it.

    Two hardware threads count as one core.
    """
    return device.vcpus / 2 * per_core


def all_reduce_seconds(device: Device, parameters: int, devices: int) -> float:
    """Of the float32 gradient around a ring: each device sends 2 (n-1)/n of it."""
    return 2 * (devices - 1) / devices * 4 * parameters / device.link


def network_batch(device: Device, config: Config, parameters: int, devices: int) -> float:
    """Examples of each device for which the arithmetic takes as long as the network."""
    return all_reduce_seconds(device, parameters, devices) * chip_rate(device, config)


def pod_rate(device: Device, config: Config, parameters: int, each: int) -> tuple[float, str]:
    """Examples a second of a pod with so many examples a device and step, and the limit.

    The all-reduce is taken to begin when the arithmetic has ended.
    """
    arithmetic = each / chip_rate(device, config)
    network = all_reduce_seconds(device, parameters, POD)
    drawing = each / fed_rate(device, DRAWN)
    seconds = max(arithmetic + network, drawing, LEAST_STEP)
    if seconds == drawing:
        limit = "drawing"
    elif seconds == LEAST_STEP:
        limit = "step"
    else:
        limit = "network" if network > arithmetic else "arithmetic"
    return POD * each / seconds, limit


def arithmetic() -> Iterator[str]:
    """Tables in Markdown."""
    configs = {name: load(ROOT / "configs" / f"{name}.py") for name in CONFIGS}
    parameters = {n: Model(c.model).num_parameters()["total"] for n, c in configs.items()}
    large = ("paper", "base")

    yield "| config | parameters | GFLOP an example | gradient, MB |"
    yield "|---|---|---|---|"
    for name, config in configs.items():
        flops = flops_per_example(config.model) / 1e9
        megabytes = 4 * parameters[name] / 1e6
        yield f"| `{name}.py` | {parameters[name] / 1e6:.1f}M | {flops:.3g} | {megabytes:.0f} |"
    yield ""

    yield "| device | peak, TFLOP/s | " + " | ".join(f"`{n}.py`" for n in configs) + " |"
    yield "|---|---|" + "---|" * len(configs)
    for device in DEVICES:
        rates = " | ".join(rounded(chip_rate(device, c)) for c in configs.values())
        yield f"| {device.name} | {device.peak / 1e12:.0f} | {rates} |"
    yield ""

    columns = [(name, label) for name in large for label in SAMPLES]
    yield "| device-hours | " + " | ".join(f"`{n}.py`, {label}" for n, label in columns) + " |"
    yield "|---|" + "---|" * len(columns)
    for device in DEVICES:
        hours = [SAMPLES[s] / chip_rate(device, configs[n]) / 3600 for n, s in columns]
        yield f"| {device.name} | " + " | ".join(map(rounded, hours)) + " |"
    yield ""

    yield "| `base.py`, a device | vCPUs | trains | its vCPUs draw | or read | cores it needs |"
    yield "|---|---|---|---|---|---|"
    for device in DEVICES:
        rate = chip_rate(device, configs["base"])
        numbers = (rate, fed_rate(device, DRAWN), fed_rate(device, STORED), rate / DRAWN)
        cells = " | ".join(map(rounded, numbers))
        yield f"| {device.name} | {device.vcpus:.0f} | {cells} |"
    yield ""

    yield f"| {POD} devices | GB/s | " + " | ".join(f"`{n}.py`" for n in large) + " |"
    yield "|---|---|---|---|"
    for device in DEVICES:
        cells = []
        for name in large:
            seconds = all_reduce_seconds(device, parameters[name], POD)
            batch = network_batch(device, configs[name], parameters[name], POD)
            cells.append(f"{rounded(1e3 * seconds)} ms, {rounded(batch)} examples")
        yield f"| {device.name} | {device.link / 1e9:.0f} | " + " | ".join(cells) + " |"
    yield ""

    yield f"| {POD} devices | config | batch | samples/s | limit | " + " | ".join(
        f"hours, {label}" for label in SAMPLES
    ) + " |"  # fmt: skip
    yield "|---|---|---|---|---|" + "---|" * len(SAMPLES)
    for device in DEVICES[1:]:
        for name, each in (("paper", 3), ("base", 1), ("base", 32), ("base", 256)):
            rate, limit = pod_rate(device, configs[name], parameters[name], each)
            hours = " | ".join(rounded(samples / rate / 3600) for samples in SAMPLES.values())
            yield (
                f"| {device.name} | `{name}.py` | {POD * each:,} | {rounded(rate)} | {limit} | "
                f"{hours} |"
            )


def rounded(number: float) -> str:
    """Two digits, without an exponent."""
    if number == 0:
        return "0"
    digits = 1 - math.floor(math.log10(abs(number)))
    return f"{round(number, digits):,.{max(digits, 0)}f}"


# --- one process against two --------------------------------------------------------------


def work(core: int, number: int, processes: int, port: int, batch_size: int, steps: int) -> None:
    """Answers each line of stdin with seconds and processor seconds of some steps."""
    os.sched_setaffinity(0, {core})
    import contextlib

    import jax

    from benchmarks.training import draw_batch
    from nsode_jax.data.vocabulary import Vocabulary
    from nsode_jax.training.parallel import joined_processes, on_each_device, replicate, shard
    from nsode_jax.training.step import init_state, make_train_step

    together = joined_processes(f"localhost:{port}", processes, number)
    with together if processes > 1 else contextlib.nullcontext():
        config = load(ROOT / "configs" / "small.py")
        model = Model(config.model)
        step = make_train_step(model, config.training, Vocabulary())
        state = replicate(init_state(model, config.training))
        batch, wish = shard(draw_batch(config, batch_size, seed=number)), on_each_device(0)
        for line in itertools.chain(["warm up"], sys.stdin):
            start, processor = time.perf_counter(), time.process_time()
            for _ in range(steps):
                state, metrics = jax.block_until_ready(step(state, batch, wish))
            spent = {"wall": time.perf_counter() - start, "cpu": time.process_time() - processor}
            if line != "warm up":
                print(json.dumps(spent), flush=True)


def measure_processes(rounds: int, steps: int, batch_size: int) -> Iterator[str]:
    """One process on each of two cores, both at once, and two together, in turns."""
    cores = sorted(os.sched_getaffinity(0))[:2]
    if len(cores) < 2:
        yield "one core only: nothing to compare"
        return
    with socket.create_server(("", 0)) as server:
        port = server.getsockname()[1]
    jobs = [
        [(cores[0], 0, 1)], [(cores[1], 0, 1)], [(cores[0], 0, 2), (cores[1], 1, 2)]
    ]  # fmt: skip
    rest = [str(number) for number in (port, batch_size, steps)]
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": "", "NPROC": "1"}
    workers = [
        [
            subprocess.Popen(
                [sys.executable, "-m", "benchmarks.scaling", "--worker", *map(str, job), *rest],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for job in group
        ]
        for group in jobs
    ]

    def answer(worker: subprocess.Popen) -> tuple[float, float]:
        assert worker.stdout is not None
        for line in worker.stdout:
            if line.startswith("{"):  # Not what Gloo has to say.
                spent = json.loads(line)
                return spent["wall"], spent["cpu"]
        raise RuntimeError("a process has ended; its last words are above")

    def turn(group: list[subprocess.Popen]) -> np.ndarray:
        """Seconds of the slowest, and processor seconds of all."""
        for worker in group:
            assert worker.stdin is not None
            worker.stdin.write("\n")
            worker.stdin.flush()
        spent = np.array([answer(worker) for worker in group])
        return np.array([spent[:, 0].max(), spent[:, 1].sum()]) / steps

    first, second, together = workers
    groups = [first, second, first + second, together]
    try:
        times = np.array([[turn(group) for group in groups] for _ in range(1 + rounds)])[1:]
    finally:
        for worker in sum(workers, []):
            worker.kill()
    one = times[:, :2].mean(axis=1)  # [rounds, (wall, processor)]
    apart, two = times[:, 2], times[:, 3]

    def spread(values: np.ndarray, form: str) -> str:
        low, median, high = np.quantile(values, (0.25, 0.5, 0.75))
        return f"{median:{form}} ({low:{form}}-{high:{form}})"

    yield f"{batch_size} examples a process and step, {rounds} rounds of {steps} steps each"
    yield f"one process: {spread(batch_size / one[:, 0], '.0f')} samples/s"
    yield f"two at once: {spread(2 * batch_size / apart[:, 0], '.0f')} samples/s"
    yield f"two together: {spread(2 * batch_size / two[:, 0], '.0f')} samples/s"
    yield f"two at once relative to one: {spread(2 * one[:, 0] / apart[:, 0], '.2f')}"
    yield f"two together relative to at once: {spread(apart[:, 0] / two[:, 0], '.2f')}"
    yield f"their processor time, relative to it: {spread(two[:, 1] / apart[:, 1], '.2f')}"
    yield f"load average {os.getloadavg()[0]:.1f}"


def measure_stored(records: int = 500, count: int = 60) -> str:
    """The line on stored examples; reading them from the disk is not included."""
    from nsode_jax.data.bank import SkeletonBank
    from nsode_jax.data.generate import draw_records, stream
    from nsode_jax.data.pipeline import batches
    from nsode_jax.data.records import record_to_features

    config = load(ROOT / "configs" / "base.py")
    rng, source = stream(0, "scaling"), []
    work = SkeletonBank.load("base").first(3000).work(config.generation, "train")
    for key, _ in work:
        found, _ = draw_records(config.generation, config.generation.system.skeleton(key), rng)
        form = config.model.example_format
        source += [record_to_features(r) for r in found if len(r.skeleton.tokens) < form.max_length]
        if len(source) >= records:
            break
    data = iter(batches(source, form, config.corruption, batch_size=64, seed=0))
    for _ in range(8):
        next(data)
    start = time.process_time()
    for _ in range(count):
        next(data)
    return f"stored examples of base.py: {64 * count / (time.process_time() - start):,.0f} a second"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--batch", type=int, default=64, help="examples a process and step")
    parser.add_argument("--worker", type=int, nargs=6, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        work(*arguments.worker)
        return
    lines: Iterable[str] = [storing(load(ROOT / "configs" / "paper.py")), "", *arithmetic()]
    if arguments.measure:
        rounds = measure_processes(arguments.rounds, arguments.steps, arguments.batch)
        lines = [*rounds, measure_stored()]
    for line in lines:
        print(line, flush=True)


if __name__ == "__main__":
    main()
