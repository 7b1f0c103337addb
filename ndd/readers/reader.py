"""`Reader`: what all readers share - epochs, sample and batch mode, shards, shuffling, read-ahead, state."""

from __future__ import annotations

import dataclasses
import inspect
import os
import threading
import warnings
import weakref
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Literal, overload

from ndd._execution.errors import raise_signalled
from ndd._tensor import Batch
from ndd._tensor.secrets import redact
from ndd.readers import signature
from ndd.readers.epochs import state as states
from ndd.readers.epochs.batch_maker import Delivering
from ndd.readers.epochs.broken_records import BrokenRecords, Skipped
from ndd.readers.epochs.captured_loops import Captured, captured_epoch, enable_checkpointing
from ndd.readers.epochs.dataset import Data
from ndd.readers.epochs.epoch import Epoch, Pass
from ndd.readers.epochs.in_flight import Handover, Held
from ndd.readers.epochs.loader_worker import Origin
from ndd.readers.epochs.peeked_batches import Coming
from ndd.readers.epochs.progress import Progress
from ndd.readers.epochs.read_ahead import ReadAhead, Step
from ndd.readers.epochs.state import ReaderState
from ndd.readers.options import check_batch_size, check_device, listed_numbers, plain
from ndd.readers.output import Output
from ndd.readers.sampling.sampler import LastBatch, NumberStream, Order, Share
from ndd.readers.stores.records import RecordStore, read_now

_CLOSING_SECONDS = 5.0  # `close` waits so long for reads that are under way


