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

    def __call__(self, address: int, extents: Any, like: np.ndarray) -> np.ndarray:
        return _looked_at(address, extents, like)


array_at = _ArrayAt()
"""`array_at(address, extents, like)`: the C-contiguous array of `like`'s element type there; `extents` as of `np.empty`. It
owns nothing: who calls the kernel holds the memory."""


class _Place:
    __slots__ = ("__array_interface__",)


def _looked_at(address: int, extents: Any, like: np.ndarray) -> np.ndarray:
    shape = tuple(map(int, extents)) if isinstance(extents, tuple) else (int(extents),)
    if 0 in shape:
        return np.empty(shape, like.dtype)
    place = _Place()
    data = (int(address), False)
    place.__array_interface__ = {"data": data, "shape": shape, "typestr": like.dtype.str, "version": 3}
    return np.asarray(place)


def _intrinsic() -> Any:
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic
    from numba.np import arrayobj

    @intrinsic
    def looked_at(typing_context, address, extents, like):
        kind = types.Array(like.dtype, 1 if isinstance(extents, types.Integer) else len(extents), "C")
        given = types.unliteral(extents)

        def generate(context, builder, signature, arguments):
            if isinstance(signature.args[1], types.BaseTuple):
                pairs = zip(signature.args[1].types, cgutils.unpack_tuple(builder, arguments[1]), strict=True)
            else:
                pairs = [(signature.args[1], arguments[1])]
            shape = [context.cast(builder, value, of, types.intp) for of, value in pairs]
            strides = [context.get_constant(types.intp, arrayobj.get_itemsize(context, kind))]
            for extent in reversed(shape):
                strides.append(builder.mul(strides[-1], extent))
            array = context.make_array(kind)(context, builder)
            whole = context.get_value_type(types.intp)
            arrayobj.populate_array(
                array,
                data=builder.inttoptr(arguments[0], context.get_data_type(kind.dtype).as_pointer()),
                shape=cgutils.pack_array(builder, shape, ty=whole),
                strides=cgutils.pack_array(builder, strides[-2::-1], ty=whole),
                itemsize=strides[0],
                meminfo=None,
            )
            return array._getvalue()

        return kind(types.int64, given, like), generate

    return looked_at
