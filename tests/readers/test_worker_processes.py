"""Workers of a DataLoader share an epoch: the loader gives what it gives without workers, loop after loop."""

from __future__ import annotations

import itertools
import os
from collections import Counter

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset

import ndd
from ndd.readers import File
from ndd.readers.epochs import worker_log
from ndd.readers.epochs.worker_log import Loop
from readers.epochs import flat, labels_of

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:'set_vital' is deprecated"),
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),
]
ORDERS = [
    {},
    {"shuffle": "global", "seed": 3},
    {"random_shuffle": True, "initial_fill": 5},
    {"shuffle_after_epoch": True},
    {"num_shards": 2, "shard_id": 1, "shuffle": "global"},
    {"num_shards": 3, "random_shuffle": True, "pad_last_batch": True},
    {"num_shards": 3, "stick_to_shard": True},
    {"sampler": lambda epoch: [(7 * i + epoch) % 23 for i in range(20)]},
]
ENDINGS = ["fill", "partial", "drop"]


@pytest.fixture(scope="module", autouse=True)
def _warm(tmp_path_factory):
    """What is imported on first use is imported here, not by each child."""
    path = tmp_path_factory.mktemp("warm") / "0.bin"
    path.write_bytes(b"x")
    list(File(files=[str(path)]).next_epoch(1))
    ndd.random.uniform().evaluate()


def loading(data, workers=2, method="fork", **more):
    if not workers:
        return DataLoader(data, batch_size=None)
    return DataLoader(data, batch_size=None, num_workers=workers, multiprocessing_context=method, **more)


def loops(loader, count):
    return [[labels_of(value) for value in loader] for _ in range(count)]


@pytest.mark.parametrize("given_", ORDERS, ids=lambda g: " ".join(g) or "stored")
@pytest.mark.parametrize("last", ENDINGS)
@pytest.mark.drawn(1)
def test_the_loader_gives_what_it_gives_without_workers(numbered, given_, last):
    """In the same order, whether workers are kept or begin anew with each loop; and again with a new reader."""
    expected = loops(loading(File(files=numbered(23), **given_).next_epoch(3, last_batch=last), 0), 3)
    for workers, persistent in ((3, False), (2, True)):
        loader = loading(
            File(files=numbered(23), **given_).next_epoch(3, last_batch=last), workers, persistent_workers=persistent
        )
        assert len(loader) == len(expected[0])
        assert loops(loader, 3) == expected


@pytest.mark.slow
@pytest.mark.parametrize("method", ["forkserver", "spawn"])
def test_workers_that_are_started(numbered, method):
    given_ = {"files": numbered(11), "shuffle": "global", "seed": 3}
    expected = loops(loading(File(**given_).next_epoch(3, last_batch="partial"), 0), 2)
    assert loops(loading(File(**given_).next_epoch(3, last_batch="partial"), 2, method), 2) == expected


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("last", ENDINGS)
@pytest.mark.drawn(1)
def test_a_loop_that_was_left(numbered, last, persistent):
    """The next one is the next epoch, as a whole, in all workers."""
    expected = loops(loading(File(files=numbered(23), shuffle="global").next_epoch(3, last_batch=last), 0), 4)
    loader = loading(
        File(files=numbered(23), shuffle="global").next_epoch(3, last_batch=last), 2, persistent_workers=persistent
    )
    for number, count in enumerate((1, None, 3, None)):
        assert [labels_of(value) for value in itertools.islice(loader, count)] == expected[number][:count]


def test_more_workers_than_batches(numbered):
    loader = loading(File(files=numbered(5), shuffle="global").next_epoch(3, last_batch="partial"), 4)
    for result in loops(loader, 2):
        assert sorted(flat(result)) == list(range(5))


def test_ranks_times_workers(numbered, monkeypatch):
    """The parts of all workers of all ranks are an epoch, in equally many steps."""
    monkeypatch.setenv("WORLD_SIZE", "2")
    readers, loaders = [], []
    for rank in range(2):
        monkeypatch.setenv("RANK", str(rank))
        readers.append(File(files=numbered(23), shard="auto", shuffle="global"))
        loaders.append(loading(readers[-1].next_epoch(3, last_batch="partial")))
    for _ in range(2):
        result = []
        for rank, loader in enumerate(loaders):
            monkeypatch.setenv("RANK", str(rank))
            result.append([labels_of(value) for value in loader])
        assert sorted(flat(flat(result))) == list(range(23))
        assert len({*map(len, result)}) == 1


