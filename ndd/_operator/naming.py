"""Errors of an operator: its name, the sample and its source in front of the text; the type stays."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any, NoReturn

from ndd._tensor.secrets import error_text, redact, without_secrets

# NumPy's messages about arrays that do not fit together, where a plan has not checked the shape of an argument itself.
_MISFITS = ("could not be broadcast", "could not broadcast", "inhomogeneous shape", "shape mismatch", "cannot reshape")


def raise_named(error: Exception, op: Any, stores: list[Any], frames: Any = None) -> NoReturn:
    """Raises `error` with operator, sample and source."""
    labelled = redact(named(error, op, stores, frames))
    # In a user's own operator, the line that failed matters.
    raise labelled from None if labelled is error or op.ours else redact(error)


def named(error: BaseException, op: Any, stores: list[Any] = (), frames: Any = None) -> BaseException:  # type: ignore[assignment]
    """The error to raise in its place."""
    sample = getattr(error, "sample", None)
    where = ""
    if sample is not None:
        if frames is not None:
            sample = frames.sample_of(sample)
        info = source_info_of(stores)
        source = info[sample] if info is not None and sample < len(info) else None
        where = f"sample {sample}{f' ({without_secrets(source)})' if source else ''}: "
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else error_text(error)
    if text.startswith(f"{op.name}: ") and not where:
        return error
    if isinstance(error, RecursionError) and f"{op.name}: " in text:
        return error  # the operator called itself: naming it once is enough
    text = text.removeprefix(f"{op.name}: ")
    kind = MemoryError if isinstance(error, MemoryError) else type(error)  # NumPy's error takes two arguments
    if kind is ValueError and op.ours and any(words in text for words in _MISFITS):
        kind, text = RuntimeError, f"an argument has values of a shape that does not fit: {text}"
    if kind is MemoryError and not text:
        text = _too_little_memory(stores)
    if isinstance(error, StopIteration):  # a loop over results would take it for the end of the data
        kind, text = RuntimeError, f"StopIteration {text}".rstrip()
    try:
        labelled = kind(f"{op.name}: {where}{text}")
        str(labelled)
    except Exception:  # the type does not take just a text, or cannot show its own
        labelled = RuntimeError(f"{op.name}: {where}{type(error).__name__}: {text}")
    labelled.__dict__.update(getattr(error, "__dict__", {}))
    return labelled.with_traceback(error.__traceback__)


def _too_little_memory(stores: list[Any]) -> str:
    sizes = [store.nbytes() for store in stores if store is not None]
    counts = [store.n for store in stores if store is not None]
    of = f" for {max(counts)} samples, whose inputs take {sum(sizes):,} bytes" if counts else ""
    return f"there is not enough memory{of}: make smaller batches, or release values that are no longer used"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of an error about an unknown name: ": did you mean 'size'?", or ""."""
    matches = get_close_matches(name, list(known), 1)
    return f": did you mean {matches[0]!r}?" if matches else ""


def source_info_of(stores: list[Any]) -> list[Any] | None:
    """The sources of the samples, from the first input that knows them."""
    for store in stores:  # a generator in `next` takes three times as long
        if store is not None and store.source_info:
            return store.source_info
    return None


def raise_first(errors: dict[int, BaseException]) -> None:
    """The error of the first bad sample, if there is one."""
    if errors:
        i = min(errors)
        error = errors[i]
        if not hasattr(error, "sample"):
            error.sample = i  # type: ignore[attr-defined]
        raise error
