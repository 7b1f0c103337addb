"""Readers in pipelines: made once, advanced once a run."""

from __future__ import annotations

import importlib

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
@pytest.mark.parametrize("package", ["ndd", "nvidia.dali"])
def test_readers_without_a_name_have_the_name_of_their_nodes(package, files, tmp_path):
    """Counted with the other calls of the body."""
    library = importlib.import_module(package)
    (tmp_path / "video").mkdir()
    (tmp_path / "video" / "0.ppm").write_bytes(b"P6 1 1 255\n123")
    pipe = library.Pipeline(1, 1, None)
    with pipe:
        number = library.fn.random.uniform(range=[0.0, 1.0])
        outputs = [library.fn.readers.file(files=files[:n], name=name)[0] for n, name in ((3, None), (4, "mine"))]
        outputs.append(library.fn.readers.sequence(file_root=str(tmp_path), sequence_length=1))
        pipe.set_outputs(number, *outputs)
    pipe.build()
    assert pipe.epoch_size() == {"__File_1": 3, "mine": 4, "__Sequence_2": 1}
    assert pipe.reader_meta("__File_1")["epoch_size"] == 3
    assert [node.name for node in outputs] == ["__File_1[0]", "mine[0]", "__Sequence_2"]


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
