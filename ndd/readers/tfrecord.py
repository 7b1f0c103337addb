"""`readers.TFRecord`: features of `tf.train.Example` records from TensorFlow's record files."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ndd._execution.memoize import Memoized
from ndd._tensor import Packed
from ndd._tensor.dtype import float32, int64, uint8
from ndd.readers.files.file_reading import OpenFiles, RegularFile, Status, statuses
from ndd.readers.files.file_tree import MOST_BYTES, FilePath, is_offset, listed_names, path_texts, read_lines
from ndd.readers.files.gzip_file import GzipFile, is_packed
from ndd.readers.files.index_cache import Index, all_within, has_columns, listed_or_scanned
from ndd.readers.formats.crc32c import masked_crc32c, wrong_heads
from ndd.readers.formats.tf_example import FRAME, GOOD, HEAD, NOTHING, OTHER_LENGTH, SHORT, decode, examine
from ndd.readers.output import Column, Output
from ndd.readers.reader import Reader
from ndd.readers.stores.container import ContainerStore, opened, warn_of_unlisted
from ndd.readers.stores.records import Records
from ndd.tfrecord import Feature, FeatureType

_DTYPES = {FeatureType.int64: int64, FeatureType.float32: float32, FeatureType.string: uint8}
_LENGTH = struct.Struct("<Q")
_REPORTED = 1 << 14  # records between two reports
_OPEN_AT_ONCE = 32
_MOST_RECORDS = 1 << 20  # of a compressed file, however small it is


class TFRecord(Reader):
    """Reads TFRecord files of `tf.train.Example` records. Samples are dicts of the features, in the order of `features`.

    `ndd.tfrecord` defines the features: `FixedLenFeature(shape, type, default)` has samples of that shape,
    `VarLenFeature(type, default)` samples `(n,)`, `VarLenFeature(shape, type, default)` samples `(n / volume, *shape)`;
    as int64 or float32, and strings as the u8 `[bytes]` of the first value.

    Args:
        path: a record file, or a list of files, which count as one, in the order of the list. Files that are compressed as a
            whole by gzip or zlib (TensorFlow's `compression_type="GZIP"` and `"ZLIB"`) are decompressed while they are read.
        features: a dict of features of `ndd.tfrecord` by name. (The contents of DALI's own objects cannot be read.)
        index_path: the index of each file, as written by DALI's `tfrecord2idx` or `python -m ndd index`: a line
            `offset size` for each record. Records that are not listed do not exist; an index that ends before its
            file raises a warning. For a compressed file the offsets are those in its content. None: one pass over the record
            headers makes the index, which is cached between runs (`NDD_CACHE_DIR`); the CRC of each length is checked.
        use_o_direct: without effect; as in DALI it requires `dont_use_mmap`.

    A compressed file is decompressed once if its records are read in order; reaching any other record costs up to 1/256 of the
    content (at least 1 MB). Store data uncompressed if it is read in random order (`shuffle_after_epoch`).

    Differences from DALI: `index_path` may be omitted. Compressed files are read. Values that a record lacks are the feature's
    default (in DALI they are uninitialised memory); a VarLenFeature then has no values. Values of another type than the
    feature's are an error. The CRC of a record's data, which takes as long as reading it, is checked only if the record cannot
    be parsed, to tell a damaged record from a wrong one. `shuffle_after_epoch` shuffles (in DALI 2.4.0 it reads the same shard in
    stored order).

    Raises: TypeError for values that are not features. At the first sample: RuntimeError for no features or files, a missing,
    broken or empty index, a wrong number of indices, or more shards than records; without an index also for a file that is
    truncated or not TFRecord. At its batch: RuntimeError for a record that is truncated, invalid (as with the index of another
    file), or does not fit a feature.

    >>> import ndd, pathlib, struct, tempfile
    >>> from ndd import tfrecord as tfrec
    >>> label = bytes([26, 3, 10, 1, 7])  # an Int64List of 7
    >>> entry = bytes([10, 5]) + b"label" + bytes([18, len(label)]) + label
    >>> example = bytes([10, len(entry) + 2, 10, len(entry)]) + entry
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "a").write_bytes(struct.pack("<QI", len(example), 0) + example + bytes(4))
    >>> _ = (folder / "a.idx").write_text(f"0 {len(example) + 16}")
    >>> features = {"label": tfrec.FixedLenFeature([1], tfrec.int64, 0)}
    >>> reader = ndd.readers.TFRecord(path=folder / "a", index_path=folder / "a.idx", features=features)
    >>> for sample in reader.next_epoch():
    ...     print(sample["label"].torch())
    tensor([7])
    """

    _permutes_first = False
    gives_dicts = True

    @classmethod
    def _outputs(cls, *, features: Mapping[str, Feature] | None = None, **arguments: Any) -> tuple[Output, ...]:
        return tuple(_output(name, feature) for name, feature in _checked(cls._display, features).items())

    def _open(
        self,
        *,
        path: FilePath | Sequence[FilePath],
        features: Mapping[str, Feature],
        index_path: FilePath | Sequence[FilePath] | None = None,
        use_o_direct: bool = False,
    ) -> ContainerStore:
        if not features:
            raise RuntimeError(f"{self._display}: `features` is empty: name at least one")
        if use_o_direct and not self._options.dont_use_mmap:
            raise RuntimeError(f"{self._display}: use_o_direct requires dont_use_mmap=True, got False")
        for name, feature in features.items():
            if feature.type == FeatureType.string and (feature.variable or feature.shape not in ((), (1,))):
                raise RuntimeError(
                    f"{self._display}: feature {name!r}: Tensors of strings are not supported: "
                    f"expected FixedLenFeature((), string, ...), got {feature}"
                )
        paths = listed_names(self._display, "path", path)
        indices = [None] * len(paths) if index_path is None else path_texts(self._display, "index_path", index_path)
        if len(indices) != len(paths):
            raise RuntimeError(
                f"{self._display}: Number of index files needs to match the number of data files: expected "
                f"{len(paths)}, got {len(indices)}; without index_path an index is made"
            )
        known: dict[str, Status] = {}
        scanned = scan_tfrecord, _listed_records, _tiles, _lists_records
        opened = [
            listed_or_scanned(self._display, "tfrecord", *pair, *scanned, known)
            for pair in zip(paths, indices, strict=True)
        ]
        if index_path is None:
            compressed = ["compressed" in index for index in opened]
        else:
            compressed = are_compressed(paths)
            states = statuses(paths)
            for own, index, file, state, packed in zip(opened, indices, paths, states, compressed, strict=True):
                if isinstance(state, Status):
                    known[file] = state
                if isinstance(state, Status) and not packed:
                    end = int((own["offsets"] + own["sizes"]).max())
                    warn_of_unlisted(self._display, str(index), file, end, state.size)
        containers = np.repeat(np.arange(len(paths)), [len(index["offsets"]) for index in opened])
        offsets, sizes = (np.concatenate([index[key] for index in opened]) for key in ("offsets", "sizes"))
        if not len(offsets):
            raise RuntimeError(f"{self._display}: no records in {', '.join(map(repr, paths))}")
        packed = {path for path, is_one in zip(paths, compressed, strict=True) if is_one}
        store = _Examples(paths, containers, offsets, sizes, features, packed)
        store.known = known
        return store


def scan_tfrecord(path: str, report: Callable[[int, int], None] = lambda done, total: None) -> Index:
    """The offsets of the records of a file, and their sizes including the framing. Reads the 12 bytes before each record. A
    compressed file is decompressed, and the offsets are those in its content.

    `report(done, total)` is called regularly, with numbers of bytes. Raises OSError for a file that cannot be read, and
    ValueError for one that is truncated or has a wrong CRC of a length.
    """
    packed = are_compressed([path])[0]
    offsets, heads, first = [0], bytearray(), 0
    with GzipFile(path) if packed else RegularFile(path) as file:
        while offsets[-1] < file.size:
            head = file.read(offsets[-1], HEAD)
            if not head and offsets[-1] >= file.size:  # the size of the compressed content is known now
                break
            heads += head if len(head) == HEAD else b""
            offsets.append(offsets[-1] + FRAME + (_LENGTH.unpack_from(head)[0] if len(head) == HEAD else 0))
            if (
                packed or len(offsets) % _REPORTED == 0
            ):  # a wrong length points far away, to bytes that are expensive to decompress
                first = _check_heads(path, heads, offsets, first)
            if len(offsets) % _REPORTED == 0:
                if isinstance(file, GzipFile):
                    _check_count(path, len(offsets), file.packed_size)
                report(*((file.consumed, file.packed_size) if isinstance(file, GzipFile) else (offsets[-1], file.size)))
        total = file.size
    _check_heads(path, heads, offsets, first)
    if offsets[-1] > total:
        raise ValueError(
            f"{path} record {len(offsets) - 2}: expected a record of bytes {offsets[-2]} to {offsets[-1]}, the file "
            f"ends at {total}: it is cut off"
        )
    report(total, total)
    listed = np.array(offsets, np.int64)
    return {"offsets": listed[:-1], "sizes": np.diff(listed), **({"compressed": np.array([True])} if packed else {})}


def _check_heads(path: str, heads: bytearray, offsets: list[int], first: int) -> int:
    """Reads record headers from number `first` on. Returns the next number. Raises ValueError for a wrong CRC of a length."""
    wrong = wrong_heads(np.frombuffer(bytes(heads), np.uint8))
    if wrong >= 0:
        number = first + wrong
        raise ValueError(
            f"{path} record {number}: expected a record at byte {offsets[number]}, got a wrong CRC of its length: is this "
            "a TFRecord file, and undamaged?"
        )
    first += len(heads) // HEAD
    heads.clear()
    return first


def _check_count(path: str, count: int, packed_size: int) -> None:
    """Raises ValueError for far more records than the compressed bytes can hold: records differ at least in their checksums, which
    cannot be compressed, so such a file is made to exhaust memory."""
    if count > _MOST_RECORDS + packed_size // 4:
        raise ValueError(
            f"{path}: expected fewer records in {packed_size} compressed bytes, got more than {count}: if it is not an attack, "
            "store it uncompressed"
        )


def are_compressed(paths: Sequence[str]) -> list[bool]:
    """Which files are completely compressed by gzip or zlib. A file that cannot be read counts as uncompressed."""
    compressed: list[bool] = []
    for start in range(0, len(paths), _OPEN_AT_ONCE):
        part = paths[start : start + _OPEN_AT_ONCE]
        with OpenFiles(part) as files:
            heads = files.read(np.arange(len(part)), np.zeros(len(part)), np.full(len(part), HEAD))
        compressed += [
            isinstance(head, np.ndarray) and is_packed(head.tobytes()) and wrong_heads(head) >= 0 for head in heads
        ]
    return compressed


def _tiles(index: Index, size: int) -> bool:
    """Whether the records of an index fill a file of this size."""
    packed = {"compressed": "bool 1"} if "compressed" in index else {}  # then the size of the content is not known
    if not has_columns(index, offsets="int64 n", sizes="int64 n", **packed):
        return False
    offsets, sizes = index["offsets"], index["sizes"]
    if not all_within(sizes, FRAME, MOST_BYTES if packed else size) or not all_within(offsets, 0, MOST_BYTES):
        return False
    ends = np.append(offsets[1:], offsets[-1:] + sizes[-1:] if packed else size)
    return bool((offsets == ends - sizes).all()) and not offsets[:1].any()


def _lists_records(index: Index, size: int) -> bool:
    """Whether an index file of this size can list these records."""
    return (
        has_columns(index, offsets="int64 n", sizes="int64 n")
        and 0 < len(index["offsets"]) <= size // len("0 0")
        and all(all_within(column, 0, MOST_BYTES) for column in index.values())
    )


class _Examples(ContainerStore):
    def __init__(
        self,
        paths: Sequence[str],
        containers: np.ndarray,
        offsets: np.ndarray,
        sizes: np.ndarray,
        features: Mapping[str, Feature],
        compressed: set[str],
    ):
        super().__init__(paths, containers, offsets, sizes)
        if compressed:
            self._files = Memoized(lambda p, known: GzipFile(p) if p in compressed else opened(p, known), limit=16)
        self._features = dict(features)
        names = [name.encode() for name in features]
        self._keys = np.frombuffer(b"".join(names), np.uint8)
        self._key_ends = np.cumsum([len(name) for name in names])
        fixed = [f.type != FeatureType.string and not f.variable for f in features.values()]
        volumes = np.array([_volume(feature.shape) for feature in features.values()])
        self._types = np.array([int(feature.type) for feature in features.values()])
        self._most = np.where(fixed, volumes, np.iinfo(np.int64).max)
        self._divisors = np.where([feature.variable for feature in features.values()], volumes, 1)

    def read(self, container: int, numbers: np.ndarray) -> Records:
        """Several records of one container, parsed together: see `ndd/readers/formats/tf_example.py`."""
        offsets, sizes = self.offsets[numbers], self.sizes[numbers]
        data, starts, errors = self.packed(container, offsets, sizes)
        if errors:
            sizes = sizes.copy()
            sizes[list(errors)] = 0
        features = _ParsedFeatures(data, starts, sizes, self._keys, self._key_ends)
        faults: dict[int, Exception] = {**self._strangers(features, offsets), **errors}
        return Records.from_columns(self._columns(features, faults), faults)

    def _strangers(self, features: _ParsedFeatures, offsets: np.ndarray) -> dict[int, Exception]:
        """The errors of bytes that are not records, by their position."""
        faults: dict[int, Exception] = {}
        for place in np.flatnonzero(features.states != GOOD).tolist():
            state, size, length = int(features.states[place]), int(features.sizes[place]), int(features.lengths[place])
            where = f"at byte {offsets[place]}"
            if state == SHORT:
                text = f"expected a record of at least {FRAME} bytes {where}, the index says {size}"
            elif state == OTHER_LENGTH:
                text = (
                    f"expected a record of {size - FRAME} bytes {where}, its head says {length & 2**64 - 1}: is the "
                    "file damaged or changed, or the index that of another file?"
                )
            else:
                text = f"expected a tf.train.Example {where}, {self._suspicion(features, place)}"
            faults[place] = ValueError(text)
        return faults

    def _suspicion(self, features: _ParsedFeatures, place: int) -> str:
        first = int(features.starts[place]) + HEAD
        last = first + int(features.lengths[place])
        (written,) = struct.unpack("<I", features.data[last : last + 4].tobytes())
        checksum = masked_crc32c(features.data, first, last)
        if checksum == written:
            return "got something else (its CRC is right)"
        return f"got something else with a wrong CRC ({checksum:#010x}, the file says {written:#010x}): is it damaged?"

    def _misfits(self, features: _ParsedFeatures) -> list[list[int]]:
        """Records, and their features, whose values do not fit."""
        kinds, counts = features.kinds, features.counts
        wrong = (kinds != self._types) & (kinds != NOTHING)
        wrong |= (counts > self._most) | (counts % self._divisors != 0)
        wrong &= (features.states == GOOD)[:, None]
        return np.argwhere(wrong).tolist()

    def _misfit(self, features: _ParsedFeatures, place: int, column: int) -> ValueError:
        name, feature = list(self._features.items())[column]
        kind, count = int(features.kinds[place, column]), int(features.counts[place, column])
        if kind != feature.type:
            return ValueError(f"feature {name!r}: expected values of {feature.type.name}, got {FeatureType(kind).name}")
        expected = (
            f"a multiple of {_volume(feature.shape)}" if feature.variable else f"at most {_volume(feature.shape)}"
        )
        note = "" if feature.variable else " (Output tensor shape is too small)"
        return ValueError(
            f"feature {name!r}: expected {expected} value(s) for the shape {feature.shape}, got {count}{note}"
        )

    def _columns(self, features: _ParsedFeatures, faults: dict[int, Exception]) -> list[Column]:
        """Each feature's samples; those of records with a fault are arbitrary. Adds the faults of values to `faults`."""
        wanted = list(enumerate(self._features.items()))
        for place, column in self._misfits(features):
            faults.setdefault(place, self._misfit(features, place, column))
        good = np.ones(len(features.states), bool)
        good[list(faults)] = False
        counts = np.where(good[:, None], features.counts, 0)
        places = np.full(counts.shape, -1, np.int64)
        ends = {FeatureType.int64: 0, FeatureType.float32: 0}
        for column, (_, feature) in wanted:
            if feature.type == FeatureType.string:
                continue
            rooms = counts[:, column] if feature.variable else np.full(len(counts), _volume(feature.shape))
            filled = ends[feature.type] + np.add.accumulate(rooms)
            places[:, column] = filled - rooms
            ends[feature.type] = int(filled[-1])
        ints, floats = (np.empty(ends[kind], _DTYPES[kind].numpy) for kind in ends)
        buffers = dict(zip(ends, (ints, floats), strict=True))
        for column, (_, feature) in wanted:
            if not feature.variable and feature.type != FeatureType.string:
                volume = _volume(feature.shape)
                if (counts[:, column] < volume).any():
                    start = places[0, column]
                    buffers[feature.type][start : start + volume * len(counts)] = feature.default
        wanted_places = np.where(counts, places, -1)
        decode(features.data, features.entries, self._types, wanted_places, counts, ints, floats.view(np.uint32))
        return [
            _strings(feature, features.data, counts[:, column], features.strings[:, column])
            if feature.type == FeatureType.string
            else _numbers(feature, buffers[feature.type], places[:, column], counts[:, column])
            for column, (_, feature) in wanted
        ]


class _ParsedFeatures:
    """The result of the first pass over some records."""

    def __init__(self, data: np.ndarray, starts: np.ndarray, sizes: np.ndarray, keys: np.ndarray, ends: np.ndarray):
        self.data, self.starts, self.sizes = data, starts, sizes
        shape = len(starts), len(ends)
        self.entries = np.empty((*shape, 2), np.int64)
        self.strings = np.empty((*shape, 2), np.int64)
        self.kinds, self.counts = np.empty(shape, np.int64), np.empty(shape, np.int64)
        self.lengths = np.empty(len(starts), np.int64)
        self.states = examine(
            data, starts, sizes, keys, ends, self.entries, self.kinds, self.counts, self.strings, self.lengths
        )


def _strings(feature: Feature, data: np.ndarray, counts: np.ndarray, ranges: np.ndarray) -> Column:
    packed = Packed.of(data, ranges[:, 0], ranges[:, 1] - ranges[:, 0])
    missing = np.flatnonzero(counts == 0).tolist()
    if not missing:
        return packed
    pieces = packed.arrays()
    for place in missing:
        pieces[place] = np.frombuffer(str(feature.default).encode(), np.uint8)
    return pieces


def _numbers(feature: Feature, values: np.ndarray, places: np.ndarray, counts: np.ndarray) -> Column:
    if not feature.variable:
        volume = _volume(feature.shape)
        start = int(places[0])
        return values[start : start + volume * len(places)].reshape(len(places), *feature.shape)
    if not feature.shape:
        return Packed.of(values, places, counts)
    rows = np.where(counts, counts // max(_volume(feature.shape), 1), 0)
    return Packed.of(values, places, np.stack([rows, *(np.full(len(rows), extent) for extent in feature.shape)], 1))


def _volume(shape: tuple[int, ...]) -> int:
    return math.prod(shape)


def _output(name: str, feature: Feature) -> Output:
    ndim = 1 if feature.type == FeatureType.string else len(feature.shape) + feature.variable
    return Output(name, _DTYPES[feature.type], ndim)


def _checked(reader: str, features: Any) -> dict[str, Feature]:
    """The features. Raises TypeError for other values."""
    if features is None:
        return {}
    if not isinstance(features, Mapping):
        raise TypeError(f"{reader}: features: expected a dict of features by name, got {type(features).__name__}")
    for name, feature in features.items():
        if not isinstance(feature, Feature):
            raise TypeError(
                f"{reader}: features: expected `ndd.tfrecord.Feature` for {name!r}, got {type(feature)}. Use "
                "`ndd.tfrecord.FixedLenFeature` or `ndd.tfrecord.VarLenFeature`: the contents of DALI's objects cannot be read"
            )
    return dict(features)


def _listed_records(reader: str, path: str) -> Index:
    """The offsets and sizes in an index, in its order."""
    records = []
    for number, line in enumerate(read_lines(reader, path), 1):
        words = line.split()
        if not words:
            continue
        if len(words) != 2 or not (is_offset(words[0]) and is_offset(words[1])):
            raise RuntimeError(f'{reader}: index "{path}":{number}: expected an offset and a size, got {line!r}')
        records.append((int(words[0]), int(words[1])))
    if not records:
        raise RuntimeError(f"{reader}: index {path!r} lists no records: Content of index files should not be empty")
    table = np.array(records, np.int64)
    return {"offsets": table[:, 0].copy(), "sizes": table[:, 1].copy()}
