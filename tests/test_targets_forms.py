"""Targets as users have them: boxes of any format, in pixels or fractions; points, labels and named values that follow; from and to
tv_tensors and COCO's dictionaries; all of it drawn."""

from __future__ import annotations

import numpy as np
import pytest
import warm_interpreter
from torchvision_rule import torchvision

import ndd

HEIGHT, WIDTH = 40, 64
CORNERS = np.float32([[0, 10, 20, 30], [50, 0, 62, 9], [30, 5, 55, 25], [8, 8, 9, 40]])
IMAGE = np.random.default_rng(0).integers(0, 255, (HEIGHT, WIDTH, 3), np.uint8)
SIZE = np.float32([WIDTH, HEIGHT] * 2)
METHODS = {
    "flip": lambda t: t.flip(horizontal=1, vertical=1),
    "crop": lambda t: t.crop(start=[0.25, 0.125], shape=[0.5, 0.5]),
    "random_crop": lambda t: t.random_crop(scaling=[0.4, 0.9], aspect_ratio=[0.5, 2], rng=ndd.random.RNG(4)),
    "resize": lambda t: t.resize(size=[33, 51]),
    "region": lambda t: t.resize(size=[33, 51], roi_start=[0.5, 0.25], roi_end=[1, 1], roi_relative=True),
    "rotate": lambda t: t.rotate(angle=33.0, fill_value=0),
    "warp_affine": lambda t: t.warp_affine(matrix=[[1.1, 0.2, -9], [0, 0.9, 4]], fill_value=0),
    "sanitize": lambda t: t.sanitize(min_size=2),
}


def as_format(corners, format):
    low, high = corners[:, :2], corners[:, 2:]
    if format == "xyxy":
        return corners
    return np.concatenate([low if format == "xywh" else (low + high) / 2, high - low], axis=1)


def parts(count=4):
    """All that may belong to four boxes, each row with the number of its box."""
    rows = np.arange(count)
    return {
        "labels": rows.astype(np.int64),
        "masks": np.broadcast_to(rows[:, None, None] + 1, (count, HEIGHT, WIDTH)).astype(np.uint8).copy(),
        "points": np.broadcast_to(rows[:, None, None] * [4.0, 2.0], (count, 3, 2)).astype(np.float32).copy(),
        "point_labels": np.broadcast_to(rows[:, None], (count, 3)).astype(np.int32).copy(),
        "area": rows.astype(np.float32) * 10,
        "names": np.repeat(rows[:, None], 5, axis=1).astype(np.uint8),
        "image_id": np.int64(77),
    }


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("layout", ["HWC", "CHW"])
@pytest.mark.parametrize("format", ["xyxy", "xywh", "cxcywh"])
def test_every_format_in_pixels_and_fractions(format, layout, method):
    pixels = np.ascontiguousarray(IMAGE if layout == "HWC" else IMAGE.transpose(2, 0, 1))
    image = ndd.tensor(pixels, layout=layout)
    expected = METHODS[method](ndd.Targets(image, CORNERS / SIZE, normalized=True))
    height, width = expected.images.shape[:2] if layout == "HWC" else expected.images.shape[1:]
    corners = expected.boxes.numpy() * np.float32([width, height] * 2)
    for normalized in (True, False):
        arguments = as_format(CORNERS / SIZE if normalized else CORNERS, format)
        result = METHODS[method](ndd.Targets(image, arguments, format=format, normalized=normalized))
        assert (result.format, result.normalized) == (format, normalized)
        wanted = as_format(corners / np.float32([width, height] * 2) if normalized else corners, format)
        np.testing.assert_allclose(result.boxes.numpy(), wanted, atol=1e-6 if normalized else 1e-4)
        back = result.convert(format="xyxy", normalized=False)
        np.testing.assert_allclose(back.boxes.numpy(), corners, atol=1e-4)


