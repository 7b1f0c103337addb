"""`array_at`, for kernels: memory at an address as an array. Thus one call takes samples that lie apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd._cpu.jit import Compiled


class _ArrayAt(Compiled):
    def inner(self) -> Any:
        return _intrinsic()

    def in_python(self) -> Any:
        return _looked_at

    def __call__(self, address: int, count: int, like: np.ndarray) -> np.ndarray:
        return _looked_at(address, count, like)


array_at = _ArrayAt()
"""`array_at(address, count, like)`: the `count` elements there, 1-D, of the element type of the array `like`. Somebody else
keeps the memory."""


class _Place:
    __slots__ = ("__array_interface__",)


def _looked_at(address: int, count: int, like: np.ndarray) -> np.ndarray:
    if not count:
        return np.empty(0, like.dtype)
    place = _Place()
    data = (int(address), False)
    place.__array_interface__ = {"data": data, "shape": (int(count),), "typestr": like.dtype.str, "version": 3}
    return np.asarray(place)


def _intrinsic() -> Any:
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic
    from numba.np import arrayobj

    @intrinsic
    def looked_at(typing_context, address, count, like):
        kind = types.Array(like.dtype, 1, "C")

        def generate(context, builder, signature, arguments):
            address, count, _ = arguments
            array, itemsize = context.make_array(kind)(context, builder), arrayobj.get_itemsize(context, kind)
            arrayobj.populate_array(
                array,
                data=builder.inttoptr(address, context.get_data_type(kind.dtype).as_pointer()),
                shape=cgutils.pack_array(builder, [count]),
                strides=[context.get_constant(types.intp, itemsize)],
                itemsize=itemsize,
                meminfo=None,
            )
            return array._getvalue()

        return kind(types.int64, types.int64, like), generate

    return looked_at
