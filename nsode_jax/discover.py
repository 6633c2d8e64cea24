"""Finds the law dy/dt = f(y) behind a series in a file.

    python -m nsode_jax.discover data.csv --out report/

prints the candidates, best first, and the best law with its uncertainty, and writes a
report to the folder; without --out only a picture of the data and the best law.
"""

from __future__ import annotations

import argparse
import dataclasses
import shutil
import sys
import textwrap
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TextIO

from nsode_jax.dynamics.trajectory import Trajectory, TrajectoryError, count

# JAX and the model are imported only once the input is known to be good, so that
# a mistyped file name is answered at once.
from nsode_jax.reporting.formatting import time_text
from nsode_jax.search.effort import EFFORTS, SOURCES
from nsode_jax.tables.quantities import read_quantities
from nsode_jax.tables.table import Measurements, read_measurements

if TYPE_CHECKING:
    from nsode_jax.reporting.discovery import Discovery

PROGRAM = "nsode_jax.discover"
PICTURES = (".png", ".pdf", ".svg")
NARROWEST = 80  # Columns for which tables and notes are set on a terminal.


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
    for stream in (sys.stdout, sys.stderr):
        # A name, or a ±, that the terminal's encoding lacks must not end the program.
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
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
    no_network = options.beams == options.samples == 0
    if no_network and options.sources == ("network",) and not options.laws:
        raise _InputError("--sources network with --beams 0 --samples 0 leaves no law to try")
    if _is_system(options):
        return _run_system(options)
    read = _read(options)
    trajectories, notes, names = read.trajectories, read.notes, read.names
    output = _output(options.file, options.out)
    for note in notes:
        print(_remark("note", note))
    points = count(sum(len(trajectory) for trajectory in trajectories), "point")
    start = min(trajectory.t[0] for trajectory in trajectories)
    end = max(trajectory.t[-1] for trajectory in trajectories)
    several = f", {len(trajectories)} series" if len(trajectories) > 1 else ""
    span = f"from {time_text(start)} to {time_text(end)}"
    print(f"{points} of {names[1]} over {names[0]} {span}{several}", flush=True)

    discovery = _discover(read, options)
    if discovery is None:
        return 1
    from nsode_jax.reporting.analysis import residual_remark
    from nsode_jax.reporting.certainty import certainty_text
    from nsode_jax.reporting.next_measurement import next_measurement
    from nsode_jax.reporting.text import law_text, table_text, tried_text

    print(f"\n{table_text(discovery, options.candidates, _columns())}\n")
    print(law_text(discovery, *names))
    if sure := certainty_text(discovery):
        print(_remark("how sure", sure))
    if advice := next_measurement(discovery):
        print(_remark("to measure next", str(advice)))
    if tried := tried_text(discovery):
        print(_remark("tried", tried))
    if (residuals := residual_remark(discovery)).warns:
        print(_remark("note", residuals.text))
    for note in discovery.notes:
        if note not in notes:
            print(_remark("note", note))
    # The report is to tell too what was done to the file.
    all_notes = tuple(dict.fromkeys((*notes, *discovery.notes)))
    _write(dataclasses.replace(discovery, notes=all_notes), output, *names, options)
    return 0


def _is_system(options: argparse.Namespace) -> bool:
    """Whether several quantities, time, inputs or second order are asked for."""
    several = "," in (options.value or "") and not options.replicates
    return bool(several or options.explicit_time or options.order == 2 or options.input)


