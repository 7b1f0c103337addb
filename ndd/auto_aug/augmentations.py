"""The augmentations of AutoAugment, RandAugment and TrivialAugment.

Each is called with samples and a magnitude bin, `rotate(images, magnitude_bin=5, num_magnitude_bins=31)`, and calls `op(images,
parameter)` with the parameter of the bin; see `ndd.auto_aug.augmentation`. `shear_x.augmentation(mag_range=(0, 0.5))` makes a
variant. Samples are uint8 images HWC or videos FHWC, in RGB, on the CPU or a GPU, in a loop or in pipeline mode.

`sharpness` and `contrast` follow Pillow, except for the border of one pixel of `sharpness`; `equalize` follows OpenCV. The
formulas are those of `ndd.equalize`, `ndd.saturation` (`color`), `ndd.brightness`, `ndd.warp_affine`, `ndd.rotate` and
`ndd.filter` (`sharpness`); `augment.py` computes them for samples with different augmentations.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ndd.auto_aug import augment
from ndd.auto_aug.declare import Augmentation, augmentation
from ndd.auto_aug.kinds import of_kind
from ndd.ops.color.linear_color import color_matrix
from ndd.ops.image.warping import affine_inverse

_INVERTED = 255
_HALF = 128  # solarize_add: darker values become lighter


def warp_x_param(magnitude):
    """(magnitude, 0): along x."""
    return [magnitude, 0]


def warp_y_param(magnitude):
    """(0, magnitude): along y."""
    return [0, magnitude]


def shift_enhance_range(magnitude):
    """1 + magnitude: a factor of 1 does not change brightness, contrast and colour."""
    return 1 + magnitude


def sharpness_kernel(magnitude):
    """A filter 3 x 3: -1 is a blur, 0 changes nothing, and 1 sharpens as much as the blur softens."""
    blur = np.array([[1, 1, 1], [1, 5, 1], [1, 1, 1]], np.float32) / 13
    same = np.zeros((3, 3), np.float32)
    same[1, 1] = 1
    return -magnitude * blur + (1 + magnitude) * same


def sharpness_kernel_shifted(magnitude):
    """`sharpness_kernel` for magnitudes around 1."""
    return sharpness_kernel(magnitude - 1)


def poster_mask_uint8(magnitude):
    """A mask of the highest `magnitude` bits of a byte: 1 to 8 of them, whatever the magnitude."""
    bits = int(np.clip(np.round(magnitude), 1, 8))  # as in RandAugment (arXiv:1909.13719) no image becomes black
    return np.array(255 << (8 - bits) & 255, np.uint8)


def solarize_add_shift(shift):
    """The number added to dark bytes: below 128, since they stay bytes."""
    if shift >= _HALF:
        raise ValueError(f"solarize_add: expected shifts from 0 to {_HALF - 1}, got {shift}")
    return np.uint8(shift)


# ---- parameters to the numbers of a kind, see augment.py: from [R, ...] to [R, up to 9]


def _factors(parameters):
    return _of_shape(parameters, 1)


def _shears(parameters):
    factors = _of_shape(parameters, 2)
    maps = np.zeros((len(factors), 2, 3), np.float32)
    maps[:, 0, 0] = maps[:, 1, 1] = 1
    maps[:, 0, 1], maps[:, 1, 0] = factors.T
    return affine_inverse(maps).reshape(-1, 6)


def _moves(parameters):
    maps = np.zeros((len(parameters), 2, 3), np.float32)
    maps[:, 0, 0] = maps[:, 1, 1] = 1
    maps[:, :, 2] = _of_shape(parameters, 2)
    return affine_inverse(maps).reshape(-1, 6)


def _parts(parameters):
    return _of_shape(parameters, 2)


def _angles(parameters):
    angles = _of_shape(parameters, 1)
    if not np.isfinite(angles).all():
        raise ValueError(f"expected finite angles, got {angles[:, 0].tolist()}")
    return angles


def _saturations(parameters):
    return color_matrix(0.0, _of_shape(parameters, 1)[:, 0], 1.0, 1.0).reshape(-1, 9)


def _weights(parameters):
    return _of_shape(parameters, 3, 3)


def _masks(parameters):
    return _tones(parameters, mask=_of_shape(parameters, 1)[:, 0])


def _thresholds(parameters):
    # x < 2.5 is x < 3
    return _tones(parameters, threshold=np.clip(np.ceil(_of_shape(parameters, 1)[:, 0]), 0, 256), flip=_INVERTED)


def _shifts(parameters):
    return _tones(parameters, threshold=_HALF, shift=_of_shape(parameters, 1)[:, 0])


def _negative(parameters):
    return _tones(parameters, flip=_INVERTED)


def _nothing(parameters):
    return np.zeros((len(parameters), 0), np.float32)


def _tones(parameters, threshold=0, shift=0, flip=0, mask=255):
    rules = np.empty((len(parameters), 4), np.float32)
    rules[:, 0], rules[:, 1], rules[:, 2], rules[:, 3] = threshold, shift, flip, mask
    return rules


def _of_shape(parameters, *shape):
    if np.prod(parameters.shape[1:]) != np.prod(shape):
        expected = " x ".join(map(str, shape)) + " numbers" if shape != (1,) else "one number"
        raise ValueError(f"the parameter of an augmentation: expected {expected}, got shape {parameters.shape[1:]}")
    return parameters.reshape(len(parameters), int(np.prod(shape))).astype(np.float32)


@augmentation(mag_range=(0, 0.3), randomly_negate=True, mag_to_param=warp_x_param)
@of_kind(augment.WARPED, _shears)
def shear_x(data, shear, fill_value=128, interp_type=None):
    """Shifts each row by `shear[0]` times its distance from the top."""


@augmentation(mag_range=(0, 0.3), randomly_negate=True, mag_to_param=warp_y_param)
@of_kind(augment.WARPED, _shears)
def shear_y(data, shear, fill_value=128, interp_type=None):
    """Shifts each column by `shear[1]` times its distance from the left."""


@augmentation(mag_range=(0.0, 1.0), randomly_negate=True, mag_to_param=warp_x_param)
@of_kind(augment.MOVED, _parts)
def translate_x(data, rel_offset, shape, fill_value=128, interp_type=None):
    """Shifts by a fraction of the width: `shape` is (H, W, ...) of each sample, or of all."""


@augmentation(mag_range=(0, 250), randomly_negate=True, mag_to_param=warp_x_param, name="translate_x")
@of_kind(augment.WARPED, _moves)
def translate_x_no_shape(data, offset, fill_value=128, interp_type=None):
    """Shifts by pixels along x."""


@augmentation(mag_range=(0.0, 1.0), randomly_negate=True, mag_to_param=warp_y_param)
@of_kind(augment.MOVED, _parts)
def translate_y(data, rel_offset, shape, fill_value=128, interp_type=None):
    """Shifts by a fraction of the height: `shape` is (H, W, ...) of each sample, or of all."""


@augmentation(mag_range=(0, 250), randomly_negate=True, mag_to_param=warp_y_param, name="translate_y")
@of_kind(augment.WARPED, _moves)
def translate_y_no_shape(data, offset, fill_value=128, interp_type=None):
    """Shifts by pixels along y."""


@augmentation(mag_range=(0, 30), randomly_negate=True)
@of_kind(augment.TURNED, _angles)
def rotate(data, angle, fill_value=128, interp_type=None, rotate_keep_size=True):
    """Rotates about the centre by degrees, counter-clockwise."""


@augmentation(mag_range=(0, 0.9), randomly_negate=True, mag_to_param=shift_enhance_range)
@of_kind(augment.SCALED, _factors)
def brightness(data, parameter):
    """Multiplies every value by a factor."""


@augmentation(mag_range=(0, 0.9), randomly_negate=True, mag_to_param=shift_enhance_range)
@of_kind(augment.CONTRAST, _factors)
def contrast(data, parameter):
    """Multiplies distances from the mean grey of the image (.299 R + .587 G + .114 B) by a factor."""


@augmentation(mag_range=(0, 0.9), randomly_negate=True, mag_to_param=shift_enhance_range)
@of_kind(augment.MIXED, _saturations)
def color(data, parameter):
    """Multiplies the saturation by a factor."""


@augmentation(mag_range=(0, 0.9), randomly_negate=True, mag_to_param=sharpness_kernel, param_device="auto")
@of_kind(augment.FILTERED, _weights)
def sharpness(data, kernel):
    """Filters with a kernel of 3 x 3 weights."""


@augmentation(mag_range=(0, 4), mag_to_param=poster_mask_uint8)
@of_kind(augment.TONES, _masks)
def posterize(data, mask):
    """Keeps the bits of a mask."""


@augmentation(mag_range=(256, 0))
@of_kind(augment.TONES, _thresholds)
def solarize(data, threshold):
    """Inverts bytes from a threshold on."""


@augmentation(mag_range=(0, 110), mag_to_param=solarize_add_shift)
@of_kind(augment.TONES, _shifts)
def solarize_add(data, shift):
    """Adds a number to bytes below 128."""


@augmentation
@of_kind(augment.TONES, _negative)
def invert(data, _):
    """255 - x."""


@augmentation
@of_kind(augment.EQUALIZED, _nothing)
def equalize(data, _):
    """Equalizes the histogram of each channel."""


@augmentation
@of_kind(augment.STRETCHED, _nothing)
def auto_contrast(data, _):
    """The darkest value of each channel becomes 0 and the brightest 255."""


@augmentation
def identity(data, _):
    """Returns the samples unchanged, of any type."""
    return data


identity.op.of_kind = augment.SAME, _nothing


def translations(
    use_shape: bool, default_abs: float, default_rel: float, max_abs: Any = None, max_rel: Any = None
) -> list[Augmentation]:
    """`translate_x` and `translate_y` up to a number of pixels, or with `use_shape` up to a fraction of the image; as numbers
    or (y, x)."""
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


@functools.lru_cache(64)  # an augmentation caches the parameters of its bins
def _translations(use_shape: bool, height: float, width: float) -> tuple[Augmentation, Augmentation]:
    x, y = (translate_x, translate_y) if use_shape else (translate_x_no_shape, translate_y_no_shape)
    return x.augmentation((0, width), True), y.augmentation((0, height), True)
