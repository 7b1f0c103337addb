"""Decoding a batch of encoded images to GPU memory: the JPEG engines, the CPU cores and CUDA kernels at once.

All samples go to one block of GPU memory, by nvImageCodec's C library (`library.py`) or, where that does not fit, by
the wheel's Python module. What neither can decode there, and every format but JPEG, is decoded on the CPU and copied.
Nothing waits for the GPU.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ndd._cuda.launch import pinned_empty
from ndd._operator import Call, Operand
from ndd._tensor import Store
from ndd._tensor.memory import device_empty
from ndd._tensor.small_arrays import few_zeros
from ndd.decoders import _pixels
from ndd.decoders._policy import judged_pictures
from ndd.decoders._sample import Options
from ndd.decoders.headers.header import may_be_decoded
from ndd.decoders.jpeg.headers import CHANNELS, FIRST_SWAPPED, GOOD, HEIGHT, ORIENTATION, WIDTH
from ndd.decoders.nvimgcodec import library as _codec_library, single as _nvimgcodec
from ndd.decoders.nvimgcodec.decoder_pool import Place, decoders, huffman_threshold, places, share
from ndd.types import DALIImageType

if TYPE_CHECKING:
    from ndd.decoders._batch import Encoded

# Bytes from which on torch's allocator keeps a block for each size: then there are eight sizes from one power of two to the
# next, or each batch that is larger than all before it would add a block to what is kept, on every stream.
_LARGE = 10 << 20


def decode_batch(
    call: Call, operand: Operand, pictures: Callable[[Any], Encoded], cut: Callable[[Encoded], None]
) -> Store:
    """The value of a decoder call on a GPU. `pictures` gives them, with memory that holds their bytes, if there is any;
    `cut` sets the windows, once the headers are known. Runs with the stream of
    the call current."""
    codec = _codec_library.library()
    with contextlib.nullcontext() if codec is None else places().using(codec, call.stream) as place:
        batch = pictures(None if place is None else place.staging.take(operand, call))
        batch.read_headers()
        cut(batch)
        shapes = batch.shapes()
        sizes = shapes[:, 0] * shapes[:, 1] * shapes[:, 2]
        ends = np.add.accumulate(sizes)
        block, starts = _allocated(batch, int(ends[-1])), ends - sizes
        done = _decoded_there(batch, place, shapes, starts + block.data_ptr())
    if not done.all():
        batch.decode(np.flatnonzero(~done).tolist())
    return _stored(batch, shapes, _converted(block, batch.options), starts)


def _allocated(batch: Encoded, count: int) -> Any:
    """GPU memory (u8) for all samples behind each other."""
    import torch

    if count < _LARGE:
        return device_empty((count,), torch.uint8, batch.call.device)
    step = 1 << (count.bit_length() - 4)
    return device_empty((-(-count // step) * step,), torch.uint8, batch.call.device)[:count]


def _decoded_there(batch: Encoded, place: Place | None, shapes: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Decodes on the GPU what it can, to these addresses: bool `[N]`, what was decoded."""
    done = few_zeros(len(batch), np.bool_)
    wanted = _suitable(batch, place)
    if not len(wanted):
        return done
    named, call = batch.arguments, batch.call
    load, options, upright = named["hw_decoder_load"], _options_text(named), batch.options.adjust_orientation
    kind = batch.options.output_type
    kind = DALIImageType.RGB if kind == DALIImageType.YCbCr else kind
    if place is None:
        numbers = wanted.tolist()
        nbytes = int(np.add.reduce(np.ascontiguousarray(batch.operand.sizes)[wanted]))
        load = share(load, len(wanted), nbytes, call.threads)
        there = _nvimgcodec.gpu_decoders(call.device.device_id, call.threads, load, options, len(wanted))
        done[wanted] = there.decode(
            [batch.data[i] for i in numbers],
            [batch.window(i) for i in numbers],
            [(int(targets[i]), tuple(shapes[i].tolist())) for i in numbers],
            kind,
            upright,
            call.stream.handle,
        )
        return done
    rows = slice(None) if len(wanted) == len(batch) else wanted  # NumPy lets go of the interpreter to pick rows
    facts = batch.facts[rows]
    place.pictures.take(
        place.staging.addresses(rows),
        place.staging.sizes[rows],
        np.ascontiguousarray(facts[:, HEIGHT : WIDTH + 1]),
        facts[:, ORIENTATION] >= FIRST_SWAPPED,
        None if batch.windows is None else batch.windows[rows],
        targets[rows],
        shapes[rows],
        _codec_library.kinds_of(kind, facts[:, CHANNELS]),
        upright,
        call.stream.handle,
    )
    place.pictures.prepare(call)
    nbytes = int(np.add.reduce(place.staging.sizes[rows]))
    with decoders(call.device.device_id, len(wanted), nbytes, call.threads, load, options) as there:
        done[wanted] = there.decode(place.pictures)
    return done


