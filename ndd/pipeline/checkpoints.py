"""Checkpoints of pipelines: the positions of readers, generators and sources after a run, as JSON text."""

from __future__ import annotations

import json
from typing import Any

from ndd.atomic_file import atomic_file

_KIND = "ndd pipeline"


class PlacedOutputs(tuple[Any, ...]):
    """The outputs of a run, with the states after it: runs are prepared ahead, and a checkpoint is for the last one given
    out."""

    places: str


def with_places(outputs: tuple[Any, ...], places: str) -> PlacedOutputs:
    """The outputs, with the states."""
    placed = PlacedOutputs(outputs)
    placed.places = places
    return placed


def taken_states(objects: dict[str, Any]) -> str:
    """The states of readers, generators and sources by their labels."""
    return json.dumps({"kind": _KIND, "version": 1, "states": {k: v.state_dict() for k, v in objects.items()}})


def first_states(restored: dict[str, Any] | None) -> str:
    """The states before the first run: those that were restored, or none."""
    return json.dumps({"kind": _KIND, "version": 1, "states": restored or {}})


def with_iterator(text: str, place: dict[str, Any] | None) -> str:
    """The states, with the position of the iterator over the pipeline."""
    return text if place is None else json.dumps({**json.loads(text), "iterator": place})


def written(text: str, filename: str | None) -> bytes:
    """The text as bytes, which are also the content of a file of that name, if one is given."""
    data = text.encode()
    if filename is not None:
        with atomic_file(filename, durable=True) as file:
            file.write(data)
    return data


def restored_states(checkpoint: Any) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The states in the result of `Pipeline.checkpoint()`, and the position of an iterator; ValueError for anything else."""
    text = checkpoint.decode("utf-8", "replace") if isinstance(checkpoint, bytes | bytearray) else checkpoint
    if not isinstance(text, str):
        raise TypeError(
            f"Pipeline: checkpoint: expected what Pipeline.checkpoint() gave, got {type(checkpoint).__name__}"
        )
    try:
        state = json.loads(text)
    except (ValueError, RecursionError):
        state = None
    if not isinstance(state, dict) or state.get("kind") != _KIND or not isinstance(state.get("states"), dict):
        raise ValueError(
            f"Pipeline: checkpoint: expected what Pipeline.checkpoint() of ndd gave (DALI's have another format), got {text[:40]!r}"
        )
    if state.get("version") != 1:
        raise ValueError(f"Pipeline: checkpoint: expected version 1, got {state.get('version')!r}")
    place = state.get("iterator")
    if place is not None and not isinstance(place, dict):
        raise ValueError(f"Pipeline: checkpoint: expected the position of an iterator, got {place!r}")
    return state["states"], place


def give_state(owner: Any, label: str, states: dict[str, Any]) -> None:
    """Moves a new reader, generator or source to the position of its predecessor."""
    if not states:
        return  # the checkpoint is from before the first run: everything starts from the beginning
    if label not in states:
        raise ValueError(f"Pipeline: the checkpoint has no state of {label!r}; it has {sorted(states)}")
    owner.load_state_dict(states[label])
