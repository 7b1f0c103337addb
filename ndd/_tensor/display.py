"""How values print: text in DALI's format for `repr`. Notebooks show what `picture.py` makes."""

# This package may use attributes that are private to users, such as `Handle._value`.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ndd._tensor.dtype import bfloat16

if TYPE_CHECKING:
    from ndd._tensor.batch import Batch
    from ndd._tensor.store import Store
    from ndd._tensor.tensor import Tensor

_EDGE = 2  # entries at either end of a shortened axis
_MANY_NUMBERS = 1000  # samples of a batch from which on some are left out
_MANY_SHAPES = 16
_SHAPES_WIDTH = 75
_INDENT = "    "


def tensor_text(value: Tensor) -> str:
    """`repr` of a Tensor; waits for the value, and brings it to the CPU if it is on a GPU."""
    store = fetched(value)
    return _assembled("Tensor", value, _array_text(store, 0), [f"shape={store.shapes[0]}"])


def batch_text(value: Batch) -> str:
    """`repr` of a Batch."""
    store = fetched(value)
    lines = [f"num_samples={store.n}", f"shape={_shapes_text(store.shapes)}"]
    return _assembled("Batch", value, _samples_text(store), lines)


def fetched(value: Tensor | Batch) -> Store:
    """The store of a value, on the CPU."""
    return (value if value.device.device_type == "cpu" else value.cpu())._value()


def readable(store: Store, i: int) -> np.ndarray:
    """Sample `i` in a type that NumPy can print: bfloat16 as float32."""
    array = store.arrays()[i]
    if store.dtype is not bfloat16:
        return array
    return (array.astype(np.uint32) << np.uint32(16)).view(np.float32)


def _assembled(name: str, value: Tensor | Batch, content: str, last: list[str]) -> str:
    layout = [f'layout="{value.layout}"'] if value.layout else []
    lines = [content, f"dtype={value.dtype}", *layout, f'device="{value.device}"', *last]
    return f"{name}(\n" + ",\n".join(_INDENT + line for line in lines) + ")"


def _array_text(store: Store, i: int) -> str:
    return np.array2string(readable(store, i), separator=" ", edgeitems=_EDGE, prefix=_INDENT)


def _samples_text(store: Store) -> str:
    n, ndim = store.n, len(store.shapes[0]) if store.shapes else 0
    count = sum(max(int(np.prod(s)), 1) for s in store.shapes)
    shown: list[int | None] = list(range(n))
    if n > 2 * _EDGE + 1 and count > _MANY_NUMBERS:
        shown[_EDGE:-_EDGE] = [None]
    texts = ["..." if i is None else _array_text(store, i) for i in shown]
    between = ", " if ndim == 0 else "," + "\n" * ndim + _INDENT
    return "[" + between.join(texts) + "]"


def _shapes_text(shapes: list[tuple[int, ...]]) -> str:
    texts = [str(s) for s in shapes]
    if len(texts) > _MANY_SHAPES:
        texts[_EDGE:-_EDGE] = ["..."]
    line = ", ".join(texts)
    if len(line) > _SHAPES_WIDTH:
        line = (", \n" + " " * len("    shape=[")).join(texts)
    return f"[{line}]"
