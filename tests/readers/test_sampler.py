import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from ndd.readers.sampling.sampler import (
    Buffered,
    Global,
    NumberStream,
    Order,
    Position,
    Reshuffled,
    Sampled,
    Shards,
    check_sampler,
    epoch_batches,
    sampler_indices,
)
from readers.epochs import flat

sizes = st.integers(1, 40)
batches = st.integers(1, 9)


def orders(shards, seed=3):
    yield Order(shards)
    yield Buffered(shards, 4, seed)
    yield Buffered(shards, 4, seed, permuted=False)
    yield Global(shards, seed)
    yield Sampled(shards, lambda epoch: np.roll(np.arange(shards.size), epoch))
    if not shards.stick:
        yield Reshuffled(shards, seed)


def epochs(order, batch, count):
    stream = NumberStream(order, batch, Position())
    return [[stream.take().tolist() for _ in range(epoch_batches(order, e, batch))] for e in range(count)]


@settings(deadline=None, max_examples=60)
@given(sizes, st.integers(1, 5), st.data())
def test_one_epoch_over_all_shards_is_a_permutation(size, count, data):
    count = min(count, size)
    stick = data.draw(st.booleans())
    for which in range(6 - stick):
        for epoch in range(3):
            seen = []
            for index in range(count):
                order = list(orders(Shards(size, count, index, stick)))[which]
                seen += order.visit(epoch, None)[0].tolist()
            assert sorted(seen) == list(range(size))


@settings(deadline=None, max_examples=60)
@given(sizes, st.integers(1, 5), batches)
def test_padded_shards_have_equally_many_batches(size, count, batch):
    count = min(count, size)
    for which in range(6):
        lengths = set()
        for index in range(count):
            order = list(orders(Shards(size, count, index, pad=True)))[which]
            for epoch in epochs(order, batch, 3):
                lengths.add(len(epoch))
                assert all(len(item) == batch for item in epoch)
                given = flat(epoch)
                share = len(set(given))
                assert given[share:] == [given[share - 1]] * (len(given) - share)
        assert len(lengths) == 1


@settings(deadline=None, max_examples=60)
@given(sizes, st.integers(1, 5), batches, st.booleans(), st.booleans())
def test_any_position_continues(size, count, batch, stick, pad):
    count = min(count, size)
    for order in orders(Shards(size, count, count - 1, stick, pad)):
        stream = NumberStream(order, batch, Position())
        for _ in range(8):
            position = stream.position
            fresh = list(orders(order.shards))[[type(o) for o in orders(order.shards)].index(type(order))]
            if type(order) is Buffered:
                fresh = order
            taken = stream.take().tolist()
            again = NumberStream(fresh, batch, position)
            assert again.take().tolist() == taken
            assert again.position == stream.position


def test_unpadded_batches_go_on_into_the_next_visit():
    assert epochs(Order(Shards(10)), 4, 2) == [
        [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 0, 1]],
        [[2, 3, 4, 5], [6, 7, 8, 9], [0, 1, 2, 3]],
    ]
    assert epochs(Order(Shards(2)), 5, 2) == [[[0, 1, 0, 1, 0]], [[1, 0, 1, 0, 1]]]


def test_shards_rotate_or_stick():
    assert [e[0] for e in epochs(Order(Shards(10, 3, 1)), 4, 3)] == [[3, 4, 5, 6], [7, 8, 9, 0], [1, 2, 3, 4]]
    assert [flat(e) for e in epochs(Order(Shards(10, 3, 1)), 1, 3)] == [[3, 4, 5], [6, 7, 8, 9], [0, 1, 2]]
    assert [flat(e) for e in epochs(Order(Shards(10, 3, 1, stick=True)), 1, 2)] == [[3, 4, 5], [3, 4, 5]]


def test_draw_at_equals_walking_there():
    order = Buffered(Shards(30, 4, 1), 7, 11)
    draw = None
    for visit in range(6):
        assert order.draw_at(visit) == (order.draw_at(0) if draw is None else draw)
        _, draw = order.visit(visit, draw)


def test_global_with_stick_stays_in_the_shard():
    order = Global(Shards(10, 3, 1, stick=True), 0)
    for visit in range(4):
        assert sorted(order.visit(visit, None)[0].tolist()) == [3, 4, 5]


class Epochs:
    """Like torch's DistributedSampler."""

    def __init__(self):
        self.epoch = None

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        return iter([self.epoch, 5])


def test_sampler_forms():
    assert sampler_indices([3, 1], 7).tolist() == [3, 1]
    assert sampler_indices(np.array([3, 1], np.uint8), 7).tolist() == [3, 1]
    assert sampler_indices(lambda epoch: [epoch], 7).tolist() == [7]
    assert sampler_indices(Epochs(), 7).tolist() == [7, 5]
    torch = pytest.importorskip("torch")
    assert sampler_indices(torch.utils.data.SequentialSampler(range(3)), 0).tolist() == [0, 1, 2]
    assert sampler_indices(torch.tensor([2, 0]), 0).tolist() == [2, 0]


@pytest.mark.parametrize("wrong", [iter([1, 2]), (i for i in range(3)), 5])
def test_sampler_that_cannot_be_asked_again(wrong):
    with pytest.raises(TypeError, match="sampler"):
        check_sampler(wrong)


def test_sampler_mistakes():
    shards = Shards(5)
    with pytest.raises(IndexError, match="0 to 4, got 5"):
        Sampled(shards, [1, 5]).visit(0, None)
    with pytest.raises(IndexError, match="got -1"):
        Sampled(shards, [1, -1]).visit(0, None)
    with pytest.raises(TypeError, match="not a batch sampler"):
        Sampled(shards, [[1, 2], [3, 4]]).visit(0, None)
    with pytest.raises(TypeError, match="integer"):
        Sampled(shards, [0.5]).visit(0, None)
    with pytest.raises(ValueError, match="at least one"):
        Sampled(shards, []).visit(0, None)


def test_a_failing_order_leaves_the_stream_where_it_was():
    calls = []

    def flaky(epoch):
        calls.append(epoch)
        if epoch == 1 and len(calls) == 2:
            raise OSError("once")
        return [epoch, epoch]

    stream = NumberStream(Sampled(Shards(9), flaky), 3, Position())
    with pytest.raises(OSError, match="once"):
        stream.take()
    assert stream.take().tolist() == [0, 0, 1]
