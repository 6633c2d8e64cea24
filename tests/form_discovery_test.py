"""What is done with forms for many series: predictions, functions, files."""

import dataclasses
import json
import math

import numpy as np
import pytest
from bitwise import assert_same
from numpy.testing import assert_allclose, assert_array_equal
from pandas.testing import assert_frame_equal
from solved import logistic

from nsode_jax import discover as command
from nsode_jax.discovery import Discovery, FormDiscovery, SystemDiscovery, discover
from nsode_jax.expressions.canonical import canonicalize
from nsode_jax.expressions.expression import Expression, ExpressionError
from nsode_jax.expressions.sampling import EquationPrior, sample_expression
from nsode_jax.fitting.bounds import Bounds
from nsode_jax.reporting.form_exploration import FormExploration
from nsode_jax.results.json_fields import DiscoveryFileError
from nsode_jax.results.own_constants import FormCandidate
from nsode_jax.selection.named_formula import NamedFormula

LAW = "r*y*(1 - y/K)"
T = np.linspace(0.0, 12.0, 25)
TRUTH = {"A1": (0.6, 1.2, 0.05), "A2": (0.9, 0.8, 0.04), "A3": (1.1, 1.0, 0.07)}
EXACT = [logistic(T, *values) for values in TRUTH.values()]
AWKWARD = (0.1 + 0.2, 5e-324, 1.7976931348623157e308, -0.0, 1 / 3, 1e16, math.nan, -math.inf)


@pytest.fixture(scope="module")
def exact() -> FormDiscovery:
    """Of solutions themselves."""
    return discover(T, EXACT, constants="own", law=LAW, labels=list(TRUTH))


def awkward_candidate() -> FormCandidate:
    """Every number and every field another than usual; the second series has no solution."""
    numbers = np.resize(AWKWARD, 27)
    return FormCandidate(
        formula=NamedFormula.parse("a*y**2/(b + y) - 0.1234567890123456789*c"),
        name="“α” growth",
        meanings=("rate", "half of it", ""),
        constants=numbers[:9].reshape(3, 3),
        covariances=numbers[::-1].reshape(3, 3, 3),
        freedom=np.array([10**9, 0, 7]),
        y0s=numbers[:3],
        start_times=(-0.0, 1 / 3, 2.0),
        residual_rms=np.array([5e-324, math.inf, 0.1 + 0.2]),
        r2=np.array([1 / 3, -math.inf, 1.0]),
        score=-123.456,
        probability=1 / 7,
        origin="enumeration, evolved",
        converged=np.array([True, False, True]),
        shared=("a", "c"),
        bounds=Bounds(np.array([-math.inf, 0.1, -0.0]), np.array([1e300, math.inf, 1 / 3])),
        goodness_of_fit=2 / 3,
        labels=tuple(TRUTH),
        shared_p_value=1 / 9,
    )


@pytest.fixture(scope="module")
def found(exact) -> FormDiscovery:
    """A fit with known errors, bounds and a shared constant, and a candidate that is awkward."""
    random = np.random.default_rng(0)
    noisy = [y + 0.01 * random.normal(size=y.size) for y in EXACT]
    sigma = [np.linspace(0.01, 0.02, T.size)] * 3
    fitted = discover(T, noisy, constants="own", law=LAW, labels=list(TRUTH), sigma=sigma,
                      shared="K", bounds={"r": (0, None)})  # fmt: skip
    assert fitted.trajectories[0].noise is not None and fitted.best.bounds is not None
    constant = dataclasses.replace(  # A form without constants.
        exact.best, formula=NamedFormula.of(Expression.from_infix("y/2"), np.zeros(1, bool)),
        constants=np.zeros((3, 0)), covariances=np.zeros((3, 0, 0)),
    )  # fmt: skip
    return dataclasses.replace(
        fitted,
        candidates=(fitted.best, awkward_candidate(), constant),
        notes=("A note: “α” & \n.",),
        tried=("all 7 forms", "“β”"),
    )


@pytest.fixture
def file(found, tmp_path):
    path = tmp_path / "forms.json"
    found.save(path)
    return path


# --- predictions -------------------------------------------------------------------


