"""The argument `on_error`: bad samples are raised, skipped or filled."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ndd._tensor.secrets import error_text, without_secrets
from ndd.decoders.backend import Options
from ndd.types import DALIImageType

if TYPE_CHECKING:
    from ndd.decoders.picture_batch import PictureBatch


class BadSample(NamedTuple):
    """A sample that was left out ("skip") or replaced with zeros ("fill"). `batch.dropped` lists them.

    Attributes:
        index: its number in the input batch.
        source: of the sample (from a reader, the file), without the secrets of a URL; or None.
        error: the message of the error.

    >>> import ndd, numpy as np
    >>> files = ndd.batch([np.frombuffer(b"no picture", np.uint8), ndd.io.file.read(ndd.demo.photos() + "/nature/cat.jpg")])
    >>> images = ndd.decoders.image(files, on_error="skip")
    >>> [bad.index for bad in images.dropped], images.batch_size
    ([0], 1)
    """

    index: int
    source: Any
    error: str


def resolve(
    errors: dict[int, BaseException],
    count: int,
    sources: list[Any] | None,
    policy: str,
    fill: Callable[[int, BaseException], None],
) -> tuple[list[int], list[BadSample] | None]:
    """Raises an error that names every bad sample, or returns the numbers of the good samples, and the bad samples.

    A sample is bad only if its data is bad: any other exception, such as MemoryError, is raised unchanged.

    Args:
        errors: those of the bad samples, by their number in the batch of `count`.
        sources: where each sample comes from.
        policy: "raise", "skip" or "fill".
        fill: puts something in the place of a bad sample.
    """
    numbers = list(range(count))
    if not errors:
        return numbers, None
    for i in sorted(errors):
        if not isinstance(errors[i], RuntimeError):
            errors[i].sample = i  # type: ignore[attr-defined]
            raise errors[i]
    sources = sources or [None] * count
    bad = [
        BadSample(
            i,
            without_secrets(sources[i]) if isinstance(sources[i], str) else sources[i],
            error_text(errors[i]) or type(errors[i]).__name__,
        )
        for i in sorted(errors)
    ]
    if policy == "fill":
        for i, error in errors.items():
            fill(i, error)
        return numbers, bad
    if policy == "skip":
        return [i for i in numbers if i not in errors], bad
    first = errors[bad[0].index]
    if len(bad) == 1:
        first.sample = bad[0].index  # type: ignore[attr-defined]
        raise first
    raise RuntimeError(_all_named(bad, count))


def resolve_pictures(batch: PictureBatch) -> tuple[list[int], list[BadSample] | None]:
    """`resolve` for pictures: "fill" makes zeros in the size that the header states."""

    def fill(i: int, error: BaseException) -> None:
        batch.images[i] = np.zeros(_fill_shape(error, batch.options), batch.options.dtype)

    policy = batch.arguments["on_error"]
    if policy == "skip" and not batch.call.batched:
        policy = "raise"
    return resolve(batch.errors, len(batch), batch.sources, policy, fill)


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
