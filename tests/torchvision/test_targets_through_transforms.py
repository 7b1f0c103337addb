"""`ndd.Targets` through the transforms: boxes move as `tv_tensors.BoundingBoxes` do, and what belongs to them stays with them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torchvision_classes import batch_of, theirs, tv_tensors

import ndd
from ndd.torchvision import v2

SIZES = [(100, 150), (60, 80), (90, 90)]
COUNTS = [1, 3, 0]
MADE = np.random.default_rng(3)
IMAGES = [torch.from_numpy(MADE.integers(0, 256, (3, *size), dtype=np.uint8)) for size in SIZES]


def drawn_boxes(count):
    corners = MADE.uniform(0, 0.5, (count, 2))
    return np.hstack((corners, corners + MADE.uniform(0.1, 0.45, (count, 2)))).astype(np.float32)


BOXES = [drawn_boxes(count) for count in COUNTS]
LABELS = [np.arange(count) + 1 for count in COUNTS]


def targets(layout="HWC", numbers=(0, 1, 2)):
    chosen = [[values[i] for i in numbers] for values in (IMAGES, BOXES, LABELS)]
    return ndd.Targets(
        batch_of(chosen[0], layout), ndd.batch(chosen[1]), ndd.batch(chosen[2]), area=ndd.batch(chosen[2])
    )


def as_tv_tensors(i):
    h, w = SIZES[i]
    pixels = torch.from_numpy(BOXES[i]) * torch.tensor([w, h, w, h])
    boxes = tv_tensors.BoundingBoxes(pixels, format="XYXY", canvas_size=(h, w))
    return {"image": tv_tensors.Image(IMAGES[i]), "boxes": boxes, "labels": torch.from_numpy(LABELS[i])}


MOVES = [
    ("RandomHorizontalFlip", ()), ("RandomVerticalFlip", ()), ("Resize", (50,)), ("CenterCrop", (200,)), ("Pad", (7,)),
    ("RandomCrop", (40, 9)), ("RandomZoomOut", ()), ("ScaleJitter", ((40, 40),)), ("RandomShortestSize", ([20, 40],)),
]  # fmt: skip


@pytest.mark.parametrize("layout", ["HWC", "CHW"])
@pytest.mark.parametrize(("name", "arguments"), MOVES)
def test_boxes_as_torchvisions(name, arguments, layout):
    torch.manual_seed(2)
    moved = getattr(v2, name)(*arguments)(targets(layout)).convert(normalized=False)
    torch.manual_seed(2)
    wanted = [getattr(theirs, name)(*arguments)(as_tv_tensors(i)) for i in range(3)]
    for i, sample in enumerate(wanted):
        size = tuple(sample["image"].shape[-2:])
        shape = moved.images.shape[i]
        assert (shape[:2] if layout == "HWC" else shape[1:]) == size
        assert torch.allclose(moved.boxes.select(i).torch(), sample["boxes"].as_subclass(torch.Tensor), atol=2e-3)
        assert moved.labels.select(i).torch().tolist() == sample["labels"].tolist()


@pytest.mark.parametrize(("format", "normalized"), [("xywh", False), ("cxcywh", True), ("xyxy", False)])
def test_formats_of_boxes(format, normalized):
    work = v2.Compose([v2.RandomHorizontalFlip(1.0), v2.RandomCrop(50, 4), v2.Resize((30, 40))])
    torch.manual_seed(1)
    wanted = work(targets()).convert(format=format, normalized=normalized)
    torch.manual_seed(1)
    result = work(targets().convert(format=format, normalized=normalized))
    assert (result.format, result.normalized) == (format, normalized)
    for a, b in zip(result.boxes, wanted.boxes, strict=True):
        assert torch.allclose(a.torch(), b.torch(), atol=1e-3)


def test_iou_crops_choose_torchvisions_windows():
    """After the same seed, sample by sample; boxes whose middle is outside are gone with their labels."""
    work, numbers = v2.RandomIoUCrop(), (0, 1)
    for seed in range(5):
        torch.manual_seed(seed)
        result = work(targets(numbers=numbers)).convert(normalized=False)
        torch.manual_seed(seed)
        for i in numbers:
            wanted = theirs.RandomIoUCrop()(as_tv_tensors(i))
            kept = wanted["boxes"].as_subclass(torch.Tensor).abs().sum(1) > 0
            assert result.images.shape[i][:2] == tuple(wanted["image"].shape[1:])
            assert torch.allclose(
                result.boxes.select(i).torch(), wanted["boxes"].as_subclass(torch.Tensor)[kept], atol=2e-3
            )
            for values in (result.labels, result.area):
                assert values.select(i).torch().tolist() == wanted["labels"][kept].tolist()


def test_one_iou_crop_for_all_samples_drops_boxes_of_each():
    images = batch_of(IMAGES[:1] * 2, "HWC")
    boxes = ndd.batch([np.array(rows, np.float32) for rows in ([[10, 10, 60, 60]], [[0, 0, 4, 4], [12, 12, 58, 58]])])
    whole = ndd.Targets(images, boxes, ndd.batch([np.array([1]), np.array([2, 3])]), normalized=False)
    work = v2.RandomIoUCrop(sampler_options=[0.9], min_scale=0.3, trials=4000, same_on_batch=True)
    torch.manual_seed(1)
    result = work(whole)
    assert [labels.torch().tolist() for labels in result.labels.tensors] == [[1], [3]]
    assert result.images.shape[0] == result.images.shape[1] != (100, 150, 3)


def test_images_of_targets_are_mixed():
    images = batch_of(IMAGES[:2], "HWC")
    torch.manual_seed(2)
    wanted = v2.AugMix()(images)
    torch.manual_seed(2)
    result = v2.AugMix()(ndd.Targets(images)).images
    assert all(torch.equal(a.torch(), b.torch()) for a, b in zip(result.tensors, wanted.tensors, strict=True))
    semantic = ndd.batch([np.zeros(size, np.uint8) for size in SIZES[:2]], layout="HW")
    with pytest.raises(TypeError, match="semantic"):
        v2.AugMix()(ndd.Targets(images, semantic=semantic))
    types = v2.ToDtype({tv_tensors.Image: torch.float32, tv_tensors.Mask: torch.int64})
    assert types(ndd.Targets(images, semantic=semantic)).semantic.dtype == ndd.int64


def test_what_is_too_small_is_removed():
    boxes = ndd.batch([np.array([[0, 0, 0.5, 0.5], [0.1, 0.1, 0.101, 0.5]], np.float32)] * 2)
    whole = ndd.Targets(batch_of(IMAGES[:1] * 2, "HWC"), boxes, ndd.batch([np.array([7, 8])] * 2))
    left = v2.SanitizeBoundingBoxes(min_size=2)(whole)
    assert left.boxes.shape == [(1, 4)] * 2
    assert left.labels.torch().tolist() == [[7], [7]]


def test_formats_are_converted():
    result = v2.ConvertBoundingBoxFormat("CXCYWH")(targets())
    assert result.format == "cxcywh"
    wanted = theirs.ConvertBoundingBoxFormat("CXCYWH")(as_tv_tensors(1))["boxes"].as_subclass(torch.Tensor)
    assert torch.allclose(result.convert(normalized=False).boxes.select(1).torch(), wanted, atol=1e-3)


def test_colours_leave_boxes_alone():
    result = v2.Compose([v2.ColorJitter(0.4, 0.4), v2.RandomPhotometricDistort(p=1.0), v2.RandomInvert(1.0)])(targets())
    assert result.images.shape == targets().images.shape
    for a, b in zip(result.boxes, targets().boxes, strict=True):
        assert torch.equal(a.torch(), b.torch())
    with pytest.raises(TypeError, match="not supported by TrivialAugmentWide"):
        v2.TrivialAugmentWide()(targets())
    with pytest.raises(TypeError, match="not supported by FiveCrop"):
        v2.FiveCrop(8)(targets())


def test_the_users_transform_gets_targets_of_one_sample():
    class Flipped(v2.Transform):
        def transform(self, inpt, params):
            assert isinstance(inpt.images, ndd.Tensor)
            return inpt.flip()

    result, wanted = Flipped()(targets()), targets().flip()
    for a, b in zip(result.boxes, wanted.boxes, strict=True):
        assert torch.allclose(a.torch(), b.torch())
    assert result.images.shape == wanted.images.shape


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("format", ["xyxy", "xywh", "cxcywh"])
@pytest.mark.parametrize("layout", ["HWC", "CHW"])
def test_boxes_and_points_are_clamped_as_torchvisions(format, normalized, layout):
    rng = np.random.default_rng(4)
    boxes = [rng.uniform(-40, 100, (n, 4)).astype(np.float32) for n in COUNTS]
    for sample in boxes:
        sample[:, 2:] = sample[:, :2] + np.abs(sample[:, 2:])
    points = [rng.uniform(-40, 200, (n, 5, 2)).astype(np.float32) for n in COUNTS]
    whole = ndd.Targets(
        batch_of(IMAGES, layout), ndd.batch(boxes), ndd.batch(LABELS), points=ndd.batch(points),
        format="xyxy", normalized=False,
    ).convert(format=format, normalized=normalized)  # fmt: skip
    of_boxes, of_points = v2.ClampBoundingBoxes()(whole), v2.ClampKeyPoints()(whole)
    assert (of_boxes.format, of_boxes.normalized) == (format, normalized)
    assert v2.ClampBoundingBoxes(clamping_mode=None)(whole) is whole
    item = ndd.Targets(
        batch_of(IMAGES[1:2], layout).select(0), boxes[1], LABELS[1], points=points[1], format="xyxy", normalized=False
    ).clamp()
    of_boxes, of_points = (t.convert(format="xyxy", normalized=False) for t in (of_boxes, of_points))
    for i, (h, w) in enumerate(SIZES):
        theirs_boxes = tv_tensors.BoundingBoxes(torch.from_numpy(boxes[i]), format="XYXY", canvas_size=(h, w))
        theirs_points = tv_tensors.KeyPoints(torch.from_numpy(points[i]), canvas_size=(h, w))
        wanted = theirs.ClampBoundingBoxes()(theirs_boxes).as_subclass(torch.Tensor)
        wanted_points = theirs.ClampKeyPoints()(theirs_points).as_subclass(torch.Tensor)
        assert torch.allclose(of_boxes.boxes.select(i).torch(), wanted, atol=1e-4)
        assert torch.allclose(of_points.points.select(i).torch(), wanted_points, atol=1e-4)
        assert torch.allclose(of_boxes.points.select(i).torch(), torch.from_numpy(points[i]), atol=1e-4)
        if i == 1:
            assert torch.equal(item.boxes.torch(), wanted)
            assert torch.equal(item.points.torch(), wanted_points)
