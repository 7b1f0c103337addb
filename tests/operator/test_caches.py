"""What is kept between calls has a limit: a loop whose shapes and constants are new each time keeps no more than that."""

import functools
import itertools
import sys

import numpy as np

import ndd
from ndd._execution.memoize import Memoized
from ndd._operator import all_operators
from ndd.readers.files.file_tree import glob_expression

_LIMITS = {"cached_call": 257, "plans": 65, "made": 65}  # of an operator; what is kept for one call with its constants
_LARGEST = 1030  # of any other limit
_CALLS = 1100  # of what has the largest limits
_LONG_CALLS = 280


def kept_lengths():
    """The length of each dictionary and cache that lives as long as a module of ndd, or an operator, does."""
    result = {}
    for name in list(sys.modules):
        if name.split(".")[0] != "ndd":
            continue
        for attribute in list(vars(sys.modules[name])):
            value = vars(sys.modules[name]).get(attribute)
            if isinstance(value, dict | Memoized):
                result[name, attribute] = len(value)
            elif isinstance(value, functools._lru_cache_wrapper):
                result[name, attribute] = value.cache_info().currsize
    for op in all_operators().values():
        result[op.name, "cached_call"] = len(op._cached_calls)
        result[op.name, "layouts"] = len(op._effective)
        result[op.name, "plans"] = max(
            (len(cached_call.plans) for cached_call in list(op._cached_calls.values())), default=0
        )
        result[op.name, "made"] = max(
            (len(cached_call.made_once) for cached_call in list(op._cached_calls.values())), default=0
        )
    return result


def test_new_shapes_and_constants_fill_nothing_for_ever():
    orders = itertools.permutations(range(7))
    many = ndd.as_tensor(np.zeros((1, 1, 1, 1, 1, 2, 1), np.uint8))
    before = kept_lengths()
    for i in range(_CALLS):
        ndd.transpose(many, perm=list(next(orders))).evaluate()
        (many + i).evaluate()
        glob_expression(f"*.{i}")
        if i >= _LONG_CALLS:
            continue
        image = ndd.as_tensor(np.zeros((2 + i % 17, 2 + i // 17, 3), np.uint8), layout="HWC")
        ragged = ndd.batch([image, image[:-1]])
        for result in (
            ndd.resize(ragged, size=[2, 3]),
            ndd.resize(image, size=[2, 3], max_size=2 + i),
            ndd.crop_mirror_normalize(image, crop=[2, 2], mean=[float(i)]),
            ndd.brightness_contrast(ragged, contrast=1.0 + i),
            ndd.reductions.sum(ragged, axes=[0]),
        ):
            result.evaluate()
    grown = {key: length - before.get(key, 0) for key, length in kept_lengths().items()}
    assert {key: length for key, length in grown.items() if length > _LIMITS.get(key[1], _LARGEST)} == {}
    assert max(grown.values()) > 50, "no cache was found to grow: the walk looks at the wrong things"
