"""`ndd.decoders.image`: encoded images to pixels."""

from __future__ import annotations

from typing import Any, Literal

from ndd._operator import Samples, operator, output
from ndd._operator.deprecated import ignored
from ndd._tensor import DType, Spec
from ndd._tensor.dtype import uint8
from ndd.decoders.picture_batch import decodes
from ndd.decoders.pixels import SUPPORTED
from ndd.decoders.size_limits import checked
from ndd.types import DALIImageType


@operator(reads="cpu", dtypes=SUPPORTED)
def image(
    input,
    /,
    *,
    adjust_orientation: bool = True,
    affine: bool = True,
    cache_batch_copy: bool = True,
    cache_debug: bool = False,
    cache_size: int = 0,
    cache_threshold: int = 0,
    cache_type: str = "",
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
    split_stages: bool | None = None,
    use_chunk_allocator: bool | None = None,
    use_fast_idct: bool = False,
):
    """Decodes images: JPEG, PNG, WebP, TIFF, JPEG 2000, BMP, PNM, and where Pillow is installed GIF and AVIF.

    Args:
        input: the bytes of files, 1-D u8 on the CPU, as `readers.File` and `io.file.read` give them.
        device: "gpu" decodes encoded bytes from the CPU to GPU memory, with the JPEG engines, CUDA kernels and the
            CPU cores together; what only the CPU can decode is decoded there and copied.
        output_type: RGB, BGR, GRAY, YCbCr (BT.601, Y in 16..235) or ANY_DATA: the channels of the file, with alpha.
            For the others transparency is dropped and gray or palette images become RGB.
        dtype: u8, i8, u16, i16, u32, i32 or f32. Full brightness stays full brightness: 255 becomes 65535 as u16 and
            1.0 as f32. Files of 16 bits keep them.
        adjust_orientation: turn the picture upright as its EXIF orientation says; an AVIF as its `irot` and `imir` boxes
            say, and only without them as its EXIF does.
        on_error: "raise" a RuntimeError that names every bad sample of the batch and its file; "skip" leaves bad
            samples out, the batch is smaller; "fill" gives zeros in the size that the header states, or 1x1 if there
            is no telling. `result.dropped` lists what was bad: (index, source, error).
        max_pixels: refuse larger pictures (height x width) before allocating anything; default
            `ndd.decoders.get_max_pixels()`.
        hw_decoder_load: share of the JPEGs of a batch that go to the GPU's JPEG engines: the largest of those with the
            finest chroma. The default, 0.65, is DALI's, and here stands for what was measured to be fastest: all of up to
            32 pictures, and of any number with up to four threads (`ndd.set_num_threads`); else 0.85 with up to eight; with
            more of them 0.65, or 0.75 of up to 64 pictures that are not decoded ahead; of batches from 32 MB of files on, by
            threads, from all to 0.4. Any other number is the share, as in DALI. Engines differ from kernels by up to 3 of
            255 in 1 of 100 photographs, so that what a picture is decoded with shows, as in DALI, and here what is decoded
            ahead too; 0 and 1 give the same pixels in any company.
        hybrid_huffman_threshold: from how many pixels (height x width) on a GPU itself reads the Huffman codes of a baseline
            JPEG that the engines do not decode; those of smaller ones the CPU's threads read. The default, 1,000,000, is
            DALI's, and here stands for 0 with `hw_decoder_load=0`: up to 1.8 times the images/s. No pixel depends on it.
        use_fast_idct: JPEGs that the CPU decodes go through libjpeg-turbo's quicker, less exact inverse DCT (off by a few
            of 255). Needs simplejpeg or nvImageCodec.
        jpeg_fancy_upsampling: smooth chroma on the GPU; the CPU always does it.
        device_memory_padding, host_memory_padding, preallocate_height_hint, preallocate_width_hint: how large the
            buffers are that the GPU decoders make once and keep; no effect on the CPU, nor on any pixel.
        affine, cache_batch_copy, cache_debug, cache_size, cache_threshold, cache_type, device_memory_padding_jpeg2k,
            host_memory_padding_jpeg2k: taken for DALI's sake, without effect.
        memory_stats, split_stages, use_chunk_allocator: old arguments without effect.

    Gives HWC images; pixels on the CPU are bit for bit those of DALI, but for what follows. Beyond DALI: `on_error`,
    `max_pixels`, GIF, AVIF, colour from lossless JPEG with one component and from gray JPEG 2000 streams, ANY_DATA for all
    channel counts (gray PNGs with alpha have two).

    What DALI gets wrong: turned PNG and WebP with alpha are upright in ANY_DATA too, where it gives them unturned or
    memory that nobody wrote. The chunks of a WebP behind one of odd length count, and so does an EXIF behind an "Exif"
    mark. GRAY of a PNG is that of its colours; DALI mixes it in linear light if a gAMA or sRGB chunk is there, up to 68 of
    255 off. BMPs are read as they are written: masks in any place, white of five bits is 255 (248 there), what is too much
    of a row of run lengths is dropped, 2 bits and RLE4 work. Of TIFFs, planes, palettes of 16 bits or with alpha, whole
    numbers of 32 bits and floats of 16 and 64 are what they say; signed numbers keep their values in signed types, and
    negative ones are 0 in others. Gray TIFFs with alpha become gray, where DALI takes gray, alpha, gray for the three
    colours. As there, 10 to 14 bits are shifted to 16, white stays 0 in files of more than 8 bits that say that it is, of
    more channels than four the first three are red, green and blue, and ANY_DATA gives all, as stored: alpha is multiplied
    with nothing.

    No file may end or hang the process, as some damaged ones do with DALI: nvImageCodec gets JPEGs alone, all others go
    to readers here, to OpenCV and to Pillow (on the GPU too, then copied), and their headers are read here first. A JPEG
    of more than 500 scans, or of more than 2^33 pixels over all of its scans, counts as damaged: each scan costs time, and
    ten bytes.

    Raises RuntimeError for data that is no image, damaged or cut off, too large, or for other element types; MemoryError
    where memory is short, whatever `on_error` says.

    >>> import ndd, numpy as np
    >>> pgm = np.frombuffer(b"P5 3 2 255 abcdef", np.uint8)
    >>> ndd.decoders.image(pgm, output_type=ndd.types.GRAY)[:, :, 0].torch()
    tensor([[ 97,  98,  99],
            [100, 101, 102]], dtype=torch.uint8)
    """
    no_effect("image", memory_stats=memory_stats, split_stages=split_stages, use_chunk_allocator=use_chunk_allocator)
    return pictures(input, dtype, on_error, max_pixels)


def pictures(encoded: Spec, dtype: DType, on_error: str = "raise", max_pixels: int | None = None) -> Samples:
    """What comes out of an image decoder; refuses inputs that are no bytes, and a limit that is none."""
    if encoded.dtype is not uint8 or encoded.ndim == 0:
        raise RuntimeError(
            f"expected the bytes of an encoded image, uint8, got {encoded.ndim}-D {encoded.dtype}. "
            "ndd.io.file.read reads files."
        )
    if max_pixels is not None:
        checked(max_pixels)
    return Samples(output(dtype, 3, "HWC"), fewer=on_error == "skip")


def no_effect(operator_name: str, **deprecated: Any) -> None:
    """Warns of old arguments that were given."""
    for name, value in deprecated.items():
        ignored(operator_name, name, value)


decodes(image)
