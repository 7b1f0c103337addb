"""bbox_paste beside DALI and beside paste; misuse."""

# ruff: noqa: B023  (every closure runs before the loop goes on)
from __future__ import annotations

import numpy as np
import pytest
from cases import EachSample, each_of
from compare import check_same

import ndd

REGISTRY_CASES = {
    "bbox_paste": each_of(
        {"ratio": 1.5},
        {"ratio": EachSample([1.0, 3.3, 2.0]), "paste_x": EachSample([0.0, 0.3, 1.0]), "paste_y": 0.9, "ltrb": True},
        inputs=("boxes",),
        dtypes=("float32",),
    ),
}


@pytest.mark.oracle
def test_as_dali(dali):
    rng = np.random.default_rng(2)
    samples = [rng.random((n, 4)).astype(np.float32) for n in (50, 0, 1)]
    for ratio, x, y, ltrb in ((1.0, 0.5, 0.5, False), (1.7, 0.1, 0.9, True), (0.5, 2.0, 0.1, False)):
        arguments = {"ratio": ratio, "paste_x": x, "paste_y": y, "ltrb": ltrb}
        assert check_same(dali, lambda m: m.bbox_paste(m.batch(samples), **arguments), tolerance=1e-6)


def test_misuse():
    boxes = np.zeros((2, 4), np.float32)
    for ratio in (0.0, -1.0, float("nan")):
        with pytest.raises(RuntimeError, match=r"bbox_paste: .*`ratio`"):
            ndd.bbox_paste(boxes, ratio=ratio).evaluate()
    with pytest.raises(RuntimeError, match=r"bbox_paste: .*\(2, 3\)"):
        ndd.bbox_paste(boxes[:, :3], ratio=2.0).evaluate()
