"""Windows of images and arrays: where one lies, what happens beyond the edges, and taking one out on the CPU.

Positions, sizes and extents are int64 arrays `[N, axes]`, the whole batch at once. `crop`, `slice`,
`crop_mirror_normalize` and the region decoders share these rules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ndd._cpu.windows import first_outside, join_axes, place_windows
from ndd._operator import bad_sample
from ndd._tensor.convert import converter

_CHUNK = 8  # elements that a thread of window.cu makes
POLICIES = ("error", "pad", "constant", "trim_to_shape")


def rounded(values: Any) -> Any:
    """To the nearest integer, halves away from zero, as int64."""
    values = np.asarray(values, np.float64)
    return np.trunc(values + np.copysign(0.5, values)).astype(np.int64)


def crop_window(
    extents: np.ndarray,
    letters: str,
    *,
    crop: Any = None,
    crop_d: Any = None,
    crop_h: Any = None,
    crop_w: Any = None,
    crop_pos_x: Any = 0.5,
    crop_pos_y: Any = 0.5,
    crop_pos_z: Any = 0.5,
    rounding: str = "round",
) -> tuple[np.ndarray, np.ndarray]:
    """Anchors and sizes of the windows of `crop`, for the axes named by `letters` ("HW" or "DHW").

    The anchor is `position * (extent - size)` in 32-bit floats, rounded half away from zero or truncated. Sizes lose
    their fraction; one below 1 means the whole extent.
    """
    if rounding not in ("round", "truncate"):
        raise RuntimeError(f'`rounding`: expected "round" or "truncate", got {rounding!r}')
    sizes = _crop_sizes(crop, crop_d, crop_h, crop_w)
    positions = {"D": crop_pos_z, "H": crop_pos_y, "W": crop_pos_x}
    extents = np.ascontiguousarray(extents)
    anchors, shapes = np.empty_like(extents), np.empty_like(extents)
    places = columns([positions[x] for x in letters])
    wrong = place_windows(
        extents, columns([sizes.get(x) for x in letters]), places, rounding == "truncate", anchors, shapes
    )
    if wrong >= 0:
        sample, axis = divmod(wrong, len(letters))
        text = _position_text(letters[axis], places[sample if len(places) > 1 else 0, axis])
        raise bad_sample(sample, text) if isinstance(positions[letters[axis]], np.ndarray) else RuntimeError(text)
    return anchors, shapes


def columns(values: list[Any]) -> np.ndarray:
    """Numbers, or one for each sample, side by side as float64 `[N or 1, columns]`; None is 0."""
    n = max([len(v) for v in values if isinstance(v, np.ndarray)], default=1)
    found = np.empty((n, len(values)))
    for k, value in enumerate(values):
        found[:, k] = 0 if value is None else value
    return found


def _crop_sizes(crop: Any, crop_d: Any, crop_h: Any, crop_w: Any) -> dict[str, Any]:
    """The wanted size by letter; a number or `[N]`."""
    if (crop_h is None) != (crop_w is None) or (crop_d is not None and crop_h is None and crop is None):
        raise RuntimeError("`crop_w` and `crop_h` must be given together, and `crop_d` only with them")
    if crop is None:
        return {"D": crop_d, "H": crop_h, "W": crop_w}
    if crop_h is not None or crop_d is not None:
        raise RuntimeError("`crop` and `crop_d`, `crop_h`, `crop_w` exclude each other: give one or the other")
    if isinstance(crop, list):
        raise RuntimeError("`crop` must have the same number of elements for every sample")
    columns = crop.shape[-1]
    if columns not in (2, 3):
        raise RuntimeError(f"`crop`: expected 2 elements (H, W) or 3 (D, H, W), got {columns}")
    rows = crop.T if crop.ndim > 1 else crop.tolist()
    return dict(zip("DHW" if columns == 3 else "HW", rows, strict=True))


def _position_text(letter: str, position: float) -> str:
    name = {"D": "crop_pos_z", "H": "crop_pos_y", "W": "crop_pos_x"}[letter]
    return f"`{name}`: expected a number from 0 to 1 (0 = start, 1 = end), got {position:g}"


def bounded(
    anchors: np.ndarray, shapes: np.ndarray, extents: np.ndarray, policy: str
) -> tuple[np.ndarray, np.ndarray, bool]:
    """The windows under an out-of-bounds policy, and whether any still reaches outside."""
    policy = policy.lower()
    if policy not in POLICIES:
        raise RuntimeError(f"`out_of_bounds_policy`: expected one of {', '.join(map(repr, POLICIES))}, got {policy!r}")
    sample = first_outside(*map(np.ascontiguousarray, (anchors, shapes, extents)))
    if sample < 0:
        return anchors, shapes, False
    if policy == "trim_to_shape":
        start = np.clip(anchors, 0, extents)
        return start, np.clip(anchors + shapes, 0, extents) - start, False
    if policy == "error":
        raise bad_sample(
            sample,
            f"the window at {_row(anchors, sample)} of shape {_row(shapes, sample)} reaches outside the input of shape "
            f'{_row(extents, sample)}. `out_of_bounds_policy="pad"` fills what lies outside, "trim_to_shape" cuts it',
        )
    return anchors, shapes, True


def _row(values: np.ndarray, sample: int) -> str:
    return str(tuple(values[sample].tolist()))


def wrapped(values: Any, numpy: np.dtype) -> np.ndarray:
    """Fill values as elements, by C's conversion: the fraction is dropped and integers wrap around (300 -> 44)."""
    values = np.asarray(values, np.float64)
    if numpy.kind == "b":
        return values != 0
    if numpy.kind == "f":
        with np.errstate(over="ignore"):
            return values.astype(numpy)
    # 32 bits are what narrow types pass through; out of their range the hardware gives the lowest number.
    low = -(2.0**31) if numpy.itemsize < 4 or numpy == np.int32 else -(2.0**63)
    whole = np.trunc(values)
    whole = np.where((whole >= low) & (whole < -low), whole, low)
    return whole.astype(np.int64).astype(numpy)


