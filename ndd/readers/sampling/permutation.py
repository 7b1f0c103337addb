"""Permutations that repeat, number for number, the orders of DALI's shuffling readers.

DALI shuffles with the C++ standard library, so three small pieces of libstdc++ decide which sample comes when:

* `std::shuffle`, which draws two positions from one random number while the list is short enough;
* `std::uniform_int_distribution`, by multiplication for the Mersenne twisters and by division for the
  multiplicative generator;
* the generators `std::mt19937`, `std::mt19937_64` and `std::minstd_rand0` (seeded through a `std::seed_seq`).

Everything here is a pure function of its arguments. Nothing depends on NumPy's own random distributions, whose
streams may change between versions; only raw words of its Mersenne twister and Philox are used, which may not.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from ndd.readers.sampling.numbers import LISTED, Listing, Numbers

_MASK32 = 0xFFFFFFFF
_MASK64 = 0xFFFFFFFFFFFFFFFF
_MINSTD_MODULUS = 2**31 - 1
_MINSTD_FACTOR = 16807
_ROUNDS = 8  # of the network that scatters the samples of a large order


def shuffled_once(size: int, seed: int = 524287) -> np.ndarray:
    """The order of `random_shuffle` before its buffer: `std::shuffle` driven by `std::mt19937(seed)`."""
    return _std_shuffle(np.arange(size), _Words(_words32(seed)), 32)


def reshuffled(order: np.ndarray, seed: int, epoch: int) -> np.ndarray:
    """`order` shuffled as `shuffle_after_epoch` does before epoch `epoch` (the first epoch is number 1)."""
    return _std_shuffle(order, _Words(_words64((seed + (epoch << 32)) & _MASK64)), 64)


def global_order(size: int, seed: int, epoch: int) -> Listing:
    """A full permutation that depends only on its arguments, so any epoch's order is available at once.

    Every sample gets one 64-bit Philox word of the key (seed, epoch); the order of the words is the order
    of the samples. Ties, which are very unlikely among 2**64 values, fall back to the stored order.

    An order of more than `LISTED` samples is computed place by place (see `_scattered`), so it takes no memory.
    """
    if size > LISTED:
        keys = np.random.Philox(key=((epoch & _MASK64) << 64) | (seed & _MASK64)).random_raw(_ROUNDS)
        return Numbers(range(size), partial(_scattered, size, keys))
    words = np.random.Philox(key=((epoch & _MASK64) << 64) | (seed & _MASK64)).random_raw(size)
    return np.argsort(words, kind="stable")


def _scattered(size: int, keys: np.ndarray, places: np.ndarray) -> np.ndarray:
    """A keyed permutation of the numbers below `size`, at some places.

    A Feistel network over pairs of digits in the smallest base b with b * b >= size: each round adds a hash of one digit to the
    other. Numbers that end at `size` or above go through the network again until they are below it (about 2 in sqrt(size) do).
    """
    base = int(np.ceil(np.sqrt(size)))
    base += base * base < size
    numbers = np.array(places, np.uint64)
    again = np.arange(len(numbers))
    while len(again):
        high, low = np.divmod(numbers[again], np.uint64(base))
        for key in keys:
            high, low = low, (high + _hashed(low, key, base)) % np.uint64(base)
        numbers[again] = high * np.uint64(base) + low
        again = again[numbers[again] >= np.uint64(size)]
    return numbers.astype(np.int64)


def _hashed(values: np.ndarray, key: np.uint64, below: int) -> np.ndarray:
    """A number from 0 to `below` - 1 (less than 2**32) for each value: the mixing of MurmurHash 3, and its upper half."""
    words = values ^ key
    for factor in (np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)):
        words = (words ^ (words >> np.uint64(33))) * factor
    return ((words ^ (words >> np.uint64(33))) >> np.uint64(32)) * np.uint64(below) >> np.uint64(32)


class BufferDraws:
    """The random numbers of the shuffle buffer: `std::minstd_rand0` seeded through a `std::seed_seq`.

    `state` is one integer below 2**31, so a reader's state stays small.
    """

    __slots__ = ("state",)

    def __init__(self, state: int):
        self.state = state

    @classmethod
    def seeded(cls, seed: int) -> BufferDraws:
        """The generator of a reader's `seed`."""
        return cls(seed_sequence(seed & _MASK32, 4)[3] % _MINSTD_MODULUS or 1)

    def shuffle(self, order: np.ndarray, fill: int) -> np.ndarray:
        """`order` after a shuffle buffer of `fill` samples: each output is drawn from the next `fill` samples that are left."""
        items = order.tolist()
        count = len(items)
        for first, offsets in self._offsets(count, fill):
            for k, offset in enumerate(offsets, first):
                other = k + offset
                items[k], items[other] = items[other], items[k]
        return np.array(items, np.int64)

    def skip(self, count: int, fill: int) -> None:
        """Advance as `shuffle` of `count` samples would, without making an order."""
        for _ in self._offsets(count, fill):
            pass

    def _offsets(self, count: int, fill: int) -> Iterator[tuple[int, list[int]]]:
        """Blocks of buffer positions: for output k a uniform number below min(fill, count - k)."""
        k = 0
        while k < count:
            ranges = np.minimum(fill, count - np.arange(k, min(count, k + 65536)))
            values = _minstd_powers(len(ranges)) * self.state % _MINSTD_MODULUS
            scaling = (_MINSTD_MODULUS - 2) // ranges
            offsets = (values - 1) // scaling
            refused = np.flatnonzero(offsets >= ranges)  # a draw from the uneven end of the range is repeated
            good = int(refused[0]) if len(refused) else len(ranges)
            self.state = int(values[good if len(refused) else -1])
            yield k, offsets[:good].tolist()
            k += good


