"""Right-hand sides as programs for one compiled machine.

Compiling every random equation would take longer than solving it. Instead one
evaluator is compiled once and interprets them all. It is a stack machine whose
loads are part of the operators: an instruction names the addresses of its
arguments, which are y, a constant or a place of the stack. So a program has one
instruction per operator, and small integer powers are multiplications.
"""

from __future__ import annotations

import dataclasses
import math

import numba
import numpy as np
from jaxtyping import Float, UInt64

from nsode_jax.expressions.expression import Expression
from nsode_jax.expressions.operators import OPERATORS, VARIABLE

# The opcodes of the operator table, as literals: Numba's cache on disk knows when
# this file changes, but not when another one does.
_ADD, _SUB, _MUL, _DIV, _POW, _SIN, _COS, _EXP, _SQRT, _LOG, _NEG = range(11)
# And those which only programs know. Integer powers hold |exponent| in the place
# of the second address.
_COPY, _INTEGER_POWER, _INVERSE_INTEGER_POWER = range(64, 67)

_MAX_INTEGER_POWER = 16
"""Up to here repeated multiplication is as exact as `pow` (a few 1e-16)."""

_Y = 0
"""The address of y; the constants follow, then the stack."""


@dataclasses.dataclass(frozen=True, eq=False)
class Program:
    """An expression as instructions for `run`.

    Attributes:
      instructions: opcode, addresses of the two arguments, address of the result;
        arguments come before what uses them. Shape [instruction, 4].
      memory: what is stored at the addresses: y, the constants and the stack.
        Each user works on a copy. Shape [address].
    """

    instructions: UInt64[np.ndarray, "instruction 4"]
    memory: Float[np.ndarray, " address"]

    @classmethod
    def from_expression(cls, expression: Expression) -> Program:
        """The program that computes the same as `expression.evaluate`."""
        constants = [token for token in expression.prefix if not isinstance(token, str)]
        constant_address, stack = len(constants), 1 + len(constants)
        instructions, addresses, depth, max_depth = [], [], 0, 1
        # From the right, so that arguments come first.
        for token in reversed(expression.prefix):
            if not isinstance(token, str):
                addresses.append(constant_address)
                constant_address -= 1
                continue
            if token == VARIABLE:
                addresses.append(_Y)
                continue
            operator = OPERATORS[token]
            left = addresses.pop()
            right = addresses.pop() if operator.arity == 2 else left
            depth -= (left >= stack) + (right >= stack and operator.arity == 2)
            exponent = constants[right - 1] if _Y < right < stack else None
            opcode = operator.opcode
            if opcode == _POW and exponent is not None:
                opcode, right = _power(left, right, exponent)
            instructions.append((opcode, left, right, stack + depth))
            addresses.append(stack + depth)
            depth += 1
            max_depth = max(max_depth, depth)
        if not instructions:
            instructions.append((_COPY, addresses[0], addresses[0], stack))
        memory = np.zeros(stack + max_depth)
        memory[1:stack] = constants
        return cls(np.array(instructions, np.uint64), memory)

    def evaluate(self, y: Float[np.ndarray, "..."] | float) -> Float[np.ndarray, "..."]:
        """f at each y in float64; NaN or inf where f is undefined."""
        y = np.asarray(y, np.float64)
        return _run_all(self.instructions, self.memory, y.ravel()).reshape(y.shape)


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


@numba.njit(nogil=True, error_model="numpy")
def run(instructions, memory, y):
    """f(y) of a program; for compiled callers.

    Args:
      instructions: of the program.
      memory: a copy of the program's, which is overwritten.
      y: a float.

    Returns:
      A float; NaN or inf where f is undefined.
    """
    memory[_Y] = y
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
        else:  # An operator that the machine was not taught.
            value = math.nan
        memory[instructions[i, 3]] = value
    return value


@numba.njit(nogil=True, cache=True, error_model="numpy")
def _run_all(instructions, memory, y):
    memory = memory.copy()
    values = np.empty(y.size)
    for i in range(y.size):
        values[i] = run(instructions, memory, y[i])
    return values
