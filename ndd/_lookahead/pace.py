"""Pacing: whether a loop takes batches more slowly than they are made, so that they may be made with fewer cores.

There are two signs. If batches are finished well before the loop asks for them, its own Python is the bound. If the GPU still
works on earlier batches when one arrives, the network is the bound; the loop may wait for batches nevertheless, because its
Python runs ahead of the GPU.

If the GPU is the bound, work for later batches begins in the middle of an iteration. In its first half a training loop takes
its batch and runs the network forward; in the second it waits for torch to run the network backward. Beside a ResNet-50 on an
H200, batches of 256, loading costs 2.2 % of the rate instead of 3.3 %. Where the loop's Python is the bound (the same network,
batches of 64), no gain was measured.
"""

from __future__ import annotations

import threading
from time import perf_counter
from typing import Any

import torch

from ndd._cuda.event import recorded_on

# Beside a ResNet-50 that trains on an H200 with 16 cores, JPEGs decoded by the engines alone on 1.8 cores and by all threads
# on 4.5 feed it at the same rate.
_STEADY = 12  # iterations in a row whose batch has waited, before cores are given back
_MOST = 1 << 12  # such iterations, however often that was too few
_WAITED = 0.5  # of an iteration
_GRACE = 8  # iterations after the change, in which new decoders are made
_LONGEST_WAIT = 0.1  # seconds until the middle of an iteration


class Pace:
    """How one loop keeps up with what is made ahead for it.

    Attributes:
        relaxed: batches wait for the loop, which therefore needs no more than the GPU's own engines give.
    """

    __slots__ = (
        "_ahead", "_hurry", "_last", "_middle", "_needed", "_period", "_place", "_ready", "_run", "relaxed",
    )  # fmt: skip

    def __init__(self) -> None:
        self.relaxed = False
        self._last = self._period = 0.0
        self._middle = 0.0  # of the iteration; 0 where work begins at once
        self._hurry = threading.Event()
        self._needed = _STEADY
        self._run = 0  # iterations in a row with a sign for a change; below zero the grace after one
        self._place: Any = None  # an event on torch's stream, where the loop came to the batch
        self._ready: Any = None  # the event after all that made the batch before
        self._ahead: bool | None = None

    def begin(self, device_id: int, ready: Any) -> bool:
        """The loop comes to its next batch. Returns whether the GPU still had work of the loop when the last batch arrived.

        Args:
            ready: the event after all that made the last batch; None if it was not made ahead.
        """
        ahead, self._ahead = self._ahead, None
        if torch.cuda.is_available():
            self._ready, self._place = ready, recorded_on(torch.cuda.current_stream(device_id), device_id, self._place)
        return bool(ahead)

    def arrived(self) -> None:
        """Called when the CPU has finished work done ahead: records whether the GPU is waiting for it."""
        if self._ahead is None and self._place is not None:
            # The loop's stream waits for the last batch as well, which would say nothing about the loop.
            self._ahead = self._ready is not None and self._ready.query() and not self._place.query()

    def took(self, finished: float | None, now: float, ahead_of_gpu: bool = False) -> None:
        """The loop takes a batch.

        Args:
            finished: when the batch was made; None if it is still being made.
            now: in the same seconds.
            ahead_of_gpu: see `begin`.
        """
        period, self._last = now - self._last, now
        shorter, self._period = min(period, self._period), period
        spare = ahead_of_gpu and finished is not None and now - finished > period
        self._middle = now + min(shorter / 2, _LONGEST_WAIT) if spare else 0.0
        if self._hurry.is_set():
            self._hurry.clear()
        if self.relaxed:
            late = finished is None and not ahead_of_gpu
            self._run = self._run + 1 if late or self._run < 0 else 0
            if self._run >= 2:
                self.relaxed, self._run = False, 0
                self._needed = min(4 * self._needed, _MOST)  # else it would switch back and forth
        else:
            waited = ahead_of_gpu or (finished is not None and now - finished >= _WAITED * period)
            self._run = self._run + 1 if waited else 0
            if self._run >= self._needed:
                self.relaxed, self._run = True, -_GRACE

    def wait_for_middle(self) -> None:
        """On a thread of the lookahead: waits until the middle of the loop's iteration if the GPU is the bound and batches wait
        for longer than an iteration; ends when the loop waits for one (`hurry`)."""
        left = self._middle - perf_counter()
        if self.relaxed and left > 0:
            self._hurry.wait(left)

    def hurry(self) -> None:
        """The loop waits for a batch."""
        self._hurry.set()
