"""Videos: clips of 16 frames at random places, and a video from its beginning to its end, in frames a second.

All sides read the same clips once, in a whole epoch of the readers. Beside DALI's reader there are: PyAV and OpenCV in their
simplest use, which opens a file for each clip, seeks to it, and converts every frame to RGB; torchcodec, if it loads, with one
decoder for each file; and on a GPU PyNvVideoCodec, if it is installed, with one decoder and thread for each file. There are two
limits: FFmpeg that decodes everything with as many threads and discards it, and FFmpeg whose swscale also converts it to RGB in
the fast way, with the chroma of the nearest sample. (Its exact way, which has the results of ndd and DALI, takes several times
as long.) On a GPU a row shows how busy the video engines were while ndd and DALI read.
"""

from __future__ import annotations

import functools
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import ndd
from ndd._cpu.opencv import opencv
from ndd.bench.libraries import Setting
from ndd.bench.rounds import Result, interleaved
from ndd.decoders.video.index import library, scan

_LENGTH, _BATCH = 16, 8
_LEAST = {"cpu": 1000, "gpu": 3000}  # frames, in as many epochs as that takes
_STEP = 37  # clips begin anywhere between key frames
_KINDS = {"vp9": ("libvpx-vp9", "webm"), "h264": ("libx264", "mp4"), "hevc": ("libx265", "mp4")}
_DALI_READS = ("vp8", "vp9")


def measure(setting: Setting, data: Path | None, only: str = "") -> Iterator[Result]:
    """The results for videos of each codec in `data`, or for generated videos."""
    folder = Path(tempfile.mkdtemp(prefix="ndd-bench-"))
    try:
        for codec, paths in (_generated(folder) if data is None else _sorted(data)).items():
            for name, sides in (
                ("random clips of 16", _random(setting, codec, paths)),
                ("in sequence", _sequential(setting, codec, paths)),
            ):
                if only in f"{codec} {name}":
                    yield from _rows(setting, f"{codec}, {len(paths)} files, {name}", sides)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _rows(setting: Setting, name: str, sides: dict[str, Callable[[], float]]) -> Iterator[Result]:
    for side in sides.values():
        side()  # imports, compiles, fills caches
    rates = interleaved(sides, setting.rounds)
    ours = rates.pop("ndd")
    title = f"{name}, {setting.threads} threads"
    target = "ratio >= 1.5" if "random" in name else "ratio >= 1.0"
    yield Result("video", title, "frames/s", ours, rates.pop("DALI", None), target)
    for other, rate in rates.items():
        yield Result(
            "video", f"  {other} in DALI's place", "frames/s", ours, rate, "0.9" if "FFmpeg" in other else target
        )
    if setting.device == "gpu":
        busy = {side: _engines_busy(sides[side]) for side in setting.libraries}
        if None not in busy.values():
            yield Result("video", "  its video engines are busy", "%", busy["ndd"], busy.get("DALI"), "")


def _engines_busy(work: Callable[[], float]) -> float | None:
    """How busy all video engines of the GPU together are while `work` runs, in percent; None if unknown."""
    command = ["nvidia-smi", "--query-gpu=utilization.decoder", "--format=csv,noheader,nounits", "--loop-ms=100"]
    try:
        watch = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    except OSError:
        return None
    work()
    watch.terminate()
    said = [line for line in watch.communicate()[0].split() if line.isdecimal()]
    return max(map(float, said), default=None)


