"""What the noise operators have in common: the element types they take, and how numbers become such elements."""

from __future__ import annotations

import numpy as np

from ndd._cpu.jit import kernel
from ndd._operator import Operand
from ndd._tensor.dtype import float64
from ndd.random.elements import NUMBERS

_F = np.float32
_HALF = np.float32(0.49999997)  # adding it and dropping the fraction rounds half away from zero


def check_input(input: Operand) -> None:
    """RuntimeError if noise cannot be added to elements of this type: any integer type and float32 are allowed."""
    if input.dtype not in NUMBERS or input.dtype is float64:
        names = ", ".join(str(t) for t in NUMBERS if t is not float64)
        raise RuntimeError(f"expected elements of type {names}, got {input.dtype}")


@kernel
def store_rounded(values, out, low, high):
    """float32 numbers into integers of up to 16 bits: rounded half away from zero, saturated at low and high."""
    for i in range(values.size):
        out[i] = min(max(np.trunc(values[i] + np.copysign(_HALF, values[i])), low), high)
