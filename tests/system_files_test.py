"""Files that are whole or absent, and folders that can be written to."""

import errno
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from nsode_jax.system.files import in_words, require_folder, try_to_write, write_atomically


def test_a_file_is_whole_or_absent(tmp_path, monkeypatch):
    path = tmp_path / "data"
    write_atomically(path, b"one")

    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, b"two")
    assert path.read_bytes() == b"one" and os.listdir(tmp_path) == ["data"]


def test_errors_of_the_system_have_no_numbers():
    gone = FileNotFoundError(errno.ENOENT, "No such file or directory", "a/b")
    assert in_words(gone) == "'a/b': No such file or directory"
    assert in_words(OSError("choose\n another")) == "choose another"
    assert in_words(OSError(errno.ENOSPC, "No space left")) == "No space left"


def test_trying_leaves_everything_as_it_was(tmp_path):
    try_to_write(tmp_path / "a" / "b" / "report.html")
    require_folder(tmp_path / "c", "--out")
    assert not os.listdir(tmp_path)
    file = tmp_path / "file"
    file.write_text("mine")
    try_to_write(file)
    assert file.read_text() == "mine"


def test_processes_that_try_one_folder_do_not_disturb_each_other(tmp_path):
    """The processes of a training try the folder that the first of them makes and fills."""

    def begin(process: int) -> None:
        for run in range(100):
            folder = tmp_path / "runs" / str(run)
            require_folder(folder, "--workdir")
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"process-{process}.log").touch()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(begin, range(8)))
    assert all(len(os.listdir(tmp_path / "runs" / str(run))) == 8 for run in range(100))


def test_a_folder_that_is_none_is_refused_with_its_option(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=r"file' \(it is a file\); choose another folder with --out$"):
        require_folder(tmp_path / "file", "--out")
    with pytest.raises(OSError, match=r"Not a directory\); choose another folder with --workdir$"):
        require_folder(tmp_path / "file" / "run", "--workdir")
