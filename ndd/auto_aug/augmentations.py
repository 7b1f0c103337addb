"""The augmentations of AutoAugment, RandAugment and TrivialAugment, over the operators of `ndd`.

Each is called with samples and a magnitude bin, `rotate(images, magnitude_bin=5, num_magnitude_bins=31)`, and is
`op(images, parameter)` of the parameter that the bin stands for; see `ndd.auto_aug.augmentation`. Others are made of them by
`shear_x.augmentation(mag_range=(0, 0.5))`. Samples are uint8 images HWC or videos FHWC, in RGB, on the CPU or a GPU, in a
loop or in pipeline mode.

`sharpness` and `contrast` follow Pillow, but for the border of one pixel of `sharpness`; `equalize` follows OpenCV. See
`ndd.equalize`, `ndd.saturation` (`color`), `ndd.brightness`, `ndd.warp_affine` and `ndd.rotate` for what these compute.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import ndd
from ndd.auto_aug.declare import Augmentation, augmentation
from ndd.auto_aug.nodes import on_batches, sliced
from ndd.auto_aug.tones import change_tones, scale_contrast, stretch_channels

_INVERTED = 255
_HALF = 128  # solarize_add: what is darker becomes lighter


def warp_x_param(magnitude):
    """(magnitude, 0): along x."""
    return [magnitude, 0]


def warp_y_param(magnitude):
    """(0, magnitude): along y."""
    return [0, magnitude]


def shift_enhance_range(magnitude):
    """1 + magnitude: the factor that leaves brightness, contrast and colour as they are is 1."""
    return 1 + magnitude


def sharpness_kernel(magnitude):
    """A filter 3 x 3: of -1 a blur, of 0 nothing, of 1 as much sharper as the blur is softer."""
    blur = np.array([[1, 1, 1], [1, 5, 1], [1, 1, 1]], np.float32) / 13
    same = np.zeros((3, 3), np.float32)
    same[1, 1] = 1
    return -magnitude * blur + (1 + magnitude) * same


def sharpness_kernel_shifted(magnitude):
    """`sharpness_kernel` of magnitudes around 1."""
    return sharpness_kernel(magnitude - 1)


def poster_mask_uint8(magnitude):
    """A mask of the highest `magnitude` bits of a byte: 1 to 8 of them, whatever the magnitude."""
    bits = int(np.clip(np.round(magnitude), 1, 8))  # as in RandAugment (arXiv:1909.13719) no image goes black
    return np.array(255 << (8 - bits) & 255, np.uint8)


def solarize_add_shift(shift):
    """What is added to dark bytes: below 128, since they stay bytes."""
    if shift >= _HALF:
        raise ValueError(f"solarize_add: expected shifts from 0 to {_HALF - 1}, got {shift}")
    return np.uint8(shift)


def _warped(data: Any, matrix: Any, fill_value: Any, interp_type: Any) -> Any:
    kind = {} if interp_type is None else {"interp_type": interp_type}
    return ndd.warp_affine(data, matrix=matrix, fill_value=fill_value, inverse_map=False, **kind)


@on_batches
def _sheared(data, shear, fill_value, interp_type):
    return _warped(data, ndd.transforms.shear(shear=shear), fill_value, interp_type)


@on_batches
def _moved(data, offset, fill_value, interp_type):
    return _warped(data, ndd.transforms.translation(offset=offset), fill_value, interp_type)


@augmentation(mag_range=(0, 0.3), randomly_negate=True, mag_to_param=warp_x_param)
def shear_x(data, shear, fill_value=128, interp_type=None):
    """Each row is moved by `shear[0]` of its distance from the top."""
    return _sheared(data, shear, fill_value, interp_type)


@augmentation(mag_range=(0, 0.3), randomly_negate=True, mag_to_param=warp_y_param)
def shear_y(data, shear, fill_value=128, interp_type=None):
    """Each column is moved by `shear[1]` of its distance from the left."""
    return _sheared(data, shear, fill_value, interp_type)


@augmentation(mag_range=(0.0, 1.0), randomly_negate=True, mag_to_param=warp_x_param)
def translate_x(data, rel_offset, shape, fill_value=128, interp_type=None):
    """Moved by a part of the width: `shape` is (H, W, ...) of each sample, or of all."""
    return _moved(data, rel_offset * sliced(shape, 1), fill_value, interp_type)


@augmentation(mag_range=(0, 250), randomly_negate=True, mag_to_param=warp_x_param, name="translate_x")
def translate_x_no_shape(data, offset, fill_value=128, interp_type=None):
    """Moved by pixels, along x."""
    return _moved(data, offset, fill_value, interp_type)


@augmentation(mag_range=(0.0, 1.0), randomly_negate=True, mag_to_param=warp_y_param)
def translate_y(data, rel_offset, shape, fill_value=128, interp_type=None):
    """Moved by a part of the height: `shape` is (H, W, ...) of each sample, or of all."""
    return _moved(data, rel_offset * sliced(shape, 0), fill_value, interp_type)


@augmentation(mag_range=(0, 250), randomly_negate=True, mag_to_param=warp_y_param, name="translate_y")
def translate_y_no_shape(data, offset, fill_value=128, interp_type=None):
    """Moved by pixels, along y."""
    return _moved(data, offset, fill_value, interp_type)


@augmentation(mag_range=(0, 30), randomly_negate=True)
@on_batches
def rotate(data, angle, fill_value=128, interp_type=None, rotate_keep_size=True):
    """Turned about the middle by degrees, counter-clockwise."""
    kind = {} if interp_type is None else {"interp_type": interp_type}
    return ndd.rotate(data, angle=angle, fill_value=fill_value, keep_size=rotate_keep_size, **kind)


@augmentation(mag_range=(0, 0.9), randomly_negate=True, mag_to_param=shift_enhance_range)
@on_batches
def brightness(data, parameter):
    """Every value times a factor."""
    return ndd.brightness(data, brightness=parameter)


@augmentation(mag_range=(0, 0.9), randomly_negate=True, mag_to_param=shift_enhance_range)
@on_batches
def contrast(data, parameter):
    """Distances from the mean grey of the image (.299 R + .587 G + .114 B) times a factor."""
    return scale_contrast(data, factor=parameter)


@augmentation(mag_range=(0, 0.9), randomly_negate=True, mag_to_param=shift_enhance_range)
@on_batches
def color(data, parameter):
    """The saturation times a factor."""
    return ndd.saturation(data, saturation=parameter)


@augmentation(mag_range=(0, 0.9), randomly_negate=True, mag_to_param=sharpness_kernel, param_device="auto")
@on_batches
def sharpness(data, kernel):
    """Filtered with a kernel of 3 x 3 weights."""
    return ndd.filter(data, kernel)


@augmentation(mag_range=(0, 4), mag_to_param=poster_mask_uint8)
@on_batches
def posterize(data, mask):
    """The bits of a mask."""
    return change_tones(data, mask=mask)


@augmentation(mag_range=(256, 0))
@on_batches
def solarize(data, threshold):
    """Bytes from a threshold on are inverted."""
    return change_tones(data, threshold=threshold, flip=_INVERTED)


@augmentation(mag_range=(0, 110), mag_to_param=solarize_add_shift)
@on_batches
def solarize_add(data, shift):
    """A number is added to bytes below 128."""
    return change_tones(data, threshold=_HALF, shift=shift)


@augmentation
@on_batches
def invert(data, _):
    """255 - x."""
    return change_tones(data, flip=_INVERTED)


@augmentation
@on_batches
def equalize(data, _):
    """Histogram equalization of each channel."""
    return ndd.equalize(data)


@augmentation
@on_batches
def auto_contrast(data, _):
    """The darkest value of each channel becomes 0 and the brightest 255."""
    return stretch_channels(data)


@augmentation
def identity(data, _):
    """The samples as they are."""
    return data


def translations(
    use_shape: bool, default_abs: float, default_rel: float, max_abs: Any = None, max_rel: Any = None
) -> list[Augmentation]:
    """`translate_x` and `translate_y` up to pixels, or with `use_shape` up to a part of the image; as numbers or (y, x)."""
    if not isinstance(use_shape, bool):
        raise TypeError(f"`use_shape` is to be True or False, got {use_shape!r}")
    if use_shape and max_abs is not None:
        raise ValueError("`max_translate_abs` is in pixels: with image shapes give `max_translate_rel`")
    if not use_shape and max_rel is not None:
        raise ValueError("`max_translate_rel` is a part of the image: without image shapes give `max_translate_abs`")
    most, default = (max_rel, default_rel) if use_shape else (max_abs, default_abs)
    most = default if most is None else most
    height, width = most if isinstance(most, list | tuple) else (most, most)
    return list(_translations(use_shape, height, width))


@functools.lru_cache(64)  # an augmentation keeps the parameters of its bins
def _translations(use_shape: bool, height: float, width: float) -> tuple[Augmentation, Augmentation]:
    x, y = (translate_x, translate_y) if use_shape else (translate_x_no_shape, translate_y_no_shape)
    return x.augmentation((0, width), True), y.augmentation((0, height), True)
