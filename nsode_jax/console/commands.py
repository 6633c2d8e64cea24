"""Which command does what is asked.

They are alike: `read_input(options)` gives the data, or says in a line why they cannot be used;
`find(read, options, progress)` gives the laws, and `chosen(options)` what of the options a report
lists.
"""

from __future__ import annotations

import argparse
from types import ModuleType

from nsode_jax.console import each, own_constants, scalar, system
from nsode_jax.console.arguments import is_system


def command_of(options: argparse.Namespace) -> ModuleType:
    """The command for what is asked."""
    if options.each:
        return each
    if options.constants == "own" or options.form is not None:
        return own_constants
    return system if is_system(options) else scalar
