"""PIL images of every mode through functions and transforms of `ndd.torchvision`: torchvision's pixels, and its errors."""

from __future__ import annotations

import copy
import random
import warnings

import numpy as np
import PIL.Image
import pytest
import torch
from torchvision_cases import COLORS, GEOMETRY, images
from torchvision_classes import CASES, names, outcome, theirs

from ndd.torchvision import v2
from ndd.torchvision.v2 import functional as F

oracle = theirs.functional
MODES = ("L", "LA", "RGB", "RGBA", "1", "P", "I", "F", "CMYK", "YCbCr", "HSV", "I;16")
# Those whose pixels are not Pillow's: tensors, by ndd's operators.
OF_TENSORS = {"gaussian_blur": 1, "elastic": 1, "AugMix": 1, "ElasticTransform": 1, "GaussianBlur": 1}
CORNERS = [[0, 0], [22, 0], [22, 16], [0, 16]]
pytestmark = pytest.mark.filterwarnings("ignore")


def picture(mode: str, seed: int = 0, size: tuple[int, int] = (23, 17)) -> PIL.Image.Image:
    """Noise over a slope, in a mode."""
    noise = np.random.default_rng(seed).integers(0, 120, (size[1], size[0], 3))
    slope = np.linspace(0, 135, size[0])[None, :, None] + np.zeros((size[1], 1, 3))
    image = PIL.Image.fromarray((noise + slope).astype(np.uint8))
    if mode in ("I", "F", "I;16"):
        wide = np.asarray(image.convert("L")).astype({"I": np.int32, "F": np.float32, "I;16": np.uint16}[mode]) * 200
        return PIL.Image.fromarray(wide)
    if mode in ("LA", "RGBA"):
        image = image.convert("RGBA")
        image.putalpha(PIL.Image.fromarray(noise[..., 0].astype(np.uint8) * 2))
    return image.convert(mode)


def difference(name: str, result: object, wanted: object) -> str:
    """How what came out differs from what torchvision gives; "" if it does not."""
    if isinstance(wanted, tuple | list):
        assert isinstance(result, tuple | list)
        pairs = zip(result, wanted, strict=True)
        return "".join(difference(name, *pair) for pair in pairs)
    if isinstance(wanted, Exception) or isinstance(result, Exception):
        same = isinstance(wanted, Exception) and isinstance(result, type(wanted))
        return "" if same else f"{result!r}, expected {wanted!r}"
    if not isinstance(wanted, PIL.Image.Image):
        return "" if type(result) is type(wanted) and np.array_equal(result, wanted) else f"{result}, expected {wanted}"
    assert isinstance(result, PIL.Image.Image)
    if (result.mode, result.size, result.getpalette()) != (wanted.mode, wanted.size, wanted.getpalette()):
        return f"{result}, expected {wanted}"
    off = np.abs(np.asarray(result, np.float64) - np.asarray(wanted, np.float64)).max(initial=0)
    return "" if off <= OF_TENSORS.get(name, 0) else f"off by {off}"


def both(name: str, image: PIL.Image.Image, **arguments: object) -> list:
    """What both sides make of an image, or their errors."""
    result = []
    for module in (F, oracle):
        try:
            result.append(getattr(module, name)(copy.copy(image), **arguments))
        except Exception as error:
            result.append(error)
    return result


def drawn(name: str, rng: random.Random) -> dict:
    """Arguments of a functional, drawn."""
    word = rng.choice(["nearest", "bilinear", "bicubic", "lanczos", "box", "hamming", "nearest-exact"])
    moved = {
        "interpolation": rng.choice(["nearest", "bilinear", "bicubic"]),
        "fill": rng.choice([None, 0, 77, 9.7, [5]]),
    }
    middle = rng.choice([None, [3.0, 5.5], (20, 1)])
    side = lambda: rng.randint(1, 40)  # noqa: E731
    window = {"top": rng.randint(-5, 12), "left": rng.randint(-5, 12), "height": side(), "width": side()}
    return {
        "horizontal_flip": {}, "vertical_flip": {}, "invert": {}, "autocontrast": {}, "equalize": {}, "grayscale_to_rgb": {},
        "crop": window, "center_crop": {"output_size": rng.choice([side(), [side(), side()], [side()]])},
        "five_crop": {"size": rng.choice([rng.randint(1, 20), [rng.randint(1, 17), rng.randint(1, 23)]])},
        "ten_crop": {"size": rng.randint(1, 17), "vertical_flip": rng.random() < 0.5},
        "pad": {"padding": rng.choice([rng.randint(0, 6), [rng.randint(-4, 6), 2], [1, rng.randint(-3, 9), 0, 5]]),
                "fill": moved["fill"] or 0, "padding_mode": rng.choice(["constant", "edge", "reflect", "symmetric"])},
        "resize": {"size": rng.choice([side(), [side(), side()], [side()]]), "interpolation": word},
        "resized_crop": {**window, "size": [side(), side()], "interpolation": word},
        "rotate": {"angle": rng.choice([90, 180, -45, rng.uniform(-400, 400)]), "expand": rng.random() < 0.5, "center": middle,
                   **moved},
        "affine": {"angle": rng.uniform(-180, 180), "translate": (rng.randint(-9, 9), rng.uniform(-5, 5)),
                   "scale": rng.uniform(0.3, 2), "shear": rng.choice([rng.uniform(-40, 40), [7.0], (3, -20)]), "center": middle,
                   **moved},
        "perspective": {"startpoints": CORNERS, "endpoints": [[v + rng.randint(-4, 4) for v in xy] for xy in CORNERS], **moved},
        "adjust_brightness": {"brightness_factor": rng.uniform(-0.5, 3)}, "adjust_contrast": {"contrast_factor": rng.uniform(0, 3)},
        "adjust_saturation": {"saturation_factor": rng.uniform(0, 3)}, "adjust_hue": {"hue_factor": rng.uniform(-0.6, 0.6)},
        "adjust_gamma": {"gamma": rng.uniform(-0.1, 3), "gain": rng.uniform(0.5, 1.5)},
        "adjust_sharpness": {"sharpness_factor": rng.uniform(0, 3)}, "rgb_to_grayscale": {"num_output_channels": rng.randint(1, 3)},
        "posterize": {"bits": rng.randint(0, 8)}, "solarize": {"threshold": rng.randint(0, 255)},
        "permute_channels": {"permutation": rng.sample(range(3), 3)}, "jpeg": {"quality": rng.randint(1, 100)},
        "gaussian_noise": {}, "gaussian_blur": {"kernel_size": rng.choice([1, 3, [3, 5]]), "sigma": rng.uniform(0.2, 2)},
        "erase": {"i": rng.randint(0, 9), "j": rng.randint(0, 9), "h": 5, "w": 6, "v": torch.tensor(rng.randint(0, 1))},
        "get_dimensions": {}, "get_size": {}, "get_num_channels": {}, "uniform_temporal_subsample": {"num_samples": 1},
        "to_dtype": {}, "normalize": {"mean": [0.5], "std": [0.5]},
    }[name]  # fmt: skip


