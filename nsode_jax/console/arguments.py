"""What `python -m nsode_jax.discover` can be asked; what cannot be used is refused in a line."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping, Sequence

from nsode_jax.search.effort import EFFORTS, SOURCES
from nsode_jax.tables.names import listed

PROGRAM = "nsode_jax.discover"

_BEGIN_WITH_MINUS = ("--known", "--try", "--form", "--bounds", "--from", "--to")
"""Options whose values may begin with a minus."""

_BOUND = re.compile(
    r"(?:(?P<low>[^<>=]+)<=?)?\s*(?P<name>[A-Za-z_]\w*)\s*(?:(?P<sign>[<>])=?(?P<high>[^<>=]+))?",
    re.ASCII,
)


class InputError(Exception):
    """What the user gave cannot be used; the message is one line."""


class Parser(argparse.ArgumentParser):
    """A parser that refuses in a line what it does not know."""

    def error(self, message: str):
        """
        Raises:
          InputError: always.
        """
        unknown = message.removeprefix("unrecognized arguments: ")
        takes_file = any(action.dest == "file" for action in self._actions)
        hint = ""
        if takes_file and unknown != message and not unknown.startswith("-"):
            hint = "there is one file, and a name with blanks needs quotes; "
        raise InputError(f"{message} ({hint}--help lists the options)")


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options of a command line.

    Raises:
      InputError: if one is unknown, or has a value that it cannot have.
    """
    options = _parser().parse_args(_joined(sys.argv[1:] if argv is None else argv))
    no_network = options.beams == options.samples == 0
    if no_network and options.sources == ("network",) and not options.laws:
        raise InputError("--sources network with --beams 0 --samples 0 leaves no law to try")
    if options.known is not None and options.sources == ("network",) and not options.laws:
        raise InputError("--known needs another source than the network, which knows whole laws")
    if options.constants != "own" and options.shared:
        raise InputError("--shared goes with --constants own")
    if options.bounds and options.form is None:
        raise InputError("--bounds goes with --form, where the constants have names")
    if options.processes is not None and not options.each:
        raise InputError("--processes goes with --each")
    return options


def refuse(given: Mapping[str, bool], why: str) -> None:
    """Refuses options that do not go with what is asked.

    Args:
      given: whether each was given, by its name.
      why: what to say of one, after its name.

    Raises:
      InputError: if one was.
    """
    for name, is_given in given.items():
        if is_given:
            raise InputError(f"{name} {why}; leave it out")


def of_systems(options: argparse.Namespace) -> dict[str, bool]:
    """The options of laws of several quantities, time, inputs and second order, as given or not."""
    return {
        "--explicit-time": options.explicit_time,
        "--order 2": options.order == 2,
        "--input": options.input is not None,
    }


def require_one_quantity(options: argparse.Namespace, asked: str) -> None:
    """Refuses several columns of values that are no replicates.

    Raises:
      InputError: if there are such.
    """
    if several_quantities(options):
        raise InputError(
            f"{asked} is for one quantity: name one column of values, or, if each column is a "
            "series of that quantity, add --replicates"
        )


def several_quantities(options: argparse.Namespace) -> bool:
    """Whether the columns of values are quantities with a law each."""
    return len(listed(options.value or "")) > 1 and not options.replicates


def _joined(argv: Sequence[str]) -> list[str]:
    """The arguments, formulas joined to their options: -0.1*y is no option of its own."""
    joined: list[str] = []
    for argument in argv:
        is_value = argument.startswith("-") and not argument.startswith("--")
        if joined and joined[-1] in _BEGIN_WITH_MINUS and is_value:
            joined[-1] += f"={argument}"
        else:
            joined.append(argument)
    return joined


def is_system(options: argparse.Namespace) -> bool:
    """Whether several quantities, time, inputs or second order are asked for."""
    return several_quantities(options) or any(of_systems(options).values())


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog=f"python -m {PROGRAM}",
        usage="%(prog)s file [options]",
        description="Finds the law dy/dt = f(y) behind a series in a file.",
        allow_abbrev=False,
    )
    _ask_of_the_table(parser.add_argument_group("the table").add_argument)
    _ask_of_the_kind(parser.add_argument_group("the kind of law").add_argument)
    _ask_what_is_known(parser.add_argument_group("what is known of the law").add_argument)
    _ask_of_the_search(parser.add_argument_group("the search").add_argument)
    _ask_of_the_results(parser.add_argument_group("the results").add_argument)
    return parser


