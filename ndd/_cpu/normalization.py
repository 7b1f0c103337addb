"""(x - centre) * factor + shift, with a centre and a factor for every kept element."""

from __future__ import annotations

import numpy as np

from ndd._cpu.jit import kernel

_LINE = 256


@kernel
def _shifted(line, out, centre, factor, shift):
    for j in range(line.size):
        out[j] = (np.float32(line[j]) - centre[j]) * factor[j] + shift


@kernel
def _in_lines(x, out, outer, rows, inner, centre, factor, shift, centres, factors):
    wide, size = centres.size, rows * inner
    if size <= 64:
        for o in range(outer):
            for r in range(rows):
                for i in range(inner):
                    at = o * size + r * inner + i
                    out[at] = (np.float32(x[at]) - centre[o * inner + i]) * factor[o * inner + i] + shift
        return
    for o in range(outer):
        for j in range(wide):
            centres[j] = centre[o * inner + j % inner]
            factors[j] = factor[o * inner + j % inner]
        source, target = x[o * size : (o + 1) * size], out[o * size : (o + 1) * size]
        for start in range(0, size, wide):
            _shifted(source[start : start + wide], target[start : start + wide], centres, factors, shift)


def shift_and_scale(x: np.ndarray, out: np.ndarray, centre: np.ndarray, factor: np.ndarray, shift: float) -> None:
    """`out`, float32, from `x`; `centre` and `factor` are float32 and broadcast to `x`."""
    centre, factor = (v.reshape((1,) * (x.ndim - v.ndim) + v.shape) for v in (centre, factor))
    stretched = [d for d in range(x.ndim) if centre.shape[d] == factor.shape[d] == 1]
    run = not stretched or stretched == list(range(stretched[0], stretched[-1] + 1))
    if x.size < 1 << 12 or not run or centre.shape != factor.shape:
        np.multiply(np.subtract(x, centre, dtype=np.float32), factor, out=out)
        if shift:
            out += np.float32(shift)
        return
    first, last = (stretched[0], stretched[-1] + 1) if stretched else (x.ndim, x.ndim)
    outer, rows, inner = (int(np.prod(x.shape[a:b])) for a, b in ((0, first), (first, last), (last, x.ndim)))
    wide = inner * max(1, min(rows, _LINE // max(1, inner)))
    _in_lines(
        x.reshape(-1), out.reshape(-1), outer, rows, inner, centre.reshape(-1), factor.reshape(-1), np.float32(shift),
        np.empty(wide, np.float32), np.empty(wide, np.float32),
    )  # fmt: skip
