"""Nodes for graphs of torchdata: a reader, operators on one of its outputs, and tensors of torch at the end.

>>> import ndd, ndd.pytorch.nodes as nn, tempfile, pathlib, torchdata.nodes
>>> root = pathlib.Path(tempfile.mkdtemp())
>>> for i in range(4):
...     _ = (root / f"{i}.bin").write_bytes(bytes([i] * 3))
>>> reader = nn.Reader(ndd.readers.File, batch_size=2, files=sorted(map(str, root.iterdir())))
>>> node = nn.ToTorch(nn.DictMapper(reader, lambda data: ndd.cast(data, dtype=ndd.float32) / 255))
>>> loader = torchdata.nodes.Loader(node)
>>> [(tuple(data.shape), labels.flatten().tolist()) for data, labels in loader]
[((2, 3), [0, 1]), ((2, 3), [2, 3])]
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

try:
    from torchdata.nodes import BaseNode
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(f"ndd.pytorch.nodes needs torchdata: pip install torchdata ({error})") from error

from ndd._tensor import Batch, Device, Tensor
from ndd._tensor.device import current_gpu

__all__ = ["DictMapper", "Reader", "ToTorch"]

_READER = "reader"
_SOURCE = "source"


class _CurrentGpu:
    """The GPU that "gpu" means in the thread that made a node, for the threads of `Prefetcher` and the like: torch's current
    device is GPU 0 in each of them."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self._number = current_gpu()

    def scope(self) -> contextlib.AbstractContextManager[Any]:
        """That GPU is current within it."""
        if self._thread == threading.get_ident():
            self._number = current_gpu()
            return contextlib.nullcontext()
        return contextlib.nullcontext() if self._number is None else Device("gpu", self._number)


class Reader(BaseNode[dict[str, Any]]):
    """A node that gives the outputs of a reader as dicts.

    Args:
        reader_type: the class of the reader, such as `ndd.readers.File`.
        batch_size: samples in a batch; None gives single samples.
        output_names: the keys of the outputs, one for each. Default: "data" and "label" for two outputs; a reader that gives
            dicts has its own keys.
        kwargs: the arguments of the reader.

    The state of a node is the reader's place, exact to the sample. (DALI's cannot be resumed.)

    Raises TypeError for a reader in place of its class, ValueError for another number of names than of outputs.
    """

    def __init__(
        self,
        reader_type: type[Any],
        *,
        batch_size: int | None,
        output_names: Iterable[str] | None = None,
        **kwargs: Any,
    ):
        super().__init__()
        self._gpu = _CurrentGpu()
        if not isinstance(reader_type, type) and hasattr(reader_type, "next_epoch"):
            raise TypeError(
                f"nodes.Reader: reader_type: expected a class such as ndd.readers.File, got a reader, a "
                f"{type(reader_type).__name__}: give the class, and its arguments after it"
            )
        self._reader = reader_type(**kwargs)
        self._batch_size = batch_size
        count = self._reader.num_outputs
        if output_names is not None:
            self._names: list[str] | None = list(output_names)
        elif self._reader.gives_dicts:
            self._names = None
        elif count == 2:
            self._names = ["data", "label"]
        else:
            raise ValueError(f"nodes.Reader: the reader has {count} outputs: give output_names, one for each")
        if self._names is not None and len(self._names) != count:
            raise ValueError(
                f"nodes.Reader: output_names: expected {count} names, got {len(self._names)}: {self._names}"
            )
        self._epoch: Iterator[Any] | None = None

    def next(self) -> dict[str, Any]:
        """The outputs of the next batch or sample, by name. StopIteration at the end of the epoch.

        Raises RuntimeError before `reset`, StopIteration at the end.
        """
        if self._epoch is None:
            raise RuntimeError("nodes.Reader: next() before reset(): a node is reset when iteration begins")
        with self._gpu.scope():
            values = next(self._epoch)
        if self._names is None:
            return values
        outputs = values.values() if isinstance(values, dict) else values
        return dict(zip(self._names, outputs, strict=True))

    def reset(self, initial_state: dict[str, Any] | None = None) -> None:
        """Begin the next epoch, or continue from a saved state: after the last batch of an epoch, with the next epoch."""
        super().reset(initial_state)
        if initial_state is not None:
            self._reader.load_state_dict(initial_state[_READER])
        with self._gpu.scope():
            self._epoch = iter(self._reader.next_epoch(self._batch_size))

    def get_state(self) -> dict[str, Any]:
        """The reader's place."""
        return {_READER: self._reader.state_dict()}

    def get_metadata(self) -> dict[str, int]:
        """The reader's metadata, see `Reader.get_metadata`."""
        return self._reader.get_metadata(self._batch_size)


