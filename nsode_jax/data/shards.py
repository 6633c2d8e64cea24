"""A data set on disk: shards that are whole or absent, finished by running again.

    DATA/nsode/small/0.2.0.unfinished/      0.2.0 when all is there
      config.json                             what is generated
      drawing/part-00000.json                 batches of trees, until the bank is there
      skeletons.gz                            the bank
      nsode-train.array_record-00003-of-00028
      shards/nsode-train.array_record-00003-of-00028.json    size, checksum, statistics
      dataset_info.json, features.json        make it a TFDS data set

Every shard is a function of the config alone (and of the versions of the libraries;
where SymPy's `simplify` has a time limit, see `generate`, of the bank). It is written
beside its place and renamed, its description last; so a run that is killed at any
moment and started again does what is missing, and ends with the same bytes.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import fcntl
import hashlib
import importlib.metadata
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from nsode_jax.data.bank import SkeletonBank
from nsode_jax.data.generate import GenerationConfig, settings, skeleton_records
from nsode_jax.data.progress import CountedProgress, uncounted
from nsode_jax.data.records import features, serializer
from nsode_jax.data.statistics import Statistics
from nsode_jax.system.extras import extra
from nsode_jax.system.files import write_atomically
from nsode_jax.system.workers import Workers

with extra("train", "writing a data set"):
    import tensorflow_datasets as tfds
    from array_record.python.array_record_module import ArrayRecordWriter

SPLITS = ("train", "validation")

# As TFDS writes: one record a chunk, so that a random read decodes one record.
_WRITER_OPTIONS = "group_size:1"
_BYTES_PER_RECORD = 200  # Beside y.
_LEAST_KEPT = 0.4  # Of the solutions; about 0.6 are.


@dataclasses.dataclass(frozen=True)
class _Task:
    """A shard to be written: the records of some skeletons."""

    config: GenerationConfig
    path: Path
    work: tuple[tuple[str, int], ...]

    @property
    def fingerprint(self) -> str:
        """Of what the shard should hold."""
        return _sha256(json.dumps([settings(self.config), self.work]).encode())


def write_dataset(
    builder: tfds.core.DatasetBuilder,
    config: GenerationConfig,
    workers: Workers,
    progress: CountedProgress = uncounted,
) -> tuple[Statistics, list[str]]:
    """Writes, finishes or repairs the data set of a config.

    Args:
      builder: gives the name, the version and the folder.
      config: what to generate.
      workers: who works. Their number does not change the result.
      progress: called with the stage, the amount done and the total.

    Returns:
      Statistics of the whole data set, and the names of the shards written now.

    Raises:
      ValueError: if the folder holds a data set of other settings, the builder is of other
        quantities, or shards are damaged that other versions of the libraries have written.
      OSError: if the folder cannot be written, is in use by another run, or has
        too little room.
    """
    if repr(builder.info.features) != repr(features(config.system)):
        raise ValueError("the builder stores other quantities than generation.system has")
    final = Path(builder.data_path)
    unfinished = final.with_name(final.name + ".unfinished")
    final.parent.mkdir(parents=True, exist_ok=True)
    with _lock(final.parent):
        folder = final if final.exists() else unfinished
        _refuse_other_settings(folder / "config.json", config)
        if folder == unfinished:
            _require_room(unfinished, config)
        (folder / "shards").mkdir(parents=True, exist_ok=True)
        for leftover in folder.rglob("*.partial"):
            leftover.unlink(missing_ok=True)
        if not (folder / "config.json").exists():  # Else it is the same, or versions are to stay.
            described = {**settings(config), "versions": _versions()}
            write_atomically(folder / "config.json", json.dumps(described, indent=1).encode())

        bank = _bank(folder, config, workers, progress)
        tasks = {split: _plan(folder, builder.name, split, bank, config) for split in SPLITS}
        all_tasks = [task for split in SPLITS for task in tasks[split]]
        _remove_others(folder, builder.name, all_tasks)
        missing = _missing(all_tasks, workers, progress)
        if missing:
            _refuse_other_versions(folder / "config.json")
        for done, _ in enumerate(workers.map(_write_shard, missing), 1):
            progress("shards", done, len(missing))

        statistics = Statistics(collections.Counter(bank.counts))
        sizes: dict[str, list[tuple[int, int]]] = {split: [] for split in SPLITS}
        for split in SPLITS:
            for task in tasks[split]:
                description = _description(task.path)
                sizes[split].append((description["records"], description["bytes"]))
                statistics += Statistics.from_json(description["statistics"])
        shutil.rmtree(folder / "drawing", ignore_errors=True)
        if folder == unfinished or not (folder / "dataset_info.json").exists():
            _write_metadata(folder, builder, sizes)
        if folder == unfinished:
            folder.rename(final)
    return statistics, [task.path.name for task in missing]


@contextlib.contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Keeps a second run out of a folder; released even when this one is killed."""
    with (folder / ".generate.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise OSError(f"another run is writing to {folder}") from error
        yield


def _versions() -> dict[str, str]:
    """Of what decides the bytes of a shard."""
    names = ("nsode-jax", "numpy", "scipy", "sympy", "numba", "array_record")
    versions = {}
    for name in names:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return versions


def _refuse_other_settings(path: Path, config: GenerationConfig) -> None:
    if not path.exists():
        return
    try:
        before = json.loads(path.read_text(encoding="utf-8"))
        now = settings(config)
        sections = [("", before, now)] + [
            (f"{name}.", before[name], now[name]) for name in ("prior", "solver")
        ]
        dict(before["versions"])  # Needed where something must be written anew.
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is damaged; delete {path.parent} to start anew") from error
    _refuse(path.parent, sections)


def _refuse_other_versions(path: Path) -> None:
    """Before shards are written: half of each version would be mixed."""
    before = json.loads(path.read_text(encoding="utf-8"))["versions"]
    _refuse(path.parent, [("versions.", before, _versions())])


def _refuse(folder: Path, sections: list[tuple[str, dict, dict]]) -> None:
    """Refuses to go on where settings were (name of the section, before, now) others."""
    changed = [
        f"{section}{name} was {old.get(name)!r} and is {new.get(name)!r}"
        for section, old, new in sections
        for name in {**old, **new}
        if old.get(name) != new.get(name) and name not in ("prior", "solver", "versions")
    ]
    if changed:
        raise ValueError(
            f"{folder} was begun with other settings ({'; '.join(changed)}); "
            "delete it or choose another --data_dir"
        )


def _require_room(unfinished: Path, config: GenerationConfig) -> None:
    records = config.num_skeletons * config.constants_per_skeleton * config.initial_values_per_ode
    values = config.solver.num_points * config.system.num_states
    needed = _LEAST_KEPT * records * (8 * values + _BYTES_PER_RECORD)
    there = sum(path.stat().st_size for path in unfinished.glob("*array_record*"))
    free = shutil.disk_usage(unfinished.parent).free
    if free < needed - there:
        raise OSError(
            f"{unfinished.parent} has {free / 1e9:.3g} GB free, but the data set needs at least "
            f"{(needed - there) / 1e9:.3g} GB more"
        )


def _bank(
    folder: Path, config: GenerationConfig, workers: Workers, progress: CountedProgress
) -> SkeletonBank:
    path = folder / "skeletons.gz"
    with contextlib.suppress(FileNotFoundError, ValueError):  # A damaged one is drawn again.
        return SkeletonBank.load(path)
    _refuse_other_versions(folder / "config.json")
    bank = SkeletonBank.draw(config, workers, folder=folder / "drawing", progress=progress)
    bank.save(path)
    return bank


def _plan(
    folder: Path, name: str, split: str, bank: SkeletonBank, config: GenerationConfig
) -> list[_Task]:
    """The shards of a split: consecutive skeletons, about equally many records each."""
    work = bank.work(config, split)
    target = config.records_per_shard / config.initial_values_per_ode
    groups: list[list[tuple[str, int]]] = [[]]
    size = 0
    for key, sets in work:
        if size >= target:
            groups.append([])
            size = 0
        groups[-1].append((key, sets))
        size += sets
    template, count = _file_names(folder, name, split), len(groups)
    paths = [template.sharded_filepath(shard_index=i, num_shards=count) for i in range(count)]
    return [
        _Task(config, Path(path), tuple(group)) for path, group in zip(paths, groups, strict=True)
    ]


def _file_names(folder: Path, name: str, split: str) -> tfds.core.ShardedFileTemplate:
    return tfds.core.ShardedFileTemplate(
        data_dir=tfds.core.Path(folder),
        dataset_name=name,
        split=split,
        filetype_suffix="array_record",
    )


def _remove_others(folder: Path, name: str, tasks: list[_Task]) -> None:
    """Removes shards of another plan, for example of a bank that was damaged."""
    planned = {task.path.name for task in tasks}
    for path in [*folder.glob(f"{name}-*.array_record-*"), *(folder / "shards").iterdir()]:
        if path.name.removesuffix(".json") not in planned:
            path.unlink()


def _write_shard(task: _Task) -> None:
    statistics, serialize = Statistics(), serializer(task.config.system)
    count = size = 0
    partial = task.path.with_name(f"{task.path.name}.{os.getpid()}.partial")
    try:
        writer = ArrayRecordWriter(str(partial), _WRITER_OPTIONS)
        try:
            for work in task.work:
                records, counts = skeleton_records(task.config, work)
                statistics.counts.update(counts)
                for record in records:
                    statistics.add(record.skeleton)
                    example = serialize(record)
                    writer.write(example)
                    count, size = count + 1, size + len(example)
        finally:
            writer.close()  # A full disk shows only here.
        with partial.open("rb") as file:  # A rename may reach the disk before the data.
            os.fsync(file.fileno())
        content = {
            "records": count,
            "bytes": size,
            "sha256": _file_sha256(partial),
            "holds": task.fingerprint,
            "statistics": statistics.to_json(),
        }
        partial.replace(task.path)
    finally:
        partial.unlink(missing_ok=True)
    description = {**content, "this": _sha256(json.dumps(content).encode())}
    write_atomically(_description_path(task.path), json.dumps(description, indent=1).encode())


def _missing(tasks: list[_Task], workers: Workers, progress: CountedProgress) -> list[_Task]:
    """Shards that are not there, or not as their description says."""
    there = [task for task in tasks if task.path.exists()]
    missing = [task for task in tasks if not task.path.exists()]
    for done, (task, good) in enumerate(zip(there, workers.map(_is_intact, there), strict=True), 1):
        if not good:
            missing.append(task)
        progress("checking shards", done, len(there))
    return missing


def _is_intact(task: _Task) -> bool:
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        content = _description(task.path)
        return (
            content.pop("this") == _sha256(json.dumps(content).encode())
            and content["holds"] == task.fingerprint
            and content["sha256"] == _file_sha256(task.path)
        )
    return False


def _description_path(shard: Path) -> Path:
    return shard.parent / "shards" / f"{shard.name}.json"


def _description(shard: Path) -> dict:
    return json.loads(_description_path(shard).read_text(encoding="utf-8"))


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write_metadata(
    folder: Path, builder: tfds.core.DatasetBuilder, sizes: dict[str, list[tuple[int, int]]]
) -> None:
    """dataset_info.json and features.json, by which TFDS knows the shards."""
    splits = [
        tfds.core.SplitInfo(
            name=split,
            shard_lengths=[records for records, _ in shards],
            num_bytes=sum(size for _, size in shards),
            filename_template=_file_names(folder, builder.name, split),
        )
        for split, shards in sizes.items()
    ]
    builder.info.set_splits(tfds.core.SplitDict(splits))
    builder.info.write_to_directory(folder)
