"""`enable_conditionals=True`: `if node:` decides for each sample of a batch.

The function of the pipeline is rewritten (`condition_rewriting.py`) so that conditions are decided here. If the condition is
a plain value, Python's branch is taken. If it is a node, both branches are executed, as in DALI: a node from outside is
split where a branch uses it, so that the branch has only its own samples, and the results of the branches are merged in the
order of the batch. A branch that no sample takes computes nothing in that run.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

import ndd
from ndd.pipeline import current
from ndd.pipeline.function_call import parted
from ndd.pipeline.functions import fn
from ndd.pipeline.node import DataNode
from ndd.types import Constant


class UnequalBranches(ValueError, RuntimeError):
    """The branches of an `if` on a node give values that cannot be merged (ValueError in DALI), or only one of them gives a
    value (RuntimeError in DALI)."""


class Branch:
    """The statements of one side of an `if` on a node.

    Attributes:
        around: the branch that the `if` stands in, or None.
    """

    def __init__(self, decision: Decision, side: int):
        self.decision, self.side, self.around = decision, side, decision.around

    def part(self, node: DataNode) -> DataNode:
        """The part of an outer branch's node with the samples that take this branch; the node is split once for both
        sides."""
        parts = self.decision.parts
        if id(node) not in parts:
            with current.within(self.around):
                sides = fn._conditional.split(node, predicate=self.decision.condition)
            for side, branch in zip(sides, self.decision.branches, strict=True):
                side._made_in = branch
            parts[id(node)] = (node, sides)
        return parts[id(node)][1][self.side]


class Decision:
    """An `if` on a node."""

    def __init__(self, condition: DataNode):
        self.condition = condition
        self.around = current.branch()
        self.branches = [Branch(self, 0), Branch(self, 1)]
        self.parts: dict[int, tuple[DataNode, list[DataNode]]] = {}


class Undefined:
    """The value of a variable that only some branches assign."""

    def __init__(self, name: str):
        self._name = name

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError(
            f"The variable {self._name!r} is not assigned in all branches of an `if` on a node, so some samples have no value"
        )

    __array__ = __call__ = __iter__ = __bool__ = __getitem__ = _refuse

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._refuse()


def defined(name: str, value: Callable[[], Any]) -> Any:
    """The value of a variable before an `if`, which may have none."""
    try:
        return value()
    except NameError:
        return Undefined(name)


def decide(
    condition: Any,
    then: Callable[..., Any],
    otherwise: Callable[..., Any],
    before: tuple[Any, ...],
    stores: tuple[tuple[Callable[[], Any], Callable[[], Any], bool], ...] = (),
    stores_into: str = "",
) -> Any:
    """An `if`: the variables after it, or what its branches return.

    Args:
        then, otherwise: the branches, as functions of the variables that they assign.
        before: the values of these variables before the `if`.
        stores: attributes and items that the branches assign, such as `state.x` and `state["x"]`: a function that gives the
            object, one that gives the name or key, and whether it is an item.
        stores_into: other places that a branch stores into, such as `state[f(i)]`.
    """
    if not isinstance(condition, DataNode):
        return then(*before) if condition else otherwise(*before)
    if stores_into:
        raise RuntimeError(
            f"A branch of an `if` on a node stores into {stores_into}, which holds one value for all samples. Assign to a "
            "variable in the branches, and store that after the `if`"
        )
    places = [Place(owner(), name(), item) for owner, name, item in stores]
    first = [place.value() for place in places]
    decision = Decision(parted(condition))
    results = []
    for branch, run in zip(decision.branches, (then, otherwise), strict=True):
        for place, value in zip(places, first, strict=True):
            place.put(value)
        with current.within(branch):
            result = run(*before)
        results.append((result, *[place.value() for place in places]))
    result, *values = _joined(decision, *results)
    for place, value in zip(places, values, strict=True):
        place.put(value)
    return result


class Place:
    """An attribute or an item of a user's object, which may be missing."""

    def __init__(self, owner: Any, name: Any, item: bool):
        self._owner, self._name, self._item = owner, name, item

    def value(self) -> Any:
        """The value, or an `Undefined`."""
        try:
            return self._owner[self._name] if self._item else getattr(self._owner, self._name)
        except (AttributeError, KeyError):
            return Undefined(str(self._name))

    def put(self, value: Any) -> None:
        """Stores a value; an `Undefined` deletes it."""
        owner, name = self._owner, self._name
        if isinstance(value, Undefined):
            if not isinstance(self.value(), Undefined):
                owner.pop(name) if self._item else delattr(owner, name)
        elif self._item:
            owner[name] = value
        else:
            setattr(owner, name, value)


