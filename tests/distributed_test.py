"""Two real processes on this machine train one model, as one process would."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from workdirs import losses

pytestmark = pytest.mark.devices

ROOT = Path(__file__).parent.parent


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("localhost", 0))
        return s.getsockname()[1]


def environment(**settings: str) -> dict[str, str]:
    ours = {k: v for k, v in os.environ.items() if not k.startswith("SLURM")}
    fast = "--xla_backend_optimization_level=0"  # Compiles faster.
    return {**ours, "XLA_FLAGS": fast, "PYTHON": sys.executable, **settings}


def start(script: Path, workdir: Path, data_dir: str, *overrides: str, **settings: str):
    """A launcher that trains the smoke config."""
    return subprocess.Popen(
        ["bash", str(script)]
        + [f"--config.training.data_dir={data_dir}", "--config.training.log_every=1"]
        + [f"--config.training.{override}" for override in overrides],
        cwd=ROOT,
        env=environment(CONFIG="configs/smoke.py", WORKDIR=str(workdir), **settings),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(launcher: subprocess.Popen, seconds: float = 180) -> str:
    """Waits for the end. Returns what was printed."""
    try:
        output, _ = launcher.communicate(timeout=seconds)
    finally:
        launcher.kill()
    return output


def wait_for_step(step: int, workdir: Path, launcher: subprocess.Popen) -> None:
    end = time.monotonic() + 150
    while max(losses(workdir, "train"), default=0) < step:
        assert time.monotonic() < end
        assert launcher.poll() is None, launcher.communicate()[0]
        time.sleep(0.02)


def process_id(number: int, workdir: Path) -> int:
    """Of the process of a number that trains in the workdir."""
    run = subprocess.run(["ps", "-A", "-ww", "-o", "pid=,args="], capture_output=True, text=True)
    (found,) = (
        line for line in run.stdout.splitlines()
        if str(workdir) in line and f"--process_id={number} " in line and "ps -A" not in line
    )  # fmt: skip
    return int(found.split()[0])


def test_a_kill_ends_all_and_the_same_command_goes_on(smoke_config, smoke_run, tmp_path):
    """Two processes of four devices see the losses of one process with eight."""
    workdir, data_dir = tmp_path / "a run", smoke_config.training.data_dir
    settings = {"PROCESSES": "2", "DEVICES": "4"}
    script = ROOT / "launch" / "local.sh"
    launcher = start(script, workdir, data_dir, "steps=1000000", "save_every=3", **settings)
    wait_for_step(8, workdir, launcher)
    os.kill(process_id(1, workdir), signal.SIGKILL)
    begin = time.monotonic()
    output = finish(launcher)
    assert time.monotonic() - begin < 60
    assert launcher.returncode == 128 + signal.SIGKILL
    assert "local.sh: process 1 of 2 was ended by SIGKILL" in output
    assert "nsode_jax.train: stopped: process 1 of 2 is gone" in output
    assert "Traceback" not in output and "stack trace" not in output

    before = max(losses(workdir, "train"))
    launcher = start(script, workdir, data_dir, "steps=15", "save_every=3", **settings)
    output = finish(launcher)
    assert launcher.returncode == 0, output
    assert "8 devices in 2 processes" in output
    resumed = int(re.search(r"resumed from step (\d+)", output)[1])
    assert 3 <= resumed <= before + 2 and resumed % 3 == 0
    other = (workdir / "logs" / "process-1.log").read_text()
    for words in ("parameters", "resumed", "validation", "saved"):
        assert words not in other  # Process 0 speaks for all.
    for kind, rtol in (("train", 1e-5), ("validation", 1e-4)):
        one, two = losses(smoke_run[0], kind), losses(workdir, kind)
        assert max(two) == 15 and two.keys() <= one.keys()
        np.testing.assert_allclose([two[s] for s in two], [one[s] for s in two], rtol=rtol)


# Starts two tasks as SLURM does. Hands SIGTERM on to the last one only: both have to stop.
SRUN = """#!/usr/bin/env bash
while [[ $1 == --* ]]; do shift; done
for task in 0 1; do
  SLURM_STEP_NODELIST=localhost SLURM_NTASKS=2 SLURM_PROCID=$task SLURM_LOCALID=0 "$@" &
  pids[task]=$!
done
trap 'kill -TERM ${pids[1]}' TERM
while kill -0 "${pids[@]}" 2>/dev/null; do sleep 0.1; done
wait "${pids[0]}" && wait "${pids[1]}"
"""


def test_slurm_saves_before_the_time_limit(smoke_config, smoke_run, tmp_path):
    tools, workdir = tmp_path / "bin", tmp_path / "run"
    tools.mkdir()
    (tools / "srun").write_text(SRUN)
    (tools / "scontrol").write_text(f'#!/usr/bin/env bash\necho "$*" > "{tmp_path}/requeued"\n')
    for tool in tools.iterdir():
        tool.chmod(0o755)
    launcher = start(
        ROOT / "launch" / "slurm.sh", workdir, smoke_config.training.data_dir,
        "steps=1000000", "save_every=1000", "validate_every=1000",
        PATH=f"{tools}:{os.environ['PATH']}", SLURM_JOB_ID="17", SLURM_SUBMIT_DIR=str(ROOT),
        JAX_COORDINATOR_PORT=str(free_port()), PYTHONUNBUFFERED="1",
    )  # fmt: skip
    wait_for_step(5, workdir, launcher)
    launcher.send_signal(signal.SIGUSR1)
    output = finish(launcher)
    assert launcher.returncode == 0, output
    assert "2 devices in 2 processes" in output
    last = int(re.search(r"signal: saved step (\d+)", output)[1])
    assert last == max(losses(workdir, "train")) and (workdir / "checkpoints" / str(last)).is_dir()
    assert (tmp_path / "requeued").read_text() == "requeue 17\n"
    one, two = losses(smoke_run[0], "train"), losses(workdir, "train")
    np.testing.assert_allclose([two[s] for s in range(1, 6)], [one[s] for s in range(1, 6)], 1e-5)


def test_without_a_job_to_join_it_fails_loudly(tmp_path):
    run = subprocess.run(
        [sys.executable, "-m", "nsode_jax.train", "--config", "configs/smoke.py"]
        + ["--distributed", "--workdir", str(tmp_path)],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert run.returncode == 2
    assert "no job of several processes to join" in run.stderr
    assert "Traceback" not in run.stderr


# Parses each line of flags, and prints how that ends.
PARSE = """
import sys
from absl import flags
from nsode_jax import train
from nsode_jax.config import flags_parser
for line in sys.stdin.read().splitlines():
    flags.FLAGS.unparse_flags()
    for name in ("distributed", "coordinator", "num_processes", "process_id"):
        flags.FLAGS[name].value = flags.FLAGS[name].default
    try:
        flags_parser("train")(["train", "--config=configs/smoke.py", *line.split()])
        print("accepted", file=sys.stderr)
    except SystemExit as end:
        assert end.code == 2
