"""`ndd.decoders.inflate`, against the lz4 package."""

import contextlib

import numpy as np
import pytest
from cases import each_of

import ndd

REGISTRY_INPUTS = {
    "LZ4 block": (lambda rng, i, dtype: np.concatenate([[240, 17], rng.integers(0, 256, 32)]).astype(np.uint8), None)
}
REGISTRY_CASES = {
    "decoders.inflate": each_of(
        {"shape": [4, 8]}, {"shape": [32], "chunk_offsets": [0]}, inputs=("LZ4 block",), dtypes=("uint8",), oracle=False
    )
}
block = pytest.importorskip("lz4.block")


def packed(array):
    return np.frombuffer(block.compress(np.ascontiguousarray(array).tobytes(), store_size=False), np.uint8)


def data(kind, count):
    rng = np.random.default_rng(count)
    if kind == "noise":
        return rng.integers(0, 256, count).astype(np.uint8)
    if kind == "zeros":
        return np.zeros(count, np.uint8)
    words = [b"flow", b"frame ", b"video and audio ", b"\x00\x01"]
    return np.frombuffer(b"".join(words[i] for i in rng.integers(0, 4, count))[:count].ljust(count), np.uint8)


@pytest.mark.parametrize("device", ["cpu", "gpu"])
@pytest.mark.drawn(1)
def test_what_lz4_packed_comes_out(device, emulated_gpu):
    arrays = [data(kind, n) for kind in ("noise", "zeros", "words") for n in (0, 1, 12, 300, 70_000)]
    batch = ndd.batch([packed(a) for a in arrays], device=device)
    shapes = ndd.batch([[len(a)] for a in arrays])
    result = ndd.decoders.inflate(batch, shape=shapes, check_output_size=True).cpu()
    for array, actual in zip(arrays, result.tensors, strict=True):
        np.testing.assert_array_equal(np.asarray(actual), array)


@pytest.mark.parametrize("device", ["cpu", "gpu"])
@pytest.mark.parametrize("given", ["offsets", "sizes", "both"])
@pytest.mark.drawn(1)
def test_chunks_become_an_axis(device, given, emulated_gpu):
    frames = np.arange(5 * 6 * 4, dtype=np.int16).reshape(5, 6, 4)
    chunks = [packed(frame) for frame in frames]
    sizes = [len(c) for c in chunks]
    offsets = (np.cumsum(sizes) - sizes).tolist()
    how = {"chunk_offsets": offsets, "chunk_sizes": sizes}
    if given != "both":
        how.pop("chunk_offsets" if given == "sizes" else "chunk_sizes")
    value = ndd.tensor(np.concatenate(chunks), device=device)
    result = ndd.decoders.inflate(value, shape=[6, 4], dtype=ndd.int16, layout="HW", **how)
    assert result.layout == "FHW"
    np.testing.assert_array_equal(np.asarray(result.cpu()), frames)
    part = ndd.decoders.inflate(
        value, shape=[6, 4], dtype=ndd.int16, chunk_offsets=[offsets[3], offsets[1]], chunk_sizes=[sizes[3], sizes[1]]
    )
    np.testing.assert_array_equal(np.asarray(part.cpu()), frames[[3, 1]])


