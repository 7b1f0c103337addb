"""`enable_conditionals=True`: `if node:` decides for each sample of a batch.

The body of the pipeline is rewritten (`condition_rewriting.py`) so that a condition comes here. Where it is a plain
value, the branch is taken as ever. Where it is a node, each branch runs on the samples that take it, and what the branches
assign or return is put together again in the order of the batch. A branch that no sample takes does not run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

import ndd
from ndd.types import Constant


class Branch:
    """The samples that take a branch: their places in the batch of the branch around it, or in the whole one."""

    def __init__(self, around: Branch | None, places: list[int]):
        self.around = around
        self.places = places


class _Local(threading.local):
    branch: Branch | None = None


_local = _Local()


def branch() -> Branch | None:
    """The branch that runs on this thread."""
    return _local.branch


def narrowed(value: Any, made_in: Branch | None) -> Any:
    """The samples of a batch, made in one branch, that take the branch that runs now.

    RuntimeError if that is not inside the other one.
    """
    here, chain = _local.branch, []
    while here is not made_in:
        if here is None:
            raise RuntimeError(
                "This value was made in a branch of an `if` on a node, for the samples of that branch alone. Assign it to a "
                "variable in every branch (items of lists and dicts are not put together after an `if`)"
            )
        chain.append(here.places)
        here = here.around
    if not chain:
        return value
    places = chain.pop()
    while chain:
        places = [places[i] for i in chain.pop()]
    return value.select(places)


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
    stores: tuple[tuple[Callable[[], Any], Any, bool], ...] = (),
    stores_into: str = "",
) -> Any:
    """An `if`: the variables after it, or what its branches return.

    Args:
        then, otherwise: the branches, as functions of the variables that they assign.
        before: the values of these variables before the `if`.
        stores: attributes and items that the branches assign, such as `state.x` and `kept["x"]`: what gives the object, the
            name or key, and whether it is an item.
        stores_into: what else a branch stores into, such as `kept[i]`.
    """
    if not isinstance(condition, _node()):
        return then(*before) if condition else otherwise(*before)
    if stores_into:
        raise RuntimeError(
            f"A branch of an `if` on a node stores into {stores_into}, which holds one value for all samples. Assign to a "
            "variable in the branches, and store that after the `if`"
        )
    flags = _flags(condition)
    around = _local.branch
    places = [Place(owner(), name, item) for owner, name, item in stores]
    first = [place.value() for place in places]

    def tried(run: Callable[..., Any]) -> tuple[Any, ...]:
        for place, value in zip(places, first, strict=True):
            place.put(value)
        result = run(*before)
        return result, *[place.value() for place in places]

    ways: list[tuple[Branch, Any]] = []
    for wanted, run in ((True, then), (False, otherwise)):
        taken = [i for i, flag in enumerate(flags) if flag is wanted]
        if taken or (wanted is False and not ways):
            ways.append((own := Branch(around, taken), _within(own, tried, run)))
    result, *values = _joined(ways)
    for place, value in zip(places, values, strict=True):
        place.put(value)
    return result


class Place:
    """An attribute or an item of an object of the user's, which may not be there."""

    def __init__(self, owner: Any, name: Any, item: bool):
        self._owner, self._name, self._item = owner, name, item

    def value(self) -> Any:
        """What is there, or an `Undefined`."""
        try:
            return self._owner[self._name] if self._item else getattr(self._owner, self._name)
        except (AttributeError, KeyError):
            return Undefined(str(self._name))

    def put(self, value: Any) -> None:
        """Stores a value there; of an `Undefined`, takes away what is there."""
        owner, name = self._owner, self._name
        if isinstance(value, Undefined):
            if not isinstance(self.value(), Undefined):
                owner.pop(name) if self._item else delattr(owner, name)
        elif self._item:
            owner[name] = value
        else:
            setattr(owner, name, value)


def whole(run: Callable[[], Any]) -> Any:
    """What a call gives for all samples, and of that those that take the branch that runs now."""
    if _local.branch is None:
        return run()
    found = _within(None, run)
    if isinstance(found, dict):
        return {key: narrowed(value, None) for key, value in found.items()}
    if isinstance(found, list | tuple):
        return [narrowed(value, None) for value in found]
    return narrowed(found, None)


