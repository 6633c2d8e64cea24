"""Long lists as one small file."""

import gzip
import hashlib
import json

import pytest

from nsode_jax.system.packed import unpack, write_packed

FORM = "nsode_jax list of words 3"
LINES = ["one", "two words", "three"]


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "words.gz"
    write_packed(path, FORM, {"about": [1, 2]}, LINES)
    return path


def test_what_was_written_is_read(path):
    data = path.read_bytes()
    header, lines = unpack(data, FORM)
    assert lines == LINES and header["about"] == [1, 2]
    write_packed(path, FORM, {"about": [1, 2]}, LINES)
    assert path.read_bytes() == data


def test_a_file_that_cannot_be_written_stays_as_it_was(path, monkeypatch):
    data = path.read_bytes()

    def full(*_):
        raise OSError("no space left")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="no space left"):
        write_packed(path, FORM, {}, ["other"])
    assert path.read_bytes() == data and list(path.parent.iterdir()) == [path]


def test_what_is_damaged_or_foreign_is_refused(path):
    data = path.read_bytes()
    text = gzip.decompress(data).decode()
    flipped = bytearray(data)
    flipped[len(data) // 2] ^= 0xFF
    for damaged, message in [
        (data[:40], "is damaged or no nsode_jax list of words"),
        (b"none", "is damaged or no"),
        (bytes(flipped), "is damaged"),
        (gzip.compress(b"[1]\none\n"), "is damaged or no"),
        (gzip.compress(text.replace("two", "ten").encode()), "its checksum differs"),
        (gzip.compress(text.replace("words 3", "words 2").encode()), "has the format .* 2', not"),
    ]:
        with pytest.raises(ValueError, match=message):
            unpack(damaged, FORM)


def test_the_last_line_break_may_be_in_the_checksum():
    """As in the catalogue that ships."""
    body = "".join(f"{line}\n" for line in LINES)
    header = {"format": FORM, "sha256": hashlib.sha256(body.encode()).hexdigest()}
    assert unpack(gzip.compress(f"{json.dumps(header)}\n{body}".encode()), FORM)[1] == LINES
