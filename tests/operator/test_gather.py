"""Bytes that lie apart, copied behind each other by threads that take pieces in turn."""

from __future__ import annotations

import numpy as np
import pytest

import ndd
from ndd._cpu.gather import PIECE, gather_loop
from ndd._execution.threads import ThreadPool
from ndd._operator.partition import parallel_for


def interpreted(*arguments):
    return gather_loop.run_fallback(*arguments)


@pytest.mark.parametrize("loop", [gather_loop, interpreted], ids=["compiled", "fallback"])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    "sizes",
    [[1], [0, 5, 0, 0, 7], [3 * PIECE + 5, 1, 0, PIECE - 6, 2 * PIECE], [PIECE], [PIECE, PIECE, 0], [100] * 5000],
    ids=lambda sizes: f"{len(sizes)} of {sum(sizes)} bytes",
)
def test_samples_lie_behind_each_other(loop, threads, sizes):
    rng = np.random.default_rng(0)
    parts = [rng.integers(0, 256, size, dtype=np.uint8) for size in sizes]
    ends = np.cumsum(sizes)
    out = np.full(int(ends[-1]) + 1, 7, np.uint8)
    places = np.array([part.ctypes.data for part in parts])
    case = places, ends, out.ctypes.data
    context = ndd.EvalContext(num_threads=threads)
    assert parallel_for(context, loop, case, -(-int(ends[-1]) // PIECE), 2 * int(ends[-1]), parts)
    np.testing.assert_array_equal(out[:-1], np.concatenate(parts))
    assert out[-1] == 7


@pytest.mark.parametrize("layout", ["flat", "whole", "apart", "two"])
def test_a_large_copy_is_shared_in_compiled_code(layout, monkeypatch):
    """Python threads would wait for the interpreter."""
    monkeypatch.setattr("ndd._operator.partition._WAKE_SECONDS", 1e-15)  # all threads take part
    monkeypatch.setattr(ThreadPool, "run", lambda *_: pytest.fail("a Python thread copies"))
    rng = np.random.default_rng(1)
    sizes = {"whole": [200] * 20, "two": [4000] * 2}.get(layout, [180 + k for k in range(20)])
    arrays = [rng.integers(0, 256, (size, 150, 3), np.uint8) for size in sizes]
    batch = {
        "flat": lambda: ndd.batch(arrays), "whole": lambda: ndd.as_batch(np.stack(arrays)),
        "apart": lambda: ndd.as_batch([ndd.as_tensor(a) for a in arrays]), "two": lambda: ndd.batch(arrays),
    }[layout]()  # fmt: skip
    with ndd.EvalContext(num_threads=3):
        for item, array in zip(ndd.copy(batch).evaluate().tensors, arrays, strict=True):
            np.testing.assert_array_equal(np.asarray(item), array)
