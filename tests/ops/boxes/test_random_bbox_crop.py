"""random_bbox_crop beside DALI: the same windows, boxes, labels and indices over random calls; misuse; no end."""

# ruff: noqa: B023  (every closure runs before the loop goes on)
from __future__ import annotations

import warnings

import numpy as np
import pytest
from cases import each_of
from compare import check_same
from selection import repeated

import ndd
from ndd.ops.boxes.random_bbox_crop import _judged

REGISTRY_CASES = {
    "random_bbox_crop": [
        *each_of(
            {"scaling": [0.3, 1.0], "thresholds": [0.1, 0.5], "aspect_ratio": [0.5, 2.0], "total_num_attempts": 50,
             "quiet": True, "output_bbox_indices": True},
            {"crop_shape": [20, 30], "input_shape": [60, 50], "shape_layout": "HW",
             "allow_no_crop": False, "bbox_prune_threshold": 0.2},
            inputs=("boxes", "box labels"),
            dtypes=("float32",),
        ),
        *each_of({"scaling": [0.5, 0.9], "allow_no_crop": False}, inputs=("boxes",), dtypes=("float32",)),
    ],
}  # fmt: skip


def in_layout(corners, layout, axes):
    """Boxes given as starts and ends, with their columns as `layout` says."""
    result = np.empty_like(corners)
    for column, letter in enumerate(layout):
        if letter in "WHD":
            k = "WHD".index(letter)
            result[:, column] = (corners[:, axes + k] - corners[:, k]) * np.float32(0.999)  # the end stays below 1
        else:
            result[:, column] = corners[:, "xyzXYZ".index(letter) - (3 - axes) * letter.isupper()]
    return result


def drawn(rng, i):
    """The inputs and arguments of a call; `each` have values of their own for samples."""

    def pick(*options):
        return options[rng.integers(len(options))]

    axes = 3 if i % 5 == 4 else 2
    corners = [np.sort(rng.random((n, 2, axes)), axis=1).reshape(n, 2 * axes).astype(np.float32) for n in (0, 1, 3, 9)]
    if pick(True, False):
        corners = [c * np.float32(0.3) + np.float32(0.3) for c in corners]
    layout = pick("xyXY", "xyWH", "yxHW", "XxYy") if axes == 2 else pick("xyzXYZ", "xyzWHD", "zyxXYZ")
    arguments = {
        "bbox_layout": layout,
        "thresholds": pick([0.0], [0.1, 0.3], [0.0, 0.1, 0.5, 0.9], [1.0]),
        "threshold_type": pick("iou", "overlap"),
        "num_attempts": pick(1, 5, 50),
        "total_num_attempts": pick(1, 7, 100),
        "all_boxes_above_threshold": pick(True, False),
        "allow_no_crop": pick(True, False),
        "quiet": True,
        "output_bbox_indices": True,
        **pick({}, {"bbox_prune_threshold": 0.0}, {"bbox_prune_threshold": 0.2}, {"bbox_prune_threshold": 0.9}),
    }
    each, kind = {}, pick("relative", "in pixels", "fixed shape")
    if kind == "fixed shape":
        arguments["allow_no_crop"] = False
        each["crop_shape"] = [rng.integers(20, 200, axes).astype(np.int32) for _ in corners]
    else:
        arguments["scaling"] = pick([0.3, 1.0], [0.1, 0.4], [0.5, 0.5], [0.8, 1.2])
        ratios = pick([0.5, 2.0], [0.3, 3.0], [1.0, 1.0], [2.0, 2.0], [0.5, 0.5])
        arguments["aspect_ratio"] = (
            ratios if axes == 2 else pick([0.3, 3.0], [1.0, 1.0], [0.5, 0.5, 1.0, 1.0, 2.0, 2.0])
        )
    if kind != "relative":
        each["input_shape"] = [rng.integers(50, 300, axes).astype(np.int32) for _ in corners]
        arguments.update(pick({}, {"shape_layout": "WHD"[:axes][::-1]}))
    return [in_layout(c, layout, axes) for c in corners], arguments, each


@pytest.mark.oracle
def test_the_same_windows_as_dali(dali):
    rng = np.random.default_rng(7)
    for i in repeated(150, 50):
        boxes, arguments, each = drawn(rng, i)
        labels = [rng.integers(0, 9, (len(b), 1) if i % 2 else len(b)).astype(np.int32) for b in boxes]

        def call(m):
            own = {k: m.batch(v) for k, v in each.items()}
            return m.random_bbox_crop(m.batch(boxes), m.batch(labels), rng=m.random.RNG(seed=i), **own, **arguments)

        assert check_same(dali, call, tolerance=1e-6, note=(i, arguments))


