"""`readers.COCO`: images and their objects - boxes, labels, polygons, masks - from COCO's annotation files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ndd._operator.deprecated import renamed
from ndd._tensor import Packed
from ndd._tensor.dtype import float32, int32, uint8
from ndd._tensor.secrets import without_secrets
from ndd._tensor.user_line import warn_user
from ndd.readers.files.file_reading import read_files
from ndd.readers.files.file_tree import FilePath, listed_names, path_text
from ndd.readers.files.index_cache import Index
from ndd.readers.formats import coco_preprocessed
from ndd.readers.formats.coco_annotations import JsonOutlines, annotation_index
from ndd.readers.formats.coco_masks import Outline, painted
from ndd.readers.output import Column, Output
from ndd.readers.reader import Reader
from ndd.readers.stores.file_store import FileStore
from ndd.readers.stores.records import Records

_NOT_PREPROCESSED = ("annotations_file", "images", "ltrb", "ratio", "size_threshold", "skip_empty")
_I32 = np.iinfo(np.int32)


class COCO(Reader):
    """Reads images and their objects from COCO's `instances` files.

    A sample is (encoded image as u8 `[size]`, boxes as f32 `[N, 4]`, labels as i32 `[N]`), then the requested ones of:

    * `polygon_masks`: polygons as i32 `[P, 3]` (which box, its first vertex, the one after its last) and vertices as
      f32 `[V, 2]` (x, y in pixels). An object may have several polygons; one whose segmentation is empty, absent or
      run lengths has none. The last of an odd number of coordinates is dropped.
    * `pixelwise_masks`: labels of the pixels as i32 `[height, width, 1]`, layout "HWC", background 0. Polygons are
      rasterised by the COCO tools (pycocotools). Higher labels cover lower ones. As in DALI a label that has polygons
      in an image is not painted from run lengths (which are mostly those of crowds).
    * `image_ids`: the image's id as i32 `[1]`.

    Samples come in ascending order of image ids, the objects of each in the order of the file. Boxes are x, y, width,
    height in pixels, as in the file. Labels are 1 for the first of the listed categories, 2 for the next, 0 for a
    category that is not listed. Objects without `bbox` are left out, a missing `iscrowd` is 0, and a file without
    `annotations` or `categories` (such as the file of the test images) has none.

    The file is indexed once (860,000 annotations in about 2.5 s) and the index kept on disk, see `index_cache.py`.
    Segmentations are not: they are read from the file with their sample, so the file must not change.

    Needs msgspec, for pixelwise_masks also pycocotools (the extra `coco`).

    Args:
        annotations_file: the JSON file.
        file_root: the folder that the names of images are relative to. Needed.
        avoid_class_remapping: use the ids of categories as labels.
        image_ids: also return the id of each image.
        polygon_masks: also return the objects' polygons and their vertices. Not with `pixelwise_masks`.
        pixelwise_masks: also return a label for each pixel.
        images: names of the images to read, as in the file: in this order, as often as they are listed. If several images have
        one name, the last in the file counts.
        include_iscrowd: keep objects with `iscrowd`.
        ltrb: return boxes as left, top, right, bottom.
        ratio: return boxes and vertices as fractions of the image's width and height.
        size_threshold: leave out objects whose box is narrower or lower than this, in pixels.
        skip_empty: leave out images without objects.
        save_preprocessed_annotations: write the annotations, as small binary files, to the existing folder
            `save_preprocessed_annotations_dir`. They are DALI's: either library reads them.
        save_preprocessed_annotations_dir: the folder for these; one argument needs the other.
        preprocessed_annotations: the folder of such files, to read instead of an annotations file. The options that choose
            and change objects had their effect when the files were saved.
        masks: deprecated: `polygon_masks` with places of coordinates, twice those of vertices.
        dump_meta_files, dump_meta_files_path: old names of `save_preprocessed_annotations` and `..._dir`.
        meta_files_path: old name of `preprocessed_annotations`.
        save_img_ids: old name of `image_ids`.

    Differences from DALI: run lengths of one label are all painted, where DALI 2.4.0 paints the last ones only; an object
    without a segmentation takes nothing away from the masks of others in its image, where DALI 2.4.0 may paint none; the
    vertices after an odd number of coordinates are right; image ids of more than 32 bits are read, if `image_ids` does not
    ask for them; names in `images` that the file does not have are skipped with a warning; files that DALI misreads, hangs
    on or crashes on (broken and truncated JSON, missing keys, texts for numbers, run lengths of another size than the image,
    or too few or too many of them) are errors.

    Raises (at the first sample): RuntimeError for a missing or broken file, no file_root, no images,
    options that exclude each other, missing or damaged preprocessed files; ValueError for a `bbox` that is not 4
    numbers; at its batch for an image that cannot be read, for an image without a size where `ratio` or
    `pixelwise_masks` needs it, and for an invalid segmentation.

    >>> import json, ndd, pathlib, tempfile
    >>> root = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (root / "a.jpg").write_bytes(b"JPEG")
    >>> thing = {"id": 1, "image_id": 9, "category_id": 18, "bbox": [1, 2, 30, 40]}
    >>> annotations = {"images": [{"id": 9, "file_name": "a.jpg"}], "annotations": [thing], "categories": [{"id": 18}]}
    >>> _ = (root / "instances.json").write_text(json.dumps(annotations))
    >>> reader = ndd.readers.COCO(file_root=root, annotations_file=root / "instances.json", ltrb=True)
    >>> for image, boxes, labels in reader.next_epoch():
    ...     print(image.shape, boxes.torch().tolist(), labels.torch().tolist())
    (4,) [[1.0, 2.0, 31.0, 42.0]] [1]
    """

    @classmethod
    def _outputs(cls, **arguments: Any) -> tuple[Output, ...]:
        declared = [Output("image", uint8, 1), Output("boxes", float32, 2), Output("labels", int32, 1)]
        if arguments.get("polygon_masks") or arguments.get("masks"):
            declared += [Output("polygons", int32, 2), Output("vertices", float32, 2)]
        elif arguments.get("pixelwise_masks"):
            declared.append(Output("pixelwise_mask", int32, 3, "HWC"))
        if arguments.get("image_ids") or arguments.get("save_img_ids"):
            declared.append(Output("image_id", int32, 1))
        return tuple(declared)

    def _open(
        self,
        *,
        annotations_file: FilePath = "",
        avoid_class_remapping: bool = False,
        dump_meta_files: bool | None = None,
        dump_meta_files_path: FilePath | None = None,
        file_root: FilePath | None = None,
        image_ids: bool | None = None,
        images: FilePath | Sequence[FilePath] | None = None,
        include_iscrowd: bool = True,
        ltrb: bool = False,
        masks: bool = False,
        meta_files_path: FilePath | None = None,
        pixelwise_masks: bool = False,
        polygon_masks: bool = False,
        preprocessed_annotations: FilePath | None = None,
        ratio: bool = False,
        save_img_ids: bool | None = None,
        save_preprocessed_annotations: bool | None = None,
        save_preprocessed_annotations_dir: FilePath | None = None,
        size_threshold: float = 0.1,
        skip_empty: bool = False,
    ) -> FileStore:
        name = self._display
        wants_ids = renamed(name, "save_img_ids", save_img_ids, "image_ids", image_ids)
        folder = renamed(name, "meta_files_path", meta_files_path, "preprocessed_annotations", preprocessed_annotations)
        new = "save_preprocessed_annotations"
        saves = renamed(name, "dump_meta_files", dump_meta_files, new, save_preprocessed_annotations)
        target = renamed(
            name, "dump_meta_files_path", dump_meta_files_path, f"{new}_dir", save_preprocessed_annotations_dir
        )
        if bool(saves) != bool(target):
            raise RuntimeError(f"{name}: `{new}` and `{new}_dir` should be provided together")
        if masks:
            renamed(name, "masks", masks, "polygon_masks", None)
        if pixelwise_masks and (polygon_masks or masks):
            raise RuntimeError(f"{name}: `pixelwise_masks` and `polygon_masks` are mutually exclusive")
        if file_root is None:
            raise RuntimeError(f"{name}: the argument `file_root` is required: the folder that holds the images")
        root = path_text(name, "file_root", file_root)
        form = _Form(pixelwise_masks, polygon_masks or masks, masks, ltrb, ratio, bool(wants_ids))
        if folder:
            self._refuse_beside("preprocessed annotations", _NOT_PREPROCESSED)
            store = _preprocessed(name, root, path_text(name, "preprocessed_annotations", folder), form)
        elif annotations_file:
            path = path_text(name, "annotations_file", annotations_file)
            index = annotation_index(name, path, form.outlined)
            kept = _objects(name, index, size_threshold, include_iscrowd, avoid_class_remapping)
            store = _selected(name, root, path, kept, images, skip_empty, form)
        else:
            raise RuntimeError(f"{name}: one of `annotations_file` and `preprocessed_annotations` must be provided")
        if not len(store):
            raise RuntimeError(f"{name}: No files found in {os.fsdecode(folder or annotations_file)}")
        if saves:
            store.save(name, os.fsdecode(target))
        return store

    def _refuse_beside(self, offending: str, names: Sequence[str]) -> None:
        refused = [argument for argument in names if self._called_with[1].get(argument) is not None]
        if refused:
            raise RuntimeError(
                f"{self._display}: {refused[0]!r} is not supported when reading {offending}; leave it out"
            )


@dataclass
class _Form:
    """The outputs of each image. Preprocessed boxes and vertices have the requested form already."""

    masks: bool
    polygons: bool
    coordinates: bool
    ltrb: bool
    ratio: bool
    ids: bool

    @property
    def outlined(self) -> bool:
        return self.masks or self.polygons


class _Images(FileStore):
    """Images with their objects, which are `first[i]` to `last[i]` of `boxes` and `labels` for image i.

    `ids` of the images and `sizes` (height and width) are needed only where the form asks for them.
    """

    def __init__(
        self,
        root: str,
        names: list[str],
        objects: Index,
        first: np.ndarray,
        last: np.ndarray,
        form: _Form,
        outlines: Any = None,
    ):
        super().__init__([root], names)
        self._boxes, self._object_labels = objects["boxes"], objects["labels"]
        self._ids: Any = objects.get("ids")
        self._sizes: Any = objects.get("sizes")
        self._first, self._last, self._form, self._outlines = first, last, form, outlines

    def read(self, numbers: Sequence[int], paths: Sequence[str]) -> Records:
        contents, failed = read_files(paths, self.usual)
        faults: dict[int, Exception] = dict(failed)
        listed = np.asarray(numbers, np.int64)
        columns: list[Column] = [contents, self._boxes_of(listed, faults), self._labels_of(listed)]
        if self._outlines is not None:
            columns += self._outlined(numbers, faults)
        if self._form.ids:
            columns.append(self._ids[listed, None])
        return Records.from_columns(columns, faults)

    def _outlined(self, numbers: Sequence[int], faults: dict[int, Exception]) -> list[Column]:
        """The mask, or polygons and vertices, of each image. Adds to the faults."""
        outlined: list[tuple[np.ndarray, ...]] = []
        for place, (number, outline) in enumerate(zip(numbers, self._outlines.read(numbers), strict=True)):
            try:
                outlined.append(self._outline(number, outline))
            except Exception as error:
                faults.setdefault(place, error)
                outlined.append((np.empty(0),) * (2 - self._form.masks))
        return [list(samples) for samples in zip(*outlined, strict=True)]

    def _outline(self, number: int, outline: Outline | Exception) -> tuple[np.ndarray, ...]:
        if isinstance(outline, Exception):
            raise outline
        form = self._form
        if form.masks:
            if form.ratio:  # as DALI, which rasterises the vertices that it outputs
                scale = self._scale(number)
                outline = outline._replace(vertices=outline.vertices / scale * scale)
            (labels,) = self._labels_of(np.array([number])).arrays()
            return (painted(outline, labels, *self._sizes[number].tolist()),)
        rows = outline.rows * np.array([1, 2, 2], np.int32) if form.coordinates else outline.rows
        return rows, outline.vertices / self._scale(number) if form.ratio else outline.vertices

    def _labels_of(self, numbers: np.ndarray) -> Packed:
        first = self._first[numbers]
        return Packed.of(self._object_labels, first, self._last[numbers] - first)

    def _boxes_of(self, numbers: np.ndarray, faults: dict[int, Exception]) -> Packed:
        """The boxes in the requested form. Adds to the faults."""
        first, form = self._first[numbers], self._form
        counts = self._last[numbers] - first
        shapes = np.stack([counts, np.full(len(counts), 4)], 1)
        if not (form.ltrb or form.ratio):
            return Packed.of(self._boxes.reshape(-1), 4 * first, shapes)
        starts = np.cumsum(counts) - counts
        owners = np.repeat(np.arange(len(counts)), counts)
        boxes = self._boxes[(first - starts)[owners] + np.arange(len(owners))]
        if form.ltrb:
            boxes[:, 2:] += boxes[:, :2]
        if form.ratio:
            sizes = self._sizes[numbers, ::-1]
            unknown = (sizes < 1).any(1)
            for place in np.flatnonzero(unknown & (counts > 0)).tolist():
                faults.setdefault(place, self._unknown_size(int(numbers[place])))
            scales = np.where(unknown[:, None], 1, sizes).astype(np.float32)
            boxes /= np.tile(scales, 2)[owners]
        return Packed.of(boxes.reshape(-1), 4 * starts, shapes)

    def _scale(self, number: int) -> np.ndarray:
        height, width = self._sizes[number].tolist()
        if height < 1 or width < 1:
            raise self._unknown_size(number)
        return np.array([width, height], np.float32)

    def _unknown_size(self, number: int) -> ValueError:
        height, width = self._sizes[number].tolist()
        return ValueError(f"expected the height and width of the image, got height {height} and width {width}")

    def save(self, reader: str, folder: str) -> None:
        """Write all of this as DALI's preprocessed annotations."""
        every, form = range(len(self)), self._form
        try:
            outlines = None
            if self._outlines is not None:
                outlines = self._outlines.read(every)
                broken = [outline for outline in outlines if isinstance(outline, Exception)]
                if broken:
                    raise broken[0]
                if form.ratio and not form.masks:
                    outlines = [
                        o._replace(vertices=o.vertices / self._scale(i)) if len(o.vertices) else o
                        for i, o in enumerate(outlines)
                    ]
            faults: dict[int, Exception] = {}
            boxes = self._boxes_of(np.arange(len(self)), faults)
            if faults:
                raise next(iter(faults.values()))
            coco_preprocessed.save(
                folder,
                self._names,
                boxes.arrays(),
                self._labels_of(np.arange(len(self))).arrays(),
                self._ids if form.ids else None,
                outlines,
                self._sizes if form.masks else None,
            )
        except (OSError, ValueError) as error:
            raise RuntimeError(f"{reader}: cannot save preprocessed annotations in {folder!r}: {error}") from error

    def close(self) -> None:
        if self._outlines is not None:
            self._outlines.close()