def test_predictions_are_the_fitted_solutions(exact):
    for number, label in enumerate(exact.labels):
        predicted = exact.predict(T, trajectory=label)
        assert_array_equal(predicted, exact.best.solution(T, number))
        assert_array_equal(predicted, exact.best.predict(T, trajectory=number))
        assert_array_equal(predicted, exact.best.solution(T, label))
        assert_allclose(predicted, exact.trajectories[number].y, rtol=1e-6)
    assert_array_equal(exact.predict(T), exact.predict(T, trajectory="A1"))


@pytest.mark.parametrize("trajectory", ["A2", 1])
def test_another_first_value_has_the_constants_of_the_series(exact, trajectory):
    r, k, _ = TRUTH["A2"]
    t = np.linspace(-3.0, 5.0, 30)
    predicted = exact.predict(t, y0=0.3, trajectory=trajectory)
    assert_allclose(predicted, logistic(t - t[0], r, k, 0.3), rtol=1e-6)


@pytest.mark.parametrize("backend", ["numpy", "jax"])
def test_the_law_of_a_series_is_a_function(exact, backend):
    y = np.linspace(0.1, 1.0, 7)
    for label, (r, k, _) in TRUTH.items():
        f = exact.to_callable(backend, label)
        assert_allclose(f(y), r * y * (1 - y / k), rtol=1e-4, atol=1e-5)
    assert_array_equal(exact.to_callable()(y), exact.best.to_callable(trajectory=0)(y))


@pytest.mark.parametrize(
    "t, options, message",
    [
        (T, {"trajectory": "B7"}, "no series 'B7'; they are A1, A2, A3"),
        (T, {"trajectory": 3}, "one of 3, counted from 0; got 3"),
        (T, {"trajectory": -1}, "one of 3, counted from 0; got -1"),
        (T[::-1], {"trajectory": "A2"}, "strictly increasing"),
        (T - 1.0, {"trajectory": "A2"}, "before the data, which start at 0; give y0"),
    ],
)
def test_what_cannot_be_predicted_is_refused(exact, t, options, message):
    for predict in (exact.predict, exact.best.predict):
        with pytest.raises(ValueError, match=message):
            predict(t, **options)


def test_a_series_without_a_solution_is_not_predicted(exact):
    constants = exact.best.constants.copy()
    constants[1] = np.nan
    best = dataclasses.replace(exact.best, constants=constants)
    for y0 in (None, 0.3):
        with pytest.raises(ValueError, match="series A2 has no solution by r"):
            best.predict(T, y0, trajectory="A2")
    assert np.isnan(best.solution(T, "A2")).all()
    assert np.isfinite(best.predict(T, trajectory="A3")).all()


def test_labels_that_are_numbers_are_told_from_numbers():
    found = discover(T, EXACT, constants="own", law=LAW, labels=[2, 0, 1])
    assert found.labels == ("2", "0", "1")
    assert_array_equal(found.predict(T, trajectory="2"), found.predict(T, trajectory=0))


# --- files -------------------------------------------------------------------------


def test_every_field_comes_back_bit_by_bit(found, file):
    assert_same(found, FormDiscovery.load(file), "found")
    # A field that nothing sets would come back whether it is saved or not.
    for thing in (found, found.candidates[1]):
        for field in dataclasses.fields(thing):
            value = getattr(thing, field.name)
            assert field.default is dataclasses.MISSING or value is not field.default, field.name


def test_so_do_tables_texts_and_curves(found, file):
    again = FormDiscovery.load(file)
    assert str(again) == str(found) and again.to_source() == found.to_source()
    assert again.to_latex() == found.to_latex()
    assert_frame_equal(again.table(), found.table(), check_exact=True)
    for rank in (1, 2):
        assert_frame_equal(again.constants(rank), found.constants(rank), check_exact=True)
    for label in found.labels:
        predicted = found.predict(T, trajectory=label)
        assert_array_equal(again.predict(T, trajectory=label), predicted)
        assert_array_equal(again.best.predict(T, 0.3, label), found.best.predict(T, 0.3, label))
    assert_array_equal(again.best.pressed, found.best.pressed)


def test_what_is_loaded_is_the_same_file_again(file, tmp_path):
    FormDiscovery.load(file).save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == file.read_bytes()


