"""The part of a reader in a worker process of torch's DataLoader: it returns its share of the loader's current epoch.

Worker w of n gives the batches w, w + n, w + 2n and so on. The loader takes them in turn, so they come in the order that the
epoch has in one process, however it is shuffled, cut and ended. The reader has come from another process, by a fork or as a
pickle, and stands where it stood there: `worker_log` says how many epochs the loader has had since.
"""

from __future__ import annotations

import multiprocessing
import os
import secrets
import zlib
from typing import TYPE_CHECKING, Any, Literal

from torch.utils.data import IterableDataset, get_worker_info

from ndd.readers.epochs import worker_log
from ndd.readers.epochs.state import parse
from ndd.readers.sampling.sampler import Position, Share

if TYPE_CHECKING:
    from ndd.readers.epochs.epoch import Epoch
    from ndd.readers.epochs.session import Session


class Origin:
    """The process in which a reader was made, and its part as a worker if that is another process."""

    def __init__(self) -> None:
        self._home = os.getpid()
        self._name = secrets.token_hex(8)
        self._generation: int | None = None
        self._worker: Worker | None = None

    def sent(self, session: Session) -> dict[str, Any]:
        """The fields for a pickle of the reader."""
        return {
            "home": self._home,
            "name": self._name,
            "generation": session.progress.generation,
            "place": session.options.place() if session.options.shard == "auto" else None,
            "log": worker_log.sent(),
        }

    def received(self, session: Session, sent: dict[str, Any]) -> None:
        """Takes over the fields of `sent`, in another process."""
        worker_log.received(sent["log"])
        if sent["home"] != os.getpid():
            self._home, self._name, self._generation = sent["home"], sent["name"], sent["generation"]
            session.options.sent_place = sent["place"]

    def worker(self, session: Session) -> Worker | None:
        """The reader's part as an iterable data set in a worker process, unless it was made in this process."""
        info = get_worker_info()
        if info is None or self._home == os.getpid() or not isinstance(info.dataset, IterableDataset):
            return None
        if self._worker is None or self._worker.process != os.getpid():
            generation = session.progress.generation if self._generation is None else self._generation
            self._worker = Worker(session, info, f"{self._name} {generation}")
        return self._worker


class Worker:
    """The share of one worker, and the epochs that it visits.

    Attributes:
        process: the process id.
        share: the batches that this worker returns.
        loaded: the reader has a saved state, with which the next epoch begins.
    """

    def __init__(self, session: Session, info: Any, name: str):
        self.process = os.getpid()
        self.share = Share(info.id, info.num_workers)
        self.loaded = False
        self._arrived = False  # at an epoch that has not begun
        self._seed = info.seed - info.id  # the same in all workers of a loop
        self._count = 0
        self._place = str(session.state())
        with session.progress.same_use():
            session.progress.restore(session.progress.saved())  # the parent's epoch is the rest of one
        self._fields = session.progress.saved()
        parent = multiprocessing.parent_process()
        place = zlib.crc32(repr(self._fields).encode())
        self._name = f"{name} {os.getppid() if parent is None else parent.pid} {place}"

    def arrive(self, session: Session, user: Epoch[Any] | Literal["calls"]) -> None:
        """Go to the place of the coming epoch, unless that has been done. The reader's lock is held."""
        if self._arrived and not self.loaded:
            return
        with session.progress.same_use():
            self._go(session, user)
        self._arrived, self.loaded = True, False
        self._count += 1

    def _go(self, session: Session, user: Epoch[Any] | Literal["calls"]) -> None:
        progress, loop = session.progress, worker_log.Loop(self._name, self._seed, self._count)
        if self.loaded:
            if user != "calls":
                worker_log.resumed(loop, self.share.index, self._after(session, user))
            return
        place, number = worker_log.number(loop, self.share.index)
        if place not in (None, self._place):
            session.load(parse(session.name, place))
            self._place, self._fields = place, progress.saved()
        progress.restore(self._fields)
        if user == "calls":
            progress.position = Position(progress.position.visit + number) if number else progress.position
            return
        session.stay_in_step(user._last)
        progress.skip_epochs(session.opened()[1], user._batch, user._last, number)

    def begin(self, session: Session, user: Epoch[Any] | Literal["calls"]) -> Share:
        """The share of an epoch that begins now."""
        self.arrive(session, user)
        self._arrived = False
        return self.share

    def _after(self, session: Session, epoch: Epoch[Any]) -> str:
        """The place after the epoch that comes next."""
        progress = session.progress
        session.stay_in_step(epoch._last)
        before = progress.saved()
        progress.skip_epochs(session.opened()[1], epoch._batch, epoch._last, 1)
        place = str(session.state())
        progress.restore(before)
        return place