@pytest.mark.parametrize("method", METHODS)
def test_all_that_belongs_to_a_box_leaves_with_it(method):
    all_parts = parts()
    before = ndd.Targets(IMAGE, CORNERS, normalized=False, **all_parts)
    after = METHODS[method](before)
    left = after.labels.numpy()
    assert len(after.boxes.numpy()) == len(left)
    if method in ("crop", "region", "sanitize"):
        assert 0 < len(left) < 4
    np.testing.assert_array_equal(after.area.numpy(), left * 10)
    np.testing.assert_array_equal(after.names.numpy(), np.repeat(left[:, None], 5, axis=1))
    np.testing.assert_array_equal(after.point_labels.numpy(), np.repeat(left[:, None], 3, axis=1))
    assert after.points.shape == (len(left), 3, 2)
    assert after.masks.shape[0] == len(left)
    for number, mask in zip(left, after.masks.numpy(), strict=True):
        assert set(np.unique(mask)) <= {0, number + 1}
    assert after.image_id.item() == 77


def test_a_batch_drops_in_each_sample():
    names = list(parts())
    item = [ndd.Targets(IMAGE, CORNERS[keep], normalized=False, **{k: (v[keep] if np.ndim(v) else v) for k, v in parts().items()})
           for keep in ([0, 1, 2, 3], [1], [])]  # fmt: skip
    joined = {name: ndd.batch([getattr(t, name) for t in item]) for name in ("images", "boxes", *names)}
    after = ndd.Targets(**joined, normalized=False).crop(start=[0, 0], shape=[0.5, 1], remove_threshold=0.0)
    for i, alone in enumerate(item):
        alone = alone.crop(start=[0, 0], shape=[0.5, 1], remove_threshold=0.0)
        for name in ("boxes", *names):
            np.testing.assert_array_equal(
                getattr(after, name).tensors[i].numpy(), getattr(alone, name).numpy(), err_msg=name
            )
    assert [len(t.numpy()) for t in after.labels.tensors] == [3, 0, 0]


def test_pixels_stay_exact():
    cropped = ndd.Targets(IMAGE, CORNERS, normalized=False).crop(start=[3, 5], shape=[60, 35], normalized=False)
    np.testing.assert_array_equal(cropped.boxes.numpy()[2], [27, 0, 52, 20])
    np.testing.assert_array_equal(cropped.images.numpy(), IMAGE[5:, 3:63])
    flipped = ndd.Targets(IMAGE, CORNERS, normalized=False).flip()
    np.testing.assert_array_equal(flipped.boxes.numpy()[:, 0], WIDTH - CORNERS[:, 2])


def test_labelled_points_leave_the_image_and_others_stay():
    points = np.float32([[10, 10], [60, 10], [31, 39], [-1, 5]])
    for labels in (None, np.int32([5, 6, 7, 8])):
        after = ndd.Targets(IMAGE, points=points, point_labels=labels, normalized=False).crop(
            start=[0, 0], shape=[0.5, 1]
        )
        if labels is None:
            np.testing.assert_array_equal(after.points.numpy(), points)
        else:
            np.testing.assert_array_equal(after.points.numpy(), points[[0, 2]])
            assert after.point_labels.numpy().tolist() == [5, 7]


def test_semantic_masks_beside_masks_of_objects():
    semantic = np.arange(HEIGHT * WIDTH).reshape(HEIGHT, WIDTH)
    whole = ndd.Targets(IMAGE, CORNERS, normalized=False, masks=parts()["masks"], semantic=semantic)
    after = whole.flip().crop(start=[0, 0], shape=[0.5, 0.5])
    np.testing.assert_array_equal(after.semantic.numpy(), semantic[:20, ::-1][:, :32])
    assert after.masks.shape == (len(after.boxes.numpy()), 20, 32)


