"""How an operator is declared and run: `@operator`, argument conversion, plans, the registry."""

from ndd._operator import structural as _structural  # noqa: F401  (binds the methods of values)
from ndd._operator.arguments import PerSample
from ndd._operator.declare import Operator, bind_random, operator
from ndd._operator.plan import Operand, Plan, bad_sample, like, output
from ndd._operator.registry import all_operators

__all__ = [
    "Operand",
    "Operator",
    "PerSample",
    "Plan",
    "all_operators",
    "bad_sample",
    "bind_random",
    "like",
    "operator",
    "output",
]
