"""The kernels of arithmetic and mathematics, which are no operators of their own, compile for old and new GPUs."""

from __future__ import annotations

import numpy as np
from nvrtc import compiled

import ndd
from ndd.ops.tensor.elementwise import BINARY, UNARY, apply


def test_every_operation_compiles(kernels, nvrtc):
    wide, narrow, real = (ndd.tensor(np.array([3, 5], k)).gpu() for k in (np.int64, np.uint8, np.float32))
    big = ndd.tensor(np.array([3, 5], np.uint64)).gpu()
    for name in UNARY:
        apply(name, narrow).evaluate()
        if name != "bitnot":
            apply(name, real).evaluate()
    for name in BINARY:
        apply(name, wide, narrow).evaluate()
        apply(name, big, wide).evaluate()
        if "bit" not in name and "shift" not in name:
            apply(name, real, 2.5).evaluate()
    apply("clamp", real, wide, 7).evaluate()
    apply("clamp", narrow, 0, 7).evaluate()
    apply("add", real, ndd.tensor([[1.0], [2.0]]).gpu()).evaluate()
    assert len(kernels.texts) > 100
    # Every second text for old GPUs, the others for new ones: they differ in one operation and in element types.
    wrong = [c for i, text in enumerate(kernels.texts) if (c := compiled(text, (75, 120)[i % 2])) is not None]
    assert not wrong, wrong[0]
