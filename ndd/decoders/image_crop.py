"""`ndd.decoders.image_crop`: decodes a window of a given size out of each encoded image."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ndd._operator import Call, PerSample, operator
from ndd._tensor import DType
from ndd._tensor.dtype import uint8
from ndd.decoders.image import no_effect, pictures
from ndd.decoders.picture_batch import decodes
from ndd.decoders.pixels import SUPPORTED
from ndd.ops.image.window import check_crop, crop_window
from ndd.types import DALIImageType


@operator(reads="cpu", dtypes=SUPPORTED)
def image_crop(
    input,
    /,
    *,
    adjust_orientation: bool = True,
    affine: bool = True,
    crop: PerSample[list[float]] = None,
    crop_d: PerSample[float] = None,
    crop_h: PerSample[float] = None,
    crop_pos_x: PerSample[float] = 0.5,
    crop_pos_y: PerSample[float] = 0.5,
    crop_pos_z: PerSample[float] = 0.5,
    crop_w: PerSample[float] = None,
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
    on_error: Literal["raise", "skip", "fill"] = "raise",
    output_type: DALIImageType = DALIImageType.RGB,
    preallocate_height_hint: int = 0,
    preallocate_width_hint: int = 0,
    rounding: str = "round",
    split_stages: bool | None = None,
    use_chunk_allocator: bool | None = None,
    use_fast_idct: bool = False,
):
    """Decodes a window of each image: the pixels of `crop(image(...))`. It is faster, because the rest is not decoded.

    Args:
        input: the bytes of files, as for `decoders.image`.
        crop: the size of the window, (H, W); or `crop_h` and `crop_w` together. A size below 1, or no size, keeps the whole
            extent; fractions are dropped. `crop_d` and `crop_pos_z` are for volumes and have no effect.
        crop_pos_x, crop_pos_y: the position of the window, from 0 (start) to 1 (end) of the free space.
        rounding: how `position * (extent - size)` becomes an anchor: "round" (halves away from zero) or "truncate".
        adjust_orientation, device_memory_padding, dtype, host_memory_padding, hw_decoder_load, hybrid_huffman_threshold,
            jpeg_fancy_upsampling, max_pixels, on_error, output_type, preallocate_height_hint, preallocate_width_hint,
            use_fast_idct: as for `decoders.image`.
        affine, device_memory_padding_jpeg2k, host_memory_padding_jpeg2k: accepted for compatibility with DALI, without effect.
        memory_stats, split_stages, use_chunk_allocator: deprecated, without effect.
        crop_h, crop_w: height and width of the window in pixels, in place of `crop`.
        crop_d, crop_pos_z: of volumes: no effect on pictures.

    Positions refer to the upright picture. Gives HWC images. In the middle (0.5) an anchor of 2.5 becomes 3; torchvision's
    `CenterCrop` takes 2.

    Raises RuntimeError as `decoders.image`, and for a window that is larger than the picture (`on_error` governs both).

    >>> import ndd, numpy as np
    >>> pgm = np.frombuffer(b"P5 3 2 255 abcdef", np.uint8)
    >>> ndd.decoders.image_crop(pgm, crop=(1, 2), crop_pos_y=1, output_type=ndd.types.GRAY)[:, :, 0].torch()
    tensor([[101, 102]], dtype=torch.uint8)
    >>> jpeg = ndd.io.file.read(ndd.demo.photos() + "/nature/cat.jpg")
    >>> ndd.decoders.image_crop(jpeg, crop=(160, 160), crop_pos_x=0.4, crop_pos_y=0.3).shape
    (160, 160, 3)
    """
    no_effect(
        "image_crop", memory_stats=memory_stats, split_stages=split_stages, use_chunk_allocator=use_chunk_allocator
    )
    check_crop("image_crop", crop=crop, crop_d=crop_d, crop_h=crop_h, crop_w=crop_w, rounding=rounding)
    return pictures(input, dtype, on_error, max_pixels)


_WINDOW = ("crop", "crop_d", "crop_h", "crop_pos_x", "crop_pos_y", "crop_pos_z", "crop_w", "rounding")


def _windows(call: Call, extents: np.ndarray, **arguments: Any) -> tuple[np.ndarray, np.ndarray]:
    return crop_window(extents, "HW", **{k: arguments[k] for k in _WINDOW})


decodes(image_crop, _windows)
