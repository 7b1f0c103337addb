"""nvImageCodec's C library: its structures, an instance of it, batches of pictures, and decoders.

The wheel's Python module holds the GIL for 10 us to describe a picture and for 57 us to decode it beside other threads. These
calls take one step of a compiled loop for a picture, 1.5 us without the GIL (measured on an H200 with 16 cores).

Facts about the library that shape this file:

* Versions 0.8 and 0.9 differ in one structure (`nvimgcodecCodeStreamView_t`). With other versions the Python module decodes.
* A decoder serves one thread at a time. Its first batch fixes the share of the engines (`load` times the size of that batch,
  rounded up to the number of engines), so decoders are cached by batch size.
* Encoded bytes must not change until the stream has passed the decode: the engines read them as the stream runs.
* A decoder must not get a picture that has failed before.
* Creating a stream or an image over an old handle reuses the handle.
"""

from __future__ import annotations

import ctypes
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from ndd._compiled.sample_loops import loop_over_samples
from ndd._compiled.thread_team import ALONE, joined
from ndd._execution.memoize import Memoized
from ndd._lookahead.threads import is_ahead
from ndd._operator import Call
from ndd.decoders.nvimgcodec import calls, python_api
from ndd.types import DALIImageType

_VERSIONS = (800, 900)  # versions whose headers agree with the structures below
_CPU_DEVICE = -99999
_ANY, _SRGB, _GRAY = 0, 1, 2  # nvimgcodecColorSpec_t
_I_Y, _I_RGB, _I_BGR = 4, 8, 10  # nvimgcodecSampleFormat_t
_UINT8 = 0x0802
_DEVICE_MEMORY, _HOST_MEMORY = 1, 2
_CPU_ONLY, _GPU_ONLY, _HYBRID, _ENGINES = 1, 2, 3, 4  # nvimgcodecBackendKind_t
_FIXED = 2  # nvimgcodecLoadHintPolicy_t

_UNPREPARED = -1  # not a status of the library
_WORTH = 4096  # copying this many bytes takes as long as describing a picture to the library
_prepare = loop_over_samples(calls.prepare)

_STRUCTURE_TYPES = {
    "Properties": 1, "InstanceCreateInfo": 2, "DecodeParams": 5, "Orientation": 7, "Region": 8, "CodeStreamView": 9,
    "ImageInfo": 11, "ImagePlaneInfo": 12, "Backend": 17, "BackendParams": 29, "ExecutionParams": 30,
}  # fmt: skip


def _structure(name: str, **fields: Any) -> Any:
    head = [("struct_type", ctypes.c_int), ("struct_size", ctypes.c_size_t), ("struct_next", ctypes.c_void_p)]
    return type(name, (ctypes.Structure,), {"_fields_": [*head, *fields.items()]})


def _filled(structure: Any, **values: Any) -> Any:
    filled = structure()
    filled.struct_type, filled.struct_size = _STRUCTURE_TYPES[structure.__name__], ctypes.sizeof(structure)
    for name, value in values.items():
        setattr(filled, name, value)
    return filled


_int, _u32, _size, _pointer = ctypes.c_int, ctypes.c_uint32, ctypes.c_size_t, ctypes.c_void_p
_Properties = _structure("Properties", version=_u32, cudart_version=_u32)
_InstanceCreateInfo = _structure(
    "InstanceCreateInfo", load_builtin_modules=_int, load_extension_modules=_int, extension_modules_path=ctypes.c_char_p,
    create_debug_messenger=_int, debug_messenger_desc=_pointer, message_severity=_u32, message_category=_u32,
)  # fmt: skip
_DecodeParams = _structure("DecodeParams", apply_exif_orientation=_int)
_Orientation = _structure("Orientation", rotated=_int, flip_x=_int, flip_y=_int)
_ImagePlaneInfo = _structure(
    "ImagePlaneInfo", width=_u32, height=_u32, row_stride=_size, num_channels=_u32, sample_type=_int,
    precision=ctypes.c_uint8,
)  # fmt: skip
_ImageInfo = _structure(
    "ImageInfo", codec_name=ctypes.c_char * 256, color_spec=_int, chroma_subsampling=_int, sample_format=_int,
    orientation=_Orientation, num_planes=_u32, plane_info=_ImagePlaneInfo * 32, buffer=_pointer, buffer_kind=_int,
    cuda_stream=_pointer,
)  # fmt: skip
_Sample: Any = type("_Sample", (ctypes.Structure,), {"_fields_": [("value", _u32), ("type", _int)]})
_Region = _structure("Region", ndim=_int, start=_int * 5, end=_int * 5, policy=_int, samples=_Sample * 5)
_CodeStreamView = _structure("CodeStreamView", image_idx=_size, region=_Region, bitstream_offset=_size)
_CodeStreamView08 = _structure(
    "CodeStreamView", image_idx=_size, region=_Region, bitstream_offset=_size, limit_images=_u32
)
_BackendParams = _structure("BackendParams", load_hint=ctypes.c_float, load_hint_policy=_int)
_Backend = _structure("Backend", kind=_int, params=_BackendParams)
_ExecutionParams = _structure(
    "ExecutionParams", device_allocator=_pointer, pinned_allocator=_pointer, max_num_cpu_threads=_int, executor=_pointer,
    device_id=_int, pre_init=_int, skip_pre_sync=_int, num_backends=_int, backends=_pointer,
)  # fmt: skip

