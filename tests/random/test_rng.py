"""`ndd.random.RNG`: the same words, states and errors as DALI's generator."""

from __future__ import annotations

import copy
import pickle
import threading

import numpy as np
import pytest

from ndd.random import RNG, get_default_rng, philox, set_seed

STATE = "Philox_00000000000004D2_0000000000000000:0000000000000001_1"


def test_first_words_of_seed_1234():
    rng = RNG(seed=1234)
    assert [rng() for _ in range(4)] == [546353992, 3665621163, 1140953199, 3419031310]
    assert str(rng.state) == "Philox_00000000000004D2_0000000000000000:0000000000000001_0"


@pytest.mark.parametrize("seed", [0, 1, -1, 1234, 2**64 + 5, 0xFEDCBA9876543210, True])
def test_words_equal_dali(dali, seed):
    ours, theirs = RNG(seed), dali.random.RNG(seed)
    for _ in range(3):
        assert [ours() for _ in range(11)] == [theirs() for _ in range(11)]
        assert str(ours.state) == str(theirs.state)
        ours.advance(1000003)
        theirs.advance(1000003)


@pytest.mark.parametrize("counter", ["FFFFFFFFFFFFFFFF", "00000000FFFFFFFF"])
@pytest.mark.parametrize("sequence", ["FFFFFFFFFFFFFFFF", "0000000000000ABC"])
def test_words_equal_dali_where_the_counter_wraps(dali, counter, sequence):
    text = f"Philox_0123456789ABCDEF_{sequence}:{counter}_2"
    ours, theirs = RNG(state=text), dali.random.RNG(state=text)
    assert [ours() for _ in range(9)] == [theirs() for _ in range(9)]
    assert str(ours.state) == str(theirs.state)


def test_state_text_goes_both_ways(dali):
    ours = RNG(77)
    ours.advance(123)
    theirs = dali.random.RNG(state=str(ours.state))
    assert [ours() for _ in range(5)] == [theirs() for _ in range(5)]
    ours.set_state(str(theirs.get_state()))
    assert ours() == theirs()


@pytest.mark.parametrize("n", [0, 1, 3, 4, 7, 2**32, 2**64 - 1])
def test_advance_equals_dali(dali, n):
    ours, theirs = RNG(3), dali.random.RNG(3)
    ours.advance(n)
    theirs.advance(n)
    assert str(ours.state) == str(theirs.state)
    assert ours() == theirs()


def test_advance_is_calls():
    a, b = RNG(9), RNG(9)
    for _ in range(13):
        a()
    b.advance(np.uint8(13))
    assert a.state == b.state
    assert a() == b()


def test_advance_refuses():
    with pytest.raises(ValueError, match="negative"):
        RNG(1).advance(-1)
    for bad in (2.0, "3", None):
        with pytest.raises(TypeError, match="integer"):
            RNG(1).advance(bad)


def test_seed_restarts_and_is_write_only():
    rng = RNG(5)
    first = rng()
    rng()
    rng.seed = np.int64(5)
    assert rng() == first
    with pytest.raises(AttributeError, match="seed"):
        _ = rng.seed
    for bad in (5.5, "5", None):
        with pytest.raises(TypeError):
            rng.seed = bad
    with pytest.raises(TypeError):
        RNG(seed=1.5)
    with pytest.raises(TypeError):
        set_seed(None)


def test_seed_and_state_exclude_each_other():
    with pytest.raises(ValueError, match="both"):
        RNG(3, state=STATE)


def test_state_round_trips():
    rng = RNG(state=STATE)
    assert repr(rng) == f"RNG(state={STATE!r})"
    state = rng.state
    expected = [rng() for _ in range(6)]
    rng.state = state
    assert [rng() for _ in range(6)] == expected
    for form in (state, str(state), str(state).lower().replace("philox", "Philox"), str(state).encode()):
        assert RNG(state=form).get_state(cuda_stream=None) == state
    assert hash(state) == hash(RNG(state=STATE).state)
    assert state != rng.state
    assert state != "x"
    assert pickle.loads(pickle.dumps(state)) == state
    assert STATE in repr(state)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "length"),
        ("foo", "length"),
        (STATE + "xyz", "length"),
        (STATE[:-1] + "4", "phase"),
        ("x" * len(STATE), "16 hex"),
    ],
)
def test_bad_state_text(text, words):
    with pytest.raises(ValueError, match=words):
        RNG(state=text)


@pytest.mark.parametrize("bad", [5, 1.5, [], RNG(1)])
def test_bad_state_type(bad):
    with pytest.raises(TypeError, match="state"):
        RNG(state=bad)
    with pytest.raises(TypeError, match="state"):
        RNG(1).set_state(None)


def test_copies_are_independent():
    rng = RNG(state=STATE)
    for other in (rng.clone(), copy.copy(rng), copy.deepcopy(rng), pickle.loads(pickle.dumps(rng))):
        assert other is not rng
        assert other.state == rng.state
        other()
        assert other.state != rng.state


def test_default_is_of_the_thread():
    mine = get_default_rng()
    assert get_default_rng() is mine
    result = []
    thread = threading.Thread(target=lambda: result.append(get_default_rng()))
    thread.start()
    thread.join()
    assert result[0] is not mine
    assert result[0].state != mine.state
    set_seed(seed=3)
    assert get_default_rng() is mine
    assert mine() == RNG(3)()
    assert RNG().state != RNG().state


def test_shared_generator_gives_every_word_once():
    rng = RNG(11)
    result: list[int] = []

    def draw():
        mine = [rng() for _ in range(2000)]
        result.extend(mine)

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(result) == sorted(philox.words(11, 0, 8000))


def test_words_are_uniform():
    from scipy import stats

    words = np.array(philox.words(2024, 5, 20000))
    assert stats.kstest(words / 2**32, "uniform").pvalue > 1e-3
    for shift in (0, 8, 24):
        counts = np.bincount(words >> shift & 255, minlength=256)
        assert stats.chisquare(counts).pvalue > 1e-4


def test_positions_pack():
    for position in (0, 1, 7, 2**66 - 1, philox.POSITIONS - 1):
        assert philox.pack(*philox.unpack(position)) == position
        assert philox.parse_state(philox.format_state(5, position)) == (5, position)
    assert philox.words(5, philox.POSITIONS - 2, 4)[2:] == philox.words(5, 0, 2)


def test_states_of_ranks(monkeypatch):
    """The state that one rank saved moves the generators of others under their own keys."""
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    first, second = RNG(seed=1), RNG(seed=2)
    first.advance(5)
    state = first.state_dict()
    assert state["state"].endswith(" of rank 0")
    again = RNG(seed=9)
    again.load_state_dict(state)
    assert again.state == first.state
    monkeypatch.setenv("RANK", "1")
    second.load_state_dict(state)
    expected = RNG(seed=2)
    expected.advance(5)
    assert second.state == expected.state
    for wrong in ({}, {"state": 5}, "text", None):
        with pytest.raises(TypeError, match="expected what state_dict"):
            second.load_state_dict(wrong)
    with pytest.raises(ValueError, match="state"):
        second.load_state_dict({"state": "Philox_5"})
    assert second.state == expected.state
