"""Finds the law dy/dt = f(y) behind a series in a file, or the laws of several quantities.

    python -m nsode_jax.discover data.csv --out report/

prints the candidates, best first, and the best law with its uncertainty, and writes a
report to the folder; without --out only a picture of the data and the best law.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from nsode_jax.console.arguments import PROGRAM, InputError, parse
from nsode_jax.console.commands import command_of
from nsode_jax.console.terminal import output_may_end
from nsode_jax.dynamics.vectors import TrajectoryError


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
        with output_may_end():
            options = parse(argv)
            return command_of(options).run(options)
    except (InputError, TrajectoryError) as error:
        print(f"{PROGRAM}: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"{PROGRAM}: stopped", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
