"""Readers in pipelines: made once, advanced once a run."""

from __future__ import annotations

import numpy as np
import pytest
from pipeline.counting import values

import ndd
from ndd import fn


def test_readers_are_made_once_and_advance_once_a_run(files):
    @ndd.pipeline_def(batch_size=2)
    def body():
        data, label = fn.readers.file(files=files, name="Reader", num_shards=2, shard_id=1)
        return data, label

    pipe = body()
    assert pipe.reader_meta("Reader") == {
        "epoch_size": 7,
        "epoch_size_padded": 7,
        "number_of_shards": 2,
        "shard_id": 1,
        "pad_last_batch": 0,
        "stick_to_shard": 0,
    }
    assert pipe.epoch_size() == {"Reader": 7}
    labels = [values(pipe.run()[1]) for _ in range(2)]
    assert labels == [[[3], [4]], [[5], [6]]]
    assert list(pipe.reader_meta()) == ["Reader"]
    with pytest.raises(RuntimeError, match="Nobody"):
        pipe.reader_meta("Nobody")
    with pytest.raises(RuntimeError, match="Nobody"):
        pipe.epoch_size("Nobody")


@pytest.mark.oracle
@pytest.mark.parametrize("pad", [False, True])
@pytest.mark.parametrize("shuffle", [False, True])
def test_readers_give_what_dalis_give(files, pad, shuffle):
    dali = pytest.importorskip("nvidia.dali")
    import nvidia.dali.fn as their_fn

    result = []
    for library, functions in ((ndd, fn), (dali, their_fn)):

        @library.pipeline_def(batch_size=3, num_threads=1, device_id=None)
        def body(functions=functions):
            data, label = functions.readers.file(
                files=files, name="R", num_shards=2, shard_id=0, pad_last_batch=pad, random_shuffle=shuffle, seed=11
            )
            return data, label

        pipe = body()
        pipe.build()
        facts = (pipe.reader_meta("R"), pipe.epoch_size("R"))
        runs = [pipe.run() for _ in range(7)]
        result.append((facts, [[[np.array(t).tolist() for t in o] for o in r] for r in runs]))
    assert result[0] == result[1]


def test_two_readers_without_names(files):
    @ndd.pipeline_def(batch_size=1)
    def body():
        pair = [fn.readers.file(files=files[k:])[0] for k in (0, 3)]
        _, other = fn.readers.file(files=files, labels=list(range(10, 17)))
        return pair[0], pair[1], other

    pipe = body()
    for i in range(3):
        first, second, label = pipe.run()
        assert (len(first.at(0)), len(second.at(0)), label.at(0).tolist()) == (i + 1, i + 4, [10 + i])