FUNCTIONS = [*GEOMETRY, *COLORS, "five_crop", "ten_crop", "permute_channels", "jpeg", "gaussian_noise", "erase", "get_size",
             "get_dimensions", "get_num_channels", "uniform_temporal_subsample", "to_dtype", "normalize"]  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name != "elastic"])
def test_functions(name, mode):
    rng = random.Random(f"{name} {mode}")
    for seed in range(8):
        arguments = drawn(name, rng)
        result, wanted = both(name, picture(mode, seed), **arguments)
        assert not (text := difference(name, result, wanted)), (arguments, text)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fill", [3, [3], [3, 4], (3, 4, 5), [250.5, 1, 2, 3], -1, 300])
def test_fills(mode, fill):
    for name, arguments in (("rotate", {"angle": 30}), ("pad", {"padding": 3})):
        result, wanted = both(name, picture(mode), **arguments, fill=fill)
        assert not (text := difference(name, result, wanted)), (name, text)


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA"])
def test_elastic(mode):
    way = 0.1 * torch.randn(1, 17, 23, 2, generator=torch.Generator().manual_seed(3))
    for how in ({}, {"interpolation": "nearest", "fill": 5}):
        result, wanted = both("elastic", picture(mode), displacement=way, **how)
        assert not (text := difference("elastic", result, wanted)), text


@pytest.mark.parametrize("name", [n for n in names() if n.startswith(("Random", "Auto", "Color", "Trivial", "Five", "Ten", "Aug",
                                  "Pad", "Resize", "Center", "Gray", "Gaussian", "Elastic", "JPEG", "Scale", "RGB"))
                                  and n not in ("RandomApply", "RandomChoice", "RandomOrder")])  # fmt: skip
@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA", "P", "F"])
@pytest.mark.drawn(1)
def test_transforms(name, mode):
    """The same seed, the same image: once more, and as torchvision's."""
    if (name, mode) == ("AugMix", "F"):
        pytest.skip("what is above 1 wraps around as torchvision makes bytes of it")
    for arguments in CASES.get(name, [()]):
        own, wanted = getattr(v2, name)(*arguments), getattr(theirs, name)(*arguments)
        for seed in range(5):
            image = picture(mode, seed, (61, 47))
            first, second, expected = (outcome(t, copy.copy(image), seed) for t in (own, own, wanted))
            assert not (text := difference(name, first, expected)), (arguments, seed, text)
            assert not difference("", first, second)


def test_an_image_that_stays_is_the_image_itself():
    image = picture("RGB")
    assert F.resize(image, [17, 23]) is image
    assert F.adjust_hue(picture("L"), 0.2).mode == "L"


def test_a_warning_that_antialias_is_always_applied():
    for call in (
        lambda: F.resize(picture("L"), 5, antialias=False),
        lambda: F.resized_crop(picture("L"), 0, 0, 9, 9, [3, 3], antialias=False),
    ):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            call()
        assert [str(w.message)[:10] for w in told] == ["Anti-alias"]
        assert told[0].filename == __file__


def test_keywords():
    image = picture("RGB")
    assert F.rotate(inpt=image, angle=20).tobytes() == F.rotate(image, 20).tobytes()
    assert images(torch.uint8).shape == F.rotate(inpt=images(torch.uint8), angle=20).shape


@pytest.mark.parametrize("size", [[0, 12], [3, 0], [-1, 3], [0], 0])
def test_a_side_without_pixels(size):
    for module in (oracle, F):
        with pytest.raises(ValueError, match=r"> 0|greater than 0"):
            module.resize(picture("RGB"), size)
