"""`readers.Video`: sequences of frames from video files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ndd._tensor import Device
from ndd._tensor.dtype import DType, dtype as to_dtype, float32, float64, int32, uint8
from ndd._tensor.secrets import without_secrets
from ndd.decoders.video.clips import on_gpu
from ndd.decoders.video.frames import fill_colour
from ndd.decoders.video.index import Index
from ndd.ops.tensor.cast import cast
from ndd.readers.epochs.read_ahead import Step
from ndd.readers.epochs.session import Session
from ndd.readers.files.file_tree import FilePath
from ndd.readers.files.video_list import Listed, frame_range, listed_videos
from ndd.readers.output import Output
from ndd.readers.reader import Reader
from ndd.readers.stores.records import Records
from ndd.readers.stores.video_clips import ClipStore, Extras, Layout
from ndd.types import DALIImageType

FrameNum = str | bool | None


class _VideoSession(Session):
    """Decodes a batch on a GPU before it is delivered, so that sequences which cannot be decoded can be skipped."""

    _decoded: tuple[Records, Any] | None = None

    def without_broken(self, step: Step) -> Step:
        if self.options.on_error == "raise" or Device(str(self.options.device)).device_type == "cpu":
            return super().without_broken(step)
        faults, frames = self._tried(step)
        step = super().without_broken(step._replace(records=step.records.without(faults)))
        self._decoded = step.records, frames
        return step

    def read_values(self, step: Step, size: int | None) -> tuple[Any, ...]:
        values = super().read_values(step, size)
        decoded, self._decoded = self._decoded, None
        if decoded is None or decoded[0] is not step.records:
            return values
        return decoded[1] if size is not None else decoded[1].select(0), *values[1:]

    def _tried(self, step: Step) -> tuple[dict[int, BaseException], Any]:
        """Decodes a batch. Returns the errors of the sequences that cannot be decoded, and the frames of the others."""
        places = [place for place in range(len(step.numbers)) if place not in step.records.faults]
        faults: dict[int, BaseException] = {}
        frames = self._decode(step, places)
        if isinstance(frames, BaseException):
            each = {place: self._decode(step, [place]) for place in places}
            faults = {place: error for place, error in each.items() if isinstance(error, BaseException)}
            frames = self._decode(step, [place for place in places if place not in faults])
            if isinstance(frames, BaseException):
                raise frames
        return faults, frames

    def _decode(self, step: Step, places: list[int]) -> Any:
        """The frames of some records of a step, or the error of one that cannot be decoded."""
        if not places:
            return None
        some = Step([step.numbers[place] for place in places], step.records.picked(places), step.position)
        reader: Any = self._reader()
        try:
            return reader._there(self.made_of(some, len(places))[0]).evaluate()
        except RuntimeError as error:
            cause = error.__cause__ or error  # an error of another thread is wrapped in that of its call
            if not hasattr(cause, "sample"):
                raise
            source = without_secrets(self.opened()[0].source(some.numbers[0]))
            return RuntimeError(str(cause).split(f"({source}): ", 1)[-1])


class Video(Reader):
    """Reads sequences of frames from videos in all formats of FFmpeg (`decoders.video` lists some).

    Outputs: `sequence_length` frames, `[F, H, W, 3]`, layout "FHWC"; the label, i32 `[1]`, if the videos have labels; the outputs
    of `enable_frame_num` and `enable_timestamps`. Sequences begin at the frames 0, `step`, 2 * `step`, ... of each video, or of
    the part of it that a list names, in the order of the files.

    The videos come from one of

    * `filenames`, with or without `labels`;
    * `file_root`: one folder for each label, as for `readers.File`. Files that are not videos are skipped with a warning;
    * `file_list`: a text file with a line `file label [start [end]]` for each video, or part of a video. `start` is the
      first frame, `end` the one after the last; they are seconds, or numbers of frames, and negative ones count from the end.
      Paths are relative to the working directory, or to the list's own folder.

    A time in seconds means the frame that is shown at that time according to the file, so variable frame rates are read
    correctly. A video is indexed once, and the index is cached on disk (`index_cache.py`); eight files are indexed at a time.
    Sequential reading never seeks back; random reading decodes from the preceding key frame, and skips frames that are not
    needed.

    Args:
        sequence_length: the number of frames of a sequence.
        stride: the distance between the frames of a sequence.
        step: the distance between the beginnings of sequences; below 1: `sequence_length * stride`.
        filenames: paths of the videos.
        labels: an integer for each of `filenames`; an empty list stands for 0, 1, 2, ...
        file_root: the folder of classes.
        file_list: the text file of paths, labels and parts.
        file_list_frame_num: start and end are frame numbers; a fractional start is rounded up, a fractional end down.
        file_list_include_preceding_frame: round times the other way, so that the first frame is not later than the start. By
            default the part begins with the first frame not before `start`, and ends before the last frame not after `end`.
        pad_sequences: also return sequences that extend beyond the end; missing frames are black, with number and timestamp -1.
        enable_frame_num: "scalar" (or True): an output with the number of the first frame, i32 `[1]`; "sequence": with the
            numbers of all frames, i32 `[F]`.
        enable_timestamps: an output with the time of each frame, in seconds after the first frame of the video, f64 `[F]`. (The
            times of a `file_list` are those in the file, whose first frame may come later than 0, as in DALI.)
        dtype: u8, or f32.
        normalized: scale to 0..1 instead of 0..255; requires f32.
        image_type: RGB, or YCbCr: the values of the stream, with chroma upsampled.
        channels: 3.
        skip_vfr_check, additional_decode_surfaces: accepted, without effect.

    Runs on the CPU, and with device "gpu" on the video engines of the GPU, as `decoders.video` does; DALI's reader runs only on
    GPUs. With `on_error="skip"` the reader waits for each batch of a GPU, because only decoding shows which sequences must be
    skipped. Colours are as in `decoders.video`. Rotated videos are returned upright.

    Needs PyAV (the extra `video`).

    Raises (at the first sample): RuntimeError for no or several sources, a missing or malformed list, a file that is not a video
    (with `on_error="skip"` it is skipped), or if no video has a sequence. At its batch: RuntimeError for a frame that cannot be
    decoded (with `on_error="skip"` its sequence is skipped).

    >>> import ndd, numpy as np, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "gray.mp4")
    >>> ndd.io.video.write(path, np.full((10, 32, 48, 3), 128, np.uint8), rate=5)
    >>> reader = ndd.readers.Video(filenames=path, sequence_length=4, enable_frame_num="scalar", enable_timestamps=True)
    >>> for frames, first, times in reader.next_epoch():
    ...     print(frames.shape, first.torch().item(), times.torch().tolist())
    (4, 32, 48, 3) 0 [0.0, 0.2, 0.4, 0.6000000000000001]
    (4, 32, 48, 3) 4 [0.8, 1.0, 1.2000000000000002, 1.4000000000000001]
    """

    devices = ("cpu", "gpu")
    _session_type = _VideoSession
    _has_epoch_shuffle = False

    @classmethod
    def _outputs(cls, **arguments: Any) -> tuple[Output, ...]:
        dtype = to_dtype(arguments.get("dtype") or uint8)
        if dtype not in (uint8, float32):
            raise RuntimeError(f"{cls._display}: dtype: expected u8 or f32, got {dtype}")
        if arguments.get("normalized") and dtype is uint8:
            raise RuntimeError(f"{cls._display}: normalized=True requires dtype=f32")
        return declared(cls._display, dtype, arguments)

    def _open(
        self,
        *,
        additional_decode_surfaces: int = 2,
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
        labels: int | Sequence[int] | None = None,
        normalized: bool = False,
        pad_sequences: bool = False,
        sequence_length: int,
        skip_vfr_check: bool = False,
        step: int = -1,
        stride: int = 1,
    ) -> ClipStore:
        if channels != 3:
            raise RuntimeError(f"{self._display}: channels: expected 3, got {channels}")
        early = file_list_include_preceding_frame and not file_list_frame_num

        def part(video: Listed, index: Index) -> tuple[int, int]:
            return frame_range(video, index, file_list_frame_num, start_up=not early, end_up=early)

        videos = listed_videos(self._display, filenames, file_root, file_list, labels, automatic=True)
        layout = checked_layout(
            self._display, sequence_length, stride, step, "constant" if pad_sequences else "none", 0
        )
        return self._clips(videos, part, layout, image_type)

    def _clips(self, videos: list[Listed], part: Any, layout: Layout, image_type: DALIImageType) -> ClipStore:
        """The sequences of some videos."""
        if image_type not in (DALIImageType.RGB, DALIImageType.YCbCr):
            raise RuntimeError(f"{self._display}: image_type: expected RGB or YCbCr, got {image_type!r}")
        own = self._arguments
        extras = Extras(
            has_labels(own), frame_num(self._display, own.get("enable_frame_num")), bool(own.get("enable_timestamps"))
        )
        options = self._options
        in_order = options.order_name == "stored"
        skips = options.on_error == "skip" or bool(own.get("file_root"))
        layout = layout._replace(ycbcr=image_type == DALIImageType.YCbCr)
        numbers_only = Device(str(options.device)).device_type == "gpu"
        self._store = ClipStore(self._display, videos, part, layout, extras, in_order, skips, numbers_only)
        return self._store

    def __del__(self) -> None:
        # Batches and ending threads refer to the store too: without this its decoders would wait for the garbage collector.
        store = getattr(self, "_store", None)  # missing if the arguments were wrong
        if store is not None:
            store.end()

    def _present(self, video: Any, *extras: Any) -> tuple[Any, ...]:
        return (self._scaled(self._there(video)), *extras)

    def _there(self, video: Any) -> Any:
        """Frames on the reader's device, so that operators run there."""
        here = Device(str(self._options.device))
        return on_gpu(video, self._store, here) if here.device_type != video.device.device_type else video

    def _scaled(self, video: Any) -> Any:
        """Frames in the requested element type and range."""
        if to_dtype(self._arguments.get("dtype") or uint8) is uint8:
            return video
        return self._in_range(cast(video, dtype=float32))

    def _in_range(self, video: Any) -> Any:
        """Frames of 0..255 in the requested range."""
        return video / 255.0 if self._arguments.get("normalized") else video


