"""`Progress`: the position of a reader. Bookkeeping only: it reads nothing and has no thread."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ndd.readers.sampling.sampler import (
    LastBatch,
    Order,
    Position,
    Share,
    check_not_all_dropped,
    epoch_batches,
    place_after,
    promised,
)

if TYPE_CHECKING:
    from ndd.readers.epochs.epoch import Epoch, Pass
    from ndd.readers.epochs.in_flight import StepInFlight


@dataclass
class Progress:
    """The place in the stream, the running epoch, and the mode that a reader was first used in.

    Attributes:
        position: the place after the step that was handed over last (reading ahead does not move it).
        began: the visit with which the stream began; since then all ranks that are in step have taken as much as this one.
        epoch: the number of the running or the next epoch.
        left: the batches that the running epoch still owes; 0 between epochs.
        left_batch: the batch size in which `left` counts.
        surplus: the samples of those batches beyond what the epoch owes; negative if a last batch is left out. None if the
            epoch has had this batch size from its beginning.
        last: how epochs end. Epochs other than "fill" begin with a visit and have the number of the visit.
        resuming: `left` comes from a saved state, and the next epoch gives only those batches.
        mode, batch: "samples", "batches" or "calls", and the batch size, once used.
        captured: the batches are those of captured loops.
        generation: counts jumps; epochs that began before a jump are over.
        resets: counts the jumps that the user asked for.
        number, taken: the numbers of the steps that were handed over and taken last.
        jumped: the place is not the one after the last step: the batches that were read ahead are wrong.
        share: the batches of the running epoch that this process gives, see `loader_worker.py`.
        skip: the batches of other processes before the next one of this process.
    """

    reader: str
    position: Position = field(default_factory=Position)
    began: int = 0
    epoch: int = 0
    left: int = 0
    left_batch: int = 1
    surplus: int | None = None
    last: LastBatch = "fill"
    resuming: bool = False
    mode: str | None = None
    batch: int | None = None
    captured: bool = False
    generation: int = 0
    resets: int = 0
    number: int = 0
    taken: int = 0
    jumped: bool = False
    share: Share = field(default_factory=Share)
    skip: int = 0

    def check(self, mode: str, batch: int | None, captured: bool = False) -> None:
        """RuntimeError if the mode differs from the one in use, ValueError if the batch size does."""
        if self.mode is None:
            return
        if captured != self.captured and mode != "calls":
            before, now = ("without", "capture") if captured else ("with", "eager")
            raise RuntimeError(
                f"{self.reader}: This reader was previously used {before} capture=True and cannot switch to {now} mode. "
                "Call reader.reset() to change it."
            )
        if captured and batch != self.batch:
            raise ValueError(f"{self.reader}: Cannot change batch_size from {self.batch} to {batch} in captured loops")
        if mode != self.mode or (self.captured and not captured):
            raise RuntimeError(
                f"{self.reader}: Cannot mix `samples`, `batches` and `__call__` on the same reader: it is in use for "
                f"{self.mode}. Make a second reader for {mode}, or call reader.reset()."
            )
        if batch != self.batch:
            error = RuntimeError if mode == "calls" else ValueError
            raise error(
                f"{self.reader}: `batch_size` {batch} is different than the `max_batch_size` {self.batch} used in the "
                "previous call. Call reader.reset() to change it."
            )

    def epoch_length(self, order: Order, batch: int | None, last: LastBatch = "fill", whole: bool = False) -> int:
        """The number of batches of an epoch that starts now. With `whole` it includes those before the saved state from which
        the epoch continues."""
        size = batch or 1
        if not whole and self._finishes(order, size, last):
            return self._rest(order, size, last)
        return epoch_batches(order, self._coming(order, size, last), size, last)

    def begin(self, order: Order, epoch: Epoch[Any], run: Pass, share: Share) -> bool:
        """Start a pass over an epoch and set its number of batches. True if it continues an unfinished epoch.

        No signal can interrupt the changes: all calls come before them.
        """
        batch, last, size = epoch._batch, epoch._last, epoch._batch or 1
        finishes = self._finishes(order, size, last)
        left = self.epoch_length(order, batch, last)
        whole = self.epoch_length(order, batch, last, whole=True) if epoch._whole else left
        goes_on = self.last == last == "fill"
        unfinished = bool(self.left) and not self.resuming and last == "fill"
        number, place, skip = self._coming(order, size, last), self.position, share.index
        if finishes:
            self._check_share(share, size, last)
            skip = self.skip if self.share.count > 1 else skip
            surplus = left * size - self._owed(order, size, last)
        else:
            surplus = None
            if last != "fill":
                place = self._fresh(order, size, last)
                check_not_all_dropped(order.unpadded.length(number), size, last)
        began = place.visit if not (finishes or goes_on or place.offset) else self.began
        generation = self.generation + (not (finishes or goes_on))  # epochs that others have begun are over
        own = max(0, -(-(left - skip) // share.count))
        after = left - 1 - skip - (own - 1) * share.count if own else left
        self.jumped = self.jumped or place != self.position
        if place != self.position:
            self.number = self.taken
        self.position, self.epoch, self.generation, self.began = place, number, generation, began
        self.mode, self.batch = "samples" if batch is None else "batches", batch
        self.left, self.left_batch, self.surplus, self.last, self.resuming = left, size, surplus, last, False
        self.share, self.skip = share, skip
        run.after, run.stride, run.resets = after, share.count, self.resets
        run.total, run.generation, run.left = whole, generation, own
        return unfinished

    def skip_epochs(self, order: Order, batch: int | None, last: LastBatch, count: int) -> None:
        """Advance by `count` epochs; the rest of an interrupted one counts as one."""
        size = batch or 1
        while count:
            finishes, steps = self._finishes(order, size, last), self.epoch_length(order, batch, last)
            if last == "fill":
                self.position = place_after(order, self.position, steps, size)
                self.epoch += not (finishes and not steps)  # it was counted when its last batch was given
                count -= 1
            else:
                visit = (self.position if finishes else self._fresh(order, size, last)).visit
                if self.share.count > 1:  # the place after the last batch of all is the next visit, its number the next
                    visit = self.epoch - (not steps)
                passed = 1 if order.is_rest(visit) else count
                self.position = Position(visit + passed)
                self.epoch, count = self.position.visit, count - passed
            self.left, self.last, self.share = 0, last, Share()

    def _finishes(self, order: Order, size: int, last: LastBatch) -> bool:
        """Whether the next epoch is the rest of one that a saved state interrupted. If nothing is left of it, it is over."""
        if self.share.count > 1:
            return self.resuming
        return self.resuming and self.left > 0 and self._rest(order, size, last) > 0

    def _coming(self, order: Order, size: int, last: LastBatch) -> int:
        """The number of the next epoch, or of the interrupted one that is finished next."""
        if last == "fill":
            return self.epoch
        return (self.position if self._finishes(order, size, last) else self._fresh(order, size, last)).visit

    def _rest(self, order: Order, size: int, last: LastBatch) -> int:
        """The batches that are left of an interrupted epoch, whatever the batch size was before."""
        if self.share.count > 1:
            return self.left
        if last == "fill":
            return -(-self._owed(order, size, last) // size)
        return epoch_batches(order, self.position.visit, size, last, taken=self.position.offset)

    def _owed(self, order: Order, size: int, last: LastBatch) -> int:
        """The samples that are left of an interrupted epoch. The number is equal in ranks that are in step, except if the epoch
        began with "fill" and ends otherwise: then it is the rest of the visit."""
        visit = self.position.visit
        if self.last == "fill" and last != "fill":
            return promised(order, visit, size, last) - self.position.offset
        number = self.epoch if self.last == "fill" else visit
        begun, surplus = promised(order, number, self.left_batch, self.last), self.surplus
        if surplus is None:
            surplus = epoch_batches(order, number, self.left_batch, self.last) * self.left_batch - begun
        owed = self.left * self.left_batch - surplus
        return max(1, owed if last == self.last else owed + promised(order, visit, size, last) - begun)

    def _check_share(self, share: Share, size: int, last: LastBatch) -> None:
        """ValueError if another worker asks for the rest of a worker's share, or cuts it in another way: samples would be lost
        or doubled."""
        if self.share.count == 1 or (self.share, self.left_batch, self.last) == (share, size, last):
            return
        raise ValueError(
            f"{self.reader}: the state is of worker {self.share.index} of {self.share.count} of a DataLoader, with batches of "
            f'{self.left_batch} sample(s) and last_batch="{self.last}"; only the same worker can go on with it in the same '
            f'way, not worker {share.index} of {share.count} with batches of {size} and last_batch="{last}"'
        )

    def _fresh(self, order: Order, size: int, last: LastBatch) -> Position:
        """The beginning of the next visit of which nothing was given. With "drop" it skips a rest that has no whole batch: it
        belongs to an epoch of other processes."""
        place = self.position if not self.position.offset else Position(self.position.visit + 1)
        while last == "drop" and order.is_rest(place.visit) and promised(order, place.visit, size, last) < size:
            place = Position(place.visit + 1)
        return place

    def use(self, mode: str, batch: int | None, share: Share) -> None:
        """Lock the mode and the batch size."""
        if self.mode is None and self.share.count == 1:
            self.share, self.skip = share, share.index
        self.mode, self.batch = mode, batch

    def pass_by(self, held: StepInFlight, run: Pass | None) -> None:
        """Go on after a step that has no value. Nothing is called, see `StepInFlight`."""
        if held.number > self.number:
            self.number, self.position = held.number, held.step.position
            self.skip = self.share.count - 1
        if run is not None:
            run.left -= 1  # type: ignore[operator]
            if run.generation == self.generation:
                self.left = run.after + run.stride * run.left  # type: ignore[operator]
                self.epoch += not self.left
        held.delivered, held.step, held.run = True, None, None

    def reset(self, epoch: int | None) -> None:
        """Go to the start of an epoch; default: the next one of which nothing was given."""
        if epoch is None:
            epoch = self.epoch + bool(self.left)
            if self.mode == "calls":
                epoch = self.position.visit + 1
        self._jump(Position(epoch), epoch, 0, 1, resuming=False)
        self.began = epoch

    def saved(self) -> dict[str, Any]:
        """The place as plain values."""
        fields = {"epoch": self.epoch, "left": self.left, "left_batch": self.left_batch, "last": self.last}
        if self.surplus is not None:
            fields["surplus"] = self.surplus
        if self.share.count > 1:
            fields.update(worker=list(self.share), skip=self.skip)
        return {**fields, **self.position._asdict(), "began": self.began}

    def restore(self, fields: dict[str, Any]) -> None:
        """Go to a saved place."""
        position = Position(fields["visit"], fields["offset"], fields["draw"])
        self._jump(position, fields["epoch"], fields["left"], fields["left_batch"], resuming=True)
        self.last, self.began, self.surplus = fields.get("last", "fill"), fields.get("began", 0), fields.get("surplus")
        self.share, self.skip = Share(*fields.get("worker", (0, 1))), fields.get("skip", 0)

    @contextlib.contextmanager
    def same_use(self) -> Iterator[None]:
        """For moves of the place that the user did not ask for: the mode stays, and running passes get an error instead of an
        end."""
        before = self.resets, self.mode, self.batch, self.captured
        yield
        self.resets, self.mode, self.batch, self.captured = before

    def _jump(self, position: Position, epoch: int, left: int, left_batch: int, resuming: bool) -> None:
        self.position, self.epoch, self.left, self.left_batch = position, epoch, left, left_batch
        self.resuming, self.mode, self.batch, self.captured = resuming, None, None, False
        self.share, self.skip, self.surplus = Share(), 0, None
        self.generation += 1
        self.resets += 1
        self.number, self.jumped = self.taken, True  # steps that were taken before no longer move the place
