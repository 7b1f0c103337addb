"""Sizes that no memory has: a sentence with the bytes asked for, at the call that asks for them."""

from __future__ import annotations

import numpy as np
import pytest

import ndd

IMAGES = ndd.batch([np.zeros((6, 5, 3), np.uint8)] * 4, layout="HWC")
CALLS = {
    "resize": (lambda: ndd.resize(IMAGES, size=[10**6, 10**6]), MemoryError, "12,000,000,000,000 bytes"),
    "zeros": (lambda: ndd.zeros(shape=[2**40] * 2), MemoryError, "1,208,925,819,614,629,174,706,176 elements"),
    "uniform": (lambda: ndd.random.uniform(shape=[2**40] * 2), MemoryError, "bytes, float32 of shape"),
    "pad": (lambda: ndd.pad(IMAGES, align=[10**9]), MemoryError, "bytes, uint8 of shape"),
    "reshape": (lambda: ndd.reshape(IMAGES, shape=[10**40]), OverflowError, "does not fit in 64 bits"),
    "ones": (lambda: ndd.ones(shape=[2**63]), OverflowError, "9223372036854775808 does not fit in 64 bits"),
}


@pytest.mark.parametrize("name", CALLS)
def test_too_large(name):
    call, kind, text = CALLS[name]
    with pytest.raises(kind, match=text) as caught, ndd.EvalMode.sync_cpu:
        call()
    assert str(caught.value).startswith(f"{name}: ")


def test_nested_fill_values():
    turned = [
        ndd.experimental.warp_perspective(IMAGES, matrix=[1, 0, 3, 0, 1, 0, 0, 0, 1], fill_value=fill)
        for fill in ([1.0, 2.0, 3.0], [[1.0, 2.0, 3.0]])
    ]
    np.testing.assert_array_equal(*[np.asarray(t.select(0)) for t in turned])
    assert np.asarray(turned[0].select(0)).max() == 3
