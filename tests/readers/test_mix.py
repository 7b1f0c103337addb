"""Mixtures: exact shares, each reader in its own order, states, shards, sources, what cannot be mixed."""

import itertools

import numpy as np
import pytest

import ndd
from ndd.readers import File, Mix
from readers.epochs import epoch_of, flat


@pytest.fixture
def two(numbered):
    """Readers of 30 and 10 files; the labels of the second begin at 100."""
    paths = numbered(40)
    return File(files=paths[:30]), File(files=paths[30:], labels=list(range(100, 110)))


def test_without_weights_each_sample_comes_once(two):
    reader = Mix(list(two))
    epochs = [epoch_of(reader) for _ in range(3)]
    assert all(sorted(e) == [*range(30), *range(100, 110)] for e in epochs)
    assert len(set(map(tuple, epochs))) == 3
    for epoch in epochs:  # each reader keeps its own order, which is the stored one
        assert [label for label in epoch if label < 100] == list(range(30))


@pytest.mark.parametrize("weights", [[1, 1], [0.9, 0.1], [1, 1000], [3, 1]])
@pytest.mark.drawn(1)
def test_shares_are_exact_and_readers_go_round(two, weights):
    reader = Mix(list(two), weights=weights)
    labels = flat([epoch_of(reader) for _ in range(10)])
    assert len(labels) == 400
    first, second = ([label for label in labels if (label < 100) == low] for low in (True, False))
    assert abs(len(first) - 400 * weights[0] / sum(weights)) <= 1
    assert first == list(itertools.islice(itertools.cycle(range(30)), len(first)))
    assert second == list(itertools.islice(itertools.cycle(range(100, 110)), len(second)))


def test_the_order_of_each(two, numbered):
    paths = numbered(40)
    shuffled = File(files=paths[:30], shuffle="global", seed=4)
    mixed = flat([epoch_of(reader) for reader in [Mix([shuffled, two[1]], weights=[3, 1])] for _ in range(2)])
    alone = flat([epoch_of(File(files=paths[:30], shuffle="global", seed=4)) for reader in [0] for _ in range(1)])
    assert [label for label in mixed if label < 100][:30] == alone
    every = epoch_of(Mix(list(two), shuffle="global", seed=1))
    assert sorted(every) == [*range(30), *range(100, 110)]
    assert [label for label in every if label < 100] != list(range(30))
    assert [label for label in every if label >= 100] != list(range(100, 110))


def test_it_is_a_function_of_seed_and_epoch(two):
    def result(seed):
        return [epoch_of(reader) for reader in [Mix(list(two), weights=[1, 2], seed=seed)] for _ in range(2)]

    assert result(1) == result(1) != result(2)
    reader = Mix(list(two), weights=[1, 2], seed=1)
    reader.reset(1)
    assert epoch_of(reader) == result(1)[1]


def test_resumes_and_shares_out(two):
    whole = Mix(list(two), weights=[2, 1], seed=3, epoch_size=24)
    expected = epoch_of(whole)
    ranks = [Mix(list(two), weights=[2, 1], seed=3, epoch_size=24, num_shards=2, shard_id=i) for i in (0, 1)]
    seen = []
    for rank in ranks:
        seen += flat([value[1].torch().flatten().tolist() for value in itertools.islice(rank.next_epoch(4), 2)])
    alone = Mix(list(two), weights=[2, 1], seed=3, epoch_size=24)
    alone.set_state([rank.get_state() for rank in ranks])
    assert sorted(seen + epoch_of(alone)) == sorted(expected)
    with pytest.raises(ValueError, match="another mixture"):
        Mix(list(two), weights=[1, 1], seed=3).set_state(whole.get_state())


def test_sources_and_numbers(two, numbered):
    reader = Mix(list(two), weights=[1, 1])
    epoch = reader.next_epoch(10)
    for _, labels in epoch:
        for label, source, number in zip(
            labels.torch().flatten().tolist(), labels.source_info, epoch.indices, strict=True
        ):
            place = label if label < 100 else label - 70
            assert (source, number) == (numbered(40)[place], place)
    assert len(reader) == 40
    assert np.asarray(reader[35][1]).tolist() == [105]


def test_readers_of_several_formats(tmp_path, numbered):
    pytest.importorskip("pyarrow")
    from readers.datasets import parquet

    arguments = parquet(tmp_path, 6)
    tables = ndd.readers.Parquet(**{**arguments, "columns": ["image", "caption"]})
    rows = ndd.readers.Table([(path, "a file") for path in numbered(4)], columns=["image", "caption"])
    captions = flat([captions for _, captions in Mix([tables, rows]).next_epoch(5)])
    assert sorted(captions) == sorted(["a file"] * 4 + [f"number {i}" for i in range(6)])
    assert captions != sorted(captions, reverse=True)


def test_refused(two, tmp_path):
    for wrong in ([], "reader", [two[0], 3]):
        with pytest.raises(ValueError, match="expected a list of readers"):
            Mix(wrong)
    for weights in (3, ["a", "b"]):
        with pytest.raises(TypeError, match="weights: expected a number for each reader"):
            Mix(list(two), weights=weights)
    for weights in ([1], [1, 0], [1, -1], [1, float("nan")], [1, float("inf")]):
        with pytest.raises(ValueError, match="positive number for each reader"):
            next(Mix(list(two), weights=weights).next_epoch())
    with pytest.raises(ValueError, match="expected 1 to 40, got 41"):
        next(Mix(list(two), epoch_size=41).next_epoch())
    with pytest.raises(ValueError, match="of 1 outputs"):
        Mix([two[0], ndd.readers.Table(["a"], columns="path")])
    with pytest.raises(ValueError, match="Numpy computes"):
        Mix([ndd.readers.Numpy(files=["a.npy"])])
