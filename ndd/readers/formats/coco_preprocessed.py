"""Reads and writes DALI's files of preprocessed COCO annotations.

All numbers are little-endian. Each file but `filenames.dat` (a name a line) begins with a count, i32: of items, but in
`boxes.dat` of numbers.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable
from typing import Any

import numpy as np

from ndd.atomic_file import atomic_file
from ndd.readers.files.file_reading import whole_file
from ndd.readers.formats.coco_masks import Outline, Run

_RUN_HEAD = struct.Struct("<qqq")  # height, width and how many lengths follow, u32
# The items of each file, and how many numbers each has.
_KINDS = {
    "offsets": ("<i4", 1),
    "boxes": ("<f4", 4),
    "labels": ("<i4", 1),
    "counts": ("<i4", 1),
    "original_ids": ("<i4", 1),
    "polygon_data": ("<i4", 3),
    "polygon_offset": ("<i8", 1),
    "polygons_count": ("<i8", 1),
    "vertices": ("<f4", 2),
    "vertices_offset": ("<i8", 1),
    "vertices_count": ("<i8", 1),
    "heights": ("<i4", 1),
    "widths": ("<i4", 1),
    "mask_count": ("<i8", 1),
    "masks_offset": ("<i8", 1),
    "masks_rles_idx": ("<i4", 1),
}


def save(
    folder: str,
    names: list[str],
    boxes: list[np.ndarray],
    labels: list[np.ndarray],
    ids: np.ndarray | None,
    outlines: list[Outline] | None,
    sizes: np.ndarray | None,
) -> None:
    """Writes the files of a data set. OSError if that fails; ValueError for values that the files cannot hold.

    Args:
        folder: an existing folder.
        names: of the image files.
        boxes, labels: of each image.
        ids: of the images, if they are wanted.
        outlines: of each image, if polygons or masks are wanted.
        sizes: [N, 2], height and width of each image, if masks are wanted.
    """
    broken = [name for name in names if "\n" in name]
    if broken:
        raise ValueError(f"a file name with a line break cannot be saved: {broken[0]!r}")
    tables = _spans("boxes", "offsets", "counts", boxes) | {"labels": np.concatenate(labels)}
    if ids is not None:
        tables["original_ids"] = ids
    if outlines is not None:
        tables |= _spans("polygon_data", "polygon_offset", "polygons_count", [o.rows for o in outlines])
        tables |= _spans("vertices", "vertices_offset", "vertices_count", [o.vertices for o in outlines])
    for name, table in tables.items():
        _write(folder, name, table)
    if outlines is not None and sizes is not None:
        _write(folder, "heights", sizes[:, 0])
        _write(folder, "widths", sizes[:, 1])
        runs = [run for outline in outlines for run in outline.runs]
        counts = np.array([len(outline.runs) for outline in outlines], np.int64)
        _write(folder, "mask_count", counts)
        _write(folder, "masks_offset", _starts(counts))
        _write(folder, "masks_rles_idx", np.array([run.place for run in runs], np.int64))
        _replace(folder, "masks_rles", [struct.pack("<i", len(runs)), *map(_packed, runs)])
    _replace(folder, "filenames", [os.fsencode(f"{name}\n") for name in names])


def _starts(counts: np.ndarray) -> np.ndarray:
    return np.cumsum(counts) - counts


def _spans(name: str, offset: str, count: str, parts: list[np.ndarray]) -> dict[str, np.ndarray]:
    counts = np.array([len(part) for part in parts], np.int64)
    return {name: np.concatenate(parts), offset: _starts(counts), count: counts}


def _packed(run: Run) -> bytes:
    return _RUN_HEAD.pack(run.height, run.width, len(run.counts)) + run.counts.astype("<u4").tobytes()


def _write(folder: str, name: str, table: np.ndarray) -> None:
    kind = np.dtype(_KINDS[name][0])
    if (
        kind.kind == "i"
        and len(table)
        and not (np.iinfo(kind).min <= table.min() and table.max() <= np.iinfo(kind).max)
    ):
        raise ValueError(f"{name}.dat holds numbers of {8 * kind.itemsize} bits, got {table.min()} to {table.max()}")
    count = table.size if name == "boxes" else len(table)
    _replace(folder, name, [struct.pack("<i", count), table.astype(kind).tobytes()])


def _replace(folder: str, name: str, parts: Iterable[bytes]) -> None:
    """Several processes may do this at once."""
    with atomic_file(os.path.join(folder, f"{name}.dat")) as file:
        file.writelines(parts)


class Preprocessed:
    """A folder of such files, read on demand; RuntimeError if one is missing or damaged."""

    def __init__(self, reader: str, folder: str):
        self._reader, self._folder = reader, folder

    def names(self) -> list[str]:
        """The image files, none if there are no files."""
        if not os.path.exists(os.path.join(self._folder, "filenames.dat")):
            return []
        return [os.fsdecode(name) for name in self._bytes("filenames").split(b"\n") if name]

    def table(self, name: str, count: int | None = None) -> np.ndarray:
        """The items of one file; there must be `count` of them, if that is given."""
        kind, width = _KINDS[name]
        data = self._bytes(name)
        column = np.frombuffer(data[4:], kind) if (len(data) - 4) % np.dtype(kind).itemsize == 0 else None
        items = struct.unpack("<i", data[:4])[0] if len(data) >= 4 else -1
        if name == "boxes" and items % width == 0:
            items //= width
        if column is None or items * width != len(column):
            self._refuse(name, f"expected {items} items in {len(data)} bytes")
        if count is not None and items != count:
            self._refuse(name, f"expected {count} items, got {items}")
        column = column.astype(kind[1:], copy=False)
        return column.reshape(-1, width) if width > 1 else column

    def spans(self, name: str, offset: str, count: str, images: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The items of a file, and the first and the end of those of each image."""
        items = self.table(name)
        first, counts = (self.table(part, images).astype(np.int64) for part in (offset, count))
        if np.any((first < 0) | (counts < 0) | (first > len(items) - counts)):
            self._refuse(offset, f"expected places among {len(items)} items")
        return items, first, first + counts

    def runs(self) -> list[tuple[int, int, np.ndarray]]:
        """The run lengths: height, width and lengths of each."""
        data, at, masks = self._bytes("masks_rles"), 4, []
        try:
            for _ in range(struct.unpack_from("<i", data)[0]):
                height, width, count = _RUN_HEAD.unpack_from(data, at)
                at += _RUN_HEAD.size
                if count < 0:  # NumPy would take all the rest
                    raise ValueError(f"{count} lengths")
                masks.append((height, width, np.frombuffer(data, "<u4", count, at).astype(np.int64)))
                at += 4 * count
        except (struct.error, ValueError):
            self._refuse("masks_rles", f"expected run lengths at byte {at}")
        return masks

    def outlines(self, images: int, masks: bool) -> SavedOutlines:
        """The outlines of the objects of this many images; with `masks` also run lengths."""
        rows = self.spans("polygon_data", "polygon_offset", "polygons_count", images)
        vertices = self.spans("vertices", "vertices_offset", "vertices_count", images)
        if not masks:
            return SavedOutlines(rows, vertices, None)
        places, first, last = self.spans("masks_rles_idx", "masks_offset", "mask_count", images)
        runs = [Run(place, *run) for place, run in zip(places.tolist(), self.runs(), strict=False)]
        if len(runs) != len(places):
            self._refuse("masks_rles", f"expected {len(places)} masks, got {len(runs)}")
        return SavedOutlines(rows, vertices, (runs, first, last))

    def _bytes(self, name: str) -> bytes:
        path = os.path.join(self._folder, f"{name}.dat")
        try:
            if not os.path.isfile(path):
                raise FileNotFoundError(2, "there is no such file; was it saved with the same options?")
            return whole_file(path)
        except OSError as error:
            raise RuntimeError(f"{self._reader}: preprocessed annotations: {path}: {error.strerror}") from error

    def _refuse(self, name: str, reason: str) -> Any:
        path = os.path.join(self._folder, f"{name}.dat")
        raise RuntimeError(f"{self._reader}: preprocessed annotations: {path} is damaged: {reason}")


class SavedOutlines:
    """The outlines of preprocessed annotations, each part with the first and the end of the items of each image."""

    def __init__(self, rows: Any, vertices: Any, runs: Any):
        self._rows, self._vertices, self._runs = rows, vertices, runs

    def read(self, images: Any) -> list[Outline | Exception]:
        """The outlines of some images."""
        return [self._outline(i) for i in images]

    def close(self) -> None:
        """Nothing is open."""

    def _outline(self, image: int) -> Outline | Exception:
        rows, vertices = (part[0][part[1][image] : part[2][image]] for part in (self._rows, self._vertices))
        runs = [] if self._runs is None else self._runs[0][self._runs[1][image] : self._runs[2][image]]
        if len(rows) and not (rows.min() >= 0 and rows[:, 1:].max() <= len(vertices)):
            return ValueError(f"polygons of image {image}: expected places among {len(vertices)} vertices")
        return Outline(rows, vertices, runs)
