"""Every named law that can hold for the data is proposed, at their scale."""

import numpy as np
import pytest

from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.expression import Expression
from nsode_jax.observed.dataset import Dataset
from nsode_jax.observed.integral import integral_form
from nsode_jax.search.named_laws import NamedLawSource, named_laws
from nsode_jax.selection.catalogue import Catalogue
from nsode_jax.selection.form import form_of


def test_every_law_is_there():
    proposed = {form_of(law) for law in named_laws(0.05, 0.9, 0.1)}
    missing = [law.name for law in Catalogue.load().laws if not law.forms & proposed]
    assert not missing


@pytest.mark.parametrize(
    ("low", "high", "rate"),
    [(1.0, 20.0, 2.0), (300.0, 400.0, 0.1), (-3.0, 5.0, 1.0), (1e-9, 4e-9, 1e3), (2.0, 2.0, 1.0)],
)
def test_laws_are_defined_over_the_data_and_few(low, high, rate):
    laws = named_laws(low, high, rate)
    assert 60 < len(laws) < 500
    assert len(set(laws)) == len(laws)
    y = np.linspace(low, high, 50)
    defined = [bool(np.isfinite(law.evaluate(y)).all()) for law in laws]
    assert np.mean(defined) > 0.98


def test_a_law_linear_in_its_constants_is_there_once():
    forms = [form_of(law) for law in named_laws(1.0, 20.0, 2.0)]
    logistic = form_of(Expression.from_infix("y - y**2"))
    assert forms.count(logistic) == 1
    saturating = form_of(Expression.from_infix("-y/(1 + y)"))
    assert forms.count(saturating) > 1


def test_starts_have_the_scale_of_the_data():
    budworm = form_of(Expression.from_infix("y - y**2 - y**2/(1 + y**2)"))
    for scale in (1e-6, 1.0, 1e6):
        laws = [e for e in named_laws(scale, 20 * scale, scale) if form_of(e) == budworm]
        assert laws
        y = np.linspace(scale, 20 * scale, 20)
        for law in laws:
            assert 1e-3 < np.abs(law.evaluate(y)).max() / scale < 1e3


def test_the_source_proposes_for_a_data_set():
    t = np.linspace(0.0, 5.0, 20)
    data = Dataset.of([Trajectory(t, 3.0 * np.exp(-t))])
    source = NamedLawSource(Catalogue.load().without_fields("ecology"))
    form = integral_form(data)
    proposals = source.propose(data, form, seed=0, progress=lambda message, share: None).laws
    assert {proposal.origin.source for proposal in proposals} == {"named laws"}
    assert form_of(Expression.from_infix("-2*y")) in {form_of(p.expression) for p in proposals}
