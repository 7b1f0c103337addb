"""Lookahead over readers whose batches are not like those before: in extents, element type, number of axes."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from waiting import let_read_on

import ndd
from ndd._lookahead.merged_batches import MergedDraws
from ndd._operator.call import Call


@pytest.fixture
def misfits(monkeypatch):
    """Calls that ran with a value of another element type or number of axes than they were kept for."""
    result, real = [], Call._inputs

    def inputs(call):
        stores = real(call)
        for store, spec in zip(stores, call.cached_call.specs, strict=False):
            if store is not None and (store.dtype is not spec.dtype or store.ndim != spec.ndim):
                result.append((call.op.name, store.dtype, store.ndim, spec))
        return stores

    monkeypatch.setattr(Call, "_inputs", inputs)
    return result


@pytest.fixture
def written(tmp_path):
    """`written(arrays)`: files of them, in their order."""

    def write(arrays):
        for i, array in enumerate(arrays):
            np.save(tmp_path / f"{i:03}.npy", array)
        return sorted(map(str, tmp_path.iterdir()))

    return write


def with_and_without(run, monkeypatch):
    """What a loop gives, and what it gives without lookahead."""
    result = run()
    with monkeypatch.context() as changed:
        changed.setenv("NDD_LOOKAHEAD", "0")
        return result, run()


def values(batch):
    return str(batch.dtype), [np.asarray(item.cpu()).tolist() for item in batch.tensors]


def loop(reader, body, **more):
    result = []
    for batch in reader.next_epoch(batch_size=4, **more):
        out = body(batch[0])
        result += map(values, out if isinstance(out, tuple) else [out])
        let_read_on(reader)
    return result


KINDS = [(np.uint8, (2, 3)), (np.float32, (4, 5)), (np.uint8, (4, 5)), (np.float32, (2, 3))]
CHANGING = [np.full(KINDS[i // 12 % 4][1], i * 2.5, KINDS[i // 12 % 4][0]) for i in range(48)]  # every three batches


@pytest.mark.parametrize("decoded", [False, True])
@pytest.mark.parametrize("capture", [False, True])
@pytest.mark.drawn(1)
def test_no_call_sees_an_element_type_that_it_was_not_kept_for(
    written, emulated_gpu, misfits, sizes, monkeypatch, capture, decoded
):
    files = written(CHANGING)
    reader = ndd.readers.File if decoded else ndd.readers.Numpy

    def body(data):
        data = ndd.decoders.numpy(data) if decoded else data
        return ndd.reductions.max(data if capture else ndd.copy(data, device="gpu"), axes=[0])

    def run():
        ndd.reductions.max.operator.forget()
        return loop(reader(files=files), body, capture=capture)

    result, expected = with_and_without(run, monkeypatch)
    assert result == expected
    assert sizes
    assert not misfits


@pytest.mark.parametrize("extents", [lambda k: (2, 1 + k % 3), lambda k: (2, k % 3), lambda k: () if k % 2 else (1,)])
@pytest.mark.drawn(1)
def test_batches_of_one_array_each(emulated_gpu, sizes, monkeypatch, extents):
    """Each of samples of one shape, which is another one in the next batch."""

    class Small(ndd.readers.RecordStore):
        def __len__(self):
            return 60

        def record(self, number):
            return (np.full(extents(number // 4), number, np.float32),)

        def source(self, number):
            return str(number)

    class Reader(ndd.readers.Reader):
        def _open(self):
            return Small()

        @classmethod
        def _outputs(cls, **arguments):
            return (ndd.readers.Output("data"),)

    def run():
        return loop(Reader(), lambda data: ndd.copy(data, device="gpu") * 2 + 1)

    result, expected = with_and_without(run, monkeypatch)
    assert result == expected


def test_a_batch_of_a_reader_may_be_an_argument(written, emulated_gpu, sizes, monkeypatch):
    files = written([np.array(i * 10, np.float32) for i in range(40)])
    image = ndd.as_tensor(np.arange(75, dtype=np.uint8).reshape(5, 5, 3), layout="HWC").gpu()

    def run():
        reader = ndd.readers.Numpy(files=files)
        return loop(reader, lambda angle: ndd.rotate(image, angle=angle, size=[5, 5], device="gpu"))

    result, expected = with_and_without(run, monkeypatch)
    assert result == expected
    assert max(sizes) > 1


def test_frames_draw_as_those_of_their_own_batch(written, emulated_gpu, sizes, monkeypatch):
    rng = np.random.default_rng(0)
    files = written([rng.integers(0, 255, (1 + i % 3, 9, 9, 3), np.uint8) for i in range(40)])

    def run():
        rng = ndd.random.RNG(seed=4)
        reader = ndd.readers.Numpy(files=files)
        return loop(reader, lambda v: ndd.jitter(ndd.reshape(ndd.copy(v, device="gpu"), layout="FHWC"), rng=rng))

    result, expected = with_and_without(run, monkeypatch)
    assert result == expected
    assert set(sizes) == {1}
    with pytest.raises(ValueError, match="expected 5 samples of 2 batches, got 9"):
        MergedDraws([None, None], [2, 3]).streams(9)


def test_a_loop_that_uses_two_gpus_is_not_worked_on_ahead(written, two_gpus, sizes):
    """A result is waited for by an event of the stream of one GPU."""
    files = written([np.full((3, 4), i, np.float32) for i in range(24)])
    loop(ndd.readers.Numpy(files=files), lambda x: (ndd.copy(x, device="gpu:0"), ndd.copy(x, device="gpu:1")))
    assert not sizes


@pytest.mark.parametrize("on_error", ["raise", "skip"])
@pytest.mark.parametrize("capture", [False, True])
@pytest.mark.drawn(1)
def test_what_cannot_be_read_is_told_when_the_loop_comes_there(
    written, emulated_gpu, sizes, monkeypatch, on_error, capture
):
    files = written([np.full((2, 2), i, np.uint8 if i == 22 else np.float32) for i in range(40)])

    def run():
        reader, result = ndd.readers.Numpy(files=files, on_error=on_error), []
        with contextlib.suppress(RuntimeError):
            for (x,) in reader.next_epoch(batch_size=4, capture=capture):
                try:
                    result.append(values((x if capture else ndd.copy(x, device="gpu")) * 2))
                except RuntimeError as error:
                    result.append(str(error))
                let_read_on(reader)
        return result

    result, expected = with_and_without(run, monkeypatch)
    assert sizes
    assert result == expected
    assert len(result) == (10 if on_error == "skip" else 5)


@pytest.mark.parametrize("always", [True, False])
@pytest.mark.parametrize("written_to", ["result", "constant"])
@pytest.mark.drawn(1)
def test_what_the_loop_writes_by_torch_is_seen(written, emulated_gpu, sizes, monkeypatch, written_to, always):
    files = written([np.full((2, 3), i, np.float32) for i in range(48)])

    def run():
        factor, counted = ndd.tensor(np.full(1, 3, np.float32), device="gpu").evaluate(), iter(range(99))

        def body(data):
            there = ndd.copy(data, device="gpu")
            if always or next(counted) == 9:
                (there if written_to == "result" else factor).torch().add_(1)
            return ndd.flip(ndd.reshape(there * factor, src_dims=[0, 1, -1], layout="HWC"))

        return loop(ndd.readers.Numpy(files=files), body)

    result, expected = with_and_without(run, monkeypatch)
    assert sizes
    assert result == expected
