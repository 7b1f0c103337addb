"""8-bit JPEGs by simplejpeg, a thin wrapper of libjpeg-turbo."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ndd._tensor.memory import host_empty
from ndd.decoders.backend import Options, Window
from ndd.decoders.headers.header import Header
from ndd.decoders.pixels import cut
from ndd.types import DALIImageType


@functools.cache
def library() -> Any:
    """The module simplejpeg, or None where it is not installed."""
    try:
        import simplejpeg
    except ImportError:
        return None
    return simplejpeg


def decode(data: np.ndarray, header: Header, options: Options, window: Window | None) -> np.ndarray | None:
    """The backend. It decodes whole pictures, and refuses a file at any warning of libjpeg-turbo."""
    module = library()
    if module is None or not header.plain_jpeg:
        return None
    channels = header.out_channels(options.output_type)
    space = "GRAY" if channels == 1 else "BGR" if options.output_type == DALIImageType.BGR else "RGB"
    # Our memory is reused: fresh memory costs a page fault for every 4 kB, 5 % of the time.
    out = host_empty((header.height, header.width, channels), np.uint8)
    try:
        module.decode_jpeg(data, space, fastdct=options.fast_idct, buffer=out)
    except ValueError:  # for errors and warnings: the file is truncated or damaged
        return None
    return cut(out, window)
