"""The proxy: a pipeline as a transform in a Dataset, run in the main process on whole batches."""

from __future__ import annotations

import gc
import multiprocessing
import pickle
import threading
import time

import numpy as np
import proxy_data
import pytest
import torch
from proxy_data import Numbers, Shapes, Stream
from waiting import wait_until

import ndd
import ndd.plugin.pytorch.experimental.proxy as dali_proxy
from ndd import fn


@ndd.pipeline_def(batch_size=4, num_threads=1)
def times_ten():
    return fn.external_source(name="x") * 10


@ndd.pipeline_def(batch_size=4, num_threads=1)
def two_outputs():
    x = fn.external_source(name="x")
    return x * 10, x + 1


@ndd.pipeline_def(batch_size=4, num_threads=1)
def two_inputs():
    return fn.external_source(name="a") + fn.external_source(name="b")


@ndd.pipeline_def(batch_size=4, num_threads=1)
def as_it_is():
    return fn.external_source(name="x")


@pytest.fixture
def server():
    with dali_proxy.DALIServer(times_ten()) as server:
        yield server


def check(batches, expected=None):
    """Data belongs to its number in every row; returns the numbers."""
    seen = []
    for data, number in batches:
        assert (data == number[:, None].to(torch.int32) * 10).all(), (data, number)
        assert tuple(data.shape) == (len(number), 4)
        seen.append(number.tolist())
    if expected is not None:
        assert seen == expected
    return seen


