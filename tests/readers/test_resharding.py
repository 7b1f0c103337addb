"""States of N ranks go on in M: every sample of the epoch exactly once, and equally many steps in all ranks."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter

import numpy as np
import pytest

from ndd.readers import File
from ndd.readers.sampling import numbers, permutation, sampler
from ndd.readers.sampling.resharding import resumed_order
from ndd.readers.sampling.sampler import Shards
from readers.epochs import labels_of

ORDERS = [
    {},
    {"random_shuffle": True, "initial_fill": 3},
    {"shuffle_after_epoch": True},
    {"shuffle": "global", "seed": 3},
    {"stick_to_shard": True, "shuffle": "global"},
    {"sampler": lambda epoch: [(7 * i + epoch) % 23 for i in range(20)]},
    {"random_shuffle": True, "pad_last_batch": True},
]


@pytest.fixture
def ranks(numbered, monkeypatch):
    """`ranks(count, **given)`: the readers of all ranks, each made where RANK and WORLD_SIZE say so."""

    def result(count, **arguments):
        readers = []
        for rank in range(count):
            monkeypatch.setenv("RANK", str(rank))
            monkeypatch.setenv("WORLD_SIZE", str(count))
            readers.append(File(files=numbered(23), shard="auto", **arguments))
            len(readers[-1])
        return readers

    return result


def steps(readers, batch, last="fill"):
    """What each rank gives in its next epoch, step by step."""
    return [[labels_of(v) for v in reader.next_epoch(batch, last_batch=last)] for reader in readers]


@pytest.mark.parametrize("last", ["fill", "partial", "drop"])
@pytest.mark.parametrize("given_", ORDERS, ids=lambda g: " ".join(g) or "stored")
@pytest.mark.drawn(1)
def test_equal_numbers_of_steps(ranks, given_, last):
    size = 20 if "sampler" in given_ else 23
    for count, batch in itertools.product((2, 3, 4, 7), (2, 3)):
        if last == "drop" and size // count < batch:
            continue
        readers = ranks(count, **given_)
        for _ in range(2):
            lengths = [len(reader.next_epoch(batch, last_batch=last)) for reader in readers]
            result = steps(readers, batch, last)
            assert len({*lengths, *map(len, result)}) == 1, (count, batch, lengths, result)
            if last == "partial":
                every = [label for rank in result for step in rank for label in step]
                assert len(set(every)) == len(every) == size
                assert all(step for rank in result for step in rank)


@pytest.mark.parametrize("given_", ORDERS[:-1], ids=lambda g: " ".join(g) or "stored")
@pytest.mark.drawn(1)
def test_what_is_left_is_shared_out(ranks, given_):
    """Chains of numbers of ranks, each stopped somewhere in the epoch, ranks at different places; then whole epochs."""
    pick = random.Random(4)
    size = 20 if "sampler" in given_ else 23
    for chain in ((2, 3), (3, 2), (4, 1), (1, 4), (2, 2), (3, 5, 2), (2, 4, 3, 1)):
        seen, states = [], None
        for last, count in enumerate(chain, start=1 - len(chain)):
            readers = ranks(count, **given_)
            for reader in readers:
                if states is not None:
                    reader.load_state_dict(states)
                epoch = iter(reader.next_epoch(2, last_batch="partial"))
                stop = pick.randrange(3) if last else 100
                seen += [label for batch in itertools.islice(epoch, stop) for label in labels_of(batch)]
            states = [reader.state_dict() for reader in readers]
        assert sorted(seen) == sorted({*seen}), chain
        assert len(seen) == size, chain
        every = [label for rank in steps(readers, 2, "partial") for step in rank for label in step]
        assert len(every) == len({*every}) == size, chain


@pytest.mark.parametrize("given_", ORDERS[:-1], ids=lambda g: " ".join(g) or "stored")
@pytest.mark.parametrize("tells", ["one", "all"])
@pytest.mark.drawn(1)
def test_fewer_samples_left_than_there_are_ranks(ranks, given_, tells):
    """They come with the next epoch: each rank has something in each step, and all stay in the same epoch."""

    def flat(result):
        return sorted(itertools.chain(*itertools.chain(*result)))

    def changed(readers, count):
        states = [reader.state_dict() for reader in readers]
        others = ranks(count, **given_)
        for reader in others:
            reader.load_state_dict(states[-1] if tells == "one" else states)
        return others

    (alone,) = ranks(1, **given_)
    expected = [flat(steps([alone], 23, "partial")) for _ in range(3)]
    readers = ranks(1, **given_)
    first = readers[0].next_epoch(3, last_batch="partial")
    seen = [labels_of(next(first)) for _ in range((len(expected[0]) - 1) // 3)]
    readers = changed(readers, 3)
    seen += [labels_of(next(reader.next_epoch(2, last_batch="partial"))) for reader in readers]
    readers = changed(readers, 2)
    rest = steps(readers, 2, "partial")
    assert flat([seen, *rest]) == sorted(expected[0] + expected[1])
    again = steps(readers, 2, "partial")
    assert flat(again) == expected[2]
    assert len(set(map(len, rest))) == len(set(map(len, again))) == 1


def test_batches_that_run_on_into_the_next_epoch(ranks):
    """With "fill" a rank may have begun the next epoch: what it took of it is not given again."""
    readers = ranks(3)
    first = steps(readers, 5)
    others = ranks(2)
    for reader in others:
        reader.load_state_dict([r.state_dict() for r in readers])
    assert len(others[0].next_epoch(1)) == len(others[1].next_epoch(1))
    arguments = sorted(label for rank in first for step in rank for label in step)
    rest = [label for rank in steps(others, 1, "partial") for step in rank for label in step]
    assert sorted([*arguments, *rest]) == sorted([*range(23), *range(23)])


def test_a_state_in_the_middle_of_what_was_shared_out(ranks):
    readers = ranks(3, shuffle="global")
    for reader in readers:
        next(reader.next_epoch(2, last_batch="partial"))
    states = [reader.get_state() for reader in readers]
    two = ranks(2, shuffle="global")
    for reader in two:
        reader.set_state(states)
    expected, resumed = [], []
    for reader in two:
        epoch = iter(reader.next_epoch(2, last_batch="partial"))
        next(epoch)
        again = ranks(2, shuffle="global")[two.index(reader)]
        again.set_state(str(reader.get_state()))
        expected += [labels_of(v) for v in epoch] + steps([reader], 2, "partial")[0]
        resumed += steps([again], 2, "partial")[0] + steps([again], 2, "partial")[0]
    assert resumed == expected


@pytest.mark.parametrize("begun", [(), (1,), (0, 2)])
def test_ranks_that_have_not_begun(numbered, begun):
    """Their readers have not looked at the data yet, and are at the beginning all the same."""
    seen, kept = [], []
    for rank in range(3):
        reader = File(files=numbered(23), shard_id=rank, num_shards=3, shuffle="global", seed=3)
        if rank in begun:
            seen += labels_of(next(iter(reader.next_epoch(2))))
        kept.append(reader.state_dict())
    for rank in range(2):
        reader = File(files=numbered(23), shard_id=rank, num_shards=2, shuffle="global", seed=3)
        reader.load_state_dict(kept)
        seen += [label for batch in reader.next_epoch(2, last_batch="partial") for label in labels_of(batch)]
    assert sorted(seen) == list(range(23))
    alone = File(files=numbered(23), shard="auto", shuffle="global", seed=3)
    if not begun:
        alone.load_state_dict(kept[1])  # the beginning is the same for all
        assert len(list(alone)) == 23


def test_refused(ranks):
    readers = ranks(3)
    states = [json.loads(str(reader.get_state())) for reader in readers]
    item = ranks(1)[0]
    for wrong, said in (
        (states[:2], "shards 0 to 1 of 2"),
        ([states[0], states[0], states[2]], "each once"),
        ([*states[:2], {**states[2], "seed": 77}], "ranks 0 and 2 differ in 'seed'"),
        ([{**s, "size": 9} for s in states], "another size: expected 23, got 9"),
        ([{**s, "order": "shuffle"} for s in states], "another order"),
        ([], "empty list"),
    ):
        with pytest.raises(ValueError, match=said):
            item.set_state([json.dumps(state) for state in wrong])
    with pytest.raises(TypeError, match="expected what state_dict"):
        item.load_state_dict(states[1])
    for before in (5, {}, {"places": []}, {"places": [[0, -1]]}, {"places": [[0, 0]], "before": 3}):
        with pytest.raises(ValueError, match="places of other ranks"):
            item.set_state(json.dumps({**json.loads(str(item.get_state())), "before": before}))


@pytest.mark.parametrize("last", ["fill", "partial", "drop"])
@pytest.mark.parametrize("given_", ORDERS, ids=lambda g: " ".join(g) or "stored")
@pytest.mark.drawn(1)
def test_one_rank_tells_where_all_were(ranks, given_, last):
    """Ranks in step, as DDP keeps them: the state of any of them is that of each other one, after any step."""

    def following(states):
        result = []
        for reader, state in zip(ranks(count, **given_), states, strict=True):
            reader.set_state(state)
            epoch = iter(reader.next_epoch(batch, last_batch=last))
            result.append([labels_of(v) for v in itertools.islice(epoch, 2)])
        return result

    for count, batch in ((2, 2), (3, 4)):
        readers = ranks(count, **given_)
        for start in (None, None, 5):
            for reader in readers if start else ():
                reader.reset(start)
            epochs = [reader.next_epoch(batch, last_batch=last) for reader in readers]
            for step, rows in enumerate(itertools.zip_longest(*epochs)):
                assert None not in rows
                states = [reader.get_state() for reader in readers]
                assert following([states[step % count]] * count) == following(states), (count, batch, step, states)


def test_one_rank_tells_what_others_go_on_with(ranks):
    """Two ranks in step, one state of them, three ranks that finish the epoch: no sample twice, none left out."""
    for item, last in itertools.product((0, 1), ("partial", "fill")):
        readers = ranks(2, shuffle="global", seed=8)
        epochs = [iter(reader.next_epoch(3, last_batch=last)) for reader in readers]
        seen = [label for _ in range(2) for epoch in epochs for label in labels_of(next(epoch))]
        state = readers[item].state_dict()
        others = ranks(3, shuffle="global")
        for reader in others:
            reader.load_state_dict(state)
        rest = [label for rank in steps(others, 2, "partial") for step in rank for label in step]
        assert sorted(seen + rest) == list(range(23))
    batches = ranks(2, shuffle="global")
    for reader in batches:
        next(reader.next_epoch(3, last_batch="partial"))
        state = reader.get_state()
        reader.set_state(state)
        next(reader.next_epoch(2, last_batch="partial"))
    with pytest.raises(ValueError, match="not all batches before the state have 2 sample"):
        ranks(2, shuffle="global")[0].set_state(batches[1].get_state())
    fields = json.loads(str(batches[1].get_state()))
    for wrong, said in (
        ({"shards": [5, 2]}, "number of shards"),
        ({"shards": [0, 2**40]}, "number of shards"),
        ({"shards": "x"}, "number of shards"),
        ({"visit": 2**50}, "at most"),
        ({"began": 9}, "'began'"),
        ({"size": 9}, "another size"),
    ):
        with pytest.raises(ValueError, match=said):
            ranks(2, shuffle="global")[0].set_state(json.dumps({**fields, **wrong}))


@pytest.mark.parametrize("last", ["partial", "drop"])
@pytest.mark.parametrize("given_", ORDERS[:-1], ids=lambda g: " ".join(g) or "stored")
@pytest.mark.drawn(1)
def test_an_epoch_that_is_to_end_in_another_way(ranks, given_, last):
    """It was begun with "fill", and each rank was somewhere in its own pass over its samples: they stay in step, and what
    was left of these passes comes exactly once."""
    size = 20 if "sampler" in given_ else 23
    visits = [Counter(given_["sampler"](v) if "sampler" in given_ else range(size)) for v in range(5)]
    streams = [sum(visits[:count], Counter()) for count in range(6)]
    for count, before, after, taken in itertools.product((2, 3), (2, 4), (1, 2), (1, 3, 5)):
        first, second, seen = ranks(count, **given_), ranks(count, **given_), Counter()
        for reader in first:
            batches = itertools.chain(reader.next_epoch(before), reader.next_epoch(before))
            seen.update(itertools.chain(*map(labels_of, itertools.islice(batches, taken))))
        for reader, other in zip(first, second, strict=True):
            other.set_state(reader.get_state())
        if not json.loads(str(first[0].get_state()))["left"]:
            continue  # at the end of an epoch
        lengths = [len(reader.next_epoch(after, last_batch=last)) for reader in second]
        result = steps(second, after, last)
        assert lengths == [*map(len, result)]
        if after > 1 or last == "drop":
            assert len({*lengths}) == 1, (count, before, after, taken, lengths)
        if last == "partial":
            assert seen + Counter(itertools.chain(*itertools.chain(*result))) in streams, (count, before, after, taken)
            assert sum(map(len, itertools.chain(*steps(second, after, last)))) == size


@pytest.mark.parametrize("steps_", [(0,), (3,), (2, 1), (1, 0, 2)])
@pytest.mark.drawn(1)
def test_the_order_of_all_ranks_is_that_of_one(ranks, steps_):
    """Whatever their number, in each step they give the next samples of one order, if a step has as many; also ranks that go
    on where others have stopped."""

    def step(epochs):
        batches = [labels_of(next(epoch)) for epoch in epochs]
        return [label for row in zip(*batches, strict=True) for label in row]

    (alone,) = ranks(1, shuffle="global", seed=3)
    order = [
        label for _ in range(1) for label in itertools.chain(*map(labels_of, alone.next_epoch(1, last_batch="partial")))
    ]
    for counts in itertools.product((1, 2, 3, 6), repeat=len(steps_)):
        seen, states = [], None
        for count, taken in zip(counts, steps_, strict=True):
            readers = ranks(count, shuffle="global", seed=3)
            epochs = []
            for reader in readers:
                if states is not None:
                    reader.load_state_dict(states)
                epochs.append(iter(reader.next_epoch(6 // count, last_batch="partial")))
            for _ in range(taken):
                seen.append(step(epochs))
            states = [reader.state_dict() for reader in readers]
        assert seen == [order[6 * k : 6 * k + 6] for k in range(sum(steps_))], counts


@pytest.mark.parametrize("listed", [10, 1 << 22])
def test_large_orders_are_shared_out_without_a_list(monkeypatch, listed):
    """The rest of an epoch over more samples than memory should hold, after ranks that were in step, and not: computed place by
    place, or as arrays, the numbers are the same."""
    for module in (numbers, permutation):
        monkeypatch.setattr(module, "LISTED", listed)
    monkeypatch.setattr(sampler, "global_order", lambda size, seed, epoch: of_places(size, seed + epoch, listed))
    whole = np.random.default_rng(7).permutation(100).tolist()
    for places in ([[0, 20]] * 3, [[0, 20], [0, 7], [0, 33]], [[0, 10], [1, 2], [0, 4]]):
        rests = [
            resumed_order(lambda shards: sampler.Global(shards, 7), Shards(100, 2, i, even=True), {"places": places})
            for i in range(2)
        ]
        seen = {whole[rank :: 3][k] for rank, (visit, done) in enumerate(places) for k in range(34 - (rank > 0))
                if visit > 0 or k < done}  # fmt: skip
        shares = [np.asarray(rest.visit(0, None)[0]).tolist() for rest in rests]
        assert [n for row in itertools.zip_longest(*shares) for n in row if n is not None] == [
            n for n in whole if n not in seen
        ]
        assert all(isinstance(rest.rest(0), np.ndarray) == (listed > 100) for rest in rests)


def of_places(size, seed, listed):
    order = np.random.default_rng(seed).permutation(size)
    return order if size <= listed else numbers.Numbers(range(size), lambda places: order[places])
