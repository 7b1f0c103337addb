"""Kernels in a debugger, interrupted by Ctrl-C, and of a package in a zip file."""

import textwrap
import zipfile
import zipimport

import numpy as np
import warm_interpreter

from ndd._compiled import kernel_cache
from ndd._compiled.jit import External, kernel

SEEN: list[float] = []


@kernel
def _doubled(x):
    SEEN.append(x)  # numba could not compile it
    return x + x


@kernel
def _most(values, out):
    out[0] = max(_doubled(values[0]), values[1])


_absolute = External("abs", "int32(int32)")


@kernel
def _by_c(values, out):
    out[0] = _absolute(-_absolute(values[0]))


def test_a_debugger_steps_through_a_kernel(monkeypatch):
    """Python runs the text of each kernel that calls no C; the others are compiled as ever."""
    monkeypatch.setenv("NDD_COMPILE", "0")
    out = np.zeros(1, np.int32)
    _most(np.array([2, 3], np.int32), out)
    assert (SEEN, out.tolist()) == ([2], [4])
    _by_c(np.array([-5], np.int32), out)
    assert out.tolist() == [5]


def test_control_c_in_a_kernel_is_a_keyboard_interrupt():
    """Not a SystemError of numba's, whatever it was doing; nor an error of a sample."""
    done = warm_interpreter.run(
        textwrap.dedent("""
        import os, signal, threading, time
        import numpy as np
        import torch
        import ndd
        images = ndd.batch([np.full((40, 50, 3), i, np.uint8) for i in range(4)], layout="HWC")
        found, ending, trying = [], False, False
        def interrupted(number, frame):
            if trying:  # else it would end this script between two attempts
                signal.default_int_handler(number, frame)
        signal.signal(signal.SIGINT, interrupted)
        def fire():
            while not ending:
                time.sleep(0.02)
                os.kill(os.getpid(), signal.SIGINT)
        for k in range(3):
            ndd.brightness(images, brightness=1.0 + k).evaluate()
        firing = threading.Thread(target=fire)
        firing.start()
        while len(found) < 40:
            try:
                k, trying = 0, True
                while True:
                    k += 1
                    with ndd.EvalMode.sync_cpu:
                        ndd.brightness(images, brightness=1.0 + k % 5)
            except BaseException as error:
                trying = False
                found.append(type(error).__name__)
        ending = True
        firing.join()
        print(set(found))
        """),
        has_ndd=True,
    )
    assert done.stdout == "{'KeyboardInterrupt'}\n", done.stderr[-2000:]


def test_the_package_in_a_zip_file(tmp_path, monkeypatch):
    """The text of a file in it, by which kernels are kept."""
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("ndd/a.py", "text")
    monkeypatch.setattr(kernel_cache, "__loader__", zipimport.zipimporter(str(tmp_path / "all.zip")))
    (tmp_path / "a.py").write_text("text")
    inside = kernel_cache.source_digest(str(tmp_path / "all.zip" / "ndd" / "a.py"))
    assert inside == kernel_cache.source_digest(str(tmp_path / "a.py"))
