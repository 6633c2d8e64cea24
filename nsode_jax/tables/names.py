"""What the name of a column says of what it holds."""

from __future__ import annotations

import csv
import re

_UNITS = (
    r"sec|secs|seconds?|min|mins|minutes?|hrs?|hours?|days?|weeks?|months?|yrs?|years?"
    r"|sekunden?|minuten|stunden?|tage?|wochen?|monate?|jahre?|jours?|heures?|ann[e\u00e9]es?"
    r"|segundos?|minutos?|horas?|d[i\u00ed]as?|semanas?|meses|a\u00f1os?"
)
_TIME = re.compile(
    r"(?:time|times|zeit|tiempo|timestamp)(?:[^a-z].*)?"
    rf"|(?-i:t)|(?-i:t)[ _](?!min\b)(?:{_UNITS}|s|ms|h|d)"
    rf"|t ?[(\[/,] ?(?:{_UNITS}|s|ms|h|d|a)[)\]]?",
    re.IGNORECASE,
)
_MAY_BE_TIME = re.compile(r"(?:t|temps)(?:[^a-z].*)?", re.IGNORECASE)
_TEMPERATURE = re.compile(
    r"t[ _(\[/,.-]*(?:\u00b0|deg|(?:[cfk]|max|air|water|soil|room|mean|avg)(?![a-z])).*",
    re.IGNORECASE,
)
_LIKE_TIME = re.compile(
    rf"(?:{_UNITS})"
    r"|(?:.*[^a-z])?(?:time|zeit|date|datum|fecha|elapsed)(?:[^a-z].*)?"
    rf"|.*[(\[](?:{_UNITS}|s|ms|h|d)[)\]]\W*",
    re.IGNORECASE,
)
_PARTS = (
    ("years?", "jahr"),
    ("months?", "monat"),
    ("weeks?", "woche"),
    ("days?", "tag"),
    ("hours?", "hrs?", "stunden?"),
    ("min", "mins", "minutes?", "minuten?"),
    ("sec", "secs", "seconds?", "sekunden?"),
)
_ROWS = re.compile(
    r"|unnamed: 0|(?:s|sr|sl|lfd)[ _.]*(?:no|nr|#)\.?"
    r"|row ?names?|rows?|index|idx|id|no\.?|nr\.?|num\.?|number|#|n\u00b0"
    r"|(?:sample|point|obs|observation|record|reading|entry|cycle|scan|line|measurement)s?"
    r"(?:[ _.]*(?:no|nr|num|number|id|#)\.?)?",
    re.IGNORECASE,
)
_CHAMBER = re.compile(r"(?:temp(?:erature)?\b|t ?\u00b0).*", re.IGNORECASE)
_SUMMARY = re.compile(
    r"(?:.*[\s_.-])?(?:means?|avg|averages?|medians?|mittelwert|moyenne)(?:[\s_.-].*)?|n",
    re.IGNORECASE,
)
ERRORS = re.compile(
    r"(?:(.*?)[\s_.(\[-]+)?"
    r"(?:sd|std|stdev|std ?err|sem|err|errors?|sigma|uncertainty|standard (?:deviation|error))"
    r"(?:[\s_.()\[\]-].*)?",
    re.IGNORECASE,
)
"""Names of standard deviations; the group is of what they are."""


def listed(text: str) -> list[str]:
    """Names with commas between them; those with commas themselves in quotation marks."""
    rows = csv.reader([" ".join(text.split())], skipinitialspace=True)
    return [name.strip() for name in next(rows, []) if name.strip()]


def is_time(name: str) -> bool:
    """Whether the name is one of times and of nothing else."""
    return _TIME.fullmatch(name) is not None


def may_be_time(name: str) -> bool:
    """Whether it is a short name of times that others give to temperatures: T, temps."""
    return _MAY_BE_TIME.fullmatch(name) is not None and _TEMPERATURE.fullmatch(name) is None


def is_like_time(name: str) -> bool:
    """Whether the name is that of a unit of time, has one in brackets, or speaks of time."""
    return is_time(name) or _LIKE_TIME.fullmatch(name) is not None


def part_of_time(name: str) -> int | None:
    """Of what unit the name is, from 0 for years to 6 for seconds; None for another name."""
    for rank, words in enumerate(_PARTS):
        if re.fullmatch("|".join(words), name, re.IGNORECASE):
            return rank
    return None


def numbers_rows(name: str) -> bool:
    """Whether columns of this name, or without any, often just number the rows."""
    return _ROWS.fullmatch(name) is not None


def is_of_chamber(name: str) -> bool:
    """Whether it is the temperature that plate readers put between time and wells."""
    return _CHAMBER.fullmatch(name) is not None


def is_error(name: str) -> bool:
    """Whether the name is one of standard deviations."""
    return ERRORS.fullmatch(name) is not None


def is_summary(name: str) -> bool:
    """Whether the name is one of means, deviations or numbers of other columns."""
    return _SUMMARY.fullmatch(name) is not None or is_error(name)
