"""The order of the samples. Pure: nothing here reads data, starts a thread or knows a reader.

A reader's samples form one endless *stream*. The stream is a chain of *visits*: visit v is one pass over the shard
of this process (shard `shard_id + v` when shards rotate). An *order* holds the samples of each visit; a `NumberStream` cuts
the chain into batches. With `pad_last_batch` a visit is padded with its last sample to the size of the largest shard and to
whole batches; without it a batch that a visit cannot fill continues in the next visit, as in DALI. With a `LastBatch` other
than "fill" no batch crosses visits: the last one of a visit is smaller, or left out, and nothing is padded.

A place in the stream is a `Position` of three integers, so saving and restoring it costs nothing: `visit`, `offset`
(samples of the visit already delivered) and `draw` (the state of the shuffle buffer's generator at the visit's start).
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from ndd.readers.sampling.numbers import Listing, counted, joined, taken
from ndd.readers.sampling.permutation import BufferDraws, global_order, reshuffled, shuffled_once

LastBatch = Literal["fill", "partial", "drop"]


class Position(NamedTuple):
    """A place in the stream of samples."""

    visit: int = 0
    offset: int = 0
    draw: int | None = None


class Share(NamedTuple):
    """The batches of an epoch that a worker process of a DataLoader delivers: every `count`th, from `index` on."""

    index: int = 0
    count: int = 1


@dataclass(frozen=True)
class Shards:
    """The division of `size` samples among `count` processes, and the part of this process in each visit."""

    size: int
    count: int = 1
    index: int = 0
    stick: bool = False
    pad: bool = False
    even: bool = (
        False  # all processes make the same number of steps in an epoch, though their parts may differ by a sample
    )
    interleaved: bool = False  # round robin: sample k of an epoch belongs to process k % count

    @property
    def place(self) -> list[int]:
        """The shard and the number of shards, as in saved states."""
        return [self.index, self.count]

    @property
    def largest(self) -> int:
        """The number of samples in the largest shard."""
        return -(-self.size // self.count)

    def part(self, shard: int) -> range:
        """The places of a shard's samples in an order of all."""
        if self.interleaved:
            return range(shard, self.size, self.count)
        return range(self.size * shard // self.count, self.size * (shard + 1) // self.count)

    def at(self, visit: int) -> int:
        """The shard of a visit when shards rotate."""
        return self.index if self.stick else (self.index + visit) % self.count


class Order:
    """The samples of each visit. The methods are pure functions of their arguments, even if an order caches."""

    rotates = True  # to the next shard from visit to visit, unless `stick`

    def __init__(self, shards: Shards):
        self.shards = shards

    @cached_property
    def unpadded(self) -> Order:
        """The same order with nothing repeated."""
        if not self.shards.pad:
            return self
        other = copy.copy(self)
        other.shards = replace(self.shards, pad=False)
        return other

    def length(self, visit: int) -> int:
        """The number of samples of a visit, including those that pad it to the largest shard."""
        return self.shards.largest if self.shards.pad else len(self.part(visit))

    def total(self, visit: int) -> int:
        """The number of samples of this visit in all processes together."""
        return self.shards.size

    def is_rest(self, visit: int) -> bool:
        """Whether a visit is the rest of one that other processes have begun."""
        return False

    def counted(self, visit: int, last: LastBatch) -> int:
        """The number of samples that determines the number of batches: that of this process; or, if all processes make the same
        number of steps, that of the largest part ("drop": the smallest)."""
        if not self.shards.even or self.shards.pad:
            return self.length(visit)
        share, rest = divmod(self.total(visit), self.shards.count)
        return share if last == "drop" or not rest else share + 1

    def part(self, visit: int) -> range:
        """The places of this process's samples in a visit."""
        return self.shards.part(self.shards.at(visit) if self.rotates else self.shards.index)

    def whole(self, visit: int) -> Listing:
        """The samples of a visit in all processes together, for an interleaved order."""
        raise NotImplementedError

    def draw_at(self, visit: int) -> int | None:
        """The state of the shuffle buffer's generator at the start of a visit, if there is one."""
        return None

    def visit(self, number: int, draw: int | None) -> tuple[Listing, int | None]:
        """The samples of a visit that starts with generator state `draw`, and the state after it."""
        return counted(self.part(number)), None


class Buffered(Order):
    """`random_shuffle`: each shard passes through a buffer of `fill` samples from which the next one is drawn.

    With `permuted` (single files, but not containers, which are read in stored order) one fixed permutation of all samples comes
    first and is then cut into shards. Equal to DALI's order for the same seed.
    """

    def __init__(self, shards: Shards, fill: int, seed: int, permuted: bool = True):
        super().__init__(shards)
        self._fill = fill
        self._seed = seed
        self._permuted = permuted
        self._base: np.ndarray | None = None

    def draw_at(self, visit: int) -> int:
        """The state after all draws of the earlier visits."""
        draws = BufferDraws.seeded(self._seed)
        for number in range(visit):
            draws.skip(len(self.part(number)), self._fill)
        return draws.state

    def visit(self, number: int, draw: int | None) -> tuple[np.ndarray, int | None]:
        """The shard's part of the base order, through the buffer."""
        if self._base is None:
            self._base = shuffled_once(self.shards.size) if self._permuted else np.arange(self.shards.size)
        draws = BufferDraws(self.draw_at(number) if draw is None else draw)
        part = self.part(number)
        items = draws.shuffle(self._base[part.start : part.stop], self._fill)
        return items, draws.state


class Reshuffled(Order):
    """`shuffle_after_epoch`: every visit shuffles the order of the previous visit, or with `afresh` the stored order. Each process
    takes its share, so an epoch over all processes has every sample once. Equal to DALI's order for the same seed."""

    rotates = False

    def __init__(self, shards: Shards, seed: int, afresh: bool = False):
        super().__init__(shards)
        self._seed, self._afresh = seed, afresh
        self._last: tuple[int, np.ndarray] = (-1, np.arange(shards.size))

    def visit(self, number: int, draw: int | None) -> tuple[np.ndarray, int | None]:
        """This process's share of the permutation; shuffles once for each visit since the last call."""
        last, order = self._last
        if number != last and self._afresh:
            last, order = number - 1, np.arange(self.shards.size)
        elif number < last:  # backwards: each order builds on the previous one, so start again
            last, order = -1, np.arange(self.shards.size)
        for epoch in range(last + 1, number + 1):
            order = reshuffled(order, self._seed, epoch + 1)
        self._last = number, order
        part = self.part(number)
        return order[part.start : part.stop], None


class Global(Order):
    """`shuffle="global"`: an independent full permutation for each visit, available at once for any visit. Each process takes its
    share. With `stick` only the samples of the shard are permuted.

    With shard="auto" the samples go to the processes round robin. So the samples of a step are the same for any number of
    processes with the same global batch size.
    """

    rotates = False

    def __init__(self, shards: Shards, seed: int):
        super().__init__(replace(shards, interleaved=shards.even and not shards.stick))
        self._seed = seed

    def whole(self, visit: int) -> Listing:
        """Permutation `visit`."""
        return global_order(self.shards.size, self._seed, visit)

    def visit(self, number: int, draw: int | None) -> tuple[Listing, int | None]:
        """This process's share of permutation `number`."""
        part = self.part(number)
        if self.shards.stick:
            return joined([global_order(len(part), self._seed, number)], part.start), None
        return self.whole(number)[part.start : part.stop : part.step], None


class Sampled(Order):
    """`sampler=`: the user's indices, one list for each visit, cut into shares like any other order."""

    rotates = False

    def __init__(self, shards: Shards, sampler: Any):
        super().__init__(shards)
        self._sampler = sampler
        self._last: tuple[int, np.ndarray] | None = None

    def length(self, visit: int) -> int:
        """The length of this process's share of the sampler's list, including padding."""
        return self._share(visit).length(0)

    def total(self, visit: int) -> int:
        """The length of the sampler's list."""
        return len(self._indices(visit))

    def visit(self, number: int, draw: int | None) -> tuple[np.ndarray, int | None]:
        """This process's share of the sampler's list."""
        part = self._share(number).part(0)
        return self._indices(number)[part.start : part.stop], None

    def _share(self, visit: int) -> Order:
        shards = self.shards
        return Order(Shards(len(self._indices(visit)), shards.count, shards.index, stick=True, pad=shards.pad))

    def _indices(self, visit: int) -> np.ndarray:
        if self._last is None or self._last[0] != visit:
            self._last = visit, self._checked(sampler_indices(self._sampler, visit))
        return self._last[1]

    def _checked(self, indices: np.ndarray) -> np.ndarray:
        size = self.shards.size
        wrong = indices[(indices < 0) | (indices >= size)]
        if len(wrong):
            raise IndexError(f"sampler: expected indices from 0 to {size - 1}, got {int(wrong[0])}")
        if len(indices) < self.shards.count:
            raise ValueError(
                f"sampler: expected at least one index for each of {self.shards.count} shard(s), got {len(indices)}"
            )
        return indices


def check_sampler(reader: str, sampler: Any) -> None:
    """Raises TypeError for an object that cannot be iterated again in every epoch."""
    if callable(sampler) and not hasattr(sampler, "__iter__"):
        return
    if not isinstance(sampler, Iterable) or iter(sampler) is sampler:
        raise TypeError(
            f"{reader}: sampler: expected a sequence of indices, an object that can be iterated again at each epoch (such as a "
            f"torch Sampler), or a function of the epoch number, got {type(sampler).__name__}"
        )


def sampler_indices(sampler: Any, epoch: int) -> np.ndarray:
    """The indices of a user's sampler for an epoch."""
    indices: Any = sampler
    if callable(sampler) and not hasattr(sampler, "__iter__"):
        indices = sampler(epoch)
    elif hasattr(sampler, "set_epoch"):
        sampler.set_epoch(epoch)
    values = indices if hasattr(indices, "__array__") else list(indices)
    if not hasattr(values, "__array__") and any(isinstance(value, list | tuple) for value in values):
        raise TypeError(
            "sampler: expected one integer index for each sample (not a batch sampler), got batches of them "
            f"({type(indices).__name__}): pass the sampler of the samples; next_epoch(batch_size=..., last_batch=...) makes "
            "the batches"
        )
    listed = np.asarray(values)
    if listed.ndim != 1 or (len(listed) and listed.dtype.kind not in "iu"):
        raise TypeError(
            "sampler: expected one integer index for each sample (not a batch sampler), "
            f"got {listed.dtype} of shape {listed.shape}"
        )
    return listed.astype(np.int64)


class _Visit(NamedTuple):
    number: int
    draw: int | None
    items: Listing
    next_draw: int | None
    length: int


class NumberStream:
    """The endless stream of samples of an order, cut into batches of `batch`, from a position on."""

    def __init__(self, order: Order, batch: int, position: Position, last: LastBatch = "fill"):
        self._order = order if last == "fill" else order.unpadded
        self._batch = batch
        self._last: LastBatch = last
        self._offset = position.offset
        self._visit = self._opened(position.visit, position.draw)

    @property
    def position(self) -> Position:
        """Where the next batch starts."""
        if self._last != "fill" and self._rest < self._least:
            return Position(self._visit.number + 1, 0, self._visit.next_draw)
        return Position(self._visit.number, self._offset, self._visit.draw)

    def take(self) -> np.ndarray:
        """The sample numbers of the next batch. If the order raises, the stream does not move."""
        if self._last != "fill":
            return self._take_inside()
        visit, offset = self._visit, self._offset
        parts, missing = [], self._batch
        while missing:
            if offset >= visit.length:
                visit, offset = self._opened(visit.number + 1, visit.next_draw), 0
            part = taken(visit.items, offset, offset + missing)
            if self._order.shards.pad and len(part) < missing:
                part = np.concatenate([part, np.full(missing - len(part), visit.items[-1])])
            offset += len(part)
            missing -= len(part)
            parts.append(part)
        self._visit, self._offset = visit, offset
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    @property
    def _rest(self) -> int:
        """The number of samples of the visit that are left."""
        return self._visit.length - self._offset

    @property
    def _least(self) -> int:
        """The smallest batch."""
        return self._batch if self._last == "drop" else 1

    def _take_inside(self) -> np.ndarray:
        """A batch that does not go beyond the visit."""
        if self._rest < self._least:
            visit = self._opened(self._visit.number + 1, self._visit.next_draw)
            check_not_all_dropped(visit.length, self._batch, self._last)
            self._visit, self._offset = visit, 0
        count = self._batch
        if self._last == "partial" and count > 1 and self._rest == count:
            # Other processes have one more sample, and so one more batch: this one delivers its last sample in an extra batch.
            count -= self._order.counted(self._visit.number, "partial") > self._visit.length
        items = taken(self._visit.items, self._offset, self._offset + count)
        self._offset += len(items)
        return items

    def _opened(self, number: int, draw: int | None) -> _Visit:
        draw = self._order.draw_at(number) if draw is None else draw
        items, next_draw = self._order.visit(number, draw)
        length = self._order.counted(number, "drop") if self._last == "drop" else self._order.length(number)
        return _Visit(number, draw, items, next_draw, length)


class EpochOver(Exception):
    """A worker asks for more batches than it has in this epoch."""


class EveryNth:
    """The stream of one of several workers, without the batches of the others.

    Args:
        stream: the stream of all batches.
        skip: the number of batches before this worker's first one.
        count: the number of workers.
        own: the number of batches that this worker has left in the epoch; None for an endless stream.
    """

    def __init__(self, stream: NumberStream, skip: int, count: int, own: int | None):
        self._stream = stream
        self._skip = skip
        self._count = count
        self._own = own

    @property
    def position(self) -> Position:
        """The place after the last batch that was taken."""
        return self._stream.position

    def take(self) -> np.ndarray:
        """The sample numbers of this worker's next batch; EpochOver at the end."""
        if self._own == 0:
            raise EpochOver
        while self._skip:
            self._stream.take()
            self._skip -= 1
        numbers = self._stream.take()
        self._skip = self._count - 1
        if self._own is not None:
            self._own -= 1
        return numbers


def place_after(order: Order, position: Position, steps: int, batch: int) -> Position:
    """The place after `steps` full batches ("fill"), computed without the orders of the visits."""
    visit, offset = position.visit, position.offset
    if order.shards.pad:
        while steps > (inside := max(0, -(-(order.length(visit) - offset) // batch))):
            steps, visit, offset = steps - inside, visit + 1, 0
        offset += steps * batch
    else:
        offset += steps * batch
        while offset > (length := order.length(visit)):
            visit, offset = visit + 1, offset - length
    return Position(visit, offset, position.draw if visit == position.visit else None)


def promised(order: Order, visit: int, batch: int, last: LastBatch) -> int:
    """The number of samples of a visit that determines its number of batches."""
    order = order if last == "fill" else order.unpadded
    single = last == "partial" and batch == 1  # one sample a step: the processes cannot make the same number of steps
    return order.length(visit) if single else order.counted(visit, last)


def epoch_batches(order: Order, epoch: int, batch: int, last: LastBatch = "fill", taken: int = 0) -> int:
    """The number of batches of `batch` samples in epoch `epoch`, after its first `taken` samples."""
    length = promised(order, epoch, batch, last) - taken
    return length // batch if last == "drop" else -(-length // batch)


def taken_inside(order: Order, visit: int, batch: int, steps: int, last: LastBatch) -> int:
    """The number of samples in the first `steps` batches of a visit, for epochs that end with the visit."""
    length = order.counted(visit, "drop") if last == "drop" else order.length(visit)
    taken = min(steps * batch, length)
    # These would be all samples, but other processes make one more step (see `NumberStream`), so one sample is left for it.
    early = last == "partial" and batch > 1 and steps * batch == length and order.counted(visit, "partial") > length
    return taken - early


def check_not_all_dropped(length: int, batch: int, last: LastBatch) -> None:
    """Raises ValueError for an epoch without a whole batch if only whole batches are delivered."""
    if last == "drop" and length < batch:
        raise ValueError(
            f'last_batch="drop": the epoch has {length} samples, fewer than batch_size={batch}, so it has no batch: use a '
            'smaller batch_size or last_batch="partial"'
        )
