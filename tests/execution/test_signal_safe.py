"""Starting threads where the handler of a signal may raise."""

import threading

import pytest

from ndd._execution.signal_safe import start


def test_ctrl_c_while_a_thread_starts():
    """Python's own `start` makes an error of it that says nothing, and would be taken for a lack of threads."""

    class Interrupted(threading.Thread):
        def start(self):
            try:
                raise KeyboardInterrupt
            finally:
                raise RuntimeError("release unlocked lock")

    class Refused(threading.Thread):
        def start(self):
            raise RuntimeError("can't start new thread")

    with pytest.raises(KeyboardInterrupt):
        start(Interrupted())
    with pytest.raises(RuntimeError, match="can't start new thread"):
        start(Refused())
