"""The backend for a batch on a GPU: JPEG engines, CUDA kernels and CPU cores decode JPEGs together, to GPU memory.

nvImageCodec's C library (`c_api.py`) decodes all pictures into one block of memory; if its version is unknown, the wheel's
Python module does (`python_api.py`). The backends on the CPU decode the JPEGs that neither can decode there, and every other
format; those pixels are copied. Nothing waits for the GPU.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ndd._cuda.launch import pinned_empty
from ndd._execution import observation
from ndd._tensor import Store
from ndd._tensor.memory import device_empty
from ndd._tensor.small_arrays import few_zeros
from ndd.decoders import pixels
from ndd.decoders.backend import Decoded, Options
from ndd.decoders.batch_backends import describe_others
from ndd.decoders.headers.orientation import FIRST_SWAPPED
from ndd.decoders.jpeg.batch_headers import CHANNELS, FORMAT, HEIGHT, JPEG, ORIENTATION, WIDTH
from ndd.decoders.nvimgcodec import c_api, python_api
from ndd.decoders.nvimgcodec.decoder_pool import Place, decoders, huffman_threshold, places, share
from ndd.decoders.on_error import resolve_pictures
from ndd.decoders.registry import may_be_decoded
from ndd.types import DALIImageType

if TYPE_CHECKING:
    from ndd.decoders.picture_batch import PictureBatch

# From this number of bytes on torch's allocator caches a block for each size. So sizes are rounded up to one of eight steps
# between powers of two. Otherwise each batch that is larger than all before would add a cached block, on every stream.
_LARGE = 10 << 20


def decode_on_gpu(batch: PictureBatch, set_windows: Callable[[], None]) -> Store:
    """The value of a decoder call on a GPU. Runs with the call's stream as the current stream.

    Args:
        set_windows: sets the windows of the batch, once the headers are known.
    """
    library = c_api.library()
    with contextlib.nullcontext() if library is None else places().using(library, batch.call.stream) as place:
        backend = GpuBackend(place)
        backend.describe(batch)
        describe_others(batch)
        batch.read_headers()
        set_windows()
        decoded = _room(batch)
        backend.decode_batch(batch, np.arange(len(batch)), decoded)
    if not decoded.done.all():
        batch.decode(np.flatnonzero(~decoded.done).tolist())
    if batch.block is not None:  # the CPU has decoded all of them
        return _one_block(batch, batch.shapes(), _uploaded(batch.block, decoded.memory.device))
    return _stored(batch, batch.shapes(), _converted(decoded.memory, batch.options), decoded.starts)


class GpuBackend:
    """A `BatchBackend` for one batch, on the GPU and stream of its call.

    Args:
        place: page-locked memory for the encoded bytes, and handles, for the C library; None if the Python module decodes.
    """

    def __init__(self, place: Place | None):
        self._place = place

    def describe(self, batch: PictureBatch) -> None:
        """Copies the encoded bytes to page-locked memory, and reads the headers of the common JPEGs during the copy."""
        if self._place is not None:
            batch.facts = self._place.staging.take(batch.operand, batch.call)

    def decode_batch(self, batch: PictureBatch, samples: np.ndarray, decoded: Decoded) -> None:
        """Decodes the JPEGs that suit the GPU."""
        shapes, done = decoded.shapes, decoded.done
        fits = _suitable(batch, self._place)
        wanted = np.flatnonzero(fits) if len(samples) == len(batch) else samples[fits[samples]]
        targets = decoded.starts + decoded.memory.data_ptr()
        if len(wanted) and self._place is None:
            done[wanted] = _by_python_api(batch, wanted, shapes, targets)
        elif len(wanted) and self._place is not None:
            done[wanted] = _by_c_api(batch, self._place, wanted, shapes, targets)
        if observation.active is not None and done.any():
            observation.active.pictures(np.flatnonzero(done).tolist(), "nvImageCodec on the GPU")


def _room(batch: PictureBatch) -> Decoded:
    """New memory on the GPU, with a place for every picture."""
    shapes = batch.shapes()
    sizes = shapes[:, 0] * shapes[:, 1] * shapes[:, 2]
    ends = np.add.accumulate(sizes)
    return Decoded(_allocated(batch, int(ends[-1])), shapes, ends - sizes, few_zeros(len(batch), np.bool_))


def _allocated(batch: PictureBatch, count: int) -> Any:
    """GPU memory (u8) for all samples, one after the other."""
    if count < _LARGE:
        return device_empty((count,), torch.uint8, batch.call.device)
    step = 1 << (count.bit_length() - 4)
    return device_empty((-(-count // step) * step,), torch.uint8, batch.call.device)[:count]


def _output_type(batch: PictureBatch) -> DALIImageType:
    """The colour format of the library's output. `_converted` computes YCbCr from RGB."""
    kind = batch.options.output_type
    return DALIImageType.RGB if kind == DALIImageType.YCbCr else kind


