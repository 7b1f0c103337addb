"""Batches on their way to the GPU: several threads write them to pinned memory."""

from __future__ import annotations

import numpy as np
import pytest

import ndd
from ndd._execution.threads import ThreadPool


@pytest.mark.parametrize("form", ["whole", "ragged", "one", "small", "empty", "apart"])
@pytest.mark.drawn(1)
def test_every_form_arrives(emulated_gpu, monkeypatch, form):
    """A batch of 4 MB and more is shared between threads, a small one is not; either way it is what it was."""
    shapes = {"whole": [(700, 500)] * 4, "ragged": [(900, 400), (10, 3), (0, 7), (333, 1111)], "one": [(1500, 700)],
              "small": [(3, 5), (4, 4)], "empty": [(0, 3), (0, 2)], "apart": [(512, 512)] * 5}[form]  # fmt: skip
    draws = np.random.default_rng(3)
    arrays = [draws.random(shape, np.float32) for shape in shapes]
    shared: list[int] = []
    run = ThreadPool.run
    monkeypatch.setattr(
        ThreadPool, "run", lambda pool, function, count: shared.append(count) or run(pool, function, count)
    )
    arguments = (
        ndd.as_batch(np.stack(arrays))
        if form == "whole"
        else ndd.as_batch([a[::-1] if form == "apart" else a for a in arrays])
    )
    with ndd.EvalContext(num_threads=3):
        result = [np.asarray(t.cpu()) for t in arguments.gpu()]
    for array, there in zip(arrays, result, strict=True):
        np.testing.assert_array_equal(there, array[::-1] if form == "apart" else array)
    assert bool(shared) == (form not in ("small", "empty"))
