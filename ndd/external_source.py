"""`ExternalSource`: samples or batches from a Python callable, iterable or generator function."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import index
from typing import TYPE_CHECKING, Any, Literal

import torch
import torch.utils.data

from ndd._execution import observation
from ndd._lookahead.captured_loop import CapturedLoop, current_loop
from ndd._tensor import Batch, Tensor, batch, tensor
from ndd._tensor.construct import from_pipeline
from ndd.read_ahead import ReadAhead

if TYPE_CHECKING:
    from ndd._execution import EvalContext
    from ndd._tensor.device import DeviceLike
    from ndd._typing import DTypeLike

__all__ = ["ExternalSource"]

_LOOP = "This ExternalSource is already used in a capture-mode loop"
_ENDED = (
    'The source of this ExternalSource has ended. cycle="quiet" begins again each time, cycle="raise" at the next call'
)


class ExternalSource:
    """Takes data from a Python source, one item at each call.

    Args:
        source: a function without parameters that returns an item; an iterable of items; or a generator function
            without parameters. An item is a Tensor, a Batch, an output of a pipeline (that is a Batch), or what
            `ndd.tensor` takes (a list of arrays is one tensor, as in DALI: `ndd.batch` makes a batch of it). With
            `num_outputs` above 1 it is a tuple or list of these.
        num_outputs: the number of values of an item.
        cycle: the behaviour at the end of an iterable. None, False or "no": StopIteration, now and at all further calls.
            True or "quiet": it begins again. "raise": StopIteration once, and the next call begins again.
        device: the device of the outputs.
        layout: a letter for each axis; or a sequence, one for each output.
        dtype: the element type to convert to; or a sequence, one for each output.
        prefetch: the number of items that a thread takes from the source before they are requested. 0: each item is taken at
            its call. Errors of the source are raised in order, at the call that asks for the item; after an error (or the
            end) the source is read again when the next item is asked for. (Not in DALI.)
        processes: the number of new processes (spawn) that take the items, each with `prefetch` (at least 2) items ahead.
            Arrays come through shared memory. The source is pickled for the processes, so a script needs
            `if __name__ == "__main__":`. A sequence (`len` and `[k]`) is divided among them, in order; other sources allow
            only one process. Items hold arrays, tensors and numbers. (Not in DALI.)

    Outputs are copies: the source may reuse its arrays.

    Raises TypeError for a source that is neither callable nor iterable, or that cannot begin again where `cycle` asks
    for it; ValueError for numbers out of range.

    >>> import ndd, numpy as np
    >>> source = ndd.ExternalSource([np.full(2, i) for i in range(3)])
    >>> source().torch(), source(batch_size=2).torch()
    (tensor([0, 0]), tensor([[1, 1],
            [1, 1]]))
    >>> pairs = ndd.ExternalSource(lambda: (np.zeros((2, 3)), 1), num_outputs=2, layout=["HW", None])
    >>> image, label = pairs()
    >>> image.layout, label.item()
    ('HW', 1)
    """

    def __init__(
        self,
        source: Callable[[], Any] | Iterable[Any],
        num_outputs: int = 1,
        *,
        cycle: Literal["no", "quiet", "raise"] | bool | None = None,
        device: DeviceLike = "cpu",
        layout: str | Sequence[str | None] | None = None,
        dtype: DTypeLike | Sequence[DTypeLike | None] | None = None,
        prefetch: int = 0,
        processes: int = 0,
    ):
        self._count = index(num_outputs)
        if self._count < 1:
            raise ValueError(f"ExternalSource: num_outputs must be strictly positive, got {num_outputs}")
        for name, number in (("prefetch", prefetch), ("processes", processes)):
            if type(number) is not int or number < 0:
                raise ValueError(f"ExternalSource: {name}: expected a number from 0, got {number!r}")
        self._device = device
        self._poll = poll = _bound(source, cycle, processes, max(prefetch, 2))
        self._item = item = functools.partial(
            _item, count=self._count, layouts=self._for_each("layout", layout), dtypes=self._for_each("dtype", dtype)
        )
        self._ahead: ReadAhead[list[Any]] | None = None
        if prefetch:
            self._ahead = ReadAhead(lambda: item(poll()), prefetch, "source", owner=self)
        # The item on its way to the caller, as the source returned it and as values of ndd. It stays here at Ctrl-C.
        self._polled: list[Any] = []
        self._held: list[Any] | None = None
        self._used = False  # called outside of any captured loop
        self._loop: CapturedLoop | None = None  # the captured loop that reads it, or runs over it
        self._root = False  # whether the loop runs over it

    def __reduce__(self) -> Any:
        raise TypeError(
            "ExternalSource cannot be pickled or copied: it is in the midst of its source. Make one in each process, from "
            "the source"
        )

    def _for_each(self, name: str, setting: Any) -> list[Any]:
        if not isinstance(setting, list | tuple):
            return [setting] * self._count
        if len(setting) != self._count:
            raise ValueError(f"ExternalSource: {name}: Expected a sequence of size {self._count}, got {len(setting)}")
        return list(setting)

    def __call__(self, *, batch_size: int | None = None) -> Any:
        """The next item: a Tensor, a Batch, or a tuple of `num_outputs` of these. StopIteration at the end, see `cycle`.

        Args:
            batch_size: repeats a Tensor that many times as a Batch; a Batch must have this size (ValueError).
        """
        try:
            size = None if batch_size is None else index(batch_size)
        except TypeError:
            raise TypeError(f"ExternalSource: batch_size: expected an integer, got {batch_size!r}") from None
        if size is not None and size < 0:
            raise ValueError(f"ExternalSource: batch_size must not be negative, got {batch_size}")
        loop = current_loop()
        if loop is not None:
            return self._fed_to(loop, size)
        if self._loop is not None:
            raise RuntimeError(_LOOP)
        self._used = True
        watching = observation.active
        return self._next(size) if watching is None else watching.take("ExternalSource", self._next, size)

    def captured(self, batch_size: int, ctx: EvalContext | None = None) -> Iterator[Any]:
        """A captured loop over the items of one epoch, each as a Batch of `batch_size`; see `next_epoch(capture=True)` of readers.

        Another `ExternalSource` that is called in the loop must be called exactly once in every iteration and must not end
        before this one, else RuntimeError. RuntimeError also if one of the sources was called outside of a loop before.

        Args:
            batch_size: the size of every Batch; a Tensor is repeated.
            ctx: accepted; an item is made in the context in force.

        Raises ValueError without a batch size, and for another one than before.

        >>> import ndd, numpy as np
        >>> images = ndd.ExternalSource([np.full((2, 2, 3), i, np.uint8) for i in range(3)])
        >>> [ndd.flip(image).torch().shape for image in images.captured(batch_size=4)]
        [torch.Size([4, 2, 2, 3]), torch.Size([4, 2, 2, 3]), torch.Size([4, 2, 2, 3])]
        """
        if batch_size is None:
            raise ValueError("ExternalSource.captured: The batch size must be set.")
        size = index(batch_size)
        if self._used:
            raise RuntimeError("This ExternalSource was already used eagerly: make another one for a captured loop")
        if self._loop is not None and not self._root:
            raise RuntimeError(f"{_LOOP}, which reads it in its body")
        if self._loop is not None and self._loop.size != size:
            raise ValueError(f"ExternalSource.captured: Cannot change batch_size from {self._loop.size} to {size}")
        loop = self._loop = self._loop or CapturedLoop(size)
        self._root = True
        return loop.iterations(lambda begin: self._epoch(size, begin), self._released, self._released)

    def _epoch(self, size: int, begin: Callable[[], None]) -> Iterator[Any]:
        while True:
            try:
                item = self._next(size, begin)
            except StopIteration:
                return
            yield item

    def _released(self) -> None:
        """No longer bound to a captured loop."""
        self._loop, self._root = None, False

    def _fed_to(self, loop: CapturedLoop, size: int | None) -> Any:
        """An item for the body of a captured loop."""
        if self._root:
            raise RuntimeError("ExternalSource: Instance already used through .captured() method")
        if self._used:
            raise RuntimeError("This ExternalSource was already used eagerly: make another one for a captured loop")
        if self._loop is not None and self._loop is not loop:
            raise RuntimeError("ExternalSource: Already bound to a different capture context.")
        loop.feeds(self)
        loop.check_batch_size("ExternalSource", size)
        self._loop = loop
        try:
            return self._next(loop.batch_size if size is None else size, usual=loop.size if size is None else size)
        except StopIteration:
            raise RuntimeError("ExternalSource: A source was exhausted before the iteration ended") from None

    def _next(self, size: int | None, begin: Callable[[], None] | None = None, usual: int | None = None) -> Any:
        try:
            if self._held is None:
                self._held = self._taken()
            values = [v.to_device(self._device) for v in self._held]
            if size is not None:
                values = [_sized(v, size, usual) for v in values]
            elif len({type(v) for v in values}) > 1:
                raise TypeError(
                    "ExternalSource: Outputs must be uniformly Tensors or uniformly Batches, or give batch_size"
                )
        except Exception:
            self._held, self._polled = None, []
            raise
        outputs = values[0] if self._count == 1 else tuple(values)
        if begin is not None:
            begin()
        # Nothing is called from here on: Ctrl-C comes before it or when this is over.
        self._held, self._polled = None, []
        return outputs

    def _taken(self) -> list[Any]:
        """The next item of the source."""
        if self._ahead is not None:
            return self._ahead.next()
        self._polled = self._polled or [self._poll()]
        return self._item(self._polled[0])


def _sized(value: Any, size: int, usual: int | None) -> Batch:
    """A Tensor repeated `size` times; or a Batch, which must have this size or the usual one."""
    if isinstance(value, Tensor):
        return Batch.broadcast(value, size)
    if value.batch_size not in (size, usual):
        raise ValueError(f"ExternalSource: Expected batch size {size}, got {value.batch_size}")
    return value


def _item(item: Any, count: int, layouts: list[Any], dtypes: list[Any]) -> list[Any]:
    """An item of the source as values of ndd, each on the device where it is."""
    if count > 1 and not (isinstance(item, tuple | list) and len(item) == count):
        got = f"{len(item)}" if isinstance(item, tuple | list) else type(item).__name__
        raise ValueError(f"ExternalSource: Expected {count} outputs from the source, got {got}")
    outputs = item if count > 1 else (item,)
    return [_value(k, *output) for k, output in enumerate(zip(outputs, layouts, dtypes, strict=True))]


def _value(output: int, data: Any, layout: str | None, dtype: Any) -> Any:
    value = from_pipeline(data)
    data = data if value is None else value
    make = batch if isinstance(data, Batch) else tensor
    try:
        return make(data, dtype=dtype, layout=layout or None)
    except (TypeError, ValueError, RuntimeError) as error:
        raise type(error)(f"ExternalSource: output {output}: {error}") from None


def _bound(source: Any, cycle: Any, processes: int, ahead: int) -> Callable[[], Any]:
    """The function that gives the next item of a source."""
    if not (cycle is None or isinstance(cycle, bool) or cycle in ("no", "quiet", "raise")):
        raise ValueError(
            f'ExternalSource: Invalid value {cycle!r} for `cycle`: expected "no", False or None (the source ends), "quiet" '
            'or True (it begins again) or "raise" (StopIteration at each end, then it begins again)'
        )
    any_source: Any = source  # a type checker narrows `source` too far
    iterable = isinstance(source, Iterable) or (not callable(source) and hasattr(source, "__getitem__"))
    if not iterable and not callable(source):
        raise TypeError(
            "ExternalSource: The `source` must be callable, iterable or a parameterless generator function, got "
            f"{type(source).__name__}"
        )
    generates = not iterable and inspect.isgeneratorfunction(source)
    if not iterable:
        _check_parameters(source, TypeError if generates else ValueError)
    if not iterable and not generates:
        if cycle is not None:
            raise ValueError("ExternalSource: The argument `cycle` can only be specified if `source` is iterable.")
        if not processes:
            return any_source
    if isinstance(source, Iterator) and cycle not in (None, False, "no"):
        raise TypeError(
            "ExternalSource: Cannot cycle through a generator or an iterator, which has but one end: pass the generator "
            "function, or an iterable that can begin again"
        )
    if processes:
        return _Items(_in_processes(source, processes, ahead), cycle).next
    begin: Any = any_source if generates else lambda: iter(any_source)
    return _Items(begin, cycle).next


def _check_parameters(function: Any, wrong: type[Exception]) -> None:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # written in C, without a signature
        return
    if parameters:
        if any(p.kind not in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters):
            wrong = TypeError
        raise wrong(
            f"ExternalSource only supports callables with no parameters; the source takes {', '.join(map(str, parameters))}"
        )


class _Items:
    """The items of the iterators that `begin` returns, and the end after the last item, see `cycle`."""

    def __init__(self, begin: Callable[[], Iterator[Any]], cycle: Any):
        self.begin = begin
        self.cycle = cycle
        self.iterator: Iterator[Any] | None = None

    def next(self) -> Any:
        if self.iterator is None:
            self.iterator = self.begin()
        try:
            return next(self.iterator)
        except StopIteration:
            if self.cycle == "raise":
                self.iterator = None
            if self.cycle not in (True, "quiet"):
                raise StopIteration(_ENDED) from None
        self.iterator = self.begin()
        return next(self.iterator)


class _Numbered(torch.utils.data.Dataset[Any]):
    """A sequence, for worker processes that divide its numbers."""

    def __init__(self, source: Any):
        self.source = source

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, number: int) -> Any:
        return self.source[number]


class _Streamed(torch.utils.data.IterableDataset[Any]):
    """Any other source, for one worker process."""

    def __init__(self, source: Any):
        self.source = source

    def __iter__(self) -> Iterator[Any]:
        source = self.source
        if isinstance(source, Iterable):
            yield from source
        elif inspect.isgeneratorfunction(source):
            yield from source()
        else:
            while True:
                try:
                    item = source()
                except StopIteration:
                    return
                yield item


def _in_processes(source: Any, processes: int, ahead: int) -> Callable[[], Iterator[Any]]:
    """torch's loader takes the items in processes: it makes tensors of arrays, and tensors go through shared memory."""
    numbered = hasattr(source, "__len__") and hasattr(source, "__getitem__")
    if processes > 1 and not numbered:
        raise ValueError(
            f"ExternalSource: {processes} processes can share out a sequence (with `len` and `[k]`), not a "
            f"{type(source).__name__}, whose items have no numbers: use processes=1"
        )
    loader: Any = torch.utils.data.DataLoader(
        _Numbered(source) if numbered else _Streamed(source),
        batch_size=None,
        num_workers=processes,
        prefetch_factor=ahead,
        multiprocessing_context="spawn",
        persistent_workers=True,
    )
    return lambda: _OfThisProcess(iter(loader))


class _OfThisProcess(Iterator[Any]):
    """The items of worker processes. A forked child gets an error: it would take the items from its parent."""

    def __init__(self, items: Iterator[Any]):
        self._items = items
        self._process = os.getpid()

    def __next__(self) -> Any:
        if os.getpid() != self._process:
            raise RuntimeError(
                "ExternalSource: its processes work for the process that made it, and this is a child of that: make one in "
                "each process, from the source"
            )
        return next(self._items)
