"""Every operator runs on the GPU of its input: kernels made for it, on a stream of it, for a result that is there."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from calling import call_with, cases_of, decodes, layouts_of, load_every_module, public, samples
from waiting import let_read_on

import ndd
from ndd._operator import all_operators

OPERATORS = load_every_module()
CASES = [
    pytest.param(path, cases[0], id=path)
    for path, op in sorted(OPERATORS.items())
    if op.runs_on_gpu and (cases := cases_of(path, op))
]


@pytest.fixture
def launches(two_gpus, monkeypatch):
    """For each launch the GPU that its kernel was made for, and the one of its stream."""
    compile = importlib.import_module("ndd._cuda.compile")
    launch = importlib.import_module("ndd._cuda.launch")
    stream = importlib.import_module("ndd._execution.stream")
    make, start, init, result, places = compile.function, compile.launch, stream.Stream.__init__, [], {}

    def made(text, name, device_id):
        return make(text, name, device_id), device_id

    def launched(kernel, grid, block, handle, arguments):
        result.append((kernel[1], places.get(handle)))
        start(kernel[0], grid, block, handle, arguments)

    def opened(self, *, stream=None, device_id=None):
        init(self, stream=stream, device_id=device_id)
        places[self.handle] = self.device_id

    monkeypatch.setattr(compile, "function", made)
    monkeypatch.setattr(compile, "launch", launched)
    monkeypatch.setattr(launch, "_functions", {})
    monkeypatch.setattr(stream.Stream, "__init__", opened)
    # What other tests left: streams that they opened, calls that start kernels again.
    importlib.import_module("ndd._lookahead.prefetch")._contexts.clear()
    importlib.import_module("ndd._execution.context")._own_streams.clear()
    for op in all_operators().values():
        op._cached_calls.clear()
    yield result
    for op in all_operators().values():
        op._cached_calls.clear()


@pytest.mark.parametrize(("path", "case"), CASES)
@pytest.mark.drawn(1)
def test_everything_is_where_the_input_is(path, case, launches):
    """On GPU 0, then with the same constants on GPU 1, and on GPU 0 again."""
    inputs = samples(case, layouts_of(case, OPERATORS[path])[0])
    for number in (0, 1, 0):
        device = ndd.Device("gpu", number)
        values = [ndd.batch(arrays, layout=layout) for arrays, layout in inputs]
        named = decodes(OPERATORS[path]) or not values
        values = values if named else [value.to_device(device) for value in values]
        launches.clear()
        for value in call_with(ndd, public(ndd, path), case, values, "ragged", **({"device": device} if named else {})):
            assert value.evaluate().device == device
        assert set(launches) <= {(number, number)}


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.drawn(1)
def test_a_loop_and_what_runs_ahead_of_it(number, launches):
    reader = ndd.readers.File(file_root=ndd.demo.photos())
    for jpegs, _ in reader.next_epoch(batch_size=2):
        images = ndd.decoders.image(jpegs, device=f"gpu:{number}")
        images = ndd.crop_mirror_normalize(ndd.resize(images, size=[8, 8]), mean=[1.0], std=[2.0]).evaluate()
        assert images.device == ndd.Device("gpu", number)
        let_read_on(reader)
    assert len(launches) > 4
    assert set(launches) == {(number, number)}


def test_a_batch_that_goes_from_one_to_the_other(launches):
    images = ndd.batch([np.full((4, 6, 3), k, np.uint8) for k in range(4)], layout="HWC")
    halves = [ndd.flip(images.select([k, k + 2]).to_device(f"gpu:{k}")) for k in range(2)]
    both = ndd.cat(*[half.to_device("gpu:1") for half in halves]).evaluate()
    assert both.device == ndd.Device("gpu", 1)
    assert set(launches) == {(0, 0), (1, 1)}
    assert [np.unique(sample.cpu().numpy()).tolist() for sample in both] == [[0, 1], [2, 3]]
