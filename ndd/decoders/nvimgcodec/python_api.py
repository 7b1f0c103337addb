"""nvImageCodec by its Python module, on the CPU (without a driver) and on GPUs. The only importer of nvidia.nvimgcodec.

Versions before 0.9 have a different module, which is not used: then other libraries decode on the CPU, and only the C library
(`c_api.py`) on GPUs.

Facts about the library (0.9) that shape this file:

* On a machine without a driver a decoder works only with both `device_id=NVIMGCODEC_DEVICE_CPU_ONLY` and
  `backends=[CPU_ONLY]`.
* Two threads must not use a decoder at once, and it creates no threads of its own for single images. So each thread has a
  decoder, which takes 12 us to create.
* It gets only JPEGs. Its parsers and decoders of JPEG 2000, PNM and BMP crash on damaged files (SIGSEGV, SIGFPE). Those of PNG
  and WebP loop forever on a chunk's length of nearly 2^32, and refuse chunks after one of odd length. They give uninitialised
  memory for a turned picture with alpha, because OpenCV leaves it unturned, in the other shape.
* At some ends of truncated JPEGs it leaks a decoder's memory: see `jpeg.header.with_end`.
* It does not copy the encoded bytes: they must not change until the decode returns.
* It gives None for files that it cannot decode, and writes to stderr about them unless a variable is set before its import.
* A GPU decode waits (by events, not on the CPU) for the stream that is passed to it, and that stream waits for the decode.
"""

from __future__ import annotations

import importlib.util
import os
import tempfile
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ndd._execution.fork import fork_lock
from ndd._execution.memoize import Memoized
from ndd._tensor.memory import host_empty
from ndd.decoders.backend import Options, Window
from ndd.decoders.headers import orientation as _orientation
from ndd.decoders.headers.header import Header
from ndd.decoders.jpeg.header import with_end
from ndd.decoders.jpeg.segments import without_junk
from ndd.decoders.pixels import to_gray
from ndd.installation import install_command
from ndd.types import DALIImageType

_module: list[Any] = []  # empty: not tried; [None]: not installed, or too old


def folder() -> Path | None:
    """The folder of the wheel, with its C library; None where it is not installed."""
    try:
        spec = importlib.util.find_spec("nvidia.nvimgcodec")
    except ImportError:  # there is no package "nvidia"
        return None
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


def library() -> Any:
    """The module nvidia.nvimgcodec, or None where it is not installed or older than 0.9."""
    if not _module:
        with fork_lock:
            if not _module:
                _module.append(_imported())
    return _module[0]


def _imported() -> Any:
    # The module reads its verbosity when it is imported. The OpenCV inside it reads OPENCV_LOG_LEVEL at its first use; that
    # variable also governs the user's cv2, so it is set only while the module starts.
    os.environ.setdefault("PYNVIMGCODEC_VERBOSITY", "0")
    own_level = os.environ.get("OPENCV_LOG_LEVEL")
    os.environ["OPENCV_LOG_LEVEL"] = "SILENT"
    try:
        with without_load_complaints():
            from nvidia import nvimgcodec

            cpu = getattr(nvimgcodec, "NVIMGCODEC_DEVICE_CPU_ONLY", None)
            if cpu is not None:
                module: Any = nvimgcodec
                module.Decoder(device_id=cpu, backends=[module.Backend(module.CPU_ONLY)])
        if cpu is None:
            warnings.warn(
                f"nvImageCodec {nvimgcodec.__version__} is too old to decode on the CPU: other libraries decode instead, "
                f"and not every JPEG. Install 0.9 or newer: {install_command('cpu')}",
                RuntimeWarning,
                stacklevel=2,
            )
            return None
        return nvimgcodec
    except ImportError:
        return None
    finally:
        if own_level is None:
            del os.environ["OPENCV_LOG_LEVEL"]
        else:
            os.environ["OPENCV_LOG_LEVEL"] = own_level


