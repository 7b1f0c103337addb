"""`ndd.experimental.median_blur`: removes isolated noise and keeps edges."""

from __future__ import annotations

import numpy as np

from ndd._compiled.intrinsics import empty
from ndd._compiled.jit import kernel
from ndd._compiled.simd_medians import BLOCK_BYTES, median_of_columns, sort_columns
from ndd._cpu.element_copies import copy_bytes
from ndd._cpu.opencv import single_threaded
from ndd._operator import PerSample, Plan, bad_sample, like, operator
from ndd.experimental.morphology import LAYOUTS, STRIP, TYPES, planes_of

_LARGEST = 4095  # extent of a window, for which OpenCV's tables and 4095 x 4095 numbers still fit into memory


@operator(layouts=LAYOUTS, types=TYPES, frames=True)
def median_blur(input, /, *, window_size: PerSample[list[int]] = (3, 3)):
    """Replaces each pixel with the median of a rectangle about it: specks disappear, and edges stay sharp.

    Args:
        input: layout HW, HWC or CHW, with a leading F for video; uint8, uint16 or float32. Channels are independent.
        window_size: (width, height) of the rectangle, or one number for both; odd. Video may have one for each frame.

    `out[y, x] = median of in[y + j, x + i]` for |j| <= height // 2 and |i| <= width // 2; beyond the border the edge is
    repeated. Shape, layout and type stay. OpenCV's `medianBlur` gives the same, for square windows. Runs on the CPU and the
    GPU; DALI's runs on the GPU only.

    Differences from DALI: any number of channels and empty images are accepted.

    Raises ValueError for other layouts, RuntimeError for other types, for windows of even extents and for extents above 4095.

    >>> import ndd
    >>> image = ndd.tensor([[1, 2, 90, 3, 4, 5]], dtype=ndd.uint8, layout="HW")
    >>> ndd.experimental.median_blur(image, window_size=[3, 1]).torch()
    tensor([[1, 2, 3, 4, 4, 5]], dtype=torch.uint8)
    >>> ndd.experimental.median_blur(ndd.demo.photo("cat"), window_size=[9, 9]).shape
    (266, 400, 3)
    """
    return like(input)


@median_blur.plan
def _(input, *, window_size):
    window = window_size.rows(2, repeat=True, meaning="(width, height)")[:, ::-1]
    wrong = ((window < 1) | (window % 2 == 0)).any(axis=1)
    if wrong.any():
        sample = int(wrong.argmax())
        raise bad_sample(sample, f"`window_size`: expected odd numbers, got {window[sample, ::-1].tolist()}")
    if (window > _LARGEST).any():
        sample = int((window > _LARGEST).any(axis=1).argmax())
        raise bad_sample(
            sample, f"`window_size`: expected numbers up to {_LARGEST}, got {window[sample, ::-1].tolist()}"
        )
    small = (window == 3).all(axis=1) & (input.dtype.numpy.kind != "f")
    planes = planes_of(input)
    per_sample = {"view": planes, "window": np.ascontiguousarray(window)}
    return Plan(input.shapes, per_sample, kernel={_median_of_nine: small, _blur_image: ~small}, view=planes)


@kernel
def _median_of_nine(image, out):
    """Sorts the columns of three of a row, then computes the windows of the row before, because memory that has just been
    written is slow to read. Beyond the border the edge is repeated."""
    planes, height, width, channels = image.shape
    if out.size == 0:
        return
    flat, target = image.reshape(image.size), out.reshape(out.size)
    size, length = BLOCK_BYTES // image.itemsize, width * channels
    few, last = length < size, max(length - size, 0)
    rows, medians = empty(3 * size if few else 0, image.dtype), empty(size if few else 0, image.dtype)
    # Columns are aligned to a register: half of the others would cross cache lines.
    margin = -(-channels // size) * size
    stride = -(-length // size) * size + 2 * margin
    columns = empty(6 * stride, image.dtype)
    for y in range(planes * height + 1):
        begin = (y & 1) * 3 * stride + margin
        if y < planes * height:
            own = y * length
            first, second, third, source = own, own, own, flat
            if y % height:
                first -= length
            if (y + 1) % height:
                third += length
            if few:
                for k, place in enumerate((first, second, third)):
                    _copy(flat, place, rows, k * size, length)
                source, first, second, third = rows, 0, size, 2 * size
            for k in range(0, length, size):
                k = min(k, last)  # pixels that two blocks share are computed twice
                sort_columns(
                    source, np.uint64(first + k), np.uint64(second + k), np.uint64(third + k), columns,
                    np.uint64(begin + k), np.uint64(stride),
                )  # fmt: skip
            for k in range(begin, begin + 3 * stride, stride):
                for c in range(k, k + channels):
                    columns[c - channels], columns[c + length] = columns[c], columns[c + length - channels]
        if y:
            begin = (~y & 1) * 3 * stride + margin - channels
            destination, place = (medians, 0) if few else (target, (y - 1) * length)
            for k in range(0, length, size):
                k = min(k, last)
                median_of_columns(
                    columns,
                    np.uint64(begin + k),
                    np.uint64(channels),
                    np.uint64(stride),
                    destination,
                    np.uint64(place + k),
                )
            if few:
                _copy(medians, 0, target, (y - 1) * length, length)


@kernel
def _copy(source, at, out, place, count):
    copy_bytes(out[place:].ctypes.data, source[at:].ctypes.data, np.uint64(count * source.itemsize))


@_median_of_nine.fallback
def _(image, out):
    _blur_image(image, out, np.array([3, 3]))


def _blur_image(image, out, window):
    if not out.size:
        return
    rows, columns = window.tolist()
    channels = image.shape[3]
    by_opencv = rows == columns and (1 < rows <= 5 or (rows > 5 and image.dtype == np.uint8))
    for plane, target in zip(image, out, strict=True):
        if not by_opencv:
            _median(plane, target, rows, columns, np.empty(rows * columns, image.dtype))
        elif channels in (1, 3, 4):
            flat = plane[..., 0] if channels == 1 else plane
            single_threaded().medianBlur(flat, rows, target[..., 0] if channels == 1 else target)
        else:
            for c in range(channels):
                target[..., c] = single_threaded().medianBlur(np.ascontiguousarray(plane[..., c]), rows)


@kernel
def _median(image, out, rows, columns, window):
    """Handles any window of any type: gathers its numbers and selects the middle one."""
    height, width, channels = image.shape
    middle = window.size // 2
    for y in range(height):
        for x in range(width):
            for c in range(channels):
                n = 0
                for j in range(y - rows // 2, y + rows // 2 + 1):
                    line = min(max(j, 0), height - 1)
                    for i in range(x - columns // 2, x + columns // 2 + 1):
                        window[n] = image[line, min(max(i, 0), width - 1), c]
                        n += 1
                _select(window, middle)
                out[y, x, c] = window[middle]


@kernel
def _select(values, middle):
    """Moves the number that belongs at `middle` there, with smaller numbers before it and larger ones after it."""
    low, high = 0, values.size - 1
    while low < high:
        pivot = values[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if middle <= j:
            high = j
        elif middle >= i:
            low = i
        else:
            return


@median_blur.cuda("median_blur.cu")
def _(launch, image, out, view):
    launch("median_blur", view[:, 0] * -(-view[:, 1] // STRIP) * view[:, 2] * view[:, 3], macros={"STRIP": STRIP})
