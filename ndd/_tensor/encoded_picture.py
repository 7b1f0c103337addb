"""Encodes pictures for notebooks with Pillow, small enough to be stored in the notebook's file."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np

LIMIT = 150_000  # bytes of a picture; base64 makes four of three


def pillow() -> Any:
    """Pillow's module of images; ImportError that says how to install it."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError(f'Pillow cannot be imported ({error}): pip install "pillow>=12"') from error
    return Image


def pen(image: Any) -> Any:
    """Pillow's drawing context of an image."""
    from PIL import ImageDraw

    return ImageDraw.Draw(image)


def picture_uri(pixels: np.ndarray) -> str:
    """A data URI of u8 RGB pixels, smaller and smaller until it is within the limit."""
    sheet = pillow().fromarray(pixels)
    encoded = encoded_as(sheet, "PNG")
    kind = "png"
    for quality in (90, 75, 60):
        if len(encoded) <= LIMIT:
            break
        encoded, kind = encoded_as(sheet, "JPEG", quality=quality), "jpeg"
    while len(encoded) > LIMIT:
        sheet = sheet.resize((max(1, sheet.width * 3 // 4), max(1, sheet.height * 3 // 4)))
        encoded = encoded_as(sheet, "JPEG", quality=60)
    return f"data:image/{kind};base64,{base64.b64encode(encoded).decode()}"


def encoded_as(sheet: Any, kind: str, **options: Any) -> bytes:
    """A Pillow image as the bytes of a file."""
    stream = io.BytesIO()
    sheet.save(stream, kind, **options)
    return stream.getvalue()
