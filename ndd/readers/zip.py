"""`readers.Zip`: files in zip archives."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Sequence
from typing import Any

import numpy as np

from ndd._tensor.dtype import int32, uint8
from ndd._tensor.secrets import without_secrets
from ndd.readers.file import FILE_FILTERS
from ndd.readers.files.file_tree import FilePath, name_filter
from ndd.readers.files.seekable_file import SeekableFile
from ndd.readers.files.table_arguments import cannot_open, container_files
from ndd.readers.output import Output
from ndd.readers.reader import Reader
from ndd.readers.stores.container import ContainerStore
from ndd.readers.stores.zip_members import ZipMembers


class Zip(Reader):
    """Reads files in zip archives, as `File` reads a folder. Outputs: the bytes as u8 `[size]`, and the label as i32 `[1]`.

    Each folder of the archive is a class. Folders are sorted by name and numbered from 0 (also hidden and empty ones; those
    that `dir_filters` excludes are not counted); files are sorted by name within them. Deeper folders and files beside the
    folders are ignored; in an archive without folders all files have label 0. Several archives count as one.

    Stored and deflated members can be read, in any order, without unpacking the archive; their CRC is checked.

    Args:
        path: an archive, a folder (its `*.zip`, and those one level below, sorted by name), or a list of them; URLs as well.
        file_root: the folder in the archive whose folders are the classes, as "train" or "photos/train". Default: its root.
        case_sensitive_filter: match the filters with case.
        dir_filters, file_filters: a glob pattern or a list of patterns; a name must match one of them.

    Raises (at the first sample): RuntimeError for a missing or broken archive, no files, or more shards than samples. At its
    batch: RuntimeError for a member that is damaged, encrypted or compressed by another method.

    >>> import ndd, pathlib, tempfile, zipfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.zip"
    >>> with zipfile.ZipFile(path, "w") as archive:
    ...     for name in ("cat/1.jpg", "cat/2.jpg", "dog/1.jpg"):
    ...         archive.writestr(name, name)
    >>> reader = ndd.readers.Zip(path=path)
    >>> for data, label in reader.next_epoch():
    ...     print(bytes(data.torch().tolist()), label.torch().item())
    b'cat/1.jpg' 0
    b'cat/2.jpg' 0
    b'dog/1.jpg' 1
    """

    @classmethod
    def _outputs(cls, **arguments: Any) -> tuple[Output, ...]:
        return Output("data", uint8, 1), Output("label", int32, 1)

    def _open(
        self,
        *,
        path: FilePath | Sequence[FilePath],
        case_sensitive_filter: bool = False,
        dir_filters: str | Sequence[str] | None = None,
        file_filters: str | Sequence[str] | None = FILE_FILTERS,
        file_root: str | None = None,
    ) -> ContainerStore:
        choose_dir = name_filter(self._display, "dir_filters", dir_filters, case_sensitive_filter)
        choose_file = name_filter(self._display, "file_filters", file_filters, case_sensitive_filter)
        root = "".join(f"{part}/" for part in (file_root or "").split("/") if part)
        archives = container_files(self._display, "path", path, "*.zip")
        folders: set[str] = set()
        rows: list[tuple[str, str, int, zipfile.ZipInfo, int]] = []
        for place, archive in enumerate(archives):
            for info, end in self._members(archive):
                if not info.filename.startswith(root):
                    continue
                top, _, name = info.filename.removeprefix(root).rpartition("/")
                folder = top.partition("/")[0]
                if folder and choose_dir(folder):
                    folders.add(folder)
                if folder == top and (not folder or folder in folders) and name and choose_file(name):
                    rows.append((folder, name, place, info, end))
        classes = sorted(folders)
        rows = sorted((row for row in rows if row[0] or not classes), key=lambda row: row[:3])
        if not rows:
            where = f" {root!r} of" if root else ""
            raise RuntimeError(
                f"{self._display}: No files found in{where} {without_secrets(archives[0])}. Do the filters match the names? "
                "Does file_root name the folder of the classes?"
            )
        return ZipMembers(archives, rows, classes)

    def _members(self, archive: str) -> list[tuple[zipfile.ZipInfo, int]]:
        """The members of an archive, each with the offset of the next one."""
        try:
            with SeekableFile(archive) as file, zipfile.ZipFile(file) as opened:
                listed, start = opened.infolist(), opened.start_dir
                for info in listed:
                    numbers = info.header_offset, info.compress_size, info.file_size
                    if min(numbers) < 0 or max(numbers) >= 1 << 63:
                        raise ValueError(f"{info.filename!r:.80} has the offset and sizes {numbers}")
        except OSError as error:
            raise cannot_open(self._display, error) from error
        except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error) as error:
            raise RuntimeError(
                f"{self._display}: {without_secrets(archive)}: expected a zip archive: {error}"
            ) from error
        begins = np.unique([info.header_offset for info in listed] + [start])
        ends = begins[np.minimum(np.searchsorted(begins, [i.header_offset for i in listed], "right"), len(begins) - 1)]
        return list(zip(listed, ends.tolist(), strict=True))
