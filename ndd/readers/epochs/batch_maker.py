"""`Delivering`: the handles that a reader makes of the records that were read."""

from __future__ import annotations

import contextlib
import weakref
from typing import Any

from ndd._execution.lookahead import Following
from ndd._tensor import Device, make_batch, make_tensor
from ndd.readers.epochs.broken_records import BrokenRecords
from ndd.readers.epochs.peeked_batches import Coming
from ndd.readers.epochs.progress import Progress
from ndd.readers.epochs.read_ahead import ReadAhead, Step
from ndd.readers.options import Options
from ndd.readers.output import Output
from ndd.readers.sampling.sampler import Order
from ndd.readers.stores.records import RecordStore, Sources


class Delivering:
    """The part of a reader that gives what was read; the rest of it is `Reader`."""

    gives_dicts: bool
    _display: str
    _options: Options
    _outputs_here: tuple[Output, ...]
    _read: tuple[Output, ...]  # what a record holds, as far as it is known
    _presents: bool  # whether `_present` does something
    _progress: Progress
    _broken: BrokenRecords
    _ahead: ReadAhead | None
    _coming: Coming
    _memories: dict[Any, dict[str, Any]]

    def _opened(self) -> tuple[RecordStore, Order]:
        raise NotImplementedError

    def _present(self, *values: Any) -> tuple[Any, ...]:
        """The outputs, made of what was read: a Tensor or Batch for each array of a record, those beyond the outputs
        included. It may call operators of ndd; it runs on the user's thread, and waits for nothing."""
        return values

    def _value(self, step: Step, size: int | None, ctx: Any = None) -> Any:
        """The outputs of a step as handles, or the error of the first record that could not be read."""
        values = self._taken(step, size)
        if self._presents or any(output.device == "gpu" for output in self._outputs_here):
            with contextlib.nullcontext() if ctx is None else ctx:
                values = self._delivered(values)
        if len(values) != len(self._outputs_here):
            raise TypeError(f"{self._display}: declared {len(self._outputs_here)} output(s), gave {len(values)}")
        if self.gives_dicts:
            return {output.name: value for output, value in zip(self._outputs_here, values, strict=True)}
        return values

    def _delivered(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """What was read as it was declared: presented, and on its device. Operators do both, so nothing waits."""
        values = tuple(self._present(*values))
        gpu = Device(str(self._options.device)) if any(o.device == "gpu" for o in self._outputs_here) else None
        return tuple(
            value.to_device(gpu) if output.device == "gpu" else value
            for output, value in zip(self._outputs_here, values, strict=False)
        )

    def _taken(self, step: Step, size: int | None) -> tuple[Any, ...]:
        """What was read, as handles on the CPU: made here, or already for a lookahead."""
        if size is None:
            return self._made(step, size)
        return self._coming.taken(step) or self._made(step, size)

    def _coming_store(self, place: int, distance: int, generation: int) -> Any:
        """For lookahead: the store of what was read as number `place` of the batch that comes after so many, if that has
        been read. Called on other threads."""
        ahead = self._ahead
        if ahead is None or generation != self._progress.generation:
            return None
        values = self._coming.of(lambda: ahead.peek(distance), lambda step: self._made(step, len(step.numbers)))
        return None if values is None else values[place]._value()

    def _follow(self, values: tuple[Any, ...]) -> None:
        """Shows each part of a batch the way to the next one."""
        reader, generation = weakref.ref(self), self._progress.generation
        for place, value in enumerate(values):

            def peek(distance: int, place: int = place) -> Any:
                found = reader()
                return None if found is None else found._coming_store(place, distance, generation)

            value._value().following = Following(peek, self._memories.setdefault(place, {}))

    def _made(self, step: Step, size: int | None) -> tuple[Any, ...]:
        store, records = self._opened()[0], step.records
        read = self._read + tuple(Output(f"more[{k}]") for k in range(len(records.columns) - len(self._read)))
        self._broken.refuse(step, read, store)
        if size is None:
            info = store.source(step.numbers[0])
            return tuple(make_tensor(a, o.layout, info, o.dtype) for o, a in zip(read, records[0], strict=False))
        sources: Any = Sources(store, step.numbers)
        values = tuple(make_batch(c, o.layout, sources, o.dtype) for o, c in zip(read, records.columns, strict=False))
        if step.dropped:
            for value in values:
                value._value().dropped = list(step.dropped)
        self._follow(values)
        return values
