"""A training loop as torchrun starts it: saves its place after each step and goes on from what all ranks have saved.

`elastic_loop.py FOLDER FILES STEPS [ATTEMPT]`: FILES holds the paths; after STEPS steps of attempt 1 it ends, in mid-epoch.
Without ATTEMPT it is the number of torchrun's restarts.
Rank 1 of the first attempt is killed in its third step, after it has read a batch that it has not saved.
"""

import json
import os
import signal
import sys
from pathlib import Path

import torch
import torch.distributed as dist

import ndd


def saved(folder):
    """The states of the last attempt of which all ranks have saved one, and what all attempts have seen."""
    result, seen = None, []
    for attempt in sorted(folder.glob("attempt*")):
        states = [json.loads(p.read_text()) for p in sorted(attempt.glob("rank*.json"))]
        if states and len(states) == states[0]["world"]:
            result = [state["reader"] for state in states]
            seen += [label for state in states for label in state["seen"]]
    return result, seen


def save(path, **case):
    path.with_suffix(".new").write_text(json.dumps(case))
    os.replace(path.with_suffix(".new"), path)


def main(folder, files, stop, attempt):
    rank, world = (int(os.environ[k]) for k in ("RANK", "WORLD_SIZE"))
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting{attempt}", rank=rank, world_size=world)
    reader = ndd.readers.File(files=files, shard="auto", shuffle="global", seed=5)
    states, _ = saved(folder)
    if states is not None:
        reader.load_state_dict(states)
    len(reader)
    dist.barrier()  # all have read what the attempt before saved
    mine = folder / f"attempt{attempt}" / f"rank{rank}.json"
    mine.parent.mkdir(exist_ok=True)
    seen = []
    save(mine, world=world, reader=reader.state_dict(), seen=seen)
    dist.barrier()
    for step, (_, labels) in enumerate(reader.next_epoch(2, last_batch="partial")):
        if attempt == 0 and rank == 1 and step == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        dist.all_reduce(torch.ones(1))  # as DDP does: every rank must take part in every step
        seen += labels.torch().flatten().tolist()
        save(mine, world=world, reader=reader.state_dict(), seen=seen)
        dist.barrier()  # all have saved this step before one of them is killed in the next
        if attempt == 1 and step == stop:
            break
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    attempts = sys.argv[4] if len(sys.argv) > 4 else os.environ["TORCHELASTIC_RESTART_COUNT"]
    main(Path(sys.argv[1]), Path(sys.argv[2]).read_text().split("\n"), int(sys.argv[3]), int(attempts))