IN_ORDER = [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


@pytest.mark.parametrize("workers", [0, 1, 2])
@pytest.mark.drawn(1)
def test_epochs(server, workers):
    loader = dali_proxy.DataLoader(server, Numbers(server.proxy), batch_size=4, num_workers=workers)
    assert len(loader) == 3
    for _ in range(3):
        check(loader, IN_ORDER)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_other_start_methods(server, method):
    loader = dali_proxy.DataLoader(
        server, Numbers(server.proxy), batch_size=4, num_workers=1, multiprocessing_context=method
    )
    check(loader, IN_ORDER)


def test_the_proxy_can_be_pickled(server):
    note = pickle.loads(pickle.dumps(server.proxy))(np.ones(4, np.int32))
    assert server.produce_data([note])[0].tolist() == [10] * 4
    assert server.proxy is server.proxy


def test_uneven_workers_keep_the_order(server):
    data = Numbers(server.proxy, delay=0.01)
    check(dali_proxy.DataLoader(server, data, batch_size=2, num_workers=2), [[i, i + 1] for i in range(0, 10, 2)])


def test_torchs_own_arguments(server):
    data = Numbers(server.proxy)
    check(
        dali_proxy.DataLoader(server, data, batch_size=4, num_workers=2, drop_last=True, prefetch_factor=1),
        IN_ORDER[:2],
    )
    shuffled = dali_proxy.DataLoader(
        server, data, 4, shuffle=True, num_workers=2, persistent_workers=True, generator=torch.Generator()
    )
    orders = [[n for batch in check(shuffled) for n in batch] for _ in range(3)]
    assert all(sorted(o) == list(range(10)) for o in orders)
    assert orders[0] != orders[1]


def test_a_stream(server):
    loader = dali_proxy.DataLoader(server, Stream(server.proxy, 6), batch_size=4, num_workers=1)
    check(loader, [[0, 1, 2, 3], [4, 5]])


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.drawn(1)
def test_structures(server, workers):
    bare = dali_proxy.DataLoader(server, Numbers(server.proxy, mode="bare"), batch_size=4, num_workers=workers)
    assert [tuple(t.shape) for t in bare] == [(4, 4), (4, 4), (2, 4)]
    nested = dali_proxy.DataLoader(server, Numbers(server.proxy, mode="dict"), batch_size=4, num_workers=workers)
    batch = next(iter(nested))
    assert batch["name"] == ["n0", "n1", "n2", "n3"]
    assert batch["data"][:, 0].tolist() == batch["inner"][0][:, 0].tolist() == [0, 10, 20, 30]
    assert batch["inner"][1][0].tolist() == [0, 1, 2, 3]
    named = dali_proxy.DataLoader(server, Numbers(server.proxy, mode="named"), batch_size=4, num_workers=workers)
    batch = next(iter(named))
    assert isinstance(batch, proxy_data.Pair)
    assert batch.data[:, 0].tolist() == [0, 10, 20, 30]


def test_several_outputs_run_the_pipeline_once():
    runs = []

    @ndd.pipeline_def(batch_size=4)
    def body():
        x = fn.external_source(name="x")
        fn.python_function(x, function=lambda batch: runs.append(1), batch_processing=True, num_outputs=0)
        return x * 10, x + 1

    with dali_proxy.DALIServer(body()) as server:
        runs.clear()
        loader = dali_proxy.DataLoader(server, Numbers(server.proxy, 4, mode="bare"), batch_size=4)
        (batch,) = loader
    assert isinstance(batch, list)
    assert [t[:, 0].tolist() for t in batch] == [[0, 10, 20, 30], [1, 2, 3, 4]]
    assert len(runs) == 1


def test_several_inputs():
    with dali_proxy.DALIServer(two_inputs()) as server:
        notes = [server.proxy(a=np.int32(i), b=np.int32(10)) for i in range(3)]
        batch = torch.utils.data.default_collate(notes)
        assert server.produce_data(batch).tolist() == [10, 11, 12]
        for wrong in (lambda: server.proxy(1), lambda: server.proxy(a=1), lambda: server.proxy(a=1, b=2, c=3)):
            with pytest.raises(ValueError, match=r"Expected signature is \(a, b\)"):
                wrong()


def test_names_and_positions(server):
    assert server.produce_data(server.proxy(x=np.int32(2))).item() == 20
    for wrong in (lambda: server.proxy(), lambda: server.proxy(1, 2), lambda: server.proxy(y=1)):
        with pytest.raises(ValueError, match=r"Expected signature is \(x\)"):
            wrong()


def test_what_is_no_server():
    with pytest.raises(TypeError, match="Pipeline"):
        dali_proxy.DALIServer("pipeline")
    with pytest.raises(TypeError, match="DALIServer"):
        dali_proxy.DataLoader(Numbers(None), Numbers(None))

    @ndd.pipeline_def(batch_size=2)
    def nothing_to_feed():
        return fn.external_source(source=[[1, 2]])

    with pytest.raises(RuntimeError, match="external_source"):
        dali_proxy.DALIServer(nothing_to_feed())


def test_produce_data_walks_everything(server):
    def batch():
        return torch.utils.data.default_collate([server.proxy(np.int32(i)) for i in range(2)])

    note = batch()
    record = proxy_data.Record(note, 5)
    arguments = {"a": note, "l": [batch(), "text"], "r": record, "n": proxy_data.Pair(note, 1)}
    result = server.produce_data(arguments)
    assert result is arguments
    assert result["a"].tolist() == result["n"].data.tolist() == result["r"].data.tolist() == [0, 10]
    assert result["a"].data_ptr() == result["n"].data.data_ptr()
    assert result["l"][0].tolist() == [0, 10]
    assert result["r"] is record
    assert server.produce_data(note).tolist() == [0, 10]
    assert server.produce_data((note, 3))[1] == 3


@pytest.mark.parametrize("workers", [0, 1])
def test_a_collation_of_ones_own(server, workers):
    loader = dali_proxy.DataLoader(server, Numbers(server.proxy), 4, num_workers=workers, collate_fn=list)
    batches = list(loader)
    assert [len(b) for b in batches] == [4, 4, 2]
    assert [(d[0].item(), n) for b in batches for d, n in b] == [(10 * i, i) for i in range(10)]


@pytest.mark.parametrize("workers", [0, 1])
def test_no_batching(server, workers):
    loader = dali_proxy.DataLoader(server, Numbers(server.proxy), batch_size=None, num_workers=workers)
    assert [(d[0].item(), n) for d, n in loader] == [(10 * i, i) for i in range(10)]


def test_a_plain_loader_with_produce_data(server):
    for workers in (0, 1):
        loader = torch.utils.data.DataLoader(Numbers(server.proxy), batch_size=4, num_workers=workers)
        check((server.produce_data(b) for b in loader), IN_ORDER)


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.drawn(1)
def test_a_break_leaves_nothing_stale(server, persistent):
    loader = dali_proxy.DataLoader(
        server, Numbers(server.proxy, 40), batch_size=4, num_workers=2, persistent_workers=persistent
    )
    for stop in (0, 1, 2):
        for i, (data, number) in enumerate(loader):
            check([(data, number)], [[4 * i + k for k in range(4)]])
            if i == stop:
                break
    whole = [list(range(i, i + 4)) for i in range(0, 40, 4)]
    check(loader, whole)
    check(loader, whole)


def test_two_loops_at_once_over_one_server(server):
    first = dali_proxy.DataLoader(server, Numbers(server.proxy), batch_size=4, num_workers=1)
    second = dali_proxy.DataLoader(server, Numbers(server.proxy), batch_size=2)
    for a, b in zip(first, second, strict=False):
        check([a])
        check([b])


def test_an_older_loop_over_the_same_loader_ends_with_an_error(server):
    loader = dali_proxy.DataLoader(server, Numbers(server.proxy), batch_size=2, num_workers=1)
    older = iter(loader)
    next(older)
    check(loader)
    with pytest.raises(RuntimeError, match="new loop"):
        next(older)


def test_kept_batches_stay_valid(server):
    loader = dali_proxy.DataLoader(server, Numbers(server.proxy, 40), batch_size=4, num_workers=1)
    kept = list(loader)
    del loader
    gc.collect()
    check(kept)
    assert len({d.data_ptr() for d, _ in kept}) == 10


# Errors


@pytest.mark.parametrize("workers", [0, 1, 2])
@pytest.mark.drawn(1)
def test_a_batch_larger_than_the_pipelines(server, workers):
    loader = dali_proxy.DataLoader(server, Numbers(server.proxy), batch_size=5, num_workers=workers)
    with pytest.raises(RuntimeError, match=r"batch of 5 samples.*batch_size is 4"):
        next(iter(loader))


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.drawn(1)
def test_an_error_in_a_worker_comes_at_its_turn(server, workers):
    loader = dali_proxy.DataLoader(server, Numbers(server.proxy, mode="raise", at=5), 2, num_workers=workers)
    batches = iter(loader)
    assert [next(batches)[1].tolist() for _ in range(2)] == [[0, 1], [2, 3]]
    with pytest.raises(ValueError, match=r"(?s)DataLoader worker process.*a bad sample"):
        next(batches)
    assert [b[1].tolist() for b in batches] == [[6, 7], [8, 9]]


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize(
    ("bad", "error", "text"),
    [
        (proxy_data.text_at_five, TypeError, "str"),
        (proxy_data.mixed_types_at_five, RuntimeError, "type"),
        (proxy_data.growing, (RuntimeError, ValueError), "shape"),
    ],
)
@pytest.mark.drawn(1)
def test_an_error_in_the_pipeline_comes_at_its_turn(workers, bad, error, text):
    with dali_proxy.DALIServer(as_it_is()) as server:
        loader = dali_proxy.DataLoader(server, Shapes(server.proxy, mode=bad), 4, num_workers=workers)
        batches = iter(loader)
        assert next(batches)[1].tolist() == [0, 1, 2, 3]
        with pytest.raises(error, match=text):
            next(batches)
        good = dali_proxy.DataLoader(server, Numbers(server.proxy), 4, num_workers=workers)
        assert [n.tolist() for _, n in good] == IN_ORDER


def test_a_failed_batch_leaves_no_inputs_behind():
    with dali_proxy.DALIServer(two_inputs()) as server:
        with pytest.raises(TypeError):
            server.produce_data(server.proxy(a=np.int32(1), b="text"))
        assert server.produce_data(server.proxy(a=np.int32(2), b=np.int32(3))).item() == 5


@pytest.mark.parametrize("mode", ["exit", "kill"])
@pytest.mark.drawn(1)
def test_the_death_of_a_worker_is_an_error_at_once(server, mode):
    loader = dali_proxy.DataLoader(server, Numbers(server.proxy, 40, mode=mode, at=9), 2, num_workers=2)
    begin = time.monotonic()
    with pytest.raises(RuntimeError, match=r"worker"):
        for _ in loader:
            pass
    assert time.monotonic() - begin < 60
    check(dali_proxy.DataLoader(server, Numbers(server.proxy), batch_size=4, num_workers=1), IN_ORDER)


def test_a_loop_whose_server_was_stopped():
    with dali_proxy.DALIServer(times_ten()) as server:
        batches = iter(dali_proxy.DataLoader(server, Numbers(server.proxy, 40), batch_size=4, num_workers=1))
        next(batches)
    with pytest.raises(RuntimeError, match="stopped"):
        next(batches)
    with server:
        check(dali_proxy.DataLoader(server, Numbers(server.proxy), batch_size=4), IN_ORDER)


def test_exceptions_pass_through_the_server():
    begin = time.monotonic()

    def loop():
        with dali_proxy.DALIServer(times_ten()) as server:
            for _ in dali_proxy.DataLoader(server, Numbers(server.proxy, 40), batch_size=4, num_workers=2):
                raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        loop()
    assert time.monotonic() - begin < 60


def test_without_with_and_idempotent_threads():
    server = dali_proxy.DALIServer(times_ten(), deterministic=True)
    for call in (server.start_thread, server.start_thread, server.stop_thread, server.stop_thread):
        call()
    check(dali_proxy.DataLoader(server, Numbers(server.proxy), batch_size=4, num_workers=1), IN_ORDER)


def test_many_servers_leave_nothing():
    def item(i):
        with dali_proxy.DALIServer(times_ten()) as server:
            loader = dali_proxy.DataLoader(server, Numbers(server.proxy), batch_size=4, num_workers=i % 3)
            for _ in loader:
                if i % 4 == 3:
                    break

    item(1)
    gc.collect()
    before = set(threading.enumerate())
    for i in range(8):
        item(i)
    gc.collect()
    wait_until(lambda: not multiprocessing.active_children())
    names = ("ndd-proxy", "ndd-pipeline")
    wait_until(lambda: not [t for t in threading.enumerate() if t not in before and t.name.startswith(names)])


def _ragged_first(i):
    return np.zeros(1 + i % 2 if i < 4 else 1)


def test_ragged_outputs_are_told(server):
    """The next batch is as ever."""
    ragged = proxy_data.Made(server.proxy, _ragged_first)
    loop = iter(dali_proxy.DataLoader(server, ragged, batch_size=4, num_workers=1))
    with pytest.raises(RuntimeError, match=r"Output 0 .* different shapes, \[\(1,\), \(2,\)"):
        next(loop)
    assert next(loop).shape == (4, 1)


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.drawn(1)
def test_two_calls_in_one_sample_are_told(server, workers):
    pairs = proxy_data.Pairs(server.proxy)
    with pytest.raises(RuntimeError, match=r"(?s)Unexpected sample order.*sample_idx=2.*once for each sample"):
        next(iter(dali_proxy.DataLoader(server, pairs, batch_size=2, num_workers=workers)))
    kept = next(iter(dali_proxy.DataLoader(server, pairs, batch_size=2, num_workers=workers, collate_fn=list)))
    assert [[int(v) for v in pair] for pair in kept] == [[0, 1000], [10, 1010]]


def test_the_place_of_a_sample(server):
    torch.utils.data.default_collate([server.proxy(np.int32(0))])
    for _ in range(2):
        notes = [server.proxy(np.int32(i)) for i in range(3)]
        assert [(note.sample_idx, note.output_idx) for note in notes] == [(0, 0), (1, 0), (2, 0)]
        torch.utils.data.default_collate(notes)
