"""The two sides of every comparison. The only place that imports DALI."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import ndd
from ndd._compiled.background import background
from ndd.bench.rounds import synchronize
from ndd.installation import install_command


@dataclass
class Setting:
    """The setting of a measurement: the libraries by name, the device, the threads, and the duration."""

    device: str
    threads: int
    libraries: dict[str, Any] = field(default_factory=dict)
    without_dali: str = ""
    rounds: int = 7
    seconds: float = 0.03  # for one side of one round

    def synchronize(self) -> None:
        """Waits for everything that any library has queued on the GPU."""
        synchronize(self.device)


def make_setting(device: str, threads: int | None, with_dali: bool = True) -> Setting:
    """Both libraries with the same number of threads. RuntimeError if the GPU is asked for and there is none."""
    if device == "gpu":
        import torch

        if not torch.cuda.is_available():
            raise RuntimeError("--device gpu: torch sees no GPU. `python -m ndd doctor` says what to install.")
    background.forbid()  # measures kernels instead of their fallbacks
    count = threads or ndd.get_num_threads()
    ndd.set_num_threads(count)
    setting = Setting(device, count, {"ndd": ndd})
    dali, setting.without_dali = _dali(count) if with_dali else (None, "DALI is left out (--no-dali).")
    if dali is not None:
        setting.libraries["DALI"] = dali
    return setting


def _dali(threads: int) -> tuple[Any, str]:
    try:
        import nvidia.dali.experimental.dynamic as dali
    except ImportError as error:
        reason = str(error).splitlines()[0]
        return (
            None,
            f"DALI cannot be imported ({reason}): its column stays empty. `{install_command('oracle')}` brings it.",
        )
    dali.set_num_threads(threads)
    return dali, ""


def finish(value: Any) -> Any:
    """Evaluates the result of an operator: a value, or several."""
    if isinstance(value, tuple | list):
        for item in value:
            item.evaluate()
    else:
        value.evaluate()
    return value


def enumerations(side: str) -> Any:
    """The module with the interpolation and image types of a library."""
    if side == "ndd":
        return ndd.types
    from nvidia.dali import types

    return types


def names_among(text: str, known: Sequence[str]) -> list[str]:
    """The names in `text`, with commas between, in any case; all for an empty one. ValueError for a name that is not `known`."""
    wanted = [name.strip().lower() for name in text.split(",")] if text else [name.lower() for name in known]
    unknown = [name for name in wanted if name not in [each.lower() for each in known]]
    if unknown:
        raise ValueError(f"--sides: expected some of {', '.join(known)}, got {unknown[0]!r}")
    return [name for name in known if name.lower() in wanted]
