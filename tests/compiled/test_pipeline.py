"""The shorter passes of numba's compiler: references are counted where memory may be freed, and nowhere else."""

from __future__ import annotations

import re
import sys

import numpy as np
import pytest
from numba.core.caching import NullCache

from ndd._compiled import pipeline
from ndd._compiled.intrinsics import array_at, empty, zeros
from ndd._compiled.jit import kernel


@kernel
def row_sum(row):
    total = 0.0
    for value in row:
        total += value
    return total


@kernel
def views_only(rows, out):
    flat = rows.reshape(rows.size).view(np.float32)
    parts = (rows[0], rows[1:], flat)
    for k in range(len(rows)):
        out[k] = row_sum(rows[k]) + row_sum(parts[2][:2]) + row_sum(parts[1][0])
    address = rows.ctypes.data
    return row_sum(array_at(address, rows.size, flat))


@kernel
def made(n):
    return zeros(n, np.float32) + np.float32(1)


@kernel
def filled_after(rows, out):
    kept = rows[0]
    for k in range(len(rows)):
        if k % 2:
            kept = made(rows.shape[1])
        out[k] = row_sum(kept)
    return True


@kernel
def picked(rows, which, out):
    out[:] = rows[which][:, 0]
    return True


@kernel
def of_sums(rows, out):
    line = empty(rows.shape[1], np.float32)
    total = rows[0] + rows[1]
    for k in range(len(line)):
        line[k] = total[k]
    out[:] = line
    return True


@kernel
def with_a_list(rows, out):
    parts = [rows[0], rows[1]]
    parts.append(made(rows.shape[1]))
    for k in range(3):
        out[k] = row_sum(parts[k])
    return True


@kernel
def with_a_closure(rows, out):
    def doubled(x):
        return 2 * x

    values = np.array([doubled(rows[k, 0]) for k in range(len(rows))])
    out[:] = values
    return True


@kernel
def checked(rows, limit):
    if rows.shape[0] > limit:
        raise ValueError("too many rows")
    return rows.shape[0]


def called(function, *arguments):
    """Calls it often, and says whether the references to its arguments and all of its memory are let go."""
    from numba.core.runtime import _nrt_python, rtsys

    arrays = [each for each in arguments if isinstance(each, np.ndarray)]
    function(*arguments)
    _nrt_python.memsys_enable_stats()
    before, held = rtsys.get_allocation_stats(), [sys.getrefcount(each) for each in arrays]
    for _ in range(20):
        result = function(*arguments)
    after = rtsys.get_allocation_stats()
    _nrt_python.memsys_disable_stats()
    assert [sys.getrefcount(each) for each in arrays] == held
    assert after.mi_alloc - before.mi_alloc == after.mi_free - before.mi_free
    return result


ROWS = np.arange(12, dtype=np.float32).reshape(4, 3)


def counts(function):
    """Whether its code, compiled anew, counts references."""
    (kinds,) = function.compiled().overloads
    fresh = function._dispatcher(inner=False)
    fresh._cache = NullCache()
    fresh.compile(kinds)
    return re.search(r"\bcall .*@NRT_decref\b", fresh.inspect_llvm(kinds)) is not None


def test_views_are_not_counted():
    out = np.zeros(4, np.float32)
    assert called(views_only, ROWS, out) == 66
    assert out.tolist() == [3 + 1 + 12, 12 + 1 + 12, 21 + 1 + 12, 30 + 1 + 12]
    assert not counts(views_only)


@pytest.mark.parametrize(
    ("function", "arguments", "right"),
    [
        (filled_after, (), [3, 3, 3, 3]),
        (picked, (np.array([3, 1, 0, 0]),), [9, 3, 0, 0]),
        (of_sums, (), [3, 5, 7]),
        (with_a_list, (), [3, 12, 3]),
        (with_a_closure, (), [0, 6, 12, 18]),
    ],
)
@pytest.mark.drawn(1)
def test_what_is_allocated_is_freed(function, arguments, right):
    out = np.zeros(len(right), np.float32)
    assert called(function, ROWS, *arguments, out)
    assert out.tolist() == right
    assert counts(function)


def test_an_error_is_raised():
    assert called(checked, ROWS, 4) == 4
    with pytest.raises(ValueError, match="too many rows"):
        checked(ROWS, 3)


def test_the_variables_of_an_instruction_are_numbas():
    """Of every instruction of functions with tuples, slices, closures and calls."""
    from numba.core import bytecode, interpreter, ir

    list_variables = next(new for owner, name, new in pipeline._changes() if name == "_rec_list_vars")
    seen = 0
    for function in (views_only, filled_after, with_a_list, with_a_closure, checked):
        identity = bytecode.FunctionIdentity.from_function(function.function)
        blocks = interpreter.Interpreter(identity).interpret(bytecode.ByteCode(identity)).blocks
        for statement in [each for block in blocks.values() for each in block.body]:
            for part in (vars(statement), [statement, (statement,), 1], statement.loc):
                assert list_variables(statement, part) == ir.Inst._rec_list_vars(statement, part)
            seen += len(list_variables(statement, vars(statement)))
    assert seen > 100


def test_numba_itself_is_as_before():
    import numba
    from numba.core import ir, postproc
    from numba.core.registry import cpu_target
    from numba.core.runtime import context
    from numba.core.types.abstract import _TypeMetaclass

    row_sum(ROWS[0])
    methods = (postproc.PostProcessor.run, context.NRTContext.get_meminfos, ir.Inst._rec_list_vars)
    assert {method.__module__.split(".")[0] for method in methods} == {"numba"}
    assert "__instancecheck__" not in vars(_TypeMetaclass)
    assert "load_additional_registries" not in vars(cpu_target.target_context)

    @numba.njit
    def numbers(n):
        for k in range(n):
            yield 2 * k

    assert list(numbers(3)) == [0, 2, 4]
