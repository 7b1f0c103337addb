"""`Reader`: what all readers share - epochs, sample and batch mode, shards, shuffling, read-ahead, state."""

from __future__ import annotations

import os
import threading
import warnings
import weakref
from collections.abc import Sequence
from typing import Any, overload

from ndd._execution.lookahead import Following
from ndd._tensor import Batch, make_batch, make_tensor
from ndd.readers import state as states
from ndd.readers.epoch import Epoch
from ndd.readers.options import check_batch_size, check_device, plain, split_options
from ndd.readers.progress import Progress
from ndd.readers.read_ahead import ReadAhead, Step
from ndd.readers.records import Record, RecordStore, columns
from ndd.readers.sampler import Order, Shards, Stream
from ndd.readers.state import ReaderState


class Reader:
    """The base of all readers: an index and a store (`RecordStore`) of the concrete reader, and a sampler.

    A concrete reader names its arguments in `__init__`, hands `locals()` to this class, and implements `_open`:

        class Lines(Reader):
            def __init__(self, max_batch_size=None, name=None, device="cpu", num_inputs=None, *, path, seed=-1):
                super().__init__(locals())

            def _open(self, path):
                return LineStore(path)      # a RecordStore

    Arguments that all readers share are handled here, the others arrive in `_open` by name when the first sample is
    asked for. Nothing is opened before.
    """

    devices: tuple[str, ...] = ("cpu",)
    permuted = True  # random_shuffle permutes all samples once before its buffer (containers: False)

    def __init__(self, arguments: dict[str, Any]):
        self._display = f"readers.{type(self).__name__}"
        self._options, self._own = split_options(type(self), arguments)
        self._options.check_early(self._display)
        self._device = check_device(self._display, self._options.device, self.devices)
        self._seed = self._options.order_seed
        self._progress = Progress(self._display)
        self._data: tuple[RecordStore, Order] | None = None
        self._unchecked: dict[str, Any] = {}  # a restored state that waits for the data it must belong to
        self._warned = False
        self._new_process()

    def _open(self, **arguments: Any) -> RecordStore:
        """Build the index and return the store."""
        raise NotImplementedError

    # Iteration

    @overload
    def next_epoch(self, batch_size: int, ctx: Any = None, capture: bool = False) -> Epoch[tuple[Batch, ...]]: ...
    @overload
    def next_epoch(self, batch_size: None = None, ctx: Any = None, capture: bool = False) -> Epoch[tuple[Any, ...]]: ...
    def next_epoch(self, batch_size: int | None = None, ctx: Any = None, capture: bool = False) -> Epoch[Any]:
        """The next epoch: an iterator over the samples of this reader's shard, with a length.

        With `batch_size` (here, or `max_batch_size` at construction) it gives batches, otherwise single samples; a
        reader stays with its first choice until `reset()`. Every batch is full: without `pad_last_batch` the last one
        goes on into the next epoch. Nothing is read before the first sample is asked for.

        If the epoch before was left unfinished, this one goes on where it stopped and has full length, as in DALI, and
        warns once; call `reset()` before `next_epoch()` to drop the rest. After `set_state` the interrupted epoch is
        finished first.

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
        """
        size = self._wanted_batch(batch_size)
        if ctx is not None and not hasattr(ctx, "__enter__"):
            raise TypeError(f"{self._display}: ctx: expected an EvalContext, got {type(ctx).__name__}")
        if capture:
            if size is None:
                raise ValueError("capture=True requires a batch_size.")
            raise NotImplementedError(
                f"{self._display}: capture=True is not available; leave it out, results are equal"
            )
        self._progress.check("samples" if size is None else "batches", size)
        return Epoch(self, size)

    def __call__(self, *, batch_size: int | None = None) -> Any:
        """The next sample, or with `batch_size` the next batch, without end; epochs follow each other."""
        size = check_batch_size(batch_size)
        self._progress.check("calls", size)
        with self._entered():
            self._progress.use("calls", size)
            step = self._next_step()
        return self._value(step, size)

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
            self._unchecked = {}

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
        numbers = plain(indices)
        return self._value(self._fetched(list(numbers)), len(numbers))

    def __iter__(self) -> Any:
        raise TypeError(f"'{type(self).__name__}' object is not iterable: iterate over reader.next_epoch()")

    # Facts and state

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
        return states.dump(self.state_dict())

    def set_state(self, state: ReaderState | str | bytes) -> None:
        """Go to a place given by `get_state()`, also in mid-epoch; frees batch size and mode.

        Raises ValueError naming the first difference if the state was taken from a reader of other data, order or
        shards (as soon as that is known: the size of the data only when it is opened). The seed comes from the state.
        """
        self._load(states.parse(self._display, state))

    def state_dict(self) -> dict[str, Any]:
        """`get_state` as a dict of plain values, for checkpointing tools that want one."""
        options = self._options
        with self._entered():
            shards = self._data[1].shards if self._data else None
            return {
                "version": states.VERSION,
                "reader": self._display,
                "size": shards.size if shards else self._unchecked.get("size"),
                "shards": [shards.index, shards.count] if shards else self._unchecked.get("shards"),
                **options.order_fields(),
                "seed": self._seed,
                **self._progress.saved(),
            }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """`set_state` for what `state_dict` returned."""
        self._load(states.checked(self._display, {"version": states.VERSION, **state}))

    def __repr__(self) -> str:
        own = {key: value for key, value in self._own.items() if isinstance(value, str | int) and value is not False}
        listed = ", ".join(f"{key}={value!r}" for key, value in own.items())
        return f"{type(self).__name__}({listed}) at epoch {self._progress.epoch}"

    # The machinery below is called by Epoch and by the methods above.

    def _begin_epoch(self, batch: int | None) -> int:
        """Lock mode and batch size, and return how many batches the epoch has."""
        self._progress.check("samples" if batch is None else "batches", batch)
        with self._entered():
            left, unfinished = self._progress.begin(self._opened()[1], batch)
        if unfinished and not self._warned:
            self._warned = True
            warnings.warn(
                f"{self._display}: the epoch before was not finished, so this one goes on where it stopped (as in "
                "DALI). Call reader.reset() before next_epoch() to start afresh.",
                UserWarning,
                stacklevel=3,
            )
        return left

    def _epoch_length(self, batch: int | None) -> int:
        with self._entered():
            return self._progress.epoch_length(self._opened()[1], batch)

    def _take(self, left: int) -> Step:
        """The next batch of an epoch that owes `left` more after it."""
        with self._entered():
            step = self._next_step()
            self._progress.moved(left)
            return step

    def _next_step(self) -> Step:
        """What comes next in the stream. Whatever interrupts this (Ctrl-C included), nothing is lost or repeated."""
        if self._ahead is None:
            self._ahead = self._new_read_ahead()
        try:
            step = self._ahead.next()
            self._progress.position = step.position
            return step
        except BaseException:
            self._drop_read_ahead()
            raise

    def _new_read_ahead(self) -> ReadAhead:
        store, order = self._opened()
        start, batch = self._progress.position, self._progress.batch
        depth = (1 + self._options.prefetch_queue_depth) * (2 if self._options.read_ahead else 1)
        ahead = ReadAhead(store, lambda: Stream(order, batch or 1, start), batch, depth)
        self._finalizer = weakref.finalize(self, ahead.stop)
        self._finalizer.atexit = False  # the module of ReadAhead stops them all, and waits
        return ahead

    def _drop_read_ahead(self) -> None:
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            self._finalizer.detach()
            ahead.stop()

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
                return Step(numbers, list(store.records(numbers)), self._progress.position)
            if self._ahead is None:
                self._ahead = self._new_read_ahead()
            return Step(numbers, self._ahead.read(numbers), self._progress.position)

    def _value(self, step: Step, size: int | None) -> Any:
        """The outputs of a step as handles, or the error of the first record that could not be read."""
        if size is None:
            return self._made(step, size)
        with self._coming_lock:
            coming, self._coming = self._coming, None
        return coming[1] if coming is not None and coming[0] is step else self._made(step, size)

    def _coming_store(self, output: Any, generation: int) -> Any:
        """For lookahead: the store of one output of the next batch, if that has been read. Called on other threads."""
        ahead = self._ahead
        if ahead is None or generation != self._progress.generation:
            return None
        with self._coming_lock:
            step = ahead.peek()
            if step is None or any(isinstance(r, BaseException) for r in step.records):
                return None
            if self._coming is None or self._coming[0] is not step:
                self._coming = (step, self._made(step, len(step.numbers)))
            return self._coming[1][output]._value()

    def _follow(self, values: Any, step: Step) -> None:
        """Shows each output of a batch the way to the next one."""
        reader, generation = weakref.ref(self), self._progress.generation
        for output, value in values.items() if isinstance(values, dict) else enumerate(values):

            def peek(output: Any = output) -> Any:
                found = reader()
                return None if found is None else found._coming_store(output, generation)

            value._value().following = Following(peek, self._memories.setdefault(output, {}))

    def _made(self, step: Step, size: int | None) -> Any:
        store = self._opened()[0]
        records: list[Record] = []
        for number, record in zip(step.numbers, step.records, strict=True):
            if isinstance(record, BaseException):
                raise RuntimeError(
                    f"{self._display}: sample {number} ({store.source(number)}): expected a readable record, got "
                    f"{type(record).__name__}: {record}"
                ) from record
            records.append(record)
        layouts = store.layouts
        if size is None:
            info = store.source(step.numbers[0])
            values = [
                make_tensor(array, layouts[k] if k < len(layouts) else None, info) for k, array in enumerate(records[0])
            ]
        else:
            sources = [store.source(number) for number in step.numbers]
            values = [
                make_batch(column, layouts[k] if k < len(layouts) else None, sources)
                for k, column in enumerate(columns(records))
            ]
        made = tuple(values) if store.fields is None else dict(zip(store.fields, values, strict=True))
        if size is not None:
            self._follow(made, step)
        return made

    def _wanted_batch(self, batch_size: Any) -> int | None:
        size, largest = check_batch_size(batch_size), check_batch_size(self._options.max_batch_size)
        if size is None:
            return largest
        if largest is not None and size > largest and self._progress.mode is None:
            raise ValueError(
                f"{self._display}: `batch_size` {size} is larger than the `max_batch_size` {largest} "
                "specified when the reader was made"
            )
        return size

    def _opened(self) -> tuple[RecordStore, Order]:
        if self._data is None:
            self._options.check_late(self._display)
            store = self._open(**self._own)
            shards = self._options.shards(len(store))
            if shards.count > shards.size:
                raise RuntimeError(
                    f'{self._display}: Assert on "num_shards_ <= Size()" failed: The number of input samples: '
                    f"{shards.size} must not be below num_shards={shards.count}"
                )
            self._compare(self._unchecked, shards)
            self._warn_of_small_buffer(len(store))
            self._data, self._unchecked = (store, self._options.order(shards, self.permuted, self._seed)), {}
        return self._data

    def _warn_of_small_buffer(self, size: int) -> None:
        options = self._options
        if options.random_shuffle and not self.permuted and options.initial_fill * 4 < size:
            warnings.warn(
                f"{self._display}: random_shuffle draws from initial_fill={options.initial_fill} samples at a time, "
                f'and the {size} samples are read in the order they are stored. shuffle="global" shuffles all of them.',
                UserWarning,
                stacklevel=5,
            )

    def _load(self, fields: dict[str, Any]) -> None:
        for key, own in self._options.order_fields().items():
            if fields.get(key) != own:
                self._refuse(key, fields.get(key), own)
        with self._entered():
            if self._data is not None:
                store, order = self._data
                self._compare(fields, order.shards)
                self._data = store, self._options.order(order.shards, self.permuted, fields["seed"])
            else:
                self._unchecked = fields
            self._seed = fields["seed"]
            self._drop_read_ahead()
            self._progress.restore(fields)

    def _compare(self, fields: dict[str, Any], shards: Shards) -> None:
        for key, own in (("size", shards.size), ("shards", [shards.index, shards.count])):
            if fields.get(key) not in (None, own):
                self._refuse(key, fields[key], own)

    def _refuse(self, key: str, found: Any, own: Any) -> None:
        raise ValueError(
            f"{self._display}.set_state: the state is of a reader with another {key}: expected {own}, got {found}"
        )

    def _entered(self) -> threading.RLock:
        """The reader's lock; in a forked child, where threads are gone and locks may be stuck, everything is new."""
        if os.getpid() != self._process:
            self._new_process()
        return self._lock

    def _new_process(self) -> None:
        self._process = os.getpid()
        self._lock = threading.RLock()
        self._ahead: ReadAhead | None = None
        self._coming: tuple[Step, Any] | None = None  # the next batch, made for a lookahead
        self._coming_lock = threading.Lock()
        self._memories: dict[Any, dict[str, Any]] = {}  # of each output: how the batch before was used
