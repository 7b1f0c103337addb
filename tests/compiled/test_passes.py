"""The passes that kernels are compiled by: what they leave out, and that kernels that need more are compiled all the same."""

from __future__ import annotations

import sys

import numba
import numpy as np
import pytest
from numba import literal_unroll

from ndd._compiled import linking
from ndd._compiled.dispatcher import compile_for
from ndd._compiled.intrinsics import array_at, empty
from ndd._compiled.jit import Kernel


def _rows(rows, out):
    best = rows[0]
    for i in range(len(rows)):
        if rows[i, 0] > best[0]:
            best = rows[i]
    flat = rows.reshape(rows.size)
    like = array_at(rows.ctypes.data, rows.shape, rows)
    pair = (best,) + (flat[1:], like[1])
    for k in range(len(out)):
        out[k] = pair[0][k] + pair[1][k] + pair[2][k]


def _some_copied(rows, out):
    made = empty(len(out), np.float32)
    chosen = rows[rows[:, 0] > 2.0]  # a new array
    for k in range(len(out)):
        made[k] = chosen[0, k]
    for k in range(len(out)):
        out[k] = made[k]


def _expression(rows, out):
    out[:] = rows[0] * np.float32(2) + rows[1] - np.sqrt(rows[2])


def _closure(rows, out):
    def double(number):
        return number + number

    for k in range(len(out)):
        out[k] = double(rows[1, k])


def _comprehension(rows, out):
    doubled = [row[0] * 2 for row in rows]
    for k in range(len(out)):
        out[k] = doubled[k]


def _unrolled(rows, out):
    k = 0
    for number in literal_unroll((1, 2.5, True)):
        out[k] = number
        k += 1  # noqa: SIM113


_TEXTS = [_rows, _some_copied, _expression, _closure, _comprehension, _unrolled]


@pytest.fixture(autouse=True)
def _nothing_is_kept(monkeypatch):
    monkeypatch.setattr(Kernel, "_text", lambda self: None)


@pytest.mark.parametrize("function", _TEXTS)
def test_computes_what_numba_computes(function):
    rows = np.arange(12, dtype=np.float32).reshape(4, 3)
    out, expected = np.zeros(3, np.float32), np.zeros(3, np.float32)
    if function is _rows:
        expected[:] = rows[3] + rows.ravel()[1:4] + rows[1]
    else:
        numba.njit(function if function is not _some_copied else _with_numpy)(rows, expected)
    held = sys.getrefcount(rows), sys.getrefcount(out)
    for _ in range(3):
        Kernel(function, {})(rows, out)
    assert out.tolist() == expected.tolist()
    assert (sys.getrefcount(rows), sys.getrefcount(out)) == held


def _with_numpy(rows, out):
    out[:] = rows[rows[:, 0] > 2.0][0]


def code_of(function, *args):
    kernel = Kernel(function, {}).compiled()
    compile_for(kernel, args)
    return "".join(kernel.inspect_llvm().values())


def test_only_kernels_that_make_arrays_count_references():
    rows, out = np.ones((4, 3), np.float32), np.zeros(3, np.float32)
    assert "NRT_" not in code_of(_rows, rows, out)
    assert "NRT_decref" in code_of(_some_copied, 4 * rows, out)


def test_what_is_made_is_freed():
    from numba.core.runtime import _nrt_python, rtsys

    rows, out = np.full((4, 3), 3, np.float32), np.zeros(3, np.float32)
    kernel = Kernel(_some_copied, {})
    kernel(rows, out)
    _nrt_python.memsys_enable_stats()
    try:
        before = rtsys.get_allocation_stats()
        for _ in range(20):
            kernel(rows, out)
        after = rtsys.get_allocation_stats()
    finally:
        _nrt_python.memsys_disable_stats()
    assert after.mi_alloc - before.mi_alloc == after.mi_free - before.mi_free >= 40


def test_a_wrong_kernel_has_the_error_of_numba():
    def wrong(rows, out):
        out[0] = rows.no_such_name

    with pytest.raises(numba.TypingError, match="no_such_name"):
        Kernel(wrong, {})(np.ones((4, 3), np.float32), np.zeros(3, np.float32))


def test_usual_kernels_need_no_other_passes(monkeypatch):
    """Else they are compiled twice."""
    numba_parts = linking._numba()
    refused = []
    define = numba_parts.outer.__mro__[1].define_pipelines
    monkeypatch.setattr(
        numba_parts.outer.__mro__[1], "define_pipelines", lambda self: refused.append(self) or define(self)
    )
    rows, out = np.ones((4, 3), np.float32), np.zeros(3, np.float32)
    for function in (_rows, _some_copied, _expression):
        code_of(function, rows, out)
    assert not refused
    code_of(_closure, rows, out)
    assert refused
