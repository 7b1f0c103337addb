"""Which samples an epoch has, how long it is and where the next begins: tables, and DALI's own iterators."""

from __future__ import annotations

import contextlib
import warnings

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from numbers_pipeline import epochs, trace

from ndd.plugin.base_iterator import CountedEpochs, LastBatchPolicy, ReaderEpochs, shard_size

QUICK = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
POLICIES = ("FILL", "DROP", "PARTIAL")


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def text(result, column=0):
    """Epochs as in the tables: "12 34 / 56", 10 written A."""
    digits = "0123456789ABC"
    return [" ".join("".join(digits[v] for v in step[column]) for step in steps) for _, _, steps in result]


DOCUMENTED = [
    ("PARTIAL", True, [7], [1, 2]),
    ("PARTIAL", False, [7], [2, 3]),
    ("FILL", True, [7, 7], [1, 2]),
    ("FILL", False, [7, 1], [2, 3]),
    ("DROP", True, [5, 6], [1, 2]),
    ("DROP", False, [5, 6], [2, 3]),
]


@pytest.mark.parametrize("by_reader", [True, False])
@pytest.mark.parametrize(("policy", "padded", "last", "following"), DOCUMENTED)
def test_the_documented_example(our, policy, padded, last, following, by_reader):
    arguments = {"reader_name": "Reader"} if by_reader else {"size": 7, "last_batch_padded": padded}
    first, second = epochs(our, our.numbers(7, 2, pad=padded), policy, 2, **arguments)
    assert first[2][-1] == [last]
    assert second[2][0] == [following]


SEVEN = [
    ("FILL", False, ["12 34 56 71", "23 45 67", "12 34 56 71"], [(8, 4), (6, 3), (8, 4)], [(7, 4)] * 3),
    ("FILL", True, ["12 34 56 77"] * 3, [(7, 4)] * 3, [(7, 4)] * 3),
    ("DROP", False, ["12 34 56", "23 45 67", "34 56 71"], [(7, 3)] * 3, [(7, 3)] * 3),
    ("DROP", True, ["12 34 56"] * 3, [(7, 3)] * 3, [(7, 3)] * 3),
    ("PARTIAL", False, ["12 34 56 7", "23 45 67 1", "34 56 71 2"], [(8, 4)] * 3, [(7, 4)] * 3),
    ("PARTIAL", True, ["12 34 56 7"] * 3, [(7, 4)] * 3, [(7, 4)] * 3),
]


@pytest.mark.parametrize("stick", [False, True])
@pytest.mark.parametrize(("policy", "pad", "expected", "by_reader", "by_size"), SEVEN)
@pytest.mark.drawn(2)
def test_seven_samples(our, policy, pad, expected, by_reader, by_size, stick):
    result = epochs(our, our.numbers(7, 2, pad=pad, stick=stick), policy, reader_name="Reader")
    assert text(result) == expected
    assert [(size, length) for size, length, _ in result] == by_reader
    result = epochs(our, our.numbers(7, 2, pad=pad, stick=stick), policy, size=7, last_batch_padded=pad)
    assert text(result) == expected
    assert [(size, length) for size, length, _ in result] == by_size


def test_size_with_a_padding_that_is_not_the_readers(our):
    result = epochs(our, our.numbers(7, 2, pad=True), "FILL", size=7, last_batch_padded=False)
    assert text(result) == ["12 34 56 77", "12 34 56", "77 12 34 56"]
    result = epochs(our, our.numbers(7, 2, pad=False), "FILL", size=7, last_batch_padded=True)
    assert text(result) == ["12 34 56 71", "23 45 67 12", "34 56 71 23"]


