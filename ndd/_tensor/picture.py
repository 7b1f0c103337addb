"""Values in a notebook: images as a contact sheet, sounds as players (`sound.py`), others as a table; 200 kB at most."""

from __future__ import annotations

import base64
import html
import io
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from ndd._tensor.display import fetched, readable
from ndd._tensor.encoded_picture import LIMIT, encoded_as, pen, picture_uri, pillow
from ndd._tensor.secrets import without_secrets
from ndd._tensor.sound import sound_html

if TYPE_CHECKING:
    from ndd._tensor.batch import Batch
    from ndd._tensor.store import Store
    from ndd._tensor.tensor import Tensor

_SHEET_WIDTH = 768
_GAP = 4
_MOST_TILES = 64
_MOST_ROWS = 8
_MOST_FRAMES = 100
_FILM_SIZE = 320  # pixels
_FRAME_MS = 80
_LETTER, _LINE = 6, 13  # pixels: of Pillow's own font
_FEWEST_LETTERS = 8
_MOST_PIXELS = 50_000_000  # of a file's bytes that are decoded to be shown
_SMALLEST = 4  # pixels: a thinner array is hardly a picture


def tensor_html(value: Tensor) -> str:
    """One image as itself, a video as an animation, other values as a table."""
    store = fetched(value)
    frames = _tiles(store, _FILM_SIZE, _MOST_FRAMES) if (store.layout or "")[:1] == "F" else []
    if len(frames) > 1:
        return _caption(value, f"shape {store.shapes[0]}") + _film(frames)
    return _page(value, store, f"shape {store.shapes[0]}", 512)


def batch_html(value: Batch) -> str:
    """Images as a contact sheet, one tile a sample; other values as a table with a row for each sample."""
    store = fetched(value)
    return _page(value, store, f"{store.n} samples", 192)


def _page(value: Any, store: Store, description: str, tile: int) -> str:
    tiles = _tiles(store, tile)
    if len(tiles) == store.n > 1:
        tiles = [_named(shown, _source(store, i)) for i, shown in enumerate(tiles)]
    return _caption(value, description) + (sound_html(store) or (image_tag(tiles) if tiles else _table(store)))


def _named(tile: np.ndarray, source: str) -> np.ndarray:
    """A tile above its caption: the last two parts of the source. The folder names a class in many data sets."""
    text = "/".join(re.split(r"[/\\]", source.partition("?")[0])[-2:])
    text = text.encode("latin-1", "replace").decode("latin-1")  # Pillow's font has no other characters
    room = tile.shape[1] // _LETTER
    if not text or room < _FEWEST_LETTERS:
        return tile
    image = pillow().new("L", (tile.shape[1], _LINE), 255)
    pen(image).text((0, 0), text if len(text) <= room else ".." + text[2 - room :], fill=0)
    return np.concatenate([tile, np.repeat(np.asarray(image)[..., None], 3, axis=2)])


def _caption(value: Any, description: str) -> str:
    facts = [type(value).__name__, description, str(value.dtype), value.layout or "no layout", str(value.device)]
    return f'<div style="font-family:monospace">{html.escape(" · ".join(facts))}</div>'


# ---- pictures


def _tiles(store: Store, size: int, most: int = _MOST_TILES) -> list[np.ndarray]:
    """Up to `most` samples (or frames) as u8 RGB images of at most `size` pixels; empty if they are not images."""
    layout = store.layout or ""
    inner = layout.removeprefix("F")
    if inner not in ("HWC", "CHW", "HW"):
        return []
    tiles: list[np.ndarray] = []
    for i in range(store.n):
        array = readable(store, i)
        for frame in array if layout != inner else [array]:
            image = frame[..., None] if inner == "HW" else np.moveaxis(frame, 0, -1) if inner == "CHW" else frame
            if min(image.shape[:2]) < _SMALLEST or image.shape[2] not in (1, 3, 4):
                return []
            tiles.append(as_rgb(_shrunk(image, size)))
            if len(tiles) == most:
                return tiles
    return tiles


