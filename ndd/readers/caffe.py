"""`readers.Caffe`: images and labels from Caffe's LMDBs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ndd._tensor import Packed
from ndd._tensor.dtype import int32, uint8
from ndd.readers.files.file_tree import FilePath, listed_names
from ndd.readers.formats import protobuf
from ndd.readers.formats.lmdb_file import LmdbStore
from ndd.readers.output import Column, Output
from ndd.readers.reader import Reader
from ndd.readers.stores.records import Records, numbers_of

_DATA, _LABEL = 4, 5  # fields of a Datum; the others (size, encoded, float_data) are not needed


class Caffe(Reader):
    """Reads Caffe's LMDBs of `Datum` records and gives pairs of (image as u8 `[size]`, label as i32 `[1]`).

    The image is the `data` of the Datum, encoded or not; without a label the Datum has the label `[0]`. Records come in the
    order of their keys. No library of LMDB, Caffe or protobuf is needed.

    Args:
        path: the folder of an LMDB, or its `data.mdb`; a list of them is read one after the other.
        image_available, label_available: False leaves out that output.

    Differences from DALI: `path` may be the file; a record that was rewritten while the reader had the LMDB open is an error
    at its batch.

    Raises: IndexError if neither output is left. At the first sample: RuntimeError for a path that is not an
    LMDB, an empty or damaged LMDB, more shards than records; at its batch for a record that is cut off or is not a
    Datum, and for a label of more than 32 bits.

    >>> import ndd
    >>> [(output.name, str(output.dtype)) for output in ndd.readers.Caffe.outputs()]
    [('image', 'u8'), ('label', 'i32')]
    """

    _permutes_first = False
    _has_epoch_shuffle = False

    @classmethod
    def _outputs(cls, **arguments: Any) -> tuple[Output, ...]:
        declared = (Output("image", uint8, 1), Output("label", int32, 1))
        chosen = tuple(o for o in declared if arguments.get(f"{o.name}_available", True))
        if not chosen:
            raise IndexError(f"{cls._display}: expected at least one of image_available and label_available")
        return chosen

    def _open(
        self, *, image_available: bool = True, label_available: bool = True, path: FilePath | Sequence[FilePath]
    ) -> LmdbStore:
        return _Datums(self._display, listed_names(self._display, "path", path), image_available, label_available)


class _Datums(LmdbStore):
    def __init__(self, reader: str, paths: list[str], image: bool, label: bool):
        super().__init__(reader, paths)
        self._image, self._label = image, label

    def contents(self, data: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> Records:
        facts = np.zeros((len(starts), _LABEL + 1, protobuf.FACTS), np.int64)
        protobuf.fields(data, starts, ends, facts)
        columns: list[Column] = []
        if self._image:
            first, last = facts[:, _DATA, protobuf.LAST], facts[:, _DATA, protobuf.LAST + 1]
            columns.append(Packed.of(data, first, last - first))
        faults = {
            place: f"expected a Datum of Caffe, got a record of {ends[place] - starts[place]} bytes that is not one"
            for place in np.flatnonzero(facts[:, 0, 0]).tolist()
        }
        if self._label:
            values = facts[:, _LABEL, protobuf.VALUE]
            labels = values.astype(np.int32)
            columns.append(
                numbers_of(labels, np.arange(len(labels)), np.minimum(facts[:, _LABEL, protobuf.VARINTS], 1))
            )
            for place in np.flatnonzero(labels != values).tolist():
                faults.setdefault(place, f"expected a label of 32 bits, got {values[place]}")
        return Records.from_columns(columns, {place: ValueError(text) for place, text in faults.items()})
