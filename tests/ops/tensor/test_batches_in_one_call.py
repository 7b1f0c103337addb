"""A batch of one shape is computed in one call, large samples by compiled loops: the values are those of each sample."""

from __future__ import annotations

import numpy as np
import pytest

import ndd

RNG = np.random.default_rng(5)
FLOATS = [RNG.normal(size=(4, 3)).astype(np.float32) for _ in range(6)]
BYTES = [RNG.integers(0, 255, (4, 3), dtype=np.uint8) for _ in range(6)]
MEANS = [np.float32(i) for i in range(6)]
ROWS = [RNG.normal(size=(1, 3)).astype(np.float32) for _ in range(6)]

CALLS = {
    "sum": lambda x, i: ndd.reductions.sum(x, axes=[0]),
    "mean": lambda x, i: ndd.reductions.mean(x),
    "mean over nothing": lambda x, i: ndd.reductions.mean(x, axes=[]),
    "max": lambda x, i: ndd.reductions.max(x, axes=[1], keep_dims=True),
    "rms": lambda x, i: ndd.reductions.rms(x, axes=[0, 1]),
    "variance": lambda x, i: ndd.reductions.variance(x, _pick(MEANS, i), axes=[0], ddof=1),
    "std_dev over nothing": lambda x, i: ndd.reductions.std_dev(x, _pick(MEANS, i), axes=[]),
    "std_dev of columns": lambda x, i: ndd.reductions.std_dev(x, _pick([r[0] for r in ROWS], i), axes=[0]),
    "normalize": lambda x, i: ndd.normalize(x),
    "normalize rows": lambda x, i: ndd.normalize(x, axes=[1], scale=2.0, shift=1.0, epsilon=0.1, ddof=1),
    "normalize columns to bytes": lambda x, i: ndd.normalize(x, axes=[0], scale=50.0, shift=128.0, dtype=ndd.uint8),
    "normalize about means": lambda x, i: ndd.normalize(x, mean=_pick(ROWS, i), axes=[0]),
    "normalize by numbers": lambda x, i: ndd.normalize(x, mean=0.5, stddev=_pick(ROWS, i), axes=[0]),
    "normalize by two numbers": lambda x, i: ndd.normalize(x, mean=0.5, stddev=2.0),
    "transpose": lambda x, i: ndd.transpose(x, perm=[1, 0]),
    "cat": lambda x, i: ndd.cat(x, x, axis=1),
    "cat of three": lambda x, i: ndd.cat(x, x, x, axis=0),
    "stack": lambda x, i: ndd.stack(x, x, axis=1),
    "one_hot": lambda x, i: ndd.one_hot(x, num_classes=5, axis=1, dtype=ndd.int16, on_value=7, off_value=-1),
    "sequence_rearrange": lambda x, i: ndd.sequence_rearrange(x, new_order=[3, 0, 0]),
    "copy": lambda x, i: ndd.copy(x),
    "reshape": lambda x, i: ndd.reshape(x, shape=[-1, 2]),
    "reinterpret": lambda x, i: ndd.reinterpret(x, dtype=ndd.uint8, shape=[-1]),
    "expand_dims": lambda x, i: ndd.expand_dims(x, axes=[1]),
    "arithmetic": lambda x, i: x * 2 + 1,
}


def _pick(values, i):
    return ndd.batch(values) if i is None else ndd.tensor(values[i])


@pytest.mark.parametrize("samples", [FLOATS, BYTES], ids=["f32", "u8"])
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.drawn(12)
def test_as_sample_by_sample(name, samples):
    call = CALLS[name]
    together = call(ndd.batch(samples), None)
    for i, (sample, result) in enumerate(zip(samples, together, strict=True)):
        alone = call(ndd.tensor(sample), i)
        assert (result.shape, result.dtype) == (alone.shape, alone.dtype)
        np.testing.assert_allclose(np.asarray(result), np.asarray(alone), rtol=1e-6)


@pytest.mark.parametrize("name", ["sum", "max", "mean", "min", "std_dev"])
def test_reductions_of_single_numbers(name):
    extra = [2.0] if name == "std_dev" else []
    numbers = [np.float32(i) for i in range(4)]
    result = getattr(ndd.reductions, name)(ndd.batch(numbers), *extra)
    wanted = [abs(n - 2) if extra else n for n in numbers]
    assert [float(np.asarray(f)) for f in result] == wanted


def test_orders_that_differ_between_sequences():
    clips = [np.arange(12, dtype=np.int32).reshape(4, 3) + 100 * i for i in range(3)]
    orders = [[3, 0], [1, 1], [2, 3]]
    result = ndd.sequence_rearrange(ndd.batch(clips), new_order=ndd.batch(orders))
    for clip, order, item in zip(clips, orders, result, strict=True):
        np.testing.assert_array_equal(np.asarray(item), clip[order])


