"""Numbers that others have published, and our own earlier ones, beside which ours stand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nsode_jax.evaluation.metrics import METRICS
from nsode_jax.evaluation.results import JOINT_METRICS

SECONDS = "seconds"

# --- the paper ----------------------------------------------------------------

PAPER_METHODS = ("nsode", "sindy", "gplearn", "aifeynman")

PAPER_PROBLEMS = {
    "iv": 5793,
    "constants": 2720,
    "skeletons": 100,
    "iv-163": 163,
    "textbook": 12,
    "classic": 26,
}
"""Size of each test set of the paper (section 3.1). It does not say how many `classic`
has; all its percentages there are shares of 26, the number of functions of our list."""

SAMPLES = {"iv-500": "iv", "constants-250": "constants"}
"""Random samples of test sets, which stand beside the paper's numbers on the whole set."""

GPLEARN_PARSING_SECONDS = 22.0
"""What the paper adds to GPLearn's seconds for reading its long formulas with SymPy."""

# Table 8 (appendix F); its rows for iv-163 and textbook are Table 1.
# Percent in the order of METRICS, then seconds per problem.
_TABLE_8 = {
    "iv": {"nsode": (52.0, 28.6, 50.6, 17.0, 22.6, 5.3)},
    "constants": {"nsode": (45.6, 21.7, 44.7, 9.8, 16.1, 5.3)},
    "skeletons": {"nsode": (19.0, 12.0, 33.0, 1.0, 2.0, 5.3)},
    "iv-163": {
        "nsode": (37.4, 24.5, 42.3, 15.3, 15.3, 5.4),
        "sindy": (3.7, 31.9, 25.8, 3.1, 3.1, 0.4),
        "gplearn": (2.5, 3.7, 14.7, 1.8, 1.8, 29.0),
        "aifeynman": (14.1, 49.7, 55.8, 13.5, 13.5, 1203.6),
    },
    "classic": {
        "nsode": (11.5, 57.7, 80.8, 0.0, 0.0, 5.2),
        "sindy": (0.0, 57.7, 57.7, 0.0, 0.0, 0.6),
        "gplearn": (3.8, 23.1, 30.8, 7.7, 7.7, 23.0),
        "aifeynman": (46.2, 88.5, 88.5, 46.2, 46.2, 1291.6),
    },
    "textbook": {
        "nsode": (41.7, 16.7, 25.0, 33.3, 8.3, 6.0),
        "sindy": (33.3, 50.0, 58.3, 41.7, 33.3, 1.0),
        "gplearn": (8.3, 0.0, 8.3, 0.0, 1.8, 23.0),
        "aifeynman": (91.7, 75.0, 75.0, 66.7, 66.7, 1267.1),
    },
}


def paper_value(name: str, method: str, metric: str) -> float | None:
    """A cell of the paper's Table 8, or None where it has none.

    Args:
      name: of the test set.
      method: one of `PAPER_METHODS`.
      metric: one of `METRICS`: percent of the problems; or `SECONDS` per problem.
    """
    values = _TABLE_8.get(name, {}).get(method)
    return None if values is None else values[(*METRICS, SECONDS).index(metric)]


class Contradiction(NamedTuple):
    """A cell of the paper that cannot be what its definition says.

    Attributes:
      set, method, metric: which cell.
      value: its percentage.
      part: the part of the joint metric that it exceeds; None where no number of
        problems is such a share of the set.
    """

    set: str
    method: str
    metric: str
    value: float
    part: str | None


def contradictions() -> Iterator[Contradiction]:
    """Joint metrics above one of their parts, and shares that the set cannot give."""
    for name, methods in _TABLE_8.items():
        for method, values in methods.items():
            percents: dict[str, float] = dict(zip(METRICS, values))
            for joint, parts in JOINT_METRICS.items():
                for part in parts:
                    if percents[joint] > percents[part]:
                        yield Contradiction(name, method, joint, percents[joint], part)
            for metric, percent in percents.items():
                if not _is_share(percent, PAPER_PROBLEMS[name]):
                    yield Contradiction(name, method, metric, percent, None)


def _is_share(percent: float, problems: int) -> bool:
    """Whether some number of the problems is this percentage, printed to 0.1."""
    nearest = 100.0 * round(percent / 100.0 * problems) / problems
    return abs(percent - nearest) < 0.0501


# --- our earlier measurements -------------------------------------------------


class EarlierResult(NamedTuple):
    """What we measured on ODEBench-1D before this package could (two cores, one seed).

    Attributes:
      method: what was fitted, and how.
      percents: (reconstruction, generalization) with R2 > 0.9, by (noise, drop).
      seconds: per problem, as a range.
    """

    method: str
    percents: dict[tuple[float, float], tuple[float, float]]
    seconds: str


EARLIER_ODEBENCH = (
    EarlierResult(
        "SINDy, polynomials to 3, tuned",
        {
            (0.0, 0.0): (97.8, 73.9),
            (0.01, 0.0): (93.5, 43.5),
            (0.05, 0.0): (67.4, 30.4),
            (0.0, 0.5): (97.8, 73.9),
            (0.05, 0.5): (17.4, 4.3),
        },
        "0.6 to 3",
    ),
    EarlierResult(
        "PyOperon + LM, Pareto pick",
        {
            (0.0, 0.0): (100.0, 78.3),
            (0.01, 0.0): (89.1, 52.2),
            (0.05, 0.0): (69.6, 30.4),
            (0.0, 0.5): (91.3, 69.6),
            (0.05, 0.5): (60.9, 26.1),
        },
        "2.5",
    ),
    EarlierResult(
        "ceiling: true skeleton, derivatives",
        {(0.0, 0.0): (97.8, 95.7), (0.05, 0.0): (89.1, 56.5), (0.05, 0.5): (87.0, 58.7)},
        "0.01",
    ),
    EarlierResult(
        "ceiling: true skeleton, trajectory",
        {(0.0, 0.0): (97.8, 97.8), (0.05, 0.0): (95.7, 73.9), (0.05, 0.5): (95.7, 78.3)},
        "0.3",
    ),
)
"""The ceilings are told the true skeleton and fit its constants only: to finite
differences by Levenberg-Marquardt, or to the trajectory with y0 free."""

EARLIER_OPERON_COMPLEXITY = (26, 35)
"""Mean tokens of PyOperon's formulas: the lowest and the highest of the corruptions."""
