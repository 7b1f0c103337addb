"""`Header`: the content of an encoded picture's header."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ndd.decoders.headers import orientation as _orientation
from ndd.types import DALIImageType


class Header(NamedTuple):
    """The facts about a picture that a decoder needs before it touches a pixel."""

    height: int
    """As stored, before the picture is turned upright; so is `width`."""
    width: int
    channels: int
    """The channels of the file, with alpha."""
    orientation: int = 1
    """EXIF's number, 1 to 8."""
    dtype: Any = np.uint8
    plain_jpeg: bool = False
    """An 8-bit Huffman JPEG of 1 or 3 components: every JPEG library decodes it to the same pixels."""
    damaged: bool = False
    """The size is known, but no library can decode the picture, and some would complain on stderr."""
    coded_rgb: bool = False
    """A JPEG whose three components are R, G and B: nvJPEG converts them from YCbCr all the same."""
    progressive: bool = False
    """A JPEG whose scans refine the whole picture."""
    format: str = "jpeg"
    """The name in `registry.FORMATS`."""

    def size(self, adjust_orientation: bool) -> tuple[int, int]:
        """Height and width of the decoded picture."""
        if adjust_orientation and _orientation.swaps_axes(self.orientation):
            return self.width, self.height
        return self.height, self.width

    def out_channels(self, output_type: DALIImageType) -> int:
        """Channels of the decoded picture."""
        if output_type == DALIImageType.GRAY:
            return 1
        if output_type != DALIImageType.ANY_DATA:
            return 3
        return max(self.channels, 1)  # a damaged header may say 0: `on_error="fill"` makes one channel of zeros
