"""`readers.LitData`: chunks of Lightning's LitData."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ndd._tensor.secrets import without_secrets
from ndd.readers.files.file_tree import FilePath
from ndd.readers.files.table_arguments import column_names
from ndd.readers.formats.arrow import check_columns
from ndd.readers.formats.encoded_fields import Field, Layout
from ndd.readers.formats.litdata_chunks import chunk_of, leaves_of, unpacked
from ndd.readers.formats.litdata_fields import litdata_field
from ndd.readers.formats.shards import Shard, read_indexes, shard_store
from ndd.readers.output import Output
from ndd.readers.reader import Reader
from ndd.readers.stores.records import RecordStore


class LitData(Reader):
    """Reads chunks that LitData's `optimize` wrote and gives a tuple with one output for each of `columns`.

    * Bytes, files and encoded media (`bytes`, `jpeg`, `image`, `video`, ...) are u8 `[size]`: encoded pictures for
      `decoders.image`. So are pickles: nothing is unpickled.
    * `int`, `float` and `bool` are arrays `[1]`, arrays and tensors arrays, and `pil` HWC u8.
    * `str` and `json` are Python objects, a list of them for a batch, as are lists of pictures.

    Samples come in the order of `index.json`. Chunks that are not compressed are read sample by sample, in any order. Compressed
    chunks are read and decompressed whole; those that were used last are kept (256 MB).

    Args:
        path: the folder with `index.json`; a local path or a URL, or a list of them.
        columns: the leaves of the samples, in the order of the outputs; a single name for one. Samples that are dicts have
            their keys ("image"; "box.left" in a dict in a dict), tuples and lists "0", "1" and so on, others "0".

    Raises (at the first sample): RuntimeError for a missing or broken index, a column that is not there, chunks
    that are encrypted or were not written by LitData's `PyTreeLoader`, no samples, more shards than samples; at its batch for
    a sample that cannot be read.

    >>> import json, ndd, pathlib, struct, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> sample = struct.pack("<II", 4, 8) + b"JPEG" + struct.pack("<q", 7)
    >>> _ = (folder / "chunk-0-0.bin").write_bytes(struct.pack("<III", 1, 12, 12 + len(sample)) + sample)
    >>> leaf = {"type": None, "context": None, "children_spec": []}
    >>> spec = [1, {"type": "builtins.tuple", "context": "null", "children_spec": [leaf, leaf]}]
    >>> config = {"compression": None, "data_format": ["jpeg", "int"], "data_spec": json.dumps(spec)}
    >>> chunk = {"chunk_bytes": 12 + len(sample), "chunk_size": 1, "filename": "chunk-0-0.bin"}
    >>> _ = (folder / "index.json").write_text(json.dumps({"chunks": [chunk], "config": config}))
    >>> reader = ndd.readers.LitData(path=folder, columns=["0", "1"])
    >>> for image, label in reader.next_epoch():
    ...     print(image.shape, label.torch().item())
    (4,) 7
    """

    _permutes_first = False

    @classmethod
    def _outputs(cls, *, columns: Any = (), **arguments: Any) -> tuple[Output, ...]:
        return tuple(Output(name) for name in column_names(cls._display, columns))

    def _open(self, *, path: FilePath | Sequence[FilePath], columns: str | Sequence[str]) -> RecordStore:
        names = column_names(self._display, columns)
        shards: list[Shard] = []
        leaves: dict[str, str] = {}
        fields: list[Field] = []
        levels: set[str] = set()

        def take(folder: str, index: Any) -> None:
            config = index["config"]
            here = leaves_of(config)
            if leaves and list(here.items()) != list(leaves.items()):  # they must be in the order of the bytes
                raise ValueError("its samples are of other types than those of the first folder")
            if not leaves:
                check_columns(self._display, without_secrets(folder), names, list(here))
                fields[:] = [litdata_field(name, kind) for name, kind in here.items()]
            leaves.update(here)
            levels.add(str(config.get("compression_level")))
            shards.extend([chunk_of(folder, chunk, config) for chunk in index["chunks"]])

        read_indexes(self._display, "LitData", path, take)
        if not sum(shard.count for shard in shards):
            raise RuntimeError(f"{self._display}: path: the chunks of {without_secrets(path)} hold no samples")
        return shard_store(shards, Layout(fields, names), unpacked if levels & {"batch", "sample"} else None)
