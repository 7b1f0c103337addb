"""What `@operator` promises, for every operator of the registry: nothing kept serves other data, constants are checked
at the call, the number of outputs is known before anything runs.
"""

from __future__ import annotations

import inspect
import typing
import warnings
from enum import Enum

import numpy as np
import pytest
import torch
from calling import call, call_with, cases_of, decodes, evaluated, layouts_of, load_every_module, public, samples
from compare import arrays_of

import ndd
from ndd import DType

OPERATORS = load_every_module()
FIRST = [pytest.param(p, cases_of(p, op)[0], id=p) for p, op in sorted(OPERATORS.items()) if cases_of(p, op)]
BUILTIN = (TypeError, ValueError, RuntimeError, IndexError, OverflowError)


def _others(inputs):
    """The same shapes and kinds of values, in another order."""
    return [([np.roll(a.reshape(-1), 1).reshape(a.shape) for a in arrays], layout) for arrays, layout in inputs]


def _numbers(outputs):
    return [a for out in outputs for a in arrays_of(out)]


def _outcome(make):
    try:
        return _numbers(evaluated(make()))
    except BUILTIN as error:
        return type(error)


def _assert_equal(result, expected):
    if isinstance(expected, type):
        assert result is expected
        return
    for a, b in zip(result, expected, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("form", ["uniform", "one"])
@pytest.mark.parametrize(("path", "case"), FIRST)
def test_other_data_of_equal_shapes_gives_its_own_numbers(path, case, form):
    op = OPERATORS[path]
    first = samples(case, layouts_of(case, op)[0], form)
    second = _others(first)
    op.forget()
    expected = _outcome(lambda: call(ndd, path, case, second, form))
    op.forget()
    _outcome(lambda: call(ndd, path, case, first, form))
    for _ in range(2):
        _assert_equal(_outcome(lambda: call(ndd, path, case, second, form)), expected)


@pytest.mark.parametrize(("path", "case"), FIRST)
@pytest.mark.drawn(1)
def test_other_data_of_equal_shapes_gives_its_own_numbers_on_the_gpu(path, case, emulated_gpu):
    op = OPERATORS[path]
    if not op.runs_on_gpu or decodes(op) or case.inputs == ():
        pytest.skip("no inputs on a GPU")
    first = samples(case, layouts_of(case, op)[0], "uniform")
    second = _others(first)

    def there(inputs):
        values = [ndd.batch(arrays, layout=own).gpu() for arrays, own in inputs]
        return call_with(ndd, public(ndd, path), case, values, "uniform", device="gpu")

    op.forget()
    expected = _outcome(lambda: there(second))
    op.forget()
    _outcome(lambda: there(first))
    for _ in range(2):
        _assert_equal(_outcome(lambda: there(second)), expected)


# Strings that may be anything.
ANY_TEXT = {
    "suffix": "a part of a file name",
    "cache_type": "without effect, as in DALI where there is no cache",
}


def _wrong(annotation):
    """Values that an argument of this annotation cannot have."""
    kinds = [k for k in typing.get_args(annotation) if k is not type(None)] or [annotation]
    kind = kinds[0] if typing.get_origin(annotation) is not typing.Literal else annotation
    kind = getattr(kind, "kind", kind)
    if kind is DType:
        return ["uint9", object(), 3.5]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return ["nonsense!", 12345, object()]
    if kind is str or typing.get_origin(kind) is typing.Literal:
        return ["nonsense!", object()]
    return []


@pytest.mark.parametrize(("path", "case"), FIRST)
def test_wrong_constants_are_refused_at_the_call(path, case):
    op = OPERATORS[path]
    inputs = samples(case, layouts_of(case, op)[0])
    late = []
    for name, parameter in inspect.signature(op.function, eval_str=True).parameters.items():
        if parameter.kind is not parameter.KEYWORD_ONLY or name in ANY_TEXT:
            continue
        for wrong in _wrong(parameter.annotation):
            with ndd.EvalMode.deferred:
                try:
                    call(ndd, path, case, inputs, **{name: wrong})
                except BUILTIN as error:
                    said = str(error)
                    if op.name not in said or name not in said:
                        late.append(f"{name}={wrong!r}: operator and argument are not named: {said}")
                else:
                    late.append(f"{name}={wrong!r}: not refused at the call")
    assert not late, "\n".join(late)


@pytest.mark.parametrize(("path", "case"), FIRST)
def test_element_types_are_taken_from_any_library(path, case):
    """Every argument that is an element type takes NumPy's, torch's and the names; what comes out is the same."""
    op = OPERATORS[path]
    names = [
        name for name, p in inspect.signature(op.function, eval_str=True).parameters.items()
        if DType in (p.annotation, *typing.get_args(p.annotation))
    ]  # fmt: skip
    assert names or "dtype" not in inspect.signature(op.function).parameters
    inputs = samples(case, layouts_of(case, op)[0]) if names else []

    def outcome(**arguments):
        with warnings.catch_warnings(), ndd.EvalMode.deferred:
            warnings.simplefilter("ignore")
            try:
                return [
                    (v._spec.dtype, v._spec.ndim, v._spec.layout) for v in call(ndd, path, case, inputs, **arguments)
                ]
            except BUILTIN as error:
                return type(error)

    for name in names:
        floats = (np.float32, np.dtype("f4"), torch.float32, "f32", float)
        for ours, theirs in ((ndd.float32, floats), (ndd.uint8, (np.uint8, torch.uint8))):
            expected = outcome(**{name: ours})
            assert expected is not TypeError
            for kind in theirs:
                assert outcome(**{name: kind}) == expected, (name, kind)


@pytest.mark.parametrize(("path", "case"), FIRST)
def test_the_number_of_outputs_is_known_before_anything_runs(path, case):
    op = OPERATORS[path]
    with ndd.EvalMode.deferred:
        inputs = samples(case, layouts_of(case, op)[0])
        outputs = call(ndd, path, case, inputs)
    constants = {k: v for k, v in case.args.items() if not hasattr(v, "values")}
    assert op.outputs(*inputs, **constants) == len(outputs)