def test_boxes_outside_are_dropped_at_any_threshold_and_sanitize_takes_small_ones():
    boxes = np.float32([[0, 0, 10, 10], [40, 20, 60, 40], [31, 0, 50, 40], [70, 0, 90, 5], [5, 5, 5, 9]])
    whole = ndd.Targets(IMAGE, boxes, np.arange(5), normalized=False)
    assert whole.crop(start=[0, 0], shape=[0.5, 1], remove_threshold=0.0).labels.numpy().tolist() == [0, 2, 4]
    assert whole.crop(start=[0, 0], shape=[0.5, 1]).labels.numpy().tolist() == [0]
    clean = whole.sanitize()
    assert clean.labels.numpy().tolist() == [0, 1, 2]
    assert whole.sanitize(min_size=0, min_area=150).labels.numpy().tolist() == [1, 2]


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({"labels": [1, 2]}, RuntimeError, "labels: expected 4, one for each box, got 2"),
        ({"area": [1.0] * 5}, RuntimeError, "area: expected 4, one for each box, got 5"),
        ({"points": np.zeros((3, 2, 2))}, RuntimeError, "points: expected 4, one for each box, got 3"),
        (
            {"points": np.zeros((3, 2)), "point_labels": [1]},
            RuntimeError,
            "point_labels: expected 3, one for each point, got 1",
        ),
        ({"points": np.zeros(2)}, ValueError, "points: expected shape"),
        ({"point_labels": [1]}, ValueError, "point_labels: expected points beside them"),
        (
            {"semantic": np.zeros((4, 4))},
            ValueError,
            "semantic: expected those as large as their image, 40 x 64, got 4 x 4",
        ),
        ({"semantic": np.zeros((2, HEIGHT, WIDTH)), "labels": None}, ValueError, "semantic: expected"),
        ({"format": "yxyx"}, ValueError, "format: expected one of 'xyxy', 'xywh', 'cxcywh', got 'yxyx'"),
        ({"extra": {"boxes": [1]}}, TypeError, "extra: 'boxes' is the name of a part or a method"),
        ({"labels": 5}, ValueError, "labels: expected one for each box, got one number"),
    ],
)
def test_what_does_not_fit_is_a_sentence(given, error, text):
    with pytest.raises(error, match=text):
        ndd.Targets(IMAGE, CORNERS, normalized=False, **given)


def test_boxes_of_another_shape():
    with pytest.raises(RuntimeError, match=r"boxes: expected shape \(N, 4\), got \(2, 5\)"):
        ndd.Targets(IMAGE, np.zeros((2, 5), np.float32)).flip().boxes.numpy()
    assert ndd.Targets(IMAGE, np.zeros(0, np.float32)).flip().boxes.shape == (0, 4)
    with pytest.raises(RuntimeError, match=r"points: expected x and y, \(..., 2\), got shape \(2, 3\)"):
        ndd.Targets(IMAGE, points=np.zeros((2, 3), np.float32)).flip().points.numpy()
    with pytest.raises(AttributeError, match="Targets has no 'area'"):
        _ = ndd.Targets(IMAGE).area


def test_boxes_that_are_not_numbers_stay_in_step():
    """Where nothing is dropped, they stay; otherwise they leave with all that belongs to them."""
    corners = CORNERS.copy()
    corners[1] = np.nan
    targets = ndd.Targets(IMAGE, corners, normalized=False, **parts())
    for method, left in (("flip", [0, 1, 2, 3]), ("resize", [0, 2, 3]), ("sanitize", [0, 2])):
        made = METHODS[method](targets)
        assert made.labels.numpy().tolist() == left, method
        assert (made.boxes.shape[0], made.masks.shape[0], made.points.shape[0]) == (len(left),) * 3


@pytest.mark.parametrize(
    ("numbers", "left"), [([3, 0], [3, 0]), ([1, 0, 2, 3], [1, 0, 2, 3]), ([2, 2, 2, 2], [2, 2, 2, 2]), ([], []),
                          (np.array([True, False, False, True]), [0, 3]), (np.uint8([1]), [1])],
)  # fmt: skip
def test_selected_boxes_come_in_the_order_asked_for(numbers, left):
    targets = ndd.Targets(IMAGE, CORNERS, normalized=False, **parts())
    batch = ndd.Targets(ndd.batch([IMAGE] * 2), ndd.batch([CORNERS] * 2), labels=ndd.batch([parts()["labels"]] * 2))
    made = targets.select_boxes(numbers)
    assert made.labels.numpy().tolist() == left
    np.testing.assert_array_equal(made.boxes.numpy(), CORNERS[left].reshape(-1, 4))
    assert made.masks.numpy()[:, 0, 0].tolist() == [k + 1 for k in left]
    several = batch.select_boxes(ndd.batch([np.asarray(numbers) if len(numbers) else np.zeros(0, np.int32)] * 2))
    assert [x.numpy().tolist() for x in several.labels.tensors] == [left] * 2


