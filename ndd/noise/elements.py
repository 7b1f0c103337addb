"""What the noise operators have in common: the element types they take, and how numbers become such elements."""

from __future__ import annotations

from ndd._operator import Operand
from ndd._tensor.dtype import float64
from ndd.random.elements import NUMBERS


def check_input(input: Operand) -> None:
    """RuntimeError if noise cannot be added to elements of this type: any integer type and float32 are allowed."""
    if input.dtype not in NUMBERS or input.dtype is float64:
        names = ", ".join(str(t) for t in NUMBERS if t is not float64)
        raise RuntimeError(f"expected elements of type {names}, got {input.dtype}")