@pytest.mark.parametrize("device", ["cpu", "gpu"])
@pytest.mark.drawn(1)
def test_damaged_data_is_an_error(device, emulated_gpu):
    whole = packed(data("words", 500))
    for bad in (whole[:-3], whole[: len(whole) // 2], np.full(40, 0xFF, np.uint8), np.empty(0, np.uint8)):
        value = ndd.tensor(bad, device=device)
        with pytest.raises(RuntimeError, match="sample 0: chunk 0: expected 500 bytes"):
            ndd.decoders.inflate(value, shape=[500], check_output_size=True).evaluate()
    for count in (499, 501):
        value = ndd.tensor(whole, device=device)
        with pytest.raises(RuntimeError, match=f"expected {count} bytes"):
            ndd.decoders.inflate(value, shape=[count], check_output_size=True).evaluate()
    noise = np.random.default_rng(3)
    for _ in range(100):
        spoilt = whole.copy()
        spoilt[noise.integers(0, len(whole), 3)] = noise.integers(0, 256, 3)
        value = ndd.tensor(spoilt, device=device)
        with contextlib.suppress(RuntimeError):  # it may also give other bytes; what counts is that it ends
            ndd.decoders.inflate(value, shape=[500], check_output_size=True).evaluate()


@pytest.mark.parametrize("device", ["cpu", "gpu"])
@pytest.mark.drawn(1)
def test_a_shape_with_more_room_is_filled_with_zeros(device, emulated_gpu):
    frames = np.arange(1, 13, dtype=np.int32).reshape(2, 6)
    chunks = [packed(frame) for frame in frames]
    value = ndd.tensor(np.concatenate(chunks), device=device)
    actual = ndd.decoders.inflate(value, shape=[2, 5], dtype=ndd.int32, chunk_sizes=[len(chunk) for chunk in chunks])
    expected = np.zeros((2, 10), np.int32)
    expected[:, :6] = frames
    np.testing.assert_array_equal(np.asarray(actual.cpu()).reshape(2, 10), expected)


def test_chunks_outside_the_data_are_errors():
    whole = packed(data("words", 50))
    with pytest.raises(RuntimeError, match="lies outside"):
        ndd.decoders.inflate(whole, shape=[50], chunk_offsets=[1], chunk_sizes=[len(whole)]).evaluate()
    with pytest.raises(RuntimeError, match="expected a size for each of 2"):
        ndd.decoders.inflate(whole, shape=[50], chunk_offsets=[0, 1], chunk_sizes=[1]).evaluate()
    with pytest.raises(RuntimeError, match="shape: expected one number for each axis, got 2-D"):
        ndd.decoders.inflate(whole, shape=np.array([[1, 5], [4, 5]])).evaluate()
    with pytest.raises(RuntimeError, match="sequence_axis_name"):
        ndd.decoders.inflate(whole, shape=[50], sequence_axis_name="FH")


MOST = 2**63 - 1


@pytest.mark.parametrize("device", ["cpu", "gpu"])
@pytest.mark.parametrize(
    ("how", "chunk"),
    [
        ({"chunk_offsets": [2**62], "chunk_sizes": [2**62 + 5]}, 0),
        ({"chunk_offsets": [1], "chunk_sizes": [MOST]}, 0),
        ({"chunk_offsets": [MOST], "chunk_sizes": [MOST]}, 0),
        ({"chunk_offsets": [-(2**63)], "chunk_sizes": [-(2**63)]}, 0),
        ({"chunk_offsets": [5], "chunk_sizes": [-1]}, 0),
        ({"chunk_offsets": [0, MOST]}, 0),
        ({"chunk_offsets": [-(2**63), 0]}, 0),
        ({"chunk_offsets": [-1]}, 0),
        ({"chunk_sizes": [2**62, 2**62, 2**62, 2**62, 5]}, 0),
        ({"chunk_sizes": [0, MOST, 2, MOST]}, 1),
        ({"chunk_sizes": [-5, 5]}, 0),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.drawn(1)
def test_numbers_that_wrap_lie_outside(device, how, chunk, emulated_gpu):
    value = ndd.tensor(packed(data("words", 50)), device=device)
    with pytest.raises(RuntimeError, match=f"chunk {chunk}, .* lies outside the"):
        ndd.decoders.inflate(value, shape=[50], **how).evaluate()


def test_a_gpu_inflates_damaged_blocks_as_the_cpu(emulated_gpu):
    """What the CPU refuses is zeros."""
    from hostile.bounds_checked import mutation
    from hostile.containers import PARSERS

    blocks = [mutation("lz4", PARSERS["lz4"], 3, number)[0] for number in range(300)]
    expected = []
    for content in blocks:
        value = np.frombuffer(content, np.uint8)
        try:
            expected.append(np.asarray(ndd.decoders.inflate(value, shape=[700]).evaluate()))
        except RuntimeError:
            expected.append(np.zeros(700, np.uint8))
    assert 30 < sum(int(row.any()) for row in expected) < 280
    values = ndd.batch([np.frombuffer(content, np.uint8) for content in blocks], device="gpu")
    np.testing.assert_array_equal(ndd.decoders.inflate(values, shape=[700]).cpu().numpy(), np.stack(expected))


def test_chunks_are_shared_between_threads(tasks):
    """One task for each thread, however many chunks the samples have."""
    counts = [0, 30, 1, 0, 2, 7, 0]
    arrays = [data("words", 3000 * n).reshape(n, 3000) for n in counts]
    chunks = [[packed(row) for row in array] for array in arrays]
    values = ndd.batch([np.concatenate([*row, np.zeros(1, np.uint8)]) for row in chunks])
    sizes = ndd.batch([np.array([len(c) for c in row], np.int32) for row in chunks])
    ends = [np.cumsum([0] + [len(c) for c in row])[:-1].astype(np.int32) for row in chunks]
    for arguments in ({"chunk_sizes": sizes}, {"chunk_sizes": sizes, "chunk_offsets": ndd.batch(ends)}):
        with ndd.EvalContext(num_threads=3):
            actual = ndd.decoders.inflate(values, shape=[3000], check_output_size=True, **arguments).evaluate()
        for array, item in zip(arrays, actual.tensors, strict=True):
            np.testing.assert_array_equal(np.asarray(item), array)
    assert tasks == [3, 3]
    with pytest.raises(RuntimeError, match="sample 1: chunk 0: expected 2999 bytes"):
        ndd.decoders.inflate(values, shape=[2999], chunk_sizes=sizes).evaluate()
    with pytest.raises(RuntimeError, match=r"sample 5: chunk 5, .* lies outside"):
        ndd.decoders.inflate(values.select([0, 2, 0, 2, 2, 5]), shape=[3000], chunk_offsets=beyond(ends)).evaluate()


def beyond(ends):
    """The last chunk of the last of some samples begins behind the data."""
    rows = [ends[i].copy() for i in (0, 2, 0, 2, 2, 5)]
    rows[-1][-1] = 1 << 20
    return ndd.batch(rows)