def _ask_of_the_table(add: Callable) -> None:
    add(
        "file",
        help="table with a column of times and a column of values: text; .xlsx or .ods (extra "
        "excel), .parquet or .feather (extra parquet), .h5 (extra hdf5); - for standard input, "
        "clipboard for what was copied",
    )
    add("--time", metavar="COL", help="column of times: name, or number from 1")
    add(
        "--value",
        metavar="COL",
        help="column of values: name, or number from 1; several for coupled laws: prey,predator",
    )
    add(
        "--input",
        metavar="COLS",
        help="columns of measured inputs that laws may depend on; what changes in steps is held "
        "from its row until the next",
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
    add(
        "--sigma",
        metavar="COL",
        help="known errors of measurement: the column of their standard deviations, or a number; "
        "laws are then judged by chi-squared; one quantity only",
    )
    add("--from", metavar="TIME", help="first time to use: a number, or a date as in the file")
    add("--to", metavar="TIME", help="last time to use")
    add("--decimal", metavar="MARK", help="decimal mark, . or , where the columns do not tell")
    add("--thousands", metavar="MARK", help="mark between thousands: , . ' or a space, likewise")
    add(
        "--dates",
        metavar="ORDER",
        help="day-first or month-first, of dates such as 01/03/2020 that do not tell",
    )


def _ask_of_the_kind(add: Callable) -> None:
    add("--explicit-time", action="store_true", help="laws may depend on the time too")
    add(
        "--order",
        type=int,
        choices=(1, 2),
        default=1,
        help="2: positions are measured, and their accelerations have laws (%(default)s)",
    )
    add(
        "--constants",
        choices=("common", "own"),
        default="common",
        help="own: the series share the form of the law, and each has constants of its own "
        "(%(default)s)",
    )
    add(
        "--shared",
        type=_names,
        default=(),
        metavar="NAMES",
        help="with --constants own: constants that are the same in all series, such as K",
    )
    add(
        "--form",
        metavar="FORMULA",
        help="the form, if it is known, such as r*y*(1 - y/K), of one series, or of several with "
        "--constants own; nothing is searched then",
    )
    add(
        "--bounds",
        type=_bounds,
        default={},
        metavar="BOUNDS",
        help="with --form: where its constants may be, such as 'K > 0, 0 < r < 5'",
    )
    add(
        "--each",
        action="store_true",
        help="each series has a law of its own; --out is a folder, where the work goes on if it "
        "was stopped",
    )
    add(
        "--processes",
        type=whole(1, 1024),
        metavar="N",
        help="with --each: so many side by side (as many as there are cores)",
    )


def _ask_what_is_known(add: Callable) -> None:
    add(
        "--known",
        metavar="FORMULA",
        help="part of the law that is known, such as -0.1*y, or the law with a gap for the rest: "
        "'0.5*y*(1 - ?)'; --try, --operators and the like are of the rest then; one quantity only",
    )
    add("--zero-at-zero", action="store_true", help="f(0) must be 0; one quantity only")
    add(
        "--try",
        dest="laws",
        action="append",
        default=[],
        metavar="FORMULA",
        help="law of your own to be tried too, such as r*y*(1 - y/K) or, to begin with these "
        "constants, 0.5*y*(1 - y/600); for several quantities a*x - b*x*y; c*x*y - d*y; may be "
        "repeated",
    )
    add(
        "--named-laws",
        metavar="FILE",
        help="named laws of your own beside the package's, a table in TOML; none: no named laws "
        "at all; one quantity only",
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
        type=whole(1, 100),
        metavar="N",
        help="most operators, variables and constants of a law",
    )


def _ask_of_the_search(add: Callable) -> None:
    add(
        "--effort",
        choices=tuple(EFFORTS),
        default="default",
        help="how hard to search: fast, default, or thorough, which takes minutes (%(default)s)",
    )
    add(
        "--sources",
        type=_sources,
        default=SOURCES,
        metavar="NAMES",
        help="where candidate laws come from, separated by commas: network, named laws (of the "
        "sciences), enumeration (all simple laws), library (polynomials and sums); all by default; "
        "one quantity only",
    )
    add(
        "--weights",
        default="small",
        metavar="NAME",
        help="network weights: shipped ones, or a folder; one quantity only (%(default)s)",
    )
    add(
        "--beams",
        type=whole(0, 4096),
        metavar="N",
        help="width of the network's beam search; one quantity only (by the effort)",
    )
    add(
        "--samples",
        type=whole(0, 4096),
        metavar="N",
        help="laws drawn from the network beside it; one quantity only (by the effort)",
    )
    add(
        "--robust",
        action="store_true",
        help="values far from the law count less, for data with outliers; one quantity only",
    )
    add(
        "--seed",
        type=whole(0, 2**32 - 1),
        default=0,
        metavar="N",
        help="random seed; one quantity only (%(default)s)",
    )


def _ask_of_the_results(add: Callable) -> None:
    add(
        "--out",
        metavar="PATH",
        help="folder for a report, or picture to draw (.png .pdf .svg); without it a picture "
        "in the current folder",
    )
    add(
        "--candidates",
        type=whole(1, 10_000),
        default=10,
        metavar="N",
        help="rows of the table (%(default)s)",
    )


def whole(low: int, high: int) -> Callable[[str], int]:
    """Reads a whole number within limits."""

    def convert(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = None
        if number is None or not low <= number <= high:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {low} to {high}")
        return number

    return convert


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _bounds(text: str) -> dict[str, tuple[float | None, float | None]]:
    """Of constants, by their names: K > 0, 0 < r < 5."""
    found: dict[str, tuple[float | None, float | None]] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        match = _BOUND.fullmatch(part)
        try:
            if match is None or not (match["low"] or match["high"]):
                raise ValueError
            low, high = (None if end is None else float(end) for end in match.group("low", "high"))
            if match["sign"] == ">":
                if low is not None:
                    raise ValueError
                low, high = high, None
        except ValueError:
            raise argparse.ArgumentTypeError(
                f"{part!r} is no bound such as K > 0 or 0 < r < 5"
            ) from None
        if match["name"] in found:
            raise argparse.ArgumentTypeError(f"{match['name']} stands twice; write 0 < r < 5")
        found[match["name"]] = low, high
    return found


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
