"""Functions of C's mathematical library, for kernels whose text may be interpreted.

NumPy's, and of float32 Python's, differ from them in the last bit: these are compiled even then.
"""

from __future__ import annotations

import math

from ndd._cpu.jit import kernel


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


for _function in (c_log, c_logs, c_lgamma, c_exp, c_sin, c_cos):
    _function.never_interpreted()