@pytest.mark.parametrize(
    ("numbers", "error", "text"),
    [
        ([4], RuntimeError, "numbers: expected those of 4 boxes, from 0, got 4"),
        ([0, -1], RuntimeError, "numbers: expected those of 4 boxes, from 0, got -1"),
        ([True], RuntimeError, r"numbers: expected a bool for each of 4 boxes, got shape \(1,\)"),
        ([0.5], TypeError, "numbers: expected integers or bools, got float64"),
    ],
)
def test_boxes_that_do_not_exist_are_not_selected(numbers, error, text):
    with pytest.raises(error, match=text):
        ndd.Targets(IMAGE, CORNERS, normalized=False).select_boxes(numbers).boxes.numpy()


# ---- torchvision


def tv_sample():
    import torch

    tv = torchvision().tv_tensors
    canvas = {"canvas_size": (HEIGHT, WIDTH)}
    values = parts()
    return tv.Image(torch.from_numpy(IMAGE).permute(2, 0, 1)), {
        "boxes": tv.BoundingBoxes(torch.from_numpy(as_format(CORNERS, "xywh")), format="XYWH", **canvas),
        "labels": torch.from_numpy(values["labels"]),
        "masks": tv.Mask(torch.from_numpy(values["masks"])),
        "keypoints": tv.KeyPoints(torch.from_numpy(values["points"]), **canvas),
        "semantic": tv.Mask(torch.zeros(HEIGHT, WIDTH, dtype=torch.uint8)),
        "iscrowd": torch.tensor([0, 1, 0, 0]),
        "image_id": 9,
        "file": "left away",
    }


def test_from_and_to_tv_tensors():
    image, target = tv_sample()
    tv = torchvision().tv_tensors
    item = ndd.Targets.from_tv_tensors((image, target))
    assert (item.format, item.normalized, item.images.layout, item.masks.layout) == ("xywh", False, "CHW", "NHW")
    assert set(item.extra) == {"iscrowd", "image_id"}
    for whole in (
        ndd.Targets.from_tv_tensors([(image, target)] * 2),
        ndd.Targets.from_tv_tensors([image] * 2, [target] * 2),
    ):
        cropped = whole.crop(start=[4, 2], shape=[30, 30], normalized=False, remove_threshold=0.0)
        pairs = cropped.to_tv_tensors()
        assert len(pairs) == 2
        crop = torchvision().transforms.v2.functional.crop
        for result, own in pairs:
            assert type(result) is tv.Image
            np.testing.assert_array_equal(result.numpy(), crop(image, 2, 4, 30, 30).numpy())
            assert own["boxes"].format is tv.BoundingBoxFormat.XYWH
            assert own["boxes"].canvas_size == (30, 30)
            cut = crop(target["boxes"], 2, 4, 30, 30).numpy()
            kept = (cut[:, 2:] > 0).all(axis=1)
            np.testing.assert_array_equal(own["boxes"].numpy(), cut[kept])
            np.testing.assert_array_equal(own["masks"].numpy(), crop(target["masks"], 2, 4, 30, 30).numpy()[kept])
            np.testing.assert_array_equal(own["points"].numpy(), crop(target["keypoints"], 2, 4, 30, 30).numpy()[kept])
            np.testing.assert_array_equal(own["iscrowd"].numpy(), target["iscrowd"].numpy()[kept])
            assert type(own["semantic"]) is tv.Mask
            assert int(own["image_id"]) == 9


