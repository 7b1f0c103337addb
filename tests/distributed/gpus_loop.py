"""The main loop on several GPUs, as torchrun starts it: `gpus_loop.py FOLDER IMAGES SECONDS ROUNDS CORES BATCH` prints JSON.

Each process keeps CORES cores, its share of the machine's, also while it works alone: one GPU with its cores is compared with
all GPUs with theirs. In each round every rank works alone in turn, then all work; a rank without work sleeps in a barrier of gloo.
"""

import hashlib
import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
import torch.distributed as dist

import ndd
from ndd.demo.folder import scan

MEAN, STD = [0.485 * 255, 0.456 * 255, 0.406 * 255], [0.229 * 255, 0.224 * 255, 0.225 * 255]


def work(files, batch_size, **shard):
    """An endless loop of batches on this GPU; gives how many images each has."""
    reader = ndd.readers.File(
        file_root=str(files.root), files=files.files, labels=files.labels, shuffle="global", seed=3, **shard
    )
    while True:
        for jpegs, _ in reader.next_epoch(batch_size, last_batch="drop"):
            images = ndd.random_resized_crop(ndd.decoders.image(jpegs, device="gpu"), size=[224, 224])
            mirror = ndd.random.coin_flip(batch_size=images.batch_size)
            yield len(ndd.crop_mirror_normalize(images, mean=MEAN, std=STD, mirror=mirror).torch())


def rate(loop, seconds):
    """Images a second, and how many cores this process kept busy."""
    torch.cuda.synchronize()
    start, spent, count = time.perf_counter(), time.process_time(), 0
    while time.perf_counter() - start < seconds:
        count += sum(next(loop) for _ in range(4))
    torch.cuda.synchronize()
    lasted = time.perf_counter() - start
    return count / lasted, (time.process_time() - spent) / lasted


def hashed(threads, seconds=1.0):
    """Megabytes a second that this process's cores hash: what they do alone, and while the others work as well."""
    until, block = time.perf_counter() + seconds, bytes(1 << 20)

    def work(_):
        count = 0
        while time.perf_counter() < until:
            hashlib.sha256(block).digest()  # without the GIL
            count += 1
        return count

    with ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(work, range(threads))) / seconds


def everybody(value):
    result = [None] * dist.get_world_size()
    dist.all_gather_object(result, value)
    return result


def numa_node(gpu):
    """The NUMA node of a GPU; -1 where the machine has one or does not say."""
    p = torch.cuda.get_device_properties(gpu)
    place = f"/sys/bus/pci/devices/{p.pci_domain_id:04x}:{p.pci_bus_id:02x}:{p.pci_device_id:02x}.0/numa_node"
    return int(Path(place).read_text()) if Path(place).exists() else -1


def epochs(rank, count=1001):
    """What the ranks give of the numbers below `count` in one epoch of each kind, on the GPU and with a step of NCCL."""
    device = torch.device("cuda", rank)
    nccl = dist.new_group(backend="nccl")
    result = {}
    for last in ("fill", "partial", "drop"):
        reader = ndd.readers.File(files=[__file__] * count, labels=list(range(count)), shard="auto", shuffle="global")
        mine, steps = [], 0
        for _, labels in reader.next_epoch(64, last_batch=last):
            seen = labels.gpu().torch().flatten()
            assert seen.device == device, seen.device
            dist.all_reduce(torch.ones(1, device=device), group=nccl)  # hangs where a rank makes more steps
            mine += seen.tolist()
            steps += 1
        arguments = everybody(mine)
        result[last] = [everybody(steps), sorted(a for part in arguments for a in part)]
    return result


def main(folder, images, seconds, rounds, cores, batch_size):
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    mine = sorted(os.sched_getaffinity(0))
    if len(mine) > cores:  # nobody has bound us
        os.sched_setaffinity(0, mine[rank * cores : (rank + 1) * cores])
    dist.init_process_group("gloo")
    arguments = epochs(rank)
    files = scan(folder).repeated(images)
    loop = work(files, batch_size, shard="auto")
    # Two epochs of half the images each: kernels are compiled, buffers have their sizes.
    for _ in range(images // batch_size):
        next(loop)
    world = dist.get_world_size()
    rates = {**{f"rank {other} alone": [] for other in range(world)}, "all": []}
    busy = {name: [] for name in rates}
    for _ in range(rounds):
        for at_work, name in enumerate(rates):
            dist.barrier()
            result = everybody(rate(loop, seconds) if at_work in (rank, world) else (0.0, 0.0))
            rates[name].append(sum(own for own, _ in result))
            busy[name].append([round(own, 1) for _, own in result])
    cores_alone = []
    for at_work in range(world + 1):
        dist.barrier()
        cores_alone.append(sum(everybody(hashed(cores) if at_work in (rank, world) else 0.0)))
    facts = {
        "hashed": cores_alone,
        "busy": busy,
        "cores": everybody(len(os.sched_getaffinity(0))),
        "numa": everybody(numa_node(rank)),
    }
    facts["first core"] = everybody(min(os.sched_getaffinity(0)))
    if rank == 0:
        print(json.dumps({"rates": rates, "epochs": arguments, **facts}))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
