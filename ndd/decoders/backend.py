"""The interface of a backend: its arguments and results.

A backend turns the bytes of a picture into pixels. `registry.py` lists the backends of each format, `picture.py` calls them
for one picture, `picture_batch.py` for a batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from ndd.decoders.size_limits import get_max_pixels
from ndd.types import DALIImageType

if TYPE_CHECKING:
    from ndd.decoders.headers.header import Header
    from ndd.decoders.picture_batch import PictureBatch

Window = tuple[int, int, int, int]
"""Part of a picture: y0, x0, y1, x1."""


class Options(NamedTuple):
    """The arguments of a decoder that apply to each picture."""

    output_type: DALIImageType
    dtype: Any
    """NumPy's element type of the result."""
    adjust_orientation: bool
    max_pixels: int | None
    """None: the limit that `set_max_pixels` sets."""
    fast_idct: bool = False
    """Whether the CPU decodes JPEGs with the quicker, less exact inverse DCT."""
    used: Window | None = None
    """The part of a whole picture as stored that is used; pixels outside it are undefined. None: all of it."""

    @classmethod
    def of(
        cls, *, output_type: DALIImageType, dtype: Any, adjust_orientation: bool, max_pixels: int | None,
        use_fast_idct: bool, **_: Any,
    ) -> Options:  # fmt: skip
        """The options from the named arguments of a decoder."""
        return cls(output_type, np.dtype(dtype.numpy), adjust_orientation, max_pixels, use_fast_idct)

    def limit(self) -> int:
        """The most pixels that a picture may have."""
        return get_max_pixels() if self.max_pixels is None else self.max_pixels

    def is_turned(self, header: Header) -> bool:
        """Whether the picture is stored turned or mirrored and comes out upright."""
        return self.adjust_orientation and header.orientation != 1

    def out_shape(self, header: Header, window: Window | None = None) -> tuple[int, int, int]:
        """The shape of the result, HWC."""
        height, width = header.size(self.adjust_orientation)
        if window is not None:
            height, width = window[2] - window[0], window[3] - window[1]
        return height, width, header.out_channels(self.output_type)


class Backend(Protocol):
    """Decodes one picture. A module with this function is a backend."""

    def decode(self, data: np.ndarray, header: Header, options: Options, window: Window | None, /) -> np.ndarray | None:
        """The pixels, or those of the window, as the file stores them: not turned upright, HWC, in the channels that
        `options.output_type` asks for (never YCbCr) and in the element type `header.dtype`.

        None if this backend cannot decode the picture, or is not installed: the next one tries.
        """
        ...


class BatchBackend(Protocol):
    """Decodes the common pictures of a batch in compiled code, with no step of Python for each."""

    def describe(self, batch: PictureBatch, /) -> None:
        """Fills `batch.facts` for the pictures whose headers it reads."""
        ...

    def suitable(self, facts: np.ndarray, options: Options, /) -> np.ndarray:
        """The numbers of the pictures that it can decode to the requested output, unless they are damaged."""
        ...

    def decode_batch(self, batch: PictureBatch, samples: np.ndarray, decoded: Decoded, /) -> None:
        """Decodes what it can of these samples: whole pictures, or the windows of the batch. Other backends decode the
        rest."""
        ...


class Decoded(NamedTuple):
    """Memory for pictures, one after the other in one block, and a flag for each that is decoded."""

    memory: Any
    """Elements of NumPy, or of torch on a GPU."""
    shapes: np.ndarray
    """int64 `[N, 3]`: HWC."""
    starts: np.ndarray
    """int64 `[N]`: the element where each picture begins."""
    done: np.ndarray
    """bool `[N]`: whether each picture is decoded."""


class Unreadable(Exception):
    """The file is damaged in a way that other backends do not notice: none of them may try."""
