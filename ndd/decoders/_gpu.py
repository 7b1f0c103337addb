"""Decoding a batch of encoded images to GPU memory: the JPEG engines, the CPU cores and CUDA kernels at once.

All samples go to one block of GPU memory. What nvImageCodec cannot decode there, and every format whose parser or decoder
in it dies of damaged files (all but JPEG, PNG and WebP), is decoded on the CPU and copied.
Nothing waits for the GPU.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd._cuda.launch import pinned_empty
from ndd._tensor import Store
from ndd._tensor.memory import torch_device
from ndd.decoders import _nvimgcodec, _pixels
from ndd.decoders._batch import Encoded
from ndd.decoders._header import may_be_decoded
from ndd.decoders._policy import judged
from ndd.decoders._sample import Options
from ndd.types import DALIImageType


def decode_batch(batch: Encoded) -> Store:
    """The value of a decoder call on a GPU. Runs on the context's thread with its stream current."""
    shapes = [
        None if header is None or i in batch.errors else batch.options.out_shape(header, window)
        for i, (header, window) in enumerate(zip(batch.headers, batch.windows, strict=True))
    ]
    block, starts = _allocated(batch, shapes)
    batch.decode(_decode_there(batch, shapes, block.data_ptr(), starts))
    return _stored(batch, shapes, _converted(block, batch.options), starts)


def _allocated(batch: Encoded, shapes: list[Any]) -> tuple[Any, list[int]]:
    """GPU memory (u8) for all samples behind each other, and where each one begins."""
    import torch

    starts, total = [], 0
    for shape in shapes:
        starts.append(total)
        if shape is not None:
            total += shape[0] * shape[1] * shape[2]
    return torch.empty(total, dtype=torch.uint8, device=torch_device(batch.call.device)), starts


def _decode_there(batch: Encoded, shapes: list[Any], address: int, starts: list[int]) -> list[int]:
    """Decodes on the GPU what it can; returns the samples that are left."""
    good = [i for i in range(len(batch)) if i not in batch.errors]
    wanted = [i for i in good if _suits_the_gpu(batch.headers[i], batch.data[i], batch.options)]
    if not wanted or _nvimgcodec.library() is None:
        return good
    call, kind = batch.call, batch.options.output_type
    decoders = _nvimgcodec.gpu_decoders(
        call.device.device_id, call.threads, batch.arguments["hw_decoder_load"], _options_text(batch.arguments), len(wanted)
    )  # fmt: skip
    done = decoders.decode(
        [batch.data[i] for i in wanted],
        [batch.windows[i] for i in wanted],
        [(address + starts[i], shapes[i]) for i in wanted],
        DALIImageType.RGB if kind == DALIImageType.YCbCr else kind,
        batch.options.adjust_orientation,
        call.stream.handle,
    )
    decoded = {i for i, ok in zip(wanted, done, strict=True) if ok}
    return [i for i in good if i not in decoded]


_BUFFER_SIZES = ("device_memory_padding", "host_memory_padding", "preallocate_width_hint", "preallocate_height_hint")


def _options_text(named: dict[str, Any]) -> str:
    """nvImageCodec's options for a decoder. With room to spare it keeps its buffers from batch to batch: 1.5 times the
    images/s at batch 64."""
    texts = [f":fancy_upsampling={int(named['jpeg_fancy_upsampling'])}"]
    for backend in ("nvjpeg_cuda_decoder", "nvjpeg_hw_decoder"):
        for name in _BUFFER_SIZES:
            if named[name]:
                texts.append(f"{backend}:{name}={int(named[name])}")
    return " ".join(texts)


def _suits_the_gpu(header: Any, data: np.ndarray, options: Options) -> bool:
    """Whether a sample may go to nvImageCodec's GPU decoders: 8 bits, no alpha to keep, nothing known to be broken."""
    if not _nvimgcodec.decodes(header.format) or not may_be_decoded(data.data, header):
        return False
    if header.plain_jpeg:  # one without its end is for the CPU to judge: the engines paint over what is missing
        return not header.coded_rgb and b"\xff\xd9" in data[-64:].tobytes()
    if header.dtype != np.uint8:
        return False
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
        values = values * (full / 255)
    if is_float:
        return values
    limits = np.iinfo(options.dtype)
    whole = torch.floor(values.double() + 0.5).clamp_(limits.min, limits.max).to(torch.int64)
    return whole.to(_torch_type(options))


def _torch_type(options: Options) -> Any:
    import torch

    return torch.from_numpy(np.empty(0, options.dtype)).dtype


def _stored(batch: Encoded, shapes: list[Any], block: Any, starts: list[int]) -> Store:
    """The result: one block if every sample has its place in it, else single samples."""
    spec, images = batch.call.outs[0], batch.images
    kept, dropped = judged(batch)
    in_place = all(shapes[i] is not None and (i not in images or images[i].shape == shapes[i]) for i in kept)
    parts = {}
    for i, image in images.items():
        on_gpu = _uploaded(image, block.device)
        if shapes[i] == image.shape:
            block[starts[i] : starts[i] + image.size].copy_(on_gpu, non_blocking=True)
        else:
            parts[i] = on_gpu.view(image.shape)
    if in_place and len(kept) == len(batch):
        if shapes and all(s == shapes[0] for s in shapes):
            store = Store(spec.dtype, spec.layout, spec.device, shapes, whole=block.view(len(shapes), *shapes[0]))
        else:
            store = Store(spec.dtype, spec.layout, spec.device, shapes, flat=block)
        return batch.labelled(store, kept, dropped)
    for i in kept:
        if i not in parts:
            parts[i] = block[starts[i] : starts[i] + int(np.prod(shapes[i]))].view(shapes[i])
    found = [parts[i] for i in kept]
    store = Store(spec.dtype, spec.layout, spec.device, [tuple(p.shape) for p in found], parts=found)
    return batch.labelled(store, kept, dropped)


def _uploaded(image: np.ndarray, device: Any) -> Any:
    """An image as a 1-D tensor on the GPU, through pinned memory."""
    import torch

    staged = pinned_empty(image.nbytes)
    staged.numpy()[:] = image.reshape(-1).view(np.uint8)
    kind = torch.from_numpy(np.empty(0, image.dtype)).dtype
    return staged.to(device, non_blocking=True).view(kind)
