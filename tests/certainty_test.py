"""One sentence on how sure one may be, from all candidates."""

import itertools
import math
from collections.abc import Sequence

import pytest

from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.expression import Expression
from nsode_jax.reporting.certainty import certainty_text
from nsode_jax.results.result import Candidate, Result


def _text(*probabilities: float, laws: Sequence[str] = (), r2: float = 0.9) -> str:
    powers = itertools.combinations(range(2, 9), 2)  # Of forms of their own.
    laws = laws or [f"0.7*y**{a} + 0.3*y**{b}" for (a, b), _ in zip(powers, probabilities)]
    candidates = tuple(
        Candidate(Expression.from_infix(law), (1.0,), (0.0,), r2, 0.1, 1.0, probability=p)
        for law, p in zip(laws, probabilities, strict=True)
    )
    return certainty_text(Result(candidates, (Trajectory([0, 1, 2], [1, 2, 4]),), (), 1.0))


@pytest.mark.parametrize(
    ("probabilities", "expected"),
    [
        ((1.0,), "100.0% that the first form is right: it stands out."),
        (
            (0.8, 0.03, 0.02, 0.001),
            "80.0% that the first form is right, 5.1% that one of 2 others is, "
            "14.9% that none of those found is: it is the likeliest by far, but not certain.",
        ),
        (
            (0.4, 0.3, 0.15),
            "40.0% that the first form is right, 45.0% that one of 2 others is, "
            "15.0% that none of those found is: the data do not tell it from 2 others.",
        ),
        (
            (0.52, 0.48),
            "52.0% that the first form is right, 48.0% that the other one is: "
            "the data do not tell it from 1 other.",
        ),
        (
            (0.2, *[0.05] * 13),
            "20.0% that the first form is right, 65.0% that one of 13 others is, "
            "15.0% that none of those found is: many forms fit about as well.",
        ),
        ((math.nan, 0.2), ""),
    ],
)
def test_all_candidates_have_a_say(probabilities, expected):
    assert _text(*probabilities) == expected


@pytest.mark.parametrize(("r2", "explained"), [(0.42, "42%"), (-3.0, "0%"), (-math.inf, "0%")])
def test_what_explains_next_to_nothing_is_not_called_likely(r2, explained):
    said = _text(0.8, 0.03, r2=r2)
    assert said.endswith(
        f": but the best explains only {explained} of the variance of the data: believe none."
    )
    assert "likeliest" not in said


def test_laws_of_one_form_count_together():
    """A factor that is 1 in one of them is a matter of units; a power is not."""
    laws = ("0.9*y - 0.3*y**2", "y**3 - y", "y - 0.31*y**2", "0.4*y", "1.1*y - y**2")
    assert _text(0.4, 0.25, 0.2, 0.1, 0.002, laws=laws) == (
        "60.2% that the first form (laws 1 and 3) is right, 35.0% that one of 2 others is, "
        "4.8% that none of those found is: the data do not tell it from 1 other."
    )
