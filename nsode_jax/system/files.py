"""Files that are whole or absent, folders that can be written to, and what to say of others."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_atomically(path: str | Path, data: bytes) -> None:
    """Writes a file as a whole or not at all, even when the process is killed.

    Raises:
      OSError: if it cannot be written; what was there before stays.
    """
    path = Path(path)
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def in_words(error: BaseException) -> str:
    """An error as one line; of the operating system the file and the reason, without a number."""
    if isinstance(error, OSError) and error.strerror:
        where = "" if error.filename is None else f"{os.fspath(error.filename)!r}: "
        return f"{where}{error.strerror}"
    return one_line(error)


def one_line(thing: object) -> str:
    """The text of something, with a blank for each line break and other space in it."""
    return " ".join(str(thing).split())


def try_to_write(path: str | Path) -> None:
    """Opens a file for writing, and leaves everything as it was.

    Raises:
      OSError: if it cannot be written.
    """
    path = Path(path).absolute()
    if path.exists():
        path.open("ab").close()
        return
    standing = next(folder for folder in path.parents if folder.exists())
    # In a folder of our own: other processes may try or make the same path at this moment.
    with tempfile.TemporaryDirectory(prefix=".tried-", dir=standing) as own:
        file = own / path.relative_to(standing)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.open("ab").close()


def require_folder(folder: str | Path, option: str) -> None:
    """Refuses a folder that is none, or that cannot be written to, before work is done in vain.

    Args:
      folder: that will be made if it is not there.
      option: by which another one is chosen.

    Raises:
      OSError: one line: the folder, the reason and the option.
    """
    try:
        try_to_write(Path(folder) / ".tried")
    except OSError as error:
        reason = "it is a file" if Path(folder).is_file() else error.strerror
        raise OSError(
            f"cannot write to {os.fspath(folder)!r} ({reason}); choose another folder with {option}"
        ) from None
