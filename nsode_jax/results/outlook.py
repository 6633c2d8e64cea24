"""What becomes of the quantity after the data: the laws that matter, grouped by what they foretell.

Forms that the data cannot tell apart may still say the same of what matters, or differ in it.
"""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from nsode_jax.results.formatting import probability_text, value_of_range
from nsode_jax.results.result import Candidate, Result

_MATTERS = 0.02
"""Laws with a smaller share of the first one's probability do not matter."""

_MOST_LAWS = 12
_REACH = 10.0
"""What is farther away than so many ranges of the data is not said to be reached."""

_STEPS, _EXACTLY = 1000, 1e-9
_HALVINGS = 60
_ALIKE = 0.05
"""Values that differ by this share of the range of the data are one, and those that differ by
no more than twice the noise."""


class Fate(enum.Enum):
    """What a solution does in the end."""

    RESTS = "levels off"
    RISES = "goes on rising"
    FALLS = "goes on falling"
    ENDS = "ends, as the law is undefined beyond"


class Group(NamedTuple):
    """Laws that foretell the same.

    Attributes:
      ranks: of the laws, from 1.
      probability: of all of them together.
      fate: what they foretell.
      low, high: where the solutions rest or end, in units of y; NaN if they do neither.
      span: width of the range of the data.
    """

    ranks: tuple[int, ...]
    probability: float
    fate: Fate
    low: float
    high: float
    span: float

    @property
    def foretold(self) -> str:
        """Such as `levels off at 655 to 671`."""
        if math.isnan(self.low):
            return self.fate.value
        low, high = (
            f"{float(value_of_range(value, self.span)):.12g}" for value in (self.low, self.high)
        )
        place = low if low == high else f"{low} to {high}"
        what, _, more = self.fate.value.partition(",")
        return f"{what} at {place}{',' if more else ''}{more}"


@dataclasses.dataclass(frozen=True)
class Outlook:
    """What the laws that matter foretell of the (first) series, the likeliest first."""

    groups: tuple[Group, ...]

    def __str__(self) -> str:
        if len(self.groups) == 1:
            (only,) = self.groups
            number = len(only.ranks)
            who = "the law that matters" if number == 1 else f"all {number} laws that matter"
            return f"by {who} y {only.foretold}."
        told = [
            f"by {_numbered(group.ranks)} ({probability_text(group.probability)}) y "
            f"{group.foretold}"
            for group in self.groups
        ]
        return f"{'; '.join(told)}."


def outlook(result: Result) -> Outlook | None:
    """What the candidates that matter foretell beyond the last observation.

    Args:
      result: what was found; the first of its series is continued.

    Returns:
      The laws in groups; None if probabilities are unknown or no law has a solution.
    """
    values = np.concatenate([series.y for series in result.trajectories])
    told: list[tuple[int, Candidate, Fate, float]] = []
    for rank, law in enumerate(result.candidates[:_MOST_LAWS], start=1):
        if not law.probability >= _MATTERS * result.best.probability:
            continue
        last = float(law.predict(result.trajectory.t)[-1])
        if math.isfinite(last):
            told.append((rank, law, *_fate(law, last, float(values.min()), float(values.max()))))
    if not told:
        return None
    span = float(np.ptp(values))
    close = max(_ALIKE * span, 2 * result.best.residual_rms)
    groups = [
        Group(
            tuple(sorted(rank for rank, *_ in members)),
            sum(law.probability for _, law, *_ in members),
            members[0][2],
            min(place for *_, place in members),
            max(place for *_, place in members),
            span,
        )
        for members in _grouped(told, close)
    ]
    return Outlook(tuple(sorted(groups, key=lambda group: -group.probability)))


def _grouped(
    told: Sequence[tuple[int, Candidate, Fate, float]], close: float
) -> list[list[tuple[int, Candidate, Fate, float]]]:
    """Those of one fate at places that follow each other closely."""
    groups: list[list[tuple[int, Candidate, Fate, float]]] = []
    for one in sorted(told, key=lambda entry: (entry[2].name, entry[3])):
        before = groups[-1][-1] if groups else None
        if before and before[2] is one[2] and not one[3] - before[3] > close:
            groups[-1].append(one)
        else:
            groups.append([one])
    return groups


def _fate(law: Candidate, last: float, low: float, high: float) -> tuple[Fate, float]:
    """What becomes of a solution after its last value, and where; NaN if nowhere."""

    def rate(y: float) -> float:
        return float(law.expression.evaluate(y))

    now = rate(last)
    if now == 0.0:
        return Fate.RESTS, last
    reach = _REACH * (high - low)
    end = last + reach if now > 0 else last - reach
    if low >= 0 <= last:  # What was never negative may not be able to.
        end = max(end, 0.0)
    # Steps that grow, as what is near matters most; from half a step on, for `last` may rest.
    path = last + (end - last) * (np.geomspace(1e-4, 1.0, _STEPS) - 1e-4 / 2)
    path[-1] = end
    with np.errstate(all="ignore"):
        rates = law.expression.evaluate(path)
    same = np.isfinite(rates) & (np.sign(rates) == np.sign(now))  # Products may vanish.
    if same.all():
        return (Fate.RISES if now > 0 else Fate.FALLS), math.nan
    first = int(np.argmin(same))
    before = last if first == 0 else float(path[first - 1])
    if not math.isfinite(rates[first]):
        return _at_edge(rate, before, float(path[first]))
    if rates[first] == 0.0:
        return Fate.RESTS, float(path[first])
    after = float(path[first])
    root = brentq(rate, before, after, xtol=_EXACTLY * abs(after - before))
    assert isinstance(root, float)  # And no report on the search: none was asked for.
    # At a pole f changes sign without being zero.
    return (Fate.RESTS if abs(rate(root)) <= abs(now) else Fate.ENDS), root


def _at_edge(rate: Callable[[float], float], inside: float, outside: float) -> tuple[Fate, float]:
    """What a solution does at the edge of the law's domain: it rests where f falls to 0 there."""
    before = abs(rate(inside))
    for _ in range(_HALVINGS):
        middle = inside + 0.5 * (outside - inside)
        if math.isfinite(rate(middle)):
            inside = middle
        else:
            outside = middle
    edge = 0.0 if min(inside, outside) <= 0.0 <= max(inside, outside) else inside
    return (Fate.RESTS if abs(rate(inside)) <= 0.5 * before else Fate.ENDS), edge


def _numbered(ranks: Sequence[int]) -> str:
    return f"law {ranks[0]}" if len(ranks) == 1 else f"laws {', '.join(map(str, ranks))}"


__all__ = ["Fate", "Group", "Outlook", "outlook"]
