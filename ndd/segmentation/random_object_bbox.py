"""`ndd.segmentation.random_object_bbox`: a random object of a mask."""

from __future__ import annotations

from collections import OrderedDict
from hashlib import blake2b
from typing import Any

import numpy as np

from ndd._compiled.intrinsics import empty, zeros
from ndd._compiled.jit import kernel
from ndd._cpu.philox import stream_words
from ndd._operator import Call, Operand, PerSample, Values, View, computed_on_host, operator, output
from ndd._operator.naming import raise_first
from ndd._operator.partition import Rows, each_sample
from ndd._tensor import Store
from ndd._tensor.dtype import int32
from ndd._tensor.memory import host_empty

_MOST_CACHED = 4096  # sets of boxes in the cache of `cache_objects`, the most recently used
_WORDS = 8
_FEW = 1 << 14  # up to this many runs of pixels Python's interpreter takes less time than compiling
_cached: OrderedDict[Any, Any] = OrderedDict()


@operator(
    types=("u8", "i8", "u16", "i16", "u32", "i32", "bool"),
    random=True,
    reads="cpu",
    outputs=lambda format, output_class: (1 if format == "box" else 2) + output_class,
)
def random_object_bbox(
    input,
    /,
    *,
    background: PerSample[int] = None,
    cache_objects: bool = False,
    class_weights: PerSample[list[float]] = None,
    classes: PerSample[list[int]] = None,
    foreground_prob: PerSample[float] = 1.0,
    format: str = "anchor_shape",
    ignore_class: bool = False,
    k_largest: int | None = None,
    output_class: bool = False,
    threshold: PerSample[list[int]] = None,
):
    """Draws an object of a labelled mask and returns its bounding box.

    Args:
        input: labels: 8, 16 or 32-bit integers or bool, of any rank. An axis of channels counts as any other.
        foreground_prob: probability of an object; else the box is the whole mask.
        background: the label that is not an object. Default: 0, or if `classes` contains it the next lower free number.
        classes: labels of objects. Default: all but `background`.
        class_weights: the relative probabilities of the classes, in the order of `classes`; without `classes` those of the
            labels 1, 2, .... Default: equal.
        ignore_class: draw from all objects with equal probability. Otherwise one of the mask's classes is drawn first, then one
            of its objects.
        threshold: objects narrower than this along an axis are ignored: a number for each axis, or one for all.
        k_largest: draw only from this many of the largest boxes, of the class or, with `ignore_class`, of all. The first of
            equally large boxes count; among more than 16 objects DALI may take others.
        output_class: also return the label of the object, or `background` if the box is the whole mask.
        format: "anchor_shape": two results, start and extents. "start_end": two, start and end. "box": one, start and end
            in one row.
        cache_objects: cache the boxes of masks, which may recur. Results do not change.
        rng: an `RNG`; without it the thread's default one. A call advances it by seven words.

    Results are int32 with an entry for each axis, in the order of the axes; the label is an int32 number. An object is a
    connected component: pixels of one label that share sides (in volumes faces). If all objects of a class are too small,
    another class is drawn; if none is left, the box is the whole mask. The numbers are DALI's. Results on a GPU are computed on
    the CPU.

    Raises RuntimeError for other types and formats, class arguments beside `ignore_class`, a different number of
    `class_weights` than `classes`, a `background` among `classes`, a `k_largest` below 1, a `threshold` of another number of
    axes, and a mask without axes.

    >>> import ndd
    >>> mask = ndd.tensor([[0, 0, 0, 0], [0, 5, 5, 0]])
    >>> ndd.segmentation.random_object_bbox(mask, format="box", output_class=True)
    (Tensor(
        [1 1 2 3],
        dtype=i32,
        device="cpu",
        shape=(4,)), Tensor(
        5,
        dtype=i32,
        device="cpu",
        shape=()))
    """
    if format not in ("anchor_shape", "start_end", "box"):
        raise RuntimeError(f'`format`: expected "anchor_shape", "start_end" or "box", got {format!r}')
    if ignore_class and (classes is not None or class_weights is not None or output_class):
        raise RuntimeError("`ignore_class` excludes `classes`, `class_weights` and `output_class`")
    if k_largest is not None and k_largest < 1:
        raise RuntimeError(f"`k_largest`: expected a number above 0, got {k_largest}")
    if input.ndim == 0:
        raise RuntimeError("expected a mask of at least one axis, got a number")
    box = output(int32, 1)
    outputs = (box,) if format == "box" else (box, box)
    if output_class:
        outputs = (*outputs, output(int32, 0))
    return outputs if len(outputs) > 1 else box


