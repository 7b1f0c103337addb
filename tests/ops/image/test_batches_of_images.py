"""Operators that move pixels: a batch gives what its samples alone do, however it lies in memory, compiled and by the fallbacks."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import ndd
from ndd._compiled.sample_loops import _by_fallback
from ndd._operator import on_cpu, partition
from ndd.ops.image import resample_on_cpu

NN, LINEAR, CUBIC = (ndd.types.DALIInterpType(i) for i in range(3))
PERSPECTIVE = [[1.0, 0.1, -3.0], [0.05, 0.9, 2.0], [1e-3, 2e-3, 1.0]]


def remapped(x, interp):
    grid = np.mgrid[0:19, 0:23].astype(np.float32) * np.float32(1.3) - 2
    y, x_ = (ndd.as_tensor(m, layout="HW") for m in grid)
    if isinstance(x, ndd.Batch):
        y, x_ = (ndd.as_batch([m] * x.batch_size) for m in (y, x_))
    return ndd.experimental.remap(x, x_, y, interp=interp)


CALLS = {
    "rotate": lambda x: ndd.rotate(x, angle=30.0),
    "rotate nearest": lambda x: ndd.rotate(x, angle=80.0, interp_type=NN, fill_value=7.0),
    "warp_affine": lambda x: ndd.warp_affine(
        x, matrix=[0.9, 0.2, 1.0, -0.3, 1.1, 2.0], size=[18.0, 21.0], fill_value=3.0
    ),
    "sphere": lambda x: ndd.sphere(x),
    "water": lambda x: ndd.water(x, interp_type=LINEAR, fill_value=9.0),
    "masked": lambda x: ndd.water(x, mask=0),
    "warp_perspective": lambda x: ndd.experimental.warp_perspective(x, matrix=PERSPECTIVE, fill_value=[5.0]),
    "remap": lambda x: remapped(x, LINEAR),
    "remap nearest": lambda x: remapped(x, NN),
    "resize nearest": lambda x: ndd.resize(x, size=[-11, 31], interp_type=NN),
    "tensor_resize": lambda x: ndd.tensor_resize(x, sizes=[13, 17], axes=[0, 1]),
}


def laid_out(form, kind, channels):
    rng = np.random.default_rng(5)
    sizes = [(24, 30)] * 5 if form in ("apart", "strided") else [(24 + 3 * k, 30 - 2 * k) for k in range(5)]
    arrays = [rng.integers(0, 256, (*size, channels)).astype(kind) for size in sizes]
    if form == "strided":
        arrays = [a.repeat(2, 1)[:, ::2] for a in arrays]
    if form == "with odd ones":
        arrays[1:3] = [np.zeros((0, 5, channels), kind), np.full((1, 2, channels), 7, kind)]
    return arrays


@pytest.mark.parametrize("fallback", [False, True], ids=["compiled", "fallback"])
@pytest.mark.parametrize(("kind", "channels"), [(np.uint8, 3), (np.float32, 1)])
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.drawn(1)
def test_a_batch_gives_what_its_samples_do(name, kind, channels, fallback, monkeypatch):
    call = CALLS[name]
    for form in ("apart", "strided", "ragged", "with odd ones"):
        arrays = laid_out(form, kind, channels)
        alone = [np.asarray(call(ndd.as_tensor(a, layout="HWC"))) for a in arrays]
        with monkeypatch.context() as patch, ndd.EvalContext(num_threads=3):
            if fallback:
                patch.setattr(partition, "loop_over_samples", lambda kernel: functools.partial(_by_fallback, kernel))
            result = call(ndd.as_batch([ndd.as_tensor(a, layout="HWC") for a in arrays])).evaluate()
        for k, item in enumerate(result.tensors):
            np.testing.assert_array_equal(np.asarray(item), alone[k], err_msg=f"{form}, sample {k}")


@pytest.mark.parametrize("name", CALLS)
def test_no_image_with_pixels_is_left(name, monkeypatch):
    def left(*_):
        raise AssertionError("an image was left to Python")

    arrays = laid_out("ragged", np.uint8, 3)
    monkeypatch.setattr(on_cpu._Bound, "_one_by_one", left)
    monkeypatch.setattr(resample_on_cpu, "resample", left)
    CALLS[name](ndd.as_batch([ndd.as_tensor(a, layout="HWC") for a in arrays])).evaluate()
