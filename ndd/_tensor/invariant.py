"""`invariant`: marks a value that does not change while a captured loop runs, by a proxy that behaves like the value."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

# Methods that Python looks up on the type, without asking `__getattr__` of a proxy. The proxy forwards those that the
# value's type has. The others stay missing, so that `callable`, `iter` and the like treat the proxy as they treat the value.
_ALONE = (
    "call len length_hint getitem setitem delitem contains iter next reversed missing enter exit aenter aexit aiter anext "
    "await buffer index int float complex bytes round trunc floor ceil neg pos abs invert divmod rdivmod pow rpow ipow fspath "
    "array array_ufunc array_function dlpack dlpack_device torch_function instancecheck subclasscheck"
)
_WITH_TWO = "add sub mul matmul truediv floordiv mod lshift rshift and or xor"
_PROTOCOLS = [
    *(f"__{name}__" for name in _ALONE.split()),
    *(f"__{kind}{name}__" for name in _WITH_TWO.split() for kind in ("", "r", "i")),
]
_type_of: Callable[[object], type[Any]] = type
watched: list[Any] = []  # calls look for marks only while a captured loop runs or after a value has been marked
_proxies: set[type] = set()  # the classes of proxies made so far
_looked_into: set[type] = {list, tuple, dict, slice}  # and of containers that may hold one


class Invariant:
    """The base of the proxies; there is a class for each type of value, with the protocols of that type."""

    __slots__ = ("_marked",)

    def __init__(self, value: Any):
        object.__setattr__(self, "_marked", value)

    @property
    def __class__(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return _type_of(_value(self))

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(_value(self), name)
        return attribute if inspect.isroutine(attribute) or name.startswith("__") else invariant(attribute)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(_value(self), name, value)

    def __delattr__(self, name: str) -> None:
        delattr(_value(self), name)

    def __dir__(self) -> Any:
        return dir(_value(self))

    def __repr__(self) -> str:
        return repr(_value(self))

    def __str__(self) -> str:
        return str(_value(self))

    def __format__(self, spec: str) -> str:
        return format(_value(self), spec)

    def __bool__(self) -> bool:
        return bool(_value(self))

    def __hash__(self) -> int:
        return hash(_value(self))

    def __eq__(self, other: object) -> Any:
        return _value(self) == unmarked(other)

    def __ne__(self, other: object) -> Any:
        return _value(self) != unmarked(other)

    def __lt__(self, other: Any) -> Any:
        return _value(self) < unmarked(other)

    def __le__(self, other: Any) -> Any:
        return _value(self) <= unmarked(other)

    def __gt__(self, other: Any) -> Any:
        return _value(self) > unmarked(other)

    def __ge__(self, other: Any) -> Any:
        return _value(self) >= unmarked(other)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _same, (_value(self),)


_value: Any = Invariant.__dict__["_marked"].__get__


def _same(value: T) -> T:
    return value


@functools.cache
def _proxy_class(kind: type) -> type[Invariant]:
    def passed_on(name: str) -> Any:
        def method(self: Any, *args: Any, **named: Any) -> Any:
            if name == "__call__":  # a marked function gets marked arguments
                return _value(self)(*args, **named)
            args = tuple([unmarked(a) for a in args])
            return getattr(_value(self), name)(*args, **{k: unmarked(v) for k, v in named.items()})

        method.__name__ = name
        return method

    has = {name for base in kind.__mro__ for name in base.__dict__}
    own = {name: passed_on(name) for name in _PROTOCOLS if name in has}
    proxy = type(f"Invariant_{kind.__name__}", (Invariant,), {"__slots__": (), **own})
    _proxies.add(proxy)
    _looked_into.add(proxy)
    return proxy


def invariant(value: T) -> T:
    """Mark a value as one that stays the same in all iterations of a captured loop (`next_epoch(capture=True)`).

    The result behaves like the value: it is equal to it, is an instance of its type, and can be any argument of ndd. Its
    attributes are marked as well; results of its methods and operators, and its items, are not. Writing and deleting
    attributes reaches the value itself. A marked function gets its arguments with their marks.

    A mark never changes a result, since ndd computes nothing ahead of time from an argument. As in DALI, an argument that is
    marked in the first iteration of a captured loop must be marked in all of them (RuntimeError).

    Code that bypasses the type's methods (`is`, `type(...)`, `json.dumps` of a number) sees the proxy.

    Args:
        value: any object.

    >>> import ndd
    >>> size = ndd.capture.invariant([4, 2])
    >>> size == [4, 2], isinstance(size, list), size[0] + 1
    (True, True, 5)
    >>> ndd.resize(ndd.zeros(shape=[8, 8, 3], dtype=ndd.uint8), size=size).shape
    (4, 2, 3)
    """
    if is_marked(value):
        return value
    if None not in watched:
        watched.append(None)
    return _proxy_class(type(value))(value)  # type: ignore[return-value]


def shown(name: str, inputs: Any, values: Any, batch_size: Any, device: Any, rng: Any) -> tuple[Any, ...]:
    """The arguments of a call without marks; captured loops see them with marks."""
    for loop in tuple(watched):
        if loop is not None:
            loop.called(name, inputs, values, batch_size, device)
    return unmarked(inputs), unmarked(values), unmarked(batch_size), unmarked(device), unmarked(rng)


def is_marked(value: Any) -> bool:
    """Whether a value is a proxy made by `invariant`."""
    return type(value) in _proxies


def marked_places(values: tuple[Any, ...]) -> tuple[int, ...]:
    """Which of the values are proxies."""
    if _proxies.isdisjoint(map(type, values)):
        return ()
    return tuple([i for i, value in enumerate(values) if is_marked(value)])


def unmarked(value: Any) -> Any:
    """The value without its mark, and without the marks inside lists, tuples, dicts and slices."""
    kind = _type_of(value)
    if not _proxies or kind not in _looked_into:
        return value
    if kind in _proxies:
        return unmarked(_value(value))
    if kind is dict:
        plain = {unmarked(k): unmarked(v) for k, v in value.items()}
        return value if all([value.get(k) is v for k, v in plain.items()]) else plain
    if kind is slice:
        return slice(unmarked(value.start), unmarked(value.stop), unmarked(value.step))
    if _looked_into.isdisjoint(map(type, value)):
        return value
    plain = [unmarked(v) for v in value]
    return value if all([a is b for a, b in zip(plain, value, strict=True)]) else kind(plain)
