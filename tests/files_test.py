"""Files that are whole or absent."""

import os

import pytest

from nsode_jax.system.files import write_atomically


def test_a_file_is_written_as_a_whole(tmp_path):
    path = tmp_path / "file"
    write_atomically(path, b"one")
    write_atomically(path, b"two")
    assert path.read_bytes() == b"two"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("what", ["fsync", "replace"])
def test_what_was_there_stays_when_writing_fails(tmp_path, monkeypatch, what):
    path = tmp_path / "file"
    write_atomically(path, b"before")

    def fail(*arguments):
        raise OSError("the disk is full")

    monkeypatch.setattr(os, what, fail)
    with pytest.raises(OSError, match="full"):
        write_atomically(path, b"after")
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]
