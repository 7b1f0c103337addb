"""Whatever a program does with a reader, no sample is lost or given twice without an error.

A model of a few lines says what comes: a chain of visits, of which an epoch with "fill" gives so many batches, and another one
what is left of a visit, or the next whole one. Seeded programs loop, leave, save, restore and change their mind.
"""

from __future__ import annotations

import random
import threading

import numpy as np
import pytest

import ndd
from ndd.readers import File, Output, Reader, RecordStore
from readers.epochs import flat, labels_of

ENDINGS = ("fill", "partial", "drop")


class Numbers(RecordStore):
    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size

    def record(self, number):
        return np.zeros(1, np.uint8), np.array([number], np.int32)

    def source(self, number):
        return f"memory:{number}"


class Memory(Reader):
    _permutes_first = False

    def _open(self, *, size: int = 1):
        return Numbers(size)

    @classmethod
    def _outputs(cls, **given):
        return Output("data", ndd.uint8, 1), Output("number", ndd.int32, 1)


class Model:
    """What a reader gives, by the visits of its order.

    Attributes:
        visit, offset: the place in the stream.
        epoch: the number of the running or coming epoch.
        owed: samples that an epoch which was left still owes; None between epochs.
        restored: the place is that of a saved state.
    """

    def __init__(self, order):
        self.order = order
        self.pads = order.shards.pad
        self.visit = self.offset = self.epoch = 0
        self.owed, self.restored = None, False

    def content(self, visit, padded=False):
        """The samples of a visit; where they are to be padded, as many as the largest shard has."""
        items = self.order.visit(visit, None)[0].tolist()
        return items + items[-1:] * max(0, self.order.length(visit) - len(items)) * padded

    def plan(self, size, last):
        """The batches of the next epoch, each with the place after it; None if there is no whole one."""
        goes_on = self.restored and self.owed is not None
        if last == "fill":
            return self._stream(size, self.owed if goes_on else len(self.content(self.epoch, padded=True)))
        visit, offset, least = self.visit, self.offset, size if last == "drop" else 1
        if not goes_on or len(self.content(visit)[offset:]) < least:
            visit, offset = visit + bool(offset), 0
        items, result = self.content(visit), []
        padding = len(self.content(visit, padded=True)) - len(items)
        while len(items) - offset >= least:
            batch = items[offset : offset + size]
            offset += len(batch)
            left = len(items) - offset
            place = (visit, offset, visit, left + padding) if left >= least else (visit + 1, 0, visit + 1, None)
            result.append((batch, place))
        return result or None

    def _stream(self, size, owed):
        result, visit, offset = [], self.visit, self.offset
        while owed > 0:
            batch = []
            while len(batch) < size:
                items = self.content(visit, padded=True)
                if offset >= len(items):
                    visit, offset = visit + 1, 0
                    continue
                wanted = size - len(batch)
                part = items[offset : offset + wanted]
                part += part[-1:] * (wanted - len(part)) * self.pads
                batch, offset = batch + part, offset + len(part)
            owed -= size
            result.append((batch, (visit, offset, self.epoch + (owed <= 0), owed if owed > 0 else None)))
        return result

    def take(self, plan, count):
        """So many batches of a plan were given."""
        self.visit, self.offset, self.epoch, self.owed = plan[count - 1][1]
        self.restored = False


ORDERS = [
    {},
    {"random_shuffle": True, "initial_fill": 3},
    {"shuffle": "global", "seed": 3},
    {"shuffle_after_epoch": True},
]


def arguments(pick):
    options = dict(pick.choice(ORDERS))
    if not options and pick.random() < 0.3:
        options = {"sampler": lambda epoch: [(3 * i + epoch) % 5 for i in range(5)]}
    if pick.random() < 0.5:
        options["num_shards"] = pick.randint(2, 3)
        options["shard_id"] = pick.randrange(options["num_shards"])
        options["stick_to_shard"] = pick.random() < 0.4 and "shuffle_after_epoch" not in options
    options["pad_last_batch"] = pick.random() < 0.3
    return options


@pytest.mark.parametrize("seed", range(120))
@pytest.mark.drawn(2)
def test_programs(numbered, seed):
    """Epochs that are finished or left, of any ending and size; states saved anywhere and taken up by another reader."""
    pick = random.Random(seed)
    size, options = pick.randint(5, 13), arguments(pick)

    def output():
        return Memory(size=size, **options) if seed % 2 else File(files=numbered(size), **options)

    reader, other = output(), output()
    model = Model(other._session.opened()[1])
    batch = pick.choice([None, 1, 2, 3, 4, 7])
    for _ in range(12):
        last = pick.choice(ENDINGS)
        if pick.random() < 0.5:
            reader, state = output(), str(reader.get_state())
            reader.set_state(state)
            assert str(reader.get_state()) == state
            model.restored, batch = True, pick.choice([None, 1, 2, 3, 4, 7])
        plan, epoch = model.plan(batch or 1, last), reader.next_epoch(batch, last_batch=last)
        if plan is None:
            with pytest.raises(ValueError, match="so it has no batch"):
                next(epoch)
            continue
        assert len(epoch) == len(plan), (last, batch, options)
        stop = pick.choice([len(plan), pick.randint(0, len(plan))])
        loop = iter(epoch)
        result = [np.ravel(labels_of(next(loop))).tolist() for _ in range(stop)]
        assert result == [labels for labels, _ in plan[:stop]], (last, batch, options)
        if stop:
            model.take(plan, stop)
        if stop == len(plan):
            assert next(loop, None) is None