def test_any_form_comes_back(exact, tmp_path):
    """A search names the constants of laws that it finds; the rest of their numbers stay."""
    rng, candidates = np.random.default_rng(1), []
    while len(candidates) < 200:
        try:
            law = canonicalize(sample_expression(EquationPrior(), rng))
        except ExpressionError:
            continue
        formula = NamedFormula.of(law, rng.random(len(law.constants)) < 0.7)
        number = len(formula.names)
        changed = {"formula": formula, "constants": rng.normal(size=(3, number)), "bounds": None}
        changed["covariances"] = rng.normal(size=(3, number, number))
        candidates.append(dataclasses.replace(exact.best, **changed))
    found = dataclasses.replace(exact, candidates=tuple(candidates))
    found.save(tmp_path / "found.json")
    assert_same(found, FormDiscovery.load(tmp_path / "found.json"), "found")


def test_a_file_from_before_sharing_was_tested_is_read(file):
    content = json.loads(file.read_text(encoding="utf-8"))
    for candidate in content["candidates"]:
        del candidate["shared_p_value"]
    file.write_text(json.dumps(content), encoding="utf-8")
    again = FormDiscovery.load(file)
    assert math.isnan(again.best.shared_p_value) and again.best.shared == ("K",)


@pytest.mark.parametrize(
    "name, drawn",
    [("c", "c"), ("lambda", r"\lambda"), ("in", r"\mathrm{in}"), ("None", r"\mathrm{None}"),
     ("N_0", "N_{0}"), ("k_max", r"\mathrm{k\_max}")],
)  # fmt: skip
def test_constants_may_be_called_what_no_variable_may(name, drawn):
    found = discover(T, EXACT, constants="own", law=f"{name}*y*(1 - y/K)")
    assert found.to_latex() == rf"{drawn} y \left(1 - \frac{{y}}{{K}}\right)"
    seen = FormExploration(found, "t", "y")
    assert drawn in seen.latex() and "data:image/svg" in seen.law_html()


def test_one_series_of_a_known_form_comes_back(tmp_path):
    found = discover(T, EXACT[0], constants="own", law=LAW)
    found.save(tmp_path / "one.json")
    assert_same(found, FormDiscovery.load(tmp_path / "one.json"), "found")


def test_a_formula_that_is_too_long_is_not_written(exact, tmp_path):
    long = NamedFormula.parse("a*y" + " + y" * 200)
    best = dataclasses.replace(
        exact.best, formula=long, constants=np.ones((3, 1)), covariances=np.ones((3, 1, 1))
    )
    with pytest.raises(DiscoveryFileError, match="tokens is too long to save"):
        dataclasses.replace(exact, candidates=(best,)).save(tmp_path / "long.json")
    assert not list(tmp_path.iterdir())


def set_candidate(**fields):
    return lambda content: content["candidates"][0].update(fields)


