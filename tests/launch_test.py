"""The scripts in launch/: what they would run, with stand-ins for what is not here."""

import math
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent
SCRIPTS = sorted(path.name for path in (ROOT / "launch").glob("*.sh"))
SHELLCHECK = shutil.which("shellcheck", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")


def environment(**settings: str) -> dict[str, str]:
    """The environment of a user who has set nothing else."""
    names = ("PATH", "HOME", "TMPDIR", "LANG")
    ours = {name: os.environ[name] for name in names if name in os.environ}
    return {**ours, "PYTHON": sys.executable, **settings}


def launch(script: str, *arguments: str, **settings: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        ["bash", f"launch/{script}", *arguments],
        cwd=ROOT,
        env=environment(**settings),
        capture_output=True,
        text=True,
        timeout=60,
    )


def dry_run(script: str, *arguments: str, **settings: str) -> list[list[str]]:
    """The words of each command that the script would run."""
    run = launch(script, *arguments, DRY_RUN="1", **settings)
    assert run.returncode == 0, run.stderr
    return [unquoted(line) for line in run.stdout.splitlines()]


def unquoted(command: str) -> list[str]:
    """The words of a command that Bash has quoted, as Bash reads them."""
    run = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {command}"], capture_output=True, text=True, check=True
    )
    return run.stdout.split("\0")[:-1]


