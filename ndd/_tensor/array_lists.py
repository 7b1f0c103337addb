"""Makes batches from lists of arrays of one element type, with little Python code for each array."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from ndd._tensor.batch import Batch
from ndd._tensor.device import Device
from ndd._tensor.dtype import BY_TORCH, DType, from_framework
from ndd._tensor.handle import Handle
from ndd._tensor.memory import host_empty
from ndd._tensor.store import Store


def arrays_alike(samples: Any, wanted: DType | None, layout: str | None, copy: bool) -> Sequence[np.ndarray] | None:
    """The samples as NumPy arrays if they are alike, else None. They are alike if all are plain NumPy arrays, CPU tensors of
    torch, or bytes to `copy`, with one number of axes that fits `layout` and one element type, which is `wanted`."""
    kinds = set(map(type, samples))
    if len(kinds) != 1:
        return None
    if kinds == {bytes} and copy:  # bytes that are shared take the other path
        samples = [np.frombuffer(data, np.uint8) for data in samples]
    elif kinds != {np.ndarray}:
        torch = sys.modules.get("torch")
        if torch is None or kinds != {torch.Tensor} or not all([_is_plain(t, torch) for t in samples]):
            return None
        samples = [t.numpy() for t in samples]
    first, ndim = samples[0].dtype, samples[0].ndim
    if len({array.dtype for array in samples}) != 1 or len({array.ndim for array in samples}) != 1:
        return None
    if first.kind not in "biuf" or first.itemsize > 8 or not first.isnative or (layout and len(layout) != ndim):
        return None
    return samples if wanted is None or wanted is from_framework(first) else None


def _is_plain(tensor: Any, torch: Any) -> bool:
    """Whether NumPy can view the memory of a torch tensor."""
    if tensor.device.type != "cpu" or tensor.requires_grad or tensor.layout is not torch.strided:
        return False
    is_known = tensor.dtype in BY_TORCH and tensor.dtype is not torch.bfloat16
    return is_known and not tensor.is_neg() and not tensor.is_nested


def batch_of_arrays(arrays: Sequence[np.ndarray], layout: str | None, copy: bool) -> Batch:
    """A Batch of arrays of one element type and number of axes: over their memory, or over one copy of all."""
    kind, shapes = from_framework(arrays[0].dtype), [array.shape for array in arrays]
    if not copy:
        result = Batch._of_store(Store(kind, layout, Device.CPU, shapes, parts=list(arrays)))
        result._external = True
        return result
    if shapes.count(shapes[0]) == len(shapes):
        whole = host_empty((len(arrays), *shapes[0]), arrays[0].dtype)
        np.stack(arrays, out=whole)
        return Batch._of_store(Store(kind, layout, Device.CPU, shapes, whole=whole))
    flat = [array.reshape(-1) for array in arrays]
    joined = host_empty((sum([array.size for array in flat]),), arrays[0].dtype)
    np.concatenate(flat, out=joined)
    return Batch._of_store(Store(kind, layout, Device.CPU, shapes, flat=joined))


def check_dimensions(samples: Sequence[Any], handles: Sequence[Handle], layout: str | None) -> None:
    """Raises if samples differ in their number of axes, or do not fit `layout`: the kind of error is DALI's, which joins
    Tensors (that it makes of numbers and lists too) in another way than arrays."""
    ndim, own = handles[0].ndim, layout or handles[0].layout
    if all([handle.ndim == ndim for handle in handles]) and (not own or len(own) == ndim):
        return
    only_arrays = all(not isinstance(s, Handle) and getattr(s, "ndim", 0) for s in samples)
    for i, (sample, handle) in enumerate(zip(samples, handles, strict=True)):
        differs = handle.ndim != ndim
        # A layout that is given goes to every sample, one of sample 0 to those that are no Tensors. In a list of
        # arrays alone, they are compared with one another first.
        gets_layout = not (differs and only_arrays) if layout else not isinstance(sample, Handle)
        if own and gets_layout and handle.ndim != len(own):
            raise ValueError(
                f"A non-empty layout must have the same number of dimensions as every sample: "
                f"got {len(own)} ({own}), sample {i} has {handle.ndim}"
            )
        if differs:
            raise (RuntimeError if only_arrays else TypeError)(
                f"All samples of a batch must have the same number of dimensions: "
                f"sample 0 has {ndim}, sample {i} has {handle.ndim}"
            )
