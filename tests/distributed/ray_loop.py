"""An epoch as each worker reads it: torchrun runs `ray_loop.py FOLDER FILES`, workers of Ray Train call `run`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist

import ndd


def run(folder, files):
    """Writes what this rank saw in each step, and its place after three of them, to `folder`."""
    rank, world = dist.get_rank(), dist.get_world_size()
    assert (os.environ["RANK"], os.environ["WORLD_SIZE"]) == (str(rank), str(world))
    reader = ndd.readers.File(files=files, shard="auto", shuffle="global", seed=5)
    steps, state = [], None
    for _, labels in reader.next_epoch(2, last_batch="partial"):
        dist.all_reduce(torch.ones(1))  # as DDP does: every rank must take part in every step
        steps.append(labels.torch().flatten().tolist())
        if len(steps) == 3:
            state = reader.state_dict()
    (Path(folder) / f"{rank}.json").write_text(json.dumps({"steps": steps, "state": state}))


if __name__ == "__main__":
    dist.init_process_group("gloo")
    run(sys.argv[1], Path(sys.argv[2]).read_text().split("\n"))
    dist.destroy_process_group()
