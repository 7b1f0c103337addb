"""`Output`: the description of a reader's output, known before anything is read; and the forms of the samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ndd._tensor import Packed
from ndd._tensor.dtype import DType

Record = tuple[Any, ...]  # of arrays; anything else (texts, dicts) is a Python object of the user's
Column = (
    np.ndarray | Packed | list[Any]
)  # of an output: one array `[N, ...]`, places in buffers, or N arrays or objects


def holds_objects(column: Column) -> bool:
    """Whether a column holds Python objects other than arrays."""
    return isinstance(column, list) and bool(column) and not is_sample(column[0])


def is_sample(value: Any) -> bool:
    """Whether a value of a record is an array, or memory on a GPU in the place of one (`files/gpudirect.py`)."""
    return isinstance(value, np.ndarray) or getattr(value, "stands_for_array", False)


@dataclass(frozen=True)
class Output:
    """One output of a reader; `Reader.outputs(**arguments)` returns a tuple of them.

    Attributes:
        name: its name, and its key if samples are dicts.
        dtype: the element type; None if it depends on the data, or if samples are Python objects (texts, dicts). Objects are
            delivered unchanged, as a list for a batch.
        ndim: the number of dimensions of a sample; None if it depends on the data.
        layout: the layout, if it has one.
        device: where it is delivered. A reader declares "reader" for an output that follows its argument `device`;
            `Reader.outputs` returns "cpu" or "gpu".
    """

    name: str
    dtype: DType | None = None
    ndim: int | None = None
    layout: str | None = None
    device: Literal["cpu", "gpu", "reader"] = "cpu"

    @property
    def _declared(self) -> bool:
        """Whether element type and number of dimensions are declared, and do not depend on the data."""
        return self.dtype is not None and self.ndim is not None

    def _mismatch(self, column: Column) -> tuple[int, str] | None:
        """The first sample whose element type or number of dimensions differs from the declaration (or from the first sample, if
        these depend on the data), and a text about the difference. None if all samples agree.

        Args:
            column: the samples of this output in a batch.
        """
        if isinstance(column, list):
            kinds = [_kind_of(sample) for sample in (column[:1] if self._declared else column)]
        else:
            kinds = [(column.dtype, column.ndim - isinstance(column, np.ndarray))]
        dtype, ndim = kinds[0]
        expected = (dtype if self.dtype is None else self.dtype.numpy, ndim if self.ndim is None else self.ndim)
        for place, kind in enumerate(kinds):
            if kind != expected:
                got = f"{kind[0]} of shape {_shape_of(column, place)}" if kind[0] else _type_of(column, place)
                wanted = f"{expected[0]} with {expected[1]} dimension(s)" if expected[0] else "a Python object"
                difference = f"expected {self.name!r} as {wanted}, got {got}"
                return (
                    place,
                    difference if self._declared else f"{difference} (Inconsistent data: a batch holds one kind)",
                )
        return None


def _kind_of(sample: Any) -> tuple[Any, Any]:
    """Element type and number of dimensions of an array; None for another object."""
    return (sample.dtype, sample.ndim) if is_sample(sample) else (None, None)


def _type_of(column: Any, place: int) -> str:
    return type(column[place]).__name__


def _shape_of(column: Any, place: int) -> tuple[int, ...]:
    return tuple(column.shapes[0].tolist()) if isinstance(column, Packed) else column[place].shape
