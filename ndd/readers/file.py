"""`readers.File`: encoded files and their labels, from a directory tree, a list file or explicit lists."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ndd.readers.base import Reader
from ndd.readers.file_store import FileStore
from ndd.readers.file_tree import name_filter, scan_tree

# fmt: off
FILE_FILTERS = [
    "*.jpg", "*.jpeg", "*.png", "*.bmp", "*.tif", "*.tiff", "*.pnm", "*.ppm", "*.pgm", "*.pbm", "*.jp2", "*.webp",
    "*.flac", "*.ogg", "*.wav",
]
# fmt: on
_LIST_LINE = re.compile(r"(?P<name>.*\S)\s+(?P<label>-?\d+)\s*", re.DOTALL)


class File(Reader):
    """Reads whole files and gives pairs of (bytes as u8 `[size]`, label as i32 `[1]`).

    The files come from one of

    * `file_root` alone: each sub-directory is a class. Directories are sorted by name and numbered from 0 (also hidden
      and empty ones; those that `dir_filters` leaves out are not counted), files are sorted by name within them.
      Deeper directories and files in the root itself are ignored; symbolic links are followed.
    * `file_list`: a text file with a line `name label` for each file; names may hold spaces and are relative to
      `file_root`, or to the list's own directory.
    * `files`, with `labels` or labels 0, 1, 2, ...; relative to `file_root` if that is given.

    Args:
        max_batch_size: batch size of `next_epoch()` when it is given none, and the largest that it accepts.
        name: ignored (DALI's operator name).
        device: "cpu".
        num_inputs: 0 or None.
        case_sensitive_filter: match the filters with case.
        dir_filters, file_filters: glob pattern or list of them; a name needs to match one.
        dont_use_mmap: ignored; files are always read, never mapped. (Reading 100 kB takes 14 us, mapping and touching
            it 28 us; and a file that shrinks while it is mapped kills the process.)
        files, labels, file_list, file_root: see above.
        random_shuffle: one fixed permutation of all files, then a buffer of `initial_fill` samples to draw from. The
            order equals DALI's for the same `seed`.
        initial_fill: size of that buffer. It holds sample numbers, not data: a large one costs nothing.
        shuffle_after_epoch: a new permutation of all files for each epoch, the same for all shards; equal to DALI's
            for the same `shuffle_after_epoch_seed`.
        seed: of `random_shuffle` and `shuffle="global"`. The default is a fixed seed.
        num_shards, shard_id: read part `shard_id` of `num_shards`: samples floor(id * N / num) to
            floor((id + 1) * N / num) - 1.
        stick_to_shard: read the same shard at every epoch instead of the next one.
        pad_last_batch: repeat a shard's last sample until it is as long as the longest and fills whole batches, so
            that all shards have equally many batches.
        prefetch_queue_depth: batches to read ahead, besides the one that is next.
        read_ahead: read twice as many batches ahead.
        skip_cached_images, tensor_init_bytes, lazy_init, enable_checkpointing: accepted, without effect: there is no
            decoder cache, memory is pooled, nothing is opened before the first sample, and `get_state` always works.
        shuffle: "global" for a full and independent permutation at each epoch, a pure function of (seed, epoch).
            Shards then keep their share of the permutation. (Not in DALI.)
        sampler: sample numbers for each epoch: a sequence, an object that can be iterated at each epoch (a torch
            Sampler; `set_epoch` is called if it has one) or a function of the epoch number. It is asked while the
            epoch before is still running. For an exact resume it must give the same numbers again. (Not in DALI.)
        shard: "auto" takes shard_id and num_shards from torch.distributed, or from RANK and WORLD_SIZE. (Not in DALI.)

    Differences from DALI: labels in a `file_list` may be negative; an empty file is an empty sample; with
    `shuffle_after_epoch` each shard's epoch has exactly its share of the samples; an unreadable file raises at its
    batch and the next batch can still be read; see also `next_epoch` and `set_state`.

    Raises (when the first sample is asked for): RuntimeError for no, conflicting or empty sources, a missing directory
    or list, a malformed line, more shards than samples; at its batch for a file that cannot be read.

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
    """

    def __init__(
        self,
        max_batch_size: int | None = None,
        name: str | None = None,
        device: Any = "cpu",
        num_inputs: int | None = None,
        *,
        case_sensitive_filter: bool | None = False,
        dir_filters: Sequence[str] | str | None = None,
        dont_use_mmap: bool | None = False,
        file_filters: Sequence[str] | str | None = FILE_FILTERS,
        file_list: Any = None,
        file_root: Any = None,
        files: Any = None,
        initial_fill: int | None = 1024,
        labels: Any = None,
        lazy_init: bool | None = False,
        num_shards: int | None = 1,
        pad_last_batch: bool | None = False,
        prefetch_queue_depth: int | None = 1,
        random_shuffle: bool | None = False,
        read_ahead: bool | None = False,
        seed: int | None = -1,
        shard_id: int | None = 0,
        shuffle_after_epoch: bool | None = False,
        shuffle_after_epoch_seed: int | None = None,
        skip_cached_images: bool | None = False,
        stick_to_shard: bool | None = False,
        tensor_init_bytes: int | None = 1048576,
        enable_checkpointing: bool = False,
        shuffle: str | None = None,
        sampler: Any = None,
        shard: str | None = None,
    ):
        super().__init__(locals())

    def _open(
        self,
        case_sensitive_filter: bool,
        dir_filters: Any,
        file_filters: Any,
        file_list: Any,
        file_root: Any,
        files: Any,
        labels: Any,
    ) -> FileStore:
        if files is not None and file_list is not None:
            raise RuntimeError(f"{self._display}: file names come from `files` or from `file_list`, but not from both")
        if labels is not None and files is None:
            raise RuntimeError(f"{self._display}: `labels` is valid only together with `files`")
        choose_dir = name_filter(self._display, "dir_filters", dir_filters, case_sensitive_filter)
        choose_file = name_filter(self._display, "file_filters", file_filters, case_sensitive_filter)
        root = None if file_root is None else os.fsdecode(file_root)
        if files is not None:
            names, numbers = listed_files(self._display, files, labels)
            store = FileStore([root or ""], names, np.zeros(len(names), np.int32), numbers)
        elif file_list is not None:
            path = os.fsdecode(file_list)
            names, numbers = read_file_list(self._display, path)
            store = FileStore([os.path.dirname(path) if root is None else root], names, None, numbers)
        elif root is not None:
            folders, names, places = scan_tree(self._display, root, choose_dir, choose_file)
            store = FileStore(folders, names, places, places)
        else:
            raise RuntimeError(f"{self._display}: one of `file_root`, `files` and `file_list` is required")
        if not len(store):
            raise RuntimeError(
                f"{self._display}: No files found in {root or file_list}. Do the filters match the names?"
            )
        return store


def listed_files(reader: str, files: Any, labels: Any) -> tuple[list[str], np.ndarray]:
    """`files` and `labels` as names and i32 numbers."""
    names = [os.fsdecode(name) for name in ([files] if isinstance(files, str | bytes | os.PathLike) else list(files))]
    if not names:
        raise RuntimeError(f"{reader}: `files` is an empty list")
    if labels is None:
        return names, np.arange(len(names), dtype=np.int32)
    listed = list(labels) if isinstance(labels, Sequence) else [labels]
    if len(listed) != len(names):
        raise RuntimeError(f"{reader}: expected a label for each file, got {len(listed)} labels for {len(names)} files")
    return names, np.array([int(label) for label in listed], np.int32)


def read_file_list(reader: str, path: str) -> tuple[list[str], np.ndarray]:
    """The names and labels in a list file; blank lines are skipped."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="\n") as lines:
            text = lines.read()
    except OSError as error:
        raise RuntimeError(f"{reader}: Cannot open: {path}: {error.strerror}") from error
    names, labels = [], []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        parts = _LIST_LINE.fullmatch(line)
        if parts is None:
            raise RuntimeError(
                f'{reader}: Incorrect format of the list file "{path}":{number}: expected a file name followed by a '
                f"label, got {line!r}"
            )
        names.append(parts["name"])
        labels.append(int(parts["label"]))
    return names, np.array(labels, np.int64).astype(np.int32)
