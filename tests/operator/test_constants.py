"""Lists, tuples, arrays and numbers as arguments: which of them a kept call serves, and which are constants of their own."""

from __future__ import annotations

import copy
from enum import IntEnum
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest

import ndd
from ndd._tensor.cache_keys import Constants


@ndd.operator(register=False)
def described(array, /, *, by: list[float], other: Any = None):
    """The numbers of `by`, with the signs of their zeros."""
    return ndd.like(array)


@described.plan
def _(array, *, by, other):
    return ndd.Plan(array.shapes, shared={"sum": np.sum(by), "negative": int(np.signbit(by).sum())})


@described.cpu
def _(array, out, sum, negative):
    out[...] = array + sum + 100 * negative


def _result(by: Any) -> float:
    return float(np.asarray(described(ndd.tensor([0.0]), by=by))[0])


@pytest.mark.parametrize("numbers", [[1.0, 2.0], [[1.0, 2.0], [0.0, 4.0]], [0.0], [1, 2], [0.5] * 300])
def test_a_call_follows_its_list(numbers):
    numbers = copy.deepcopy(numbers)
    row = numbers[0] if isinstance(numbers[0], list) else numbers
    before = _result(numbers)
    assert _result(numbers) == before
    row[0] += 8
    assert _result(numbers) == before + 8
    row.append(16.0)
    if row is numbers:
        assert _result(numbers) == before + 24
    else:
        with pytest.raises(ValueError, match="different lengths"):
            _result(numbers)


def test_what_was_called_keeps_the_numbers_of_its_call():
    """A deferred call, too, which runs after the list has changed."""
    numbers, rows = [1.0, 2.0], [[1.0], [2.0]]
    with ndd.EvalMode.deferred:
        results = [described(ndd.tensor([0.0]), by=numbers), described(ndd.tensor([0.0]), by=rows)]
        numbers[0] = rows[0][0] = 50.0
    assert [float(np.asarray(r)[0]) for r in results] == [3.0, 3.0]


def test_zeros_of_either_sign_are_apart():
    order = [0.0, -0.0, 0, False, -0.0, 0.0]
    expected = [0.0, 100.0, 0.0, 0.0, 100.0, 0.0]
    for wrapped in (list, tuple, np.array, lambda v: [[*v]], lambda v: ((*v,),)):
        assert [_result(wrapped([v])) for v in order * 2] == expected * 2


class _Number(IntEnum):
    ONE = 1


class _Pair(NamedTuple):
    x: Any
    y: Any


_ONES = (1, True, 1.0, np.float32(1), np.float64(1), np.int64(1), np.bool_(True), _Number.ONE, Fraction(1))


@pytest.mark.parametrize("wrapped", [lambda v: v, lambda v: (v,), lambda v: (3, (v, 0.5)), lambda v: _Pair(v, 2)])
def test_equal_numbers_of_different_types_are_different_constants(wrapped):
    for i, item in enumerate(_ONES[:-1]):  # a call with a fraction is not kept
        constants = Constants((None, wrapped(item)))
        same = [constants.same((None, wrapped(value))) for value in _ONES]
        assert same == [k == i for k in range(len(_ONES))]


def test_equal_constants_are_the_same_whoever_holds_them():
    value = 1000.25 + len(_ONES)
    held = [value, value]
    assert Constants(((value, 7.0),)).same((tuple([float(str(value)), 7.0]),))
    assert Constants((tuple(held),)).same(((float(str(value)), float(str(value))),))


def test_a_list_is_as_good_as_a_tuple():
    """Lists and tuples of the same numbers share what is kept, nested ones too."""
    kept = described.operator._cached_calls
    for as_list, as_tuple in (([31.5, 2.0], (31.5, 2.0)), ([[31.5], [2.0]], ((31.5,), (2.0,)))):
        _result(as_tuple)
        count = len(kept)
        assert _result(as_list) == _result(as_tuple) == 33.5
        assert len(kept) == count


def test_a_long_list_is_not_compared():
    """To compare thousands of numbers takes longer than to convert them."""
    kept = described.operator._cached_calls
    count = len(kept)
    assert _result([1.0] * 1000) == 1000
    assert len(kept) == count


def test_a_number_for_a_list_and_a_list_for_a_number():
    image = ndd.zeros(shape=[4, 4, 3], dtype=ndd.uint8, layout="HWC")
    assert ndd.resize(image, size=2).shape == ndd.resize(image, size=[2, 2]).shape == (2, 2, 3)
    assert ndd.resize(image, resize_x=[2]).shape == (2, 2, 3)
    with pytest.raises(RuntimeError, match="one value for all samples"):
        ndd.resize(image, resize_x=[2, 3])


@pytest.mark.parametrize(
    ("name", "vectors", "others"),
    [
        ("resize", {"size": [[4, 5], [6, 3]]}, {}), ("crop", {"crop": [[2, 3], [4, 1]]}, {}),
        ("slice", {"start": [[1, 2], [0, 1]], "shape": [[3, 2], [1, 4]]}, {"axis_names": "HW"}),
        ("resize_crop_mirror", {"size": [[9, 7], [8, 9]], "crop": [[4, 5], [6, 3]]}, {}),
        ("crop_mirror_normalize", {"mean": [[1, 2, 3], [4, 5, 6]], "crop": [[2, 2], [2, 2]]}, {}),
    ],
)  # fmt: skip
def test_vectors_of_samples_are_no_constants(name, vectors, others):
    """Other vectors of the same type take the cached call: preparing one takes longer than the call. Wrong ones are noticed."""
    call, image = getattr(ndd, name), np.random.default_rng(1).integers(0, 256, (8, 9, 3), np.uint8)
    images = ndd.batch([image, image], layout="HWC")
    batched = lambda turn: {k: ndd.batch(np.int32(v[::turn])) for k, v in vectors.items()}  # noqa: E731
    first = call(images, **batched(1), **others).evaluate()
    count = len(call.operator._cached_calls)
    second = call(images, **batched(-1), **others).evaluate()
    assert len(call.operator._cached_calls) == count
    for a, b in zip(first.tensors, reversed(list(second.tensors)), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
    wrong = {k: ndd.batch(np.int32([[1, 2, 3, 4]] * 2)) for k in vectors}
    with pytest.raises(RuntimeError, match=name):
        call(images, **wrong, **others).evaluate()
