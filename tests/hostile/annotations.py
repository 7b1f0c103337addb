"""Mutated lists of samples: COCO annotations, as JSON and as DALI preprocesses them, and manifests of NeMo."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable
from typing import Any

from hostile.bounds_checked import Parser, fenced_copy, scratch_folder
from hostile.containers import ALLOWED, all_records, written
from hostile.mutation import Number, extreme, mutated

import ndd

# JSON


def node_of(rng: random.Random, document: Any) -> tuple[Any, Any]:
    """A list or object in a document, and a place in it."""
    holders = [document]
    for holder in holders:
        inner = holder.values() if isinstance(holder, dict) else holder
        holders += [value for value in inner if isinstance(value, dict | list) and value]
    holder = rng.choice(holders)
    return holder, rng.choice(list(holder)) if isinstance(holder, dict) else rng.randrange(len(holder))


def other_value(rng: random.Random, value: Any) -> Any:
    if isinstance(value, int | float) and not isinstance(value, bool) and rng.random() < 0.6:
        near = int(value) if abs(value) < 2**70 else 0
        return rng.choice((extreme(rng, near), extreme(rng, near) / 4, 1e300, -0.0))
    return rng.choice(
        (None, True, "", "x", '\u20ac"\\', [], {}, [[]], {"counts": "0"}, 0, -1, [value], {"id": value}, 1e400)
    )


def mutated_json(rng: random.Random, document: Any) -> bytes:
    """A text of a document with other values, keys, orders and spaces; perhaps cut off, or with odd letters."""
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        holder, place = node_of(rng, document)
        change = rng.random()
        if change < 0.6:
            holder[place] = other_value(rng, holder[place])
        elif change < 0.8:
            del holder[place]
        elif isinstance(holder, dict):
            holder[rng.choice(("segmentation", "annotations", "bbox", "x" * 300, "id"))] = holder.pop(place)
        else:
            holder.insert(place, holder[place])
        if not document:
            break
    text = json.dumps(document, indent=rng.choice((None, None, 1)), ensure_ascii=rng.random() < 0.8)
    if rng.random() < 0.1:
        text = text.replace(
            "segmentation", rng.choice(("s\\u0065gmentation", "\\u0073", "segmentatio\\", "segmentation\\\\"))
        )
    if rng.random() < 0.1:
        text = text.replace(rng.choice('"[]{},:'), rng.choice('"[]{},:\\ 5'), rng.randrange(1, 4))
    content = text.encode(errors="surrogatepass")
    if rng.random() < 0.1:
        content = content[: rng.randrange(len(content) + 1)] + rng.choice((b"", b"}", b"}}", b"]", b"\\"))
    return content


def coco_document(rng: random.Random) -> Any:
    shapes: list[Callable[[], Any]] = [
        lambda: [[1, 1, 6, 1, 6, 5, 2, 7.5]], lambda: {"size": [8, 9], "counts": [10, 5, 57]}, lambda: [],
        lambda: {"size": [8, 9], "counts": "97d1"}, lambda: [[0, 0, 5], [1, 1]],
    ]  # fmt: skip
    images = [{"id": 10 + i, "file_name": f"{i}.jpg", "height": 8, "width": 9} for i in range(2)]
    annotations = [
        {
            "id": n,
            "image_id": 10 + n % 2,
            "category_id": 5,
            "iscrowd": 0,
            "bbox": [1.0, 0, 5, 6],
            "segmentation": rng.choice(shapes)(),
        }
        for n in range(rng.randrange(4))
    ]
    return {"images": images, "annotations": annotations, "categories": [{"id": 5}, {"id": 7}]}


def make_coco(rng: random.Random) -> bytes:
    return mutated_json(rng, coco_document(rng))


def read_coco(content: bytes) -> Any:
    """The places of segmentations, in memory that nobody may read on behind; then as a reader has them, in three ways."""
    from ndd.readers.formats.coco_annotations import _divided

    _divided(fenced_copy(content))
    path, folder = written("instances.json", content), str(scratch_folder())
    for name in ("0.jpg", "1.jpg"):
        written(name, b"x")
    result: list[Any] = []
    for how in ({"polygon_masks": True}, {"pixelwise_masks": True}, {"ratio": True, "ltrb": True, "image_ids": True}):
        result.append(all_records(ndd.readers.COCO(file_root=folder, annotations_file=path, **how)))
    return result


# Preprocessed

TABLES: dict[str, tuple[str, list[int]]] = {
    "offsets": ("<i", [0, 1]), "labels": ("<i", [1, 2]), "counts": ("<i", [1, 1]), "original_ids": ("<i", [10, 11]),
    "polygon_data": ("<i", [0, 0, 3, 0, 0, 3]), "polygon_offset": ("<q", [0, 1]), "polygons_count": ("<q", [1, 1]),
    "vertices_offset": ("<q", [0, 3]), "vertices_count": ("<q", [3, 3]), "heights": ("<i", [8, 8]), "widths": ("<i", [9, 9]),
    "mask_count": ("<q", [1, 1]), "masks_offset": ("<q", [0, 1]), "masks_rles_idx": ("<i", [0, 0]),
}  # fmt: skip
ITEMS = {"polygon_data": 3}


def make_preprocessed(rng: random.Random) -> dict[str, bytes]:
    files: dict[str, list[Any]] = {}
    for name, (form, numbers) in TABLES.items():
        files[name] = [Number(len(numbers) // ITEMS.get(name, 1), "<i"), *[Number(number, form) for number in numbers]]
    floats = [struct.pack("<f", value) for value in (1, 1, 6, 5)]
    files["boxes"] = [Number(8, "<i"), *floats, *floats]
    files["vertices"] = [Number(6, "<i"), *floats * 3]
    run: list[Any] = [
        Number(8, "<q"),
        Number(9, "<q"),
        Number(3, "<q"),
        *[Number(count, "<I") for count in (10, 5, 57)],
    ]
    files["masks_rles"] = [Number(2, "<i"), run, list(run)]
    files["filenames"] = [b"0.jpg\n", b"1.jpg\n"]
    spoilt = rng.choices(list(files), k=rng.choice((1, 1, 2)))
    return {name: mutated(rng, parts) if name in spoilt else mutated_none(parts) for name, parts in files.items()}


def mutated_none(parts: list[Any]) -> bytes:
    from hostile.mutation import encoded

    return encoded(parts)


def read_preprocessed(files: dict[str, bytes]) -> Any:
    folder = str(scratch_folder())
    for name, content in files.items():
        written(f"{name}.dat", content)
    for name in ("0.jpg", "1.jpg"):
        written(name, b"x")
    result = []
    for how in ({"polygon_masks": True}, {"pixelwise_masks": True}, {"image_ids": True}):
        result.append(all_records(ndd.readers.COCO(file_root=folder, preprocessed_annotations=folder, **how)))
    return result


# Manifests

WAV = (
    b"RIFF"
    + struct.pack("<I4s4sIHHIIHH4sI", 116, b"WAVE", b"fmt ", 16, 1, 1, 8000, 16000, 2, 16, b"data", 80)
    + bytes(80)
)


def make_manifest(rng: random.Random) -> bytes:
    lines = []
    for _ in range(rng.randrange(1, 4)):
        entry = {
            "audio_filepath": "a.wav",
            "text": "yes",
            "duration": rng.choice((0.002, 0.004, None, -1)),
            "offset": 0.001,
        }
        lines.append(mutated_json(rng, entry))
    return b"\n".join(lines)


def read_manifest(content: bytes) -> Any:
    written("a.wav", WAV)
    reader = ndd.readers.NemoAsr(manifest_filepaths=written("all.json", content), read_idxs=True)
    return all_records(reader)


PARSERS: dict[str, Parser] = {
    "coco": Parser(make_coco, read_coco, ALLOWED),
    "preprocessed coco": Parser(make_preprocessed, read_preprocessed, ALLOWED),
    "nemo": Parser(make_manifest, read_manifest, ALLOWED),
}
