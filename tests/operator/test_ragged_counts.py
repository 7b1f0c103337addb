"""What is counted of ragged batches for a GPU, by compiled loops and by NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import ndd
from ndd._cpu import ragged
from ndd._cuda import launch
from ndd._tensor.store import Volumes
from ndd.ops.audio import signal_lengths

_RNG = np.random.default_rng(3)
_LENGTHS = _RNG.integers(0, 5000, 37)
_SHAPES = {
    "none": np.empty((0, 2), np.int64),
    "numbers": np.empty((3, 0), np.int64),
    "one": np.array([[7]]),
    "signals": _LENGTHS[:, None],
    "images": _RNG.integers(0, 40, (37, 3)),
}


def room(*extents):
    return np.full(extents, -7, np.int64)


@pytest.mark.parametrize("name", _SHAPES)
def test_elements_and_places_are_those_of_numpy(name):
    shapes = _SHAPES[name]
    result, expected = launch.counted(shapes), Volumes(shapes)
    for case in ("sizes", "offsets"):
        np.testing.assert_array_equal(getattr(result, case), getattr(expected, case))
    assert (result.total, result.largest) == (expected.total, expected.largest)


@pytest.mark.parametrize(
    "shapes",
    [
        pytest.param(np.array([[1 << 40, 1 << 40]]), id="a sample"),
        pytest.param(np.full((3, 1), 1 << 59), id="all samples"),
        pytest.param(np.full((1, 4), 1 << 32), id="a product that is 0 in 64 bits"),
    ],
)
def test_more_elements_than_can_be_counted(shapes):
    with pytest.raises(MemoryError, match="the shape of a sample is too large"):
        launch.counted(shapes)


def test_nothing_of_a_huge_extent_can_be_counted():
    assert launch.counted(np.array([[1 << 40, 1 << 40, 0], [2, 3, 4]])).total == 24


@pytest.mark.parametrize("shapes", [_SHAPES["images"][:, :2], _SHAPES["images"].astype(np.int32)])
def test_shapes_that_are_not_as_a_rule(shapes):
    assert launch.counted(shapes).total == shapes.astype(np.int64).prod(axis=1).sum()


# The same by NumPy.


def count_elements(shapes, counted):
    sizes = np.prod(shapes.astype(np.float64), axis=1)
    if not sizes.sum() < ragged._MOST or not (sizes < ragged._MOST).all():
        return -1, -1
    counted[0] = np.prod(shapes, axis=1)
    counted[1] = np.add.accumulate(counted[0]) - counted[0]
    return int(counted[0].sum()), int(counted[0].max(initial=0))


def count_rows(shapes, axes, lanes, threads, rows):
    inside = [bool(axes >> k & 1) for k in range(shapes.shape[1])]
    rows[:] = shapes[:, inside].prod(axis=1)
    threads[:] = lanes * shapes[:, ~np.array(inside, bool)].prod(axis=1)
    return int(rows.max(initial=0))


def largest(values):
    return int(values.max(initial=0))


def write_addresses(column, base, places, step):
    column[:] = places * step + base


def write_steps(column, base, step):
    column[:] = np.arange(len(column)) * step + base


def resampled(extents, before, after, shapes, steps):
    shapes[:] = extents
    shapes[:, 0] = np.ceil(extents[:, 0] * after / before)
    steps[:] = before / (after or 1.0)


def whole_blocks(shapes, block, threads):
    threads[:] = (shapes[:, 0] + block - 1) // block * block * shapes[:, 1:].prod(axis=1)


def limit_windows(sizes, length, windows):
    windows[:] = np.clip(sizes, 1, length)


def count_intervals(sizes, interval, intervals, threads):
    intervals[:] = (sizes + interval - 1) // interval if interval > 0 else np.minimum(sizes, 1)
    threads[:] = 32 * np.maximum(intervals, 1)


def count_frames(extents, centred, length, step, bins, along_t, lengths, counts, shapes):
    lengths[:] = extents.prod(axis=1)
    several = extents.shape[1] > 1 and (extents != 1).sum(axis=1) > 1
    refused = (lengths < (1 if centred else max(1, length - step + 1))) | several
    counts[:] = (lengths if centred else np.maximum(lengths - length, 0)) // step + 1
    shapes[:, 1 - along_t], shapes[:, along_t] = bins, counts
    return int(refused.argmax()) if refused.any() else -1


SIGNALS = np.ascontiguousarray(_LENGTHS[:, None] + 1)
IMAGES = _SHAPES["images"]
CALLS = {
    "count_elements": (ragged.count_elements, lambda: (IMAGES, room(2, 37))),
    "count_elements, none": (ragged.count_elements, lambda: (_SHAPES["none"], room(2, 0))),
    "count_elements, too many": (ragged.count_elements, lambda: (np.full((2, 2), 1 << 31), np.zeros((2, 2), np.int64))),
    "count_rows": (ragged.count_rows, lambda: (IMAGES, 0b101, 32, room(37), room(37))),
    "count_rows, none": (ragged.count_rows, lambda: (_SHAPES["none"], 1, 32, room(0), room(0))),
    "largest": (ragged.largest, lambda: (_LENGTHS,)),
    "largest, none": (ragged.largest, lambda: (room(0),)),
    "write_addresses": (ragged.write_addresses, lambda: (room(37, 2)[:, 0], 1 << 46, _LENGTHS, 8)),
    "write_steps": (ragged.write_steps, lambda: (room(37, 2)[:, 0], 1 << 46, 24)),
    "resampled": (signal_lengths.resampled, lambda: (SIGNALS, 44100.0, 16000.0, room(37, 1), np.empty(37))),
    "resampled to nothing": (signal_lengths.resampled, lambda: (IMAGES, 3.0, 0.0, room(37, 3), np.empty(37))),
    "whole_blocks": (signal_lengths.whole_blocks, lambda: (SIGNALS, 256, room(37))),
    "whole_blocks of channels": (signal_lengths.whole_blocks, lambda: (IMAGES[:, :2].copy(), 256, room(37))),
    "limit_windows": (signal_lengths.limit_windows, lambda: (_LENGTHS, 2048, room(37))),
    "count_intervals": (signal_lengths.count_intervals, lambda: (_LENGTHS, 512, room(37), room(37))),
    "count_intervals, one": (signal_lengths.count_intervals, lambda: (_LENGTHS, -1, room(37), room(37))),
    "count_frames": (
        signal_lengths.count_frames, lambda: (SIGNALS, True, 400, 160, 257, 1, room(37), room(37), room(37, 2)),
    ),
    "count_frames inside": (
        signal_lengths.count_frames, lambda: (SIGNALS + 300, False, 400, 160, 257, 0, room(37), room(37), room(37, 2)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_compiled_counts_are_those_of_numpy(name):
    kernel, arguments = CALLS[name]
    compiled, by_numpy = arguments(), arguments()
    assert kernel(*compiled) == globals()[kernel.__name__](*by_numpy)
    for ours, theirs in zip(compiled, by_numpy, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("extents", "centred", "bad"),
    [
        ([[9], [300]], True, -1),
        ([[300], [9]], False, 1),
        ([[9, 1], [1, 300]], True, -1),
        ([[40, 1], [1, 29]], False, 1),
        ([[300, 2], [0, 5]], True, 0),
        ([[300, 1], [0, 5]], True, 1),
    ],
)
def test_signals_without_a_window_are_found_alike(extents, centred, bad):
    n = len(extents)
    for count in (signal_lengths.count_frames, count_frames):
        assert count(np.array(extents), centred, 40, 10, 21, 1, room(n), room(n), room(n, 2)) == bad


def test_uniform_batches_and_single_samples_have_their_addresses(emulated_gpu):
    """Their records are written in ways of their own."""
    for values in (np.arange(24, dtype=np.float32).reshape(4, 6), np.arange(6, dtype=np.float32)[None]):
        result = ndd.preemphasis_filter(ndd.batch(list(values)).gpu(), preemph_coeff=0.5, border="zero").cpu()
        expected = values - 0.5 * np.pad(values[:, :-1], ((0, 0), (1, 0)))
        np.testing.assert_array_equal(np.stack([np.asarray(f) for f in result]), expected)
