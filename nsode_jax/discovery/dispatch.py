"""One `discover`: for a single quantity with dy/dt = f(y), and for everything beyond."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Literal, overload

import numpy as np

from nsode_jax.discovery import own_constants, pipeline, systems
from nsode_jax.reporting.discovery import Discovery
from nsode_jax.reporting.form_discovery import FormDiscovery
from nsode_jax.reporting.system_discovery import SystemDiscovery


@overload
def discover(
    t: Any, y: Any, *, explicit_time: Literal[True], **options: Any
) -> SystemDiscovery: ...
@overload
def discover(t: Any, y: Any, *, order: Literal[2], **options: Any) -> SystemDiscovery: ...
@overload
def discover(t: Any, y: Any, *, constants: Literal["own"], **options: Any) -> FormDiscovery: ...
@overload
def discover(t: Any, y: Any, **options: Any) -> Discovery: ...


def discover(
    t: Any,
    y: Any,
    *,
    explicit_time: bool = False,
    order: int = 1,
    inputs: Any = None,
    constants: str = "common",
    **options: Any,
) -> Discovery | SystemDiscovery | FormDiscovery:
    """Finds the laws behind measured series.

    Args:
      t: times, shape [time]; for several series or runs a list of such, or shared times.
      y: values of one quantity, shape [time], or of up to four measured together, shape
        [time, quantities], a list of rows or a DataFrame; a list of such for several series or
        runs, or an array [runs, time, quantities].
      explicit_time: whether laws may depend on the time too.
      order: 2 for d²y/dt² = f(y, v), where only positions are measured.
      inputs: columns of measured inputs that laws may depend on.
      constants: "own" for several series of one quantity that share the form of their law,
        each with constants of its own.
      options: of `pipeline.discover` for one quantity with dy/dt = f(y), of
        `own_constants.discover_own_constants`, or of `systems.discover_system`.

    Returns:
      `Discovery` for one quantity with dy/dt = f(y), `FormDiscovery` for such with constants
      of their own, else `SystemDiscovery`.

    Raises:
      ValueError: if constants of their own are asked for what has none, or an option does not
        go with what is asked.
    """
    t, y, inputs = _as_lists_of_runs(t, y, inputs)
    if constants not in ("common", "own"):
        raise ValueError(f'constants must be "common" or "own", got {constants!r}')
    if constants == "own":
        if explicit_time or order != 1 or inputs is not None or _several_quantities(y):
            raise ValueError(
                "constants of their own are for one quantity with dy/dt = f(y), not for several, "
                "time, inputs or second order"
            )
        _require_known(
            options,
            own_constants.discover_own_constants,
            "not for series that have constants of their own",
        )
        return own_constants.discover_own_constants(t, y, **options)
    if not explicit_time and order == 1 and inputs is None and not _several_quantities(y):
        _require_known(options, pipeline.discover, "not for one quantity with dy/dt = f(y)")
        return pipeline.discover(t, y, **options)
    _require_known(
        options,
        systems.discover_system,
        "for one quantity with dy/dt = f(y) only, not for several measured together, time, "
        "inputs or second order; if the columns of y are series of one quantity, give a list of "
        "them: list(y.T)",
    )
    return systems.discover_system(
        t, y, explicit_time=explicit_time, order=order, inputs=inputs, **options
    )


def _require_known(options: Mapping[str, Any], function: Callable[..., Any], where: str) -> None:
    """Refuses options that this kind of discovery has not."""
    unknown = sorted(set(options) - set(inspect.signature(function).parameters))
    if not unknown:
        return
    kinds = (pipeline.discover, own_constants.discover_own_constants, systems.discover_system)
    known = {name for kind in kinds for name in inspect.signature(kind).parameters}
    if nowhere := [name for name in unknown if name not in known]:
        raise ValueError(f"discover has no option {', '.join(nowhere)}")
    raise ValueError(f"{', '.join(unknown)}: {where}")


def _as_lists_of_runs(t: Any, y: Any, inputs: Any) -> tuple[Any, Any, Any]:
    """Arrays of runs as lists of these, and lists of rows as arrays; all else as it is."""
    if _are_rows(t, y):
        y = np.asarray(y)
    if isinstance(y, (list, tuple)) or np.ndim(y) != 3:
        return t, y, inputs
    times = list(t) if _axes(t) == 2 else t
    return times, list(y), list(inputs) if _axes(inputs) == 3 else inputs


def _are_rows(t: Any, y: Any) -> bool:
    """Whether this is a list of the values at each time, rather than of series."""
    if not isinstance(y, (list, tuple)) or not y or _axes(t) != 1 or len(y) != len(t):
        return False
    return _axes(y) == 2 and {np.shape(row) for row in y} == {np.shape(y[0])} != {(len(t),)}


def _axes(values: Any) -> int:
    """Of an array, or of a list of such, whatever their lengths."""
    if isinstance(values, (list, tuple)):
        return 1 + max(map(np.ndim, values), default=0)
    return np.ndim(values)


def _several_quantities(y: Any) -> bool:
    """Whether there is more than one column."""
    if isinstance(y, (list, tuple)):
        return bool(y) and all(np.ndim(part) == 2 and np.shape(part)[1] > 1 for part in y)
    return np.ndim(y) == 2 and np.shape(y)[1] > 1 and np.shape(y)[0] > 1