def _shrunk(image: np.ndarray, size: int) -> np.ndarray:
    """Every k-th pixel, so that the rest of the work costs little whatever the size of the image."""
    step = max(1, -(-max(image.shape[:2]) // size))
    return image[::step, ::step]


def as_rgb(image: np.ndarray) -> np.ndarray:
    """Any element type as u8: integers keep their scale, floats are stretched from their minimum to their maximum
    unless they are within 0..1 or 0..255 already."""
    if image.dtype != np.uint8:
        values = np.nan_to_num(image.astype(np.float32))
        low, high = float(values.min()), float(values.max())
        if image.dtype.kind == "b" or (image.dtype.kind == "f" and low >= 0 and high <= 1):
            low, high = 0.0, 1.0
        elif image.dtype.kind == "f" and low >= 0 and high <= 255:
            low, high = 0.0, 255.0
        image = ((values - low) * (255.0 / max(high - low, 1e-12))).round().astype(np.uint8)
    return np.repeat(image, 3, axis=2) if image.shape[2] == 1 else image[:, :, :3]


def small_picture(encoded: np.ndarray, size: int = 96) -> np.ndarray | None:
    """The bytes of an image file as u8 RGB of at most `size` pixels; None for anything else, and where Pillow is missing."""
    if encoded.dtype != np.uint8 or encoded.ndim != 1:
        return None
    try:
        with pillow().open(io.BytesIO(encoded.tobytes())) as image:
            if image.width * image.height > _MOST_PIXELS:
                return None
            image.draft("RGB", (size, size))  # JPEGs are decoded at an eighth of their size
            image.thumbnail((size, size))
            return np.asarray(image.convert("RGB"))
    except Exception:  # not a picture, damaged, or Pillow is missing
        return None


def image_tag(tiles: list[np.ndarray]) -> str:
    return f'<img style="image-rendering:auto" src="{picture_uri(contact_sheet(tiles))}">'


def _film(frames: list[np.ndarray]) -> str:
    """A data URI of the frames as an animation with their numbers below, shrunk until it is within the limit."""
    step, encoded = 1, b""
    for quality in (75, 50, 25):
        images = [pillow().fromarray(np.ascontiguousarray(frame[::step, ::step])) for frame in frames]
        encoded = encoded_as(
            images[0],
            "WEBP",
            save_all=True,
            append_images=images[1:],
            duration=_FRAME_MS,
            loop=0,
            quality=quality,
            method=0,
        )
        if len(encoded) <= LIMIT:
            break
        step += 1
    text = base64.b64encode(encoded).decode()
    seconds = len(frames) * _FRAME_MS / 1000
    note = f"frames 0 to {len(frames) - 1}, {_FRAME_MS} ms each, {seconds:.1f} s"
    return f'<img src="data:image/webp;base64,{text}"><div style="font-family:monospace">{note}</div>'


def contact_sheet(tiles: list[np.ndarray]) -> np.ndarray:
    """The tiles side by side in rows, on white."""
    if len(tiles) == 1:
        return tiles[0]
    height, width = max(t.shape[0] for t in tiles), max(t.shape[1] for t in tiles)
    columns = max(1, min(len(tiles), _SHEET_WIDTH // (width + _GAP)))
    rows = -(-len(tiles) // columns)
    sheet = np.full((rows * (height + _GAP) - _GAP, columns * (width + _GAP) - _GAP, 3), 255, np.uint8)
    for i, tile in enumerate(tiles):
        y, x = i // columns * (height + _GAP), i % columns * (width + _GAP)
        sheet[y : y + tile.shape[0], x : x + tile.shape[1]] = tile
    return sheet


# ---- tables


def _table(store: Store) -> str:
    shown = range(min(store.n, _MOST_ROWS))
    rows = [_row(str(i), store.shapes[i], _beginning(readable(store, i)), _source(store, i)) for i in shown]
    if store.n > len(shown):
        rows.append(f'<tr><td colspan="4">... {store.n - len(shown)} more</td></tr>')
    head = "<tr><th>sample</th><th>shape</th><th>values</th><th>source</th></tr>"
    return f'<table style="font-family:monospace">{head}{"".join(rows)}</table>'


def _row(*cells: Any) -> str:
    return "<tr>" + "".join(f"<td>{html.escape(str(c))}</td>" for c in cells) + "</tr>"


def _beginning(array: np.ndarray) -> str:
    flat = array.reshape(-1)[:8] if array.flags.c_contiguous else np.array(array.flat[:8])
    text = " ".join(np.array2string(v, precision=6) for v in flat)
    return text + (" ..." if array.size > 8 else "")


def _source(store: Store, i: int) -> str:
    info = None if store.source_info is None else store.source_info[i]
    return "" if info is None else without_secrets(info)[:120]
