"""Hot loops over one matrix of doubles or of singles, four or eight numbers in a vector.

Matrices are (rows, width): `rows` a multiple of PANEL = 4, `width` one of COLUMNS = 16; a caller with other sizes fills up.
Numba's own loops spend more on aliasing checks and on the remainders of short rows than on arithmetic: see `lanes`. The loops
run down the columns, so that sums stay in registers and no vector is ever added up across. Arguments that end in `_at` are rows
of the matrix `lines` before them: a slice of an array in compiled code touches a reference count. What goes up to column `stop`
may go some columns further.

``take_factors(matrix, column, factors, low, high)``
    factors[k, q] = -matrix[k, column + q], and matrix[k, column + q] = 0, for q < 4 and k in low..high-1
``add_four_rows(matrix, first, factors, low, high, stop)``
    matrix[k, :stop] += sum over q < 4 of factors[k, q] * matrix[first + q, :stop], for k in low..high-1
``mix_four_rows(matrix, first, factors, stop)``
    matrix[first + p, :stop] = sum over q < 4 of factors[first + p, q] * matrix[first + q, :stop], for p < 4
``sum_rows(matrix, lines, weights_at, sums_at)``
    sums[j] = sum over k of weights[k] * matrix[k, j]
``sum_squares(matrix, lines, weights_at, levels_at, shifts_at, slopes_at, sums_at)``
    sums[j] = sum over k of weights[k] * (matrix[k, j] - shifts[j] - levels[k] * slopes[j])^2
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import config
from numba.core import cgutils, types
from numba.extending import intrinsic

PANEL = 4
COLUMNS = 16
_BYTES = 32  # of a vector
_INT = ir.IntType(64)


def _python_take_factors(matrix: Any, column: int, factors: Any, low: int, high: int) -> None:
    """Give `take_factors` in NumPy, for runs with the compiler switched off; so below."""
    factors[low:high] = -matrix[low:high, column : column + PANEL]
    matrix[low:high, column : column + PANEL] = 0.0


def _python_add_four_rows(matrix: Any, first: int, factors: Any, low: int, high: int, stop: int) -> None:
    matrix[low:high, :stop] += factors[low:high] @ matrix[first : first + PANEL, :stop]


def _python_mix_four_rows(matrix: Any, first: int, factors: Any, stop: int) -> None:
    matrix[first : first + PANEL, :stop] = factors[first : first + PANEL] @ matrix[first : first + PANEL, :stop]


def _python_sum_rows(matrix: Any, lines: Any, weights_at: int, sums_at: int) -> None:
    lines[sums_at] = lines[weights_at, : len(matrix)] @ matrix


def _python_sum_squares(
    matrix: Any, lines: Any, weights_at: int, levels_at: int, shifts_at: int, slopes_at: int, sums_at: int
) -> None:
    rows = len(matrix)
    rest = matrix - lines[shifts_at] - np.outer(lines[levels_at, :rows], lines[slopes_at])
    lines[sums_at] = lines[weights_at, :rows] @ rest**2


class _Vectors:
    """What the code generators below share: matrices, all of the type of argument 0, as LLVM vectors."""

    def __init__(self, context: Any, builder: Any, signature: Any, args: Any) -> None:
        self.builder = builder
        bits = signature.args[0].dtype.bitwidth
        self._align = bits // 8
        self.size = _BYTES // self._align
        self._number = ir.DoubleType() if bits == 64 else ir.FloatType()
        self.kind = ir.VectorType(self._number, self.size)
        self.zero = ir.Constant(self.kind, [0.0] * self.size)
        # fmuladd fuses where the processor can and never calls a library function where it cannot
        self._fmuladd = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(self.kind, [self.kind] * 3), f"llvm.fmuladd.v{self.size}f{bits}"
        )
        self._arrays = {
            place: context.make_array(kind)(context, builder, args[place])
            for place, kind in enumerate(signature.args)
            if isinstance(kind, types.Array)
        }

    def shape(self, place: int) -> Any:
        """Give (rows, width) of the matrix that is the argument at this place."""
        return cgutils.unpack_tuple(self.builder, self._arrays[place].shape)

    def entry(self, place: int, row: Any, column: Any) -> Any:
        """Point to an entry."""
        build = self.builder
        offset = build.add(build.mul(row, self.shape(place)[1]), column)
        return build.gep(self._arrays[place].data, [offset])

    def pointer(self, place: int, row: Any, column: Any) -> Any:
        """Point to the vector that starts at an entry."""
        return self.builder.bitcast(self.entry(place, row, column), self.kind.as_pointer())

    def four(self, place: int, row: Any, column: Any) -> Any:
        """Point to the PANEL numbers that start at an entry."""
        return self.builder.bitcast(self.entry(place, row, column), ir.VectorType(self._number, PANEL).as_pointer())

    def load(self, pointer: Any) -> Any:
        """Load a vector; arrays of callers are aligned as numbers, not as vectors."""
        value = self.builder.load(pointer)
        value.align = self._align
        return value

    def store(self, value: Any, pointer: Any) -> None:
        """Store a vector."""
        self.builder.store(value, pointer).align = self._align

    def vector(self, place: int, row: Any, column: Any) -> Any:
        """Load the vector that starts at an entry."""
        return self.load(self.pointer(place, row, column))

    def spread(self, place: int, row: Any, column: Any) -> Any:
        """Load an entry into all places of a vector."""
        number = self.builder.load(self.entry(place, row, column))
        nothing = ir.Constant(self.kind, ir.Undefined)
        one = self.builder.insert_element(nothing, number, ir.Constant(ir.IntType(32), 0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), self.size), [0] * self.size)
        return self.builder.shuffle_vector(one, nothing, zeros)

    def times_plus(self, a: Any, b: Any, c: Any) -> Any:
        """Give a * b + c."""
        return self.builder.call(self._fmuladd, [a, b, c])

    def column_pairs(self, stop: Any) -> Any:
        """Open a loop over columns, two vectors at a time; the `with` gives its index first."""
        return cgutils.for_range_slice(self.builder, _constant(0), stop, _constant(2 * self.size), intp=_INT)

    def rows(self, low: Any, high: Any, step: int = 1) -> Any:
        """Open a loop over rows; the `with` gives its index first."""
        return cgutils.for_range_slice(self.builder, low, high, _constant(step), intp=_INT)

    def pair(self, column: Any) -> list[Any]:
        """Give the first columns of two neighbouring vectors."""
        return [column, self.builder.add(column, _constant(self.size))]

    def panel(self, first: Any) -> list[Any]:
        """Give the indices of PANEL rows or columns."""
        return [self.builder.add(first, _constant(q)) for q in range(PANEL)]


def _constant(number: int) -> Any:
    return ir.Constant(_INT, number)


def _vector_take_factors() -> Callable[..., None]:
    """Build `take_factors`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vectors = _Vectors(context, builder, signature, args)
        _, column, _, low, high = args
        with vectors.rows(low, high) as (k, _):
            source = vectors.four(0, k, column)
            taken = vectors.load(source)
            vectors.store(builder.fneg(taken), vectors.four(2, k, _constant(0)))
            vectors.store(ir.Constant(taken.type, [0.0] * PANEL), source)
        return context.get_dummy_value()

    def take_factors(typing_context: Any, matrix: Any, column: Any, factors: Any, low: Any, high: Any) -> Any:
        return types.void(matrix, types.intp, factors, types.intp, types.intp), codegen

    return intrinsic(take_factors)  # type: ignore[no-any-return]


