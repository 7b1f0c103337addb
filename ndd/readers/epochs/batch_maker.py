"""`BatchMaker`: makes Tensors and Batches of the records that were read."""

from __future__ import annotations

import contextlib
import weakref
from typing import Any

from ndd._lookahead.matching import follow_reader
from ndd._lookahead.recording import LoopRecording
from ndd._tensor import Batch, Device, make_batch, make_tensor
from ndd.readers.definition import Definition
from ndd.readers.epochs.broken_records import BrokenRecords
from ndd.readers.epochs.dataset import Dataset
from ndd.readers.epochs.peeked_batches import PeekedBatches
from ndd.readers.epochs.progress import Progress
from ndd.readers.epochs.read_ahead import RecordReadAhead, Step
from ndd.readers.output import Output, holds_objects, is_sample
from ndd.readers.sampling.sampler import Order
from ndd.readers.stores.records import RecordStore, Sources


class BatchMaker:
    """The half of a `Session` that turns records into values.

    Args:
        reader: held weakly, so that a reader without other references is freed at once, and its threads end.
        outputs: the reader's declarations.

    Attributes:
        name: how errors call the reader.
        outputs: the declared outputs.
        record_outputs: the arrays of a record, as far as they are known: `_present` may change all but the place of a layout.
        presents: whether the reader has a `_present` of its own.
    """

    progress: Progress
    broken: BrokenRecords
    dataset: Dataset
    ahead: RecordReadAhead | None
    peeked: PeekedBatches
    recordings: dict[Any, LoopRecording]  # for each output: the calls of loops on its batches

    def __init__(self, reader: Definition, outputs: tuple[Output, ...]):
        self._reader = weakref.ref(reader)
        self.name = reader._display
        self.options = reader._options
        self.gives_dicts = reader.gives_dicts
        self.outputs = self.record_outputs = outputs
        self.presents = type(reader)._present is not Definition._present
        if self.presents:
            self.record_outputs = tuple(Output(output.name, layout=output.layout) for output in outputs)

    def opened(self) -> tuple[RecordStore, Order]:
        """The store and the order; opens them if need be."""
        raise NotImplementedError

    def value(self, step: Step, size: int | None, ctx: Any = None) -> Any:
        """The outputs of a step as Tensors or Batches, or the error of the first record that could not be read."""
        values = self.read_values(step, size)
        if self.presents or any(output.device == "gpu" for output in self.outputs):
            with contextlib.nullcontext() if ctx is None else ctx:
                values = self._presented(values)
        if len(values) != len(self.outputs):
            raise TypeError(f"{self.name}: declared {len(self.outputs)} output(s), gave {len(values)}")
        if self.gives_dicts:
            return {output.name: value for output, value in zip(self.outputs, values, strict=True)}
        return values

    def _presented(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """The values as they were declared: presented, and on their devices. Operators do both, so nothing waits."""
        values = tuple(self._reader()._present(*values))  # type: ignore[union-attr]
        gpu = Device(str(self.options.device)) if any(o.device == "gpu" for o in self.outputs) else None
        return tuple(
            value.to_device(gpu) if output.device == "gpu" else value
            for output, value in zip(self.outputs, values, strict=False)
        )

    def read_values(self, step: Step, size: int | None) -> tuple[Any, ...]:
        """The records as values on the CPU: created now, or earlier for a lookahead."""
        if size is None:
            return self.made_of(step, size)
        return self.peeked.taken(step) or self.made_of(step, size)

    def peeked_store(self, place: int, distance: int, generation: int) -> Any:
        """For lookahead: the store of output `place` of the batch that comes `distance` batches later, if that has been
        read. Called on other threads."""
        ahead = self.ahead
        if ahead is None or generation != self.progress.generation:
            return None
        values = self.peeked.of(lambda: ahead.peek(distance), lambda step: self.made_of(step, len(step.numbers)))
        return None if values is None else values[place]._value()

    def _show_next(self, values: tuple[Any, ...]) -> None:
        """Tells each output of a batch where the same output of the next batches is."""
        session, generation = weakref.ref(self), self.progress.generation
        for place, value in enumerate(values):
            if not isinstance(value, Batch):
                continue

            def peek(distance: int, place: int = place) -> Any:
                alive = session()
                return None if alive is None else alive.peeked_store(place, distance, generation)

            recording = self.recordings.get(place) or self.recordings.setdefault(place, LoopRecording())
            follow_reader(value._value(), peek, recording)

    def made_of(self, step: Step, size: int | None) -> tuple[Any, ...]:
        """The arrays of the records as Batches, or as Tensors where `size` is None."""
        store, records = self.opened()[0], step.records
        more = len(records.columns) - len(self.record_outputs)
        outputs = self.record_outputs + tuple(Output(f"more[{k}]") for k in range(more))
        self.broken.refuse(step, outputs, store)
        if size is None:
            info = store.source(step.numbers[0])
            return tuple(
                make_tensor(value, output.layout, info, output.dtype) if is_sample(value) else value
                for output, value in zip(outputs, records[0], strict=False)
            )
        sources: Any = Sources(store, step.numbers)
        columns = zip(outputs, records.columns, strict=False)
        values = tuple(
            column if holds_objects(column) else make_batch(column, output.layout, sources, output.dtype)
            for output, column in columns
        )
        if step.dropped:
            for value in values:
                if isinstance(value, Batch):
                    value._value().dropped = list(step.dropped)
        self._show_next(values)
        return values
