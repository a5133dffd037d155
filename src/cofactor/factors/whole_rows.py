"""Rows of whole numbers in vector registers: sums that are exact, and noise that is rounded with them.

A whole number takes the place, and the bits, of a float32 of a row: tables of sums come from
`factors.simd.new_table`, are all zeros at first, and are read with `whole_cells`.
"""

# ruff: noqa: ARG001 (numba hands over the types of all arguments; an operation looks at few)
import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.errors import TypingError
from numpy.typing import NDArray

from cofactor.factors.simd import LANES, Table, by_vector, cells, llvm_call, operation, row_of

MOST = 1 << 30
"""The largest sum; beyond it sums stand still. Adding anything up to 2^30 to it still fits 32 bits."""

_GRADIENT_BITS, _NOISE_BITS = 16, 12
_FLOATS = ir.VectorType(ir.FloatType(), LANES)
_WHOLE = ir.VectorType(ir.IntType(32), LANES)


def step_size(longest: float, deviation: float) -> float:
    """Return what a whole number of 1 stands for: a power of two.

    The longest contribution has at most 2^16 such steps, so that thousands of them fit a sum; and the noise's
    deviation at most 2^12: the words that make it tell far-out noise apart more finely than that, so that no
    number of steps shows which words there can have been.
    """
    least = max(math.ldexp(longest, -_GRADIENT_BITS), math.ldexp(deviation, -_NOISE_BITS))
    return math.ldexp(1.0, math.frexp(least)[1])


def whole_cells(table: Table) -> NDArray[np.int32]:
    """Return the table's whole numbers, padding included, in the same memory."""
    return cells(table).view(np.int32)


@operation
def add_whole(_: Any, total: Any, row: Any) -> Any:
    """Return total + row, with the floats of row cut to whole numbers, and the sum to +-MOST.

    Cutting brings numbers closer to zero, and limiting sums brings two of them closer to each other: neither
    can make one row of a long sum count for more than its length. No float may exceed MOST.
    """

    def emit(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        high, low = (ir.Constant(_WHOLE, [sign * MOST] * LANES) for sign in (1, -1))

        def one(x: Any, y: Any) -> Any:
            added = builder.add(builder.bitcast(x, _WHOLE), builder.fptosi(y, _WHOLE))
            added = builder.select(builder.icmp_signed("<", added, high), added, high)
            added = builder.select(builder.icmp_signed(">", added, low), added, low)
            return builder.bitcast(added, _FLOATS)

        return by_vector(builder, one, *arguments)

    return total(total, row), emit


@operation
def noisy(_: Any, total: Any, noise: Any) -> Any:
    """Return total + noise, rounded to whole numbers, as floats.

    To round the noise alone is to round the sum, which is whole; and rounding cannot weaken a guarantee.
    """

    def emit(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        def one(x: Any, y: Any) -> Any:
            rounded = builder.fptosi(llvm_call(builder, "rint", y), _WHOLE)
            return builder.sitofp(builder.add(builder.bitcast(x, _WHOLE), rounded), _FLOATS)

        return by_vector(builder, one, *arguments)

    return total(total, noise), emit


@operation
def row_at(_: Any, numbers: Any, start: Any, table: Any) -> Any:
    """Read a row as wide as those of the table from an array of float32, beginning at number `start`."""
    if not (isinstance(numbers, types.Array) and numbers.layout == "C" and numbers.dtype == types.float32):
        raise TypingError("row_at reads from an array of float32")
    row = row_of(table)

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(numbers)(context, builder, arguments[0])
        first = builder.gep(array.data, [context.cast(builder, arguments[1], start, types.intp)])
        return builder.load(builder.bitcast(first, context.get_value_type(row).as_pointer()), align=4)

    return row(numbers, start, table), emit