def _run_system(options: argparse.Namespace) -> int:
    """The same for laws of several quantities, of time, inputs, or of second order."""
    for name, given in (
        ("--replicates", options.replicates),
        ("--robust", options.robust),
        ("--try", options.laws),
        ("--operators", options.operators is not None),
        ("--max-symbols", options.max_symbols is not None),
        ("--sources", options.sources != SOURCES),
        ("--weights", options.weights != "small"),
        ("--beams", options.beams is not None),
        ("--samples", options.samples is not None),
        ("--seed", options.seed != 0),
        ("--out", options.out is not None),
    ):
        if given:
            raise _InputError(f"{name} is for one quantity with dy/dt = f(y) only; leave it out")
    if options.value is None:
        raise _InputError("name the columns that have laws: --value prey,predator")
    quantities = [name.strip() for name in options.value.split(",")]
    inputs = [name.strip() for name in (options.input or "").split(",") if name.strip()]
    read = read_quantities(
        options.file,
        [*quantities, *inputs],
        options.time,
        series=options.series,
        start=getattr(options, "from"),
        end=options.to,
        decimal=options.decimal,
        thousands=options.thousands,
    )
    for note in read.notes:
        print(_remark("note", note))
    points = count(sum(t.size for t in read.times), "point")
    print(f"{points} of {', '.join(quantities)} over {read.time_name}", flush=True)
    progress = _Progress(sys.stderr)
    progress("loading")
    from nsode_jax.decoding.compiled import keep_compiled_programs
    from nsode_jax.discovery.pipeline import DiscoveryError
    from nsode_jax.discovery.systems import discover_system
    from nsode_jax.reporting.system_result import system_text, table_text

    keep_compiled_programs()
    number = len(quantities)
    try:
        found = discover_system(
            list(read.times),
            [values[:, :number] for values in read.values],
            inputs=[values[:, number:] for values in read.values] if inputs else None,
            explicit_time=options.explicit_time,
            order=options.order,
            names=quantities,
            input_names=inputs or None,
            effort=options.effort,
            progress=progress,
        )
    except DiscoveryError as error:
        progress.end_line()
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return 1
    except ValueError as error:
        raise _InputError(str(error)) from error
    finally:
        progress.end_line()
    print(f"\n{table_text(found, options.candidates)}\n\n{system_text(found.best)}")
    for note in found.notes:
        print(_remark("note", note))
    return 0


