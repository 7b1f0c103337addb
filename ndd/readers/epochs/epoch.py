"""`Epoch`: the iterator that `next_epoch` returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from torch.utils.data import IterableDataset, default_collate
from torch.utils.data._utils.collate import default_collate_fn_map

from ndd._execution import observation
from ndd._tensor import Tensor
from ndd.decoders import BadSample
from ndd.readers.epochs import worker_log
from ndd.readers.sampling.sampler import LastBatch

if TYPE_CHECKING:
    from ndd.readers.epochs.in_flight import StepInFlight
    from ndd.readers.epochs.progress import Progress
    from ndd.readers.reader import Reader

Outputs = TypeVar("Outputs", covariant=True)


class Pass:
    """One pass over an epoch: the part that is left of it. A loop that starts again has another one.

    Attributes:
        left: the number of batches still to come; None until the first one is requested.
        total: the number of batches that it counts in all.
        generation, resets: of the reader's progress when it began.
        stride, after: the reader counts `stride` batches for each of `left`, and `after` after the last one: in a worker of
            a DataLoader, which gives every `stride`th batch only.
    """

    __slots__ = ("after", "generation", "left", "resets", "stride", "total")

    def __init__(self) -> None:
        self.left: int | None = None
        self.total = self.generation = self.resets = self.after = 0
        self.stride = 1

    def runs(self, progress: Progress) -> bool:
        """Whether it has begun and may go on."""
        return bool(self.left) and self.generation == progress.generation


class _Iterating(Generic[Outputs]):
    """An epoch, or a loop over it: returns the next batch."""

    __slots__ = ()

    def _goes_on(self) -> tuple[Epoch[Outputs], Pass]:
        raise NotImplementedError

    def __next__(self) -> Outputs:
        epoch, run = self._goes_on()
        watching, progress = observation.active, epoch._session.progress
        if watching is None:
            held = epoch._following(run)
        else:
            held = watching.take(epoch._session.name, epoch._following, run)
        # Nothing is called from here on, see `StepInFlight`. They form no method: Python 3.10 runs handlers after its call.
        value, step = held.value, held.step
        if held.number > progress.number:
            progress.number, progress.position = held.number, step.position
        run.left -= 1  # type: ignore[operator]
        if run.generation == progress.generation:
            progress.left = run.after + run.stride * run.left  # type: ignore[operator]
            progress.skip = run.stride - 1
            progress.epoch += not progress.left
        epoch.indices, epoch.dropped = step.numbers, [*step.dropped]
        held.delivered, held.value, held.step, held.run = True, None, None, None
        return value


class Epoch(_Iterating[Outputs]):
    """One pass over a reader's shard; `len()` is its number of samples or batches.

    A loop over an epoch that has ended (or that `reset()` or `set_state()` ended) is a new epoch, so that frameworks may
    loop over it again and again. A loop over an unfinished epoch begins anew, too, except with `last_batch="fill"`: then it
    continues where the previous one stopped. If a loop begins anew while another one is still running, perhaps in another
    thread, the other one gets a RuntimeError instead of its next batch. Threads share an epoch by sharing its iterator,
    `iter(epoch)`.

    For torch it is an `IterableDataset`, so that `DataLoader(epoch, batch_size=None)` and torchdata's
    `StatefulDataLoader` take it as it is. They need no workers (`num_workers=0`): the reader reads on threads of its own.
    With workers, worker w of n gives the batches w, w + n, w + 2n and so on of the epoch, whatever its ending, order
    and shard: the loader gives the same batches in the same order as without workers. Each loop over the loader is the next
    epoch after the reader's place, also after an unfinished loop. The reader in the main process stays where it is:
    `StatefulDataLoader.state_dict()` holds the places of the workers, each of which continues with its own batches.
    The same holds for an `IterableDataset` of your own that loops over a reader or epoch. A reader that is created in a worker
    reads what its arguments say. (On Windows every loop is the same epoch if the workers are not persistent.)
    (`DataLoader(reader, batch_size=4)` uses the reader as a map-style data set and collates its samples into torch
    tensors; its sampler says which worker reads what.)

    Attributes:
        indices: the numbers of the last samples in the whole data set.
        dropped: the broken records that `on_error="skip"` left out of the last batch: `BadSample`s, whose index is
            the place that the sample would have had.

    Args:
        reader: the reader.
        batch: samples in a batch; None: single samples.
        ctx: the `EvalContext` in which the reader computes; default: the current one.
        last: "fill", "partial" or "drop", as in `Reader.next_epoch`.

    >>> import ndd
    >>> reader = ndd.readers.File(files=[ndd.readers.__file__] * 3)
    >>> epoch = reader.next_epoch(batch_size=2, last_batch="partial")
    >>> len(epoch), [labels.torch().flatten().tolist() for _, labels in epoch], epoch.indices
    (2, [[0, 1], [2]], [2])
    """

    __slots__ = (
        "_batch",
        "_before",
        "_by_hand",
        "_ctx",
        "_last",
        "_pass",
        "_reader",
        "_session",
        "_whole",
        "dropped",
        "indices",
    )

    def __init__(self, reader: Reader, batch: int | None, ctx: Any = None, last: LastBatch = "fill"):
        self._reader = reader
        self._session = reader._session
        self._ctx = ctx
        self._batch = batch
        self._last: LastBatch = last
        self._whole = False  # a framework gave us a state
        self._by_hand = False  # `next(epoch)` was called: a loop goes on from there
        self._before: Callable[[], None] | None = None  # called before each batch is handed over
        self._pass = Pass()
        self.indices: list[int] = []
        self.dropped: list[BadSample] = []
        worker_log.keep()

    def __reduce__(self) -> tuple[Any, ...]:
        """For worker processes: the rest of this epoch, over a reader of their own."""
        return _remade, (type(self), self._reader, self._batch, self._ctx, self._last, self._whole)

    def __len__(self) -> int:
        run = self._pass
        if run.left is None or run.generation != self._session.progress.generation:
            return self._session.epoch_length(self._batch, self._last, self._whole)
        return run.total

    def state_dict(self) -> dict[str, str]:
        """The reader's `state_dict`, which training frameworks save for their loader."""
        return self._reader.state_dict()

    def load_state_dict(self, state: dict[str, str] | Sequence[dict[str, str]]) -> None:
        """The reader goes to a saved place; this epoch, or the next loop over it, is the rest of the one interrupted there.

        `len()` still counts the whole epoch: frameworks go on counting where they stopped.

        Args:
            state: a dict of `state_dict`, or a list of those of all ranks.
        """
        self._reader.load_state_dict(state)
        self._whole = True
        self._pass = Pass()
        self._session.arrive(self)

    def __iter__(self) -> Iterator[Outputs]:
        in_worker = self._session.arrive(self)
        alone = self._last == "fill" and not in_worker  # there is only one loop, this object
        runs = self._pass.runs(self._session.progress)
        if not (runs and (alone or self._by_hand)) and not (alone and self._pass.left is None):
            self._pass = Pass()
        return self if alone else _Loop(self, self._pass)

    def _goes_on(self) -> tuple[Epoch[Outputs], Pass]:
        self._by_hand = True
        return self, self._pass

    def _following(self, run: Pass) -> StepInFlight:
        """The next step, with its value."""
        session = self._session
        while True:
            with session.entered():  # several threads may take batches of one epoch
                if run.left is None:
                    session.begin_epoch(self, run)
                progress, left = session.progress, run.left or 0
                if run.generation != progress.generation and left:
                    self._by_hand = False
                    if run.resets == progress.resets:  # else the user wants it to end
                        raise RuntimeError(session.name + _ENDED)
                    raise StopIteration
                if left <= session.in_flight.outstanding(run):
                    self._by_hand = False
                    raise StopIteration
                held = session.next_step(self._batch, self._last, run)
            if session.make_value(held, self._batch, self._ctx, run):
                if self._before is not None:
                    self._before()
                return held


