"""The unit that the name of a column ends with: "time_h", "mass (g/L)", "t [min]"."""

from __future__ import annotations

import re

_BRACKETS = re.compile(r"[\[(]([^\[\]()]{1,60})[\])]\s*$")
_SINCE = re.compile(r"(\w+?)s? since .*")
_TIMES = frozenset(
    "ms s sec second seconds min minute minutes h hr hrs hour hours d day days week weeks "
    "month months yr year years a".split()
)
_VALUES = frozenset("ng ug mg kg nM uM mM mol mmol umol mL ml mm cm km Pa kPa hPa bar mV".split())


def unit_of(name: str, *, is_time: bool = False) -> str:
    """The unit in the name of a column; empty if it names none.

    Args:
      name: such as "mass [g/L]"; after an underscore or a comma only units that cannot
        well be anything else are taken for one.
      is_time: whether it is the column of times.
    """
    if bracket := _BRACKETS.search(name):
        unit = bracket[1].strip()
        if since := _SINCE.fullmatch(unit):
            return since[1]
        return unit if len(unit) <= 12 and re.match(r"[^\W\d]|[%°µ]", unit) else ""
    last = re.split(r"[_,\s]+", name.strip())[-1]
    if last != name.strip() and last in (_TIMES if is_time else _VALUES):
        return last
    return ""
