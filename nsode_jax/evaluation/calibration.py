"""Whether stated probabilities mean what they say: python -m nsode_jax.evaluation.calibration

Laws are drawn from the prior (`simulated_laws`) and discovered at effort "fast" without the
network. Of each problem the best candidates are kept in a file of JSON lines (gzip), with
what their scores are made of and whether they are right, so that probabilities can be stated
anew in seconds. A run that was interrupted goes on where it stopped.

Constants of the score are chosen on the first half of each 120 problems; the second half
tells how often a law is right that is stated to be so with some probability.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import gzip
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nsode_jax.discovery.law_search import LawSearch
from nsode_jax.discovery.series import read_series
from nsode_jax.evaluation.simulated_laws import (
    CYCLE,
    KINDS,
    LENGTHS,
    NOISES,
    Simulated,
    simulate,
)
from nsode_jax.expressions.constants import is_plain
from nsode_jax.expressions.expression import Expression, ExpressionError
from nsode_jax.observed.dataset import Dataset
from nsode_jax.search.effort import EFFORTS
from nsode_jax.search.enumeration import EnumerationSource
from nsode_jax.search.library import LibrarySource
from nsode_jax.search.named_laws import NamedLawSource
from nsode_jax.selection.form import form_of
from nsode_jax.selection.prior import Prior
from nsode_jax.selection.probabilities import posterior_probabilities, unseen_probability
from nsode_jax.selection.ranking import counted_share
from nsode_jax.selection.score import information, relative_residual, residual_floor

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MIN_STATED = 0.02
"""Candidates that are less probable are not counted: nearly all are wrong, and said so."""

_KEPT = 12
_WITHIN = 14.0  # Of the best score: a thousandth of its probability.
_SAME = 1e-3
_BINS = 10
_DIGITS = 4

Pool = dict[str, Any]


def pool(problem: Simulated) -> Pool:
    """The candidates of a problem, what their scores are made of, and which are right."""
    trajectories, _ = read_series(problem.t, problem.y)
    effort = EFFORTS["fast"]
    sources = (
        NamedLawSource(problem.catalogue()),
        EnumerationSource(effort.symbols, effort.beyond),
        LibrarySource(),
    )
    starts = [float(series.t[0]) for series in trajectories]
    found = LawSearch(sources, effort.refine, seed=problem.seed).run(
        Dataset.of(trajectories), starts
    )
    data, form = found.data, found.form
    truth = found.units.inverse().restore(problem.law, absorb=False)
    known = Prior.load()
    prior = known.without_fields(problem.field) if problem.field else known
    candidates = []
    for fit, value in found.ranked:
        law, rms = fit.expression, relative_residual(fit, data, form)
        if not math.isfinite(value):
            continue
        log_prior = prior.log_prior(law)
        candidates.append(
            {
                "law": law,
                "score": round(value + 2 * (known.log_prior(law) - log_prior), 2),
                "log_prior": round(log_prior, 2),
                "rms": _rounded(rms),
                "information": [_rounded(g) for g in information(law, form)],
                "numbers": sum(not is_plain(c) for c in law.constants),
            }
        )
    candidates = sorted(candidates, key=lambda c: c["score"])[:_KEPT]
    candidates = [c for c in candidates if c["score"] <= candidates[0]["score"] + _WITHIN]
    for candidate in candidates:
        law = candidate["law"]
        candidate["right"] = is_right(truth, law, data.low, data.high)
        candidate["law"] = _told(law)
    return {
        "seed": problem.seed,
        "kind": problem.kind,
        "field": problem.field,
        "noise": problem.noise,
        "count": data.count,
        "share": _rounded(counted_share([fit for fit, _ in found.ranked], data, form)),
        "floor": _rounded(residual_floor(data, form)),
        "truth": _told(truth),
        "candidates": candidates,
    }


def _rounded(value: float, digits: int = _DIGITS) -> float:
    return float(f"{value:.{digits}g}")


def _told(law: Expression) -> str:
    return law.skeleton.with_constants([_rounded(c) for c in law.constants]).infix


def is_right(truth: Expression, law: Expression, low: float, high: float) -> bool:
    """Whether a law has the true form, or says the same over the observed range.

    Plain exponents belong to the form: y**3 is not y**2.
    """
    with contextlib.suppress(ExpressionError):
        if form_of(law) == form_of(truth):
            return True
    grid = np.linspace(low, high, 64)
    rates, true_rates = law.evaluate(grid), truth.evaluate(grid)
    defined = np.isfinite(true_rates)
    difference = np.abs(rates - true_rates)[defined]
    return bool(difference.max(initial=-1.0) <= _SAME * np.abs(true_rates[defined]).max(initial=0))


# --- stated probabilities ----------------------------------------------------


def stated(pool: Pool) -> list[float]:
    """The probability of each candidate, as a discovery states it."""
    candidates = pool["candidates"]
    scores = [candidate["score"] for candidate in candidates]
    return posterior_probabilities(
        scores, unseen_probability(candidates[0]["rms"], pool["share"] < 1.0)
    )


def is_held_out(pool: Pool) -> bool:
    """Whether a problem is for measuring, not for choosing constants."""
    return bool(pool["seed"] // CYCLE % 2)


@dataclasses.dataclass(frozen=True)
class Reliability:
    """Stated probabilities and how often they were right, in bins of a tenth.

    Attributes:
      stated: mean stated probability of each bin that is not empty.
      right: share of its candidates that are right.
      count: number of its candidates.
    """

    stated: tuple[float, ...]
    right: tuple[float, ...]
    count: tuple[int, ...]

    @property
    def error(self) -> float:
        """Expected calibration error: the mean gap of the bins, by their counts."""
        gaps = np.abs(np.array(self.stated) - np.array(self.right))
        return float(np.average(gaps, weights=self.count))


def reliability(pools: Sequence[Pool], *, first_only: bool = False) -> Reliability:
    """Of all candidates that are stated to be worth a look, or of the first of each problem."""
    pairs = []
    for one in pools:
        told = list(zip(stated(one), (c["right"] for c in one["candidates"]), strict=True))
        pairs += told[:1] if first_only else [pair for pair in told if pair[0] >= MIN_STATED]
    probabilities, right = (np.array(column, float) for column in zip(*pairs, strict=True))
    bins = np.minimum((probabilities * _BINS).astype(int), _BINS - 1)
    kept = [bins == i for i in range(_BINS) if (bins == i).any()]
    return Reliability(
        tuple(float(probabilities[i].mean()) for i in kept),
        tuple(float(right[i].mean()) for i in kept),
        tuple(int(i.sum()) for i in kept),
    )


def table(pools: Sequence[Pool]) -> str:
    """Calibration errors and shares of right first laws, by groups of problems, as Markdown."""
    groups = {"chosen on": [p for p in pools if not is_held_out(p)]}
    held_out = groups["held out"] = [p for p in pools if is_held_out(p)]
    groups |= {f"- {kind}": [p for p in held_out if p["kind"] == kind] for kind in KINDS}
    groups |= {f"- {noise:.0%} noise": [p for p in held_out if p["noise"] == noise]
               for noise in NOISES}  # fmt: skip
    groups |= {f"- {n} points": [p for p in held_out if p["count"] == n] for n in LENGTHS}
    rows = [
        "| problems | number | first is right | it was stated | error, first | error, all |",
        "|---|---|---|---|---|---|",
    ]
    for name, group in groups.items():
        if group:
            first, every = reliability(group, first_only=True), reliability(group)
            told, right = (
                np.average(values, weights=first.count) for values in (first.stated, first.right)
            )
            rows.append(
                f"| {name} | {len(group)} | {right:.0%} | {told:.0%} | {first.error:.2f} | "
                f"{every.error:.2f} |"
            )
    return "\n".join(rows)


def draw(pools: Sequence[Pool]) -> Figure:
    """The reliability diagram of the problems held out, with numbers of candidates."""
    from matplotlib.figure import Figure  # Slow to import.

    held_out = [p for p in pools if is_held_out(p)]
    figure = Figure(figsize=(4.6, 4.4), layout="constrained")
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color="#999999", lw=1, zorder=0)
    found = reliability(held_out)
    right, count = np.array(found.right), np.array(found.count)
    # Agresti and Coull's: a bin without a miss is no proof.
    share = (right * count + 2) / (count + 4)
    error = np.sqrt(share * (1 - share) / (count + 4))
    axes.errorbar(found.stated, right, yerr=error, color="#0072B2", marker="o", capsize=2)
    for x, y, number in zip(found.stated, right, count, strict=True):
        axes.annotate(f"{number}", (x, y), (6, -10), textcoords="offset points", fontsize=8)
    axes.set(xlabel="stated probability", ylabel="share that is right", xlim=(0, 1), ylim=(0, 1))
    axes.set_aspect("equal")
    axes.set_title(f"{len(held_out)} simulated problems held out", fontsize=10)
    return figure


# --- the command line --------------------------------------------------------


def read(path: Path) -> list[Pool]:
    """The pools of a file that have candidates."""
    if not path.exists():
        return []
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [one for one in map(json.loads, file) if one["candidates"]]


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m nsode_jax.evaluation.calibration",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("pools", type=Path, help="file of the candidates, which is added to")
    parser.add_argument("--problems", type=int, default=0, help="so many in all (default: as are)")
    parser.add_argument("--figure", type=Path, help="where to draw the reliability diagram")
    options = parser.parse_args(argv)
    done = {one["seed"] for one in read(options.pools)}
    for seed in range(options.problems):
        if seed not in done:
            line = json.dumps(pool(simulate(seed)), allow_nan=False)
            with gzip.open(options.pools, "at", encoding="utf-8") as file:
                file.write(line + "\n")
            print(f"{seed + 1} of {options.problems}", flush=True)
    pools = read(options.pools)
    print(table(pools))
    if options.figure and not any(map(is_held_out, pools)):
        parser.error(
            f"a figure takes more than {CYCLE} --problems, of which the later are held out"
        )
    if options.figure:
        draw(pools).savefig(options.figure, dpi=110)


if __name__ == "__main__":
    main()
