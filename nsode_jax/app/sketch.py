"""Points drawn by hand: from places on a canvas to a table, and back to a picture."""

from __future__ import annotations

import math

from nsode_jax.dynamics.trajectory import MIN_POINTS
from nsode_jax.reporting.pictures import BEST, DATA
from nsode_jax.tables.files import Contents

WIDTH, HEIGHT = 480, 300
"""Of the canvas, in pixels."""

_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 16, 14, 34
_NEAR = 9.0  # Pixels: a click so near a point takes it away.
_APART = 12.0  # Pixels between the times of points that are drawn in one stroke.
_TICKS = 5
_CLOSE = 1.0  # Pixels: two points cannot have one time.


class Sketch:
    """Points on a canvas, with axes from 0 to the given ends.

    Attributes:
      t_end, y_end: ends of the axes.
      points: places on the canvas, by their x.
    """

    def __init__(self, t_end: float = 10.0, y_end: float = 10.0):
        self.t_end, self.y_end = t_end, y_end
        self.points: list[tuple[float, float]] = []
        self._stroke = False

    def __len__(self) -> int:
        return len(self.points)

    def press(self, x: float, y: float) -> None:
        """Adds a point, or takes away one that is there, and begins a stroke."""
        near = [point for point in self.points if math.dist(point, (x, y)) <= _NEAR]
        if near:
            self.points.remove(min(near, key=lambda point: math.dist(point, (x, y))))
            return
        self._stroke = True
        self._add(x, y)

    def drag(self, x: float, y: float) -> bool:
        """Goes on with a stroke; whether there is a new point."""
        if not self._stroke or any(abs(x - other) < _APART for other, _ in self.points):
            return False
        self._add(x, y)
        return True

    def release(self) -> None:
        """Ends a stroke."""
        self._stroke = False

    def clear(self) -> None:
        """Takes all points away."""
        self.points, self._stroke = [], False

    @property
    def is_enough(self) -> bool:
        """Whether a law can be looked for."""
        return len(self.points) >= MIN_POINTS

    def contents(self) -> Contents:
        """The points as a table."""
        rows = [f"{self._t(x):.6g},{self._y(y):.6g}" for x, y in self.points]
        return Contents("drawn points", "\n".join(["t,y", *rows, ""]).encode())

    def svg(self) -> str:
        """Axes and points, as what an SVG of the canvas' size contains."""
        right, bottom = WIDTH - _RIGHT, HEIGHT - _BOTTOM
        lines = [
            f'<rect x="{_LEFT}" y="{_TOP}" width="{right - _LEFT}" height="{bottom - _TOP}" '
            'fill="white" stroke="#bbb"/>'
        ]
        for tick in range(_TICKS + 1):
            x = _LEFT + tick * (right - _LEFT) / _TICKS
            y = bottom - tick * (bottom - _TOP) / _TICKS
            lines += [
                _text(x, bottom + 20, f"{self.t_end * tick / _TICKS:.4g}", "middle"),
                _text(_LEFT - 8, y + 4, f"{self.y_end * tick / _TICKS:.4g}", "end"),
                f'<path d="M{x:.1f} {_TOP}V{bottom}M{_LEFT} {y:.1f}H{right}" stroke="#eee"/>',
            ]
        if len(self.points) > 1:
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in self.points)
            lines.append(f'<polyline points="{path}" fill="none" stroke="{BEST}" opacity="0.35"/>')
        lines += [
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{DATA}" stroke="white"/>'
            for x, y in self.points
        ]
        return "".join(lines)

    def _add(self, x: float, y: float) -> None:
        x = min(max(x, _LEFT), WIDTH - _RIGHT)
        y = min(max(y, _TOP), HEIGHT - _BOTTOM)
        others = [point for point in self.points if abs(point[0] - x) > _CLOSE]
        self.points = sorted([*others, (x, y)])

    def _t(self, x: float) -> float:
        return self.t_end * (x - _LEFT) / (WIDTH - _RIGHT - _LEFT)

    def _y(self, y: float) -> float:
        bottom = HEIGHT - _BOTTOM
        return self.y_end * (bottom - y) / (bottom - _TOP)


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="12" fill="#666" '
        f'text-anchor="{anchor}">{text}</text>'
    )