@pytest.mark.slow
def test_a_started_worker_is_of_its_parents_rank(numbered, monkeypatch):
    """Where only the parent was told which rank it is: `init_process_group(rank=1, world_size=2)`."""
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: 1)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 2)
    reader = File(files=numbered(8), shard="auto")
    assert flat(loops(loading(reader.next_epoch(2), 1, "spawn"), 1)[0]) == [4, 5, 6, 7]


def test_the_place_of_the_reader_counts(numbered):
    """Loops begin where the program's own reader stands: where `reset` or `set_state` sent it, or it was left."""
    given_ = {"files": numbered(10), "shuffle": "global"}
    whole = loops(File(**given_).next_epoch(2), 5)
    reader = File(**given_)
    loader = loading(reader.next_epoch(2))
    assert loops(loader, 2) == whole[:2]
    reader.reset(0)
    assert loops(loader, 2) == whole[:2]
    reader.reset(3)
    assert loops(loader, 2) == whole[3:5]
    other = File(**given_)
    for _ in range(2):
        next(epoch := other.next_epoch(2))
        reader.set_state(other.get_state())
        assert loops(loader, 2) == [whole[0][1:], whole[1]]
        other.reset(0)
    assert loops(loading(epoch), 1) == [whole[0]]
    left = File(**given_)
    next(iter(left.next_epoch(2, last_batch="partial")))
    assert loops(loading(left.next_epoch(2, last_batch="partial")), 2) == [whole[0][1:], whole[1]]


class OfBatches(IterableDataset):
    """As users write them."""

    def __init__(self, reader, how):
        self.reader, self.how = reader, how

    def __iter__(self):
        if self.how == "calls":
            yield from itertools.islice(
                (self.reader(batch_size=2)[1].torch().flatten().tolist() for _ in iter(int, 1)), 4
            )
            return
        if self.how == "made here":
            self.reader = File(files=self.reader)
        if self.how == "captured":
            epoch = self.reader.next_epoch(2, capture=True, last_batch="partial")
            yield from ((labels + 0).torch().flatten().tolist() for _, labels in epoch)
            return
        epoch = self.reader.next_epoch(2, last_batch="partial")
        if self.how == "by hand":
            yield from (value[1].torch().flatten().tolist() for value in iter(lambda: next(epoch, None), None))
            return
        for _, labels in iter(epoch):
            yield labels.torch().flatten().tolist()


class OfNumbers(Dataset):
    def __init__(self, reader):
        self.reader = reader

    def __len__(self):
        return 4

    def __getitem__(self, i):
        return sum(flat(self.reader.next_epoch(2, last_batch="partial") and loops(self.reader.next_epoch(2), 1)[0]))


def test_data_sets_of_the_users_own(numbered):
    reader = File(files=numbered(9), shuffle="global")
    expected = loops(File(files=numbered(9), shuffle="global").next_epoch(2, last_batch="partial"), 2)
    for how in ("a loop", "by hand", "captured"):
        loader = loading(OfBatches(reader, how), persistent_workers=True)
        assert [list(loader) for _ in range(2)] == expected
        reader.reset(0)
    # A stream without end: every other batch of it for each of the two.
    stream = flat(loops(File(files=numbered(9), shuffle="global").next_epoch(), 3))
    calls = list(loading(OfBatches(File(files=numbered(9), shuffle="global"), "calls")))
    assert calls == [stream[i : i + 2] for i in range(0, 16, 2)]
    # What is made in a worker is for it to share out, and a data set with numbers is shared out by its sampler.
    assert Counter(flat(list(loading(OfBatches(numbered(9), "made here"))))) == Counter([*range(9)] * 2)
    assert list(loading(OfNumbers(File(files=numbered(8))))) == [28] * 4


def test_samples_that_torch_puts_together(tmp_path):
    files = [tmp_path / f"{i}.bin" for i in range(11)]
    for i, path in enumerate(files):
        path.write_bytes(bytes([i]))
    epoch = File(files=[str(path) for path in files], shuffle="global").next_epoch(last_batch="partial")
    loader = DataLoader(epoch, batch_size=3, num_workers=2, multiprocessing_context="fork")
    first, second = ([label for _, labels in loader for label in labels.flatten().tolist()] for _ in range(2))
    assert sorted(first) == sorted(second) == list(range(11))
    assert first != second


class Drawn(OfBatches):
    def __iter__(self):
        for _, labels in self.reader.next_epoch(2):
            yield np.asarray(ndd.random.uniform(batch_size=2).torch() + 0 * labels.torch()[:, 0]).tolist()


