"""`Epoch`: the iterator that `next_epoch` returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from torch.utils.data import IterableDataset, default_collate
from torch.utils.data._utils.collate import default_collate_fn_map

from ndd._tensor import Tensor
from ndd.decoders import BadSample
from ndd.readers.sampler import LastBatch

if TYPE_CHECKING:
    from ndd.readers.base import Reader
    from ndd.readers.handover import Held

Outputs = TypeVar("Outputs", covariant=True)


class _Iterating(Generic[Outputs]):
    """An epoch, or a loop over it: the hand-over of what comes next."""

    __slots__ = ()

    def _goes_on(self) -> Epoch[Outputs]:
        raise NotImplementedError

    def __next__(self) -> Outputs:
        epoch = self._goes_on()
        held, progress = epoch._following(), epoch._reader._progress
        # Nothing is called from here on, see `Held`; a method for these lines would be a call too (Python 3.10 looks after it).
        value, step = held.value, held.step
        if held.number > progress.number:
            progress.number, progress.position = held.number, step.position
        epoch._left -= 1  # type: ignore[operator]
        if epoch._generation == progress.generation:
            progress.left = epoch._left  # type: ignore[assignment]
            progress.epoch += not epoch._left
        epoch.indices, epoch.dropped = step.numbers, [*step.dropped]
        held.given, held.value, held.step, held.epoch = True, None, None, None
        return value


class Epoch(_Iterating[Outputs]):
    """One pass over a reader's shard; `len()` is how many samples or batches it has.

    A loop over an epoch that has ended (or that `reset()` or `set_state()` ended) is a new epoch, so that frameworks may
    take it again and again. A loop over one that was left begins anew too, but with `last_batch="fill"`, where it goes
    on where the one before stopped.

    For torch it is an `IterableDataset`, so that `DataLoader(epoch, batch_size=None)` and torchdata's
    `StatefulDataLoader` take it as it is. They need no workers (`num_workers=0`): the reader reads on threads of its own.
    (`DataLoader(reader, batch_size=4)` takes the reader as a map-style data set, whose samples it puts together to torch
    tensors.)

    Attributes:
        indices: the numbers, in the whole data set, of the samples given last.
        dropped: the broken records that `on_error="skip"` left out of the batch given last: `BadSample`s, whose index is
            the place that the sample would have had.
    """

    __slots__ = (
        "_batch", "_before", "_by_hand", "_ctx", "_generation", "_last", "_left", "_loops", "_reader", "_total", "_whole",
        "dropped", "indices",
    )  # fmt: skip

    def __init__(self, reader: Reader, batch: int | None, ctx: Any = None, last: LastBatch = "fill"):
        self._reader = reader
        self._ctx = ctx
        self._batch = batch
        self._last: LastBatch = last
        self._loops = 0  # how many were begun; with "fill" there is but one, this object
        self._whole = False  # a framework gave us a state
        self._by_hand = False  # `next(epoch)` was called: a loop goes on from there
        self._before: Callable[[], None] | None = None  # called before each batch is handed over
        self.indices: list[int] = []
        self.dropped: list[BadSample] = []
        self._renew()

    def _renew(self) -> None:
        self._generation = self._reader._progress.generation
        self._left: int | None = None  # None until the first sample is asked for
        self._total: int | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """For worker processes: the rest of this epoch, over a reader of their own."""
        return _remade, (type(self), self._reader, self._batch, self._ctx, self._last, self._whole)

    def __len__(self) -> int:
        if self._total is None or self._generation != self._reader._progress.generation:
            return self._reader._epoch_length(self._batch, self._last, self._whole)
        return self._total

    def state_dict(self) -> dict[str, str]:
        """The reader's `state_dict`: what training frameworks save of the loader that they were given."""
        return self._reader.state_dict()

    def load_state_dict(self, state: dict[str, str] | Sequence[dict[str, str]]) -> None:
        """The reader goes to a saved place; this epoch, or the next loop over it, is the rest of the one interrupted there.

        `len()` still counts the whole epoch: frameworks go on counting where they stopped.
        """
        self._reader.load_state_dict(state)
        self._whole = True
        self._renew()

    def __iter__(self) -> Iterator[Outputs]:
        ended = self._left == 0 or self._generation != self._reader._progress.generation
        if ended or (self._last != "fill" and not self._by_hand):
            self._renew()
        if self._last == "fill":
            return self
        self._loops += 1
        return _Loop(self, self._loops)

    def _goes_on(self) -> Epoch[Outputs]:
        self._by_hand = True
        return self

    def _following(self) -> Held:
        """What is to be handed over next, with its value."""
        reader = self._reader
        while True:
            with reader._entered():  # several threads may take batches of one epoch
                if self._generation != reader._progress.generation:  # abandoned by reset() or set_state()
                    self._by_hand = False
                    raise StopIteration
                if self._left is None:
                    reader._begin_epoch(self)
                if self._left <= reader._handover.outstanding(self):  # type: ignore[operator]
                    self._by_hand = False
                    raise StopIteration
                held = reader._hold(self._batch, self)
            if reader._ready(held, self._batch, self._ctx, self):
                if self._before is not None:
                    self._before()
                return held


def _remade(kind: type[Epoch[Any]], reader: Reader, batch: int | None, ctx: Any, last: LastBatch, whole: bool) -> Any:
    epoch = kind(reader, batch, ctx, last)
    epoch._whole = whole
    return epoch


def _collated(samples: list[Tensor], *, collate_fn_map: Any = None) -> Any:
    """Samples of a reader, where torch's DataLoader has put them together: one torch tensor."""
    return default_collate([sample.torch() for sample in samples])


IterableDataset.register(Epoch)
default_collate_fn_map[Tensor] = _collated  # type: ignore[index]


class _Loop(_Iterating[Outputs]):
    """One loop over an epoch, until the next one begins."""

    __slots__ = ("_epoch", "_number")

    def __init__(self, epoch: Epoch[Outputs], number: int):
        self._epoch = epoch
        self._number = number

    def __len__(self) -> int:
        return len(self._epoch)

    def __iter__(self) -> _Loop[Outputs]:
        return self

    def _goes_on(self) -> Epoch[Outputs]:
        if self._number != self._epoch._loops:
            raise StopIteration
        return self._epoch
