import numpy as np
import pytest

from nsode_jax.dynamics.solve import solve
from nsode_jax.dynamics.trajectory import Trajectory
from nsode_jax.expressions.expression import Expression, ExpressionError
from nsode_jax.observed.dataset import Dataset
from nsode_jax.observed.scaling import VIEW_TIME, AffineView, candidate_views, working_units


def _law(text: str) -> Expression:
    return Expression.from_infix(text)


LAWS = [
    "1.5*y - 1.2*y**2",
    "2.5 - 0.8*y",
    "3*y/(1 + 2*y) - 0.3*y",
    "1.2*sin(1.3*y)",
    "-0.5*y*log(0.2*y)",
    "1.7*sqrt(y) - 0.3*y",
    "0.8*exp(-0.7*y)",
]


@pytest.mark.parametrize("text", LAWS)
@pytest.mark.parametrize("a", [1e-6, 1e-2, 663.0, 1e6])
@pytest.mark.parametrize("c", [1e-6, 3.0, 1e6])
def test_restored_law_is_exact(text, a, c):
    law = _law(text)
    view = AffineView(t0=0.0, c=c, b=0.0, a=a)
    s = np.linspace(0.0, 3.0, 20)
    z = solve(law, 0.4, s)
    y = solve(view.restore(law), 0.4 * a, s * c, atol=1e-9 * a)
    np.testing.assert_allclose(y, z * a, rtol=1e-6)


@pytest.mark.parametrize("text", LAWS)
def test_restored_right_hand_side_with_a_shift(text):
    law = _law(text)
    view = AffineView(t0=2.0, c=0.5, b=100.0, a=7.0)
    z = np.linspace(0.1, 2.0, 9)
    expected = view.a / view.c * law.evaluate(z)
    found = view.restore(law).evaluate(view.b + view.a * z)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("text", LAWS)
@pytest.mark.parametrize(("b", "a"), [(0.0, 1e3), (100.0, 7.0)])
def test_the_inverse_gives_the_law_in_the_views_variables(text, b, a):
    """g(z) = (c/a) f(a z + b), and back again."""
    law = _law(text)
    view = AffineView(t0=2.0, c=86_400.0, b=b, a=a)
    z = np.linspace(0.1, 2.0, 9)
    seen = view.inverse().restore(law)
    expected = view.c / view.a * law.evaluate(view.a * z + view.b)
    np.testing.assert_allclose(seen.evaluate(z), expected, rtol=1e-9, atol=1e-300)
    y = np.linspace(0.1, 2.0, 9)
    np.testing.assert_allclose(view.restore(seen).evaluate(y), law.evaluate(y), rtol=1e-6)
    data = Trajectory(np.arange(3.0), np.array([1.0, 2.0, 4.0]))
    back = view.inverse().apply(view.apply(data))
    np.testing.assert_allclose(back.t, data.t, atol=1e-9)
    np.testing.assert_allclose(back.y, data.y, rtol=1e-9)


def test_measurement_weights_stay_in_a_view():
    noise = np.array([1.0, 2.0, 0.5])
    seen = AffineView(0.0, 2.0, 1.0, 3.0).apply(Trajectory(np.arange(3.0), np.arange(3.0), noise))
    np.testing.assert_array_equal(seen.noise, noise)


def test_identity_changes_nothing():
    law = _law("y/(1 + 2*y)")
    assert AffineView(0.0, 1.0, 0.0, 1.0).restore(law).evaluate(0.3) == law.evaluate(0.3)


@pytest.mark.parametrize(
    ("text", "skeleton"),
    [
        ("1.5*y - 1.2*y**2", "1.5*y - 1.2*y**2"),
        ("3*y/(1.5 + 2*y)", "2*y/(3 + y)"),  # Not 3 constants, as in k*y/(a + c*y).
        ("2*log(y) + 1", "2*log(y) + 1"),
        ("2*exp(1 - 3*y)", "2*exp(-3*y)"),
        ("2*sqrt(1 + y)", "2*sqrt(3 + y)"),
    ],
)
def test_units_do_not_lengthen_a_law(text, skeleton):
    from nsode_jax.expressions.canonical import canonicalize

    restored = AffineView(0.0, 3.0, 0.0, 300.0).restore(_law(text))
    assert restored.skeleton.unsigned_key == canonicalize(_law(skeleton)).skeleton.unsigned_key


@pytest.mark.parametrize(
    ("text", "a", "c"), [("2*y", 1e300, 1e-300), ("(y + 3)**1000", 412.0, 4.0)]
)
def test_a_law_that_leaves_the_range_of_numbers_is_refused(text, a, c):
    with pytest.raises(ExpressionError):
        AffineView(0.0, c, 0.0, a).restore(_law(text))


def test_units_must_be_positive():
    with pytest.raises(ValueError, match="positive"):
        AffineView(0.0, 0.0, 0.0, 1.0)


@pytest.mark.parametrize("size", [1e-12, 1.0, 700.0, 1e12])
@pytest.mark.parametrize("span", [1e-6, 3.0, 18.0, 1e6])
def test_views_are_in_range(size, span):
    t = 5.0 + np.linspace(0.0, span, 30)
    trajectory = Trajectory(t, size * np.linspace(0.0, 1.0, 30) ** 2)
    views = candidate_views(trajectory)
    assert len(views) == 4
    assert len(set(views)) == len(views)
    for view in views:
        seen = view.apply(trajectory)
        assert seen.t[0] == 0.0
        assert seen.t[-1] <= VIEW_TIME * (1 + 1e-9)
        assert np.abs(seen.y).max() <= 5 * (1 + 1e-9)
        assert view.b == 0.0


def test_data_far_from_zero_are_also_shifted():
    t = np.linspace(0.0, 10.0, 30)
    views = candidate_views(Trajectory(t, 1000.0 + np.exp(-t)))
    shifted = [view for view in views if view.b]
    assert shifted
    for view in shifted:
        assert np.ptp(view.apply(Trajectory(t, 1000.0 + np.exp(-t))).y) == pytest.approx(2.0)


def test_working_units_are_those_of_the_data_unless_they_are_extreme():
    t = np.linspace(0.0, 18.0, 20)
    usual = working_units(Dataset.of([Trajectory(t, 600 - t)]))
    assert (usual.a, usual.c, usual.b, usual.t0) == (1.0, 1.0, 0.0, 0.0)
    series = [Trajectory(t * 1e-9, 3.2e7 + 0.1e7 * t), Trajectory(t * 1e-9, t)]
    extreme = working_units(Dataset.of(series))
    assert (extreme.a, extreme.c) == (1e7, 1e-8)
