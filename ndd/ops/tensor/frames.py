"""Video as data: `sequence_rearrange`, `element_extract`, `per_frame`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd._compiled.jit import kernel
from ndd._cpu.element_copies import copy_bytes
from ndd._operator import PerSample, Plan, View, bad_sample, like, operator
from ndd._tensor import Store
from ndd._tensor.store import grouped, volumes


@operator
def sequence_rearrange(input, /, *, new_order: PerSample[list[int]]):
    """Reorders the frames of each sequence; frames may occur several times or not at all.

    Args:
        input: sequences with F as first axis, or without a layout; any element type.
        new_order: for each output frame the number of the input frame.

    `out[i] = in[new_order[i]]`; the other extents, type and layout stay.

    Raises RuntimeError for frames that do not exist, for an empty order, and for inputs of fewer than two axes or
    without F in front.

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
    shapes = input.shapes.copy()
    rows = new_order.distinct()
    lengths = np.array([len(row) for row in rows])
    order = np.zeros((len(rows), max(1, lengths.max())), np.int64)
    for row, numbers in zip(order, rows, strict=True):
        row[: len(numbers)] = numbers
    if not lengths.all():
        raise bad_sample(int(lengths.argmin()), "`new_order` is empty: a sequence needs a frame")
    wrong = ((order < 0) | (order >= shapes[:, :1])) & (np.arange(order.shape[1]) < lengths[:, None])
    if wrong.any():
        i, k = (int(place[0]) for place in np.nonzero(wrong))
        frame = order[i if len(rows) > 1 else 0, k]
        raise bad_sample(i, f"`new_order`: expected frames from 0 to {shapes[i, 0] - 1}, got {frame}")
    shapes[:, 0] = lengths
    item = [1, input.dtype.bytes]
    view = {name: View(grouped(s, 1) * item, np.uint8) for name, s in (("frames", input.shapes), ("out", shapes))}
    return Plan(shapes, {"order": np.broadcast_to(order, (input.n, order.shape[1]))}, view=view)


@sequence_rearrange.cpu
@kernel
def _rearranged(frames, out, order):
    """Copies frames as bytes `[F, n]`."""
    count, size = out.shape
    for i in range(count):
        copy_bytes(out[i].ctypes.data, frames[order[i]].ctypes.data, np.uintp(size))


@sequence_rearrange.cuda("frames.cu")
def _(launch, input, out):
    launch("sequence_rearrange", per_sample={"inner": volumes(out.shapes[:, 1:])})


@operator(outputs=lambda element_map: len(element_map))
def element_extract(input, /, *, element_map: list[int]):
    """Extracts single frames from each sequence: one result for each entry of `element_map`. Nothing is copied.

    Args:
        input: sequences with F as first axis, or without a layout; any element type.
        element_map: the numbers of the frames. One number gives one value, more give a tuple.

    The k-th result is `out = in[element_map[k]]`: the type stays, F leaves the layout.

    Raises RuntimeError for frames that do not exist (negative numbers do not count from the end), for an empty map,
    and for inputs of fewer than two axes or without F in front.

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
    frame = like(input, ndim=input.ndim - 1, layout=(input.layout or "")[1:] or None)
    return frame if len(element_map) == 1 else [frame] * len(element_map)


@element_extract.views
def _(call, sequences: Store, *, element_map) -> list[Store]:
    lengths = sequences.shape_array[:, 0]
    frames = element_map.tolist()
    if len(lengths) and max(frames) >= lengths.min():
        frame = next(f for f in frames if f >= lengths.min())
        i = int((lengths <= frame).argmax())
        raise bad_sample(i, f"`element_map`: there is no frame {frame} in a sequence of {lengths[i]}")
    whole = sequences.whole
    arrays = [] if whole is not None else sequences.arrays()
    shapes = [shape[1:] for shape in sequences.shapes]
    results = []
    for frame in frames:
        memory: dict[str, Any] = (
            {"parts": [array[frame] for array in arrays]} if whole is None else {"whole": whole[:, frame]}
        )
        store = Store(sequences.dtype, call.outs[0].layout, sequences.device, shapes, **memory)
        store.stream, store.ready = sequences.stream, sequences.ready
        results.append(store)
    return results


@operator
def per_frame(input, /, *, replace: bool = False):
    """Marks values as one for each frame, to be an argument of an operator on video. Nothing is copied.

    Args:
        input: values with the frames as first axis, of any element type.
        replace: replace another first letter of the layout with F.

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
def _(call, values: Store, *, replace) -> Store:
    return values.relabelled(call.outs[0].layout)
