"""DALI's iterators for PyTorch: lists of dicts of torch tensors, from pipelines or from any iterable of batches."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Sequence
from typing import Any

import torch

from ndd.plugin.base_iterator import CountedEpochs, LastBatchPolicy, ReaderEpochs
from ndd.plugin.pytorch.batch_sources import IterableSource, as_sources, check

_AUTO_RESET = {"yes": True, True: True, "no": False, False: False, None: False}
_READER_FACTS = ("epoch_size", "number_of_shards", "pad_last_batch", "stick_to_shard")


class TorchIterator:
    """The base of the iterators; see `DALIGenericIterator`."""

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
        self.output_map = list(output_map)
        check(
            len(set(self.output_map)) == len(self.output_map),
            f"output_map names should be distinct, got {self.output_map}",
        )
        check(size != 0, "Size cannot be 0")
        self._sources = as_sources(pipelines, self.output_map)
        first = self._sources[0]
        self.batch_size: int | None = None if isinstance(first, IterableSource) else first.max_batch_size
        self._policy = _policy(last_batch_policy, fill_last_batch)
        if not isinstance(auto_reset, str | bool | type(None)) or auto_reset not in _AUTO_RESET:
            raise ValueError(
                f"Unsupported value for `auto_reset` {auto_reset!r}: expected True, False, None, 'yes' or 'no'"
            )
        self._auto_reset = _AUTO_RESET[auto_reset]
        self._epochs: Any = self._make_epochs(int(size), bool(last_batch_padded), reader_name)
        self._returned = 0  # batches of this epoch that the caller has
        self._over = False  # StopIteration was raised
        self._dry = False  # ... because the pipelines had no more data, before `size` samples
        self._epochs_done = [False] * len(self._sources)  # an epoch, since the source started again
        self._first: list[dict[str, Any]] | None = None
        self._before_first: list[bytes] = []  # the checkpoints before it
        # The batch on its way to the caller, which stays here if Ctrl-C comes: the outputs of the sources, and after they
        # were counted whether they belong to the epoch.
        self._outputs: list[tuple[Any, ...]] = []
        self._in_epoch: bool | None = None
        self._checkpointing = all(getattr(source, "enable_checkpointing", False) for source in self._sources)
        place = getattr(first, "_restored_iterator", None)
        if place is not None:
            self._epochs.restore(place)
            if self._epochs.finished() or self._epochs.drops_next():
                self.reset()  # saved after the last batch of an epoch: the first loop is over the next one
        if prepare_first_batch:
            self._prepare_first()

    def _make_epochs(self, size: int, padded: bool, reader_name: str | None) -> Any:
        if reader_name is None:
            check(
                size > 0 or len(self._sources) == 1,
                "Negative size is supported only for a single pipeline: give `size` or `reader_name`",
            )
            if size > 0:
                _warn(
                    "`size` and `last_batch_padded` were given by hand: pass `reader_name` where there is a reader, "
                    "which knows them"
                )
            return CountedEpochs(size, self.batch_size or 1, len(self._sources), self._policy, padded)
        check(size < 0, "When reader_name is provided, size should not be set: the reader knows its size")
        check(
            not padded,
            "When reader_name is provided, last_batch_padded should not be set: the reader knows whether it pads",
        )
        if self.batch_size is None:
            raise RuntimeError(f"There is no reader {reader_name!r}: reader_name goes with pipelines")
        metas = [p.reader_meta(reader_name) for p in self._sources]
        for fact in _READER_FACTS:
            values = {m[fact] for m in metas}
            argument = {"number_of_shards": "num_shards"}.get(fact, fact)
            check(
                len(values) == 1,
                f"The readers should have the same `{argument}` in all the pipelines, got {sorted(values)}",
            )
        facts = metas[0]
        return ReaderEpochs(
            facts["epoch_size"],
            facts["number_of_shards"],
            [m["shard_id"] for m in metas],
            self.batch_size,
            self._policy,
            bool(facts["pad_last_batch"]),
            bool(facts["stick_to_shard"]),
        )

    def checkpoints(self) -> list[bytes]:
        """The position of each pipeline after the last batch returned, with the position of this iterator in the epoch.

        A new iterator over pipelines made with `checkpoint=` goes on from there. ValueError unless all were made with
        `enable_checkpointing=True`.
        """
        if not self._checkpointing:
            raise ValueError(
                f"{type(self).__name__}.checkpoints: make the pipelines with enable_checkpointing=True (a reader in an own "
                "loop has a state_dict() in any case)"
            )
        if self._first is not None or self._outputs:
            return self._before_first
        place = self._epochs.place()
        return [source.checkpoint(iterator=place) for source in self._sources]

    def _take_first(self) -> None:
        """Takes the next batch, unless it has been taken already."""
        if self._first is not None:
            return
        if self._checkpointing:
            self._before_first = self.checkpoints()
        try:
            dicts = self._next_dicts()
        except Exception:
            self._outputs, self._in_epoch = [], None
            raise
        self._first, self._outputs, self._in_epoch = dicts, [], None

    def _prepare_first(self) -> None:
        try:
            self._take_first()
        except StopIteration:
            raise RuntimeError(
                "It seems that there is no data in the pipeline: its source is empty, or `last_batch_policy` is DROP and a batch "
                "is larger than the shard"
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
        if self._epochs.size < 0 and isinstance(self._sources[0], IterableSource):
            return len(self._sources[0])
        return len(self._epochs)

    def __iter__(self) -> TorchIterator:
        if self._over or self._returned:
            self.reset()
        return self

    def next(self) -> list[dict[str, Any]]:
        """The next batch.

        Raises StopIteration at the end of an epoch.
        """
        return self.__next__()

    def __next__(self) -> list[dict[str, Any]]:
        if self._first is None:
            if self._over:
                raise StopIteration
            try:
                self._take_first()
            except StopIteration:
                self._over = True
                if self._auto_reset and not self._dry:
                    self.reset()
                raise
        # Nothing is called from here on: Ctrl-C comes while the batch is here, or after the caller has it.
        dicts = self._first
        self._first = None
        self._returned += 1
        return dicts  # type: ignore[return-value]

    def _next_dicts(self) -> list[dict[str, Any]]:
        epochs = self._epochs
        if self._in_epoch is None:
            if not self._outputs and epochs.finished():
                raise StopIteration
            self._run()
            self._in_epoch = epochs.advance()
        if not self._in_epoch:
            raise StopIteration
        outputs = self._outputs
        return [self._to_dict(outputs[k], epochs.rows(k)) for k in range(epochs.pipelines_with_rows(len(outputs)))]

    def _run(self) -> None:
        try:
            for k in range(len(self._outputs), len(self._sources)):
                self._outputs = [*self._outputs, self._run_one(k)]
        except StopIteration:
            self._dry = self._epochs.size > 0
            raise
        if self.batch_size is None:
            self.batch_size = getattr(self._outputs[0][0], "batch_size", 1)
            self._epochs.set_batch_size(self.batch_size)

    def _run_one(self, k: int) -> tuple[Any, ...]:
        source = self._sources[k]
        try:
            return source._iterate()
        except StopIteration:
            if self._epochs.size < 0 or not self._epochs_done[k]:
                raise
            # the source has at least `size` samples, so this is the end of a pass over it, not a lack of data
            self._epochs_done[k] = False
            source.reset()
            return source._iterate()

    def _to_dict(self, outputs: tuple[Any, ...], rows: int) -> dict[str, Any]:
        if len(outputs) < len(self.output_map):
            raise KeyError(f"output_map has {len(self.output_map)} names, the pipeline gives {len(outputs)} outputs")
        if len(outputs) > len(self.output_map):
            raise IndexError(f"output_map has {len(self.output_map)} names, the pipeline gives {len(outputs)} outputs")
        tensors = {}
        for name, output in zip(self.output_map, outputs, strict=True):
            batch = getattr(output, "batch", output)
            if self._size > 0:
                check(
                    batch.batch_size == self.batch_size,
                    "Variable batch size is not supported by the iterator when reader_name is provided or size is set: "
                    f"got a batch of {batch.batch_size}, expected {self.batch_size}",
                )
            tensors[name] = self._convert(name, batch, rows if self._size > 0 else batch.batch_size)
        return tensors

    def reset(self) -> None:
        """Begins the next epoch. In the middle of an epoch it only logs a warning, as in DALI."""
        if not self._over:
            self._look_ahead()
        if not (self._over or self._epochs.finished()) or (self._first is not None and self._epochs.size > 0):
            if self._epochs.size > 0:
                logging.warning(
                    "%s: reset() in the middle of an epoch is ignored: the epoch goes on", type(self).__name__
                )
            return
        if self._dry:
            return
        self._over, self._returned = False, 0
        self._epochs.reset()
        self._epochs_done = [True] * len(self._sources)
        for source in self._sources:
            source.reset()

    def _look_ahead(self) -> None:
        """Finds out whether the epoch is over in cases where only the next batch tells."""
        if self._first is not None:
            return
        try:
            if self._epochs.size < 0:
                self._take_first()
            elif self._epochs.drops_next():
                self._run()
                self._epochs.advance()
                self._outputs = []
        except StopIteration:
            self._over = True

    def _convert(self, name: str, batch: Any, rows: int) -> Any:
        """The first rows of an output in the form that the loop gets."""
        raise NotImplementedError


class DALIGenericIterator(TorchIterator):
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
        last_batch_policy: `LastBatchPolicy.FILL`, `DROP` or `PARTIAL`: the treatment of a last batch that is not full.
        prepare_first_batch: run the pipelines once in the constructor, so that errors show there.

    The tensors share the memory of the pipeline's outputs and stay valid, and unchanged, as long as they are held.

    Raises AssertionError for wrong uses, as DALI does: no pipeline, names that repeat, pipelines of different sizes, a
    size of 0 or beside `reader_name`. Raises TypeError for anything but a pipeline or iterable, ValueError for an unknown
    `auto_reset`, RuntimeError for an unknown reader.

    >>> import ndd, ndd.plugin.pytorch as pytorch
    >>> @ndd.pipeline_def(batch_size=2)
    ... def pipeline():
    ...     return ndd.fn.external_source(source=[[1, 2], [3, 4]])
    >>> [d[0]["n"].tolist() for d in pytorch.DALIGenericIterator(pipeline(), ["n"])]
    [[1, 2], [3, 4]]
    """

    def _convert(self, name: str, batch: Any, rows: int) -> Any:
        return _dense(name, batch, rows)


