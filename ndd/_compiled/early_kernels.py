"""The kernels that processes compile before a program asks for them, in order, if no kernel is on disk (`background.py`).

Nearly every first program needs them, and they take longest: baseline JPEGs, 7 s of a CPU, then resizing bytes, 6 s. On two CPUs
the program asks for the second one when torch is there, and both are ready at about the same time. Torch is imported meanwhile,
which takes seconds and one CPU. They are named, not imported: a process that compiles imports their modules without the packages
around them, and finds out the types by `Kernel.usual`.
"""

from __future__ import annotations

import importlib
import pickle
import sys
from typing import Any, NamedTuple

import numpy as np

from ndd import _bare_packages


class EarlyKernel(NamedTuple):
    """A loop of a module, as its threads call it (`thread_team.joined`)."""

    module: str
    name: str

    def message(self) -> bytes:
        """What a process that compiles receives."""
        return pickle.dumps(self)

    def __reduce__(self) -> Any:
        return _imported, tuple(self)

    def is_this(self, kernel: Any, kinds: tuple[Any, ...]) -> bool:
        """Whether it is a kernel for these types, which the program has called."""
        loop = getattr(sys.modules.get(self.module), self.name, None)
        return (
            loop is not None
            and kernel.__qualname__ == f"{loop.__qualname__}_joined"
            and _usual(loop) == (kernel, kinds)
        )


EARLY = (EarlyKernel("ndd.decoders.jpeg.baseline", "decode_loop"), EarlyKernel("ndd._cpu.resample", "filter_loop"))


def _imported(module: str, name: str) -> tuple[Any, tuple[Any, ...]]:
    _bare_packages.add(module.rpartition(".")[0])
    return _usual(getattr(importlib.import_module(module), name))


def _usual(loop: Any) -> tuple[Any, tuple[Any, ...]]:
    """What threads call, and the types of its arguments."""
    from ndd._compiled.thread_team import joined  # it imports torch

    kernel, numbers = joined(loop), np.empty(0, np.int64)
    typed = kernel.compiled().typeof_pyval
    return kernel, tuple([typed(value) for value in (numbers, 1, numbers, 1, loop.usual())])
