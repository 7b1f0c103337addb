"""`ndd.torchvision.v2.functional` beside torchvision's own functions, on generated pictures, boxes and points."""

from __future__ import annotations

import inspect
import types

import numpy as np
import pytest
import torch
from torchvision_cases import COLORS, COPIES, EXACT_COLORS, GEOMETRY, boxes, images

import ndd
from ndd.torchvision.installed import import_torchvision
from ndd.torchvision.v2 import functional as F

try:
    torchvision = import_torchvision()
except ImportError:
    pytest.skip("torchvision is not installed", allow_module_level=True)

from torchvision import tv_tensors
from torchvision.transforms.v2 import functional as oracle

ALL = [(name, case) for table in (GEOMETRY, COLORS) for name, cases in table.items() for case in cases]
OF_GEOMETRY = [(name, case) for name, cases in GEOMETRY.items() for case in cases]
IDS = {"ids": lambda v: v if isinstance(v, str) else "-".join(f"{k}={x}" for k, x in v.items() if k != "displacement")}


def scaled(name, case, dtype):
    """The arguments for pictures of a type: thresholds are shares of white."""
    white = 1 if dtype.is_floating_point else 255
    return {k: v * white if k == "threshold" else v for k, v in case.items()}


def assert_close(output, wanted, name, dtype, case=()):
    assert type(output) is type(wanted)
    assert output.shape == wanted.shape
    assert output.dtype == wanted.dtype
    exact = name in (*COPIES, *EXACT_COLORS) or "nearest" in str(dict(case).get("interpolation", ""))
    bound = 1e-5 if dtype.is_floating_point else 0 if exact else 1
    difference = (torch.Tensor(output).double() - torch.Tensor(wanted).double()).abs().max() if output.numel() else 0
    assert difference <= bound, f"off by {difference}"


def test_every_name_is_here_with_its_signature():
    names = [n for n in dir(oracle) if n[0] != "_" and not isinstance(getattr(oracle, n), types.ModuleType)]
    assert sorted(F.__all__) == sorted(names)
    for name in names:
        if name == "InterpolationMode":
            continue
        ours, theirs = (inspect.signature(getattr(module, name)).parameters.values() for module in (F, oracle))
        seen = [
            [(p.name, str(getattr(p.default, "value", p.default)).replace(".0", "")) for p in s] for s in (ours, theirs)
        ]
        assert seen[0] == seen[1], name


@pytest.mark.parametrize(("name", "case"), ALL, **IDS)
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
@pytest.mark.drawn(3)
def test_images(name, case, dtype):
    case = scaled(name, case, dtype)
    for picture in (images(dtype), images(dtype, 1), images(dtype, 3, (2, 1))):
        output, wanted = (getattr(module, name)(picture, **case) for module in (F, oracle))
        assert_close(output, wanted, name, dtype, case)


@pytest.mark.parametrize(("name", "case"), ALL, **IDS)
@pytest.mark.drawn(2)
def test_tv_tensors_and_empty_ones(name, case):
    case = scaled(name, case, torch.uint8)
    video = tv_tensors.Video(images(torch.uint8, 3, (4,)))
    for value in (tv_tensors.Image(images(torch.uint8)), video):
        if name == "grayscale_to_rgb" and value is video:
            continue
        if hasattr(oracle, f"{name}_video") or value is not video:
            output, wanted = (getattr(module, name)(value, **case) for module in (F, oracle))
            assert_close(output, wanted, name, torch.uint8, case)
    empty = torch.zeros(0, 3, 17, 23, dtype=torch.uint8)
    assert getattr(F, name)(empty, **case).shape[0] == 0


