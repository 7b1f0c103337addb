"""Several batches that are worked on as one give what each gives alone, to the last bit."""

from __future__ import annotations

import dataclasses
import importlib

import numpy as np
import pytest
import torch
from calling import call_with, cases_of, evaluated, layouts_of, load_every_module, public, samples
from cases import EachSample
from compare import arrays_of
from PIL import Image
from waiting import let_read_on

import ndd
from ndd._lookahead import decision
from ndd._lookahead.merged_batches import MergedBatches, MergedDraws

OPERATORS = load_every_module()
operators = importlib.import_module("ndd._operator.operator")  # the room has a function of this name
CASES = [
    pytest.param(path, case, id=f"{path}-{i}")
    for path in sorted(OPERATORS)
    for i, case in enumerate(cases_of(path, OPERATORS[path]))
]
FIRST = [case for case in CASES if case.id.endswith("-0")]
SOME = [case for case in CASES if case.id.endswith("-0") or case.id.startswith("normalize")]
ORDERS = [[0, 1, 2], [2, 0]]  # two batches of the samples of a case


def _of(case, inputs, order):
    """The case with some of its samples, in this order."""
    args = {
        k: EachSample([v.values[i] for i in order]) if isinstance(v, EachSample) else v for k, v in case.args.items()
    }
    return dataclasses.replace(case, args=args), [
        ndd.batch([arrays[i] for i in order], layout=layout) for arrays, layout in inputs
    ]


def _outputs(path, case, values, count, **more):
    if not values:
        more["batch_size"] = count
        case = dataclasses.replace(case, args={k: v for k, v in case.args.items() if k != "batch_size"})
    return evaluated(call_with(ndd, public(ndd, path), case, values, "ragged", **more))


def _alone_and_together(path, case, monkeypatch, on_gpu):
    """The samples of two batches by two calls, and by one."""
    inputs = samples(case, layouts_of(case, OPERATORS[path])[0])
    more = {"device": "gpu"} if on_gpu else {}
    place, drawn = operators._random_words, []
    rng = {"rng": ndd.random.RNG(seed=5)} if OPERATORS[path].random else {}

    def noted(*arguments):
        drawn.append(place(*arguments))
        return drawn[-1]

    monkeypatch.setattr(operators, "_random_words", noted)
    alone = []
    for order in ORDERS:
        own, values = _of(case, inputs, order)
        values = [value.gpu() for value in values] if on_gpu else values
        alone.append(_outputs(path, own, values, len(order), **rng, **more))
    monkeypatch.setattr(operators, "_random_words", lambda *_: MergedDraws(drawn[:2], [len(order) for order in ORDERS]))
    every = [i for order in ORDERS for i in order]
    own, values = _of(case, inputs, every)
    values = [value.gpu() for value in values] if on_gpu else values
    together = _outputs(path, own, values, len(every), **rng, **more)
    for k, out in enumerate(together):
        yield [a for outputs in alone for a in arrays_of(outputs[k])], arrays_of(out)


