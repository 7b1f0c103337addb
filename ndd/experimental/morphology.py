"""The largest or smallest number of a window about each pixel: the common part of `dilate` and `erode`, and in part of
`median_blur`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ndd._compiled.intrinsics import empty
from ndd._compiled.jit import kernel
from ndd._cpu.element_copies import copy_bytes
from ndd._cpu.opencv import single_threaded
from ndd._cpu.sampling import BORDERS, border_index
from ndd._operator import Operand, Plan, bad_sample, operator
from ndd._operator.limits import MOST

LAYOUTS = ("HW", "HWC", "FHWC", "CHW", "FCHW")
TYPES = ("u8", "u16", "f32")
STRIP = 4  # vertically adjacent pixels that a GPU thread computes
# Larger windows than this are cheaper on the GPU in two launches, along the rows and along the columns.
_LARGEST_AT_ONCE = 64
_CHANNELS_OF_OPENCV = 512
_LARGEST_IN_TURNS = 128  # the largest extent of a window whose border is worth copying beside each row
STRIP_BYTES = 1 << 14  # of rows that a thread works on together, which stay in its caches


def morphology(largest: bool) -> Callable[[Callable[..., Any]], Any]:
    """Declares `dilate` (each pixel becomes the largest of its window) or `erode` (the smallest)."""

    def declare(declared: Callable[..., Any]) -> Any:
        op = operator(declared, layouts=LAYOUTS, types=TYPES, frames=True)
        op.plan(functools.partial(_plan, largest))

        @op.cuda("morphology.cu")
        def _(launch, image, out, view, window, border, repeats):
            _launch(launch, image, out, _passes(view, window, border, repeats), largest)

        return op

    return declare


def check(border_mode: str, iterations: int) -> None:
    """RuntimeError for invalid arguments."""
    if border_mode not in BORDERS:
        raise RuntimeError(f"`border_mode`: unknown border mode {border_mode!r}. Use one of {', '.join(BORDERS)}")
    if iterations < 1:
        raise RuntimeError(f"`iterations`: expected at least 1, got {iterations}")


def planes_of(input: Operand) -> np.ndarray:
    """`[planes, height, width, channels]` of each image, int64 [N, 4]: planes of CHW, channels of HWC."""
    shapes = input.shapes
    view = np.ones((input.n, 4), np.int64)
    first = 1 if input.layout == "CHW" else 0
    view[:, 1:3] = shapes[:, first : first + 2]
    if shapes.shape[1] == 3:
        view[:, 3 - 3 * first] = shapes[:, 2 - 2 * first]
    return view


def _plan(largest: bool, input, *, anchor, border_mode, iterations, mask_size) -> Plan:
    """`window` is [height, width, rows above, columns to the left] of each pass."""
    size = mask_size.rows(2, repeat=True, meaning="(width, height)")[:, ::-1]
    place = anchor.rows(2, repeat=True, meaning="(x, y)")[:, ::-1]
    size = np.where(size == -1, 3, size)
    if (size < 1).any():
        sample = int((size < 1).any(axis=1).argmax())
        raise bad_sample(sample, f"`mask_size`: expected positive numbers, got {size[sample, ::-1].tolist()}")
    place = np.where(place < 0, size // 2, place)
    if (place > MOST["mask_size"]).any():  # sums of larger ones would wrap
        sample = int((place > MOST["mask_size"]).any(axis=1).argmax())
        text = f"`anchor`: expected numbers up to {MOST['mask_size']:,}, got {place[sample, ::-1].tolist()}"
        raise bad_sample(sample, text)
    border = BORDERS[border_mode]
    repeats = iterations
    if _merges(size, place, border):
        size, place, repeats = iterations * (size - 1) + 1, iterations * place, 1
    if (size > MOST["mask_size"]).any():
        sample = int((size > MOST["mask_size"]).any(axis=1).argmax())
        text = f"`mask_size` after {iterations} iterations: expected a window of up to {MOST['mask_size']:,} pixels"
        raise bad_sample(sample, f"{text}, got {size[sample, ::-1].tolist()}")
    window, planes = np.concatenate([size, place], axis=1), planes_of(input)
    kernels = _kernels(input.dtype.numpy, window, repeats, largest)
    shared = {"border": border, "repeats": repeats}
    return Plan(input.shapes, {"view": planes, "window": window}, shared, kernel=kernels, view=planes)


def _merges(size: np.ndarray, place: np.ndarray, border: int) -> bool:
    """Whether iterations equal one pass with a larger window. With a mirrored border this needs a symmetric window."""
    return border not in (2, 3) or bool((size == 2 * place + 1).all())


def _kernels(kind: np.dtype, window: np.ndarray, repeats: int, largest: bool) -> dict[Any, np.ndarray]:
    """The function for images: ours for small windows of integers, else OpenCV's."""
    small: Any = (window[:, :2] <= _LARGEST_IN_TURNS).all(axis=1) & (kind.kind != "f") & (repeats == 1)
    outside = kind.type(0 if largest or kind.kind == "f" else np.iinfo(kind).max)
    ours = functools.partial(_reduce_planes, outside=outside, largest=largest)
    return {ours: small, functools.partial(_reduce_image, largest=largest): ~small}


