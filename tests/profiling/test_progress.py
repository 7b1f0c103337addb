"""`ndd.progress`: a bar over whatever is looped over."""

from __future__ import annotations

import io
import re
import sys
import time

import numpy as np
import pytest
import torch

import ndd
from ndd._execution import observation


def test_an_epoch_of_a_reader():
    shown = io.StringIO()
    epoch = ndd.readers.File(file_root=ndd.demo.photos()).next_epoch(batch_size=4)
    taken = [labels.torch().tolist() for _, labels in ndd.progress(epoch, desc="demo", file=shown, mininterval=0)]
    assert len(taken) == len(epoch)
    last = shown.getvalue().split("\r")[-1]
    assert re.search(rf"demo: 100%.* {len(epoch)}/{len(epoch)} ", last)
    assert re.search(r"\d images/s, \d+ % waiting", last)
    assert observation.active is None


def test_the_share_of_waiting():
    def slow():
        for _ in range(3):
            time.sleep(0.05)
            yield np.zeros((4, 4, 3), np.uint8)

    shares = []
    for pause in (0.0, 0.2):
        shown, source = io.StringIO(), ndd.ExternalSource(slow)
        for _ in ndd.progress((source(batch_size=2) for _ in range(3)), file=shown, mininterval=0):
            time.sleep(pause)
        shares.append(int(re.findall(r"(\d+) % waiting", shown.getvalue())[-1]))
    assert shares[0] > 50 > shares[1]


def test_the_share_of_waiting_for_a_loader_of_torch():
    """Also for a generator, whose work no profile sees."""

    def slow():
        for _ in range(4):
            time.sleep(0.02)
            yield torch.zeros(2)

    shares = []
    for seconds in (0.0, 0.1):
        shown = io.StringIO()
        for _ in ndd.progress(slow(), file=shown, mininterval=0):
            time.sleep(seconds)
        shares.append(int(re.findall(r"(\d+) % waiting", shown.getvalue())[-1]))
    assert shares[0] > 80
    assert 5 < shares[1] < 50


@pytest.mark.parametrize("item", [torch.zeros(3, 2), (torch.zeros(3), 1), {"x": np.zeros((3, 4))}, [np.zeros(3)]])
def test_other_loops(item):
    shown = io.StringIO()
    assert len(list(ndd.progress([item] * 4, file=shown, mininterval=0))) == 4
    assert "4/4" in shown.getvalue()


def test_a_loop_without_a_length_that_is_left():
    shown = io.StringIO()
    for k, _ in enumerate(ndd.progress(iter([1, 2, 3]), file=shown)):
        if k:
            break
    import gc

    gc.collect()
    assert observation.active is None


@pytest.mark.parametrize("epoch", [5, None, ndd.readers.File])
def test_what_is_no_loop(epoch):
    with pytest.raises(
        TypeError, match=r"ndd\.progress: epoch: expected an epoch of a reader.*, got (int|NoneType|\w+)"
    ):
        ndd.progress(epoch)


def test_tqdm_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(ImportError, match=r"ndd\.progress: tqdm is missing .*pip install tqdm"):
        ndd.progress([1])


def test_no_rate_of_images_where_there_are_none():
    shown = io.StringIO()
    assert list(ndd.progress([1, 2, 3], file=shown)) == [1, 2, 3]
    assert "% waiting" in shown.getvalue()
    assert "images/s" not in shown.getvalue()