def _dense(name: str, batch: Any, rows: int) -> Any:
    """The first rows of a batch as one tensor."""
    shapes = batch.shape
    if any(s != shapes[0] for s in shapes):
        raise RuntimeError(
            f"Output {name!r} is ragged: its samples have shapes {sorted(set(shapes))[:4]}. Use "
            "DALIRaggedIterator, or make the shapes equal (resize, crop, pad) in the pipeline"
        )
    tensor = batch.torch()
    return tensor if rows == len(tensor) else tensor[:rows]


def _warn(text: str) -> None:
    """Warns at the line that called the iterator's constructor (or a subclass's)."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_code.co_filename == __file__:
        frame, level = frame.f_back, level + 1
    warnings.warn(text, Warning, stacklevel=level)


def _policy(policy: Any, fill_last_batch: bool | None) -> LastBatchPolicy:
    if fill_last_batch is not None:
        _warn("`fill_last_batch` is deprecated: use `last_batch_policy` (True is FILL, False is PARTIAL)")
        return LastBatchPolicy.FILL if fill_last_batch else LastBatchPolicy.PARTIAL
    if not isinstance(policy, LastBatchPolicy):
        raise ValueError(
            f"Wrong type for `last_batch_policy`. Expected a LastBatchPolicy, got the {type(policy).__name__} {policy!r}"
        )
    return policy


class DALIClassificationIterator(DALIGenericIterator):
    """A `DALIGenericIterator` over two outputs named "data" and "label".

    Args:
        pipelines, size, reader_name, auto_reset, fill_last_batch, dynamic_shape, last_batch_padded, last_batch_policy,
            prepare_first_batch: as for `DALIGenericIterator`.

    >>> import ndd
    >>> from ndd.plugin.pytorch import DALIClassificationIterator
    >>> batches = [(ndd.batch([[1], [2]]), ndd.batch([[7], [8]]))]
    >>> [data["label"].flatten().tolist() for (data,) in DALIClassificationIterator(batches)]
    [[7, 8]]
    """

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


class DALIRaggedIterator(TorchIterator):
    """As `DALIGenericIterator`, for outputs whose samples differ in shape.

    `output_types` says for each output what it becomes: `DENSE_TAG` one tensor (the default; ragged samples are an
    error), `SPARSE_LIST_TAG` a list of tensors, `SPARSE_COO_TAG` one sparse tensor with the indices (sample, position)
    of 1-D samples.

    Args:
        output_types: `DENSE_TAG`, `SPARSE_LIST_TAG` or `SPARSE_COO_TAG` for each output.
        pipelines, output_map, size, reader_name, auto_reset, fill_last_batch, dynamic_shape, last_batch_padded,
            last_batch_policy, prepare_first_batch: as for `DALIGenericIterator`.

    Raises AssertionError as `DALIGenericIterator`, and for tags that are not one for each output.

    >>> import ndd
    >>> from ndd.plugin.pytorch import DALIRaggedIterator
    >>> batches = [(ndd.batch([[1, 2], [3]]),)]
    >>> iterator = DALIRaggedIterator(batches, ["x"], output_types=[DALIRaggedIterator.SPARSE_LIST_TAG])
    >>> [data["x"] for (data,) in iterator]
    [[tensor([1, 2], dtype=torch.int32), tensor([3], dtype=torch.int32)]]
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
        check(
            all(k in known for k in kinds),
            f"Only DENSE_TAG, SPARSE_LIST_TAG and SPARSE_COO_TAG are allowed in output_types, {known}: got {kinds}",
        )
        check(len(kinds) == len(list(output_map)), "output_types and output_map must have the same length")
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
            return _dense(name, batch, rows)
        tensors = [t.torch() for t in batch.tensors[:rows]]
        return tensors if kind == self.SPARSE_LIST_TAG else _coo(name, tensors)


def _coo(name: str, tensors: list[Any]) -> Any:
    """1-D samples as one sparse tensor of shape [samples, longest]."""
    if any(t.ndim != 1 for t in tensors):
        raise RuntimeError(f"Output {name!r}: a sparse COO tensor is made of 1-D samples")
    device = tensors[0].device if tensors else None
    samples = torch.cat([torch.full((len(t),), i, device=device) for i, t in enumerate(tensors)])
    positions = torch.cat([torch.arange(len(t), device=device) for t in tensors])
    longest = max((len(t) for t in tensors), default=0)
    indices, shape = torch.stack([samples, positions]), (len(tensors), longest)
    return torch.sparse_coo_tensor(indices, torch.cat(tensors), shape, check_invariants=False)
