"""Systems of two and three quantities whose laws are known, none of ODEBench's.

Textbook systems with constants of our own choice, on which constants of the search and of the
score may be chosen.
"""

from __future__ import annotations

from nsode_jax.dynamics.system import System
from nsode_jax.evaluation.driven_systems import Case

_TWO, _THREE = System(("x", "y")), System(("x", "y", "z"))

CASES = (
    Case(
        "Rosenzweig-MacArthur",
        _TWO,
        ("1.2*x - 0.24*x**2 - x*y/(0.8 + x)", "0.7*x*y/(0.8 + x) - 0.3*y"),
        ((1.5, 0.8), (3.0, 1.5)),
        30.0,
    ),
    Case(
        "FitzHugh-Nagumo",
        _TWO,
        ("x - 0.333*x**3 - y + 0.5", "0.08*x + 0.056 - 0.064*y"),
        ((-1.0, 1.0), (0.5, -0.5)),
        60.0,
    ),
    Case(
        "prey that compete",
        _TWO,
        ("1.1*x - 0.11*x**2 - 0.45*x*y", "0.2*x*y - 0.5*y"),
        ((4.0, 1.0), (1.0, 3.0)),
        20.0,
    ),
    Case(
        "mutualism",
        _TWO,
        ("0.8*x - 0.3*x**2 + 0.1*x*y", "0.5*y - 0.25*y**2 + 0.15*x*y"),
        ((0.3, 0.2), (4.0, 1.0)),
        10.0,
    ),
    Case(
        "reversible reaction",
        _TWO,
        ("0.5*y - 1.2*x", "1.2*x - 0.9*y"),
        ((3.0, 0.5), (0.5, 4.0)),
        8.0,
    ),
    Case(
        "hardening spring",
        _TWO,
        ("y", "-1.5*x - 0.4*x**3 - 0.25*y"),
        ((2.0, 0.0), (-1.0, 2.0)),
        12.0,
    ),
    Case(
        "epidemic with births",
        _TWO,
        ("0.5 - 0.5*x - 1.8*x*y", "1.8*x*y - 0.9*y"),
        ((0.95, 0.05), (0.4, 0.5)),
        12.0,
    ),
    Case(
        "tumor and immune cells",
        _TWO,
        ("0.9*x - 0.1*x**2 - 0.5*x*y", "0.6 + 0.2*x*y - 0.8*y"),
        ((3.0, 0.5), (1.0, 2.0)),
        15.0,
    ),
    Case(
        "Lorenz 1984",
        _THREE,
        ("1.5 - y**2 - z**2 - 0.25*x", "x*y - 4*x*z - y + 1", "4*x*y + x*z - z"),
        ((1.0, 0.5, -0.3), (0.3, 1.0, 1.0)),
        8.0,
    ),
    Case(
        "food chain",
        _THREE,
        ("x - 0.1*x**2 - 0.4*x*y", "0.3*x*y - 0.4*y - 0.3*y*z", "0.25*y*z - 0.3*z"),
        ((3.0, 1.0, 0.6), (1.0, 2.0, 1.0)),
        25.0,
    ),
    Case(
        "epidemic with lost immunity",
        _THREE,
        ("0.3*z - 1.7*x*y", "1.7*x*y - 0.6*y", "0.6*y - 0.3*z"),
        ((0.95, 0.05, 0.0), (0.5, 0.4, 0.1)),
        20.0,
    ),
    Case(
        "damped rigid body",
        _THREE,
        ("1.2*y*z - 0.1*x", "-1.5*x*z - 0.15*y", "0.6*x*y - 0.05*z"),
        ((1.0, 1.5, 0.8), (-0.5, 1.0, 1.5)),
        12.0,
    ),
    Case(
        "Nose-Hoover",
        _THREE,
        ("y", "y*z - x", "1 - y**2"),
        ((0.0, 2.0, 0.0), (1.0, 1.0, 0.5)),
        15.0,
    ),
    Case(
        "virus in cells",
        _THREE,
        ("2 - 0.2*x - 0.3*x*z", "0.3*x*z - 0.7*y", "1.5*y - 1.2*z"),
        ((8.0, 0.2, 0.3), (5.0, 1.0, 1.0)),
        15.0,
    ),
    Case(
        "three tanks",
        _THREE,
        ("1.5 - 0.8*x", "0.8*x - 0.5*y", "0.5*y - 0.35*z"),
        ((0.2, 3.0, 0.5), (3.0, 0.5, 2.0)),
        12.0,
    ),
    Case(
        "Genesio-Tesi",
        _THREE,
        ("y", "z", "x**2 - x - 1.1*y - 0.44*z"),
        ((0.1, 0.1, 0.1), (-0.2, 0.3, 0.0)),
        25.0,
    ),
    Case(
        "Rucklidge",
        _THREE,
        ("6.7*y - 2*x - y*z", "x", "y**2 - z"),
        ((1.0, 0.0, 4.5), (0.5, 1.0, 2.0)),
        10.0,
    ),
    Case(
        "Sprott B",
        _THREE,
        ("y*z", "x - y", "1 - x*y"),
        ((0.5, 0.3, -1.0), (1.0, 1.0, 0.5)),
        20.0,
    ),
)
