"""Random numbers of torch's generator, in the order in which torchvision takes them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import ndd
from ndd.random import host_draws

_ATTEMPTS = 10


def uniform(low: Any, high: Any, *, generator: torch.Generator | None = None) -> float:
    """A number from [low, high)."""
    return torch.empty(1).uniform_(low, high, generator=generator).item()


def words(count: int, generator: torch.Generator | None = None) -> tuple[np.ndarray, Callable[[int], Any]]:
    """The next `count` words of the generator, uint32, one for each number; and the function that advances the generator by the
    words that were used."""
    generator = torch.default_generator if generator is None else generator
    state = generator.get_state()
    pairs_of_words = torch.empty(-(-count // 2), dtype=torch.int64).random_(-(2**63), None, generator=generator)
    pairs = pairs_of_words.numpy().view(np.uint64)
    halves = np.stack((pairs >> np.uint64(32), pairs & np.uint64(0xFFFFFFFF)), axis=1).astype(np.uint32)

    def take(used: int) -> None:
        generator.set_state(state)
        torch.rand(used, generator=generator)

    return halves.reshape(-1), take


def words_of_batch(count: int, each: int) -> host_draws.HostDraws:
    """The next words of torch's generator, `each` for each of `count` samples, drawn so that look-ahead can predict them."""
    return host_draws.draw((_words, each), count)


def _words(generator: torch.Generator, count: int, each: int) -> np.ndarray:
    drawn, take = words(count * each, generator)
    take(count * each)
    return drawn[: count * each].astype(np.int64).reshape(count, each)


class Numbers:
    """The numbers that torch's functions would draw one after the other, without a call of torch for each. Every call of torch
    releases the GIL, which a thread that works ahead of the loop would then take. Used in a `with` statement, at whose end the
    generator advances.

    Args:
        generator: default: torch's.
        expected: the approximate number of draws.
    """

    def __init__(self, generator: torch.Generator | None = None, expected: int = 16):
        self._generator = torch.default_generator if generator is None else generator
        self._expected = expected
        self._words: list[int] = []
        self._at = 0
        self._take: Callable[[int], Any] | None = None

    def __enter__(self) -> Numbers:
        return self

    def __exit__(self, *error: Any) -> None:
        if self._take is not None:
            self._take(self._at)

    def integer(self, low: int, high: int) -> int:
        """See `integer`."""
        return low + self._word() % (high - low)

    def share(self) -> float:
        """A number from [0, 1)."""
        return (self._word() & 0xFFFFFF) * 2.0**-24

    def happens(self, p: float) -> bool:
        """See `happens`."""
        return self.share() < float(np.float32(p))

    def uniform(self, low: float, high: float) -> float:
        """See `uniform`."""
        self._word()
        if (low, high) not in self._between:  # by torch, because its rounding is not specified
            own = torch.Generator()
            own.set_state(self._state)
            self._between[low, high] = torch.empty(len(self._words)).uniform_(low, high, generator=own).tolist()
        return self._between[low, high][self._at - 1]

    def _word(self) -> int:
        if self._at == len(self._words):
            self.__exit__()
            self._state, self._between = self._generator.get_state(), {}
            drawn, self._take = words(self._expected, self._generator)
            self._words, self._at = drawn.tolist(), 0
        self._at += 1
        return self._words[self._at - 1]


def integer(low: int, high: int, generator: torch.Generator | None = None) -> int:
    """An integer from low to high - 1."""
    return int(torch.randint(low, high, (1,), generator=generator))


def integers(count: int, low: int, high: int) -> host_draws.HostDraws:
    """As many calls of `integer`, int64 `[count, 1]`, drawn so that look-ahead can predict them: see `random.host_draws`."""
    return host_draws.draw((_integers, low, high), count)


def _integers(generator: torch.Generator, count: int, low: int, high: int) -> np.ndarray:
    return torch.randint(low, high, (count, 1), generator=generator).numpy()


def happens(p: float, generator: torch.Generator | None = None) -> bool:
    """True with probability p."""
    return not bool(torch.rand(1, generator=generator) >= p)


def which_happen(count: int, p: float) -> np.ndarray:
    """As many calls of `happens`, bool `[count]`."""
    return (torch.rand(count) < p).numpy()


def generator() -> Any:
    """The numbers of a random operator, seeded by torch's generator."""
    return host_draws.seed()


def happenings(count: int, p: float) -> Any:
    """The same as `which_happen`, int32, drawn so that look-ahead can predict it: see `random.host_draws`."""
    return host_draws.draw((_happenings, p), count).columns(0, 0, ndd.int32)


def _happenings(generator: torch.Generator, count: int, p: float) -> np.ndarray:
    return (torch.rand(count, generator=generator) < p).numpy()[:, None]


def logarithms(ratio: Any) -> torch.Tensor:
    """The range from which the logarithm of an aspect ratio is drawn."""
    return torch.log(torch.tensor(ratio))


