"""Right-hand sides as programs for one compiled machine.

Compiling every random equation would take longer than solving it. Instead one
evaluator is compiled once and interprets them all. It is a stack machine whose
loads are part of the operators: an instruction names the addresses of its
arguments, which are a variable, a constant or a place of the stack. So a program has
one instruction per operator, and small integer powers are multiplications. Several
expressions of the same variables, the components of a system, make one program: what
they compute is left on the stack.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numba
import numpy as np
from jaxtyping import Float, UInt64

from nsode_jax.expressions.expression import Expression
from nsode_jax.expressions.operators import OPERATORS, Operator

# The opcodes of the operator table, as literals: Numba's cache on disk knows when
# this file changes, but not when another one does.
_ADD, _SUB, _MUL, _DIV, _POW, _SIN, _COS, _EXP, _SQRT, _LOG, _NEG = range(11)
# And those which only programs know. Integer powers hold |exponent| in the place
# of the second address.
_COPY, _INTEGER_POWER, _INVERSE_INTEGER_POWER = range(64, 67)

_MAX_INTEGER_POWER = 16
"""Up to here repeated multiplication is as exact as `pow` (a few 1e-16)."""


@dataclasses.dataclass(frozen=True, eq=False)
class Program:
    """One or several expressions as instructions for `run` and `run_system`.

    Attributes:
      instructions: opcode, addresses of the two arguments, address of the result;
        arguments come before what uses them. Shape [instruction, 4].
      memory: what is stored at the addresses: the variables in their order, the
        constants and the stack. Each user works on a copy. Shape [address].
      variables: how many there are.
      results: addresses of the values of the expressions.
    """

    instructions: UInt64[np.ndarray, "instruction 4"]
    memory: Float[np.ndarray, " address"]
    variables: int
    results: range

    @classmethod
    def from_expression(cls, expression: Expression) -> Program:
        """The program that computes the same as `expression.evaluate`."""
        return cls.from_expressions([expression])

    @classmethod
    def from_expressions(cls, expressions: Sequence[Expression]) -> Program:
        """One program for all components of a system.

        Raises:
          ValueError: if their variables differ.
        """
        variables = expressions[0].variables
        if any(expression.variables != variables for expression in expressions):
            raise ValueError("the expressions of one program need the same variables")
        address_of = {name: address for address, name in enumerate(variables)}
        constants = [t for e in expressions for t in e.prefix if not isinstance(t, str)]
        first_constant, stack = len(variables), len(variables) + len(constants)
        next_constant = first_constant
        instructions: list[tuple[int, int, int, int]] = []
        depth, max_depth = 0, 1
        for expression in expressions:
            root, addresses = depth, []
            next_constant += sum(not isinstance(token, str) for token in expression.prefix)
            constant = next_constant
            # From the right, so that arguments come first.
            for token in reversed(expression.prefix):
                if not isinstance(token, str):
                    constant -= 1
                    addresses.append(constant)
                    continue
                if token in address_of:
                    addresses.append(address_of[token])
                    continue
                operator = OPERATORS[token]
                left = addresses.pop()
                right = addresses.pop() if operator.arity == 2 else left
                depth -= (left >= stack) + (right >= stack and operator.arity == 2)
                opcode = operator.opcode
                if opcode == _POW and first_constant <= right < stack:
                    opcode, right = _power(left, right, constants[right - first_constant])
                instructions.append((opcode, left, right, stack + depth))
                addresses.append(stack + depth)
                depth += 1
                max_depth = max(max_depth, depth)
            if depth == root:  # A variable or a constant by itself.
                instructions.append((_COPY, addresses[0], addresses[0], stack + depth))
                depth += 1
                max_depth = max(max_depth, depth)
        memory = np.zeros(stack + max_depth)
        memory[first_constant:stack] = constants
        results = range(stack, stack + len(expressions))
        return cls(np.array(instructions, np.uint64), memory, len(variables), results)

    def evaluate(self, *values: Float[np.ndarray, "..."] | float) -> Float[np.ndarray, "..."]:
        """f in float64 from one array for each variable; NaN or inf where undefined.

        Of several expressions the values are stacked along a new first axis.
        """
        arrays = np.broadcast_arrays(*(np.asarray(value, np.float64) for value in values))
        points = np.stack([array.ravel() for array in arrays])
        if len(points) != self.variables:
            raise TypeError(f"the program has {self.variables} variables, got {len(points)} values")
        found = _run_all(
            self.instructions, self.memory, points, self.results.start, len(self.results)
        )
        found = found.reshape(len(self.results), *arrays[0].shape)
        return found[0] if len(self.results) == 1 else found


def _power(base: int, exponent_address: int, exponent: float) -> tuple[int, int]:
    """The opcode and the second argument that raise what is at `base` to a constant."""
    if exponent == 2.0:
        return _MUL, base
    if exponent != int(exponent) or abs(exponent) > _MAX_INTEGER_POWER:
        return _POW, exponent_address
    opcode = _INTEGER_POWER if exponent >= 0 else _INVERSE_INTEGER_POWER
    return opcode, abs(int(exponent))


@numba.njit(nogil=True, error_model="numpy")
def _integer_power(x, exponent):
    result = 1.0
    while exponent:
        if exponent & np.uint64(1):
            result *= x
        x *= x
        exponent >>= np.uint64(1)
    return result


# The machine knows the operators above by itself, at no cost. What the table holds beyond
# them are functions of `math`, which Numba knows by their names.


@numba.njit(nogil=True, error_model="numpy")
def _unknown(opcode, left, right):
    return math.nan


def _with_function(operator: Operator, others: Callable) -> Callable:
    """Adds a function of the table to those that are tried one after the other."""
    opcode, function = operator.opcode, getattr(math, operator.python.partition("(")[0])
    if operator.arity == 1:

        @numba.njit(nogil=True, error_model="numpy")
        def branch(op, left, right):
            return function(left) if op == opcode else others(op, left, right)

    else:

        @numba.njit(nogil=True, error_model="numpy")
        def branch(op, left, right):
            return function(left, right) if op == opcode else others(op, left, right)

    return branch


_ADDED = [operator for operator in OPERATORS.values() if operator.opcode > _NEG]
_others = _unknown
for _operator in _ADDED:
    _others = _with_function(_operator, _others)

FINGERPRINT = hashlib.sha256(
    Path(__file__).read_bytes()
    + repr([(operator.opcode, operator.python) for operator in _ADDED]).encode()
).hexdigest()
"""Of the machine. Numba's cache on disk looks at the variables of a closure, but not at what
a function calls: what is cached and runs programs must hold this one."""


@numba.njit(nogil=True, error_model="numpy", inline="always")
def _execute(instructions, memory):
    """Runs a program on memory that holds the variables; returns the last value."""
    value = math.nan
    for i in range(instructions.shape[0]):
        opcode = instructions[i, 0]
        left = memory[instructions[i, 1]]
        if opcode == _ADD:
            value = left + memory[instructions[i, 2]]
        elif opcode == _SUB:
            value = left - memory[instructions[i, 2]]
        elif opcode == _MUL:
            value = left * memory[instructions[i, 2]]
        elif opcode == _DIV:
            value = left / memory[instructions[i, 2]]
        elif opcode == _POW:
            value = math.pow(left, memory[instructions[i, 2]])
        elif opcode == _SIN:
            value = math.sin(left)
        elif opcode == _COS:
            value = math.cos(left)
        elif opcode == _EXP:
            value = math.exp(left)
        elif opcode == _SQRT:
            value = math.sqrt(left)
        elif opcode == _LOG:
            value = math.log(left)
        elif opcode == _NEG:
            value = -left
        elif opcode == _COPY:
            value = left
        elif opcode == _INTEGER_POWER:
            value = _integer_power(left, instructions[i, 2])
        elif opcode == _INVERSE_INTEGER_POWER:
            value = 1.0 / _integer_power(left, instructions[i, 2])
        else:
            value = _others(opcode, left, memory[instructions[i, 2]])
        memory[instructions[i, 3]] = value
    return value


@numba.njit(nogil=True, error_model="numpy")
def run(instructions, memory, y):
    """f(y) of a program of one variable and one expression; for compiled callers.

    Args:
      instructions: of the program.
      memory: a copy of the program's, which is overwritten.
      y: a float.

    Returns:
      A float; NaN or inf where f is undefined.
    """
    memory[0] = y
    return _execute(instructions, memory)


@numba.njit(nogil=True, error_model="numpy")
def run_system(instructions, memory, point, first_result, values):
    """The values of all expressions of a program; for compiled callers.

    Args:
      instructions: of the program.
      memory: a copy of the program's, which is overwritten.
      point: the variables, shape [variable].
      first_result: `results.start` of the program.
      values: is filled; shape [expression].
    """
    memory[: point.size] = point
    _execute(instructions, memory)
    values[:] = memory[first_result : first_result + values.size]


def _compile_evaluation(machine: str):
    @numba.njit(nogil=True, cache=True, error_model="numpy")
    def evaluate(instructions, memory, points, first_result, expressions):
        machine  # noqa: B018
        memory = memory.copy()
        values = np.empty((expressions, points.shape[1]))
        if points.shape[0] == 1 and expressions == 1:  # Twice as fast without the slices.
            for i in range(points.shape[1]):
                values[0, i] = run(instructions, memory, points[0, i])
            return values
        for i in range(points.shape[1]):
            run_system(instructions, memory, points[:, i], first_result, values[:, i])
        return values

    return evaluate


_run_all = _compile_evaluation(FINGERPRINT)
