"""The kernels' Philox is the plain Python one: any element, any word, over every carry; and the words of samples."""

from __future__ import annotations

import numpy as np
import pytest

from ndd._cpu.draws import fill_normal, normal_row
from ndd._cpu.philox import CHUNK, SAMPLE_STRIDE, STRIDE, element_words, new_cursor, next_word, sample_streams, seek
from ndd.random import RNG, philox
from ndd.random.streams import Draws

STREAMS = [
    (1234, 55, 77, 3),
    (2**64 - 1, 2**64 - 40, 2**64 - 1, 1),
    (0xFEDCBA9876543210, 2**32 - 2, 0, 2),
    (5, 2**64 - 1, 2**32 - 1, 0),
]


def expected(stream, element, count, skip=0):
    key, counter, sequence, phase = stream
    position = philox.pack(sequence, counter, phase) + STRIDE * element + skip
    return philox.words(key, position % philox.POSITIONS, count)


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 97, CHUNK])
@pytest.mark.parametrize(("count", "skip"), [(1, 0), (2, 0), (4, 0), (5, 0), (16, 0), (3, 7), (16, 32)])
def test_words_of_elements(stream, n, count, skip):
    result = np.empty((count, n), np.uint32)
    element_words(result, np.array(stream, np.uint64), 17, skip)
    for e in {0, 1, 2, 3, n // 2, n - 1} & set(range(n)):
        assert result[:, e].tolist() == expected(stream, 17 + e, count, skip)


@pytest.mark.parametrize("stream", STREAMS)
def test_words_of_one_element_in_order(stream):
    cursor = new_cursor()
    for element in (0, 1, 1000):
        seek(cursor, np.array(stream, np.uint64), element)
        assert [int(next_word(cursor)) for _ in range(300)] == expected(stream, element, 300)


def test_streams_of_samples_are_the_next_seven_words():
    rng = RNG(77)
    rng.advance(13)
    streams = Draws(*rng.clone()._take()).streams(4)
    w = [rng() for _ in range(7)]
    for i, row in enumerate(streams.tolist()):
        sequence = (w[4] | w[5] << 32) + SAMPLE_STRIDE * i
        assert row == [w[0] | w[1] << 32, w[2] | w[3] << 32, sequence % 2**64, w[6] & 3]
    place = np.array([77, 2**64 - 1, 2**64 - 1, 3], np.uint64)
    result = np.empty((1, 4), np.uint64)
    sample_streams(place, result)
    words = philox.words(77, philox.POSITIONS - 1, 7)
    assert result[0, 0] == words[0] | words[1] << 32


def test_normals_are_box_mullers():
    stream = np.array(STREAMS[0], np.uint64)
    words = np.empty((2, 900), np.uint32)
    element_words(words, stream, 3)
    u, v = words / 2.0**32
    result = np.empty(900, np.float32)
    normal_row(result, stream, 3)
    np.testing.assert_allclose(result, np.sqrt(-2 * np.log(u)) * np.cos(2 * np.pi * v), rtol=0, atol=4e-6)


def test_elements_do_not_depend_on_how_many_there_are():
    stream = np.array([STREAMS[0]], np.uint64)
    item, many = np.empty((1, 1), np.float32), np.empty((1, 5000), np.float32)
    mean, stddev = np.zeros(1, np.float32), np.ones(1, np.float32)
    fill_normal(many, stream, mean, stddev)
    fill_normal(item, stream, mean, stddev)
    assert item[0, 0] == many[0, 0]


def test_values_that_never_change():
    """Anchors for machines without DALI: these are its values too."""
    import ndd

    def drawn(name, *inputs, **arguments):
        return np.array(getattr(ndd.random, name)(*inputs, shape=[4], rng=RNG(1234), **arguments)).tolist()

    assert drawn("uniform", range=(0, 1)) == pytest.approx([0.50653195, 0.66098565, 0.8157894, 0.07008594], abs=1e-8)
    assert drawn("uniform", range=(0, 1), dtype=ndd.float64) == pytest.approx(
        [0.12159177, 0.25110701, 0.67082801, 0.14120432], abs=1e-8
    )
    assert drawn("uniform", range=(0, 2**31), dtype=ndd.uint32) == [261116344, 539248190, 1440592173, 303233965]
    assert drawn("normal")[0] == pytest.approx(0.84219337, abs=1e-6)
    assert drawn("beta")[0] == pytest.approx(0.48528093, abs=1e-6)
    assert drawn("choice", 5)[0] == 2
    assert drawn("coin_flip")[0] == 0
