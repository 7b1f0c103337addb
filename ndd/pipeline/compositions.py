"""Functions that DALI has in pipeline mode alone, put together from others."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

import ndd
from ndd.pipeline.functions import OWN, fn
from ndd.pipeline.node import DataNode, as_constant
from ndd.types import RGB


def ssd_random_crop(
    images: Any,
    boxes: Any,
    labels: Any,
    *,
    num_attempts: int = 1,
    seed: int | None = None,
    device: str | None = None,
    preserve: bool = False,
    bytes_per_sample_hint: Any = None,
) -> Any:
    """Random crops for single-shot detectors: the image, and the boxes and labels that stay.

    Each crop has 0.3 to 1 times the extents of the image and an aspect ratio of 0.5 to 2. Every box whose centre it has overlaps
    with it by at least a share that is drawn: 0, 0.1, 0.3, 0.5, 0.7 or 0.9; or there is no crop. (The crops are DALI's if
    `num_attempts` is 1; else they are drawn in another order.) CPU; `random_bbox_crop` and `slice` can do more.

    Args:
        images: "HWC".
        boxes: `[boxes, 4]`, left, top, right, bottom from 0 to 1.
        labels: i32 `[boxes]`.
        num_attempts: how many crops are tried with a share before another one is drawn.
        seed: default: a word of the pipeline's.
        device, preserve, bytes_per_sample_hint: no effect.
    """
    anchors, shapes, boxes, labels = fn.random_bbox_crop(
        boxes,
        labels,
        ltrb=True,
        allow_no_crop=True,
        thresholds=[0.0, 0.1, 0.3, 0.5, 0.7, 0.9],
        scaling=[0.3, 1.0],
        aspect_ratio=[0.5, 2.0],
        num_attempts=num_attempts,
        seed=seed,
    )
    return [fn.slice(images, anchors, shapes), boxes, labels]


def sequence_reader(
    *,
    file_root: str | os.PathLike[str],
    sequence_length: int,
    step: int = 1,
    stride: int = 1,
    image_type: Any = RGB,
    device: str | None = None,
    name: str | None = None,
    **options: Any,
) -> Any:
    """Sequences of frames that lie in files: u8 `[F, H, W, C]`, layout "FHWC".

    Every folder of `file_root` is a video, of a picture for each frame in the order of their names. A sequence does not leave
    its folder, and only whole ones are given. (`readers.video` reads videos themselves, and faster.)

    Args:
        sequence_length: frames of a sequence.
        step: how far sequences begin apart.
        stride: how far the frames of one are apart.
        image_type: the colour space.
        device: "cpu".
        name: for `Pipeline.reader_meta` and iterators.
        options: those that all readers share, such as `random_shuffle` and `num_shards`.

    RuntimeError for lengths below 1, and where no folder has enough frames.
    """
    for argument, value in (("sequence_length", sequence_length), ("step", step), ("stride", stride)):
        if value < 1:
            raise RuntimeError(f"fn.readers.sequence: {argument}: expected at least 1, got {value}")
    sequences: list[list[str]] = []
    for folder in sorted(entry.path for entry in os.scandir(file_root) if entry.is_dir()):
        frames = sorted(entry.path for entry in os.scandir(folder) if entry.is_file())
        span = (sequence_length - 1) * stride + 1
        sequences += [frames[first : first + span : stride] for first in range(0, len(frames) - span + 1, step)]
    if not sequences:
        raise RuntimeError(
            f"fn.readers.sequence: no folder of {file_root!r} has a sequence of {sequence_length} frames"
        )
    _, numbers = fn.readers.file(
        files=[frames[0] for frames in sequences], labels=list(range(len(sequences))), name=name, **options
    )

    def decoded(batch: Any) -> Any:
        chosen = [sequences[int(np.asarray(number)[0])] for number in batch]
        files = ndd.io.file.read([path for frames in chosen for path in frames])
        frames = list(ndd.decoders.image(files, output_type=image_type))
        clips = [frames[i : i + sequence_length] for i in range(0, len(frames), sequence_length)]
        return ndd.batch([np.stack([np.asarray(frame) for frame in clip]) for clip in clips], layout="FHWC")

    return numbers._apply(decoded)


def split(value: Any, *, predicate: Any, **_: Any) -> Any:
    """Two nodes: the samples where `predicate` is true, and the others. `if node:` does this for a whole branch."""

    def parted(batch: Any, flags: Any) -> list[Any]:
        places: dict[bool, list[int]] = {True: [], False: []}
        for i, flag in enumerate(flags):
            places[bool(np.asarray(flag))].append(i)
        if not isinstance(batch, ndd.Batch):
            batch = as_constant(value, flags.batch_size)
        return [batch.select(places[True]), batch.select(places[False])]

    if isinstance(value, DataNode):  # first, as in DALI: in this order they get their seeds
        both = value._apply(parted, predicate)
    else:
        both = predicate._apply(lambda flags, batch: parted(batch, flags), value)
    return [DataNode(step=lambda memo, i=i: both.evaluated(memo)[i], inputs=(both,)) for i in range(2)]


def merge(true: Any, false: Any, *, predicate: Any, **_: Any) -> Any:
    """What `split` gave, after other steps, in the order that it had before."""

    def merged(true: Any, false: Any, flags: Any) -> Any:
        ways = {True: iter(true.tensors), False: iter(false.tensors)}
        return ndd.as_batch([next(ways[bool(np.asarray(flag))]) for flag in flags])

    return true._apply(merged, false, predicate)


def logical_not(value: Any, **_: Any) -> Any:
    """True where a number is 0. RuntimeError unless there is one for each sample."""
    scalar = validate_logical(value, expression_name="not", expression_side="right")
    return scalar._apply(
        lambda batch: (ndd.cast(batch, dtype=ndd.float32) if batch.dtype == ndd.float16 else batch) == 0
    )


def validate_logical(value: Any, *, expression_name: str, expression_side: str, **_: Any) -> Any:
    """The value, if it can be a side of `and` and `or`: RuntimeError unless it has one value for each sample."""

    def checked(batch: Any) -> Any:
        if batch.ndim != 0:
            raise RuntimeError(
                f"The {expression_side} side of `{expression_name}` is restricted to scalars (0-d tensors), one for each sample: "
                f"got {batch.ndim} dimensions: use a reduction"
            )
        return batch

    return value._apply(checked)


OWN["_conditional.validate_logical"] = validate_logical
OWN["_conditional.split"], OWN["_conditional.merge"], OWN["_conditional.not_"] = split, merge, logical_not
OWN["ssd_random_crop"] = ssd_random_crop
OWN["readers.sequence"] = OWN["sequence_reader"] = sequence_reader
