"""`ndd.random_bbox_crop`: a random window that keeps enough of the boxes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from ndd._compiled.jit import kernel
from ndd._cpu.philox import stream_words
from ndd._operator import PerSample, Values, bad_sample, computed_on_host, operator, output
from ndd._tensor.dtype import float32, int32
from ndd.ops.boxes.box_columns import check_boxes, divided, joined

_F, _U = np.float32, np.uint64
_WORDS = 64  # random words that are made at once
_ENOUGH = 16  # for an attempt: at most 7, and some that are refused
_BOX_LAYOUTS = {2: ("xyXY", "xyWH"), 3: ("xyzXYZ", "xyzWHD")}
_MOST_ATTEMPTS = 1_000_000
_FEW, _MANY = 256, 1000  # up to this many samples and attempts Python's interpreter takes less time than compiling
_FOUND, _BEST, _NONE = 0, 1, 2  # how a sample's search ended: _NONE after `_MOST_ATTEMPTS`, which DALI does not count


@operator(
    types=("f32",),
    random=True,
    reads="cpu",
    outputs=lambda labels, output_bbox_indices: 3 + labels + output_bbox_indices,
)
def random_bbox_crop(
    boxes,
    labels=None,
    /,
    *,
    all_boxes_above_threshold: bool = True,
    allow_no_crop: bool = True,
    aspect_ratio: Sequence[float] | None = None,
    bbox_layout: str | None = None,
    bbox_prune_threshold: float | None = None,
    crop_shape: PerSample[list[int]] = None,
    input_shape: PerSample[list[int]] = None,
    ltrb: bool | None = None,
    num_attempts: int = 1,
    output_bbox_indices: bool = False,
    quiet: bool = False,
    scaling: Sequence[float] | None = None,
    shape_layout: str | None = None,
    threshold_type: str = "iou",
    thresholds: Sequence[float] = (0.0,),
    total_num_attempts: int = -1,
):
    """Draws windows until one overlaps the boxes enough, and returns the window and the boxes in it: the crop of SSD.

    Args:
        boxes: float32 (N, 4), or (N, 6) for volumes, as fractions in 0..1.
        labels: int32 (N,) or (N, k), a row for each box.
        bbox_layout: the columns of boxes: a permutation of "xyXY" (starts and ends; default) or "xyWH" (starts and
            extents), of volumes "xyzXYZ" or "xyzWHD".
        ltrb: old form of `bbox_layout`: True "xyXY", False "xyWH".
        thresholds: each round of attempts draws one of these; a window is good if its overlap is at least that.
        threshold_type: "iou": intersection over union of box and window. "overlap": the share of the box inside it.
        all_boxes_above_threshold: the smallest overlap of all boxes counts; otherwise the greatest. As in DALI the share of a
            box without an area is 0 / 0: it and the boxes before it are ignored, and no window is good if it is the last.
        allow_no_crop: a round may also draw to keep the whole image, as often as any one threshold.
        num_attempts: windows drawn in a round.
        total_num_attempts: after this many (rounded up to whole rounds) the best window so far is taken, with a warning
            unless `quiet`; if none had a permitted aspect ratio, window and boxes are 0. Default: no limit, but a million
            attempts without a good window are an error (DALI never ends).
        scaling: range of the window's extents, as fractions. Default: (1, 1).
        aspect_ratio: range of x / y; of volumes also three ranges, for x / y, x / z, y / z. Relative to the image's own ratio,
            or in pixels with `input_shape`. Default: (1, 1). A single value limits the ratio of the greater side to the
            smaller.
        crop_shape: the window's extents in pixels, in place of `scaling` and `aspect_ratio`; needs `input_shape`. The whole
            image is then never taken. A window may be larger than the image.
        input_shape: the image's extents.
        shape_layout: order of these two, a permutation of "WH" (default) or "WHD".
        bbox_prune_threshold: keep boxes with at least this share of their area, and more than nothing, inside. Default: keep
            those whose centre is inside.
        output_bbox_indices: also return the numbers of the boxes that are kept.
        quiet: no warning where `total_num_attempts` ends the search.
        rng: an `RNG`; without it the thread's default one. A call advances it by seven words.

    Returns the begin and the extents of the window, float32 (x, y[, z]) each, as fractions or with `crop_shape` in pixels, for
    `slice(images, anchor, shape, axis_names="WH")`; the boxes that are kept, cut off at the window and relative to it, in their
    layout; their labels, int32, if there are labels; and with `output_bbox_indices` the numbers of the boxes, int32 (M,). The
    results equal DALI's, which draws the same numbers. torchvision's `RandomIoUCrop` implements the same paper with fixed
    ranges, and keeps boxes whose centre is inside. Results on a GPU are computed on the CPU.

    Raises RuntimeError for other types and shapes, another number of labels than of boxes (DALI reads past the end), boxes
    outside 0..1, invalid ranges, no thresholds or thresholds outside 0..1, no attempts, invalid layouts, and arguments that
    exclude each other.

    >>> import ndd
    >>> boxes = ndd.tensor([[0.25, 0.5, 0.5, 0.75]])
    >>> anchor, shape, boxes = ndd.random_bbox_crop(
    ...     boxes, thresholds=[1.0], threshold_type="overlap", allow_no_crop=False, scaling=[0.5, 0.9], rng=ndd.random.RNG(1))
    >>> anchor.torch(), shape.torch(), boxes.torch()
    (tensor([0.1082, 0.0739]), tensor([0.8436, 0.8436]), tensor([[0.1681, 0.5051, 0.4644, 0.8015]]))
    """
    if labels is not None and (labels.dtype is not int32 or labels.ndim not in (1, 2)):
        raise RuntimeError(f"labels: expected int32 of 1 or 2 axes, got {labels.dtype} of {labels.ndim}")
    if boxes.ndim != 2:
        raise RuntimeError(f"boxes: expected shape (N, 4) or (N, 6), got {boxes.ndim} axes")
    if ltrb is not None and bbox_layout is not None:
        raise RuntimeError("`ltrb` is the old form of `bbox_layout`: give one of them")
    if crop_shape is not None and (input_shape is None or scaling is not None or aspect_ratio is not None):
        raise RuntimeError("`crop_shape` needs `input_shape`, and excludes `scaling` and `aspect_ratio`")
    if threshold_type not in ("iou", "overlap"):
        raise RuntimeError(f'`threshold_type`: expected "iou" or "overlap", got {threshold_type!r}')
    shares = {"thresholds": np.asarray(thresholds), "bbox_prune_threshold": np.array([bbox_prune_threshold or 0])}
    for name, values in shares.items():
        if not values.size or not ((values >= 0) & (values <= 1)).all():
            raise RuntimeError(f"`{name}`: expected numbers in 0..1, got {values.tolist()}")
    for name, count in (("num_attempts", num_attempts), ("total_num_attempts", total_num_attempts)):
        if count <= 0 and not (count == -1 and name == "total_num_attempts"):
            raise RuntimeError(f"`{name}`: expected a number above 0, got {count}")
    _range("scaling", scaling, (2,))
    _range("aspect_ratio", aspect_ratio, (2, 6))
    _check_letters("bbox_layout", bbox_layout, (*_BOX_LAYOUTS[2], *_BOX_LAYOUTS[3]))
    _check_letters("shape_layout", shape_layout, ("WH", "WHD"))
    vector, listed = output(float32, 1), output(float32, 2)
    outputs = [vector, vector, listed]
    if labels is not None:
        outputs.append(output(int32, labels.ndim))
    if output_bbox_indices:
        outputs.append(output(int32, 1))
    return tuple(outputs)


def _check_letters(name: str, layout: str | None, known: tuple[str, ...]) -> None:
    if layout is not None and sorted(layout) not in map(sorted, known):
        listed = ", ".join(map(repr, known))
        raise RuntimeError(f"`{name}`: expected a permutation of one of {listed}, got {layout!r}")


def _range(name: str, values: Any, sizes: tuple[int, ...]) -> np.ndarray:
    """The ranges, float32 (k, 2)."""
    bounds = np.asarray((1, 1) if values is None else values, np.float32).reshape(-1)
    if bounds.size not in sizes:
        raise RuntimeError(f"`{name}`: expected {' or '.join(map(str, sizes))} numbers, got {bounds.size}")
    pairs = bounds.reshape(-1, 2)
    if not ((pairs[:, 0] >= 0) & (pairs[:, 0] <= pairs[:, 1])).all():
        raise RuntimeError(f"`{name}`: expected low and high, 0 or more, got {bounds.tolist()}")
    return pairs


# A batch: the number of boxes that are left follows from their values.
@random_bbox_crop.batch
def _(
    call, boxes, labels, *, all_boxes_above_threshold, allow_no_crop, aspect_ratio, bbox_layout, bbox_prune_threshold,
    crop_shape, input_shape, ltrb, num_attempts, output_bbox_indices, quiet, scaling, shape_layout, threshold_type,
    thresholds, total_num_attempts,
):  # fmt: skip
    check_boxes(boxes, (4, 6), None)
    axes = int(boxes.shapes[0, 1]) // 2
    if (boxes.shapes[:, 1] != 2 * axes).any():
        raise RuntimeError("boxes: expected as many columns in every sample")
    counts = boxes.shapes[:, 0]
    if labels is not None:
        for i in np.flatnonzero(labels.shapes[:, 0] != counts)[:1]:
            raise bad_sample(int(i), f"labels: expected {counts[i]}, one for each box, got {labels.shapes[i, 0]}")
    columns, with_extents = _columns(_BOX_LAYOUTS[axes][1] if ltrb is False else bbox_layout, axes)
    corners = joined(boxes).take(columns, 1)  # in C's order, always: the kernel is compiled for each order
    if with_extents:
        corners[:, axes:] += corners[:, :axes]
    _check_inside(corners, counts)
    extents = _extents(input_shape, shape_layout, axes, call.n)
    crop = _extents(crop_shape, shape_layout, axes, 0)
    options = thresholds if crop.size or not allow_no_crop else np.append(thresholds, _F(-1))
    ratios = _range("aspect_ratio", aspect_ratio, (2, 6))
    pairs = list(combinations(range(axes), 2))
    ratios = np.resize(ratios, (len(pairs), 2)) if len(ratios) == 1 else ratios[: len(pairs)]
    limits = np.concatenate([_range("scaling", scaling, (2,)), ratios])
    prune = _F(-1 if bbox_prune_threshold is None else bbox_prune_threshold)
    windows, kept = np.zeros((call.n, 2, axes), np.float32), np.zeros(len(corners), np.bool_)
    ended = np.zeros(call.n, np.int8)
    room = np.empty(_WORDS, np.uint32), np.empty(1, np.int64), np.empty((2, axes), np.float32), np.empty_like(kept)
    rules = (all_boxes_above_threshold, threshold_type == "iou", prune, num_attempts, total_num_attempts)
    _search(
        corners, np.cumsum(counts), call.draws.streams(call.n), options.astype(np.float32), limits, np.array(pairs), extents,
        crop, rules, windows, kept, ended, room,
    )  # fmt: skip
    _tell(ended, quiet, total_num_attempts)
    left = np.add.reduceat(np.append(kept, False), np.minimum(np.cumsum(counts) - counts, len(kept)), dtype=np.int64)
    left[counts == 0] = 0
    # `take` needs a tenth of the time of indexing with an array or a mask.
    owner, picked = np.repeat(np.arange(call.n), left), np.flatnonzero(kept)
    cut = _cut(
        corners.take(picked, 0),
        *[np.concatenate((p, p), axis=1).take(owner, 0) for p in (windows[:, 0], windows[:, 1])],
    )
    if with_extents:
        cut[:, axes:] -= cut[:, :axes]
    rows = np.empty_like(cut)
    rows[:, columns] = cut
    windows[:, 1] -= windows[:, 0]
    if crop.size:
        windows = np.round(windows * extents[:, None])
    results = [windows[:, 0].copy(), windows[:, 1].copy(), divided(rows, left)]
    if labels is not None:
        results.append(divided(joined(labels).take(picked, 0), left))
    if output_bbox_indices:
        numbers = np.arange(len(kept)) - np.repeat(np.cumsum(counts) - counts, counts)
        results.append(divided(numbers.take(picked).astype(np.int32), left))
    return results


def _columns(layout: str | None, axes: int) -> tuple[list[int], bool]:
    """The columns in the order x, y[, z] of starts, then of ends or extents, and whether they are extents."""
    ends, extents = _BOX_LAYOUTS[axes]
    layout = ends if layout is None else layout
    _check_letters("bbox_layout", layout, (ends, extents))
    with_extents = sorted(layout) == sorted(extents)
    return [layout.index(c) for c in (extents if with_extents else ends)], with_extents


def _extents(values: Values | None, layout: str | None, axes: int, rows: int) -> np.ndarray:
    """float32 (n, axes) in the order x, y[, z]; ones in `rows` rows if they are not given."""
    if values is None:
        return np.ones((rows, axes), np.float32)
    order = "WHD"[:axes]
    layout = layout or order
    _check_letters("shape_layout", layout, (order,))
    return values.rows(axes, meaning=layout)[:, [layout.index(c) for c in order]].astype(np.float32)


def _check_inside(corners: np.ndarray, counts: np.ndarray) -> None:
    inside = (corners >= 0) & (corners <= 1)
    if inside.all():
        return
    for k in np.flatnonzero(~inside.all(axis=1))[:1]:
        sample = int(np.searchsorted(np.cumsum(counts), k, side="right"))
        number = k - counts[:sample].sum()
        raise bad_sample(
            sample, f"boxes: expected fractions in 0..1, got a box from {corners[k].tolist()}, number {number}"
        )


def _tell(ended: np.ndarray, quiet: bool, total: int) -> None:
    """Raises an error, or warns, if the search ended without a good window."""
    for i in np.flatnonzero(ended == _NONE)[:1]:
        raise bad_sample(
            int(i),
            f"no window met the thresholds in {_MOST_ATTEMPTS} attempts: give `total_num_attempts` to take the best one, or "
            "lower `thresholds`",
        )
    if not quiet and (ended == _BEST).any():
        i = int(np.flatnonzero(ended == _BEST)[0])
        warnings.warn(
            f"random_bbox_crop: sample {i}: no window met the thresholds in {total} attempts: the best one is taken "
            "(`quiet=True` says nothing)",
            stacklevel=2,
        )


def _cut(corners: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Boxes cut off at their windows, and relative to them. `low` and `high` have each number of the windows twice."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return (np.minimum(np.maximum(corners, low), high) - low) / (high - low)


# Compiling took 4 s with a cursor, which generates words at every read, and with arrays allocated here. So words come from a
# buffer that is filled in one place, and `room` is allocated by the caller.


@kernel
def _search(corners, ends, streams, options, limits, pairs, extents, crop, rules, windows, kept, ended, room):
    """Searches the window of each sample and the boxes that it keeps, with DALI's float32 steps and random words."""
    take_least, is_iou, prune, attempts, total = rules
    words, at, window, inside = room
    first = 0 * ends.size
    for n in range(ends.size):
        last = ends[n]
        best, threshold, done, tried, left, read = -prune - 2, prune, False, 0, 0, 0
        at[0] = words.size
        while True:
            if at[0] > words.size - _ENOUGH:
                if tried:
                    read += at[0]
                stream_words(words, streams[n], read)
                at[0] = 0
            if left == 0:
                if done or (total >= 0 and tried >= total):
                    break
                if total < 0 and tried >= _MOST_ATTEMPTS:
                    ended[n] = _NONE
                    break
                threshold, left = options[_below(words, at, options.size)], attempts
                if threshold < 0:
                    for k in range(pairs[-1, 1] + 1):
                        windows[n, 0, k], windows[n, 1, k] = 0, 1
                    for i in range(first, last):
                        kept[i] = True
                    done = True
                    break
            left -= 1
            tried += 1
            if not _candidate(words, at, limits, pairs, extents, crop, n, window):
                continue
            value = _judged(corners, first, last, window, take_least, is_iou, prune, inside)
            if value < threshold and value <= best:
                continue
            best = value
            for k in range(pairs[-1, 1] + 1):
                windows[n, 0, k], windows[n, 1, k] = window[0, k], window[1, k]
            done = value >= threshold and first == last
            for i in range(first, last):
                kept[i] = inside[i]
                done |= value >= threshold and inside[i]
        if not done and ended[n] != _NONE:
            ended[n] = _BEST
        first = last