# policy, pad, stick: three epochs of shards {1-3} {4-6} {7-10}
TEN = {
    ("FILL", 0, 0): ("12 34 / 56 78 / 9A", "45 67 / 89 A1 / 23", "78 9A / 12 34 / 56"),
    ("FILL", 0, 1): ("12 31 / 23 12 / 31 23", "45 64 / 56 45 / 64 56", "78 9A / 78 9A / 78 9A"),
    ("FILL", 1, 0): ("12 33 / 45 66 / 78 9A", "45 66 / 78 9A / 12 33", "78 9A / 12 33 / 45 66"),
    ("FILL", 1, 1): ("12 33 / 12 33 / 12 33", "45 66 / 45 66 / 45 66", "78 9A / 78 9A / 78 9A"),
    ("DROP", 0, 0): ("12 / 56 / 9A", "45 / 89 / 23", "78 / 12 / 56"),
    ("DROP", 0, 1): ("12 / 23 / 31", "45 / 56 / 64", "78 / 78 / 78"),
    ("DROP", 1, 0): ("12 / 45 / 78", "45 / 78 / 12", "78 / 12 / 45"),
    ("DROP", 1, 1): ("12 / 12 / 12", "45 / 45 / 45", "78 / 78 / 78"),
    ("PARTIAL", 0, 0): ("12 3 / 56 7 / 9A 12", "45 6 / 89 A1 / 23 4", "78 9A / 12 3 / 56 7"),
    ("PARTIAL", 0, 1): ("12 3 / 23 1 / 31 2", "45 6 / 56 4 / 64 5", "78 9A / 78 9A / 78 9A"),
    ("PARTIAL", 1, 0): ("12 3 / 45 6 / 78 9A", "45 6 / 78 9A / 12 3", "78 9A / 12 3 / 45 6"),
    ("PARTIAL", 1, 1): ("12 3 / 12 3 / 12 3", "45 6 / 45 6 / 45 6", "78 9A / 78 9A / 78 9A"),
}


@pytest.mark.parametrize(("policy", "pad", "stick"), TEN)
@pytest.mark.drawn(1)
def test_ten_samples_in_three_shards(our, policy, pad, stick):
    pipes = [our.numbers(10, 2, 3, k, bool(pad), bool(stick)) for k in range(3)]
    together = epochs(our, pipes, policy, reader_name="Reader")
    for k, expected in enumerate(TEN[policy, pad, stick]):
        pipe = our.numbers(10, 2, 3, k, bool(pad), bool(stick))
        alone = epochs(our, pipe, policy, reader_name="Reader")
        assert text(alone) == expected.split(" / ")
        assert text(together, k) == expected.split(" / ")
        sizes = [(size, length) for size, length, _ in alone]
        if policy == "DROP":
            assert sizes == [(3, 1)] * 3
        elif (policy, pad, stick) == ("FILL", 0, 0):
            assert sizes == [(4, 2), (4, 2), (2, 1)]
        else:
            assert sizes == [(4, 2)] * 3


@st.composite
def jobs(draw):
    shards = draw(st.sampled_from([1, 1, 2, 3, 4]))
    n = draw(st.integers(shards, 16))
    batch = draw(st.integers(1, 5))
    ranks = draw(st.lists(st.integers(0, shards - 1), min_size=1, max_size=shards, unique=True))
    pad, stick, shuffle = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
    options = {"shards": shards, "pad": pad, "stick": stick, "shuffle": shuffle and not stick}
    if draw(st.booleans()):
        arguments = {"reader_name": "Reader"}
    else:
        arguments = {"size": draw(st.integers(1, n * len(ranks))), "last_batch_padded": draw(st.booleans())}
    return n, batch, ranks, options, draw(st.sampled_from(POLICIES)), arguments


def both(our, their, job, run, **more):
    n, batch, ranks, options, policy, arguments = job
    for library in (their, our):
        pipes = [library.numbers(n, batch, shard=k, **options) for k in ranks]
        yield run(library, pipes, policy=policy, **arguments, **more)


@pytest.mark.oracle
@given(job=jobs())
@QUICK
def test_every_epoch_is_dalis(our, their, job):
    theirs, ours = both(our, their, job, epochs, count=5, prepare_first_batch=False)
    assert ours == theirs


