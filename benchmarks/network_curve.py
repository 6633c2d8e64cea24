"""What the network alone finds against how many samples it has seen, and what more may bring.

    python benchmarks/network_curve.py [docs/network_curve.png]

prints the table of docs/scaling.md and draws its picture. The shares are of any of 1,536 beams on
iv-163-even; those of the shipped weights are read from docs/evaluation/results. The lines are
least squares in the logarithm of the samples through these points: a guess at what lies beyond,
not a measurement.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from nsode_jax.modeling.pretrained import load_pretrained

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs" / "evaluation" / "results" / "nsode" / "iv-163-even.jsonl"

OTHERS = {489_472: (38, 32), 2_691_072: (54, 39), 8_098_688: (59, 53)}
"""Of weights that are not shipped now. Samples seen: problems of 163 whose skeleton is written,
and whose f is within 5% (commits f8669ed and 995051f; the last, 2026-11-30, was no better than
what is shipped, and was not kept)."""

PAPER = (37.4, 42.3)
"""Percent by the paper's own network, 1.13 billion samples, on its own draw of 163."""

LABELS = ("skeleton", "f within 5%")
_FARTHER = (10, 100)


def points() -> dict[int, tuple[int, ...]]:
    """Samples seen and problems solved, the fewest samples first."""
    lines = [json.loads(line) for line in RESULTS.read_text(encoding="utf-8").splitlines()]
    ranks = [line["rank"] for line in lines]
    found = tuple(
        sum(rank[metric] is not None for rank in ranks) for metric in ("skeleton", "allclose")
    )
    *_, card = load_pretrained("small")
    return dict(sorted({**OTHERS, int(card["samples_seen"]): found}.items()))


def lines_through(measured: dict[int, tuple[int, ...]]) -> list[np.ndarray]:
    """Slope (per tenfold samples) and offset of the percentage, for each of `LABELS`."""
    logs = np.log10(list(measured))
    percent = 100 * np.array(list(measured.values())) / 163
    return [np.polyfit(logs, column, 1) for column in percent.T]


def table(measured: dict[int, tuple[int, ...]]) -> str:
    """Measured shares and those to be expected of more samples, as Markdown."""
    rows = ["| samples seen | skeleton | f within 5% |", "|---|---|---|"]
    for samples, found in measured.items():
        rows.append(f"| {samples:,} | " + " | ".join(f"{n / 1.63:.1f}%" for n in found) + " |")
    last, fitted = max(measured), lines_through(measured)
    for factor in _FARTHER:
        guesses = [np.polyval(line, np.log10(factor * last)) for line in fitted]
        told = " | ".join(f"about {guess:.0f}%" for guess in guesses)
        rows.append(f"| {factor} times as many, if it goes on so | {told} |")
    return "\n".join(rows)


def draw(measured: dict[int, tuple[int, ...]], path: Path) -> None:
    """Draws the points, the lines, and the paper's network."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.6, 3.6), layout="constrained")
    axes = figure.subplots()
    samples = np.array(list(measured))
    ahead = np.geomspace(samples[0], _FARTHER[-1] * samples[-1], 50)
    for k, (line, label) in enumerate(zip(lines_through(measured), LABELS, strict=True)):
        colour = ("#0072b2", "#d55e00")[k]
        percent = 100 * np.array([found[k] for found in measured.values()]) / 163
        axes.plot(samples, percent, "o", color=colour, label=label)
        axes.plot(ahead, np.polyval(line, np.log10(ahead)), "--", lw=1, color=colour)
        axes.plot(1.13e9, PAPER[k], "*", ms=10, color=colour, mec="k", mew=0.5)
    axes.plot([], [], "*k", ms=10, label="the paper's network, its 163")
    axes.set(xscale="log", xlabel="samples seen", ylabel="% of iv-163-even", ylim=(0, 100))
    axes.legend(frameon=False, loc="upper left")
    figure.savefig(path, dpi=110)


def main(argv: Sequence[str] | None = None) -> None:
    paths = sys.argv[1:] if argv is None else argv
    measured = points()
    print(table(measured))
    for path in paths:
        draw(measured, Path(path))


if __name__ == "__main__":
    main()
