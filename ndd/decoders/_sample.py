"""One encoded image to pixels: which library decodes it, and what is refused before anything is allocated."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numpy as np

from ndd.decoders import _portable
from ndd.decoders._limit import get_max_pixels
from ndd.decoders._pixels import Window, as_stored, convert, upright
from ndd.decoders.headers import formats as _formats
from ndd.decoders.headers.header import Header, jpeg
from ndd.decoders.jpeg import backend as _jpeg
from ndd.decoders.jpeg.segments import lacks_scans
from ndd.decoders.nvimgcodec import single as _nvimgcodec
from ndd.types import DALIImageType

_PIXEL_BYTES = 32  # what decoders take for a pixel, at most: JPEG 2000 holds 32-bit numbers twice
_HEADER_BYTES = 1 << 24
_LONGEST = (1 << 31) - 1  # rows or columns: what any library counts with
_second_tries = threading.Lock()


class Options(NamedTuple):
    """The constants of a decoder call that matter for one sample."""

    output_type: DALIImageType
    dtype: Any  # of NumPy
    adjust_orientation: bool
    max_pixels: int | None  # None: what `set_max_pixels` says at the time
    fast_idct: bool = False  # JPEG on the CPU: the quicker, less exact inverse DCT

    def limit(self) -> int:
        """How many pixels a picture may have."""
        return get_max_pixels() if self.max_pixels is None else self.max_pixels

    def out_shape(self, header: Header, window: Window | None = None) -> tuple[int, int, int]:
        """The shape of the result."""
        height, width = header.size(self.adjust_orientation)
        if window is not None:
            height, width = window[2] - window[0], window[3] - window[1]
        return height, width, header.out_channels(self.output_type)


def bad_image(message: str, shape: tuple[int, int, int] | None = None) -> RuntimeError:
    """A RuntimeError about one image that remembers what shape the picture would have had."""
    error = RuntimeError(message)
    error.image_shape = shape  # type: ignore[attr-defined]
    return error


def header_of(data: np.ndarray) -> Header:
    """The header of an encoded image. RuntimeError if it is no image that can be read here."""
    data = data.reshape(-1)
    found = jpeg(data.data)
    if found is not None:
        return found
    name = _formats.format_of(data)
    if name in _formats.READS:
        found = _formats.read_header(data, name)
    elif name in ("gif", "avif"):
        try:
            found = _portable.read_header(data, name)
        except RuntimeError:
            _check_memory(_HEADER_BYTES)
    if found is None or not (0 < found.height <= _LONGEST and 0 < found.width <= _LONGEST):
        raise bad_image(_not_an_image(data))
    return found


def _not_an_image(data: np.ndarray) -> str:
    head = data[:8].tobytes()
    if not len(data):
        return "expected an encoded image, got 0 bytes: an empty file, or one that cannot be read"
    return f"expected an encoded image, got {len(data)} bytes from {head!r} on: no known format, or a damaged header"


def check_size(header: Header, options: Options) -> None:
    """Refuses a picture of more pixels than allowed: what a few bytes of header claim must not cost gigabytes."""
    if header.height * header.width > options.limit():
        raise too_large(header, options)


def too_large(header: Header, options: Options) -> RuntimeError:
    """The error about a picture of too many pixels."""
    return bad_image(
        f"expected at most {options.limit()} pixels, got {header.height}x{header.width} by the header. "
        "Allow more with max_pixels= or ndd.decoders.set_max_pixels()."
    )


def decode(
    data: np.ndarray,
    options: Options,
    header: Header | None = None,
    window: Window | None = None,
    seen: Window | None = None,
    tried: bool = False,
) -> np.ndarray:
    """The picture (or the window of it), HWC in the element type asked for; outside of `seen` it may hold anything. `tried`:
    the kernel for common JPEGs has given it up.

    `window` and `seen` are in the upright picture. Libraries decode pictures as they are stored; they are turned here, and
    nothing leaves that has not exactly the promised shape.
    """
    data = data.reshape(-1)
    if header is None:
        header = header_of(data)
        check_size(header, options)
    if window is not None and window == (0, 0, *header.size(options.adjust_orientation)):
        window = None
    is_ycbcr = options.output_type == DALIImageType.YCbCr
    turn, size = header.orientation if options.adjust_orientation else 1, header.size(options.adjust_orientation)
    kind = DALIImageType.RGB if is_ycbcr else options.output_type
    stored = options._replace(
        output_type=kind, fast_idct=options.fast_idct and turn == 1
    )  # not of turned ones, as in DALI
    part, seen = (w and as_stored(w, size, turn) for w in (window, seen))
    # It looks at all of the file by itself.
    image = None if tried else _jpeg.decode(data, header, stored, part, seen)
    if image is None:
        image = _by_libraries(data, header, stored, part)
    shape = options.out_shape(header, window)
    if image is None or (image := upright(image, turn)).shape != shape:
        raise bad_image(
            f"Failed to decode the image of {header.height}x{header.width} pixels: the data is damaged, cut off, or of "
            "a kind that no installed library decodes",
            shape,
        )
    return convert(image, options.dtype, is_ycbcr)


def _by_libraries(data: np.ndarray, header: Header, options: Options, window: Window | None) -> np.ndarray | None:
    bare = _formats.bare(data, header)
    if bare is None:
        return None
    image = _pixels(bare, header, options, window)
    return _second_try(bare, header, options, window) if image is None else image


def _second_try(data: np.ndarray, header: Header, options: Options, window: Window | None) -> np.ndarray | None:
    """Once more, one picture at a time: the libraries do not say whether data were bad or memory was short.

    MemoryError if it was short, so that nothing good counts as damaged.
    """
    with _second_tries:
        needed = _HEADER_BYTES + _PIXEL_BYTES * header.height * header.width
        _check_memory(needed)
        image = _pixels(data, header, options, window)
        if image is None:
            _check_memory(needed)
        return image


def _check_memory(nbytes: int) -> None:
    try:
        np.empty(nbytes, np.uint8)
    except MemoryError:
        raise MemoryError(f"{nbytes >> 20} MB to decode an image with cannot be had") from None


def _pixels(data: np.ndarray, header: Header, options: Options, window: Window | None) -> np.ndarray | None:
    if window is not None and header.format == "jpeg" and lacks_scans(data.data):
        whole = _pixels(data, header, options, None)
        return None if whole is None else whole[window[0] : window[2], window[1] : window[3]]
    inks = header.format == "jpeg" and header.channels == 4
    if inks and options.output_type == DALIImageType.GRAY:
        return _gray_of_colours(data, header, options, window)
    if header.plain_jpeg and window is None:
        image = _portable.decode_plain_jpeg(data, header, options)
        if image is not None:
            return image
    # DALI's colours of those are OpenCV's.
    by_opencv = inks and options.output_type != DALIImageType.ANY_DATA and _is_turned(header, options)
    if header.format != "jpeg" or by_opencv or _nvimgcodec.library() is None:
        return _portable.decode(data, header, options, window)
    image = _nvimgcodec.decode_cpu(data, header, options, window)
    return _what_nvimgcodec_leaves(data, header, options, window) if image is None else image


def _what_nvimgcodec_leaves(
    data: np.ndarray, header: Header, options: Options, window: Window | None
) -> np.ndarray | None:
    """Colour of one-component files that it gives only as gray and gray of others (lossless JPEG), and files with alpha or
    CMYK unchanged that Pillow can read."""
    kind = options.output_type
    if header.format == "jpeg" and header.channels == 3 and kind == DALIImageType.GRAY:
        return _gray_of_colours(data, header, options, window)
    if header.channels == 1 and kind in (DALIImageType.RGB, DALIImageType.BGR):
        gray = _nvimgcodec.decode_cpu(data, header, options._replace(output_type=DALIImageType.GRAY), window)
        return None if gray is None else np.repeat(gray, 3, axis=2)
    if header.channels in (2, 4) and kind == DALIImageType.ANY_DATA:
        image = _portable.by_pillow(data, header, kind)
        return None if image is None else _portable.cut(image, window)
    return None


def _gray_of_colours(data: np.ndarray, header: Header, options: Options, window: Window | None) -> np.ndarray | None:
    """The gray of a JPEG that does not hold it as it is (CMYK, lossless RGB): of its colours, and as DALI by OpenCV if turned."""
    rgb = _pixels(data, header, options._replace(output_type=DALIImageType.RGB), window)
    return None if rgb is None else _portable.gray(rgb, by_opencv=_is_turned(header, options), rounded=False)


def _is_turned(header: Header, options: Options) -> bool:
    return options.adjust_orientation and header.orientation != 1