@_search.fallback
def _(corners, ends, streams, options, limits, pairs, extents, crop, rules, windows, kept, ended, room):
    arguments = corners, ends, streams, options, limits, pairs, extents, crop
    total = rules[4]
    if len(ends) <= _FEW:
        _search.interpreted(
            *arguments, (*rules[:4], _MANY if total < 0 or total > _MANY else total), windows, kept, ended, room
        )
        if 0 <= total <= _MANY or not (ended == _BEST).any():
            return
        ended[:], kept[:] = 0, False
    _search.waited_for(*arguments, rules, windows, kept, ended, room)


@kernel
def _below(words, at, limit):
    """`draws.below_word` from the buffer."""
    refused = (_U(1 << 32) - _U(limit)) % _U(limit)
    product = _U(words[at[0]]) * _U(limit)
    at[0] += 1
    while (product & _U(0xFFFFFFFF)) < refused and at[0] < words.size:
        product = _U(words[at[0]]) * _U(limit)
        at[0] += 1
    return np.int64(product >> _U(32))


@kernel
def _uniform(words, at):
    """A number in [0, 1) with the 24 bits of a float32: `canonical` of one word."""
    at[0] += 1
    return _F(words[at[0] - 1] if words[at[0] - 1] < 0xFFFFFF00 else np.uint32(0xFFFFFF00)) * _F(2.0**-32)


