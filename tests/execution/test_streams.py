"""Streams on a real GPU: order between torch's work and ours in both directions, memory, contexts, errors."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest
import torch
from memory import least_growth

import ndd

SIZE = 1 << 22


def slow_fill(cuda, value, milliseconds=100):
    """A tensor on the GPU that gets its value only after a while, on torch's current stream."""
    x = torch.zeros(SIZE, device="cuda")
    cuda._sleep(int(milliseconds * 1e6))
    x.fill_(value)
    return x


def busy(cuda):
    """An operator input whose value comes late on our own stream."""
    with cuda.stream(ndd.EvalContext.current().cuda_stream._torch):
        cuda._sleep(int(1e8))


def test_our_stream_waits_for_torch(cuda):
    x = slow_fill(cuda, 3.0)
    out = ndd.as_tensor(x) + 1
    assert float(out.torch().min()) == 4.0


def test_torch_waits_for_our_stream(cuda):
    x = ndd.tensor(np.ones(SIZE, np.float32)).gpu()
    for mode in ndd.EvalMode:
        with mode:
            (x + 0).evaluate()
            busy(cuda)
            out = (x + 1).torch()
            assert float(out.min()) == 2.0


def test_the_caller_never_waits(cuda):
    x = ndd.tensor(np.ones(SIZE, np.float32)).gpu()
    (x + 1).torch().min().item()
    busy(cuda)
    out = (x + 1).torch()
    assert not torch.cuda.current_stream().query(), "the caller waited for the GPU"
    assert float(out.min()) == 2.0


def test_sync_full_waits(cuda):
    x = ndd.tensor(np.ones(SIZE, np.float32)).gpu()
    (x + 1).evaluate()
    busy(cuda)
    with ndd.EvalMode.sync_full:
        y = x + 1
    assert ndd.EvalContext.current().cuda_stream._torch.query()
    y.evaluate()


def test_a_later_write_of_torch_does_not_show(cuda):
    x = torch.ones(SIZE, device="cuda")
    ndd.as_tensor(x).evaluate()
    busy(cuda)
    out = ndd.as_tensor(x) + 1
    x.fill_(100)
    assert float(out.torch().max()) == 2.0


