"""Operators that take a batch in one compiled pass: a task for each thread, not for each sample, and the same results."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import ndd
from ndd._compiled.background import background
from ndd._compiled.sample_loops import _by_fallback
from ndd._operator import all_operators, partition

COUNT = 24
RNG = np.random.default_rng(3)
POINTS = [RNG.random((n * 400, 2), np.float32) for n in range(COUNT)]
BOXES = [np.sort(RNG.random((n, 2, 2), np.float32), axis=1).reshape(-1, 4) for n in range(COUNT)]
LABELS = [np.arange(1, n + 1, dtype=np.int32) for n in range(COUNT)]
MASKS = [(RNG.random((20 + n, 150)) < 0.001 * n).astype(np.int32) for n in range(COUNT)]
IMAGES = [RNG.integers(0, 256, (20 + n, 50, 3), np.uint8) for n in range(COUNT)]
ANCHORS = np.sort(RNG.random((400, 2, 2), np.float32), axis=1).reshape(-1, 4)


def seeded():
    return ndd.random.RNG(seed=5)


OPERATORS = {
    "box_encoder": lambda: ndd.box_encoder(ndd.batch(BOXES), ndd.batch(LABELS), anchors=ANCHORS)[0],
    "coord_flip": lambda: ndd.coord_flip(ndd.batch(POINTS)),
    "coord_transform": lambda: ndd.coord_transform(ndd.batch(POINTS), M=[1.0, 2.0, 3.0, 4.0]),
    "full": lambda: ndd.full(np.uint16(77), shape=[COUNT, 301, 101], batch_size=2),
    "random.normal": lambda: ndd.random.normal(shape=ndd.batch([[900 * n, 3] for n in range(COUNT)]), rng=seeded()),
    "noise.salt_and_pepper": lambda: ndd.noise.salt_and_pepper(ndd.batch(IMAGES, layout="HWC"), rng=seeded()),
    "segmentation.random_mask_pixel": lambda: ndd.segmentation.random_mask_pixel(
        ndd.batch(MASKS), foreground=1, rng=seeded()
    ),
    "segmentation.random_object_bbox": lambda: ndd.segmentation.random_object_bbox(
        ndd.batch(MASKS), foreground_prob=0.8, format="box", rng=seeded()
    ),
}
OWN_LOOPS = {"full": "_fill_words", "random.normal": "fill_normal_loop"}


def arrays(value):
    return [np.asarray(item) for item in value.tensors]


@pytest.mark.parametrize("name", OPERATORS)
def test_a_task_for_each_thread_at_most(name, tasks, monkeypatch):
    monkeypatch.setattr(background, "allowed", False)
    with ndd.EvalContext(num_threads=3):
        result = arrays(OPERATORS[name]().evaluate())
    assert not tasks or max(tasks) <= 3, tasks
    with ndd.EvalContext(num_threads=1):
        alone = arrays(OPERATORS[name]().evaluate())
    for item, other in zip(result, alone, strict=True):
        np.testing.assert_array_equal(item, other)


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.drawn(2)
def test_the_same_while_the_kernel_is_compiled(name, monkeypatch):
    compiled = arrays(OPERATORS[name]().evaluate())
    if name in OWN_LOOPS:
        operator, kernel = all_operators()[name], OWN_LOOPS[name]
        scope = (operator.batch).__globals__
        monkeypatch.setitem(scope, kernel, scope[kernel]._fallback)
    else:
        monkeypatch.setattr(partition, "loop_over_samples", lambda item: functools.partial(_by_fallback, item))
        for operator in all_operators().values():  # plans that were kept have their loops
            operator.forget()
    for item, other in zip(compiled, arrays(OPERATORS[name]().evaluate()), strict=True):
        np.testing.assert_array_equal(item, other)


def test_samples_that_lie_apart_or_strided():
    spaced = [np.repeat(p, 2, axis=0)[::2] for p in POINTS]
    for call in (ndd.coord_flip, lambda x: ndd.coord_transform(x, M=[1.0, 2.0, 3.0, 4.0])):
        for arguments in (POINTS, spaced):
            for item, points in zip(arrays(call(ndd.batch(arguments))), POINTS, strict=True):
                np.testing.assert_array_equal(item, np.asarray(call(ndd.tensor(points))))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: ndd.coord_flip(x(POINTS[2]), flip_x=ndd.batch([0, 1, 1, 0, 1])),
        lambda x: ndd.coord_transform(x(POINTS[2]), T=ndd.batch([[float(n), 1] for n in range(5)])),
        lambda x: ndd.noise.salt_and_pepper(
            x(IMAGES[1], "HWC"), prob=ndd.batch([0.0, 0.1, 0.5, 0.9, 0.2]), rng=seeded()
        ),
        lambda x: ndd.segmentation.random_mask_pixel(x(MASKS[9]), foreground=ndd.batch([1, 1, 0, 1, 1]), rng=seeded()),
        lambda x: ndd.segmentation.random_object_bbox(
            x(MASKS[9]), background=ndd.batch([0, 1, 0, 0, 5]), format="box", rng=seeded()
        ),
    ],
)
def test_one_tensor_counts_for_every_sample(call):
    result = arrays(call(lambda array, layout=None: ndd.tensor(array, layout=layout)))
    for item, other in zip(
        result, arrays(call(lambda array, layout=None: ndd.batch([array] * 5, layout=layout))), strict=True
    ):
        np.testing.assert_array_equal(item, other)


def test_one_large_sample_is_drawn_by_several_threads(tasks, monkeypatch):
    monkeypatch.setattr(background, "allowed", False)
    with ndd.EvalContext(num_threads=2):
        large = np.asarray(ndd.random.normal(shape=[100_000], rng=seeded()))
    assert tasks == [2]
    small = np.asarray(ndd.random.normal(shape=[1000], rng=seeded()))
    np.testing.assert_array_equal(large[:1000], small)
