"""Lookahead changes when work is done, never what comes out."""

from __future__ import annotations

import time

import numpy as np
import pytest
import torch

import ndd
from ndd._execution import lookahead
from ndd._operator import ahead


@pytest.fixture
def folder(tmp_path):
    from PIL import Image

    rng = np.random.default_rng(0)
    for i in range(12):
        Image.fromarray(rng.integers(0, 255, (20 + i, 30, 3), np.uint8)).save(tmp_path / f"{i:02}.png")
    return sorted(map(str, tmp_path.iterdir()))


def started(monkeypatch):
    """A list that gets an entry for each batch that is worked on ahead."""
    counts = []
    real = ahead._made

    def made(*arguments):
        counts.append(1)
        return real(*arguments)

    monkeypatch.setattr(ahead, "_made", made)
    return counts


def epoch(reader, images=ndd.decoders.image, pause=0.02):
    found = []
    for encoded, _ in reader.next_epoch(batch_size=4):
        found.append(ndd.resize(images(encoded, device="gpu"), size=[8, 8]).torch().clone())
        time.sleep(pause)  # the reader has time to read on
    return torch.cat(found)


def test_a_repeating_loop_is_worked_on_ahead_with_the_same_values(folder, emulated_gpu, monkeypatch):
    counts = started(monkeypatch)
    found = [epoch(ndd.readers.File(files=folder)), epoch(ndd.readers.File(files=folder))]
    assert sum(counts) >= 2
    monkeypatch.setenv("NDD_LOOKAHEAD", "0")
    before = len(counts)
    plain = epoch(ndd.readers.File(files=folder))
    assert len(counts) == before
    assert all(torch.equal(a, plain) for a in found)


def test_a_loop_that_changes_its_mind_gets_what_it_asks_for(folder, emulated_gpu):
    reader = ndd.readers.File(files=folder)
    kinds = [ndd.types.RGB, ndd.types.RGB, ndd.types.GRAY]
    for (encoded, _), kind in zip(reader.next_epoch(batch_size=4), kinds, strict=True):
        images = ndd.decoders.image(encoded, device="gpu", output_type=kind)
        assert {s[2] for s in images.shape} == {1 if kind == ndd.types.GRAY else 3}
        time.sleep(0.02)


def test_a_bad_file_is_an_error_of_its_own_batch(folder, emulated_gpu):
    with open(folder[9], "wb") as file:
        file.write(b"not a picture")
    reader = ndd.readers.File(files=folder)
    outcomes = []
    for encoded, _ in reader.next_epoch(batch_size=4):
        try:
            outcomes.append(len(ndd.decoders.image(encoded, device="gpu").shape))
        except RuntimeError as error:
            outcomes.append("09.png" in str(error))
        time.sleep(0.02)
    assert outcomes == [4, 4, True]


def test_break_and_reset_leave_nothing_stale(folder, emulated_gpu):
    reader = ndd.readers.File(files=folder)
    for k, (encoded, _) in enumerate(reader.next_epoch(batch_size=4)):
        ndd.decoders.image(encoded, device="gpu").evaluate()
        time.sleep(0.02)
        if k == 1:
            break
    reader.reset()
    again = epoch(reader)
    assert torch.equal(again, epoch(ndd.readers.File(files=folder)))


def test_two_batches_are_under_way_while_one_is_used(folder, emulated_gpu, monkeypatch):
    """What reading and decoding are ahead of the loop: two batches, no more."""
    distances = []
    real = lookahead.Following.store

    def store(self, distance):
        found = real(self, distance)
        distances.append((distance, found is not None))
        return found

    monkeypatch.setattr(lookahead.Following, "store", store)
    reader = ndd.readers.File(files=folder * 3)
    epoch(reader, pause=0.1)
    assert (2, True) in distances
    assert max(d for d, _ in distances) == lookahead.DEPTH


def test_a_lookahead_leaves_nothing_behind(folder, emulated_gpu):
    """The values made ahead are those that the loop is given, and are not kept."""
    reader = ndd.readers.File(files=folder * 3)
    epoch(reader)
    assert len(reader._coming._made) <= lookahead.DEPTH
    reader.reset()
    epoch(reader)
    assert len(reader._coming._made) <= lookahead.DEPTH
