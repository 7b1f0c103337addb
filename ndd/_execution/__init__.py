"""When and where operators run: modes, contexts, streams, threads, invocations and their errors.

`schedule.py` makes an `Invocation` (`invocation.py`) of each call. The mode in force (`mode.py`) decides when it runs: at once, or
in the queue of the `EvalContext` in force (`context.py`), whose background thread sleeps until there is work. A thread that
asks for a value runs the invocations queued before it itself. The samples of a batch are distributed by a `ThreadPool`
(`threads.py`). `errors.py` puts the user's line into errors that show later. `memoize.py` caches objects that are made once,
`fork.py` resets state in a forked child. The package `_lookahead` works ahead for the coming batches of a reader.

`ndd.profile` sees all of it through `observation.py`.
"""

from ndd._execution.context import EvalContext, get_current_stream
from ndd._execution.invocation import Invocation
from ndd._execution.mode import EvalMode
from ndd._execution.notebook import fold_errors
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

fold_errors()