def _vector_add_four_rows() -> Callable[..., None]:
    """Build `add_four_rows`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vectors = _Vectors(context, builder, signature, args)
        _, first, _, low, high, stop = args
        with vectors.column_pairs(stop) as (column, _):
            places = vectors.pair(column)
            sources = [[vectors.vector(0, row, c) for c in places] for row in vectors.panel(first)]
            with vectors.rows(low, high) as (k, _):
                pointers = [vectors.pointer(0, k, c) for c in places]
                totals = [vectors.load(p) for p in pointers]
                for q in range(PANEL):
                    factor = vectors.spread(2, k, _constant(q))
                    totals = [vectors.times_plus(factor, s, t) for s, t in zip(sources[q], totals, strict=True)]
                for pointer, total in zip(pointers, totals, strict=True):
                    vectors.store(total, pointer)
        return context.get_dummy_value()

    def add_four_rows(
        typing_context: Any, matrix: Any, first: Any, factors: Any, low: Any, high: Any, stop: Any
    ) -> Any:
        return types.void(matrix, types.intp, factors, *[types.intp] * 3), codegen

    return intrinsic(add_four_rows)  # type: ignore[no-any-return]


def _vector_mix_four_rows() -> Callable[..., None]:
    """Build `mix_four_rows`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vectors = _Vectors(context, builder, signature, args)
        _, first, _, stop = args
        rows = vectors.panel(first)
        with vectors.column_pairs(stop) as (column, _):
            for c in vectors.pair(column):
                sources = [vectors.vector(0, row, c) for row in rows]
                for row in rows:
                    total = builder.fmul(vectors.spread(2, row, _constant(0)), sources[0])
                    for q in range(1, PANEL):
                        total = vectors.times_plus(vectors.spread(2, row, _constant(q)), sources[q], total)
                    vectors.store(total, vectors.pointer(0, row, c))
        return context.get_dummy_value()

    def mix_four_rows(typing_context: Any, matrix: Any, first: Any, factors: Any, stop: Any) -> Any:
        return types.void(matrix, types.intp, factors, types.intp), codegen

    return intrinsic(mix_four_rows)  # type: ignore[no-any-return]


