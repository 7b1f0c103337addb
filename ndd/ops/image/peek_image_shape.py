"""`ndd.peek_image_shape`: the shape of encoded images from their headers."""

from __future__ import annotations

import numpy as np

from ndd._operator import bad_sample, operator, output
from ndd._tensor import DType
from ndd._tensor.dtype import int64
from ndd.decoders.image import pictures
from ndd.decoders.jpeg.batch_headers import PEEKED, peek
from ndd.decoders.registry import read_header
from ndd.types import DALIImageType

_TYPES = ("i32", "u32", "i64", "u64", "f32", "f64")


@operator(dtypes=_TYPES)
def peek_image_shape(
    input,
    /,
    *,
    adjust_orientation: bool = True,
    dtype: DType = int64,
    image_type: DALIImageType = DALIImageType.RGB,
):
    """Returns the shape of an encoded image after decoding, from its header: a few microseconds for each sample.

    Args:
        input: the bytes of files, 1-D u8, as for `decoders.image`.
        adjust_orientation: height and width of the upright picture; False gives them as stored.
        dtype: i32, u32, i64, u64, f32 or f64.
        image_type: the output type of the decoder, which determines the channels. ANY_DATA: those of the file.

    Gives (H, W, C); PIL's `Image.open(file).size` is (W, H) as stored. Pictures above the pixel limit of the decoders are not
    an error here.

    Raises RuntimeError for data that is not an image, and for other element types.

    >>> import ndd, numpy as np
    >>> ndd.peek_image_shape(np.frombuffer(b"P5 3 2 255 abcdef", np.uint8)).torch()
    tensor([2, 3, 3])
    """
    pictures(input, dtype, "raise")
    return output(dtype, 1)


peek_image_shape.operator.empty_ndim = 1


# A batch: one compiled call reads the headers of all files.
@peek_image_shape.batch
def _(call, input, *, adjust_orientation, dtype, image_type):
    stored = np.empty((call.n, 3), np.int64)
    peek(input.pointers(), input.sizes, np.empty(PEEKED, np.uint8), stored)
    shapes = stored.astype(dtype.numpy)
    if image_type != DALIImageType.ANY_DATA:
        shapes[:, 2] = 1 if image_type == DALIImageType.GRAY else 3
    others = np.flatnonzero(~stored.all(axis=1)).tolist()
    arrays = input.arrays if others else []
    for i in others:
        try:
            header = read_header(arrays[i])
        except RuntimeError as error:
            raise bad_sample(i, str(error)) from None
        shapes[i] = *header.size(adjust_orientation), header.out_channels(image_type)
    return shapes