def _by_python_api(batch: PictureBatch, wanted: np.ndarray, shapes: np.ndarray, targets: np.ndarray) -> list[bool]:
    """Decodes these samples to these addresses. Returns whether each was decoded."""
    arguments, call, numbers = batch.arguments, batch.call, wanted.tolist()
    nbytes = int(np.add.reduce(np.ascontiguousarray(batch.operand.sizes)[wanted]))
    load = share(arguments["hw_decoder_load"], len(wanted), nbytes, call.threads)
    gpu_decoders = python_api.gpu_decoders(
        call.device.device_id, call.threads, load, _options_text(arguments), len(wanted)
    )
    return gpu_decoders.decode(
        [batch.data[i] for i in numbers],
        [batch.window(i) for i in numbers],
        [(int(targets[i]), tuple(shapes[i].tolist())) for i in numbers],
        _output_type(batch),
        batch.options.adjust_orientation,
        call.stream.handle,
    )


def _by_c_api(
    batch: PictureBatch, place: Place, wanted: np.ndarray, shapes: np.ndarray, targets: np.ndarray
) -> np.ndarray:
    """Does the same with the C library, from the copies in page-locked memory."""
    arguments, call = batch.arguments, batch.call
    rows = slice(None) if len(wanted) == len(batch) else wanted  # NumPy releases the GIL to pick rows
    facts = batch.facts[rows]
    place.pictures.take(
        place.staging.addresses(rows),
        place.staging.sizes[rows],
        np.ascontiguousarray(facts[:, HEIGHT : WIDTH + 1]),
        facts[:, ORIENTATION] >= FIRST_SWAPPED,
        None if batch.windows is None else batch.windows[rows],
        targets[rows],
        shapes[rows],
        c_api.kinds_of(_output_type(batch), facts[:, CHANNELS]),
        batch.options.adjust_orientation,
        call.stream.handle,
    )
    place.pictures.prepare(call)
    nbytes = int(np.add.reduce(place.staging.sizes[rows]))
    load, options = arguments["hw_decoder_load"], _options_text(arguments)
    with decoders(call.device.device_id, len(wanted), nbytes, call.threads, load, options) as pool:
        return pool.decode(place.pictures)


def _suitable(batch: PictureBatch, place: Place | None) -> np.ndarray:
    """Whether each sample may go to nvImageCodec's GPU decoders, bool `[N]`. The copies hold nothing that would make it
    fail."""
    fits = batch.facts[:, FORMAT] == JPEG
    if place is not None or python_api.library() is not None:
        for i in np.flatnonzero(batch.facts[:, FORMAT] == 0).tolist():
            if i not in batch.errors and _suits_the_gpu(batch.header(i), batch.data[i], batch.options):
                fits[i] = True
                if place is not None:
                    place.staging.put(i, python_api.harmless(batch.data[i]))
    if batch.errors:
        fits[list(batch.errors)] = False
    return fits


_BUFFER_SIZES = ("device_memory_padding", "host_memory_padding", "preallocate_width_hint", "preallocate_height_hint")


def _options_text(arguments: dict[str, Any]) -> str:
    """nvImageCodec's options for a decoder. With padding it reuses its buffers from batch to batch: 1.5 times the images/s at
    batch 64."""
    pixels = huffman_threshold(arguments["hybrid_huffman_threshold"], arguments["hw_decoder_load"])
    texts = [
        f":fancy_upsampling={int(arguments['jpeg_fancy_upsampling'])}",
        f"nvjpeg_cuda_decoder:hybrid_huffman_threshold={pixels}",
    ]
    for backend in ("nvjpeg_cuda_decoder", "nvjpeg_hw_decoder"):
        for name in _BUFFER_SIZES:
            if arguments[name]:
                texts.append(f"{backend}:{name}={int(arguments[name])}")
    return " ".join(texts)


