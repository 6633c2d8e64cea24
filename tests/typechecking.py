"""How calls are checked against type hints while tests run; see conftest."""

import dataclasses
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


def check_calls(modules: Sequence[str]) -> None:
    """Has the calls of these modules, not yet imported, checked against types and shapes.

    The axes of arrays are compared across a call's arguments and its result, for which Jaxtyping
    binds them anew in each call. Where no hint has an array that is left out: these are nine
    calls of ten, and a discovery would take half as long again.
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
        if inspect.isfunction(function) and not _has_arrays(function):
            return typechecker(function)
        return jaxtyped(function, typechecker=typechecker)

    jaxtyping.jaxtyped = checked
    jaxtyping.install_import_hook(modules, "typechecking.typechecker")


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
