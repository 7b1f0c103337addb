"""Decoding a batch of encoded images to GPU memory: the JPEG engines, the CPU cores and CUDA kernels at once.

All samples go to one block of GPU memory. What nvImageCodec cannot decode there is decoded on the CPU and copied.
Nothing waits for the GPU.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd._cuda.launch import pinned_empty
from ndd._tensor import Store
from ndd._tensor.memory import torch_device
from ndd.decoders import _nvimgcodec, _pixels, _portable
from ndd.decoders._header import is_intact_png
from ndd.decoders._policy import recover
from ndd.decoders._sample import Options, Window, check_size, decode, header_of
from ndd.types import DALIImageType


class _Batch:
    """One call: what each sample is, and where its pixels go."""

    def __init__(self, launch: Any, encoded: Any, options: Options, headers: Any, windows: Any, problems: Any):
        self.launch = launch
        self.encoded = encoded
        self.options = options
        self.data: list[np.ndarray] = [data.reshape(-1) for data in encoded.arrays]
        n = len(self.data)
        self.windows: list[Window | None] = list(windows) if windows is not None else [None] * n
        self.headers: list[Any] = list(headers) if headers is not None else [None] * n
        self.errors: dict[int, BaseException] = {i: p for i, p in enumerate(problems or ()) if p is not None}
        if headers is None:
            self._read_headers()
        self.shapes: list[Any] = [
            options.out_shape(h, w) if h is not None and i not in self.errors else None
            for i, (h, w) in enumerate(zip(self.headers, self.windows, strict=True))
        ]

    def _read_headers(self) -> None:
        for i, data in enumerate(self.data):
            try:
                header = header_of(data)
                check_size(header, self.options)
                self.headers[i] = header
            except RuntimeError as error:
                self.errors[i] = error

    def good(self) -> list[int]:
        return [i for i in range(len(self.data)) if i not in self.errors]


def decode_batch(
    launch: Any, encoded: Any, options: Options, headers: Any = None, windows: Any = None, problems: Any = None
) -> Store:
    """The value of a decoder call on a GPU. Runs on the context's thread with its stream current."""
    batch = _Batch(launch, encoded, options, headers, windows, problems)
    block, starts = _allocated(batch)
    left = _decode_there(batch, block, starts)
    images = _decode_here(batch, left)
    block = _converted(block, options)
    return _stored(batch, block, starts, images)


def _allocated(batch: _Batch) -> tuple[Any, list[int]]:
    """GPU memory (u8) for all samples behind each other, and where each one begins."""
    import torch

    starts, total = [], 0
    for shape in batch.shapes:
        starts.append(total)
        if shape is not None:
            total += shape[0] * shape[1] * shape[2]
    return torch.empty(total, dtype=torch.uint8, device=torch_device(batch.launch.device)), starts


def _decode_there(batch: _Batch, block: Any, starts: list[int]) -> list[int]:
    """Decodes on the GPU what it can; returns the samples that are left."""
    wanted = [i for i in batch.good() if _suits_the_gpu(batch.headers[i], batch.data[i], batch.options)]
    rest = sorted(set(batch.good()) - set(wanted))
    if not wanted or _nvimgcodec.library() is None:
        return batch.good()
    named = batch.launch.job.prepared.named
    kind = batch.options.output_type
    decoders = _nvimgcodec.gpu_decoders(
        batch.launch.device.device_id,
        batch.launch.job.context.thread_pool.num_threads,
        named["hw_decoder_load"],
        _options_text(named),
        len(wanted),
    )
    address = block.data_ptr()
    done = decoders.decode(
        [batch.data[i] for i in wanted],
        [batch.windows[i] for i in wanted],
        [(address + starts[i], batch.shapes[i]) for i in wanted],
        DALIImageType.RGB if kind == DALIImageType.YCbCr else kind,
        batch.options.adjust_orientation,
        batch.launch.stream.handle,
    )
    return sorted(rest + [i for i, ok in zip(wanted, done, strict=True) if not ok])


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
    if header.plain_jpeg:  # one without its end is for the CPU to judge: the engines paint over what is missing
        return not header.damaged and not header.coded_rgb and b"\xff\xd9" in data[-64:].tobytes()
    if header.dtype != np.uint8 or header.damaged or _portable.is_foreign(data):
        return False
    if options.output_type == DALIImageType.ANY_DATA and header.channels not in (1, 3):
        return False
    return data[:4].tobytes() != b"\x89PNG" or is_intact_png(data.data)


def _decode_here(batch: _Batch, left: list[int]) -> dict[int, np.ndarray]:
    """Decodes the samples that the GPU left on the CPU's threads."""
    images: dict[int, np.ndarray] = {}

    def one(k: int) -> None:
        i = left[k]
        images[i] = decode(batch.data[i], batch.options, batch.headers[i], batch.windows[i])

    if left:
        found = batch.launch.job.context.thread_pool.run(one, len(left))
        batch.errors.update({left[k]: error for k, error in found.items()})
    return images


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


def _stored(batch: _Batch, block: Any, starts: list[int], images: dict[int, np.ndarray]) -> Store:
    """The result: one block if every sample has its place in it, else single samples."""
    spec = batch.launch.job.outs[0]
    n = len(batch.data)
    kept, dropped = list(range(n)), None
    if batch.errors:
        found: list[Any] = [None] * n
        found, kept, dropped = recover(batch.launch.job, batch.errors, found, [batch.encoded])
        images |= {i: found[i][0] for i in batch.errors if found[i] is not None}
    in_place = all(
        batch.shapes[i] is not None and (i not in images or images[i].shape == batch.shapes[i]) for i in kept
    )
    parts = {}
    for i, image in images.items():
        on_gpu = _uploaded(image, block.device)
        if batch.shapes[i] == image.shape:
            block[starts[i] : starts[i] + image.size].copy_(on_gpu, non_blocking=True)
        else:
            parts[i] = on_gpu.view(image.shape)
    if in_place and len(kept) == n:
        return _in_one_block(batch, block, spec, dropped)
    for i in kept:
        if i not in parts:
            height, width, channels = batch.shapes[i]
            parts[i] = block[starts[i] : starts[i] + height * width * channels].view(height, width, channels)
    store = Store(
        spec.dtype, spec.layout, spec.device, [tuple(parts[i].shape) for i in kept], parts=[parts[i] for i in kept]
    )
    store.dropped = dropped
    if batch.encoded.source_info:
        store.source_info = [batch.encoded.source_info[i] for i in kept]
    return store


def _in_one_block(batch: _Batch, block: Any, spec: Any, dropped: Any) -> Store:
    shapes = batch.shapes
    if shapes and all(s == shapes[0] for s in shapes):
        store = Store(spec.dtype, spec.layout, spec.device, shapes, whole=block.view(len(shapes), *shapes[0]))
    else:
        store = Store(spec.dtype, spec.layout, spec.device, shapes, flat=block)
    store.dropped = dropped
    return store


def _uploaded(image: np.ndarray, device: Any) -> Any:
    """An image as a 1-D tensor on the GPU, through pinned memory."""
    import torch

    staged = pinned_empty(image.nbytes)
    staged.numpy()[:] = image.reshape(-1).view(np.uint8)
    kind = torch.from_numpy(np.empty(0, image.dtype)).dtype
    return staged.to(device, non_blocking=True).view(kind)
