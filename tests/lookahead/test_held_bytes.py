"""What lookahead holds: so many bytes, and nothing that only its own calls look at."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from waiting import let_read_on

import ndd
from ndd._lookahead import threads
from ndd._operator.call import Call

_PICTURE = 8 * 8 * 3
_BATCH = 2 * _PICTURE + 128  # bytes of two pictures in one block of the emulated GPU, with its fences


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.setattr("ndd._lookahead.decision._MAX_BATCHES", 1)
    for i in range(4):
        Image.fromarray(np.full((8, 8, 3), 40 * i, np.uint8)).save(tmp_path / f"{i}.png")
    return sorted(map(str, tmp_path.iterdir())) * 8


@pytest.fixture
def made(monkeypatch):
    """The results that live, by operator, of work that ran ahead; and the most bytes that they had together."""
    alive: dict[str, Any] = {"image": weakref.WeakSet(), "resize": weakref.WeakSet()}
    alive["most"], lock, run = [0], threading.Lock(), Call.run

    def watched(self, invocation):
        results = run(self, invocation)
        if threads.is_ahead():
            with lock:
                alive[self.op.name].update(results)
                living = [*alive["image"], *alive["resize"]]
                alive["most"].append(sum(t.untyped_storage().nbytes() for s in living for t in s.owners()))
        return results

    monkeypatch.setattr(Call, "run", watched)
    return alive


def iterate(files, device="gpu", size=8, **loop):
    """The batches and what they are resized to, each when lookahead has done all that it will."""
    reader = ndd.readers.File(files=files)
    for encoded, _ in reader.next_epoch(batch_size=2, **loop):
        resized = ndd.resize(ndd.decoders.image(encoded, device=device), size=[size, size])
        values = resized.torch().clone()
        del resized
        let_read_on(reader)
        yield encoded, values


def most_under_way(files, *arguments, **loop):
    """How many batches were worked on or waited at most; then the bytes of one, and of these what is kept of it."""
    most = 0
    for k, (encoded, _) in enumerate(iterate(files, *arguments, **loop)):
        learned = encoded._store.loop_position.loop
        most = max(most, learned.under_way if k >= 5 else 0)  # how large a batch is shows when the first is made
    return most, learned.nbytes, learned.kept


def test_so_many_bytes(files, emulated_gpu, monkeypatch):
    """A batch is decoded and resized pictures while it is worked on. One is always made ahead."""
    most, at_work, kept = most_under_way(files, size=16)
    assert most == threads.DEPTH
    assert at_work - kept >= 2 * _PICTURE
    assert kept >= 8 * _PICTURE
    for limit, expected in ((1, 1), (2 * at_work, 2), (3 * at_work, threads.DEPTH)):
        monkeypatch.setenv("NDD_LOOKAHEAD_BYTES", str(limit))
        assert most_under_way(files, size=16)[0] == expected, limit


def test_what_is_made_holds_less_than_what_is_worked_on(files, emulated_gpu, monkeypatch):
    _, at_work, kept = most_under_way(files, size=4)
    limit = kept + 2 * at_work
    assert limit < 3 * at_work
    monkeypatch.setenv("NDD_LOOKAHEAD_BYTES", str(limit))
    assert most_under_way(files, size=4)[0] == threads.DEPTH


def test_a_captured_loop_on_the_cpu_is_held_to_it(files, monkeypatch):
    assert most_under_way(files, "cpu", capture=True)[0] == threads.DEPTH
    monkeypatch.setenv("NDD_LOOKAHEAD_BYTES", "1")
    assert most_under_way(files, "cpu", capture=True)[0] == 1


@pytest.mark.parametrize("limit", [1, 5 * _BATCH + 5])
@pytest.mark.drawn(1)
def test_no_more_is_alive_at_any_time(files, emulated_gpu, monkeypatch, made, limit):
    monkeypatch.setenv("NDD_LOOKAHEAD_BYTES", str(limit))
    assert len(list(iterate(files))) == len(files) // 2
    own = 2 * _BATCH  # of the batch that the loop is at
    assert _BATCH < max(made["most"]) <= max(limit, 2 * _BATCH) + own


def test_decoded_pictures_go_when_they_are_resized(files, emulated_gpu, made):
    counts = [(len(made["image"]), len(made["resize"])) for _ in iterate(files)]
    assert max(resized for _, resized in counts) == threads.DEPTH
    assert max(decoded for decoded, _ in counts) == 0


def test_who_asks_for_them_gets_them(files, emulated_gpu, monkeypatch, made):
    """Made again when the loop asks the first time, and kept from then on."""
    waiting = []

    def pictures():
        reader, result = ndd.readers.File(files=files), []
        for k, (encoded, _) in enumerate(reader.next_epoch(batch_size=2)):
            images = ndd.decoders.image(encoded, device="gpu")
            resized = ndd.resize(images, size=[4, 4]).torch()
            if k >= 6:
                result += [images.torch().clone(), resized.clone()]
            let_read_on(reader)
            waiting.append(len(made["image"]))
        return result

    ahead = pictures()
    assert max(waiting) >= threads.DEPTH
    assert max(waiting[:6]) == 0
    monkeypatch.setenv("NDD_LOOKAHEAD", "0")
    assert all(torch.equal(a, b) for a, b in zip(ahead, pictures(), strict=True))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_waits_for_no_thread_of_its_parent(files, monkeypatch):
    """A batch that is being made when the loop forks is made again by the child."""
    resting, go_on = threading.Event(), threading.Event()
    run = Call.run

    def slow(self, invocation):
        if threads.is_ahead():
            resting.set()
            go_on.wait(30)
        return run(self, invocation)

    reader = ndd.readers.File(files=files)
    loop = reader.next_epoch(batch_size=2, capture=True)
    for k, (encoded, _) in enumerate(loop):
        if k == 2:
            monkeypatch.setattr(Call, "run", slow)
        images = ndd.decoders.image(encoded)
        if k == 3 and not (child := os.fork()):
            try:
                os._exit(0 if images.torch().shape == (2, 8, 8, 3) else 1)
            finally:
                os._exit(2)
        if k == 3:
            break
        images.torch()
        let_read_on(reader) if k < 2 else None
    status = os.waitpid(child, 0)[1]
    go_on.set()
    assert status == 0
