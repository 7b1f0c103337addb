"""`ndd.torchvision.v2.functional` beside torchvision's own functions on element types and parameters that are seldom met."""

from __future__ import annotations

import pytest
import torch

import ndd
from ndd.torchvision.installed import import_torchvision
from ndd.torchvision.v2 import functional as F

try:
    import_torchvision()
except ImportError:
    pytest.skip("torchvision is not installed", allow_module_level=True)

from torchvision import tv_tensors
from torchvision.transforms.v2 import functional as oracle

WHOLE = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
REAL = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
MADE = torch.Generator().manual_seed(8)


def picture(dtype, *shape):
    """Numbers of the whole range of a type, for int32 and int64 as far as float32 has them all."""
    if dtype.is_floating_point:
        return torch.rand(shape, generator=MADE, dtype=torch.float64).to(dtype)
    return torch.randint(0, min(torch.iinfo(dtype).max, 1 << 23), shape, generator=MADE).to(dtype)


def assert_same(name, value, bound=0.0, **case):
    ours, theirs = (getattr(module, name)(value, **case) for module in (F, oracle))
    assert type(ours) is type(theirs)
    assert ours.dtype == theirs.dtype
    assert ours.shape == theirs.shape
    assert not ours.numel() or (ours.double() - theirs.double()).abs().max() <= bound


def assert_both_refuse(name, value, kind, **case):
    for module in (oracle, F):
        with pytest.raises(kind):
            getattr(module, name)(value, **case)


@pytest.mark.parametrize("name", ["saturation", "contrast", "brightness", "sharpness"])
@pytest.mark.drawn(1)
def test_a_factor_less_than_one_is_subtracted_before_it_is_rounded(name):
    """1 - 1.0794992871636797 rounded to float32 is not 1 less the rounded factor: so bytes differed by 1."""
    for factor in (1.0794992871636797, 0.1, 1.9, 2.71828, 0.3333333):
        for size in ((64, 48), (1, 1), (2, 3)):
            assert_same(f"adjust_{name}", picture(torch.uint8, 3, *size), **{f"{name}_factor": factor})


@pytest.mark.parametrize("name", ["saturation", "sharpness"])
def test_a_factor_for_each_sample_likewise(name):
    factors = torch.tensor([1.0794992871636797, 0.1, 1.9], dtype=torch.float64)
    images = picture(torch.uint8, 3, 3, 40, 30)
    ours = getattr(F, f"adjust_{name}")(ndd.as_batch(images, layout="CHW"), factors.numpy()).torch()
    wanted = [getattr(oracle, f"adjust_{name}")(x, f) for x, f in zip(images, factors.tolist(), strict=True)]
    assert torch.equal(ours, torch.stack(wanted))


@pytest.mark.parametrize("source", WHOLE)
@pytest.mark.parametrize("target", WHOLE)
def test_whole_numbers_are_scaled_to_others(source, target):
    assert_same("to_dtype", picture(source, 2, 3, 4), dtype=target, scale=True)


def test_white_of_truth_values_is_one():
    value = picture(torch.float32, 3, 4, 5) < 0.5
    for dtype in REAL:
        assert_same("to_dtype", value, dtype=dtype, scale=True)
        assert_same("to_dtype", tv_tensors.Image(value), dtype=dtype, scale=True)
    assert_both_refuse("to_dtype", value, TypeError, dtype=torch.uint8, scale=True)


@pytest.mark.parametrize(
    ("name", "case"), [("invert", {}), ("equalize", {}), ("posterize", {"bits": 3}), ("solarize", {"threshold": 1})]
)
def test_levels_of_truth_values_are_refused(name, case):
    assert_both_refuse(name, picture(torch.float32, 3, 4, 5) < 0.5, TypeError, **case)


def test_noise_is_for_bytes_and_fractions():
    for value in (picture(torch.int16, 3, 4, 5), picture(torch.float32, 3, 4, 5) < 0.5):
        assert_both_refuse("gaussian_noise", value, ValueError)
    assert_same("gaussian_noise", picture(torch.float32, 4, 5), bound=1e-6, mean=0.1, sigma=0.0)


