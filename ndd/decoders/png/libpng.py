"""libpng, from the wheels of OpenCV or Pillow: it is loaded once, and compiled code can call its functions.

Its "simplified" functions (png.h, section V) report damage as a return value, so that no `longjmp` leaves the library.
"""

from __future__ import annotations

import ctypes
import functools

from ndd._compiled.jit import External, connect_first
from ndd.decoders.bundled import OPENCV, PILLOW, copies

begin: External = External("png_image_begin_read_from_memory", "int32(uintp, uintp, uintp)")
"""`begin(image, data, size)` reads the header into a `png_image`; 0 for a damaged one."""
finish: External = External("png_image_finish_read", "int32(uintp, uintp, uintp, int32, uintp)")
"""`finish(image, background, buffer, row_stride, colormap)` writes the pixels in `image`'s format; 0 for damaged ones."""
free: External = External("png_image_free", "uintp(uintp)")
"""`free(image)` frees the memory that `begin` allocated, as `finish` does."""


@functools.cache
def library() -> ctypes.CDLL | None:
    """The library, connected; None where no wheel has one."""
    # OpenCV's copy first, because its pixels are those of DALI.
    return connect_first((begin, finish, free), copies("libpng16", OPENCV, PILLOW))
