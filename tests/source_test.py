"""Laws of one quantity as programs, and formulas with names for their constants.

Programs of systems are tested in system_callables_test.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from observing import logistic_discovery
from scipy.integrate import solve_ivp

from nsode_jax.expressions.expression import Expression
from nsode_jax.results.source import program_of_series, with_names
from nsode_jax.selection.named_formula import NamedFormula


@pytest.mark.parametrize("backend", ["numpy", "jax"])
def test_the_program_solves_to_the_same_solution(backend):
    found, names = logistic_discovery(), {}
    exec(found.to_source(backend), names)  # noqa: S102 - our own program.
    best = found.best
    times = np.linspace(best.start_times[0], best.end_times[0], 5)
    solved = solve_ivp(
        names["vector_field"], (times[0], times[-1]), [best.y0], t_eval=times, rtol=1e-8
    )
    assert_allclose(solved.y[0], best.predict(times), rtol=1e-4)


def test_other_constants_are_taken():
    names = {}
    exec(logistic_discovery().to_source(), names)  # noqa: S102 - our own program.
    given = names["CONSTANTS"]
    doubled = names["vector_field"](0.0, [1.0], [2 * c for c in given])
    assert_allclose(doubled, 2 * names["vector_field"](0.0, [1.0]))


@pytest.mark.parametrize(
    ("formula", "text", "places"),
    [
        ("0.5*y - 0.1*y**2", "c0*y + c1*y**2", (0, 1)),
        ("y**1.7/2.5", "y**c0/c1", (0, 1)),
        ("1/y", "1/y", ()),
        ("sin(y**2) + 0.3", "sin(y**2) + c0", (1,)),
        # As it is shown: begun with a term that has no minus sign.
        ("-0.1*y**2 + 0.5*y", "c0*y + c1*y**2", (2, 0)),
        ("-y + 0.5", "c0 - y", (0,)),
    ],
)
def test_constants_get_names(formula, text, places):
    assert with_names((Expression.from_infix(formula),))[:2] == ((text,), places)


@pytest.mark.parametrize(
    "label",
    ['"""\nRAN = 1\n"""', '""" + str(globals().update(RAN=1)) + """', "'); RAN = 1 #", "a\\",
     "a\nRAN = 1", "{0}", "\u2028RAN = 1"],
)  # fmt: skip
def test_no_label_is_executed(label):
    names, formula = {}, NamedFormula.parse("-k*y")
    text = program_of_series(formula, [label, "b"], np.array([[0.5], [0.2]]), [(0.0, 1.0)] * 2)
    exec(text, names)  # noqa: S102 - our own program.
    assert "RAN" not in names and list(names["CONSTANTS"]) == [label, "b"]
    assert names["vector_field"](0.0, 2.0, label) == -1.0


def test_names_go_on_and_variables_may_have_others():
    law = Expression.from_infix("0.5*x - y", ("x", "y"))
    other = Expression.from_infix("x*y**2 - 0.2", ("x", "y"))
    named = with_names((law, other, law), {"x": "prey"})
    assert named.texts == ("c0*prey - y", "prey*y**2 + c1", "c2*prey - y")
    assert named.places == (0, 2, 3)
    assert named.shown == (((0, "c0"),), ((1, "exponent"), (2, "c1")), ((3, "c2"),))
