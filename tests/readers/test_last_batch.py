"""Epochs that end with their samples (`last_batch`), and loops that take a reader or an epoch again and again."""

from itertools import islice

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from torch.utils.data import DataLoader

from ndd.readers import File
from readers.epochs import flat, labels_of


def lists(epoch, limit=None):
    return [labels_of(value) for value in islice(epoch, limit)]


def test_what_the_documentation_says(numbered):
    reader = File(files=numbered(10))
    assert [lists(reader.next_epoch(4)) for _ in range(2)] == [
        [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 0, 1]],
        [[2, 3, 4, 5], [6, 7, 8, 9], [0, 1, 2, 3]],
    ]
    for last, end in (("partial", [[8, 9]]), ("drop", [])):
        reader = File(files=numbered(10))
        epoch = reader.next_epoch(4, last_batch=last)
        assert len(epoch) == 2 + len(end)
        for _ in range(2):
            assert lists(epoch) == [[0, 1, 2, 3], [4, 5, 6, 7], *end]


@st.composite
def orders(draw):
    size = draw(st.integers(1, 20))
    shards = draw(st.integers(1, min(size, 3)))
    shuffled = [{"random_shuffle": True, "initial_fill": 3}, {"shuffle": "global"}, {"shuffle_after_epoch": True}]
    order = draw(st.sampled_from([{}, *shuffled]))
    return size, {"num_shards": shards, "pad_last_batch": draw(st.booleans()), **order}


@settings(deadline=None, max_examples=40, derandomize=True, suppress_health_check=list(HealthCheck))
@given(orders(), st.sampled_from([None, 1, 3, 30]), st.integers(0, 4))
def test_each_sample_exactly_once(numbered, order, batch, left_after):
    """In every epoch, over all shards; also after an epoch that was left, and from a state saved at any place."""
    size, options = order
    readers = [File(files=numbered(size), shard_id=i, **options) for i in range(options["num_shards"])]
    for visit in range(3):
        seen = []
        for reader in readers:
            if visit == 1:
                lists(reader.next_epoch(batch, last_batch="partial"), left_after)
            epoch = reader.next_epoch(batch, last_batch="partial")
            length, result = len(epoch), []
            for value in epoch:
                result.append(labels_of(value))
                if len(result) == left_after:
                    other = File(files=numbered(size), shard_id=reader._options.shard_id, **options)
                    other.set_state(reader.get_state())
                    rest = lists(other.next_epoch(batch, last_batch="partial"))
            assert length == len(epoch) == len(result)
            if left_after and length > left_after:
                assert result[left_after:] == rest
            seen += result if batch is None else flat(result)
        assert sorted(seen) == list(range(size))


def test_an_evaluation_after_training_epochs(numbered):
    reader = File(files=numbered(10))
    lists(reader.next_epoch(4))
    assert flat(lists(reader.next_epoch(4, last_batch="partial"))) == list(range(10))
    assert lists(reader.next_epoch(4))[-1] == [8, 9, 0, 1]
    lists(reader.next_epoch(4), 1)
    assert flat(lists(reader.next_epoch(4, last_batch="partial"))) == list(range(10))
    assert len(reader.next_epoch(4, last_batch="drop")) == 2
    assert lists(reader.next_epoch(4, last_batch="drop")) == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_an_epoch_without_any_whole_batch(numbered):
    reader = File(files=numbered(3))
    with pytest.raises(ValueError, match=r"the epoch has 3 samples, fewer than batch_size=4"):
        next(iter(reader.next_epoch(4, last_batch="drop")))
    with pytest.raises(ValueError, match=r"last_batch: expected .* got 'pad'"):
        reader.next_epoch(4, last_batch="pad")
    assert lists(reader.next_epoch(4, last_batch="partial")) == [[0, 1, 2]]


def test_loops_that_are_left(numbered):
    """A sanity check of two batches and then whole passes, as Lightning does; a prefetcher's first batch by hand."""
    epoch = File(files=numbered(10)).next_epoch(4, last_batch="partial")
    whole = [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert lists(epoch, 2) == whole[:2]
    assert lists(epoch) == whole
    first = iter(epoch)
    assert labels_of(next(first)) == whole[0]
    assert lists(first) == whole[1:]
    stale = iter(epoch)
    next(stale)
    assert lists(epoch) == whole
    with pytest.raises(RuntimeError, match="ended before its last batch, when another one began anew"):
        next(stale)
    other = iter(epoch)  # `next` of the epoch itself
    next(other)
    epoch = File(files=numbered(10)).next_epoch(4, last_batch="partial")
    assert labels_of(next(epoch)) == whole[0]
    assert lists(epoch) == whole[1:]
    assert lists(epoch) == whole


def test_a_reader_is_an_iterable(numbered):
    reader = File(files=numbered(5), max_batch_size=2)
    assert lists(reader) == [[0, 1], [2, 3], [4, 0]]
    assert lists(reader) == [[1, 2], [3, 4], [0, 1]]


@pytest.mark.parametrize("workers", [0, 1])
def test_a_data_loader_takes_a_reader_as_a_data_set_of_samples(tmp_path, workers):
    files = [str(tmp_path / f"{i}.bin") for i in range(5)]
    for i, path in enumerate(files):
        (tmp_path / path).write_bytes(bytes([i, 7]))
    loader = DataLoader(File(files=files, labels=[5, 6, 7, 8, 9]), 2, num_workers=workers)
    assert [[part.tolist() for part in pair] for pair in loader] == [
        [[[0, 7], [1, 7]], [[5], [6]]],
        [[[2, 7], [3, 7]], [[7], [8]]],
        [[[4, 7]], [[9]]],
    ]


def test_torchdata_takes_it_again_and_again(numbered):
    nodes = pytest.importorskip("torchdata.nodes")
    for iterable in (File(files=numbered(5)), File(files=numbered(5)).next_epoch(last_batch="partial")):
        loader = nodes.Loader(nodes.IterableWrapper(iterable))
        assert [lists(loader) for _ in range(3)] == [[0, 1, 2, 3, 4]] * 3