def test_tv_tensors_say_what_they_are():
    image, target = tv_sample()
    whole = ndd.Targets([image] * 2, [target["boxes"]] * 2, points=[target["keypoints"]] * 2)
    assert (whole.format, whole.normalized, whole.images.layout) == ("xywh", False, "CHW")
    mask = ndd.Targets.from_tv_tensors((image, target["semantic"])).flip()
    assert mask.semantic.layout == "HW"
    for arguments, text in (
        ({"normalized": True}, "tv_tensors.BoundingBoxes are in pixels"),
        ({"format": "xyxy"}, "format: expected one for all boxes, got xywh, xyxy"),
    ):
        with pytest.raises(ValueError, match=text):
            ndd.Targets(image, target["boxes"], **arguments)
    with pytest.raises(ValueError, match="say normalized=False"):
        ndd.Targets(image, CORNERS, points=target["keypoints"])
    with pytest.raises(TypeError, match="sample 0: expected a dict or a Mask, got int"):
        ndd.Targets.from_tv_tensors((image, 3))
    with pytest.raises(ValueError, match="sample 1: expected the entries of sample 0"):
        ndd.Targets.from_tv_tensors([(image, target), (image, {"labels": target["labels"]})])


def test_torchvision_is_not_imported():
    code = "import sys, numpy, ndd\n"
    code += "ndd.Targets(numpy.zeros((4, 4, 3), 'u1'), [[0, 0, 1, 1]]).flip()\nsys.exit('torchvision' in sys.modules)"
    assert warm_interpreter.run(code, has_ndd=True).returncode == 0


def test_tv_tensors_come_beside_a_torch_whose_torchvision_does_not_load():
    torchvision()
    code = "import numpy, ndd\ntargets = ndd.Targets(numpy.zeros((4, 4, 3), 'u1'), [[0, 0, 1, 1]])\n"
    code += "assert targets.to_tv_tensors()[1]['boxes'].tolist() == [[0, 0, 4, 4]]"
    assert warm_interpreter.run(code, has_ndd=True).returncode == 0


# ---- COCO


ANNOTATIONS = [
    {"id": 3, "image_id": 1, "bbox": [4, 5, 20, 10], "category_id": 18, "area": 200, "iscrowd": 0,
     "segmentation": [[4, 5, 24, 5, 24, 15, 4, 15]], "keypoints": [5, 6, 2, 0, 0, 0]},
    {"id": 4, "image_id": 1, "bbox": [40, 20, 10, 20], "category_id": 2, "area": 200.5, "iscrowd": 1,
     "segmentation": {"size": [HEIGHT, WIDTH], "counts": [40 * HEIGHT + 20, 20, HEIGHT * WIDTH - 40 * HEIGHT - 40]},
     "keypoints": [41, 22, 1, 42, 39, 2]},
]  # fmt: skip


def test_from_and_to_coco():
    image = ndd.tensor(IMAGE, layout="HWC")
    whole_file = {"images": [{"id": 1}], "annotations": ANNOTATIONS}
    for result in (
        ndd.Targets.from_coco(image, ANNOTATIONS),
        ndd.Targets.from_coco(image, {"image_id": 1, "annotations": ANNOTATIONS}),
        ndd.Targets.from_coco(image, whole_file, image_ids=[1]),
    ):
        assert (result.format, result.normalized) == ("xywh", False)
        assert result.labels.numpy().tolist() == [18, 2]
        assert set(result.extra) == {"id", "area", "iscrowd"}
        masks = result.masks.numpy()
        assert masks[0, 5:15, 4:24].all()
        assert masks[0].sum() == 200
        assert masks[1, 20:40, 40].all()
        assert masks[1].sum() == 20
        assert result.points.shape == (2, 2, 2)
        assert result.point_labels.numpy().tolist() == [[2, 0], [1, 2]]
        back = result.to_coco()
        assert [a["bbox"] for a in back] == [a["bbox"] for a in ANNOTATIONS]
        assert [a["keypoints"] for a in back] == [a["keypoints"] for a in ANNOTATIONS]
        assert [(a["id"], a["category_id"], a["iscrowd"], a["area"]) for a in back] == [
            (3, 18, 0, 200.0),
            (4, 2, 1, 20.0),
        ]
        assert back[1]["segmentation"] == ANNOTATIONS[1]["segmentation"]
        again = ndd.Targets.from_coco(image, back)
        np.testing.assert_array_equal(again.masks.numpy(), masks)