_plane, _info, _view = _ImagePlaneInfo, _ImageInfo, _CodeStreamView  # their fields are descriptors with offsets
_first = _info.plane_info.offset
_AT = np.array(
    [
        (_first + _plane.height.offset) // 4, (_first + _plane.width.offset) // 4, (_first + _plane.num_channels.offset) // 4,
        _info.sample_format.offset // 4, _info.color_spec.offset // 4,
        (_info.orientation.offset + _Orientation.rotated.offset) // 4,
        (_view.region.offset + _Region.start.offset) // 4, (_view.region.offset + _Region.end.offset) // 4,
        (_first + _plane.row_stride.offset) // 8, _info.buffer.offset // 8, _info.cuda_stream.offset // 8,
    ],
    np.int64,
)  # fmt: skip


class Library:
    """The library of the wheel in a folder, loaded, and an instance of it. RuntimeError if its version is unknown."""

    def __init__(self, folder: Path):
        names = ("libnvimgcodec.so.0", "bin/nvimgcodec_0.dll", "nvimgcodec_0.dll")
        path = next((folder / name for name in names if (folder / name).exists()), None)
        if path is None:
            raise RuntimeError(f"there is no C library in {folder}")
        self.functions = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL if hasattr(os, "RTLD_GLOBAL") else 0)
        properties = _filled(_Properties)
        _check(self.functions.nvimgcodecGetProperties(ctypes.byref(properties)), "GetProperties")
        if properties.version // 100 * 100 not in _VERSIONS:
            raise RuntimeError(f"its version {properties.version} is unknown")
        self.view = _CodeStreamView if properties.version >= 900 else _CodeStreamView08
        extensions = folder / "extensions"
        info = _filled(
            _InstanceCreateInfo, load_builtin_modules=1, load_extension_modules=1,
            extension_modules_path=os.environ.get("NVIMGCODEC_EXTENSIONS_PATH", str(extensions)).encode(),
        )  # fmt: skip
        handle = ctypes.c_void_p()
        with python_api.without_load_complaints():
            _check(self.functions.nvimgcodecInstanceCreate(ctypes.byref(handle), ctypes.byref(info)), "InstanceCreate")
        self.instance = handle.value
        self.params = {
            upright: _filled(_DecodeParams, apply_exif_orientation=int(upright)) for upright in (True, False)
        }
        calls.connect(self.functions)


def _check(status: int, function: str) -> None:
    if status:
        raise RuntimeError(f"nvimgcodec{function} gives status {status}")


def _loaded() -> Library | None:
    folder = python_api.folder()
    if folder is None:
        return None
    try:
        return Library(folder)
    except (RuntimeError, OSError, AttributeError) as error:
        warnings.warn(
            f"nvImageCodec's C library cannot be used; its Python module decodes, on a GPU at half the speed: {error}",
            RuntimeWarning,
            stacklevel=2,
        )
        return None


library = Memoized(_loaded)


