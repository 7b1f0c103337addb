"""`Reader`: the methods of a reader for users."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, overload

from ndd._execution import observation
from ndd._tensor import Batch
from ndd.readers import signature
from ndd.readers.definition import Definition
from ndd.readers.epochs import state as states
from ndd.readers.epochs.broken_records import Skipped
from ndd.readers.epochs.captured_loops import captured_epoch, enable_checkpointing
from ndd.readers.epochs.epoch import Epoch
from ndd.readers.epochs.in_flight import StepInFlight
from ndd.readers.epochs.session import Session
from ndd.readers.epochs.state import ReaderState
from ndd.readers.options import check_batch_size, check_device, listed_numbers, plain
from ndd.readers.output import Output
from ndd.readers.sampling.sampler import LastBatch


class Reader(Definition):
    """The base of all readers: it delivers the records of a store, in some order, as samples or batches.

    A reader of your own opens its data and declares its outputs; `help(ndd.readers.definition)` lists the methods that it may
    override. The arguments that all readers share (shuffling, shards, reading ahead and so on) are added to its signature and to
    the "Args" of its docstring, and are not passed to it:

        class LineStore(ndd.readers.RecordStore):
            def __init__(self, path: str):
                self.path, self.lines = path, open(path).read().splitlines()
            def __len__(self) -> int:  # the number of records
                return len(self.lines)
            def record(self, number: int) -> tuple[str]:  # the outputs of one: NumPy arrays, or any Python objects
                return (self.lines[number],)
            def source(self, number: int) -> str:
                return f"{self.path} line {number}"

        class Lines(ndd.readers.Reader):
            def _open(self, *, path: str) -> ndd.readers.RecordStore:
                return LineStore(path)
            @classmethod
            def _outputs(cls, *, path: str = "") -> tuple[ndd.readers.Output, ...]:
                return (ndd.readers.Output("line"),)  # with type and layout, if it is an array

    Attributes:
        devices: the devices that `device` may name.
        gives_dicts: samples are dicts, keyed by the outputs' names, instead of tuples.

    Args:
        *positional, **arguments: the arguments of the reader's `_open`, and those that all readers share.
    """

    _session_type: ClassVar[type[Session]] = Session
    __signature__: ClassVar[inspect.Signature]

    def __init_subclass__(cls, **named: Any):
        super().__init_subclass__(**named)
        if "_display" not in cls.__dict__:
            cls._display = f"readers.{cls.__name__}"
        signature.compose(cls)

    def __init__(self, *positional: Any, **arguments: Any):
        self._called_with = positional, arguments
        self._options, self._arguments = signature.bound(type(self), positional, arguments)
        self._options.check_early(self._display)
        self._session = self._session_type(self, self.outputs(*positional, **arguments))

    # What comes out

    @classmethod
    def outputs(cls, *positional: Any, **arguments: Any) -> tuple[Output, ...]:
        """Name, element type, number of dimensions, layout and device of each output of a reader with these arguments.

        Opens nothing and needs no data. Required arguments that do not affect the outputs may be omitted.

        Args:
            *positional, **arguments: the arguments of the reader.

        Raises TypeError for arguments that the reader does not have, ValueError for a device that it does not run on,
        RuntimeError and IndexError for arguments that leave no valid outputs.

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
        """The number of outputs of this reader."""
        return len(self._session.outputs)

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

        With `batch_size` (here, or `max_batch_size` at construction) it yields batches, otherwise single samples; a
        reader keeps its first choice until `reset()`. Nothing is read before the first sample is requested.

        With `last_batch="fill"`, as in DALI, every batch is full. Without `pad_last_batch` the last batch continues into the
        next epoch: with 10 samples in batches of 4 an epoch has 12, and the next one begins with the third sample. "partial"
        yields each sample of the shard exactly once, as an evaluation needs: the last batch is smaller, nothing is padded, and
        every epoch starts anew, even after an unfinished one. "drop" skips a last batch that is not full. (Not in DALI.)

        `capture=True` promises that every iteration calls the same operators. The values are those of an ordinary loop, but
        the next batches are computed ahead on the CPU as well, while the program does something else, such as training
        (`NDD_LOOKAHEAD=0` turns that off). A broken promise raises DALI's errors. After this call the reader allows only
        captured loops of this batch size until `reset()`, even if the loop is left in its first iteration; a first iteration
        that calls no operator releases the reader. Two calls of one function in the body are two places, each with its own
        rules. An operator's `batch_size` may be the loop's or that of the current batch, which is smaller at the end of an
        epoch with "partial" and if `on_error="skip"` skips samples.

        `ctx` is the context in which the reader computes (copies to the GPU, for example); default: the current one.

        If the previous epoch is unfinished, this one ("fill") continues where it stopped and has full length, as in DALI,
        and warns once; call `reset()` before `next_epoch()` to drop the rest. After `set_state` the interrupted epoch is
        finished first, even with another `batch_size` or `last_batch`: an epoch that began with "fill" continues as "partial"
        or "drop" to the end of the shard's pass over its samples. An epoch raises RuntimeError if it is used after a new epoch
        has started; epochs with "fill" share one stream instead.

        Args:
            batch_size: samples in a batch; None: single samples.
            ctx: the `EvalContext` in which the reader computes; default: the current one.
            capture: every iteration calls the same operators, and ndd may compute ahead.
            last_batch: "fill", "partial" or "drop", the treatment of the last samples.

        Raises TypeError for a `ctx` that is not an EvalContext, ValueError for an unknown `last_batch` and for a
        `batch_size` below 1.

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
        size = self._options.wanted_batch(self._display, batch_size, self._session.progress.mode is None)
        if ctx is not None and not hasattr(ctx, "__enter__"):
            raise TypeError(f"{self._display}: ctx: expected an EvalContext, got {type(ctx).__name__}")
        if capture:
            return captured_epoch(self, size, ctx, last_batch)  # type: ignore[return-value]
        self._session.progress.check("samples" if size is None else "batches", size)
        return Epoch(self, size, ctx, last_batch)

    def __iter__(self) -> Iterator[Any]:
        """A loop over `next_epoch()`: samples, or batches of `max_batch_size`. Each call is a new loop. Pass an `Epoch` to
        frameworks that need the number of batches, since `len()` of a reader counts samples."""
        return iter(self.next_epoch())

    def __call__(self, *, batch_size: int | None = None) -> Any:
        """The next sample, or with `batch_size` the next batch, in an endless sequence of epochs. A reader with one output returns
        it alone, not in a tuple or dict."""
        size, session = check_batch_size(self._display, batch_size), self._session
        progress = session.progress
        progress.check("calls", size)
        with session.entered():
            share = session.share("calls") if progress.mode is None else progress.share
            progress.use("calls", size, share)
        watching = observation.active
        held = self._step(size) if watching is None else watching.take(self._display, self._step, size)
        outputs = held.value
        if len(outputs) == 1:
            (outputs,) = outputs.values() if isinstance(outputs, dict) else outputs
        # Nothing is called from here on: see `StepInFlight`.
        if held.number > progress.number:
            progress.number, progress.position = held.number, held.step.position
            progress.skip = progress.share.count - 1
        held.delivered, held.value, held.step, held.run = True, None, None, None
        return outputs

    def _step(self, size: int | None) -> StepInFlight:
        """The next step, with its value."""
        session = self._session
        while True:
            with session.entered():
                held = session.next_step(size)
            if session.make_value(held, size):
                return held

    def reset(self, epoch: int | None = None) -> None:
        """Abandons the running epoch and unlocks batch size and mode. `next_epoch` then starts a new epoch.

        Args:
            epoch: the epoch to go to (0 is the first). Default: the epoch after the running one, or the next one if none is
                running.

        Iterators of the abandoned epoch end.

        Raises ValueError for a negative `epoch`.
        """
        wanted = plain(epoch)
        if wanted is not None and (type(wanted) is not int or wanted < 0):
            raise ValueError(f"{self._display}.reset: epoch: expected a number from 0, got {epoch!r}")
        self._session.reset(wanted)

    # Random access

    def __len__(self) -> int:
        """The number of samples in the whole data set, not just in this shard."""
        with self._session.entered():
            return len(self._session.opened()[0])

    def __getitem__(self, index: Any) -> Any:
        """Sample `index` of the data set in stored order, as in sample mode; a slice or list returns batches. Does not change the
        reader's place."""
        if isinstance(index, slice):
            return self.fetch(range(*index.indices(len(self))))
        index = plain(index)
        if isinstance(index, Sequence):
            return self.fetch(index)
        return self._session.value(self._session.fetched([index]), None)

    def fetch(self, indices: Any) -> Any:
        """The samples with these numbers (in stored order, repetitions allowed) as one batch for each output. Does not change the
        reader's place.

        Args:
            indices: integers in any order, from 0 or (negative) from the end. Numbers beyond the data set raise IndexError.

        Raises TypeError for anything but a list of numbers, IndexError for a number out of range, RuntimeError if no
        sample can be read.

        >>> import ndd
        >>> reader = ndd.readers.File(files=[ndd.readers.__file__] * 4, labels=[7, 8, 9, 10])
        >>> data, labels = reader.fetch([3, 0, -1])
        >>> labels.torch().flatten().tolist()
        [10, 7, 10]
        """
        numbers = listed_numbers(self._display, indices)
        session = self._session
        with session.entered():
            step = session.without_broken(session.fetched(numbers))
        if not step.numbers:
            raise RuntimeError(f"{self._display}: none of the samples can be read: {step.dropped[0].error}")
        return session.value(step, len(step.numbers))

    # Facts and state

    def close(self) -> None:
        """Stops reading ahead and closes files. The reader may be used again: it continues at the same place."""
        self._session.close()

    def __reduce__(self) -> tuple[Any, ...]:
        """For worker processes: a reader made with the same arguments, at the same place, with nothing open."""
        return states.remade, (
            type(self),
            *self._called_with,
            self.get_state(),
            self._session.origin.sent(self._session),
        )

    @property
    def skipped(self) -> list[Skipped]:
        """The broken records that `on_error="skip"` has skipped so far, each once: (number, source, error). They are part of the
        reader's state."""
        return self._session.broken.listed()

    def get_metadata(self, batch_size: int | None = None) -> dict[str, int]:
        """The sizes that DALI reports: `epoch_size` (all samples), `epoch_size_padded` (with every shard padded to the
        largest, if `pad_last_batch`), `number_of_shards`, `shard_id`, `pad_last_batch`, `stick_to_shard`.

        Args:
            batch_size: no effect.
        """
        with self._session.entered():
            order = self._session.opened()[1]
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
        """The reader's place, exact to the sample, as a short text. It may be saved at any time, without preparation.

        After `set_state` (on this or an equal reader, in this or another process) the reader continues with the batch that
        comes next here, and the epoch ends at the same sample.

        Args:
            cuda_stream: no effect.
        """
        return self._session.state()

    def set_state(self, state: ReaderState | str | bytes | Sequence[ReaderState | str | bytes]) -> None:
        """Goes to a place saved by `get_state()`, also in the middle of an epoch; unlocks batch size and mode.

        If the state belongs to a reader with other data, another order or other shards, raises a ValueError that names the first
        difference (as soon as it is known: the size of the data is known only after it is opened). The seed comes from the state.

        A list holds the states of all shards, in any order; their number may differ from the current one. The remaining samples
        of the running epoch are divided among the current shards and form a separate epoch. The next epoch is divided as usual. No
        sample is repeated or lost. (If fewer samples are left than there are shards, they are added to the next epoch.)

        With `shard="auto"` the state of one rank is enough if all ranks are in step: if they have taken the same number of batches
        of the same sizes, as with DDP. So tools that save the state of only one rank, or load it on more or fewer ranks, lose
        nothing. (Neither is in DALI.)

        Args:
            state: a state of `get_state`, or a list of the states of all shards.
        """
        every_rank = isinstance(state, list | tuple)
        saved = [states.parse(self._display, each) for each in (state if every_rank else [state])]
        self._session.restore(saved, every_rank)

    def state_dict(self) -> dict[str, str]:
        """`get_state` as a dict, for checkpointing tools that expect one: `{"state": text}`."""
        return {"state": str(self.get_state())}

    def load_state_dict(self, state: dict[str, str] | Sequence[dict[str, str]]) -> None:
        """`set_state` for a dict of `state_dict`, or for a list of the dicts of all ranks.

        Args:
            state: a dict of `state_dict`, or a list of them.

        Raises TypeError for anything but the result of `state_dict`, ValueError for the state of another reader.
        """
        every_rank = isinstance(state, list | tuple)
        texts = [states.state_text(self._display, each) for each in (state if every_rank else [state])]
        self.set_state(texts if every_rank else texts[0])

    def __repr__(self) -> str:
        with self._session.entered():
            opened, progress, options = self._session.dataset.opened, self._session.progress, self._options
        size = "not opened yet" if opened is None else f"{len(opened[0])} samples"
        shard = "shard by rank" if options.shard == "auto" else f"shard {options.shard_id} of {options.num_shards}"
        if opened is not None:
            shard = f"shard {opened[1].shards.index} of {opened[1].shards.count}"
        order = "" if options.order_name == "stored" else f"{options.order_name}, "
        place = f"epoch {progress.epoch}, sample {progress.position.offset}"
        return f"{signature.shown(type(self), self._arguments)}: {size}, {shard}, {order}at {place}"

    def _repr_html_(self) -> str:
        from ndd.readers.preview import reader_html  # needed by notebooks alone

        return reader_html(self)

    _enable_checkpointing = enable_checkpointing
