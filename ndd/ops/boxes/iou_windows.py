"""Random windows that overlap boxes enough, by torchvision's rule: for all samples of a batch in one compiled loop."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ndd._compiled.jit import kernel

_F = np.float32


class Rule(NamedTuple):
    """How windows are tried: overlaps of which one is drawn, each for as many trials; ranges of the window's sides as shares of
    the image's, and of its width / height."""

    overlaps: tuple[float, ...]
    trials: int
    scale: tuple[float, float]
    ratio: tuple[float, float]

    @property
    def most_words(self) -> int:
        """How many words one drawn overlap takes at most."""
        return 1 + 4 * self.trials


class Search:
    """Looks for the windows of samples, as long as there are random words.

    Args:
        sizes: height and width of each image, `[N, 2]`.
        boxes: left, top, right, bottom, in pixels, `[total, 4]`, one sample after the other.
        counts: how many boxes each sample has.

    Attributes:
        windows: top, left, height and width, int64 `[N, 4]`.
        kept: which boxes have their middle in their window; all where the image stays whole.
        whole: which images stay as they are.
    """

    def __init__(self, rule: Rule, sizes: np.ndarray, boxes: np.ndarray, counts: np.ndarray):
        self._rule, self._sizes, self._ends = rule, sizes.astype(np.int64), np.cumsum(counts, dtype=np.int64)
        # In the precision of torch's: float32, and whole numbers as they are.
        single = boxes.dtype in (np.float16, np.float32)
        self._boxes = np.ascontiguousarray(boxes, np.float32 if single else np.float64)
        self._options = np.asarray(rule.overlaps, np.float64).astype(self._boxes.dtype)
        least, most = rule.scale
        self._scale = np.array((least, most - least)).astype(np.float32)
        self._ratio = np.array(rule.ratio, np.float64)
        self._done = np.zeros(1, np.int64)
        self.windows = np.zeros((len(sizes), 4), np.int64)
        self.kept, self.whole = np.zeros(len(boxes), bool), np.zeros(len(sizes), bool)
        if (counts == 0).any() and not any(option >= 1 for option in rule.overlaps):
            i = int(np.flatnonzero(counts == 0)[0])
            raise ValueError(
                f"sample {i} has no boxes, so no window overlaps one, and no option leaves the image as it is"
            )

    @property
    def is_over(self) -> bool:
        """Whether all samples have their windows."""
        return int(self._done[0]) == len(self._ends)

    def go_on(self, words: np.ndarray) -> int:
        """Takes some of these words, uint32, at least `most_words`. Gives how many."""
        results = self._done, self.windows, self.kept, self.whole
        limits = self._options, self._rule.trials, self._scale, self._ratio
        return int(_search(words, self._sizes, self._boxes, self._ends, *limits, *results))


@kernel
def _search(words, sizes, boxes, ends, options, trials, scale, ratio, done, windows, kept, whole):
    """A number in [0, 1) has the low 24 bits of a word, as torch's; a choice is the remainder of one."""
    at = 0
    while done[0] < ends.size:
        n = done[0]
        first = ends[n - 1] if n else 0 * ends[n]
        last = ends[n]
        if at + 1 + 4 * trials > words.size:
            break
        option = options[np.int64(words[at]) % options.size]
        at += 1
        if option >= 1:
            whole[n] = True
            windows[n, 0], windows[n, 1], windows[n, 2], windows[n, 3] = 0, 0, sizes[n, 0], sizes[n, 1]
            for i in range(first, last):
                kept[i] = True
            done[0] += 1
            continue
        for _ in range(trials):
            height, width = _F(sizes[n, 0]), _F(sizes[n, 1])
            w = _F(np.trunc(width * (scale[0] + scale[1] * _share(words[at]))))
            h = _F(np.trunc(height * (scale[0] + scale[1] * _share(words[at + 1]))))
            at += 2
            if h <= 0 or not ratio[0] <= np.float64(w) / np.float64(h) <= ratio[1]:
                continue
            left = _F(np.trunc((width - w) * _share(words[at])))
            top = _F(np.trunc((height - h) * _share(words[at + 1])))
            at += 2
            if w > 0 and _overlaps_enough(boxes, first, last, left, top, w, h, option, kept):
                windows[n, 0], windows[n, 1] = np.int64(top), np.int64(left)
                windows[n, 2], windows[n, 3] = np.int64(h), np.int64(w)
                done[0] += 1
                break
    return at


_search.fallback()


@kernel
def _share(word):
    return _F(np.int64(word) & 0xFFFFFF) * _F(2.0**-24)


@kernel
def _overlaps_enough(boxes, first, last, left, top, w, h, least, kept):
    """Whether a box with its middle in the window overlaps it enough, intersection over union; notes which have."""
    right, bottom, enough = left + w, top + h, False
    for i in range(first, last):
        x, y = _F(0.5) * (boxes[i, 0] + boxes[i, 2]), _F(0.5) * (boxes[i, 1] + boxes[i, 3])
        kept[i] = left < x < right and top < y < bottom
        if not kept[i]:
            continue
        across = max(min(boxes[i, 2], right) - max(boxes[i, 0], left), _F(0))
        down = max(min(boxes[i, 3], bottom) - max(boxes[i, 1], top), _F(0))
        shared = across * down
        area = (boxes[i, 2] - boxes[i, 0]) * (boxes[i, 3] - boxes[i, 1])
        enough |= shared / (area + (right - left) * (bottom - top) - shared) >= least
    return enough


__all__ = ["Rule", "Search"]