def test_videos_are_not_made_grey():
    video = tv_tensors.Video(picture(torch.uint8, 2, 3, 4, 5))
    for name in ("rgb_to_grayscale", "grayscale_to_rgb"):
        assert_both_refuse(name, video, TypeError)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
@pytest.mark.parametrize(
    ("name", "case"), [("invert", {}), ("solarize", {"threshold": 128}), ("equalize", {}), ("posterize", {"bits": 2})]
)
def test_levels_of_wide_numbers(name, case, dtype):
    assert_same(name, picture(dtype, 3, 6, 5), **case)


@pytest.mark.parametrize("dtype", REAL)
def test_gamma_and_contrast_of_all_fractions(dtype):
    bound = {torch.float16: 2e-3, torch.bfloat16: 2e-2}.get(dtype, 1e-5)
    assert_same("adjust_gamma", picture(dtype, 3, 6, 5), bound, gamma=0.5, gain=0.9)
    assert_same("autocontrast", picture(dtype, 3, 6, 5), bound)


@pytest.mark.parametrize("angle", [0, 90, 180, 270, 360, -90, 450.0])
@pytest.mark.parametrize("expand", [False, True])
@pytest.mark.parametrize("size", [(2, 3), (5, 5), (1, 7), (7, 1), (4, 6)])
def test_quarters_of_a_turn_copy_pixels(angle, expand, size):
    case = {"angle": angle, "expand": expand}
    for value in (picture(torch.uint8, 3, *size), tv_tensors.Image(picture(torch.float32, 3, *size))):
        assert_same("rotate", value, 0 if expand or value.dtype is torch.uint8 else 1e-5, **case)
    assert_same("rotate", tv_tensors.Mask(picture(torch.uint8, 2, *size)), fill=1, **case)
    # In torchvision the fill and the interpolation of what is copied need not fit.
    if expand:
        assert_same("rotate", picture(torch.uint8, 2, *size), fill=[1, 2, 3], interpolation="bicubic", **case)


def test_quarters_of_a_turn_of_a_batch():
    images = picture(torch.uint8, 2, 3, 4, 6)
    for layout, value in (("CHW", images), ("HWC", images.permute(0, 2, 3, 1).contiguous())):
        turned = F.rotate(ndd.as_batch(value, layout=layout), 90, expand=True)
        wanted = oracle.rotate(images, 90, expand=True)
        assert turned.layout == layout
        assert torch.equal(turned.torch(), wanted if layout == "CHW" else wanted.permute(0, 2, 3, 1))


@pytest.mark.parametrize("fill", [0.5, 1.5, 2.5, 7.0])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int64, torch.float32])
def test_a_fill_between_two_numbers(fill, dtype):
    value = picture(dtype, 3, 6, 8)
    assert_same("rotate", value, angle=30.0, fill=fill)
    assert_same("affine", value, angle=10.0, translate=[3, 0], scale=1.0, shear=[0.0, 0.0], fill=[fill] * 3)
    corners = [[0, 0], [7, 0], [7, 5], [0, 5]], [[2, 1], [6, 0], [7, 5], [1, 4]]
    assert_same("perspective", value, startpoints=corners[0], endpoints=corners[1], interpolation="nearest", fill=fill)


def test_a_fill_that_the_type_cannot_hold():
    assert_both_refuse("pad", picture(torch.int8, 3, 4, 5), RuntimeError, padding=1, fill=255)


def test_a_side_without_pixels():
    value = picture(torch.uint8, 3, 2, 40)
    assert_both_refuse("resize", value, RuntimeError, size=None, max_size=9)
    assert_both_refuse("resize", tv_tensors.Mask(value), RuntimeError, size=[8], max_size=9)
    with pytest.raises(RuntimeError, match="greater than 0"):
        F.resize(ndd.as_batch(value[None], layout="CHW"), None, max_size=9)


def test_numbers_of_sixteen_bits_as_an_image_of_pillow():
    value = picture(torch.int16, 1, 4, 5)
    ours, theirs = (module.to_pil_image(value) for module in (F, oracle))
    assert (ours.mode, ours.size, ours.tobytes()) == (theirs.mode, theirs.size, theirs.tobytes())


