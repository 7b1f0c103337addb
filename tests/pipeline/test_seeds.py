"""A pipeline's `seed`: readers and random operators give what they give in DALI's pipelines."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest

import ndd

pytestmark = pytest.mark.oracle
SEEDS = [0, 42, 2**33 + 5]


@pytest.fixture
def files(tmp_path):
    for i in range(20):
        (tmp_path / f"{i}.bin").write_bytes(bytes([i]))
    return [str(tmp_path / f"{i}.bin") for i in range(20)]


def outputs(package, body, seed, batch_size=4, runs=3, **arguments):
    """Of some runs: lists of arrays, for each output."""
    library = importlib.import_module(package)
    fn, types = (importlib.import_module(f"{package}.{name}") for name in ("fn", "types"))

    def result():
        return body(fn, types)

    options = {"batch_size": batch_size, "num_threads": 1, "device_id": None, "seed": seed, **arguments}
    pipe = library.pipeline_def(result)(**options)
    pipe.build()
    return [[[np.array(o.at(i)) for i in range(len(o))] for o in pipe.run()] for _ in range(runs)]


def assert_dalis(body, seed=42, rtol=1e-6, **options):
    pytest.importorskip("nvidia.dali")
    ours, theirs = (outputs(package, body, seed, **options) for package in ("ndd", "nvidia.dali"))
    for first, second in zip(ours, theirs, strict=True):
        for a, b in zip(first, second, strict=True):
            for x, y in zip(a, b, strict=True):
                assert x.dtype == y.dtype
                np.testing.assert_allclose(x, y, rtol=rtol, atol=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.drawn(1)
def test_in_the_order_of_the_outputs(files, seed):
    def body(fn, types):
        first, flag = fn.random.uniform(), fn.random.coin_flip()
        data, label = fn.readers.file(files=files, random_shuffle=True)
        more = fn.random.normal(shape=[5])
        return label, first, flag, more, data

    assert_dalis(body, seed, runs=7)


def test_through_split_and_merge(files):
    """Data comes before predicates, as inputs come before arguments."""

    def body(fn, types):
        _, label = fn.readers.file(files=files, random_shuffle=True)
        flag = fn.random.coin_flip(dtype=types.BOOL)
        drawn = fn.random.uniform()
        first, second = fn._conditional.split(label, predicate=flag)
        kept, _ = fn._conditional.split(drawn, predicate=flag)
        return fn._conditional.merge(first + kept, second - 0.5, predicate=flag), fn.random.normal()

    assert_dalis(body, runs=5)


def test_in_branches_that_some_or_no_samples_take(files):
    """Readers and draws without inputs go on in runs in which nobody takes their branch."""

    def label(fn):
        return fn.readers.file(files=files, random_shuffle=True)[1][0]

    def body(fn, types):
        x = fn.external_source(lambda i: np.int32([i % 3, 0, i % 2, -(i % 2)]), batch=True)
        share = fn.random.uniform()
        if x > 1:
            y, z = fn.random.normal(), label(fn)
        elif x < 0 or share > 0.6:
            y, z = share + fn.random.normal(mean=share), label(fn)
            if fn.random.coin_flip(dtype=types.BOOL):
                z = -z
        else:
            y, z = fn.random.uniform(range=[2, 3]), x
        for k in range(2):
            if (x == k and fn.random.uniform(y, range=[0, 1]) > 0.4) or y > 4.5:
                y = fn.random.uniform(range=[4, 5])
        return z, y, fn.random.coin_flip(), share, x

    assert_dalis(body, runs=6, enable_conditionals=True)


def test_inputs_come_before_arguments_and_these_by_name():
    def body(fn, types):
        a, b, c, d = (fn.random.uniform() for _ in range(4))
        start, shape = fn.cast(b * 0, dtype=types.INT32), fn.cast(c * 0 + 1, dtype=types.INT32)
        cut = fn.slice(fn.stack(a, a), start=fn.stack(start), shape=fn.stack(shape), axes=[0])
        return cut, d + c, a, b, c, d

    assert_dalis(body)


def test_seeds_of_their_own_take_none_from_the_pipeline(files):
    def body(fn, types):
        first, own, second = fn.random.uniform(), fn.random.uniform(seed=5), fn.random.uniform()
        label = fn.readers.file(files=files, random_shuffle=True, seed=7)[1]
        return own, label, second, first

    assert_dalis(body)
    assert_dalis(lambda fn, types: (fn.random.uniform(seed=3), fn.random.normal(seed=3)), seed=None)


def test_short_batches_move_on_by_their_size():
    def body(fn, types):
        sizes = iter([4, 2, 3, 1])
        return fn.random.uniform(fn.external_source(source=lambda: np.zeros((next(sizes), 2), np.float32)))

    assert_dalis(body, runs=4)


def test_all_distributions():
    def body(fn, types):
        return (
            fn.random.beta(alpha=2.0, beta=3.0),
            fn.random.choice(5, shape=[3]),
            fn.random.uniform(range=[0, 5], dtype=types.INT32, shape=[3]),
            fn.random.uniform(values=[1.0, 3.0]),
            fn.batch_permutation(),
            fn.segmentation.random_mask_pixel(fn.cast(fn.random.coin_flip(shape=[9, 9]), dtype=types.INT32), foreground=1),
            *fn.random_crop_generator(fn.constant(idata=[400, 500], shape=[2])),
            fn.noise.salt_and_pepper(fn.constant(idata=list(range(60)), shape=[4, 5, 3])),
        )  # fmt: skip

    assert_dalis(body)


def test_a_recorded_pipeline(files):
    pytest.importorskip("nvidia.dali")
    result = []
    for package in ("ndd", "nvidia.dali"):
        library = importlib.import_module(package)
        fn = importlib.import_module(f"{package}.fn")
        pipe = library.Pipeline(batch_size=4, num_threads=1, device_id=None, seed=9)
        with pipe:
            drawn = fn.random.uniform()
            label = fn.readers.file(files=files, random_shuffle=True, name="files")[1]
            pipe.set_outputs(label, drawn)
        pipe.build()
        assert pipe.reader_meta("files")["epoch_size"] == 20
        result.append([[np.array(o.at(i)).item() for i in range(4)] for _ in range(6) for o in pipe.run()])
    assert result[0] == result[1]


def test_draws_in_branches_repeat_themselves():
    def body():
        flag = ndd.fn.random.coin_flip()
        if flag:
            out = ndd.fn.random.uniform(range=[2, 3])
        else:
            out = ndd.fn.random.uniform()
        return out

    def draw(seed):
        pipe = ndd.pipeline_def(body, enable_conditionals=True)(batch_size=8, num_threads=1, device_id=None, seed=seed)
        return [[v.item() for v in pipe.run()[0].batch] for _ in range(2)]

    assert draw(3) == draw(3) != draw(4)


def test_a_missing_folder_is_said_where_the_pipeline_is_built(tmp_path):
    def body():
        return ndd.fn.readers.file(file_root=str(Path(tmp_path) / "none"))

    pipe = ndd.pipeline_def(body)(batch_size=2, num_threads=1, device_id=None, seed=3)
    with pytest.raises((RuntimeError, OSError), match="none"):
        pipe.build()
