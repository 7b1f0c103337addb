"""The part of classic iterators that does not depend on a framework: the policy for the last batch, and the arithmetic of
epochs."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from enum import Enum
from typing import Any

__all__ = ["CountedEpochs", "Epochs", "LastBatchPolicy", "ReaderEpochs", "ceil_div", "shard_size"]


class LastBatchPolicy(Enum):
    """The policy for the last batch of an epoch if the samples do not fill it.

    * `FILL`: it is filled up with the samples that follow (or with the last one, if the reader pads).
    * `DROP`: it is left out.
    * `PARTIAL`: it is cut to the samples of the epoch.
    """

    FILL = 0
    DROP = 1
    PARTIAL = 2


def ceil_div(a: int, b: int) -> int:
    """`a / b` rounded up."""
    return -(-a // b)


def shard_size(n: int, shards: int, shard: int) -> int:
    """The number of `n` samples that are in shard `shard`: floor((shard+1) n / shards) - floor(shard n / shards)."""
    return (shard + 1) * n // shards - shard * n // shards


class Epochs:
    """The progress of the epochs as plain values."""

    _PLACE: tuple[str, ...] = ("counter",)

    def place(self) -> dict[str, Any]:
        """The state for a checkpoint."""
        return {name: copy.copy(getattr(self, name)) for name in self._PLACE}

    def restore(self, place: dict[str, Any]) -> None:
        """Restores a position; ValueError for a position of other epochs."""
        for name in self._PLACE:
            here, stored = getattr(self, name), place.get(name)
            numbers = stored if isinstance(stored, list) else [stored]
            shape = len(here) if isinstance(here, list) else 1
            if isinstance(stored, list) != isinstance(here, list) or [type(n) for n in numbers] != [int] * shape:
                raise ValueError(
                    f"The checkpoint is of another iterator: expected {name!r} such as {here}, got {stored!r}"
                )
        for name in self._PLACE:
            setattr(self, name, place[name])


class ReaderEpochs(Epochs):
    """Epochs of pipelines whose reader tells the number of samples.

    The counts are kept for all shards of the data set, not only for the pipelines at hand, so that every rank of a
    distributed job takes the same number of steps.
    """

    _PLACE = ("size", "counter", "epoch", "credit")

    def __init__(
        self,
        n: int,
        shards: int,
        ids: Sequence[int],
        batch_size: int,
        policy: LastBatchPolicy,
        padded: bool,
        stick: bool,
    ):
        self.n, self.shards, self.ids = n, shards, list(ids)
        self.batch_size, self.policy, self.padded, self.stick = batch_size, policy, padded, stick
        self.epoch = 0
        self.credit = [0] * shards  # samples of its coming shard that a rank has read already (FILL, unpadded)
        self.counter = 0
        if policy is LastBatchPolicy.DROP:
            self.size = n // shards
        elif padded:
            self.size = ceil_div(n, shards)
        else:
            self.size = ceil_div(ceil_div(n, shards), batch_size) * batch_size

    def __len__(self) -> int:
        if self.policy is LastBatchPolicy.DROP:
            return self.size // self.batch_size
        return ceil_div(self.size, self.batch_size)

    def finished(self) -> bool:
        """Whether the epoch has no further batch to run."""
        return self.counter >= self.size

    def drops_next(self) -> bool:
        """Whether the epoch ends with the next batch, which is run and dropped."""
        dropping = self.policy is LastBatchPolicy.DROP
        return dropping and self.counter < self.size < self.counter + self.batch_size

    def advance(self) -> bool:
        """Counts a batch that was run; False if it is to be dropped and the epoch ends."""
        self.counter += self.batch_size
        return self.policy is not LastBatchPolicy.DROP or self.counter <= self.size

    def rows(self, pipeline: int) -> int:
        """The number of rows of the batch just counted that belong to the epoch."""
        if self.policy is not LastBatchPolicy.PARTIAL:
            return self.batch_size
        own = shard_size(self.n, self.shards, self._shard_of(self.ids[pipeline]))
        return max(0, min(self.batch_size, own - (self.counter - self.batch_size)))

    def pipelines_with_rows(self, count: int) -> int:
        """The number of `count` pipelines that return a dict: all."""
        return count

    def _shard_of(self, rank: int) -> int:
        return rank if self.stick else (rank + self.epoch) % self.shards

    def reset(self) -> None:
        """Begins the next epoch."""
        carries = self.policy is LastBatchPolicy.FILL and not self.padded
        read, self.counter = self.counter, 0
        while True:
            for rank in range(self.shards):
                own = shard_size(self.n, self.shards, self._shard_of(rank))
                self.credit[rank] = self.credit[rank] + read - own if carries else 0
            self.epoch += 1
            if not carries:
                return
            left = max(
                shard_size(self.n, self.shards, self._shard_of(rank)) - self.credit[rank] for rank in range(self.shards)
            )
            if left > 0:
                self.size = ceil_div(left, self.batch_size) * self.batch_size
                return
            read = 0  # this epoch has been read already, by the batches before


class CountedEpochs(Epochs):
    """Epochs of a number of samples that the user gave (`size`), over all pipelines; -1: until the data ends."""

    def __init__(self, size: int, batch_size: int, pipelines: int, policy: LastBatchPolicy, padded: bool):
        self.size, self.pipelines = size, pipelines
        self.policy = LastBatchPolicy.FILL if size < 0 else policy
        self.padded = False if size < 0 else padded
        self.set_batch_size(batch_size)
        self.counter = 0

    def set_batch_size(self, batch_size: int) -> None:
        """Sets the size of batches when the first one has come."""
        self.batch_size, self.step = batch_size, batch_size * self.pipelines

    def __len__(self) -> int:
        if self.size < 0:
            return 0
        if self.policy is LastBatchPolicy.DROP:
            return self.size // self.step
        return ceil_div(self.size, self.step)

    def finished(self) -> bool:
        """Whether the epoch has no further batch to run."""
        return 0 <= self.size <= self.counter

    def drops_next(self) -> bool:
        """Whether the epoch ends with the next batch, which is run and dropped."""
        dropping = self.policy is LastBatchPolicy.DROP
        return dropping and self.counter < self.size < self.counter + self.step

    def advance(self) -> bool:
        """Counts a batch that was run; False if it is to be dropped and the epoch ends."""
        self.counter += self.step
        return self.policy is not LastBatchPolicy.DROP or self.size < 0 or self.counter <= self.size

    def _left(self) -> int:
        return self.size - (self.counter - self.step)

    def rows(self, pipeline: int) -> int:
        """The number of rows of the batch just counted that belong to the epoch."""
        if self.policy is not LastBatchPolicy.PARTIAL:
            return self.batch_size
        return max(0, min(self.batch_size, self._left() - pipeline * self.batch_size))

    def pipelines_with_rows(self, count: int) -> int:
        """The number of `count` pipelines that return a dict: with PARTIAL those that have a row left."""
        if self.policy is not LastBatchPolicy.PARTIAL:
            return count
        return min(count, ceil_div(max(self._left(), 0), self.batch_size))

    def reset(self) -> None:
        """Begins the next epoch."""
        carries = self.policy is LastBatchPolicy.FILL and not self.padded and self.size > 0
        self.counter = self.counter % self.size if carries else 0
