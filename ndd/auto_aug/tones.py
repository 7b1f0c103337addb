"""Bytes replaced by other bytes: the operators that the augmentations of tones need beside those of `ndd`."""

from __future__ import annotations

import numpy as np

from ndd._cpu import channel_tables
from ndd._cpu.jit import kernel
from ndd._operator import PerSample, Plan, bad_sample, like, operator

_PACK = 16  # bytes that a GPU thread reads and writes
_PER_THREAD = 64  # bytes that a GPU thread counts, as in equalize.py
_COUNTING = "../ops/color/equalize.cu"
GREY = np.array([0.299, 0.587, 0.114], np.float32)


@operator(types=("u8",), register=False)
def change_tones(
    data,
    /,
    *,
    threshold: PerSample[float] = 0.0,
    shift: PerSample[int] = 0,
    flip: PerSample[int] = 0,
    mask: PerSample[int] = 255,
):
    """`(x + shift if x < threshold else x ^ flip) & mask` of every byte x; sums saturate."""
    return like(data)


@change_tones.plan
def _(data, *, threshold, shift, flip, mask):
    rule = np.empty((data.n, 4), np.int32)
    rule[:, 0] = np.clip(np.ceil(threshold.each()), 0, 256)  # x < 2.5 is x < 3
    rule[:, 1], rule[:, 2], rule[:, 3] = shift.each(), flip.each(), mask.each()
    return Plan(data.shapes, {"rule": rule})


@change_tones.cpu
def _(data, out, rule):
    if data.size:
        _change(data.reshape(-1), out.reshape(-1), rule)


@kernel
def _change(x, out, rule):
    threshold, shift, flip, mask = np.int16(rule[0]), np.int16(rule[1]), np.uint8(rule[2]), np.uint8(rule[3])
    for i in range(x.size):
        v = np.int16(x[i])
        out[i] = (np.uint8(min(v + shift, 255)) if v < threshold else x[i] ^ flip) & mask


@change_tones.cuda("tones.cu")
def _(launch, data, out):
    launch("change_tones", -(-out.sizes // _PACK), macros={"COUNT": _PACK})


@operator(layouts=("HWC", "FHWC"), types=("u8",), frames=True, register=False)
def stretch_channels(data, /):
    """The darkest value of each channel becomes 0 and the brightest 255; a channel of a single value stays."""
    return like(data)


@stretch_channels.plan
def _(data):
    return Plan(data.shapes, {"factor": np.zeros(data.n, np.float32)})  # so that both tables have the same fields


@stretch_channels.cpu
def _(data, out):
    if data.size:
        channels = data.shape[2]
        x, y = data.reshape(-1, channels), out.reshape(-1, channels)
        channel_tables.stretch_channels(x, y, *_tables(channels))


@stretch_channels.cuda("tones.cu")
def _(launch, data, out):
    _launch_tables(launch, data, out, "stretch_table")


@operator(layouts=("HWC", "FHWC"), types=("u8",), frames=True, register=False)
def scale_contrast(data, /, *, factor: PerSample[float]):
    """`center + (x - center) * factor`, the center being the mean grey of the image: .299 R + .587 G + .114 B."""
    return like(data)


@scale_contrast.plan
def _(data, *, factor):
    channels = data.shapes[:, 2]
    for i in np.flatnonzero((channels != 3) & (channels != 1))[:1]:
        raise bad_sample(int(i), f"expected an image of 3 channels (RGB) or of one, got {channels[i]}")
    return Plan(data.shapes, {"factor": factor.each()})


@scale_contrast.cpu
def _(data, out, factor):
    if data.size:
        channels = data.shape[2]
        x, y = data.reshape(-1, channels), out.reshape(-1, channels)
        channel_tables.scale_contrast(x, y, *_tables(channels), GREY, np.float32(factor))


@scale_contrast.cuda("tones.cu")
def _(launch, data, out):
    _launch_tables(launch, data, out, "contrast_table")


def _tables(channels: int) -> tuple[np.ndarray, np.ndarray]:
    """Room for the counts, two runs for each channel, and for the tables."""
    return np.zeros((2 * channels, 256), np.int32), np.empty((channels, 256), np.uint8)


def _launch_tables(launch, data, out, kernel: str) -> None:
    """Counts, tables of them, and bytes looked up: three launches for the batch."""
    channels = data.shapes[:, 2]
    fields = {
        "pixels": data.shapes[:, 0] * data.shapes[:, 1], "planes": np.ones_like(channels), "channels": channels,
        "counts": launch.scratch(channels * 256, np.int32, zeros=True),
        "tables": launch.scratch(channels * 256, np.uint8),
    }  # fmt: skip
    launch("count", -(-data.sizes // _PER_THREAD), per_sample=fields, file=_COUNTING)
    macros = {"COUNT": _PACK, "TABLES": 1}
    launch(kernel, channels * 256, per_sample=fields, macros=macros)
    launch("look_up", -(-out.sizes // _PACK), per_sample=fields, macros=macros)
