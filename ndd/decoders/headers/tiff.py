"""TIFF headers: the first directory of each file."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from ndd.decoders.headers import orientation as _orientation, tiff_directory as tiff
from ndd.decoders.headers.header import Header
from ndd.decoders.headers.tiff_directory import FLOAT, LAB, PALETTE, SIGNED, UNSIGNED, Directory

_MOST_UNPACKED = 1100  # numbers that a byte of a file may become; deflate's limit is 1032


def read_header(data: memoryview) -> Header | None:
    """The header, from the first directory only."""
    directory = Directory(data)
    numbers = {tiff.BITS: 1, tiff.COLOURS: -1, tiff.CHANNELS: 1, tiff.SAMPLE_FORMAT: UNSIGNED}
    for entry in directory.entries():
        if entry.code and entry.count and entry.tag in (tiff.WIDTH, tiff.HEIGHT, *numbers):
            numbers[entry.tag] = directory.number(entry.code[0], entry.place)
    if tiff.WIDTH not in numbers or tiff.HEIGHT not in numbers:
        return None
    channels, depth = numbers[tiff.CHANNELS], _depth(numbers[tiff.BITS], numbers[tiff.SAMPLE_FORMAT])
    if numbers[tiff.COLOURS] == PALETTE:
        channels, depth = 3, np.uint16  # the colours of a palette have 16 bits
    elif numbers[tiff.COLOURS] == LAB and depth is not None:
        depth = np.uint8
    height, width = numbers[tiff.HEIGHT], numbers[tiff.WIDTH]
    if channels > 4 and height * width * channels > _MOST_UNPACKED * len(data):
        channels, depth = 4, None  # a few bytes of header must not cost gigabytes
    damaged = depth is None or not channels
    turned = _orientation.of_tiff(data)
    return Header(height, width, max(channels, 1), turned, np.uint8 if damaged else depth, damaged=damaged)


def _depth(bits: int, kind: int) -> Any:
    """The element type of numbers; None for those that no backend reads."""
    if kind == FLOAT:
        return np.float32 if bits in (16, 32, 64) else None
    if kind == SIGNED:
        return {8: np.int8, 16: np.int16, 32: np.int32}.get(bits)
    return np.uint8 if 1 <= bits <= 8 else np.uint16 if 8 < bits <= 16 else np.uint32 if bits == 32 else None


def unturned_lab(data: np.ndarray) -> np.ndarray | None:
    """A CIELAB file without its orientation, which OpenCV would apply: the file itself or a copy. None for any other file."""
    try:
        directory = Directory(data.data)
        places = {e.tag: (directory.number(e.code[0], e.place), e) for e in directory.entries() if e.code and e.count}
    except (struct.error, OverflowError):
        return None
    if places.get(tiff.COLOURS, (None,))[0] != LAB:
        return None
    if places.get(tiff.ORIENTATION, (1,))[0] == 1:
        return data
    entry, plain = places[tiff.ORIENTATION][1], data.copy()
    turn = np.frombuffer(struct.pack(directory.order + entry.code[0], 1), np.uint8)
    plain[entry.place : entry.place + len(turn)] = turn
    return plain
