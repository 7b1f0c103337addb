"""`ndd.pytorch.nodes` in graphs of torchdata, against DALI's nodes, and their state."""

from __future__ import annotations

import contextlib
import threading

import numpy as np
import pytest
import torch
import warm_interpreter

import ndd

tn = pytest.importorskip("torchdata.nodes")
nodes = pytest.importorskip("ndd.pytorch.nodes")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    root = tmp_path_factory.mktemp("files")
    for i in range(10):
        (root / f"{i}.bin").write_bytes(bytes([i] * 4))
    return [str(root / f"{i}.bin") for i in range(10)]


def graph(package, where, files, **arguments):
    reader = where.Reader(package.readers.File, batch_size=3, files=files, random_shuffle=True, seed=4, **arguments)
    mapped = where.DictMapper(reader, lambda data: package.cast(data, dtype=package.int32) * 2)
    return where.ToTorch(mapped)


def as_lists(loader):
    return [[np.asarray(v).tolist() for v in values] for values in loader]


@pytest.mark.long
def test_they_are_there_without_an_import_of_their_own():
    done = warm_interpreter.run("import ndd; print(ndd.pytorch.nodes.Reader.__name__)")
    assert done.stdout == "Reader\n", done.stderr


@pytest.mark.oracle
def test_as_dali(files):
    dali = pytest.importorskip("nvidia.dali.experimental.dynamic")
    theirs_nodes = pytest.importorskip("nvidia.dali.experimental.dynamic.pytorch.nodes")
    ours, theirs = tn.Loader(graph(ndd, nodes, files)), tn.Loader(graph(dali, theirs_nodes, files))
    assert [as_lists(ours) for _ in range(2)] == [as_lists(theirs) for _ in range(2)]
    for where, package in ((nodes, ndd), (theirs_nodes, dali)):
        reader = where.Reader(package.readers.File, batch_size=3, files=files)
        with pytest.raises(RuntimeError, match="reset"):
            where.Reader.next(reader)
        with pytest.raises(ValueError, match="names"):
            where.Reader(package.readers.File, batch_size=3, files=files, output_names=["a"])
        assert reader.get_metadata()["epoch_size"] == 10


@pytest.mark.parametrize("taken", [0, 1, 2, 4])
def test_a_graph_goes_on(files, taken):
    """The state of a `Loader`, in the middle of an epoch, with a thread that has read ahead."""

    def output():
        return tn.Loader(tn.Prefetcher(graph(ndd, nodes, files), prefetch_factor=2))

    loader = output()
    result = iter(loader)
    for _ in range(taken):
        next(result)
    state = loader.state_dict()
    rest = as_lists(result)
    other = output()
    other.load_state_dict(state)
    assert as_lists(other) == (rest or as_lists(loader))
    assert len(rest) == 4 - taken


def test_samples_and_names(files):
    reader = nodes.Reader(ndd.readers.File, batch_size=None, files=files, output_names=("bytes", "number"))
    (first, second), *_ = zip(*[list(nodes.ToTorch(reader))] * 2, strict=True)
    assert first[0].tolist() == [0, 0, 0, 0]
    assert second[1].tolist() == [0]
    with pytest.raises(KeyError, match="expected one of"):
        list(nodes.DictMapper(reader, lambda data: data, key="data"))
    with pytest.raises(ValueError, match="output_names"):
        nodes.Reader(ndd.readers.Numpy, batch_size=1, files=files)
    with pytest.raises(TypeError, match=r"expected a class such as ndd\.readers\.File, got a reader, a File"):
        nodes.Reader(ndd.readers.File(files=files), batch_size=1)


def test_all_on_one_gpu(files, emulated_gpu):
    reader = nodes.Reader(ndd.readers.File, batch_size=5, files=files)
    data, labels = next(iter(nodes.ToTorch(nodes.DictMapper(reader, lambda data: data.gpu()))))
    assert data.device == labels.device


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.drawn(1)
def test_threads_use_the_gpu_of_the_thread_that_made_the_nodes(files, two_gpus, number):
    """A thread's current GPU is the first one, whatever torch.cuda.set_device has said elsewhere."""
    seen = []

    def mapped(data):
        seen.append((threading.get_ident(), ndd.Device.current().device_id))
        return ndd.cast(data, dtype=ndd.int32, device="cpu")

    with ndd.Device("gpu", number):
        reader = nodes.Reader(ndd.readers.File, batch_size=5, files=files)
        loader = tn.Loader(tn.Prefetcher(nodes.ToTorch(nodes.DictMapper(reader, mapped)), prefetch_factor=2))
        assert len(list(loader)) == 2
    assert {gpu for _, gpu in seen} == {number}
    assert threading.get_ident() not in {thread for thread, _ in seen}


def test_the_stream_of_the_gpu_that_has_the_tensors(files, two_gpus, monkeypatch):
    entered = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda number: f"stream of {number}")
    mapper = nodes.DictMapper(nodes.Reader(ndd.readers.File, batch_size=1, files=files), lambda data: data)
    node, chosen = nodes.ToTorch(mapper), nodes.ToTorch(mapper, "mine")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: entered.append(stream) or contextlib.nullcontext())
    node.reset()
    for place in ("cpu", "gpu:1", "gpu:0"):
        mapper._map_fn = lambda data, place=place: data.to_device(place)
        for each in (node, chosen):
            each.next()
    assert entered == [None, None, "stream of 1", "mine", "stream of 0", "mine"]