class Pictures:
    """The pictures of one batch at a time, described to the library. Their handles are reused for the life of the process.

    Args:
        on_gpu: whether the pixels go to GPU memory.
    """

    def __init__(self, codec: Library, on_gpu: bool = True):
        self._codec = codec
        info = _filled(
            _ImageInfo, num_planes=1, orientation=_filled(_Orientation),
            buffer_kind=_DEVICE_MEMORY if on_gpu else _HOST_MEMORY,
        )  # fmt: skip
        info.plane_info[0] = _filled(_ImagePlaneInfo, sample_type=_UINT8)
        view = _filled(codec.view, region=_filled(_Region, ndim=2))
        # A parsed header, a window, an image.
        self._structures = _bytes(_filled(_ImageInfo)), _bytes(view), _bytes(info)
        self._handles = np.zeros((0, 3), np.uint64)  # code streams, windows of them, images
        self._batch: tuple[Any, ...] = ()
        self._params = 0
        self._failed = np.zeros((0, 1), np.int32)
        self._decoded = np.zeros(0, np.int32)
        self.count = 0

    def take(
        self,
        addresses: np.ndarray,
        sizes: np.ndarray,
        extents: np.ndarray,
        swapped: np.ndarray,
        windows: np.ndarray | None,
        targets: np.ndarray,
        shapes: np.ndarray,
        kinds: np.ndarray,
        upright: bool,
        stream: int,
    ) -> None:
        """Sets the pictures for `prepare` and `decode`. All arrays have a row for each picture; all but `kinds` and `swapped`
        are int64.

        Args:
            addresses, sizes: of the encoded pictures.
            extents: height and width as stored.
            swapped: whether height and width are swapped in the upright picture.
            windows: y0, x0, y1, x1 in the upright picture; None for whole pictures.
            targets, shapes: the addresses of the results, and their shapes, HWC.
            kinds: see `kinds_of`.
            upright: whether pictures are turned by their EXIF.
            stream: the CUDA stream that orders the decode.
        """
        self.count = count = len(sizes)
        if count > len(self._handles):
            more = np.zeros((count, 3), np.uint64)
            more[: len(self._handles)] = self._handles
            self._handles = more
        windows = np.zeros((count, 0), np.int64) if windows is None else windows
        rows = [np.ascontiguousarray(a) for a in (addresses, sizes, extents, swapped, windows, targets, shapes, kinds)]
        self._failed = np.full((count, 1), _UNPREPARED, np.int32)
        shared = upright, stream, *self._structures, _AT
        self._batch = (self._codec.instance,), *rows, *((value,) for value in shared), self._handles, self._failed
        self._params = ctypes.addressof(self._codec.params[upright])

    def prepare(self, call: Call) -> None:
        """Describes the pictures to the library, 2.5 us each, 3.5 us with a window. The threads of a call that was not run
        ahead share the work; on one thread it takes 0.2 of 3.5 ms for 64 pictures."""
        arguments = np.arange(self.count), self._batch
        if is_ahead():
            joined(_prepare)(ALONE, 0, np.array([0]), self.count, arguments)
        else:
            call.parallel_for(_prepare, arguments, self.count, self.count * _WORTH, arguments)

    def decode(self, decoders: np.ndarray, mine: int, idle: tuple[int, int]) -> tuple[int, int]:
        """Decodes the prepared pictures; see `calls.decode` for arguments and result, and `decoded` for which succeeded."""
        sizes, windows = self._batch[2], self._batch[5]
        which = int(windows.shape[1] > 0)
        self._decoded = self._failed.ravel().copy()
        return calls.decode(decoders, mine, idle, self._params, sizes, self._handles, which, self._decoded)

    @property
    def decoded(self) -> np.ndarray:
        """Which pictures were decoded, bool `[N]`."""
        return self._decoded == 0


def _bytes(structure: Any) -> np.ndarray:
    return np.frombuffer(bytearray(structure), np.uint8)


def kinds_of(output_type: DALIImageType, channels: np.ndarray) -> np.ndarray:
    """int32 `[N, 2]`: the sample format and colour space for an output type; with ANY_DATA gray stays gray."""
    if output_type == DALIImageType.ANY_DATA:
        return np.where(channels[:, None] == 1, np.array([[_I_Y, _GRAY]]), np.array([[_I_RGB, _SRGB]])).astype(np.int32)
    known = {DALIImageType.BGR: (_I_BGR, _SRGB), DALIImageType.GRAY: (_I_Y, _GRAY)}
    return np.tile(np.array(known.get(output_type, (_I_RGB, _SRGB)), np.int32), (len(channels), 1))


class Decoder:
    """A decoder, for one thread at a time.

    Args:
        device_id: the GPU; None for a decoder on the CPU, into host memory.
        threads: the number of its own threads, for the parts of a JPEG that the engines leave to the CPU.
        load: the share of a batch that goes to the engines.
        options: text in the library's syntax.
    """

    def __init__(self, codec: Library, device_id: int | None, threads: int, load: float, options: str):
        self._codec = codec
        # Beside a GPU the CPU's decoder is left out: where GPU memory is short, it leaves pixels unwritten and reports success.
        kinds = [(_CPU_ONLY, 1.0)] if device_id is None else [(_ENGINES, load), (_HYBRID, 1.0), (_GPU_ONLY, 1.0)]
        chosen = [
            _filled(_Backend, kind=kind, params=_filled(_BackendParams, load_hint=hint, load_hint_policy=_FIXED))
            for kind, hint in kinds
        ]
        self._backends = (_Backend * len(chosen))(*chosen)
        self._execution = _filled(
            _ExecutionParams, max_num_cpu_threads=threads, device_id=_CPU_DEVICE if device_id is None else device_id,
            pre_init=1, num_backends=len(chosen), backends=ctypes.addressof(self._backends),
        )  # fmt: skip
        handle = ctypes.c_void_p()
        status = codec.functions.nvimgcodecDecoderCreate(
            ctypes.c_void_p(codec.instance), ctypes.byref(handle), ctypes.byref(self._execution), options.encode()
        )
        _check(status, "DecoderCreate")
        self.handle: int | None = handle.value

    def close(self) -> None:
        """Releases its threads, streams and memory."""
        handle, self.handle = self.handle, None
        if handle is not None:
            self._codec.functions.nvimgcodecDecoderDestroy(ctypes.c_void_p(handle))