# A batch: the draws of all samples decide which masks are labelled.
@random_object_bbox.batch
def _(
    call, input, *, background, cache_objects, class_weights, classes, foreground_prob, format, ignore_class, k_largest,
    output_class, threshold,
):  # fmt: skip
    labels = _Labels(call.n, background, classes, class_weights)
    least = None if threshold is None else threshold.rows(input.ndim, repeat=True)
    draws, probability = _draws(call.draws.streams(call.n)), foreground_prob.each().tolist()
    boxes, picked = np.zeros((call.n, 2, input.ndim), np.int32), labels.background.copy()
    boxes[:, 1] = input.shapes
    drawn = [i for i in range(call.n) if draws[i].number() < probability[i]]
    for i, (every, own) in zip(drawn, _objects(call, input, labels.background, drawn, cache_objects), strict=True):
        try:
            objects = _Objects(every, own, None if least is None else least[i], k_largest)
            chosen = objects.any(draws[i]) if ignore_class else objects.of_a_class(draws[i], *labels.of(i))
        except Exception as error:
            raise_first({i: error})
        if chosen is not None:
            boxes[i] = chosen[0]
            picked[i] = labels.background[i] if chosen[1] is None else chosen[1]
    if format == "anchor_shape":
        boxes[:, 1] -= boxes[:, 0]
    results: list[np.ndarray] = (
        [boxes.reshape(call.n, -1)] if format == "box" else [boxes[:, 0].copy(), boxes[:, 1].copy()]
    )
    if output_class:
        results.append(picked)
    return results if len(results) > 1 else results[0]


class _Labels:
    """The background, the classes and their weights of each sample."""

    def __init__(self, n: int, background: Values | None, classes: Values | None, weights: Values | None):
        self.classes = None if classes is None else [c.reshape(-1).astype(np.int32) for c in classes.arrays()]
        self.weights = None if weights is None else [w.reshape(-1).astype(np.float64) for w in weights.arrays()]
        if self.classes is None and self.weights is not None:
            self.classes = [np.arange(1, len(w) + 1, dtype=np.int32) for w in self.weights]
        self.background = np.zeros(n, np.int32) if background is None else background.each().astype(np.int32)
        for i, own in enumerate(self.classes or []):
            if self.weights is not None and len(self.weights[i]) != len(own):
                raise weights.error(
                    i, f"`class_weights`: expected {len(own)}, as `classes`, got {len(self.weights[i])}"
                )  # type: ignore[union-attr]
            if background is None:
                while self.background[i] in own:
                    self.background[i] -= 1
            elif classes is not None and self.background[i] in own:
                raise classes.error(i, f"`classes`: expected labels other than `background`, got {self.background[i]}")

    def of(self, i: int) -> tuple[np.ndarray | None, np.ndarray | None]:
        """The classes of a sample and their weights; None for all classes with equal weights."""
        return None if self.classes is None else self.classes[i], None if self.weights is None else self.weights[i]


def _draws(streams: np.ndarray) -> list[_Draw]:
    """The words that each sample draws from."""
    words = np.empty((len(streams), _WORDS), np.uint32)
    _first_words(streams, words)
    return [_Draw(stream, own) for stream, own in zip(streams, words[:, ::-1].tolist(), strict=True)]


@kernel
def _first_words(streams, words):
    for n in range(len(streams)):
        stream_words(words[n], streams[n], 0)


class _Draw:
    """The words of a sample, one after the other; `words` has the first ones in reverse order."""

    def __init__(self, stream: np.ndarray, words: list[int]):
        self.stream = stream
        self.words = words
        self.read = _WORDS

    def word(self) -> int:
        if not self.words:
            words = np.empty(_WORDS, np.uint32)
            stream_words(words, self.stream, self.read)
            self.words = words[::-1].tolist()
            self.read += _WORDS
        return self.words.pop()

    def number(self) -> float:
        """In [0, 1), from two words."""
        low = self.word()
        return min((self.word() << 32 | low) * 2.0**-64, 1 - 2.0**-53)

    def below(self, count: int) -> int:
        """A number below `count`, each equally likely, by Lemire's method as in `draws.below`."""
        product = self.word() * count
        while product & 0xFFFFFFFF < ((1 << 32) - count) % count:
            product = self.word() * count
        return product >> 32


