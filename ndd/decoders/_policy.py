"""What becomes of samples that cannot be decoded."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ndd._tensor import DType
from ndd.decoders._limit import checked
from ndd.decoders._pixels import SUPPORTED
from ndd.decoders._sample import Options
from ndd.types import DALIImageType

ON_ERROR = ("raise", "skip", "fill")


class BadSample(NamedTuple):
    """A sample that was left out ("skip") or replaced by zeros ("fill"), as `batch.dropped` lists them."""

    index: int
    """Its place in the batch that went in."""
    source: Any
    """Where it came from (a reader says the file), or None."""
    error: str
    """What is wrong with it."""


def options_of(
    *,
    output_type: DALIImageType,
    dtype: DType,
    adjust_orientation: bool,
    max_pixels: int | None,
    on_error: str,
    use_fast_idct: bool,
    **_others: Any,
) -> Options:
    """The arguments of a decoder, checked. RuntimeError for an element type that images do not come in."""
    if dtype.name not in SUPPORTED:
        raise RuntimeError(f"Unsupported output type: {dtype}. Expected one of {', '.join(SUPPORTED)}")
    if on_error not in ON_ERROR:
        raise ValueError(f"on_error: expected one of {', '.join(map(repr, ON_ERROR))}, got {on_error!r}")
    limit = None if max_pixels is None else checked(max_pixels)
    return Options(output_type, np.dtype(dtype.numpy), adjust_orientation, limit, use_fast_idct)


def recover(
    job: Any, errors: dict[int, BaseException], found: list[Any], operands: list[Any]
) -> tuple[list[Any], list[int], list[BadSample]]:
    """`on_error`: raises with every bad sample named, or says which samples stay and what goes for the others.

    Returns the results, the numbers of the samples to keep, and what was bad. Only what is wrong with the data of a
    sample counts as bad; any other exception is raised as it is.
    """
    named = job.prepared.named
    policy = named["on_error"]
    for i, error in errors.items():
        if not isinstance(error, RuntimeError | MemoryError):
            error.sample = i  # type: ignore[attr-defined]
            raise error
    sources = operands[0].source_info or [None] * len(found)
    bad = [BadSample(i, sources[i], str(errors[i]) or type(errors[i]).__name__) for i in sorted(errors)]
    if policy == "fill":
        options = options_of(**named)
        for i, error in errors.items():
            found[i] = (np.zeros(_fill_shape(error, options), options.dtype),)
        return found, list(range(len(found))), bad
    if policy == "skip" and job.batched:
        return found, [i for i in range(len(found)) if i not in errors], bad
    first = errors[bad[0].index]
    if len(bad) == 1:
        first.sample = bad[0].index  # type: ignore[attr-defined]
        raise first
    raise RuntimeError(_all_named(bad, len(found)))


def _fill_shape(error: BaseException, options: Options) -> tuple[int, int, int]:
    shape = getattr(error, "image_shape", None)
    if shape is not None and 0 < shape[0] * shape[1] <= options.limit():
        return shape
    return 1, 1, 1 if options.output_type == DALIImageType.GRAY else 3


def _all_named(bad: list[BadSample], count: int) -> str:
    lines = [f"sample {b.index}{f' ({b.source})' if b.source else ''}: {b.error}" for b in bad]
    return (
        f"{len(bad)} of {count} samples cannot be decoded:\n  "
        + "\n  ".join(lines)
        + '\non_error="skip" leaves such samples out, on_error="fill" makes them zeros.'
    )
