"""`readers.Webdataset`: samples whose components are files of the same name in tar archives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ndd._tensor import Packed
from ndd._tensor.dtype import DType, bfloat16, bool_, dtype as to_dtype, uint8
from ndd._tensor.secrets import without_secrets
from ndd._tensor.user_line import warn_user
from ndd.io.object_store import Status
from ndd.readers.files.file_tree import MOST_BYTES, FilePath, is_offset, listed_names, path_texts, read_lines, words_of
from ndd.readers.files.index_cache import Index, all_inside, all_within, has_columns, listed_or_scanned
from ndd.readers.formats.tar_file import members
from ndd.readers.formats.tar_header import BLOCK, wrong_headers
from ndd.readers.output import Column, Output
from ndd.readers.reader import Reader
from ndd.readers.stores.container import ContainerStore
from ndd.readers.stores.records import Records
from ndd.types import DALIDataType

_VERSIONS = {"v1.0": (3, 4), "v1.1": (3,), "v1.2": (4,)}  # words for a component: extension, offset, size, file name
_BEHAVIOURS = ("empty", "skip", "error")


class Webdataset(Reader):
    """Reads tar archives of WebDataset. Outputs: one component, 1-D, for each entry of `ext`.

    A component's file name is divided at the first dot of its last part: `a/17.seg.png` is the component `seg.png` of
    the sample `a/17`. Consecutive files with the same sample name are one sample; if a name appears again later, a new sample
    begins. Files whose names begin with a dot are skipped; a file without a dot is a sample without components.

    Args:
        paths: an archive, or a list of archives, which count as one, in the order of the list.
        ext: the extension of each output, or several such as "jpg;png": the first file of the sample, in the order of the archive,
            with one of them.
        case_sensitive_extensions: distinguish "JPG" from "jpg".
        dtypes: the element type of each output, by default u8 for all. A component's size must be a multiple of it.
        index_paths: the index of each archive, as written by DALI's `wds2idx` or `python -m ndd index` (v1.0 to v1.2). None:
            one pass over the headers of the archive makes the index, which is cached between runs (`NDD_CACHE_DIR`).
        missing_component_behavior: for a sample without one of the components. "empty" (or ""): an array of shape `(0,)`; "skip":
            skip the sample; "error".

    Differences from DALI:

    * Headers of pax are read, so names may have any length.
    * An archive without samples adds none (DALI: one empty sample), and is an error if it is the only one.
    * A hidden file at the beginning of an archive is not a sample (DALI: an empty one, without an index).
    * Truncated archives, which end without their end mark, are errors, as are sparse files, and a single block of zeros before
      other members.
    * An extension that several outputs name serves all of them, also with "skip" (DALI 2.4.0: no sample is left).
    * The header before each component is checked, so a modified archive, or the index of another one, is an error.
    * `shuffle_after_epoch` shuffles (in DALI 2.4.0 it reads the same shard in stored order).

    Raises (at the first sample): RuntimeError for a missing or broken archive or index, a wrong number of indices, wrong types or
    behaviours, a component whose size is not a multiple of its type, more shards than samples, or no samples. At its batch:
    RuntimeError for a component that is truncated or not at the place in the index.

    >>> import io, ndd, pathlib, tarfile, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.tar"
    >>> with tarfile.open(path, "w") as tar:
    ...     for name in ("0.txt", "0.cls", "1.txt"):
    ...         info = tarfile.TarInfo(name)
    ...         info.size = len(name)
    ...         tar.addfile(info, io.BytesIO(name.encode()))
    >>> reader = ndd.readers.Webdataset(paths=path, ext=["cls", "txt"])
    >>> for label, text in reader.next_epoch():
    ...     print(bytes(label.torch().tolist()), bytes(text.torch().tolist()))
    b'0.cls' b'0.txt'
    b'' b'1.txt'
    """

    _permutes_first = False

    @classmethod
    def _outputs(cls, *, ext: Any = (), dtypes: Any = None, **arguments: Any) -> tuple[Output, ...]:
        entries = _extensions(cls._display, ext)
        kinds = _types(cls._display, dtypes) or [uint8] * len(entries)
        kinds += [uint8] * (len(entries) - len(kinds))  # a wrong number is an error of `_open`
        return tuple(Output(entry, kind, 1) for entry, kind in zip(entries, kinds, strict=False))

    def _open(
        self,
        *,
        ext: str | Sequence[str],
        paths: FilePath | Sequence[FilePath],
        case_sensitive_extensions: bool = True,
        dtypes: DType | DALIDataType | Sequence[DType | DALIDataType] | None = None,
        index_paths: FilePath | Sequence[FilePath] | None = None,
        missing_component_behavior: str = "",
    ) -> ContainerStore:
        entries = _extensions(self._display, ext)
        if not entries:
            raise RuntimeError(f"{self._display}: `ext` is an empty list")
        behaviour = missing_component_behavior.lower() or "empty"
        if behaviour not in _BEHAVIOURS:
            raise RuntimeError(
                f"{self._display}: missing_component_behavior: expected one of {', '.join(map(repr, _BEHAVIOURS))}, got "
                f"{missing_component_behavior!r}"
            )
        kinds = _types(self._display, dtypes) or [uint8] * len(entries)
        if len(kinds) != len(entries):
            raise RuntimeError(
                f"{self._display}: dtypes: expected one for each of {len(entries)} extension(s), got {len(kinds)}"
            )
        archives = listed_names(self._display, "paths", paths)
        indices = path_texts(self._display, "index_paths", index_paths) if index_paths is not None else []
        if indices and len(indices) != len(archives):
            raise RuntimeError(
                f"{self._display}: index_paths: expected one index for each of {len(archives)} archive(s), or none, got "
                f"{len(indices)}"
            )
        tables: list[tuple[np.ndarray, np.ndarray]] = []
        known: dict[str, Status] = {}
        for place, path in enumerate(archives):
            listed = indices[place] if indices else None
            index = listed_or_scanned(
                self._display, "webdataset", path, listed, scan_archive, _listed_samples, _is_of, _lists_samples, known
            )
            offsets, sizes, several = _chosen(index, entries, case_sensitive_extensions)
            if not len(offsets):
                warn_user(f"{self._display}: {without_secrets(path)!r} holds no samples")
            tables.append(self._completed(path, entries, kinds, behaviour, offsets, sizes, several))
        containers = np.repeat(np.arange(len(archives)), [len(offsets) for offsets, _ in tables])
        if not len(containers):
            raise RuntimeError(f"{self._display}: no samples in {', '.join(map(repr, archives))}")
        offsets, sizes = (np.concatenate(column) for column in zip(*tables, strict=True))
        store = _Samples(archives, containers, offsets, sizes, kinds)
        store.known = known
        return store

    def _completed(
        self,
        path: str,
        entries: list[str],
        kinds: list[DType],
        behaviour: str,
        offsets: np.ndarray,
        sizes: np.ndarray,
        several: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Offsets and sizes of the samples, after `missing_component_behavior`."""
        missing = sizes < 0
        if behaviour == "error" and missing.any():
            number, output = np.argwhere(missing)[0].tolist()
            raise RuntimeError(
                f"{self._display}: {path} record {number}: expected a component {entries[output]!r}, got none (Underful "
                'sample; see missing_component_behavior="empty" and "skip")'
            )
        uneven = ~missing & (sizes % [kind.numpy.itemsize for kind in kinds] != 0)
        if uneven.any():
            number, output = np.argwhere(uneven)[0].tolist()
            raise RuntimeError(
                f"{self._display}: {path} record {number}: component {entries[output]!r}: component size and dtype "
                f"incompatible: expected a multiple of {kinds[output].numpy.itemsize} bytes for {kinds[output]}, got "
                f"{sizes[number, output]}"
            )
        if several.any():
            number, output = np.argwhere(several)[0].tolist()
            warn_user(
                f"{self._display}: {without_secrets(path)} record {number}: several components match {entries[output]!r}: the "
                f"first in the archive is used (in {int(several.any(axis=1).sum())} samples of this archive)"
            )
        if behaviour == "skip":
            whole = ~missing.any(axis=1)
            return offsets[whole], sizes[whole]
        return offsets, sizes


