"""Many different expressions as one program of tiles, for `tile_machine`.

Compiling every expression would take longer than fitting it, and interpreting
each by itself would waste a vector machine. Here the operations of all expressions
are sorted: those of one operator that depend on each other's results by nothing
form a tile.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from nsode_jax.expressions.expression import Expression
from nsode_jax.expressions.operators import OPERATORS

MAX_VARIABLES = 8
"""Variables that expressions may have; those of expressions packed together are the same."""

TILE = 32
"""Operations that are done at once."""

ONE = MAX_VARIABLES
FIRST_CONSTANT = ONE + 1
"""Rows of memory: variables, the number 1, constants that vary, fixed ones, results."""


@dataclasses.dataclass(frozen=True)
class Layout:
    """The shapes of programs. They are few, so that everything is compiled once.

    Attributes:
      capacity: expressions evaluated together.
      constants: of an expression that may vary; a series hardly determines more.
      fixed: constants of an expression that stay as they are.
      tiles: of operations.
      leaves: places of variables in one expression whose derivatives are added.
    """

    capacity: int
    constants: int
    fixed: int
    tiles: int
    leaves: int

    @property
    def first_fixed(self) -> int:
        """The row of the first constant that stays as it is."""
        return FIRST_CONSTANT + self.capacity * self.constants

    @property
    def first_result(self) -> int:
        """The row of the first tile's first result."""
        return self.first_fixed + self.capacity * self.fixed

    @property
    def rows(self) -> int:
        """Of memory."""
        return self.first_result + self.tiles * TILE

    @property
    def root(self) -> int:
        """Of the backward loop: what the derivative of a whole expression is."""
        return self.rows

    @property
    def nowhere(self) -> int:
        """A place of the last tile, which is never used."""
        return self.rows - 1


LARGE = Layout(capacity=256, constants=8, fixed=8, tiles=160, leaves=16)
"""For any law that a series can determine."""

SMALL = Layout(capacity=256, constants=4, fixed=3, tiles=72, leaves=6)
"""For simple laws: less memory, which stays in a core's cache."""