def test_coco_of_a_batch_goes_through_geometry():
    images = ndd.batch([IMAGE, IMAGE[:30]], layout="HWC")
    whole = ndd.Targets.from_coco(images, [ANNOTATIONS, []], masks=False)
    turned = whole.flip(vertical=1).resize(size=[80, 128]).to_coco()
    assert turned[1] == []
    assert turned[0][0]["bbox"] == pytest.approx([(WIDTH - 24) * 2, (HEIGHT - 15) * 2, 40, 20])
    assert turned[0][0]["area"] == pytest.approx(800)


@pytest.mark.parametrize(
    ("annotations", "error", "text"),
    [
        ([{"bbox": [1, 2, 3], "category_id": 1}], ValueError, 'object 0: expected "bbox" of 4 numbers'),
        ([{"bbox": [1, 2, 3, 4]}], ValueError, '"category_id", an integer, got .* and None'),
        (["box"], TypeError, "image 0: expected a list of dictionaries"),
        ([{**ANNOTATIONS[1], "segmentation": {"size": [3, 3], "counts": [9]}}], ValueError, "object 0: \"segmentation\": .*3 x 3"),
        ([{**ANNOTATIONS[1], "segmentation": {"size": [HEIGHT, WIDTH], "counts": [1 << 62, 1 << 62]}}], ValueError, "segmentation"),
        ([{**ANNOTATIONS[0], "keypoints": [1, 2]}], ValueError, '"keypoints": expected 0 numbers, 3 a point, got 2'),
    ],
)  # fmt: skip
def test_coco_that_is_none_is_a_sentence(annotations, error, text):
    with pytest.raises(error, match=text):
        ndd.Targets.from_coco(ndd.tensor(IMAGE, layout="HWC"), annotations)


def test_the_picture_shows_all_of_it():
    black = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    plain = ndd.picture(ndd.tensor(black, layout="HWC")).png()
    shown = {}
    for name, value in {
        "boxes": CORNERS, "points": np.float32([[10, 10]]), "semantic": np.eye(HEIGHT, WIDTH, dtype=np.uint8),
        "masks": parts()["masks"],
    }.items():  # fmt: skip
        shown[name] = ndd.picture(ndd.Targets(black, **{name: value}, normalized=False)).png()
    labelled = ndd.Targets(black, points=np.float32([[10, 10]]), point_labels=[4], normalized=False)
    shown["labelled"] = ndd.picture(labelled).png()
    shown["of boxes"] = ndd.picture(ndd.Targets(black, CORNERS, points=parts()["points"], normalized=False)).png()
    assert len({plain, *shown.values()}) == 1 + len(shown)
    fractions = ndd.Targets(black, as_format(CORNERS / SIZE, "cxcywh"), format="cxcywh")
    assert ndd.picture(fractions).png() == shown["boxes"]


def test_on_a_gpu(emulated_gpu):
    values = parts()
    here = ndd.Targets(IMAGE, CORNERS, normalized=False, format="xyxy", **values)
    gpu = {k: ndd.as_tensor(v, device="gpu") for k, v in values.items() if k in ("masks", "labels", "area", "points")}
    there = ndd.Targets(
        ndd.tensor(IMAGE, layout="HWC", device="gpu"), ndd.as_tensor(CORNERS, device="gpu"), normalized=False, **gpu
    )
    for method in ("flip", "crop", "random_crop"):
        on_cpu, on_gpu = METHODS[method](here), METHODS[method](there)
        for name in ("images", "boxes", *gpu):
            assert getattr(on_gpu, name).device.device_type == "gpu", name
            np.testing.assert_array_equal(
                getattr(on_gpu, name).cpu().numpy(), getattr(on_cpu, name).numpy(), err_msg=name
            )
