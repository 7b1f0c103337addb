"""bb_flip beside DALI; a box drawn into an image goes where the image goes; the GPU, misuse."""

# ruff: noqa: B023  (every closure runs before the loop goes on)
from __future__ import annotations

import itertools

import numpy as np
import pytest
from cases import each_of
from compare import check_same

import ndd


def boxes(rng, i, dtype):
    """4 + i boxes, left, top, right, bottom."""
    return np.sort(rng.random((4 + i, 2, 2)), axis=1).reshape(-1, 4).astype(np.float32)


REGISTRY_INPUTS = {"boxes": (boxes, None)}
REGISTRY_CASES = {
    "bb_flip": each_of({}, {"ltrb": True, "vertical": 1, "horizontal": 0}, inputs=("boxes",), dtypes=("float32",)),
}


@pytest.mark.oracle
def test_bit_for_bit_as_dali(dali):
    rng = np.random.default_rng(1)
    samples = [(rng.random((n, 4)) * 2 - 0.5).astype(np.float32) for n in (5, 0, 1)]
    for h, v, ltrb in itertools.product((0, 1), (0, 1), (False, True)):
        arguments = {"horizontal": h, "vertical": v, "ltrb": ltrb}
        assert check_same(dali, lambda m: m.bb_flip(m.batch(samples), **arguments), tolerance=0.0)
        assert check_same(dali, lambda m: m.bb_flip(m.tensor(samples[2][0]), **arguments), tolerance=0.0)
    assert check_same(dali, lambda m: m.bb_flip(m.tensor(np.zeros(0, np.float32))))  # no box at all
    assert check_same(
        dali, lambda m: m.bb_flip(m.batch(samples), horizontal=m.batch([0, 1, 1]), vertical=m.batch([2, 0, 1]))
    )


def test_boxes_of_other_than_four_numbers():
    for shape in ((2, 5), (3,), ()):
        with pytest.raises(RuntimeError, match=r"bb_flip: .*boxes"):
            ndd.bb_flip(ndd.tensor(np.zeros(shape, np.float32))).evaluate()
    with pytest.raises(RuntimeError, match=r"bb_flip: sample 1: .*shape \(1, 3\)"):
        ndd.bb_flip(ndd.batch([np.zeros((1, 4), np.float32), np.zeros((1, 3), np.float32)])).evaluate()
