"""Calls whose kernels are compiled beside those of `bench ops`: of operators that have no line there, and with other usual
arguments and element types. `m` and `x` are as in `ndd.bench.operator_table`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from ndd.bench.operator_table import TABLE

_LITERALS = 32  # bytes that follow the head of an LZ4 block: 15 in its first byte, the others in its second
_BLOCK = np.array([15 << 4, _LITERALS - 15, *range(_LITERALS)], np.uint8)
_TRANSFORM = [0.8, 0.1, 0.0, -0.1, 0.9, 0.1]


def _gray(m: Any, x: Any) -> Any:
    return m.reshape(x.mosaic, shape=[224, 224, 1], layout="HWC")


def _labels(m: Any, x: Any) -> Any:
    return m.cast(x.mask, dtype=m.uint8)


def _companded(m: Any, x: Any) -> Any:
    """Sound that libsndfile decodes: WAVs of 8 kHz in mu-law."""
    samples = np.arange(800, dtype=np.uint8)
    head = struct.pack("<IHHIIHHH", 18, 7, 1, 8000, 8000, 1, 8, 0)
    body = b"WAVEfmt " + head + b"data" + struct.pack("<I", samples.size) + samples.tobytes()
    file = np.frombuffer(b"RIFF" + struct.pack("<I", len(body)) + body, np.uint8)
    return m.batch([file] * x.batch_size)


# fmt: off
CALLS: dict[str, Callable[[Any, Any], Any]] = {
    **TABLE,
    "bbox_transform": lambda m, x: m.bbox_transform(x.boxes, x.box_classes, MT=_TRANSFORM),
    "color_jitter": lambda m, x: m.color_jitter(
        x.small, brightness=[0.6, 1.4], contrast=[0.6, 1.4], saturation=[0.6, 1.4], hue=[-0.1, 0.1]),
    "random_erasing": lambda m, x: m.random_erasing(x.small, p=1.0),
    "cutmix": lambda m, x: m.cutmix(x.small, x.classes, num_classes=1000),
    "mixup": lambda m, x: m.mixup(x.small, x.classes, num_classes=1000),
    "decoders.inflate": lambda m, x: m.decoders.inflate(
        m.batch([_BLOCK] * x.batch_size, device=x.device), shape=[_LITERALS]),
    "decoders.audio mu-law": lambda m, x: m.decoders.audio(_companded(m, x)),
    "decoders.audio mu-law to 16 kHz": lambda m, x: m.decoders.audio(_companded(m, x), sample_rate=16000.0),
    "resize frames nearest": lambda m, x: m.resize(x.frames, size=[64, 64], interp_type=x.types.INTERP_NN),
    "filter to bytes": lambda m, x: m.filter(x.small, x.kernel),
    "experimental.remap of one channel": lambda m, x: m.experimental.remap(_gray(m, x), x.map_x, x.map_y),
    "segmentation.random_mask_pixel of bytes": lambda m, x: m.segmentation.random_mask_pixel(_labels(m, x), foreground=1),
    "segmentation.random_object_bbox of bytes": lambda m, x: m.segmentation.random_object_bbox(_labels(m, x)),
}
# fmt: on