@kernel
def _reduce_planes(image, out, window, border, outside, largest):
    """Works on several rows at a time, each with its border, one after the other, so that the loops see one long line."""
    planes, height, width, channels = image.shape
    if out.size == 0:
        return
    rows, columns, above, left = window
    length = (width + columns - 1) * channels
    together = min(max(STRIP_BYTES // (width * channels * image.itemsize), rows), height)
    lines = empty((3, (together + rows) * length), image.dtype)
    for p in range(planes):
        for top in range(0, height, together):
            count = min(together, height - top)
            size = (count + rows - 1) * length
            copy_with_border(image[p], top - above, left, columns, border, outside, lines[0, :size])
            _extremes(
                lines[0, :size], lines[1], channels, columns, lines[2, : size - (columns - 1) * channels], largest
            )
            _extremes(lines[2, :size], lines[1], length, rows, lines[0, : count * length], largest)
            copy_rows(lines[0], length, out[p, top : top + count])


@kernel
def copy_with_border(plane, first, left, columns, border, outside, lines):
    """Rows first, first + 1, ... of a plane `[height, width, channels]`, as many as fit into `lines`: pixels from -left on,
    `columns - 1` more of them than the row has."""
    height, width, channels = plane.shape
    count = width + columns - 1
    begin, end = min(left, count), min(left + width, count)  # the pixels without a border
    length, size = count * channels, np.uint64((end - begin) * channels * plane.itemsize)
    for k in range(lines.size // length):
        y, row = border_index(first + k, height, border), lines[k * length : (k + 1) * length]
        if y < 0:
            for i in range(length):
                row[i] = outside
            continue
        for i in range(count - (end - begin)):
            i = i if i < begin else i + end - begin
            x = border_index(i - left, width, border)
            for c in range(channels):
                row[i * channels + c] = plane[y, x, c] if x >= 0 else outside
        copy_bytes(row[begin * channels :].ctypes.data, plane[y].ctypes.data, size)


@kernel
def copy_rows(lines, length, out):
    """Copies the beginnings of lines of this length to rows of `out`."""
    for k in range(out.shape[0]):
        size = np.uint64(out.shape[1] * out.shape[2] * out.itemsize)
        copy_bytes(out[k].ctypes.data, lines[k * length :].ctypes.data, size)


@_reduce_planes.fallback
def _(image, out, window, border, outside, largest):
    _reduce_image(image, out, window, border, 1, largest)


@kernel
def _extremes(values, spare, step, count, out, largest):
    """`out[i]` = the extreme of values[i], values[i + step], ..., `count` of them: it computes extremes of 2, 4, 8, ...
    numbers, and finally of two such groups that together cover `count`. Overwrites `values` and `spare`."""
    reach, size = 1, values.size
    while 2 * reach < count:
        size -= reach * step
        _extreme_of_two(values[:size], values[reach * step : reach * step + size], spare[:size], largest)
        values, spare = spare, values
        reach *= 2
    rest = (count - reach) * step
    _extreme_of_two(values[: out.size], values[rest : rest + out.size], out, largest)


@kernel
def _extreme_of_two(a, b, out, largest):
    if largest:
        for i in range(out.size):
            out[i] = max(a[i], b[i])
    else:
        for i in range(out.size):
            out[i] = min(a[i], b[i])


def _reduce_image(
    image: np.ndarray, out: np.ndarray, window: np.ndarray, border: int, repeats: int, largest: bool
) -> None:
    """Processes one image on the CPU: each pixel becomes the largest (or smallest) of its window."""
    if not out.size:
        return
    shape = image.shape
    for plane, target in zip(image, out, strict=True):
        for c in range(0, shape[3], _CHANNELS_OF_OPENCV):
            source = np.ascontiguousarray(plane[..., c : c + _CHANNELS_OF_OPENCV])
            for _ in range(repeats):
                source = _reduced(source, window.tolist(), border, largest)
            target[..., c : c + _CHANNELS_OF_OPENCV] = source.reshape(*shape[1:3], -1)


_OPENCV_BORDERS = {0: "BORDER_CONSTANT", 1: "BORDER_REPLICATE", 2: "BORDER_REFLECT", 3: "BORDER_REFLECT_101"}


def _reduced(plane: np.ndarray, window: list[int], border: int, largest: bool) -> np.ndarray:
    cv2 = single_threaded()
    height, width, above, left = window
    h, w = plane.shape[:2]
    mask = np.ones((height, width), np.uint8)
    function = cv2.dilate if largest else cv2.erode
    inside = above < height and left < width
    if inside and border in _OPENCV_BORDERS and (border < 2 or (height <= h and width <= w)):
        return function(plane, mask, anchor=(left, above), borderType=getattr(cv2, _OPENCV_BORDERS[border]))
    rows, columns = border_indices(h, above, height, border), border_indices(w, left, width, border)
    wide = np.ascontiguousarray(plane[rows][:, columns])
    if border == 0:
        limits = np.finfo if plane.dtype.kind == "f" else np.iinfo
        outside = limits(plane.dtype).min if largest else limits(plane.dtype).max
        wide[rows < 0] = outside
        wide[:, columns < 0] = outside
    return np.ascontiguousarray(function(wide, mask, anchor=(0, 0))[:h, :w])


def border_indices(n: int, before: int, size: int, border: int) -> np.ndarray:
    """The pixels that replace pixels -before .. n - 1 - before + size - 1 of a line of `n`; -1: none."""
    at = np.arange(-before, n - before + size - 1)
    if border == 0:
        return np.where((at < 0) | (at >= n), -1, at)
    if border == 1:
        return at.clip(0, n - 1)
    if border == 4:
        return at % n
    period = 2 * n if border == 2 else max(2 * n - 2, 1)
    at %= period
    return np.minimum(at, (2 * n - 1 if border == 2 else 2 * n - 2) - at)


def _launch(launch: Any, image: Operand, out: Operand, passes: list[np.ndarray], largest: bool) -> None:
    """Makes a launch for each window, with at most two buffers in between."""
    height, width, channels = launch.plan.per_sample["view"].T[1:]
    work = launch.plan.per_sample["view"][:, 0] * -(-height // STRIP) * width * channels
    scratch = [launch.scratch(image.sizes, image.dtype) for _ in range(min(len(passes) - 1, 2))]
    places = [image, *[scratch[k % 2] for k in range(len(passes) - 1)], out]
    for windows, source, target in zip(passes, places, places[1:], strict=False):
        fields = {"window": windows, "source": source, "target": target}
        launch("morphology", work, per_sample=fields, macros={"LARGEST": largest, "STRIP": STRIP}, file="morphology.cu")


def _passes(view: np.ndarray, window: np.ndarray, border: int, repeats: int) -> list[np.ndarray]:
    """The windows of each launch."""
    if border < 2:  # pixels further out are outside, or repeat the edge
        window = _clipped(window, view)
    if window[:, :2].prod(axis=1).max(initial=0) <= _LARGEST_AT_ONCE:
        return [window] * repeats
    along_rows, along_columns = window.copy(), window.copy()
    along_rows[:, [0, 2]] = (1, 0)
    along_columns[:, [1, 3]] = (1, 0)
    return [along_rows, along_columns] * repeats


def _clipped(window: np.ndarray, view: np.ndarray) -> np.ndarray:
    """Windows limited to the whole image from each of its pixels."""
    extents = view[:, 1:3]
    first = np.clip(-window[:, 2:], -extents, extents)
    last = np.clip(window[:, :2] - 1 - window[:, 2:], -extents, extents)
    return np.concatenate([last - first + 1, -first], axis=1)
