"""On a machine with two GPUs: two processes of torchrun give at least 1.9 times the images a second of one.

By hand, since it takes time: `NDD_TWO_GPUS=1 python -m pytest -s tests/distributed/test_two_gpus.py`. FILES comes from
`NDD_IMAGES`, a folder of JPEGs; each process is bound to the NUMA node of its GPU by torchrun.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import ndd

LOOP = """
import json, os, sys, time, torch, torch.distributed as dist, ndd
rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl")
reader = ndd.readers.File(file_root=sys.argv[1], shard="auto", shuffle="global")
def epoch():
    count = 0
    for jpegs, labels in reader.next_epoch(64, last_batch="drop"):
        images = ndd.resize(ndd.decoders.image(jpegs, device="gpu"), size=[224, 224])
        count += len(ndd.crop_mirror_normalize(images, mean=[120.0] * 3, std=[60.0] * 3).torch())
    torch.cuda.synchronize()
    return count
epoch()
dist.barrier()
start, counts, steps = time.perf_counter(), [], 0
while time.perf_counter() - start < 20:
    counts.append(epoch())
rate = torch.tensor([sum(counts) / (time.perf_counter() - start)], device="cuda")
dist.all_reduce(rate)
if rank == 0:
    print(json.dumps({"images": rate.item(), "cores": len(os.sched_getaffinity(0))}))
dist.destroy_process_group()
"""


@pytest.mark.gpu
@pytest.mark.skipif(os.environ.get("NDD_TWO_GPUS") != "1", reason="NDD_TWO_GPUS=1 runs it")
def test_two_processes_give_twice_the_images(cuda, tmp_path):
    if cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    (tmp_path / "loop.py").write_text(LOOP)
    found = []
    for processes in (1, 2):
        given = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}", "--numa-binding=node"]
        ran = subprocess.run(
            [sys.executable, *given, str(tmp_path / "loop.py"), os.environ["NDD_IMAGES"]],
            env={**os.environ, "PYTHONPATH": str(Path(ndd.__file__).parents[1])},
            capture_output=True, text=True, timeout=240, check=False,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr[-2000:]
        found.append(json.loads(ran.stdout.strip().splitlines()[-1]))
    print(found)
    assert found[1]["images"] >= 1.9 * found[0]["images"], found
