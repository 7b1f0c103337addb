"""`readers.HuggingFace`: data sets of Hugging Face, whose pictures Python does not decode."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from ndd._tensor.secrets import without_secrets
from ndd.io.object_store import Status
from ndd.readers.files.file_tree import FilePath
from ndd.readers.files.table_arguments import cannot_open, column_names, container_files
from ndd.readers.formats.arrow import check_columns
from ndd.readers.formats.arrow_file import read_schema, record_batches
from ndd.readers.formats.arrow_rows import DatasetRows, RecordBatches
from ndd.readers.output import Output
from ndd.readers.reader import Reader
from ndd.readers.stores.records import RecordStore


class Dataset(Protocol):
    """A `datasets.Dataset`."""

    column_names: list[str]

    def with_format(self, type: str) -> Any:
        """The same data, as Arrow tables for example."""
        ...

    def __len__(self) -> int: ...


class HuggingFace(Reader):
    """Reads a `datasets.Dataset`, or a folder of its Arrow files, and gives a tuple with one output for each of `columns`.

    * Pictures and sound (`datasets.Image`, `Audio`) are their encoded bytes, u8 `[size]`, for `decoders.image` and the like:
      the library decodes nothing. Where the data set holds a path, the file is read.
    * Numbers and class labels are arrays `[1]`, lists of numbers arrays.
    * Texts and everything else are Python objects, a list of them for a batch.

    A `Dataset` may be the result of `select`, `filter`, `shuffle` and so on; formats and transforms that were set on it do not
    matter. Its data are mapped, as the library does.

    Args:
        dataset: the `Dataset` (of one split); or a folder that `save_to_disk` wrote, its files (`*.arrow`, files or streams), or
            a list of these, also as URLs.
        columns: the names of the columns, in the order of the outputs; a single name for one column.

    Raises (at the first sample): TypeError for an `IterableDataset` or a `DatasetDict`; RuntimeError for a column
    that is not there, a missing or broken file, no rows, more shards than rows; at its batch for a row that cannot be read, and
    for a null that is neither text nor float.

    >>> import datasets, ndd
    >>> data = datasets.Dataset.from_dict({"image": [b"JPEG", b"..."], "label": [3, 1], "caption": ["a cat", "a dog"]})
    >>> reader = ndd.readers.HuggingFace(data, columns=["image", "label", "caption"])
    >>> for image, label, caption in reader.next_epoch():
    ...     print(image.shape, label.torch().item(), caption)
    (4,) 3 a cat
    (3,) 1 a dog
    """

    _permutes_first = False
    _leading = ("dataset",)

    @classmethod
    def _outputs(cls, *, columns: Any = (), **arguments: Any) -> tuple[Output, ...]:
        return tuple(Output(name) for name in column_names(cls._display, columns))

    def _open(self, *, dataset: Dataset | FilePath | Sequence[FilePath], columns: str | Sequence[str]) -> RecordStore:
        names = column_names(self._display, columns)
        if isinstance(dataset, str | bytes | os.PathLike | list | tuple):
            return self._of_files(dataset, names)
        if not hasattr(dataset, "with_format") or not hasattr(dataset, "__len__") or isinstance(dataset, dict):
            raise TypeError(
                f"{self._display}: dataset: expected a datasets.Dataset of one split, or a folder, got "
                f"{type(dataset).__name__}" + (", of which one split is wanted" if isinstance(dataset, dict) else "")
            )
        check_columns(self._display, "the data set", names, dataset.column_names)  # type: ignore[union-attr]
        if not len(dataset):  # type: ignore[arg-type]
            raise RuntimeError(f"{self._display}: dataset: there are no rows")
        return DatasetRows(dataset, names)

    def _of_files(self, dataset: Any, names: list[str]) -> RecordStore:
        paths = container_files(self._display, "dataset", dataset, "*.arrow")
        batches: list[tuple[int, int, int, int]] = []
        schemas: list[Any] = []
        known: dict[str, Status] = {}
        for place, path in enumerate(paths):
            try:
                index = record_batches(path, known)
                schemas.append(read_schema(path, known[path], index))
            except OSError as error:
                raise cannot_open(self._display, error) from error
            except ValueError as error:
                raise RuntimeError(f"{self._display}: {without_secrets(str(error))}") from error
            check_columns(self._display, without_secrets(path), names, schemas[-1].names)
            rows = zip(*(index[column].tolist() for column in ("offset", "size", "rows")), strict=True)
            batches += [(place, *batch) for batch in rows if batch[2]]
        if not batches:
            raise RuntimeError(f"{self._display}: dataset: there are no rows")
        return RecordBatches(paths, known, schemas, np.array(batches, np.int64), names)