def _generated(folder: Path) -> dict[str, list[str]]:
    """Two videos of 240 frames of each kind, with a key frame every 48."""
    y, x = np.mgrid[:180, :320]
    frames = [
        np.stack([(x + 3 * i) % 256, (y * 2 + i) % 256, (x * y // 64 + 5 * i) % 256], axis=2).astype(np.uint8)
        for i in range(240)
    ]
    files: dict[str, list[str]] = {}
    for codec, (encoder, ending) in _KINDS.items():
        files[codec] = [str(folder / f"{codec}{k}.{ending}") for k in range(2)]
        for k, path in enumerate(files[codec]):
            ndd.io.video.write(path, np.stack(frames[:: 1 - 2 * k]), codec=encoder, key_interval=48, quality=30)
    return files


def _sorted(data: Path) -> dict[str, list[str]]:
    """The videos of a folder by their codec."""
    av = library()
    files: dict[str, list[str]] = {}
    for path in sorted(data.iterdir()):
        try:
            with av.open(str(path)) as container:
                files.setdefault(container.streams.best("video").codec_context.name, []).append(str(path))
        except (OSError, ValueError, IndexError):
            continue
    return files


def _random(setting: Setting, codec: str, paths: list[str]) -> dict[str, Callable[[], float]]:
    arguments: dict[str, Any] = {
        "filenames": paths, "sequence_length": _LENGTH, "step": _STEP, "random_shuffle": True, "seed": 1,
    }  # fmt: skip
    sides = _readers(setting, codec, arguments)
    starts = [(p, s) for p in paths for s in range(0, len(scan(p)["times"]) - _LENGTH + 1, _STEP)]
    clips = [starts[i] for i in np.random.default_rng(1).permutation(len(starts))]
    torchcodec, nvcodec = _torchcodec(setting), _nvcodec(setting)
    if torchcodec is not None:
        sides["torchcodec"] = lambda: _timed(lambda: _by_torchcodec(setting, torchcodec, clips))
    if nvcodec is not None:
        sides["PyNvVideoCodec"] = lambda: _timed(lambda: _by_nvcodec(setting, nvcodec, clips))
    sides["PyAV"] = lambda: _timed(lambda: sum(_by_pyav(path, start) for path, start in clips))
    if opencv() is not None:
        sides["OpenCV"] = lambda: _timed(lambda: sum(_by_opencv(path, start, _LENGTH) for path, start in clips))
    return sides


def _sequential(setting: Setting, codec: str, paths: list[str]) -> dict[str, Callable[[], float]]:
    sides = _readers(setting, codec, {"filenames": paths, "sequence_length": _LENGTH})
    if opencv() is not None:
        sides["OpenCV"] = lambda: _timed(lambda: sum(_by_opencv(path, 0, 1 << 30) for path in paths))
    for name, rgb in (("FFmpeg alone, to RGB", True), ("FFmpeg alone (the limit)", False)):
        sides[name] = lambda rgb=rgb: _timed(lambda: sum(_decoded(p, setting.threads, rgb) for p in paths))
    return sides


def _readers(setting: Setting, codec: str, arguments: dict[str, Any]) -> dict[str, Callable[[], float]]:
    sides: dict[str, Callable[[], float]] = {}
    for name, library_ in setting.libraries.items():
        if name == "ndd" or codec in _DALI_READS or setting.device == "gpu":
            kind = library_.readers.Video if setting.device == "gpu" else library_.experimental.readers.Video
            sides[name] = lambda kind=kind: _by_reader(setting, kind(**arguments, device=setting.device))
    return sides


def _by_reader(setting: Setting, reader: Any) -> float:
    """Frames a second of a reader, from its second epoch on."""
    _epoch(setting, reader)
    count, start = 0, time.perf_counter()
    while count < _LEAST[setting.device]:
        count += _epoch(setting, reader)
    return count / (time.perf_counter() - start)


def _epoch(setting: Setting, reader: Any) -> int:
    """Reads an epoch; returns its number of frames."""
    count = 0
    for (frames,) in reader.next_epoch(batch_size=_BATCH):
        frames.evaluate()
        count += sum(shape[0] for shape in frames.shape)
    setting.synchronize()
    return count


def _timed(work: Callable[[], int]) -> float:
    start = time.perf_counter()
    return work() / (time.perf_counter() - start)


def _by_pyav(path: str, start: int) -> int:
    with library().open(path) as container:
        stream = container.streams.best("video")
        rate = float(stream.average_rate)
        container.seek(int(start / rate / stream.time_base), stream=stream)
        count = 0
        for frame in container.decode(stream):
            if frame.time is None or frame.time * rate > start - 0.5:
                frame.to_ndarray(format="rgb24")
                count += 1
                if count == _LENGTH:
                    break
        return count


def _by_opencv(path: str, start: int, length: int) -> int:
    cv2: Any = opencv()
    video = cv2.VideoCapture(path)
    if start:
        video.set(cv2.CAP_PROP_POS_FRAMES, start)
    count = 0
    while count < length:
        good, frame = video.read()
        if not good:
            break
        cv2.cvtColor(frame, cv2.COLOR_BGR2RGB)
        count += 1
    video.release()
    return count


def _torchcodec(setting: Setting) -> Any:
    """torchcodec's decoder of a path, cached, or None if it does not load: it needs FFmpeg's libraries, and those of its
    torch."""
    try:
        from torchcodec.decoders import VideoDecoder  # type: ignore[import-not-found]
    except (ImportError, RuntimeError, OSError):
        return None
    how = {"num_ffmpeg_threads": setting.threads, "dimension_order": "NHWC"}
    device = "cuda" if setting.device == "gpu" else "cpu"
    return functools.cache(lambda path: VideoDecoder(path, device=device, **how))


def _by_torchcodec(setting: Setting, opened: Callable[[str], Any], clips: list[tuple[str, int]]) -> int:
    for path, start in clips:
        opened(path).get_frames_in_range(start, start + _LENGTH)
    setting.synchronize()
    return len(clips) * _LENGTH


def _nvcodec(setting: Setting) -> Any:
    """PyNvVideoCodec's decoder of a path, cached, or None if it is not installed."""
    if setting.device == "cpu":
        return None
    try:
        import PyNvVideoCodec as nvcodec  # type: ignore[import-not-found]
    except (ImportError, RuntimeError, OSError):
        return None
    colours = nvcodec.OutputColorType.RGB
    return functools.cache(lambda path: nvcodec.SimpleDecoder(path, use_device_memory=True, output_color_type=colours))


def _by_nvcodec(setting: Setting, opened: Callable[[str], Any], clips: list[tuple[str, int]]) -> int:
    def frames_of(path: str) -> int:
        count = 0
        for start in [start for other, start in clips if other == path]:
            try:
                count += len(opened(path).get_batch_frames_by_index(list(range(start, start + _LENGTH))))
            except Exception:  # it does not reach all frames that it counted
                continue
        return count

    paths = list(dict.fromkeys(path for path, _ in clips))
    with ThreadPoolExecutor(len(paths)) as pool:
        count = sum(pool.map(frames_of, paths))
    setting.synchronize()
    return count


def _decoded(path: str, threads: int, rgb: bool) -> int:
    with library().open(path) as container:
        stream = container.streams.best("video")
        stream.thread_type, stream.thread_count = "AUTO", threads
        convert = library().video.reformatter.VideoReformatter().reformat
        return sum(1 for frame in container.decode(stream) if not rgb or convert(frame, format="rgb24"))