def _objects(reader: str, index: Index, threshold: float, crowds: bool, plain: bool) -> Index:
    """The index with only the chosen objects, and their labels in the form of the output."""
    sides = index["boxes"][:, 2:]
    wanted = np.asarray((sides >= np.float32(threshold)).all(1))
    if not crowds:
        wanted &= ~index["crowds"]
    of_objects = [name for name in index if len(index[name]) == len(wanted) and name in _OF_OBJECTS]
    kept = index | {name: index[name][wanted] for name in of_objects}
    labels = kept["labels"]
    if not plain:
        listed, places = np.unique(index["categories"], return_index=True)
        listed, places = (
            np.append(listed, 0),
            np.append(places, -1),
        )  # a sentinel for an empty list
        positions = np.searchsorted(listed[:-1], labels)
        labels = np.where(listed[positions] == labels, places[positions] + 1, 0)
    kept["labels"] = _as_i32(reader, "category ids", labels)
    return kept


_OF_OBJECTS = ("owners", "boxes", "labels", "crowds", "numbers", "starts", "lengths")


def _as_i32(reader: str, label: str, values: np.ndarray) -> np.ndarray:
    if len(values) and not (_I32.min <= values.min() and values.max() <= _I32.max):
        raise RuntimeError(f"{reader}: expected {label} of 32 bits, got {values.min()} to {values.max()}")
    return values.astype(np.int32)


