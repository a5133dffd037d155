"""Rows of factors in vector registers: the few operations that plain loops do not compile to.

A table is an array of rows, and a row a whole number of vectors of eight float32. That number is part of
the table's dtype, hence of its numba type: one kernel source is compiled for each width it meets, and a row
stays in registers without a loop over its columns. No fast-math: every operation rounds as it is written.

Loads and stores move whole rows or vectors of a row, and a row lies whole within its table, padding and all.
So nothing outside a table is touched as long as the row number is valid, which kernels do not check.
Numba's cache does not see a change of this file: touch the kernels that use it after editing.
"""

# ruff: noqa: ARG001 (numba hands over the types of all arguments; an operation looks at few)
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.extending import intrinsic, models, register_model
from numpy.typing import NDArray

LANES = 8
"""Floats in a vector: one AVX register. LLVM splits it up where registers are smaller."""

Table = NDArray[np.void]
Cells = NDArray[np.float32]

_FLOAT = ir.FloatType()
_INT = ir.IntType(32)
_VECTOR = ir.VectorType(_FLOAT, LANES)
_CACHE_LINE = 64


def new_table(rows: int, columns: int) -> Table:
    """Return a table of zeros whose rows have room for so many columns; fill it through `cells`."""
    dtype = np.dtype([("vectors", np.float32, (-(-columns // LANES), LANES))])
    size = rows * dtype.itemsize
    memory = np.zeros(size + _CACHE_LINE, np.uint8)
    # From here on no vector straddles two cache lines, which would cost two accesses.
    start = -memory.ctypes.data % _CACHE_LINE
    return memory[start : start + size].view(dtype)


def cells(table: Table) -> Cells:
    """Return the table's numbers, padding included, in the same memory."""
    width = table.dtype.itemsize // 4
    return table["vectors"].reshape(len(table), width)


class Row(types.Type):
    """A row in registers."""

    def __init__(self, vectors: int) -> None:
        self.vectors = vectors
        super().__init__(name=f"Row({vectors})")


def operation(build: Callable[..., Any]) -> Callable[..., Any]:
    """Make an operation for kernels: `build` gets the argument types, returns a signature and an emitter."""
    made: Callable[..., Any] = intrinsic(build)
    return made


@register_model(Row)
class _RowModel(models.PrimitiveModel):
    def __init__(self, manager: Any, row: Row) -> None:
        super().__init__(manager, row, ir.ArrayType(_VECTOR, row.vectors))  # type: ignore[no-untyped-call]


@operation
def load_row(_: Any, table: Any, index: Any) -> Any:
    """Read table[index]."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(_address(context, builder, signature.args, arguments), align=4)

    return row_of(table)(table, index), emit


@operation
def fetch_row(_: Any, table: Any, index: Any) -> Any:
    """Ask for table[index] to be brought into the cache; nothing waits for it."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte = ir.IntType(8).as_pointer()
        start = builder.bitcast(_address(context, builder, signature.args, arguments), byte)
        kind = ir.FunctionType(ir.VoidType(), [byte, _INT, _INT, _INT])
        fetch = _declared(builder, kind, "llvm.prefetch.p0")
        for_reading, keep_close, data = _INT(0), _INT(3), _INT(1)
        for line in range(0, 4 * LANES * row_of(table).vectors, _CACHE_LINE):
            builder.call(fetch, [builder.gep(start, [_INT(line)]), for_reading, keep_close, data])
        return context.get_dummy_value()

    return types.void(table, index), emit


@operation
def store_row(_: Any, table: Any, index: Any, row: Any) -> Any:
    """Write table[index]."""
    if row != row_of(table):
        raise TypingError(f"a table of {row_of(table)} cannot hold a {row}")

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store(arguments[2], _address(context, builder, signature.args, arguments), align=4)
        return context.get_dummy_value()

    return types.void(table, index, row), emit


@operation
def dot(_: Any, left: Any, right: Any) -> Any:
    """Return the sum of the products of all columns."""

    def emit(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        pairs = list(zip(*(_vectors(builder, row) for row in arguments), strict=True))
        total = builder.fmul(*pairs[0])
        for a, b in pairs[1:]:
            total = _multiply_add(builder, a, b, total)
        return _sum(builder, total)

    return types.float32(left, right), emit


@operation
def combine(_: Any, scale: Any, row: Any, other_scale: Any, other: Any) -> Any:
    """Return scale * row + other_scale * other."""

    def emit(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        a, b = _splat(builder, arguments[0]), _splat(builder, arguments[2])

        def one(x: Any, y: Any) -> Any:
            # In SGD other_scale comes late: fused this way round, only one operation waits for it.
            return _multiply_add(builder, b, y, builder.fmul(a, x))

        return by_vector(builder, one, arguments[1], arguments[3])

    return row(types.float32, row, types.float32, row), emit


@operation
def scaled(_: Any, scale: Any, row: Any) -> Any:
    """Return scale * row."""

    def emit(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        scales = _splat(builder, arguments[0])
        return by_vector(builder, lambda x: builder.fmul(scales, x), arguments[1])

    return row(types.float32, row), emit


@operation
def product(_: Any, left: Any, right: Any) -> Any:
    """Return left * right, column by column."""

    def emit(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        return by_vector(builder, builder.fmul, *arguments)

    return left(left, left), emit


@operation
def minus_product(_: Any, row: Any, left: Any, right: Any) -> Any:
    """Return row - left * right, column by column."""

    def emit(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        def one(x: Any, a: Any, b: Any) -> Any:
            return _multiply_add(builder, builder.fneg(a), b, x)

        return by_vector(builder, one, *arguments)

    return row(row, row, row), emit


@operation
def inverse_root(_: Any, row: Any) -> Any:
    """Return 1 / sqrt(row), column by column."""

    def emit(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        ones = ir.Constant(_VECTOR, [1.0] * LANES)
        return by_vector(builder, lambda x: builder.fdiv(ones, llvm_call(builder, "sqrt", x)), *arguments)

    return row(row), emit


@operation
def without_negatives(_: Any, row: Any) -> Any:
    """Return the row with zeros in place of negative numbers; NaN stays."""

    def emit(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        zeros = ir.Constant(_VECTOR, [0.0] * LANES)

        def one(x: Any) -> Any:
            return builder.select(builder.fcmp_ordered("<", x, zeros), zeros, x)

        return by_vector(builder, one, *arguments)

    return row(row), emit


@operation
def column(_: Any, row: Any, place: Any) -> Any:
    """Return one number of the row's last vector; place is a literal, -1 for the last column."""
    lane = _lane(place)

    def emit(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        last = builder.extract_value(arguments[0], row.vectors - 1)
        return builder.extract_element(last, _INT(lane))

    return types.float32(row, place), emit


@operation
def with_column(_: Any, row: Any, place: Any, number: Any) -> Any:
    """Return the row with one number of its last vector replaced; place as in `column`."""
    lane = _lane(place)

    def emit(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        last = builder.extract_value(arguments[0], row.vectors - 1)
        changed = builder.insert_element(last, arguments[2], _INT(lane))
        return builder.insert_value(arguments[0], changed, row.vectors - 1)

    return row(row, place, types.float32), emit


@operation
def add_outer(_: Any, tile: Any, table: Any, index: Any, down: Any, across: Any) -> Any:
    """Return tile + x y', where x and y are the vectors number `down` and `across` of table[index].

    A tile is a row of eight vectors, taken as a square.
    """

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        row = _address(context, builder, signature.args[1:], arguments[1:])
        vectors = builder.bitcast(row, _VECTOR.as_pointer())
        x = builder.bitcast(builder.gep(vectors, [arguments[3]]), _FLOAT.as_pointer())
        y = builder.load(builder.gep(vectors, [arguments[4]]), align=4)
        # Eight loads that broadcast one float each are cheaper than shuffles of one loaded vector.
        ones = [_splat(builder, builder.load(builder.gep(x, [_INT(lane)]))) for lane in range(LANES)]
        lines = _vectors(builder, arguments[0])
        sums = [_multiply_add(builder, one, y, line) for one, line in zip(ones, lines, strict=True)]
        return _row(builder, sums)

    return tile(tile, table, index, types.intp, types.intp), emit


def row_of(table: Any) -> Row:
    """Return the type of a table's rows; for use by operations."""
    if not (isinstance(table, types.Array) and table.layout == "C" and isinstance(table.dtype, types.Record)):
        raise TypingError("not a table that new_table made")
    vectors: Any = table.dtype.typeof("vectors")
    return Row(vectors.shape[0])


def _lane(place: Any) -> int:
    if not isinstance(place, types.IntegerLiteral) or not -LANES <= place.literal_value < 0:
        raise TypingError("a column is named by a literal from -8 to -1")
    return LANES + int(place.literal_value)


def _address(context: Any, builder: Any, kinds: Any, arguments: Any) -> Any:
    """Return the address of row arguments[1] of the table arguments[0]."""
    array = context.make_array(kinds[0])(context, builder, arguments[0])
    rows = builder.bitcast(array.data, context.get_value_type(row_of(kinds[0])).as_pointer())
    return builder.gep(rows, [context.cast(builder, arguments[1], kinds[1], types.intp)])


def _vectors(builder: Any, row: Any) -> list[Any]:
    return [builder.extract_value(row, k) for k in range(row.type.count)]


def _row(builder: Any, vectors: list[Any]) -> Any:
    row = ir.Constant(ir.ArrayType(_VECTOR, len(vectors)), ir.Undefined)
    for k, vector in enumerate(vectors):
        row = builder.insert_value(row, vector, k)
    return row


def by_vector(builder: Any, change: Callable[..., Any], *rows: Any) -> Any:
    """Apply a change of vectors to rows, vector by vector; for use by operations."""
    together = zip(*(_vectors(builder, row) for row in rows), strict=True)
    return _row(builder, [change(*vectors) for vectors in together])


def _splat(builder: Any, number: Any) -> Any:
    first = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), number, _INT(0))
    return _picked(builder, first, [0] * LANES)


def _picked(builder: Any, vector: Any, lanes: list[int]) -> Any:
    return builder.shuffle_vector(vector, vector, ir.Constant(ir.VectorType(_INT, len(lanes)), lanes))


def _sum(builder: Any, vector: Any) -> Any:
    """Add the halves, then the halves of that: three additions for eight lanes."""
    count = vector.type.count
    if count == 1:
        return builder.extract_element(vector, _INT(0))
    low, high = list(range(count // 2)), list(range(count // 2, count))
    return _sum(builder, builder.fadd(_picked(builder, vector, low), _picked(builder, vector, high)))


def _multiply_add(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """Return a * b + c, rounded once where the processor can."""
    return llvm_call(builder, "fmuladd", a, b, c)


def llvm_call(builder: Any, name: str, *vectors: Any) -> Any:
    """Call one of LLVM's functions on vectors; for use by operations."""
    kind = ir.FunctionType(_VECTOR, [_VECTOR] * len(vectors))
    return builder.call(_declared(builder, kind, f"llvm.{name}.v{LANES}f32"), vectors)


def _declared(builder: Any, kind: Any, name: str) -> Any:
    declare: Any = cgutils.get_or_insert_function
    return declare(builder.module, kind, name)
