"""What an operator's own functions see and give: inputs of a batch, and the plan of its outputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd._tensor import DType, Spec, Store


def like(
    source: Spec,
    *,
    dtype: DType | None = None,
    ndim: int | None = None,
    layout: str | None = "same",
) -> Spec:
    """What comes out is as `source`, except for what is given. `layout=None` means that the result has none."""
    if dtype is None and ndim is None and layout == "same":
        return source
    return Spec.of(
        source.dtype if dtype is None else dtype,
        source.ndim if ndim is None else ndim,
        source.layout if layout == "same" else layout,
        source.device,
    )


def output(dtype: DType, ndim: int | None, layout: str | None = None) -> Spec:
    """What comes out, in full. `ndim=None`: known only when it has run. The device is filled in for you."""
    return Spec.of(dtype, ndim, layout, None)  # type: ignore[arg-type]


class Plan:
    """Shapes of the outputs and the numbers that the kernels need, for the whole batch.

    Args:
        shapes: int64 `[N, ndim]` (or a list of tuples) for one output, a list of these for several. None if only the
            kernel finds the shapes: the CPU kernel then returns its arrays, the CUDA function its tensors.
        per_sample: by name, an array whose first axis is the samples (or a list of N things).
        shared: by name, a number or array that goes for all samples.
    """

    __slots__ = ("per_sample", "shapes", "shared")

    def __init__(self, shapes: Any, per_sample: dict[str, Any] | None = None, shared: dict[str, Any] | None = None):
        self.shapes = shapes
        self.per_sample = per_sample or {}
        self.shared = shared or {}


class Operand:
    """One input of a batch as the plan and CUDA functions see it: `n` samples of `dtype`, `ndim` and `layout`."""

    __slots__ = ("_shapes", "_store", "frames", "n", "spec", "touched")

    def __init__(self, store: Store, spec: Spec, n: int):
        self._store = store
        self.spec = spec
        self.n = n
        self._shapes: np.ndarray | None = None
        self.frames: Any = None  # of the frames of video: a `FrameMap`, which says to what sample each belongs
        self.touched = False  # whether the plan looked at the data: such a plan is good for this batch only

    @property
    def dtype(self) -> DType:
        return self._store.dtype

    @property
    def layout(self) -> str | None:
        return self.spec.layout

    @property
    def ndim(self) -> int:
        return self.shapes.shape[1] if len(self._store.shapes) else (self.spec.ndim or 0)

    @property
    def shapes(self) -> np.ndarray:
        """int64 `[N, ndim]`; one Tensor among batches counts for every sample."""
        if self._shapes is None:
            shapes = self._store.shape_array
            if not len(shapes):
                shapes = np.zeros((0, self.spec.ndim or 0), np.int64)
            same = len(shapes) == self.n
            self._shapes = shapes if same else np.broadcast_to(shapes, (self.n, shapes.shape[1]))
        return self._shapes

    @property
    def arrays(self) -> list[Any]:
        """The samples, each C-contiguous: NumPy arrays on the CPU, torch tensors on a GPU."""
        self.touched = True
        arrays = self._store.contiguous_arrays()
        return arrays if len(arrays) == self.n else arrays * self.n

    @property
    def whole(self) -> Any:
        """All samples as one contiguous array `[N, ...]` if they lie so, else None."""
        from ndd._tensor.store import is_contiguous

        self.touched = True
        whole = self._store.dense()
        fits = whole is not None and len(self._store.shapes) == self.n and is_contiguous(whole)
        return whole if fits else None

    @property
    def flat(self) -> Any:
        """All samples as one 1-D buffer if they lie behind each other, else None."""
        self.touched = True
        if self._store.flat is not None and len(self._store.shapes) == self.n:
            return self._store.flat
        whole = self.whole
        return None if whole is None else whole.reshape(-1)

    @property
    def source_info(self) -> list[Any] | None:
        """Where each sample came from."""
        self.touched = True
        info = self._store.source_info
        return info if info is None or len(info) == self.n else info * self.n

    def pointers(self) -> np.ndarray:
        """The address of each sample, int64 `[N]`: a plan that uses it sets `touched`."""
        found = self._store.pointers()
        return found if len(found) == self.n else np.broadcast_to(found, (self.n,))


def bad_sample(index: int, message: str, kind: type[Exception] = RuntimeError) -> Exception:
    """An error about one sample, to be raised in a plan: the caller adds operator, sample and source to it."""
    error = kind(message)
    error.sample = index  # type: ignore[attr-defined]
    return error
