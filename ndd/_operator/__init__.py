"""How an operator is declared and run.

The life of a call
------------------
`out = ndd.flip(images, horizontal=flags)`, with the modules of this package on the right:

    user's thread
    ======
**To step through a call**, in a debugger or by prints: `with ndd.EvalMode.sync_full, ndd.EvalContext(num_threads=1):` runs all
of it on the caller's thread, at the call. With `NDD_COMPILE=0` in the environment Python runs the kernels too (what stands
in for one until it is compiled, else its own text; those that call C stay compiled, unless Python can call it too): slow, and
the same to the last bit. GPU kernels: the fixture `emulated_gpu` of the tests builds them as C++, where a `printf` prints.

**To add one**, copy the nearest file: `ops/image/grid_mask.py` for pixels that keep their places, `ops/image/flip.py` for pixels
that move, `ops/image/mixup.py` for two outputs, `ops/color/brightness.py` for what is a matrix for each pixel, `ops/tensor/cast.py`
for elementwise work, `reductions/max.py`, `random/coin_flip.py`, `ops/boxes/bbox_transform.py` where shapes follow from data.

The rest of the package: `structural.py` has what is no operator (picking samples, indexing inside them, stacking), `registry.py`
lists the operators for the tests, stubs, benchmarks and tables that walk them, `empty_batch.py` gives results without samples,
`name_hints.py` and `unit_warnings.py` say what may have been meant, `deprecated.py` keeps old names.
"""

from ndd._operator import structural as _structural  # noqa: F401  (binds the methods of values) # pyright: ignore[reportUnusedImport]
from ndd._operator.arguments import PerSample
from ndd._operator.call import Call
from ndd._operator.computed_on_host import computed_on_host
from ndd._operator.declare import operator
from ndd._operator.operator import Operator, bind_random
from ndd._operator.partition import Rows, View
from ndd._operator.plan import Plan, Samples, bad_sample, like, output
from ndd._operator.registry import all_operators
from ndd._operator.values import Values
from ndd._tensor.operand import Operand

__all__ = [
    "Call",
    "Operand",
    "Operator",
    "PerSample",
    "Plan",
    "Rows",
    "Samples",
    "Values",
    "View",
    "all_operators",
    "bad_sample",
    "bind_random",
    "computed_on_host",
    "like",
    "operator",
    "output",
]
