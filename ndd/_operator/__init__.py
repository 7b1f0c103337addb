"""How an operator is declared and run: `@operator`, argument conversion, plans, the registry."""

from ndd._operator import structural as _structural  # noqa: F401  (binds the methods of values)
from ndd._operator.arguments import PerSample
from ndd._operator.call import Call
from ndd._operator.declare import operator
from ndd._operator.operator import Operator, bind_random
from ndd._operator.plan import Operand, Plan, Samples, bad_sample, like, output
from ndd._operator.registry import all_operators
from ndd._operator.values import Values

__all__ = [
    "Call",
    "Operand",
    "Operator",
    "PerSample",
    "Plan",
    "Samples",
    "Values",
    "all_operators",
    "bad_sample",
    "bind_random",
    "like",
    "operator",
    "output",
]
