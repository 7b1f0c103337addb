"""box_encoder beside DALI: matching with ties, offsets; the GPU; misuse."""

# ruff: noqa: B023  (every closure runs before the loop goes on)
from __future__ import annotations

import numpy as np
import pytest
from cases import each_of
from compare import assert_all_equal, check_same

import ndd


def anchors_of(rng, count):
    return np.sort(rng.random((count, 2, 2)), axis=1).reshape(-1).astype(np.float32)


ANCHORS = anchors_of(np.random.default_rng(4), 40)
OFFSETS = {"offset": True, "scale": 300.0, "means": [0.1, 0.2, 0.3, 0.4], "stds": [0.1, 0.1, 0.2, 0.2]}
REGISTRY_CASES = {
    "box_encoder": each_of(
        {"anchors": ANCHORS.tolist()},
        {"anchors": ANCHORS.tolist(), "criteria": 0.2, **OFFSETS},
        inputs=("boxes", "box labels"),
        dtypes=("float32",),
        relative=3e-5,
    ),
}


def drawn(rng, coarse):
    """Anchors, boxes and labels; on a coarse grid many overlaps are equal."""
    anchors = anchors_of(rng, rng.integers(1, 200))
    boxes = [anchors_of(rng, n).reshape(-1, 4) for n in (0, 1, 4, 20)]
    if coarse:
        anchors, boxes = np.round(anchors * 8) / 8, [np.round(b * 8) / 8 for b in boxes]
    return anchors, boxes, [rng.integers(1, 9, len(b)).astype(np.int32) for b in boxes]


@pytest.mark.oracle
def test_as_dali(dali):
    rng = np.random.default_rng(5)
    for i in range(24):
        anchors, boxes, labels = drawn(rng, i % 3 == 0)
        # Zero-sized boxes of the coarse grid have no logarithm.
        more = ({}, {"criteria": 0.1}, {"criteria": 0.95} if i % 3 == 0 else OFFSETS)[i // 3 % 3]

        def call(m):
            return m.box_encoder(m.batch(boxes), m.batch(labels), anchors=anchors.tolist(), **more)

        assert check_same(dali, call, tolerance=3e-5 if "offset" in more else 1e-6, note=(i, more))


def test_gpu_as_cpu_where_overlaps_are_equal(emulated_gpu):
    rng = np.random.default_rng(6)
    for _ in range(3):
        anchors, boxes, labels = drawn(rng, True)
        here = ndd.box_encoder(ndd.batch(boxes), ndd.batch(labels), anchors=anchors, criteria=0.4)
        there = ndd.box_encoder(ndd.batch(boxes).gpu(), ndd.batch(labels).gpu(), anchors=anchors, criteria=0.4)
        assert_all_equal(here, there)


def test_an_array_of_anchors_is_as_good_as_a_list():
    boxes, labels = np.float32([[0.1, 0.1, 0.6, 0.6]]), np.int32([3])
    a = ndd.box_encoder(boxes, labels, anchors=ANCHORS.tolist())
    b = ndd.box_encoder(boxes, labels, anchors=ANCHORS.reshape(-1, 4))
    c = ndd.box_encoder(boxes, labels[:, None], anchors=ndd.tensor(ANCHORS))
    assert_all_equal(a, b)
    assert_all_equal(a, c)


def test_misuse():
    boxes, labels, anchors = np.zeros((2, 4), np.float32), np.zeros(2, np.int32), np.zeros(8, np.float32)
    for options, arguments, said in (
        ((boxes[0], labels), {}, "boxes"),
        ((boxes[:, :3], labels), {}, r"\(2, 3\)"),
        ((boxes, labels[:1]), {}, "labels: expected 2"),
        ((boxes, labels.astype(np.int64)), {}, "labels: expected int32"),
        ((boxes, labels), {"anchors": anchors[:5]}, "`anchors`"),
        ((boxes, labels), {"anchors": anchors[:0]}, "`anchors`"),
        ((boxes, labels), {"criteria": 1.5}, "`criteria`"),
        ((boxes, labels), {"stds": [1, 0, 1, 1]}, "`stds`"),
        ((boxes, labels), {"means": [1, 0, 1]}, "`means`"),
    ):
        with pytest.raises(RuntimeError, match=f"box_encoder: .*{said}"):
            ndd.box_encoder(*options, **{"anchors": anchors, **arguments})[0].evaluate()
