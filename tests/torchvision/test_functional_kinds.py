"""`ndd.torchvision.v2.functional`: the functions for single kinds, PIL images, `ndd.Targets`, GPUs, and errors."""

from __future__ import annotations

import warnings

import numpy as np
import PIL.Image
import pytest
import torch
import warm_interpreter
from torchvision_cases import COLORS, GEOMETRY, boxes, images

import ndd
from ndd.torchvision.installed import import_torchvision
from ndd.torchvision.v2 import functional as F

try:
    import_torchvision()
except ImportError:
    pytest.skip("torchvision is not installed", allow_module_level=True)

from torchvision import tv_tensors
from torchvision.transforms.v2 import functional as oracle


def both(name, *args, **kwargs):
    return [getattr(module, name)(*args, **kwargs) for module in (F, oracle)]


@pytest.mark.parametrize("source", [torch.uint8, torch.int16, torch.int32, torch.float32, torch.float16, torch.float64])
@pytest.mark.parametrize("target", [torch.uint8, torch.int16, torch.int32, torch.float32, torch.float16, torch.float64])
@pytest.mark.parametrize("scale", [True, False])
def test_to_dtype(source, target, scale):
    if torch.float16 in (source, target) and scale and not (source.is_floating_point and target.is_floating_point):
        pytest.skip("torch computes with float16, in which white overflows")
    if target == torch.float16 and not source.is_floating_point:
        pytest.skip("beyond the range of float16")
    picture = images(torch.float64)
    picture = oracle.to_dtype(picture, source, scale=True) if source != torch.float64 else picture
    try:
        wanted = oracle.to_dtype(picture, target, scale=scale)
    except RuntimeError as error:
        with pytest.raises(RuntimeError, match=str(error).split("cannot")[0]):
            F.to_dtype(picture, target, scale=scale)
        return
    result = F.to_dtype(picture, target, scale=scale)
    assert result.dtype == target
    bound = 1e-3 if torch.float16 in (source, target) else 1e-6
    bound = bound if target.is_floating_point else 1 if source == torch.float16 else 0
    assert (result.double() - wanted.double()).abs().max() <= bound


def test_types_of_what_is_no_picture_change_without_scale():
    mask = tv_tensors.Mask(torch.ones(2, 3, dtype=torch.uint8))
    result, wanted = both("to_dtype", mask, torch.float32, scale=True)
    assert type(result) is type(wanted)
    assert torch.equal(torch.Tensor(result), torch.Tensor(wanted))


@pytest.mark.parametrize(("mean", "std"), [([0.4, 0.5, 0.6], [0.2, 0.3, 0.1]), ([0.5], [0.5]), (0.5, 2.0)])
def test_normalize(mean, std):
    for picture in (images(torch.float32), images(torch.float32, 3, (2, 2))):
        result, wanted = both("normalize", picture, mean, std)
        torch.testing.assert_close(result, wanted, atol=1e-5, rtol=1e-5)
    layout = ndd.batch([images(torch.float32).permute(1, 2, 0).contiguous()] * 2, layout="HWC")
    torch.testing.assert_close(
        F.normalize(layout, mean, std).torch()[0].permute(2, 0, 1), oracle.normalize(images(torch.float32), mean, std)
    )
    picture = images(torch.float32)
    assert F.normalize(picture, mean, std, inplace=True) is picture
    torch.testing.assert_close(picture, oracle.normalize(images(torch.float32), mean, std))


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("container", [list, np.array, torch.tensor])
@pytest.mark.parametrize("layout", ["HWC", "CHW"])
def test_normalize_by_channels_whatever_the_number_of_samples(n, container, layout):
    mean, std = [0.4, 0.5, 0.6], [0.2, 0.3, 0.1]
    pictures = images(torch.float32, 3, (n,))
    order = [0, 2, 3, 1] if layout == "HWC" else [0, 1, 2, 3]
    result = F.normalize(
        ndd.as_batch(pictures.permute(order).contiguous(), layout=layout), container(mean), container(std)
    )
    back = np.argsort(order).tolist()
    torch.testing.assert_close(
        result.torch().permute(back), oracle.normalize(pictures, mean, std), atol=1e-5, rtol=1e-5
    )
    assert torch.equal(F.normalize(pictures, container(mean), container(std)), F.normalize(pictures, mean, std))
    rows = np.random.default_rng(1).uniform(0.1, 1, (2, n, 3))
    each = F.normalize(ndd.as_batch(pictures, layout="CHW"), *rows)
    wanted = torch.stack(
        [oracle.normalize(p, *r.tolist()) for p, r in zip(pictures, rows.transpose(1, 0, 2), strict=True)]
    )
    torch.testing.assert_close(each.torch(), wanted, atol=1e-5, rtol=1e-5)