class Reader(Delivering):
    """The base of all readers: an index and a store (`RecordStore`) of the concrete reader, and a sampler.

    A concrete reader writes its own arguments, all by name, in `_open`, which makes the store; and says in `_outputs`
    what comes out. The arguments that all readers share are joined to its signature and to the "Args" of its
    docstring (`Options` lists them), are handled here, and never reach it:

        class Lines(Reader):
            \"\"\"Reads a text file line by line.

            Args:
                path: the file.
            \"\"\"

            def _open(self, *, path: FilePath) -> RecordStore:
                return LineStore(path_text(path))

            @classmethod
            def _outputs(cls, **arguments: Any) -> tuple[Output, ...]:
                return (Output("line", uint8, 1),)

    A value is converted to what its annotation says (`bool`, `int`, `float`); a `Literal` is checked; None: the default.

    Attributes:
        devices: the devices that `device` may name; with "gpu", outputs declared with device "reader" go there.
        permuted: `random_shuffle` permutes all samples before its buffer (single files), not only within it (containers).
        shuffles_after_epoch: whether there are `shuffle_after_epoch` and its seed.
        gives_dicts: samples are dicts, keyed by the outputs' names, instead of tuples.
        of_each_sample: arguments that may be nodes in pipelines; there is a `for_each_sample` then (`numpy.py`).
        beyond: arguments that DALI's reader has not; they stand behind its own in the signature.
    """

    devices: tuple[str, ...] = ("cpu",)
    permuted = True
    shuffles_after_epoch = True
    gives_dicts = False
    of_each_sample: tuple[str, ...] = ()
    beyond: tuple[str, ...] = ()
    _display = "readers.Reader"
    __signature__: ClassVar[inspect.Signature]

    def __init_subclass__(cls, **named: Any):
        super().__init_subclass__(**named)
        if "_display" not in cls.__dict__:
            cls._display = f"readers.{cls.__name__}"
        signature.compose(cls)

    def __init__(self, *positional: Any, **arguments: Any):
        self._given = positional, arguments
        self._options, self._own = signature.bound(type(self), positional, arguments)
        self._options.check_early(self._display)
        self._outputs_here = self.outputs(*positional, **arguments)
        self._presents = type(self)._present is not Delivering._present
        # What a record holds, as far as it is known: `_present` may change all but the place of a layout.
        self._read = self._outputs_here
        if self._presents:
            self._read = tuple(Output(output.name, layout=output.layout) for output in self._outputs_here)
        self._progress = Progress(self._display)
        self._broken = BrokenRecords(self._display)
        self._data = Data(self._display, self._options, self.permuted)
        self._warned = False
        self._captured = Captured()
        self._origin = Origin()
        self._new_process()

    # What a concrete reader writes

    def _open(self) -> RecordStore:
        """Build the index and return the store. A reader adds its own arguments, by name."""
        raise NotImplementedError

    @classmethod
    def _outputs(cls, **arguments: Any) -> tuple[Output, ...]:
        """The outputs for these values of the reader's own arguments. Opens nothing."""
        raise NotImplementedError

    # What comes out

    @classmethod
    def outputs(cls, *positional: Any, **arguments: Any) -> tuple[Output, ...]:
        """What a reader with these arguments gives: name, element type, dimensions, layout and device of each output.

        Opens nothing and needs no data; required arguments that do not matter may be left out.

        >>> import ndd
        >>> [(output.name, str(output.dtype)) for output in ndd.readers.File.outputs()]
        [('data', 'u8'), ('label', 'i32')]
        """
        options, own = signature.bound(cls, positional, arguments, partial=True)
        device = check_device(cls._display, options.device, cls.devices)
        declared: list[Output] = []
        for output in cls._outputs(**own):
            where = device if output.device == "reader" else output.device
            declared.append(dataclasses.replace(output, device=where))
        return tuple(declared)

    @property
    def num_outputs(self) -> int:
        """How many outputs this reader has."""
        return len(self._outputs_here)

    # Iteration

    @overload
    def next_epoch(
        self, batch_size: int, ctx: Any = None, capture: bool = False, *, last_batch: LastBatch = "fill"
    ) -> Epoch[tuple[Batch, ...]]: ...
    @overload
    def next_epoch(
        self, batch_size: None = None, ctx: Any = None, capture: bool = False, *, last_batch: LastBatch = "fill"
    ) -> Epoch[tuple[Any, ...]]: ...
    def next_epoch(
        self,
        batch_size: int | None = None,
        ctx: Any = None,
        capture: bool = False,
        *,
        last_batch: LastBatch = "fill",
    ) -> Epoch[Any]:
        """The next epoch: an iterator over the samples of this reader's shard, with a length.

        With `batch_size` (here, or `max_batch_size` at construction) it gives batches, otherwise single samples; a
        reader stays with its first choice until `reset()`. Nothing is read before the first sample is asked for.

        With `last_batch="fill"`, DALI's way, every batch is full: without `pad_last_batch` the last one goes on into the
        next epoch, so that 10 samples in batches of 4 give 12, and the next epoch begins with the third. "partial" gives
        each sample of the shard exactly once, as an evaluation needs: the last batch is smaller, nothing is padded, and
        every epoch begins afresh, also after one that was left. "drop" leaves a last batch out that is not full.
        (Not in DALI.)

        `capture=True` promises that every iteration calls the same operators. The values are those of an ordinary loop, but
        on the CPU too the coming batches are worked on while the program does something else, such as training on the
        one before (`NDD_LOOKAHEAD=0` turns that off). What breaks the promise raises DALI's errors. From this call on, also if
        the loop is left in its first iteration, the reader has captured loops of this batch size only, until `reset()`; a
        first iteration that ends without having called an operator frees it. Two calls of one function in the body are two
        places, each with its own rules. An operator's `batch_size` may be the loop's or that of the batch at hand, which is
        smaller at the end of an epoch with "partial" and where `on_error="skip"` leaves samples out.

        What a reader computes from what it read (a copy to the GPU, say) is computed in the context `ctx`, by default
        in the current one.

        If the epoch before was left unfinished, this one ("fill") goes on where it stopped and has full length, as in DALI, and
        warns once; call `reset()` before `next_epoch()` to drop the rest. After `set_state` the interrupted epoch is
        finished first, also with another `batch_size` or `last_batch` than it was begun with: one that was begun with "fill"
        goes on as "partial" or "drop" to the end of the shard's pass over its samples. An epoch that is used on after
        another one began anew raises RuntimeError; those with "fill" take turns in one stream.

        >>> import ndd, tempfile, pathlib
        >>> root = pathlib.Path(tempfile.mkdtemp())
        >>> for i in range(5):
        ...     _ = (root / f"{i}.txt").write_text(str(i))
        >>> reader = ndd.readers.File(files=sorted(map(str, root.iterdir())))
        >>> epoch = reader.next_epoch(batch_size=2)
        >>> len(epoch)
        3
        >>> [labels.torch().flatten().tolist() for data, labels in epoch]
        [[0, 1], [2, 3], [4, 0]]
        >>> reader.reset()
        >>> [labels.torch().flatten().tolist() for data, labels in reader.next_epoch(2, last_batch="partial")]
        [[0, 1], [2, 3], [4]]
        """
        if last_batch not in ("fill", "partial", "drop"):
            raise ValueError(f'{self._display}: last_batch: expected "fill", "partial" or "drop", got {last_batch!r}')
        size = self._options.wanted_batch(self._display, batch_size, self._progress.mode is None)
        if ctx is not None and not hasattr(ctx, "__enter__"):
            raise TypeError(f"{self._display}: ctx: expected an EvalContext, got {type(ctx).__name__}")
        if capture:
            return captured_epoch(self, size, ctx, last_batch)  # type: ignore[return-value]
        self._progress.check("samples" if size is None else "batches", size)
        return Epoch(self, size, ctx, last_batch)

    def __iter__(self) -> Iterator[Any]:
        """A loop over `next_epoch()`: samples, or batches of `max_batch_size`. Frameworks may ask for it again and again;
        for those that want to know how many batches there are an `Epoch` is better, since `len()` of a reader counts
        samples."""
        return iter(self.next_epoch())

    def __call__(self, *, batch_size: int | None = None) -> Any:
        """The next sample, or with `batch_size` the next batch, without end; epochs follow each other. A reader with one
        output gives it alone, not in a tuple."""
        size = check_batch_size(self._display, batch_size)
        self._progress.check("calls", size)
        with self._entered():
            progress = self._progress
            progress.use("calls", size, self._share("calls") if progress.mode is None else progress.share)
            held = self._hold(size)
        while not self._ready(held, size):
            with self._entered():
                held = self._hold(size)
        found = held.value
        value = found[0] if isinstance(found, tuple) and len(found) == 1 else found
        # Nothing is called from here on: see `Held`.
        if held.number > progress.number:
            progress.number, progress.position = held.number, held.step.position
            progress.skip = progress.share.count - 1
        held.given, held.value, held.step, held.run = True, None, None, None
        return value

    def reset(self, epoch: int | None = None) -> None:
        """Abandon a running epoch and free the batch size and the mode. `next_epoch` then starts a fresh epoch.

        Args:
            epoch: the epoch to go to (0 is the very first); by default the one after the running one, or the coming
                one if none is running.

        Iterators of the abandoned epoch end.
        """
        wanted = plain(epoch)
        if wanted is not None and (type(wanted) is not int or wanted < 0):
            raise ValueError(f"{self._display}.reset: epoch: expected a number from 0, got {epoch!r}")
        with self._entered():
            self._drop_read_ahead()
            self._progress.reset(wanted)
            self._data.begin_afresh()

    # Random access

    def __len__(self) -> int:
        """How many samples the whole data set has, whatever the shard."""
        with self._entered():
            return len(self._opened()[0])

    def __getitem__(self, index: Any) -> Any:
        """Sample `index` of the data set in stored order, as sample mode gives it; a slice or list gives batches.
        Does not move the reader."""
        if isinstance(index, slice):
            return self.fetch(range(*index.indices(len(self))))
        index = plain(index)
        if isinstance(index, Sequence):
            return self.fetch(index)
        return self._value(self._fetched([index]), None)

    def fetch(self, indices: Any) -> Any:
        """The samples with these numbers (stored order, any number of times each) as one batch for each output.
        Does not move the reader.

        >>> import ndd
        >>> reader = ndd.readers.File(files=[ndd.readers.__file__] * 4, labels=[7, 8, 9, 10])
        >>> data, labels = reader.fetch([3, 0, -1])
        >>> labels.torch().flatten().tolist()
        [10, 7, 10]
        """
        numbers = listed_numbers(self._display, indices)
        with self._entered():
            step = self._without_broken(self._fetched(numbers))
        if not step.numbers:
            raise RuntimeError(f"{self._display}: none of the samples can be read: {step.dropped[0].error}")
        return self._value(step, len(step.numbers))

    # Facts and state

    def close(self) -> None:
        """Stop reading ahead and close files. A reader that is used again goes on where it was."""
        with self._entered():
            ahead = self._ahead
            self._drop_read_ahead()
            if ahead is not None:
                ahead.join(_CLOSING_SECONDS)
            self._data.close()

    def __reduce__(self) -> tuple[Any, ...]:
        """For worker processes: a reader made with the same arguments, at the same place, with nothing open."""
        return states.remade, (type(self), *self._given, self.get_state(), self._origin.sent(self))

    @property
    def skipped(self) -> list[Skipped]:
        """What `on_error="skip"` has left out so far: (number, source, error) of each broken record, once. A part of the
        reader's state."""
        return self._broken.listed()

    def get_metadata(self, batch_size: int | None = None) -> dict[str, int]:
        """The sizes that DALI reports: `epoch_size` (all samples), `epoch_size_padded` (with every shard padded to the
        largest, if `pad_last_batch`), `number_of_shards`, `shard_id`, `pad_last_batch`, `stick_to_shard`."""
        with self._entered():
            order = self._opened()[1]
            shards = order.shards
        return {
            "epoch_size": shards.size,
            "epoch_size_padded": shards.largest * shards.count if shards.pad else shards.size,
            "number_of_shards": shards.count,
            "shard_id": shards.index,
            "pad_last_batch": int(shards.pad),
            "stick_to_shard": int(shards.stick or not order.rotates),
        }

    def get_state(self, *, cuda_stream: Any = None) -> ReaderState:
        """The reader's place, exact to the sample: short text, at any time, with nothing to switch on before.

        The next batch after `set_state` (on this or an equal reader, in this or another process) is the one that
        would have come next here; the epoch then ends where it would have ended.
        """
        with self._entered():
            return states.dump(
                {
                    "reader": self._display,
                    **self._data.saved(),
                    **self._progress.saved(),
                    "skipped": [list(bad) for bad in self._broken.listed()],
                }
            )

    def set_state(self, state: ReaderState | str | bytes | Sequence[ReaderState | str | bytes]) -> None:
        """Go to a place given by `get_state()`, also in mid-epoch; frees batch size and mode.

        Raises ValueError naming the first difference if the state was taken from a reader of other data, order or
        shards (as soon as that is known: the size of the data only when it is opened). The seed comes from the state.

        A list holds the states of all shards, in any order, perhaps of another number of shards than there are now: what
        none of them has given yet of the running epoch is shared out among those of now, as an epoch of its own, and the
        next epoch is shared out as ever. No sample comes twice, none is left out. (Fewer samples than there are shards now come
        with the next epoch.)

        With `shard="auto"` the state of one rank will do where all were in step, that is, had taken equally many batches
        of the same sizes, as DDP makes them: where the others stood follows from it. So tools that keep the state of one
        rank only, or give it to more or fewer ranks than there were, lose nothing. (Neither is in DALI.)
        """
        many = isinstance(state, list | tuple)
        given = [states.parse(self._display, one) for one in (state if many else [state])]
        with self._entered():
            worker = self._origin.worker(self)
            self._load(self._of_this_rank(given, many) if many or self._options.shard == "auto" else given[0])
            if worker is not None:
                worker.loaded = True

    def state_dict(self) -> dict[str, str]:
        """`get_state` as a dict, for checkpointing tools that want one: `{"state": text}`."""
        return {"state": str(self.get_state())}

    def load_state_dict(self, state: dict[str, str] | Sequence[dict[str, str]]) -> None:
        """`set_state` for what `state_dict` returned; a list for those of all ranks."""
        many = isinstance(state, list | tuple)
        texts = [states.kept_text(self._display, one) for one in (state if many else [state])]
        self.set_state(texts if many else texts[0])

    def __repr__(self) -> str:
        with self._entered():
            data, progress, options = self._data.found, self._progress, self._options
        size = "not opened yet" if data is None else f"{len(data[0])} samples"
        shard = "shard by rank" if options.shard == "auto" else f"shard {options.shard_id} of {options.num_shards}"
        if data is not None:
            shard = f"shard {data[1].shards.index} of {data[1].shards.count}"
        order = "" if options.order_name == "stored" else f"{options.order_name}, "
        place = f"epoch {progress.epoch}, sample {progress.position.offset}"
        return f"{signature.shown(type(self), self._own)}: {size}, {shard}, {order}at {place}"

    # The machinery below is called by Epoch and by the methods above.

    _enable_checkpointing = enable_checkpointing

    def _begin_epoch(self, epoch: Epoch[Any], run: Pass) -> None:
        """Lock mode and batch size; the pass is told how many batches it has."""
        batch = epoch._batch
        self._progress.check("samples" if batch is None else "batches", batch, self._progress.captured)
        with self._entered():
            share = self._share(epoch)
            self._stay_in_step(epoch._last)
            unfinished = self._progress.begin(self._opened()[1], epoch, run, share)
        if unfinished and not self._warned:
            self._warned = True
            warnings.warn(
                f"{self._display}: the epoch before was not finished, so this one goes on where it stopped (as in "
                "DALI). Call reader.reset() before next_epoch() to start afresh.",
                UserWarning,
                stacklevel=4,
            )

    def _arrive(self, epoch: Epoch[Any]) -> bool:
        """In a worker of a DataLoader, go to the epoch that the loader is at. Whether this is one."""
        with self._entered():
            worker = self._origin.worker(self)
            if worker is not None:
                worker.arrive(self, epoch)
        return worker is not None

    def _share(self, user: Epoch[Any] | Literal["calls"]) -> Share:
        """The part of an epoch, or of the stream for calls, that this process is about to give."""
        worker = self._origin.worker(self)
        return Share() if worker is None else worker.begin(self, user)

    def _stay_in_step(self, last: LastBatch) -> None:
        """Where an epoch with "fill" was interrupted, ranks that are in step may be at the ends of unequal passes over their
        samples. So what is left is shared out anew before it is given with another ending."""
        progress, shards = self._progress, self._opened()[1].shards
        rest = progress.resuming and progress.left and progress.share.count == 1
        if rest and progress.last == "fill" != last and shards.even and shards.count > 1:
            self._load(
                self._data.of_this_rank([states.parse(self._display, self.get_state())], False, shards, anew=True)
            )

    def _epoch_length(self, batch: int | None, last: LastBatch, whole: bool) -> int:
        with self._entered():
            order, state = self._opened()[1], self.get_state()
            self._stay_in_step(last)
            length = self._progress.epoch_length(self._opened()[1], batch, last, whole)
            if self._opened()[1] is not order:
                self._load(states.parse(self._display, state))
            return length

    def _hold(self, batch: int | None, last: LastBatch = "fill", run: Pass | None = None) -> Held:
        """The next step, for this thread to hand over. One that it took before and did not hand over comes again. The lock
        is held."""
        progress, ahead = self._progress, self._ahead
        # The stream may go on elsewhere, or epochs end in another way: what was read ahead is wrong. So is the size of its
        # batches where `fetch` began before there was one.
        if progress.jumped or last != self._last or (ahead is not None and ahead.batch != batch):
            self._drop_read_ahead()
        if progress.jumped:
            self._handover = Handover(progress)
            progress.jumped = False
        self._last: LastBatch = last
        return self._handover.again(run) or self._next_step(batch, run)

    def _ready(self, held: Held, size: int | None, ctx: Any = None, run: Pass | None = None) -> bool:
        """Makes the value of what is to be handed over. The reader goes on after it where nothing of it could be read: False
        if that was to be skipped."""
        try:
            if not held.whole:
                with self._entered():
                    held.step = self._without_broken(held.step)
                    held.whole = True
            if held.step.numbers:
                held.value = self._value(held.step, size, ctx)
                return True
        except Exception as error:
            raise_signalled(error)
            self._progress.pass_by(held, run)
            raise
        self._progress.pass_by(held, run)
        return False

    def _without_broken(self, step: Step) -> Step:
        """The step without the records that cannot be read, where these are to be skipped."""
        if self._options.on_error == "raise":
            return step
        store, order = self._opened()
        return self._broken.left_out(step, self._read, store, order.shards.largest)

    def _next_step(self, batch: int | None, run: Pass | None) -> Held:
        """Takes what comes next in the stream. Whatever interrupts this (Ctrl-C included), nothing is lost or repeated."""
        if self._taking:  # that was interrupted before: perhaps a step is out, and nobody has it
            self._drop_read_ahead()
        if self._ahead is None:
            self._ahead = self._new_read_ahead(batch, run)
        self._taking = True
        try:
            held = self._handover.took(self._ahead.next(), run)
        except BaseException as error:
            self._drop_read_ahead()
            redact(error)
            raise
        self._taking = False
        return held

    def _new_read_ahead(self, batch: int | None, run: Pass | None = None) -> ReadAhead:
        store, order = self._opened()
        start, last = self._handover.place(), self._last
        cut = self._handover.cut(run)
        depth = (1 + self._options.prefetch_queue_depth) * (2 if self._options.read_ahead else 1)
        ahead = ReadAhead(store, lambda: cut(NumberStream(order, batch or 1, start, last)), batch, depth)
        self._finalizer = weakref.finalize(self, ahead.stop)
        self._finalizer.atexit = False  # the module of ReadAhead stops them all, and waits
        return ahead

    def _drop_read_ahead(self) -> None:
        ahead, self._ahead = self._ahead, None
        self._taking = False
        if ahead is not None:
            self._finalizer.detach()
            ahead.stop()
        self._coming = Coming()

    def _fetched(self, numbers: list[Any]) -> Step:
        with self._entered():
            store = self._opened()[0]
            size = len(store)
            for number in numbers:
                if type(number) is not int:
                    raise TypeError(f"{self._display}: sample numbers must be integers, got {number!r}")
                if not -size <= number < size:
                    raise IndexError(f"{self._display}: expected a sample number from 0 to {size - 1}, got {number}")
            if not numbers:
                raise ValueError(f"{self._display}.fetch: expected at least one sample number")
            numbers = [number % size for number in numbers]
            if len(numbers) == 1:
                return Step(numbers, read_now(store, numbers), self._progress.position)
            if self._ahead is None:
                self._ahead = self._new_read_ahead(self._progress.batch)
            return Step(numbers, self._ahead.read(numbers), self._progress.position)

    def _opened(self) -> tuple[RecordStore, Order]:
        if self._data.found is None:
            self._options.check_late(self._display)
            try:
                return self._data.open(self._open(**self._own))
            except Exception as error:
                redact(error)
                raise
        return self._data.found

    def _load(self, fields: Any) -> None:
        with self._entered():
            self._data.restore(fields)
            self._drop_read_ahead()
            self._progress.restore(fields)
            self._broken.restore(fields.get("skipped", []))

    def _of_this_rank(self, given: list[dict[str, Any]], many: bool) -> dict[str, Any]:
        """The state for this process, of those that all ranks saved or of one that perhaps another rank saved."""
        if not many and given[0].get("size") is None:  # of a reader that was never opened: the beginning
            return {**given[0], "shards": None}
        with self._entered():
            return self._data.of_this_rank(given, many, self._opened()[1].shards)

    def _entered(self) -> threading.RLock:
        """The reader's lock; in a forked child, where threads are gone and locks may be stuck, everything is new."""
        if os.getpid() != self._process:
            self._new_process()
        return self._lock

    def _new_process(self) -> None:
        self._process = os.getpid()
        self._lock = threading.RLock()
        self._ahead: ReadAhead | None = None
        self._handover = Handover(self._progress)
        self._taking = False  # a step is being taken from what is read ahead
        self._coming = Coming()
        self._last: LastBatch = "fill"  # how what is read ahead was cut into batches
        self._memories: dict[Any, dict[str, Any]] = {}  # of each output: how the batch before was used
