"""Tests for the prior in force, and for named laws of a user's own."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from nsode_jax.discovery import Discovery
from nsode_jax.discovery.own_constants import discover_own_constants
from nsode_jax.discovery.pipeline import discover
from nsode_jax.expressions.expression import Expression
from nsode_jax.selection.belief import NO_LAWS, believing, in_force, log_prior, written_log_prior
from nsode_jax.selection.catalogue import Catalogue, CatalogueError
from nsode_jax.selection.prior import Prior

TABLE = """
[[law]]
name = "leaking barrel"
formula = "-k*sqrt(y) - b*y**3"
parameters.k = ["outflow", "+", "value**(1/2)/time"]
parameters.b = ["spill", "+", "1/value**2/time"]
"""
LAW = Expression.from_infix("-0.8*sqrt(y) - 0.05*y**3")
QUICK = {"effort": "fast", "beams": 0, "sources": ("named laws", "library")}


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "barrels.toml"
    path.write_text(TABLE.replace("1/value**2/time", "value**(-2)/time"))
    return path


@pytest.fixture(scope="module")
def series():
    t = np.linspace(0.0, 2.0, 40)
    solution = solve_ivp(lambda _, y: LAW.evaluate(y), (0, 2), [3.0], t_eval=t, rtol=1e-9)
    noise = np.random.default_rng(0).standard_normal(t.size)
    return t, solution.y[0] * (1 + 0.01 * noise)


def test_a_law_of_ones_own_is_as_probable_as_one_of_every_textbook(table):
    before = log_prior(LAW)
    with believing(table) as prior:
        assert prior is in_force()
        assert log_prior(LAW) == prior.log_prior(LAW) > before + 3
        assert [law.name for law in prior.own_laws] == ["leaking barrel"]
    assert log_prior(LAW) == before == Prior.load().log_prior(LAW)


def test_without_named_laws_only_operators_count():
    decay = Expression.from_infix("-0.5*y")
    with believing(NO_LAWS):
        assert in_force() is Prior.load(catalogue=False)
        form_alone = log_prior(decay)
        as_written = written_log_prior(decay)
    assert form_alone < log_prior(decay)
    assert as_written != written_log_prior(decay)


def test_what_is_believed_ends_with_an_error(table):
    with pytest.raises(RuntimeError), believing(table):
        raise RuntimeError
    assert in_force() is Prior.load()


def test_a_catalogue_is_read_once(table):
    with believing(table) as one, believing(Catalogue.read(table)) as other:
        assert one is other


def test_a_law_of_ones_own_is_found_and_named(table, series, tmp_path):
    found = discover(*series, named_laws=table, **QUICK)
    ours = next(c for c in found.candidates if c.name and c.name.law.name == "leaking barrel")
    assert ours is found.best
    values = {p.name: (p.value, p.standard_error) for p in ours.parameters}
    for name, true in (("k", 0.8), ("b", 0.05)):
        value, error = values[name]
        assert abs(value - true) < 4 * error
    assert "leaking barrel" not in str(discover(*series, **QUICK).best.name)
    path = tmp_path / "found.json"
    found.save(path)
    assert Discovery.load(path).best.name == ours.name


def test_laws_of_ones_own_are_tried_whatever_else_is(table, series):
    found = discover(*series, named_laws=table, effort="fast", sources=("library",))
    assert "1 named law" in found.tried
    assert found.best.name and found.best.name.law.name == "leaking barrel"


def test_without_named_laws_none_are_tried(series):
    found = discover(*series, named_laws=NO_LAWS, **QUICK)
    assert "0 named laws" in found.tried
    assert not any("named" in candidate.origin for candidate in found.candidates)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[law]\n", "is no table in TOML"),
        ("a = 1\n", r"has no \[\[law\]\]"),
        ('[[law]]\nname = "x"\n', "x: it has no formula"),
        ('[[law]]\nname = "x"\nformula = "r*"\nparameters = {}\n', "x: "),
    ],
)
def test_a_bad_table_is_refused_in_one_line(tmp_path, series, text, message):
    path = tmp_path / "laws.toml"
    path.write_text(text)
    with pytest.raises(CatalogueError, match=message) as caught:
        discover(*series, named_laws=path, **QUICK)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_table_is_refused(tmp_path, series):
    with pytest.raises(CatalogueError, match="cannot read named laws from .*: No such file"):
        discover(*series, named_laws=tmp_path / "laws.toml", **QUICK)


def test_forms_for_many_series_have_names_of_ones_own(table):
    t = np.linspace(0.0, 2.0, 25)
    rng = np.random.default_rng(0)
    values = []
    for k, b in ((0.8, 0.05), (0.6, 0.08), (1.0, 0.03)):
        solved = solve_ivp(
            lambda _, y, k=k, b=b: -k * np.sqrt(y) - b * y**3, (0, 2), [3.0], t_eval=t, rtol=1e-9
        )
        values.append(solved.y[0] * (1 + 0.005 * rng.standard_normal(t.size)))
    found = discover_own_constants(
        t, values, named_laws=table, effort="fast", sources=QUICK["sources"]
    )
    assert found.best.name == "leaking barrel"
    assert set(found.best.formula.names) == {"k", "b"}
