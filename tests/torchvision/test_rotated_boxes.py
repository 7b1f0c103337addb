"""Rotated boxes through `ndd.torchvision`: what torchvision makes of them, in each format and each way of clamping."""

from __future__ import annotations

import pytest
import torch
from torchvision_cases import GEOMETRY
from torchvision_classes import CASES, outcome, theirs

from ndd.torchvision import v2
from ndd.torchvision.v2 import functional as F

from torchvision import tv_tensors  # isort: skip

oracle = theirs.functional
FORMATS = ("XYWHR", "CXCYWHR", "XYXYXYXY")
CANVAS = (17, 23)
MODES = ("soft", "hard", None)


def rotated(
    format: str, seed: int = 0, mode: str | None = "soft", dtype: torch.dtype = torch.float32
) -> tv_tensors.BoundingBoxes:
    """Boxes inside, across the border and outside of 17 x 23 pixels, at any angle; some are upright, some without area."""
    result = torch.Generator().manual_seed(seed)
    centres = torch.rand(80, 2, generator=result, dtype=dtype) * torch.tensor([33.0, 27.0]).to(dtype) - 5
    sides = torch.rand(80, 2, generator=result, dtype=dtype) * 12 + 0.1
    angles = torch.rand(80, 1, generator=result, dtype=dtype) * 720 - 360
    angles[:8] = torch.tensor([0.0, 90, 180, -90, 270, 45, 360, 0])[:, None].to(dtype)
    sides[8:10] = 0
    rows = torch.cat([centres, sides, angles], dim=1)
    if format != "CXCYWHR":
        rows = oracle.convert_bounding_box_format(rows, old_format="CXCYWHR", new_format=format)
    return tv_tensors.BoundingBoxes(rows, format=format, canvas_size=CANVAS, clamping_mode=mode)


def assert_same(result, wanted):
    assert type(result) is type(wanted)
    if isinstance(wanted, tv_tensors.BoundingBoxes):
        for fact in ("format", "canvas_size", "clamping_mode", "dtype"):
            assert getattr(result, fact) == getattr(wanted, fact), fact
    result, wanted = torch.Tensor(result).double(), torch.Tensor(wanted).double()
    torch.testing.assert_close(result, wanted, atol=1e-4, rtol=1e-5, equal_nan=True)


@pytest.mark.parametrize("old", FORMATS)
@pytest.mark.parametrize("new", FORMATS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_formats(old, new, dtype):
    boxes = rotated(old, dtype=dtype)
    assert_same(*(m.convert_bounding_box_format(boxes, new_format=new) for m in (F, oracle)))
    plain = torch.Tensor(boxes).reshape(2, 40, -1) if new != "XYXYXYXY" else boxes.as_subclass(torch.Tensor)
    assert_same(*(m.convert_bounding_box_format(plain.clone(), old, new, inplace=True) for m in (F, oracle)))
    with pytest.raises(ValueError, match="rotated and unrotated"):
        F.convert_bounding_box_format(boxes, new_format="XYXY")


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.drawn(1)
def test_clamping(format, mode):
    for seed in range(4):
        boxes = rotated(format, seed, mode)
        assert_same(*(m.clamp_bounding_boxes(boxes) for m in (F, oracle)))
        plain = boxes.as_subclass(torch.Tensor)
        member = tv_tensors.BoundingBoxFormat[format]
        assert_same(*(m.clamp_bounding_boxes(plain, member, (12, 30), mode) for m in (F, oracle)))


@pytest.mark.parametrize("format", FORMATS)
def test_sanitizing(format):
    boxes = F.clamp_bounding_boxes(rotated(format), clamping_mode="hard")
    for arguments in ({}, {"min_size": 2.0}, {"min_area": 30.0}):
        result, wanted = (m.sanitize_bounding_boxes(boxes, **arguments) for m in (F, oracle))
        assert_same(result[0], wanted[0])
        assert torch.equal(result[1], wanted[1])
        assert 0 < int(result[1].sum()) < len(boxes)


@pytest.mark.parametrize(
    ("name", "case"),
    [(n, c) for n, cases in GEOMETRY.items() for c in cases if c.get("padding_mode", "constant") == "constant"],
    ids=lambda v: v if isinstance(v, str) else "-".join(f"{k}={x}" for k, x in v.items() if k != "displacement"),
)
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.drawn(3)
def test_geometry(name, case, format, mode):
    for boxes in (rotated(format, 1, mode), rotated(format, 2, mode)[:0], rotated(format, 3, mode, torch.float64)):
        boxes = tv_tensors.wrap(boxes, like=rotated(format, 0, mode))
        assert_same(*(getattr(m, name)(boxes, **case) for m in (F, oracle)))


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", [
    "RandomHorizontalFlip", "RandomVerticalFlip", "RandomRotation", "RandomAffine", "RandomPerspective", "ElasticTransform",
    "RandomCrop", "RandomResizedCrop", "RandomZoomOut", "RandomResize", "RandomShortestSize", "ScaleJitter", "Pad", "Resize",
    "CenterCrop", "ClampBoundingBoxes", "SanitizeBoundingBoxes", "ConvertBoundingBoxFormat", "SetClampingMode", "RandomIoUCrop",
])  # fmt: skip
@pytest.mark.parametrize("format", FORMATS)
def test_transforms(name, format):
    """Beside an image, after the same seed."""
    image = tv_tensors.Image(torch.zeros(3, *CANVAS, dtype=torch.uint8))
    special = {"ConvertBoundingBoxFormat": [("CXCYWHR",), ("XYXYXYXY",)], "SanitizeBoundingBoxes": [(1, 1, None)]}
    for arguments in special.get(name, CASES.get(name, [()])):
        for seed in range(3):
            # Clamping would enlarge what rounding does to a blurred displacement.
            mode = None if name == "ElasticTransform" else "soft"
            sample = {"image": image, "boxes": rotated(format, seed, mode)}
            result, wanted = (outcome(getattr(m, name)(*arguments), dict(sample), seed) for m in (v2, theirs))
            if isinstance(wanted, Exception):
                assert isinstance(result, type(wanted)), (result, wanted)
            else:
                assert not isinstance(result, Exception), result
                assert_same(result["boxes"], wanted["boxes"])
                assert result["image"].shape == wanted["image"].shape
