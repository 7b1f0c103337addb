"""Objects that GPU decodes reuse: decoders by batch size, and memory and handles for running batches."""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ndd._compiled.sample_loops import loop_over_samples
from ndd._compiled.thread_team import ALONE, joined
from ndd._cuda.event import recorded
from ndd._cuda.launch import pinned_empty
from ndd._execution.memoize import Memoized
from ndd._lookahead.threads import is_ahead, is_relaxed
from ndd._operator import Call, Operand
from ndd._tensor.small_arrays import few_zeros
from ndd.decoders.jpeg import batch_headers
from ndd.decoders.jpeg.batch_headers import FACTS
from ndd.decoders.nvimgcodec import c_api, calls
from ndd.decoders.nvimgcodec.c_api import Decoder, Library, Pictures

# The number of decoders that work at once, and the threads of each. Measured on an H200 with 16 cores, 256
# ImageNet JPEGs (194 of them 4:4:4), by `python -m ndd bench loop --device gpu`. Only decoding, ahead of the loop, batches of
# 64: two decoders of 6 threads 23,200 images/s, of 7 23,400, one of 12 18,800, of 14 19,100, three of 5 22,400; batches of
# 256: one decoder of 12 to 14 threads 25,500 to 26,200, two 21,800 to 23,900. With random_resized_crop after decoding, batches
# of 64: two of 6 threads 18,500, of 7 17,400, of 5 17,800, three of 5 18,000, one of 12 16,700: Python needs a core too. One
# decoder suits large pictures too: 64 of 12 million pixels, 3.5 MB each, 1,740 images/s by one of 12 threads, 1,610 of 16,
# 1,510 by two of 8, 1,220 of 6. A call that was not run ahead has the machine to itself: a batch of 64 takes 6.8 ms by one of
# two decoders of 6 threads, 5.4 by one of 12, 6.1 of 14, 6.7 of 16; one of 128 12.6, 9.8, 9.1 and 9.6; one of 8 1.9, 2.1, 2.7
# and 2.7.
_PAIR, _ONE = (2, 6 / 16), (1, 12 / 16)
_RELAXED_THREADS = 2  # beside the engines, in a loop that takes batches more slowly than they are made
_MOST_OF_A_PAIR = 128  # pictures of a batch
_FEW = 16  # pictures; for so few six threads are enough
_LARGE = 1 << 25  # bytes: a batch of this size is treated as one of many pictures

# The share of a batch that goes to the JPEG engines by default: DALI's suits 16 cores. Measured on the same
# pictures by `python -m ndd bench loop --device gpu --threads T --hw-load SHARE`, with random_resized_crop after it and T of
# the machine's cores, images/s in batches of 64: two cores 3,670 with 0.65, 7,550 with 0.8, 14,600 with 1; four 7,630, 14,800
# and 20,400; eight 17,600, 20,900 and 21,600, with 0.85 21,200 and 0.9 21,700; sixteen 26,300, 23,800. Engines alone, of which
# an H200 has seven, are fastest for few pictures: 8 in 1.3 ms instead of 2.5, 16 in 1.7 instead of 2.7, 32 in 2.4 instead of
# 3.0; ahead of the loop 22,000 images/s in batches of 32 instead of 19,700. A call that was not run ahead, 64 pictures: four
# cores 7.3 ms with 0.65, 3.9 with 0.8 and 4.0 with 1, eight 4.4, 3.9 and 4.0, sixteen 4.2, with 0.75 3.8; more pictures are
# best with 0.65 there, 128 in 7.1 ms instead of 7.4, 256 in 12.6 instead of 13.6. Windows of a twelfth and a quarter of the
# pictures take 4.64 and 4.77 ms with 0.75, 4.88 and 5.31 with 0.65 (H100, a slower machine). 64 of 12 million pixels: four
# cores 57.5 ms with 0.65, 49.6 with 0.8, 60.5 with 1; eight 44.4 with 0.5, 38.9 with 0.65, 50.0 with 0.8; sixteen 36.9 with
# 0.4, 40.9 with 0.65.
_UNSAID = np.float32(0.65)  # the default of `hw_decoder_load`
_SHARES = ((4, 1.0), (8, 0.85))  # up to this many threads
_LARGE_SHARES = ((2, 1.0), (4, 0.8), (8, 0.65))
_LARGE_SHARE = 0.4  # with more threads
_ENGINES_ALONE = 32  # pictures of a batch
_UNFORESEEN = (64, 0.75)  # for batches up to this many pictures in calls that were not run ahead

