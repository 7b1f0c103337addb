"""`ndd.gaussian_blur`: smoothing with a bell-shaped window."""

from __future__ import annotations

import numpy as np

from ndd._operator import PerSample, bad_sample
from ndd._tensor import DType
from ndd.ops.filter.separable import by_axis, filtered_like, separable_filter, separable_plan
from ndd.ops.filter.spatial_axes import spatial_axes

_LONGEST = 1 << 16  # taps; a longer window is a mistake


@separable_filter("u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f16", "f32", "f64")
def gaussian_blur(
    input,
    /,
    *,
    dtype: DType | None = None,
    sigma: PerSample[list[float]] = (0.0,),
    window_size: PerSample[list[int]] = (0,),
):
    """Blurs images, volumes and video with a Gaussian window.

    Along each spatial axis an element becomes the sum of `w[k] * x[i + k]` for k from -r to r, with weights
    `w[k] = exp(-k^2 / (2 sigma^2))` scaled to sum 1. At the borders the array is reflected without its outermost
    elements (`dcb|abcd|cba`).

    Args:
        input: any numeric type but bool and bfloat16. Spatial axes are those that are not C or F: 1 to 3 of them, such
            as HW, HWC, CHW, DHWC, CDHW, with an F (video) before. Without a layout all axes are spatial.
        sigma: standard deviation in elements; one number, or one for each spatial axis in the order of the layout.
        window_size: number of weights, `2 r + 1`, odd; likewise. At least one of the two is needed for each axis:
            with `sigma` alone the window is `2 ceil(3 sigma) + 1`, with `window_size` alone
            `sigma = (r - 1) * 0.3 + 0.8`.
        dtype: float32, or the type of the input (the default).

    Video may have values for each frame (arguments with the layout "F" or "FX"), if its layout begins with F. Sums are
    float32, the last axis first; integers are rounded, halves away from zero, and saturated.

    OpenCV's `GaussianBlur` has the same borders and the same sigma for a window, but rounds weights to 1/256 for bytes
    and takes another window for a sigma; `scipy.ndimage.gaussian_filter(mode="mirror", truncate=3)` agrees, except for the
    rounding of the radius; torchvision's has the same borders, but no default window. DALI 2.4.0 rounds to float16 between the
    axes if the input is float16, refuses one spatial axis with channels, and crashes for arrays without elements.

    Errors: RuntimeError for an even or negative window, a negative sigma, both 0, other types and layouts.

    >>> import ndd
    >>> line = ndd.tensor([0.0, 0.0, 100.0, 0.0, 0.0])
    >>> ndd.gaussian_blur(line, window_size=3).torch()
    tensor([ 0.0000, 23.8994, 52.2011, 23.8994,  0.0000])
    >>> ndd.gaussian_blur(ndd.demo.photo("cat"), sigma=4).shape
    (266, 400, 3)
    """
    return filtered_like(input, dtype)


@gaussian_blur.plan
def _(input, *, dtype, sigma, window_size):
    axes = spatial_axes(input.layout, input.ndim)[1]
    sigmas, windows = np.broadcast_arrays(by_axis(sigma, axes), by_axis(window_size, axes))
    _check(sigmas, windows)
    # In float32, as in DALI: 3 * 0.33333334 is 1.
    sizes = 2 * np.ceil(np.float32(3) * sigmas).astype(np.int64) + 1
    windows = np.where(windows > 0, windows, sizes)
    reach = windows // 2
    most = int(windows.max(initial=1))
    wide = np.where(sigmas > 0, sigmas, ((reach - 1) * 0.3 + 0.8).astype(np.float32)).astype(np.float64)
    steps = np.arange(most) - most // 2
    taps = np.exp(-(steps**2) / (2 * wide[..., None] ** 2))
    taps[np.abs(steps) > reach[..., None]] = 0
    taps /= taps.sum(axis=-1, keepdims=True)
    return separable_plan(input, taps[:, None].astype(np.float32), reach[:, None], np.ones((1, 1), np.float32))


def _check(sigmas: np.ndarray, windows: np.ndarray) -> None:
    """RuntimeError about the first sample and axis with invalid arguments."""
    good = (sigmas >= 0) & (windows >= 0) & ((sigmas > 0) | (windows > 0)) & ((windows == 0) | (windows % 2 == 1))
    small = (sigmas < _LONGEST / 6) & (windows < _LONGEST)
    if good.all() and small.all():
        return
    sample, axis = np.argwhere(~(good & small))[0].tolist()
    sigma, window = float(sigmas[sample, axis]), int(windows[sample, axis])
    if not sigma >= 0:
        raise bad_sample(sample, f"`sigma` must have non-negative values, got {sigma:g} for axis {axis}")
    if window < 0:
        raise bad_sample(sample, f"`window_size` must have non-negative values, got {window} for axis {axis}")
    if not good[sample, axis]:
        if window:
            raise bad_sample(sample, f"`window_size` must be odd, got {window} for axis {axis}")
        raise bad_sample(sample, f"`sigma` and `window_size` shouldn't be 0 at the same time, as for axis {axis}")
    text = f"the window is too large: `sigma` {sigma:g}, `window_size` {window}; at most {_LONGEST} elements"
    raise bad_sample(sample, text, ValueError)
