"""For kernels that work on many samples: the next one by a counter that all threads share.

Such a kernel is called once by each thread, and takes samples until none is left. A call for each sample made threads wait
for the interpreter: 64 photographs through decode, resample and normalise were 256 calls, each of which lets go of it and
asks for it again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd._cpu.jit import Intrinsic


def _counted_in_python(turns: np.ndarray) -> int:
    """Two threads may get the same number, which is no harm: they make the same of it."""
    found = int(turns[0])
    turns[0] = found + 1
    return found


def _counted() -> Any:
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    @intrinsic
    def counted(typing_context, turns):
        def generate(context, builder, signature, arguments):
            place = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            return builder.atomic_rmw("add", place, ir.Constant(ir.IntType(64), 1), "monotonic")

        return types.int64(types.Array(types.int64, 1, "C")), generate

    return counted


next_turn: Any = Intrinsic(_counted, _counted_in_python)
"""`next_turn(turns)`: the number in int64 `[1]`, which becomes one more, as one step among all threads."""