class _Samples(ContainerStore):
    """Offsets and sizes are `[N, outputs]`; a size of -1 is a missing component."""

    def __init__(
        self,
        paths: Sequence[str],
        containers: np.ndarray,
        offsets: np.ndarray,
        sizes: np.ndarray,
        kinds: Sequence[DType],
    ):
        super().__init__(paths, containers, offsets, sizes)
        self._kinds = [kind.numpy for kind in kinds]

    def read(self, container: int, numbers: np.ndarray) -> Records:
        """Several samples of one archive, each component with the header before it."""
        sizes = self.sizes[numbers].ravel()
        present = np.flatnonzero(sizes >= 0)
        # In the order of the archive, which may differ from the order of the outputs.
        present = present[np.argsort(self.offsets[numbers].ravel()[present], kind="stable")]
        data, starts = np.empty(0, np.uint8), np.zeros(len(sizes), np.int64)
        wrong: dict[int, Exception] = {}
        if len(present):
            offsets = self.offsets[numbers].ravel()[present]
            data, starts[present], errors = self._components(container, offsets, sizes[present])
            wrong = {int(present[k]): error for k, error in errors.items()}
        faults: dict[int, Exception] = {}
        for place in sorted(wrong):
            faults.setdefault(place // len(self._kinds), wrong[place])
        firsts, counts = (part.reshape(len(numbers), -1) for part in (starts, np.maximum(sizes, 0)))
        columns = [_column(data, firsts[:, k], counts[:, k], kind) for k, kind in enumerate(self._kinds)]
        return Records.from_columns(columns, faults)

    def _components(
        self, container: int, offsets: np.ndarray, sizes: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, dict[int, Exception]]:
        """The bytes of some components, as u8 data with the offset of each; and the missing ones."""
        data, starts, failed = self.packed(container, offsets - BLOCK, sizes + BLOCK)
        good = np.ones(len(starts), bool)
        good[list(failed)] = False
        states = np.zeros(len(starts), np.uint8)
        states[good] = wrong_headers(data, starts[good], sizes[good])
        errors: dict[int, Exception] = dict(failed)
        for k in np.flatnonzero(states).tolist():
            got = "another size" if states[k] == 2 else "something else"
            errors[k] = ValueError(
                f"expected the tar header of a component of {sizes[k]} bytes at byte {offsets[k] - BLOCK}, got {got}: is "
                "the archive damaged or changed, or the index that of another one?"
            )
        return data, starts + BLOCK, errors


def _column(data: np.ndarray, starts: np.ndarray, sizes: np.ndarray, kind: np.dtype[Any]) -> Column:
    """Components as samples of an element type."""
    if kind.itemsize == 1:
        return Packed.of(data.view(kind), starts, sizes)
    arrays = [piece.view(kind) for piece in Packed.of(data, starts, sizes).arrays()]
    return [piece if piece.flags.aligned else piece.copy() for piece in arrays]


def _extensions(reader: str, ext: Any) -> list[str]:
    entries: list[Any] = list(ext) if isinstance(ext, Sequence) and not isinstance(ext, str) else [ext]
    if not all(isinstance(entry, str) for entry in entries):
        raise TypeError(f"{reader}: ext: expected strings, got {ext!r}")
    return entries


def _types(reader: str, dtypes: Any) -> list[DType]:
    """The element types in `dtypes`. Raises RuntimeError for a type that is not numeric."""
    listed = [] if dtypes is None else dtypes if isinstance(dtypes, list | tuple) else [dtypes]
    types = []
    for kind in listed:
        try:
            types.append(to_dtype(kind))
        except (KeyError, TypeError, ValueError) as error:
            type_of_error = RuntimeError if isinstance(error, KeyError) else type(error)
            raise type_of_error(f"{reader}: dtypes: expected types of numbers, got {kind!r}") from None
        if types[-1] in (bool_, bfloat16) or types[-1].kind is DType.Kind.enum:
            raise RuntimeError(f"{reader}: dtypes: Unsupported output dtype: expected types of numbers, got {kind!r}")
    return types


def component_of(name: str) -> tuple[str, str | None]:
    """The sample's name and the extension of a file; the extension is None without a dot."""
    dot = name.find(".", name.rfind("/") + 1)
    return (name, None) if dot < 0 else (name[:dot], name[dot + 1 :])


def is_hidden(sample: str) -> bool:
    """Whether a file name begins with a dot."""
    return not sample or sample.endswith("/")


def scan_archive(path: str, report: Callable[[int, int], None] = lambda done, total: None) -> Index:
    """The samples of an archive; see `_table`. Raises what `tar_file.members` does."""
    components: list[tuple[int, str, int, int]] = []
    count, last = 0, None
    for name, offset, size in members(path, report):
        sample, extension = component_of(name)
        if is_hidden(sample):
            continue
        if sample != last:
            count, last = count + 1, sample
        if extension is not None:
            components.append((count - 1, extension, offset, size))
    return _table(count, components)


def _table(count: int, components: list[tuple[int, str, int, int]]) -> Index:
    """Components in columns: the number of their sample, of their extension (in `extensions`, joined by zero bytes),
    offset and size; and the number of samples."""
    known: dict[str, int] = {}
    extensions = [known.setdefault(extension, len(known)) for _, extension, _, _ in components]
    numbers = np.array([(sample, offset, size) for sample, _, offset, size in components], np.int64).reshape(-1, 3)
    return {
        "count": np.array([count]),
        "sample": numbers[:, 0].copy(),
        "offset": numbers[:, 1].copy(),
        "size": numbers[:, 2].copy(),
        "extension": np.array(extensions, np.int32),
        "extensions": np.frombuffer("\0".join(known).encode(errors="surrogateescape"), np.uint8),
    }


def _is_of(index: Index, size: int) -> bool:
    """Whether an index is plausible for an archive of this size."""
    return _is_table(index, size // BLOCK) and all_inside(index["offset"], index["size"], size)


def _lists_samples(index: Index, size: int) -> bool:
    """Whether an index file of this size can list these components."""
    return _is_table(index, size) and all(all_within(index[name], 0, MOST_BYTES) for name in ("offset", "size"))


def _is_table(index: Index, most: int) -> bool:
    """Whether an index is such a table, within these numbers of samples and components."""
    if not has_columns(
        index, count="int64 1", sample="int64 c", offset="int64 c", size="int64 c", extension="int32 c",
        extensions="uint8 b",
    ):  # fmt: skip
        return False
    count, sample = int(index["count"][0]), index["sample"]
    known = index["extensions"].tobytes().count(b"\0") + 1
    return (
        0 <= count <= most
        and len(sample) <= most
        and all_within(sample, 0, count - 1)
        and all_within(np.diff(sample), 0, count)
        and all_within(index["extension"], 0, known - 1)
        and not (index["offset"] % BLOCK).any()
        and all_within(index["offset"], BLOCK, MOST_BYTES)
    )


def _chosen(index: Index, entries: list[str], case: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Offsets and sizes `[samples, outputs]` of the selected components, -1 for a missing one; and whether several match."""
    count = int(index["count"][0])
    known = index["extensions"].tobytes().decode(errors="surrogateescape").split("\0")
    offsets, sizes = (np.full((count, len(entries)), -1, np.int64) for _ in range(2))
    several = np.zeros((count, len(entries)), bool)
    for output, entry in enumerate(entries):
        wanted = {word if case else word.lower() for word in entry.split(";") if word}
        matches = np.array([(word if case else word.lower()) in wanted for word in known])
        rows = np.flatnonzero(matches[index["extension"]])
        samples = index["sample"][rows]
        first = np.diff(samples, prepend=-1) != 0
        offsets[samples[first], output] = index["offset"][rows[first]]
        sizes[samples[first], output] = index["size"][rows[first]]
        several[samples[~first], output] = True
    return offsets, sizes, several


def _listed_samples(reader: str, path: str) -> Index:
    """The components in an index. Raises RuntimeError, with file and line, for a broken one."""

    def fault(line: int, text: str) -> RuntimeError:
        return RuntimeError(f'{reader}: Malformed index file at "{path}" line {line}: {text}')

    lines = read_lines(reader, path)
    head = lines[0].split()
    if len(head) != 2 or head[0] not in _VERSIONS or not is_offset(head[1]) or not int(head[1]):
        raise fault(1, f"expected one of {', '.join(_VERSIONS)} and a positive number of samples, got {lines[0]!r}")
    count = int(head[1])
    if len(lines) < count + 1:
        raise fault(len(lines), f"expected {count} samples, the file ends")
    components: list[tuple[int, str, int, int]] = []
    for sample, line in enumerate(lines[1 : count + 1]):
        words = words_of(line)
        step = next((n for n in _VERSIONS[head[0]] if words and not len(words) % n and _numbers(words, n)), None)
        if step is None:
            form = "extension offset size" + (" filename" if _VERSIONS[head[0]] == (4,) else "")
            raise fault(sample + 2, f'expected "{form}" for each component of a sample, got {line!r}')
        for k in range(0, len(words), step):
            offset, size = int(words[k + 1]), int(words[k + 2])
            if offset % BLOCK or not offset:
                raise fault(sample + 2, f"tar offset is not a multiple of tar block size ({BLOCK}), got {offset}")
            components.append((sample, words[k], offset, size))
    return _table(count, components)


def _numbers(words: list[str], step: int) -> bool:
    return all(is_offset(words[k]) and is_offset(words[k + 1]) for k in range(1, len(words), step))
