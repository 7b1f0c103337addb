"""`fn.experimental.inputs.video`: a long video that is fed, some sequences of frames a run."""

from __future__ import annotations

from typing import Any

import ndd
from ndd.pipeline.conditions import whole
from ndd.pipeline.functions import OWN
from ndd.pipeline.sources import ExternalSource
from ndd.pipeline.unclaimed import pipeline_of


class VideoInput(ExternalSource):
    """The videos that were fed, and the place in the first of them."""

    def __init__(self, name: str | None, max_batch_size: int, sequence_length: int, pads: bool, device: str):
        super().__init__(name, max_batch_size, None, {})
        self.sequence_length, self.pads, self.device = sequence_length, pads, device
        self._encoded: Any = None
        self._place = 0  # the frame that comes next

    def feed(self, data: Any, layout: str | None = None) -> None:
        """Queues a video: a batch of one sample."""
        super().feed(data, layout)
        (batch,) = self.queue[-1]
        if batch.batch_size != 1:
            self.queue.pop()
            raise RuntimeError(
                f"fn.experimental.inputs.video {self.name!r}: expected one video, got a batch of {batch.batch_size}"
            )

    def next(self) -> list[Any]:
        """The sequences of a run; the last ones of a video may be fewer."""
        if self._encoded is None:
            (batch,) = super().next()
            self._encoded, self._place = batch.select(0), 0
        wanted = self.max_batch_size * self.sequence_length
        frames = ndd.decoders.video(  # one more frame tells whether there will be another run
            self._encoded, start_frame=self._place, sequence_length=wanted + 1, pad_mode="none", device=self.device
        )
        found = frames.torch()[:wanted]
        self._place += wanted
        if frames.shape[0] <= wanted:
            self._encoded = None
        sequences = list(found.split(self.sequence_length))
        missing = self.sequence_length - len(sequences[-1])
        if missing and self.pads:
            last = sequences[-1].new_zeros((self.sequence_length, *found.shape[1:]))
            last[:-missing] = sequences[-1]
            sequences[-1] = last
        return [ndd.batch(sequences, layout="FHWC")]


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
    video that was fed next. RuntimeError for a run when there is none. Only what a run gives is decoded.

    Args:
        sequence_length: frames of a sequence.
        name: for `feed_input`, with the bytes of one encoded video: u8 `[1, bytes]`, or a list of one array.
        last_sequence_policy: "partial": the last sequence of a video may be short; "pad": it is filled up with zeros.
        device: "cpu", or "mixed" for frames on the GPU.
        blocking, no_copy, affine, preserve, bytes_per_sample_hint: no effect.
    """
    if sequence_length < 1:
        raise RuntimeError(f"fn.experimental.inputs.video: sequence_length: expected at least 1, got {sequence_length}")
    if last_sequence_policy not in ("partial", "pad"):
        raise RuntimeError(
            "fn.experimental.inputs.video: last_sequence_policy: expected 'partial' or 'pad', got "
            f"{last_sequence_policy!r}"
        )
    pipeline = pipeline_of("experimental.inputs.video")
    place = "cpu" if device in (None, "cpu") else "gpu"

    def make(_: Any) -> VideoInput:
        made = VideoInput(name, pipeline.max_batch_size, sequence_length, last_sequence_policy == "pad", place)
        pipeline.note_source(made)
        return made

    state = pipeline.states.of_call("experimental.inputs.video", make, name=name)
    node = pipeline.result(lambda memo: whole(lambda: pipeline.data_of(state()))[0], state=state)
    node.source = state
    return node


OWN["experimental.inputs.video"] = video_input
