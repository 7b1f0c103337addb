"""`Session`: the work of a reader, which `Reader` and `Epoch` call."""

from __future__ import annotations

import os
import threading
from typing import Any, Literal

from ndd._execution.errors import raise_signalled
from ndd._tensor.secrets import redact
from ndd._tensor.user_line import warn_user
from ndd.readers.definition import Definition
from ndd.readers.epochs import state as states
from ndd.readers.epochs.batch_maker import BatchMaker
from ndd.readers.epochs.broken_records import BrokenRecords
from ndd.readers.epochs.captured_loops import CapturedLoops
from ndd.readers.epochs.dataset import Dataset
from ndd.readers.epochs.epoch import Epoch, Pass
from ndd.readers.epochs.in_flight import StepInFlight, StepsInFlight
from ndd.readers.epochs.loader_worker import Origin
from ndd.readers.epochs.peeked_batches import PeekedBatches
from ndd.readers.epochs.progress import Progress
from ndd.readers.epochs.read_ahead import RecordReadAhead, Step
from ndd.readers.epochs.state import ReaderState
from ndd.readers.output import Output
from ndd.readers.sampling.sampler import LastBatch, NumberStream, Order, Share
from ndd.readers.stores.records import RecordStore, read_now

_CLOSING_SECONDS = 5.0  # `close` waits this long for reads that are under way