def test_random_numbers(numbered):
    """New ones in each worker and loop, the same again after the same torch.manual_seed."""
    result = []
    for _ in range(2):
        torch.manual_seed(7)
        loader = loading(Drawn(File(files=numbered(8)), ""))
        result.append([flat(list(loader)) for _ in range(2)])
    assert result[0] == result[1]
    assert len({*flat(result[0])}) == 16


def stateful(numbered, workers, last, persistent, **more):
    loader = pytest.importorskip("torchdata.stateful_dataloader")
    epoch = File(files=numbered(17), shuffle="global").next_epoch(3, last_batch=last)
    how = {"multiprocessing_context": "fork", "persistent_workers": persistent} if workers else {}
    return loader.StatefulDataLoader(epoch, batch_size=None, num_workers=workers, **how, **more)


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("last", ENDINGS)
def test_states_of_a_stateful_data_loader(numbered, last, persistent):
    """In every place of the second epoch, also at its end: the rest, then the next epochs."""
    expected = loops(stateful(numbered, 0, last, False), 4)
    item = stateful(numbered, 2, last, persistent)
    assert loops(item, 1) == expected[:1]
    epoch, states = iter(item), []
    for _ in range(len(expected[1])):
        states.append(item.state_dict())
        next(epoch)
    states.append(item.state_dict())
    assert next(epoch, None) is None
    states.append(item.state_dict())  # the loop is over: the next one comes
    for place, state in list(enumerate(states))[:: 1 if last == "partial" else 2]:
        other = stateful(numbered, 2, last, persistent)
        other.load_state_dict(state)
        rest = [expected[1][place:]] if place <= len(expected[1]) else []
        assert loops(other, len(rest) + 1) == [*rest, expected[2]], place
    again = stateful(numbered, 2, last, persistent, snapshot_every_n_steps=2)
    again.load_state_dict(states[2])
    for _ in range(2):  # taken up twice in one program
        assert loops(again, 3) == [expected[1][2:], expected[2], expected[3]]
        again.load_state_dict(states[2])


def test_a_workers_state_is_that_workers(numbered):
    loader = stateful(numbered, 2, "partial", False)
    next(iter(loader))
    text = loader.state_dict()["_snapshot"]["_worker_snapshots"]["worker_0"]["dataset_state"]
    reader = File(files=numbered(17), shuffle="global")
    reader.load_state_dict(text)
    with pytest.raises(ValueError, match="is of worker 0 of 2 of a DataLoader"):
        next(reader.next_epoch(3, last_batch="partial"))
    for wrong in (
        {"worker": [2, 2]},
        {"worker": 3},
        {"worker": [0, 2, 4]},
        {"worker": [-1, 2]},
        {"skip": 2},
        {"skip": -1},
    ):
        with pytest.raises(ValueError, match=r"expected the number|expected a number below"):
            reader.set_state(text["state"].replace('"visit"', f'{str(wrong)[1:-1]},"visit"'.replace("'", '"')))


@pytest.fixture(params=["memory", "a deleted file"])
def log(monkeypatch, request):
    monkeypatch.setattr(worker_log, "_file", None)
    if request.param == "a deleted file":
        monkeypatch.delattr(os, "memfd_create", raising=False)
    worker_log._open()
    yield worker_log
    os.close(worker_log._file)


def test_the_log_of_loops(log):
    """A loop has the number of those before it, in whatever order its workers and those of other loops come."""
    a, b, c, other = Loop("r", 5, 0), Loop("r", 9, 0), Loop("r", 5, 1), Loop("s", 5, 0)
    assert [log.number(loop, 0) for loop in (a, b, other, c)] == [(None, 0), (None, 1), (None, 0), (None, 2)]
    assert [log.number(loop, 1) for loop in (c, a, other, b)] == [(None, 2), (None, 0), (None, 0), (None, 1)]
    d, e, f = Loop("r", 1, 0), Loop("r", 2, 0), Loop("r", 3, 0)
    log.resumed(d, 0, "there")
    assert log.number(e, 0) == ("there", 0)
    log.resumed(d, 1, "there")  # the other worker of the same loop
    assert log.number(f, 1) == log.number(f, 0) == ("there", 1)
    assert log.number(a, 1) == (None, 0)
    log.resumed(d, 1, "elsewhere")  # taken up once more
    log.resumed(d, 0, "elsewhere")
    assert log.number(Loop("r", 4, 0), 0) == ("elsewhere", 0)
    assert log.number(f, 1) == ("there", 1)
