"""`ndd.segmentation.random_object_bbox`: a random object of a mask."""

from __future__ import annotations

from collections import OrderedDict
from hashlib import blake2b
from typing import Any

import numpy as np

from ndd._cpu.inlined import empty, zeros
from ndd._cpu.jit import kernel
from ndd._cpu.philox import element_words
from ndd._operator import PerSample, Values, computed_on_host, operator, output
from ndd._operator.naming import raise_first
from ndd._tensor.dtype import int32

_KEPT = 4096  # sets of boxes that `cache_objects` keeps, the last used ones
_WORDS = 32
_kept: OrderedDict[Any, Any] = OrderedDict()


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
    """Draws an object of a labelled mask and gives its bounding box.

    Args:
        input: labels: 8, 16 or 32-bit integers or bool, of any rank. An axis of channels counts as any other.
        foreground_prob: probability of an object; else the box is the whole mask.
        background: the label that is no object. Default: 0, or if `classes` has it the next lower number that is free.
        classes: labels of objects. Default: all but `background`.
        class_weights: how likely each class is, relative to each other, in the order of `classes`; without `classes`
            those of the labels 1, 2, .... Default: all alike.
        ignore_class: draw from all objects alike. Else a class that is there is drawn first, then one of its objects.
        threshold: objects narrower than this along an axis do not count: a number for each axis, or one for all.
        k_largest: only so many of the largest boxes count, of the class or with `ignore_class` of all. Of equally large
            ones the first; among more than 16 objects DALI may take others.
        output_class: also give the label of the object, or `background` where the box is the whole mask.
        format: "anchor_shape": two results, start and extents. "start_end": two, start and end. "box": one, start and end
            in one row.
        cache_objects: keep the boxes of masks that have been seen, for when they come again. Values do not change.
        rng: an `RNG`; without it the thread's default one. A call moves it on by seven words.

    Results are int32 with an entry for each axis, in the order of the axes; the label is an int32 number. An object is
    what holds together by pixels of one label that share a side (in volumes a face). A class whose objects are all too small is
    passed over for another; where none is left the box is the whole mask. The numbers are DALI's. Results on a GPU are
    worked out on the CPU.

    Raises RuntimeError for other types and formats, class arguments beside `ignore_class`, as many `class_weights` as not
    `classes`, a `background` among `classes`, a `k_largest` below 1, a `threshold` of another number of axes, and a mask
    without axes.

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
    found = (box,) if format == "box" else (box, box)
    if output_class:
        found = (*found, output(int32, 0))
    return found if len(found) > 1 else box


@random_object_bbox.batch
def _(
    call, input, *, background, cache_objects, class_weights, classes, foreground_prob, format, ignore_class, k_largest,
    output_class, threshold,
):  # fmt: skip
    masks, axes = input.arrays, input.ndim
    labels = _Labels(call.n, background, classes, class_weights)
    least = np.zeros((call.n, axes), np.int64) if threshold is None else threshold.rows(axes, repeat=True)
    probability, streams = foreground_prob.each(), call.draws.streams(call.n)
    boxes, found = np.empty((call.n, 2, axes), np.int32), np.empty(call.n, np.int32)

    def one(i: int) -> None:
        draw, mask = _Draw(streams[i]), masks[i]
        objects = _Objects(mask.astype(np.int32, copy=False), labels.background[i], cache_objects, least[i], k_largest)
        chosen = None
        if draw.number() < probability[i]:
            chosen = objects.any(draw) if ignore_class else objects.of_a_class(draw, *labels.of(i))
        box, found[i] = chosen or (np.array([[0] * axes, mask.shape], np.int32), labels.background[i])
        boxes[i] = box

    raise_first(call.spread(one, call.n, 16 * input.volumes.total))
    if format == "anchor_shape":
        boxes[:, 1] -= boxes[:, 0]
    results: list[np.ndarray] = (
        [boxes.reshape(call.n, -1)] if format == "box" else [boxes[:, 0].copy(), boxes[:, 1].copy()]
    )
    if output_class:
        results.append(found)
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
        """The classes of a sample and their weights, None for all that there are, all alike."""
        return None if self.classes is None else self.classes[i], None if self.weights is None else self.weights[i]


class _Draw:
    """The words of a sample, one after the other."""

    def __init__(self, stream: np.ndarray):
        self.stream = stream
        self.words: list[int] = []
        self.read = 0

    def word(self) -> int:
        if not self.words:
            words = np.empty((_WORDS, 1), np.uint32)
            element_words(words, self.stream, 0, self.read)
            self.words = words[::-1, 0].tolist()
            self.read += _WORDS
        return self.words.pop()

    def number(self) -> float:
        """In [0, 1), from two words."""
        low = self.word()
        return min((self.word() << 32 | low) * 2.0**-64, 1 - 2.0**-53)

    def below(self, count: int) -> int:
        """Each equally likely: Lemire's method, as in `draws.below`."""
        product = self.word() * count
        while product & 0xFFFFFFFF < ((1 << 32) - count) % count:
            product = self.word() * count
        return product >> 32