class _Objects:
    """The objects of a mask that are not ignored: their boxes, int32 [count, 2, axes], starts and ends, and their labels."""

    def __init__(self, boxes: np.ndarray, labels: np.ndarray, least: np.ndarray | None, k_largest: int | None):
        self.boxes = boxes
        self.labels = labels
        self.least = least
        self.k_largest = k_largest

    def any(self, draw: _Draw) -> Any:
        """The box of one of all objects, and no label."""
        boxes = self._counting(self.boxes)
        return (boxes[draw.below(len(boxes))], None) if len(boxes) else None

    def of_a_class(self, draw: _Draw, classes: np.ndarray | None, weights: np.ndarray | None) -> Any:
        """The box of an object of one of the classes, and its label; None if there is no such object."""
        if classes is None:
            classes = np.array(sorted(set(self.labels.tolist())), np.int32)
            likely = np.ones(len(classes))
        else:
            likely = np.where(np.isin(classes, self.labels), 1.0 if weights is None else weights, 0.0)
        while (total := likely.sum()) > 0:
            k = int(likely.cumsum().searchsorted(draw.number() * total, side="right"))
            boxes = self._counting(self.boxes[self.labels == classes[k]])
            if len(boxes):
                return boxes[draw.below(len(boxes))], classes[k]
            likely[k] = 0
        return None

    def _counting(self, boxes: np.ndarray) -> np.ndarray:
        """The boxes [count, 2, axes] that are wide enough, and the largest of these."""
        if self.least is None and self.k_largest is None:
            return boxes
        extents = boxes[:, 1].astype(np.int64) - boxes[:, 0]
        if self.least is not None:
            kept = (extents >= self.least).all(axis=1)
            boxes, extents = boxes[kept], extents[kept]
        if self.k_largest is not None and self.k_largest < len(boxes):
            boxes = boxes[np.argsort(-extents.prod(axis=1), kind="stable")[: self.k_largest]]
        return boxes


Found = tuple[np.ndarray, np.ndarray]


def _objects(call: Call, input: Operand, background: np.ndarray, which: list[int], cached: bool) -> list[Found]:
    """The boxes of all objects of some of the samples, and their labels."""
    if not cached:
        return _found_in(call, input, background, which)
    masks = input.arrays
    keys = {
        i: (blake2b(masks[i].tobytes(), digest_size=32).digest(), masks[i].dtype, masks[i].shape, int(background[i]))
        for i in which
    }
    known = {i: _cached.pop(keys[i], None) for i in which}
    new = [i for i in which if known[i] is None]
    for i, (boxes, labels) in zip(new, _found_in(call, input, background, new), strict=True):
        known[i] = boxes.copy(), labels.copy()  # they are views of far larger arrays
    for i in which:
        _cached[keys[i]] = known[i]
    while len(_cached) > _MOST_CACHED:
        _cached.popitem(last=False)
    return [known[i] for i in which]


def _found_in(call: Call, input: Operand, background: np.ndarray, which: list[int]) -> list[Found]:
    """Boxes of connected components, int32 [count, 2, axes], and their labels, in the order of their first pixels."""
    if not which:
        return []
    store, kind = input._store, np.uint8 if input.dtype.name == "bool" else None
    if not input.varies:
        store = Store(input.dtype, None, store.device, input.shapes, parts=input.arrays)
    masks = View("flat", kind).of(store), Rows(input.shapes), Rows(background)
    counts, order = np.zeros((call.n, 1), np.int64), np.array(which)
    each_sample(call, _count_in, *masks, Rows(counts), order=order)
    edges = np.append(0, np.cumsum(counts))
    total = int(edges[-1])
    runs, boxes = host_empty((5, total), np.int32), host_empty((total, 2, input.ndim), np.int32)
    each_sample(call, _find_in, *masks, Rows(edges[:-1]), Rows(edges[1:]), runs, boxes, Rows(counts), order=order)
    begins, counted = edges[which].tolist(), counts[which, 0].tolist()
    return [(boxes[b : b + count], runs[4, b : b + count]) for b, count in zip(begins, counted, strict=True)]


