"""Calls whose kernels are compiled beside those of `bench ops`. `m` and `x` are as in `ndd.bench.operator_table`.

`CALLS` has, besides that table, operators without a line there. `FOR_WHEELS` has `RARER` arguments, and, on the CPU, all calls
in other forms: with one sample, floats, one channel, channels first, numbers of each sample. A wheel brings the kernels of all;
in a checkout `python -m ndd compile --all` compiles them.
"""

from __future__ import annotations

import functools
import inspect
import struct
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from ndd._operator import all_operators
from ndd.bench.operator_table import TABLE

Call = Callable[[Any, Any], Any]
_LITERALS = 32  # bytes that follow the head of an LZ4 block: 15 in its first byte, the others in its second
_BLOCK = np.array([15 << 4, _LITERALS - 15, *range(_LITERALS)], np.uint8)
_TRANSFORM = [0.8, 0.1, 0.0, -0.1, 0.9, 0.1]


def _one_channel(m: Any, x: Any) -> Any:
    return m.reshape(x.mosaic, shape=[224, 224, 1], layout="HWC")


def _labels(m: Any, x: Any) -> Any:
    return m.cast(x.mask, dtype=m.uint8)


def _soft(m: Any, x: Any) -> Any:
    return m.one_hot(m.squeeze(x.classes, axes=[0]), num_classes=1000)


def _volume(m: Any, x: Any) -> Any:
    return m.reshape(x.frames, layout="DHWC")


def _companded(m: Any, x: Any) -> Any:
    """Sound that libsndfile decodes: WAVs of 8 kHz in mu-law."""
    samples = np.arange(800, dtype=np.uint8)
    head = struct.pack("<IHHIIHHH", 18, 7, 1, 8000, 8000, 1, 8, 0)
    body = b"WAVEfmt " + head + b"data" + struct.pack("<I", samples.size) + samples.tobytes()
    file = np.frombuffer(b"RIFF" + struct.pack("<I", len(body)) + body, np.uint8)
    return m.batch([file] * (x.batch_size or 1))


