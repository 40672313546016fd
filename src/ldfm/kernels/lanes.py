"""Four arc matrices at once: the numbers of four rows side by side, so that every operation is one on vectors.

A matrix of lanes has LANES numbers an entry: entry (k, j) of the four matrices is ``matrix[k, 4 * j : 4 * j + 4]``. The hot
loop of the package is here: add multiples of a few rows to many other rows of a matrix of lanes.

``add_rows_R(target, base, source, first, multiples, top, rows, width)`` does, lane by lane, with (low, high) = rows,
for k in low..high-1,

    target[base + k, :width] += sum over q < R of multiples[top + q, k] * source[first + q, :width]

with `width` counted in entries. Written in Numba's own loops it carries an aliasing check a row, which costs more than the
arithmetic at the sizes met here (n = 8 to 80): it is written in LLVM vectors instead, the R source rows kept in registers.
Offsets stand in for slices of arrays because a slice in compiled code touches a reference count.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import config, njit
from numba.core import cgutils, types
from numba.extending import intrinsic

from ldfm.types import Floats

LANES = 4
CACHE_LINE = 64
_ENTRIES_AT_ONCE = 3  # with R = 4 sources this fills the 16 vector registers of AVX2
_ENTRY = ir.VectorType(ir.DoubleType(), LANES)
_INT = ir.IntType(64)

RowUpdate = Callable[[Any, int, Any, int, Any, int, tuple[int, int], int], None]
ColumnCopy = Callable[[Any, int, int, int, Any], None]


def zeros_of_lanes(rows: int, columns: int) -> Floats:
    """Make a zero matrix of lanes that starts on a cache line: a vector that straddles two lines costs double."""
    width = columns * LANES
    memory = np.zeros(rows * width + CACHE_LINE // 8)
    start = -memory.ctypes.data % CACHE_LINE // 8
    return memory[start : start + rows * width].reshape(rows, width)


def _python_row_update(count: int) -> RowUpdate:
    """Give the update in NumPy, for runs with the compiler switched off."""

    def add_rows(
        target: Any, base: int, source: Any, first: int, multiples: Any, top: int, rows: tuple[int, int], width: int
    ) -> None:
        low, high = rows
        for q in range(count):
            added = source[first + q, : LANES * width].reshape(width, LANES).copy()
            factors = multiples[top + q, LANES * low : LANES * high].reshape(high - low, 1, LANES)
            target[base + low : base + high, : LANES * width] += (factors * added).reshape(high - low, LANES * width)

    return add_rows


class _Vectors:
    """What the code generators below share: entries of matrices of lanes as LLVM vectors."""

    def __init__(self, context: Any, builder: Any, signature: Any, args: Any) -> None:
        self.context, self.builder, self.signature, self.args = context, builder, signature, args
        # fmuladd fuses where the processor can and never calls a library function where it cannot
        self.fmuladd = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(_ENTRY, [_ENTRY] * 3), f"llvm.fmuladd.v{LANES}f64"
        )

    def matrix(self, place: int) -> Any:
        """Give the array that is the argument at this place."""
        return self.context.make_array(self.signature.args[place])(self.context, self.builder, self.args[place])

    def address(self, matrix: Any, row: Any, column: Any) -> Any:
        """Point to an entry."""
        build = self.builder
        length = cgutils.unpack_tuple(build, matrix.shape)[1]
        offset = build.add(build.mul(row, length), build.mul(column, _constant(LANES)))
        return build.bitcast(build.gep(matrix.data, [offset]), _ENTRY.as_pointer())

    def load(self, pointer: Any) -> Any:
        """Load an entry; arrays of callers are aligned as doubles, not as vectors."""
        value = self.builder.load(pointer)
        value.align = 8
        return value

    def store(self, value: Any, pointer: Any) -> None:
        """Store an entry."""
        self.builder.store(value, pointer).align = 8

    def loop(self, start: Any, stop: Any, step: Any) -> Any:
        """Open a loop; the `with` gives its index first."""
        return cgutils.for_range_slice(self.builder, start, stop, step, intp=_INT)


def _constant(number: int) -> Any:
    return ir.Constant(_INT, number)


def _vector_row_update(count: int) -> RowUpdate:
    """Build the intrinsic for `count` source rows."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vectors = _Vectors(context, builder, signature, args)
        target, source, multiples = vectors.matrix(0), vectors.matrix(2), vectors.matrix(4)
        base, first, top, width = args[1], args[3], args[5], args[7]
        low, high = cgutils.unpack_tuple(builder, args[6])

        def update_columns(columns: list[Any]) -> None:
            source_rows = [builder.add(first, _constant(q)) for q in range(count)]
            sources = [[vectors.load(vectors.address(source, row, c)) for c in columns] for row in source_rows]
            with vectors.loop(low, high, _constant(1)) as (k, _):
                pointers = [vectors.address(target, builder.add(base, k), c) for c in columns]
                sums = [vectors.load(p) for p in pointers]
                for q in range(count):
                    factor = vectors.load(vectors.address(multiples, builder.add(top, _constant(q)), k))
                    sums = [
                        builder.call(vectors.fmuladd, [factor, s, t]) for s, t in zip(sources[q], sums, strict=True)
                    ]
                for pointer, total in zip(pointers, sums, strict=True):
                    vectors.store(total, pointer)

        stride = _constant(_ENTRIES_AT_ONCE)
        whole = builder.mul(builder.udiv(width, stride), stride)
        with vectors.loop(_constant(0), whole, stride) as (column, _):
            update_columns([builder.add(column, _constant(v)) for v in range(_ENTRIES_AT_ONCE)])
        with vectors.loop(whole, width, _constant(1)) as (column, _):
            update_columns([column])
        return context.get_dummy_value()

    def add_rows(
        typing_context: Any,
        target: Any,
        base: Any,
        source: Any,
        first: Any,
        multiples: Any,
        top: Any,
        rows: Any,
        width: Any,
    ) -> tuple[Any, Any]:
        integer = types.intp
        pair = types.UniTuple(integer, 2)  # type: ignore[attr-defined]
        return types.void(target, integer, source, integer, multiples, integer, pair, integer), codegen

    return intrinsic(add_rows)  # type: ignore[no-any-return]


