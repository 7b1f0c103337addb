"""A profile as a file for Perfetto: the "Trace Event Format" of Chrome, in JSON."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ndd.atomic_file import atomic_file

if TYPE_CHECKING:
    from ndd.profiling.loop_profile import Profile
    from ndd.profiling.spans import Span

_GPUS = 1 << 22  # above all process numbers: GPU k is shown as process `_GPUS + k`


def write(profile: Profile, path: Path) -> None:
    """Writes the file atomically."""
    with atomic_file(path) as file:
        file.write(json.dumps({"traceEvents": events(profile), "displayTimeUnit": "ms"}).encode())


def events(profile: Profile) -> list[dict[str, Any]]:
    """The spans as complete events ("X"), in microseconds since the profile began, and the names of threads and GPUs ("M")."""
    process, spans = os.getpid(), []
    names: dict[tuple[int, int], str] = {}
    for span in profile.spans:
        if span.kind != "stream":
            names[process, span.thread] = span.thread_name
            spans.append(_event(span, process, span.thread, span.begun - profile.began, span.seconds))
        if span.timing is not None:
            begun, seconds = span.timing.measured()
            place = _GPUS + (span.device or 0), span.timing.stream
            names[place] = f"stream {span.timing.stream:#x}"
            spans.append(_event(span, place[0], place[1], begun - profile.began, seconds))
    titles = {process: "ndd"} | {number: f"GPU {number - _GPUS}" for number, _ in names if number >= _GPUS}
    titled = [_name("process_name", number, 0, title) for number, title in titles.items()]
    return titled + [_name("thread_name", number, thread, name) for (number, thread), name in names.items()] + spans


def _event(span: Span, process: int, thread: int, begun: int, seconds: float) -> dict[str, Any]:
    details: dict[str, Any] = {"samples": span.samples, "bytes": span.nbytes}
    if span.notes:
        details["notes"] = span.notes
    if span.pictures:
        details["pictures"] = {decoder: len(samples) for decoder, samples in span.pictures.items()}
    if span.failed:
        details["failed"] = True
    prefix = "wait for " if span.kind in ("wait", "reader", "pipeline", "stream") else ""
    return {
        "name": prefix + span.name, "cat": span.kind, "ph": "X", "ts": begun / 1e3,
        "dur": seconds * 1e6, "pid": process, "tid": thread, "args": details,
    }  # fmt: skip


def _name(kind: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}
