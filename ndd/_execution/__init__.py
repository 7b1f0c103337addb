"""When and where operators run: modes, contexts, streams, threads, invocations and their errors.

`schedule.py` makes an `Invocation` (`invocation.py`) of each call. The mode in force (`mode.py`) decides when it runs: at once, or
in the queue of the `EvalContext` in force (`context.py`), whose background thread sleeps until there is something to do.
Whoever asks for a value runs what is queued before it on its own thread. The samples of a batch are distributed by a
`ThreadPool` (`threads.py`). `errors.py` puts the user's line into errors that show later. `memoize.py` caches objects that
are made once, `fork.py` says what a forked child forgets. Work for the coming batches of a reader is the package `_lookahead`.

**Why is a loop slow?** In mode `sync_full` everything runs at its call, so Python's profiler shows the time of each
operator. The line of `__next__` in `epoch.py` is the time spent waiting for the reader:

>>> import cProfile, io, pstats, ndd
>>> def loop():
...     for jpegs, labels in ndd.readers.File(file_root=ndd.demo.photos()).next_epoch(batch_size=8):
...         images = ndd.decoders.image(jpegs, device="cpu")
...         ndd.resize(images, size=[64, 64])
>>> profile, report = cProfile.Profile(), io.StringIO()
>>> with ndd.EvalMode.sync_full:
...     profile.runcall(loop)
>>> _ = pstats.Stats(profile, stream=report).sort_stats("cumtime").print_stats("ndd operator|epoch.py.*next")
>>> [name in report.getvalue() for name in ("(image)", "(resize)", "(__next__)")]
[True, True, True]

First calls load or compile kernels: run the loop once before. `python -m ndd bench` has loops to compare with.
"""

from ndd._execution.context import EvalContext, get_current_stream
from ndd._execution.invocation import Invocation
from ndd._execution.mode import EvalMode
from ndd._execution.stream import (
    Stream,
    get_default_stream,
    set_current_stream,
    set_default_stream,
    stream,
)
from ndd._execution.threads import ThreadPool, get_num_threads, set_num_threads

__all__ = [
    "EvalContext",
    "EvalMode",
    "Invocation",
    "Stream",
    "ThreadPool",
    "get_current_stream",
    "get_default_stream",
    "get_num_threads",
    "set_current_stream",
    "set_default_stream",
    "set_num_threads",
    "stream",
]
