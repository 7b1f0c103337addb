"""`invariant`: a proxy that behaves like its value."""

from __future__ import annotations

import copy
import operator
import os
import pathlib
import pickle

import numpy as np
import pytest
from scenarios import outcomes

import ndd


class Thing:
    size = 5

    def made(self):
        return [1]

    def __call__(self):
        return 7


def behaviour(m, do):
    mark = m.capture.invariant
    for value in (
        3,
        2.5,
        [1, 2],
        (1, 2),
        "ab",
        b"ab",
        None,
        True,
        {"a": 1},
        {1},
        np.arange(3),
        Thing,
        len,
        pathlib.Path("a"),
    ):
        p = mark(value)
        do(lambda p=p: mark(p) is p)
        do(lambda p=p, value=value: isinstance(p, type(value)))
        for look in (
            repr, str, bool, len, iter, callable, abs, operator.neg, operator.index, int, float, round, os.fspath, format, dir,
            lambda v: v[0], lambda v: v["a"], lambda v: v + v, lambda v: 2 * v, lambda v, value=value: v == value, lambda v: 1 in v,
            lambda v, value=value: [v] == [value], hash, lambda v: divmod(v, 2), lambda v: pow(v, 2, 5), lambda v: v.nothing,
        ):  # fmt: skip

            def same(look=look, p=p, value=value):
                result, wanted = look(p), look(value)
                return type(result) is type(wanted) and (look is iter or repr(result) == repr(wanted))

            do(same)
    thing = Thing()
    p = mark(thing)
    do(lambda: [p.size == 5, p.made(), p()])
    do(lambda: "nvariant" in type(p.size).__name__ and "nvariant" not in type(p.made()).__name__)
    do(lambda: [mark(lambda x: x)(p) is p, mark(lambda **named: named["x"])(x=p) is p, mark(lambda x: 3)(p) == 3])
    p.other = 3
    do(lambda: thing.other)
    del p.other
    do(lambda: hasattr(thing, "other"))
    do(lambda: [list(range(mark(3))), [1, 2, 3][mark(1)], 3 + mark(4), mark(3) < mark(4), max(mark(3), 2) == 3])
    do(lambda: [type(copy.copy(mark([1]))).__name__, pickle.loads(pickle.dumps(mark([1])))])
    do(lambda: np.asarray(mark([1, 2])).tolist())
    do(lambda: (mark(np.eye(2)) @ np.eye(2)).tolist())


def accepted(m, do):
    mark = m.capture.invariant
    data = np.arange(6, dtype=np.float32).reshape(1, 2, 3)
    do(lambda: m.as_tensor(mark([1, 2])))
    do(lambda: m.as_tensor([mark(1), 2]))
    do(lambda: m.batch([mark([1]), [2]]))
    do(lambda: m.tensor(mark(m.batch([[1], [2]]))))
    do(lambda: m.as_tensor(mark(data), layout=mark("HWC"), dtype=mark(m.int32), device=mark("cpu")))
    do(lambda: m.as_batch(mark(m.as_batch(data))))
    t = m.as_tensor(data, layout="HWC")
    do(lambda: m.flip(mark(t), horizontal=mark(1), vertical=mark(0), device=mark("cpu")))
    do(lambda: m.cast(t, dtype=mark(m.float64), batch_size=mark(2)))
    do(lambda: np.asarray(t[mark(0)]).tolist())
    do(lambda: t[:, mark(1) :])
    do(lambda: t + mark(1))
    do(
        lambda: m.random.uniform(
            range=mark([0, 1]), shape=mark(None), batch_size=mark(2), rng=mark(m.random.RNG(seed=4))
        )
    )
    do(lambda: m.as_batch(data).tensors[mark(0)])
    do(lambda: m.Batch.broadcast(mark(t), mark(2)))
    do(lambda: m.tensor(m.batch([[1], [2, 3]]), pad=mark(True)))


@pytest.mark.oracle
@pytest.mark.parametrize("scenario", [behaviour, accepted], ids=lambda s: s.__name__)
@pytest.mark.drawn(1)
def test_as_dali(scenario):
    dali = pytest.importorskip("nvidia.dali.experimental.dynamic")
    ours, theirs = outcomes(scenario, ndd), outcomes(scenario, dali)
    assert [(i, o, t) for i, (o, t) in enumerate(zip(ours, theirs, strict=True)) if o != t] == []


def test_readers_take_marked_arguments(tmp_path):
    mark = ndd.capture.invariant
    (tmp_path / "a.txt").write_text("a")
    reader = ndd.readers.File(files=mark([str(tmp_path / "a.txt")] * 4), labels=mark([1, 2, 3, 4]), num_shards=mark(2))
    assert [labels.torch().flatten().tolist() for _, labels in reader.next_epoch(mark(2))] == [[1, 2]]
