"""Constants in another unit than the operator's: one warning, at the user's line, that names operator and argument and says what is
likely meant; none for what is meant so."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import ndd

IMAGE = ndd.tensor(np.arange(192, dtype=np.uint8).reshape(8, 8, 3), layout="HWC")
REAL = ndd.tensor(np.zeros((8, 8, 3), np.float32), layout="HWC")
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
MEAN_255, STD_255 = [123.675, 116.28, 103.53], [58.395, 57.12, 57.375]

UNLIKELY = {
    "both": (lambda: ndd.crop_mirror_normalize(IMAGE, mean=MEAN, std=STD), "crop_mirror_normalize: `mean` [0.485"),
    "mean": (lambda: ndd.crop_mirror_normalize(IMAGE, mean=MEAN), "mean=[123.675, 116.28, 103.53] is meant"),
    "std": (lambda: ndd.crop_mirror_normalize(IMAGE, std=STD), "`std` [0.229, 0.224, 0.225] is taken in units of the input"),
    "arrays": (lambda: ndd.crop_mirror_normalize(IMAGE, mean=np.float32(MEAN), std=np.float32(STD)), "std=[58.395"),
    "one number": (lambda: ndd.crop_mirror_normalize(IMAGE, mean=0.5, std=0.5), "mean=[127.5], std=[127.5] is meant"),
    "scaled": (lambda: ndd.crop_mirror_normalize(IMAGE, mean=MEAN, std=STD, scale=1 / 255), "103.53] is meant"),
    "a batch": (lambda: ndd.crop_mirror_normalize(ndd.batch([IMAGE, IMAGE]), mean=MEAN, std=STD), "mean=[123.675"),
    "normalize": (lambda: ndd.normalize(IMAGE, mean=0.485, stddev=0.229), "normalize: `mean` [0.485] is taken in units"),
    "hue": (lambda: ndd.hue(IMAGE, hue=0.1), "hue: `hue` 0.1 is an angle in degrees"),
    "twist": (lambda: ndd.color_twist(IMAGE, hue=-0.1), "color_twist: `hue` -0.1 is an angle in degrees"),
    "hsv": (lambda: ndd.hsv(IMAGE, hue=0.5), "hsv: `hue` 0.5 is an angle in degrees"),
    "brightness": (lambda: ndd.brightness(IMAGE, brightness=255.0), "brightness: `brightness` 255 is a factor"),
    "contrast": (lambda: ndd.color_twist(IMAGE, contrast=128), "color_twist: `contrast` 128 is a factor"),
    "shift": (lambda: ndd.brightness(IMAGE, brightness_shift=51), "For steps of 255, 0.2 is meant"),
    "center": (lambda: ndd.contrast(IMAGE, contrast=1.2, contrast_center=0.5), "contrast: `contrast_center` 0.5 is in units"),
    "crop": (lambda: ndd.crop(IMAGE, crop=[0.5, 0.5]), "crop: `crop` [0.5, 0.5] is a size in pixels: below 1 it keeps"),
    "crop of nothing": (lambda: ndd.crop(IMAGE, crop=[0, 0]), "crop: `crop` [0, 0] is a size in pixels: below 1 it keeps"),
    "negative crop": (lambda: ndd.crop(IMAGE, crop=[-1, 4]), "crop: `crop` [-1, 4] is a size in pixels"),
    "sides": (lambda: ndd.crop(IMAGE, crop_h=0.5, crop_w=4), "crop: `crop_h, crop_w` [0.5, 4] is a size in pixels"),
    "crop and normalize": (lambda: ndd.crop_mirror_normalize(IMAGE, crop=[0.9, 4]), "crop_mirror_normalize: `crop` [0.9, 4]"),
    "resize": (lambda: ndd.resize(IMAGE, size=[0.5, 0.5]), "resize: `size` [0.5, 0.5] is a size in pixels, less than one"),
    "shorter": (lambda: ndd.resize(IMAGE, resize_shorter=0.5), "resize: `resize_shorter` 0.5 is a size in pixels"),
    "rotate": (lambda: ndd.rotate(IMAGE, angle=3, size=[0.5, 0.5]), "rotate: `size` [0.5, 0.5] is a size in pixels"),
    "warp": (lambda: ndd.warp_affine(IMAGE, matrix=np.eye(2, 3), size=[0.5, 4]), "warp_affine: `size` [0.5, 4] is a size"),
    "erase": (lambda: ndd.erase(IMAGE, anchor=[0.1, 0.1], shape=[0.5, 0.5]), "`normalized=True` takes fractions"),
    "noise": (lambda: ndd.noise.gaussian(IMAGE, stddev=0.1), "gaussian: `stddev` 0.1 is in units of the input, u8"),
}  # fmt: skip

MEANT = {
    "bytes": lambda: ndd.crop_mirror_normalize(IMAGE, mean=MEAN_255, std=STD_255),
    "scale": lambda: ndd.crop_mirror_normalize(IMAGE, mean=MEAN_255, std=STD, scale=1 / 255),
    "only scale": lambda: ndd.crop_mirror_normalize(IMAGE, std=STD, scale=1 / 255),
    "floats": lambda: ndd.crop_mirror_normalize(REAL, mean=MEAN, std=STD),
    "none": lambda: ndd.crop_mirror_normalize(IMAGE),
    "black": lambda: ndd.crop_mirror_normalize(IMAGE, mean=[0, 0, 0], std=[1, 1, 1]),
    "to -1 to 1": lambda: ndd.crop_mirror_normalize(IMAGE, mean=127.5, std=127.5),
    "centred bins": lambda: ndd.crop_mirror_normalize(IMAGE, mean=0.5, std=255),
    "a gain": lambda: ndd.crop_mirror_normalize(IMAGE, mean=128, std=0.5, shift=128, dtype=ndd.uint8),
    "normalize": lambda: ndd.normalize(IMAGE),
    "hue": lambda: ndd.hue(IMAGE, hue=10),
    "no hue": lambda: ndd.color_twist(IMAGE, hue=0, brightness=1.5),
    "drawn hue": lambda: ndd.hue(IMAGE, hue=ndd.tensor(0.1)),
    "bright": lambda: ndd.brightness(IMAGE, brightness=8, brightness_shift=-0.5),
    "float factor": lambda: ndd.brightness(REAL, brightness=255.0),
    "center": lambda: ndd.contrast(IMAGE, contrast=1.2, contrast_center=0),
    "float center": lambda: ndd.contrast(REAL, contrast=1.2, contrast_center=0.5),
    "one side": lambda: ndd.crop(IMAGE, crop=[0, 4]),
    "one of two": lambda: ndd.crop(IMAGE, crop_h=0, crop_w=4),
    "missing extent": lambda: ndd.resize(IMAGE, size=[0, 4]),
    "mirrored": lambda: ndd.resize(IMAGE, size=[-4, 4]),
    "fractions": lambda: ndd.erase(IMAGE, anchor=[0.1, 0.1], shape=[0.5, 0.5], normalized=True),
    "noise": lambda: ndd.noise.gaussian(IMAGE, stddev=5),
    "float noise": lambda: ndd.noise.gaussian(REAL, stddev=0.1),
}


@pytest.fixture(autouse=True)
def nobody_was_told(monkeypatch):
    monkeypatch.setattr("ndd._tensor.warn_once._told", set())
    for name in ("crop_mirror_normalize", "normalize", "crop", "resize", "rotate", "warp_affine", "erase", "brightness",
                 "contrast", "hue", "hsv", "color_twist"):  # fmt: skip
        getattr(ndd, name).operator.forget()
    ndd.noise.gaussian.operator.forget()


@pytest.mark.parametrize("case", UNLIKELY)
def test_one_warning_at_the_users_line(case):
    call, text = UNLIKELY[case]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(3):
            call().evaluate()
    assert [w.category for w in told] == [UserWarning]
    assert text in str(told[0].message)
    assert (told[0].filename, told[0].lineno) == (__file__, call.__code__.co_firstlineno)


@pytest.mark.drawn(12)
@pytest.mark.parametrize("case", MEANT)
def test_no_warning_for_what_is_meant(case):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MEANT[case]().evaluate()


def test_encoded_images():
    with (
        pytest.warns(UserWarning, match=r"image_crop: `crop` \[0.5, 0.5\] is a size in pixels"),
        pytest.raises(RuntimeError),
    ):
        ndd.decoders.image_crop(ndd.tensor(np.zeros(9, np.uint8)), crop=[0.5, 0.5]).evaluate()


def test_a_call_that_is_known_does_not_look_again(monkeypatch):
    looks = []
    monkeypatch.setattr("ndd.ops.image.crop_mirror_normalize.warn_of_unit_range", lambda *a, **k: looks.append(a))
    for _ in range(5):
        ndd.crop_mirror_normalize(IMAGE, mean=[1.0, 2.0, 3.0], std=[4.0, 5.0, 6.0])
    assert len(looks) == 1