def _within(own: Branch | None, run: Callable[..., Any], *values: Any) -> Any:
    before, _local.branch = _local.branch, own
    try:
        return run(*values)
    finally:
        _local.branch = before


def _node() -> type:
    from ndd.pipeline.node import DataNode

    return DataNode


def _flags(condition: Any) -> list[bool]:
    if condition.recorded:
        raise RuntimeError("The condition of an `if` has no value yet: its node was recorded, for runs that come later")
    batch = condition.evaluated({})
    if batch.device.device_type != "cpu":
        raise ValueError("The condition of an `if` must be on the CPU: write `if node.cpu():` or compute it there")
    if batch.ndim != 0:
        raise RuntimeError(
            f"The condition of an `if` must have one value for each sample, got {batch.ndim} dimensions: use a reduction"
        )
    return [bool(np.asarray(sample)) for sample in batch]


def _joined(ways: list[tuple[Branch, Any]]) -> Any:
    """Values of the branches as one value for all samples."""
    first = ways[0][1]
    values = [value for _, value in ways]
    node = _node()
    if all(value is first for value in values) and not isinstance(first, node | list | tuple | dict):
        return first
    if all(value is first for value in values) and isinstance(first, node) and first.made_in is ways[0][0].around:
        return first
    if any(isinstance(value, Undefined) for value in values):
        return next(value for value in values if isinstance(value, Undefined))
    if any(value is None for value in values):
        raise RuntimeError(
            "One branch of an `if` on a node gives a value and the other gives None, so some samples have none: does it lack a "
            "`return`?"
        )
    kinds = {type(value) for value in values}
    if len(kinds) == 1 and isinstance(first, list | tuple | dict):
        if len({len(value) for value in values}) > 1 or (
            isinstance(first, dict) and any(v.keys() != first.keys() for v in values)
        ):
            raise RuntimeError("The branches of an `if` on a node give different numbers of values")
        if isinstance(first, dict):
            return {key: _joined([(own, value[key]) for own, value in ways]) for key in first}
        return type(first)(_joined([(own, value[i]) for own, value in ways]) for i in range(len(first)))
    if not any(isinstance(value, node | Constant) for value in values) and all(_same(value, first) for value in values):
        return first
    return node(_merged([(own, _within(own, _as_batch, value, len(own.places))) for own, value in ways]))


def _same(value: Any, other: Any) -> bool:
    return type(value) is type(other) and isinstance(value, bool | int | float | str | type(None)) and value == other


def _as_batch(value: Any, size: int) -> Any:
    from ndd.pipeline.node import as_constant, unwrapped

    return unwrapped(value, {}) if isinstance(value, _node()) else as_constant(value, size)


def _merged(parts: list[tuple[Branch, Any]]) -> Any:
    """Batches of some samples each as one batch of all."""
    if len(parts) == 1:
        return parts[0][1]
    (_, one), (_, two) = parts
    for what in ("dtype", "ndim", "device"):
        if getattr(one, what) != getattr(two, what):
            raise RuntimeError(
                f"The branches of an `if` on a node give values of different {what}: {getattr(one, what)} and "
                f"{getattr(two, what)}. They become one batch, so they must agree: cast or move one of them"
            )
    samples: dict[int, Any] = {}
    for own, batch in parts:
        samples.update(zip(own.places, batch.tensors, strict=True))
    return ndd.as_batch([samples[i] for i in range(len(samples))], layout=one.layout)


def both(one: Callable[[], Any], two: Callable[[], Any]) -> Any:
    """`one and two`."""
    value = one()
    return _logical(lambda a, b: a & b, value, two()) if isinstance(value, _node()) else value and two()


def either(one: Callable[[], Any], two: Callable[[], Any]) -> Any:
    """`one or two`."""
    value = one()
    return _logical(lambda a, b: a | b, value, two()) if isinstance(value, _node()) else value or two()


def negated(value: Any) -> Any:
    """`not value`."""
    return value == 0 if isinstance(value, _node()) else not value


def chosen(condition: Any, one: Callable[[], Any], two: Callable[[], Any]) -> Any:
    """`one if condition else two`."""
    return decide(condition, one, two, ())


def _logical(function: Callable[[Any, Any], Any], one: Any, two: Any) -> Any:
    from ndd.pipeline.node import applied

    return applied(lambda a, b: function(a != 0, b != 0), one, two if isinstance(two, _node()) else bool(two))
