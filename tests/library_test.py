"""The library holds what it promises, once each, at the scale of the data."""

import numpy as np

from nsode_jax.expressions.canonical import canonicalize
from nsode_jax.expressions.expression import Expression
from nsode_jax.fitting.guesses import initial_guesses
from nsode_jax.fitting.programs import fits
from nsode_jax.search.library import MAX_DEGREE, library


def _keys(laws) -> set[str]:
    return {canonicalize(law).skeleton.unsigned_key for law in laws}


def test_every_polynomial_is_there():
    known = _keys(library(3.0))
    for chosen in range(1, 2 ** (MAX_DEGREE + 1)):
        powers = [power for power in range(MAX_DEGREE + 1) if chosen >> power & 1]
        text = " + ".join(f"0.3*y**{p}" if p > 1 else ("0.3*y" if p else "0.3") for p in powers)
        assert canonicalize(Expression.from_infix(text)).skeleton.unsigned_key in known


def test_well_known_laws_are_there():
    known = _keys(library(3.0))
    for text in (
        "0.4*y - 0.3*y**2",  # logistic growth
        "0.4*y - 0.2*y*log(y)",  # Gompertz
        "9.8 - 0.3*y**2",  # fall with drag
        "-0.2*sqrt(y)",  # Torricelli
        "0.3*y - 1.2*y/(0.7 + y)",  # growth under predation
        "0.3 - 0.8*y + 1.2*y**2/(0.6 + y**2)",  # a genetic switch
        "0.4 - 0.5*sin(0.7*y)",  # an overdamped pendulum
    ):
        assert canonicalize(Expression.from_infix(text)).skeleton.unsigned_key in known, text


def test_each_law_once_and_small_enough():
    laws = library(0.02)
    assert len({law.prefix for law in laws}) == len(laws) > 1000
    small = [
        any(fits(start.expression, start.free) for start in initial_guesses(law)) for law in laws
    ]
    assert np.mean(small) > 0.995


def test_rates_suit_the_data():
    for scale in (1e-6, 1.0, 1e6):
        y = np.linspace(0.1, 1.0, 5) * scale
        decays = [
            law for law in library(scale) if law.prefix[:1] == ("mul",) and "exp" in law.prefix
        ]
        assert any(np.ptp(law.evaluate(y)) > 0.3 for law in decays)


def test_a_scale_beyond_numbers_leaves_what_can_be_written():
    assert len(library(1e-70)) > 300