def test_memory_is_not_given_away_while_in_use(cuda):
    """A batch dies while torch's kernels still read what `.torch()` gave, and the other way round."""
    for i in range(30):
        out = (ndd.tensor(np.full(SIZE // 8, i, np.float32)).gpu() + 1).torch()
        cuda._sleep(int(2e6))
        kept = out * 1
        del out
        torch.empty(SIZE // 8, device="cuda").fill_(-1)
        (ndd.tensor(np.full(SIZE // 8, -7, np.float32)).gpu() * 1).evaluate()
        assert float(kept.min()) == i + 1
        x = torch.full((SIZE // 8,), float(i), device="cuda")
        busy_out = ndd.as_tensor(x) + 1
        del x
        torch.empty(SIZE // 8, device="cuda").fill_(-1)
        assert float(busy_out.torch().max()) == i + 1


def test_uploads_come_from_memory_that_is_not_reused_too_early(cuda):
    outs = []
    for i in range(40):
        busy(cuda) if i % 10 == 0 else None
        outs.append(ndd.batch([np.full(5000 + k, i, np.float32) for k in range(4)]).gpu() + 1)
    for i, out in enumerate(outs):
        assert all(float(s.torch().min()) == float(s.torch().max()) == i + 1 for s in out)


def test_threads_have_their_own_streams(cuda):
    result, values = {}, {}

    def work(k):
        stream = ndd.EvalContext.current().cuda_stream
        x = ndd.tensor(np.full(SIZE // 4, k, np.float32)).gpu()
        for _ in range(20):
            x = x + 1
        values[k] = float(x.torch().max())
        result[k] = int(stream)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(set(result.values())) == 4
    assert values == {k: k + 20 for k in range(4)}


def test_values_cross_threads_and_contexts(cuda):
    def make():
        with ndd.EvalContext() as context:
            x = ndd.tensor(np.ones(SIZE, np.float32)).gpu().evaluate()
            with cuda.stream(context.cuda_stream._torch):
                cuda._sleep(int(5e7))
            return x + 1

    result = []
    thread = threading.Thread(target=lambda: result.append(make()))
    thread.start()
    thread.join()
    assert float((result[0] * 2).torch().max()) == 4.0


def test_streams_as_objects(cuda):
    own, theirs = ndd.stream(), torch.cuda.Stream()
    wrapped = ndd.stream(stream=theirs)
    assert wrapped == theirs.cuda_stream
    assert wrapped == theirs
    assert own != wrapped
    assert int(ndd.stream(stream=theirs.cuda_stream)) == theirs.cuda_stream
    assert own.device_id == 0
    assert ndd.get_default_stream() is None
    try:
        ndd.set_default_stream(wrapped)
        assert ndd.get_default_stream() == wrapped
        assert ndd.EvalContext.current().cuda_stream == wrapped
        ndd.set_current_stream(own)
        assert ndd.get_current_stream() == own
    finally:
        ndd.set_current_stream(None)
        ndd.set_default_stream(None)
    assert ndd.get_current_stream() == ndd.EvalContext.default().cuda_stream
    with ndd.EvalContext(cuda_stream=theirs) as context:
        assert context.cuda_stream == theirs
        out = ndd.tensor(np.ones(5, np.float32)).gpu() + 1
        assert out.torch().tolist() == [2.0] * 5


def test_interfaces(cuda):
    t = ndd.tensor(np.arange(6, dtype=np.float32).reshape(2, 3)).gpu()
    cupy = pytest.importorskip("cupy")
    assert cupy.asarray(t).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert torch.from_dlpack(t).data_ptr() == t.torch().data_ptr()
    shared = ndd.as_tensor(cupy.arange(4, dtype=cupy.int32))
    assert shared.device == ndd.Device("gpu:0")
    assert (shared + 1).cpu().torch().tolist() == [1, 2, 3, 4]

    class Interface:
        def __init__(self, array):
            self.array = array
            self.__cuda_array_interface__ = array.__cuda_array_interface__

        def __dlpack__(self, **more):
            raise TypeError("not today")

        def __dlpack_device__(self):
            return (2, 0)

    b = ndd.batch([Interface(cupy.arange(3)), Interface(cupy.arange(2))])
    assert [s.cpu().torch().tolist() for s in b] == [[0, 1, 2], [0, 1]]
    assert ndd.as_batch([torch.ones(2, device="cuda"), torch.zeros(1, device="cuda")]).shape == [(2,), (1,)]


def test_flat_memory_on_the_gpu(cuda):
    images = np.random.default_rng(0).integers(0, 256, (8, 64, 64, 3)).astype(np.uint8)

    def step(i):
        x = ndd.batch(images[: 4 + i % 4], layout="HWC").gpu()
        y = ndd.cast(ndd.flip(x), dtype=ndd.float32) * 2
        if i % 7 == 0:
            try:
                y.slice[999].evaluate()
            except RuntimeError:
                pass
        return y.torch()

    def steps():
        for i in range(2000):
            step(i)
        cuda.synchronize()

    steps()
    gc.collect()
    allocated = cuda.memory_allocated()
    # More is reserved whenever more steps wait for the GPU than ever before, but not in each of four parts. One of a hundred
    # steps that kept its 400 kB would take 8 MB in each.
    assert least_growth(steps, size=cuda.memory_reserved) < 4 << 20
    assert cuda.memory_allocated() <= allocated + (1 << 20)


def test_operators_in_a_cuda_graph_of_torch_do_not_break_it(cuda):
    """After use on our streams, torch's own capture still works."""
    (ndd.tensor(np.ones(4, np.float32)).gpu() + 1).torch()
    x = torch.zeros(4, device="cuda")
    cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x + 1
    x.fill_(5)
    graph.replay()
    assert y.tolist() == [6.0] * 4


@pytest.mark.parametrize("mode", list(ndd.EvalMode))
def test_a_chain_in_every_mode(cuda, mode):
    images = [np.random.default_rng(i).integers(0, 256, (50 + i, 40, 3)).astype(np.uint8) for i in range(5)]
    with mode:
        b = ndd.flip(ndd.batch(images, layout="HWC").gpu(), vertical=1)
        out = ndd.cast(b.slice[2:, ::2], dtype=ndd.float32) - 1
        for sample, image in zip(out, images, strict=True):
            np.testing.assert_array_equal(np.asarray(sample.cpu()), image[::-1, ::-1][2:, ::2].astype(np.float32) - 1)
