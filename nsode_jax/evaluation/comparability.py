"""How far results on our test sets can be compared with the paper's, as a section of the report."""

from __future__ import annotations

import collections

from nsode_jax.evaluation.markdown import bullets, escape, section
from nsode_jax.evaluation.measures import METRIC_NAMES
from nsode_jax.evaluation.methods import METHODS
from nsode_jax.evaluation.published import PAPER_PROBLEMS, SAMPLES, Contradiction, contradictions
from nsode_jax.evaluation.results import problems
from nsode_jax.evaluation.testsets import NOT_DRAWN
from nsode_jax.results.formatting import listed

_DRAWN_SETS = ("iv", "constants", "skeletons", "iv-163")


def comparability() -> str:
    """The section of the report that says it."""
    sizes = listed([f"{len(problems(name))} ({name})" for name in _DRAWN_SETS])
    samples = listed([f"{sample} is a random sample of {of}" for sample, of in SAMPLES.items()])
    longer = [f"{number} problems of {name}" for name, number in NOT_DRAWN.items()]
    missing = sum(problem.expression is None for problem in problems("classic"))
    return section(
        "How far the comparison with the paper goes",
        bullets(
            (
                f"{listed(_DRAWN_SETS)} have the paper's sizes, {sizes}, and are drawn anew, of "
                "equations of the paper's prior whose skeletons are among the first 100,000 of "
                "the shipped bank (skeletons: are in no bank and no training). Short skeletons are "
                "more often among these than long ones, so the sets are easier than a draw of all "
                "equations would be. The values of iv's constants are known only to a network "
                "trained on `nsode/paper`.",
                "Since half of its examples are fresh laws, the training of the shipped network "
                "draws from the bank only skeletons of at most five operators: those of "
                f"{listed(longer)} have more.",
                f"{samples}.",
                f"iv-163 has at most {_most_per_complexity('iv-163')} problems of a complexity, "
                "where the paper has at most 10: with our canonical forms iv holds too few long "
                "formulas for that. iv-163-even is an older set, with up to "
                f"{_most_per_complexity('iv-163-even')}, on which earlier results stand.",
                "textbook has the paper's equations and initial values.",
                "classic has the paper's functions; the paper does not print its initial values, "
                f"so ours are others. {missing} of the {len(problems('classic'))} laws cannot be "
                "written with our operators; it counts as a miss in skeleton.",
                "odebench is not in the paper.",
                "A problem without candidates, be it for an error or a time limit, is a miss.",
                "Seconds are of different machines.",
            )
        ),
        "Some cells of the paper contradict its definitions, so that no measurement can "
        "reproduce them:",
        bullets(map(_contradiction, contradictions())),
    )


def _most_per_complexity(name: str) -> int:
    laws = (problem.expression for problem in problems(name))
    return max(collections.Counter(law.complexity for law in laws if law is not None).values())


def _contradiction(found: Contradiction) -> str:
    metric = escape(METRIC_NAMES[found.metric])
    where = f"{found.set}, {METHODS[found.method].title}: {metric} is {found.value:g}"
    if found.part is None:
        return f"{where}, which is no share of {PAPER_PROBLEMS[found.set]} problems"
    return f"{where}, more than one of its parts, {escape(METRIC_NAMES[found.part])}"
