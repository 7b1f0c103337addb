"""PNM: the header of P1 to P6."""

from __future__ import annotations

import re

import numpy as np

from ndd.decoders.headers.header import Header

_NUMBER = rb"(?:\s|#[^\n\r]*[\n\r])+0*(\d{1,9})"


def is_pnm(data: memoryview) -> bool:
    """Whether the file begins as PNM does."""
    return re.match(rb"P[1-6][\s#]", data[:3]) is not None


def read_header(data: memoryview) -> Header | None:
    """The extents and the largest value: numbers between white space and comments."""
    head = bytes(data[:4096])
    kind = head[1] - ord("0")
    match = re.match(rb"P\d" + _NUMBER * (2 if kind in (1, 4) else 3) + rb"(?=\s|#|$)", head)
    if match is None:
        return None
    width, height, largest = (int(n) for n in (*match.groups(), b"1")[:3])
    if not 1 <= largest <= 65535:
        return None
    channels = 3 if kind in (3, 6) else 1
    body = len(data) - match.end() - 1
    bits = {4: 1, 5: 8, 6: 24}.get(kind, 8 * channels) * (2 if largest > 255 and kind in (5, 6) else 1)
    short = body * 8 < height * ((width + 7) // 8 * 8 if kind == 4 else width) * bits if kind >= 4 else body < height
    # Libraries keep 16 bits only of files that use all of them.
    depth = np.uint16 if largest == 65535 else np.uint8
    return Header(height, width, channels, 1, depth, damaged=short)
