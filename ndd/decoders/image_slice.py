"""`ndd.decoders.image_slice`: decodes a window out of each encoded image, by its position, size or end."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ndd._operator import Call, Operand, PerSample, Values, operator
from ndd._tensor import DType
from ndd._tensor.dtype import uint8
from ndd.decoders.image import no_effect, pictures
from ndd.decoders.picture_batch import decodes
from ndd.decoders.pixels import SUPPORTED
from ndd.ops.image.slice import check_slice, slice_ends
from ndd.ops.image.window import rounded
from ndd.ops.tensor.axes import axes_of
from ndd.types import DALIImageType


@operator(reads="cpu", dtypes=SUPPORTED)
def image_slice(
    data,
    anchor=None,
    shape_input=None,
    /,
    *,
    adjust_orientation: bool = True,
    affine: bool = True,
    axes: PerSample[list[int]] = None,
    axis_names: str | None = None,
    device_memory_padding: int = 16777216,
    device_memory_padding_jpeg2k: int = 0,
    dtype: DType = uint8,
    end: PerSample[list[int]] = None,
    host_memory_padding: int = 8388608,
    host_memory_padding_jpeg2k: int = 0,
    hw_decoder_load: float = 0.65,
    hybrid_huffman_threshold: int = 1000000,
    jpeg_fancy_upsampling: bool = False,
    max_pixels: int | None = None,
    memory_stats: bool | None = None,
    normalized_anchor: bool = True,
    normalized_shape: bool = True,
    on_error: Literal["raise", "skip", "fill"] = "raise",
    output_type: DALIImageType = DALIImageType.RGB,
    preallocate_height_hint: int = 0,
    preallocate_width_hint: int = 0,
    rel_end: PerSample[list[float]] = None,
    rel_shape: PerSample[list[float]] = None,
    rel_start: PerSample[list[float]] = None,
    shape: PerSample[list[int]] = None,
    split_stages: bool | None = None,
    start: PerSample[list[int]] = None,
    use_chunk_allocator: bool | None = None,
    use_fast_idct: bool = False,
):
    """Decodes a window of each image: the pixels of `slice(image(...))`. It is faster, because the rest is not decoded.

    Either two inputs or named arguments define the window, with one number for each axis.

    Args:
        data: the bytes of files, as for `decoders.image`.
        anchor, shape_input: i32, i64 or f32. Integers are absolute. Floats are fractions of the extent, unless
            `normalized_anchor=False` or `normalized_shape=False`.
        start, rel_start: where the window begins, absolute or as a fraction of the extent; default 0.
        end, rel_end, shape, rel_shape: where it ends, or its size; default: to the end of the axis.
        axes: the axes of the numbers: 0 = H, 1 = W; negative ones count from the back.
        axis_names: the axes by their letters; default "WH": x first.
        adjust_orientation, device_memory_padding, dtype, host_memory_padding, hw_decoder_load, hybrid_huffman_threshold,
            jpeg_fancy_upsampling, max_pixels, on_error, output_type, preallocate_height_hint, preallocate_width_hint,
            use_fast_idct: as for `decoders.image`.
        affine, device_memory_padding_jpeg2k, host_memory_padding_jpeg2k: accepted for compatibility with DALI, without effect.
        memory_stats, split_stages, use_chunk_allocator: deprecated, without effect.
        normalized_anchor, normalized_shape: whether the floats of `anchor`, or of `shape_input`, are fractions of the
            extent.

    Start and end are rounded separately, halves away from zero. Positions refer to the upright picture. Gives HWC
    images. Unlike in NumPy's `image[y0:y1, x0:x1]`, negative numbers do not count from the end.

    Raises RuntimeError as `decoders.image`, for a window that reaches outside the picture or has no pixels (DALI
    accepts some of these in a batch with others; `on_error` governs all), and for arguments that exclude each other.

    >>> import ndd, numpy as np
    >>> pgm = np.frombuffer(b"P5 3 2 255 abcdef", np.uint8)
    >>> ndd.decoders.image_slice(pgm, start=[1, 0], shape=[2, 1], output_type=ndd.types.GRAY)[:, :, 0].torch()
    tensor([[98, 99]], dtype=torch.uint8)
    >>> jpeg = ndd.io.file.read(ndd.demo.photos() + "/nature/cat.jpg")
    >>> ndd.decoders.image_slice(jpeg, rel_start=[0.2, 0.3], rel_shape=[0.6, 0.5], axis_names="HW").shape
    (160, 200, 3)
    """
    no_effect(
        "image_slice", memory_stats=memory_stats, split_stages=split_stages, use_chunk_allocator=use_chunk_allocator
    )
    check_slice(
        anchor,
        shape_input,
        start=start,
        rel_start=rel_start,
        end=end,
        rel_end=rel_end,
        shape=shape,
        rel_shape=rel_shape,
    )
    if axis_names:
        axes_of(None, axis_names, "HW", 2)  # refused at the call
    return pictures(data, dtype, on_error, max_pixels)


_ENDS = ("start", "rel_start", "end", "rel_end", "shape", "rel_shape")


def _windows(
    call: Call, extents: np.ndarray, anchor: Operand | None, shape_input: Operand | None, *, axes: Values | None,
    axis_names: str | None, normalized_anchor: bool, normalized_shape: bool, **arguments: Any,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    chosen = axes_of(axes, "WH" if axes is None and axis_names is None else axis_names, "HW", 2)
    rows = np.arange(call.n)[:, None]
    named = {k: arguments[k] for k in _ENDS}
    low, high = slice_ends(extents[rows, chosen], anchor, shape_input, normalized_anchor, normalized_shape, named)
    starts, shapes = np.zeros_like(extents), extents.copy()
    starts[rows, chosen] = first = rounded(low)
    shapes[rows, chosen] = rounded(high) - first
    return starts, shapes


decodes(image_slice, _windows)
