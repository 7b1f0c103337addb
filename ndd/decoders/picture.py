"""Decodes one picture on the CPU: limits, backends, then the requested channels and element type."""

from __future__ import annotations

import threading

import numpy as np

from ndd._execution import observation
from ndd.decoders.backend import Options, Unreadable, Window
from ndd.decoders.headers.header import Header
from ndd.decoders.jpeg import backend as _jpeg
from ndd.decoders.jpeg.segments import lacks_scans
from ndd.decoders.pixels import as_stored, convert, cut, to_gray, upright
from ndd.decoders.registry import backends, read_header, stripped
from ndd.decoders.size_limits import check_memory
from ndd.types import DALIImageType

_second_tries = threading.Lock()


class _Last(threading.local):
    backend = ""


_last = _Last()


def last_backend() -> str:
    """The backend that decoded the last picture of this thread; known only while a profile is on."""
    return _last.backend


def bad_picture(message: str, shape: tuple[int, int, int] | None = None) -> RuntimeError:
    """The error about one picture, with the shape that the result would have."""
    error = RuntimeError(message)
    error.image_shape = shape  # type: ignore[attr-defined]
    return error


def check_size(header: Header, options: Options) -> None:
    """Refuses a picture of more pixels than allowed: a few bytes of a header must not cost gigabytes."""
    if header.height * header.width > options.limit():
        raise too_large(header, options)


def too_large(header: Header, options: Options) -> RuntimeError:
    """The error about a picture of too many pixels."""
    return bad_picture(
        f"expected at most {options.limit()} pixels, got {header.height}x{header.width} by the header. "
        "Allow more with max_pixels= or ndd.decoders.set_max_pixels()."
    )


def decode(
    data: np.ndarray,
    options: Options,
    header: Header | None = None,
    window: Window | None = None,
    used: Window | None = None,
    kernel_failed: bool = False,
) -> np.ndarray:
    """The picture, or its window, HWC in the requested element type. RuntimeError if it is bad.

    Backends decode pictures as they are stored. Here pictures are turned upright, and a result whose shape differs from the
    header's is an error.

    Args:
        window: the part to decode, in the upright picture.
        used: the part of the upright picture that is used; pixels outside it are undefined.
        kernel_failed: the JPEG kernel has tried this picture before, in a batch.
    """
    data = data.reshape(-1)
    if header is None:
        header = read_header(data)
        check_size(header, options)
    size = header.size(options.adjust_orientation)
    if window == (0, 0, *size):
        window = None
    is_ycbcr = options.output_type == DALIImageType.YCbCr
    turn = header.orientation if options.adjust_orientation else 1
    part, used = (w and as_stored(w, size, turn) for w in (window, used))
    stored = options._replace(
        output_type=DALIImageType.RGB if is_ycbcr else options.output_type,
        fast_idct=options.fast_idct and turn == 1,  # not of turned pictures, as in DALI
        used=used,
    )
    # The kernel detects damage itself, so it gets the file unchanged.
    image = None if kernel_failed else _jpeg.decode(data, header, stored, part)
    if observation.active is not None:
        _last.backend = "jpeg"
    if image is None:
        image = _by_backends(data, header, stored, part)
    shape = options.out_shape(header, window)
    if image is None or (image := upright(image, turn)).shape != shape:
        raise bad_picture(
            f"Failed to decode the image of {header.height}x{header.width} pixels: the data is damaged, cut off, or of "
            "a kind that no installed library decodes",
            shape,
        )
    return convert(image, options.dtype, is_ycbcr)


def _by_backends(data: np.ndarray, header: Header, options: Options, window: Window | None) -> np.ndarray | None:
    """The pixels as stored; None if the picture is bad. MemoryError if memory is short.

    Libraries do not say whether the data was damaged or memory was short. So a picture that fails is tried once more, while no
    other such picture is tried: no good picture counts as damaged.
    """
    bare = stripped(data, header)
    if bare is None:
        return None
    image = _stored(bare, header, options, window)
    if image is not None:
        return image
    pixels = header.height * header.width
    with _second_tries:
        check_memory(pixels)
        image = _stored(bare, header, options, window)
        if image is None:
            check_memory(pixels)
        return image


def _stored(data: np.ndarray, header: Header, options: Options, window: Window | None) -> np.ndarray | None:
    is_jpeg = header.format == "jpeg"
    if is_jpeg and window is not None and lacks_scans(data.data):
        whole = _stored(data, header, options, None)
        return None if whole is None else cut(whole, window)
    if is_jpeg and header.channels == 4 and options.output_type == DALIImageType.GRAY:
        rgb = _stored(data, header, options._replace(output_type=DALIImageType.RGB), window)
        # DALI computes the gray of turned CMYK with OpenCV.
        return None if rgb is None else to_gray(rgb, by_opencv=options.is_turned(header), rounded=False)
    y0, x0, y1, x1 = window or (0, 0, header.height, header.width)
    expected = y1 - y0, x1 - x0, header.out_channels(options.output_type)
    for backend in backends(header, options, window):
        try:
            image = backend.decode(data, header, options, window)
        except Unreadable:
            return None
        if image is not None and image.shape == expected:
            if observation.active is not None:
                _last.backend = getattr(backend, "__name__", "").rpartition(".")[2]
            return image
    return None