def _check(path, case, monkeypatch, on_gpu=False):
    independent = OPERATORS[path].independent_samples
    named = {a.name: case.args.get(a.name, a.default) for a in OPERATORS[path].arguments}
    if not (independent if isinstance(independent, bool) else independent(**named)):
        pytest.skip("its samples depend on one another")
    for alone, together in _alone_and_together(path, case, monkeypatch, on_gpu):
        assert len(alone) == len(together)
        for a, b in zip(alone, together, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(("path", "case"), SOME)
def test_a_sample_is_what_it_is_in_any_batch(path, case, monkeypatch):
    _check(path, case, monkeypatch)


@pytest.mark.parametrize(("path", "case"), FIRST)
@pytest.mark.drawn(1)
def test_on_a_gpu(path, case, monkeypatch, emulated_gpu):
    if not OPERATORS[path].runs_on_gpu:
        pytest.skip("runs on the CPU only")
    _check(path, case, monkeypatch, on_gpu=True)


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    for i in range(40):
        Image.fromarray(rng.integers(0, 255, (20 + i % 7, 30, 3), np.uint8)).save(tmp_path / f"{i:02}.png")
    return sorted(map(str, tmp_path.iterdir()))


def loop(files, looked_at=None):
    """What a loop gives with batches of four: pictures, mirrors, or an error."""
    reader, rng, result = ndd.readers.File(files=files), ndd.random.RNG(seed=3), []
    for k, (encoded, labels) in enumerate(reader.next_epoch(batch_size=4)):
        images = ndd.decoders.image(encoded, device="gpu")
        images = ndd.random_resized_crop(images, size=[8, 8], rng=rng)
        mirror = ndd.random.coin_flip(batch_size=4, rng=rng)
        out = ndd.crop_mirror_normalize(images, mean=[1.0, 2.0, 3.0], std=[2.0], mirror=mirror)
        try:
            result.append((out.torch(), mirror.torch(), labels.torch(), out.source_info))
        except RuntimeError as error:
            result.append(str(error))
        if looked_at is not None:
            looked_at(k, images)
        let_read_on(reader)
    return result


def _same(result, expected):
    assert len(result) == len(expected)
    for a, b in zip(result, expected, strict=True):
        if isinstance(b, str):
            assert a == b
            continue
        assert all(torch.equal(x, y) for x, y in zip(a[:3], b[:3], strict=True))
        assert a[3] == b[3]


def test_results_have_memory_of_their_own(folder, sizes, emulated_gpu):
    result = loop(folder)
    assert max(sizes) > 1
    assert len({out.untyped_storage().data_ptr() for out, *_ in result}) == len(result)
    assert all(out.untyped_storage().nbytes() < 2 * out.nbytes for out, *_ in result)
    result[4][0].zero_()
    assert [out._version for out, *_ in result] == [0] * 4 + [1] + [0] * 5


@pytest.mark.parametrize("seen", [False, True])
@pytest.mark.drawn(1)
def test_values_errors_and_what_lies_between(folder, sizes, emulated_gpu, monkeypatch, seen):
    with open(folder[29], "wb") as file:
        file.write(b"not a picture")
    between = []
    looked_at = (lambda k, images: between.append(None if k == 7 else images.torch().clone())) if seen else None
    result = loop(folder, looked_at)
    assert max(sizes) > 1
    monkeypatch.setenv("NDD_LOOKAHEAD", "0")
    ahead_of_time, between = between, []
    expected = loop(folder, looked_at)
    assert [k for k, value in enumerate(expected) if isinstance(value, str)] == [7]
    assert "29.png" in expected[7]
    _same(result, expected)
    assert all(a is b is None or torch.equal(a, b) for a, b in zip(ahead_of_time, between, strict=True))


@pytest.mark.parametrize(("name", "value"), [("SAMPLES", 7), ("SECONDS", 1e-9), ("BATCHES", 1)])
@pytest.mark.drawn(1)
def test_one_at_a_time_where_it_would_be_too_much(folder, sizes, emulated_gpu, monkeypatch, name, value):
    monkeypatch.setattr(decision, f"_MAX_{name}", value)
    loop(folder)
    assert set(sizes) == {1}


def test_one_at_a_time_where_the_results_are_large(folder, sizes, emulated_gpu, monkeypatch):
    monkeypatch.setenv("NDD_LOOKAHEAD_BYTES", "3000")
    loop(folder)
    assert set(sizes) == {1}


def test_samples_that_depend_on_others_keep_their_batch(folder, sizes, emulated_gpu, monkeypatch):
    def widest():
        reader, result = ndd.readers.File(files=folder), []
        for encoded, _ in reader.next_epoch(batch_size=4):
            result.append(ndd.pad(ndd.decoders.image(encoded, device="gpu")).torch().shape)
            let_read_on(reader)
        return result

    result = widest()
    assert len(sizes) > 1
    assert set(sizes) == {1}
    monkeypatch.setenv("NDD_LOOKAHEAD", "0")
    assert result == widest()


def test_batches_of_other_dimensions_are_not_joined(tmp_path, sizes, emulated_gpu, monkeypatch):
    for i in range(40):  # every third batch has matrices
        np.save(tmp_path / f"{i:02}.npy", np.full((2,) * (1 + (i // 4 % 3 == 2)), i, np.float32))

    def run():
        reader, result = ndd.readers.Numpy(files=sorted(map(str, tmp_path.iterdir()))), []
        for values in reader.next_epoch(batch_size=4):
            result.append((ndd.copy(values[0], device="gpu") * 2 + 1).torch().tolist())
            let_read_on(reader)
        return result

    result = run()
    monkeypatch.setenv("NDD_LOOKAHEAD", "0")
    assert result == run()


def test_results_of_every_form_are_split():
    shapes = np.array([[2, 3], [2, 3], [1, 4], [5, 1]])
    arrays = [np.full(shape, k, np.float32) for k, shape in enumerate(shapes.tolist())]
    first, second = ndd.batch(arrays[:2])._value(), ndd.batch(arrays[2:])._value()
    first.source_info = ["a", "b"]
    second.source_info = ["c", "d"]
    both = MergedBatches([first, second])
    store = both.result(0)
    flat = np.concatenate([array.reshape(-1) for array in arrays])
    for forms in ({"parts": arrays}, {"flat": flat}):
        result = type(store)(store.dtype, None, store.device, shapes, **forms)
        result.source_info = store.source_info
        parts = both.split(result, None)
        assert [part.source_info for part in parts] == [["a", "b"], ["c", "d"]]
        assert [a.tolist() for part in parts for a in part.arrays()] == [a.tolist() for a in arrays]
    result.dropped = [1]
    assert both.split(result, None) is None