def _std_shuffle(order: np.ndarray, words: _Words, bits: int) -> np.ndarray:
    """`std::shuffle` of libstdc++ for a generator of `bits`-bit words."""
    items = order.tolist()
    for k, other in enumerate(_shuffle_targets(len(items), words, bits), 1):
        items[k], items[other] = items[other], items[k]
    return np.array(items, np.int64)


def _shuffle_targets(size: int, words: _Words, bits: int) -> list[int]:
    """For each of the positions 1, 2, ... size - 1, the position that it is exchanged with."""
    if size < 2:
        return []
    if (2**bits - 1) // size < size:  # too long for two positions from one word
        return _draw(np.arange(2, size + 1), words, bits).tolist()
    lead = _draw(np.array([2]), words, bits) if size % 2 == 0 else np.zeros(0, np.int64)
    k = np.arange(1 + len(lead), size, 2)
    pairs = _draw((k + 1) * (k + 2), words, bits)
    both = np.stack([pairs // (k + 2), pairs % (k + 2)], axis=1)
    return np.concatenate([lead, both.reshape(-1)]).tolist()


def _draw(limits: np.ndarray, words: _Words, bits: int) -> np.ndarray:
    """Uniform integers below each of `limits`: the high word of a product, drawn again where it is biased."""
    out = np.empty(len(limits), np.int64)
    done = 0
    while done < len(limits):
        block = limits[done : done + 4096].astype(np.uint64)
        high, low = _multiply(words.peek(len(block)), block, bits)
        good = len(block)
        for k in np.flatnonzero(low < block).tolist():
            if int(low[k]) < 2**bits % int(block[k]):
                good = k
                break
        out[done : done + good] = high[:good]
        done += good
        words.drop(good + (good < len(block)))
    return out


def _multiply(words: np.ndarray, limits: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """High and low word of words * limits, for words of 32 or 64 bits held in uint64."""
    half, mask = np.uint64(32), np.uint64(_MASK32)
    if bits == 32:
        product = words * limits
        return product >> half, product & mask
    bottom = (words & mask) * (limits & mask)
    cross = (words >> half) * (limits & mask)
    other = (words & mask) * (limits >> half)
    middle = (bottom >> half) + (cross & mask) + (other & mask)
    high = (words >> half) * (limits >> half) + (cross >> half) + (other >> half) + (middle >> half)
    return high, (middle << half) | (bottom & mask)


class _Words:
    """A generator's words, read in blocks and consumed one by one."""

    def __init__(self, blocks: Iterator[np.ndarray]):
        self._blocks = blocks
        self._ready = np.zeros(0, np.uint64)

    def peek(self, count: int) -> np.ndarray:
        while len(self._ready) < count:
            self._ready = np.concatenate([self._ready, next(self._blocks)])
        return self._ready[:count]

    def drop(self, count: int) -> None:
        self._ready = self._ready[count:]


def _words32(seed: int) -> Iterator[np.ndarray]:
    """The words of `std::mt19937(seed)`; NumPy's legacy seeding is the same initialisation."""
    state = np.random.RandomState(seed & _MASK32)
    while True:
        yield state.randint(0, 2**32, 4096, np.uint32).astype(np.uint64)


def _words64(seed: int) -> Iterator[np.ndarray]:
    """The words of `std::mt19937_64(seed)`."""
    length, middle = 312, 156
    state = [seed]
    for k in range(1, length):
        state.append((6364136223846793005 * (state[-1] ^ (state[-1] >> 62)) + k) & _MASK64)
    words = np.array(state, np.uint64)
    upper, lower = np.uint64(0xFFFFFFFF80000000), np.uint64(0x7FFFFFFF)
    one, twist = np.uint64(1), np.uint64(0xB5026F5AA96619E9)
    while True:
        # The recurrence reaches half the state ahead, so two vectorised halves replace the loop of 312.
        for low, high in ((0, middle), (middle, length)):
            following = np.take(words, np.arange(low + 1, high + 1), mode="wrap")
            mixed = (words[low:high] & upper) | (following & lower)
            far = np.take(words, np.arange(low + middle, high + middle), mode="wrap")
            words[low:high] = far ^ (mixed >> one) ^ np.where(mixed & one, twist, np.uint64(0))
        out = words ^ ((words >> np.uint64(29)) & np.uint64(0x5555555555555555))
        out ^= (out << np.uint64(17)) & np.uint64(0x71D67FFFEDA60000)
        out ^= (out << np.uint64(37)) & np.uint64(0xFFF7EEE000000000)
        yield out ^ (out >> np.uint64(43))


def seed_sequence(seed: int, count: int) -> list[int]:
    """`std::seed_seq{seed}.generate` for a result of `count` words (two and more)."""
    seed &= _MASK32
    words = [0x8B8B8B8B] * count
    reach = 11 if count >= 623 else 7 if count >= 68 else 5 if count >= 39 else 3 if count >= 7 else (count - 1) // 2
    p = (count - reach) // 2
    q = p + reach
    rounds = max(2, count)

    def mix(value: int) -> int:
        return (value ^ (value >> 27)) & _MASK32

    for k in range(rounds):
        a, b, c = k % count, (k + p) % count, (k + q) % count
        first = 1664525 * mix(words[a] ^ words[b] ^ words[a - 1]) & _MASK32
        second = (first + (1 if k == 0 else a + seed if k == 1 else a)) & _MASK32
        words[b] = (words[b] + first) & _MASK32
        words[c] = (words[c] + second) & _MASK32
        words[a] = second
    for k in range(rounds, rounds + count):
        a, b, c = k % count, (k + p) % count, (k + q) % count
        first = 1566083941 * mix((words[a] + words[b] + words[a - 1]) & _MASK32) & _MASK32
        second = (first - a) & _MASK32
        words[b] ^= first
        words[c] ^= second
        words[a] = second
    return words


_powers = np.array([_MINSTD_FACTOR], np.int64)


def _minstd_powers(count: int) -> np.ndarray:
    """The powers 1, 2, ... of the generator's factor modulo its modulus. The table grows by doubling and is cached."""
    global _powers
    table = _powers
    while len(table) < count:
        table = np.concatenate([table, table * int(table[-1]) % _MINSTD_MODULUS])
    _powers = table
    return table[:count]
