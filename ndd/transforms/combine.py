"""`ndd.transforms.combine`: one map for several."""

from __future__ import annotations

import functools

from ndd._operator import operator
from ndd.transforms.matrices import composed, matrix_spec, stacked, values_plan


@operator(cpu_only=True)
def combine(input_0, input_1, /, *inputs, reverse_order: bool = False):
    """Makes the matrix that does what several affine maps do one after the other.

    Args:
        input_0, input_1, inputs: float32 matrices d x (d + 1), two or more, or one for each frame ("F**").
        reverse_order: the last one first.

    The result is a float32 matrix with layout "**" ("F**" if an input has frames): for `combine(A, B)` the one of
    `x -> B(A(x))`.

    Raises RuntimeError for inputs of unequal shapes or of other types.

    >>> import ndd
    >>> shift = ndd.transforms.translation(offset=(1, 0))
    >>> ndd.transforms.combine(shift, ndd.transforms.scale(scale=(2, 2))).torch()
    tensor([[2., 0., 2.],
            [0., 2., 0.]])
    """
    framed = [i for i in (input_0, input_1, *inputs) if (i.layout or "")[:1] == "F"]
    specs = [matrix_spec("combine", i) for i in (input_0, input_1, *inputs)]
    return matrix_spec("combine", framed[0]) if framed else specs[0]


@combine.plan
def _(*inputs, reverse_order):
    maps = [stacked(i) for i in inputs]
    for k, m in enumerate(maps):
        if m.shape[-2:] != maps[0].shape[-2:]:
            raise RuntimeError(
                f"All input transforms are expected to have the same shape. Got: {maps[0].shape[-2:]} and "
                f"{m.shape[-2:]} for input {k}"
            )
    ordered = maps if reverse_order else maps[::-1]
    return values_plan(functools.reduce(composed, ordered))


@combine.cpu
def _(arrays, out, values):
    out[...] = values
