"""`NumbaFunction`, where DALI's numba plugin has it."""

from ndd.pipeline.operator_classes import operator_class
from ndd.plugin.numba.fn.experimental import numba_function

NumbaFunction = operator_class(numba_function, "NumbaFunction")

__all__ = ["NumbaFunction"]