def _suits_the_gpu(header: Any, data: np.ndarray, options: Options) -> bool:
    """Whether a sample may go to nvImageCodec's GPU decoders: a JPEG of 8 bits, no alpha to keep, no known damage."""
    if header.format != "jpeg" or header.dtype != np.uint8 or not may_be_decoded(data.data, header):
        return False
    if header.plain_jpeg:  # the CPU checks truncated files: the engines paint over missing parts
        return not header.coded_rgb and b"\xff\xd9" in data[-64:].tobytes()
    if options.output_type == DALIImageType.GRAY:
        return False  # CMYK: the CPU converts its colours to gray
    return options.output_type != DALIImageType.ANY_DATA or header.channels in (1, 3)


def _converted(block: Any, options: Options) -> Any:
    """The block in the requested element type and colours. The number of launches is the same for any batch."""
    is_ycbcr = options.output_type == DALIImageType.YCbCr
    if options.dtype == np.uint8 and not is_ycbcr:
        return block
    values = block.to(torch.float32)
    full = pixels.largest(options.dtype)
    is_float = options.dtype.kind == "f"
    if is_ycbcr:
        matrix, offset = (torch.from_numpy(m).to(block.device, non_blocking=True) for m in pixels.ycbcr_matrix())
        values = (values.view(-1, 3) @ matrix).view(-1)
        values = (values * (full / 255)).view(-1, 3) + offset * (1 if is_float else full + 1)
        values = values.view(-1)
    else:
        values = values * pixels.scale(options.dtype, np.uint8)
    if is_float:
        return values
    limits = np.iinfo(options.dtype)
    whole = torch.floor(values.double() + 0.5).clamp_(limits.min, limits.max).to(torch.int64)
    return whole.to(_torch_type(options))


def _torch_type(options: Options) -> Any:
    return torch.from_numpy(np.empty(0, options.dtype)).dtype


def _stored(batch: PictureBatch, extents: np.ndarray, block: Any, offsets: np.ndarray) -> Store:
    """The result: the block if it holds every sample, otherwise single samples."""
    spec, images = batch.call.outs[0], batch.images
    if not batch.errors and not images:
        return _one_block(batch, extents, block)
    shapes = [tuple(shape) for shape in extents.tolist()]
    for i in batch.errors:
        shapes[i] = None  # type: ignore[call-overload]
    starts = offsets.tolist()
    kept, dropped = resolve_pictures(batch)
    in_place = all(shapes[i] is not None and (i not in images or images[i].shape == shapes[i]) for i in kept)
    parts = {}
    for i, image in images.items():
        on_gpu = _uploaded(image, block.device)
        if shapes[i] == image.shape:
            block[starts[i] : starts[i] + image.size].copy_(on_gpu, non_blocking=True)
        else:
            parts[i] = on_gpu.view(image.shape)
    if in_place and len(kept) == len(batch):
        return batch.labelled(_one_block(batch, extents, block), kept, dropped)
    for i in kept:
        if i not in parts:
            parts[i] = block[starts[i] : starts[i] + int(np.prod(shapes[i]))].view(shapes[i])
    samples = [parts[i] for i in kept]
    store = Store(spec.dtype, spec.layout, spec.device, [tuple(p.shape) for p in samples], parts=samples)
    return batch.labelled(store, kept, dropped)


def _one_block(batch: PictureBatch, shapes: np.ndarray, block: Any) -> Store:
    spec = batch.call.outs[0]
    if (shapes == shapes[0]).all():
        return Store(spec.dtype, spec.layout, spec.device, shapes, whole=block.view(len(shapes), *shapes[0].tolist()))
    return Store(spec.dtype, spec.layout, spec.device, shapes, flat=block)


def _uploaded(image: np.ndarray, device: Any) -> Any:
    """An image as a 1-D tensor on the GPU, through pinned memory."""
    staged = pinned_empty(image.nbytes)
    staged.numpy()[:] = image.reshape(-1).view(np.uint8)
    kind = torch.from_numpy(np.empty(0, image.dtype)).dtype
    return staged.to(device, non_blocking=True).view(kind)
