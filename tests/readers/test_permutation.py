"""The shuffles against numbers that DALI 2.4.0 gave, and against a plain version of the C++ algorithms."""

import time
import tracemalloc

import numpy as np
import pytest

from ndd.readers.sampling.permutation import BufferDraws, _scattered, global_order, reshuffled, shuffled_once
from ndd.readers.sampling.sampler import Global, NumberStream, Position, Shards


def test_shuffled_once_recorded():
    assert shuffled_once(10).tolist() == [5, 9, 1, 6, 7, 2, 0, 4, 8, 3]
    assert shuffled_once(11).tolist() == [10, 0, 2, 4, 7, 1, 6, 5, 3, 9, 8]


def test_reshuffled_recorded():
    first = reshuffled(np.arange(10), 524287, 1)
    assert first.tolist() == [9, 6, 0, 5, 4, 2, 8, 1, 7, 3]
    assert reshuffled(first, 524287, 2).tolist() == [7, 1, 4, 5, 8, 6, 0, 2, 3, 9]
    assert reshuffled(np.arange(10), 7, 1).tolist() == [4, 5, 1, 8, 3, 0, 7, 6, 2, 9]


def test_buffer_recorded():
    draws = BufferDraws.seeded(1)
    assert draws.shuffle(shuffled_once(10), 3).tolist() == [9, 6, 1, 5, 2, 7, 4, 3, 8, 0]
    assert draws.shuffle(shuffled_once(10), 3).tolist() == [9, 1, 7, 6, 5, 4, 0, 8, 2, 3]


@pytest.mark.parametrize("size", [0, 1, 2, 3, 16, 65535, 65536, 70001])
@pytest.mark.drawn(3)
def test_permutations(size):
    for order in (shuffled_once(size), reshuffled(np.arange(size), 3, 2), global_order(size, 3, 2)):
        assert np.array_equal(np.sort(order), np.arange(size))


def _plain_shuffle(size):
    """`std::shuffle` written out word by word, with the words that the uniform distribution refuses."""
    words = iter(np.random.RandomState(524287).randint(0, 2**32, 3 * size + 10, np.uint32).tolist())

    def below(limit):
        while True:
            product = next(words) * limit
            if product % 2**32 >= 2**32 % limit:
                return product >> 32

    items = list(range(size))

    def exchange(k, j):
        items[k], items[j] = items[j], items[k]

    if size * size > 2**32 - 1:
        for k in range(1, size):
            exchange(k, below(k + 1))
        return items
    if size % 2 == 0:
        exchange(1, below(2))
    for k in range(2 - size % 2, size, 2):
        first, second = divmod(below((k + 1) * (k + 2)), k + 2)
        exchange(k, first)
        exchange(k + 1, second)
    return items


@pytest.mark.parametrize("size", [2, 3, 9, 400, 65535, 66000])
@pytest.mark.drawn(3)
def test_shuffle_is_libstdcxx(size):
    assert shuffled_once(size).tolist() == _plain_shuffle(size)


def test_minstd_refuses_the_uneven_rest():
    """A state whose next value lies beyond the last whole multiple is drawn again, as the C++ distribution does."""
    modulus, factor = 2**31 - 1, 16807
    limit = 2**30 + 1  # scaling 1: half of all values are refused
    draws = BufferDraws(12345)
    items = draws.shuffle(np.arange(3), limit)
    state, expected = 12345, [0, 1, 2]
    for k in range(3):
        size = min(limit, 3 - k)
        scaling = (modulus - 2) // size
        while True:
            state = state * factor % modulus
            if (state - 1) // scaling < size:
                break
        j = k + (state - 1) // scaling
        expected[k], expected[j] = expected[j], expected[k]
    assert items.tolist() == expected
    assert draws.state == state


def test_skip_equals_shuffle():
    first, second = BufferDraws.seeded(5), BufferDraws.seeded(5)
    first.shuffle(np.arange(100_003), 1000)
    second.skip(100_003, 1000)
    assert first.state == second.state


def test_global_order_depends_on_seed_and_epoch():
    orders = {tuple(global_order(20, seed, epoch)) for seed in (-1, 0, 1) for epoch in (0, 1, 2)}
    assert len(orders) == 9
    assert global_order(8, 1, 2).tolist() == global_order(8, 1, 2).tolist()


@pytest.mark.parametrize("size", [*range(1, 40), 97, 4096, 5000, 100_003])
def test_a_scattered_order_is_a_permutation(size):
    keys = np.random.Philox(key=size).random_raw(8)
    order = _scattered(size, keys, np.arange(size))
    assert np.array_equal(np.sort(order), np.arange(size))
    assert _scattered(size, keys, np.array([size - 1, 0])).tolist() == order[[-1, 0]].tolist()


def test_a_scattered_order_looks_random():
    size = 200_000
    orders = [_scattered(size, np.random.Philox(key=seed).random_raw(8), np.arange(size)) for seed in (1, 2)]
    for order in orders:
        for other in (np.arange(size), np.roll(order, 1), orders[0] if order is orders[1] else orders[1]):
            assert abs(np.corrcoef(order, other)[0, 1]) < 0.01
        assert abs((order % 2).mean() - 0.5) < 0.01
        assert abs((np.diff(order) > 0).mean() - 0.5) < 0.01
        places = np.histogram2d(np.arange(size), order, 20)[0]
        assert abs(places - size / 400).max() < 6 * np.sqrt(size / 400)


def _seconds_of_a_sample(stream):
    begun = time.thread_time()
    return sum(0 * len(stream.take()) for _ in range(400)) + (time.thread_time() - begun) / (400 * 256)


@pytest.mark.slow
def test_a_billion_samples():
    """The order takes no memory that grows with it, and less than 1 us a sample; any epoch is reached at once."""
    tracemalloc.start()
    order = Global(Shards(10**9, 1000, 17, even=True), seed=7)
    stream = NumberStream(order, 256, Position(5, 10**6 - 300))
    taken = np.concatenate([stream.take() for _ in range(400)])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert stream.position.visit == 6
    assert taken.min() >= 0
    assert taken.max() < 10**9
    assert len(np.unique(taken[:300])) == 300
    assert peak < 64 << 20  # 2 MB
    seconds = min(_seconds_of_a_sample(stream) for _ in range(5))
    assert seconds < 1e-6  # 0.1 us on a busy machine; the best of five, since a CI may lose a core for a while
    assert len(order.visit(0, None)[0]) == 10**6
