"""Captured loops: the rules and errors of DALI's, and values that are those of an eager loop."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from scenarios import outcomes

import ndd


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    root = tmp_path_factory.mktemp("files")
    for i in range(10):
        (root / f"{i}.txt").write_text(str(i))
    return [str(root / f"{i}.txt") for i in range(10)]


def batches(m, count=4, size=2, base=0):
    return [m.batch([np.full(1, base + i * 10 + k) for k in range(size)]) for i in range(count)]


class Loops:
    """The loops of a scenario; `body` of an iteration gives what is compared."""

    def __init__(self, m, do, files):
        self.m, self.do, self.files = m, do, files

    def reader(self, **arguments):
        return self.m.readers.File(files=self.files[:6], labels=list(range(6)), **arguments)

    def loop(self, reader, body, size=2, epochs=1, between=lambda: None, left_at=None):
        def run():
            result = []
            for _ in range(epochs):
                for i, (_data, labels) in enumerate(reader.next_epoch(size, capture=True)):
                    result.append(body(i, labels))
                    if i == left_at:
                        break
                between()
            return result

        self.do(run)

    def cast(self, i, labels):
        return self.m.cast(labels, dtype=self.m.capture.invariant(self.m.int64))


def modes(m, do, files):
    at = Loops(m, do, files)
    at.do(lambda: list(at.reader().next_epoch(capture=True)))
    reader = at.reader()
    at.loop(reader, at.cast, epochs=2)
    at.do(lambda: next(iter(reader.next_epoch(2))))
    at.do(lambda: reader(batch_size=2))
    at.loop(reader, at.cast, size=3)
    reader = at.reader()
    at.do(lambda: [labels for _, labels in reader.next_epoch(2)])
    at.loop(reader, at.cast)
    reader = at.reader()
    at.loop(reader, lambda i, labels: np.asarray(labels.tensors[0]).tolist(), epochs=2)  # no operator: falls back
    at.do(lambda: [labels for _, labels in reader.next_epoch(2)])
    at.loop(at.reader(), at.cast, epochs=3, left_at=1)
    at.loop(at.reader(), at.cast, epochs=3, left_at=0)
    for left_at in (0, 1):  # also a loop that was left in its first iteration binds its reader
        reader = at.reader()
        at.loop(reader, at.cast, left_at=left_at)
        at.do(lambda reader=reader: [labels for _, labels in reader.next_epoch(2)])
        at.loop(reader, at.cast, size=3)
    reader = at.reader()
    at.do(lambda: (reader.next_epoch(2, capture=True), list(reader.next_epoch(2)))[1])  # so does one that never began
    inner = at.reader()
    at.loop(at.reader(), lambda i, labels: [at.cast(i, v) for _, v in inner.next_epoch(2, capture=True)])
    at.loop(at.reader(enable_checkpointing=True), at.cast)
    reader = at.reader()
    at.loop(reader, at.cast)
    at.do(lambda: m.checkpoint.Checkpoint().register(reader))


def draws(m, do, files):
    at = Loops(m, do, files)

    def uniform(rng, size=2):
        return m.cast(m.random.uniform(range=(0, 100), batch_size=size, rng=rng), dtype=m.int32)

    def run(body, epochs=1, between=lambda rng: None):
        rng = m.random.RNG(seed=1)
        at.loop(
            at.reader(),
            lambda i, labels: (at.cast(i, labels), body(rng, i))[1],
            epochs=epochs,
            between=lambda: between(rng),
        )
        do(lambda: str(rng.state))

    run(lambda rng, i: uniform(rng), epochs=3)
    run(lambda rng, i: (uniform(rng), rng.advance(3))[0])
    run(lambda rng, i: [uniform(rng), rng()])
    run(lambda rng, i: (uniform(rng), setattr(rng, "seed", 4) if i else None)[0])
    run(lambda rng, i: uniform(m.random.RNG(seed=i)))
    run(lambda rng, i: [uniform(rng) for _ in range(2)])
    run(lambda rng, i: [uniform(rng), uniform(rng)])  # not the same: two calls of one function
    run(lambda rng, i: uniform(rng) if i != 1 else None)
    run(lambda rng, i: uniform(rng), epochs=2, between=lambda rng: rng.advance(1))
    run(lambda rng, i: uniform(rng), epochs=2, between=lambda rng: rng())
    run(lambda rng, i: (setattr(rng, "state", rng.state) if i else None, uniform(rng))[1])
    run(lambda rng, i: uniform(rng), epochs=2, between=lambda rng: setattr(rng, "state", str(rng.state)))
    run(lambda rng, i: uniform(rng, 2 + i))


def promises(m, do, files):
    at, mark = Loops(m, do, files), m.capture.invariant
    at.loop(at.reader(), lambda i, labels: m.cast(labels, dtype=mark(m.int64)))
    at.loop(at.reader(), lambda i, labels: m.cast(labels, dtype=(mark if i == 0 else lambda kind: kind)(m.int64)))
    at.loop(at.reader(), lambda i, labels: m.cast(labels, dtype=m.int64, batch_size=2 + i))
    at.loop(at.reader(), lambda i, labels: m.cast(labels, dtype=m.int64, batch_size=3 if i else None))
    at.loop(at.reader(), lambda i, labels: [at.cast(i, labels), m.zeros(shape=[1], batch_size=3) if i else None][0])
    for sizes in ((3, 3), (3, 2), (2, 2)):
        at.loop(at.reader(), lambda i, labels, s=sizes: [at.cast(i, labels), m.ones(shape=[1], batch_size=s[i > 0])])

    def filled(labels, value):
        return m.pad(labels, shape=mark([3]), fill_value=value)

    at.loop(at.reader(), lambda i, labels: [filled(labels, mark(7)), filled(labels, 8)])
    at.loop(at.reader(), lambda i, labels: m.pad(labels, shape=mark([3]), fill_value=mark(7), axes=mark(None)))


def sources(m, do, files):
    def run(feed=lambda i, f: f(), count=4, fed=4, cycle=None, before=lambda f: None, epochs=1, size=2, left_at=None):
        root = m.ExternalSource(batches(m, count), cycle="raise")
        feeder = m.ExternalSource(batches(m, fed, base=100), cycle=cycle)

        def loop():
            result = []
            before(feeder)
            for _ in range(epochs):
                for i, x in enumerate(root.captured(batch_size=size)):
                    y = m.cast(x, dtype=m.int32)
                    z = feed(i, feeder)
                    result.append(y if z is None else y + z)
                    if i == left_at:
                        break
            return result

        do(loop)
        return root, feeder

    run()
    run(fed=3)
    run(fed=6)
    run(fed=2, cycle="quiet")
    run(fed=2, cycle="raise")
    run(lambda i, f: (f(), f())[1], fed=8)
    run(lambda i, f: f() if i != 1 else None)
    run(lambda i, f: f() if i else None)
    run(lambda i, f: None, epochs=2)
    run(lambda i, f: f(batch_size=2))
    run(lambda i, f: f(batch_size=3))
    run(size=3)
    run(before=lambda f: f())
    run(before=lambda f: [m.cast(x, dtype=m.int32) for x in f.captured(2)])
    for left_at in (0, None):
        root, feeder = run(left_at=left_at)
        do(lambda root=root: root())
        do(lambda feeder=feeder: feeder())
    root, feeder = run()
    do(lambda: next(root.captured(3)))
    do(lambda: [m.cast(x, dtype=m.int32) + feeder() for x in m.ExternalSource(batches(m)).captured(2)])
    do(lambda: [m.cast(x, dtype=m.int32) for x in m.ExternalSource([np.full(3, i) for i in range(3)]).captured(2)])
    do(lambda: [x.tensors[0].shape for x in m.ExternalSource(batches(m)).captured(2)])
    do(lambda: ((s := m.ExternalSource(batches(m))).captured(2), s())[1])
    do(lambda: ((s := m.ExternalSource(batches(m))).captured(2), s.captured(3))[1])
    do(lambda: ((s := m.ExternalSource(batches(m)))(), s.captured(2))[1])
    again = m.ExternalSource(batches(m))
    do(lambda: [(m.cast(x, dtype=m.int32), again()) for x in again.captured(2)])


@pytest.mark.oracle
@pytest.mark.skipif(sys.version_info < (3, 11), reason="on Python 3.10 DALI 2.4.0 sees no operators in a loop")
@pytest.mark.parametrize("scenario", [modes, draws, promises, sources], ids=lambda s: s.__name__)
@pytest.mark.drawn(1)
def test_as_dali(scenario, files):
    dali = pytest.importorskip("nvidia.dali.experimental.dynamic")
    ours, theirs = (outcomes(lambda m, do: scenario(m, do, files), package) for package in (ndd, dali))
    assert [(i, o, t) for i, (o, t) in enumerate(zip(ours, theirs, strict=True)) if o != t] == []


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"random_shuffle": True, "seed": 3},
        {"num_shards": 3, "shard_id": 1},
        {"pad_last_batch": True, "num_shards": 2},
    ],
)
@pytest.mark.drawn(1)
def test_values_of_an_eager_loop(given, files):
    """Over epochs and shards, with branches, several calls on one line, and work on the batch of the step before."""
    result = []
    for capture in (False, True):
        reader = ndd.readers.File(files=files, labels=list(range(10)), **given)
        rng, seen, before = ndd.random.RNG(seed=5), [], None
        for epoch in range(3):
            for i, (_, labels) in enumerate(reader.next_epoch(3, capture=capture)):
                a, b = ndd.cast(labels, dtype=ndd.float32), ndd.cast(labels, dtype=ndd.int64)
                if i < 2:
                    a = a * 3  # in its place a random operator comes, when two iterations have had it
                moved = a * ndd.random.uniform(range=(1, 2), batch_size=3, rng=rng)
                if i % 2 == epoch % 2:
                    b = ndd.pad(b, shape=[4], fill_value=i)
                if before is not None:
                    seen.append((before + b.slice[:1]).torch().tolist())
                before = b.slice[:1]
                seen += [moved.torch().tolist(), b.torch().tolist(), str(rng.state)]
        result.append(seen)
    assert result[0] == result[1]


def test_words_of_errors(files):
    reader = ndd.readers.File(files=files)
    with pytest.raises(ValueError, match="batch_size"):
        reader.next_epoch(capture=True)
    for _, labels in reader.next_epoch(2, capture=True):
        ndd.cast(labels, dtype=ndd.int64)
    with pytest.raises(RuntimeError, match="cannot switch to eager mode"):
        reader.next_epoch(2)
    with pytest.raises(ValueError, match="Cannot change batch_size from 2 to 3"):
        reader.next_epoch(3, capture=True)
    with pytest.raises(NotImplementedError, match="capture mode"):
        ndd.checkpoint.Checkpoint().register(reader)
    reader.reset()  # not in DALI
    assert len(list(reader.next_epoch(5))) == 2
    with pytest.raises(RuntimeError, match="cannot switch to capture mode"):
        reader.next_epoch(5, capture=True)


def test_the_device_of_an_operator_stays(files, emulated_gpu):
    reader = ndd.readers.File(files=files)

    def loop(first):
        for i, (_, labels) in enumerate(reader.next_epoch(2, capture=True)):
            ndd.cast(labels, dtype=ndd.int64, device="gpu" if i else first)

    for first in ("cpu", None):  # None: where its input is
        with pytest.raises(RuntimeError, match="Cannot change device from cpu to gpu"):
            loop(first)
    for _, labels in ndd.readers.File(files=files).next_epoch(2, capture=True):  # nothing of the broken loop is left
        ndd.cast(labels, dtype=ndd.int64, device="gpu")


def test_a_loop_left_in_the_middle_loses_nothing(files):
    """DALI drops what it has pulled ahead; here a source stands where the loop stood."""
    root = ndd.ExternalSource(batches(ndd))
    for i, x in enumerate(root.captured(2)):
        ndd.cast(x, dtype=ndd.int32)
        if i == 1:
            break
    assert [ndd.cast(x, dtype=ndd.int32).torch()[0].item() for x in root.captured(2)] == [20, 30]


@pytest.mark.parametrize("last", ["fill", "partial", "drop"])
@pytest.mark.drawn(1)
def test_a_smaller_last_batch(files, last):
    """Arguments that come from the batch at hand follow it, and values are those of an eager loop; in sizes that are
    neither the loop's nor the batch's the promise is broken as ever."""

    def run(capture, count):
        reader = ndd.readers.File(files=files[:count], labels=list(range(count)), shuffle="global")
        rng, seen = ndd.random.RNG(seed=3), []
        noise = ndd.ExternalSource(lambda: np.full(1, 0.5, np.float32))
        for _ in range(2):
            for _, labels in reader.next_epoch(4, capture=capture, last_batch=last):
                n = labels.batch_size
                flips = ndd.random.coin_flip(batch_size=n, rng=rng)
                moved = ndd.cast(labels, dtype=labels.dtype, device=labels.device) * flips
                moved = moved + ndd.random.uniform(range=(0, 1), batch_size=n, rng=rng) + noise(batch_size=n)
                moved = moved + ndd.full(n, shape=[1], batch_size=n) + ndd.ones_like(labels)
                padded = ndd.pad(moved, shape=[[2 + i] for i in range(n)], fill_value=float(n))
                usual = ndd.random.normal(batch_size=4, rng=rng)
                seen += [[t.torch().tolist() for t in padded], usual.torch().tolist(), str(rng.state)]
        return seen

    for count in (10, 9) if last == "drop" else (10, 9, 3):
        assert run(True, count) == run(False, count)
    reader = ndd.readers.File(files=files)

    def of_another_size():
        for i, (_, labels) in enumerate(reader.next_epoch(4, capture=True, last_batch="partial")):
            ndd.random.coin_flip(batch_size=3 if i == 1 else labels.batch_size)

    with pytest.raises(RuntimeError, match="Cannot change batch size to 3, the capture-mode loop uses 4"):
        of_another_size()


def test_samples_left_out_in_a_captured_loop(files):
    some = [*files]
    some[5] = "/nonexistent"
    reader, sizes = ndd.readers.File(files=some, labels=list(range(10)), on_error="skip"), []
    for _, labels in reader.next_epoch(4, capture=True, last_batch="partial"):
        sizes.append((labels + ndd.random.coin_flip(batch_size=labels.batch_size)).batch_size)
    assert sizes == [4, 3, 2]


def test_a_source_in_a_captured_loop_follows_the_batch(files):
    """A Tensor is repeated as often as the batch has samples; a Batch has its size, or the loop's."""
    for item, sizes in ((np.ones(1, np.int32), [4, 4, 2]), (ndd.batch([np.ones(1, np.int32)] * 4), [4, 4, 4])):
        source = ndd.ExternalSource([item] * 3)
        reader, seen = ndd.readers.File(files=files), []
        for _, labels in reader.next_epoch(4, capture=True, last_batch="partial"):
            ndd.cast(labels, dtype=ndd.int64)
            seen.append(source().batch_size)
        assert seen == sizes
