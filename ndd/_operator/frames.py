"""Video: a sample with a leading F axis is unrolled into F samples, which are put together again afterwards.

If only an input other than the first has that axis (the matrices of `warp_affine`), each image is computed once for each of
its frames, and videos come out.
"""

# This package may use attributes that are private to users, such as `Handle._value`.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ndd._operator.arguments import Argument, values_of
from ndd._operator.plan import bad_sample
from ndd._operator.values import Values
from ndd._tensor import Handle, Spec, Store
from ndd._tensor.operand import Operand

if TYPE_CHECKING:
    from ndd._operator.operator import Operator


def is_video(spec: Spec | None) -> bool:
    """Whether samples of this kind have a leading F axis."""
    return spec is not None and (spec.layout or "")[:1] == "F"


def frame_spec(spec: Spec | None) -> Spec | None:
    """One frame of a video; images unchanged."""
    if spec is None or not is_video(spec):
        return spec
    return Spec.of(spec.dtype, spec.ndim and spec.ndim - 1, (spec.layout or "F")[1:] or None, spec.device)


def video_spec(spec: Spec) -> Spec:
    """A video of such frames."""
    return Spec.of(spec.dtype, spec.ndim and spec.ndim + 1, "F" + spec.layout if spec.layout else None, spec.device)


class FrameMap:
    """Which frames belong to which sample. `sizes`: the shape of a frame of each sample, also of one without frames."""

    def __init__(self, counts: np.ndarray, sizes: np.ndarray):
        self.counts = counts
        self.sizes = sizes
        self.count = int(counts.sum())
        self.starts = np.concatenate(([0], np.cumsum(counts)))

    def sample_of(self, frame: int) -> int:
        """The sample that frame number `frame` of the unrolled batch belongs to."""
        return int(np.searchsorted(self.starts, frame, side="right") - 1)

    def roll(self, store: Store, spec: Spec) -> Store:
        """Puts frames together into samples again. The frames of one sample must have one shape."""
        counts = self.counts.tolist()
        shapes: list[tuple[int, ...]] = []
        for k, count in enumerate(counts):
            own = store.shapes[self.starts[k] : self.starts[k] + count]
            if any(s != own[0] for s in own):
                text = f"the frames of one sample must all get one shape, got {sorted(set(own))}"
                raise bad_sample(int(self.starts[k]), text)
            shapes.append((count, *(own[0] if own else self._without_frames(k, (spec.ndim or 1) - 1))))
        forms: dict[str, Any] = {}
        if store.whole is not None and len(set(counts)) == 1:
            forms["whole"] = store.whole.reshape((shapes and (len(shapes), *shapes[0])) or (0,))
        elif store.whole is not None:
            forms["flat"] = store.whole.reshape(-1)
        elif store.flat is not None:
            forms["flat"] = store.flat
        else:
            stack: Callable[[list[Any]], Any] = np.stack if store.on_cpu else torch.stack
            arrays = store.arrays()
            forms["parts"] = [
                stack(arrays[self.starts[k] : self.starts[k] + c]) if c else np.empty(shapes[k], store.dtype.numpy)
                for k, c in enumerate(counts)
            ]
        result = Store(store.dtype, spec.layout, store.device, shapes, **forms)
        result.stream, result.ready, result.dropped = store.stream, store.ready, store.dropped
        return result

    def _without_frames(self, sample: int, ndim: int) -> tuple[int, ...]:
        """The shape of the frames of a sample without frames: the input's, which most operators keep."""
        own = tuple(self.sizes[sample].tolist())
        return own if len(own) == ndim else (0,) * ndim


def unroll(
    op: Operator, operands: list[Any], args: dict[str, Any], n: int
) -> tuple[list[Any], dict[str, Any], FrameMap]:
    """The frames of all video inputs as samples; other inputs and arguments repeated, or one for each frame."""
    lead = next(operand for operand in operands if operand is not None and is_video(operand.spec))
    counts = lead.shapes[:, 0].astype(np.int64)
    frames = FrameMap(counts, lead.shapes[:, 1:])
    expanded: list[Any] = []
    for operand in operands:
        if operand is not None and is_video(operand.spec):
            _check_counts(operand, counts)
            expanded.append(_frames_of(operand))
            expanded[-1].frames = frames
        else:
            expanded.append(_repeated(operand, counts))
    values: dict[str, Any] = {}
    for argument in op.arguments:
        value = args[argument.name]
        if isinstance(value, Handle) and (value.layout or "")[:1] == "F":
            values[argument.name] = _per_frame(argument, value, counts, op.name)
        elif argument.per_sample and value is not None:
            values[argument.name] = values_of(argument, value, n, op.name).repeated(counts)
        else:
            values[argument.name] = value
    return expanded, values, frames


def _check_counts(operand: Operand, counts: np.ndarray) -> None:
    own = operand.shapes[:, 0]
    if (own != counts).any():
        sample = int((own != counts).argmax())
        raise bad_sample(sample, f"one input has {counts[sample]} frames, another one {own[sample]}")


def _frames_of(operand: Operand) -> Operand:
    store = operand._store
    spec = Spec(store.dtype, operand.ndim - 1, (operand.layout or "F")[1:] or None, store.device)
    shapes = [tuple(s[1:]) for s in operand.shapes.tolist() for _ in range(s[0])]
    forms: dict[str, Any] = {}
    whole = operand.whole
    if whole is not None:
        forms["whole"] = whole.reshape((whole.shape[0] * whole.shape[1], *whole.shape[2:]))
    elif store.flat is not None and len(store.shapes) == operand.n:
        forms["flat"] = store.flat
    else:
        forms["parts"] = [a[i, ...] for a in operand.arrays for i in range(len(a))]  # even where a frame is a number
    result = Store(store.dtype, spec.layout, store.device, shapes, **forms)
    result.stream, result.ready = store.stream, store.ready
    return Operand(result, spec, len(shapes))


def _repeated(operand: Operand | None, counts: np.ndarray) -> Any:
    if operand is None:
        return None
    store = operand._store
    parts = [a for a, c in zip(operand.arrays, counts, strict=True) for _ in range(c)]
    result = Store(store.dtype, store.layout, store.device, [tuple(p.shape) for p in parts], parts=parts)
    return Operand(result, operand.spec, len(parts))


def _per_frame(argument: Argument, handle: Any, counts: np.ndarray, operator: str) -> Values:
    """An argument with a leading F axis: one value for each frame (or one for all frames of the sample)."""
    arrays = (handle if handle.device.device_type == "cpu" else handle.cpu())._value().arrays()
    if len(arrays) == 1 and len(counts) != 1:
        arrays = arrays * len(counts)
    rows: list[Any] = []
    for i, (array, count) in enumerate(zip(arrays, counts, strict=True)):
        values = array if len(array) == count else np.repeat(array, count, axis=0) if len(array) == 1 else None
        if values is None:
            raise RuntimeError(
                f"{operator}: sample {i}: argument {argument.name!r} has {len(array)} values for {count} frames"
            )
        rows.extend(values)
    per_frame: Any
    if argument.vector:
        per_frame = [np.atleast_1d(r).astype(argument.numpy) for r in rows]
        per_frame = per_frame if _uneven(per_frame) else np.array(per_frame, argument.numpy)
    else:
        per_frame = np.array([np.asarray(r).reshape(()) for r in rows]).astype(argument.numpy)
    return Values(argument.name, per_frame, len(rows), argument.numpy, argument.vector, varies=True)


def _uneven(rows: list[Any]) -> bool:
    return any(np.shape(r) != np.shape(rows[0]) for r in rows)
