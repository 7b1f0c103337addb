"""`ndd.decoders.image_random_crop`: decodes a random window out of each encoded image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from ndd._operator import Call, operator
from ndd._tensor import DType
from ndd._tensor.dtype import uint8
from ndd.decoders.image import no_effect, pictures
from ndd.decoders.picture_batch import decodes
from ndd.decoders.pixels import SUPPORTED
from ndd.random.crop_window import crop_window
from ndd.types import DALIImageType


@operator(reads="cpu", dtypes=SUPPORTED, random=True)
def image_random_crop(
    input,
    /,
    *,
    adjust_orientation: bool = True,
    affine: bool = True,
    device_memory_padding: int = 16777216,
    device_memory_padding_jpeg2k: int = 0,
    dtype: DType = uint8,
    host_memory_padding: int = 8388608,
    host_memory_padding_jpeg2k: int = 0,
    hw_decoder_load: float = 0.65,
    hybrid_huffman_threshold: int = 1000000,
    jpeg_fancy_upsampling: bool = False,
    max_pixels: int | None = None,
    memory_stats: bool | None = None,
    num_attempts: int = 10,
    on_error: Literal["raise", "skip", "fill"] = "raise",
    output_type: DALIImageType = DALIImageType.RGB,
    preallocate_height_hint: int = 0,
    preallocate_width_hint: int = 0,
    random_area: Sequence[float] = (0.08, 1.0),
    random_aspect_ratio: Sequence[float] = (0.75, 4 / 3),
    split_stages: bool | None = None,
    use_chunk_allocator: bool | None = None,
    use_fast_idct: bool = False,
):
    """Decodes a window of each image with a random share of its area and a random aspect ratio.

    The windows are those of `random_resized_crop` with the same generator. The rest is not decoded. torchvision's
    `RandomResizedCrop` draws by the same rule, but takes the middle of the picture if no window fits.

    Args:
        input: the bytes of files, as for `decoders.image`.
        random_area: the smallest and the largest share of the area.
        random_aspect_ratio: the smallest and the largest width / height; uniform in the logarithm.
        num_attempts: how often a window that does not fit is drawn again.
        rng: an `RNG`. Default: that of the thread. A call advances it by seven words.
        adjust_orientation, device_memory_padding, dtype, host_memory_padding, hw_decoder_load, hybrid_huffman_threshold,
            jpeg_fancy_upsampling, max_pixels, on_error, output_type, preallocate_height_hint, preallocate_width_hint,
            use_fast_idct: as for `decoders.image`.
        affine, device_memory_padding_jpeg2k, host_memory_padding_jpeg2k: accepted for compatibility with DALI, without effect.
        memory_stats, split_stages, use_chunk_allocator: deprecated, without effect.

    Gives HWC images of the windows that DALI draws. If no window can have so large a share of the area (above 1, for example),
    the window is the largest one of a permitted ratio; DALI 2.4.0 raises for some of these pictures, and accepts ratios from 0
    on.

    Raises RuntimeError as `decoders.image`, and for invalid ranges.

    >>> import ndd, numpy as np
    >>> pgm = np.frombuffer(b"P5 3 2 255 abcdef", np.uint8)
    >>> ndd.decoders.image_random_crop(pgm, random_area=1.0, random_aspect_ratio=1.5).shape
    (2, 3, 3)
    >>> jpeg = ndd.io.file.read(ndd.demo.photos() + "/nature/cat.jpg")
    >>> ndd.decoders.image_random_crop(jpeg, random_area=[0.3, 0.5], rng=ndd.random.RNG(1)).shape
    (221, 177, 3)
    """
    no_effect(
        "image_random_crop",
        memory_stats=memory_stats,
        split_stages=split_stages,
        use_chunk_allocator=use_chunk_allocator,
    )
    return pictures(input, dtype, on_error, max_pixels)


def _windows(
    call: Call, extents: np.ndarray, *, num_attempts: int, random_area: Any, random_aspect_ratio: Any, **_others: Any
) -> tuple[np.ndarray, np.ndarray]:
    return crop_window(extents, call.draws.streams(call.n), random_area, random_aspect_ratio, num_attempts)


decodes(image_random_crop, _windows)
