"""`ndd.imread`: image files to pixels."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ndd._tensor import Batch, Tensor
from ndd._tensor.construct import characters
from ndd.decoders.image import image
from ndd.io.file import read, read_if_there

__all__ = ["imread"]


def imread(
    filepaths: Any,
    /,
    *,
    device: Any = "cpu",
    adjust_orientation: Any = None,
    affine: Any = None,
    cache_batch_copy: Any = None,
    cache_debug: Any = None,
    cache_size: Any = None,
    cache_threshold: Any = None,
    cache_type: Any = None,
    device_memory_padding: Any = None,
    device_memory_padding_jpeg2k: Any = None,
    dtype: Any = None,
    host_memory_padding: Any = None,
    host_memory_padding_jpeg2k: Any = None,
    hw_decoder_load: Any = None,
    hybrid_huffman_threshold: Any = None,
    jpeg_fancy_upsampling: Any = None,
    max_pixels: Any = None,
    memory_stats: Any = None,
    on_error: str = "raise",
    output_type: Any = None,
    preallocate_height_hint: Any = None,
    preallocate_width_hint: Any = None,
    split_stages: Any = None,
    use_chunk_allocator: Any = None,
    use_fast_idct: Any = None,
) -> Tensor | Batch:
    """Reads and decodes image files: `decoders.image(io.file.read(paths))`.

    Args:
        filepaths: a path (str, bytes or pathlib.Path, or a Tensor or array of characters), which gives a Tensor; or a list or
            tuple of such paths, or a Batch of characters, which gives a Batch.
        device: where the pixels go, "cpu" or "gpu".
        on_error: as for `decoders.image`; "skip" and "fill" also apply to files that cannot be read.

    The other arguments are those of `decoders.image`. Errors name the file; the `source_info` of each sample is its path.

    Raises RuntimeError for files that cannot be read or decoded, ValueError for an empty list, TypeError for other types than
    paths (DALI reads the file "7" for 7).

    >>> import ndd, tempfile
    >>> with tempfile.NamedTemporaryFile() as f:
    ...     f.write(b"P5 3 2 255 abcdef") and f.flush()
    ...     print(ndd.imread(f.name).shape)
    (2, 3, 3)
    """
    arguments = {
        "adjust_orientation": adjust_orientation, "affine": affine, "cache_batch_copy": cache_batch_copy,
        "cache_debug": cache_debug, "cache_size": cache_size, "cache_threshold": cache_threshold,
        "cache_type": cache_type, "device_memory_padding": device_memory_padding,
        "device_memory_padding_jpeg2k": device_memory_padding_jpeg2k, "dtype": dtype,
        "host_memory_padding": host_memory_padding, "host_memory_padding_jpeg2k": host_memory_padding_jpeg2k,
        "hw_decoder_load": hw_decoder_load, "hybrid_huffman_threshold": hybrid_huffman_threshold,
        "jpeg_fancy_upsampling": jpeg_fancy_upsampling, "max_pixels": max_pixels, "memory_stats": memory_stats,
        "output_type": output_type, "preallocate_height_hint": preallocate_height_hint,
        "preallocate_width_hint": preallocate_width_hint, "split_stages": split_stages,
        "use_chunk_allocator": use_chunk_allocator, "use_fast_idct": use_fast_idct,
    }  # fmt: skip
    reader = read if on_error == "raise" else read_if_there
    encoded = reader(_checked(filepaths))
    return image(encoded, device=device, on_error=on_error, **{k: v for k, v in arguments.items() if v is not None})


def _checked(paths: Any) -> Any:
    """The paths. TypeError for other types, ValueError for an empty list."""
    if isinstance(paths, list | tuple) and not paths:
        raise ValueError("imread: Element type must be specified if the list is empty: expected at least one path")
    for path in paths if isinstance(paths, list | tuple) else [paths]:
        if not isinstance(path, str | bytes | os.PathLike | Tensor | Batch | np.ndarray):
            raise TypeError(f"imread: expected a path (str, bytes or pathlib.Path), got {type(path).__name__}")
    if isinstance(paths, list | tuple) and any(isinstance(p, Tensor | np.ndarray) for p in paths):
        return Batch([np.asarray(characters(p)).view(np.uint8) for p in paths])
    return paths
