"""Constants of several numbers are nodes, as in DALI: `types.Constant([1, 2])` has the operators and methods of `DataNode`.

A constant of one number stays a constant: it can be combined with a node, but not with another constant.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd.pipeline.functions import fn
from ndd.pipeline.node import OPERATORS
from ndd.types import Constant


def _is_node(constant: Constant) -> bool:
    properties = (constant.extents, constant.layout, constant.target)
    return any(v is not None for v in properties) or np.ndim(constant.value) > 0


def _attribute(self: Constant, name: str) -> Any:
    if (name.startswith("_") and name != "__ndd_function__") or not _is_node(self):
        raise AttributeError(f"a types.Constant of one number has no attribute {name!r}")
    return getattr(fn.copy(self), name)


def _operator(name: str) -> Any:
    compare = getattr(Constant, name) if name in ("__eq__", "__ne__") else None

    def method(self: Constant, *others: Any) -> Any:
        if _is_node(self):
            return getattr(fn.copy(self), name)(*others)
        if compare is not None and not (isinstance(others[0], Constant) and _is_node(others[0])):
            return compare(self, *others)
        if not others:
            raise TypeError(f"a types.Constant of one number is not a node: compute {name} of the number itself")
        return NotImplemented

    return method


def _item(self: Constant, ranges: Any) -> Any:
    if not _is_node(self):
        raise TypeError("a types.Constant of one number has no axes to index")
    return fn.copy(self)[ranges]


for _name in OPERATORS:
    setattr(Constant, _name, _operator(_name))
Constant.__getitem__ = _item  # type: ignore[attr-defined]
Constant.__getattr__ = _attribute  # type: ignore[attr-defined]
Constant.__array_ufunc__ = None  # type: ignore[attr-defined]  # of an array and a constant: ours
