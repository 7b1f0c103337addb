"""`experimental.readers.Video`: sequences of frames from video files, also padded and spread over a video."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from ndd._tensor.dtype import uint8
from ndd.decoders.video.frames import PAD_MODES
from ndd.decoders.video.index import Index
from ndd.readers.files.file_tree import FilePath
from ndd.readers.files.video_list import Listed, frame_range, listed_videos
from ndd.readers.output import Output
from ndd.readers.stores.video_clips import ClipStore
from ndd.readers.video import FrameNum, Video as PlainVideo, checked_layout, declared
from ndd.types import DALIImageType


class Video(PlainVideo):
    """Reads sequences of frames from videos as `readers.Video` does, with other rules at the end of a video.

    A sequence spans `sequence_length * stride` frames, including those after its last one. With padding, each video has one more
    sequence than fit into it, as in DALI.

    Outputs: `sequence_length` frames, u8 `[F, H, W, 3]`, layout "FHWC"; the label, i32 `[1]`, if the videos have labels; the
    outputs of `enable_frame_num` and `enable_timestamps`. See `readers.Video` for the sources of videos and labels, and for the
    features beyond DALI: all codecs of FFmpeg on the CPU, variable frame rates, upright frames.

    Args:
        sequence_length: the number of frames of a sequence.
        stride: the distance between the frames of a sequence.
        step: the distance between the beginnings of sequences; below 1: `sequence_length * stride`.
        uniform_sample: one sequence for each video (or part of it): `sequence_length` frames spread evenly from its
            first frame to its last, rounded to the nearest, half up. `stride`, `step` and `pad_mode` are ignored.
        pad_mode: the treatment of sequences that extend beyond the end. "none" skips them; "constant" pads with `fill_value`, with
            -1 as number and timestamp; "edge" ("repeat") repeats the last frame; "reflect_101" ("reflect") and "reflect_1001"
            ("symmetric") reflect the frames at the last frame, without or with repeating it. Reflected frames may lie before the
            part of a video that a list names.
        fill_value: one number, or red, green and blue.
        filenames, labels, file_root, file_list: as in `readers.Video`; there must be as many labels as files.
        file_list_format: start and end in a list are "timestamps" in seconds or "frames". Seconds are 32-bit numbers, truncated
            to ticks of the video's time base: 0.9 is a little less and means, rounded down, the frame before the one that is shown
            at 0.9; 0.9001 means that one.
        file_list_rounding: the rounding of a time between two frames, or of a fractional number: "start_down_end_up",
            "start_up_end_down", "all_up" or "all_down". The part does not include its end.
        file_list_include_end: accepted, without effect, as in DALI 2.4.0.
        enable_frame_num: "scalar" (or True): an output with the number of the first frame, i32 `[1]`; "sequence": with the
            numbers of all frames, i32 `[F]`.
        enable_timestamps: an output with the time of each frame, in seconds after the first frame of the video, f64 `[F]`.
        image_type: RGB, or YCbCr: the values of the stream, with chroma upsampled.

    Differences from DALI: a line with a start and no end extends to the end of the video, a negative or too large time in
    seconds is used unchanged, and a label that is not a number is an error.

    Needs PyAV (the extra `video`).

    Raises what `readers.Video` raises.

    >>> import ndd, numpy as np, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "gray.mp4")
    >>> ndd.io.video.write(path, np.full((10, 32, 48, 3), 128, np.uint8), rate=5)
    >>> reader = ndd.experimental.readers.Video(
    ...     filenames=path, sequence_length=6, pad_mode="reflect_101", enable_frame_num="sequence"
    ... )
    >>> [numbers.torch().tolist() for frames, numbers in reader.next_epoch()]
    [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 8, 7]]
    """

    _display = "experimental.readers.Video"

    @classmethod
    def _outputs(cls, **arguments: Any) -> tuple[Output, ...]:
        return declared(cls._display, uint8, arguments)

    def _open(
        self,
        *,
        enable_frame_num: FrameNum = "none",
        enable_timestamps: bool = False,
        file_list: FilePath = "",
        file_list_format: Literal["timestamps", "frames"] = "timestamps",
        file_list_include_end: bool = True,
        file_list_rounding: Literal[
            "start_down_end_up", "start_up_end_down", "all_up", "all_down"
        ] = "start_down_end_up",
        file_root: FilePath = "",
        filenames: FilePath | Sequence[FilePath] = (),
        fill_value: int | Sequence[int] = (0,),
        image_type: DALIImageType = DALIImageType.RGB,
        labels: int | Sequence[int] | None = None,
        pad_mode: str = "none",
        sequence_length: int,
        step: int = -1,
        stride: int = 1,
        uniform_sample: bool = False,
    ) -> ClipStore:
        if pad_mode not in PAD_MODES:
            allowed = ", ".join(map(repr, PAD_MODES))
            raise RuntimeError(f"{self._display}: Invalid pad_mode: expected one of {allowed}, got {pad_mode!r}")
        start_up = file_list_rounding in ("start_up_end_down", "all_up")
        end_up = file_list_rounding in ("start_down_end_up", "all_up")

        def part(video: Listed, index: Index) -> tuple[int, int]:
            return frame_range(video, index, file_list_format == "frames", start_up, end_up, whole_ticks=True)

        videos = listed_videos(self._display, filenames, file_root, file_list, labels, automatic=False)
        layout = checked_layout(self._display, sequence_length, stride, step, pad_mode or "none", fill_value)
        return self._clips(videos, part, layout._replace(uniform=uniform_sample, whole_strides=True), image_type)
