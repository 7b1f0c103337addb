"""Which sample comes when. Pure: nothing here reads data, starts a thread or knows a reader.

A reader's samples form one endless *stream*. The stream is a chain of *visits*: visit v is one pass over the shard
of this process (shard `shard_id + v` when shards rotate). An *order* says what a visit holds; a `NumberStream` cuts the
chain into batches. With `pad_last_batch` a visit is filled with its last sample up to the largest shard and to whole
batches; without it a batch that a visit cannot fill goes on into the next visit, as in DALI. With another `LastBatch`
than "fill" no batch goes on: a visit's last one is smaller, or left out, and nothing is padded.

A place in the stream is a `Position` of three integers, so it is saved and restored at no cost: `visit`, `offset`
(samples of the visit already given) and `draw` (the state of the shuffle buffer's generator at the visit's start).
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
    """The batches of an epoch that a process gives: every `count`th, in the worker processes of a DataLoader."""

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
    even: bool = False  # all processes make equally many steps in an epoch, though their parts may differ by a sample
    interleaved: bool = False  # the processes take turns: sample k of an epoch is that of process k % count

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
        """The number of samples that determines the number of batches: that of this process; or, if all processes make equally
        many steps, the largest of all ("drop": the smallest)."""
        if not self.shards.even or self.shards.pad:
            return self.length(visit)
        share, rest = divmod(self.total(visit), self.shards.count)
        return share if last == "drop" or not rest else share + 1

    def part(self, visit: int) -> range:
        """The places of those samples of a visit that belong to this process."""
        return self.shards.part(self.shards.at(visit) if self.rotates else self.shards.index)

    def whole(self, visit: int) -> Listing:
        """The samples of a visit in all processes together, where these take turns."""
        raise NotImplementedError

    def draw_at(self, visit: int) -> int | None:
        """The state of the shuffle buffer's generator at the start of a visit, if there is one."""
        return None

    def visit(self, number: int, draw: int | None) -> tuple[Listing, int | None]:
        """The samples of a visit that starts with generator state `draw`, and the state after it."""
        return counted(self.part(number)), None


class Buffered(Order):
    """`random_shuffle`: each shard passes through a buffer of `fill` samples from which the next one is drawn.

    With `permuted` (single files; not containers, which are read in the order they are stored) one fixed permutation
    of all samples comes first and is then cut into shards. Equal to DALI's order for the same seed.
    """

    def __init__(self, shards: Shards, fill: int, seed: int, permuted: bool = True):
        super().__init__(shards)
        self._fill = fill
        self._seed = seed
        self._permuted = permuted
        self._base: np.ndarray | None = None

    def draw_at(self, visit: int) -> int:
        """The state after all draws of the visits before."""
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
    """`shuffle_after_epoch`: every visit shuffles what the one before left, or with `afresh` the stored order; each process
    keeps its share of it, so one epoch over all processes sees every sample once. Equal to DALI's order for the same seed."""

    rotates = False

    def __init__(self, shards: Shards, seed: int, afresh: bool = False):
        super().__init__(shards)
        self._seed, self._afresh = seed, afresh
        self._last: tuple[int, np.ndarray] = (-1, np.arange(shards.size))

    def visit(self, number: int, draw: int | None) -> tuple[np.ndarray, int | None]:
        """Our share of the permutation; shuffles as many times as visits lie between."""
        last, order = self._last
        if number != last and self._afresh:
            last, order = number - 1, np.arange(self.shards.size)
        elif number < last:  # gone back: each order builds on the one before, so start again
            last, order = -1, np.arange(self.shards.size)
        for epoch in range(last + 1, number + 1):
            order = reshuffled(order, self._seed, epoch + 1)
        self._last = number, order
        part = self.part(number)
        return order[part.start : part.stop], None