class Session(BatchMaker):
    """The open data of a reader, its position, the batches read ahead, and the lock for all of these.

    Attributes:
        progress: the place.
        dataset: the store and the order.
        broken: the records that were left out.
        captured: the captured loops over the reader.
        origin: the process that the reader was made in.
        ahead: the threads that read the coming batches; None before there are any.
        in_flight: the steps that were taken from these and are not handed over yet.
        peeked: the batches that lookahead has requested.
    """

    def __init__(self, reader: Definition, outputs: tuple[Output, ...]):
        super().__init__(reader, outputs)
        self.progress = Progress(self.name)
        self.broken = BrokenRecords(self.name)
        self.dataset = Dataset(self.name, self.options, reader._permutes_first)
        self.captured = CapturedLoops()
        self.origin = Origin()
        self._warned = False
        self._new_process()

    def _new_process(self) -> None:
        self._process = os.getpid()
        self._lock = threading.RLock()
        self.ahead: RecordReadAhead | None = None
        self.in_flight = StepsInFlight(self.progress)
        self._taking = False  # a step is being taken from read-ahead
        self.peeked = PeekedBatches()
        self._last: LastBatch = "fill"  # how the batches read ahead were cut
        self.recordings: dict[Any, Any] = {}  # for each output: the calls of loops on its batches, see `_lookahead`

    def entered(self) -> threading.RLock:
        """The lock; in a forked child, where threads are gone and locks may be stuck, everything is new."""
        if os.getpid() != self._process:
            self._new_process()
        return self._lock

    # Data and state

    def opened(self) -> tuple[RecordStore, Order]:
        """The store and the order; opens them if need be. The lock is held."""
        if self.dataset.opened is None:
            self.options.check_late(self.name)
            reader: Any = self._reader()
            try:
                return self.dataset.open(reader._open(**reader._arguments))
            except Exception as error:
                redact(error)
                raise
        return self.dataset.opened

    def close(self) -> None:
        """Ends the threads and closes files."""
        with self.entered():
            ahead = self.ahead
            self._drop_read_ahead()
            if ahead is not None:
                ahead.join(_CLOSING_SECONDS)
            self.dataset.close()

    def reset(self, epoch: int | None) -> None:
        """Goes to the start of an epoch."""
        with self.entered():
            self._drop_read_ahead()
            self.progress.reset(epoch)
            self.dataset.begin_afresh()

    def state(self) -> ReaderState:
        """The place as text."""
        with self.entered():
            return states.dump(
                {
                    "reader": self.name,
                    **self.dataset.saved(),
                    **self.progress.saved(),
                    "skipped": [list(bad) for bad in self.broken.listed()],
                }
            )

    def restore(self, saved: list[dict[str, Any]], every_rank: bool) -> None:
        """Goes to a saved place, of this rank or, with `every_rank`, of all of them."""
        with self.entered():
            worker = self.origin.worker(self)
            reshards = every_rank or self.options.shard == "auto"
            self.load(self._of_this_rank(saved, every_rank) if reshards else saved[0])
            if worker is not None:
                worker.loaded = True

    def load(self, fields: Any) -> None:
        """Goes to a place saved by this rank."""
        with self.entered():
            self.dataset.restore(fields)
            self._drop_read_ahead()
            self.progress.restore(fields)
            self.broken.restore(fields.get("skipped", []))

    def _of_this_rank(self, saved: list[dict[str, Any]], every_rank: bool) -> dict[str, Any]:
        """The state for this process, of those that all ranks saved or of one that perhaps another rank saved."""
        if not every_rank and saved[0].get("size") is None:  # of a reader that was never opened: the beginning
            return {**saved[0], "shards": None}
        with self.entered():
            return self.dataset.of_this_rank(saved, every_rank, self.opened()[1].shards)

    # Epochs

    def arrive(self, epoch: Epoch[Any]) -> bool:
        """In a worker of a DataLoader, goes to the loader's current epoch. Returns whether this is a worker."""
        with self.entered():
            worker = self.origin.worker(self)
            if worker is not None:
                worker.arrive(self, epoch)
        return worker is not None

    def begin_epoch(self, epoch: Epoch[Any], run: Pass) -> None:
        """Locks mode and batch size, and tells the pass its number of batches."""
        batch = epoch._batch
        self.progress.check("samples" if batch is None else "batches", batch, self.progress.captured)
        with self.entered():
            share = self.share(epoch)
            self.stay_in_step(epoch._last)
            unfinished = self.progress.begin(self.opened()[1], epoch, run, share)
        if unfinished and not self._warned:
            self._warned = True
            warn_user(
                f"{self.name}: the epoch before was not finished, so this one goes on where it stopped (as in "
                "DALI). Call reader.reset() before next_epoch() to start afresh."
            )

    def share(self, user: Epoch[Any] | Literal["calls"]) -> Share:
        """The part of an epoch, or of the stream for calls, that this process is about to give."""
        worker = self.origin.worker(self)
        return Share() if worker is None else worker.begin(self, user)

    def stay_in_step(self, last: LastBatch) -> None:
        """Divides the rest of an interrupted epoch again if it is to end in another way than "fill": ranks that are in
        step may then be at the ends of unequal passes over their samples."""
        progress, shards = self.progress, self.opened()[1].shards
        rest = progress.resuming and progress.left and progress.share.count == 1
        if rest and progress.last == "fill" != last and shards.even and shards.count > 1:
            saved = [states.parse(self.name, self.state())]
            self.load(self.dataset.of_this_rank(saved, False, shards, anew=True))

    def epoch_length(self, batch: int | None, last: LastBatch, whole: bool) -> int:
        """The number of batches of an epoch that starts now, see `Progress.epoch_length`."""
        with self.entered():
            order, state = self.opened()[1], self.state()
            self.stay_in_step(last)
            length = self.progress.epoch_length(self.opened()[1], batch, last, whole)
            if self.opened()[1] is not order:
                self.load(states.parse(self.name, state))
            return length

    # Steps

    def next_step(self, batch: int | None, last: LastBatch = "fill", run: Pass | None = None) -> StepInFlight:
        """The next step, for this thread to hand over. One that it took before and did not hand over comes again. The lock
        is held."""
        progress, ahead = self.progress, self.ahead
        # The stream may go on elsewhere, or epochs end in another way: what was read ahead is wrong. So is the size of its
        # batches where `fetch` began before there was one.
        if progress.jumped or last != self._last or (ahead is not None and ahead.batch != batch):
            self._drop_read_ahead()
        if progress.jumped:
            self.in_flight = StepsInFlight(progress)
            progress.jumped = False
        self._last: LastBatch = last
        return self.in_flight.again(run) or self._take_step(batch, run)

    def make_value(self, held: StepInFlight, size: int | None, ctx: Any = None, run: Pass | None = None) -> bool:
        """Makes the value of a step that is to be handed over. False, and the reader goes on after it, if all of its records
        are broken and are to be skipped."""
        try:
            if not held.whole:
                with self.entered():
                    held.step = self.without_broken(held.step)
                    held.whole = True
            if held.step.numbers:
                held.value = self.value(held.step, size, ctx)
                return True
        except Exception as error:
            raise_signalled(error)
            self.progress.pass_by(held, run)
            raise
        self.progress.pass_by(held, run)
        return False

    def without_broken(self, step: Step) -> Step:
        """The step without the records that cannot be read, where these are to be skipped."""
        if self.options.on_error == "raise":
            return step
        store, order = self.opened()
        return self.broken.left_out(step, self.record_outputs, store, order.shards.largest)

    def _take_step(self, batch: int | None, run: Pass | None) -> StepInFlight:
        """Takes the next step of the stream. Nothing is lost or repeated if this is interrupted, as by Ctrl-C."""
        if self._taking:  # it was interrupted before: a step may have been taken without reaching the loop
            self._drop_read_ahead()
        if self.ahead is None:
            self.ahead = self._new_read_ahead(batch, run)
        self._taking = True
        try:
            held = self.in_flight.took(self.ahead.next(), run)
        except BaseException as error:
            self._drop_read_ahead()
            redact(error)
            raise
        self._taking = False
        return held

    def _new_read_ahead(self, batch: int | None, run: Pass | None = None) -> RecordReadAhead:
        store, order = self.opened()
        start, last = self.in_flight.place(), self._last
        cut = self.in_flight.cut(run)
        depth = (1 + self.options.prefetch_queue_depth) * (2 if self.options.read_ahead else 1)
        return RecordReadAhead(
            store, lambda: cut(NumberStream(order, batch or 1, start, last)), batch, depth, owner=self
        )

    def _drop_read_ahead(self) -> None:
        ahead, self.ahead = self.ahead, None
        self._taking = False
        if ahead is not None:
            ahead.stop()
        self.peeked = PeekedBatches()

    def fetched(self, numbers: list[Any]) -> Step:
        """The records with these numbers, whatever the order and the place."""
        with self.entered():
            store = self.opened()[0]
            size = len(store)
            for number in numbers:
                if type(number) is not int:
                    raise TypeError(f"{self.name}: sample numbers must be integers, got {number!r}")
                if not -size <= number < size:
                    raise IndexError(f"{self.name}: expected a sample number from 0 to {size - 1}, got {number}")
            if not numbers:
                raise ValueError(f"{self.name}.fetch: expected at least one sample number")
            numbers = [number % size for number in numbers]
            if len(numbers) == 1:
                return Step(numbers, read_now(store, numbers), self.progress.position)
            if self.ahead is None:
                self.ahead = self._new_read_ahead(self.progress.batch)
            return Step(numbers, self.ahead.read(numbers), self.progress.position)
