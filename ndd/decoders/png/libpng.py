"""libpng, from the wheels of OpenCV or Pillow: it is loaded once, and compiled code can call its functions.

Its "simplified" functions (png.h, section V) report damage as a return value, so that no `longjmp` leaves the library.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
from collections.abc import Iterator
from pathlib import Path

from ndd._compiled.jit import External, connect_first

begin: External = External("png_image_begin_read_from_memory", "int32(uintp, uintp, uintp)")
"""`begin(image, data, size)` reads the header into a `png_image`; 0 for a damaged one."""
finish: External = External("png_image_finish_read", "int32(uintp, uintp, uintp, int32, uintp)")
"""`finish(image, background, buffer, row_stride, colormap)` writes the pixels in `image`'s format; 0 for damaged ones."""
free: External = External("png_image_free", "uintp(uintp)")
"""`free(image)` frees the memory that `begin` allocated, as `finish` does."""


@functools.cache
def library() -> ctypes.CDLL | None:
    """The library, connected; None where no wheel has one."""
    return connect_first((begin, finish, free), _copies())


def _copies() -> Iterator[Path]:
    """The places of libpng in wheels: OpenCV's first, because its pixels are those of DALI."""
    for module, folder in (("cv2", "opencv*.libs"), ("PIL", "pillow.libs")):
        spec = importlib.util.find_spec(module)
        if spec is not None and spec.origin is not None:
            package = Path(spec.origin).parent
            yield from sorted(package.parent.glob(f"{folder}/libpng16*.so*"))
            yield from sorted(package.glob(".dylibs/libpng16*.dylib"))
