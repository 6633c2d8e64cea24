"""Results as lines of JSON in a file that is gone on with where it stopped; their commands."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from nsode_jax.baselines.scalar import NotInstalled
from nsode_jax.decoding.compiled import keep_compiled_programs
from nsode_jax.system.files import write_atomically

Line = dict[str, Any]
Key = TypeVar("Key", bound=Hashable)
SEED = {"type": int, "default": 0, "help": "of the noise"}
"""A flag of `command`."""

Tasks = Mapping[tuple[Any, ...], Callable[[], Line]]


def finish(
    path: Path,
    tasks: Mapping[Key, Callable[[], Line]],
    key: Callable[[Line], Key],
    tell: Callable[[Line], str],
) -> list[Line]:
    """Does the tasks whose lines the file lacks, and adds each line as it is there.

    Args:
      path: of the file; made if it is not there. A last line that was cut off is removed.
      tasks: by key, what gives a line.
      key: of a line. Lines of other tasks are left alone.
      tell: what to print of a new line.

    Returns:
      All lines of the file.
    """
    text = path.read_text("utf-8") if path.exists() else ""
    complete = text[: text.rfind("\n") + 1]
    if complete != text:
        write_atomically(path, complete.encode())
    lines = [json.loads(line) for line in complete.splitlines()]
    done = set(map(key, lines))
    for wanted, task in tasks.items():
        if wanted not in done:
            lines.append(task())
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(lines[-1]) + "\n")
            print(tell(lines[-1]), flush=True)
    return lines


def command(
    argv: Sequence[str] | None,
    module: str,
    description: str | None,
    flags: Mapping[str, Mapping[str, Any]],
    tasks: Callable[[argparse.Namespace], Tasks],
    key: Sequence[str],
    tell: Callable[[Line], str],
    table: Callable[[list[Line]], str],
) -> int:
    """A command that does what a file of results lacks, and prints a table of them all.

    Args:
      argv: of the command line; by default the process' own.
      module: of this package, whose command it is.
      description: for the help.
      flags: beside the file, as `ArgumentParser.add_argument` has them.
      tasks: what gives the lines, by the values of their key.
      key: names of the fields that tell a line from others.
      tell: what to print of a new line.
      table: of all lines.

    Returns:
      The exit code: 0, or 2 if a method's library is missing, which is told.
    """
    parser = argparse.ArgumentParser(
        prog=f"python -m {__package__}.{module}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("results", type=Path, help="file of results, a JSON line each")
    for name, settings in flags.items():
        parser.add_argument(name, **settings)
    options = parser.parse_args(argv)
    keep_compiled_programs()
    try:
        lines = finish(
            options.results, tasks(options), lambda line: tuple(line[name] for name in key), tell
        )
    except NotInstalled as error:
        print(f"{module}: {error}", file=sys.stderr)
        return 2
    print(table(lines))
    return 0