def test_windows_over_boxes_are_for_images():
    from torchvision.transforms import v2 as theirs

    from ndd.torchvision import v2 as ours

    boxes = tv_tensors.BoundingBoxes([[0.0, 0.0, 4.0, 4.0]], format="XYXY", canvas_size=(4, 5))
    for module in (theirs, ours):
        with pytest.raises(TypeError, match="image"):
            module.RandomIoUCrop()(tv_tensors.Video(picture(torch.uint8, 2, 3, 4, 5)), boxes)


@pytest.mark.parametrize("count", [0, 1])
@pytest.mark.parametrize("size", [(1, 7), (5, 8)])
def test_masks_of_no_objects_turn_with_their_image(count, size):
    for angle in (13.0, 45.0, 90):
        assert_same("rotate", tv_tensors.Mask(torch.ones(count, *size, dtype=torch.uint8)), angle=angle, expand=True)


def test_some_samples_without_objects_turn_with_the_others():
    masks = [picture(torch.uint8, n, 5, 8) for n in (0, 2)]
    images = picture(torch.uint8, 2, 3, 5, 8)
    targets = ndd.Targets(ndd.as_batch(images, layout="CHW"), masks=ndd.batch(masks, layout="NHW"))
    turned = F.rotate(targets, 30.0, expand=True)
    for ours, mask in zip(turned.masks, masks, strict=True):
        wanted = oracle.rotate(tv_tensors.Mask(mask), 30.0, expand=True)
        assert torch.equal(ours.torch(), torch.Tensor(wanted).to(torch.uint8))


@pytest.mark.parametrize("source", [*WHOLE, torch.float32])
@pytest.mark.parametrize("target", [*WHOLE, torch.bool, torch.float32])
def test_values_of_a_batch_are_converted_as_tensors_are(source, target):
    """Of whole numbers the lowest bits stay."""
    value = picture(source, 2, 5, 6, 3)
    value = value * 100 if source.is_floating_point else value - torch.iinfo(source).max // 3
    value[:, 0] = 0
    made = F.to_dtype(ndd.as_batch(value, layout="HWC"), target, scale=False)
    assert torch.equal(made.torch(), value.to(target))


def test_a_fill_without_effect_is_not_looked_at():
    assert_same("pad", picture(torch.uint8, 1, 4, 5), padding=[0, 0], fill=[1, 2, 3])


def test_no_gradient_is_lost_without_a_warning():
    value = picture(torch.float32, 3, 4, 5).requires_grad_()
    for name, arguments in (("horizontal_flip", ()), ("resize", ([2, 2],)), ("adjust_brightness", (2.0,))):
        with pytest.warns(UserWarning, match="no gradient flows back"):
            made = getattr(F, name)(value, *arguments)
        assert not made.requires_grad
        torch.testing.assert_close(made, getattr(oracle, name)(value, *arguments).detach(), rtol=0, atol=1e-5)


def test_tensors_of_other_devices_are_named():
    with pytest.raises(RuntimeError, match="'meta': expected one on the CPU or a CUDA GPU"):
        F.horizontal_flip(torch.zeros(3, 4, 5, device="meta"))


@pytest.mark.parametrize("source", REAL)
def test_floats_as_bools_of_the_whole_range(source):
    value = picture(source, 3, 4, 5)
    value[:, 0] = 0
    for made in (
        F.to_dtype(value, torch.bool, scale=True),
        F.to_dtype(ndd.as_batch(value[None], layout="CHW"), torch.bool, scale=True),
    ):
        made = made if isinstance(made, torch.Tensor) else made.torch()[0]
        assert torch.equal(made, oracle.to_dtype(value, torch.bool, scale=True))


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(("mean", "std"), [([0.5], [0.1, 0.2, 0.3]), ([0.5, 0.4, 0.3], [0.1]), ([0.5], [0.2])])
def test_numbers_of_other_channels_in_a_batch(channels, mean, std):
    value = picture(torch.float32, channels, 4, 5)
    wanted = None if channels == len(mean) < len(std) else oracle.normalize(value, mean, std)
    for pictures in (value, ndd.as_batch(value[None], layout="CHW")):
        if wanted is None:
            with pytest.raises(RuntimeError, match="std"):
                F.normalize(pictures, mean, std)
        else:
            made = F.normalize(pictures, mean, std)
            torch.testing.assert_close(made if pictures is value else made.torch()[0], wanted)
