"""`readers.File`: encoded files and their labels, from a directory tree, a list file or explicit lists."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from ndd._tensor.dtype import int32, uint8
from ndd.io.object_store import without_query
from ndd.readers.files.file_tree import FilePath, count_files, name_filter, path_text, scan_tree
from ndd.readers.files.labelled_files import listed_files, read_file_list
from ndd.readers.output import Output
from ndd.readers.reader import Reader
from ndd.readers.stores.file_store import FileStore

# fmt: off
FILE_FILTERS = [
    "*.jpg", "*.jpeg", "*.png", "*.bmp", "*.tif", "*.tiff", "*.pnm", "*.ppm", "*.pgm", "*.pbm", "*.jp2", "*.webp",
    "*.flac", "*.ogg", "*.wav",
]
# fmt: on


class File(Reader):
    """Reads whole files and gives pairs of (bytes as u8 `[size]`, label as i32 `[1]`).

    The files come from one of

    * `file_root` alone: each sub-directory is a class. Directories are sorted by name and numbered from 0 (also hidden
      and empty ones; those that `dir_filters` leaves out are not counted), files are sorted by name within them.
      Deeper directories and files in the root itself are ignored; symbolic links are followed.
    * `file_list`: a text file with a line `name label` for each file; names may hold spaces and are relative to
      `file_root`, or to the list's own directory. ASCII spaces and tabs separate them; others (U+00A0) belong to the name.
    * `files`, with `labels` or labels 0, 1, 2, ...; relative to `file_root` if that is given.

    Any of these paths may be the URL of an object or a folder in a store, `s3://bucket/key` and the like
    (`ndd.io.object_store`); files of a web server can be named but not listed. `file://` URLs work as well.

    Args:
        case_sensitive_filter: match the filters with case.
        dir_filters, file_filters: glob pattern or list of them; a name needs to match one.
        files: paths, relative to `file_root` if that is given.
        labels: a whole number for each of `files`; default: 0, 1, 2, ...
        file_list: the text file of names and labels.
        file_root: the folder of classes, or the folder that other paths are relative to.

    Differences from DALI: labels in a `file_list` may be negative; an empty file is an empty sample; with
    `shuffle_after_epoch` each shard's epoch has exactly its share of the samples; an unreadable file raises at its
    batch and the next batch can still be read; files that lie in a root on S3 itself are left out, as on a disk (DALI
    makes a class of them); see also `next_epoch` and `set_state`.

    Raises (at the first sample): RuntimeError for no, conflicting or empty sources, a missing directory
    or list, a malformed line, more shards than samples; at its batch for a file that cannot be read. ValueError for
    labels that are not integers (DALI cuts 0.5 to 0). Labels of more than 32 bits are refused (DALI keeps the lower ones).

    `classes` and `class_to_idx` are as in torchvision's `ImageFolder`: the names of the classes of a `file_root`.

    >>> import ndd, pathlib, tempfile
    >>> root = pathlib.Path(tempfile.mkdtemp())
    >>> for name in ("cat/1.jpg", "cat/2.jpg", "dog/1.jpg"):
    ...     (root / name).parent.mkdir(exist_ok=True)
    ...     _ = (root / name).write_bytes(b"...")
    >>> reader = ndd.readers.File(file_root=root)
    >>> for data, label in reader.next_epoch():
    ...     print(data.shape, label.torch().item())
    (3,) 0
    (3,) 0
    (3,) 1
    >>> reader.classes, reader.class_to_idx
    (['cat', 'dog'], {'cat': 0, 'dog': 1})
    """

    @classmethod
    def _outputs(cls, **arguments: Any) -> tuple[Output, ...]:
        return Output("data", uint8, 1), Output("label", int32, 1)

    @property
    def classes(self) -> list[str]:
        """The names of the classes, by label, which are the names of the directories in `file_root`. Opens the data, and raises
        as the first sample does; RuntimeError for files that are listed: their labels have no names."""
        with self._session.entered():
            names = self._session.opened()[0].classes  # type: ignore[attr-defined]
        if names is None:
            raise RuntimeError(
                f"{self._display}: classes: the files are listed with numbers as labels: only the directories of a "
                "`file_root` name classes"
            )
        return list(names)

    @property
    def class_to_idx(self) -> dict[str, int]:
        """The label of each class by its name, see `classes`."""
        return {name: label for label, name in enumerate(self.classes)}

    def _open(
        self,
        *,
        case_sensitive_filter: bool = False,
        dir_filters: str | Sequence[str] | None = None,
        file_filters: str | Sequence[str] | None = FILE_FILTERS,
        file_list: FilePath | None = None,
        file_root: FilePath | None = None,
        files: FilePath | Sequence[FilePath] | None = None,
        labels: int | Sequence[int] | None = None,
    ) -> FileStore:
        if files is not None and file_list is not None:
            raise RuntimeError(f"{self._display}: file names come from `files` or from `file_list`, but not from both")
        if labels is not None and files is None:
            raise RuntimeError(f"{self._display}: `labels` is valid only together with `files`")
        choose_dir = name_filter(self._display, "dir_filters", dir_filters, case_sensitive_filter)
        choose_file = name_filter(self._display, "file_filters", file_filters, case_sensitive_filter)
        root = None if file_root is None else path_text(self._display, "file_root", file_root)
        if files is not None:
            names, numbers = listed_files(self._display, files, labels)
            store = FileStore([root or ""], names, np.zeros(len(names), np.int32), numbers)
        elif file_list is not None:
            path = path_text(self._display, "file_list", file_list)
            names, numbers = read_file_list(self._display, path)
            store = FileStore([os.path.dirname(without_query(path)) if root is None else root], names, None, numbers)
        elif root is not None:
            folders, names, places = scan_tree(self._display, root, choose_dir, choose_file)
            store = FileStore(folders, names, places, places)
            store.classes = [os.path.basename(folder.rstrip("/")) for folder in folders]
        else:
            raise RuntimeError(f"{self._display}: one of `file_root`, `files` and `file_list` is required")
        if not len(store):
            advice = "Do the filters match the names?"
            loose = count_files(root, choose_file) if root is not None and file_list is None and not dir_filters else 0
            if loose:
                lie = "file lies" if loose == 1 else "files lie"
                advice = (
                    f"{loose} {lie} in it directly: put them into one folder for each class (the folder's position in "
                    "the alphabet is the label), or name them with files=[...], and labels=[...]"
                )
            raise RuntimeError(f"{self._display}: No files found in {root or file_list}. {advice}")
        return store
