"""Files as trees of parts, and mutations that know the parts: lengths, counts, order, nesting, repetition, truncation.

A part is bytes, a `Number`, a `Framed`, or a list of parts. `mutated(rng, tree)` changes one to three of them, and gives
the bytes. Lengths and checksums of what is around a change are made anew, unless they are what was changed, so that the
change reaches the parser behind them.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

EXTREMES = sorted(
    {0} | {(1 << bits) + by for bits in (0, 3, 7, 8, 15, 16, 24, 29, 31, 32, 40, 62, 63, 64) for by in (-1, 0, 1)}
)
_TRUNCATED = 0.1  # of the files


@dataclass
class Number:
    """A number of a file: `form` is one of `struct`, or makes bytes of any number."""

    value: int
    form: str | Callable[[int], bytes]

    def encoded(self) -> bytes:
        if callable(self.form):
            return self.form(self.value)
        size = struct.calcsize(self.form)
        return (self.value % (1 << 8 * size)).to_bytes(size, "little" if self.form[0] == "<" else "big")


@dataclass
class Framed:
    """Parts with what stands around them: `frame(content, length)` gives the bytes, with the true length or a wrong one."""

    parts: list[Any]
    frame: Callable[[bytes, int], bytes]
    length: int | None = None

    def encoded(self) -> bytes:
        content = encoded(self.parts)
        return self.frame(content, len(content) if self.length is None else self.length)


@dataclass
class _Tree:
    """All places of a tree that can be changed."""

    numbers: list[Any] = field(default_factory=list)
    lists: list[list[Any]] = field(default_factory=list)

    def walk(self, parts: list[Any]) -> None:
        self.lists.append(parts)
        for part in parts:
            if isinstance(part, Number | Framed):
                self.numbers.append(part)
            inner = part.parts if isinstance(part, Framed) else part
            if isinstance(inner, list):
                self.walk(inner)


def encoded(part: Any) -> bytes:
    """The bytes of a part."""
    if isinstance(part, list):
        return b"".join(map(encoded, part))
    return part if isinstance(part, bytes) else part.encoded()


def extreme(rng: random.Random, value: int = 0) -> int:
    """A number that counts and lengths go wrong with; perhaps near to what it should be."""
    if rng.random() < 0.5:
        return value + rng.choice((-16, -8, -4, -2, -1, 1, 2, 3, 4, 7, 8, 16, 512, -512, 2880))
    return rng.choice(EXTREMES) * rng.choice((1, 1, 1, -1))


def mutated(rng: random.Random, parts: list[Any]) -> bytes:
    """The bytes of a tree, which is changed."""
    if rng.random() < 0.05:
        return encoded(parts)
    for _ in range(rng.choice((1, 1, 2, 3))):
        _change(rng, parts)
    content = encoded(parts)
    if rng.random() < _TRUNCATED and content:
        return content[: rng.choice((rng.randrange(len(content)), max(len(content) - rng.randrange(1, 20), 0)))]
    return content + (bytes(rng.randrange(256) for _ in range(rng.randrange(20))) if rng.random() < 0.05 else b"")


def _change(rng: random.Random, parts: list[Any]) -> None:
    tree = _Tree()
    tree.walk(parts)
    if tree.numbers and rng.random() < 0.6:
        number = rng.choice(tree.numbers)
        if isinstance(number, Number):
            number.value = extreme(rng, number.value)
        else:
            number.length = max(0, extreme(rng, len(encoded(number.parts))))
        return
    full = [listed for listed in tree.lists if listed]
    if not full:
        return
    listed = rng.choice(full)
    place = rng.randrange(len(listed))
    rng.choice(_STRUCTURAL)(rng, tree, listed, place)


def _drop(rng: random.Random, tree: _Tree, listed: list[Any], place: int) -> None:
    del listed[place]


def _repeat(rng: random.Random, tree: _Tree, listed: list[Any], place: int) -> None:
    listed[place:place] = [listed[place]] * rng.choice((1, 1, 2, 5, 40))


def _swap(rng: random.Random, tree: _Tree, listed: list[Any], place: int) -> None:
    other = rng.randrange(len(listed))
    listed[place], listed[other] = listed[other], listed[place]


def _move(rng: random.Random, tree: _Tree, listed: list[Any], place: int) -> None:
    """To where something else belongs: another level, or another type of list."""
    part = encoded(listed[place])
    rng.choice(tree.lists).insert(0, part)


def _spoil(rng: random.Random, tree: _Tree, listed: list[Any], place: int) -> None:
    content = bytearray(encoded(listed[place])[: 1 << 16])
    for _ in range(rng.choice((1, 1, 4))):
        if content:
            content[rng.randrange(len(content))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
    listed[place] = bytes(content)


def _shorten(rng: random.Random, tree: _Tree, listed: list[Any], place: int) -> None:
    content = encoded(listed[place])
    listed[place] = content[: rng.randrange(len(content) + 1)]


_STRUCTURAL = (_drop, _repeat, _swap, _move, _spoil, _shorten)


def numbers_of(parts: list[Any]) -> Iterator[Number]:
    """The numbers of a tree."""
    tree = _Tree()
    tree.walk(parts)
    yield from (number for number in tree.numbers if isinstance(number, Number))
