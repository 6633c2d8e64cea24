"""Data sets on disk: killed, damaged, repeated, refused; always the same bytes."""

import dataclasses
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from nsode_jax.configs import smoke
from nsode_jax.data_builders.nsode.nsode_dataset_builder import Builder

from nsode_jax.config import from_config_dict
from nsode_jax.data import shards
from nsode_jax.data.bank import SkeletonBank
from nsode_jax.data.generate import skeleton_records
from nsode_jax.data.records import features_to_record, open_split
from nsode_jax.data.shards import SPLITS, write_dataset
from nsode_jax.expressions.coupled import SystemConfig
from nsode_jax.system.workers import Workers

ROOT = Path(__file__).parent.parent
OVERRIDES = {"records_per_shard": 20, "num_skeletons": 60}
CONFIG = dataclasses.replace(from_config_dict(smoke.get_config()).generation, **OVERRIDES)


def write(folder, config=CONFIG, processes=0):
    builder = Builder(config="smoke", data_dir=str(folder))
    with Workers(processes) as workers:
        statistics, written = write_dataset(builder, config, workers)
    return Path(builder.data_path), statistics, written


def contents(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def dataset(data_dir):
    return write(data_dir)


def test_tfds_reads_the_generators_records_exactly(dataset, data_dir):
    folder, statistics, _ = dataset
    bank = SkeletonBank.load(folder / "skeletons.gz")
    total = 0
    for split in SPLITS:
        expected = [
            record
            for work in bank.work(CONFIG, split)
            for record in skeleton_records(CONFIG, work)[0]
        ]
        source = open_split("nsode/smoke", split, str(data_dir))
        assert len(source) == len(expected) > 20
        for i, record in enumerate(expected):
            stored = features_to_record(source[i])
            assert stored.skeleton == record.skeleton
            assert stored.max_time == record.max_time
            assert stored.constants.tobytes() == record.constants.tobytes()
            assert stored.y.tobytes() == record.y.tobytes()
        total += len(expected)
    assert statistics.counts["kept"] == total == sum(statistics.complexities.values())


def test_number_of_processes_does_not_change_a_byte(dataset, tmp_path):
    folder, statistics, written = write(tmp_path, processes=2)
    assert contents(folder) == contents(dataset[0])
    assert statistics == dataset[1]
    assert len(written) == len(dataset[2]) >= 6


def test_a_complete_data_set_is_left_alone(dataset, data_dir):
    before = contents(dataset[0])
    _, statistics, written = write(data_dir)
    assert not written
    assert statistics == dataset[1]
    assert contents(dataset[0]) == before


@pytest.mark.parametrize(
    "damage", ["flipped bit", "cut off", "missing", "no description", "wrong count", "other work"]
)
def test_a_damaged_shard_is_written_again(dataset, tmp_path, damage):
    shutil.copytree(dataset[0].parents[1], tmp_path / "nsode")
    folder = tmp_path / "nsode" / "smoke" / dataset[0].name
    shard = sorted(folder.glob("nsode-train.array_record-*"))[1]
    if damage == "flipped bit":
        data = bytearray(shard.read_bytes())
        data[len(data) // 2] ^= 1
        shard.write_bytes(bytes(data))
    elif damage == "cut off":
        shard.write_bytes(shard.read_bytes()[:1000])
    elif damage == "missing":
        shard.unlink()
    else:
        description = folder / "shards" / f"{shard.name}.json"
        content = json.loads(description.read_text())
        if damage == "wrong count":
            content["records"] += 1
        elif damage == "other work":  # A whole shard, but of other skeletons.
            content["holds"] = "0" * 64
            del content["this"]
            content["this"] = shards._sha256(json.dumps(content).encode())
        description.write_text(json.dumps(content))
        if damage == "no description":
            description.unlink()
    _, _, written = write(tmp_path)
    assert written == [shard.name]
    assert contents(folder) == contents(dataset[0])


def test_other_damage_is_mended_too(dataset, tmp_path):
    shutil.copytree(dataset[0].parents[1], tmp_path / "nsode")
    folder = tmp_path / "nsode" / "smoke" / dataset[0].name
    (folder / "dataset_info.json").unlink()
    (folder / "nsode-train.array_record-00000-of-00099").write_bytes(b"of another plan")
    _, _, written = write(tmp_path)
    assert not written
    assert contents(folder) == contents(dataset[0])
    (folder / "config.json").write_text("{")
    with pytest.raises(ValueError, match="config.json is damaged; delete"):
        write(tmp_path)


def test_a_damaged_bank_is_drawn_again(dataset, tmp_path):
    shutil.copytree(dataset[0].parents[1], tmp_path / "nsode")
    folder = tmp_path / "nsode" / "smoke" / dataset[0].name
    (folder / "skeletons.gz").write_bytes(b"damaged")
    write(tmp_path)
    assert contents(folder) == contents(dataset[0])


def command(folder: Path) -> list[str]:
    return [
        sys.executable,
        *("-m", "nsode_jax.generate", "--config", "configs/smoke.py"),
        *("--data_dir", str(folder), "--processes", "2"),
        *(f"--config.generation.{name}={value}" for name, value in OVERRIDES.items()),
    ]


def is_shard(path: Path) -> bool:
    return path.name.startswith("nsode-") and not path.name.endswith(".partial")


MOMENTS = {
    "drawing skeletons": lambda folder: (folder / "config.json").exists(),
    "a few shards": lambda folder: sum(map(is_shard, folder.glob("nsode-*"))) >= 3,
    "finishing": lambda folder: (folder / "features.json").exists(),
}


def test_killed_at_any_moment_and_run_again_gives_the_same_bytes(dataset, tmp_path):
    final = tmp_path / "nsode" / "smoke" / dataset[0].name
    unfinished = final.with_name(f"{final.name}.unfinished")
    kills = []
    for moment, has_come in MOMENTS.items():
        run = subprocess.Popen(
            command(tmp_path), cwd=ROOT, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        while run.poll() is None and not has_come(unfinished):
            time.sleep(0.005)
        run.send_signal(signal.SIGKILL)
        run.wait()
        if run.returncode == -signal.SIGKILL:
            kills.append(moment)
        if not final.exists():
            with pytest.raises(FileNotFoundError):
                open_split("nsode/smoke", "train", str(tmp_path))
    assert len(kills) >= 2  # The last moment is short and may have been missed.
    if unfinished.exists():  # What a kill in the middle of a write leaves behind.
        (unfinished / "nsode-train.array_record-00002-of-00009.1.partial").write_bytes(b"half")
    last = subprocess.run(command(tmp_path), cwd=ROOT, capture_output=True, text=True)
    assert last.returncode == 0, last.stderr
    assert "equations and solutions" in last.stdout
    found = contents(final)
    assert found.pop("statistics.png")
    assert found == contents(dataset[0])


def test_other_settings_are_refused_by_name(dataset, data_dir):
    other = dataclasses.replace(
        CONFIG, seed=5, prior=dataclasses.replace(CONFIG.prior, max_constant=9.0)
    )
    with pytest.raises(ValueError, match=r"seed was 0 and is 5; prior.max_constant was 10.0"):
        write(data_dir, other)


def test_two_runs_at_once_are_refused(tmp_path):
    folder = tmp_path / "nsode" / "smoke"
    folder.mkdir(parents=True)
    with shards._lock(folder), pytest.raises(OSError, match="another run is writing to"):
        write(tmp_path)


@pytest.mark.parametrize("finished", [True, False])
@pytest.mark.parametrize("lost", ["", "skeletons.gz", "nsode-train.array_record-00001-of-*"])
def test_what_is_lost_is_not_made_anew_by_other_versions(dataset, tmp_path, finished, lost):
    shutil.copytree(dataset[0].parents[1], tmp_path / "nsode")
    folder = tmp_path / "nsode" / "smoke" / dataset[0].name
    content = json.loads((folder / "config.json").read_text())
    content["versions"]["sympy"] = "0.1"
    (folder / "config.json").write_text(json.dumps(content))
    if not finished:
        (folder / "dataset_info.json").unlink()
        folder.rename(folder.with_name(f"{folder.name}.unfinished"))
    for path in tmp_path.rglob(lost) if lost else ():
        path.unlink()
    if lost:
        with pytest.raises(ValueError, match="versions.sympy was '0.1' and is"):
            write(tmp_path)
    else:  # It is still said what its shards were made by.
        write(tmp_path)
        assert json.loads((folder / "config.json").read_text()) == content


def test_a_builder_of_other_quantities_is_refused(tmp_path):
    two = dataclasses.replace(CONFIG, system=SystemConfig(num_states=2))
    with pytest.raises(ValueError, match="stores other quantities"), Workers(0) as workers:
        write_dataset(Builder(config="smoke", data_dir=str(tmp_path)), two, workers)


def test_too_little_room_is_said_before_any_work(tmp_path):
    huge = dataclasses.replace(CONFIG, num_skeletons=10**12)
    with pytest.raises(OSError, match="GB free, but the data set needs at least"):
        write(tmp_path, huge)
    assert not list(tmp_path.rglob("*.unfinished"))


def test_a_full_disk_leaves_no_half_shard(tmp_path):
    """The writer of ArrayRecord takes everything, and fails when it is closed."""
    script = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))\n"
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "from tests.shards_test import write\n"
        "try:\n    write(sys.argv[1])\nexcept (OSError, RuntimeError) as e:\n"
        "    print('refused', e)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert run.stdout.startswith("refused"), run.stderr
    assert "File too large" in run.stdout
    assert not list(tmp_path.rglob("*.partial"))
    assert not list(tmp_path.rglob("nsode-*"))


def test_an_empty_split_says_so(tmp_path):
    write(tmp_path, dataclasses.replace(CONFIG, validation_share=0.0))
    with pytest.raises(ValueError, match="the split validation of nsode/smoke in .* is empty"):
        open_split("nsode/smoke", "validation", str(tmp_path))
