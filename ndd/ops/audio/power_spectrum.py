"""`ndd.power_spectrum`: Fourier transforms along an axis."""

from __future__ import annotations

import numpy as np

from ndd._cuda import fourier
from ndd._operator import Plan, bad_sample, like, operator
from ndd._operator.partition import each_run
from ndd._tensor.small_arrays import equal_rows
from ndd._tensor.store import volumes
from ndd.ops.audio.fourier import power_of, powers, rfft


@operator(types=("f32",))
def power_spectrum(
    input,
    /,
    *,
    axis: int = -1,
    nfft: int | None = None,
    power: int = 2,
):
    """Returns the power (or magnitude) of the frequencies along an axis: `|rfft(x, nfft)| ** power`.

    Takes float32 of rank 1 and up, keeps its layout; the axis becomes `nfft // 2 + 1` long. `spectrogram` does this
    with windows of a signal.

    Args:
        axis: the axis; any negative number is the last one.
        nfft: the length of the transform: longer rows are cut, shorter rows are padded with zeros. Default (also 0 and less):
            the extent of each sample.
        power: 2 for the power, 1 for the magnitude.
        input: float32 of rank 1 and up.

    DALI's runs on the CPU only, and refuses transforms of 1 and 2 numbers.

    Errors: RuntimeError for another element type, an axis that does not exist, one that is empty without `nfft`, and
    another `power`.

    >>> import ndd
    >>> ndd.power_spectrum(ndd.tensor([1.0, 0.0, -1.0, 0.0])).torch()
    tensor([0., 4., 0.])
    >>> ndd.power_spectrum(ndd.demo.sound(), nfft=9600).shape
    (4801,)
    """
    if power not in (1, 2):
        raise RuntimeError(f"`power`: expected 1 (magnitude) or 2 (power), got {power}")
    if axis >= input.ndim or not input.ndim:
        raise RuntimeError(f"`axis`={axis} does not exist: the input has {input.ndim} dimension(s)")
    return like(input)


@power_spectrum.plan
def _(input, *, axis, nfft, power):
    axis = axis if axis >= 0 else input.ndim - 1
    shapes = input.shapes.copy()
    extents = shapes[:, axis].copy()
    lengths = extents
    if nfft is not None and nfft > 0:  # an empty axis is padded with zeros too
        lengths = np.empty_like(extents)
        lengths.fill(nfft)
    elif input.n and not int(np.minimum.reduce(extents)):
        i = int(extents.argmin())
        raise bad_sample(i, f"axis {axis} is empty: the shape is {tuple(input.shapes[i].tolist())}")
    shapes[:, axis] = (lengths >> 1) + 1
    return Plan(shapes, {"length": lengths, "extent": extents}, {"axis": axis, "power": power})


# A batch: one transform serves all rows of one length.
@power_spectrum.batch
def _(call, plan, input, out):
    axis, power, lengths = plan.shared["axis"], plan.shared["power"], plan.per_sample["length"]

    def work(samples: slice, x: np.ndarray, spectra: np.ndarray) -> None:
        length = int(lengths[samples.start])
        if spectra.size and axis + 2 == x.ndim and length == x.shape[-1]:
            powers(x.reshape(-1, length), power, spectra.reshape(-1, spectra.shape[-1]))
        elif spectra.size:
            power_of(rfft(x, length, axis + 1), power, spectra)

    each_run(call, [input, out], work)


@power_spectrum.cuda("power_spectrum.cu")
def _(launch, input, out, length, extent, axis, power):
    outer, inner = volumes(input.shapes[:, :axis]), volumes(input.shapes[:, axis + 1 :])
    lines = outer * inner
    lengths = [int(length[0])] if equal_rows(length) else sorted(set(length.tolist()))
    for n in lengths:  # one transform for all rows of a length
        counts = lines if len(lengths) == 1 else np.where(length == n, lines, 0)
        rows = fourier.memory(launch, counts, n)
        fields = {"inner": inner, "rows": rows}
        numbers, macros = {"n": n, "bins": n // 2 + 1}, {"ROOT": power == 1}
        launch("gather", counts * n, per_sample=fields, shared=numbers, macros=macros)
        fields["rows"] = fourier.rfft(launch, rows)
        launch("power", counts * (n // 2 + 1), per_sample=fields, shared=numbers, macros=macros)
