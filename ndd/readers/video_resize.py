"""`readers.VideoResize`: sequences of frames from video files, resized."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ndd._tensor.dtype import DType, dtype as to_dtype, float32, uint8
from ndd.ops.image.resize import resize
from ndd.readers.files.file_tree import FilePath
from ndd.readers.stores.video_clips import ClipStore
from ndd.readers.video import FrameNum, Video
from ndd.types import DALIImageType, DALIInterpType

_OF_RESIZE = (
    "antialias", "interp_type", "mag_filter", "max_size", "min_filter", "minibatch_size", "mode", "resize_longer",
    "resize_shorter", "resize_x", "resize_y", "resize_z", "roi_end", "roi_relative", "roi_start", "size",
    "subpixel_scale", "temp_buffer_hint",
)  # fmt: skip


class VideoResize(Video):
    """Reads sequences of frames from videos as `readers.Video` does, and resizes them as `ndd.resize` does.

    Specify the size in exactly one way: `size`, `resize_x` and/or `resize_y`, `resize_shorter`, or `resize_longer`. Frames are
    resized on the device of the reader. See `readers.Video` for the outputs and sources of videos, and `ndd.resize` for the
    geometry and the filters.

    Args:
        sequence_length, stride, step, filenames, labels, file_root, file_list, file_list_frame_num: as in
            `readers.Video`.
        file_list_include_preceding_frame, pad_sequences, enable_frame_num, enable_timestamps, normalized: likewise.
        image_type, channels, skip_vfr_check, additional_decode_surfaces: likewise.
        dtype: u8, or f32 for resized values without rounding.
        size, resize_x, resize_y, resize_shorter, resize_longer, mode, max_size: the size of the resized frames.
        resize_z: frames have no third axis, so it must be 0.
        interp_type, mag_filter, min_filter, antialias, subpixel_scale: as in `ndd.resize`.
        roi_start, roi_end, roi_relative: the part of the frames that is resized.
        minibatch_size, temp_buffer_hint: accepted, without effect.

    Raises what `readers.Video` and `ndd.resize` raise.

    >>> import ndd, numpy as np, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "gray.mp4")
    >>> ndd.io.video.write(path, np.full((10, 32, 48, 3), 128, np.uint8), rate=5)
    >>> reader = ndd.readers.VideoResize(filenames=path, sequence_length=4, resize_shorter=16)
    >>> [frames.shape for frames, in reader.next_epoch()]
    [(4, 16, 24, 3), (4, 16, 24, 3)]
    """

    def _open(
        self,
        *,
        additional_decode_surfaces: int = 2,
        antialias: bool = True,
        channels: int = 3,
        dtype: DType | type | str = uint8,
        enable_frame_num: FrameNum = "none",
        enable_timestamps: bool = False,
        file_list: FilePath = "",
        file_list_frame_num: bool = False,
        file_list_include_preceding_frame: bool = False,
        file_root: FilePath = "",
        filenames: FilePath | Sequence[FilePath] = (),
        image_type: DALIImageType = DALIImageType.RGB,
        interp_type: DALIInterpType | None = None,
        labels: int | Sequence[int] | None = None,
        mag_filter: DALIInterpType | None = None,
        max_size: float | Sequence[float] | None = None,
        min_filter: DALIInterpType | None = None,
        minibatch_size: int = 32,
        mode: str | None = None,
        normalized: bool = False,
        pad_sequences: bool = False,
        resize_longer: float | None = None,
        resize_shorter: float | None = None,
        resize_x: float | None = None,
        resize_y: float | None = None,
        resize_z: float | None = None,
        roi_end: float | Sequence[float] | None = None,
        roi_relative: bool = False,
        roi_start: float | Sequence[float] | None = None,
        sequence_length: int,
        size: float | Sequence[float] | None = None,
        skip_vfr_check: bool = False,
        step: int = -1,
        stride: int = 1,
        subpixel_scale: bool = True,
        temp_buffer_hint: int = 0,
    ) -> ClipStore:
        return super()._open(**{name: value for name, value in self._arguments.items() if name not in _OF_RESIZE})

    def _present(self, video: Any, *extras: Any) -> tuple[Any, ...]:
        how = {name: value for name, value in self._arguments.items() if name in _OF_RESIZE and value is not None}
        as_float = to_dtype(self._arguments.get("dtype") or uint8) is float32
        video = resize(self._there(video), dtype=float32 if as_float else None, **how)
        return (self._in_range(video), *extras)