def declared(reader: str, dtype: DType, arguments: dict[str, Any]) -> tuple[Output, ...]:
    """The outputs of a reader of videos."""
    kind = frame_num(reader, arguments.get("enable_frame_num"))
    outputs = [Output("video", dtype, 4, "FHWC", "reader")]
    if has_labels(arguments):
        outputs.append(Output("label", int32, 1, device="reader"))
    if kind != "none":
        outputs.append(Output("frame_num", int32, 1, device="reader"))
    if arguments.get("enable_timestamps"):
        outputs.append(Output("timestamps", float64, 1, device="reader"))
    return tuple(outputs)


def has_labels(arguments: dict[str, Any]) -> bool:
    """Whether a reader with these arguments has an output of labels."""
    return bool(arguments.get("file_root") or arguments.get("file_list")) or arguments.get("labels") is not None


def frame_num(reader: str, value: Any) -> str:
    """`enable_frame_num` as "none", "scalar" or "sequence"."""
    kind = {None: "none", False: "none", True: "scalar"}.get(value, value)
    if kind not in ("none", "scalar", "sequence"):
        raise RuntimeError(f'{reader}: enable_frame_num: expected "none", "scalar" or "sequence", got {value!r}')
    return kind


def checked_layout(reader: str, length: int, stride: int, step: int, pad_mode: str, fill_value: Any) -> Layout:
    """The form of a sequence. Raises RuntimeError for invalid arguments."""
    for name, number in (("sequence_length", length), ("stride", stride)):
        if number < 1:
            raise RuntimeError(f"{reader}: {name}: expected a number from 1, got {number}")
    try:
        fill = fill_colour(fill_value)
    except RuntimeError as error:
        raise RuntimeError(f"{reader}: {error}") from None
    return Layout(length, stride, step if step > 0 else length * stride, pad_mode, fill)
