"""`Output`: what a reader says of one of its outputs before anything is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ndd._tensor.dtype import DType

Record = tuple[np.ndarray, ...]

_SMALL = 64  # bytes below which copying a record costs less than keeping it as an array of its own


@dataclass(frozen=True)
class Output:
    """One output of a reader; `Reader.outputs(**arguments)` gives a tuple of them.

    Attributes:
        name: what it is; the key where samples are dicts.
        dtype: the element type; None if only the data tells.
        ndim: the number of dimensions of a sample; None if only the data tells.
        layout: the layout, if it has one.
        device: where it is delivered. A reader declares "reader" for an output that follows its argument `device`;
            `Reader.outputs` gives "cpu" or "gpu".
    """

    name: str
    dtype: DType | None = None
    ndim: int | None = None
    layout: str | None = None
    device: Literal["cpu", "gpu", "reader"] = "cpu"

    @property
    def told(self) -> bool:
        """Whether nothing is left to the data, so that the first sample, as the reader's own promise, stands for all."""
        return self.dtype is not None and self.ndim is not None

    def refused(self, samples: Sequence[np.ndarray]) -> tuple[int, str] | None:
        """The first of these samples that is not of the declared element type and number of dimensions, or, where the
        data tells, not of those of the first sample; and a text that says so. None if all are well."""
        first = samples[0]
        dtype = first.dtype if self.dtype is None else self.dtype.numpy
        ndim = first.ndim if self.ndim is None else self.ndim
        for place, sample in enumerate(samples):
            if sample.dtype != dtype or sample.ndim != ndim:
                got = f"{sample.dtype} of shape {sample.shape}"
                return place, f"expected {self.name!r} as {dtype} with {ndim} dimension(s), got {got}"
        return None


def columns(records: Sequence[Record]) -> list[Any]:
    """The outputs of several records, turned round: small outputs of one shape (labels) as one array `[N, ...]`,
    others as lists."""
    turned: list[Any] = []
    for column in zip(*records, strict=True):
        first = column[0]
        kind = first.shape, first.dtype
        if first.nbytes <= _SMALL and all((a.shape, a.dtype) == kind for a in column):
            joined = np.concatenate(column) if first.ndim else np.array(column, first.dtype)
            turned.append(joined.reshape(len(column), *first.shape))
        else:
            turned.append(list(column))
    return turned
