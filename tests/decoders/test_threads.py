"""Decoding on many threads at once: the pool's, and users'. Same pixels, nothing lost, flat memory."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from encoded import made, read, real
from memory import least_growth

import ndd


def files():
    names = ("420.jpg", "rgb.png", "turned_6.jpg", "lossy.webp", "rgb.tif", "rgb.jp2", "422_progressive.jpg")
    return [made()[n] for n in names] + [read(p) for p in real("imagenet/*/*")[:9]]


def test_users_threads():
    data = files()
    expected = [np.asarray(ndd.decoders.image(d)).copy() for d in data]
    wrong = []

    def work(number):
        order = np.random.default_rng(number).permutation(len(data))
        for _ in range(3):
            context = ndd.EvalContext(num_threads=2) if number % 2 else ndd.EvalContext.current()
            with context:
                out = ndd.decoders.image(ndd.batch([data[i] for i in order]))
                cut = ndd.decoders.image_crop(
                    ndd.batch([data[i] for i in order]), crop=[9, 9], crop_pos_x=0, crop_pos_y=0
                )
                for i, whole, window in zip(order, out.tensors, cut.tensors, strict=True):
                    if not np.array_equal(np.asarray(whole), expected[i]):
                        wrong.append((number, i))
                    if not np.array_equal(np.asarray(window), expected[i][:9, :9]):
                        wrong.append((number, i, "window"))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(120)
    assert not any(t.is_alive() for t in threads)
    assert wrong == []


@pytest.mark.parametrize("count", [1, 3, 16])
@pytest.mark.drawn(1)
def test_threads_of_the_pool(count):
    data = files() * 4
    expected = ndd.decoders.image(ndd.batch(data), on_error="skip")
    expected = [np.asarray(t).copy() for t in expected.tensors]
    with ndd.EvalContext(num_threads=count):
        for _ in range(2):
            out = ndd.decoders.image(ndd.batch(data))
            for mine, theirs in zip(out.tensors, expected, strict=True):
                np.testing.assert_array_equal(np.asarray(mine), theirs)


def test_memory_is_flat():
    batch = ndd.batch(files() * 2)
    bad = ndd.batch([d[: len(d) // 2] for d in files()])

    def rounds(n):
        for _ in range(n):
            ndd.decoders.image(batch).evaluate()
            ndd.decoders.image_crop(batch, crop=[9, 9]).evaluate()
            ndd.decoders.image(bad, on_error="skip").evaluate()

    rounds(3)
    assert least_growth(lambda: rounds(2), parts=3) < 13e6  # one round decodes 15 MB
