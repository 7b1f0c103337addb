"""Checkpoints of pipelines; constants with types; `numba_function`; where code for DALI imports `pipeline_def` from."""

from __future__ import annotations

import json

import numpy as np
import pytest

import ndd
from ndd.pipeline.experimental import pipeline_def
from ndd.types import Constant


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    root = tmp_path_factory.mktemp("files")
    for i in range(10):
        (root / f"{i}.txt").write_text(str(i))
    return [str(root / f"{i}.txt") for i in range(10)]


def made(files, **arguments):
    @pipeline_def(batch_size=3, seed=4, enable_checkpointing=True, debug=True)
    def body():
        _, labels = ndd.fn.readers.file(files=files, random_shuffle=True, name="files")
        noise = ndd.fn.random.uniform(range=[0, 1])
        counted = ndd.fn.external_source(source=lambda i: np.full((3, 1), i))
        listed = ndd.fn.external_source(source=[np.full((3, 1), i) for i in range(20)])
        return labels, noise, counted, listed

    return body(**arguments)


def runs(pipe, count):
    return [[out.as_array().tolist() for out in pipe.run()] for _ in range(count)]


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.drawn(1)
def test_a_pipeline_goes_on(files, tmp_path, depth):
    """After any run, whatever was prepared ahead."""
    pipe = made(files, prefetch_queue_depth=depth)
    expected, places = [], [pipe.checkpoint()]
    for _ in range(6):
        expected += runs(pipe, 1)
        places.append(pipe.checkpoint(str(tmp_path / "place")))
    for done in (1, 2, 5):
        other = made(files, checkpoint=places[done], prefetch_queue_depth=depth)
        assert other.is_restored_from_checkpoint
        assert runs(other, 6 - done) == expected[done:]
    last = made(files, checkpoint=(tmp_path / "place").read_bytes())
    assert runs(last, 1) == runs(pipe, 1)


def test_what_is_no_checkpoint(files):
    for wrong, said in (
        (b"\x0a\x05", "another format"),
        ('{"kind": "ndd pipeline"}', "expected what"),
        ('{"kind": "ndd pipeline", "version": 2, "states": {}}', "version 1, got 2"),
        ("[" * 100000, "expected what"),
    ):
        with pytest.raises(ValueError, match=said):
            made(files, checkpoint=wrong)
    with pytest.raises(TypeError, match="got int"):
        made(files, checkpoint=5)
    place = {**json.loads(made(files).checkpoint()), "states": {"other": {}}}
    with pytest.raises(ValueError, match=r"no state of 'reader readers\.file files'"):
        made(files, checkpoint=json.dumps(place)).run()
    with pytest.raises(RuntimeError, match="enable_checkpointing"):
        ndd.Pipeline(batch_size=1).checkpoint()


@pytest.mark.oracle
def test_constants_as_dali():
    pytest.importorskip("nvidia.dali")
    import nvidia.dali

    result = []
    for m in (ndd, nvidia.dali):

        @m.pipeline_def(batch_size=2, num_threads=1, device_id=None)
        def body(m=m):
            x, c = m.fn.external_source(source=[[np.int32(3), np.int32(4)]]), m.types.Constant
            return (
                x + c(10).uint8(), c(10).float32() - x, c(3) < x, x * c([1, 2]), c(20) // x, c(6) & x, c(2) ** x,
                x + c(7, shape=[2]), x * c(2.5), x + c(1).int64(), c(True).bool(), c(3).uint16(),
            )  # fmt: skip

        pipe = body()
        pipe.build()
        result.append([(int(out.dtype), [np.asarray(v).tolist() for v in out]) for out in pipe.run()])
    assert result[0] == result[1]


def test_numba_function():
    def halved(out, arguments):
        out[:] = arguments[::2]

    def shapes(outs, ins):
        for k in range(len(outs[0])):
            outs[0][k][0] = (ins[0][k][0] + 1) // 2

    def lists(outs, arguments):
        for out, first in zip(outs, arguments, strict=True):
            out[:] = first + 1

    kinds = {"out_types": [ndd.types.INT32], "in_types": [ndd.types.INT32], "outs_ndim": [1], "ins_ndim": [1]}

    @ndd.pipeline_def(batch_size=2)
    def body():
        x = ndd.fn.external_source(source=[[np.arange(5, dtype=np.int32), np.arange(2, dtype=np.int32)]], cycle=True)
        numba = ndd.fn.experimental.numba_function
        return numba(x, run_fn=halved, setup_fn=shapes, **kinds), numba(x, run_fn=lists, batch_processing=True, **kinds)

    first, second = body().run()
    assert [np.asarray(v).tolist() for v in first] == [[0, 2, 4], [0]]
    assert [np.asarray(v).tolist() for v in second] == [[1, 2, 3, 4, 5], [1, 2]]

    @ndd.pipeline_def(batch_size=1)
    def wrong():
        return ndd.fn.experimental.numba_function(ndd.fn.external_source(source=[[1.5]]), run_fn=halved, **kinds)

    with pytest.raises(RuntimeError, match="input 0: expected 1 dimensions of i32, got 0 of f32"):
        wrong().run()


def test_constants_have_types():
    assert repr(Constant(10).uint8()) == "10"
    assert Constant(10).float64().dtype == ndd.types.FLOAT64