def test_vectors_of_as_many_numbers_as_there_are_samples():
    """They are one vector, and not a number for each sample."""
    pictures = images(torch.uint8, 3, (2,))
    batch, case = ndd.as_batch(pictures, layout="CHW"), {"angle": 0, "scale": 1.0, "shear": 0}
    wanted = oracle.affine(pictures, translate=[3, -2], **case)
    for translate in ([3, -2], np.array([3, -2]), torch.tensor([3, -2])):
        assert torch.equal(F.affine(batch, translate=translate, **case).torch(), wanted)
    numbers = [0.9, 0.1, 1, -0.1, 1.1, 2, 0.001, -0.002]
    eight = images(torch.uint8, 3, (8,))
    result = F.perspective(ndd.as_batch(eight, layout="CHW"), None, None, coefficients=np.array(numbers))
    assert (result.torch().int() - oracle.perspective(eight, None, None, coefficients=numbers).int()).abs().max() <= 1


@pytest.mark.parametrize(
    "v", [torch.tensor(3.0), torch.tensor([1.0, 2.0, 3.0])[:, None, None], torch.rand(3, 5, 6) * 255]
)
def test_erase(v):
    for dtype in (torch.uint8, torch.float32):
        for picture in (images(dtype), images(dtype, 3, (2,))):
            result, wanted = both("erase", picture, 2, 3, 5, 6, v.to(dtype))
            assert torch.equal(result, wanted)
    picture = images(torch.float32)
    assert F.erase(picture, 2, 3, 5, 6, v, inplace=True) is picture
    assert torch.equal(picture, oracle.erase(images(torch.float32), 2, 3, 5, 6, v))


def test_noise_is_torchs_for_tensors_and_repeats_for_batches():
    for dtype in (torch.uint8, torch.float32):
        results = []
        for module in (F, oracle):
            torch.manual_seed(3)
            results.append(module.gaussian_noise(images(dtype), mean=0.1, sigma=0.2))
        torch.testing.assert_close(*results, atol=1e-5, rtol=0)
    batch = ndd.batch([images(torch.uint8), images(torch.uint8)[:, 3:]], layout="CHW")
    torch.manual_seed(4)
    first = F.gaussian_noise(batch, sigma=0.2)
    torch.manual_seed(4)
    second = F.gaussian_noise(batch, sigma=0.2)
    assert all(torch.equal(a.torch(), b.torch()) for a, b in zip(first, second, strict=True))
    assert not torch.equal(first.tensors[0].torch(), batch.tensors[0].torch())


@pytest.mark.parametrize("quality", [10, 75])
def test_jpeg_is_near_libjpegs(quality):
    picture = PIL.Image.fromarray(images(torch.uint8).permute(1, 2, 0).numpy()).resize((64, 48), PIL.Image.BICUBIC)
    result = F.jpeg(F.pil_to_tensor(picture), quality)
    assert abs(result.int() - F.pil_to_tensor(oracle.jpeg(picture, quality)).int()).float().mean() < 3


def test_frames_and_channels():
    video = torch.arange(9.0).reshape(9, 1, 1, 1).expand(9, 3, 2, 2)
    for count in (1, 4, 9, 20):
        assert torch.equal(*both("uniform_temporal_subsample", tv_tensors.Video(video), count))
    batch = ndd.batch([video[:n].permute(0, 2, 3, 1).contiguous() for n in (9, 5)], layout="FHWC")
    for result, n in zip(F.uniform_temporal_subsample(batch, 3), (9, 5), strict=True):
        assert (
            result.torch()[:, 0, 0, 0].tolist() == oracle.uniform_temporal_subsample(video[:n], 3)[:, 0, 0, 0].tolist()
        )
    assert torch.equal(*both("permute_channels", images(torch.uint8), [2, 0, 1]))


