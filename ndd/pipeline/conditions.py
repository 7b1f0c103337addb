"""`enable_conditionals=True`: `if node:` decides for each sample of a batch.

The body of the pipeline is rewritten (`condition_rewriting.py`) so that a condition comes here. Where it is a plain
value, the branch is taken as ever. Where it is a node, each branch runs on the samples that take it, and what the branches
assign or return is put together again in the order of the batch. A branch that no sample takes does not run; but, as in DALI,
readers in it and random operators without inputs go on by a batch (`CallStates.pass_by`).

Before the first run the body is gone through once with every step only recorded, to find all calls and give them their seeds
(`PipelineBody._find_sources`). Then each branch is gone through, and what DALI's graph has at its borders is recorded: a split
where a node is used in a branch that it was not made in, and a merge after the `if` (`parted`, `_joined`).
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import ndd
from ndd.types import Constant


class Branch:
    """The samples that take a branch: their places in the batch of the branch around it, or in the whole one.

    Where it is only recorded there are no samples yet, and `condition` is the node that will decide. `path` says which branch of
    which `if` this is, counted within the branch around it: the same in all runs, whatever other branches are taken.
    """

    def __init__(self, around: Branch | None, path: tuple[Any, ...], places: list[int], condition: Any = None):
        self.around = around
        self.path = path
        self.places = places
        self.condition = condition
        self.ifs = itertools.count()


class _Local(threading.local):
    branch: Branch | None = None
    records: bool = False
    ifs: Iterator[int] = itertools.count()  # outside of all branches


_local = _Local()


def begin_body() -> None:
    """A run of a body begins on this thread."""
    _local.ifs = itertools.count()


def branch() -> Branch | None:
    """The branch that runs on this thread."""
    return _local.branch


@contextlib.contextmanager
def recorded_branches() -> Iterator[None]:
    """While it lasts, an `if` on a recorded node goes through both of its branches."""
    _local.records = True
    try:
        yield
    finally:
        _local.records = False


def parted(value: Any, made_in: Branch | None) -> Any:
    """A recorded node, or several, as the branch that is gone through has them: behind the splits of DALI's graph."""
    if isinstance(value, list):
        return [parted(v, made_in) for v in value]
    if isinstance(value, dict):
        return {key: parted(v, made_in) for key, v in value.items()}
    here, chain = _local.branch, []
    while here is not made_in and here is not None:
        chain.append(here)
        here = here.around
    for own in reversed(chain):
        value = _node().after(value, own.condition)
    return value


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
    places = [Place(owner(), name, item) for owner, name, item in stores]
    first = [place.value() for place in places]

    def tried(run: Callable[..., Any]) -> tuple[Any, ...]:
        for place, value in zip(places, first, strict=True):
            place.put(value)
        result = run(*before)
        return result, *[place.value() for place in places]

    result, *values = _joined([(own, _within(own, tried, run)) for own, run in _ways(condition, then, otherwise)])
    for place, value in zip(places, values, strict=True):
        place.put(value)
    return result


def _ways(condition: Any, then: Any, otherwise: Any) -> list[tuple[Branch, Any]]:
    """The branches that are run, each with its samples."""
    around = _local.branch
    this = next(around.ifs if around is not None else _local.ifs)
    yes, no = ((*(around.path if around is not None else ()), this, wanted) for wanted in (True, False))
    if condition.recorded and _local.records:
        return [(Branch(around, yes, [], condition), then), (Branch(around, no, [], condition), otherwise)]
    flags = _flags(condition)
    taken, left = ([i for i, flag in enumerate(flags) if flag is wanted] for wanted in (True, False))
    ways = [(Branch(around, yes, taken), then)] if taken else []
    return [*ways, (Branch(around, no, left), otherwise)] if left or not taken else ways


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
    if (condition := ways[0][0].condition) is not None:
        nodes = [_within(own, parted, value, value.made_in) for own, value in ways if isinstance(value, node)]
        return node.after(*nodes, condition)
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
    """`one and two`: `two` for the samples for which `one` is true, as in DALI."""
    value = one()
    if not isinstance(value, _node()):
        return value and two()
    if value.recorded and not _local.records:
        return _logical(lambda a, b: a & b, value, two())
    flag = value != 0
    return decide(flag, lambda: _truth(two()), lambda: flag, ())


def either(one: Callable[[], Any], two: Callable[[], Any]) -> Any:
    """`one or two`: `two` for the samples for which `one` is false."""
    value = one()
    if not isinstance(value, _node()):
        return value or two()
    if value.recorded and not _local.records:
        return _logical(lambda a, b: a | b, value, two())
    flag = value != 0
    return decide(flag, lambda: flag, lambda: _truth(two()), ())


def _truth(value: Any) -> Any:
    return value != 0 if isinstance(value, _node()) else bool(value)


def negated(value: Any) -> Any:
    """`not value`."""
    if not isinstance(value, _node()):
        return not value
    from ndd.pipeline.functions import fn

    return fn._conditional.not_(value)


def chosen(condition: Any, one: Callable[[], Any], two: Callable[[], Any]) -> Any:
    """`one if condition else two`."""
    return decide(condition, one, two, ())


def _logical(function: Callable[[Any, Any], Any], one: Any, two: Any) -> Any:
    from ndd.pipeline.node import applied

    return applied(lambda a, b: function(a != 0, b != 0), one, two if isinstance(two, _node()) else bool(two))