@kernel
def _candidate(words, at, limits, pairs, extents, crop, n, window):
    """Draws a window; False if its aspect ratio is not permitted."""
    low, span, extents = window[0], window[1], extents[n]
    axes = low.size
    if crop.shape[0]:
        for k in range(axes):
            free = extents[k] - crop[n, k]
            start = free if free < 0 else _F(0)
            if free != 0:  # nothing is drawn if there is only one place
                start += _F(_below(words, at, np.int64(abs(free) + 1)))
            low[k] = start / extents[k]
            span[k] = low[k] + crop[n, k] / extents[k]
        return True
    for k in range(axes):
        span[k] = limits[0, 0] + _uniform(words, at) * (limits[0, 1] - limits[0, 0])
    for _ in range(axes - 1):  # one of three ratios may undo another; the second round makes them agree, if they can
        for p in range(len(pairs)):
            a, b = pairs[p, 0], pairs[p, 1]
            ratio = limits[1 + p, 0]
            if ratio == limits[1 + p, 1]:
                greater, other = span[a] * extents[a], span[b] * extents[b]
                if greater < other:
                    greater = other
                span[a] = (greater if ratio >= 1 else greater * ratio) / extents[a]
                span[b] = (greater / ratio if ratio >= 1 else greater) / extents[b]
    for p in range(len(pairs)):
        a, b = pairs[p, 0], pairs[p, 1]
        least, most = limits[1 + p, 0], limits[1 + p, 1]
        if least == most:
            least, most = least * _F(0.9999), most * _F(1.0001)
        ratio = span[a] * extents[a] / (span[b] * extents[b])
        if not (least <= ratio <= most):
            return False
    for k in range(axes):
        low[k] = _uniform(words, at) * (_F(1) - span[k])
        span[k] += low[k]
    return True


