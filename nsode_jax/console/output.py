"""Where the results of the command go: a picture, or the folder of a report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from nsode_jax.console.arguments import InputError
from nsode_jax.system.files import try_to_write
from nsode_jax.tables.files import STANDARD_INPUT

_PICTURES = (".png", ".pdf", ".svg")


class Output(NamedTuple):
    """Where the results go: a picture, or the folder of a report."""

    path: Path
    is_report: bool


def output_of(file: str, out: str | None) -> Output:
    """Where the results go; tried now, since a search in vain would cost minutes."""
    if out is None:
        stem = "data" if file == STANDARD_INPUT else Path(file).stem
        output = Output(Path(f"{stem}_law.png"), False)
    else:
        given = Path(out)
        folder = given.is_dir() or out.endswith("/") or not given.suffix
        if not folder and given.suffix.lower() not in _PICTURES:
            raise InputError(
                f"--out {out!r} is neither a folder nor a picture ({', '.join(_PICTURES)})"
            )
        output = Output(given, folder)
    try:
        try_to_write(output.path / "report.html" if output.is_report else output.path)
    except OSError as error:
        raise _unwritable(output, error) from None
    return output


def _unwritable(output: Output, error: OSError) -> InputError:
    what = "report" if output.is_report else "picture"
    return InputError(
        f"the {what} {str(output.path)!r} cannot be written: {error.strerror or error}"
    )


def write(
    output: Output,
    draw: Callable[[Path], object],
    write_report: Callable[[Path], Sequence[Path]],
) -> None:
    """Draws the picture or writes the report, and says where.

    Raises:
      InputError: if it cannot be written.
    """
    try:
        if not output.is_report:
            output.path.parent.mkdir(parents=True, exist_ok=True)
            draw(output.path)
            print(f"picture: {output.path}")
            return
        written = write_report(output.path)
    except OSError as error:
        raise _unwritable(output, error) from None
    print(f"report: {written[0]}")
    for path in written:
        if path.suffix == ".json":
            print(f"JSON: {path}")