@pytest.mark.parametrize("kind", [np.uint8, np.int16, np.float32, np.float64])
@pytest.mark.parametrize("widths", [(3, 3), (1, 4), (4, 2), (5, 1, 3), (0, 3), (3, 0), (40, 50)])
def test_narrow_rows_are_joined(kind, widths):
    parts = [RNG.integers(0, 99, (70, 60, w)).astype(kind) for w in widths]
    result = ndd.cat(*[ndd.tensor(p) for p in parts], axis=2)
    np.testing.assert_array_equal(np.asarray(result), np.concatenate(parts, axis=2))


@pytest.mark.parametrize("kind", [np.uint8, np.int16, np.float32, np.float64])
@pytest.mark.parametrize("shape", [(500, 1), (500, 2), (501, 3), (502, 4), (3, 700), (2, 9), (4, 33), (1, 9), (37, 41)])
@pytest.mark.drawn(3)
def test_two_axes_are_swapped(kind, shape):
    x = RNG.integers(0, 99, shape).astype(kind)
    np.testing.assert_array_equal(np.asarray(ndd.transpose(ndd.tensor(x))), x.T)


_SAME = {"add": np.add, "sub": np.subtract, "mul": np.multiply}


@pytest.mark.parametrize("kinds", [("u1", "f4"), ("i4", "f4"), ("u1", "i4"), ("u2", "i2"), ("i1", "u1"), ("f4", "f4")])
@pytest.mark.drawn(1)
def test_large_arrays_of_mixed_types(kinds):
    """Compiled loops: arrays, a number on either side; integers wrap."""
    a, b = (RNG.integers(0 if k[0] == "u" else -100, 100, 20000).astype(k) for k in kinds)
    a[:2] = np.iinfo(a.dtype).max if a.dtype.kind != "f" else np.inf
    item, other = a.dtype.type(77), b.dtype.type(55)
    for left, right in ((a, b), (b, a), (a, other), (item, b), (b, item)):
        handles = [ndd.tensor(v) if isinstance(v, np.ndarray) else v for v in (left, right)]
        results = handles[0] + handles[1], handles[0] - handles[1], handles[0] * handles[1]
        for result, operation in zip(results, _SAME.values(), strict=True):
            kind = np.asarray(result).dtype
            with np.errstate(all="ignore"):
                wanted = operation(left, right, dtype=kind, casting="unsafe")
            np.testing.assert_array_equal(np.asarray(result), wanted)
        with np.errstate(all="ignore"):
            wanted = np.true_divide(left, right, dtype=np.float32, casting="unsafe")
        np.testing.assert_array_equal(np.asarray(handles[0] / handles[1]), wanted)


@pytest.mark.parametrize(
    "shapes", [[(3, 4)] * 3, [(3, 4), (1, 9)], [(300, 400, 3)] * 3, [(300, 400, 3), (500, 600, 3)]]
)
@pytest.mark.parametrize("together", [False, True])
def test_copies_are_new_memory(shapes, together):
    arrays = [RNG.integers(0, 99, s, dtype=np.uint8) for s in shapes]
    batch = ndd.batch(arrays)
    if together:
        batch = batch + 0
    with ndd.EvalMode.sync_cpu:
        copied = ndd.copy(batch)
    for item, other in zip(batch, copied, strict=True):
        before = np.asarray(item).copy()
        np.testing.assert_array_equal(np.asarray(other), before)
        assert not np.shares_memory(np.asarray(item), np.asarray(other))


def test_a_copy_of_a_strided_view():
    x = ndd.tensor(np.arange(24, dtype=np.int32).reshape(4, 6))
    np.testing.assert_array_equal(np.asarray(ndd.copy(x[:, ::2])), np.arange(24).reshape(4, 6)[:, ::2])
    batch = ndd.batch(np.arange(24, dtype=np.int32).reshape(4, 6))
    np.testing.assert_array_equal(np.asarray(ndd.copy(batch.slice[::2]).torch()), np.arange(24).reshape(4, 6)[:, ::2])


def test_frames_of_a_batch_in_one_piece_and_of_a_ragged_one():
    clips = [np.arange(24, dtype=np.int32).reshape(4, 2, 3) + i for i in range(3)]
    for batch in (ndd.batch(clips), ndd.batch(clips) + 0, ndd.batch([*clips[:2], clips[2][:3]])):
        first, last = ndd.element_extract(batch, element_map=[0, 2])
        for i, clip in enumerate(clips):
            np.testing.assert_array_equal(np.asarray(first.select(i)), clip[0])
            np.testing.assert_array_equal(np.asarray((last + 0).select(i)), clip[2])
    with pytest.raises(RuntimeError, match=r"sample 2.*no frame 3 in a sequence of 3"):
        ndd.element_extract(ndd.batch([*clips[:2], clips[2][:3]]), element_map=[0, 3])[0].evaluate()


def test_a_batch_of_copies_of_one_tensor():
    copied = ndd.copy(ndd.tensor([1, 2], layout="X"), batch_size=3)
    assert (copied.batch_size, copied.layout, copied.torch().tolist()) == (3, "X", [[1, 2]] * 3)
    copied.select(0).torch()[0] = 7
    assert copied.torch().tolist() == [[7, 2], [1, 2], [1, 2]]
