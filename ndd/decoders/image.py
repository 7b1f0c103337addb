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
    """Decodes images: JPEG, PNG, WebP, TIFF, JPEG 2000, BMP and PNM; with Pillow installed also GIF and AVIF.

    Args:
        input: the bytes of files, 1-D u8 on the CPU, as `readers.File` and `io.file.read` give them.
        device: "gpu" decodes bytes in CPU memory to GPU memory, with JPEG engines, CUDA kernels and CPU cores together.
            Pictures that only the CPU can decode are decoded there and copied.
        output_type: RGB, BGR, GRAY, YCbCr (BT.601, Y in 16..235) or ANY_DATA, which keeps the channels of the file, with
            alpha. The other types drop transparency, and gray or palette images become RGB.
        dtype: u8, i8, u16, i16, u32, i32 or f32. Full brightness stays full brightness: 255 becomes 65535 as u16 and
            1.0 as f32. Files of 16 bits keep all bits.
        adjust_orientation: turn the picture upright by its EXIF orientation; an AVIF by its `irot` and `imir` boxes, or
            without them by its EXIF.
        on_error: "raise" raises a RuntimeError that names every bad sample of the batch and its file; "skip" leaves bad
            samples out, so the batch is smaller; "fill" gives zeros in the size that the header states, or 1x1 if it
            states none. `result.dropped` lists the bad samples: (index, source, error).
        max_pixels: refuse larger pictures (height x width) before anything is allocated. Default:
            `ndd.decoders.get_max_pixels()`.
        hw_decoder_load: the share of the JPEGs of a batch that the GPU's JPEG engines decode: the largest of those with the
            finest chroma. DALI's default, 0.65, selects the fastest measured share: all pictures of batches up to 32, and of
            any batch with up to four threads (`ndd.set_num_threads`); otherwise 0.85 with up to eight threads, and with more
            threads 0.65, or 0.75 for up to 64 pictures that are not decoded ahead. For batches of 32 MB or more it is between
            all and 0.4, by the number of threads; it is all pictures while a loop takes batches more slowly than they are made.
            Any other number is the share, as in DALI. Engines and kernels differ by up to 3 of 255 in 1 of 100 photographs. So
            the pixels depend on the share, as in DALI, and on decoding ahead; 0 and 1 give the same pixels whatever else is in
            the batch.
        hybrid_huffman_threshold: if no engine decodes a baseline JPEG, the GPU reads its Huffman codes from this number of
            pixels (height x width) on, and the CPU's threads read those of smaller ones. With `hw_decoder_load=0` DALI's
            default, 1,000,000, means 0: up to 1.8 times the images/s. It changes no pixel.
        use_fast_idct: decode JPEGs on the CPU with libjpeg-turbo's quicker, less exact inverse DCT (off by a few of 255).
            Needs simplejpeg or nvImageCodec.
        jpeg_fancy_upsampling: smooth chroma on the GPU. The CPU always does.
        device_memory_padding, host_memory_padding, preallocate_height_hint, preallocate_width_hint: the size of the buffers
            that GPU decoders allocate once and keep. They affect neither the CPU nor any pixel.
        affine, cache_batch_copy, cache_debug, cache_size, cache_threshold, cache_type, device_memory_padding_jpeg2k,
            host_memory_padding_jpeg2k: accepted for compatibility with DALI, without effect.
        memory_stats, split_stages, use_chunk_allocator: deprecated, without effect.

    Gives HWC images. On the CPU the pixels equal DALI's bit for bit, except as listed below. Not in DALI: `on_error`,
    `max_pixels`, GIF, AVIF, colour output of lossless JPEGs with one component and of gray JPEG 2000 streams, and ANY_DATA for
    all channel counts (a gray PNG with alpha has two).

    Corrections of DALI's results:

    * Turned PNG and WebP files with alpha are upright in ANY_DATA too. DALI gives them unturned, or uninitialised memory.
    * In a WebP, chunks after one of odd length are read, and so is an EXIF chunk that begins with "Exif".
    * The GRAY of a PNG is computed from its colours. With a gAMA or sRGB chunk DALI mixes it in linear light, up to 68 of 255
      off.
    * BMP: masks may lie anywhere, five bits of white are 255 (248 in DALI), pixels beyond the end of a row of run lengths are
      dropped, and files of 2 bits and RLE4 work.
    * TIFF: planes, palettes of 16 bits or with alpha, integers of 32 bits and floats of 16 and 64 bits have their stored
      values. Signed numbers keep their values in signed types; negative ones are 0 in unsigned types. Gray with alpha
      becomes gray, where DALI takes gray, alpha and gray for the three colours.

    As in DALI, 10 to 14 bits of a TIFF are shifted to 16; "white is zero" files of more than 8 bits are not inverted; the first
    three of more than four channels are red, green and blue; and ANY_DATA gives all channels as stored, with colours not
    multiplied by alpha.

    No file can crash or hang the process, as some damaged files do with DALI. nvImageCodec gets JPEGs only. ndd reads all
    headers itself first; its own readers, OpenCV and Pillow decode the other formats, for the GPU too. A JPEG of more than 500
    scans, or of more than 2^33 pixels over all scans, counts as damaged: a scan of ten bytes can cost the time to go over all
    pixels.

    Raises RuntimeError for data that is not an image, is damaged, cut off or too large, and for other element types;
    MemoryError if memory is short, whatever `on_error` says.

    >>> import ndd, numpy as np
    >>> pgm = np.frombuffer(b"P5 3 2 255 abcdef", np.uint8)
    >>> ndd.decoders.image(pgm, output_type=ndd.types.GRAY)[:, :, 0].torch()
    tensor([[ 97,  98,  99],
            [100, 101, 102]], dtype=torch.uint8)
    >>> jpeg = ndd.io.file.read(ndd.demo.photos() + "/nature/cat.jpg")
    >>> ndd.decoders.image(jpeg).shape
    (266, 400, 3)
    """
    no_effect("image", memory_stats=memory_stats, split_stages=split_stages, use_chunk_allocator=use_chunk_allocator)
    return pictures(input, dtype, on_error, max_pixels)


def pictures(encoded: Spec, dtype: DType, on_error: str = "raise", max_pixels: int | None = None) -> Samples:
    """The description of an image decoder's output. RuntimeError for an input that is not bytes, ValueError for a limit below
    1."""
    if encoded.dtype is not uint8 or encoded.ndim == 0:
        raise RuntimeError(
            f"expected the bytes of an encoded image, uint8, got {encoded.ndim}-D {encoded.dtype}. "
            "ndd.io.file.read reads files."
        )
    if max_pixels is not None:
        checked(max_pixels)
    return Samples(output(dtype, 3, "HWC"), fewer=on_error == "skip")


def no_effect(operator_name: str, **deprecated: Any) -> None:
    """Warns of deprecated arguments that the caller sets."""
    for name, value in deprecated.items():
        ignored(operator_name, name, value)


decodes(image)
