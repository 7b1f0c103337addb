"""bbox_rotate beside DALI over random calls; what is dropped; misuse."""

# ruff: noqa: B023  (every closure runs before the loop goes on)
from __future__ import annotations

import numpy as np
import pytest
from cases import EachSample, each_of
from compare import check_same
from selection import repeated

import ndd

REGISTRY_INPUTS = {"box labels": (lambda rng, i, dtype: rng.integers(1, 9, 4 + i).astype(np.int32), None)}
REGISTRY_CASES = {
    "bbox_rotate": [
        *each_of({"angle": 30.0, "input_shape": [50, 70]}, inputs=("boxes",), dtypes=("float32",)),
        *each_of(
            {
                "angle": EachSample([10.0, 200.0, -80.0]), "input_shape": [50, 70], "keep_size": True, "mode": "fixed",
                "bbox_layout": "xyWH", "remove_threshold": 0.5,
            },
            inputs=("boxes", "box labels"),
            dtypes=("float32",),
        ),
    ],
}  # fmt: skip


def drawn(rng):
    """Samples and arguments of a call."""
    boxes = [np.sort(rng.random((n, 2, 2)), axis=1).reshape(-1, 4).astype(np.float32) * 1.2 for n in (0, 1, 12)]
    shapes = [rng.integers(5, 300, 2).astype(np.int32) for _ in boxes]
    arguments = {
        "mode": rng.choice(["expand", "fixed", "halfway"]).item(),
        "remove_threshold": rng.choice([0.0, 0.1, 0.5, 0.9]).item(),
        "bbox_layout": rng.choice(["xyXY", "xyWH"]).item(),
        "bbox_normalized": bool(rng.integers(2)),
        **[{}, {"keep_size": True}, {"size": [100.0, 57.6]}][rng.integers(3)],
    }
    for b, shape in zip(boxes, shapes, strict=True):
        if arguments["bbox_layout"] == "xyWH":
            b[:, 2:] -= b[:, :2]
        if not arguments["bbox_normalized"]:
            b *= shape[[1, 0, 1, 0]]
    # Not 45 degrees, where rounding decides which side is the longer one.
    angles = np.where(rng.random(3) < 0.5, rng.choice([0, 90, 180, -90, 44, 400], 3), rng.random(3) * 720 - 360)
    return boxes, shapes, angles.astype(np.float32), arguments


@pytest.mark.oracle
def test_as_dali(dali):
    rng = np.random.default_rng(3)
    for i in repeated(40, 13):
        boxes, shapes, angles, arguments = drawn(rng)
        labels = [rng.integers(0, 9, (len(b), 1) if i % 2 else len(b)).astype(np.int32) for b in boxes]

        def call(m):
            each = {"angle": m.batch(angles), "input_shape": m.batch(shapes)}
            return m.bbox_rotate(m.batch(boxes), m.batch(labels), **each, **arguments)

        assert check_same(dali, call, tolerance=3e-6, note=(i, arguments))


@pytest.mark.oracle
def test_boxes_that_are_none_and_boxes_outside_as_dali(dali):
    boxes = np.float32([[0.2, 0.2, 0.2, 0.5], [0.5, 0.5, 0.3, 0.3], [-1, -1, 2, 2], [2, 2, 3, 3]])
    for more in ({}, {"keep_size": True}, {"mode": "fixed"}, {"mode": "halfway", "remove_threshold": 0.0}):
        assert check_same(
            dali, lambda m: m.bbox_rotate(m.tensor(boxes), angle=30.0, input_shape=[100, 200], **more), 1e-6
        )
    for layout, shape in (("WH", [200, 100]), ("CHW", [3, 100, 200]), ("HW", [100, 200, 3])):
        shaped = {"shape_layout": layout, "input_shape": shape}
        assert check_same(dali, lambda m: m.bbox_rotate(m.tensor(boxes), angle=30.0, **shaped), 1e-6)


def test_misuse():
    boxes, labels = np.zeros((2, 4), np.float32), np.zeros(2, np.int32)
    for options, arguments, said in (
        ((boxes[0],), {}, "boxes"),
        ((boxes[:, :3],), {}, r"\(2, 3\)"),
        ((boxes, labels[:1]), {}, "labels: expected 2"),
        ((boxes, labels.astype(np.float32)), {}, "labels: expected int32"),
        ((boxes,), {"mode": "x"}, "`mode`"),
        ((boxes,), {"bbox_layout": "yxYX"}, "`bbox_layout`"),
        ((boxes,), {"shape_layout": "W"}, "`shape_layout`"),
        ((boxes,), {"input_shape": [5]}, "`input_shape`"),
        ((boxes,), {"size": [5.0, 5.0], "keep_size": True}, "exclude"),
        ((boxes,), {"remove_threshold": 1.0}, "`remove_threshold`"),
        ((boxes,), {"angle": float("nan")}, "`angle`"),
    ):
        with ndd.EvalMode.sync_cpu, pytest.raises(RuntimeError, match=f"bbox_rotate: .*{said}"):
            ndd.bbox_rotate(*options, **{"angle": 1.0, "input_shape": [9, 9], **arguments})


@pytest.mark.parametrize("angle", [90, 180, -90])
@pytest.mark.parametrize("mode", ["expand", "halfway", "fixed"])
def test_nothing_is_left_of_a_box_without_width_after_a_right_angle(angle, mode):
    boxes = ndd.tensor([[0.3, 0.2, 0.3, 0.7], [0.1, 0.2, 0.3, 0.7], [0.1, 0.4, 0.6, 0.4]])
    options = {"angle": angle, "input_shape": [145, 66], "mode": mode, "remove_threshold": 0.0}
    result, labels = ndd.bbox_rotate(boxes, ndd.tensor([1, 2, 3]), **options)
    assert labels.torch().tolist() == [2]
    assert result.shape == (1, 4)
