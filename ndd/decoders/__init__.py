"""Decoders: encoded files to arrays.

Life of a picture
-----------------
1. `ndd.decoders.image(files)` (`image.py`; `image_crop.py`, `image_slice.py` and `image_random_crop.py` also compute windows)
   checks its arguments, says what comes out, and starts work. The user gets a handle at once.
2. The files of the call become a `PictureBatch` (`picture_batch.py`). Headers come first: compiled code reads those of the
   common files of a batch (`batch_backends.py`: JPEG, PNG, TIFF, BMP, PNM); `registry.read_header` reads all others, one by one.
   `ndd.peek_image_shape` ends here. Limits (`size_limits.py`), shapes and windows follow from the headers. From here on a bad
   picture is an error of its sample.
3. On the CPU kernels decode the common files of the batch (`backend.py` in `jpeg/`, `png/`, `tiff/`, `bmp/` and `pnm/`). The
   threads of the call take pictures in turn, in compiled code. `picture.py` decodes each of the rest.
   `registry.backends` lists the backends that try, by the format, the kind of JPEG, the window and the installed libraries. A
   failed picture gets one more try, to tell damage from a lack of memory. `pixels.py` turns the picture upright and converts
   channels and element type.
4. On a GPU `nvimgcodec/gpu.py` copies the files to page-locked memory. JPEG engines, CUDA kernels and CPU cores decode the
   JPEGs into one block of memory, which is then converted. Pictures that nvImageCodec cannot decode there go through step 3 and
   are copied. Nothing waits for the GPU.
5. `on_error.py` raises, skips or fills bad pictures. The result is a store with `dropped` and `source_info`.

| picture | backends on the CPU, the first choice first |
| --- | --- |
| baseline JPEG of 8 bits, gray, YCbCr or RGB, one scan | the kernel in `jpeg/`, then as below |
| JPEG of 8 bits, whole | simplejpeg, nvImageCodec |
| window of a JPEG, lossless JPEG, JPEG of 12 or 16 bits | nvImageCodec |
| baseline CMYK JPEG of Adobe, as RGB, not turned | the kernel in `jpeg/`, then as below |
| CMYK JPEG | nvImageCodec, Pillow; turned: OpenCV, Pillow |
| any JPEG where nvImageCodec is missing | simplejpeg (8 bits), OpenCV, Pillow |
| PNG of 8 bits, no palette, not turned, in a batch (interlaced: whole, as stored) | libdeflate, kernel in `png/`, then as below |
| PNG of up to 8 bits, not turned, in a batch | libpng, then as below |
| WebP | libwebp, of a window only its rows; then OpenCV (animations), Pillow |
| PNG, PNM, JPEG 2000 | OpenCV, Pillow |
| upright TIFF of 8 bits, gray, RGB or CMYK, or in strips that are JPEGs, in a batch | kernels in `tiff/`, then as below |
| gray or RGB PNM of bytes, 255 the largest, in a batch | kernel in `pnm/`, then as below |
| BMP of 24 or 32 bits without masks, or of 8 bits, not compressed, in a batch | kernel in `bmp/`, then as below |
| TIFF | the decoder in `backends/tiff.py`, of a window only its strips and tiles; OpenCV (CIELAB), Pillow |
| BMP | the decoder in `backends/bmp.py` |
| GIF, AVIF | Pillow |

Add a picture format
--------------------
1. `headers/name.py`: `read_header(data) -> Header | None`. Sizes and offsets of a file are hostile: check them before use.
   If no library decodes the format, write a backend: `backends/name.py` with `decode(data, header, options, window)`.
2. One line in `registry.FORMATS`: how a file begins, `read_header`, the backends.
3. `tests/decoders/headers/test_name.py`, an entry in `tests/encoded.py`, and one among the parsers of `tests/hostile/media.py`.

Add a backend
-------------
A module with the function of `backend.Backend` decodes one picture: whole or a window, as the file stores it. Put it into the
formats of `registry.FORMATS` that it decodes, at its place in the order. `backend.BatchBackend` is the interface of those that
decode the common files of a batch at once: the kernels that `batch_backends.py` names, whose pictures stand in a
`picture_table`, and nvImageCodec on a GPU. `pnm/` is the smallest example.

Life of a clip
--------------
1. `ndd.decoders.video` (`video/video.py`) opens each file as a `VideoFile` (`video/file.py`). FFmpeg walks through its packets
   once and gives the index (`video/index.py`): when each frame is shown, where decoding may begin, how frames are stored.
   `pyav.py` imports PyAV.
2. The arguments become numbers of frames; `video/frames.py` replaces those that the video does not have.
3. On the CPU `VideoFile.read` seeks to the key frame before, decodes, leaves out frames that no other one needs, and writes
   RGB (`video/color.py`, `video/yuv.py`).
4. On a GPU `video/gpu.py` cuts the frames into pieces that begin at key frames. The engines decode the pieces
   (`video/nvdec.py`; `nvdec_calls.py` makes its calls without the GIL, from packets that `packets.py` reads), and one
   launch of `video.cu` converts all frames. FFmpeg decodes the clips that the engines refuse.
5. Readers and `ndd.io.video.sequences` keep videos open (`video/open_files.py`) and give numbers of frames, which
   `video/clips.py` decodes on a GPU.

Life of a recording
-------------------
1. `ndd.decoders.audio` (`audio.py`) hands the files of a batch to `sound/decode.py`. Compiled code (`sound/batch_kernels.py`)
   reads the headers, plans what each file needs, and decodes, mixes, resamples and converts; threads take files in turn.
2. It converts WAV in place, decodes FLAC (`sound/flac.py`) and Vorbis, and calls libsndfile for other formats
   (`sound/libsndfile.py`).
3. Unusual and damaged files go one by one through soundfile, then through FFmpeg (`sound/ffmpeg.py`). `on_error.py` handles
   those that still fail.

Arrays (`numpy.py`) and LZ4 blocks (`inflate.py`) have no backends: one kernel decodes a batch.
"""

from ndd.decoders.audio import audio
from ndd.decoders.image import image
from ndd.decoders.image_crop import image_crop
from ndd.decoders.image_random_crop import image_random_crop
from ndd.decoders.image_slice import image_slice
from ndd.decoders.inflate import inflate
from ndd.decoders.numpy import numpy
from ndd.decoders.on_error import BadSample
from ndd.decoders.size_limits import get_max_pixels, set_max_pixels
from ndd.decoders.video.video import video

__all__ = [
    "BadSample",
    "audio",
    "get_max_pixels",
    "image",
    "image_crop",
    "image_random_crop",
    "image_slice",
    "inflate",
    "numpy",
    "set_max_pixels",
    "video",
]
