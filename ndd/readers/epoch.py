"""`Epoch`: the iterator that `next_epoch` returns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from ndd.readers.base import Reader

Outputs = TypeVar("Outputs", covariant=True)


class Epoch(Generic[Outputs]):
    """One pass over a reader's shard. Iterate over it once; `len()` is how many samples or batches it has.

    Attributes:
        indices: the numbers, in the whole data set, of the samples given last.
    """

    __slots__ = ("_batch", "_ctx", "_generation", "_left", "_reader", "_total", "indices")

    def __init__(self, reader: Reader, batch: int | None, ctx: Any = None):
        self._reader = reader
        self._ctx = ctx
        self._batch = batch
        self._generation = reader._progress.generation
        self._left: int | None = None  # None until the first sample is asked for
        self._total: int | None = None
        self.indices: list[int] = []

    def __len__(self) -> int:
        if self._total is None:
            return self._reader._epoch_length(self._batch)
        return self._total

    def __iter__(self) -> Epoch[Outputs]:
        return self

    def __next__(self) -> Outputs:
        reader = self._reader
        if self._generation != reader._progress.generation:  # abandoned by reset() or set_state()
            raise StopIteration
        if self._left is None:
            self._left = self._total = reader._begin_epoch(self._batch)
        if not self._left:
            raise StopIteration
        step = reader._take(self._left - 1)
        self._left -= 1
        self.indices = step.numbers
        return reader._value(step, self._batch, self._ctx)