# fmt: off
CALLS: dict[str, Call] = {
    **TABLE,
    "bbox_transform": lambda m, x: m.bbox_transform(x.boxes, x.box_classes, MT=_TRANSFORM),
    "color_jitter": lambda m, x: m.color_jitter(
        x.small, brightness=[0.6, 1.4], contrast=[0.6, 1.4], saturation=[0.6, 1.4], hue=[-0.1, 0.1]),
    "random_erasing": lambda m, x: m.random_erasing(x.small, p=1.0),
    "cutmix": lambda m, x: m.cutmix(x.small, x.classes, num_classes=1000),
    "mixup": lambda m, x: m.mixup(x.small, x.classes, num_classes=1000),
    "decoders.inflate": lambda m, x: m.decoders.inflate(
        m.batch([_BLOCK] * (x.batch_size or 1), device=x.device), shape=[_LITERALS]),
    "decoders.audio mu-law": lambda m, x: m.decoders.audio(_companded(m, x)),
    "decoders.audio mu-law to 16 kHz": lambda m, x: m.decoders.audio(_companded(m, x), sample_rate=16000.0),
    "resize frames nearest": lambda m, x: m.resize(x.frames, size=[64, 64], interp_type=x.types.INTERP_NN),
    "filter to bytes": lambda m, x: m.filter(x.small, x.kernel),
    "experimental.remap of one channel": lambda m, x: m.experimental.remap(_one_channel(m, x), x.map_x, x.map_y),
    "segmentation.random_mask_pixel of bytes": lambda m, x: m.segmentation.random_mask_pixel(_labels(m, x), foreground=1),
    "segmentation.random_object_bbox of bytes": lambda m, x: m.segmentation.random_object_bbox(_labels(m, x)),
}
RARER: dict[str, Call] = {
    "bbox_rotate of kept size": lambda m, x: m.bbox_rotate(
        x.boxes, x.box_classes, angle=30.0, input_shape=[224, 224], keep_size=True, mode="fixed", bbox_layout="xyWH"),
    "coord_transform by M and T": lambda m, x: m.coord_transform(x.points, M=[0.5, 0.1, 0.2, 0.9], T=[1.0, 2.0]),
    "coord_transform without numbers": lambda m, x: m.coord_transform(x.points),
    "crop_mirror_normalize to half": lambda m, x: m.crop_mirror_normalize(x.small, dtype=m.float16),
    "crop_mirror_normalize to half HWC": lambda m, x: m.crop_mirror_normalize(
        x.small, dtype=m.float16, output_layout="HWC"),
    "cutmix of soft labels": lambda m, x: m.cutmix(x.small, _soft(m, x), weight=0.3, center=[0.1, 0.5]),
    "mixup of soft labels": lambda m, x: m.mixup(x.small, _soft(m, x), weight=0.3),
    "experimental.median_blur 5 by 7": lambda m, x: m.experimental.median_blur(x.small, window_size=[5, 7]),
    "experimental.resize": lambda m, x: m.experimental.resize(x.small, resize_shorter=100.0),
    "experimental.resize nearest": lambda m, x: m.experimental.resize(
        x.small, size=[12, 40], interp_type=x.types.INTERP_NN),
    "gaussian_blur 5": lambda m, x: m.gaussian_blur(x.small, window_size=5),
    "laplacian 5": lambda m, x: m.laplacian(x.small, window_size=5, scale=0.5),
    "mel_filter_bank tf": lambda m, x: m.mel_filter_bank(
        m.reshape(x.lines, layout="tf"), nfilter=12, sample_rate=16000.0),
    "mfcc of rows": lambda m, x: m.mfcc(x.mel, axis=1, dct_type=4, normalize=True),
    "normalize rows and channels": lambda m, x: m.normalize(x.small, axes=[0, 2]),
    "normalize few": lambda m, x: m.normalize(m.crop(x.small, crop=[4, 4])),
    "normalize everything": lambda m, x: m.normalize(x.small),
    "one_hot to int64": lambda m, x: m.one_hot(x.classes, num_classes=6, on_value=2.0, dtype=m.int32, axis=0),
    "power_spectrum 1": lambda m, x: m.power_spectrum(x.lines, power=1, nfft=7),
    "preemphasis_filter zero": lambda m, x: m.preemphasis_filter(x.sound, border="zero", dtype=m.int16),
    "random.beta of defaults": lambda m, x: m.random.beta(batch_size=x.batch_size, device=x.device),
    "random.normal of a shape": lambda m, x: m.random.normal(
        batch_size=x.batch_size, device=x.device, mean=2.0, stddev=3.0, shape=[4, 3]),
    "random.uniform of a shape": lambda m, x: m.random.uniform(
        batch_size=x.batch_size, device=x.device, range=[2.0, 5.0], shape=[4, 3]),
    "random.coin_flip of many": lambda m, x: m.random.coin_flip(batch_size=x.batch_size, device=x.device, shape=[20]),
    "random.uniform of integers": lambda m, x: m.random.uniform(
        batch_size=x.batch_size, device=x.device, range=[0.0, 9.0], dtype=m.int32),
    "random_bbox_crop of a size": lambda m, x: m.random_bbox_crop(
        x.boxes, x.box_classes, bbox_layout="xyXY", crop_shape=[20, 30], input_shape=[60, 50], shape_layout="HW",
        bbox_prune_threshold=0.2),
    "random_erasing by noise": lambda m, x: m.random_erasing(x.small, p=1.0, value="random"),
    "reductions.max of rows": lambda m, x: m.reductions.max(x.small, axes=[0, 2], keep_dims=True),
    "reductions.mean of rows": lambda m, x: m.reductions.mean(x.small, axes=[0, 2], keep_dims=True),
    "reductions.mean_square of rows": lambda m, x: m.reductions.mean_square(x.small, axes=[0, 2], keep_dims=True),
    "reductions.min of rows": lambda m, x: m.reductions.min(x.small, axes=[0, 2], keep_dims=True),
    "reductions.sum of rows": lambda m, x: m.reductions.sum(x.small, axes=[0, 2], keep_dims=True),
    "reductions.mean of samples": lambda m, x: m.reductions.mean(x.small),
    "reductions.sum of samples": lambda m, x: m.reductions.sum(x.small),
    "resize shorter": lambda m, x: m.resize(x.images, resize_shorter=256.0, save_attrs=True),
    "rotate nearest": lambda m, x: m.rotate(x.small, angle=33.0, interp_type=x.types.INTERP_NN),
    "rotate volumes": lambda m, x: m.rotate(_volume(m, x), angle=30.0, axis=[1.0, 2.0, 3.0]),
    "slice by start and end": lambda m, x: m.slice(x.small, start=[0, 0], end=[100, 100], axes=[0, 1]),
    "spectrogram of whole windows": lambda m, x: m.spectrogram(x.sound, window_length=64, window_step=24, center_windows=False),
    "to_decibels of a reference": lambda m, x: m.to_decibels(x.mel, multiplier=20.0, reference=0.3, cutoff_db=-40.0),
    "transpose to the reverse": lambda m, x: m.transpose(x.small),
    "spectrogram by another window": lambda m, x: m.spectrogram(
        x.sound, window_length=5, window_step=100, window_fn=[0.1, 0.5, 1.0, 2.0, 0.0]),
}
# fmt: on