"""


def test_flags_that_do_not_describe_a_job_are_refused():
    lines = {
        "--distributed": "accepted",
        "--coordinator=localhost:1234": "go together, and with --distributed",
        "--num_processes=2 --process_id=0": "go together, and with --distributed",
        "--distributed --process_id=0": "go together, and with --distributed",
    }
    complete = "--distributed --coordinator=localhost:1234 --num_processes=2 --process_id=1"
    lines |= {
        complete: "accepted",
        complete.replace(":1234", ""): "it must be HOST:PORT",
        complete.replace("1234", "99999"): "it must be HOST:PORT",
        complete.replace("id=1", "id=2"): "--process_id must be below --num_processes",
        complete.replace("id=1", "id=-1"): "process_id",
        complete.replace("processes=2", "processes=1"): "num_processes",
    }
    run = subprocess.run(
        [sys.executable, "-c", PARSE],
        cwd=ROOT,
        env=environment(),
        input="\n".join(lines),
        capture_output=True,
        text=True,
        timeout=60,
    )
    answers = run.stderr.splitlines()
    assert len(answers) == len(lines), run.stderr
    for answer, (flags, message) in zip(answers, lines.items()):
        assert message in answer, flags


# One of three ends; the others notice, though they wait for something else.
ENDING = """
import os, signal, sys, time
from nsode_jax.training import parallel
parallel._JOIN_SECONDS = 3 if sys.argv[3] == "absent" else 60
address, number, how = sys.argv[1:]
with parallel.joined_processes(address, 3, int(number)):
    print("joined", flush=True)
    if how == "killed":
        time.sleep(1)  # For the others to have joined, too.
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "failed":
        raise SystemExit(7)
    time.sleep(100 if how == "waits" else 0)
"""


def end_of(*how: str) -> list[tuple[int, str, str]]:
    """Exit code, output and errors of processes that end in these ways."""
    address = f"localhost:{free_port()}"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", ENDING, address, str(number), each],
            cwd=ROOT,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number, each in enumerate(how)
    ]
    try:
        outputs = [process.communicate(timeout=90) for process in processes]
    finally:
        for process in processes:
            process.kill()
    return [(p.returncode, *texts) for p, texts in zip(processes, outputs)]


@pytest.mark.parametrize(
    ("lost", "how", "code"), [(0, "killed", -9), (0, "failed", 7), (2, "failed", 7)]
)
def test_all_end_with_one(lost, how, code):
    ends = end_of(*(how if number == lost else "waits" for number in range(3)))
    last_words = []
    for number, (returncode, output, errors) in enumerate(ends):
        assert "joined" in output, errors
        assert returncode == (code if number == lost else 1)
        if number != lost:
            last_words.append(errors.splitlines()[-1])
    message = f"nsode_jax.train: stopped: process {lost} of 3 is gone"
    told = [words.startswith(message) for words in last_words]
    # When JAX's service dies without a word, JAX may be faster; hardly so in both others.
    assert any(told) if how == "killed" else all(told), last_words


def test_all_may_end_well():
    assert [code for code, *_ in end_of("well", "well", "well")] == [0, 0, 0]


def test_who_waits_in_vain_for_the_others_says_so():
    ((code, _, errors),) = end_of("absent")
    assert code == 2
    assert errors.splitlines()[-1] == (
        "nsode_jax.train: error: the other processes have not joined within 3 s"
    )


# Whether two processes find the same folder under the names that they were given.
SHARING = """
import sys
import numpy as np
from pathlib import Path
from nsode_jax.training import parallel
address, number, *folders = sys.argv[1:]
with parallel.joined_processes(address, 2, int(number)):
    print([parallel.is_shared(Path(folders[number])) for number in (0, int(number))])
    weights = np.arange(6.0).reshape(2, 3).T
    print([parallel.is_same((np.int64(5), weights + number)) for number in (0, 1e-9 * int(number))])
"""


def test_processes_notice_that_they_do_not_share_a_folder_or_weights(tmp_path):
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    address = f"localhost:{free_port()}"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", SHARING, address, str(number), *map(str, folders)],
            cwd=ROOT,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for number in (0, 1)
    ]
    outputs = [finish(process, 90) for process in processes]
    assert all(output.count("[True, False]") == 2 for output in outputs), outputs
    assert not any(list(folder.iterdir()) for folder in folders)
