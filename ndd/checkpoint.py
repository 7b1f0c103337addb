"""Checkpoints: the places of readers, generators and other objects in one file, in DALI's format.

A file is JSON, `{"version": 2, "states": {name: {"state": text, "type": class name or null}}}`: text that is parsed,
never executed. Files that DALI wrote can be loaded, and its generators go on from there; the text of a reader's state is
each library's own.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import string
from typing import Any

from ndd._execution.context import EvalContext, bind_checkpoint
from ndd.atomic_file import naming

__all__ = ["Checkpoint", "current"]

_VERSION = 2
_UNNAMED = "__op_"  # the key of an object without a name: this and its number


class Checkpoint:
    """The states of a set of objects: readers, generators, and anything with `get_state()` and `set_state(state)`.

    `register` each object; `collect` and `save` while the loop runs. In the next process `load`, and `register` the
    same objects under the same names (or in the same order): each object goes to its saved place at once.

    Files are written whole or not at all: a crash during `save` leaves the earlier files as they are.

    >>> import ndd, tempfile
    >>> rng = ndd.random.RNG(seed=42)
    >>> checkpoint = ndd.checkpoint.Checkpoint()
    >>> checkpoint.register(rng, "augmentation")
    'augmentation'
    >>> checkpoint.collect()
    >>> path = checkpoint.save(tempfile.mkdtemp() + "/state_{seq:04d}.json")
    >>> path[-10:]
    '_0000.json'
    >>> expected = rng()

    Later, in another process:

    >>> rng = ndd.random.RNG()
    >>> checkpoint = ndd.checkpoint.Checkpoint()
    >>> _ = checkpoint.load(path.replace("0000", "{seq:04d}"))
    >>> checkpoint.register(rng, "augmentation")
    'augmentation'
    >>> rng() == expected
    True
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget all objects and states."""
        self._ops: dict[str, Any] = {}
        self._states: dict[str, tuple[Any, str | None]] = {}  # name: state, name of the type it belongs to
        self._pending: set[str] = set()  # states that have not been passed to their objects yet
        self._complete = False
        self._loaded = False

    @property
    def is_complete(self) -> bool:
        """Whether `collect` filled the states last: no new object can be registered then."""
        return self._complete

    @property
    def is_loaded(self) -> bool:
        """Whether the states came from `load` or `deserialize`: only objects that they name can be registered then."""
        return self._loaded

    @property
    def names(self) -> tuple[str, ...]:
        """The keys of the registered objects, in order."""
        return tuple(self._ops)

    def __len__(self) -> int:
        """The number of registered objects."""
        return len(self._ops)

    def __contains__(self, name: object) -> bool:
        return name in self._ops

    def __repr__(self) -> str:
        return f"Checkpoint({', '.join(self._ops)})"

    def register(self, op: Any, name: str | None = None) -> str:
        """Add an object; if a loaded state waits for it, it is applied at once. Returns the key.

        Args:
            op: a reader, a generator, or anything with `get_state()` and `set_state(state)`. States that are to be saved
                are text; `set_state` gets the text back.
            name: the key. It replaces an object of the same type there. Without one the object keeps the key it has, or
                gets "__op_" and its number in the order of registration.

        Raises:
            TypeError: `op` has no `get_state` and `set_state`, or is of another type than the one it replaces or the
                state belongs to.
            ValueError: the name is empty or begins with "__op_".
            RuntimeError: the object is there under another name; or it is new, after `collect`.
            KeyError: the loaded checkpoint has no state of this name.
        """
        if not (hasattr(op, "get_state") and hasattr(op, "set_state")):
            raise TypeError(
                f"Checkpoint.register: expected an object with get_state() and set_state(), got {type(op).__name__}"
            )
        key = self._key(op, name)
        enable = getattr(op, "_enable_checkpointing", None)
        if enable is not None:
            enable()
        self._ops[key] = op
        self._apply(key)
        return key

    def _key(self, op: Any, name: str | None) -> str:
        known = next((key for key, other in self._ops.items() if other is op), None)
        if name is None:
            key = known or f"{_UNNAMED}{len(self._ops)}"
        else:
            key = self._checked_name(name)
            if known is not None and known != key:
                raise RuntimeError(
                    f"Checkpoint.register: the object is registered as {known!r} already: it cannot be added with a new "
                    f"key {key!r}"
                )
        if key in self._ops:
            before = type(self._ops[key]).__name__
            if type(op).__name__ != before:
                raise TypeError(
                    f"Checkpoint.register: Cannot replace operator {key!r} of type {before!r} with an operator of type "
                    f"{type(op).__name__!r}"
                )
            return key
        if self._complete:
            raise RuntimeError(
                f"Checkpoint.register: {key!r} is new, and the checkpoint has been completed by `collect`. Call `clear` "
                "first, or register everything before."
            )
        if self._loaded and key not in self._states:
            hint = (
                "" if name is not None else " If the order of registration has changed, give names: register(op, name)."
            )
            raise KeyError(f"The loaded checkpoint has no state for {key!r}; it has {sorted(self._states)}.{hint}")
        return key

    @staticmethod
    def _checked_name(name: Any) -> str:
        if not isinstance(name, str):
            raise TypeError(f"Checkpoint.register: name: expected a str, got {type(name).__name__}")
        if not name:
            raise ValueError("Checkpoint.register: the name must not be empty")
        if name.startswith(_UNNAMED):
            raise ValueError(
                f"Checkpoint.register: a name must not start with {_UNNAMED!r}, which stands for objects without one; "
                f"got {name!r}"
            )
        return str(name)

    def _apply(self, key: str) -> None:
        """Passes the waiting state to its object. If the object refuses it, the state stays."""
        if key not in self._pending:
            return
        (state, wanted), op = self._states[key], self._ops[key]
        if wanted is not None and wanted != type(op).__name__:
            raise TypeError(
                f"Type mismatch for operator {key!r}: the checkpoint has the state of a {wanted!r}, registered is a "
                f"{type(op).__name__!r}"
            )
        op.set_state(state)
        self._pending.discard(key)

    def get_state(self, name: str) -> Any:
        """The stored state of the object registered as `name`; None if there is none. After loading it is text.

        Args:
            name: the key. KeyError if nothing is registered under it.
        """
        if name not in self._ops:
            raise KeyError(f"No operator is registered under {name!r}.")
        return self._states.get(name, (None, None))[0]

    def set_state(self, name: str, value: Any, op_type: type | str | None = None) -> None:
        """Store a state for an object, registered or not. `register` or `restore` passes it to the object.

        Args:
            name: the key.
            value: a value that the object's `set_state` accepts.
            op_type: the class, or its name, that the state belongs to; checked before the state is applied.

        Raises KeyError for an unknown name, TypeError for an `op_type` that is neither a class nor a string.
        """
        if op_type is not None and not isinstance(op_type, type | str):
            raise TypeError(f"Checkpoint.set_state: `op_type` must be a class or a string, got {op_type!r}")
        if self._complete and name not in self._ops:
            raise KeyError(f"No operator is registered under {name!r}.")
        kind = op_type.__name__ if isinstance(op_type, type) else op_type
        self._states[name] = (value, kind.rpartition(".")[2] if kind else kind)
        self._pending.add(name)

    def collect(self) -> None:
        """Take the states of all registered objects. If one of them fails, everything stays as it was.

        Raises RuntimeError for states that no registered object has.
        """
        self._no_strays()
        self._states = {key: (op.get_state(), type(op).__name__) for key, op in self._ops.items()}
        self._pending.clear()
        self._complete, self._loaded = True, False

    def restore(self) -> None:
        """Pass the waiting states to all objects; does nothing if there are no states.

        Raises RuntimeError if states are missing, TypeError if a state is of another kind of object.
        """
        if not self._states:
            return
        self._no_strays()
        missing = [key for key in self._ops if key not in self._states]
        if missing:
            raise RuntimeError(f"The checkpoint is incomplete: it has no states for {missing}")
        for key in self._ops:
            self._apply(key)

    def _no_strays(self) -> None:
        strays = [key for key in self._states if key not in self._ops]
        if strays:
            raise RuntimeError(f"The checkpoint has states with no corresponding registered ops: {strays}")

    def serialize(self) -> str:
        """The states as JSON text; RuntimeError if there are none."""
        if not self._states:
            raise RuntimeError("Cannot serialize an empty checkpoint: call `collect` (or `set_state`) first")
        states = {name: {"state": _text(state), "type": kind} for name, (state, kind) in self._states.items()}
        return json.dumps({"version": _VERSION, "states": states})

    def deserialize(self, data: str) -> None:
        """Replace the states by the states in a JSON text; `register` and `restore` pass them to the objects.

        Raises ValueError, without any change, if the text is not a checkpoint of this version.

        Args:
            data: a result of `serialize`.
        """
        self._states = _parsed(data)
        self._pending = set(self._states)
        self._complete, self._loaded = False, True

    def save(self, filename: str | os.PathLike[str]) -> str:
        """Write the states to a new file and return its path. Nothing is ever overwritten.

        Args:
            filename: the path, with one field `{seq}` (and a format if wanted, "state_{seq:04d}.json") in the name of
                the file: the number after the highest one that is there, from 0. Without a field a file of this name
                must not exist (FileExistsError). Folders are made.

        Raises RuntimeError while the checkpoint is empty, ValueError for a pattern that it cannot fill in.
        """
        text = self.serialize()
        pattern = _Pattern(filename)
        os.makedirs(pattern.folder, exist_ok=True)
        number = max((n for n, _ in pattern.saved()), default=-1) + 1
        while True:
            path = pattern.path(number)
            try:
                _write_new(path, text)
                return path
            except FileExistsError:  # another process took the number
                if pattern.spec is None:
                    raise FileExistsError(
                        f"Checkpoint.save: {path} exists, and nothing is overwritten. Number the files with a field: "
                        '"state_{seq:04d}.json"'
                    ) from None
            number += 1

    def load(self, filename: str | os.PathLike[str]) -> str:
        """Read the states from the file with the highest number and return its path.

        Args:
            filename: as for `save`.

        Raises FileNotFoundError if no file matches, ValueError for a file that is not a checkpoint.
        """
        pattern = _Pattern(filename)
        newest = max(pattern.saved(), default=None)
        if newest is None:
            raise FileNotFoundError(f"Checkpoint.load: no file matches {os.fspath(filename)!r}")
        with open(newest[1], encoding="utf-8", errors="replace") as file:
            data = file.read()
        try:
            self.deserialize(data)
        except ValueError as error:
            raise ValueError(f"{newest[1]}: {error}") from None
        return newest[1]


def current() -> Checkpoint:
    """The checkpoint of the context in force on this thread, `EvalContext.current().checkpoint`."""
    return EvalContext.current().checkpoint


def _text(state: Any) -> str:
    return state.decode("ascii", "replace") if isinstance(state, bytes | bytearray) else str(state)


def _parsed(data: str) -> dict[str, tuple[Any, str | None]]:
    """The states that a text holds; ValueError if it is not the text of a checkpoint."""
    try:
        payload = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"Invalid checkpoint: expected JSON text, got {data[:40]!r} ({error})") from None
    if not isinstance(payload, dict) or "version" not in payload:
        raise ValueError(f"Invalid checkpoint: expected `version` and `states`, got {data[:40]!r}")
    if payload["version"] != _VERSION or isinstance(payload["version"], bool):
        raise ValueError(f"Invalid checkpoint: expected version {_VERSION}, got {payload['version']!r}")
    entries = payload.get("states")
    if not isinstance(entries, dict):
        raise ValueError("Invalid checkpoint: `states` must be a dict")
    states: dict[str, tuple[Any, str | None]] = {}
    for name, entry in entries.items():
        if not isinstance(entry, dict) or not isinstance(entry.get("state"), str):
            raise ValueError(f"Invalid checkpoint entry for {name!r}: expected a dict with the text `state`")
        kind = entry.get("type")
        if kind is not None and not isinstance(kind, str):
            raise ValueError(f"Invalid `type` for checkpoint entry {name!r}: expected a string or null, got {kind!r}")
        states[name] = (entry["state"], kind)
    return states


class _Pattern:
    """A path with a `{seq}` field in the name of the file: finds the existing files, and makes the path of a number."""

    def __init__(self, filename: str | os.PathLike[str]):
        path = os.fspath(filename)
        self.before, self.after, self.spec = "", "", None
        for literal, field, spec, conversion in string.Formatter().parse(path):
            self.before, self.after = (
                (self.before + literal, "") if self.spec is None else (self.before, self.after + literal)
            )
            if field is None:
                continue
            if field != "seq" or conversion:
                raise ValueError(
                    f"Unsupported field {{{field}}} in checkpoint pattern {path!r}: only {{seq}} is allowed"
                )
            if self.spec is not None:
                raise ValueError(f"`{{seq}}` may appear at most once in a checkpoint pattern, got {path!r}")
            self.spec = spec or ""
        if self.spec and self.spec[-1] not in "0123456789dxXobn,_<>^=+- ":
            raise ValueError(f"The number of a checkpoint is an integer: it cannot be written as {self.spec!r}")
        if os.sep in self.after:
            raise ValueError(f"`{{seq}}` must be in the name of the file, not in that of a folder: {path!r}")
        self.folder, self.name = os.path.split(self.before)
        self.folder = self.folder or "."

    def path(self, number: int) -> str:
        return self.before + ("" if self.spec is None else format(number, self.spec)) + self.after

    def saved(self) -> list[tuple[int, str]]:
        """(number, path) of the existing files. A text is a number only if the field would write it like that."""
        if self.spec is None:
            return [(0, self.before)] if os.path.isfile(self.before) else []
        if not os.path.isdir(self.folder):
            return []
        base = {"x": 16, "X": 16, "o": 8, "b": 2}.get(self.spec[-1:], 10)
        whole = re.compile(re.escape(self.name) + "(.+)" + re.escape(self.after), re.DOTALL)
        files: list[tuple[int, str]] = []
        for name in os.listdir(self.folder):
            match = whole.fullmatch(name)
            if match is None:
                continue
            digits = match[1].replace("#", "").replace(",", "").replace("_", "").strip(" +")
            with contextlib.suppress(ValueError):
                number = int(digits, 0 if "#" in self.spec else base)
                path = os.path.join(os.path.dirname(self.before), name)
                plain = match[1].isascii() and match[1].isalnum()  # zeros in front do not matter
                if number >= 0 and (plain or path == self.path(number)) and os.path.isfile(path):
                    files.append((number, path))
        return files


def _write_new(path: str, text: str) -> None:
    """Writes a file that appears under its name only when it is complete; FileExistsError if the name is taken."""
    folder = os.path.dirname(path) or "."
    draft = os.path.join(folder, f".{secrets.token_hex(8)}.tmp")
    try:
        with naming(path), open(draft, "x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)  # unlike a rename it never replaces a file
        except FileExistsError:
            raise
        except OSError:  # a file system without links
            if os.path.exists(path):
                raise FileExistsError(path) from None
            os.rename(draft, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(draft)
    with contextlib.suppress(OSError):  # a folder cannot be synchronised everywhere
        entry = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(entry)
        finally:
            os.close(entry)


bind_checkpoint(Checkpoint)
