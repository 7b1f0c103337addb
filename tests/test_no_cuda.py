"""Without a GPU, without cupy, without nvImageCodec: the CPU side works; and `import ndd` costs little."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import warm_interpreter

_BLOCK = """
import importlib.abc, importlib.util, sys

class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ABSENT or name.startswith(("nvidia.nvimgcodec", "nvidia.nvcomp")):
            raise ImportError(f"{name} is not installed (blocked by the test)")

ABSENT = set(sys.argv[1:])
sys.meta_path.insert(0, Absent())
find_spec = importlib.util.find_spec

def found(*name):
    try:
        return find_spec(*name)
    except ImportError:
        return None

importlib.util.find_spec = found
"""
CUDA_PACKAGES = ("cupy", "cupy_backends", "cupyx", "cuda", "numba_cuda", "triton")


def run(code, *blocked):
    """The output of `code` in an interpreter that has imported torch, where some packages cannot be imported."""
    done = warm_interpreter.run(_BLOCK + textwrap.dedent(code), *blocked)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def run_afresh(code, *blocked):
    """The same without torch: it is not to import them either."""
    program = [sys.executable, "-c", _BLOCK + textwrap.dedent(code), *blocked]
    return subprocess.run(program, capture_output=True, text=True, timeout=280, check=True).stdout


def test_the_cpu_side_needs_no_cuda_package():
    out = run_afresh(
        """
        import numpy as np
        import ndd

        images = ndd.batch([np.arange(h * 12, dtype=np.uint8).reshape(h, 4, 3) for h in (2, 3)], layout="HWC")
        flipped = ndd.flip(images)
        doubled = ndd.cast(flipped, dtype=ndd.float32) * 2
        print([s.shape for s in doubled], ndd.random.uniform(batch_size=2, rng=ndd.random.RNG(1)).batch_size)
        print(repr(doubled)[:6])
        loaded = [m for m in sys.modules if m.split(".")[0] in ABSENT]
        print(loaded)
        """,
        *CUDA_PACKAGES,
    )
    assert out.splitlines() == ["[(2, 4, 3), (3, 4, 3)] 2", "Batch(", "[]"]


def test_asking_for_a_gpu_says_what_is_missing():
    out = run(
        """
        import ndd, torch
        torch.cuda.device_count = lambda: 0
        for attempt in (lambda: ndd.tensor([1]).gpu(), lambda: ndd.flip(ndd.tensor([[1]], layout="HW"), device="gpu")):
            try:
                attempt()
            except RuntimeError as error:
                print("doctor" in str(error))
        """,
        *CUDA_PACKAGES,
    )
    assert out.split() == ["True", "True"]


def test_the_import_leaves_everything_alone():
    """Nothing heavy is imported, no thread starts before work does, and warnings, logging, signal handlers and NumPy's print
    options stay as they were. How long it takes is for `python -m ndd bench import` to say: a timed test fails on a busy
    machine."""
    out = run(
        """
        import torch, warnings, signal, logging, threading, numpy as np
        def state():
            return (len(warnings.filters), signal.getsignal(signal.SIGINT), logging.getLogger().handlers[:],
                    np.get_printoptions(), torch.get_num_threads(), torch.get_default_dtype())
        before = state()
        import ndd
        print(before == state(), threading.active_count())
        print(sorted({m.split(".")[0] for m in sys.modules} & {"numba", "cv2", "PIL", "cupy", "scipy", "llvmlite"}))
        """
    )
    assert out.splitlines() == ["True 1", "[]"]


def test_what_is_always_needed_and_is_not_there():
    """Installed with --no-deps: the error says what to install, and notebooks show the text of a value."""
    out = run(
        """
        import numpy as np
        import ndd

        images = ndd.batch([np.zeros((9, 9, 3), np.uint8)] * 2, layout="HWC")
        for attempt in (lambda: ndd.resize(images, size=[3, 3]).evaluate(), lambda: ndd.picture(images).png()):
            try:
                attempt()
            except ImportError as error:
                print(str(error).rpartition("pip")[2])
        print(images._repr_html_(), images.select(0)._repr_html_())
        """,
        "numba",
        "PIL",
    )
    assert out.splitlines() == [' install "numba>=0.61"', ' install "pillow>=12"', "None None"]