class DictMapper(BaseNode[dict[str, Any]]):
    """A node that replaces one entry of the dicts of another node.

    Args:
        source: the node before.
        map_fn: makes the new value from the old one.
        key: which entry.
    """

    def __init__(self, source: BaseNode[dict[str, Any]], map_fn: Callable[[Any], Any], key: str = "data"):
        super().__init__()
        self._gpu = _CurrentGpu()
        self._source = source
        self._map_fn = map_fn
        self._key = key

    def next(self) -> dict[str, Any]:
        """A copy of the next dict, with the entry replaced.

        Raises KeyError for a key that the dict does not have, StopIteration at the end.
        """
        values = dict(self._source.next())
        if self._key not in values:
            raise KeyError(f"nodes.DictMapper: key: expected one of {sorted(values)}, got {self._key!r}")
        with self._gpu.scope():
            values[self._key] = self._map_fn(values[self._key])
        return values

    def reset(self, initial_state: dict[str, Any] | None = None) -> None:
        """Reset the node before."""
        super().reset(initial_state)
        with self._gpu.scope():  # notes which it is now
            self._source.reset(initial_state[_SOURCE] if initial_state else None)

    def get_state(self) -> dict[str, Any]:
        """The state of the node before."""
        return {_SOURCE: self._source.state_dict()}


class ToTorch(BaseNode[tuple[torch.Tensor, ...]]):
    """A node that makes tuples of torch tensors from another node's dicts, in their order.

    Where one entry is on a GPU, those on the CPU are copied there; entries on different GPUs are a ValueError.

    Args:
        source: the node before. The samples of a Batch must have one shape.
        output_stream: the `torch.cuda.Stream` that will use the tensors; default the one of their GPU that is current when the
            node is made. No effect without a GPU.
    """

    def __init__(self, source: BaseNode[dict[str, Any]], output_stream: torch.cuda.Stream | None = None):
        super().__init__()
        self._source = source
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        self._streams = [
            torch.cuda.current_stream(number) for number in range(count)
        ]  # a stream of GPU 0 would make it current
        if output_stream is not None:
            self._streams = [output_stream] * count

    def next(self) -> tuple[torch.Tensor, ...]:
        """The next dict's values as tensors.

        Raises ValueError for entries on different GPUs, StopIteration at the end.
        """
        values: dict[str, Tensor | Batch] = self._source.next()
        gpus = {str(v.device): v.device for v in values.values() if v.device.device_type != "cpu"}
        if len(gpus) > 1:
            places = {name: str(v.device) for name, v in values.items()}
            raise ValueError(f"nodes.ToTorch: expected all entries on one GPU, got {places}")
        target = next(iter(gpus.values()), None)
        number = None if target is None else target.device_id
        stream = self._streams[number] if number is not None and self._streams else None
        with torch.cuda.stream(stream):  # does nothing for None
            return tuple([(v if target is None else v.to_device(target)).torch() for v in values.values()])

    def reset(self, initial_state: dict[str, Any] | None = None) -> None:
        """Reset the node before."""
        super().reset(initial_state)
        self._source.reset(initial_state[_SOURCE] if initial_state else None)

    def get_state(self) -> dict[str, Any]:
        """The state of the node before."""
        return {_SOURCE: self._source.state_dict()}
