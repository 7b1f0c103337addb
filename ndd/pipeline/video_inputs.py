"""`fn.experimental.inputs.video`: a long video that is fed, and read as some sequences of frames in each run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import ndd
from ndd.pipeline.functions import OWN
from ndd.pipeline.node import add_node
from ndd.pipeline.operator_states import OperatorState
from ndd.pipeline.sources import ExternalSource


class VideoInput(ExternalSource):
    """The videos that were fed, and the position in the first of them."""

    def __init__(self, name: str | None, max_batch_size: int, how: dict[str, Any]):
        super().__init__(name, max_batch_size, None, {})
        self._how = how
        self._batches: Iterator[Any] = iter(())

    def feed(self, data: Any, layout: str | None = None) -> None:
        """Queues videos."""
        batch = data.batch if hasattr(data, "batch") and hasattr(data, "as_cpu") else data
        samples = batch.tensors if isinstance(batch, ndd.Batch) else list(batch)
        for sample in samples:
            self.queue.append(np.ascontiguousarray(np.asarray(sample)).reshape(-1))

    def next(self) -> list[Any]:
        """The next sequences of a video, up to a batch of them."""
        while (sequences := next(self._batches, None)) is None:
            if not self.queue:
                raise RuntimeError(
                    f"fn.experimental.inputs.video {self.name!r}: no data: feed_input({self.name!r}, [video]) gives it some"
                )
            self._batches = ndd.io.video.sequences(self.queue.popleft(), batch_size=self.max_batch_size, **self._how)
        return [sequences]


def video_input(
    *,
    sequence_length: int,
    name: str | None = None,
    last_sequence_policy: str = "partial",
    device: str | None = None,
    blocking: bool = False,
    no_copy: bool = False,
    affine: bool = True,
    preserve: bool = False,
    bytes_per_sample_hint: Any = None,
) -> Any:
    """Sequences of frames, u8 `[F, H, W, 3]`, layout "FHWC", of videos that `Pipeline.feed_input` gives.

    A run gives the next `batch_size` sequences of the video; the last run of a video may give fewer. After it comes the
    video that was fed next. RuntimeError for a run when there is none. Only the frames that a run gives are decoded. DALI
    drops all but the first of several videos fed at once; here they follow each other.

    Args:
        sequence_length: frames of a sequence.
        name: for `feed_input`, with the bytes of one encoded video: u8 `[1, bytes]`, or a list of one array.
        last_sequence_policy: "partial": the last sequence of a video may be short; "pad": it is filled up with zeros.
        device: "cpu", or "mixed" for frames on the GPU, whose engines decode what they can, as in `decoders.video`.
        blocking, no_copy, affine, preserve, bytes_per_sample_hint: no effect.
    """
    if sequence_length < 1:
        raise RuntimeError(f"fn.experimental.inputs.video: sequence_length: expected at least 1, got {sequence_length}")
    if last_sequence_policy not in ("partial", "pad"):
        raise RuntimeError(
            "fn.experimental.inputs.video: last_sequence_policy: expected 'partial' or 'pad', got "
            f"{last_sequence_policy!r}"
        )
    how = {
        "sequence_length": sequence_length,
        "device": "cpu" if device in (None, "cpu") else "gpu",
        "pad_sequences": last_sequence_policy == "pad",
    }

    def make(pipeline: Any, _: Any) -> VideoInput:
        video_source = VideoInput(name, pipeline.max_batch_size, {**how, "threads": pipeline.num_threads})
        return pipeline._new_source(video_source)

    call_state = OperatorState("experimental.inputs.video", make, name=name, is_source=True)
    return add_node(lambda run, source: run.data_of(source)[0], call_state=call_state)


OWN["experimental.inputs.video"] = video_input