def _changed(x: Any, names: tuple[str, ...], change: Callable[[Any], Any]) -> Any:
    values = {name: change(value) if name in names else value for name, value in vars(x).items()}
    return SimpleNamespace(**values)


_PICTURES = ("images", "small", "frames")


def _of_one_sample(m: Any, x: Any) -> Any:
    batches = tuple(name for name, value in vars(x).items() if isinstance(value, m.Batch))
    return SimpleNamespace(**{**vars(_changed(x, batches, lambda value: value.select(0))), "batch_size": None})


def _of_floats(m: Any, x: Any) -> Any:
    return _changed(x, (*_PICTURES, "mosaic"), lambda value: m.cast(value, dtype=m.float32))


def _of_one_channel(m: Any, x: Any) -> Any:
    return _changed(x, _PICTURES, lambda value: m.slice(value, [0], [1], axis_names="C"))


def _of_planes(m: Any, x: Any) -> Any:
    return _changed(x, ("images", "small", "floats"), lambda value: m.transpose(value, perm=[2, 0, 1]))


_FORMS = {
    "one sample": _of_one_sample,
    "floats": _of_floats,
    "one channel": _of_one_channel,
    "planes": _of_planes,
}


class _WithNumbersOfSamples:
    """`m` whose operators receive a number for each sample, as from `m.random`, in place of one for all.

    Args:
        module: `ndd`, or a module in it.
        batch: `ndd.batch`.
        n: the number of samples.
        place: the module's public path, with a dot at its end.
    """

    def __init__(self, module: Any, batch: Any, n: int, place: str = ""):
        self._module, self._batch, self._n, self._place = module, batch, n, place

    def __getattr__(self, name: str) -> Any:
        value, path = getattr(self._module, name), f"{self._place}{name}"
        if inspect.ismodule(value):
            return _WithNumbersOfSamples(value, self._batch, self._n, f"{path}.")
        operator = all_operators().get(path)
        if operator is None:
            return value
        kinds = {argument.name: argument.numpy for argument in operator.arguments if argument.per_sample}
        return lambda *inputs, **named: value(
            *inputs, **{k: self._of_samples(v, kinds.get(k)) for k, v in named.items()}
        )

    def _of_samples(self, value: Any, kind: Any) -> Any:
        numbers = isinstance(value, int | float | list | tuple) and not isinstance(value, bool)
        return self._batch([np.asarray(value, kind)] * self._n) if numbers and kind is not None else value


def _of_numbers_of_samples(call: Call, m: Any, x: Any) -> Any:
    return call(_WithNumbersOfSamples(m, m.batch, x.batch_size), x)


def _in_form(call: Call, form: Callable[[Any, Any], Any], m: Any, x: Any) -> Any:
    """The result, evaluated; an empty tuple if the operator does not take this form."""
    from ndd.bench.libraries import finish

    try:
        result = call(m, form(m, x))
        finish(result)
    except (TypeError, ValueError, RuntimeError):
        return ()
    return result


FOR_WHEELS: dict[str, Call] = {
    **RARER,
    **{
        f"{name} of {kind}": functools.partial(_in_form, call, form)
        for kind, form in _FORMS.items()
        for name, call in {**CALLS, **RARER}.items()
    },
    **{
        f"{name} of numbers of each sample": functools.partial(
            _in_form, functools.partial(_of_numbers_of_samples, call), lambda m, x: x
        )
        for name, call in {**CALLS, **RARER}.items()
    },
}
