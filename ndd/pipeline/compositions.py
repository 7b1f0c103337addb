"""Functions that DALI has only in pipeline mode, composed of other functions."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

import ndd
from ndd.pipeline.functions import OWN, fn
from ndd.pipeline.node import DataNode, add_node, as_constant
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

    Each crop has 0.3 to 1 times the extents of the image and an aspect ratio of 0.5 to 2. Every box whose centre lies in the
    crop overlaps with it by at least a share that is drawn: 0, 0.1, 0.3, 0.5, 0.7 or 0.9; or there is no crop. (The crops
    are DALI's if `num_attempts` is 1; otherwise they are drawn in another order.) CPU; `random_bbox_crop` and `slice` can do
    more.

    Args:
        images: "HWC".
        boxes: `[boxes, 4]`, left, top, right, bottom from 0 to 1.
        labels: i32 `[boxes]`.
        num_attempts: the number of crops that are tried with a share before another one is drawn.
        seed: default: a word of the pipeline's seed.
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
    """Sequences of frames that are stored as files: u8 `[F, H, W, C]`, layout "FHWC".

    Every folder of `file_root` is a video, with a picture for each frame in the order of their names. A sequence lies within
    one folder, and incomplete sequences are left out. (`readers.video` reads videos themselves, and faster.)

    Args:
        sequence_length: frames of a sequence.
        step: the distance between the beginnings of sequences, in frames.
        stride: the distance between frames of a sequence.
        image_type: the colour space.
        device: "cpu".
        name: for `Pipeline.reader_meta` and iterators.
        options: the arguments that all readers share, such as `random_shuffle` and `num_shards`.

    RuntimeError for lengths below 1, and if no folder has enough frames.
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

    frames = numbers._apply(decoded)
    if numbers._step is not None:
        numbers._step.call_state.node = frames  # the reader has this call's name
    return frames


def split(value: Any, *, predicate: Any, **_: Any) -> Any:
    """Two nodes: the samples where `predicate` is true, and the others. `if node:` does this with the nodes that a branch
    takes."""

    def parts(run: Any) -> Any:
        flags = run.flags(predicate)
        batch = run.of(value) if isinstance(value, DataNode) else as_constant(value, len(flags))
        return tuple(batch.select(np.flatnonzero(flags == side).tolist()) for side in (True, False))

    return add_node(parts, (value, predicate), outputs=2, joins=True)


def merge(true: Any, false: Any, *, predicate: Any, **_: Any) -> Any:
    """Joins the parts of `split`, after other steps, in their order before the split."""

    def merged(run: Any) -> Any:
        flags = run.flags(predicate)
        first, two = run.of(true), run.of(false)
        counts = np.count_nonzero(flags), np.count_nonzero(~flags)
        if (first.batch_size, two.batch_size) != counts:
            raise RuntimeError(
                f"A merge has {first.batch_size} samples for true and {two.batch_size} for false, the predicate has {counts[0]} "
                f"and {counts[1]}"
            )
        if not (first.batch_size and two.batch_size):
            return first if first.batch_size else two
        for attribute in ("dtype", "ndim", "device"):
            if getattr(first, attribute) != getattr(two, attribute):
                raise RuntimeError(
                    f"The branches of an `if` on a node give values of different {attribute}: {getattr(first, attribute)} and "
                    f"{getattr(two, attribute)}. They become one batch, so they must agree: cast or move one of them"
                )
        sides = {True: iter(first.tensors), False: iter(two.tensors)}
        return ndd.as_batch([next(sides[flag]) for flag in flags.tolist()], layout=first.layout)

    return add_node(merged, (true, false, predicate), joins=True)


def logical_not(value: Any, **_: Any) -> Any:
    """True where a number is 0. RuntimeError unless there is one for each sample."""

    def opposite(batch: Any) -> Any:
        _check_scalars(batch, "not", "right")
        return (ndd.cast(batch, dtype=ndd.float32) if batch.dtype == ndd.float16 else batch) == 0

    return value._apply(opposite)


def validate_logical(value: Any, *, expression_name: str, expression_side: str, **_: Any) -> Any:
    """The value, if it can be a side of `and` and `or`: RuntimeError unless it has one truth value for each sample."""

    def checked(batch: Any) -> Any:
        _check_scalars(batch, expression_name, expression_side)
        if batch.dtype != ndd.bool:
            raise RuntimeError(
                f"The {expression_side} side of `{expression_name}` is restricted to truth values, got {batch.dtype}: compare "
                "it, as in `node != 0`"
            )
        return batch

    return value._apply(checked)


def _check_scalars(batch: Any, name: str, side: str) -> None:
    if batch.ndim != 0:
        raise RuntimeError(
            f"The {side} side of `{name}` is restricted to scalars (0-d tensors), one for each sample: got {batch.ndim} "
            "dimensions: use a reduction"
        )


OWN["_conditional.validate_logical"] = validate_logical
OWN["_conditional.split"], OWN["_conditional.merge"], OWN["_conditional.not_"] = split, merge, logical_not
OWN["ssd_random_crop"] = ssd_random_crop
OWN["readers.sequence"] = OWN["sequence_reader"] = sequence_reader
