"""What a rank keeps with torch.distributed.checkpoint and with accelerate, and goes on with.

Each rank writes what it gave before, what it would have given after and what new objects gave after the checkpoint was loaded.
"""

import json
import os

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp

import ndd


def made(folder, rank):
    files = sorted(str(p) for p in (folder / "files").iterdir())
    reader = ndd.readers.File(files=files, shard="auto", shuffle="global", seed=5)
    return reader, ndd.random.RNG(seed=rank)


def rest(reader, rng, epoch=None):
    """What comes in the rest of this epoch and in the next, and the next word."""
    epochs = [epoch or reader.next_epoch(3, last_batch="partial"), reader.next_epoch(3, last_batch="partial")]
    return [[labels.torch().flatten().tolist() for epoch in epochs for _, labels in epoch], rng()]


def started(folder, rank):
    """In the middle of an epoch: reader, generator, the epoch and what they gave."""
    reader, rng = made(folder, rank)
    epoch = iter(reader.next_epoch(3, last_batch="partial"))
    before = [next(epoch)[1].torch().flatten().tolist() for _ in range(2)]
    rng()
    return reader, rng, epoch, before


def main(folder, rank, world, with_accelerate):
    """A forked process as that rank."""
    torch.set_num_threads(1)
    os.environ.update(
        RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(world), MASTER_ADDR="127.0.0.1", MASTER_PORT="29511"
    )
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=world)
    reader, rng, epoch, before = started(folder, rank)
    dcp.save({"reader": reader, "rng": rng}, checkpoint_id=folder / "dcp")
    expected = rest(reader, rng, epoch)
    reader, rng = made(folder, rank)
    dcp.load({"reader": reader, "rng": rng}, checkpoint_id=folder / "dcp")
    result = {"dcp": rest(reader, rng)}
    if with_accelerate:
        from accelerate import Accelerator

        accelerator = Accelerator(cpu=True)
        assert accelerator.num_processes == world
        reader, rng, *_ = started(folder, rank)
        accelerator.register_for_checkpointing(reader, rng)
        accelerator.save_state(str(folder / "accelerate"))
        accelerator.wait_for_everyone()  # the first rank writes
        rest(reader, rng)
        accelerator.load_state(str(folder / "accelerate"))
        result["accelerate"] = rest(reader, rng)
    (folder / f"rank{rank}.json").write_text(json.dumps([before, expected, result]))
    dist.barrier()
    dist.destroy_process_group()
