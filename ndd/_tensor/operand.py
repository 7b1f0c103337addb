"""`Operand`: an input of a batch as an operator sees it; it records whether anybody has looked at the data."""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd._tensor.dtype import DType
from ndd._tensor.handle import Spec
from ndd._tensor.memory import memory_at
from ndd._tensor.store import Store, Volumes, is_contiguous


class Operand:
    """An input (for CUDA functions also an output) of a batch: `n` samples of `dtype`, `ndim` and `layout`.

    Results that follow from shapes and types alone are cached for the next batch with the same ones. `arrays`, `whole`, `flat`,
    `elements()`, `pointers()` and `source_info` give access to the data. They mark the operand as `touched`; then nothing is
    cached.
    """

    __slots__ = ("_gapless", "_shapes", "_store_", "frames", "n", "spec", "touched")

    def __init__(self, store: Store, spec: Spec, n: int):
        self._store_ = store
        self.spec = spec
        self.n = n
        self._shapes: np.ndarray | None = None
        self._gapless: Store | None = None
        self.frames: Any = None  # for frames of video: the `FrameMap`, which says to which sample each frame belongs
        self.touched = False

    @property
    def _store(self) -> Store:
        """The memory. Access to it counts as reading the data."""
        self.touched = True
        return self._store_

    @property
    def dtype(self) -> DType:
        return self._store_.dtype

    @property
    def layout(self) -> str | None:
        return self.spec.layout

    @property
    def ndim(self) -> int:
        return self.shapes.shape[1] if self._store_.n else (self.spec.ndim or 0)

    @property
    def on_cpu(self) -> bool:
        """Whether the values are in host memory. CUDA functions may get such operands too, see `reads` of `operator`."""
        return self._store_.on_cpu

    @property
    def shapes(self) -> np.ndarray:
        """int64 `[N, ndim]`; one Tensor among batches counts for every sample."""
        if self._shapes is None:
            shapes = self._store_.shape_array
            if not len(shapes):
                shapes = np.zeros((0, self.spec.ndim or 0), np.int64)
            same = len(shapes) == self.n
            self._shapes = shapes if same else np.broadcast_to(shapes, (self.n, shapes.shape[1]))
        return self._shapes

    @property
    def varies(self) -> bool:
        """Whether the samples have values of their own: one Tensor among batches counts for every sample."""
        return self._store_.n == self.n

    @property
    def volumes(self) -> Any:
        """The numbers of elements: `.sizes` `[N]` of the samples, `.largest`, `.total`."""
        if self._store_.n == self.n:
            return self._store_.volumes
        return Volumes(self.shapes)

    @property
    def sizes(self) -> np.ndarray:
        """The number of elements of each sample, int64 `[N]`."""
        return self.volumes.sizes

    @property
    def arrays(self) -> list[Any]:
        """The samples, each C-contiguous: NumPy arrays on the CPU, torch tensors on a GPU."""
        arrays = self._without_gaps().arrays()
        return arrays if len(arrays) == self.n else arrays * self.n

    @property
    def whole(self) -> Any:
        """All samples as one contiguous array `[N, ...]` if their memory allows it, otherwise None."""
        whole = self._store.dense()
        fits = whole is not None and self._store_.n == self.n and is_contiguous(whole)
        return whole if fits else None

    @property
    def flat(self) -> Any:
        """All samples as one 1-D buffer if they follow each other in memory, otherwise None."""
        store = self._store
        if store.flat is not None and store.n == self.n:
            return store.flat
        whole = self.whole
        return None if whole is None else whole.reshape(-1)

    def elements(self) -> tuple[np.ndarray, np.ndarray]:
        """On the CPU: a 1-D array that has all samples in it, and where each begins, int64 `[N]`.

        If the samples are apart in memory, the array spans all memory from the first to the last of them. Only the samples
        themselves may be touched, and the array must not outlive this operand. This way a compiled loop takes all samples
        without a view of each.
        """
        flat = self.flat
        if flat is not None:
            return flat, self.volumes.offsets
        if not self.volumes.total:
            return np.empty(0, self.dtype.numpy), np.zeros(self.n, np.int64)
        places, nbytes = self.pointers(), self.dtype.bytes
        first = int(places.min())
        starts = places - first
        if (starts % nbytes).any():  # one of them is not aligned
            return np.concatenate([a.reshape(-1) for a in self.arrays]), self.volumes.offsets
        starts //= nbytes
        return memory_at(first, int((starts + self.sizes).max()), self.dtype.numpy), starts

    @property
    def source_info(self) -> list[Any] | None:
        """The source of each sample."""
        info = self._store.source_info
        return info if info is None or len(info) == self.n else info * self.n

    def pointers(self) -> np.ndarray:
        """The address of each sample, int64 `[N]`. A strided sample is copied; the copy exists as long as this operand."""
        addresses = self._without_gaps().pointers()
        return addresses if len(addresses) == self.n else np.broadcast_to(addresses, (self.n,))

    def _without_gaps(self) -> Store:
        """The memory, each sample C-contiguous."""
        if self._gapless is None:
            self._gapless = self._store.contiguous()
        return self._gapless
