"""Captured loops over a reader, `next_epoch(batch_size, capture=True)`, and the rules for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ndd._lookahead.captured_loop import CapturedLoop
from ndd.readers.epochs.epoch import Epoch
from ndd.readers.sampling.sampler import LastBatch

if TYPE_CHECKING:
    from ndd.readers.reader import Reader


class CapturedLoops:
    """The captured loops of a reader.

    Attributes:
        loop: the recorded first iteration, common to all of them.
        checkpointing: the reader belongs to a checkpoint.
    """

    loop: CapturedLoop | None = None
    checkpointing = False


def captured_epoch(reader: Reader, size: int | None, ctx: Any, last: LastBatch) -> Iterator[Any]:
    """The batches of an epoch, in a loop whose iterations promise to do the same."""
    if size is None:
        raise ValueError("capture=True requires a non-None batch_size.")
    if reader._session.captured.checkpointing or reader._options.enable_checkpointing:
        raise NotImplementedError(
            f"{reader._display}: Checkpointing is not supported in capture mode (as in DALI): leave capture=True out, the "
            "values are the same"
        )
    progress = reader._session.progress
    progress.check("batches", size, captured=True)
    if not progress.captured:  # the first loop since the reader was made or reset
        reader._session.captured.loop = CapturedLoop(size)
        progress.captured, progress.mode, progress.batch = True, "batches", size
    loop: Any = reader._session.captured.loop

    def begun(begin: Callable[[], None]) -> Iterator[Any]:
        epoch = Epoch(reader, size, ctx, last)
        epoch._before = begin
        return iter(epoch)

    def free() -> None:
        progress.captured, progress.mode, progress.batch = False, None, None

    return loop.iterations(begun, free)


def enable_checkpointing(reader: Reader) -> None:
    """Called when a checkpoint takes the reader in."""
    if reader._session.progress.captured:
        raise NotImplementedError(
            f"{reader._display}: Checkpointing is not supported in capture mode (as in DALI): loop without capture=True"
        )
    reader._session.captured.checkpointing = True