_ENDED = (
    ": this pass over an epoch ended before its last batch, when another one began anew: a reader gives one at a time, but "
    'for epochs with last_batch="fill", which take turns. Finish a pass before the next, take a second reader, or let threads '
    "share one iterator, iter(epoch)."
)


def _remade(kind: type[Epoch[Any]], reader: Reader, batch: int | None, ctx: Any, last: LastBatch, whole: bool) -> Any:
    epoch = kind(reader, batch, ctx, last)
    epoch._whole = whole
    return epoch


def _collated(samples: list[Tensor], *, collate_fn_map: Any = None) -> Any:
    """Samples of a reader, where torch's DataLoader has put them together: one torch tensor."""
    return default_collate([sample.torch() for sample in samples])


IterableDataset.register(Epoch)  # type: ignore[attr-defined]
default_collate_fn_map[Tensor] = _collated  # type: ignore[index]


class _Loop(_Iterating[Outputs]):
    """One loop over an epoch, until another one begins."""

    __slots__ = ("_epoch", "_pass")

    def __init__(self, epoch: Epoch[Outputs], run: Pass):
        self._epoch = epoch
        self._pass = run

    def __len__(self) -> int:
        return len(self._epoch)

    def __iter__(self) -> _Loop[Outputs]:
        return self

    def _goes_on(self) -> tuple[Epoch[Outputs], Pass]:
        return self._epoch, self._pass
