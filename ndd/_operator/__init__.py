"""How an operator is declared and run.

The life of a call
------------------
`out = ndd.flip(images, horizontal=flags)`, with the modules of this package on the right:

    user's thread
    -------------
    ndd.flip(...)                       the function that `@operator` made            declare.py
      |
    Operator.call                       one path for every operator                   operator.py
      |  inputs are handles: nothing is computed, nothing is waited for
      |  constants are converted and checked once, and cached for the next call       arguments.py, call_cache.py
      |  the operator's own function says what comes out: `like(images)`              plan.py
      |  errors of arguments rise here, at the user's line
      v
    Call + Invocation ----------------> schedule                                      call.py, _execution/schedule.py
      |                                   |
      |  handles, at once                 |  in the order of the calls (eager mode);
      v                                   |  at the call (sync modes), when asked for (deferred)
    out.shape, out.torch(), ...           |
      waits until the call has run        |  a call in a loop over a reader may have been run ahead: `_lookahead`
      ^                                   v
      |                                 background thread of the EvalContext
      |                                 ------------------------------------
      |                                 Call.run
      |                                   |  values of the inputs                        inputs.py, _tensor/store.py
      |                                   |  videos become frames                        frames.py
      |                                   |  .plan: shapes of the outputs, numbers       plan.py, values.py
      |                                   |    (cached for the next batch of these shapes)
      |                                   |
      |                     CPU           |            GPU
      |                      +------------+------------+
      |                      |                         |
      |        memory for the outputs     on_cpu.py    memory for the outputs            on_gpu.py
      |        samples, pieces or runs    partition.py one launch for the whole batch    _cuda/launch.py
      |             |                                  on the context's stream, recorded for
      |             v                                  the next batch of these shapes
      |        native threads, without the GIL         |
      |        ------------------------------          |
      |        .cpu, a kernel for one sample           .cuda
      |             |                                  |
      |             +------------+---------------------+
      |                          v
      +--------------------- result: stores            naming.py puts operator, sample and file in front of an error

What the author of an operator writes
-------------------------------------
    @operator(layouts=("HWC", ...))
    def grid_mask(images, /, *, ratio: PerSample[float] = 0.5):
        return like(images)           # what comes out: dtype, number of axes, layout, device; no data
    @grid_mask.plan
    def _(images, *, ratio): ...      # for the batch: an `Operand` with its shapes, `Values`; gives a `Plan`; no data
    @grid_mask.cpu
    def _(image, out, grid): ...      # for one sample: arrays in the view that the plan says; numbers by their names in it
    @grid_mask.cuda("grid_mask.cu")
    def _(launch, images, out, grid): ...  # for the batch: one launch

They never see threads, streams, evaluation modes, `Batch` against `Tensor`, stores, pointers, where a value came from, or
defaults that were left out. How a batch is divided is the framework's choice, from what the plan says may be cut (`cut`).

**The eight concepts of a CPU operator** are `@operator`, `PerSample` arguments with their `Values`, `like` (or `output`), `.plan`,
`Operand`, `Plan`, `View`, and `.cpu` with a `@kernel`.

**The six roles** are

* `.plan`: shapes, numbers and views, once a batch, the same for CPU and GPU;
* `.cpu`: one sample on the CPU;
* `.cuda`: the launches on a GPU, with a `launch` that has `scratch` and `table`, or `computed_on_host`;
* `.batch`: a whole batch at once, where that is the only way, such as a decoder's or an FFT's. A comment at each use says why;
* `.views`: results that are views of the input's memory;
* `.fuses`: work that can be done together with the operator that makes input 0, so that this input is made in part, in pieces, or
  by the same launch (`fusion.py`).

Few operators need more: options of `@operator` (`layouts`, `types`, `dtypes`, `frames`, `random`, `reads`, `outputs`, `cut`,
`masks`, `paths`, `register`), `Samples` where their number changes, `Rows` in `.batch`, `bad_sample` for errors, and the `Call`,
which `.batch`, `.views` and plans that ask for it get.

A plan that read only shapes is cached for the next batch with the same shapes; one that touched data is not (`Operand.touched`).
Where shapes follow from data on a GPU, `.cuda(computed_on_host)` copies what `.batch` gives.

**To step through a call** with a debugger or prints, use `with ndd.EvalMode.sync_full, ndd.EvalContext(num_threads=1):`, which runs
all of it on the caller's thread, at the call. With `NDD_COMPILE=0` in the environment Python runs the kernels too (their fallbacks
or their own text; kernels that call C stay compiled, unless Python can call it too). That is slow, and the same to the last bit.
GPU kernels: the fixture `emulated_gpu` of the tests builds them as C++, where a `printf` prints.

**To add one**, copy the nearest file: `ops/image/grid_mask.py` for pixels that keep their places, `ops/image/flip.py` for pixels
that move, `ops/image/mixup.py` for two outputs, `ops/color/brightness.py` for a matrix on each pixel, `ops/tensor/cast.py`
for elementwise work, `reductions/max.py`, `random/coin_flip.py`, `ops/boxes/bbox_transform.py` where shapes follow from data.

The rest of the package: `structural.py` picks samples, indexes inside them and stacks them without an operator.
`registry.py` lists the operators for tests, stubs, benchmarks and tables. `empty_batch.py` gives results without samples.
`name_hints.py` and `unit_warnings.py` suggest what the user may have meant. `deprecated.py` has old names.
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
