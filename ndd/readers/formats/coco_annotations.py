"""COCO annotation files: a JSON text as arrays, in one pass over the wanted keys; segmentations as places in the text.

Segmentations are most of the text. A first pass notes where each one is; it is decoded when its sample is read. msgspec
decodes the rest. It skips the keys that are not needed and makes no dicts, which takes a third of the memory (of 500 MB) and
a third of the time.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import chain
from operator import attrgetter
from types import SimpleNamespace
from typing import Annotated, Any

import numpy as np

from ndd._execution.memoize import Memoized
from ndd.installation import install_command
from ndd.readers.files.file_reading import OpenFiles, Status, status, whole_file
from ndd.readers.files.index_cache import Index, all_inside, all_within, cached, has_columns
from ndd.readers.formats import json_places
from ndd.readers.formats.coco_masks import Outline, Run, counts_of_text

_VERSION = 1  # of the index
_LIST, _KEY = (np.frombuffer(word, np.uint8) for word in (b"annotations", b"segmentation"))
_SPACE, _END = b" \t\r\n", ord("}")
_LEAST = 64  # bytes of a typical annotation; there may be shorter ones
_PLACE = re.compile(r"\$\.(images|annotations|categories)\[(\d+)\]")


def annotation_index(reader: str, path: str, places: bool) -> Index:
    """The images, categories and annotations of a file as arrays; those of annotations ordered by image id.

    `image_ids`, `sizes` [N, 2] (height and width, 0 where the file does not state them), `names` (text) and `name_ends` are in
    the order of the file, as are `categories`. Of annotations with a box: `owners` (image ids), `boxes` f32 [M, 4], `labels`
    (category ids), `crowds`; with `places` also `numbers` (places in the file's list), `starts` and `lengths` of their
    segmentations in the text (length 0: none). Cached on disk.
    """
    try:
        kind, check = ("coco-places", _is_of_with_places) if places else ("coco", _is_of)
        return cached(path, kind, _VERSION, lambda: _built(reader, path, places), check=check)
    except OSError as error:
        raise RuntimeError(f"{reader}: Could not open JSON annotations file: {path!r}: {error.strerror}") from error


_COLUMNS = {
    "image_ids": "int64 i", "sizes": "int64 i 2", "names": "uint8 b", "name_ends": "int64 i", "categories": "int64 c",
    "owners": "int64 a", "boxes": "float32 a 4", "labels": "int64 a", "crowds": "bool a",
}  # fmt: skip
_PLACES = {"numbers": "int64 a", "starts": "int64 a", "lengths": "int64 a"}


def _is_of(index: Index, size: int) -> bool:
    """Whether an index may belong to a text."""
    return has_columns(index, **_COLUMNS) and _is_ordered(index)


def _is_of_with_places(index: Index, size: int) -> bool:
    """The same for an index with positions in a text of this size."""
    return (
        has_columns(index, **_COLUMNS, **_PLACES)
        and _is_ordered(index)
        and all_within(index["numbers"], 0, size)
        and all_inside(index["starts"], index["lengths"], size)
    )


def _is_ordered(index: Index) -> bool:
    characters = len(index["names"].tobytes().decode("utf-8", "surrogatepass"))
    ends = np.append(0, index["name_ends"])
    ascending = (ends[:-1] <= ends[1:]).all() and (index["owners"][:-1] <= index["owners"][1:]).all()
    return int(ends[-1]) == characters and bool(ascending)


def _built(reader: str, path: str, places: bool) -> Index:
    text, starts, lengths = _divided(np.frombuffer(whole_file(path), np.uint8))
    document = _decoded(reader, path, text)
    images, every = document.images, document.annotations
    names = [image.file_name for image in images]
    kept = [a for a in every if a.bbox]
    owners = _integers(kept, "image_id")
    order = np.argsort(owners, kind="stable")
    sides = chain.from_iterable(map(_kinds().astuple, map(attrgetter("bbox"), kept)))
    boxes = np.fromiter(sides, np.float64, 4 * len(kept))
    index = {
        "image_ids": _integers(images, "id"),
        "sizes": np.array([(i.height or 0, i.width or 0) for i in images], np.int64).reshape(-1, 2),
        "names": np.frombuffer("".join(names).encode("utf-8", "surrogatepass"), np.uint8),
        "name_ends": np.cumsum(np.fromiter(map(len, names), np.int64, len(names))),
        "categories": _integers(document.categories, "id"),
        "owners": owners[order],
        "boxes": boxes.reshape(-1, 4).astype(np.float32)[order],
        "labels": _integers(kept, "category_id")[order],
        "crowds": _integers(kept, "iscrowd")[order] != 0,
    }
    if places:
        if len(starts) != len(every):
            raise RuntimeError(
                f"{reader}: annotations_file {path!r}: expected {len(every)} annotations, found {len(starts)}"
            )
        whole = len(kept) == len(every)
        numbers = np.arange(len(every)) if whole else np.flatnonzero([bool(a.bbox) for a in every])
        index["numbers"] = numbers[order]
        index["starts"], index["lengths"] = starts[index["numbers"]], lengths[index["numbers"]]
    return index


def _divided(text: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The text without its segmentations, and their positions."""
    starts, lengths = _segmentations(text)
    left = np.empty(len(text) - int(lengths.sum()) + int((lengths > 0).sum()), np.uint8)
    return left[: json_places.without(text, starts, lengths, left)], starts, lengths


def _segmentations(text: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the segmentation of each annotation begins, and its length. For a text that is not JSON the numbers mean
    nothing."""
    end = len(text)
    while end and text[end - 1] in _SPACE:
        end -= 1
    if not end or text[end - 1] != _END:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    words, room = text[: end // 8 * 8].view(np.uint64), 1 + end // _LEAST
    while True:
        starts, lengths = np.empty((2, room), np.int64)
        places = json_places.places(text[:end], words, _LIST, _KEY, starts, lengths)
        if places < room:
            return starts[:places], lengths[:places]
        room *= 2


def _integers(items: list[Any], name: str) -> np.ndarray:
    return np.fromiter(map(attrgetter(name), items), np.int64, len(items))


def _decoded(reader: str, path: str, text: np.ndarray) -> Any:
    """The decoded file, from its text without segmentations. Errors refer to the whole text."""
    kinds = _kinds()
    try:
        return kinds.decode(text.data, type=kinds.File)
    except (kinds.DecodeError, UnicodeError, RecursionError):
        whole = whole_file(path)
    try:
        return kinds.decode(whole, type=kinds.Told)
    except (kinds.DecodeError, UnicodeError, RecursionError) as error:
        message = str(error)
        kind = ValueError if ".bbox" in message else RuntimeError
        raise kind(
            f"{reader}: annotations_file {path!r}: expected COCO annotations as JSON, got{_named(whole, message)}: {message}"
        ) from error


def _named(text: bytes, message: str) -> str:
    """Which record an error is about: " annotation 17 (id 3042)"."""
    place = _PLACE.search(message)
    if place is None:
        return " another text"
    kinds = _kinds()
    try:
        item = kinds.decode(kinds.decode(text, type=kinds.Parts)[place[1]], type=kinds.Items)[int(place[2])]
        name = kinds.decode(kinds.decode(item, type=kinds.Parts)["id"])
    except (kinds.DecodeError, KeyError, UnicodeError, RecursionError):
        name = "none"
    return f" {place[1][:-1].replace('categorie', 'category')} {place[2]} (id {name})"


class JsonOutlines:
    """The segmentations of a file's annotations, decoded anew at each reading.

    Args:
        path: the annotations file. It must not change as long as the reader is used.
        index: `annotation_index` with places, reduced to the annotations that are used.
        first, last: which of these annotations are those of each image.
    """

    def __init__(self, path: str, index: Index, first: np.ndarray, last: np.ndarray):
        self._path, self._first, self._last = path, first, last
        self._numbers, self._starts, self._lengths = index["numbers"], index["starts"], index["lengths"]
        self._state = status(path)
        self._files = Memoized(_opened)

    def read(self, images: Any) -> list[Outline | Exception]:
        """The outlines of some images."""
        chosen = [np.arange(int(self._first[i]), int(self._last[i])) for i in images]
        wanted = np.concatenate([*chosen, np.zeros(0, np.int64)]).astype(np.int64)
        wanted = wanted[self._lengths[wanted] > 0]
        try:
            with self._files.using(self._path, self._state) as file:
                pieces = file.read(np.zeros(len(wanted), np.int64), self._starts[wanted], self._lengths[wanted])
        except OSError as error:
            return [error] * len(chosen)
        texts = dict(zip(wanted.tolist(), pieces, strict=True))
        return [self._outline(annotations.tolist(), texts) for annotations in chosen]

    def close(self) -> None:
        """Close the file."""
        self._files.clear()

    def _outline(self, annotations: list[int], texts: dict[int, Any]) -> Outline | Exception:
        rows: list[tuple[int, int, int]] = []
        points: list[float] = []
        runs: list[Run] = []
        for place, annotation in enumerate(annotations):
            text = texts.get(annotation)
            if text is None:
                continue
            try:
                if isinstance(text, OSError):
                    raise text
                segmentation = _kinds().segmentation.decode(text)
                if isinstance(segmentation, list):
                    for polygon in segmentation:
                        start = len(points) // 2
                        points += polygon if len(polygon) % 2 == 0 else polygon[:-1]
                        rows.append((place, start, len(points) // 2))
                elif segmentation is not None:
                    counts = (
                        counts_of_text(segmentation.counts)
                        if isinstance(segmentation.counts, str)
                        else segmentation.counts
                    )
                    runs.append(Run(place, segmentation.size[0], segmentation.size[1], np.array(counts, np.int64)))
            except Exception as error:
                number = self._numbers[annotation]
                return ValueError(f"segmentation of annotation {number} (from 0) in {self._path}: {error}")
        return Outline(np.array(rows, np.int32).reshape(-1, 3), np.array(points, np.float32).reshape(-1, 2), runs)


def _opened(path: str, state: Status) -> OpenFiles:
    if status(path) != state:
        raise OSError(f"The annotations file {path} has changed since it was indexed")
    return OpenFiles([path])


@cache
def _kinds() -> Any:
    """msgspec's decoders for the parts of a file that are wanted."""
    try:
        import msgspec
    except ImportError as error:
        raise ImportError(f"readers.COCO needs msgspec: {install_command('coco')}") from error

    integer: Any = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
    struct = msgspec.defstruct
    image = [("id", integer), ("file_name", str), ("height", integer | None, 0), ("width", integer | None, 0)]
    images = ("images", list[struct("Image", image, gc=False)])
    categories = ("categories", list[struct("Category", [("id", integer)], gc=False)], [])

    def file(bbox: Any) -> Any:
        annotation = [
            ("image_id", integer),
            ("category_id", integer),
            ("bbox", bbox | msgspec.UnsetType, msgspec.UNSET),
        ]
        plain = struct("Annotation", [*annotation, ("iscrowd", integer | bool, 0)], gc=False)
        return struct("File", [images, ("annotations", list[plain], []), categories])

    # Not tuples: the garbage collector would walk through them again and again, for a third of the time.
    sides = [(name, float) for name in ("x", "y", "width", "height")]
    box = struct("Box", sides, array_like=True, forbid_unknown_fields=True, gc=False)
    counted = struct("RunLengths", [("size", tuple[integer, integer]), ("counts", str | list[integer])], gc=False)
    return SimpleNamespace(
        decode=msgspec.json.decode,
        astuple=msgspec.structs.astuple,
        DecodeError=msgspec.DecodeError,
        File=file(box),
        Told=file(tuple[float, float, float, float]),  # the same, but an error says where it is
        Parts=dict[str, msgspec.Raw],
        Items=list[msgspec.Raw],
        segmentation=msgspec.json.Decoder(list[list[float]] | counted | None),
    )
