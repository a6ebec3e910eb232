"""What compiled code cannot say in Python: pointers into arrays, bit counting, prefetching, moving memory."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


@intrinsic
def pointer(_context: Any, array: Any) -> Any:
    """Pointer to the first entry of an array.

    Numba counts references to every array at every call, which in small functions takes longer than all else; it counts
    none to pointers. The array itself must stay alive, as an argument of the kernel that was called from Python.
    """

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.make_array(signature.args[0])(context, builder, arguments[0]).data

    return types.CPointer(array.dtype)(array), codegen


@intrinsic
def move_words(_context: Any, m: Any, target: Any, source: Any, n: Any) -> Any:
    """Copies n words of memory m from place `source` to place `target`; the two may overlap."""

    def codegen(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        start, to, at, count = arguments
        cgutils.raw_memmove(builder, builder.gep(start, [to]), builder.gep(start, [at]), count, 8)
        return context.get_dummy_value()

    return types.void(m, types.int64, types.int64, types.int64), codegen


@intrinsic
def copy_bytes(_context: Any, target: Any, to: Any, source: Any, at: Any, n: Any) -> Any:
    """Copies n bytes from place `at` of `source` to place `to` of `target`, another array. Both are arrays of bytes."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        into, place, out_of, begin, count = arguments
        starts = [
            context.make_array(kind)(context, builder, array).data
            for kind, array in ((signature.args[0], into), (signature.args[2], out_of))
        ]
        cgutils.raw_memcpy(builder, builder.gep(starts[0], [place]), builder.gep(starts[1], [begin]), count, 1)
        return context.get_dummy_value()

    return types.void(target, types.int64, source, types.int64, types.int64), codegen


@intrinsic
def lowest_bit(_context: Any, bits: Any) -> Any:
    """Number of the lowest bit that is set, of an integer that is not 0."""

    def codegen(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        # What it is of 0 does not matter.
        return builder.cttz(arguments[0], cgutils.true_bit)

    return types.int64(types.int64), codegen


@intrinsic
def prefetch(_context: Any, m: Any, at: Any) -> Any:
    """Asks for the cache line of word `at` of memory m, without waiting for it."""

    def codegen(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        address = builder.bitcast(builder.gep(arguments[0], [arguments[1]]), cgutils.voidptr_t)
        kind = cgutils.ir.FunctionType(cgutils.ir.VoidType(), [cgutils.voidptr_t] + 3 * [cgutils.int32_t])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        # To be read, soon and more than once, as data.
        builder.call(function, [address, *(cgutils.int32_t(number) for number in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(m, types.int64), codegen