def _suitable(batch: Encoded, place: Place | None) -> np.ndarray:
    """The numbers of the samples that may go to nvImageCodec's GPU decoders, with nothing in their copies that it would
    stumble over."""
    fits = batch.facts[:, GOOD] != 0
    if place is not None or _nvimgcodec.library() is not None:
        for i in np.flatnonzero(~fits).tolist():
            if i not in batch.errors and _suits_the_gpu(batch.header(i), batch.data[i], batch.options):
                fits[i] = True
                if place is not None:
                    place.staging.put(i, _nvimgcodec.harmless(batch.data[i]))
    if batch.errors:
        fits[list(batch.errors)] = False
    return np.flatnonzero(fits)


_BUFFER_SIZES = ("device_memory_padding", "host_memory_padding", "preallocate_width_hint", "preallocate_height_hint")


def _options_text(named: dict[str, Any]) -> str:
    """nvImageCodec's options for a decoder. With room to spare it keeps its buffers from batch to batch: 1.5 times the
    images/s at batch 64."""
    pixels = huffman_threshold(named["hybrid_huffman_threshold"], named["hw_decoder_load"])
    texts = [
        f":fancy_upsampling={int(named['jpeg_fancy_upsampling'])}",
        f"nvjpeg_cuda_decoder:hybrid_huffman_threshold={pixels}",
    ]
    for backend in ("nvjpeg_cuda_decoder", "nvjpeg_hw_decoder"):
        for name in _BUFFER_SIZES:
            if named[name]:
                texts.append(f"{backend}:{name}={int(named[name])}")
    return " ".join(texts)


def _suits_the_gpu(header: Any, data: np.ndarray, options: Options) -> bool:
    """Whether a sample may go to nvImageCodec's GPU decoders: 8 bits, no alpha to keep, nothing known to be broken."""
    if header.format != "jpeg" or header.dtype != np.uint8 or not may_be_decoded(data.data, header):
        return False
    if header.plain_jpeg:  # one without its end is for the CPU to judge: the engines paint over what is missing
        return not header.coded_rgb and b"\xff\xd9" in data[-64:].tobytes()
    if options.output_type == DALIImageType.GRAY:
        return False  # CMYK: made on the CPU of the colours
    return options.output_type != DALIImageType.ANY_DATA or header.channels in (1, 3)


def _converted(block: Any, options: Options) -> Any:
    """The whole block in the element type and colours asked for; the same few launches for any batch."""
    import torch

    is_ycbcr = options.output_type == DALIImageType.YCbCr
    if options.dtype == np.uint8 and not is_ycbcr:
        return block
    values = block.to(torch.float32)
    full = _pixels.largest(options.dtype)
    is_float = options.dtype.kind == "f"
    if is_ycbcr:
        matrix, offset = (torch.from_numpy(m).to(block.device, non_blocking=True) for m in _pixels.ycbcr_matrix())
        values = (values.view(-1, 3) @ matrix).view(-1)
        values = (values * (full / 255)).view(-1, 3) + offset * (1 if is_float else full + 1)
        values = values.view(-1)
    else:
        values = values * _pixels.scale(options.dtype, np.uint8)
    if is_float:
        return values
    limits = np.iinfo(options.dtype)
    whole = torch.floor(values.double() + 0.5).clamp_(limits.min, limits.max).to(torch.int64)
    return whole.to(_torch_type(options))


def _torch_type(options: Options) -> Any:
    import torch

    return torch.from_numpy(np.empty(0, options.dtype)).dtype


def _stored(batch: Encoded, extents: np.ndarray, block: Any, offsets: np.ndarray) -> Store:
    """The result: one block if every sample has its place in it, else single samples."""
    spec, images = batch.call.outs[0], batch.images
    if not batch.errors and not images:
        return _one_block(batch, extents, block)
    shapes = [tuple(shape) for shape in extents.tolist()]
    for i in batch.errors:
        shapes[i] = None  # type: ignore[call-overload]
    starts = offsets.tolist()
    kept, dropped = judged_pictures(batch)
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
    found = [parts[i] for i in kept]
    store = Store(spec.dtype, spec.layout, spec.device, [tuple(p.shape) for p in found], parts=found)
    return batch.labelled(store, kept, dropped)


def _one_block(batch: Encoded, shapes: np.ndarray, block: Any) -> Store:
    spec = batch.call.outs[0]
    if (shapes == shapes[0]).all():
        return Store(spec.dtype, spec.layout, spec.device, shapes, whole=block.view(len(shapes), *shapes[0].tolist()))
    return Store(spec.dtype, spec.layout, spec.device, shapes, flat=block)


def _uploaded(image: np.ndarray, device: Any) -> Any:
    """An image as a 1-D tensor on the GPU, through pinned memory."""
    import torch

    staged = pinned_empty(image.nbytes)
    staged.numpy()[:] = image.reshape(-1).view(np.uint8)
    kind = torch.from_numpy(np.empty(0, image.dtype)).dtype
    return staged.to(device, non_blocking=True).view(kind)
