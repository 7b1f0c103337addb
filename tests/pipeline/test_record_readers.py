"""Readers of records in pipeline mode: dicts of nodes, and single outputs that are no tuples, as in DALI."""

import numpy as np
import pytest
from readers.datasets import FEATURES, dali_features, tars, tfrecords

import ndd
from ndd import fn, tfrecord


def arrays(outputs):
    return [[np.array(sample).tolist() for sample in output] for output in outputs]


@pytest.mark.oracle
def test_tfrecord_gives_a_dict(tmp_path):
    dali = pytest.importorskip("nvidia.dali")
    import nvidia.dali.fn as their_fn

    arguments, result = tfrecords(tmp_path, 5), []
    for library, functions, options in ((ndd, fn, arguments), (dali, their_fn, dali_features(arguments))):

        @library.pipeline_def(batch_size=2, num_threads=1, device_id=None)
        def body(functions=functions, options=options):
            inputs = functions.readers.tfrecord(**options, name="R")
            return inputs["data"], inputs["number"] + 1

        pipe = body()
        pipe.build()
        result.append([pipe.epoch_size("R"), *(arrays(pipe.run()) for _ in range(4))])
    assert result[0] == result[1]


def test_recorded_nodes(tmp_path):
    pipe = ndd.Pipeline(batch_size=2, num_threads=1, device_id=None)
    (tmp_path / "tars").mkdir()
    with pipe:
        inputs = fn.readers.tfrecord(**tfrecords(tmp_path, 4))
        assert list(inputs) == list(FEATURES)
        label = fn.readers.webdataset(**{**tars(tmp_path / "tars", 4), "ext": "cls"})
        pipe.set_outputs(inputs["number"] * 2, label)
    assert arrays(pipe.run()) == [[[0], [2]], [[48], [49]]]
    assert arrays(pipe.run()) == [[[4], [6]], [[50], [51]]]


def test_one_output_is_a_node(tmp_path):
    @ndd.pipeline_def(batch_size=2)
    def body():
        return fn.readers.webdataset(**{**tars(tmp_path, 4), "ext": "cls"}) + 1

    assert arrays(body().run()) == [[[49], [50]]]


def test_the_old_name(tmp_path):
    @ndd.pipeline_def(batch_size=2)
    def body():
        return fn.tfrecord_reader(**tfrecords(tmp_path, 2))["number"]

    assert arrays(body().run()) == [[[0], [1]]]
    assert tfrecord.FixedLenFeature is ndd.tfrecord.FixedLenFeature
