"""The terms of a law that is a sum."""

from __future__ import annotations

from nsode_jax.expressions.expression import Expression
from nsode_jax.expressions.prefix import Prefix, subtree_end


def summands(law: Expression) -> list[Prefix]:
    """The terms of a law with their coefficients and signs, in order."""

    def walk(start: int, end: int, sign: float) -> None:
        token = law.prefix[start]
        if token in ("add", "sub"):
            middle = subtree_end(law.prefix, start + 1)
            walk(start + 1, middle, sign)
            walk(middle, end, sign if token == "add" else -sign)
        else:
            part = law.prefix[start:end]
            found.append(part if sign > 0 else ("mul", -1.0, *part))

    found: list[Prefix] = []
    walk(0, len(law.prefix), 1.0)
    return found