def window(size: tuple[int, int], scale: Any, ratio: Any, logs: torch.Tensor) -> tuple[int, int, int, int]:
    """Top, left, height and width of a window with a share of the area and an aspect ratio (width / height); if none of ten
    fits, the largest window in the middle with the nearest possible ratio."""
    height, width = size
    for _ in range(_ATTEMPTS):
        area = height * width * uniform(scale[0], scale[1])
        aspect = torch.exp(torch.empty(1).uniform_(logs[0], logs[1])).item()  # type: ignore[arg-type]
        w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < w <= width and 0 < h <= height:
            return integer(0, height - h + 1), integer(0, width - w + 1), h, w
    h, w = height, width
    if width / height < min(ratio):
        h = round(width / min(ratio))
    elif width / height > max(ratio):
        w = round(height * max(ratio))
    return (height - h) // 2, (width - w) // 2, h, w


def patch(
    chw: tuple[int, int, int], scale: Any, logs: torch.Tensor, value: Any
) -> tuple[int, int, int, int, torch.Tensor] | None:
    """Top, left, height and width of a patch smaller than the image, and its new pixels: `value`, or normal noise if that is
    None. None if none of ten fits."""
    channels, height, width = chw
    with Numbers() as numbers:
        size = _patch_size(height, width, scale, logs, numbers)
    if size is None:
        return None
    h, w = size
    fill = torch.empty([channels, h, w]).normal_() if value is None else torch.tensor(value)[:, None, None]
    return integer(0, height - h + 1), integer(0, width - w + 1), h, w, fill


def _patch_size(height: int, width: int, scale: Any, logs: Any, numbers: Numbers) -> tuple[int, int] | None:
    for _ in range(_ATTEMPTS):
        area = height * width * numbers.uniform(float(scale[0]), float(scale[1]))
        aspect = torch.exp(torch.tensor([numbers.uniform(float(logs[0]), float(logs[1]))])).item()
        h, w = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if h < height and w < width:
            return h, w
    return None


def patches(generator: Any, count: int, p: float, scale: Any, logs: Any, height: int, width: int) -> np.ndarray:
    """As many calls of `patch`, each with probability p, for images of one size: `[count, (top, left, height, width)]`, zeros
    for no patch."""
    rows = np.zeros((count, 4))
    with Numbers(generator, 2 * count) as numbers:
        for row in rows:
            size = _patch_size(height, width, scale, logs, numbers) if numbers.happens(p) else None
            if size is not None:
                row[:] = numbers.integer(0, height - size[0] + 1), numbers.integer(0, width - size[1] + 1), *size
    return rows


def corners(size: tuple[int, int], distortion: float) -> tuple[list[list[int]], list[list[int]]]:
    """The corners of an image, x and y, from the top left clockwise, and where a random perspective moves them."""
    height, width = size
    down, across = int(distortion * (height // 2)) + 1, int(distortion * (width // 2)) + 1
    left, right = (0, across), (width - across, width)
    top, bottom = (0, down), (height - down, height)
    moved = [[integer(*x), integer(*y)] for x, y in ((left, top), (right, top), (right, bottom), (left, bottom))]
    return [[0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]], moved


def windows(sizes: np.ndarray, scale: Any, ratio: Any, logs: torch.Tensor) -> np.ndarray:
    """`window` for each of `[N, 2]` sizes, all at once: int64 `[N, 4]`, with the same distribution but other numbers."""
    n, extents = len(sizes), sizes.astype(np.float64)
    areas = torch.empty(n, _ATTEMPTS).uniform_(scale[0], scale[1]).numpy() * extents.prod(1)[:, None]
    aspects = torch.exp(torch.empty(n, _ATTEMPTS).uniform_(float(logs[0]), float(logs[1]))).numpy().astype(np.float64)
    w, h = np.rint(np.sqrt(areas * aspects)), np.rint(np.sqrt(areas / aspects))
    fits = (w > 0) & (w <= extents[:, 1:]) & (h > 0) & (h <= extents[:, :1])
    first = fits.argmax(1)
    shapes = np.stack((h, w), 2)[np.arange(n), first]
    places = np.floor(torch.rand(n, 2, dtype=torch.float64).numpy() * (extents - shapes + 1))
    largest = _largest(extents, ratio)
    fitting = fits.any(1)[:, None]
    shapes = np.where(fitting, shapes, largest)
    places = np.where(fitting, places, (extents - largest) // 2)
    return np.concatenate((places, shapes), 1).astype(np.int64)


def _largest(extents: np.ndarray, ratio: Any) -> np.ndarray:
    """Height and width of the largest window with a permitted ratio."""
    h, w = extents.T
    ratios = w / np.maximum(h, 1)
    heights = np.where(ratios < min(ratio), np.rint(w / min(ratio)), h)
    widths = np.where(ratios > max(ratio), np.rint(h * max(ratio)), w)
    return np.stack((heights, widths), 1)