@contextmanager
def without_load_complaints() -> Iterator[None]:
    """Holds back the stderr of C libraries, and passes on all but the lines about missing GPU extras."""
    try:
        saved = os.dup(2)
    except OSError:  # no stderr at all
        yield
        return
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(saved, 2)
            os.close(saved)
            held.seek(0)
            kept = [
                line for line in held if not line.startswith((b"Failed to load nv", b"Note: If using nvImageCodec"))
            ]
            if text := b"".join(kept).strip():
                os.write(2, text + b"\n")


def decode(data: np.ndarray, header: Header, options: Options, window: Window | None) -> np.ndarray | None:
    """The backend for JPEGs on the CPU. It decodes windows to the same pixels as those of the whole picture."""
    if library() is None:
        return None
    image = _decoded(data, header, options, window)
    if image is not None:
        return image
    # Of lossless JPEGs the library gives one component only as gray, and three only as colours.
    if options.output_type == DALIImageType.GRAY and header.channels == 3:
        rgb = _decoded(data, header, options._replace(output_type=DALIImageType.RGB), window)
        return None if rgb is None else to_gray(rgb, by_opencv=options.is_turned(header), rounded=False)
    if options.output_type in (DALIImageType.RGB, DALIImageType.BGR) and header.channels == 1:
        gray = _decoded(data, header, options._replace(output_type=DALIImageType.GRAY), window)
        return None if gray is None else np.repeat(gray, 3, axis=2)
    return None


def _decoded(data: np.ndarray, header: Header, options: Options, window: Window | None) -> np.ndarray | None:
    module = library()
    decoder = _cpu_decoders(options.fast_idct)
    channels = header.out_channels(options.output_type)
    if channels not in _TYPES:
        return None
    kind = _TYPES[channels] if options.output_type == DALIImageType.ANY_DATA else options.output_type
    params = _parameters(kind, False, True)
    source = _stream(data, window)
    if source is None:
        return None
    y0, x0, y1, x1 = window or (0, 0, header.height, header.width)
    # Our memory is reused: the library's own costs a page fault for every 4 kB. Pixels that it may skip are zero.
    out = host_empty((y1 - y0, x1 - x0, channels), header.dtype)
    out.fill(0)
    try:
        target = module.as_image(out, sample_format=params.sample_format, color_spec=params.color_spec)
        return None if decoder.decode(source, image=target, params=params) is None else out
    except (ValueError, TypeError):  # the file is not what its header says
        return None


def _cpu_decoder(fast_idct: bool) -> Any:
    module = library()
    return module.Decoder(
        device_id=module.NVIMGCODEC_DEVICE_CPU_ONLY,
        max_num_cpu_threads=1,
        backends=[module.Backend(module.CPU_ONLY)],
        options=f":fast_idct={int(fast_idct)}",
    )


_TYPES = {1: DALIImageType.GRAY, 3: DALIImageType.RGB}  # of ANY_DATA, by channels
_cpu_decoders = Memoized(_cpu_decoder, per="thread")


def harmless(data: np.ndarray) -> np.ndarray:
    """A JPEG without the parts that make the library fail: the file itself, or a copy of at most its length."""
    return _orientation.with_plain_exif(without_junk(data))


def _stream(data: np.ndarray, window: Window | None) -> Any:
    """The picture, or its window, for a decoder; None if the library's parser refuses it."""
    module = library()
    try:
        stream = module.CodeStream(with_end(harmless(data)))
        return stream if window is None else stream.get_sub_code_stream(region=module.Region(*window))
    except RuntimeError:
        return None


def _decode_parameters(output_type: DALIImageType, adjust_orientation: bool, allow_any_depth: bool) -> Any:
    module = library()
    color, samples = {
        DALIImageType.BGR: (module.ColorSpec.SRGB, module.SampleFormat.I_BGR),
        DALIImageType.GRAY: (module.ColorSpec.GRAY, module.SampleFormat.I_Y),
        DALIImageType.ANY_DATA: (module.ColorSpec.UNCHANGED, module.SampleFormat.I_UNCHANGED),
    }.get(output_type, (module.ColorSpec.SRGB, module.SampleFormat.I_RGB))
    return module.DecodeParams(
        apply_exif_orientation=adjust_orientation,
        color_spec=color,
        sample_format=samples,
        allow_any_depth=allow_any_depth,
    )


