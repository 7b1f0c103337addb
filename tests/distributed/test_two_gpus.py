"""On a machine with two GPUs: two processes of torchrun share an epoch and give nearly twice the images a second of one.

By hand, since it takes a minute, and shown with `-s`:
`NDD_TWO_GPUS=1 NDD_IMAGES=FOLDER python -m pytest -s tests/distributed/test_two_gpus.py`; FOLDER holds one folder of JPEGs
for each class. Each process has half of the cores, so that one GPU is not helped by the cores of the other. With "exclusive"
torchrun binds each process to its own cores on the NUMA node of its GPU; with "none" each takes its half of those there are.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

import pytest

import ndd

SCRIPT = Path(__file__).parent / "two_gpus_loop.py"


@pytest.mark.gpu
@pytest.mark.skipif(os.environ.get("NDD_TWO_GPUS") != "1", reason="NDD_TWO_GPUS=1 runs it")
@pytest.mark.parametrize("batch_size", [64, 256])
@pytest.mark.parametrize("binding", ["none", "exclusive"])
def test_two_processes_give_twice_the_images(cuda, binding, batch_size):
    if cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    cores = len(os.sched_getaffinity(0)) // 2
    given = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    given += [] if binding == "none" else [f"--numa-binding={binding}"]
    ran = subprocess.run(
        [sys.executable, *given, str(SCRIPT), os.environ["NDD_IMAGES"], "8192", "3", "3", str(cores), str(batch_size)],
        env={**os.environ, "OMP_NUM_THREADS": "4", "PYTHONPATH": os.pathsep.join([str(Path(ndd.__file__).parents[1]), *sys.path])},
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-3000:]
    found = json.loads(ran.stdout.strip().splitlines()[-1])
    for last, (steps, given) in found.pop("epochs").items():
        assert steps[0] == steps[1], last
        assert len(set(given)) == (1001 if last != "drop" else 7 * 128), last  # of two ranks, batches of 64
        assert len(given) == len(set(given)) or last == "fill", last
    rates = {name: median(each) for name, each in found["rates"].items()}
    one = (rates["rank 0 alone"] + rates["rank 1 alone"]) / 2
    cores = 2 * found["hashed"][2] / sum(found["hashed"][:2])
    named = f"{binding}, batches of {batch_size}"
    print(
        f"\n{named}: {found}\n{named}: two GPUs give {rates['both'] / one:.2f} times the images of one; their cores "
        f"alone, hashing, {cores:.2f} times"
    )
    assert rates["both"] >= 1.6 * one, found  # the goal is 1.9; what the cores of a lent machine share is not ours
