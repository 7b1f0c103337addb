"""Pictures whose headers lie: each gives a picture of the promised shape or a sentence, in no time, from little memory, and never
a byte that nobody wrote.

`python tests/hostile/test_pictures.py 100000` (or NDD_HOSTILE_FILES with pytest) tries more than CI does.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))
from encoded import KINDS
from pictures import mutated, originals

import ndd

FILES_IN_CI = 600
SECONDS = 5  # of a processor for one file
MEMORY = 1 << 30  # bytes more than at the start
MAX_PIXELS = 1 << 18
M_PERTURB = -6  # of glibc's mallopt: what fresh memory is filled with
CALLS = (
    (ndd.decoders.image, {}), (ndd.decoders.image_crop, {"crop": (3, 4)}), (ndd.decoders.image, {"adjust_orientation": False}),
    (ndd.decoders.image_slice, {"start": [1, 2], "end": [5, 4]}),
)  # fmt: skip


def outcome(call, *arguments, **named):
    """An array, or an error that names the operator and the sample."""
    try:
        return np.asarray(call(*arguments, **named).evaluate()).copy()
    except RuntimeError as error:
        sentence = str(error)
    assert "sample 0" in sentence, sentence
    assert len(sentence) < 600
    return sentence


def try_one(number: int, mallopt) -> None:
    name, data = mutated(number)
    function, window = CALLS[number // 3 % len(CALLS)]
    kind = getattr(ndd.types, KINDS[number % len(KINDS)])
    start, result = time.process_time(), []
    for pattern in (0x55, 0xC3):
        mallopt(M_PERTURB, pattern)
        result.append(outcome(function, data, output_type=kind, max_pixels=MAX_PIXELS, **window))
    mallopt(M_PERTURB, 0)
    shape = outcome(ndd.peek_image_shape, data, image_type=kind, **({k: v for k, v in window.items() if k[0] == "a"}))
    assert time.process_time() - start < SECONDS, f"{name}: {time.process_time() - start:.1f} s"
    assert isinstance(result[0], str) == isinstance(result[1], str), name
    if not isinstance(result[0], str):
        np.testing.assert_array_equal(*result, err_msg=f"{name}: memory that nobody wrote")
        assert result[0].shape[0] * result[0].shape[1] <= MAX_PIXELS
        if function is ndd.decoders.image:
            assert tuple(shape) == result[0].shape, name


def work(start: int, stop: int) -> None:
    """The child: writes the number of each file before it tries it."""
    import resource

    mallopt = getattr(ctypes.CDLL(None), "mallopt", lambda *_: 1)
    for number in range(len(originals())):  # imports, kernels, threads
        outcome(ndd.decoders.image, np.frombuffer(originals()[number][1], np.uint8))
    with open("/proc/self/status") as file:
        taken = next(int(line.split()[1]) << 10 for line in file if line.startswith("VmSize"))
    resource.setrlimit(resource.RLIMIT_AS, (taken + MEMORY, resource.RLIM_INFINITY))
    for number in range(start, stop):
        os.write(1, b"%d\n" % number)
        try:
            try_one(number, mallopt)
        except Exception as error:
            os.write(
                1, f"FAILED {number} {mutated(number)[0]}: {type(error).__name__}: {str(error)[:300]!r}\n".encode()
            )


def watched(start: int, stop: int) -> list[str]:
    """What went wrong."""
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((root, os.environ.get("PYTHONPATH", "")))}
    wrong: list[str] = []
    while start < stop:
        command = [sys.executable, str(Path(__file__)), "child", str(start), str(stop)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as child:
            said, complaint = child.communicate()
        lines = said.decode().splitlines()
        wrong += [line for line in lines if line.startswith("FAILED")]
        if child.returncode == 0:
            break
        at = int([line for line in lines if line.isdigit()][-1]) if lines else start
        wrong.append(
            f"DIES {at} ({mutated(at)[0]}): status {child.returncode} {complaint[-200:].decode(errors='replace')}"
        )
        start = at + 1
    return wrong


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits memory as Linux does")
def test_lying_headers():
    wrong = watched(0, int(os.environ.get("NDD_HOSTILE_FILES", FILES_IN_CI)))
    assert not wrong, f"{len(wrong)} files:\n" + "\n".join(wrong[:30])


def test_good_ones_are_good():
    for name, data in originals():
        result = np.asarray(ndd.decoders.image(np.frombuffer(data, np.uint8)))
        assert sorted(result.shape) == [3, 9, 13], name


if __name__ == "__main__":
    if sys.argv[1] == "child":
        work(int(sys.argv[2]), int(sys.argv[3]))
    else:
        for problem in watched(0, int(sys.argv[1])):
            print(problem)
