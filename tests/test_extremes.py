"""Every operator of the registry with extreme arguments and inputs: a result, or a sentence that names the operator.

Values are drawn with a fixed seed, so a failure comes again. `NDD_EXTREMES=2000 pytest --all tests/test_extremes.py` tries more.
Memory is limited meanwhile: what would take all of it is a MemoryError, as in a container.
"""

from __future__ import annotations

import inspect
import os
import warnings
import zlib

import numpy as np
import pytest
from calling import call_with, cases_of, layouts_of, load_every_module, public, samples
from selection import drawn

import ndd

COUNT = int(os.environ.get("NDD_EXTREMES", "25"))  # with `--all`
OPERATORS = load_every_module()
PATHS = [path for path, op in sorted(OPERATORS.items()) if cases_of(path, op)]
EXPECTED = (TypeError, ValueError, RuntimeError, IndexError, OverflowError, MemoryError, NotImplementedError)
ROOM = 3 << 30  # bytes of address space that a call may take; more than any sensible call here

INTEGERS = [0, 1, -1, 2, 7, 255, 65536, 2**31 - 1, 2**31, -(2**31), 2**63 - 1, 2**63, -(2**63), 2**70]
WHOLE = [number for number in INTEGERS if -(2**63) <= number < 2**63]
FLOATS = [0.0, -0.0, 0.5, -1.5, 1e-38, 1e-45, 1e10, -1e10, 3e38, 1e300, float("inf"), -float("inf"), float("nan")]
ODDITIES = [None, True, "", "nonsense", b"bytes", (), [], [[]], {}, object(), 1j, np.float16(7), np.uint64(2**64 - 1)]
LAYOUTS = ["HWC", "HW", "CHW", "FHWC", None]
DTYPES = ["uint8", "int8", "int16", "uint32", "int64", "float16", "float32", "float64", "bool"]


def _number(rng):
    return (INTEGERS if rng.random() < 0.5 else FLOATS)[rng.integers(0, 13)]


def _value(rng, batch):
    """A value for an argument: a number, some numbers, an array, a batch of values, or what makes no sense."""
    kind = rng.integers(0, 10)
    if kind < 3:
        return _number(rng)
    if kind < 6:
        return [_number(rng) for _ in range(rng.integers(0, 5))]
    if kind < 7:
        return ODDITIES[rng.integers(0, len(ODDITIES))]
    if kind < 8:
        shape = tuple(rng.integers(0, 4, rng.integers(0, 4)))
        return np.full(shape, FLOATS[rng.integers(0, len(FLOATS))], np.float32)
    if kind < 9 or not batch:
        return ndd.batch([np.float32(FLOATS[rng.integers(0, len(FLOATS))]) for _ in range(3)])
    return ndd.batch([np.zeros(rng.integers(0, 4), np.int64) for _ in range(rng.integers(1, 5))])


def _nearly_right(rng, argument, value):
    """The value of a case, of which some numbers are replaced; for all samples, or for each of three."""
    right = np.asarray(getattr(value, "values", [value])[0])
    if right.dtype.kind not in "iuf":
        right = np.ones(2 if argument.vector else ())
    kind = np.int64 if argument.numpy.kind == "i" else np.float32

    def one():
        numbers = np.array(right, kind)
        for place in range(numbers.size):
            if rng.random() < 0.5:
                numbers.flat[place] = (
                    FLOATS[rng.integers(0, 13)] if kind is np.float32 else WHOLE[rng.integers(0, len(WHOLE))]
                )
        return numbers

    with np.errstate(over="ignore"):
        return ndd.batch([one() for _ in range(3)]) if argument.per_sample and rng.random() < 0.4 else one().tolist()


def _input(rng):
    """An input that the operator may not be made for."""
    layout = LAYOUTS[rng.integers(0, len(LAYOUTS))]
    ndim = len(layout) if layout else rng.integers(0, 6)
    dtype = DTYPES[rng.integers(0, len(DTYPES))]
    make = lambda: np.zeros(tuple(rng.choice([0, 1, 2, 3, 5], ndim)), dtype)  # noqa: E731
    if rng.random() < 0.3:
        return ndd.tensor(make(), layout=layout)
    return ndd.batch([make() for _ in range(rng.integers(0, 4))] or [make()], layout=layout)


@pytest.fixture
def limited_memory():
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def _attempt(path, case, rng):
    """One call with one or two arguments or an input replaced; gives what was tried, and its error if it has none of
    the expected kinds or does not name the operator."""
    op = OPERATORS[path]
    form = "one" if rng.random() < 0.3 and case.inputs != () else "ragged"
    inputs = samples(case, layouts_of(case, op)[0], form)
    make = (lambda a, own: ndd.tensor(a[0], layout=own)) if form == "one" else (lambda a, own: ndd.batch(a, layout=own))
    values = [make(arrays, own) for arrays, own in inputs]
    names = [n for n, p in inspect.signature(op.function).parameters.items() if p.kind is p.KEYWORD_ONLY]
    replaced = {}
    if values and (not names or rng.random() < 0.25):
        values[rng.integers(0, len(values))] = _input(rng)
    else:
        for name in rng.choice(names, min(len(names), rng.integers(1, 3)), replace=False):
            argument = next((a for a in op.arguments if a.name == name and a.number), None)
            if argument is not None and form != "one" and rng.random() < 0.5:
                replaced[str(name)] = _nearly_right(rng, argument, case.args.get(name, argument.default))
            else:
                replaced[str(name)] = _value(rng, form != "one")
    subject = f"{path}({form}, {[(v.dtype, v.shape, v.layout) for v in values]}, {replaced})"
    mode = ndd.EvalMode.eager if rng.random() < 0.3 else ndd.EvalMode.sync_cpu
    try:
        with mode, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for out in call_with(ndd, public(ndd, path), case, values, form, **replaced):
                out.evaluate()
    except EXPECTED as error:
        said = str(error)
        if isinstance(error, RuntimeError) and not isinstance(error, NotImplementedError) and not said:
            return subject, repr(error)
        if op.name not in said:
            return subject, f"{type(error).__name__} that does not name the operator: {said[:300]}"
    except Exception as error:
        return subject, f"{type(error).__name__}: {error}"
    return None


@pytest.mark.parametrize("path", PATHS)
def test_extreme_arguments(path, limited_memory):
    case = cases_of(path, OPERATORS[path])[0]
    rng = np.random.default_rng(zlib.crc32(path.encode()))
    count = len(drawn(range(COUNT), 6))
    result = [bad for bad in (_attempt(path, case, rng) for _ in range(count)) if bad]
    assert not result, f"{len(result)} of {count} calls:\n" + "\n".join(
        f"{subject}: {error}" for subject, error in result[:10]
    )
