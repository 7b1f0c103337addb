"""`ndd.one_hot`: converts class numbers to one-hot vectors."""

from __future__ import annotations

import numpy as np

from ndd._compiled.intrinsics import each
from ndd._compiled.jit import kernel
from ndd._operator import Plan, bad_sample, operator
from ndd._tensor import DType, Spec
from ndd._tensor.dtype import float32

_LAYOUT_EXPECTED = "Input layout mismatch - expected input layout to be of size {}, for `axis_name`, but got ''"

_TYPES = ("u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f32", "f64")


@operator(types=_TYPES, dtypes=_TYPES)
def one_hot(
    input,
    /,
    *,
    axis: int | None = None,
    axis_name: str | None = None,
    dtype: DType | None = None,
    num_classes: int = 0,
    off_value: float = 0.0,
    on_value: float = 1.0,
):
    """Converts every class number `c` to a vector along a new axis: `on_value` at `c`, `off_value` elsewhere.

    `out[..., c] = on_value if in[...] == c else off_value`, with the new axis at the end.

    Any rank and layout; integers, float32 and float64 (whose fraction is dropped). A number outside
    `[0, num_classes)` gives `off_value` everywhere. If every sample has one element and no `axis` is given, the samples
    lose their own axes: labels of shape `(1,)` give `(num_classes,)`.

    Args:
        axis: the place of the new axis; -1 or None: the end.
        axis_name: its letter; then the result has a layout.
        num_classes: its extent.
        dtype: the element type of the result. Default: float32. `on_value` and `off_value` become integers as in C:
            the fraction is dropped, then the upper bits.
        input: class numbers: integers, float32 or float64, of any rank and layout.
        on_value: the value at the class.
        off_value: the value elsewhere.

    `torch.nn.functional.one_hot` differs: it returns int64, determines `num_classes` itself and refuses numbers outside. In
    DALI labels of shape `(1,)` lose their axis with `axis_name` even if they have a layout; here they keep it.

    Errors: RuntimeError for bool and float16 inputs and results, for an axis outside the range, for a negative number
    of classes, and for an `axis_name` that is not one letter or meets samples of several elements without a layout.

    >>> import ndd
    >>> ndd.one_hot(ndd.batch([0, 2]), num_classes=3).torch()
    tensor([[1., 0., 0.],
            [0., 0., 1.]])
    """
    ndim = input.ndim
    if axis is not None and not -1 <= axis <= ndim:
        raise RuntimeError(
            f"one_hot: Provided axis is outside of allowed range, got: {axis}, expected to be in range: [-1, {ndim}]."
        )
    if num_classes < 0:
        raise RuntimeError(f"one_hot: `num_classes` must not be negative, got {num_classes}")
    layout = None
    if axis_name is not None:
        if len(axis_name) != 1:
            raise RuntimeError(f"one_hot: Unsupported axis_name value. Expected a single character, got {axis_name!r}")
        own = input.layout or ""
        if not own and ndim and axis is None:  # the plan sees whether samples have one element
            return Spec(dtype or float32, 1, axis_name, input.device)
        if len(own) != ndim:
            raise RuntimeError(f"one_hot: {_LAYOUT_EXPECTED.format(ndim)}")
        place = ndim if axis in (None, -1) else axis
        layout = own[:place] + axis_name + own[place:]
    known = ndim == 0 or axis is not None or axis_name is not None
    return Spec(dtype or float32, ndim + 1 if known else None, layout, input.device)


@one_hot.plan
def _(input, *, axis, axis_name, dtype, num_classes, off_value, on_value):
    shapes = input.shapes
    if axis is None and shapes.shape[1] and (axis_name is None or not input.layout):
        if (shapes == 1).all():
            shapes = shapes[:, :0]
        elif axis_name is not None:
            raise bad_sample(int((shapes != 1).any(axis=1).argmax()), _LAYOUT_EXPECTED.format(shapes.shape[1]))
    place = shapes.shape[1] if axis in (None, -1) else axis
    result = np.insert(shapes, place, num_classes, axis=1)
    kind = (dtype or float32).numpy  # type: ignore[attr-defined]
    values = [_as_c_does(value, kind) for value in (on_value, off_value)]
    inner = shapes[:, place:].prod(axis=1)
    shared = {"place": place, "on": values[0], "off": values[1], "classes": num_classes}
    return Plan(result, {"inner": inner}, shared, view="flat")


def _as_c_does(value: float, kind: np.dtype) -> np.ndarray:
    """Converts a float to another type as C does on x86: through a 32-bit integer, or a 64-bit one for uint32 and longer types.
    Numbers that do not fit become the smallest integer. The fraction and the upper bits are dropped."""
    if kind.kind == "f":
        return np.array(value, kind)
    limit = 1 << (31 if kind.itemsize < 4 or kind == np.int32 else 63)
    most = 2 * limit if kind == np.uint64 else limit
    whole = int(value) if -limit <= value < most else -limit
    return np.array(whole & ((1 << 8 * kind.itemsize) - 1), f"u{kind.itemsize}").view(kind)


@one_hot.cpu
@kernel
def _mark(numbers, out, inner, on, off, classes):
    for i in each(out.size):
        out[i] = off[()]
    for place in range(numbers.size):
        number = numbers[place]
        if -1 < number < classes:
            out[(place // inner * classes + np.int64(number)) * inner + place % inner] = on[()]


one_hot.cuda("one_hot.cu")
