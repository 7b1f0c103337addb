"""`readers.Caffe2`: images, labels and boxes from Caffe2's LMDBs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ndd._tensor import Packed
from ndd._tensor.dtype import float32, int32, uint8
from ndd.readers.files.file_tree import FilePath, listed_names
from ndd.readers.formats import protobuf
from ndd.readers.formats.lmdb_file import LmdbStore
from ndd.readers.output import Column, Output
from ndd.readers.reader import Reader
from ndd.readers.stores.records import Records, numbers_of, samples_of

_SINGLE, _SPARSE, _DENSE, _WEIGHTED, _NONE = range(5)  # label_type
_PROTOS = 1  # the field of TensorProtos
_DIMS, _TYPE, _FLOATS, _INTEGERS, _BYTES, _STRINGS = range(1, 7)  # fields of a TensorProto
_FLOAT, _INT32, _BYTE, _STRING = range(1, 5)  # its data_type
_MOST_TENSORS = 1 << 12  # of a record, beside image and label; each is an output of its own


class Caffe2(Reader):
    """Reads Caffe2's LMDBs of `TensorProtos` records and gives the image, the label, more tensors and a box.

    The tensors of a record are, in this order: the image, u8 (a STRING: the bytes of its first text, `[size]`; or a BYTE
    tensor, with its own shape); the label; `additional_inputs` tensors, FLOAT as f32 or INT32 as i32, `[n]`; and, as
    the last of the record, the box, INT32, as i32 `[4]`. Records come in the order of their keys. No library of LMDB,
    Caffe2 or protobuf is needed.

    Args:
        path: the folder of an LMDB, or its `data.mdb`; a list of them is read one after the other.
        image_available: False: records have no image, and begin with the label.
        label_type: 0: one number, i32 or f32 as stored, `[1]`. 1: indices of labels, given as i32 `[num_labels]` with 1
            at each and 0 elsewhere. 2: all numbers of the tensor, i32 or f32 as stored, `[n]`. 3: a tensor of indices
            and one of weights, given as f32 `[num_labels]`. 4: no label.
        num_labels: the number of labels, for types 1 and 3.
        additional_inputs: the number of tensors after the label.
        bbox: whether the last tensor is a box.

    Differences from DALI: label types 1 and 3 work (DALI 2.4.0 refuses good records); a record with fewer tensors than
    asked for, or of another kind, is an error and never ends the process; `path` may be the file.

    Raises: IndexError if no output is left. At the first sample: RuntimeError for another label type, a
    negative number of inputs, a path that is not an LMDB, an empty or damaged LMDB, more shards than records; at its batch
    for a record that is cut off, is not a TensorProtos, or has other tensors or integers of more than 32 bits, and for a
    label that is not below `num_labels`.

    >>> import ndd
    >>> [output.name for output in ndd.readers.Caffe2.outputs(additional_inputs=2, bbox=True)]
    ['image', 'label', 'additional[0]', 'additional[1]', 'bbox']
    """

    _permutes_first = False
    _has_epoch_shuffle = False

    @classmethod
    def _outputs(cls, **arguments: Any) -> tuple[Output, ...]:
        outputs: list[Output] = []
        if arguments.get("image_available", True):
            outputs.append(Output("image", uint8))
        kind = arguments.get("label_type", _SINGLE)
        if kind != _NONE:
            outputs.append(Output("label", {_SPARSE: int32, _WEIGHTED: float32}.get(kind), 1))
        count = arguments.get("additional_inputs", 0)
        if count > _MOST_TENSORS:
            raise RuntimeError(f"{cls._display}: additional_inputs: expected up to {_MOST_TENSORS:,}, got {count:,}")
        outputs += [Output(f"additional[{k}]", None, 1) for k in range(count)]
        if arguments.get("bbox", False):
            outputs.append(Output("bbox", int32, 1))
        if not outputs:
            raise IndexError(f"{cls._display}: image_available, label_type and the others leave no output")
        return tuple(outputs)

    def _open(
        self,
        *,
        additional_inputs: int = 0,
        bbox: bool = False,
        image_available: bool = True,
        label_type: int = 0,
        num_labels: int = 1,
        path: FilePath | Sequence[FilePath],
    ) -> LmdbStore:
        if not _SINGLE <= label_type <= _NONE:
            raise RuntimeError(f"{self._display}: label_type: expected a number from 0 to 4, got {label_type}")
        if additional_inputs < 0:
            raise RuntimeError(f"{self._display}: additional_inputs: expected a number from 0, got {additional_inputs}")
        if num_labels < 1 and label_type in (_SPARSE, _WEIGHTED):
            raise RuntimeError(f"{self._display}: num_labels: expected a positive number, got {num_labels}")
        paths = listed_names(self._display, "path", path)
        return _Tensors(self._display, paths, image_available, label_type, num_labels, additional_inputs, bbox)


class _Tensors(LmdbStore):
    def __init__(
        self, reader: str, paths: list[str], image: bool, label: int, num_labels: int, additional: int, box: bool
    ):
        super().__init__(reader, paths)
        self._image, self._label, self._num_labels = image, label, num_labels
        self._additional, self._box = additional, box
        self._labels = {_NONE: 0, _WEIGHTED: 2}.get(label, 1)  # tensors
        self._wanted = image + self._labels + additional + box

    def contents(self, data: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> Records:
        tensors = _Batch(data, starts, ends, self._wanted, self._box)
        columns: list[Column] = [tensors.images(0)] if self._image else []
        first = int(self._image)
        if self._label in (_SINGLE, _DENSE):
            columns.append(tensors.numbers(first, "the label", 1 if self._label == _SINGLE else None))
        elif self._label != _NONE:
            columns.append(self._active(tensors, first))
        first += self._labels
        columns += [tensors.numbers(first + k, f"additional[{k}]") for k in range(self._additional)]
        if self._box:
            columns.append(tensors.numbers(-1, "the box", 4, _INT32))
        return Records.from_columns(columns, {place: ValueError(text) for place, text in tensors.wrong.items()})

    def _active(self, tensors: _Batch, first: int) -> list[np.ndarray]:
        """Labels given by their indices, and perhaps weights, as one number for each possible label."""
        weighted = self._label == _WEIGHTED
        indices = tensors.numbers(first, "the label", None, _INT32)
        weights = tensors.numbers(first + 1, "the labels' weights", None, _FLOAT) if weighted else indices
        rows: list[np.ndarray] = []
        for place, (listed, each) in enumerate(zip(samples_of(indices), samples_of(weights), strict=True)):
            row = np.zeros(self._num_labels, np.float32 if weighted else np.int32)
            outside = listed[(listed < 0) | (listed >= self._num_labels)]
            if len(listed) != len(each):
                tensors.refuse(place, f"expected as many weights as labels, got {len(each)} for {len(listed)}")
            elif len(outside):
                tensors.refuse(place, f"expected labels from 0 to num_labels - 1 = {len(row) - 1}, got {outside[0]}")
            else:
                row[listed] = each if weighted else 1
            rows.append(row)
        return rows


class _Batch:
    """The first `wanted` tensors of several records, and with `last` the last one of each, which then is tensor -1.

    Attributes:
        facts: `facts[:, k]` has what `protobuf.fields` tells about tensor `k`.
        wrong: the error of each bad record, by its position.
    """

    def __init__(self, data: np.ndarray, starts: np.ndarray, ends: np.ndarray, wanted: int, last: bool):
        self.wrong: dict[int, str] = {}
        self._data = data
        ranges = np.zeros((len(starts), wanted + last, 2), np.int64)
        counts = np.zeros(len(starts), np.int64)
        protobuf.messages(data, starts, ends, _PROTOS, last, ranges, counts)
        self._starts, self._ends = ranges[:, :, 0].copy(), ranges[:, :, 1].copy()
        facts = np.zeros((ranges.shape[0] * ranges.shape[1], _STRINGS + 1, protobuf.FACTS), np.int64)
        protobuf.fields(data, self._starts.ravel(), self._ends.ravel(), facts)
        self.facts = facts.reshape(*ranges.shape[:2], *facts.shape[1:])
        typed = self.facts[:, :, _TYPE]
        self._types = np.where(typed[..., protobuf.VARINTS] > 0, typed[..., protobuf.VALUE], _FLOAT)
        broken = (counts < 0) | np.any(self.facts[:, :, 0, 0] != 0, axis=1)
        for place in np.flatnonzero(broken | (counts < wanted)).tolist():
            size, count = ends[place] - starts[place], counts[place]
            self.refuse(
                place,
                f"expected a TensorProtos of Caffe2, got a record of {size} bytes that is not one"
                if broken[place] else f"expected {wanted} tensor(s) in the record, got {count}",
            )  # fmt: skip

    def refuse(self, place: int, text: str) -> None:
        """Notes the error of a record, unless it has one already."""
        self.wrong.setdefault(place, text)

    def images(self, tensor: int) -> Column:
        """Tensor `tensor` of each record as an image."""
        kinds, facts = self._types[:, tensor], self.facts[:, tensor]
        texts = kinds == _STRING
        fields = facts[:, _STRINGS, protobuf.FIRST : protobuf.FIRST + 2]
        every = bool(texts.all())
        if not every:
            fields = np.where(texts[:, None], fields, facts[:, _BYTES, protobuf.LAST : protobuf.LAST + 2])
        packed = Packed.of(self._data, fields[:, 0], fields[:, 1] - fields[:, 0])
        for place in np.flatnonzero(texts & (facts[:, _STRINGS, protobuf.TEXTS] == 0)).tolist():
            self.refuse(place, "expected an image, its tensor of texts is empty")
        if every:
            return packed
        for place in np.flatnonzero(~texts & (kinds != _BYTE)).tolist():
            self.refuse(place, f"expected an image as STRING ({_STRING}) or BYTE ({_BYTE}), got type {kinds[place]}")
        pixels = np.flatnonzero(kinds == _BYTE)
        if not len(pixels):
            return packed
        arrays = packed.arrays()
        shapes = samples_of(self._listed(pixels, tensor, _DIMS)[0])
        for place, shape in zip(pixels.tolist(), shapes, strict=True):
            bytes_there = arrays[place]
            if np.any(shape < 0) or np.prod(shape.astype(object)) != len(bytes_there) or len(shape) > 32:
                self.refuse(place, f"expected an image of shape {shape.tolist()}, got {len(bytes_there)} bytes")
            else:
                arrays[place] = bytes_there.reshape(shape)
        return arrays

    def numbers(self, tensor: int, label: str, count: int | None = None, kind: int | None = None) -> Column:
        """The numbers in tensor `tensor` of each record, FLOAT as f32 and INT32 as i32; exactly `count` of them, if it is
        given."""
        kinds = self._types[:, tensor]
        columns: list[Any] = [np.empty(0, np.int32)] * len(kinds)
        for wire, field in ((_FLOAT, _FLOATS), (_INT32, _INTEGERS)):
            places = np.flatnonzero(kinds == wire)
            if len(places) and kind in (None, wire):
                values, counts = self._listed(places, tensor, field)
                for k in [] if count is None else np.flatnonzero(counts != count).tolist():
                    self.refuse(int(places[k]), f"expected {label} as {count} number(s), got {counts[k]}")
                if len(places) == len(kinds):
                    return values
                for place, sample in zip(places.tolist(), samples_of(values), strict=True):
                    columns[place] = sample
        allowed = {_FLOAT: "FLOAT (1)", _INT32: "INT32 (2)"}
        asked = allowed[kind] if kind else " or ".join(allowed.values())
        for place in np.flatnonzero((kinds != kind) if kind else (kinds != _FLOAT) & (kinds != _INT32)).tolist():
            self.refuse(place, f"expected {label} as {asked}, got a tensor of type {kinds[place]}")
        return columns

    def _listed(self, places: np.ndarray, tensor: int, field: int) -> tuple[np.ndarray | Packed, np.ndarray]:
        """The numbers of a field of a tensor of some records, dimensions as i64, others as i32 or f32; and how many."""
        room = self.facts[places, tensor, field, protobuf.MOST]
        begins = np.cumsum(room) - room
        out = np.empty(int(room.sum()), np.int32 if field == _FLOATS else np.int64)
        counts = np.empty(len(places), np.int64)
        starts, ends = self._starts[places, tensor], self._ends[places, tensor]
        protobuf.numbers(self._data, starts, ends, field, 5 if field == _FLOATS else 0, begins, room, out, counts)
        for place in places[counts < 0].tolist():
            self.refuse(
                place, f"expected complete numbers in field {field} of tensor {tensor}, the last one is cut off"
            )
        counts = np.maximum(counts, 0)
        if field == _INTEGERS:
            whole, out = out, out.astype(np.int32)
            for k in np.flatnonzero(whole != out).tolist():
                place = int(np.searchsorted(begins, k, "right")) - 1
                if k - begins[place] < counts[place]:
                    self.refuse(int(places[place]), f"expected numbers of 32 bits in tensor {tensor}, got {whole[k]}")
        return numbers_of(out.view(np.float32) if field == _FLOATS else out, begins, counts), counts
