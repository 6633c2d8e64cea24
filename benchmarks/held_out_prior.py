"""How well the prior expects laws of fields it has not seen, against a flat price per token.

    python benchmarks/held_out_prior.py

Each field of the catalogue is left out in turn; its laws are then priced in nats by
`Prior` without that field, by its model of operators alone, by a uniform choice among all
tokens, and by a flat price for each. Laws count by their frequency and,
in a second table, all alike. The last lines show from which values `NAMED_SHARE`,
`OTHER_SIGNS_SHARE` and `CONCENTRATION` were chosen: the mean of the logarithm of the
held-out probability, in nats.
"""

from __future__ import annotations

import collections
import math
from collections.abc import Iterable

import numpy as np

from nsode_jax.selection.catalogue import Catalogue, NamedLaw
from nsode_jax.selection.complexity import in_arbitrary_units
from nsode_jax.selection.form import Form
from nsode_jax.selection.prior import (
    CONCENTRATION,
    NAMED_SHARE,
    OTHER_SIGNS_SHARE,
    OperatorModel,
    Prior,
    corpus,
)

_ALL_TOKENS = 15
_FLAT = 1.5
_SHARES = np.linspace(0.02, 0.98, 49)


def held_out(concentration: float) -> Iterable[tuple[NamedLaw, Form, float, float, float]]:
    """(law, form, its probabilities: named, named with any signs, of operators) by field."""
    catalogue = Catalogue.load()
    for field in catalogue.fields:
        rest = catalogue.without_fields(field)
        operators = OperatorModel.estimate(
            [*(form for law in rest.laws for form in sorted(law.forms)[:1]), *corpus()],
            concentration,
        )
        named, signs = Prior(rest, operators, 1.0), Prior(rest, operators, 0.0, 1.0)
        alone = Prior(None, operators, 0.0)
        for law in catalogue.laws:
            for form in sorted(law.forms) if law.field == field else ():
                nats = [prior.log_prior_of_form(form) for prior in (named, signs, alone)]
                yield law, form, math.exp(nats[0]), math.exp(nats[1]), math.exp(nats[2])


def flat_nats(law: NamedLaw) -> float:
    """A flat price: 1.5 nats for each of the weighted tokens."""
    expression = law.formula.with_values(law.draw(np.random.default_rng(0)))
    return in_arbitrary_units(expression)[0] * _FLAT


def mean_log(rows: list, weights: np.ndarray, named: float, signs: float) -> float:
    """Mean logarithm of the held-out probability under the mixture."""
    parts = np.array([row[2:] for row in rows])
    mixture = parts @ np.array([named, signs, 1 - named - signs])
    return float(np.average(np.log(mixture), weights=weights))


def main() -> None:
    rows = list(held_out(CONCENTRATION))
    by_frequency = np.array([row[0].frequency / len(row[0].forms) for row in rows])
    alike = np.array([1.0 / len(row[0].forms) for row in rows])
    tokens = np.array([len(row[1]) for row in rows])
    operators = -np.log([row[4] for row in rows])
    flat = np.array([flat_nats(row[0]) for row in rows])
    mixture = -np.array(
        [mean_log([row], np.ones(1), NAMED_SHARE, OTHER_SIGNS_SHARE) for row in rows]
    )
    for title, weights in (("by frequency", by_frequency), ("all alike", alike)):
        print(f"{title}: nats per law, nats per token, perplexity per token")
        for name, nats in (
            ("mixture", mixture),
            ("operators alone", operators),
            ("flat price", flat),
            ("uniform", tokens * math.log(_ALL_TOKENS)),
        ):
            per_token = np.average(nats, weights=weights) / np.average(tokens, weights=weights)
            mean = np.average(nats, weights=weights)
            print(f"  {name:16} {mean:6.2f} {per_token:6.3f} {math.exp(per_token):6.2f}")
        known = np.average([row[2] > 0 for row in rows], weights=weights)
        print(f"  {known:.0%} have the form of a named law of another field")

    print("by field (frequency): mixture, operators alone, flat price, in nats per law")
    fields = collections.defaultdict(list)
    for i, row in enumerate(rows):
        fields[row[0].field].append(i)
    for field, chosen in fields.items():
        means = (
            np.average(x[chosen], weights=by_frequency[chosen]) for x in (mixture, operators, flat)
        )
        print(f"  {field:20}", *(f"{mean:6.2f}" for mean in means))

    for title, weights in (("by frequency", by_frequency), ("all alike", alike)):
        shares = [(a, b) for a in _SHARES for b in _SHARES if a + b < 1]
        named, signs = max(shares, key=lambda pair: mean_log(rows, weights, *pair))
        print(f"best share of the named laws, {title}: {named:.2f}, with other signs {signs:.2f}")
    for concentration in (1, 2, 4, 8, 16, 32, 64):
        rows = list(held_out(concentration))
        value = mean_log(rows, by_frequency, NAMED_SHARE, OTHER_SIGNS_SHARE)
        print(f"concentration {concentration:3}: {value:.3f}")


if __name__ == "__main__":
    main()
