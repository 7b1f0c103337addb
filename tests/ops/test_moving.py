"""Operators that move elements take samples in turn inside compiled loops: compiled, by the fallbacks, and sample by sample."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import ndd
from ndd._compiled.background import background
from ndd._compiled.sample_loops import _by_fallback
from ndd._operator import all_operators, partition

OUTSIDE: dict[str, Any] = {"out_of_bounds_policy": "pad"}
CALLS: dict[str, Any] = {
    "crop": lambda x: ndd.crop(x, crop=[3, 4], crop_pos_x=0, crop_pos_y=1, fill_values=[7.0], **OUTSIDE),
    "crop with colours": lambda x: ndd.crop(x, crop=[4, 9], fill_values=[7.0, 300, 9], **OUTSIDE),
    "crop of planes": lambda x: ndd.crop(
        ndd.transpose(x, perm=[2, 0, 1]), crop=[4, 9], fill_values=[7.0, 300, 9], **OUTSIDE
    ),
    "slice": lambda x: ndd.slice(x, start=[-1, 1], shape=[3, 6], axes=[1, 2], fill_values=[5.0], **OUTSIDE),
    "slice beyond": lambda x: ndd.slice(x, start=[9], shape=[2], axes=[1], fill_values=[1.0, 2, 3], **OUTSIDE),
    "pad": lambda x: ndd.pad(x, fill_value=3, axis_names="HW", shape=[7, 9], align=[4, 4]),
    "erase": lambda x: ndd.erase(x, anchor=[1, 0, 3, 2], shape=[2, 2, 9, 1], fill_value=[7, 8, 9]),
    "erase lines": lambda x: ndd.erase(x, anchor=[1], shape=[2], axis_names="H", fill_value=5),
    "erase channels": lambda x: ndd.erase(x, anchor=[0, 1], shape=[2, 1], axes=[0, 2], fill_value=[7, 8, 9]),
    "flip": lambda x: ndd.flip(x, vertical=1, horizontal=1),
    "flip some": lambda x: ndd.flip(x, vertical=1, horizontal=ndd.batch([i % 2 for i in range(len(x.shape))])),
    "transpose": lambda x: ndd.transpose(x, perm=[2, 0, 1]),
    "transpose back": lambda x: ndd.transpose(x, perm=[1, 2, 0]),
    "transpose each": lambda x: ndd.transpose(x, perm=[0, 2, 1]),
    "transpose nothing": lambda x: ndd.transpose(x, perm=[0, 1, 2]),
    "cat": lambda x: ndd.cat(x, x, x, axis=2),
    "cat of rows": lambda x: ndd.cat(x, x, axis=0),
    "stack": lambda x: ndd.stack(x, x, axis=1),
    "stack within": lambda x: ndd.stack(x, x, axis=3),
    "grid_mask": lambda x: ndd.grid_mask(x, tile=3, ratio=0.4, angle=0.3),
    "copy": ndd.copy,
    "frames": lambda x: ndd.sequence_rearrange(ndd.reshape(x, layout="FHW"), new_order=[3, 0, 0]),
}


def batch(how, kind):
    rng = np.random.default_rng(8)
    shapes = [(4 + k % 3, 5 + k % 4, 3) if how in ("ragged", "empty") else (5, 6, 3) for k in range(9)]
    samples = [rng.integers(0, 100, shape).astype(kind) for shape in shapes]
    if how == "empty":
        samples[4] = np.zeros((4, 0, 3), kind)
    if how == "strided":
        wide = [np.repeat(s, 2, axis=1) for s in samples]
        return ndd.batch(wide, layout="HWC").slice[:, ::2], samples
    if how == "whole":
        return ndd.as_batch(np.stack(samples), layout="HWC"), samples
    return ndd.batch(samples, layout="HWC"), samples


@pytest.mark.parametrize("kind", [np.uint8, np.float16, np.float64])
@pytest.mark.parametrize("how", ["ragged", "empty", "apart", "whole", "strided"])
@pytest.mark.drawn(2)
def test_compiled_and_answered_for(how, kind, monkeypatch):
    for name_of, least in (("_WAKE_SECONDS", 1e-15), ("_TINY", 0), ("_ALONE", 0)):  # threads for few bytes
        monkeypatch.setattr(partition, name_of, least)
    monkeypatch.setattr(background, "allowed", False)
    each, answered = partition.loop_over_samples, []

    def by_fallback(kernel):
        if not kernel.has_fallback():
            return each(kernel)
        answered.append(kernel)
        return functools.partial(_by_fallback, kernel)

    with ndd.EvalContext(num_threads=3):
        for name, call in CALLS.items():
            arguments, samples = batch(how, kind)
            result = [np.asarray(t).copy() for t in call(arguments).evaluate()]
            monkeypatch.setattr(partition, "loop_over_samples", by_fallback)
            for operator in all_operators().values():  # plans that were kept have their loops
                operator.forget()
            count = len(answered)
            for item, other in zip(result, call(arguments).evaluate(), strict=True):
                np.testing.assert_array_equal(item, np.asarray(other), err_msg=name)
            assert len(answered) > count or name in ("copy", "frames"), name
            monkeypatch.setattr(partition, "loop_over_samples", each)
            for operator in all_operators().values():
                operator.forget()
            # A sample alone has an argument of its own, and is not left out where it is empty.
            if name != "flip some" and not (how == "empty" and name.startswith("cat")):
                for item, sample in zip(result, samples, strict=True):
                    alone = call(ndd.batch([sample], layout="HWC")).evaluate()
                    np.testing.assert_array_equal(item, np.asarray(alone.select(0)), err_msg=name)


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.float32, np.float64, np.bool_])
def test_as_numpy_moves_them(kind):
    """Every element size, and pixels that move as one number."""
    rng = np.random.default_rng(9)
    for channels in (1, 2, 3, 4, 8):
        samples = [rng.integers(0, 100, (h, w, channels)).astype(kind) for h, w in ((3, 4), (9, 11), (1, 7), (5, 1))]
        arguments = ndd.batch(samples, layout="HWC")
        for expected, result in (
            (lambda s: s[::-1, ::-1], ndd.flip(arguments, vertical=1)),
            (lambda s: s.transpose(2, 0, 1), ndd.transpose(arguments, perm=[2, 0, 1])),
            (lambda s: s.transpose(1, 0, 2), ndd.transpose(arguments, perm=[1, 0, 2])),
            (
                lambda s: np.concatenate([s, s[:, :, :1], s], 2),
                ndd.cat(arguments, arguments.slice[:, :, :1], arguments, axis=2),
            ),
            (lambda s: np.stack([s, s], 2), ndd.stack(arguments, arguments, axis=2)),
            (lambda s: np.pad(s, ((0, 2), (0, 0), (0, 0))), _longer(arguments, samples)),
        ):
            for sample, item in zip(samples, result, strict=True):
                np.testing.assert_array_equal(np.asarray(item), expected(sample))


def _longer(arguments, samples):
    return ndd.pad(arguments, axes=[0], shape=ndd.batch([np.array([len(s) + 2]) for s in samples]))


@pytest.mark.parametrize("name", CALLS)
def test_no_task_for_each_sample(name, tasks, monkeypatch):
    """Threads ask for the interpreter once in a batch, and nothing is computed sample by sample in Python."""
    for name_of, least in (("_WAKE_SECONDS", 1e-15), ("_TINY", 0), ("_ALONE", 0)):  # threads for few bytes
        monkeypatch.setattr(partition, name_of, least)
    monkeypatch.setattr(background, "allowed", False)
    arguments, _ = batch("apart", np.uint8)
    with ndd.EvalContext(num_threads=3):
        CALLS[name](arguments).evaluate()
    assert max(tasks, default=0) <= 3
