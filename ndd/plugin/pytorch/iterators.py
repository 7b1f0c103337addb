"""DALI's iterators for PyTorch: lists of dicts of torch tensors, from pipelines or from any iterable of batches."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import ndd
from ndd.plugin.base_iterator import CountedEpochs, LastBatchPolicy, ReaderEpochs

_AUTO_RESET = {"yes": True, True: True, "no": False, False: False, None: False}
_READER_FACTS = ("epoch_size", "number_of_shards", "pad_last_batch", "stick_to_shard")


class _IterableSource:
    """An iterable of tuples or dicts of batches in the place of a pipeline."""

    def __init__(self, iterable: Iterable[Any]):
        self._iterable = iterable
        self._iterator: Any = None
        self.max_batch_size: int | None = None
        self._ended = False

    def run(self) -> tuple[Any, ...]:
        """The next batches."""
        if self._ended:
            raise StopIteration
        if self._iterator is None:
            self._iterator = iter(self._iterable)
        try:
            item = next(self._iterator)
        except StopIteration:
            self._ended = True
            raise
        values = item.values() if isinstance(item, dict) else item if isinstance(item, tuple | list) else (item,)
        batches = tuple(v if isinstance(v, ndd.Batch) else ndd.as_batch(v) for v in values)
        self.max_batch_size = max(self.max_batch_size or 0, batches[0].batch_size)
        return batches

    def reset(self) -> None:
        """Iterates anew."""
        if self._ended:
            self._iterator, self._ended = None, False


def _as_sources(pipelines: Any) -> list[Any]:
    if pipelines is None:
        raise AssertionError("Number of provided pipelines has to be at least 1")
    if isinstance(pipelines, ndd.Pipeline):
        return [pipelines]
    if isinstance(pipelines, list) and pipelines and all(isinstance(p, ndd.Pipeline) for p in pipelines):
        return list(pipelines)
    if isinstance(pipelines, list) and not pipelines:
        raise AssertionError("Number of provided pipelines has to be at least 1")
    if isinstance(pipelines, Iterable):
        return [_IterableSource(pipelines)]
    raise TypeError(f"Expected a Pipeline, a list of them or an iterable of batches, got {type(pipelines).__name__}")


def _check(condition: bool, text: str) -> None:
    """DALI reports wrong uses of its iterators as AssertionError; so that callers can catch the same, so do we."""
    if not condition:
        raise AssertionError(text)


class DALIGenericIterator:
    """Iterates over pipelines, giving a list with one dict of torch tensors for each pipeline.

    Args:
        pipelines: a Pipeline or a list of them (of one batch size); or any iterable of tuples or dicts of
            `ndd.Batch`, such as a generator over `reader.next_epoch(batch_size=...)`.
        output_map: names of the outputs, in order: the keys of the dicts.
        size: samples of an epoch over all pipelines; -1: until the data ends. Not together with `reader_name`.
        reader_name: the reader that knows the size of the data set, its shards and padding.
        auto_reset: whether the next epoch begins by itself after StopIteration ("yes"/True), or with `reset()` or a
            new `iter()` ("no"/False/None).
        fill_last_batch: deprecated, warns: True is `FILL`, False is `PARTIAL`.
        dynamic_shape: has no effect: shapes may always change from batch to batch.
        last_batch_padded: with `size`: whether the reader pads the last batch with its last sample.
        last_batch_policy: see `LastBatchPolicy`.
        prepare_first_batch: run the pipelines once in the constructor, so that errors show there.

    The tensors share the memory of the pipeline's outputs and stay valid, and unchanged, as long as they are held.

    >>> import ndd, ndd.plugin.pytorch as pytorch
    >>> @ndd.pipeline_def(batch_size=2)
    ... def pipeline():
    ...     return ndd.fn.external_source(source=[[1, 2], [3, 4]])
    >>> [d[0]["n"].tolist() for d in pytorch.DALIGenericIterator(pipeline(), ["n"])]
    [[1, 2], [3, 4]]
    """

    def __init__(
        self,
        pipelines: Any,
        output_map: Sequence[str],
        size: int = -1,
        reader_name: str | None = None,
        auto_reset: Any = False,
        fill_last_batch: bool | None = None,
        dynamic_shape: bool = False,
        last_batch_padded: bool = False,
        last_batch_policy: LastBatchPolicy = LastBatchPolicy.FILL,
        prepare_first_batch: bool = True,
    ):
        _check(len(set(output_map)) == len(list(output_map)), "output_map names must be distinct")
        self.output_map = list(output_map)
        self._sources = _as_sources(pipelines)
        for p in self._sources:
            if isinstance(p, ndd.Pipeline):
                _check_unused(p)
                p.build()
        sizes = {p.max_batch_size for p in self._sources}
        _check(len(sizes) == 1, f"All pipelines should have the same batch size set, got {sizes}")
        self.batch_size = sizes.pop()
        self._policy = _policy(last_batch_policy, fill_last_batch)
        if not isinstance(auto_reset, str | bool | type(None)) or auto_reset not in _AUTO_RESET:
            raise ValueError(f"auto_reset must be one of True, False, None, 'yes', 'no', got {auto_reset!r}")
        self._auto_reset = _AUTO_RESET[auto_reset]
        self._size_given = int(size)
        self._reader_name = reader_name
        self._epochs = self._make_epochs(int(size), bool(last_batch_padded))
        self._over = False
        self._first: list[dict[str, Any]] | None = None
        if prepare_first_batch:
            self._prepare_first()

    def _make_epochs(self, size: int, padded: bool) -> Any:
        _check(size != 0, "Size cannot be 0")
        if self._reader_name is None:
            _check(size > 0 or len(self._sources) == 1, "Negative size is supported only for a single pipeline")
            if size > 0:
                warnings.warn(
                    "Please set `reader_name` and don't set last_batch_padded and size manually whenever possible: "
                    "the reader knows how an epoch ends",
                    Warning,
                    stacklevel=4,
                )
            batch = self.batch_size or 1
            return CountedEpochs(size, batch, len(self._sources), self._policy, padded)
        _check(size < 0, "When reader_name is provided, size should not be set")
        _check(not padded, "When reader_name is provided, last_batch_padded should not be set")
        metas = [p.reader_meta(self._reader_name) for p in self._sources]
        for fact in _READER_FACTS:
            values = {m[fact] for m in metas}
            _check(len(values) == 1, f"All readers should have the same {fact}, got {sorted(values)}")
        first = metas[0]
        return ReaderEpochs(
            first["epoch_size"],
            first["number_of_shards"],
            [m["shard_id"] for m in metas],
            self.batch_size,
            self._policy,
            bool(first["pad_last_batch"]),
            bool(first["stick_to_shard"]),
        )

    def _prepare_first(self) -> None:
        try:
            self._first = self._next_dicts()
        except StopIteration:
            raise RuntimeError(
                "It seems that there is no data in the pipeline. This may happen if `last_batch_policy` is DROP and the "
                "batch is larger than the shard, or if the source is empty"
            ) from None

    @property
    def _size(self) -> int:
        return self._epochs.size

    @property
    def size(self) -> int:
        """Samples of the epoch, as DALI counts them; -1 if unknown."""
        return self._epochs.size

    def __len__(self) -> int:
        """Batches of the epoch; 0 if unknown."""
        return len(self._epochs)

    def __iter__(self) -> DALIGenericIterator:
        if self._started():
            self.reset()
        return self

    def _started(self) -> bool:
        return self._over or (self._epochs.counter > 0 and self._first is None)

    def next(self) -> list[dict[str, Any]]:
        """The next batch."""
        return self.__next__()

    def __next__(self) -> list[dict[str, Any]]:
        if self._first is not None:
            first, self._first = self._first, None
            return first
        if self._over:
            raise StopIteration
        try:
            return self._next_dicts()
        except StopIteration:
            self._over = True
            if self._auto_reset:
                self.reset()
            raise

    def _next_dicts(self) -> list[dict[str, Any]]:
        epochs = self._epochs
        if epochs.finished():
            raise StopIteration
        outputs = []
        for p in self._sources:
            try:
                outputs.append(p.run())
            except StopIteration:
                self._data_ended = True
                raise
        if self.batch_size is None:
            self.batch_size = self._sources[0].max_batch_size
            epochs.batch_size, epochs.step = self.batch_size, self.batch_size * len(self._sources)
        if not epochs.advance():
            raise StopIteration
        dicts = []
        for k in range(epochs.kept_pipelines(len(outputs))):
            dicts.append(self._to_dict(outputs[k], epochs.rows(k)))
        return dicts

    def _to_dict(self, outputs: tuple[Any, ...], rows: int) -> dict[str, Any]:
        if len(outputs) < len(self.output_map):
            raise KeyError(f"output_map has {len(self.output_map)} names, the pipeline gives {len(outputs)} outputs")
        if len(outputs) > len(self.output_map):
            raise IndexError(f"output_map has {len(self.output_map)} names, the pipeline gives {len(outputs)} outputs")
        found = {}
        for name, output in zip(self.output_map, outputs, strict=True):
            batch = getattr(output, "batch", output)
            if self._size > 0:
                _check(
                    batch.batch_size == self.batch_size,
                    f"Variable batch size is not supported with `reader_name` or `size`: "
                    f"got a batch of {batch.batch_size}, expected {self.batch_size}",
                )
            found[name] = self._convert(name, batch, rows if self._size > 0 else batch.batch_size)
        return found

    def _convert(self, name: str, batch: Any, rows: int) -> Any:
        shapes = batch.shape
        if any(s != shapes[0] for s in shapes):
            raise RuntimeError(
                f"Output {name!r} is ragged: its samples have shapes {sorted(set(shapes))[:4]}. Use DALIRaggedIterator, or "
                "make the shapes equal (resize, crop, pad) in the pipeline"
            )
        tensor = batch.torch()
        return tensor if rows == len(tensor) else tensor[:rows]

    def reset(self) -> None:
        """Begins the next epoch. In the middle of one it does nothing but log a warning, as in DALI."""
        if not (self._over or self._epochs.finished()):
            logging.warning(
                "%s: the iterator was asked to reset before its epoch was over; it goes on where it is",
                type(self).__name__,
            )
            return
        self._over = False
        self._epochs.reset()
        for p in self._sources:
            p.reset()


def _check_unused(pipeline: Any) -> None:
    if pipeline.was_run:
        raise RuntimeError("The pipeline has been run already: give the iterator one that has not")


def _policy(policy: Any, fill_last_batch: bool | None) -> LastBatchPolicy:
    if fill_last_batch is not None:
        warnings.warn(
            "Please do not use the `fill_last_batch` argument, use `last_batch_policy` instead.", Warning, stacklevel=4
        )
        return LastBatchPolicy.FILL if fill_last_batch else LastBatchPolicy.PARTIAL
    if not isinstance(policy, LastBatchPolicy):
        raise ValueError(f"Wrong type for `last_batch_policy`: expected a LastBatchPolicy, got {policy!r}")
    return policy


class DALIClassificationIterator(DALIGenericIterator):
    """A `DALIGenericIterator` over two outputs named "data" and "label"."""

    def __init__(
        self,
        pipelines: Any,
        size: int = -1,
        reader_name: str | None = None,
        auto_reset: Any = False,
        fill_last_batch: bool | None = None,
        dynamic_shape: bool = False,
        last_batch_padded: bool = False,
        last_batch_policy: LastBatchPolicy = LastBatchPolicy.FILL,
        prepare_first_batch: bool = True,
    ):
        super().__init__(
            pipelines,
            ["data", "label"],
            size,
            reader_name=reader_name,
            auto_reset=auto_reset,
            fill_last_batch=fill_last_batch,
            dynamic_shape=dynamic_shape,
            last_batch_padded=last_batch_padded,
            last_batch_policy=last_batch_policy,
            prepare_first_batch=prepare_first_batch,
        )


class DALIRaggedIterator(DALIGenericIterator):
    """As `DALIGenericIterator`, for outputs whose samples differ in shape.

    `output_types` says for each output what it becomes: `DENSE_TAG` one tensor (the default; ragged samples are an
    error), `SPARSE_LIST_TAG` a list of tensors, `SPARSE_COO_TAG` one sparse tensor with the indices (sample, position)
    of 1-D samples.
    """

    DENSE_TAG = "dense"
    SPARSE_LIST_TAG = "sparse_list"
    SPARSE_COO_TAG = "sparse_coo"

    def __init__(
        self,
        pipelines: Any,
        output_map: Sequence[str],
        size: int = -1,
        reader_name: str | None = None,
        output_types: Sequence[str] | None = None,
        auto_reset: Any = False,
        fill_last_batch: bool | None = None,
        dynamic_shape: bool = False,
        last_batch_padded: bool = False,
        last_batch_policy: LastBatchPolicy = LastBatchPolicy.FILL,
        prepare_first_batch: bool = True,
    ):
        kinds = list(output_types) if output_types is not None else [self.DENSE_TAG] * len(list(output_map))
        known = (self.DENSE_TAG, self.SPARSE_LIST_TAG, self.SPARSE_COO_TAG)
        _check(all(k in known for k in kinds), f"output_types must be from {known}, got {kinds}")
        _check(len(kinds) == len(list(output_map)), "output_types and output_map must have the same length")
        self._kinds = dict(zip(output_map, kinds, strict=True))
        super().__init__(
            pipelines,
            output_map,
            size,
            reader_name=reader_name,
            auto_reset=auto_reset,
            fill_last_batch=fill_last_batch,
            dynamic_shape=dynamic_shape,
            last_batch_padded=last_batch_padded,
            last_batch_policy=last_batch_policy,
            prepare_first_batch=prepare_first_batch,
        )

    def _convert(self, name: str, batch: Any, rows: int) -> Any:
        kind = self._kinds[name]
        if kind == self.DENSE_TAG:
            return super()._convert(name, batch, rows)
        tensors = [t.torch() for t in batch.tensors[:rows]]
        return tensors if kind == self.SPARSE_LIST_TAG else _coo(name, tensors)


def _coo(name: str, tensors: list[Any]) -> Any:
    """1-D samples as one sparse tensor of shape [samples, longest]."""
    import torch

    if any(t.ndim != 1 for t in tensors):
        raise RuntimeError(f"Output {name!r}: a sparse COO tensor is made of 1-D samples")
    device = tensors[0].device if tensors else None
    samples = torch.cat([torch.full((len(t),), i, device=device) for i, t in enumerate(tensors)])
    positions = torch.cat([torch.arange(len(t), device=device) for t in tensors])
    longest = max((len(t) for t in tensors), default=0)
    return torch.sparse_coo_tensor(torch.stack([samples, positions]), torch.cat(tensors), (len(tensors), longest))
