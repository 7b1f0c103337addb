"""How an operator is declared and run.

**The life of one call**, `ndd.flip(images, horizontal=flags)`:

1. `declare.py`: `@operator` made `flip` from a function with the same signature; it only calls `Operator.call`.
2. `operator.py`: `Operator.call` looks at the inputs (handles: nothing is computed), agrees on the batch size, and finds
   what is *settled* by the constants and by the element types, ranks, layouts and devices of the inputs: a `CachedCall`
   (`call_cache.py`), kept by these (`_tensor/cache_keys.py` says when constants are the same) or made by `_settle`. Making it,
   `arguments.py` converts and checks the constants, and the operator's own function says what comes out. Errors of constants
   rise here, at the call. The result is handles, returned at once.
3. `_execution/schedule.py` runs the `Call` when the evaluation mode says so. One that a loop makes on each batch of a
   reader may have been run ahead, on a GPU: `ahead.py`.
4. `call.py`: `Call.run` gets the stores of the inputs. Operators with `.views` or `.batch` compute in Python here (one that
   has a `.plan` too does so on the CPU only, and may leave a batch to it: None; `runs.py` is for samples one behind the
   other). For the others the operator's `.plan` says the shapes of the outputs and the numbers for the kernels; per-sample
   arguments reach it as `Values` (`values.py`), inputs as `Operand` (`_tensor/operand.py`). A plan that looked at shapes
   only is kept for the next batch with the same ones; one that touched data is not (`Operand.touched`). Video is unrolled
   to frames before and put together after (`frames.py`).
5. `on_cpu.py` allocates the outputs and runs the kernel: over pieces of the batch (`pieces.py`) or sample by sample, on
   the thread pool if that is worth it. `on_gpu.py` runs the operator's `.cuda` function, whose launches
   (`_cuda/launch.py`) are written down and made again for the next batch of these shapes without asking it. Where
   shapes follow from data, `.cuda(computed_on_host)` copies what `.batch` gives. An input that nobody else holds and that
   has not been made may be made by the same kernel (`.joins`, `Call._joined`).
6. `naming.py` puts operator, sample and file in front of an error.

**To step through a call**, in a debugger or by prints: `with ndd.EvalMode.sync_full, ndd.EvalContext(num_threads=1):` runs all
of it on the caller's thread, at the call. With `NDD_COMPILE=0` in the environment Python runs the kernels too (what stands
in for one until it is compiled, else its own text; those that call C stay compiled, unless Python can call it too): slow, and
the same to the last bit. GPU kernels: the fixture `emulated_gpu` of the tests builds them as C++, where a `printf` prints.

**To add one**, copy the nearest file: `ops/image/grid_mask.py` for pixels that keep their places (`.cpu_turns`, a loop for one
sample), `ops/image/flip.py` for pixels that move, `ops/image/mixup.py` for two outputs, `ops/color/brightness.py`
for what is a matrix for each pixel, `reductions/max.py`, `random/coin_flip.py`, `ops/boxes/bbox_transform.py` where shapes
follow from data.

`structural.py` has what is no operator: picking samples, indexing inside them, stacking. `registry.py` lists the
operators for the tests, stubs, benchmarks and tables that walk them. `deprecated.py` keeps old names.

**The concepts**, all of them: `@operator` with `layouts`, `types`, `dtypes`, `frames`, `random`, `reads`, `outputs`,
`elementwise`, `masks`, `paths`, `register`; what a declaring function returns, `like`, `output`, `Samples`; the roles
`.plan`, `.cpu`, `.cpu_batch`, `.cpu_turns`, `.cuda`, `.batch`, `.views`, `.joins` (which kernels can do its work too, and when),
`.looks_at` (what part of its input it looks at, so that a decoder need not make the rest, `Call.looked_at`; and the arguments
of which one must be given for that), `.continues` (how it works on pieces of what another operator makes, which is then never
whole: `continued.py`) and `.scale` (what the axes of its result stand for, from what those of input 0 do:
seconds, hertz); what the roles see, `PerSample` and its `Values`, `Operand`, `Call`, `Plan`, and on a GPU the launch with
`scratch` and `table`, or `computed_on_host`; `bad_sample`. A `Call` has `n`, `draws`, `sources`, `threads`, `spread` (over
the pool), `in_turns` (inside compiled loops) and `once` (made once for all calls with the same constants).

A task of Python's for each sample makes threads wait for the interpreter: with 16 of them 64 small tasks take 2.5 ms, however
little they do. So a `.cpu` that is a compiled kernel is called inside one compiled loop that threads join in (`turns.py`); where
more than the plan's numbers are to be worked out, `.cpu_turns` does the same by `each_sample(call, kernel, ...)`, with stores,
`Seen` (a store in other extents) and `Rows` (numbers for each sample): `ops/image/jitter.py`. Elementwise operators do it by
`each_piece(call, kernel, ...)`, for pieces of samples (`pieces.py`): `ops/tensor/cast.py`.
"""

from ndd._operator import structural as _structural  # noqa: F401  (binds the methods of values)
from ndd._operator.arguments import PerSample
from ndd._operator.call import Call
from ndd._operator.computed_on_host import computed_on_host
from ndd._operator.declare import operator
from ndd._operator.operator import Operator, bind_random
from ndd._operator.partition import View
from ndd._operator.pieces import each_piece
from ndd._operator.plan import Plan, Samples, bad_sample, like, output
from ndd._operator.registry import all_operators
from ndd._operator.turns import Rows, Seen, bytes_of, each_sample
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
    "Seen",
    "Values",
    "View",
    "all_operators",
    "bad_sample",
    "bind_random",
    "bytes_of",
    "computed_on_host",
    "each_piece",
    "each_sample",
    "like",
    "operator",
    "output",
]