def _python_normalise_row(matrix: Any, row: int, count: int, sum_row: int) -> None:
    """Give `normalise_row` in NumPy, for runs with the compiler switched off."""
    entries = matrix[row, : LANES * count].reshape(count, LANES)
    matrix[sum_row, :LANES] = entries.sum(axis=0)
    with np.errstate(all="ignore"):
        entries /= matrix[sum_row, :LANES]


def _vector_normalise_row() -> Callable[[Any, int, int, int], None]:
    """Build the intrinsic: divide the first `count` entries of a row by their sum, which goes to entry 0 of `sum_row`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vectors = _Vectors(context, builder, signature, args)
        matrix = vectors.matrix(0)
        row, count, sum_row = args[1], args[2], args[3]
        # two chains of sums, for an addition waits for the one before
        totals = [cgutils.alloca_once_value(builder, ir.Constant(_ENTRY, [0.0] * LANES)) for _ in range(2)]
        for total in totals:
            builder.store(ir.Constant(_ENTRY, [0.0] * LANES), total)
        even = builder.and_(count, _constant(~1))
        with vectors.loop(_constant(0), even, _constant(2)) as (k, _):
            for place, total in enumerate(totals):
                entry = vectors.load(vectors.address(matrix, row, builder.add(k, _constant(place))))
                builder.store(builder.fadd(builder.load(total), entry), total)
        with vectors.loop(even, count, _constant(1)) as (k, _):
            entry = vectors.load(vectors.address(matrix, row, k))
            builder.store(builder.fadd(builder.load(totals[0]), entry), totals[0])
        total = builder.fadd(builder.load(totals[0]), builder.load(totals[1]))
        vectors.store(total, vectors.address(matrix, sum_row, _constant(0)))
        inverse = builder.fdiv(ir.Constant(_ENTRY, [1.0] * LANES), total)
        with vectors.loop(_constant(0), count, _constant(1)) as (k, _):
            pointer = vectors.address(matrix, row, k)
            vectors.store(builder.fmul(vectors.load(pointer), inverse), pointer)
        return context.get_dummy_value()

    def normalise_row(typing_context: Any, matrix: Any, row: Any, count: Any, sum_row: Any) -> tuple[Any, Any]:
        return types.void(matrix, types.intp, types.intp, types.intp), codegen

    return intrinsic(normalise_row)  # type: ignore[no-any-return]


normalise_row = _python_normalise_row if config.DISABLE_JIT else _vector_normalise_row()
_build = _python_row_update if config.DISABLE_JIT else _vector_row_update
add_rows_1: RowUpdate = _build(1)
add_rows_2: RowUpdate = _build(2)
add_rows_3: RowUpdate = _build(3)
add_rows_4: RowUpdate = _build(4)


@njit(nogil=True, cache=True, error_model="numpy")
def add_rows(target, base, source, first, count, multiples, rows, width):
    """Add multiples of `count` rows, 1 to 4, with the multiples in rows 0..count-1."""
    if count == 4:
        add_rows_4(target, base, source, first, multiples, 0, rows, width)
    elif count == 3:
        add_rows_3(target, base, source, first, multiples, 0, rows, width)
    elif count == 2:
        add_rows_2(target, base, source, first, multiples, 0, rows, width)
    else:
        add_rows_1(target, base, source, first, multiples, 0, rows, width)


def _python_copy_columns(count: int) -> ColumnCopy:
    """Give the copy in NumPy, for runs with the compiler switched off."""

    def copy_columns(matrix: Any, base: int, column: int, rows: int, target: Any) -> None:
        for q in range(count):
            start = LANES * (column + q)
            target[q, : LANES * rows] = matrix[base : base + rows, start : start + LANES].ravel()

    return copy_columns


def _vector_copy_columns(count: int) -> ColumnCopy:
    """Build the intrinsic that copies `count` neighbouring columns, entries base..base+rows-1, into rows 0..count-1 of `target`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vectors = _Vectors(context, builder, signature, args)
        matrix, target = vectors.matrix(0), vectors.matrix(4)
        base, column, rows = args[1], args[2], args[3]
        with vectors.loop(_constant(0), rows, _constant(1)) as (k, _):
            row = builder.add(base, k)
            entries = [
                vectors.load(vectors.address(matrix, row, builder.add(column, _constant(q)))) for q in range(count)
            ]
            for q, entry in enumerate(entries):
                vectors.store(entry, vectors.address(target, _constant(q), k))
        return context.get_dummy_value()

    def copy_columns(
        typing_context: Any, matrix: Any, base: Any, column: Any, rows: Any, target: Any
    ) -> tuple[Any, Any]:
        return types.void(matrix, types.intp, types.intp, types.intp, target), codegen

    return intrinsic(copy_columns)  # type: ignore[no-any-return]


_build_copy = _python_copy_columns if config.DISABLE_JIT else _vector_copy_columns
copy_columns_1: ColumnCopy = _build_copy(1)
copy_columns_2: ColumnCopy = _build_copy(2)
copy_columns_3: ColumnCopy = _build_copy(3)
copy_columns_4: ColumnCopy = _build_copy(4)


@njit(nogil=True, cache=True, error_model="numpy")
def copy_columns(matrix, base, column, count, rows, target):
    """Copy `count` columns, 1 to 4, into the first rows of `target`."""
    if count == 4:
        copy_columns_4(matrix, base, column, rows, target)
    elif count == 3:
        copy_columns_3(matrix, base, column, rows, target)
    elif count == 2:
        copy_columns_2(matrix, base, column, rows, target)
    else:
        copy_columns_1(matrix, base, column, rows, target)