SQUARE = max(operator.opcode for operator in OPERATORS.values()) + 1
NOTHING = SQUARE + 1
"""Opcodes beside those of the operators."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Programs:
    """At most `layout.capacity` expressions; the other places hold the first variable by itself.

    Rows of memory: the variables, 1, the constants of each expression that may vary, those that do
    not, the results of the tiles.

    Attributes:
      opcode: operator of each tile.
      arguments: rows of the arguments, shape [2, tile, place].
      parent: row of the result that uses a result, shape [tile, place].
      side: whether as its first (0) or second (1) argument, [tile, place].
      result: row that holds the value of each expression, shape [expression].
      constants: those that may vary, in their order in the expression, 0 beyond;
        shape [expression, constants].
      fixed: the others likewise, shape [expression, fixed].
      constant_parent, constant_side: as above, of the constants.
      leaf_parent, leaf_side: as above, of the places of variables, [expression, places];
        those beyond an expression's own refer to a row whose derivative is 0.
      leaf_variable: which variable stands there, as its number.
    """

    opcode: Int[Array, " tiles"]
    arguments: Int[Array, "2 tiles place"]
    parent: Int[Array, "tiles place"]
    side: Int[Array, "tiles place"]
    result: Int[Array, " expressions"]
    constants: Float[Array, "expressions constants"]
    fixed: Float[Array, "expressions fixed"]
    constant_parent: Int[Array, "expressions constants"]
    constant_side: Int[Array, "expressions constants"]
    leaf_parent: Int[Array, "expressions leaves"]
    leaf_side: Int[Array, "expressions leaves"]
    leaf_variable: Int[Array, "expressions leaves"]

    @property
    def layout(self) -> Layout:
        """Their shapes."""
        capacity, constants = self.constants.shape
        return Layout(
            capacity,
            constants,
            self.fixed.shape[1],
            self.opcode.shape[0],
            self.leaf_parent.shape[1],
        )


class ProgramError(ValueError):
    """An expression is too large for a program."""


def fits(
    expression: Expression,
    varied: Bool[np.ndarray, " constants"] | None = None,
    layout: Layout = LARGE,
) -> bool:
    """Whether an expression is small enough for a program, if such constants vary."""
    constants = len(expression.constants)
    number = constants if varied is None else int(np.sum(varied))
    return (
        number <= layout.constants
        and constants - number <= layout.fixed
        and sum(map(expression.prefix.count, expression.variables)) <= layout.leaves
        and len(expression.prefix) <= 2 * TILE
    )


def pack(
    expressions: Sequence[Expression],
    varied: Sequence[Bool[np.ndarray, " _"]] | None = None,
    layout: Layout = LARGE,
) -> Iterator[tuple[Programs, int]]:
    """Programs of the expressions, in their order, and how many each holds.

    Args:
      expressions: any number; constants are those to start from.
      varied: per expression, which of its constants may vary; all, if left out.
      layout: the shapes of the programs.

    Raises:
      ProgramError: if one of them does not fit, or if their variables differ or are more
        than `MAX_VARIABLES`.
      RuntimeError: outside of `jax.enable_x64`.
    """
    if not jax.config.jax_enable_x64:  # pyright: ignore[reportAttributeAccessIssue]
        raise RuntimeError("programs compute in float64: call this under jax.enable_x64(True)")
    if varied is None:
        varied = [np.ones(len(expression.constants), bool) for expression in expressions]
    if len({expression.variables for expression in expressions}) > 1:
        raise ProgramError("expressions that are packed together need the same variables")
    if expressions and len(expressions[0].variables) > MAX_VARIABLES:
        raise ProgramError(f"more than {MAX_VARIABLES} variables")
    start = 0
    while start < len(expressions):
        count = min(layout.capacity, len(expressions) - start)
        while True:
            part = slice(start, start + count)
            programs = _assemble(expressions[part], varied[part], layout)
            if programs is not None:
                break
            count //= 2
        yield programs, count
        start += count


@dataclasses.dataclass(eq=False)
class _Instruction:
    """One operation; arguments are rows, or other operations."""

    opcode: int
    arguments: list[int | _Instruction]
    level: int
    parent: int
    row: int = 0
    side: int = 0


class _Assembly:
    """Instructions of several expressions, sorted by level and operator."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.tiles: dict[tuple[int, int], list[_Instruction]] = {}
        self.constants = np.zeros((layout.capacity, layout.constants))
        self.fixed = np.zeros((layout.capacity, layout.fixed))
        self.roots: list[int | _Instruction] = []
        self._leaves = [0] * layout.capacity  # So far.
        # Who uses a leaf, None for nobody but the result, and on which side.
        self.constant_users: dict[tuple[int, int], tuple[_Instruction | None, int]] = {}
        self.leaf_users: dict[tuple[int, int], tuple[_Instruction | None, int]] = {}
        self.leaf_variable = np.zeros((layout.capacity, layout.leaves), np.int32)

    def add(self, index: int, expression: Expression, varied: Sequence[bool]) -> None:
        """Takes in the expression that gets the place `index`."""
        rows, squares = self._rows_of_constants(index, expression, varied)
        stack: list[int | _Instruction] = []
        # From the right, so that arguments come before what uses them.
        for position in range(len(expression.prefix) - 1, -1, -1):
            token = expression.prefix[position]
            if not isinstance(token, str):
                stack.append(ONE if _is_unit(expression, position) else rows.pop())
            elif token in expression.variables:
                stack.append(expression.variables.index(token))
            else:
                operator = OPERATORS[token]
                arguments = [stack.pop() for _ in range(operator.arity)]
                opcode = operator.opcode
                if token == "pow" and arguments[1] in squares:
                    opcode, arguments = SQUARE, arguments[:1]
                stack.append(self._instruction(index, opcode, arguments))
        root = stack.pop()
        if isinstance(root, int):
            self._note_user(index, root, None, 0)
        self.roots.append(root)

    def _rows_of_constants(
        self, index: int, expression: Expression, varied: Sequence[bool]
    ) -> tuple[list[int], set[int]]:
        """The row of each constant, and the rows of those that are 2 and stay so."""
        rows, squares = [], set()
        counts = [0, 0]
        for value, varies in zip(expression.constants, varied, strict=True):
            table = self.constants if varies else self.fixed
            first = FIRST_CONSTANT if varies else self.layout.first_fixed
            column = counts[varies]
            table[index, column] = value
            counts[varies] += 1
            rows.append(first + index * table.shape[1] + column)
            if value == 2.0 and not varies:
                squares.add(rows[-1])
        return rows, squares

    def _instruction(
        self, index: int, opcode: int, arguments: list[int | _Instruction]
    ) -> _Instruction:
        level = 1 + max((a.level for a in arguments if not isinstance(a, int)), default=0)
        instruction = _Instruction(opcode, arguments, level, self.layout.root)
        for side, argument in enumerate(arguments):
            if isinstance(argument, int):
                self._note_user(index, argument, instruction, side)
        self.tiles.setdefault((level, opcode), []).append(instruction)
        return instruction

    def _note_user(self, index: int, row: int, user: _Instruction | None, side: int) -> None:
        if row < ONE:
            leaf = index, self._leaves[index]
            self.leaf_users[leaf], self.leaf_variable[leaf] = (user, side), row
            self._leaves[index] += 1
        elif FIRST_CONSTANT <= row < self.layout.first_fixed:
            column = row - FIRST_CONSTANT - index * self.layout.constants
            self.constant_users[index, column] = user, side


