"""The largest or smallest number of a window about each pixel: what `dilate` and `erode` share; some of it with
`median_blur`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ndd._cpu.opencv import single_threaded
from ndd._cpu.sampling import BORDERS
from ndd._operator import Plan, bad_sample
from ndd._operator.plan import Operand
from ndd._tensor import DType

LAYOUTS = ("HW", "HWC", "FHWC", "CHW", "FCHW")
_TYPES = ("u8", "u16", "f32")
# Larger windows than this are cheaper on the GPU in two launches, along the rows and along the columns.
_LARGEST_AT_ONCE = 64
_CHANNELS_OF_OPENCV = 512


def check_type(name: str, dtype: DType) -> None:
    """RuntimeError for types that the operators of windows do not take."""
    if dtype.name not in _TYPES:
        raise RuntimeError(f"{name}: Unsupported input type {dtype}: expected uint8, uint16 or float32")


def check(name: str, dtype: DType, border_mode: str) -> None:
    """RuntimeError for what neither operator takes."""
    check_type(name, dtype)
    if border_mode not in BORDERS:
        raise RuntimeError(f"{name}: Unknown border mode: {border_mode}. Use one of {', '.join(BORDERS)}")


def pairs(name: str, value: Any, n: int) -> np.ndarray:
    """Two whole numbers for each sample, int64 [N, 2]; a single one counts for both axes."""
    if isinstance(value, list):
        for i, row in enumerate(value):
            if len(row) not in (1, 2):
                raise bad_sample(i, f"`{name}`: expected 2 numbers, got {len(row)}")
        value = np.stack([np.broadcast_to(row, 2) for row in value])
    found = np.asarray(value, np.int64)
    if found.shape[-1:] not in ((1,), (2,)):
        raise RuntimeError(f"`{name}`: expected 2 numbers, got {found.shape[-1] if found.ndim else 1}")
    return np.broadcast_to(found, (n, 2))


def planes_of(input: Operand) -> np.ndarray:
    """`[planes, height, width, channels]` of each image, int64 [N, 4]: planes of CHW, channels of HWC."""
    shapes = input.shapes
    view = np.ones((input.n, 4), np.int64)
    first = 1 if input.layout == "CHW" else 0
    view[:, 1:3] = shapes[:, first : first + 2]
    if shapes.shape[1] == 3:
        view[:, 3 - 3 * first] = shapes[:, 2 - 2 * first]
    return view


def morphology_plan(input: Operand, mask_size: Any, anchor: Any, iterations: int, border_mode: str) -> Plan:
    """The plan of both operators; `window` is [height, width, rows above, columns to the left] of each pass."""
    if iterations < 1:
        raise RuntimeError(f"`iterations`: expected at least 1, got {iterations}")
    size, place = pairs("mask_size", mask_size, input.n)[:, ::-1], pairs("anchor", anchor, input.n)[:, ::-1]
    size = np.where(size == -1, 3, size)
    if (size < 1).any():
        sample = int((size < 1).any(axis=1).argmax())
        raise bad_sample(sample, f"`mask_size`: expected positive numbers, got {size[sample, ::-1].tolist()}")
    place = np.where(place < 0, size // 2, place)
    border = BORDERS[border_mode]
    repeats = iterations
    if _merges(size, place, border):
        size, place, repeats = iterations * (size - 1) + 1, iterations * place, 1
    window = np.concatenate([size, place], axis=1)
    return Plan(input.shapes, {"view": planes_of(input), "window": window}, {"border": border, "repeats": repeats})


def _merges(size: np.ndarray, place: np.ndarray, border: int) -> bool:
    """Whether iterations are one pass with a larger window. Where the border mirrors, this needs a window that is
    its own mirror image."""
    return border not in (2, 3) or bool((size == 2 * place + 1).all())


def reduce_image(
    image: np.ndarray, out: np.ndarray, view: np.ndarray, window: np.ndarray, border: int, repeats: int, largest: bool
) -> None:
    """One image on the CPU: each pixel becomes the largest (or smallest) of its window."""
    if not out.size:
        return
    shape = tuple(view.tolist())
    for plane, target in zip(image.reshape(shape), out.reshape(shape), strict=True):
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
    """The pixels that stand for pixels -before .. n - 1 - before + size - 1 of a line of `n`; -1: none."""
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


class _Pass(NamedTuple):
    windows: np.ndarray
    work: np.ndarray


def launch_morphology(launch: Any, image: Operand, largest: bool) -> None:
    """The same on the GPU: one launch, unless windows are large or several iterations do not merge."""
    passes = launch.remember("passes", lambda: _passes(launch.plan))
    macros = {"LARGEST": "1"} if largest else {"SMALLEST": "1"}
    if len(passes) == 1:
        windows, work = passes[0]
        launch("morphology", work, per_sample={"window": windows}, macros=macros, file="morphology.cu", kept="all")
        return
    sizes = image.shapes.prod(axis=1)
    before, itemsize = np.cumsum(sizes) - sizes, image.dtype.numpy.itemsize
    scratch = [launch.empty(int(sizes.sum()), image.dtype) for _ in range(min(len(passes) - 1, 2))]
    source = image.pointers()
    for number, one in enumerate(passes):
        last = number == len(passes) - 1
        room = scratch[number % len(scratch)].data_ptr() + before * itemsize
        target = launch.outputs[0].pointers() if last else room
        launch(
            "morphology",
            one.work,
            per_sample={"window": one.windows},
            macros={**macros, "SCRATCH": "1"},
            addresses={"source": source, "target": target},
            file="morphology.cu",
            kept=("pass", number),
        )
        source = target


def _passes(plan: Plan) -> list[_Pass]:
    view, window = plan.per_sample["view"], plan.per_sample["window"]
    window = window.copy()
    if plan.shared["border"] < 2:  # what lies further out is outside, or the same pixels again
        _clip(window, view)
    work = view[:, 0] * -(-view[:, 1] // 4) * view[:, 2] * view[:, 3]
    if window[:, :2].prod(axis=1).max(initial=0) <= _LARGEST_AT_ONCE:
        return [_Pass(window, work)] * plan.shared["repeats"]
    along_rows, along_columns = window.copy(), window.copy()
    along_rows[:, [0, 2]] = (1, 0)
    along_columns[:, [1, 3]] = (1, 0)
    return [_Pass(along_rows, work), _Pass(along_columns, work)] * plan.shared["repeats"]


def _clip(window: np.ndarray, view: np.ndarray) -> None:
    """Windows that reach no further than the whole image from each of its pixels."""
    for axis in (0, 1):
        n = view[:, 1 + axis]
        first = np.clip(-window[:, 2 + axis], -n, n)
        last = np.clip(window[:, axis] - 1 - window[:, 2 + axis], -n, n)
        window[:, axis], window[:, 2 + axis] = last - first + 1, -first