@pytest.mark.parametrize("size", [10, 12])
@pytest.mark.parametrize("last", ENDINGS)
@pytest.mark.parametrize("saved", ENDINGS)
@pytest.mark.parametrize(("before", "after"), [(3, 3), (3, 2), (2, 5), (None, 4), (2, None)])
def test_an_interrupted_epoch_goes_on(numbered, saved, last, before, after, size):
    """Each sample of the first epoch exactly once, whatever ended it before: with "fill" more may follow, with "drop" fewer
    than a batch may be missing."""
    first = File(files=numbered(size), shuffle="global")
    epoch = iter(first.next_epoch(before, last_batch=saved))
    seen = [np.ravel(labels_of(next(epoch))).tolist() for _ in range(2)]
    second = File(files=numbered(size), shuffle="global")
    second.set_state(first.get_state())
    rest = flat([np.ravel(labels_of(value)).tolist() for value in second.next_epoch(after, last_batch=last)])
    result = flat(seen) + rest
    assert len(set(result[:size])) == len(result[:size])
    over = -(size - len(flat(seen))) % (after or 1)
    missing = (size - len(flat(seen))) % (after or 1)
    assert len(result) == size + {"fill": over, "partial": 0, "drop": -missing}[last]
    whole = [np.ravel(labels_of(value)).tolist() for value in second.next_epoch(after, last_batch="partial")]
    assert sorted(flat(whole)) == list(range(size))


@pytest.mark.parametrize("seed", range(40))
def test_two_epochs_of_one_reader(numbered, seed):
    """They take turns in one stream, or the first is refused in a sentence once the second has begun."""
    pick = random.Random(seed)
    reader = File(files=numbered(9), random_shuffle=True, initial_fill=4)
    stream = flat([reader._session.opened()[1].visit(v, None)[0].tolist() for v in range(9)])
    endings = [pick.choice(ENDINGS) for _ in range(3)]
    epochs = [reader.next_epoch(2, last_batch=last) for last in endings]
    loops = [iter(epoch) if pick.random() < 0.5 else epoch for epoch in epochs]
    options, refused, over, errors = [], set(), set(), []
    turns = [pick.randrange(3) for _ in range(15)] + [i for i in range(3) for _ in range(7)]
    for i in turns:
        try:
            value = next(loops[i], None)
        except RuntimeError as error:
            refused.add(i)
            errors.append(str(error))
            continue
        if value is None:
            over.add(i)
        else:
            assert i not in refused | over
            options.append((i, labels_of(value)))
    assert not refused & over
    assert all("another one began anew" in text for text in errors)
    if endings == ["fill"] * 3:
        assert not refused
        labels = flat([labels for _, labels in options])
        assert labels == stream[: len(labels)]
    for i in over:
        labels = flat([labels for j, labels in options if i == j])
        assert len(labels) == {"fill": 10, "partial": 9, "drop": 8}[endings[i]]
        if endings[i] != "fill":
            assert len({*labels}) == len(labels)
    assert refused | over == {0, 1, 2}


@pytest.mark.parametrize("last", ENDINGS)
@pytest.mark.parametrize("how", ["one iterator", "a loop each", "an epoch each"])
@pytest.mark.drawn(2)
def test_threads(numbered, last, how):
    """Each batch goes to one of those that share an iterator. Of threads with a loop each, one goes on and the others are
    told so (with "fill" they take turns)."""
    reader = File(files=numbered(60))
    epoch = reader.next_epoch(2, last_batch=last)
    shared, seen, errors, together = iter(epoch), [], [], threading.Barrier(4)

    def work():
        own = reader.next_epoch(2, last_batch=last) if how == "an epoch each" else epoch
        mine = []
        together.wait()
        try:
            for value in shared if how == "one iterator" else own:
                mine += labels_of(value)
        except RuntimeError as error:
            errors.append(str(error))
        else:
            seen.append(mine)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(seen) + len(errors) == 4
    assert all("another one began anew" in text for text in errors)
    if how == "one iterator":
        assert sorted(flat(seen)) == list(range(60))
    elif last == "fill":
        assert not errors
        count = len(flat(seen)) // 60
        assert sorted(flat(seen)) == sorted([*range(60)] * count)
    else:
        assert seen
        assert all(sorted(mine) == list(range(60)) for mine in seen)
