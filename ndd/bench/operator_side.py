"""One library of `bench ops`, in its own process, which reads names of rows and answers with seconds:

python -m ndd.bench.operator_side SIDE DEVICE THREADS DATA BATCH_SIZE SECONDS
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from ndd.bench.libraries import Setting, enumerations, finish, make_setting
from ndd.bench.operator_inputs import arrays, inputs
from ndd.bench.operator_table import TABLE
from ndd.bench.rounds import enough_calls, seconds_each

_LEAST_ON_GPU = 20  # calls: with six decodes, shared by threads and engines, the medians differed by a third


class Rows:
    """Times rows of the table with one library. `x` are its inputs, on the measured device."""

    def __init__(self, setting: Setting, side: str, x: Any):
        self._setting, self._side, self._x = setting, side, x
        self._warm, self._count = "", 0  # the last row, and how many calls of it are timed

    def answer(self, row: str) -> dict[str, Any]:
        """`{"seconds": ...}` for a call, or `{"why": ...}` without a number. A row other than the last one is warmed up
        first."""
        library, synchronize = self._setting.libraries[self._side], self._setting.synchronize

        def work() -> Any:
            return finish(TABLE[row](library, self._x))

        try:
            if row != self._warm:
                if self._setting.device == "cpu" and _on_gpu(work()):
                    # This does not wait for the kernel, and the device is not the table's.
                    return {"why": f"{self._side}: on its GPU only"}
                least = _LEAST_ON_GPU if self._setting.device == "gpu" else 1
                self._count = max(enough_calls(work, synchronize, self._setting.seconds), least)
                self._warm = row
            return {"seconds": seconds_each(work, self._count, synchronize)}
        except Exception as error:
            # An operator that a side does not have on this device gets a line without a number.
            return {"why": _why(self._side, error)}


def _on_gpu(value: Any) -> bool:
    """Whether a value, or one of several, is on a GPU. DALI moves inputs there for operators that it has for GPUs only."""
    values = value if isinstance(value, tuple | list) else (value,)
    return any(item.device.device_type == "gpu" for item in values)


def _why(side: str, error: Exception) -> str:
    if isinstance(error, AttributeError):
        return f"not in {side}"
    reason = error.__cause__ or error  # DALI's outer text only says that the error is a late one
    text = (str(reason).strip() or type(reason).__name__).splitlines()[0]
    return f"{side}: {text[:90]}"


def _answer(side: str, device: str, threads: str, data: str, batch_size: str, seconds: str) -> None:
    """The process of one library: an answer for each line of the input; an empty line asks whether it is ready."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # a library's own output must not mix with the answers
    setting = make_setting(device, int(threads), side == "DALI")
    setting.seconds = float(seconds)
    source = arrays(Path(data) if data else None, int(batch_size))
    rows = Rows(setting, side, inputs(setting.libraries[side], source, device, enumerations(side)))
    for line in sys.stdin:
        row = line.strip()
        print(json.dumps(rows.answer(row) if row else {}), file=out, flush=True)


if __name__ == "__main__":
    _answer(*sys.argv[1:])