def stand_in(folder: Path, name: str, text: str) -> None:
    """Puts a Bash script into a folder that is to come first on the PATH."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/usr/bin/env bash\n{text}\n")
    (folder / name).chmod(0o755)


def first_on_path(folder: Path) -> str:
    return f"{folder}:{os.environ['PATH']}"


@pytest.mark.skipif(not SHELLCHECK, reason="shellcheck is not installed")
def test_shellcheck():
    files = [f"launch/{name}" for name in SCRIPTS]
    run = subprocess.run([SHELLCHECK, *files], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_setting_is_documented(script):
    text = (ROOT / "launch" / script).read_text()
    header = text.partition("\nset -")[0]
    used = set(re.findall(r"\$\{([A-Z_]+)(?::?-)", text))
    # The system's own, SLURM's, and XLA's, which is passed on.
    own = {"SLURM_JOB_ID", "SLURM_SUBMIT_DIR", "SLURM_CPUS_PER_TASK", "TMPDIR", "XLA_FLAGS"}
    own |= {"PYTHONPATH", "JAX_COMPILATION_CACHE_DIR"}
    assert {name for name in used - own if not re.search(rf"\b{name}\b", header)} == set()


# --- dry runs -------------------------------------------------------------------------


def test_local_dry_run(tmp_path):
    workdir = tmp_path / "a run"
    run = launch(
        "local.sh", "--config.training.steps=7", "--config.training.init_from=a b",
        DRY_RUN="1", WORKDIR=str(workdir), PROCESSES="3", DEVICES="4", CONFIG="configs/smoke.py",
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    lines = [shlex.split(line) for line in run.stdout.splitlines()]
    assert len(lines) == 3
    for i, words in enumerate(lines):
        assert "NPROC=16" in words
        assert "XLA_FLAGS=--xla_force_host_platform_device_count=4" in words
        assert words[words.index("--workdir") + 1] == str(workdir)
        assert {"--distributed", "--num_processes=3", f"--process_id={i}"} <= set(words)
        assert words[-6:-4] == ["--config.training.steps=7", "--config.training.init_from=a b"]
        assert words[-4:] == [">>", f"{workdir}/logs/process-{i}.log", "2>&1", "&"]
    ports = {word for words in lines for word in words if word.startswith("--coordinator=")}
    assert len(ports) == 1 and re.fullmatch(r"--coordinator=localhost:\d+", ports.pop())
    assert not workdir.exists()


def test_slurm_dry_run(tmp_path):
    workdir = str(tmp_path / "a run")
    (words,) = dry_run(
        "slurm.sh", "--config.training.steps=7",
        WORKDIR=workdir, NODES="4", GPUS="8", TIME="1:00:00", PARTITION="gpu",
    )  # fmt: skip
    assert words == [
        "sbatch", "--nodes=4", "--gpus-per-node=8", "--ntasks-per-node=8", "--cpus-per-task=8",
        "--time=1:00:00", "--partition=gpu", "launch/slurm.sh", "--config.training.steps=7",
    ]  # fmt: skip
    (words,) = dry_run(
        "slurm.sh", "--config.training.steps=7",
        WORKDIR=workdir, SLURM_JOB_ID="5", SLURM_CPUS_PER_TASK="8",
    )  # fmt: skip
    assert words[:4] == ["srun", "--kill-on-bad-exit=1", "--label", "--cpus-per-task=8"]
    assert words[words.index("--workdir") + 1] == workdir
    assert "--config.training.data_workers=7" in words
    assert words[-1] == "--config.training.steps=7"


def test_tpu_vm_dry_run():
    settings = {"TPU": "slice", "ZONE": "us-east5-b", "PROJECT": "mine", "WORKDIR": "/mnt/a run"}
    steps = ("create", "install", "train", "log", "stop", "delete")
    commands = dry_run("tpu_vm.sh", *steps, ACCELERATOR="v6e-16", SPOT="1", **settings)
    start = ["gcloud", "compute", "tpus", "tpu-vm"]
    where = ["--zone=us-east5-b", "--project=mine"]
    assert commands[0] == [
        *start, "create", "slice", "--accelerator-type=v6e-16", "--version=v2-alpha-tpuv6e",
        "--spot", *where,
    ]  # fmt: skip
    assert commands[1][:2] == ["git", "archive"]
    assert [words[4] for words in commands[2:]] == ["scp", "ssh", "ssh", "ssh", "ssh", "delete"]
    assert all(words[:4] == start and set(where) <= set(words) for words in commands[2:])
    workers = [word for words in commands for word in words if word.startswith("--worker=")]
    assert workers == ["--worker=all"] * 3 + ["--worker=0", "--worker=all"]


def test_dataflow_dry_run(tmp_path):
    data = str(tmp_path / "my data")
    commands = dry_run(
        "beam_dataflow.sh", "image", "generate", "fetch",
        PROJECT="mine", BUCKET="gs://bucket", IMAGE="registry/beam:1", BEAM_VERSION="2.77.0",
        CONFIG="small", DATA_DIR=data,
    )  # fmt: skip
    build, push, generate = commands[2:5]
    assert build[:4] == ["docker", "build", "--tag", "registry/beam:1"]
    assert "BEAM=2.77.0" in build and push == ["docker", "push", "registry/beam:1"]
    assert generate[:5] == ["tfds", "build", "data_builders/nsode", "--config", "small"]
    options = dict(
        word.split("=", 1) for word in generate[-1].partition("=")[2].split(",")
    )  # As TFDS splits them.
    assert options["runner"] == "DataflowRunner" and options["project"] == "mine"
    assert options["sdk_container_image"] == "registry/beam:1"
    assert options["temp_location"] == "gs://bucket/temp"
    assert ["gs://bucket/nsode_data/nsode/small", f"{data}/nsode"] == commands[6][-2:]
    assert f"{data}/nsode" in commands[7]


# --- stand-ins ------------------------------------------------------------------------


def test_tpu_vm_commands_reach_the_machines(tmp_path):
    """`gcloud` runs what is meant for the machines here, in a folder of its own."""
    machine, log = tmp_path / "a machine", tmp_path / "log"
    stand_in(
        tmp_path / "bin",
        "gcloud",
        f"""printf '%s\\n' "$*" | head -n 1 >> {shlex.quote(str(log))}
        for word in "$@"; do
          [[ $word != --command=* ]] || (cd {shlex.quote(str(machine))} && bash -c "${{word#*=}}")
        done""",
    )
    python = machine / "nsode_jax" / ".venv" / "bin"
    python.mkdir(parents=True)
    stand_in(python, "python", "printf '%s\\n' \"$@\" > arguments; sleep 60")
    settings = {"TPU": "slice", "ZONE": "zone", "WORKDIR": "/mnt/it's a run"}
    run = launch("tpu_vm.sh", "train", PATH=first_on_path(tmp_path / "bin"), **settings)
    assert run.returncode == 0, run.stderr
    arguments = machine / "nsode_jax" / "arguments"
    end = time.monotonic() + 20
    while not arguments.is_file() or "data_workers" not in arguments.read_text():
        assert time.monotonic() < end
        time.sleep(0.05)
    assert arguments.read_text().splitlines() == [
        "-u", "-m", "nsode_jax.train", "--config", "configs/base.py",
        "--workdir", "/mnt/it's a run", "--distributed", "--config.model.dtype=bfloat16",
        f"--config.training.data_workers={len(os.sched_getaffinity(0))}",
    ]  # fmt: skip
    pid = int((machine / "nsode_jax.pid").read_text())
    os.kill(pid, 0)
    run = launch("tpu_vm.sh", "stop", PATH=first_on_path(tmp_path / "bin"), **settings)
    assert run.returncode == 0, run.stderr
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < end
        time.sleep(0.05)
    assert log.read_text().splitlines()[0].startswith("compute tpus tpu-vm ssh slice --worker=all")


def test_dataflow_image(tmp_path):
    """The image's folder holds the package's wheel and nothing else."""
    stand_in(tmp_path / "bin", "docker", f"echo \"$*\" >> {tmp_path}/log; ls \"${{@: -1}}\" "
             f">> {tmp_path}/log 2>/dev/null || true")  # fmt: skip
    stand_in(tmp_path / "bin", "python", "[ \"$1\" = -m ] || exec python3 \"$@\"\n"
             "mkdir -p dist/beam && touch dist/beam/nsode_jax-1.whl")  # fmt: skip
    run = launch(
        "beam_dataflow.sh", "image",
        PATH=first_on_path(tmp_path / "bin"), PYTHON="python", BEAM_VERSION="2.77.0",
        PROJECT="mine", BUCKET="gs://bucket", IMAGE="registry/beam:1",
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "log").read_text().splitlines()[1:] == ["nsode_jax-1.whl",
                                                              "push registry/beam:1"]  # fmt: skip


# Stands in for Python: a training that saves on SIGTERM.
TRAINING = """[ "$1" != -c ] || exec {python} "$@"
[[ "$*" != *--process_id=1* ]] || {second}
trap 'echo saved; exit 0' TERM
touch "{folder}/started"
for _ in {{1..{tenths}}}; do sleep 0.1; done
exit 1"""


def start_local(folder: Path, second: str, tenths: int) -> subprocess.Popen:
    text = TRAINING.format(python=sys.executable, folder=folder, second=second, tenths=tenths)
    stand_in(folder / "bin", "python", text)
    return subprocess.Popen(
        ["bash", "launch/local.sh"],
        cwd=ROOT,
        env=environment(PYTHON=f"{folder}/bin/python", WORKDIR=f"{folder}/a run"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_local_hands_sigterm_on(tmp_path):
    run = start_local(tmp_path, "true", 300)
    end = time.monotonic() + 20
    while not (tmp_path / "started").exists():
        assert time.monotonic() < end
        time.sleep(0.05)
    time.sleep(0.5)  # For the other, and the traps.
    run.send_signal(signal.SIGTERM)
    output, errors = run.communicate(timeout=30)
    assert run.returncode == 0 and errors == ""
    assert output == "saved\n"  # Process 0 also writes to the terminal.
    logs = tmp_path / "a run" / "logs"
    assert [(logs / f"process-{i}.log").read_text() for i in (0, 1)] == ["saved\n"] * 2


def test_local_names_the_first_to_fail(tmp_path):
    run = start_local(tmp_path, "{ echo out of memory; exit 3; }", 10)
    _, errors = run.communicate(timeout=30)
    assert run.returncode == 3
    log = tmp_path / "a run" / "logs" / "process-1.log"
    assert errors == (
        f"local.sh: process 1 of 2 ended with exit code 3 (see {log}); the others end, too\n"
    )
    assert log.read_text() == "out of memory\n"


@pytest.mark.parametrize(
    ("what", "code", "requeued"),
    [("time limit", 0, True), ("cancelled", 0, False), ("failed", 3, False)],
)
def test_slurm_queues_again_when_time_is_up(tmp_path, what, code, requeued):
    stand_in(tmp_path / "bin", "scontrol", f'echo "$*" >> {shlex.quote(str(tmp_path))}/scontrol')
    # A step that saves on SIGTERM, which takes a moment.
    stand_in(
        tmp_path / "bin",
        "srun",
        f"touch {shlex.quote(str(tmp_path))}/started\n"
        + (
            "exit 3"
            if what == "failed"
            else "trap 'sleep 0.5; exit 0' TERM\nwhile true; do sleep 0.1; done"
        ),
    )
    copy = tmp_path / "slurm_script"  # As SLURM does.
    shutil.copy(ROOT / "launch" / "slurm.sh", copy)
    run = subprocess.Popen(
        ["bash", str(copy)],
        cwd=tmp_path,
        env=environment(
            PATH=first_on_path(tmp_path / "bin"),
            WORKDIR="run",
            CONFIG="configs/smoke.py",
            SLURM_JOB_ID="17",
            SLURM_SUBMIT_DIR=str(ROOT),
        ),  # fmt: skip
        stderr=subprocess.PIPE,
        text=True,
    )
    end = time.monotonic() + 20
    while not (tmp_path / "started").exists():
        assert time.monotonic() < end
        time.sleep(0.05)
    time.sleep(0.2)  # For the trap.
    if what != "failed":
        run.send_signal(signal.SIGUSR1 if what == "time limit" else signal.SIGTERM)
    _, errors = run.communicate(timeout=30)
    assert run.returncode == code, errors
    assert (tmp_path / "scontrol").exists() == requeued
    if requeued:
        assert (tmp_path / "scontrol").read_text() == "requeue 17\n"


# --- misuse ---------------------------------------------------------------------------

NO_TOOLS = {"PATH": "/usr/bin:/bin"}
TPU = {"TPU": "slice", "ZONE": "zone"}
BEAM = {"PROJECT": "mine", "BUCKET": "gs://bucket", "IMAGE": "image"}


@pytest.mark.parametrize(
    ("script", "arguments", "settings", "message"),
    [
        ("local.sh", [], {}, "set WORKDIR"),
        ("local.sh", [], {"WORKDIR": "x", "CONFIG": "no.py"}, "no config file no.py"),
        ("local.sh", [], {"WORKDIR": "x", "PROCESSES": "two"}, "PROCESSES must be a number"),
        ("local.sh", [], {"WORKDIR": "x", "DEVICES": "0"}, "DEVICES must be a number"),
        ("local.sh", [], {"WORKDIR": "x", "PROCESSES": "1"}, "one process needs no launcher"),
        ("local.sh", [], {"WORKDIR": "x", "PORT": "99999"}, "PORT must be a number"),
        ("local.sh", [], {"WORKDIR": "x", "PYTHON": "/no/python"}, "there is no /no/python"),
        ("slurm.sh", [], {}, "set WORKDIR"),
        ("slurm.sh", [], {"WORKDIR": "x", "NODES": "-1"}, "NODES must be a number"),
        ("slurm.sh", [], {"WORKDIR": "x", "GPUS": "all"}, "GPUS must be a number"),
        ("slurm.sh", [], {"WORKDIR": "x", **NO_TOOLS}, "there is no sbatch"),
        ("slurm.sh", [], {"WORKDIR": "x", "SLURM_JOB_ID": "1", "SLURM_SUBMIT_DIR": "/tmp"},
         "from the repository's root"),
        ("tpu_vm.sh", [], TPU, "name what to do"),
        ("tpu_vm.sh", ["start"], TPU, "unknown step start"),
        ("tpu_vm.sh", ["create"], {"ZONE": "zone"}, "set TPU"),
        ("tpu_vm.sh", ["create"], {"TPU": "slice"}, "set ZONE"),
        ("tpu_vm.sh", ["create", "train"], TPU, "set WORKDIR"),
        ("tpu_vm.sh", ["create"], {**TPU, "PATH": "NO_GCLOUD"}, "there is no gcloud"),
        ("beam_dataflow.sh", [], BEAM, "name what to do"),
        ("beam_dataflow.sh", ["generate"], {**BEAM, "CONFIG": "huge"}, "no config file"),
        ("beam_dataflow.sh", ["generate"], {**BEAM, "BUCKET": "bucket"}, "set BUCKET"),
        ("beam_dataflow.sh", ["generate"], {**BEAM, "IMAGE": "a,b"}, "a comma"),
        ("beam_dataflow.sh", ["image"], {**BEAM, "PATH": "NO_GCLOUD"}, "there is no docker"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_one_line(tmp_path, script, arguments, settings, message):
    if settings.get("PATH") == "NO_GCLOUD":
        for name in ("bash", "dirname"):
            (tmp_path / name).symlink_to(shutil.which(name))
        settings = {**settings, "PATH": str(tmp_path)}
    run = launch(script, *arguments, **settings)
    assert run.returncode == 2, run.stdout + run.stderr
    assert run.stderr.startswith(f"{script}: error: ") and message in run.stderr
    assert run.stderr.count("\n") == 1 and run.stdout == ""


def test_a_port_in_use_is_refused(tmp_path):
    import socket

    with socket.create_server(("", 0)) as server:
        port = server.getsockname()[1]
        run = launch("local.sh", WORKDIR=str(tmp_path / "run"), PORT=str(port))
    assert run.returncode == 2
    assert run.stderr == f"local.sh: error: port {port} is in use\n"


# --- GKE ------------------------------------------------------------------------------

YAML = (ROOT / "launch" / "gke_jobset.yaml").read_text()
EXAMPLE = dict(re.findall(r"^#   export (\w+)=(\S+)", YAML, re.MULTILINE))


def job_set(**settings: str) -> dict:
    """The file with its variables replaced, as `envsubst` does."""
    values = {**EXAMPLE, **settings}
    return yaml.safe_load(re.sub(r"\$\{(\w+)\}", lambda match: values[match[1]], YAML))


def check_fields(value, schema, where="JobSet"):
    """Checks a value against types, constants, and dictionaries and lists of them.

    A dictionary must hold all fields of its schema and no others.
    """
    if isinstance(schema, dict):
        assert isinstance(value, dict) and value.keys() == schema.keys(), where
        for name, part in schema.items():
            check_fields(value[name], part, f"{where}.{name}")
    elif isinstance(schema, list):
        assert isinstance(value, list) and value, where
        for part in value:
            check_fields(part, schema[0], f"{where}[]")
    elif isinstance(schema, type):
        assert isinstance(value, schema) and not isinstance(value, bool), where
    else:
        assert value == schema, where


CHIPS = {"google.com/tpu": int}
POD = {
    "restartPolicy": "Never",
    "terminationGracePeriodSeconds": int,
    "nodeSelector": {
        "cloud.google.com/gke-tpu-accelerator": str,
        "cloud.google.com/gke-tpu-topology": str,
    },
    "containers": [
        {
            "name": "train",
            "image": str,
            "command": [str],
            "args": [str],
            "ports": [{"containerPort": int}],
            "resources": {"requests": CHIPS, "limits": CHIPS},
            "volumeMounts": [{"name": "runs", "mountPath": "/runs"}],
        }
    ],
    "volumes": [{"name": "runs", "persistentVolumeClaim": {"claimName": str}}],
}
JOB_SET = {
    "apiVersion": "jobset.x-k8s.io/v1alpha2",
    "kind": "JobSet",
    "metadata": {
        "name": str,
        "annotations": {
            "alpha.jobset.sigs.k8s.io/exclusive-topology": "cloud.google.com/gke-nodepool"
        },
    },
    "spec": {
        "failurePolicy": {"maxRestarts": int},
        "replicatedJobs": [
            {
                "name": str,
                "replicas": 1,
                "template": {
                    "spec": {
                        "completionMode": "Indexed",
                        "parallelism": int,
                        "completions": int,
                        "backoffLimit": 0,
                        "template": {"spec": POD},
                    }
                },
            }
        ],
    },
}


def test_job_set_fields():
    assert set(re.findall(r"\$\{(\w+)\}", YAML)) == set(EXAMPLE)
    check_fields(job_set(), JOB_SET)
    # Values that YAML might read as something else.
    check_fields(job_set(OVERRIDE="a: b", WORKDIR="/runs/x y"), JOB_SET)


def test_job_set_sizes_agree():
    job = job_set()["spec"]["replicatedJobs"][0]["template"]["spec"]
    pod = job["template"]["spec"]
    (container,) = pod["containers"]
    assert job["parallelism"] == job["completions"]
    assert container["resources"]["requests"] == container["resources"]["limits"]
    topology = pod["nodeSelector"]["cloud.google.com/gke-tpu-topology"]
    chips = math.prod(int(side) for side in topology.split("x"))
    assert chips == job["completions"] * container["resources"]["limits"]["google.com/tpu"]


def test_job_set_starts_our_program():
    """It knows the flags, and the config is in the image."""
    pod = job_set()["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["command"] == ["python", "-u", "-m", "nsode_jax.train"]
    args = container["args"]
    assert args[0] == "--config=configs/base.py" and "--distributed" in args
    args[1] = "--workdir=/dev/null/no"
    run = subprocess.run(
        [sys.executable, "-m", "nsode_jax.train", *args, "--distributed=false"],
        cwd=ROOT, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert run.returncode == 2 and "/dev/null/no" in run.stderr


# --- docs/scaling.md ------------------------------------------------------------------


def test_scaling_tables_are_those_of_the_code():
    from benchmarks.scaling import arithmetic

    document = (ROOT / "docs" / "scaling.md").read_text().splitlines()
    assert [line for line in arithmetic() if line not in document] == []


def test_the_papers_data_set_has_the_papers_size():
    """Its 63 million, from what was counted; the documents and the config say how."""
    from nsode_jax.configs import paper

    from benchmarks.scaling import WITHOUT_CONSTANTS, solutions, storing
    from nsode_jax.config import load

    config = load("paper")
    count = solutions(config.generation)
    assert round(count / 1e6) == 63
    # Skeletons without constants are one equation each, the others one for each set.
    free = WITHOUT_CONSTANTS * config.generation.num_skeletons
    equations = free + 25 * (config.generation.num_skeletons - free)
    assert count == pytest.approx(equations * 25 * 0.453)
    words = " ".join((paper.__doc__ or "").split())
    for said in (f"{config.generation.num_skeletons:,} skeletons", f"{count / 1e6:.1f} million"):
        assert said in words
    assert storing(config) in " ".join((ROOT / "docs" / "scaling.md").read_text().split())


def test_the_curve_of_the_network_is_that_of_the_results():
    from benchmarks.network_curve import points, table

    document = (ROOT / "docs" / "scaling.md").read_text()
    assert table(points()) in document
