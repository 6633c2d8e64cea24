"""How calls are checked against type hints while tests run; see conftest."""

import collections
import dataclasses
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO, ForwardRef, Self, TextIO, get_args

import jaxtyping
import numpy as np
from beartype import BeartypeConf, FrozenDict, beartype

typechecker = beartype(
    conf=BeartypeConf(
        is_pep484_tower=True,  # An int is a float.
        # NumPy's int is an int, what is open in memory is a file, and methods are checked one
        # by one, without their class.
        hint_overrides=FrozenDict(
            {int: int | np.integer, Self: object, BinaryIO: object, TextIO: object}
        ),
    )
)

_MOST = 50
"""Calls of a function with arrays that are checked in one test."""

_calls: collections.Counter[Callable] = collections.Counter()
"""Of such functions, in the test that runs."""


def check_calls(modules: Sequence[str]) -> None:
    """Has the calls of these modules, not yet imported, checked against types and shapes.

    The axes of arrays are compared across a call's arguments and its result, for which Jaxtyping
    binds them anew in each call. That takes longer than many a call itself. Where no hint has an
    array, in nine calls of ten, it is left out; of functions with arrays the first calls of each
    test are checked (`forget_calls`). Else a discovery would take twice as long.
    """
    if jaxtyping.config.jaxtyping_disable:
        return
    jaxtyped = jaxtyping.jaxtyped

    def checked(function: Any = None, *, typechecker: Callable) -> Any:
        if function is None:
            return lambda function: checked(function, typechecker=typechecker)
        if dataclasses.is_dataclass(function):
            function.__init__ = checked(function.__init__, typechecker=typechecker)
            return function
        if not inspect.isfunction(function):
            return jaxtyped(function, typechecker=typechecker)
        if _has_arrays(function):
            return _in_first_calls(jaxtyped(function, typechecker=typechecker), function)
        return typechecker(function)

    jaxtyping.jaxtyped = checked
    jaxtyping.install_import_hook(modules, "typechecking.typechecker")


def forget_calls() -> None:
    """A test begins: the next calls are its first."""
    _calls.clear()


def _in_first_calls(checked: Callable, function: Callable) -> Callable:
    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        if _calls[function] >= _MOST:
            return function(*args, **options)
        _calls[function] += 1
        return checked(*args, **options)

    return call


def _has_arrays(function: Callable) -> bool:
    """Whether a hint has an array; also where a name in one is not known yet."""
    classes = dict.fromkeys(function.__qualname__.split("."), object)  # Not there yet.
    try:
        hints = inspect.get_annotations(function, locals=classes, eval_str=True)
        return any(map(_is_array, hints.values()))
    except NameError:
        return True


def _is_array(hint: Any) -> bool:
    if isinstance(hint, str | ForwardRef):
        return True
    parts = hint if isinstance(hint, list) else get_args(hint)
    return getattr(hint, "__module__", "") == "jaxtyping" or any(map(_is_array, parts))
