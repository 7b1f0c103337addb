"""bbox_transform: beside bbox_rotate and bb_flip; what is dropped; misuse."""

from __future__ import annotations

import numpy as np
import pytest
from cases import EachSample, each_of

import ndd

REGISTRY_CASES = {
    "bbox_transform": [
        *each_of({"MT": [0.8, 0.1, 0.0, -0.1, 0.9, 0.1]}, inputs=("boxes",), dtypes=("float32",)),
        *each_of(
            {"MT": EachSample([np.float32([[1, 0, k / 4], [0, 2, -0.5]]) for k in range(3)]), "remove_threshold": 0.5},
            inputs=("boxes", "box labels"),
            dtypes=("float32",),
        ),
    ],
}


def test_a_mirror_is_bb_flip():
    boxes = np.sort(np.random.default_rng(1).random((9, 2, 2)), axis=1).reshape(-1, 4).astype(np.float32)
    result = ndd.bbox_transform(boxes, MT=[-1.0, 0.0, 1.0, 0.0, 1.0, 0.0])
    np.testing.assert_allclose(np.asarray(result), np.asarray(ndd.bb_flip(boxes, ltrb=True)), atol=1e-6)


def test_what_leaves_the_image_is_dropped_with_its_label():
    boxes = np.float32([[0.0, 0.0, 0.5, 0.5], [0.4, 0.4, 0.6, 0.6], [0.7, 0.7, 0.9, 0.9]])
    labels, to_the_right = np.int32([1, 2, 3]), [1.0, 0.0, 0.5, 0.0, 1.0, 0.0]
    result, kept = ndd.bbox_transform(boxes, labels, MT=to_the_right)
    np.testing.assert_allclose(np.asarray(result), [[0.5, 0.0, 1.0, 0.5], [0.9, 0.4, 1.0, 0.6]], atol=1e-6)
    assert np.asarray(kept).tolist() == [1, 2]
    _, kept = ndd.bbox_transform(boxes, labels, MT=to_the_right, remove_threshold=0.6)
    assert np.asarray(kept).tolist() == [1]


def test_misuse():
    boxes, labels = np.zeros((2, 4), np.float32), np.zeros(2, np.int32)
    for options, arguments, said in (
        ((boxes[:, :3],), {}, r"\(2, 3\)"),
        ((boxes, labels[:1]), {}, "labels: expected 2"),
        ((boxes,), {"MT": [1.0, 2.0]}, "'MT'"),
        ((boxes,), {"remove_threshold": 1.0}, "`remove_threshold`"),
    ):
        with ndd.EvalMode.sync_cpu, pytest.raises(RuntimeError, match=f"bbox_transform: .*{said}"):
            ndd.bbox_transform(*options, **{"MT": [1.0, 0.0, 0.0, 0.0, 1.0, 0.0], **arguments})
