"""Mutated pictures and sounds: each gives a value, or is left to another library, or is an error in a sentence.

`.ci/run` reads a few with the kernels of every day, in memory between fences; `.ci/run all` 5,000 of each parser with bounds
checks in every kernel, which take minutes to compile.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hostile import media, picture_kernels
from hostile.bounds_checked import check, mutation

FEW, MANY, SECONDS = 40, 5000, 300
PARSERS = {**media.PARSERS, **picture_kernels.PARSERS}


@pytest.mark.parametrize("name", PARSERS)
def test_some_mutated_files(name):
    """All of them are told by their numbers, so that one alone can be looked at: `mutation(name, parser, 1, number)`."""
    parser, seen = PARSERS[name], Counter()
    for number in range(FEW):
        content = mutation(name, parser, 1, number)
        try:
            parser.read(content)
            seen["read"] += 1
        except parser.allowed as error:
            seen["refused" if str(error).strip() else f"{number} says nothing"] += 1
        except BaseException as error:
            raise AssertionError(f"{name} file {number}") from error
    assert seen["read"] + seen["refused"] == FEW, seen
    assert min(seen["read"], seen["refused"]) > FEW // 20, seen


@pytest.mark.long
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("name", PARSERS)
def test_many_mutated_files_with_bounds_checks(name):
    module = "hostile.media" if name in media.PARSERS else "hostile.picture_kernels"
    counts = check(module, [name], seed=2, count=MANY, seconds=SECONDS)[name]
    assert not counts.failures, "\n\n".join(counts.failures[:5])
    assert counts.read + counts.refused == MANY
    assert min(counts.read, counts.refused) > MANY // 20


def test_mutations_are_the_same_for_a_seed():
    for name, parser in PARSERS.items():
        assert [mutation(name, parser, 3, k) for k in range(20)] == [mutation(name, parser, 3, k) for k in range(20)]
        assert len({mutation(name, parser, 3, k) for k in range(60)}) > 20, name


def test_fields_are_those_that_the_parsers_read():
    """A field that is changed and put back gives the file again, and there are many of them."""
    for file, fields in media.flacs():
        assert len(set(fields)) > 40
        at, count = fields[-1]
        assert (
            media.with_field(media.with_field(file, at, count, 1, False), at, count, 0, False)[: at // 8]
            == file[: at // 8]
        )
    assert len(media.setup_fields(8000, 1)) > 1000
    data = random.Random(0).randbytes(40)
    assert media.with_field(data, 13, 11, int.from_bytes(data, "little") >> 13 & 0x7FF, True) == data
