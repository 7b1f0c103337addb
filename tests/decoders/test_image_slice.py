"""decoders.image_slice: every way to give a window, against the oracle and a full decode."""

from __future__ import annotations

import numpy as np
import pytest
from cases import each_of
from encoded import made, needs_files, read, real

import ndd

REGISTRY_CASES = {
    "decoders.image_slice": each_of(
        {"start": [1, 2], "shape": [5, 6], "axes": [0, 1]}, inputs=("jpeg",), dtypes=("float32",)
    ),
}

F32 = np.float32
NAMED = [
    {"start": [10, 20]},
    {"start": [10, 12], "shape": [13, 14]},
    {"start": [10, 12], "end": [23, 24]},
    {"rel_start": [0.1, 0.2], "rel_end": [0.7, 0.8]},
    {"rel_start": [0.1, 0.2], "rel_shape": [0.33, 0.45]},
    {"start": [10, 12], "rel_shape": [0.3, 0.3]},
    {"rel_start": [0.1, 0.2], "shape": [13, 14]},
    {"end": [13, 14]},
    {"shape": [13, 14]},
    {"rel_end": [0.5, 0.25]},
    {"start": [10, 12], "shape": [13, 14], "axes": [0, 1]},
    {"start": [10, 12], "shape": [13, 14], "axes": [-2, -1]},
    {"start": [10, 12], "shape": [13, 14], "axis_names": "HW"},
    {"start": [10], "shape": [13], "axis_names": "W"},
    {"start": 10, "shape": 13, "axis_names": "H"},
]
POSITIONAL = [
    (np.array([10, 12], np.int32), np.array([13, 14], np.int32), {}),
    (np.array([10, 12], np.int64), np.array([13, 14], np.int64), {}),
    (np.array([0.1, 0.2], F32), np.array([0.5, 0.6], F32), {}),
    (np.array([10.5, 12.4], F32), np.array([13.5, 14.0], F32), {"normalized_anchor": False, "normalized_shape": False}),
    (np.array([10.5, 12.4], F32), np.array([0.35, 0.2], F32), {"normalized_anchor": False}),
    (np.array([0.25, 0.25], F32), np.array([5.0, 7.0], F32), {"normalized_shape": False, "axes": [0, 1]}),
]
FILES = ("420.jpg", "odd.jpg", "rgba.png", "turned_6.jpg", "turned_4.jpg", "rgb.jp2")


def check(dali, names, inputs, arguments):
    for name in names:
        data = made()[name]
        with dali.EvalMode.sync_cpu:
            expected = dali.decoders.image_slice(dali.tensor(data), *[dali.tensor(i) for i in inputs], **arguments)
            expected = np.asarray(expected).copy()
        result = ndd.decoders.image_slice(ndd.tensor(data), *inputs, **arguments)
        np.testing.assert_array_equal(np.asarray(result), expected, err_msg=name)
        if min(arguments.get("axes", [0])) < 0:
            continue  # counted from the channels there
        full = ndd.slice(ndd.decoders.image(data), *inputs, **arguments)
        np.testing.assert_array_equal(np.asarray(result), np.asarray(full), err_msg=name)


@pytest.mark.oracle
@pytest.mark.parametrize("arguments", NAMED, ids=str)
@pytest.mark.drawn(3)
def test_named_windows(dali, arguments):
    check(dali, FILES, (), arguments)


@pytest.mark.oracle
@pytest.mark.parametrize(("anchor", "shape", "arguments"), POSITIONAL)
def test_positional_windows(dali, anchor, shape, arguments):
    check(dali, FILES, (anchor, shape), arguments)


def test_windows_for_each_sample():
    batch = ndd.batch([made()["420.jpg"], made()["odd.jpg"]])
    full = ndd.decoders.image(batch)
    starts, shapes = ndd.batch([[10, 12], [1, 2]]), ndd.batch([[5, 6], [7, 8]])
    for result, expected in (
        (ndd.decoders.image_slice(batch, starts, shapes), ndd.slice(full, starts, shapes)),
        (ndd.decoders.image_slice(batch, start=starts, shape=[3, 4]), ndd.slice(full, start=starts, shape=[3, 4])),
        (
            ndd.decoders.image_slice(batch, ndd.tensor([1, 2]), ndd.tensor([3, 4])),
            ndd.slice(full, ndd.tensor([1, 2]), ndd.tensor([3, 4])),
        ),
    ):
        assert result.shape == expected.shape
        for mine, cut in zip(result.tensors, expected.tensors, strict=True):
            np.testing.assert_array_equal(np.asarray(mine), np.asarray(cut))


@needs_files
def test_windows_of_photographs_are_exact():
    batch = ndd.batch([read(p) for p in real("imagenet/*/*")[64:128]])
    rng = np.random.default_rng(3)
    low = rng.random((64, 2)).astype(F32) * F32(0.6)
    size = F32(0.05) + rng.random((64, 2)).astype(F32) * F32(0.3)
    arguments = {"rel_start": ndd.batch(list(low)), "rel_shape": ndd.batch(list(size))}
    result = ndd.decoders.image_slice(batch, **arguments)
    expected = ndd.slice(ndd.decoders.image(batch), **arguments)
    for mine, full in zip(result.tensors, expected.tensors, strict=True):
        np.testing.assert_array_equal(np.asarray(mine), np.asarray(full))


@pytest.mark.parametrize(
    ("inputs", "arguments"),
    [
        ((), {}),
        (([1, 2],), {}),
        (([1, 2], [3, 4]), {"start": [1, 2]}),
        (([1, 2], [0.3, 0.4]), {}),
        (([1, 2, 3], [3, 4, 5]), {}),
        ((np.array([0.1, 0.2]), np.array([0.3, 0.4])), {}),
        ((), {"start": [-1, 0], "shape": [3, 4]}),
        ((), {"start": [0, 0], "shape": [300, 4]}),
        ((), {"start": [0, 0], "shape": [-1, 4]}),
        ((), {"start": [0, 0], "shape": [0, 4]}),
        ((), {"start": [10, 0], "end": [5, 4]}),
        ((), {"start": [1, 1], "end": [5, 4], "shape": [3, 3]}),
        ((), {"start": [1, 1], "rel_start": [0.1, 0.1]}),
        ((), {"start": [1, 1, 1]}),
        ((), {"start": [1, 1], "axes": [0, 5]}),
        ((), {"start": [1, 1], "axes": [1, 1]}),
        ((), {"start": [1, 1], "axis_names": "HC"}),
        ((), {"start": [1, 1], "axis_names": "HW", "axes": [0, 1]}),
    ],
    ids=str,
)
def test_misuse(inputs, arguments):
    with pytest.raises(RuntimeError):
        ndd.decoders.image_slice(made()["420.jpg"], *inputs, **arguments).evaluate()
