"""Lookahead: work on the reader's next batch before the loop asks for it.

An eager loop calls the same operators on each batch. Once an operator has been called in the same way on two batches
of a reader one after the other, it is run on the coming batch as soon as that has been read, on a thread of its own,
while the rest of the loop runs. If the loop does something else, the result is dropped; values never change.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ndd._execution.kept import Kept
from ndd._tensor import Store


class Following:
    """The way from a batch of a reader to the next one.

    Args:
        peek: gives the store of the same output of the next batch, or None if it has not been read; never waits.
        memory: a dict that all batches of one output share: what was done to the one before.
    """

    __slots__ = ("_peek", "memory")

    def __init__(self, peek: Callable[[], Store | None], memory: dict[str, Any]):
        self._peek = peek
        self.memory = memory

    def store(self) -> Store | None:
        """The next batch's store, if it is there."""
        return self._peek()


# Two threads, so that what Python prepares for one batch (20 us an image) overlaps the decoding of the one before.
_threads = Kept(lambda: ThreadPoolExecutor(2, thread_name_prefix="ndd-lookahead"))


def computed(store: Store, key: Any, now: Callable[[], Any], ahead: Callable[[Store], Any]) -> Any:
    """`now()`, or what was computed ahead of it; and starts `ahead(next store)` if the loop repeats itself.

    `key` says how the operator was called: only the same object counts as the same call.
    """
    known, store.ahead = store.ahead, None
    following = store.following
    if following is not None:
        repeats = following.memory.get("key") is key
        following.memory["key"] = key
        if repeats and enabled():
            _start(following.store(), key, ahead)
    if known is not None and known[0] is key:
        return known[1].result()
    return now()


def _start(store: Store | None, key: Any, ahead: Callable[[Store], Any]) -> None:
    if store is None or store.ahead is not None:
        return
    reference = weakref.ref(store)

    def run() -> Any:
        found = reference()
        return None if found is None else ahead(found)

    store.ahead = (key, _threads().submit(run))


def enabled() -> bool:
    """Whether lookahead is on; the environment variable `NDD_LOOKAHEAD=0` turns it off."""
    return os.environ.get("NDD_LOOKAHEAD", "1") != "0"
