"""Laws and discoveries in other forms: functions for NumPy and JAX, tables, text for people."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from nsode_jax.expressions.expression import Expression
from nsode_jax.expressions.operators import OPERATORS, UNIT, VARIABLE

if TYPE_CHECKING:
    import jax
    import pandas as pd

    from nsode_jax.reporting.result import Candidate, Discovery

BACKENDS = ("numpy", "jax")

_SHOWN = 5
"""Candidates in the text of a discovery; its table holds all of them."""


# --- functions -------------------------------------------------------------------


def to_callable(expression: Expression, backend: str = "numpy") -> Callable[[Any], Any]:
    """The law as a function f(y) from an array to an array of the same shape.

    Args:
      expression: f.
      backend: `numpy` computes in float64 and gives NaN or inf where f is undefined.
        `jax` computes in the type of y, and can be jitted, mapped and differentiated.

    Raises:
      ValueError: if there is no such backend.
    """
    if backend == "numpy":
        return expression.evaluate
    if backend != "jax":
        raise ValueError(f"backend must be {' or '.join(BACKENDS)}, got {backend!r}")
    # Python numbers, since they do not change the type of the array they meet.
    constants = tuple(map(float, expression.constants))

    def f(y: Float[jax.Array, "..."] | float) -> Float[jax.Array, "..."]:
        return _evaluate(expression, y, constants)

    return f


def vector_field(expression: Expression) -> Callable[[Any, Any, Any], Any]:
    """The law as (t, y, args) -> dy/dt, as `diffrax.ODETerm` takes it.

    `args` is None for the expression's own constants, or an array of others, shape
    [constants], in the order of `expression.constants`; solutions can be
    differentiated with respect to them. The derivative with respect to an exponent
    is NaN where its base is negative, as it is in mathematics.

    The field raises ValueError if `args` has another shape.
    """
    own = tuple(map(float, expression.constants))

    def field(
        t: Float[jax.Array, ""] | float,
        y: Float[jax.Array, "..."] | float,
        args: Float[jax.Array, " constants"] | None = None,
    ) -> Float[jax.Array, "..."]:
        del t  # Autonomous.
        if args is None:
            return _evaluate(expression, y, own)
        import jax.numpy as jnp

        args = jnp.asarray(args)
        if args.shape != (len(own),):
            raise ValueError(
                f"the law has constants of shape ({len(own)},), got args of shape {args.shape}"
            )
        return _evaluate(expression, y, args)

    return field


def _evaluate(
    expression: Expression,
    y: Float[jax.Array, "..."] | float,
    constants: Sequence[float] | Float[jax.Array, " constants"],
) -> Float[jax.Array, "..."]:
    """f at each y in JAX, with these constants in place of the expression's own."""
    import jax.numpy as jnp  # Slow to import.

    y = jnp.asarray(y, jnp.result_type(y, float))
    skeleton = expression.skeleton
    next_constant = skeleton.num_constants
    # Read backwards, a prefix is a stack program: arguments come before their operator.
    stack: list[Any] = []
    for token in reversed(skeleton.tokens):
        operator = OPERATORS.get(token)
        if operator:
            arguments = [stack.pop() for _ in range(operator.arity)]
            if token == "pow" and _is_whole(arguments[1]):
                arguments[1] = int(arguments[1])  # JAX multiplies such powers out.
            stack.append(getattr(jnp, operator.jax)(*arguments))
        elif token == VARIABLE:
            stack.append(y)
        elif token == UNIT:
            stack.append(1.0)
        else:
            next_constant -= 1
            stack.append(constants[next_constant])
    (value,) = stack
    return jnp.broadcast_to(jnp.asarray(value, jnp.result_type(value, y)), y.shape)


def _is_whole(exponent: Any) -> bool:
    """Whether an exponent is a known, small whole number."""
    return isinstance(exponent, float) and exponent.is_integer() and abs(exponent) <= 100


# --- tables ----------------------------------------------------------------------


def constants_table(candidate: Candidate) -> pd.DataFrame:
    """The constants of a law with their uncertainty.

    Returns:
      A row per constant, c0, c1, ... in the order of `expression.constants`, with
      `value`, `standard_error`, the 95% interval `low` to `high`, and whether it is
      `fixed`, not fitted (the 2 of a square). NaN where the data do not determine
      the constants.
    """
    import pandas as pd  # Slow to import.

    values = candidate.expression.constants
    errors = candidate.standard_errors
    intervals = np.array(candidate.confidence_intervals, np.float64).reshape(-1, 2)
    return pd.DataFrame(
        {
            "value": np.array(values, np.float64),
            "standard_error": np.array(errors, np.float64),
            "low": intervals[:, 0],
            "high": intervals[:, 1],
            "fixed": np.array(errors, np.float64) == 0.0,
        },
        index=pd.Index([f"c{i}" for i in range(len(values))], name="constant"),
    )


