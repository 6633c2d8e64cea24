"""Forms for many series in words: the candidates, and what the constants of the best one are."""

from __future__ import annotations

import math

import numpy as np

from nsode_jax.results.form_candidate import SHOWN
from nsode_jax.results.formatting import aligned, probability_text, r2_text
from nsode_jax.results.own_constants import FormResult


def forms_text(found: FormResult, rows: int) -> str:
    """The best forms as aligned text."""
    header = ("rank", "probability", "median R²", "constants", "dy/dt =")
    lines = [header] + [
        (
            str(rank),
            probability_text(one.probability),
            r2_text(float(np.median(one.r2))),
            str(len(one.names)),
            f"{one.formula.text}  ({one.name})" if one.name else one.formula.text,
        )
        for rank, one in enumerate(found.candidates[:rows], start=1)
    ]
    return "\n".join(aligned(lines))


def best_form_text(found: FormResult) -> str:
    """The best form and what its constants are over the series."""
    best = found.best
    lines = [str(best)]
    meanings = dict(zip(best.names, best.meanings))
    for compared in best.compared():
        meaning = f"  [{meanings[compared.name]}]" if compared.name in meanings else ""
        shared = ", the same in all series" if compared.name in best.shared else ""
        lines.append(f"  {compared}{shared}{meaning}")
    least = r2_text(best.r2.min())
    rest = [f"R²: median {r2_text(float(np.median(best.r2)))}, least {least}"]
    if len(found.labels) == 1:
        rest = [f"R²: {least}"]
    if not math.isnan(best.goodness_of_fit):
        rest.append(f"goodness of fit {probability_text(best.goodness_of_fit)}")
    if found.unexplained:
        rest.append(
            f"no solution for {len(found.unexplained)} series: "
            f"{', '.join(found.unexplained[:SHOWN])}"
        )
    if found.conspicuous:
        rest.append(f"explained worse than the others: {', '.join(found.conspicuous[:SHOWN])}")
    rest += found.remarks
    return "\n".join([*lines, *(f"  {line}" for line in rest)])
