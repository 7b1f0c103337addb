"""`ndd.preemphasis_filter`: raises the high frequencies of signals."""

from __future__ import annotations

import numpy as np

from ndd._compiled.jit import kernel
from ndd._operator import PerSample, Plan, like, operator
from ndd._tensor import DType
from ndd._tensor.convert import convert_array
from ndd._tensor.dtype import dtype as to_dtype, float32

_TYPES = ("u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f32", "f64")
BORDERS = ("zero", "clamp", "reflect")


@operator(types=_TYPES, dtypes=_TYPES)
def preemphasis_filter(
    signal,
    /,
    *,
    border: str = "clamp",
    dtype: DType = float32,
    preemph_coeff: PerSample[float] = 0.97,
):
    """Subtracts from every sample a part of the previous sample: `y[i] = x[i] - preemph_coeff * x[i - 1]`.

    Any rank: a sample of the batch counts as one sequence in the order of its memory, so pass each channel separately.
    Takes integers, float32 and float64, computes in float32, and keeps shape and layout.

    Args:
        border: the value before the first sample: "clamp", `x[0]`; "zero", 0; "reflect", `x[1]` (0 if there is none).
        dtype: the element type of the result. Values of an integer type are rounded half away from zero, and saturate.
        preemph_coeff: the share that is subtracted. 0 copies the signal.
        signal: integers, float32 or float64 of any rank.

    Similar to `librosa.effects.preemphasis`, which extrapolates the value before the first sample. An empty signal stays empty;
    DALI 2.4.0 crashes for it.

    Errors: RuntimeError for bool and float16 and for an unknown `border`.

    >>> import ndd
    >>> ndd.preemphasis_filter(ndd.tensor([4, 4, 8]), preemph_coeff=0.5, border="zero").torch()
    tensor([4., 2., 6.])
    >>> ndd.preemphasis_filter(ndd.demo.sound()).shape
    (9600,)
    """
    if border not in BORDERS:
        raise RuntimeError(f"`border`: expected one of {', '.join(map(repr, BORDERS))}, got {border!r}")
    return like(signal, dtype=dtype)


@preemphasis_filter.plan
def _(signal, *, border, dtype, preemph_coeff):
    exact = signal.dtype is float32 and (dtype or float32) is float32
    return Plan(
        signal.shapes, {"coefficient": preemph_coeff.each()}, {"border": BORDERS.index(border)},
        kernel=_emphasized if exact else _by_way_of_float32, view="flat",
    )  # fmt: skip


def _by_way_of_float32(signal, out, coefficient, border):
    if not signal.size:
        return
    if not coefficient:
        convert_array(signal, to_dtype(signal.dtype).name, to_dtype(out.dtype).name, out)
        return
    x = signal.astype(np.float32, copy=False)
    exact = out.dtype == np.float32
    y = out if exact else np.empty(x.size, np.float32)
    _emphasized(x, y, np.float32(coefficient), border)
    if not exact:
        convert_array(y, "f32", to_dtype(out.dtype).name, out)


@kernel
def _emphasized(x, out, coefficient, border):
    before = np.float32(0)
    if x.size and border == 1:
        before = x[0]
    elif x.size > 1 and border == 2:
        before = x[1]
    for i in range(min(x.size, 1)):
        out[i] = x[i] - coefficient * before if coefficient else x[i]
    if coefficient:
        for i in range(1, x.size):
            out[i] = x[i] - coefficient * x[i - 1]
    else:
        for i in range(1, x.size):  # numba compiles this in a tenth of the time of an assignment of slices
            out[i] = x[i]


preemphasis_filter.cuda("preemphasis_filter.cu")
