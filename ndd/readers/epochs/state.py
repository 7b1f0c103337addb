"""`ReaderState`: the position of a reader, as a line of JSON."""

from __future__ import annotations

import json
import os
import zlib
from typing import Any

from ndd.io.object_store import without_query
from ndd.readers.sampling.resharding import check_before
from ndd.readers.sampling.sampler import Shards
from ndd.readers.stores.records import RecordStore

VERSION = 1
_NAMED = 16  # samples whose names are checked


class ReaderState:
    """A reader's place in its data, exact to the sample; `str(state)` is a short line of ASCII text.

    `reader.get_state()` makes it, and `reader.set_state()` takes it or its text. Taking a state costs microseconds and needs no
    preparation.

    Args:
        text: the line that `str(state)` returns.

    >>> import ndd
    >>> reader = ndd.readers.File(files=["a.jpg", "b.jpg"])
    >>> state = reader.get_state()
    >>> reader.set_state(str(state))
    """

    __slots__ = ("_text",)

    def __init__(self, text: str):
        self._text = text

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"ReaderState({self._text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ReaderState) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> tuple[Any, ...]:
        return ReaderState, (self._text,)


def dump(fields: dict[str, Any]) -> ReaderState:
    """The state made of these plain values."""
    return ReaderState(json.dumps({"version": VERSION, **fields}, separators=(",", ":")))


def parse(reader: str, state: Any) -> dict[str, Any]:
    """The fields of a state given as an object, text or ASCII bytes. TypeError or ValueError for anything else."""
    if isinstance(state, bytes | bytearray):
        state = bytes(state).decode("ascii", "replace")
    if not isinstance(state, ReaderState | str):
        raise TypeError(f"{reader}.set_state: expected a ReaderState, str or bytes, got {type(state).__name__}")
    try:
        fields = json.loads(str(state))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{reader}.set_state: expected the text of a reader state, got {str(state)[:40]!r}") from error
    if not isinstance(fields, dict) or "version" not in fields:
        raise ValueError(f"{reader}.set_state: expected the text of a reader state, got {str(fields)[:40]!r}")
    if fields["version"] != VERSION:
        raise ValueError(f"{reader}.set_state: expected a state of version {VERSION}, got {fields['version']!r}")
    if fields.get("reader") != reader:
        raise ValueError(f"{reader}.set_state: expected a state of {reader}, got one of {fields.get('reader')}")
    for key, least in (("epoch", 0), ("left", 0), ("left_batch", 1), ("visit", 0), ("offset", 0)):
        if type(fields.get(key)) is not int or not least <= fields[key] < 2**63:
            raise ValueError(f"{reader}.set_state: expected a number from {least} for {key!r}, got {fields.get(key)!r}")
    began = fields.get("began", 0)
    if type(began) is not int or not 0 <= began <= fields["visit"]:
        raise ValueError(f"{reader}.set_state: expected a number from 0 to 'visit' for 'began', got {began!r}")
    if fields.get("surplus") is not None and (type(fields["surplus"]) is not int or abs(fields["surplus"]) >= 2**63):
        raise ValueError(f"{reader}.set_state: expected a number for 'surplus', got {fields['surplus']!r}")
    _check_worker(reader, fields)
    for key in ("seed", "draw"):
        number = fields.get(key, "nothing")
        if (number is not None or key == "seed") and (type(number) is not int or abs(number) >= 2**64):
            raise ValueError(f"{reader}.set_state: expected a number for {key!r}, got {number!r}")
    if fields.get("last", "fill") not in ("fill", "partial", "drop"):
        raise ValueError(f"{reader}.set_state: expected an ending of epochs for 'last', got {fields['last']!r}")
    check_before(reader, fields.get("before"))
    skipped = fields.get("skipped", [])
    for bad in skipped if isinstance(skipped, list | tuple) else [skipped]:
        if not (isinstance(bad, list | tuple) and [type(part) for part in bad] == [int, str, str]):
            raise ValueError(f"{reader}.set_state: expected number, source and error in 'skipped', got {bad!r}")
    return fields


def _check_worker(reader: str, fields: dict[str, Any]) -> None:
    """ValueError for fields that cannot be a worker's share."""
    share, skip = fields.get("worker", [0, 1]), fields.get("skip", 0)
    whole = [type(n) is int for n in share] == [True, True] if isinstance(share, list) else False
    if not whole or not 0 <= share[0] < share[1] < 2**31:
        raise ValueError(f"{reader}.set_state: expected the number of a worker and of all in 'worker', got {share!r}")
    if type(skip) is not int or not 0 <= skip < share[1]:
        raise ValueError(f"{reader}.set_state: expected a number below that of workers for 'skip', got {skip!r}")


def state_text(reader: str, state: Any) -> str:
    """The text in the dict that `state_dict` returned; TypeError for anything else."""
    text = state.get("state") if isinstance(state, dict) else None
    if not isinstance(text, str):
        raise TypeError(
            f"{reader}.load_state_dict: expected what state_dict() gave, {{'state': text}}, got {str(state)[:60]!r}"
        )
    return text


def check_order(reader: str, fields: dict[str, Any], own: dict[str, Any]) -> None:
    """ValueError for the state of a reader with another order."""
    for key, value in own.items():
        if fields.get(key) != value:
            _refuse(reader, key, fields.get(key), value)


def names_mark(store: RecordStore) -> int:
    """A checksum of the names of some samples, without their folders, because a data set may have moved."""
    size = len(store)
    numbers = {size * i // _NAMED for i in range(_NAMED)} if size else set()
    names = [os.path.basename(without_query(store.source(n))) for n in sorted(numbers)]
    return zlib.crc32("\n".join(names).encode("utf-8", "replace"))


def check_data(reader: str, fields: dict[str, Any], shards: Shards, names: int) -> None:
    """ValueError for the state of a reader of other data, or of another part of them."""
    for key, own in (("size", shards.size), ("shards", shards.place), ("names", names)):
        if fields.get(key) not in (None, own):
            _refuse(reader, key, fields[key], own)


def _refuse(reader: str, key: str, other: Any, own: Any) -> None:
    hints = {
        "shards": ' (with shard="auto" a reader takes the states of other ranks)',
        "names": " (a number made of the names of samples: it is another data set of the same size)",
    }
    hint = hints.get(key, "")
    raise ValueError(
        f"{reader}.set_state: the state is of a reader with another {key}: expected {own}, got {other}{hint}"
    )


def remade(
    kind: Any,
    positional: tuple[Any, ...],
    arguments: dict[str, Any],
    state: ReaderState,
    origin: dict[str, Any] | None = None,
) -> Any:
    """The reader of a pickle: made with the same arguments, at the same place."""
    reader = kind(*positional, **arguments)
    reader._session.load(
        parse(reader._display, state)
    )  # of this very rank: a process that does not know its rank is an error
    if origin is not None:
        reader._session.origin.received(reader._session, origin)
    return reader