@pytest.mark.parametrize("name", ["five_crop", "ten_crop"])
def test_several_crops(name):
    for picture in (images(torch.uint8), tv_tensors.Image(images(torch.uint8))):
        result, wanted = both(name, picture, [5, 6])
        assert [type(m) for m in result] == [type(w) for w in wanted]
        assert all(torch.equal(torch.Tensor(m), torch.Tensor(w)) for m, w in zip(result, wanted, strict=True))
    with pytest.raises(ValueError, match="bigger than input size"):
        F.five_crop(images(torch.uint8), [18, 6])


def test_pictures_of_other_libraries():
    picture = images(torch.uint8)
    for pic in (
        picture,
        picture[:1],
        images(torch.float32),
        torch.zeros(4, 3, 3, dtype=torch.uint8),
        torch.zeros(1, 2, 2),
    ):
        result, wanted = both("to_pil_image", pic)
        assert (result.mode, result.tobytes()) == (wanted.mode, wanted.tobytes())
    image = oracle.to_pil_image(picture)
    for value in (image, np.asarray(image), image.convert("L")):
        result, wanted = both("to_image", value)
        assert type(result) is type(wanted)
        assert torch.equal(result, wanted)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert torch.equal(*both("to_tensor", value))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours, theirs = both("to_tensor", PIL.Image.fromarray(np.array([[0, 40000]], np.uint16)))
    assert (ours.dtype, ours.tolist()) == (theirs.dtype, theirs.tolist())
    assert torch.equal(*both("pil_to_tensor", image))
    assert F.to_image(ndd.tensor(np.zeros((2, 3, 1), np.uint8), layout="HWC")).layout == "CHW"


def test_metadata():
    video = tv_tensors.Video(images(torch.uint8, 3, (4,)))
    mask, rows = (
        tv_tensors.Mask(torch.zeros(4, 5)),
        tv_tensors.BoundingBoxes([[0, 0, 1, 1]], format="XYXY", canvas_size=(4, 5)),
    )
    for value in (images(torch.uint8), video, oracle.to_pil_image(images(torch.uint8))):
        for name in ("get_dimensions", "get_size", "get_num_channels"):
            ours, theirs = both(name, value)
            assert ours == theirs
    assert F.get_size(mask) == F.get_size(rows) == [4, 5]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for value in (video, mask, rows):
            assert F.get_image_size(value) == oracle.get_image_size(value)
            for dtype in (torch.float32, torch.float64, torch.int16):
                ours, theirs = both("convert_image_dtype", value, dtype)
                assert type(ours) is type(theirs)
                assert torch.equal(ours, theirs)
    assert F.get_num_frames(video) == 4
    assert F.get_size_bounding_boxes(rows) == [4, 5]
    assert F.get_dimensions(ndd.batch([np.zeros((4, 5, 3), np.uint8)] * 2, layout="HWC")) == [3, 4, 5]
    with pytest.raises(TypeError):
        F.get_dimensions(rows)


@pytest.mark.parametrize("old", ["XYXY", "XYWH", "CXCYWH"])
@pytest.mark.parametrize("new", ["XYXY", "xywh", "CXCYWH"])
@pytest.mark.parametrize("dtype", [torch.int64, torch.float32])
def test_formats_of_boxes(old, new, dtype):
    rows = torch.randint(1, 30, (50, 4), generator=torch.Generator().manual_seed(1)).to(dtype)
    assert torch.equal(*both("convert_bounding_box_format", rows, old, new))
    value = tv_tensors.BoundingBoxes(rows, format=old, canvas_size=(20, 20))
    result, wanted = both("convert_bounding_box_format", value, new_format=new)
    assert result.format == wanted.format
    assert torch.equal(torch.Tensor(result), torch.Tensor(wanted))
    for mode in ("soft", None):
        assert torch.equal(
            *both("clamp_bounding_boxes", rows, getattr(tv_tensors.BoundingBoxFormat, old), (15, 20), mode)
        )
    result, wanted = both("sanitize_bounding_boxes", value, min_size=3, min_area=20)
    assert torch.equal(result[1], wanted[1])
    assert torch.equal(torch.Tensor(result[0]), torch.Tensor(wanted[0]))


def test_points_inside():
    points = torch.tensor([[[0.0, 0.0], [19.0, 14.0]], [[-1.0, 3.0], [5.0, 5.0]], [[20.0, 3.0], [5.0, 15.0]]])
    value = tv_tensors.KeyPoints(points, canvas_size=(15, 20))
    assert torch.equal(*map(torch.Tensor, both("clamp_keypoints", value)))
    result, wanted = both("sanitize_keypoints", value)
    assert torch.equal(result[1], wanted[1])


