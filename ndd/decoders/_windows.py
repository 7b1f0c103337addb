"""Windows of JPEGs on the CPU by nvImageCodec's C library, some pictures in a call that holds no GIL.

64 windows of 120 x 120 take 43 ms of CPU time (54 by a call of the wheel's Python module for each), windows as
random_resized_crop takes them 74 (84). The pixels are the same. For whole pictures simplejpeg is as fast (90 ms).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from ndd._cpu import codec_calls
from ndd._cpu.jpeg_headers import CHANNELS, FIRST_SWAPPED, HEIGHT, ORIENTATION, WIDTH
from ndd._execution.kept import Kept
from ndd._tensor.memory import host_empty
from ndd.decoders import _codec_library, _nvimgcodec
from ndd.decoders._codec_library import Decoder, Library, Pictures
from ndd.decoders._header import may_be_decoded
from ndd.decoders._pixels import convert
from ndd.types import DALIImageType

if TYPE_CHECKING:
    from ndd.decoders._batch import Encoded

_PIECES = 4  # of a batch for each thread: pictures differ in what they cost


class _Place:
    """A decoder and the handles of its pictures, for one thread at a time."""

    def __init__(self, codec: Library, fast_idct: bool):
        self.pictures = Pictures(codec, on_gpu=False)
        # Of one thread: then it works on the caller's.
        self.decoder = Decoder(codec, None, 1, 0.0, f":fast_idct={int(fast_idct)}")


_idle: Kept[deque[_Place]] = Kept(lambda fast_idct: deque())


def decode_windows(batch: Encoded, samples: list[int]) -> list[int]:
    """Decodes those windows of these samples that are of plain JPEGs; gives the others, and those that it could not."""
    codec = _codec_library.library()
    if codec is None or batch.options.output_type == DALIImageType.ANY_DATA:
        return samples
    wanted = [i for i in samples if i not in batch.errors and _is_plain(batch, i)]
    pieces = min(len(wanted), _PIECES * batch.call.threads)

    shapes = batch.shapes()

    def one(k: int) -> None:
        numbers = np.array(wanted[k::pieces])
        _decode_piece(codec, batch, numbers, shapes[numbers])

    for error in batch.call.spread(one, pieces).values():
        if not isinstance(error, MemoryError):  # else each picture is tried alone, which says whose fault it is
            raise error
    return [i for i in samples if i not in batch.images]


def _is_plain(batch: Encoded, i: int) -> bool:
    header = batch.header(i)
    return header.plain_jpeg and may_be_decoded(batch.data[i].data, header)


def _decode_piece(codec: Library, batch: Encoded, numbers: np.ndarray, shapes: np.ndarray) -> None:
    options = batch.options
    is_ycbcr = options.output_type == DALIImageType.YCbCr
    facts = batch.facts[numbers]
    encoded = [_nvimgcodec.harmless(batch.data[i]) for i in numbers]
    images = [host_empty(tuple(shape), np.uint8) for shape in shapes.tolist()]
    idle = _idle(options.fast_idct)
    try:
        place = idle.pop()
    except IndexError:
        place = _Place(codec, options.fast_idct)
    place.pictures.take(
        _addresses(encoded),
        np.array([len(data) for data in encoded]),
        np.ascontiguousarray(facts[:, HEIGHT : WIDTH + 1]),
        facts[:, ORIENTATION] >= FIRST_SWAPPED,
        batch.windows[numbers],  # type: ignore[index]
        _addresses(images),
        shapes,
        _codec_library.kinds_of(DALIImageType.RGB if is_ycbcr else options.output_type, facts[:, CHANNELS]),
        options.adjust_orientation,
        0,
    )
    try:
        done = place.decoder.decode(place.pictures, codec_calls.decode_if_compiled)
    except RuntimeError:  # this decoder is given up
        place.decoder.close()
        return
    idle.append(place)
    for i, image, good in zip(numbers.tolist(), images, done.tolist(), strict=True):
        if good:
            batch.images[i] = convert(image, options.dtype, is_ycbcr)


def _addresses(arrays: list[Any]) -> np.ndarray:
    return np.array([array.__array_interface__["data"][0] for array in arrays])
