"""`Packed`: samples at any places in a few buffers, as a reader has them, without an object for each sample."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ndd._tensor.small_arrays import few_zeros
from ndd._tensor.store import address, volumes


class Packed:
    """Samples of one element type and number of dimensions, each C-contiguous, at any places in one or more buffers.

    Attributes:
        buffers: 1-D arrays of the samples' element type.
        which: the number of each sample's buffer, int64 `[N]`.
        starts: the element of that buffer at which each sample begins, int64 `[N]`.
        shapes: int64 `[N, ndim]`.
    """

    __slots__ = ("buffers", "shapes", "starts", "which")

    def __init__(self, buffers: Sequence[np.ndarray], which: np.ndarray, starts: np.ndarray, shapes: np.ndarray):
        self.buffers, self.which, self.starts, self.shapes = buffers, which, starts, shapes

    @classmethod
    def of(cls, buffer: np.ndarray, starts: np.ndarray, shapes: np.ndarray) -> Packed:
        """Samples in one buffer; `shapes` may be `[N]` for samples of one dimension."""
        return cls([buffer], few_zeros(len(starts), np.int64), starts, shapes.reshape(len(starts), -1))

    @classmethod
    def joined(cls, parts: Sequence[Packed]) -> Packed:
        """The samples of several `Packed`, concatenated."""
        buffers: list[np.ndarray] = []
        which: list[np.ndarray] = []
        for part in parts:
            which.append(part.which + len(buffers))
            buffers += part.buffers
        starts, shapes = [part.starts for part in parts], [part.shapes for part in parts]
        return cls(buffers, np.concatenate(which), np.concatenate(starts), np.concatenate(shapes))

    @property
    def dtype(self) -> np.dtype:
        """The element type."""
        return self.buffers[0].dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions of a sample."""
        return self.shapes.shape[1]

    def __len__(self) -> int:
        return len(self.starts)

    def picked(self, places: np.ndarray) -> Packed:
        """Some of the samples, in any order."""
        return Packed(self.buffers, self.which[places], self.starts[places], self.shapes[places])

    def arrays(self) -> list[np.ndarray]:
        """Every sample as an array of its own shape: views."""
        starts, ends = self.starts.tolist(), (self.starts + volumes(self.shapes)).tolist()
        if len(self.buffers) == 1:
            buffer = self.buffers[0]
            flat: list[np.ndarray] = [buffer[start:end] for start, end in zip(starts, ends, strict=True)]
        else:
            buffers = self.buffers
            flat = [buffers[k][start:end] for k, start, end in zip(self.which.tolist(), starts, ends, strict=True)]
        if self.ndim == 1:
            return flat
        return [array.reshape(shape) for array, shape in zip(flat, self.shapes.tolist(), strict=True)]

    def addresses(self) -> np.ndarray:
        """The address of each sample, int64 `[N]`."""
        bases = np.array([address(buffer) for buffer in self.buffers], np.int64)
        return bases[self.which] + self.starts * self.dtype.itemsize