def candidates_table(discovery: Discovery, limit: int | None = None) -> pd.DataFrame:
    """The candidates, best first.

    Args:
      discovery: what `discover` found.
      limit: most rows; None for all.

    Returns:
      A row per candidate, with its `rank` from 1 and its `formula` rounded for
      display (`Candidate.infix` has all digits); the other columns are attributes of
      `Candidate`.
    """
    import pandas as pd

    front = {id(candidate) for candidate in discovery.pareto_front}
    rows = [
        {
            "rank": rank,
            "formula": candidate.rounded().infix,
            "complexity": candidate.complexity,
            "r2": candidate.r2,
            "residual_rms": candidate.residual_rms,
            "held_out_rms": candidate.held_out_rms,
            "weight": candidate.weight,
            "score": candidate.score,
            "log_probability": candidate.log_probability,
            "converged": candidate.converged,
            "on_pareto_front": id(candidate) in front,
        }
        for rank, candidate in enumerate(discovery.candidates, start=1)
    ]
    return pd.DataFrame(rows)[:limit]


# --- text ------------------------------------------------------------------------


def as_text(discovery: Discovery) -> str:
    """The discovery for a terminal: the best law, its constants, the next ones, the notes."""
    best = discovery.best
    lines = [f"dy/dt = {best.rounded().infix}", f"with {_quality(best)}"]
    lines += [f"  {constant}" for constant in _constants(best)]
    rows = _rows(discovery)
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines.append("")
    for *numbers, formula in rows:
        lines.append("  ".join([*(n.rjust(w) for n, w in zip(numbers, widths)), formula]))
    lines += [f"({more})"] if (more := _rest(discovery)) else []
    lines += [f"note: {note}" for note in discovery.notes]
    return "\n".join(lines)


def as_markdown(discovery: Discovery) -> str:
    """The discovery for a notebook, the best law in LaTeX."""
    best = discovery.best
    header, *rows = _rows(discovery)
    lines = [rf"$$\frac{{dy}}{{dt}} = {best.rounded().latex()}$$", "", f"with {_quality(best)}", ""]
    lines += [f"| {' | '.join(header)} |", "|---:|---:|---:|---:|:---|"]
    lines += [f"| {' | '.join(numbers)} | `{formula}` |" for *numbers, formula in rows]
    lines += ["", more] if (more := _rest(discovery)) else []
    for note in discovery.notes:
        lines += ["", f"*Note: {note}*"]
    return "\n".join(lines)


def as_html(discovery: Discovery) -> str:
    """The discovery for a notebook, in plain tags: they show where LaTeX does not."""
    best = discovery.best
    header, *rows = _rows(discovery)
    head = "".join(f"<th>{html.escape(name)}</th>" for name in header)
    body = "".join(
        "<tr>"
        + "".join(f"<td>{html.escape(number)}</td>" for number in numbers)
        + f'<td style="text-align:left"><code>{html.escape(formula)}</code></td></tr>'
        for *numbers, formula in rows
    )
    more = _rest(discovery)
    sentences = [more] * bool(more) + [f"Note: {note}" for note in discovery.notes]
    return (
        f"<p><b>dy/dt = {html.escape(best.rounded().infix)}</b><br>"
        f"with {html.escape(_quality(best))}</p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        + "".join(f"<p>{html.escape(sentence)}</p>" for sentence in sentences)
    )


def _quality(candidate: Candidate) -> str:
    start = f"y = {candidate.y0:.4g} at t = {candidate.start_time:g}"
    others = len(candidate.y0s) - 1
    if others:
        start += f" (and {others} more trajector{'y' if others == 1 else 'ies'})"
    return f"{start}, R² = {_r2(candidate.r2)}, residual {candidate.residual_rms:.3g}"


def _constants(candidate: Candidate) -> list[str]:
    """Each fitted constant with its standard error, if that is known."""
    if candidate.covariance is None:
        return []
    return [
        f"c{i} = {value:.6g} ± {error:.2g}"
        for i, (value, error) in enumerate(
            zip(candidate.rounded_constants, candidate.standard_errors)
        )
        if error != 0.0
    ]


def _rows(discovery: Discovery) -> list[tuple[str, ...]]:
    """Header and rows of the small table in a discovery's text."""
    rows = [("rank", "R²", "complexity", "weight", "dy/dt =")]
    for rank, candidate in enumerate(discovery.candidates[:_SHOWN], start=1):
        weight = "" if math.isnan(candidate.weight) else f"{candidate.weight:.1%}"
        formula = candidate.rounded().infix
        rows.append((str(rank), _r2(candidate.r2), str(candidate.complexity), weight, formula))
    return rows


def _rest(discovery: Discovery) -> str:
    hidden = len(discovery.candidates) - _SHOWN
    if hidden <= 0:
        return ""
    return f"{hidden} more candidate{'' if hidden == 1 else 's'} in `table()`"


def _r2(r2: float) -> str:
    """In so many digits that 0.9996 does not read as 1."""
    if math.isnan(r2):
        return "unknown"
    return f"{r2:.5f}" if math.isfinite(r2) else "diverges"