_parameters = Memoized(_decode_parameters, per="thread")  # making them takes as long as parsing a header


class _DeviceMemory:
    """GPU memory by address and shape. Reading `__cuda_array_interface__` of a torch slice takes 20 times as long."""

    __slots__ = ("__cuda_array_interface__",)

    def __init__(self, address: int, shape: tuple[int, int, int]):
        self.__cuda_array_interface__ = {
            "data": (address, False),
            "shape": shape,
            "typestr": "|u1",
            "strides": None,
            "version": 3,
        }


class GpuDecoders:
    """The decoders of one GPU: the JPEG engines and the CPU cores work on a batch together.

    Measured on an H200 with 16 cores, batches of different JPEGs of 110 kB, 65 % of them on the engines: one decoder of
    15 threads decodes 15,500 images/s at batch 64 and 19,600 at 256 if it may reuse its buffers (`*_memory_padding`), otherwise
    10,100 and 18,000; two decoders of 7 threads decode 13,100 and 18,100.
    """

    def __init__(self, device_id: int, num_threads: int, hw_decoder_load: float, options: str):
        module = library()
        self._decoder = module.Decoder(
            device_id=device_id,
            max_num_cpu_threads=max(1, num_threads - 1 - num_threads // 5),  # leaves cores for readers and the loop
            backends=[
                module.Backend(module.HW_GPU_ONLY, load_hint=hw_decoder_load),
                module.Backend(module.HYBRID_CPU_GPU),
                module.Backend(module.GPU_ONLY),
            ],  # without the CPU's: where GPU memory is short, it leaves pixels unwritten and reports success
            options=options,
        )
        self._busy = threading.Lock()  # a decoder serves one thread at a time

    def decode(
        self,
        encoded: list[np.ndarray],
        windows: list[Window | None],
        targets: list[tuple[int, tuple[int, int, int]]],
        output_type: DALIImageType,
        adjust_orientation: bool,
        stream: int,
    ) -> list[bool]:
        """Decodes each sample to GPU memory, targets of (address, HWC shape), u8, ordered on the CUDA stream `stream`.

        Returns whether each sample was decoded. It neither waits for the GPU nor allocates on it.
        """
        module = library()
        params = _parameters(output_type, adjust_orientation, False)
        described: dict[str, Any] = {}
        if output_type != DALIImageType.ANY_DATA:
            described = {"sample_format": params.sample_format, "color_spec": params.color_spec}

        sources = [_stream(data, window) for data, window in zip(encoded, windows, strict=True)]
        readable = [i for i, source in enumerate(sources) if source is not None]
        done = [False] * len(sources)
        if readable:
            images = module.as_images([_DeviceMemory(*targets[i]) for i in readable], stream, **described)
            with self._busy:
                decoded = self._decoder.decode(
                    [sources[i] for i in readable], images=images, params=params, cuda_stream=stream
                )
            for i, image in zip(readable, decoded, strict=True):
                done[i] = image is not None
        return done


# A decoder holds threads, streams and pinned memory: a loop uses one or two, for training and for validation.
_gpu = Memoized(
    lambda device_id, num_threads, load, options, size: GpuDecoders(device_id, num_threads, load, options), limit=8
)


def gpu_decoders(device_id: int, num_threads: int, hw_decoder_load: float, options: str, count: int) -> GpuDecoders:
    """The decoders for one GPU, one set of options and batches of about `count` samples (to the next power of two).

    The last eight in use are cached. A decoder that began with batches of 64 decodes batches of 256 at 11,000 images/s, one
    that began with 256 at 18,600.
    """
    return _gpu(device_id, num_threads, hw_decoder_load, options, max(count - 1, 0).bit_length())