@pytest.mark.parametrize(("name", "case"), OF_GEOMETRY, **IDS)
@pytest.mark.parametrize("dtype", [torch.uint8, torch.bool, torch.int64])
def test_masks(name, case, dtype):
    if case.get("fill") is not None and dtype == torch.bool:
        pytest.skip("a fill for booleans")
    for mask in (images(torch.uint8, 1)[0] // 64, images(torch.uint8, 4) // 64):
        value = tv_tensors.Mask(mask.to(dtype))
        output, wanted = (getattr(module, name)(value, **case) for module in (F, oracle))
        assert type(output) is tv_tensors.Mask
        assert torch.equal(torch.Tensor(output.long()), torch.Tensor(wanted.long()))
        assert output.dtype == wanted.dtype


@pytest.mark.parametrize(("name", "case"), OF_GEOMETRY, **IDS)
@pytest.mark.parametrize("format", ["XYXY", "XYWH", "CXCYWH"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_boxes(name, case, format, dtype):
    if case.get("padding_mode", "constant") != "constant":
        pytest.skip("torchvision has no boxes with such a border")
    for rows in (boxes(dtype, format), boxes(dtype, format)[:0]):
        value = tv_tensors.BoundingBoxes(rows, format=format, canvas_size=(17, 23))
        output, wanted = (getattr(module, name)(value, **case) for module in (F, oracle))
        assert (output.format, tuple(output.canvas_size)) == (wanted.format, tuple(wanted.canvas_size))
        assert output.dtype == wanted.dtype
        torch.testing.assert_close(
            output.as_subclass(torch.Tensor), wanted.as_subclass(torch.Tensor), atol=1e-4, rtol=1e-5
        )


@pytest.mark.parametrize(("name", "case"), OF_GEOMETRY, **IDS)
def test_key_points(name, case):
    if case.get("padding_mode", "constant") != "constant":
        pytest.skip("torchvision has no points with such a border")
    points = torch.tensor([[0.0, 0.0], [22.0, 16.0], [3.5, 4.25], [30.0, -2.0]])
    for rows in (points, points.reshape(2, 2, 2), points[:0]):
        value = tv_tensors.KeyPoints(rows, canvas_size=(17, 23))
        output, wanted = (getattr(module, name)(value, **case) for module in (F, oracle))
        assert tuple(output.canvas_size) == tuple(wanted.canvas_size)
        torch.testing.assert_close(
            output.as_subclass(torch.Tensor), wanted.as_subclass(torch.Tensor), atol=1e-4, rtol=1e-5
        )


@pytest.mark.parametrize(("name", "case"), ALL, **IDS)
@pytest.mark.parametrize("layout", ["HWC", "CHW"])
def test_ragged_batches(name, case, layout):
    """Each picture of a batch comes out as if it went through alone."""
    if name == "elastic":
        pytest.skip("a displacement has one size")
    case = scaled(name, case, torch.uint8)
    pictures = [images(torch.uint8), images(torch.uint8)[:, 1:, :-3].contiguous()]
    order = [1, 2, 0] if layout == "HWC" else [0, 1, 2]
    batch = ndd.batch([p.permute(order).contiguous() for p in pictures], layout=layout)
    output = getattr(F, name)(batch, **case)
    assert isinstance(output, ndd.Batch)
    assert output.layout == layout
    for result, picture in zip(output, pictures, strict=True):
        wanted = getattr(F, name)(picture, **case)
        assert torch.equal(result.torch().permute(np.argsort(order).tolist()), wanted)


PER_SAMPLE = {
    "crop": {"top": [1, 2], "left": [3, 0], "height": 5, "width": [7, 7]},
    "resized_crop": {"top": [1, 2], "left": [3, 0], "height": [5, 9], "width": [7, 7], "size": [6, 6]},
    "affine": {"angle": [30.0, -10.0], "translate": [[1, 2], [3, -4]], "scale": [1.0, 1.3], "shear": [[0, 5], [3, 0]]},
    "rotate": {"angle": [30.0, 90.0]},
    "pad": {"padding": [[1, 2, 3, 4], [0, 1, 0, 1]]},
    "adjust_brightness": {"brightness_factor": [0.5, 1.5]}, "adjust_contrast": {"contrast_factor": [0.5, 1.5]},
    "adjust_saturation": {"saturation_factor": [0.5, 1.5]}, "adjust_hue": {"hue_factor": [0.1, -0.3]},
    "adjust_gamma": {"gamma": [0.5, 1.5]}, "adjust_sharpness": {"sharpness_factor": [0.5, 1.5]},
    "posterize": {"bits": [2, 5]}, "solarize": {"threshold": [100.0, 30.0]},
    "gaussian_blur": {"kernel_size": 5, "sigma": [[1.0, 1.0], [0.4, 2.0]]},
    "erase": {"i": [1, 2], "j": [0, 3], "h": [4, 5], "w": [3, 3], "v": 7},
    "perspective": {"startpoints": None, "endpoints": None,
                    "coefficients": [[0.9, 0.1, 1, -0.1, 1.1, 2, 0.001, 0.0], [1, 0, 1, 0, 1, 2, 0, 0]]},
    "jpeg": {"quality": [20, 90]},
}  # fmt: skip


@pytest.mark.parametrize("name", PER_SAMPLE)
@pytest.mark.parametrize("container", [np.array, torch.tensor, lambda rows: ndd.as_batch(np.array(rows))])
def test_parameters_for_each_sample(name, container):
    pictures = [images(torch.uint8), images(torch.uint8).flip(-1)[:, 1:].contiguous()]
    batch = ndd.batch([p.permute(1, 2, 0).contiguous() for p in pictures], layout="HWC")

    def differs(key, value):
        return isinstance(value, list) and key != "size"

    case = PER_SAMPLE[name]
    output = getattr(F, name)(batch, **{k: container(v) if differs(k, v) else v for k, v in case.items()})
    for i, picture in enumerate(pictures):
        own = {k: v[i] if differs(k, v) else v for k, v in case.items()}
        wanted = getattr(F, name)(picture, **own)
        assert torch.equal(output.tensors[i].torch().permute(2, 0, 1), wanted)