def _selected(reader: str, root: str, path: str, index: Index, images: Any, skip_empty: bool, form: _Form) -> _Images:
    """The chosen images of an annotations file, in order."""
    names = _split(index["names"], index["name_ends"])
    if images is None or len(images) == 0:
        chosen = np.argsort(index["image_ids"], kind="stable")
    else:
        places = {name: place for place, name in enumerate(names)}
        listed = listed_names(reader, "images", images)
        unknown = [name for name in listed if name not in places]
        if unknown:
            warn_user(
                f"{reader}: {len(unknown)} of the names in `images` are not in {without_secrets(path)!r} and are skipped: "
                f"{', '.join(map(repr, unknown[:3]))}{', ...' if len(unknown) > 3 else ''}"
            )
        chosen = np.array([places[name] for name in listed if name in places], np.int64)
    first, last = (np.searchsorted(index["owners"], index["image_ids"][chosen], side) for side in ("left", "right"))
    if skip_empty:
        filled = last > first
        chosen, first, last = chosen[filled], first[filled], last[filled]
    objects = {"boxes": index["boxes"], "labels": index["labels"], "sizes": index["sizes"][chosen]}
    if form.ids:
        objects["ids"] = _as_i32(reader, "image ids", index["image_ids"][chosen])
    outlines = JsonOutlines(path, index, first, last) if form.outlined else None
    return _Images(root, [names[i] for i in chosen.tolist()], objects, first, last, form, outlines)


def _split(text: np.ndarray, ends: np.ndarray) -> list[str]:
    joined, stops = text.tobytes().decode("utf-8", "surrogatepass"), ends.tolist()
    return [joined[start:end] for start, end in zip([0, *stops], stops, strict=False)]


def _preprocessed(reader: str, root: str, folder: str, form: _Form) -> _Images:
    """The images of a folder of preprocessed annotations."""
    saved = coco_preprocessed.Preprocessed(reader, folder)
    names = saved.names()
    size = len(names)
    if not size:
        return _Images(root, [], {"boxes": np.zeros((0, 4)), "labels": np.zeros(0)}, np.zeros(0), np.zeros(0), form)
    boxes, first, last = saved.spans("boxes", "offsets", "counts", size)
    objects = {"boxes": boxes, "labels": saved.table("labels", len(boxes))}
    if form.ids:
        objects["ids"] = saved.table("original_ids", size)
    if form.masks:
        objects["sizes"] = np.stack([saved.table("heights", size), saved.table("widths", size)], 1)
    outlines = saved.outlines(size, form.masks) if form.outlined else None
    return _Images(root, names, objects, first, last, form, outlines)
