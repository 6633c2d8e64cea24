"""A page on this machine: drop a file, see the laws behind it, move their constants.

    python -m nsode_jax.app

opens it in the browser. Data stay on this machine, and none of them on its disk.
"""

from __future__ import annotations

import argparse
import errno
import os
import socket
import sys
from collections.abc import Sequence
from functools import partial

from nsode_jax.console.arguments import InputError, Parser, whole
from nsode_jax.system.extras import MissingExtra, extra

PROGRAM = "nsode_jax.app"
LOOPBACK = ("127.0.0.1", "localhost")


def main(argv: Sequence[str] | None = None) -> int:
    """Serves the page until it is interrupted.

    Returns:
      Exit code: 0, or 2 if it cannot be served.
    """
    try:
        options = _parser().parse_args(argv)
        with extra("app", "the page"):
            import nicegui  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except (InputError, MissingExtra) as error:
        print(f"{PROGRAM}: error: {error}", file=sys.stderr)
        return 2
    if problem := _unusable(options.host, options.port):
        print(f"{PROGRAM}: error: {problem}", file=sys.stderr)
        return 2
    print(f"{PROGRAM}: starting", flush=True)
    from nsode_jax.app.page import serve

    hosts = LOOPBACK if options.host in LOOPBACK else ()
    ready = partial(_tell_where, options.host, options.port)
    serve(options.host, options.port, hosts, show=options.browser, ready=ready)
    return 0


def _tell_where(host: str, port: int) -> None:
    print(f"{PROGRAM}: http://{host}:{port} (Ctrl-C ends it)", flush=True)
    if host not in LOOPBACK:
        print(
            f"{PROGRAM}: note: whoever reaches this machine under {host} can use the page",
            flush=True,
        )


def _unusable(host: str, port: int) -> str:
    """Why the page cannot be served there; empty if it can."""
    try:
        with socket.create_server((host, port)):
            return ""
    except OSError as error:
        # Later Pythons tell the address again.
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
        option = "--port" if error.errno in (errno.EADDRINUSE, errno.EACCES) else "--host"
        return f"cannot serve at {host}:{port} ({reason}); choose another with {option}"


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog=f"python -m {PROGRAM}",
        description="Serves a page on this machine that finds the law behind data.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--host",
        default=LOOPBACK[0],
        help="address to serve at; other machines reach only others than %(default)s",
    )
    parser.add_argument(
        "--port", type=whole(1, 65535), metavar="PORT", default=8090, help="%(default)s"
    )
    parser.add_argument(
        "--no-browser", dest="browser", action="store_false", help="open no browser"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
