"""When and where operators run: modes, contexts, streams, threads, invocations and their errors."""

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