Start = Callable[[_Vectors, list[Any]], list[Any]]
Term = Callable[[_Vectors, Any, Any, Any, Any], Any]


def _sum_down(vectors: _Vectors, sums_at: Any, start: Start, add_term: Term) -> None:
    """Emit loops that add terms up over the rows of argument 0, with a sum for each of PANEL rows: an addition takes its time.

    `start` gives what is loaded once for each of two columns, `add_term` the sum of a term and what it is given last.
    """
    build = vectors.builder
    totals = [[cgutils.alloca_once(build, vectors.kind) for _ in range(2)] for _ in range(PANEL)]
    with vectors.column_pairs(vectors.shape(0)[1]) as (column, _):
        places = vectors.pair(column)
        loaded = start(vectors, places)
        for total in (t for pair in totals for t in pair):
            build.store(vectors.zero, total)
        with vectors.rows(_constant(0), vectors.shape(0)[0], PANEL) as (k, _):
            for row, pair in zip(vectors.panel(k), totals, strict=True):
                for c, once, total in zip(places, loaded, pair, strict=True):
                    build.store(add_term(vectors, row, c, once, build.load(total)), total)
        for side, c in enumerate(places):
            first, second, third, fourth = (build.load(pair[side]) for pair in totals)
            total = build.fadd(build.fadd(first, second), build.fadd(third, fourth))
            vectors.store(total, vectors.pointer(1, sums_at, c))


def _vector_sum_rows() -> Callable[..., None]:
    """Build `sum_rows`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        _, _, weights_at, sums_at = args

        def add_term(vectors: _Vectors, row: Any, column: Any, once: Any, total: Any) -> Any:
            return vectors.times_plus(vectors.spread(1, weights_at, row), vectors.vector(0, row, column), total)

        _sum_down(_Vectors(context, builder, signature, args), sums_at, lambda _, places: places, add_term)
        return context.get_dummy_value()

    def sum_rows(typing_context: Any, matrix: Any, lines: Any, weights_at: Any, sums_at: Any) -> Any:
        return types.void(matrix, lines, types.intp, types.intp), codegen

    return intrinsic(sum_rows)  # type: ignore[no-any-return]


def _vector_sum_squares() -> Callable[..., None]:
    """Build `sum_squares`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        _, _, weights_at, levels_at, shifts_at, slopes_at, sums_at = args

        def start(vectors: _Vectors, places: list[Any]) -> list[Any]:
            return [(vectors.vector(1, shifts_at, c), builder.fneg(vectors.vector(1, slopes_at, c))) for c in places]

        def add_term(vectors: _Vectors, row: Any, column: Any, once: Any, total: Any) -> Any:
            shift, negative_slope = once
            shifted = builder.fsub(vectors.vector(0, row, column), shift)
            rest = vectors.times_plus(vectors.spread(1, levels_at, row), negative_slope, shifted)
            return vectors.times_plus(builder.fmul(vectors.spread(1, weights_at, row), rest), rest, total)

        _sum_down(_Vectors(context, builder, signature, args), sums_at, start, add_term)
        return context.get_dummy_value()

    def sum_squares(
        typing_context: Any,
        matrix: Any,
        lines: Any,
        weights_at: Any,
        levels_at: Any,
        shifts_at: Any,
        slopes_at: Any,
        sums_at: Any,
    ) -> Any:
        return types.void(matrix, lines, *[types.intp] * 5), codegen

    return intrinsic(sum_squares)  # type: ignore[no-any-return]


take_factors = _python_take_factors if config.DISABLE_JIT else _vector_take_factors()
add_four_rows = _python_add_four_rows if config.DISABLE_JIT else _vector_add_four_rows()
mix_four_rows = _python_mix_four_rows if config.DISABLE_JIT else _vector_mix_four_rows()
sum_rows = _python_sum_rows if config.DISABLE_JIT else _vector_sum_rows()
sum_squares = _python_sum_squares if config.DISABLE_JIT else _vector_sum_squares()
