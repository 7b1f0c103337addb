"""Files that a generator has mutated, which are read: each gives a value, or an error in a sentence.

`.ci/run` reads some with the kernels of every day, and a few parsers' with bounds checks in every kernel, which takes seconds of
compiling for each; `.ci/run all` reads 5,000 of each parser with the checks. Nothing may crash, hang, take much memory, or reach
beyond an array.
"""

import random

import numpy as np
import pytest
from hostile.bounds_checked import check, fenced
from hostile.mutation import Framed, Number, encoded, mutated
from hostile.parsers import PARSERS

FEW, MANY = 40, 5000
CHECKED = "tfrecord", "lmdb", "lz4"  # kernels that follow lengths and places of a file


def assert_fine(name, counts, count):
    assert not counts.failures, "\n\n".join(counts.failures[:5])
    assert counts.read + counts.refused == count, name
    assert counts.read > 0, f"{name}: no file could be read: the generator makes none that is nearly right"
    assert counts.refused > count // 20, name


@pytest.mark.timeout(900)
@pytest.mark.slow
def test_some_mutated_files():
    for name, counts in check("hostile.parsers", [*PARSERS], seed=1, count=FEW, bounds=False).items():
        assert_fine(name, counts, FEW)


@pytest.mark.timeout(900)
@pytest.mark.slow
def test_some_mutated_files_with_bounds_checks():
    for name, counts in check("hostile.parsers", CHECKED, seed=1, count=FEW).items():
        assert_fine(name, counts, FEW)


@pytest.mark.timeout(3000)
@pytest.mark.long
@pytest.mark.parametrize("name", PARSERS)
def test_many_mutated_files(name):
    assert_fine(name, check("hostile.parsers", [name], seed=2, count=MANY)[name], MANY)


def test_the_checks_are_in_force():
    """What reads one byte too far, asks for much memory, kills the process or hangs is told of, and only that."""
    expected = {
        "overrun": "index is out of bounds", "memory": "MemoryError", "fenced": "ended with -11", "hang": "took too long",
    }  # fmt: skip
    counts = check("hostile.wrong_parsers", ["right", *expected], seed=1, count=1, seconds=4)
    assert counts.pop("right") == (1, 0, [])
    for name, said in expected.items():
        (text,) = counts[name].failures
        assert said in text
        assert counts[name][:2] == (0, 0)


def test_mutations_are_the_same_for_a_seed():
    def result(seed):
        parts = [Number(7, "<I"), Framed([b"text", Number(1, ">Q")], lambda content, n: bytes([n % 256]) + content)]
        return mutated(random.Random(seed), parts)

    assert [result(seed) for seed in range(200)] == [result(seed) for seed in range(200)]
    assert len({result(seed) for seed in range(200)}) > 100


def test_fences():
    for at_end in (True, False):
        memory = fenced(5000, at_end)
        memory[:] = 7
        assert int(memory.sum()) == 35000
        assert memory.ctypes.data % 4096 == (-5000 % 4096 if at_end else 0)
    assert np.array_equal(fenced(0), np.empty(0, np.uint8))


def test_lengths_are_made_anew():
    """A frame tells the length of what it holds after a change inside, or a wrong one that was put there."""
    frame = Framed([b"abc", Number(1, "B")], lambda content, n: bytes([n]) + content)
    assert encoded(frame) == b"\x04abc\x01"
    frame.parts.append(b"d")
    assert encoded(frame) == b"\x05abc\x01d"
    frame.length = 200
    assert encoded(frame) == b"\xc8abc\x01d"
