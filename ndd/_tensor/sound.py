"""Sounds in a notebook: a player above its waveform, a spectrogram with axes in s and Hz."""

from __future__ import annotations

import base64
import html
import struct
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ndd._tensor.display import readable
from ndd._tensor.encoded_picture import picture_uri
from ndd._tensor.secrets import without_secrets

if TYPE_CHECKING:
    from ndd._tensor.store import Store

_LIMIT = 120_000  # bytes of all players of a value
_MOST = 4  # samples that are shown
_WIDTH, _HEIGHT = 512, 80  # of a waveform, in pixels
_STEPS = 80.0  # decibels of a spectrogram that are shown


class Scale(NamedTuple):
    """The units of a sample's axes. `decoders.audio` sets them, and operators that keep the shape keep them."""

    seconds: float  # a step along time
    hz: float | None = None  # a step along the frequencies of a spectrogram; None: the sample is a signal


def sound_html(store: Store) -> str:
    """The first samples as players, or as pictures of spectrograms; "" if they are not sounds."""
    scales = store.scales
    parts: list[str] = []
    if not scales or not store.shapes or len(store.shapes[0]) not in (1, 2):
        return ""
    shown = min(store.n, _MOST)
    for i in range(shown):
        values = readable(store, i)
        if not values.size:
            continue
        source = "" if store.source_info is None else f" · {without_secrets(store.source_info[i])}"
        spectrum = scales[i].hz is not None
        shown_as = (
            _picture(values, scales[i], store.layout) if spectrum else _player(values, scales[i], _LIMIT // shown)
        )
        parts.append(f'<div style="font-family:monospace">{html.escape(f"sample {i}{source}")}</div>{shown_as}')
    if store.n > shown:
        parts.append(f"<div>... {store.n - shown} more</div>")
    return "".join(parts)


def _player(values: np.ndarray, scale: Scale, limit: int) -> str:
    """A player of the part that fits into `limit` bytes, and the waveform of the whole sound."""
    mono = values.astype(np.float32).reshape(len(values), -1).mean(axis=1)
    if values.dtype.kind in "iu":
        mono /= np.iinfo(values.dtype).max
    rate = round(1 / scale.seconds)
    heard = mono[: limit // 2]
    levels = np.clip(np.nan_to_num(heard) * 32767, -32768, 32767).astype("<i2").tobytes()
    sizes = 36 + len(levels), 16, 1, 1, rate, 2 * rate, 2, 16, len(levels)
    header = struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", sizes[0], b"WAVE", b"fmt ", *sizes[1:8], b"data", sizes[8])
    encoded = base64.b64encode(header + levels).decode()
    text = f"{len(mono) * scale.seconds:.2f} s at {rate} Hz"
    if len(heard) < len(mono):
        text += f", the first {len(heard) * scale.seconds:.2f} s can be played"
    return (
        f'{_image(_waveform(mono))}<br><audio controls src="data:audio/wav;base64,{encoded}"></audio>'
        f'<div style="font-family:monospace">{text}</div>'
    )


def _waveform(mono: np.ndarray) -> np.ndarray:
    """The waveform as a picture: each column covers an equal part of the time, and is dark between its lowest and highest
    sample."""
    columns = min(_WIDTH, len(mono))
    edges = np.linspace(0, len(mono), columns + 1).astype(np.int64)[:-1]
    high, low = np.maximum.reduceat(mono, edges), np.minimum.reduceat(mono, edges)
    rows = np.linspace(1, -1, _HEIGHT)[:, None]
    half = 1 / _HEIGHT
    picture = np.full((_HEIGHT, columns, 3), 255, np.uint8)
    picture[(rows <= high + half) & (rows >= low - half)] = (40, 80, 160)
    return picture


def _picture(values: np.ndarray, scale: Scale, layout: str | None) -> str:
    """Time to the right, frequency upwards; powers and magnitudes in decibels."""
    grid = (values.T if layout == "tf" else values).astype(np.float32)
    grid = np.nan_to_num(grid)
    if grid.min() >= 0:
        grid = 10 * np.log10(np.maximum(grid, 1e-30))
    low = max(float(grid.min()), float(grid.max()) - _STEPS)
    shade = np.clip((grid - low) / max(float(grid.max()) - low, 1e-6), 0, 1)[::-1]
    step = max(1, -(-max(shade.shape) // 1024))
    shade = shade[::step, ::step]
    picture = np.stack([shade**0.5, shade**1.5, 0.3 + 0.4 * np.sin(np.pi * shade)], axis=2)
    seconds, hz = values.shape[0 if layout == "tf" else 1] * scale.seconds, (len(grid) - 1) * (scale.hz or 0)
    style = "font-family:monospace;display:flex;justify-content:space-between"
    return (
        f'<div style="display:flex"><div style="{style};flex-direction:column;text-align:right;padding-right:4px">'
        f"<span>{hz:.0f} Hz</span><span>{hz / 2:.0f} Hz</span><span>0 Hz</span></div>"
        f"{_image((picture * 255).astype(np.uint8), width=_WIDTH, height=200)}</div>"
        f'<div style="{style};width:{_WIDTH + 80}px;padding-left:72px">'
        f"<span>0 s</span><span>{seconds / 2:.2f} s</span><span>{seconds:.2f} s</span></div>"
    )


def _image(pixels: np.ndarray, **size: int) -> str:
    extents = "".join(f' {name}="{value}"' for name, value in size.items())
    return f'<img{extents} src="{picture_uri(pixels)}">'