@kernel
def _count_in(mask, extents, background, count):
    """The number of runs of pixels in a mask."""
    width = extents[-1]
    count[0] = 0
    for line in range(mask.size // max(width, 1)):
        count[0] += _count_runs(mask[line * width : (line + 1) * width], background)


_count_in.fallback()


@kernel
def _find_in(mask, extents, background, first, last, runs, boxes, count):
    """Finds the objects of a mask and their number. Their place in `boxes`, and the end of its runs, follow from `runs`."""
    count[0] = _boxes_of(
        mask, extents, background, runs[0, first:last], runs[1, first:last], runs[2, first:last], runs[3, first:last],
        boxes[first:last], runs[4, first:last],
    )  # fmt: skip


_find_in.fallback_if(lambda mask, extents, background, first, last, runs, *_: runs.shape[1] <= _FEW)


@kernel
def _boxes_of(mask, extents, background, start, end, parent, labels, boxes, label):
    """Finds the boxes and labels of the objects of a mask with as many runs as the arrays have room for. Returns their number.

    Union-find over runs, i.e. adjacent pixels of one label in a line. The first run of an object is its root.
    """
    axes = extents.size
    width, lines = extents[-1], np.int64(start.size > 0)
    for k in range(axes - 1):
        lines *= extents[k]
    firsts = empty(lines + 1, np.int64)
    steps, at = np.ones(axes, np.int64), zeros(axes, np.int64)
    for k in range(axes - 3, -1, -1):
        steps[k] = steps[k + 1] * extents[k + 1]
    firsts[0] = 0
    for line in range(lines):
        row = mask[line * width : (line + 1) * width]
        firsts[line + 1] = _find_runs(row, background, firsts[line], start, end, parent, labels)
        for k in range(axes - 1):
            if at[k] > 0:
                _join_lines(firsts, line, line - steps[k], start, end, parent, labels)
        _next_line(at, extents)
    n_boxes = 0
    at[:] = 0
    for line in range(lines):
        for i in range(firsts[line], firsts[line + 1]):
            at[axes - 1] = start[i]
            if parent[i] == i:
                # From here on a root holds -1 minus its number.
                label[n_boxes] = labels[i]
                for k in range(axes):
                    boxes[n_boxes, 0, k], boxes[n_boxes, 1, k] = at[k], at[k] + 1
                parent[i] = -1 - n_boxes
                n_boxes += 1
            j = np.int64(i)
            while parent[j] >= 0:
                j = np.int64(parent[j])
            box = boxes[-1 - parent[j]]
            for k in range(axes):
                box[0, k] = min(box[0, k], at[k])
                box[1, k] = max(box[1, k], at[k] + 1)
            box[1, axes - 1] = max(box[1, axes - 1], end[i])
        _next_line(at, extents)
    return n_boxes


@kernel
def _count_runs(row, background):
    count = np.int64(np.int32(row[0]) != background)
    for x in range(1, row.size):
        count += (row[x] != row[x - 1]) & (np.int32(row[x]) != background)
    return count


@_count_runs.fallback
def _(row, background):
    row = row.astype(np.int32)
    return (row[0] != background) + np.count_nonzero((row[1:] != row[:-1]) & (row[1:] != background))


@kernel
def _find_runs(row, background, i, start, end, parent, labels):
    """Finds the runs of a line, from number `i` on. Returns the number after them."""
    last = background
    for x in range(row.size):
        value = np.int32(row[x])
        if value == last:
            continue
        if last != background:
            end[i - 1] = x
        if value != background:
            start[i], parent[i], labels[i] = x, i, value
            i += 1
        last = value
    if last != background:
        end[i - 1] = row.size
    return i


@_find_runs.fallback
def _(row, background, i, start, end, parent, labels):
    row = row.astype(np.int32)
    borders = np.flatnonzero(row[1:] != row[:-1]) + 1
    starts = np.append(0, borders)
    own = row[starts] != background
    behind = i + np.count_nonzero(own)
    start[i:behind], end[i:behind] = starts[own], np.append(borders, row.size)[own]
    parent[i:behind], labels[i:behind] = np.arange(i, behind), row[starts[own]]
    return behind


@kernel
def _join_lines(firsts, line, other, start, end, parent, labels):
    """Joins runs of one label that overlap in two adjacent lines."""
    i, j = firsts[line], firsts[other]
    while i < firsts[line + 1] and j < firsts[other + 1]:
        if labels[i] == labels[j] and start[i] < end[j] and start[j] < end[i]:
            a, b = np.int64(i), np.int64(j)
            while parent[a] != a:
                parent[a] = parent[parent[a]]
                a = np.int64(parent[a])
            while parent[b] != b:
                parent[b] = parent[parent[b]]
                b = np.int64(parent[b])
            parent[max(a, b)] = min(a, b)
        if end[i] < end[j]:
            i += 1
        else:
            j += 1


@kernel(inline="always")
def _next_line(at, extents):
    for k in range(extents.size - 2, -1, -1):
        at[k] += 1
        if at[k] < extents[k]:
            break
        at[k] = 0


random_object_bbox.cuda(computed_on_host)
