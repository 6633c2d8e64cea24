"""What constants are fitted to: values of f at some nodes should explain a target, linearly.

The integral form and the derivative form of the data are both of this kind.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from jaxtyping import Float

from nsode_jax.expressions.expression import Expression
from nsode_jax.observed.splines import lagrange_weights


@dataclasses.dataclass(frozen=True, eq=False)
class Regression:
    """Least squares in f: target = operator f(nodes) + noise.

    Attributes:
      nodes: values of y at which f is evaluated, increasing, shape [nodes]; of several
        variables all their values, shape [variables, nodes].
      operator: from f at the nodes to what it explains, shape [rows, nodes].
      target: what is to be explained, in units of its own noise-free size, shape [rows].
      remainder: sum of squares that no f can explain, in the same units squared.
      count: number of observations.
      floor: root mean square that the form itself leaves undecided, in these units.
      exact: whether it tells laws apart that the solutions do not.
      y0s: initial value of each series, to start a trajectory fit from.
      sigma: standard deviation of an observation, in units of the target, if it is known.
      own: the variable, of several, whose rate of change f is.
    """

    nodes: Float[np.ndarray, " nodes"] | Float[np.ndarray, "variables nodes"]
    operator: Float[np.ndarray, "rows nodes"]
    target: Float[np.ndarray, " rows"]
    remainder: float
    count: int
    floor: float
    exact: bool
    y0s: tuple[float, ...]
    sigma: float | None = None
    own: str = ""

    @property
    def size(self) -> float:
        """The largest magnitude of y."""
        return float(np.abs(self.nodes).max()) or 1.0

    def residual(self, law: Expression) -> float:
        """Root mean square residual of a law as it stands; inf where it is undefined."""
        with np.errstate(all="ignore"):
            left = self.target - self.operator @ law.evaluate(*np.atleast_2d(self.nodes))
            square = float(left @ left) + self.remainder
        return math.sqrt(square / self.count) if math.isfinite(square) else math.inf

    def rescaled(self, a: float, b: float, c: float) -> Regression:
        """For g with dz/ds = g(z), where z = (y - b) / a and s runs c times slower."""
        return dataclasses.replace(
            self,
            nodes=(self.nodes - b) / a,
            operator=self.operator * (a / c),
            y0s=tuple((y0 - b) / a for y0 in self.y0s),
        )

    def coarsened(self, number: int) -> Regression:
        """The same with fewer nodes, f being interpolated between them."""
        if number >= self.nodes.size:
            return self
        places = np.linspace(0, self.nodes.size - 1, number).round().astype(int)
        nodes = self.nodes[places]
        operator, target, left = reduced(
            self.operator @ interpolation(nodes, self.nodes), self.target
        )
        return dataclasses.replace(
            self, nodes=nodes, operator=operator, target=target, remainder=self.remainder + left
        )


def reduced(
    operator: Float[np.ndarray, "rows nodes"], target: Float[np.ndarray, " rows"]
) -> tuple[Float[np.ndarray, "nodes nodes"], Float[np.ndarray, " nodes"], float]:
    """The same least squares in as many rows as nodes (by QR), and the sum of squares left out."""
    q, r = np.linalg.qr(operator)
    inside = q.T @ target
    square = np.zeros((operator.shape[1],) * 2)
    square[: len(r)] = r
    left = max(float(target @ target - inside @ inside), 0.0)
    return square, np.pad(inside, (0, len(square) - inside.size)), left


def interpolation(
    grid: Float[np.ndarray, " grid"], at: Float[np.ndarray, " points"]
) -> Float[np.ndarray, "points grid"]:
    """Weights of the cubic through the four neighbours of each point."""
    first = np.clip(np.searchsorted(grid, at) - 2, 0, grid.size - 4)
    columns = first[:, None] + np.arange(4)
    result = np.zeros((at.size, grid.size))
    np.put_along_axis(result, columns, lagrange_weights(grid[columns], at), axis=1)
    return result
