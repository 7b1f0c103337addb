"""The videos of a reader, their labels, and the part of each that is read."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ndd.decoders.video.index import Index
from ndd.io.object_store import is_remote, without_query
from ndd.readers.files.file_tree import path_text, path_texts, read_lines, scan_tree
from ndd.readers.files.labelled_files import LABELS, listed_files

_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_LINE = re.compile(
    rf"(?P<name>.*?\S)\s+(?P<label>[+-]?0*\d{{1,10}})(?:\s+(?P<start>{_NUMBER})(?:\s+(?P<end>{_NUMBER}))?)?\s*"
)


_BEYOND = 1e9  # frames or seconds: no video is longer


class Listed(NamedTuple):
    """One video: its path, its label, and the start and end of the part to read as in the list (None: its beginning, its end)."""

    path: str
    label: int
    start: float | None = None
    end: float | None = None


def listed_videos(
    reader: str, filenames: Any, file_root: Any, file_list: Any, labels: Any, automatic: bool
) -> list[Listed]:
    """The videos that one of three arguments names. With `automatic`, empty `labels` stand for 0, 1, 2, ..."""
    names = [] if filenames is None else path_texts(reader, "filenames", filenames)
    root = "" if file_root is None else path_text(reader, "file_root", file_root)
    list_path = "" if file_list is None else path_text(reader, "file_list", file_list)
    if sum(map(bool, (names, root, list_path))) != 1:
        raise RuntimeError(f"{reader}: exactly one of `filenames`, `file_root` and `file_list` is required")
    if labels is not None and not names:
        raise RuntimeError(f"{reader}: `labels` is valid only together with `filenames`")
    if names:
        counted = automatic and isinstance(labels, Sequence) and not len(labels)
        numbers = listed_files(reader, names, None if counted or labels is None else labels)[1]
        return [Listed(name, int(label)) for name, label in zip(names, numbers, strict=True)]
    if root:
        folders, names, places = scan_tree(reader, root, lambda name: True, lambda name: True)
        return [
            Listed(os.path.join(folders[place], name), place)
            for name, place in zip(names, places.tolist(), strict=True)
        ]
    return [
        _parsed(reader, list_path, k, line) for k, line in enumerate(read_lines(reader, list_path), 1) if line.strip()
    ]


def _parsed(reader: str, path: str, number: int, line: str) -> Listed:
    fields = _LINE.fullmatch(line)
    if fields is None or not 0 <= int(fields["label"]) <= LABELS[-1]:
        raise RuntimeError(
            f'{reader}: line {number} of "{path}": expected a file, a label from 0, and perhaps a start and an end, got '
            f"{line!r}"
        )
    name = fields["name"]
    if not os.path.isabs(name) and not is_remote(name):
        beside = os.path.join(os.path.dirname(without_query(path)), name)
        name = name if os.path.exists(name) else beside
    start, end = (None if fields[k] is None else float(fields[k]) for k in ("start", "end"))
    return Listed(name, int(fields["label"]), start, end)


def frame_range(
    video: Listed, index: Index, in_frames: bool, start_up: bool, end_up: bool, whole_ticks: bool = False
) -> tuple[int, int]:
    """The first frame of the part to read, and the frame after the last.

    Seconds are compared with the times of the frames, so that a variable frame rate is handled. `start_up` and `end_up` say
    whether a time between two frames (or a number that is not whole) means the later one. With `whole_ticks` times are 32-bit
    floats in seconds, truncated to ticks of the video's time base.
    """
    count = len(index["times"])
    start, end = 0, count
    if video.start is not None and (in_frames or video.start > 0):  # before the beginning: from there, as in DALI
        start = _frame_at(video.start, index, in_frames, start_up, whole_ticks)
    if video.end is not None:
        end = _frame_at(video.end, index, in_frames, end_up, whole_ticks)
    return min(max(start, 0), count), min(max(end, 0), count)


def _frame_at(value: float, index: Index, in_frames: bool, up: bool, whole_ticks: bool) -> int:
    """The number of the frame for a start or an end."""
    times = index["times"]
    count = len(times)
    value = min(max(value, -_BEYOND), _BEYOND)
    if in_frames:
        value = value + count if value < 0 else value
        return int(np.ceil(value) if up else np.floor(value))
    numerator, denominator = index["time_base"].tolist()
    end = float(times[-1] + (times[-1] - times[0]) / max(count - 1, 1))  # the last frame is shown for a while
    ticks = value * denominator / numerator
    if whole_ticks:
        ticks = float(int(float(np.float32(value)) * denominator / numerator))
    ticks = ticks + end if value < 0 else ticks
    ends = np.append(times, end)
    if up:
        return int(np.searchsorted(ends, ticks - 1e-3, "left"))
    return int(np.searchsorted(ends, ticks + 1e-3, "right")) - 1