class Global(Order):
    """`shuffle="global"`: an independent full permutation for each visit, reached at once for any visit. Each process
    keeps its share of it. With `stick` the samples of the shard are permuted instead of all.

    With shard="auto" the processes take turns. So the samples that all of them give in a step are the same for any number of
    processes, if all their batches together are as large.
    """

    rotates = False

    def __init__(self, shards: Shards, seed: int):
        super().__init__(replace(shards, interleaved=shards.even and not shards.stick))
        self._seed = seed

    def whole(self, visit: int) -> Listing:
        """Permutation `visit`."""
        return global_order(self.shards.size, self._seed, visit)

    def visit(self, number: int, draw: int | None) -> tuple[Listing, int | None]:
        """Our share of permutation `number`."""
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
        """Our share of the sampler's list, padding included."""
        return self._share(visit).length(0)

    def total(self, visit: int) -> int:
        """The length of the sampler's list."""
        return len(self._indices(visit))

    def visit(self, number: int, draw: int | None) -> tuple[np.ndarray, int | None]:
        """Our share of the sampler's list."""
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


def check_sampler(sampler: Any) -> None:
    """TypeError for an object that cannot give a new list of indices in every epoch."""
    if callable(sampler) and not hasattr(sampler, "__iter__"):
        return
    if not isinstance(sampler, Iterable) or iter(sampler) is sampler:
        raise TypeError(
            "sampler: expected a sequence of indices, an object that can be iterated again at each epoch (such as a "
            f"torch Sampler), or a function of the epoch number, got {type(sampler).__name__}"
        )


def sampler_indices(sampler: Any, epoch: int) -> np.ndarray:
    """The indices that a user's sampler gives for an epoch."""
    indices: Any = sampler
    if callable(sampler) and not hasattr(sampler, "__iter__"):
        indices = sampler(epoch)
    elif hasattr(sampler, "set_epoch"):
        sampler.set_epoch(epoch)
    values = indices if hasattr(indices, "__array__") else list(indices)
    if not hasattr(values, "__array__") and any(isinstance(value, list | tuple) for value in values):
        raise TypeError(
            "sampler: expected one integer index for each sample (not a batch sampler), got batches of them "
            f"({type(indices).__name__}): give the sampler of the samples, batches are made by next_epoch(batch_size=..., "
            "last_batch=...)"
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
        """The sample numbers of the next batch. If the order fails, the stream stays where it was."""
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
        """The number of samples of the visit that were not given."""
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
            # Other processes have one sample more, and so one batch more: this one gives its last sample in a batch of its own.
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
    """A worker asked for more batches than it has in this epoch."""


class EveryNth:
    """The stream of one of several workers: the batches of the others are left out.

    Args:
        stream: the stream of all batches.
        skip: the number of batches before the first one of this worker.
        count: the number of workers.
        own: the number of batches that this worker has left in the epoch; None if there is no end.
    """

    def __init__(self, stream: NumberStream, skip: int, count: int, own: int | None):
        self._stream = stream
        self._skip = skip
        self._count = count
        self._own = own

    @property
    def position(self) -> Position:
        """The place after the batch that was taken last."""
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
    """The place after `steps` full batches ("fill"), computed without making the visits."""
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
    """The samples of a visit that the number of batches follows from."""
    order = order if last == "fill" else order.unpadded
    single = last == "partial" and batch == 1  # each sample once leaves no way to make equally many steps
    return order.length(visit) if single else order.counted(visit, last)


def epoch_batches(order: Order, epoch: int, batch: int, last: LastBatch = "fill", taken: int = 0) -> int:
    """How many batches of `batch` samples epoch `epoch` has, after the `taken` first samples."""
    length = promised(order, epoch, batch, last) - taken
    return length // batch if last == "drop" else -(-length // batch)


def taken_inside(order: Order, visit: int, batch: int, steps: int, last: LastBatch) -> int:
    """How many samples of a visit the first `steps` batches have, in epochs that end where it does."""
    length = order.counted(visit, "drop") if last == "drop" else order.length(visit)
    taken = min(steps * batch, length)
    # The last of them would have been our last one, but others make another step, see `NumberStream`.
    early = last == "partial" and batch > 1 and steps * batch == length and order.counted(visit, "partial") > length
    return taken - early


def check_not_all_dropped(length: int, batch: int, last: LastBatch) -> None:
    """ValueError for an epoch that has no whole batch, where only whole ones are given."""
    if last == "drop" and length < batch:
        raise ValueError(
            f'last_batch="drop": the epoch has {length} samples, fewer than batch_size={batch}, so that none would be '
            'given; take a smaller batch_size or last_batch="partial"'
        )
