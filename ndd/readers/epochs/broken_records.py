"""Records that cannot be read: an error, or with `on_error="skip"` a batch without them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ndd._execution.errors import is_no_fault_of_data
from ndd._tensor.secrets import error_text, redact, without_secrets
from ndd._tensor.user_line import warn_user
from ndd.decoders import BadSample
from ndd.io.file import from_where
from ndd.readers.epochs.read_ahead import Step
from ndd.readers.output import Output
from ndd.readers.stores.records import Records, RecordStore


class Skipped(NamedTuple):
    """A record that could not be read and was left out, as `reader.skipped` lists them.

    Attributes:
        number: its number in the data set.
        source: the file, or the container and the record's place in it; without the secrets of a URL.
        error: the error of the record.
    """

    number: int
    source: str
    error: str


class BrokenRecords:
    """The records that a reader has left out so far, each once."""

    def __init__(self, reader: str):
        self._reader = reader
        self._skipped: dict[int, Skipped] = {}
        self._in_a_row: list[int] = []  # the numbers of those since the last sound one

    def left_out(self, step: Step, read: tuple[Output, ...], store: RecordStore, most: int) -> Step:
        """The step without its broken records; perhaps nothing is left.

        RuntimeError if all records, or all of a visit of at most `most` records, are broken: then the cause is not in the
        records. (Twice `most` in a row hold a whole visit.)
        """
        errors = {place: without_secrets(text) for place, text in broken(step, read).items()}
        if len(errors) == len(step.numbers):
            self._in_a_row += step.numbers
        else:
            self._in_a_row = []
        if not errors:
            return step
        dropped: list[BadSample] = []
        for place, text in errors.items():
            number = step.numbers[place]
            bad = Skipped(number, without_secrets(store.source(number)), text)
            dropped.append(BadSample(place, bad.source, text))
            if not self._skipped:
                warn_user(
                    f"{self._reader}: sample {number} ({bad.source}) is left out: {text}. `reader.skipped` lists all "
                    "of them."
                )
            self._skipped.setdefault(number, bad)
        count = len(self._in_a_row)
        if count >= most and (count >= 2 * most or len(set(self._in_a_row)) == len(store)):
            self._in_a_row = []
            raise RuntimeError(
                f'{self._reader}: on_error="skip": expected some readable records, none of {count} in a row was; sample '
                f"{step.numbers[dropped[-1].index]} ({dropped[-1].source}): {dropped[-1].error}"
            )
        kept = [place for place in range(len(step.numbers)) if place not in errors]
        return Step([step.numbers[p] for p in kept], step.records.picked(kept), step.position, tuple(dropped))

    def refuse(self, step: Step, read: tuple[Output, ...], store: RecordStore) -> None:
        """RuntimeError for the first record of the step that is broken."""

        def sample(place: int) -> str:
            number = step.numbers[place]
            return f"{self._reader}: sample {number} ({without_secrets(store.source(number))})"

        for place, error in step.records.faults.items():
            where = from_where(str(error.filename)) if isinstance(error, FileNotFoundError) else ""
            redact(error)
            raise RuntimeError(
                f"{sample(place)}: expected a readable record, got {type(error).__name__}: {error_text(error)}{where}"
            ) from error
        refused = mismatch(step.records, read)
        if refused is not None:
            raise RuntimeError(f"{sample(refused[0])}: {refused[1]}")

    def listed(self) -> list[Skipped]:
        """All of them, in the order of reading."""
        return list(self._skipped.values())

    def restore(self, listed: Sequence[Sequence[Any]]) -> None:
        """Take over what a saved state lists."""
        self._skipped = {bad[0]: Skipped(*bad) for bad in listed}
        self._in_a_row = []


def broken(step: Step, read: tuple[Output, ...]) -> dict[int, str]:
    """The errors of the broken records of a step, by place.

    Errors that are not the data's stay where they are and are raised: no memory, no file descriptors, or a store that does
    not answer.
    """
    records = step.records
    errors = {
        place: f"{type(error).__name__}: {error_text(error)}"
        for place, error in records.faults.items()
        if isinstance(error, Exception) and not is_no_fault_of_data(error)
    }
    refused = mismatch(records, read)
    sound = [place for place in range(len(records)) if place not in records.faults] if refused else []
    while refused:
        errors[sound.pop(refused[0])] = refused[1]
        refused = mismatch(records.picked(sound), read)
    return dict(sorted(errors.items()))


def mismatch(records: Records, read: tuple[Output, ...]) -> tuple[int, str] | None:
    """The first sound record that differs from the declared types, or from the first record; and an error text."""
    for column, output in zip(records.columns, read, strict=False):
        refused = output._mismatch(column)
        if refused is not None:
            return refused
    return None
