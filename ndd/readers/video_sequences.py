"""`experimental.readers.Video`: sequences of frames from video files, also padded and spread over a video."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from ndd._tensor.dtype import uint8
from ndd.decoders.video_files.frames import PAD_MODES
from ndd.decoders.video_files.index import Index
from ndd.readers.files.file_tree import FilePath
from ndd.readers.files.video_list import Listed, frame_range, listed_videos
from ndd.readers.output import Output
from ndd.readers.stores.video_clips import ClipStore
from ndd.readers.video import FrameNum, Video as PlainVideo, checked_layout, declared
from ndd.types import DALIImageType


class Video(PlainVideo):
    """Reads sequences of frames from videos as `readers.Video` does, with other rules for what lies beyond the end.

    A sequence takes `sequence_length * stride` frames, those behind its last one too. Where it is padded, one more is given
    for each video than there are whole ones, as in DALI.

    A sample is a video of `sequence_length` frames, u8 `[F, H, W, 3]`, layout "FHWC"; then, where there are labels, the
    label, i32 `[1]`; then what `enable_frame_num` and `enable_timestamps` ask for. See `readers.Video` for where videos and
    labels come from, and for what is beyond DALI: all codecs of FFmpeg on the CPU, variable frame rates, upright frames.

    Args:
        sequence_length: how many frames a sequence has.
        stride: how far these are apart.
        step: how far sequences begin apart; below 1: `sequence_length * stride`.
        uniform_sample: one sequence for each video (or part of it): `sequence_length` frames spread evenly from its
            first frame to its last, rounded to the nearest, half up. `stride`, `step` and `pad_mode` do not count.
        pad_mode: what becomes of sequences that reach beyond the end: "none" leaves them out; "constant" fills in
            `fill_value`, with -1 as number and timestamp; "edge" ("repeat") shows the last frame again; "reflect_101"
            ("reflect") and "reflect_1001" ("symmetric") what a mirror in the last frame, or behind it, shows: also what is
            before the part of a video that a list names.
        fill_value: one number, or red, green and blue.
        filenames, labels, file_root, file_list: as in `readers.Video`; labels have to be as many as files.
        file_list_format: start and end in a list are "timestamps" in seconds or "frames". Seconds are 32-bit numbers, cut
            off to whole ticks of the video's time base: 0.9 is a little less and means, rounded down, the frame before the
            one that is shown at 0.9; 0.9001 means that one.
        file_list_rounding: what a moment between two frames means, or a number that is not whole:
            "start_down_end_up", "start_up_end_down", "all_up" or "all_down". The end does not belong to the part.
        file_list_include_end: accepted, without effect, as in DALI 2.4.0.
        enable_frame_num: "scalar" (or True) gives the number of the first frame, i32 `[1]`, "sequence" those of all, i32
            `[F]`.
        enable_timestamps: gives when each frame is shown, in seconds after the first one of the video, f64 `[F]`.
        image_type: RGB, or YCbCr: the numbers of the stream, chroma spread over the pixels.

    Differences from DALI: a line with a start and no end goes to the end of the video, a negative or too large moment in
    seconds is taken for what it says, and a label that is not a number is an error.

    Needs PyAV: `pip install "ndd-dataloading[video]"`.

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
