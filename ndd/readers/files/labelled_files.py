"""Files with a label each: as the arguments `files` and `labels`, or in a list file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ndd.readers.files.file_tree import listed_names, read_lines

_LIST_LINE = re.compile(r"(?P<name>.*\S)\s+(?P<label>-?0*\d{1,18})\s*", re.DOTALL | re.ASCII)
LABELS = range(-(1 << 31), 1 << 31)  # an i32 holds them


def listed_files(reader: str, files: Any, labels: Any) -> tuple[list[str], np.ndarray]:
    """`files` and `labels` as names and i32 numbers."""
    names = listed_names(reader, "files", files)
    return names, label_numbers(reader, labels, names) if labels is not None else np.arange(len(names), dtype=np.int32)


def label_numbers(reader: str, labels: Any, names: Sequence[str]) -> np.ndarray:
    """`labels` as i32 numbers. RuntimeError if there is not one for each name."""
    listed = list(labels) if isinstance(labels, Sequence) else [labels]
    if len(listed) != len(names):
        raise RuntimeError(f"{reader}: expected a label for each file, got {len(listed)} labels for {len(names)} files")
    return np.array([_label(reader, i, label) for i, label in enumerate(listed)], np.int32)


def _label(reader: str, i: int, label: Any) -> int:
    """A label as a number, which may be given as text, as in DALI. ValueError for anything else."""
    try:
        number = int(label)
        if (isinstance(label, str) or number == label) and number in LABELS:
            return number
    except (TypeError, ValueError, OverflowError):
        pass
    advice = ""
    if isinstance(label, str):
        advice = (
            ". Number the classes: labels=[classes.index(name) for name in names], with classes = sorted(set(names))"
        )
    raise ValueError(
        f"{reader}: labels: expected an integer of 32 bits for each file, got {label!r} for file {i}{advice}"
    )


def read_file_list(reader: str, path: str) -> tuple[list[str], np.ndarray]:
    """The names and labels in a list file; blank lines are skipped."""
    names, labels = [], []
    for number, line in enumerate(read_lines(reader, path), 1):
        if not line.strip(" \t\n\v\f\r"):
            continue
        parts = _LIST_LINE.fullmatch(line)
        if parts is None or int(parts["label"]) not in LABELS:
            raise RuntimeError(
                f'{reader}: Incorrect format of the list file "{path}":{number}: expected a file name followed by a '
                f"label, an integer of 32 bits, got {line!r}"
            )
        names.append(parts["name"])
        labels.append(int(parts["label"]))
    return names, np.array(labels, np.int32)
