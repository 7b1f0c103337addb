"""`ndd.explain`: how a value was computed."""

# Names that are private for users, such as `Handle._store`, belong to this library.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ndd._tensor.handle import Handle
from ndd.profiling.recorder import recorder
from ndd.profiling.spans import Span

_NAMES = {
    "opencv": "OpenCV", "pillow": "Pillow", "simplejpeg": "simplejpeg", "python_api": "nvImageCodec", "png": "ndd's PNG kernel",
    "jpeg": "ndd's JPEG kernel", "tiff": "ndd's TIFF reader", "bmp": "ndd's BMP reader",
    "pnm": "ndd's PNM reader",
}  # fmt: skip
_TOLD = 8  # the most sample numbers to list


def explain(value: Any) -> str:
    """Tells how a value was computed while a profile was on: what ran, where, how long, what was fused, what ran ahead,
    which decoder decoded which picture.

    Args:
        value: a Tensor or Batch that was made within `with ndd.profile():`, or an output of a pipeline. It is evaluated.

    The value comes first, with its inputs below it, indented. Milliseconds are those of the work itself, on the thread named
    beside it; "100 %" is all work for this value, without the reader's.

    Raises TypeError unless it is a Tensor or Batch, RuntimeError for a value that was computed without an active profile.

    >>> import ndd
    >>> with ndd.profile():
    ...     jpegs, labels = next(ndd.readers.File(file_root=ndd.demo.photos()).next_epoch(batch_size=4))
    ...     images = ndd.decoders.image(jpegs)
    ...     story = ndd.explain(images)
    >>> story.splitlines()[0].split(":")[0]
    'decoders.image'
    """
    value = getattr(type(value), "__ndd_value__", lambda it: it)(value)
    if not isinstance(value, Handle):
        kind = f"{type(value).__module__}.{type(value).__name__}".removeprefix("builtins.")
        raise TypeError(
            f"ndd.explain: expected a Tensor or Batch of ndd, got {kind}. Ask before `.torch()` or `.numpy()`"
        )
    span = recorder.maker_of(value._value())
    if span is None:
        raise RuntimeError(
            "ndd.explain: this value was made while no profile was on, or is data of your own: make it within "
            "`with ndd.profile():`"
        )
    spans = list(_chain(span, 0))
    whole = sum([max(each.own, 0) for each, _ in spans if each.kind != "reader"]) or 1
    return "\n".join([line for each, depth in spans for line in _lines(each, depth, whole)])


def _chain(span: Span, depth: int) -> Iterator[tuple[Span, int]]:
    """A span and the spans of its inputs, each once."""
    seen: set[int] = set()
    waiting = [(span, depth)]
    while waiting:
        each, level = waiting.pop()
        if id(each) not in seen:
            seen.add(id(each))
            yield each, level
            waiting.extend([(before, level + 1) for before in reversed(each.inputs)])


def _lines(span: Span, depth: int, whole: int) -> Iterator[str]:
    indent = "  " * depth
    place = "CPU" if span.device is None else f"GPU {span.device}"
    size = f"{span.samples:,} sample{'' if span.samples == 1 else 's'}, {span.nbytes / 1e6:.2f} MB"
    if span.kind == "reader":
        yield f"{indent}{span.name}: {size}; the loop waited {span.own / 1e6:.2f} ms for it"
        return
    share = round(100 * max(span.own, 0) / whole)
    device = f", {span.timing.measured()[1] * 1e3:.2f} ms on the GPU" if span.timing is not None else ""
    yield f"{indent}{span.name}: {size}, {place}; {span.own / 1e6:.2f} ms{device} ({share} %) on thread {span.thread_name}"
    if span.ahead:
        yield f"{indent}  made ahead, before the loop asked"
    for note in dict.fromkeys(span.notes):
        yield f"{indent}  {note}"
    for decoder, samples in span.pictures.items():
        named = ", ".join(map(str, sorted(samples)[:_TOLD])) + (", ..." if len(samples) > _TOLD else "")
        yield f"{indent}  decoded by {_NAMES.get(decoder, decoder)}: {len(samples)} (samples {named})"
