"""A loop that takes batches slowly gets them from fewer cores, and one that speeds up gets all of them back."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
import torch
from PIL import Image
from waiting import let_read_on

import ndd
from ndd._lookahead import threads
from ndd._lookahead.pace import _GRACE, _STEADY, Pace
from ndd._operator.call import Call
from ndd.decoders.nvimgcodec import decoder_pool


def iterations(pace, count, waited, period=1.0, start=0.0):
    """Lets the loop take batches that have waited that long; None: that are not made yet."""
    for k in range(count):
        now = start + k * period
        pace.took(None if waited is None else now - waited, now)


def test_batches_that_wait_relax_the_pace():
    pace = Pace()
    iterations(pace, _STEADY - 1, 0.6)
    assert not pace.relaxed
    iterations(pace, 1, 0.6, start=_STEADY - 1)
    assert pace.relaxed


def test_batches_that_are_just_ready_do_not():
    pace = Pace()
    iterations(pace, 10 * _STEADY, 0.3)
    assert not pace.relaxed


def test_a_late_batch_begins_the_count_again():
    pace = Pace()
    for k in range(10):
        iterations(pace, _STEADY - 1, 2.0, start=100 * k)
        pace.took(None, 100 * k + _STEADY)
    assert not pace.relaxed


def test_late_batches_bring_the_cores_back_and_the_next_change_takes_longer():
    pace = Pace()
    iterations(pace, _STEADY, 2.0)
    iterations(pace, _GRACE, None)
    assert pace.relaxed  # decoders are being made
    iterations(pace, 1, None)
    iterations(pace, 1, 2.0)
    iterations(pace, 1, None)
    assert pace.relaxed  # one late batch may be chance
    iterations(pace, 1, None)
    assert not pace.relaxed
    iterations(pace, 4 * _STEADY - 1, 2.0)
    assert not pace.relaxed
    iterations(pace, 1, 2.0, start=4 * _STEADY)
    assert pace.relaxed


def test_a_gpu_with_work_before_it_relaxes_the_pace_and_keeps_it_so():
    """The loop waits for each batch, since its Python is ahead of the GPU, which is the bound."""
    pace = Pace()
    for k in range(_STEADY):
        pace.took(None, float(k), ahead_of_gpu=True)
    assert pace.relaxed
    for k in range(100):
        pace.took(None, 100.0 + k, ahead_of_gpu=True)
    assert pace.relaxed


def test_work_begins_in_the_middle_of_an_iteration_if_the_gpu_is_the_bound(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("ndd._lookahead.pace.perf_counter", lambda: now[0])
    pace, waits = Pace(), []
    monkeypatch.setattr(pace._hurry, "wait", waits.append)

    def taken(finished, ahead_of_gpu=True):
        now[0] += 0.02
        pace.took(None if finished is None else now[0] - finished, now[0], ahead_of_gpu)
        now[0] += 0.004  # a thread begins
        waits.clear()
        pace.wait_for_middle()
        now[0] -= 0.004
        return [round(wait, 6) for wait in waits]

    for _ in range(_STEADY + _GRACE):
        taken(0.05)
    assert pace.relaxed
    assert taken(0.05) == [0.006]
    assert taken(0.015) == []  # it was made within the iteration: there is no time to lose
    assert taken(None) == []
    assert taken(0.05, ahead_of_gpu=False) == []  # the loop's Python is the bound
    now[0] += 10  # a validation
    taken(0.05)
    assert taken(0.05) == [0.006]
    pace.relaxed = False
    assert taken(0.05) == []


def test_a_loop_that_waits_for_a_batch_ends_the_wait_for_the_middle():
    pace = Pace()
    pace.relaxed, pace._middle = True, time.perf_counter() + 30
    waiting = threading.Thread(target=pace.wait_for_middle)
    waiting.start()
    pace.hurry()
    waiting.join(10)
    assert not waiting.is_alive()


class Passed:
    """An event that the GPU has passed, or not."""

    def __init__(self, passed):
        self.query = lambda: passed


@pytest.mark.parametrize(
    ("ready", "place", "ahead"),
    [
        (Passed(True), Passed(False), True),  # the network is at work
        (Passed(True), Passed(True), False),  # the GPU waits for the batch
        (Passed(False), Passed(False), False),  # the GPU still makes the batch before: nothing but loading
        (None, Passed(False), False),
    ],
)
def test_whether_the_gpu_has_work_when_a_batch_arrives(monkeypatch, ready, place, ahead):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: None)
    monkeypatch.setattr("ndd._lookahead.pace.recorded_on", lambda stream, device, event: place)
    pace = Pace()
    assert not pace.begin(0, None)
    assert not pace.begin(0, ready)
    pace.arrived()
    assert pace.begin(0, ready) is ahead
    assert not pace.begin(0, ready)  # nothing has arrived since


def test_the_engines_decode_all_for_a_slow_loop():
    default = np.float32(0.65)
    with threads.at_pace(True):
        assert decoder_pool.share(default, 256, 1 << 24, 16) == 1
        assert decoder_pool.share(0.3, 256, 1 << 24, 16) == 0.3  # what the user says stays
    assert decoder_pool.share(default, 256, 1 << 24, 16) == default


@pytest.fixture
def paces(monkeypatch):
    """Whether the pace was relaxed, at each call that was run ahead."""
    noted = []
    compute = Call._compute

    def noting(self, *arguments):
        if threads.is_ahead():
            noted.append(threads.is_relaxed())
        return compute(self, *arguments)

    monkeypatch.setattr(Call, "_compute", noting)
    return noted


def test_a_slow_loop_relaxes_what_runs_ahead_of_it(tmp_path, emulated_gpu, paces):
    for i in range(4):
        Image.fromarray(np.full((8, 8, 3), i, np.uint8)).save(tmp_path / f"{i}.png")
    files = sorted(map(str, tmp_path.iterdir()))

    def run(seconds):
        reader = ndd.readers.File(files=files * 12)
        for encoded, _ in reader.next_epoch(batch_size=2):
            ndd.resize(ndd.decoders.image(encoded, device="gpu"), size=[8, 8]).torch()
            let_read_on(reader)
            time.sleep(seconds)

    run(0.05)
    assert paces[-1]
    assert not paces[0]
