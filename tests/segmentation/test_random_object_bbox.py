"""segmentation.random_object_bbox beside DALI; objects beside OpenCV's; the cache; misuse."""

# ruff: noqa: B023  (every closure runs before the loop goes on)
from __future__ import annotations

import numpy as np
import pytest
from cases import each_of
from compare import check_same
from selection import drawn, repeated

import ndd
from ndd.segmentation.random_object_bbox import _cached

REGISTRY_CASES = {
    "segmentation.random_object_bbox": each_of(
        {},
        {"classes": [1, 3], "class_weights": [1.0, 2.0], "output_class": True, "format": "box", "foreground_prob": 0.8},
        {"ignore_class": True, "k_largest": 2, "threshold": [1, 2], "format": "start_end"},
        inputs=("mask",),
        dtypes=("uint8", "int8", "uint16", "int16", "uint32", "int32", "bool"),
    ),
}


def random_masks(rng, i):
    def pick(*options):
        return options[rng.integers(len(options))]

    axes = i % 3 + 1
    shapes = [tuple(rng.integers(2, (14, 7, 4)[axes - 1], axes)) for _ in range(4)]
    kind = pick(*drawn((np.uint8, np.int32, np.int16, np.uint16, bool), 2, "random_object_bbox"))
    masks = [(rng.integers(0, 4, s) * (rng.random(s) < pick(0.3, 0.8))).astype(kind) for s in shapes]
    arguments = pick(
        {"ignore_class": True},
        {"output_class": True, **pick({}, {"background": 1}, {"background": 7})},
        {"output_class": True, "classes": pick([1, 2], [3], [2, 3, 1], [5, 1], [0, 1])},
        {"output_class": True, "classes": [3, 1], "class_weights": [1.0, 3.0]},
        {"output_class": True, "class_weights": pick([1.0, 2.0, 3.0], [0.5, 0.5], [0.0, 1.0, 0.0])},
    )
    arguments |= pick({}, {"threshold": [pick(1, 2, 3)] * axes}) | pick({}, {"k_largest": pick(1, 2, 3)})
    return masks, {**arguments, "format": pick("box", "start_end", "anchor_shape"), "foreground_prob": pick(1.0, 0.7)}


@pytest.mark.oracle
def test_the_same_objects_as_dali(dali):
    rng = np.random.default_rng(9)
    for i in repeated(60, 20):
        masks, arguments = random_masks(rng, i)

        def call(m, cached=False):
            own = {"rng": m.random.RNG(seed=i), "cache_objects": cached}
            return m.segmentation.random_object_bbox(m.batch(masks), **own, **arguments)

        assert check_same(dali, call, note=(i, arguments))
        if i % 8 == 0:
            assert all([check_same(dali, lambda m: call(m, True), note=(i, arguments)) for _ in range(2)])


def test_objects_are_those_of_opencv():
    cv2 = pytest.importorskip("cv2")
    rng = np.random.default_rng(10)
    for density in (0.3, 0.6, 0.9):
        mask = (rng.random((60, 45)) < density).astype(np.int32)
        ndd.segmentation.random_object_bbox(mask, cache_objects=True)[0].evaluate()
        result, labels = next(reversed(_cached.values()))
        _, _, stats, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8), connectivity=4)
        x, y, w, h = stats[1:, :4].T
        expected = np.stack([y, x, y + h, x + w], axis=1)
        assert sorted(map(tuple, result.reshape(-1, 4))) == sorted(map(tuple, expected))
        assert (labels == 1).all()


def test_misuse():
    mask = np.ones((3, 3), np.int32)
    for passed, arguments, said in (
        (np.int32(1), {}, "axis"),
        (mask.astype(np.float32), {}, "type"),
        (mask, {"format": "x"}, "`format`"),
        (mask, {"ignore_class": True, "classes": [1]}, "`ignore_class`"),
        (mask, {"classes": [1], "class_weights": [1.0, 2.0]}, "`class_weights`"),
        (mask, {"classes": [0, 1], "background": 0}, "`background`"),
        (mask, {"k_largest": 0}, "`k_largest`"),
        (mask, {"threshold": [1, 2, 3]}, "threshold"),
    ):
        with pytest.raises(RuntimeError, match=f"random_object_bbox: .*{said}"):
            ndd.segmentation.random_object_bbox(passed, **arguments)[0].evaluate()
