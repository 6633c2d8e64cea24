"""Every entry of the table can be read, is dimensionally right and has no constant to spare."""

import numpy as np
import pytest

from nsode_jax.selection.catalogue import Catalogue, CatalogueError, NamedLaw
from nsode_jax.selection.form import form_of

LAWS = Catalogue.load().laws
ENTRY = {
    "name": "growth",
    "field": "growth",
    "reference": "somebody 1800",
    "formula": "r*y*(1 - y/K)",
    "frequency": 3,
    "parameters": {"r": ["rate", "+", "1/time"], "K": ["capacity", "+", "value"]},
}


def _places(law: NamedLaw, values: list[float]) -> np.ndarray:
    """Values of y at which the law is defined."""
    y = np.concatenate([np.geomspace(0.02, 0.95, 40), np.geomspace(1.05, 40.0, 40)])
    return y[np.isfinite(law.formula.evaluate(values, y))]


def test_there_are_many_laws_of_many_fields_each_once():
    assert len(LAWS) >= 80
    assert len(Catalogue.load().fields) >= 8
    assert len({law.name for law in LAWS}) == len(LAWS)
    assert {law.frequency for law in LAWS} == {1, 3, 10, 30}
    assert all(law.reference and law.field for law in LAWS)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_the_parameters_are_determined_by_f(law):
    rng = np.random.default_rng(1)
    draws = [law.draw(rng) for _ in range(4)]
    assert all(map(law.admits, draws))
    assert max(_independence(law, values) for values in draws) > 1e-6


def _independence(law: NamedLaw, values: list[float]) -> float:
    """How far f's derivatives by the parameters are from linearly dependent, at most 1."""
    y = _places(law, values)
    columns = []
    for i, value in enumerate(values):
        step = 1e-6 * abs(value)
        above, below = list(values), list(values)
        above[i], below[i] = value + step, value - step
        columns.append((law.formula.evaluate(above, y) - law.formula.evaluate(below, y)) / step)
    tangent = np.array(columns)
    tangent = tangent[:, np.isfinite(tangent).all(axis=0)]
    if tangent.shape[1] < 10:
        return 0.0
    tangent = tangent / np.linalg.norm(tangent, axis=1, keepdims=True)
    return float(np.linalg.svd(tangent, compute_uv=False)[-1])


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_units_fit_the_formula(law):
    rng = np.random.default_rng(2)
    values = law.draw(rng)
    by_name = dict(zip(law.formula.names, values))
    dimensions = [p.dimension(by_name) for p in law.parameters]
    # Only of a dimensionless y does no parameter hold its unit.
    value = 1.7 if any(of_value for of_value, _ in dimensions) else 1.0
    time = 2.3
    scaled = [v * value**a * time**b for v, (a, b) in zip(values, dimensions)]
    y = _places(law, values)
    np.testing.assert_allclose(
        law.formula.evaluate(scaled, value * y),
        law.formula.evaluate(values, y) * value / time,
        rtol=1e-8,
        atol=1e-8 * np.abs(law.formula.evaluate(values, y)).max(),
    )


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_a_law_is_found_by_its_form(law):
    rng = np.random.default_rng(3)
    by_form = Catalogue.load().by_form
    for _ in range(3):
        assert law in by_form[form_of(law.formula.with_values(law.draw(rng)))]


def test_a_field_can_be_left_out():
    catalogue = Catalogue.load().without_fields("ecology", "heat")
    assert "ecology" not in catalogue.fields
    assert len(catalogue.laws) < len(LAWS)
    with pytest.raises(ValueError, match="astrology"):
        catalogue.without_fields("astrology")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"formula": "r*y*(1 - y/K"}, "growth: cannot read"),
        ({"formula": "r*y"}, "parameters"),
        ({"parameters": {"r": ["rate", "-", "1/time"], "K": ["size", "+", "value"]}}, "sign of r"),
        ({"parameters": {"r": ["rate", "+", "1/hour"], "K": ["size", "+", "value"]}}, "1/hour"),
        ({"parameters": {"r": ["rate", "+"], "K": ["size", "+", "value"]}}, "growth"),
        ({"frequency": "often"}, "often"),
    ],
)
def test_a_bad_entry_is_named(change, message):
    NamedLaw.from_entry(ENTRY)
    with pytest.raises(CatalogueError, match=message):
        NamedLaw.from_entry(ENTRY | change)


def test_an_order_is_kept():
    law = NamedLaw.from_entry(
        ENTRY
        | {
            "formula": "k*(y - a)*(b - y)",
            "order": [["a", "b"]],
            "parameters": {
                "k": ["rate", "+", "value**-1/time"],
                "a": ["threshold", "+", "value"],
                "b": ["capacity", "+", "value"],
            },
        }
    )
    assert law.admits([1.0, 2.0, 3.0])
    assert not law.admits([1.0, 3.0, 2.0])
    assert not law.admits([-1.0, 2.0, 3.0])
    rng = np.random.default_rng(0)
    assert all(law.admits(law.draw(rng)) for _ in range(20))
