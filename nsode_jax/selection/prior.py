"""How probable a law is before there are data: what science has found so far.

The prior of a form (see `form`) is a mixture: with probability `NAMED_SHARE` a law of the
catalogue, by its frequency, with `OTHER_SIGNS_SHARE` one with any signs of its constants,
else a tree of operators, each drawn given its parent, its place among the parent's
arguments and whether a function encloses it. Exponents are a
place of their own, where 2 and 3 are plain and a fitted number is one more token. All
parts are normalized: two over the catalogue, the other over all finite trees, of
which canonical forms are some.

`Prior.log_prior` is the logarithm, in nats, of the probability of a form: its operators, the
signs of its constants and its plain exponents. It does not include the values of
constants, of which a score must count the prior itself.

Probabilities of operators given their context are counts from the catalogue and from a
corpus of formulas of physics (`formulas.txt`), smoothed by backing off to wider contexts
(Dirichlet priors, MacKay and Peto 1995, Nat. Lang. Eng. 1).
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import importlib.resources
import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from nsode_jax.expressions.expression import (
    Expression,
    ExpressionError,
    Skeleton,
)
from nsode_jax.expressions.operators import (
    CONSTANT,
    NEGATIVE_CONSTANT,
    OPERATORS,
    UNIT,
    VARIABLE,
    arity,
)
from nsode_jax.selection.catalogue import Catalogue, NamedLaw
from nsode_jax.selection.form import Form, form_of
from nsode_jax.selection.named_formula import NamedFormula

NAMED_SHARE = 0.55
"""Share of the named laws. Where it and the next make laws of a field that was left out of
the catalogue most probable, on average over fields, laws by their frequency (0.56 and 0.12;
if all laws counted alike, 0.34 and 0.14): from one field one can expect so much of the next."""

OTHER_SIGNS_SHARE = 0.12
"""Share of laws that differ from a named one by the signs of constants, any of them: what
falls towards its threshold here grows away from it there."""

CONCENTRATION = 16.0
"""Of the Dirichlet priors: so many tokens seen weigh as much as the wider context. Chosen
likewise, from 1, 2, 4, ... 32; between 4 and 32 it hardly matters."""

_CORPUS = "formulas.txt"

Context = tuple[str, int, bool]
"""(parent, place among its arguments, whether a function encloses both)."""

_ROOT: Context = ("", 0, False)
_FUNCTIONS = ("exp", "log", "sin", "cos", "sqrt", "pow")
_WHOLE = tuple(str(n) for n in range(2, 11))
_HALF = ("1.5", "2.5")
_TOKENS = (*OPERATORS, VARIABLE, UNIT, CONSTANT, NEGATIVE_CONSTANT)


def _exponent_base() -> dict[str, float]:
    """What is expected of an exponent before any is seen: small whole numbers first."""
    weights = {n: 1.0 / float(n) ** 2 for n in _WHOLE}
    weights |= dict.fromkeys(_HALF, 0.02)
    weights |= {CONSTANT: 0.1, NEGATIVE_CONSTANT: 0.01}
    others = [t for t in _TOKENS if t not in weights]
    weights |= dict.fromkeys(others, 0.02 / len(others))
    total = sum(weights.values())
    return {token: weight / total for token, weight in weights.items()}


EXPONENT_BASE = _exponent_base()


def tokens_in_context(form: Form) -> Iterator[tuple[Context, str]]:
    """Each token of a form with its context, in prefix order."""
    open_places: list[Context] = [_ROOT]
    for token in form:
        context = open_places.pop()
        yield context, token
        open_places += _places(token, context)


def _places(token: str, context: Context) -> list[Context]:
    """Where the arguments of a token stand, the first of them last."""
    inside = context[2] or context[0] in _FUNCTIONS
    return [(token, place, inside) for place in reversed(range(arity(token)))]


def _is_exponent(context: Context) -> bool:
    return context[:2] == ("pow", 1)


@dataclasses.dataclass(frozen=True, eq=False)
class OperatorModel:
    """Probabilities of tokens given their context, from forms that were seen.

    Attributes:
      counts: how often each token was seen in each context.
      concentration: how many tokens the wider context counts as.
    """

    counts: Mapping[Context, collections.Counter[str]]
    concentration: float = CONCENTRATION

    @classmethod
    def estimate(cls, forms: Sequence[Form], concentration: float = CONCENTRATION) -> OperatorModel:
        """Counts the tokens of forms, each form once."""
        counts: dict[Context, collections.Counter[str]] = {}
        for form in forms:
            for context, token in tokens_in_context(form):
                counts.setdefault(context, collections.Counter())[token] += 1
        return cls(counts, concentration)

    @functools.cached_property
    def _wider(self) -> dict[tuple[str, int] | None, collections.Counter[str]]:
        """Counts without regard to enclosing functions, and (None) to the context at all."""
        wider: dict[tuple[str, int] | None, collections.Counter[str]] = {
            None: collections.Counter()
        }
        for context, counter in self.counts.items():
            wider.setdefault(context[:2], collections.Counter()).update(counter)
            if not _is_exponent(context):
                wider[None].update(counter)
        return wider

    @functools.cached_property
    def _log_probabilities(self) -> dict[tuple[Context, str], float]:
        return {}

    def _smoothed(self, counter: collections.Counter[str], token: str, wider: float) -> float:
        return (counter[token] + self.concentration * wider) / (
            counter.total() + self.concentration
        )

    def probability(self, context: Context, token: str) -> float:
        """Of a token in a context; over all tokens that can stand there they sum to 1."""
        nothing: collections.Counter[str] = collections.Counter()
        if _is_exponent(context):
            wider = EXPONENT_BASE.get(token, 0.0)
        else:
            if token not in _TOKENS:
                return 0.0
            wider = self._smoothed(self._wider[None], token, 1.0 / len(_TOKENS))
        wider = self._smoothed(self._wider.get(context[:2], nothing), token, wider)
        return self._smoothed(self.counts.get(context, nothing), token, wider)

    def draw(self, rng: np.random.Generator, longest: int) -> Form | None:
        """A random form; None for one of more tokens than the longest."""
        form: list[str] = []
        open_places: list[Context] = [_ROOT]
        while open_places:
            context = open_places.pop()
            tokens = tuple(EXPONENT_BASE) if _is_exponent(context) else _TOKENS
            chances = np.array([self.probability(context, token) for token in tokens])
            form.append(tokens[rng.choice(len(tokens), p=chances / chances.sum())])
            open_places += _places(form[-1], context)
            if len(form) + len(open_places) > longest:
                return None
        return tuple(form)

    def log_probability(self, form: Form) -> float:
        """Of a form, in nats; -inf if a plain exponent is beyond those that are known."""
        total, known = 0.0, self._log_probabilities
        for key in tokens_in_context(form):
            value = known.get(key)
            if value is None:
                probability = self.probability(*key)
                value = known[key] = math.log(probability) if probability else -math.inf
            total += value
        return total


def _unsigned(form: Form) -> Form:
    """A form with the signs of its constants left out, of the terms of its sums too."""
    signs = {NEGATIVE_CONSTANT: CONSTANT, "sub": "add"}
    return tuple(signs.get(token, token) for token in form if token != "neg")


@dataclasses.dataclass(frozen=True, eq=False)
class Prior:
    """A distribution over the forms of laws.

    Attributes:
      catalogue: the named laws, or None for operators only.
      operators: the model of all other laws.
      named_share: probability that a law is a named one.
      other_signs_share: that it is one but for the signs of its constants.
    """

    catalogue: Catalogue | None
    operators: OperatorModel
    named_share: float
    other_signs_share: float = 0.0

    @classmethod
    @functools.cache
    def load(cls, catalogue: bool = True) -> Prior:
        """The prior that comes with the package.

        Args:
          catalogue: False for the model of operators alone, estimated on the formulas of
            physics only: what would be thought without the named laws.
        """
        if catalogue:
            return cls.from_catalogue(Catalogue.load())
        return cls(None, OperatorModel.estimate(corpus()), 0.0)

    @classmethod
    def from_catalogue(
        cls,
        catalogue: Catalogue,
        named_share: float = NAMED_SHARE,
        other_signs_share: float = OTHER_SIGNS_SHARE,
    ) -> Prior:
        """The prior of a catalogue; operators are counted there and in the corpus."""
        seen = [form for law in catalogue.laws for form in sorted(law.forms)[:1]]
        operators = OperatorModel.estimate([*seen, *corpus()])
        return cls(catalogue, operators, named_share, other_signs_share)

    def without_fields(self, *fields: str) -> Prior:
        """The prior of one who has never heard of some fields, neither names nor operators.

        Raises:
          ValueError: if there is no such field, or no catalogue.
        """
        if self.catalogue is None:
            raise ValueError("a prior without a catalogue has no fields")
        rest = self.catalogue.without_fields(*fields)
        return Prior.from_catalogue(rest, self.named_share, self.other_signs_share)

    @functools.cached_property
    def own_laws(self) -> tuple[NamedLaw, ...]:
        """Named laws that the package's catalogue does not have."""
        return () if self.catalogue is None else self.catalogue.beyond_package()

    @functools.cached_property
    def _named(self) -> dict[Form, float]:
        """Probability of each form among the named laws."""
        if self.catalogue is None:
            return {}
        total = sum(law.frequency for law in self.catalogue.laws)
        found: collections.defaultdict[Form, float] = collections.defaultdict(float)
        for law in self.catalogue.laws:
            for form in law.forms:
                found[form] += law.frequency / total / len(law.forms)
        return dict(found)

    @functools.cached_property
    def _with_any_signs(self) -> dict[Form, float]:
        """Probability of each form, its signs left out, among the named laws."""
        found: collections.defaultdict[Form, float] = collections.defaultdict(float)
        for form, probability in self._named.items():
            found[_unsigned(form)] += probability
        return dict(found)

    def _other_signs(self, form: Form) -> float:
        """Probability of a form among named laws whose constants have any signs."""
        signs = sum(token in (CONSTANT, NEGATIVE_CONSTANT) for token in form)
        return self._with_any_signs.get(_unsigned(form), 0.0) / 2**signs

    def log_prior(self, law: Expression | Skeleton) -> float:
        """Logarithm of the probability of a law's form, in nats.

        Laws that differ by units or by the values of their constants have the same.

        Args:
          law: an expression, or a skeleton, whose exponents count as fitted ones.

        Returns:
          At most 0; -inf for a law that has no canonical form.
        """
        try:
            return self.log_prior_of_form(form_of(law))
        except ExpressionError:
            return -math.inf

    def log_prior_of_form(self, form: Form) -> float:
        """The same of a form."""
        named = self.named_share * self._named.get(form, 0.0)
        signs = self.other_signs_share * self._other_signs(form)
        rest = 1.0 - self.named_share - self.other_signs_share
        total = named + signs + rest * math.exp(self.operators.log_probability(form))
        return math.log(total) if total else -math.inf

    def is_named(self, law: Expression | Skeleton) -> bool:
        """Whether a law of the catalogue can have this form."""
        try:
            return form_of(law) in self._named
        except ExpressionError:
            return False


@functools.cache
def corpus() -> tuple[Form, ...]:
    """Forms of the formulas of physics, each formula once."""
    file = importlib.resources.files("nsode_jax.selection") / _CORPUS
    text = file.read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    forms = []
    for line in lines:
        formula = NamedFormula.parse(line)
        values = [0.6 + (i * 0.6180339887498949) % 1.0 for i in range(len(formula.names))]
        forms.append(form_of(formula.with_values(values)))
    return tuple(forms)