# The default size, in pixels, from which a GPU reads the Huffman codes of a picture that no engine decodes. DALI's number
# leaves photographs to the threads, which are faster beside engines: 22,500 images/s instead of 19,800 in batches of 64 by 16
# threads. Without engines the GPU is faster, 64 pictures, random_resized_crop after them (H100, `--hw-load 0`): 16 threads
# 5,810 images/s by themselves and 9,980 by the GPU, 8 3,200 and 3,270, 4 1,250 and 2,290, 2 1,100 and 2,030; batches of 256
# 6,410 and 9,990; a batch alone, 16 threads, 11.5 and 8.6 ms. The GPU is faster for large pictures in any case: 12 million
# pixels 1,650 images/s beside engines, 750 if the threads read them. No pixel differs.
_UNSAID_PIXELS = 1_000_000  # the default of `hybrid_huffman_threshold`
_PIXELS_WITHOUT_ENGINES = 0

_KEPT_POOLS = 8  # decoders hold threads, streams and page-locked memory, and a loop uses one or two kinds
_IDLE_PLACES = 6
_ALIGNMENT = 64
_take = loop_over_samples(batch_headers.take)


class Decoders:
    """Decoders of one kind, each for one thread at a time. They are created when they are needed, and again for a batch that is
    larger than all before, because a decoder's first batch fixes how many pictures of any batch go to the engines. One that
    began with 192 pictures decodes batches of 256 at 19,400 images/s, one that began with 256 at 25,700 (H200).

    Args:
        make: makes a decoder.
        count: the most decoders at a time.
    """

    def __init__(self, make: Callable[[], Decoder], count: int):
        self._make = make
        self._decoders: list[Decoder | None] = [None] * count
        self._handles = np.zeros(count, np.uint64)
        self._idle = os.pipe()  # the numbers of the idle ones, a byte each
        os.write(self._idle[1], bytes(range(count)))
        self._largest = 0  # the largest batch so far, within a sixteenth

    def decode(self, pictures: Pictures) -> np.ndarray:
        """Decodes the pictures as soon as a decoder is idle. Returns a flag for each that was decoded, bool `[N]`. A decoder
        that fails is replaced; if the next one fails too, nothing is decoded."""
        failures, mine = 0, -1
        if pictures.count > self._largest * 17 // 16:
            self._largest = pictures.count
            self._handles[:] = 0  # current users keep theirs; the next user creates a new one
        try:
            while failures < 2:
                status, mine = pictures.decode(self._handles, mine, self._idle)
                if status == 0:
                    mine = -1  # the kernel has given it back
                    return pictures.decoded
                if mine < 0:
                    break
                if status == calls.NOT_MADE:
                    self._give_up(mine)
                    decoder = self._decoders[mine] = self._make()
                    self._handles[mine] = decoder.handle  # type: ignore[call-overload]
                else:
                    failures += 1
                    self._give_up(mine)
        except RuntimeError:  # no decoder can be created
            pass
        finally:
            if mine >= 0:
                os.write(self._idle[1], bytes([mine]))
        return np.zeros(pictures.count, np.bool_)

    def _give_up(self, number: int) -> None:
        decoder, self._decoders[number], self._handles[number] = self._decoders[number], None, 0
        if decoder is not None:
            decoder.close()

    def close(self) -> None:
        """Closes the decoders. None may be in use."""
        for number in range(len(self._decoders)):
            self._give_up(number)
        for end in self._idle:
            os.close(end)


def _new_decoders(
    device_id: int | None, size_class: int, plan: tuple[int, float], threads: int, load: float, options: str
) -> Decoders:
    codec: Any = c_api.library()
    count, share = plan
    each = max(1, int(threads * share))
    return Decoders(lambda: Decoder(codec, device_id, each, load, options), count)


_pools = Memoized(_new_decoders, limit=_KEPT_POOLS)
atexit.register(_pools.clear)  # while the driver still works