def fill_for(values: np.ndarray, channel_axis: int | None, shapes: np.ndarray, numpy: np.dtype) -> np.ndarray:
    """Fill values of an output whose axis `channel_axis` is C: one number, or an array that broadcasts along C."""
    fill = wrapped(values, numpy)
    if fill.size == 1:
        return fill.reshape(())
    if channel_axis is None:
        raise RuntimeError(f"`fill_values` has {fill.size} elements, but the layout has no channel axis C")
    wrong = shapes[:, channel_axis] != fill.size
    if wrong.any():
        sample = int(wrong.argmax())
        raise bad_sample(
            sample,
            f"`fill_values` has {fill.size} elements, the output has {shapes[sample, channel_axis]} channels",
        )
    return fill.reshape(fill.shape + (1,) * (shapes.shape[1] - channel_axis - 1))


def conversion(source: str, target: str) -> Callable[..., None]:
    """How window operators convert elements (short type names): fractions are dropped, everything saturates."""
    if target == "f16" and source[0] in "ui":
        return _integer_to_half
    return converter(source, target, "truncate")


def _integer_to_half(array: np.ndarray, out: np.ndarray) -> None:
    """Integers beyond float16 become its largest number, halves between two numbers go away from zero."""
    values = np.clip(array, -65504 if array.dtype.kind == "i" and array.itemsize > 1 else None, None)
    values = np.minimum(values, min(65504, np.iinfo(array.dtype).max)).astype(np.float32)
    values += np.copysign(np.float32(0.25), values) * (np.abs(values) > 2048)  # tips a tie, moves nothing else
    out[...] = values


def cut(image: np.ndarray, out: np.ndarray, start: list[int], fill: Any, convert: Callable[..., None]) -> None:
    """`out` = the window of `image` that begins at `start`; what lies outside gets `fill`."""
    source, target, inside = [], [], True
    for low, size, extent in zip(start, out.shape, image.shape, strict=True):
        first, last = max(low, 0), min(low + size, extent)
        if first >= last:
            out[...] = fill
            return
        inside = inside and last - first == size
        source.append(slice(first, last))
        target.append(slice(first - low, last - low))
    if not inside:
        out = _with_border(out, target, fill)
    convert(image[tuple(source)], out)


def _with_border(out: np.ndarray, inner: list[slice], fill: Any) -> np.ndarray:
    """Fills what lies around the `inner` part of an array; that part."""
    by_pixel = np.ndim(fill) == 1 and out.ndim > 1 and inner[-1] == slice(0, out.shape[-1])
    if np.ndim(fill) and not by_pixel:
        out[...] = fill
        return out[tuple(inner)]
    if by_pixel:
        fill = np.repeat(fill[None], out.shape[-2], axis=0)  # a line of pixels: NumPy copies lines fast, pixels slowly
    for axis, part in enumerate(inner):
        before = (slice(None),) * axis
        for border in (out[(*before, slice(0, part.start))], out[(*before, slice(part.stop, None))]):
            if border.size:
                border[...] = fill[: border.shape[-2]] if by_pixel else fill
        out = out[(*before, part)]
    return out


def gpu_window(
    extents: np.ndarray, starts: np.ndarray, shapes: np.ndarray, fill: np.ndarray, keep: int | None, slots: int = 5
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """What the kernel of `window.cu` needs: per-sample and shared fields.

    An axis that is never cut joins the one before it, but axis `keep` (the channels, where the fill differs) stays
    alone. The axes that are left lie in the last of the `slots`. `fill` is `[1 or N, 1 or channels]`.
    """
    n = len(extents)
    joined, chunks = np.empty((3, n, slots), np.int64), np.empty(n, np.int64)
    keep = -1 if keep is None else keep
    groups, place = join_axes(*map(np.ascontiguousarray, (extents, starts, shapes)), keep, joined, _CHUNK, chunks)
    if groups > slots:
        raise RuntimeError(f"a GPU takes at most {slots} axes that are cut, got {groups}")
    fields: dict[str, np.ndarray] = {"fill": np.broadcast_to(fill, (n, fill.shape[1]))}
    fields.update(extent=joined[0], start=joined[1], size=joined[2], chunks=chunks)
    return fields, {"channel_slot": place}
