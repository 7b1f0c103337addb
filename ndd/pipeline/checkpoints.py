"""Checkpoints of pipelines: where its readers, generators and sources stand after a run, as JSON text."""

from __future__ import annotations

import json
from typing import Any

from ndd.atomic_file import atomic_file

_KIND = "ndd pipeline"


class Run(tuple[Any, ...]):
    """The outputs of a run, with the states after it: runs are prepared ahead, and a checkpoint is of the one given last."""

    places: str


def with_places(outputs: tuple[Any, ...], places: str) -> Run:
    """The outputs, with the states."""
    found = Run(outputs)
    found.places = places
    return found


def taken_states(objects: dict[str, Any]) -> str:
    """The states of readers, generators and sources by their labels."""
    return json.dumps({"kind": _KIND, "version": 1, "states": {k: v.state_dict() for k, v in objects.items()}})


def written(text: str, filename: str | None) -> bytes:
    """The text as bytes, which are also the content of a file of that name, if one is given."""
    data = text.encode()
    if filename is not None:
        with atomic_file(filename, durable=True) as file:
            file.write(data)
    return data


def restored_states(checkpoint: Any) -> dict[str, Any]:
    """The states in what `Pipeline.checkpoint()` gave; ValueError for anything else."""
    text = checkpoint.decode("utf-8", "replace") if isinstance(checkpoint, bytes | bytearray) else checkpoint
    if not isinstance(text, str):
        raise TypeError(
            f"Pipeline: checkpoint: expected what Pipeline.checkpoint() gave, got {type(checkpoint).__name__}"
        )
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or found.get("kind") != _KIND or not isinstance(found.get("states"), dict):
        raise ValueError(
            f"Pipeline: checkpoint: expected what Pipeline.checkpoint() of ndd gave (DALI's have another format), got {text[:40]!r}"
        )
    if found.get("version") != 1:
        raise ValueError(f"Pipeline: checkpoint: expected version 1, got {found.get('version')!r}")
    return found["states"]


def give_state(found: Any, label: str, states: dict[str, Any]) -> None:
    """Moves a new reader, generator or source to where its predecessor stood."""
    if label not in states:
        raise ValueError(f"Pipeline: the checkpoint has no state of {label!r}; it has {sorted(states)}")
    found.load_state_dict(states[label])