@pytest.mark.oracle
@given(
    job=jobs(),
    program=st.lists(st.sampled_from(["next", "next", "next", "iter", "reset", "for", "break"]), max_size=20),
    auto_reset=st.sampled_from([True, False, None, "yes", "no"]),
    prepare=st.booleans(),
)
@QUICK
def test_programs_of_resets_and_breaks_see_what_they_see_in_dali(our, their, job, program, auto_reset, prepare):
    *_, options, policy, arguments = job
    program = ["next", *program]  # a reset before the first batch has a test of its own
    theirs, ours = both(our, their, job, trace, operations=program, auto_reset=auto_reset, prepare_first_batch=prepare)
    padded = options["pad"] if "reader_name" in arguments else arguments["last_batch_padded"]
    if policy == "FILL" and not padded:  # there DALI warns of resets in mid-epoch where none was
        ours, theirs = ([v[:3] if isinstance(v, tuple) else v for v in result] for result in (ours, theirs))
    assert ours == theirs


@given(
    n=st.integers(1, 60),
    shards=st.integers(1, 6),
    batch=st.integers(1, 9),
    policy=st.sampled_from(list(LastBatchPolicy)),
    padded=st.booleans(),
    stick=st.booleans(),
)
@settings(max_examples=300, deadline=None, derandomize=True)
def test_ranks_finish_in_the_same_number_of_steps(n, shards, batch, policy, padded, stick):
    if n < shards:
        return
    ranks = [ReaderEpochs(n, shards, [k], batch, policy, padded, stick) for k in range(shards)]
    for _ in range(4):
        steps = []
        for rank in ranks:
            count = given_rows = 0
            while not rank.finished() and rank.advance():
                count += 1
                given_rows += rank.rows(0)
            steps.append(count)
            own = shard_size(n, shards, rank._shard_of(rank.ids[0]))
            if policy is LastBatchPolicy.PARTIAL:
                assert given_rows == own
            assert count == len(rank)
            rank.reset()
        assert len(set(steps)) == 1


def test_partial_and_padded_ranks_see_every_sample_once(our):
    """The advice of the documentation for validation in a distributed job."""
    for n, shards, batch in [(10, 3, 2), (16, 4, 3), (13, 2, 4)]:
        pipes = [our.numbers(n, batch, shards, k, pad=True) for k in range(shards)]
        for _, _, steps in epochs(our, pipes, "PARTIAL", 3, reader_name="Reader"):
            assert sorted(v for step in steps for part in step for v in part) == list(range(1, n + 1))


def test_counted_epochs_over_several_pipelines(our):
    def steps(size):
        pipes = [our.numbers(7, 2), our.numbers(7, 2)]
        return epochs(our, pipes, "PARTIAL", 1, size=size)[0][2]

    assert steps(5)[-1] == [[3]]
    assert steps(7)[-1] == [[3, 4], [3]]
    counted = CountedEpochs(7, 2, 2, LastBatchPolicy.FILL, False)
    assert (len(counted), counted.size) == (2, 7)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("pad", [False, True])
def test_length_steps_and_a_reset_without_meeting_the_end(our, policy, pad):
    expected = text(epochs(our, our.numbers(7, 2, pad=pad), policy, 3, reader_name="Reader"))
    iterator = our.iterator(our.numbers(7, 2, pad=pad), policy, reader_name="Reader")
    result = []
    for _ in range(3):
        result.append((0, 0, [[next(iterator)[0]["label"].flatten().tolist()] for _ in range(len(iterator))]))
        iterator.reset()
    assert text(result) == expected


def test_no_step_is_missed_when_the_loop_holds_on_to_next(our):
    iterator = our.iterator(our.numbers(5, 2), "PARTIAL", reader_name="Reader")
    seen = []
    with contextlib.suppress(StopIteration):
        while True:
            seen.append(iterator.next()[0]["label"].flatten().tolist())
    assert seen == [[1, 2], [3, 4], [5]]