@pytest.mark.oracle
def test_boxes_without_an_area_and_turned_ones(dali):
    good, flat, turned = [0.2, 0.3, 0.5, 0.8], [0.4, 0.3, 0.4, 0.7], [0.6, 0.5, 0.1, 0.05]
    for i, boxes in enumerate([[flat], [good, flat], [flat, good], [flat, good, flat, good], [good, turned]] * 4):
        arguments = {"scaling": [0.3, 0.9], "thresholds": [0.1 * (i % 3)], "total_num_attempts": 9, "quiet": True}
        arguments |= {"threshold_type": "overlap", "all_boxes_above_threshold": i < 10, "allow_no_crop": i % 2 == 0}

        def call(m):
            return m.random_bbox_crop(m.tensor(boxes), rng=m.random.RNG(seed=i), **arguments)

        assert check_same(dali, call, tolerance=1e-6, note=(i, boxes))


def test_the_fallback_of_the_compiled_judgement():
    window, inside = np.float32([[0.1, 0.2], [0.6, 0.7]]), np.zeros((2, 3), bool)
    good, flat, point = [0.2, 0.3, 0.5, 0.8], [0.4, 0.3, 0.4, 0.7], [0.4, 0.4, 0.4, 0.4]
    for corners in ([good, flat, good], [good, good, flat], [flat, point, good], [point, flat, point]):
        for least in (True, False):
            for iou in (True, False):
                passed = np.float32(corners), 0, 3, window, least, iou, np.float32(-1)
                result = [f(*passed, kept) for f, kept in zip((_judged, _judged._fallback), inside, strict=True)]
                np.testing.assert_allclose(*result, rtol=1e-6)
                np.testing.assert_array_equal(*inside)


def test_a_warning_tells_that_no_window_was_good_unless_quiet():
    boxes = np.float32([[0.1, 0.1, 0.9, 0.9]])
    hopeless = {"scaling": [0.1, 0.2], "thresholds": [0.9], "allow_no_crop": False, "total_num_attempts": 5}
    with pytest.warns(UserWarning, match="sample 0: no window met the thresholds in 5 attempts"), ndd.EvalMode.sync_cpu:
        ndd.random_bbox_crop(boxes, **hopeless)
    with ndd.EvalMode.sync_cpu, warnings.catch_warnings():
        warnings.simplefilter("error")
        ndd.random_bbox_crop(boxes, **hopeless, quiet=True)


def test_a_search_without_end_ends(monkeypatch):
    boxes = np.float32([[0.1, 0.1, 0.9, 0.9]])
    with pytest.raises(RuntimeError, match=r"random_bbox_crop: sample 0: no window .* 1000000 attempts"):
        ndd.random_bbox_crop(boxes, scaling=[0.1, 0.2], thresholds=[0.9], allow_no_crop=False)[0].evaluate()


def test_misuse():
    boxes, labels = np.float32([[0.1, 0.1, 0.9, 0.9]] * 2), np.zeros(2, np.int32)
    shapes = {"crop_shape": [5, 5], "input_shape": [9, 9]}
    for passed, arguments, said in (
        ((boxes[0],), {}, "boxes"),
        ((boxes[:, :3],), {}, r"\(2, 3\)"),
        ((boxes + 0.2,), {}, "sample 0: boxes: expected fractions"),
        ((boxes, labels[:1]), {}, "labels: expected 2"),
        ((boxes, labels.astype(np.int64)), {}, "labels: expected int32"),
        ((boxes,), {"scaling": [0.9, 0.1]}, "`scaling`"),
        ((boxes,), {"aspect_ratio": [1.0]}, "`aspect_ratio`"),
        ((boxes,), {"thresholds": []}, "`thresholds`"),
        ((boxes,), {"thresholds": [1.5]}, "`thresholds`"),
        ((boxes,), {"bbox_prune_threshold": -1.0}, "`bbox_prune_threshold`"),
        ((boxes,), {"threshold_type": "x"}, "`threshold_type`"),
        ((boxes,), {"num_attempts": 0}, "`num_attempts`"),
        ((boxes,), {"total_num_attempts": 0}, "`total_num_attempts`"),
        ((boxes,), {"bbox_layout": "xywh"}, "`bbox_layout`"),
        ((boxes,), {"bbox_layout": "xyXY", "ltrb": True}, "`ltrb`"),
        ((boxes,), {"crop_shape": [5, 5]}, "needs `input_shape`"),
        ((boxes,), {**shapes, "scaling": [0.1, 0.2]}, "excludes"),
        ((boxes,), {**shapes, "shape_layout": "HWC"}, "`shape_layout`"),
        ((boxes,), {**shapes, "crop_shape": [5]}, "crop_shape"),
    ):
        with pytest.raises(RuntimeError, match=f"random_bbox_crop: .*{said}"):
            ndd.random_bbox_crop(*passed, **arguments)[0].evaluate()
