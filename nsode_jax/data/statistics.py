"""What a data set holds: kept and dropped, complexities, operators (paper, appendix C)."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path

from nsode_jax.expressions.coupled import SystemSkeleton
from nsode_jax.expressions.expression import Skeleton
from nsode_jax.expressions.operators import OPERATORS

_BAR = 40


@dataclasses.dataclass
class Statistics:
    """Counts over the examples of a data set; they add up.

    Attributes:
      counts: of equations and solutions: kept, and dropped for what reason.
      complexities: examples of each complexity, the number of tokens.
      operators: how often each operator occurs.
    """

    counts: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    complexities: collections.Counter[int] = dataclasses.field(default_factory=collections.Counter)
    operators: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)

    @classmethod
    def of(cls, skeletons: Iterable[Skeleton | SystemSkeleton]) -> Statistics:
        """Statistics of some examples."""
        statistics = cls()
        for skeleton in skeletons:
            statistics.add(skeleton)
        return statistics

    def add(self, skeleton: Skeleton | SystemSkeleton, examples: int = 1) -> None:
        """Counts some examples of one skeleton."""
        self.complexities[len(skeleton.tokens)] += examples
        for token in skeleton.tokens:
            if token in OPERATORS:
                self.operators[token] += examples

    def __iadd__(self, other: Statistics) -> Statistics:
        for field in dataclasses.fields(self):
            getattr(self, field.name).update(getattr(other, field.name))
        return self

    def to_json(self) -> dict:
        """As plain dictionaries, in a fixed order."""
        return {
            field.name: {str(key): n for key, n in sorted(getattr(self, field.name).items())}
            for field in dataclasses.fields(self)
        }

    @classmethod
    def from_json(cls, content: dict) -> Statistics:
        """The inverse of `to_json`."""
        return cls(
            collections.Counter(content["counts"]),
            collections.Counter({int(k): n for k, n in content["complexities"].items()}),
            collections.Counter(content["operators"]),
        )

    def report(self, what: str = "examples") -> str:
        """Tables of text; `what` names the things that were counted."""
        sections = [
            _table("equations and solutions", self.counts.most_common()),
            _table(f"complexity of the {what}", sorted(self.complexities.items()), bars=True),
            _table(f"operators in the {what}", self.operators.most_common(), bars=True),
        ]
        return "\n\n".join(sections)

    def plot(self, path: str | Path, what: str = "examples") -> None:
        """Draws both distributions, as the paper's figure 5 does, into a PNG file."""
        from matplotlib.figure import Figure
        from matplotlib.ticker import MaxNLocator

        figure = Figure(figsize=(9, 3), layout="constrained")
        left, right = figure.subplots(1, 2)
        left.bar(list(self.complexities), list(self.complexities.values()), width=0.85)
        left.set(xlabel="complexity (operators, variables, constants)", ylabel=what)
        left.xaxis.set_major_locator(MaxNLocator(integer=True))
        tokens = [token for token in OPERATORS if self.operators[token]]
        right.bar(tokens, [self.operators[token] for token in tokens], width=0.85)
        right.set(xlabel="operator", ylabel="occurrences")
        for axes in (left, right):
            axes.yaxis.set_major_locator(MaxNLocator(integer=True))
            axes.spines[["top", "right"]].set_visible(False)
        figure.savefig(path, dpi=120)


def _table(title: str, rows: Sequence[tuple[object, int]], bars: bool = False) -> str:
    if not rows:
        return f"{title}: none"
    total, largest = sum(n for _, n in rows), max(n for _, n in rows)
    lines = [title]
    for name, n in rows:
        line = f"  {name!s:<32}{n:>13,}"
        if bars:
            line += f"{n / total:>7.1%} {'#' * round(_BAR * n / largest)}"
        lines.append(line.rstrip())
    return "\n".join(lines)
