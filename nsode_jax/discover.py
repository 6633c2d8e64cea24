"""Finds the law dy/dt = f(y) behind a series in a file.

    python -m nsode_jax.discover data.csv

prints the candidates, best first, and saves a picture of the data and the best law.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

# JAX and the model are imported only once the input is known to be good, so that
# a mistyped file name is answered at once.
from nsode_jax.dynamics.table import read_table
from nsode_jax.dynamics.trajectory import Trajectory, TrajectoryError

if TYPE_CHECKING:
    from nsode_jax.discovery.result import Candidate, Discovery

PROGRAM = "nsode_jax.discover"
DIGITS = 4  # Significant digits of the constants shown.
PICTURES = (".png", ".pdf", ".svg")


class _InputError(Exception):
    """What the user gave cannot be used; the message is one line."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str):
        raise _InputError(f"{message} (--help lists the options)")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line.

    Returns:
      Exit code: 0 if a law was found, 1 if none was, 2 if the input was refused.
    """
    try:
        return _run(argv)
    except (_InputError, TrajectoryError) as error:
        print(f"{PROGRAM}: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"{PROGRAM}: stopped", file=sys.stderr)
        return 130


def _run(argv: Sequence[str] | None) -> int:
    options = _parser().parse_args(argv)
    trajectory, notes, (time_name, value_name) = read_table(
        options.file, options.time, options.value
    )
    picture = _picture_path(options.file, options.out)
    for note in notes:
        print(f"note: {note}")
    print(
        f"{len(trajectory)} points of {value_name} over {time_name} from "
        f"{trajectory.t[0]:g} to {trajectory.t[-1]:g}",
        flush=True,
    )

    discovery = _discover(trajectory, options)
    if discovery is None:
        return 1
    print()
    print(table(discovery.candidates[: options.candidates]))
    print()
    print(law(discovery.best, trajectory, time_name, value_name))
    for note in discovery.notes:
        if note not in notes:
            print(f"note: {note}")
    _save_picture(discovery, picture, time_name, value_name)
    print(f"picture: {picture}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog=f"python -m {PROGRAM}",
        description="Finds the law dy/dt = f(y) behind a series in a file.",
        allow_abbrev=False,
    )
    parser.add_argument("file", help="table with a column of times and a column of values")
    parser.add_argument("--time", metavar="COL", help="column of times: name, or number from 1")
    parser.add_argument("--value", metavar="COL", help="column of values: name, or number from 1")
    parser.add_argument(
        "--weights",
        default="small",
        metavar="NAME",
        help="shipped weights, or a folder (%(default)s)",
    )
    parser.add_argument(
        "--beams",
        type=_whole(1, 4096),
        default=64,
        metavar="N",
        help="width of the beam search (%(default)s)",
    )
    parser.add_argument(
        "--samples",
        type=_whole(0, 4096),
        default=64,
        metavar="N",
        help="laws drawn from the network beside it (%(default)s)",
    )
    parser.add_argument(
        "--polynomials",
        type=_whole(0, 6),
        default=3,
        metavar="N",
        help="degree up to which polynomials are always tried, 0 for none (%(default)s)",
    )
    parser.add_argument(
        "--candidates",
        type=_whole(1, 10_000),
        default=10,
        metavar="N",
        help="rows of the table (%(default)s)",
    )
    parser.add_argument(
        "--out", metavar="PATH", help="folder or picture (.png .pdf .svg) to write (current folder)"
    )
    parser.add_argument(
        "--seed",
        type=_whole(0, 2**32 - 1),
        default=0,
        metavar="N",
        help="random seed (%(default)s)",
    )
    return parser


def _whole(low: int, high: int):
    def convert(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = None
        if number is None or not low <= number <= high:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {low} to {high}")
        return number

    return convert


def _picture_path(file: str, out: str | None) -> Path:
    """Where the picture goes; tried now, since a search in vain would cost minutes."""
    path = Path(f"{Path(file).stem}_law.png")
    if out is not None:
        given = Path(out)
        if given.suffix.lower() in PICTURES and not given.is_dir():
            path = given
        elif given.suffix and not given.is_dir() and not out.endswith("/"):
            raise _InputError(
                f"--out {out!r} is neither a folder nor a picture ({', '.join(PICTURES)})"
            )
        else:
            path = given / path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        existed = path.exists()
        path.open("ab").close()
        if not existed:
            path.unlink()
    except OSError as error:
        raise _unwritable(path, error) from None
    return path


def _unwritable(path: Path, error: OSError) -> _InputError:
    return _InputError(f"the picture {str(path)!r} cannot be written: {error.strerror or error}")


def _discover(trajectory: Trajectory, options: argparse.Namespace) -> Discovery | None:
    """What was found; None, after a line on stderr, if no law was."""
    start = time.monotonic()
    last = None

    def progress(stage: str, share: float = 0.0) -> None:
        """A line per stage; the share of it that is done would be too much news."""
        nonlocal last
        if stage != last:
            print(f"[{time.monotonic() - start:5.1f} s] {stage}", file=sys.stderr, flush=True)
        last = stage

    progress("loading")
    from nsode_jax.decoding.compiled import keep_compiled_programs
    from nsode_jax.discovery.discover import DiscoveryError, discover
    from nsode_jax.modeling.pretrained import WeightsError

    keep_compiled_programs()
    try:
        discovery = discover(
            trajectory.t,
            trajectory.y,
            weights=options.weights,
            beams=options.beams,
            samples=options.samples,
            polynomial_degree=options.polynomials,
            seed=options.seed,
            progress=progress,
        )
    except DiscoveryError as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return None
    except WeightsError as error:
        raise _InputError(" ".join(str(error).split())) from error
    progress(f"done, {len(discovery.candidates)} candidates")
    return discovery


def table(candidates: Sequence[Candidate]) -> str:
    """The candidates as aligned text: rank, R2, complexity, formula f(y)."""
    rows = [("rank", "R2", "complexity", "dy/dt =")]
    for rank, candidate in enumerate(candidates, start=1):
        formula = candidate.expression.rounded(DIGITS).infix
        rows.append((str(rank), _r2_text(candidate.r2), str(candidate.complexity), formula))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return "\n".join(
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths)) + f"  {row[3]}"
        for row in rows
    )


def law(best: Candidate, trajectory: Trajectory, time_name: str, value_name: str) -> str:
    """The best law in the words of the file, and where its solution starts."""
    t, y = _as_symbol(time_name), _as_symbol(value_name)
    formula = re.sub(r"\by\b", lambda _: y, best.expression.rounded(DIGITS).infix)
    start = f"{y} = {best.y0:.{DIGITS}g} at {t} = {trajectory.t[0]:g}"
    return f"d{y}/d{t} = {formula}\nwith {start}, R2 = {_r2_text(best.r2)}"


def _r2_text(r2: float) -> str:
    if r2 == float("-inf"):
        return "diverges"
    return f"{r2:.5f}" if abs(r2) < 10 else f"{r2:.1e}"


def _as_symbol(name: str) -> str:
    """A name that cannot be mistaken for a part of the formula."""
    return name if name.isidentifier() else f"[{name}]"


def _save_picture(discovery: Discovery, path: Path, time_name: str, value_name: str) -> None:
    from nsode_jax.discovery.plot import plot

    try:
        plot(discovery, path, time_name, value_name)
    except OSError as error:
        raise _unwritable(path, error) from None


if __name__ == "__main__":
    sys.exit(main())
