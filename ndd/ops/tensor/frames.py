"""Video as data: `sequence_rearrange`, `element_extract`, `per_frame`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd._operator import PerSample, Plan, bad_sample, like, operator
from ndd._tensor import Store


@operator
def sequence_rearrange(input, /, *, new_order: PerSample[list[int]]):
    """Puts the frames of each sequence in another order; frames may come several times or not at all.

    Args:
        input: sequences with F as first axis, or without a layout; any element type.
        new_order: for each frame of the output the number of the frame of the input.

    Raises RuntimeError for frames that are not there and for an empty order.

    >>> import ndd
    >>> ndd.sequence_rearrange(ndd.tensor([[1, 1], [2, 2], [3, 3]], layout="FX"), new_order=[2, 0]).torch()
    tensor([[3, 3],
            [1, 1]], dtype=torch.int32)
    """
    _check_sequence("sequence_rearrange", input)
    return input


def _check_sequence(name: str, spec: Any) -> None:
    if spec.layout and spec.layout[0] != "F":
        raise RuntimeError(f"{name}: expected a sequence with F as first axis, got layout {spec.layout!r}")
    if spec.ndim is not None and spec.ndim < 2:
        raise RuntimeError(f"{name}: expected sequences of arrays, with at least two axes, got {spec.ndim}")


@sequence_rearrange.plan
def _(input, *, new_order):
    rows = (
        new_order if isinstance(new_order, list) else list(np.broadcast_to(new_order, (input.n, new_order.shape[-1])))
    )
    shapes = input.shapes.copy()
    longest = max(len(r) for r in rows)
    order = np.zeros((input.n, max(longest, 1)), np.int64)
    for i, row in enumerate(rows):
        if not len(row):
            raise bad_sample(i, "`new_order` is empty: a sequence needs a frame")
        wrong = (row < 0) | (row >= shapes[i, 0])
        if wrong.any():
            raise bad_sample(i, f"`new_order`: expected frames from 0 to {shapes[i, 0] - 1}, got {row[wrong][0]}")
        order[i, : len(row)] = row
        shapes[i, 0] = len(row)
    return Plan(shapes, {"order": order, "inner": shapes[:, 1:].prod(axis=1)})


@sequence_rearrange.cpu
def _(array, out, order):
    np.take(array, order[: len(out)], axis=0, out=out, mode="clip")


sequence_rearrange.cuda("frames.cu")


@operator
def element_extract(input, /, *, element_map: list[int]):
    """Takes single frames out of each sequence: one result for each entry of `element_map`. Nothing is copied.

    Args:
        input: sequences with F as first axis, or without a layout; any element type.
        element_map: the numbers of the frames. One number gives one value, more give a tuple.

    Raises RuntimeError for frames that are not there and for an empty map.

    >>> import ndd
    >>> last, first = ndd.element_extract(ndd.tensor([[1, 1], [2, 2]], layout="FX"), element_map=[1, 0])
    >>> last.torch(), last.layout
    (tensor([2, 2], dtype=torch.int32), 'X')
    """
    if not len(element_map):
        raise RuntimeError("element_extract: `element_map` is empty: name at least one frame")
    if min(element_map) < 0:
        raise RuntimeError(
            f"element_extract: `element_map`: frames are counted from 0, got {[int(i) for i in element_map]}"
        )
    _check_sequence("element_extract", input)
    one = like(input, ndim=input.ndim - 1, layout=(input.layout or "")[1:] or None)
    return one if len(element_map) == 1 else [one] * len(element_map)


@element_extract.views
def _(job, sequences: Store, *, element_map) -> list[Store]:
    arrays = sequences.arrays()
    results = []
    for frame in element_map.tolist():
        for i, array in enumerate(arrays):
            if frame >= len(array):
                raise bad_sample(i, f"`element_map`: there is no frame {frame} in a sequence of {len(array)}")
        parts = [array[frame] for array in arrays]
        store = Store(
            sequences.dtype, job.outs[0].layout, sequences.device, [tuple(p.shape) for p in parts], parts=parts
        )
        store.stream, store.ready = sequences.stream, sequences.ready
        results.append(store)
    return results


@operator
def per_frame(input, /, *, replace: bool = False):
    """Marks values as one for each frame, to be an argument of an operator on video. Nothing is copied.

    Args:
        input: values with the frames as first axis.
        replace: put F in place of the first letter of a layout that has another one there.

    Raises RuntimeError for scalars, and for another first letter without `replace`.

    >>> import ndd
    >>> ndd.per_frame(ndd.tensor([10, 20, 30])).layout
    'F'
    """
    if not input.ndim:
        raise RuntimeError("per_frame: a scalar has no axis that could be the frames")
    layout = input.layout or "F" + "*" * (input.ndim - 1)
    if layout[0] != "F":
        if not replace:
            raise RuntimeError(f"per_frame: the layout must begin with F, got {layout!r}; `replace=True` puts it there")
        layout = "F" + layout[1:]
    return like(input, layout=layout)


@per_frame.views
def _(job, values: Store, *, replace) -> Store:
    return values.relabelled(job.outs[0].layout)
