"""Finds the law dy/dt = f(y) behind a series in a file, or the laws of several quantities.

    python -m nsode_jax.discover data.csv --out report/

prints the candidates, best first, and the best law with its uncertainty, and writes a
report to the folder; without --out only a picture of the data and the best law.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from types import ModuleType

from nsode_jax.console import each, own_constants, scalar, system
from nsode_jax.console.arguments import PROGRAM, InputError, is_system, parse
from nsode_jax.dynamics.trajectory import TrajectoryError


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
        options = parse(argv)
        return _command(options).run(options)
    except (InputError, TrajectoryError) as error:
        print(f"{PROGRAM}: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"{PROGRAM}: stopped", file=sys.stderr)
        return 130


def _command(options: argparse.Namespace) -> ModuleType:
    """The command for what is asked."""
    if options.each:
        return each
    if options.constants == "own" or options.form is not None:
        return own_constants
    return system if is_system(options) else scalar


if __name__ == "__main__":
    sys.exit(main())