@kernel
def _judged(corners, first, last, window, take_least, is_iou, prune, inside):
    """Returns the smallest or greatest overlap of the boxes with a window, and writes to `inside` which boxes it keeps. Without
    boxes every window has the best overlap. The inside share of a box without an area is NaN, and boxes before it are ignored,
    as in DALI."""
    axes = window.shape[1]
    overlap = _F(1) if take_least or first == last else _F(0)
    area = _F(1)
    for k in range(axes):
        area *= window[1, k] - window[0, k]
    for i in range(first, last):
        both, own, middle = _F(1), _F(1), True
        for k in range(axes):
            start, end, low, high = corners[i, k], corners[i, axes + k], window[0, k], window[1, k]
            own *= end - start
            # Conditions, because `min` and `max` take 0.05 s each to compile.
            inner = (end if end < high else high) - (start if start > low else low)
            both *= inner if inner > 0 else _F(0)
            middle &= low <= _F(0.5) * (start + end) <= high
        if both > 0:
            value = both / (own + area - both if is_iou else own)
        else:
            value = _F(np.nan) if own == 0 and not is_iou else _F(0)
        if not (overlap < value if take_least else value < overlap):  # also if either is NaN
            overlap = value
        inside[i] = middle if prune < 0 else both > 0 and both / own >= prune
    return overlap


@_judged.fallback
def _(corners, first, last, window, take_least, is_iou, prune, inside):
    if first == last:
        return _F(1)
    axes = window.shape[1]
    area = both = own = _F(1)
    middle = np.True_
    for k in range(axes):
        start, end, low, high = corners[first:last, k], corners[first:last, axes + k], window[0, k], window[1, k]
        area = area * (high - low)
        own = own * (end - start)
        both = both * np.maximum(np.where(end < high, end, high) - np.where(start > low, start, low), _F(0))
        middle = middle & (low <= _F(0.5) * (start + end)) & (_F(0.5) * (start + end) <= high)
    inside[first:last] = middle if prune < 0 else (both > 0) & (both / own >= prune)
    value = np.where(both > 0, both / (own + area - both if is_iou else own), _F(0))
    if not is_iou and not own.all():
        value[own == 0] = np.nan
        value = value[np.flatnonzero(own == 0)[-1] + 1 :]
        if not value.size:
            return _F(np.nan)
    return min(value.min(), _F(1)) if take_least else max(value.max(), _F(0))


random_bbox_crop.cuda(computed_on_host)
