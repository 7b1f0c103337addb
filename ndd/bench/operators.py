"""Each operator of the table on a batch, in both libraries."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ndd.bench.libraries import Setting, enumerations, finish
from ndd.bench.operator_inputs import arrays, inputs
from ndd.bench.operator_table import TABLE
from ndd.bench.rounds import Result, enough_calls, interleaved, seconds_each


def measure(setting: Setting, data: Path | None, batch_size: int = 64, only: str = "") -> Iterator[Result]:
    """Milliseconds for a batch, call to result; on a GPU many calls in a row and one wait at the end."""
    source = arrays(data, batch_size)
    values = {
        side: inputs(library, source, setting.device, enumerations(side)) for side, library in setting.libraries.items()
    }
    for name, call in TABLE.items():
        if only in name:
            yield _compare(setting, name, call, values, batch_size)


def _compare(setting: Setting, name: str, call: Any, values: dict[str, Any], batch_size: int) -> Result:
    sides, notes = {}, []
    for side, library in setting.libraries.items():
        x = values[side]

        def work(library: Any = library, x: Any = x) -> Any:
            return finish(call(library, x))

        try:
            count = enough_calls(work, setting.settle, setting.seconds)
        except Exception as error:
            # An operator that one side lacks or refuses on this device is a line without a number.
            notes.append(_why(side, error))
            continue
        sides[side] = lambda work=work, count=count: seconds_each(work, count, setting.settle)
    found = interleaved(sides, setting.rounds)
    ms = {side: seconds * 1e3 for side, seconds in found.items()}
    title = f"{name}, {batch_size} samples, {setting.device.upper()}"
    return Result("ops", title, "ms", ms.get("ndd"), ms.get("DALI"), "; ".join(notes))


def _why(side: str, error: Exception) -> str:
    if isinstance(error, AttributeError):
        return f"not in {side}"
    reason = error.__cause__ or error  # DALI's outer text only says that it happened later
    text = (str(reason).strip() or type(reason).__name__).splitlines()[0]
    return f"{side}: {text[:90]}"