@pytest.mark.parametrize(
    "damage, message",
    [
        (lambda c: c.update(format="something"), 'not a "nsode_jax form discovery" file$'),
        (lambda c: c.update(version=2), "version is 2, this program reads up to 1; update"),
        (lambda c: c.pop("notes"), "notes is missing"),
        (lambda c: c.update(tried=[1]), r"tried\[0\] is not text"),
        (lambda c: c.update(candidates=[]), "no candidates"),
        (lambda c: c.update(trajectories=[]), "no trajectories"),
        (lambda c: c["labels"].pop(), "2 labels for 3 series"),
        (lambda c: c.update(labels=["a", "b", "a"]), "labels of series do not differ"),
        (lambda c: c["trajectories"][0]["t"].reverse(), "strictly increasing"),
        (lambda c: c["trajectories"][0]["y"].pop(), "as many times as values"),
        (lambda c: c["trajectories"][0]["noise"].pop(), "positive, one for each value"),
        (lambda c: c["trajectories"][0].update(sigma=-1.0), "positive and finite"),
        (set_candidate(formula=["y"]), r"candidates\[0\].formula is not text"),
        (set_candidate(formula="r*y*("), "ends too early"),
        (set_candidate(formula="__import__('os').system('true')"), "cannot read the formula"),
        (set_candidate(formula="r*y" + "+y" * 200), "more than 300 operators and numbers"),
        (set_candidate(formula="y" * 20_000), "longer than 10000 characters"),
        (set_candidate(formula="+".join(f"a{i}" for i in range(70))), "more than 64 names"),
        (set_candidate(formula="K*y"), r"candidates\[0\].constants is not 3 lists of 1 numbers"),
        (set_candidate(constants=[[1.0, 2.0]]), "constants is not 3 lists of 2 numbers"),
        (set_candidate(constants=[[1.0, 2.0], [1.0], [1.0, 2.0]]), "not 3 lists of 2 numbers"),
        (set_candidate(constants=[1.0, 2.0, 3.0]), r"constants\[0\] is not a list"),
        (set_candidate(constants=[[1.0, "NaN"]] * 3), r"constants\[0\]\[1\] is not a number"),
        (
            set_candidate(covariances=[[[1.0, 2.0]]] * 3),
            "covariances is not 3 lists of 2 lists of 2 numbers",
        ),
        (set_candidate(freedom=[1, 2]), "is not one for each series"),
        (set_candidate(freedom=[1, 2, 2.5]), r"freedom\[2\] is not a whole number"),
        (set_candidate(converged=[True]), "is not one for each series"),
        (set_candidate(converged=[1, 0, 1]), "not true or false"),
        (set_candidate(y0s=[1.0]), "y0s is not 3 numbers"),
        (set_candidate(start_times=[1.0]), "start_times is not 3 numbers"),
        (set_candidate(meanings=["rate"]), "1 meanings of 2 constants"),
        (set_candidate(shared=["a"]), "shared names no constant: a"),
        (set_candidate(bounds={"low": [0.0, 0.0]}), "bounds.high is missing"),
        (set_candidate(bounds={"low": [0.0] * 2, "high": [0.0] * 2}), "nothing between them"),
        (set_candidate(score=None), "score is not a number"),
        (set_candidate(shared_p_value="x"), r"candidates\[0\].shared_p_value is not a number"),
    ],
)
def test_damage_is_named_in_one_line(file, damage, message):
    content = json.loads(file.read_text(encoding="utf-8"))
    damage(content)
    file.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(DiscoveryFileError, match=message) as caught:
        FormDiscovery.load(file)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 500


def test_a_cut_is_noticed(file):
    data = file.read_bytes().rstrip()
    for length in range(0, len(data), 997):
        file.write_bytes(data[:length])
        with pytest.raises(DiscoveryFileError, match="not JSON, or damaged"):
            FormDiscovery.load(file)


@pytest.mark.parametrize("kind", [Discovery, SystemDiscovery])
def test_a_file_of_another_kind_says_which_class_reads_it(kind, file, tmp_path):
    with pytest.raises(DiscoveryFileError, match=r"FormDiscovery\.load reads it$"):
        kind.load(file)
    name = {Discovery: "discovery", SystemDiscovery: "system discovery"}[kind]
    (tmp_path / "other.json").write_text(json.dumps({"format": f"nsode_jax {name}", "version": 1}))
    with pytest.raises(DiscoveryFileError, match=rf" {kind.__name__}\.load reads it$"):
        FormDiscovery.load(tmp_path / "other.json")
    with pytest.raises(DiscoveryFileError, match="is missing"):
        kind.load(tmp_path / "other.json")


# --- the command -------------------------------------------------------------------


@pytest.mark.parametrize("number", [1, 3])
def test_the_command_writes_what_can_be_loaded(number, tmp_path, capsys):
    table = tmp_path / "plate.csv"
    header = ",".join(["t", *list(TRUTH)[:number]])
    rows = np.column_stack([T, *EXACT[:number]])
    np.savetxt(table, rows, delimiter=",", header=header, comments="")
    own = ["--replicates", "--constants", "own"] if number > 1 else []
    out = tmp_path / "report"
    assert command.main([str(table), *own, "--form", LAW, "--out", f"{out}/"]) == 0
    written = out / "discovery.json"
    assert capsys.readouterr().out.endswith(f"report: {out}/report.html\nJSON: {written}\n")
    again = FormDiscovery.load(written)
    for label, (r, k, y0) in list(TRUTH.items())[:number]:
        predicted = again.predict(T, trajectory=label if number > 1 else 0)
        assert_allclose(predicted, logistic(T, r, k, y0), rtol=1e-5)
    assert 'FormDiscovery.load("discovery.json")' in (out / "report.md").read_text()