def _assemble(
    expressions: Sequence[Expression],
    varied: Sequence[Bool[np.ndarray, " _"]],
    layout: Layout,
) -> Programs | None:
    """The programs, or None if there are too many tiles."""
    assembly = _Assembly(layout)
    for index, (expression, varies) in enumerate(zip(expressions, varied, strict=True)):
        if not fits(expression, varies, layout):
            raise ProgramError(f"too large for a program: {expression.infix}")
        assembly.add(index, expression, [bool(v) for v in varies])
    return _lay_out(assembly)


def _is_unit(expression: Expression, position: int) -> bool:
    """Whether a 1 is the numerator of a plain reciprocal, which is no constant."""
    prefix = expression.prefix
    return prefix[position] == 1.0 and position > 0 and prefix[position - 1] == "div"


def _lay_out(assembly: _Assembly) -> Programs | None:
    """Arrays of the sorted instructions; None if there are too many."""
    layout = assembly.layout
    needed = sum(math.ceil(len(members) / TILE) for members in assembly.tiles.values())
    if needed >= layout.tiles:  # One stays free, for the leaves that there are not.
        return None
    opcode = np.full(layout.tiles, NOTHING, np.int32)
    shape = (layout.tiles, TILE)
    arguments = np.zeros((2, *shape), np.int32)
    parent, side = np.full(shape, layout.root, np.int32), np.zeros(shape, np.int32)

    ordered: list[list[_Instruction]] = []
    for _, members in sorted(assembly.tiles.items(), key=lambda item: item[0]):
        ordered += [members[i : i + TILE] for i in range(0, len(members), TILE)]
    for tile, members in enumerate(ordered):
        opcode[tile] = members[0].opcode
        for place, instruction in enumerate(members):
            instruction.row = layout.first_result + tile * TILE + place
            for number, argument in enumerate(instruction.arguments):
                if not isinstance(argument, int):
                    argument.parent, argument.side = instruction.row, number
                    argument = argument.row
                arguments[number, tile, place] = argument
            if len(instruction.arguments) == 1:
                arguments[1, tile, place] = arguments[0, tile, place]
    for tile, members in enumerate(ordered):
        parent[tile, : len(members)] = [instruction.parent for instruction in members]
        side[tile, : len(members)] = [instruction.side for instruction in members]

    constant_parent = np.full(assembly.constants.shape, layout.nowhere, np.int32)
    constant_side = np.zeros(assembly.constants.shape, np.int32)
    leaf_parent = np.full((layout.capacity, layout.leaves), layout.nowhere, np.int32)
    leaf_side = np.zeros((layout.capacity, layout.leaves), np.int32)
    for users, parents, sides in (
        (assembly.constant_users, constant_parent, constant_side),
        (assembly.leaf_users, leaf_parent, leaf_side),
    ):
        for place, (instruction, number) in users.items():
            parents[place] = layout.root if instruction is None else instruction.row
            sides[place] = number
    result = np.zeros(layout.capacity, np.int32)
    roots = [root if isinstance(root, int) else root.row for root in assembly.roots]
    result[: len(roots)] = roots
    arrays = (
        opcode, arguments, parent, side, result, assembly.constants, assembly.fixed,
        constant_parent, constant_side, leaf_parent, leaf_side, assembly.leaf_variable,
    )  # fmt: skip
    return Programs(*map(jnp.asarray, arrays))
