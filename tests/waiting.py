"""Waiting for what other threads do: for the thing itself, however slow the machine is, and not for some time."""

from __future__ import annotations

import concurrent.futures
import time
from collections.abc import Callable
from typing import Any

SECONDS = 60.0  # two busy cores have taken eight for what takes one a hundredth


def wait_until(condition: Callable[[], Any]) -> None:
    """Returns when the condition holds; fails after a minute."""
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.005)


def let_read_on(reader: Any) -> None:
    """Returns when a reader has read as far ahead as it may, and what lookahead makes of these batches is made."""
    ahead = reader._session.ahead
    if ahead is None:
        return

    def rests() -> bool:
        with ahead._lock:
            busy = (
                ahead._parts or ahead._working or ahead._may_prepare() or any([group.left for group in ahead._coming])
            )
            return not busy

    wait_until(rests)
    stores = [values[0]._value() for _, values in reader._session.peeked._values]
    result = [i.future for store in stores if (i := store.iteration) is not None and i.future is not None]
    assert not concurrent.futures.wait(result, SECONDS).not_done, "waited too long"