def _joined(decision: Decision, first: Any, two: Any) -> Any:
    """Merges values of the branches into one value for all samples."""
    if first is two and not _is_leaf(first):
        return first
    if isinstance(first, Undefined) or isinstance(two, Undefined):
        return first if isinstance(first, Undefined) else two
    if first is None or two is None:
        raise UnequalBranches(
            "One branch of an `if` on a node gives a value and the other gives None, so some samples have none: does it lack a "
            "`return`?"
        )
    if isinstance(first, list | tuple | dict) or isinstance(two, list | tuple | dict):
        return _joined_structures(decision, first, two)
    if _is_leaf(first) and _is_leaf(two):
        sides = []
        for branch, value in zip(decision.branches, (first, two), strict=True):
            with current.within(branch):
                side = copy.copy(parted(value if isinstance(value, DataNode) else fn.copy(value)))
            side._made_in = decision.around
            sides.append(side)
        return fn._conditional.merge(*sides, predicate=decision.condition)
    if type(first) is type(two) and isinstance(first, str | bytes) and first == two:
        return first
    raise TypeError(
        f"The branches of an `if` on a node give {first!r} and {two!r}: a batch has nodes, numbers and arrays alone, so what else "
        "they give must be the same"
    )


def _joined_structures(decision: Decision, first: Any, two: Any) -> Any:
    alike = type(first) is type(two) and len(first) == len(two)
    if not alike or (isinstance(first, dict) and first.keys() != two.keys()):
        raise UnequalBranches(
            f"The branches of an `if` on a node give values of different structures: {_structure(first)} and {_structure(two)}"
        )
    if isinstance(first, dict):
        return {key: _joined(decision, first[key], two[key]) for key in first}
    values = [_joined(decision, a, b) for a, b in zip(first, two, strict=True)]
    return type(first)(*values) if hasattr(first, "_fields") else type(first)(values)


def _structure(value: Any) -> str:
    kind = type(value).__name__
    if isinstance(value, dict):
        return f"a dict of {sorted(map(repr, value))}"
    return f"a {kind} of {len(value)}" if isinstance(value, list | tuple) else f"a {kind}"


def _is_leaf(value: Any) -> bool:
    """Whether it can become a batch."""
    return isinstance(value, DataNode | Constant | bool | int | float | np.ndarray | np.generic | ndd.Tensor)


def both(first: Callable[[], Any], two: Callable[[], Any]) -> Any:
    """`one and two`: `two` for the samples for which `first` is true, as in DALI."""
    value = first()
    return _logical("and", value, two) if isinstance(value, DataNode) else value and two()


def either(first: Callable[[], Any], two: Callable[[], Any]) -> Any:
    """`one or two`: `two` for the samples for which `first` is false."""
    value = first()
    return _logical("or", value, two) if isinstance(value, DataNode) else value or two()


def _logical(name: str, value: Any, two: Callable[[], Any]) -> Any:
    def checked(value: Any, side: str) -> Any:
        node = value if isinstance(value, DataNode) else fn.copy(value)
        return fn._conditional.validate_logical(node, expression_name=name, expression_side=side)

    def right() -> Any:
        return checked(two(), "right")

    left = checked(value, "left")
    return decide(left, right, lambda: left, ()) if name == "and" else decide(left, lambda: left, right, ())


def negated(value: Any) -> Any:
    """`not value`."""
    return fn._conditional.not_(value) if isinstance(value, DataNode) else not value


def chosen(condition: Any, first: Callable[[], Any], two: Callable[[], Any]) -> Any:
    """`one if condition else two`. (DALI refuses it for nodes.)"""
    return decide(condition, first, two, ())
