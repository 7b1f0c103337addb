"""`ndd.preemphasis_filter`: high frequencies of signals raised."""

from __future__ import annotations

import numpy as np

from ndd._cpu.array_at import array_at
from ndd._cpu.jit import kernel
from ndd._operator import PerSample, Plan, like, operator
from ndd._operator.on_cpu import allocated
from ndd._operator.runs import aligned_places, each_run, flat_of
from ndd._tensor import DType
from ndd._tensor.convert import convert_array
from ndd._tensor.dtype import dtype as to_dtype, float32
from ndd._tensor.store import address

_FIRST = np.zeros(1, np.int64)
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
    """Takes from every sample a part of the one before it: `y[i] = x[i] - preemph_coeff * x[i - 1]`.

    Any rank: a sample of the batch counts as one sequence in the order of its memory, so give each channel by itself.
    Takes integers, float32 and float64, computes in float32, and keeps shape and layout.

    Args:
        border: what stands before the first sample: "clamp", `x[0]`; "zero", 0; "reflect", `x[1]` (0 if there is
            none).
        dtype: the element type of the result. To an integer type values round half away from zero and saturate.
        preemph_coeff: how much is taken. 0 copies the signal.

    As `librosa.effects.preemphasis`, which extrapolates the value before the first sample. An empty signal comes out empty;
    DALI 2.4.0 dies of it.

    Errors: RuntimeError for bool and float16 and for an unknown `border`.

    >>> import ndd
    >>> ndd.preemphasis_filter(ndd.tensor([4, 4, 8]), preemph_coeff=0.5, border="zero").torch()
    tensor([4., 2., 6.])
    """
    if border not in BORDERS:
        raise RuntimeError(f"`border`: expected one of {', '.join(map(repr, BORDERS))}, got {border!r}")
    return like(signal, dtype=dtype)


@preemphasis_filter.plan
def _(signal, *, border, dtype, preemph_coeff):
    return Plan(signal.shapes, {"coefficient": preemph_coeff.each()}, {"border": BORDERS.index(border)})


@preemphasis_filter.cpu
def _(signal, out, coefficient, border):
    if not signal.size:
        return
    if not coefficient:
        convert_array(signal, to_dtype(signal.dtype).name, to_dtype(out.dtype).name, out)
        return
    x = np.require(signal.reshape(-1), np.float32, "CA")
    exact = out.dtype == np.float32
    y = out.reshape(-1) if exact else np.empty(x.size, np.float32)
    _emphasized_each(np.array([address(x)]), y, _FIRST, np.array([x.size]), np.array([coefficient], np.float32), border)
    if not exact:
        convert_array(y, "f32", to_dtype(out.dtype).name, out.reshape(-1))


@preemphasis_filter.batch
def _(call, signal, *, border, dtype, preemph_coeff):
    """float32; other types are for the plan."""
    floats = signal.dtype is float32 and call.outs[0].dtype is float32
    places, sizes = aligned_places(signal) if floats else None, signal.sizes
    if places is None:
        return None
    starts = signal.volumes.offsets
    store, coefficients, before = allocated(signal.shapes, call.outs[0]), preemph_coeff.each(), BORDERS.index(border)
    out = flat_of(store)

    def work(run):
        _emphasized_each(places[run], out, starts[run], sizes[run], coefficients[run], before)

    each_run(call, signal, 2 * out.nbytes, work)
    return store


@kernel
def _emphasized_each(places, out, starts, sizes, coefficients, border):
    """Samples at addresses, to `starts` in `out`."""
    for n in range(len(starts)):
        own, target = array_at(places[n], sizes[n], out), out[starts[n] : starts[n] + sizes[n]]
        if coefficients[n] == 0:
            target[:] = own
        elif sizes[n]:
            _emphasized(own, coefficients[n], border, target)


@kernel
def _emphasized(x, coefficient, border, out):
    before = np.float32(0)
    if border == 1:
        before = x[0]
    elif border == 2 and x.size > 1:
        before = x[1]
    out[0] = x[0] - coefficient * before
    for i in range(1, x.size):
        out[i] = x[i] - coefficient * x[i - 1]


preemphasis_filter.cuda("preemphasis_filter.cu")