ON_GPU = [
    (name, cases[-1]) for table in (GEOMETRY, COLORS) for name, cases in table.items() if name not in ("elastic",)
]  # fmt: skip


@pytest.mark.drawn(1)
@pytest.mark.parametrize(("name", "case"), ON_GPU)
def test_gpu_as_cpu(emulated_gpu, name, case):
    case = {k: 90 if k == "threshold" else v for k, v in case.items()}
    batch = ndd.batch([images(torch.uint8), images(torch.uint8)[:, 1:, :-3].contiguous()], layout="CHW")
    on_cpu, on_gpu = (getattr(F, name)(b, **case) for b in (batch, batch.gpu()))
    for a, b in zip(on_cpu, on_gpu.cpu(), strict=True):
        assert (a.torch().int() - b.torch().int()).abs().max() <= 1


def targets():
    corners = boxes(torch.float32, "XYXY")[:2] / torch.tensor([23, 17, 23, 17])
    return ndd.Targets(
        ndd.batch([images(torch.uint8)] * 2, layout="CHW"),
        ndd.batch([corners.contiguous()] * 2),
        masks=ndd.batch([torch.arange(17 * 23).reshape(17, 23).to(torch.uint8)] * 2, layout="HW"),
        points=ndd.batch([torch.tensor([[0.25, 0.5]])] * 2),
    )


@pytest.mark.parametrize(("name", "case"), [
    ("horizontal_flip", {}), ("crop", GEOMETRY["crop"][0]), ("center_crop", {"output_size": [9, 12]}),
    ("resize", {"size": [30, 40]}), ("resized_crop", GEOMETRY["resized_crop"][0]), ("pad", {"padding": [1, 2, 3, 4]}),
    ("rotate", {"angle": 30, "expand": True}), ("affine", GEOMETRY["affine"][0]),
])  # fmt: skip
@pytest.mark.drawn(2)
def test_targets_follow(name, case):
    result = getattr(F, name)(targets(), **case)
    assert torch.equal(result.images.torch()[0], getattr(F, name)(images(torch.uint8), **case))
    height, width = result.images.torch().shape[-2:]
    rows = tv_tensors.BoundingBoxes(boxes(torch.float32, "XYXY")[:2], format="XYXY", canvas_size=(17, 23))
    wanted = getattr(oracle, name)(rows, **case)
    pixels = result.boxes.tensors[0].torch() * torch.tensor([width, height, width, height])
    torch.testing.assert_close(pixels, torch.Tensor(wanted), atol=1e-3, rtol=1e-4)
    mask = tv_tensors.Mask(torch.arange(17 * 23).reshape(17, 23).to(torch.uint8))
    assert torch.equal(result.masks.torch()[0], torch.Tensor(getattr(oracle, name)(mask, **case)).to(torch.uint8))
    assert result.points.torch().shape == (2, 1, 2)


def test_targets_of_other_formats_follow():
    """Boxes in pixels, points of each box, labels of pixels, and what belongs to boxes."""
    rows = torch.tensor([[1.0, 2, 6, 7], [3, 3, 10, 4]])
    whole = ndd.Targets(
        ndd.tensor(images(torch.uint8), layout="CHW"),
        rows,
        points=torch.tensor([[[1.0, 2], [3, 4], [5, 6]], [[2, 2], [3, 3], [4, 4]]]),
        semantic=ndd.tensor(torch.arange(17 * 23).reshape(17, 23).to(torch.uint8), layout="HW"),
        format="xywh",
        normalized=False,
        area=[42, 40],
    )
    result = F.crop(whole, 1, 2, 15, 20)
    assert (result.format, result.normalized, result.area.torch().tolist()) == ("xywh", False, [42, 40])
    value = tv_tensors.BoundingBoxes(rows, format="XYWH", canvas_size=(17, 23))
    torch.testing.assert_close(
        result.boxes.torch(), torch.Tensor(oracle.crop(value, 1, 2, 15, 20)), atol=1e-4, rtol=1e-5
    )
    torch.testing.assert_close(
        result.points.torch()[0], torch.tensor([[-1.0, 1], [1, 3], [3, 5]]), atol=1e-4, rtol=1e-5
    )
    assert torch.equal(result.semantic.torch(), whole.semantic.torch()[1:16, 2:22])