class _Objects:
    """The objects of a mask that count."""

    def __init__(self, mask: np.ndarray, background: Any, cached: bool, least: np.ndarray, k_largest: int | None):
        self.mask = np.ascontiguousarray(mask)
        self.background = np.int32(background)
        self.least = least
        self.k_largest = k_largest
        self.key = blake2b(self.mask.tobytes(), digest_size=32).digest() if cached else None

    def any(self, draw: _Draw) -> Any:
        """The box of one of all objects, and no label."""
        boxes = self._boxes(None)
        return (boxes[draw.below(len(boxes))], self.background) if len(boxes) else None

    def of_a_class(self, draw: _Draw, classes: np.ndarray | None, weights: np.ndarray | None) -> Any:
        """The box of an object of one of the classes, and its label; None if there is no such object."""
        present = self._present()
        if classes is None:
            classes = present
        likely = np.where(np.isin(classes, present), 1.0 if weights is None else weights, 0.0)
        while (total := likely.sum()) > 0:
            k = int(np.searchsorted(np.cumsum(likely), draw.number() * total, side="right"))
            boxes = self._boxes(classes[k])
            if len(boxes):
                return boxes[draw.below(len(boxes))], classes[k]
            likely[k] = 0
        return None

    def _present(self) -> np.ndarray:
        """The labels in the mask but the background's, ascending."""

        def make() -> np.ndarray:
            flat = self.mask.reshape(-1)
            low, high = (int(flat.min()), int(flat.max())) if flat.size else (0, 0)
            # Counting is several times as fast as sorting, where labels lie close together.
            few = flat.size and high - low < flat.size
            found = low + np.flatnonzero(np.bincount(flat - np.int32(low))) if few else np.unique(flat)
            return found[found != self.background].astype(np.int32)

        return self._once("labels", make)

    def _boxes(self, label: Any) -> np.ndarray:
        """The boxes of a class, or of all, int32 [count, 2, axes]: starts and ends."""
        every = label is None

        def make() -> np.ndarray:
            extents = np.array(self.mask.shape, np.int64)
            return object_boxes(self.mask.reshape(-1), extents, self.background if every else label, every)

        boxes = self._once(None if every else int(label), make)
        extents = boxes[:, 1].astype(np.int64) - boxes[:, 0]
        kept = (extents >= self.least).all(axis=1)
        boxes, extents = boxes[kept], extents[kept]
        if self.k_largest is not None and self.k_largest < len(boxes):
            boxes = boxes[np.argsort(-extents.prod(axis=1), kind="stable")[: self.k_largest]]
        return boxes

    def _once(self, what: Any, make: Any) -> np.ndarray:
        if self.key is None:
            return make()
        key = (self.key, self.mask.shape, int(self.background), what)
        found = _kept.pop(key, None)
        if found is None:
            found = make()
        _kept[key] = found
        while len(_kept) > _KEPT:
            _kept.popitem(last=False)
        return found


@kernel
def object_boxes(mask, extents, label, every):
    """Boxes of what holds together by a shared side, int32 [count, 2, axes], in the order of their first pixels.

    `mask` is flat; objects have the label, or with `every` any other than it. Union-find: the first pixel is the root.
    """
    axes = extents.size
    steps, at = np.ones(axes, np.int64), zeros(axes, np.int64)
    for k in range(axes - 2, -1, -1):
        steps[k] = steps[k + 1] * extents[k + 1]
    parent = empty(mask.size, np.int32)
    for i in range(mask.size):
        value = mask[i]
        parent[i] = -1
        if (value != label) if every else (value == label):
            root = i
            for k in range(axes):
                j = i - steps[k]
                if at[k] > 0 and parent[j] >= 0 and mask[j] == value:
                    while parent[j] != j:
                        parent[j] = parent[parent[j]]
                        j = np.int64(parent[j])
                    if j < root:
                        if root != i:
                            parent[root] = j
                        root = j
                    elif j > root:
                        parent[j] = root
            parent[i] = root
        _step(at, extents)
    count = 0
    for i in range(mask.size):
        count += parent[i] == i
    boxes = empty((count, 2, axes), np.int32)
    count = 0
    at[:] = 0
    for i in range(mask.size):
        if parent[i] >= 0:
            # From here on a root holds -2 less its number.
            if parent[i] == i:
                for k in range(axes):
                    boxes[count, 0, k], boxes[count, 1, k] = at[k], at[k] + 1
                parent[i] = -2 - count
                count += 1
            else:
                j = np.int64(parent[i])
                while parent[j] >= 0:
                    j = np.int64(parent[j])
                number = -2 - parent[j]
                for k in range(axes):
                    boxes[number, 0, k] = min(boxes[number, 0, k], at[k])
                    boxes[number, 1, k] = max(boxes[number, 1, k], at[k] + 1)
        _step(at, extents)
    return boxes


@kernel(inline="always")
def _step(at, extents):
    for k in range(extents.size - 1, -1, -1):
        at[k] += 1
        if at[k] < extents[k]:
            break
        at[k] = 0


random_object_bbox.cuda(computed_on_host)
