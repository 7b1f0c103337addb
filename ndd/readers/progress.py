"""`Progress`: how far a reader has come. Bookkeeping only; it reads nothing and holds no thread."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ndd.readers.sampler import LastBatch, Order, Position, check_not_all_dropped, epoch_batches

if TYPE_CHECKING:
    from ndd.readers.epoch import Epoch
    from ndd.readers.handover import Held


@dataclass
class Progress:
    """The place in the stream, the running epoch, and the mode that a reader was first used in.

    Attributes:
        position: after what was handed over last (reading ahead does not move it).
        began: the visit that the stream began with; since then all ranks that are in step have taken as much as this one.
        epoch: the number of the running or coming epoch.
        left: batches that the running epoch still owes; 0 between epochs.
        left_batch: the batch size in which `left` counts.
        last: how epochs end. Other epochs than "fill" begin with a visit, and their number is the visit's.
        resuming: `left` comes from a saved state, and the next epoch only gives those batches.
        mode, batch: "samples", "batches" or "calls", and the batch size, once used.
        captured: the batches are those of captured loops.
        generation: counts jumps; epochs that began before one are over.
        number, taken: of the step that was handed over last, and of the one that was taken last.
        jumped: the place is another one than after the step handed over last: what was read ahead is wrong.
    """

    reader: str
    position: Position = field(default_factory=Position)
    began: int = 0
    epoch: int = 0
    left: int = 0
    left_batch: int = 1
    last: LastBatch = "fill"
    resuming: bool = False
    mode: str | None = None
    batch: int | None = None
    captured: bool = False
    generation: int = 0
    number: int = 0
    taken: int = 0
    jumped: bool = False

    def check(self, mode: str, batch: int | None, captured: bool = False) -> None:
        """RuntimeError for another mode than before, ValueError for another batch size."""
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
        """How many batches an epoch that starts now has; with `whole`, those before the saved state that it goes on from
        as well."""
        size, finishes = batch or 1, self._finishes(last)
        if whole or not finishes:
            return epoch_batches(order, self.epoch if last == "fill" or finishes else self._fresh.visit, size, last)
        if size == self.left_batch:
            return self.left
        if last != "fill":
            return epoch_batches(order, self.position.visit, size, last, given=self.position.offset)
        # Resumed with another batch size than when the state was taken: the samples that were not given yet.
        given = epoch_batches(order, self.epoch, self.left_batch) - self.left
        rest = order.counted(self.epoch, "fill") - given * self.left_batch
        return max(1, -(-rest // size))

    def begin(self, order: Order, epoch: Epoch[Any]) -> bool:
        """Start an epoch and tell it how many batches it has. Whether it goes on where the one before was left unfinished.

        All at once, as far as signals see: what is called is called before.
        """
        batch, last = epoch._batch, epoch._last
        left = self.epoch_length(order, batch, last)
        whole = len(epoch) if epoch._whole else left
        unfinished = bool(self.left) and not self.resuming and last == "fill"
        afresh = not self._finishes(last) and not last == self.last == "fill"
        place, number, generation = self.position, self.epoch, self.generation
        if last != "fill" and afresh:
            place = self._fresh
            number, generation = place.visit, generation + 1
            check_not_all_dropped(order.unpadded.length(number), batch or 1, last)
        began = place.visit if afresh and not place.offset else self.began
        self.jumped = self.jumped or place != self.position
        if place != self.position:
            self.number = self.taken
        self.position, self.epoch, self.generation, self.began = place, number, generation, began
        self.mode, self.batch = "samples" if batch is None else "batches", batch
        self.left, self.left_batch, self.last, self.resuming = left, batch or 1, last, False
        epoch._left, epoch._total, epoch._generation = left, whole, generation
        return unfinished

    def _finishes(self, last: LastBatch) -> bool:
        """Whether the coming epoch is the rest of one that a saved state interrupted."""
        return self.resuming and self.left > 0 and last == self.last

    @property
    def _fresh(self) -> Position:
        """The beginning of the next visit of which nothing was given."""
        return self.position if not self.position.offset else Position(self.position.visit + 1)

    def use(self, mode: str, batch: int | None) -> None:
        """Lock the mode and the batch size."""
        self.mode, self.batch = mode, batch

    def pass_by(self, held: Held, epoch: Epoch[Any] | None) -> None:
        """Go on after a step that has no value. Nothing is called, see `Held`."""
        if held.number > self.number:
            self.number, self.position = held.number, held.step.position
        if epoch is not None:
            epoch._left -= 1  # type: ignore[operator]
            if epoch._generation == self.generation:
                self.left = epoch._left  # type: ignore[assignment]
                self.epoch += not epoch._left
        held.given, held.step, held.epoch = True, None, None

    def reset(self, epoch: int | None) -> None:
        """Go to the start of an epoch, by default of the next one that nothing was read for."""
        if epoch is None:
            epoch = self.epoch + bool(self.left)
            if self.mode == "calls":
                epoch = self.position.visit + 1
        self._jump(Position(epoch), epoch, 0, 1, resuming=False)
        self.began = epoch

    def saved(self) -> dict[str, Any]:
        """The place as plain values."""
        fields = {"epoch": self.epoch, "left": self.left, "left_batch": self.left_batch, "last": self.last}
        return {**fields, **self.position._asdict(), "began": self.began}

    def restore(self, fields: dict[str, Any]) -> None:
        """Go to a saved place."""
        position = Position(fields["visit"], fields["offset"], fields["draw"])
        self._jump(position, fields["epoch"], fields["left"], fields["left_batch"], resuming=True)
        self.last, self.began = fields.get("last", "fill"), fields.get("began", 0)

    def _jump(self, position: Position, epoch: int, left: int, left_batch: int, resuming: bool) -> None:
        self.position, self.epoch, self.left, self.left_batch = position, epoch, left, left_batch
        self.resuming, self.mode, self.batch, self.captured = resuming, None, None, False
        self.generation += 1
        self.number, self.jumped = self.taken, True  # what was taken before moves the place no more
