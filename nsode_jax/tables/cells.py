"""What a single cell holds: a number as people write it, a date, a clock time, or text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

MISSING = frozenset(
    ("", "na", "n/a", "#n/a", "nan", "nat", "null", "none", "<na>", "-", "--", "---", ".", "?")
    + ("#na", "-nan", "1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan")
    + ("\u2013", "\u2014", "\u2026", "...", "n.a.", "n.a", "k.a.", "missing", "no data", "nodata")
)
_BELOW = ("<lod", "<loq", "<lloq", "lod", "loq", "lloq", "blq", "bloq", "bdl", "bql", "nd", "n.d.")
_ABOVE = ("ovrflw", "overflow", "over", "saturated", ">uloq", "uloq", "aloq")
LIMITS = {**dict.fromkeys(_BELOW, "<"), **dict.fromkeys(_ABOVE, ">")}
"""Words, in small letters, for a value below or above what could be measured."""

SPACES = " \u00a0\u202f\u2009"
APOSTROPHES = "'\u2019"
_GROUPED = (
    rf"\d{{1,3}}(?P<group>[.,{SPACES}{APOSTROPHES}])\d{{3}}(?:(?P=group)\d{{3}})*"
    r"|\d{1,2}(?:,\d\d)+,\d{3}"  # As in India: 1,20,300.
)
_EXPONENTS = "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079\u207b"
_EXPONENT = (
    r"(?:e[-+]?|d[-+])\d+"
    rf"|\s*[x*\u00d7\u00b7]\s*10(?:(?:\^|\*\*)\s*[-+\u2212]?\d+|[{_EXPONENTS}]+)"
)
_CURRENCY = "$\u20ac\u00a3\u00a5"
NUMBER = re.compile(
    rf"(?P<mark>[<>\u2264\u2265]=?)?\s*(?P<currency>[{_CURRENCY}])?\s*"
    r"(?P<number>[-+\u2212]?(?:\d+(?:\.\d*|,\d+)?|[.,]\d+"
    rf"|(?:{_GROUPED})(?:[.,]\d+)?)(?:{_EXPONENT})?"
    r"|[-+]?inf(?:inity)?)"
    rf"\s*(?P<unit>[%\u2030{_CURRENCY}]|[a-z\u00b5\u03bc\u00b0\u03a9][a-z\u00b5\u03bc\u00b0\u03a9/%.^\u00b2\u00b3*-]{{0,11}})?",
    re.ASCII | re.IGNORECASE,
)
"""A number with its mark of a limit (<, >) and its unit."""

_CLOCK = r"(\d+ ?d(?:ays?)?,? ?)?\d{1,4}:\d\d(:\d\d)?([.,]\d+)?( ?[ap]\.?m\.?)?"
_SOME = r"\d+(?:[.,]\d+)?"
SPAN = re.compile(
    rf"(?:(?P<d>{_SOME}) ?d(?:ays?)?,? ?)?(?:(?P<h>{_SOME}) ?h(?:(?:ou)?rs?)?,? ?)?"
    rf"(?:(?P<m>{_SOME})(?: ?m(?:in(?:ute)?s?)?,? ?|(?<=h\d\d)))?"
    rf"(?:(?P<s>{_SOME}) ?s(?:ec(?:ond)?s?)?)?",
    re.ASCII | re.IGNORECASE,
)
"""A duration in parts with their units: 1 h 30 min, 1h30."""
_DATE = (
    r"(\d{4}[-/.]\d{1,2}([-/.]\d{1,2})?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}"
    r"|\d{1,2}[- ][a-z]{3,9}\.?,?[- ]\d{2,4}|[a-z]{3,9}\.? (\d{1,2}, ?)?\d{4})"
    rf"([t ,]+{_CLOCK})? ?(z|utc|[+-]\d\d:?(\d\d)?)?"
)
_PLAIN = r"[-+]?((\d+(\.\d*)?|\.\d+)(e[-+]?\d+)?|inf(inity)?)"
_FORMS = {
    kind: re.compile(text, re.ASCII | re.IGNORECASE)
    for kind, text in (("number", _PLAIN), ("date", _DATE), ("clock", rf"[-\u2212]?{_CLOCK}"))
}
DATA = ("number", "date", "clock")
_DIGITS = str.maketrans(_EXPONENTS, "0123456789-")
_POWER = re.compile(r"[x*\u00d7\u00b7]10(?:\^|\*\*)?|[dD](?=[-+])", re.IGNORECASE)
_DROPPED = str.maketrans("", "", SPACES + APOSTROPHES)


def clean_number(text: str) -> str:
    """As computers write it but for commas and points: without blanks and apostrophes between
    groups, with a hyphen for the true minus and e for any way to write the power of ten."""
    text = text.translate(_DROPPED).replace("\u2212", "-")
    return _POWER.sub("e", text).translate(_DIGITS)


def unit_of_cell(match: re.Match[str]) -> str:
    """The unit of a number (a match of NUMBER), "" for none."""
    return match["unit"] or match["currency"] or ""


def kind_of(cell: str | float) -> str:
    """What the cell holds: number, date, clock, text, or missing; dressed for a number that
    is not written as computers write it: with a decimal comma, a percent sign, a unit."""
    cell = cell.strip() if isinstance(cell, str) else ""
    if cell.lower() in MISSING or cell.lower() in LIMITS:
        return "missing"
    plain = next((kind for kind, form in _FORMS.items() if form.fullmatch(cell)), None)
    if plain is None and cell[:1].isdigit() and (span := SPAN.fullmatch(cell)):
        plain = "clock" if len(span.groups()) - span.groups().count(None) > 1 else None
    return plain or ("dressed" if NUMBER.fullmatch(cell) else "text")


def usual_unit(matches: Sequence[re.Match[str] | None]) -> str:
    """The unit that at least half of the numbers have; others are not read."""
    units = Counter(unit_of_cell(match) for match in matches if match is not None)
    if not units:
        return ""
    unit, times = units.most_common(1)[0]
    return unit if 2 * times >= units.total() else ""


def usual_kind(kinds: Counter) -> str:
    """The kind of a column: what at least half of its cells hold that are not missing.

    Durations such as 1 h are dressed numbers until there are others such as 1 h 30 min.
    """
    known = kinds.total() - kinds["missing"]
    numbers = kinds["number"] + kinds["dressed"]
    if 3 * kinds["clock"] >= known and not kinds["number"] and known:
        numbers = 0
        kinds = kinds + Counter(clock=kinds["dressed"])
    if known and 2 * numbers >= known:
        return "number"
    return next((kind for kind in DATA if known and 2 * kinds[kind] >= known), "text")
