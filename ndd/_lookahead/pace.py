"""Pacing: whether a loop takes batches more slowly than they are made, so that they may be made with fewer cores."""

from __future__ import annotations

# Beside a ResNet-50 that trains on an H200 with 16 cores, JPEGs decoded by the engines alone on 1.8 cores and by all threads
# on 4.5 feed it at the same rate.
_STEADY = 12  # iterations in a row whose batch has waited, before cores are given back
_MOST = 1 << 12  # such iterations, however often that was too few
_WAITED = 0.5  # of an iteration
_GRACE = 8  # iterations after the change, in which new decoders are made


class Pace:
    """How one loop keeps up with what is made ahead for it.

    Attributes:
        relaxed: batches wait for the loop, which therefore needs no more than the GPU's own engines give.
    """

    __slots__ = ("_last", "_needed", "_run", "relaxed")

    def __init__(self) -> None:
        self.relaxed = False
        self._last = 0.0
        self._needed = _STEADY
        self._run = 0  # iterations in a row that speak for a change; below zero the grace after one

    def took(self, finished: float | None, now: float) -> None:
        """The loop takes a batch.

        Args:
            finished: when the batch was made; None if it is still being made.
            now: in the same seconds.
        """
        period, self._last = now - self._last, now
        if self.relaxed:
            late = finished is None
            self._run = self._run + 1 if late or self._run < 0 else 0
            if self._run >= 2:
                self.relaxed, self._run = False, 0
                self._needed = min(4 * self._needed, _MOST)  # else it would go to and fro
        else:
            waited = finished is not None and now - finished >= _WAITED * period
            self._run = self._run + 1 if waited else 0
            if self._run >= self._needed:
                self.relaxed, self._run = True, -_GRACE