@pytest.mark.parametrize(("name", "value", "case"), [
    ("resize", "picture", {"size": [3, 4], "max_size": 5}),
    ("resize", "picture", {"size": 4, "max_size": 4}), ("resize", "picture", {"size": 4, "interpolation": "best"}),
    ("resize", "picture", {"size": 4, "interpolation": "lanczos", "antialias": False}), ("pad", "picture", {"padding": [1, 2, 3]}),
    ("pad", "picture", {"padding": "1"}), ("pad", "picture", {"padding": 1, "padding_mode": "wrap"}),
    ("pad", "picture", {"padding": 1, "fill": [1, 2, 3], "padding_mode": "edge"}),
    ("pad", "picture", {"padding": 30, "padding_mode": "reflect"}),
    ("affine", "picture", {"angle": 0, "translate": [1], "scale": 1.0, "shear": 0}),
    ("affine", "picture", {"angle": 0, "translate": [1, 1], "scale": 0.0, "shear": 0}),
    ("affine", "picture", {"angle": 0, "translate": [1, 1], "scale": 1.0, "shear": 0, "interpolation": "bicubic"}),
    ("rotate", "picture", {"angle": 30, "fill": [1, 2]}), ("adjust_hue", "picture", {"hue_factor": 0.6}),
    ("adjust_brightness", "picture", {"brightness_factor": -1}), ("adjust_brightness", "boxes", {"brightness_factor": 1}),
    ("posterize", "picture", {"bits": 9}), ("solarize", "picture", {"threshold": 256}),
    ("gaussian_blur", "picture", {"kernel_size": 4}), ("gaussian_blur", "picture", {"kernel_size": 3, "sigma": -1.0}),
    ("normalize", "picture", {"mean": [0.5], "std": [0.5]}), ("rgb_to_grayscale", "picture", {"num_output_channels": 2}),
    ("perspective", "picture", {"startpoints": None, "endpoints": None}),
    ("elastic", "picture", {"displacement": torch.zeros(1, 2, 2, 2)}),
])  # fmt: skip
def test_errors_are_torchvisions(name, value, case):
    value = (
        images(torch.uint8)
        if value == "picture"
        else tv_tensors.BoundingBoxes([[0, 0, 1, 1]], format="XYXY", canvas_size=(4, 5))
    )
    with pytest.raises(Exception) as theirs:
        getattr(oracle, name)(value, **case)
    with pytest.raises(Exception) as ours:
        getattr(F, name)(value, **case)
    kinds = theirs.type, ours.type
    assert issubclass(ours.type, theirs.type) or set(kinds) <= {RuntimeError, NotImplementedError, ValueError}, kinds


def test_without_torchvision():
    """The package imports neither torchvision nor Pillow, and works where there is no torchvision."""
    code = (
        "import sys; sys.modules['torchvision'] = None\n"
        "import torch\nfrom ndd.torchvision.v2 import functional as F, InterpolationMode\n"
        "assert F.resize(torch.zeros(3, 4, 6), 2, InterpolationMode.BICUBIC).shape == (3, 2, 3)\n"
        "assert F.to_image(torch.zeros(3, 4, 6)).shape == (3, 4, 6)\n"
    )
    done = warm_interpreter.run(code)
    assert done.returncode == 0, done.stderr


def test_pictures_without_channels_as_images():
    plane = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    images = ndd.as_batch(plane[None], layout="HW")
    result = F.to_image(images)
    assert (result.layout, result.shape) == ("CHW", [(1, 2, 3)])
    assert torch.equal(result.torch()[0, 0], plane)
    assert torch.equal(F.normalize(images, [1.0], [2.0]).torch()[0], (plane - 1) / 2)
    assert F.rgb_to_grayscale(images, 3).shape == F.grayscale_to_rgb(images).shape == [(2, 3, 3)]
    patch = torch.tensor([[[7.0, 8.0]]])
    assert torch.equal(F.erase(images, 1, 0, 1, 2, patch).torch()[0], F.erase(plane[None], 1, 0, 1, 2, patch)[0])
    flat = ndd.as_batch(torch.full((1, 16, 16), 99, dtype=torch.uint8), layout="HW")
    assert torch.equal(F.jpeg(flat, 50).torch(), F.jpeg(flat.torch()[:, None], 50)[:, 0])