def share(load: float, count: int, nbytes: int, threads: int) -> float:
    """The share of a batch of `count` JPEGs, `nbytes` in total, that goes to a GPU's JPEG engines: `load`, unless that is the
    default."""
    if load != _UNSAID:
        return load
    if is_relaxed():
        return 1.0
    if nbytes >= _LARGE:
        return next((measured for most, measured in _LARGE_SHARES if threads <= most), _LARGE_SHARE)
    if count <= _ENGINES_ALONE:
        return 1.0
    few = next((measured for most, measured in _SHARES if threads <= most), None)
    if few is not None:
        return few
    return _UNFORESEEN[1] if count <= _UNFORESEEN[0] and not is_ahead() else load


def huffman_threshold(pixels: int, load: float) -> int:
    """The size, in pixels, from which a GPU itself reads the Huffman codes of a JPEG: `pixels`, unless that is the default. It
    changes no pixel. `load`: the share of the engines that the user asks for."""
    return _PIXELS_WITHOUT_ENGINES if pixels == _UNSAID_PIXELS and load == 0 else pixels


def decoders(device_id: int | None, count: int, nbytes: int, threads: int, load: float, options: str) -> Any:
    """The decoders of one GPU for batches of about `count` pictures and `nbytes` bytes, for a `with` block. Each batch size has
    its own: decoders that began with batches of 64 decode batches of 256 at half the speed, see `Decoders`."""
    size_class = max(count - 1, 0).bit_length()
    most = _MOST_OF_A_PAIR if is_ahead() else _FEW
    threads = min(threads, _RELAXED_THREADS) if is_relaxed() else threads
    plan = _PAIR if 1 << size_class <= most and nbytes < _LARGE else _ONE
    return _pools.using(device_id, size_class, plan, threads, share(load, 1 << size_class, nbytes, threads), options)


class Staging:
    """Page-locked host memory for the encoded pictures of one batch at a time, one after the other."""

    def __init__(self) -> None:
        self._buffer = np.empty(0, np.uint8)
        self._starts = np.zeros(0, np.int64)
        self.sizes = np.zeros(0, np.int64)

    def take(self, operand: Operand, call: Call) -> np.ndarray:
        """Copies the pictures. Returns the facts in their headers, int64 `[N, FACTS]`, zeros where only Python can read them.
        The threads of a call that was not run ahead share the work, because they are idle otherwise."""
        self.sizes = np.ascontiguousarray(operand.sizes)
        room = (self.sizes + (_ALIGNMENT - 1)) & -_ALIGNMENT
        ends = np.add.accumulate(room)
        self._starts, total = ends - room, int(ends[-1])
        if total > len(self._buffer):
            self._buffer = pinned_empty(total + total // 4).numpy()
        facts, addresses = few_zeros((operand.n, FACTS), np.int64), np.ascontiguousarray(operand.pointers())
        arguments = np.arange(operand.n), (addresses, self.sizes, self._starts, (self._buffer,), facts)
        if is_ahead():
            joined(_take)(ALONE, 0, np.array([0]), operand.n, arguments)
        else:
            call.parallel_for(_take, arguments, operand.n, total, (operand, self._buffer))
        return facts

    def put(self, i: int, data: np.ndarray) -> None:
        """Replaces the bytes of picture i; the number of bytes stays the same."""
        self._buffer[self._starts[i] : self._starts[i] + len(data)] = data

    def addresses(self, samples: Any) -> np.ndarray:
        """The addresses of some pictures, int64; `samples` indexes an array of all."""
        return self._starts[samples] + self._buffer.__array_interface__["data"][0]


class Place:
    """The resources of one batch beside a decoder: memory for the encoded bytes, and handles of the pictures."""

    def __init__(self, codec: Library):
        self.staging = Staging()
        self.pictures = Pictures(codec)
        self.passed: Any = None  # an event; until it the GPU may be reading


class Places:
    """The places of a process in the order of their last use, one for each running batch."""

    def __init__(self) -> None:
        self._idle: deque[Place] = deque()
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def using(self, codec: Library, stream: Any) -> Iterator[Place]:
        """A place for one batch. No other batch gets it before `stream` has passed all work that the `with` block queues; the
        event `place.passed` marks that point."""
        place = self._taken() or Place(codec)
        try:
            yield place
        finally:
            place.passed = recorded(stream, place.passed)
            with self._lock:
                self._idle.append(place)

    def _taken(self) -> Place | None:
        with self._lock:
            if not self._idle:
                return None
            passed = self._idle[0].passed.query()
            if not passed and len(self._idle) < _IDLE_PLACES:
                return None
            place = self._idle.popleft()
        if not passed:
            place.passed.synchronize()
        return place


places = Memoized(Places)
