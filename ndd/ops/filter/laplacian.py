"""`ndd.laplacian`: the sum of second derivatives."""

from __future__ import annotations

import functools

import numpy as np

from ndd._operator import PerSample, bad_sample
from ndd._tensor import DType
from ndd.ops.filter.separable import by_axis, filtered_like, separable_filter, separable_plan
from ndd.ops.filter.spatial_axes import spatial_axes

_LARGEST = 31


@separable_filter("u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f16", "f32")
def laplacian(
    input,
    /,
    *,
    dtype: DType | None = None,
    normalized_kernel: bool = False,
    scale: PerSample[list[float]] = None,
    smoothing_size: PerSample[list[int]] = None,
    window_size: PerSample[list[int]] = (3,),
):
    """The Laplacian of images, volumes and video: the sum of second derivatives along the spatial axes.

    For each spatial axis a: the array is filtered along a with a derivative window `[1, -2, 1]` smoothed to
    `window_size` elements (`[1, -2, 1] * [1, 2, 1] * ...`, each convolution with [1, 2, 1] adding 2), along the other axes
    with a smoothing window of binomial weights (`[1, 2, 1]`, `[1, 4, 6, 4, 1]`, ...), and multiplied by `scale`. The
    results are added up. At the borders the array is reflected without its outermost elements (`dcb|abcd|cba`).

    Args:
        input: integers, float16 or float32. Spatial axes are those that are not C or F: 1 to 3 of them, such as HW,
            HWC, CHW, DHWC, CDHW, with an F (video) before. Without a layout all axes are spatial.
        window_size: elements of the derivative window, odd, 3 to 31; one number, or one for each spatial axis.
        smoothing_size: elements of the smoothing window, odd, 1 (none) to 31; one number, or one for each spatial
            axis. Default: in the derivative along axis a the other axes are smoothed with `window_size` of a.
        scale: the factor of the derivatives (default 1); one number, or one for each spatial axis.
        normalized_kernel: multiply the derivative along a by `2^(n + 2 - s)` instead, n being the number of
            spatial axes and s the sum of the sizes of its n windows.
        dtype: float32, or the type of the input (the default).

    Video may have values for each frame (arguments with the layout "F" or "FX"), if its layout begins with F. Sums are
    float32; integers are rounded, halves away from zero, and saturated: negative results are lost in unsigned types.

    DALI differs: it rounds to float16 between the axes if the input is float16 (sums outside that type become infinite or NaN),
    and refuses one spatial axis with channels.

    OpenCV's `Laplacian(ksize=k)` is `window_size=k` for k from 3 on; its ksize=1 is `window_size=3, smoothing_size=1`,
    as is `scipy.ndimage.laplace(mode="mirror")`.

    Errors: RuntimeError for windows of other sizes, `scale` with `normalized_kernel`, other types and layouts.

    >>> import ndd
    >>> image = ndd.tensor([[0.0, 0, 0], [0, 1, 0], [0, 0, 0]], layout="HW")
    >>> ndd.laplacian(image, smoothing_size=1).torch()
    tensor([[ 0.,  2.,  0.],
            [ 2., -4.,  2.],
            [ 0.,  2.,  0.]])
    >>> ndd.laplacian(ndd.demo.photo("clock"), window_size=5, dtype=ndd.float32).shape
    (300, 400, 3)
    """
    if normalized_kernel and scale is not None:
        raise RuntimeError("`scale` cannot be specified when `normalized_kernel` is set to True")
    return filtered_like(input, dtype)


@laplacian.plan
def _(input, *, dtype, normalized_kernel, scale, smoothing_size, window_size):
    axes = spatial_axes(input.layout, input.ndim)[1]
    derived = by_axis(window_size, axes)
    _check("window_size", derived, 3)
    # sizes[sample, term, axis]: the term of an axis is its derivative, smoothed along the others.
    if smoothing_size is None:
        sizes = np.repeat(derived[:, :, None], axes, axis=2)
    else:
        smoothed = by_axis(smoothing_size, axes)
        _check("smoothing_size", smoothed, 1)
        derived, smoothed = np.broadcast_arrays(derived, smoothed)
        sizes = np.repeat(smoothed[:, None], axes, axis=1)
    own = np.arange(axes)
    sizes[:, own, own] = derived
    if normalized_kernel:
        scales = np.exp2(axes + 2 - sizes.sum(axis=2)).astype(np.float32)
    else:
        scales = np.ones((1, axes), np.float32) if scale is None else by_axis(scale, axes)
    most = int(sizes.max(initial=3))
    kind = np.broadcast_to(np.eye(axes, dtype=np.int64), sizes.shape)
    taps = _windows(most)[kind, sizes // 2]
    return separable_plan(input, taps, sizes // 2, scales)


def _check(name: str, sizes: np.ndarray, least: int) -> None:
    wrong = (sizes < least) | (sizes > _LARGEST) | (sizes % 2 == 0)
    if wrong.any():
        sample, axis = np.argwhere(wrong)[0].tolist()
        text = (
            f"`{name}` must be an odd integer between {least} and {_LARGEST}, got {sizes[sample, axis]} for axis {axis}"
        )
        raise bad_sample(sample, text)


@functools.cache
def _windows(most: int) -> np.ndarray:
    """[smoothing or derivative, radius, most]: centred windows."""
    windows = np.zeros((2, most // 2 + 1, most), np.float32)
    for radius in range(most // 2 + 1):
        smoothing = np.ones(1)
        for _ in range(2 * radius):
            smoothing = np.convolve(smoothing, [1, 1])
        inside = slice(most // 2 - radius, most // 2 + radius + 1)
        windows[0, radius, inside] = smoothing
        if radius:
            windows[1, radius, inside] = np.convolve(windows[0, radius - 1, inside][1:-1], [1, -2, 1])
    return windows
