"""Ctrl-C at every place where Python runs the handlers of signals: see `interrupted`."""

import opcode
import sys

CALLS = {
    opcode.opmap[name]
    for name in ("CALL", "CALL_FUNCTION", "CALL_FUNCTION_EX", "CALL_FUNCTION_KW", "CALL_KW", "CALL_METHOD")
    if name in opcode.opmap
}


class Interrupted(KeyboardInterrupt):
    pass


class interrupted:
    """In the `with` block, the code of ndd on this thread, and what it uses of `threading`, is interrupted at the `number`-th
    place, from 1; the block ends there.

    Python looks for signals where a function or a turn of a loop begins, and after a call of something written in C.

    Attributes:
        place: function and line of the interrupt; None if there are fewer places.
    """

    def __init__(self, number):
        self.left = number
        self.place = None
        self._after_call = set()

    def __enter__(self):
        sys.settrace(self._entered)
        return self

    def __exit__(self, kind, *_):
        sys.settrace(None)
        return kind is Interrupted

    def _look(self, frame):
        self.left -= 1
        if not self.left:
            self.place = f"{frame.f_code.co_filename}:{frame.f_lineno} {frame.f_code.co_name}"
            sys.settrace(None)
            raise Interrupted

    def _entered(self, frame, event, argument):
        self._after_call.discard(id(frame.f_back))  # the call was one of Python code: no look after it
        if not frame.f_globals.get("__name__", "").startswith(("ndd.", "threading", "concurrent.futures")):
            return None
        if sys.version_info < (3, 11) and frame.f_lasti >= 0:
            self._after_call.add(id(frame))  # a generator goes on: raised from here, 3.10 would not run its `finally`
        else:
            self._look(frame)
        last = -1

        def within(frame, event, argument):
            nonlocal last
            if event == "return":
                self._after_call.discard(id(frame))
            elif event == "opcode":
                at, turn = frame.f_lasti, frame.f_lasti < last
                last = at
                if turn or id(frame) in self._after_call:
                    self._after_call.discard(id(frame))
                    self._look(frame)
                if frame.f_code.co_code[at] in CALLS:
                    self._after_call.add(id(frame))
            return within

        # In this order: from Python 3.13 on, a frame without a function of its own gets no opcodes.
        frame.f_trace, frame.f_trace_lines, frame.f_trace_opcodes = within, False, True
        return within
