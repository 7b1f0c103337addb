"""Deciding: whether to run ahead of a loop, by how many batches, and how many of them to merge into one."""

from __future__ import annotations

from ndd._execution.context import EvalContext
from ndd._lookahead.captured_loop import current_loop
from ndd._lookahead.prefetch import prefetch
from ndd._lookahead.recording import LoopRecording, ReaderOutput, kind_of
from ndd._lookahead.threads import DEPTH, enabled, most_bytes
from ndd._tensor import Store

# Limits of merging: batches; samples (more bring no gain); seconds, which are wasted when the loop ends.
# Python's share of a batch is a few ms: with slower ones it does not matter.
_MAX_BATCHES = 8
_MAX_SAMPLES = 256
_MAX_SECONDS = 0.1


def look_ahead(loop: LoopRecording, batch: Store, context: EvalContext) -> None:
    """An iteration has begun with `batch`: starts the work that is expected of the next ones."""
    gpus = {d.device_id for call in loop.expected if (d := call.cached.device).device_id is not None}
    if len(gpus) > 1:  # an event after the work of one says nothing about the other's
        return
    gpu = gpus.pop() if gpus else None
    if not loop.expected or (gpu is None and current_loop() is None) or not enabled():
        return
    loop.gpu = gpu
    # A reader's values on a GPU have their own stream to wait for.
    count = 1 if gpu is None or not batch.on_cpu else _batches_to_merge(loop)
    while loop.under_way + count <= DEPTH * count:
        if loop.under_way and not _fit(loop, batch.loop_position, count):
            break
        batches = _coming_batches(batch.loop_position, loop, count)
        known = bool(batches) and batches[0].iteration is not None
        if not batches or (len(batches) < count and loop.under_way > 1 and not known):
            break  # more will be there when the loop comes again
        # All, or one if there is nothing else to do: decoders are made for a size of batches, and those of two sizes would
        # share the cores.
        if len(batches) < count:
            batches = batches[:1]
        loop.under_way += len(batches)
        if not known:
            prefetch(loop, batches, loop.under_way - len(batches) + 2, context, gpu)


def _batches_to_merge(loop: LoopRecording) -> int:
    """One until the size of the results is known."""
    usual = loop.expected[0].n
    if not loop.nbytes or 2 * usual > _MAX_SAMPLES:
        return 1
    if not all([call.mergeable and call.n == usual for call in loop.expected]):
        return 1
    by_bytes = most_bytes() // DEPTH // loop.nbytes
    return max(1, min(_MAX_BATCHES, _MAX_SAMPLES // usual, by_bytes, int(_MAX_SECONDS / loop.seconds)))


def _fit(loop: LoopRecording, output: ReaderOutput, count: int) -> bool:
    """Whether there is room for `count` more batches. Those that are made hold less than those that are worked on."""
    most, under_way = most_bytes(), loop.under_way
    if not loop.nbytes:
        return False  # the size of a batch is known after the first one
    if (under_way + count) * loop.nbytes <= most:
        return True
    iterations = [store.iteration for k in range(1, under_way + 1) if (store := output.peek(k)) is not None]
    finished = len([i for i in iterations if i is not None and i.finished is not None])
    return finished * loop.kept + (under_way - finished + count) * loop.nbytes <= most


def _coming_batches(output: ReaderOutput, loop: LoopRecording, count: int) -> list[Store]:
    """The next batches that have been read, are of the kind of those before, and that no thread works on yet; or one that a
    thread works on."""
    batches: list[Store] = []
    while len(batches) < count:
        store = output.peek(loop.under_way + len(batches) + 1)
        if store is None or (batches and store.iteration is not None):
            break
        if store.iteration is not None:
            return [store]
        if kind_of(store) != loop.kind:
            break
        batches.append(store)
    return batches
