"""Functions of C's mathematical library, for kernels whose text may be interpreted.

NumPy's functions, and for float32 Python's, differ from them in the last bit. So the interpreter calls the C library too.
"""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np

from ndd._compiled.jit import kernel


@kernel
def c_log(x):
    """The natural logarithm."""
    return math.log(x)


@kernel
def c_exp(x):
    """e to the power of x."""
    return math.exp(x)


@kernel
def c_sin(x):
    """The sine."""
    return math.sin(x)


@kernel
def c_cos(x):
    """The cosine."""
    return math.cos(x)


@kernel
def c_logs(values):
    """The natural logarithm of each number, in place."""
    for i in range(values.size):
        values[i] = math.log(values[i])


@kernel
def c_lgamma(x):
    """The logarithm of the gamma function."""
    return math.lgamma(x)


def _called_by_python(function: Any, name: str) -> None:
    """Declares the library's function, which the compiled code calls too, for the interpreter; by `ctypes`, without a
    compiler."""
    try:
        whole = ctypes.CDLL(None)
        double, single = getattr(whole, name), getattr(whole, f"{name}f")
    except (AttributeError, OSError, TypeError):  # on Windows it stays compiled, even if its caller is interpreted
        function.never_interpreted()
        return
    double.argtypes, double.restype = [ctypes.c_double], ctypes.c_double
    single.argtypes, single.restype = [ctypes.c_float], ctypes.c_float
    function.interpreted_as(lambda x: np.float32(single(x)) if x.__class__ is np.float32 else double(x))


for _function, _name in ((c_log, "log"), (c_lgamma, "lgamma"), (c_exp, "exp"), (c_sin, "sin"), (c_cos, "cos")):
    _called_by_python(_function, _name)
c_logs.never_interpreted()  # it takes many numbers
