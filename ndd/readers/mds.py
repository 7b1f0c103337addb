"""`readers.MDS`: shards of MosaicML Streaming."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from ndd._tensor.secrets import without_secrets
from ndd.io.object_store import is_remote
from ndd.readers.files.file_tree import FilePath
from ndd.readers.files.table_arguments import column_names, inside
from ndd.readers.formats.arrow import check_columns
from ndd.readers.formats.encoded_fields import Field, Layout
from ndd.readers.formats.mds_fields import mds_field
from ndd.readers.formats.shards import Shard, read_indexes, shard_store
from ndd.readers.output import Output
from ndd.readers.reader import Reader
from ndd.readers.stores.records import RecordStore

_MOST_SAMPLES = 1 << 32  # of a shard: offsets are u32


class MDS(Reader):
    """Reads MDS shards of MosaicML Streaming and gives a tuple with one output for each of `columns`.

    * `bytes`, `jpeg`, `png` and `pkl` are u8 `[size]`: encoded pictures for `decoders.image`. Nothing is unpickled.
    * Numbers (`int`, `uint8` to `float64`) are arrays `[1]` of their type, `ndarray` arrays, and `pil` HWC u8.
    * `str`, `json`, `str_int` and the like are Python objects, a list of them for a batch, as are lists of pictures.

    Samples come in the order of `index.json`. Shards that are not compressed are read sample by sample, in any order. Compressed
    shards are read and decompressed whole; those that were used last are kept (256 MB).

    Args:
        path: the folder of a split, which has an `index.json`; a local path or a URL, or a list of them.
        columns: the names of the columns, in the order of the outputs; a single name for one column.

    Raises (at the first sample): RuntimeError for a missing or broken index, a column that is not there, shards
    of several kinds, no samples, more shards than samples; at its batch for a sample that cannot be read.

    >>> import json, ndd, pathlib, struct, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> sample = struct.pack("<II", 4, 5) + b"JPEG" + b"a cat"
    >>> _ = (folder / "shard.00000.mds").write_bytes(struct.pack("<III", 1, 12, 12 + len(sample)) + sample)
    >>> shard = {
    ...     "column_names": ["image", "text"], "column_encodings": ["jpeg", "str"], "column_sizes": [None, None],
    ...     "format": "mds", "samples": 1, "compression": None, "zip_data": None,
    ...     "raw_data": {"basename": "shard.00000.mds", "bytes": 12 + len(sample)},
    ... }
    >>> _ = (folder / "index.json").write_text(json.dumps({"version": 2, "shards": [shard]}))
    >>> reader = ndd.readers.MDS(path=folder, columns=["text", "image"])
    >>> for text, image in reader.next_epoch():
    ...     print(text, image.shape)
    a cat (4,)
    """

    _permutes_first = False

    @classmethod
    def _outputs(cls, *, columns: Any = (), **arguments: Any) -> tuple[Output, ...]:
        return tuple(Output(name) for name in column_names(cls._display, columns))

    def _open(self, *, path: FilePath | Sequence[FilePath], columns: str | Sequence[str]) -> RecordStore:
        names = column_names(self._display, columns)
        shards: list[Shard] = []
        kinds: list[tuple[str, str, int | None]] = []
        fields: list[Field] = []

        def take(folder: str, index: Any) -> None:
            for described in index["shards"]:
                columns_here = _columns(described)
                if kinds and columns_here != kinds:
                    raise ValueError("its shards have different columns")
                if not kinds:
                    check_columns(self._display, without_secrets(folder), names, [name for name, _, _ in columns_here])
                    fields[:] = [_field(*column) for column in columns_here]
                kinds[:] = columns_here
                shards.append(_shard(folder, described))

        read_indexes(self._display, "MDS", path, take)
        if not sum(shard.count for shard in shards):
            raise RuntimeError(f"{self._display}: path: the shards of {without_secrets(path)} hold no samples")
        return shard_store(shards, Layout(fields, names))


def _columns(shard: dict[str, Any]) -> list[tuple[str, str, int | None]]:
    """The name, encoding and size of each column."""
    if shard["format"] != "mds":
        raise ValueError(f"a shard of format {shard['format']!r}")
    listed = zip(shard["column_names"], shard["column_encodings"], shard["column_sizes"], strict=True)
    return [(str(name), str(encoding), int(size) if size else None) for name, encoding, size in listed]


def _field(name: str, encoding: str, size: int | None) -> Field:
    field = mds_field(name, encoding)
    if field.size != size:
        raise ValueError(f"column {name!r}: expected {field.size} bytes for {encoding!r}, got {size} in the index")
    return field


def _shard(folder: str, described: dict[str, Any]) -> Shard:
    count, raw, packed = described["samples"], described["raw_data"], described["zip_data"]
    size = raw["bytes"]
    if type(count) is not int or not 0 <= count < _MOST_SAMPLES or type(size) is not int or size < 0:
        raise ValueError(f"a shard of {count!r} samples and {size!r} bytes")
    path = inside(folder, raw["basename"])
    if packed is None or (not is_remote(path) and os.path.exists(path)):
        return Shard(path, count, "", size)
    return Shard(inside(folder, packed["basename"]), count, str(described["compression"]).partition(":")[0], size)