def _read(options: argparse.Namespace) -> Measurements:
    """The series of the file."""
    start, end = getattr(options, "from"), options.to
    reading = ("time", "value", "series", "replicates", "decimal", "thousands")
    chosen = {name: getattr(options, name) for name in reading}
    return read_measurements(options.file, **chosen, start=start, end=end)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog=f"python -m {PROGRAM}",
        description="Finds the law dy/dt = f(y) behind a series in a file.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add(
        "file",
        help="table with a column of times and a column of values: text, .xlsx, .ods, .parquet, "
        ".feather or .h5; - for standard input, clipboard for what was copied",
    )
    add("--time", metavar="COL", help="column of times: name, or number from 1")
    add(
        "--value",
        metavar="COL",
        help="column of values: name, or number from 1; several for coupled laws: prey,predator",
    )
    add("--input", metavar="COLS", help="columns of measured inputs that laws may depend on")
    add("--explicit-time", action="store_true", help="laws may depend on the time too")
    add(
        "--order",
        type=int,
        choices=(1, 2),
        default=1,
        help="2: positions are measured, and their accelerations have laws (%(default)s)",
    )
    add(
        "--series",
        metavar="COL",
        help="column that tells several series of one law apart, which stand below each other; "
        "restart: a series ends where the clock starts again",
    )
    add(
        "--replicates",
        action="store_true",
        help="each column of values is a series of one law: --value rep1,rep2,rep3, or all columns",
    )
    add("--from", metavar="TIME", help="first time to use: a number, or a date as in the file")
    add("--to", metavar="TIME", help="last time to use")
    add("--decimal", metavar="MARK", help="decimal mark, . or , where the columns do not tell")
    add("--thousands", metavar="MARK", help="mark between thousands: , . ' or a space, likewise")
    add(
        "--out",
        metavar="PATH",
        help="folder for a report, or picture to draw (.png .pdf .svg); without it a picture "
        "in the current folder",
    )
    add(
        "--effort",
        choices=tuple(EFFORTS),
        default="default",
        help="how hard to search: fast, default, or thorough, which takes minutes (%(default)s)",
    )
    add(
        "--candidates",
        type=_whole(1, 10_000),
        default=10,
        metavar="N",
        help="rows of the table (%(default)s)",
    )
    add(
        "--weights",
        default="small",
        metavar="NAME",
        help="network weights: shipped ones, or a folder (%(default)s)",
    )
    add(
        "--beams",
        type=_whole(0, 4096),
        metavar="N",
        help="width of the network's beam search (by the effort)",
    )
    add(
        "--samples",
        type=_whole(0, 4096),
        metavar="N",
        help="laws drawn from the network beside it (by the effort)",
    )
    add(
        "--sources",
        type=_sources,
        default=SOURCES,
        metavar="NAMES",
        help="where candidate laws come from, separated by commas: network, named laws (of the "
        "sciences), enumeration (all simple laws), library (polynomials and sums); all by default",
    )
    add(
        "--try",
        dest="laws",
        action="append",
        type=_law,
        default=[],
        metavar="FORMULA",
        help="law of your own to be tried too, such as 0.5*y*(1 - y/600); may be repeated",
    )
    add(
        "--operators",
        type=_operators,
        metavar="NAMES",
        help="operators that laws may use beside + - * /, separated by commas, such as pow,exp; "
        "all by default",
    )
    add(
        "--max-symbols",
        type=_whole(1, 100),
        metavar="N",
        help="most operators, variables and constants of a law",
    )
    add(
        "--robust",
        action="store_true",
        help="values far from the law count less, for data with outliers",
    )
    add(
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


def _sources(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    for name in names:
        if name not in SOURCES:
            raise argparse.ArgumentTypeError(f"{name!r} is not one of {', '.join(SOURCES)}")
    return names


def _operators(text: str) -> tuple[str, ...]:
    from nsode_jax.expressions.operators import ARITHMETIC, OPERATORS

    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        if name not in OPERATORS:
            beside = ", ".join(sorted(set(OPERATORS) - ARITHMETIC))
            raise argparse.ArgumentTypeError(f"{name!r} is not one of {beside}")
    return names


def _law(text: str) -> str:
    from nsode_jax.expressions.expression import Expression, ExpressionError

    try:
        Expression.from_infix(text)
    except ExpressionError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no law: {error}") from None
    return text


# --- the search --------------------------------------------------------------


def _discover(read: Measurements, options: argparse.Namespace) -> Discovery | None:
    """What was found; None, after a line on stderr, if no law was."""
    progress = _Progress(sys.stderr)
    progress("loading")
    from nsode_jax.decoding.compiled import keep_compiled_programs
    from nsode_jax.discovery.pipeline import DiscoveryError, discover
    from nsode_jax.modeling.pretrained import WeightsError

    keep_compiled_programs()
    try:
        discovery = discover(
            *_as_given(read.trajectories),
            weights=options.weights,
            effort=options.effort,
            beams=options.beams,
            samples=options.samples,
            sources=options.sources,
            candidates=options.laws,
            operators=options.operators,
            max_symbols=options.max_symbols,
            robust=options.robust,
            limits=read.limits if any(limit.t.size for limit in read.limits) else (),
            seed=options.seed,
            progress=progress,
        )
        progress(f"done, {count(len(discovery.candidates), 'candidate')}")
    except DiscoveryError as error:
        progress.end_line()
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return None
    except WeightsError as error:
        raise _InputError(" ".join(str(error).split())) from error
    finally:
        progress.end_line()
    return discovery


def _as_given(trajectories: Sequence[Trajectory]) -> tuple:
    """Times and values as `discover` takes them: of one series, or lists of several."""
    if len(trajectories) == 1:
        return trajectories[0].t, trajectories[0].y
    return [series.t for series in trajectories], [series.y for series in trajectories]


class _Progress:
    """A line per stage; on a terminal the share that is done is updated at its end."""

    def __init__(self, stream: TextIO):
        self._stream, self._terminal = stream, stream.isatty()
        self._start = time.monotonic()
        self._stage, self._line, self._percent = None, "", 0
        self._open = False

    def __call__(self, stage: str, share: float = 0.0) -> None:
        percent = round(100 * min(max(share, 0.0), 1.0))
        if stage != self._stage:
            self.end_line()
            self._stage, self._percent = stage, 0
            self._line = f"[{time.monotonic() - self._start:5.1f} s] {stage}"
            self._open = self._terminal
            print(self._line, file=self._stream, end="" if self._open else "\n", flush=True)
        if self._open and percent != self._percent:
            self._percent = percent
            print(f"\r{self._line} {percent:3d}%", file=self._stream, end="", flush=True)

    def end_line(self) -> None:
        """What comes next begins a line of its own; that of a stage that is over has no share."""
        if self._open:
            without = f"\r{self._line}     " if self._percent else ""
            print(without, file=self._stream, flush=True)
        self._open = False


# --- what is printed ---------------------------------------------------------


def _remark(kind: str, text: str) -> str:
    """Broken between words on a terminal; one line elsewhere, where it may be searched."""
    columns, remark = _columns(), f"{kind}: {text}"
    if columns is None:
        return remark
    return textwrap.fill(
        remark,
        min(columns, 100),
        subsequent_indent=" " * len(f"{kind}: "),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _columns() -> int | None:
    """The width of the terminal; None if the output goes elsewhere."""
    if not sys.stdout.isatty():
        return None
    return max(NARROWEST, shutil.get_terminal_size().columns)


# --- what is written ---------------------------------------------------------


class _Output(NamedTuple):
    """Where the results go: a picture, or the folder of a report."""

    path: Path
    is_report: bool


def _output(file: str, out: str | None) -> _Output:
    """Where the results go; tried now, since a search in vain would cost minutes."""
    if out is None:
        output = _Output(Path(f"{Path(file).stem}_law.png"), False)
    else:
        given = Path(out)
        folder = given.is_dir() or out.endswith("/") or not given.suffix
        if not folder and given.suffix.lower() not in PICTURES:
            raise _InputError(
                f"--out {out!r} is neither a folder nor a picture ({', '.join(PICTURES)})"
            )
        output = _Output(given, folder)
    try:
        _try_to_write(output.path / "report.html" if output.is_report else output.path)
    except OSError as error:
        raise _unwritable(output, error) from None
    return output


def _try_to_write(path: Path) -> None:
    """Opens the file for writing, and leaves everything as it was."""
    absent = [folder for folder in path.absolute().parents if not folder.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        existed = path.exists()
        path.open("ab").close()
        if not existed:
            path.unlink()
    finally:
        for folder in absent:
            folder.rmdir()


def _unwritable(output: _Output, error: OSError) -> _InputError:
    what = "report" if output.is_report else "picture"
    return _InputError(
        f"the {what} {str(output.path)!r} cannot be written: {error.strerror or error}"
    )


def _write(
    discovery: Discovery,
    output: _Output,
    time_name: str,
    value_name: str,
    options: argparse.Namespace,
) -> None:
    """Draws the picture or writes the report, and says where."""
    from nsode_jax.reporting.plot import plot
    from nsode_jax.reporting.report import write_report

    try:
        if not output.is_report:
            output.path.parent.mkdir(parents=True, exist_ok=True)
            plot(discovery, output.path, time_name, value_name)
            print(f"picture: {output.path}")
            return
        source = Path(options.file).name
        chosen = _chosen(options)
        written = write_report(discovery, output.path, time_name, value_name, source, chosen)
    except OSError as error:
        raise _unwritable(output, error) from None
    print(f"report: {written[0]}")
    for path in written:
        if path.suffix == ".json":
            print(f"JSON: {path}")


def _chosen(options: argparse.Namespace) -> dict[str, object]:
    """The options that make the result what it is."""
    names = ("effort", "beams", "samples", "weights", "max_symbols", "seed")
    chosen = {name: getattr(options, name) for name in names}
    chosen = {name: value for name, value in chosen.items() if value is not None}
    if options.sources != SOURCES:
        chosen["sources"] = ", ".join(options.sources)
    if options.operators is not None:
        chosen["operators"] = ", ".join(options.operators) or "none"
    if options.robust:
        chosen["robust"] = True
    if options.laws:
        chosen["tried"] = "; ".join(options.laws)
    return chosen


if __name__ == "__main__":
    sys.exit(main())
