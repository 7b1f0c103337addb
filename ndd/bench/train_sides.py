"""One side of the training benchmark, in its own process: `python -m ndd.bench.train_sides SIDE ...` prints its numbers.

Every side feeds the same training loop with images `[N, 3, 224, 224]` float32, normalised, and labels `[N]` on the device.
`synthetic` repeats the same tensors: the difference to its rate is the cost of loading. `resident` repeats batches of
photographs that ndd has made before, so it shows what real data cost a GPU that loads nothing. Under torchrun each process
trains on its own GPU with DistributedDataParallel, and reads its shard.
"""

# The types in DALI's stubs and torch's data sets are narrower than necessary.
# pyright: reportPrivateImportUsage=false, reportArgumentType=false, reportCallIssue=false
from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from statistics import median
from typing import Any

from ndd.bench.loop_sides import Files, transforms
from ndd.bench.residual_networks import MODELS, network
from ndd.bench.rounds import synchronize
from ndd.demo.folder import Folder, scan
from ndd.demo.loop import MEAN, STD

SIDES = ("synthetic", "resident", "ndd", "DALI pipeline", "DALI dynamic", "DataLoader")
_SIZE = [224, 224]
_WARM_STEPS = {"gpu": 40, "cpu": 4}
_PIECE = 20  # steps between readings of the clock, which wait for the GPU
_PROFILED_STEPS = 20
_RESIDENT_IMAGES = 4096  # 2.3 GiB
_MOST_WORKERS = 16  # of DataLoader in all processes


def main(argv: list[str] | None = None) -> None:
    """Trains, and prints the measurements as JSON (rank 0 only)."""
    parser = argparse.ArgumentParser()
    parser.add_argument("side", choices=SIDES)
    parser.add_argument("--model", choices=MODELS, default="resnet50")
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="gpu")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--threads", type=int, required=True, help="of all processes together")
    parser.add_argument("--hw-load", type=float)
    parser.add_argument(
        "--half", action="store_true", help="images in bfloat16 and channels_last, for synthetic, resident and ndd"
    )
    args = parser.parse_args(argv)
    rank = _join_the_others(args)
    files = scan(args.data).repeated((args.steps + _WARM_STEPS[args.device] + 64) * args.batch_size * args.world)
    make = {
        "synthetic": _synthetic, "resident": _resident, "ndd": _dynamic, "DALI dynamic": _dynamic, "DALI pipeline": _pipeline,
        "DataLoader": _data_loader,
    }[args.side]  # fmt: skip
    begun = time.perf_counter()
    measured = _measured(args, make(args, files), begun)
    if rank == 0:
        print(json.dumps(measured), flush=True)
    if args.world > 1:
        import torch.distributed

        torch.distributed.barrier()
    os._exit(0)  # does not wait for threads that a library leaves running


def _join_the_others(args: Any) -> int:
    """Sets `args.world`, the number of processes, and `args.place`, torch's device; the threads become this process' share."""
    import torch

    args.world = int(os.environ.get("WORLD_SIZE", "1"))
    args.rank = int(os.environ.get("RANK", "0"))
    if args.device == "cpu":
        args.place = torch.device("cpu")
    else:
        args.place = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(args.place)
        torch.backends.cudnn.benchmark = True
    if args.world > 1:
        import torch.distributed

        torch.distributed.init_process_group("nccl" if args.device == "gpu" else "gloo")
        args.threads = max(1, args.threads // args.world)
    return args.rank


def _measured(args: Any, batches: Iterator[tuple[Any, Any]], begun: float) -> dict[str, Any]:
    step = _training(args)
    for _ in range(_WARM_STEPS[args.device]):
        step(*next(batches))
    synchronize(args.device)
    warm = last = time.perf_counter()
    cpu = cpu_seconds()
    waited = off_cpu = 0.0
    rates = []
    for k in range(1, args.steps + 1):
        start = time.perf_counter()
        images, labels = next(batches)
        taken, own = time.perf_counter(), time.thread_time()
        step(images, labels)
        waited += taken - start
        off_cpu += time.perf_counter() - taken - (time.thread_time() - own)
        if k % _PIECE == 0 or k == args.steps:
            synchronize(args.device)
            now = time.perf_counter()
            rates.append(((k - 1) % _PIECE + 1) * args.batch_size / (now - last))
            last = now
    seconds = time.perf_counter() - warm
    measured = {
        "images_per_second": median(rates) * args.world,
        "cores": (cpu_seconds() - cpu) / seconds * args.world,
        "waiting": waited / seconds,
        "off_cpu_ms": off_cpu / args.steps * 1000,
        "warm_seconds": warm - begun,
        "host_gib": _resident_bytes() / 2**30,
    }
    if args.device == "gpu":
        import torch

        free, total = torch.cuda.mem_get_info(args.place)
        measured["gpu_gib"] = (total - free) / 2**30  # of all processes on the card, as in nvidia-smi
        measured["torch_gib"] = torch.cuda.memory_reserved(args.place) / 2**30
        measured["kernels"] = _gpu_time(args, step, batches)
    return measured


def _training(args: Any) -> Any:
    """A step of training: `step(images, labels)`. In bfloat16 and channels_last on a GPU, as is usual for such networks."""
    import torch

    on_gpu = args.device == "gpu"
    # Traced, so that none of its code is in ndd, which torch.compile would skip.
    model: Any = torch.fx.symbolic_trace(network(args.model)).to(args.place)
    if on_gpu:
        model = model.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loss_of = torch.nn.CrossEntropyLoss()
    if args.world > 1:
        model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[args.place.index] if on_gpu else None)
    if args.compiled:
        model = torch.compile(model)

    def step(images: Any, labels: Any) -> None:
        if on_gpu:
            images = images.to(memory_format=torch.channels_last)
        with torch.autocast(args.place.type, torch.bfloat16, enabled=on_gpu):
            loss = loss_of(model(images), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def _gpu_time(args: Any, step: Any, batches: Iterator[tuple[Any, Any]]) -> dict[str, float]:
    """Microseconds of GPU time for an image, by kernel, copy or memset."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        for _ in range(_PROFILED_STEPS):
            step(*next(batches))
        synchronize(args.device)
    times: dict[str, float] = {}
    for event in profiler.events() or ():
        if event.device_type.name == "CUDA":
            times[event.name] = times.get(event.name, 0.0) + event.device_time_total
    return {name: each / (_PROFILED_STEPS * args.batch_size) for name, each in times.items()}


def cpu_seconds() -> float:
    """CPU seconds of this process and its running children; of this process alone if there is no /proc."""
    try:
        processes = {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has ended
                continue
            processes[int(folder.name)] = (int(fields[1]), int(fields[11]) + int(fields[12]))  # parent, user + system
        ours = {os.getpid()}
        for pid in sorted(processes):  # children mostly have higher numbers than their parents
            if processes[pid][0] in ours:
                ours.add(pid)
        return sum(processes[pid][1] for pid in ours) / os.sysconf("SC_CLK_TCK")
    except (OSError, KeyError, ValueError, AttributeError):
        return time.process_time()


def _resident_bytes() -> int:
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, AttributeError):
        return 0


# ---- the sides


def _synthetic(args: Any, files: Folder) -> Iterator[tuple[Any, Any]]:
    import torch

    images = torch.randn(args.batch_size, 3, *_SIZE, device=args.place)
    if args.half:
        images = images.to(torch.bfloat16, memory_format=torch.channels_last)
    labels = torch.randint(0, 1000, (args.batch_size,), device=args.place)
    while True:
        yield images, labels


def _resident(args: Any, files: Folder) -> Iterator[tuple[Any, Any]]:
    loop = _dynamic(args, files)
    batches = [next(loop) for _ in range(max(1, _RESIDENT_IMAGES // args.batch_size))]
    loop.close()  # ends the loop, so that nothing is read ahead any more
    while True:
        yield from batches


def _dynamic(args: Any, files: Folder) -> Generator[tuple[Any, Any], None, None]:
    import torch

    more: dict[str, Any] = {"num_shards": args.world, "shard_id": args.rank}
    if args.side == "DALI dynamic":
        import nvidia.dali.experimental.dynamic as library
    else:
        import ndd as library
    library.set_num_threads(args.threads)
    reader = library.readers.File(
        file_root=str(files.root), files=files.files, labels=files.labels, random_shuffle=True, **more
    )
    decoding = {} if args.hw_load is None or args.device == "cpu" else {"hw_decoder_load": args.hw_load}
    making: dict[str, Any] = {"dtype": library.bfloat16, "output_layout": "HWC"} if args.half else {}
    taking = {"memory_format": torch.channels_last} if args.half else {}
    while True:
        for jpegs, labels in reader.next_epoch(batch_size=args.batch_size):
            images = library.decoders.image(jpegs, device=args.device, **decoding)
            images = library.random_resized_crop(images, size=_SIZE)
            mirror = library.random.coin_flip(batch_size=args.batch_size)
            images = library.crop_mirror_normalize(images, mean=MEAN, std=STD, mirror=mirror, **making)
            yield images.torch(**taking), labels.torch().flatten().long().to(args.place, non_blocking=True)


def _pipeline(args: Any, files: Folder) -> Iterator[tuple[Any, Any]]:
    from nvidia.dali import fn, pipeline_def
    from nvidia.dali.plugin.pytorch import DALIClassificationIterator

    on_gpu = args.device == "gpu"
    decoding = {"hw_decoder_load": args.hw_load} if on_gpu and args.hw_load is not None else {}

    @pipeline_def(batch_size=args.batch_size, num_threads=args.threads, device_id=args.place.index if on_gpu else None)
    def body() -> Any:
        jpegs, labels = fn.readers.file(
            file_root=str(files.root), files=files.files, labels=files.labels, random_shuffle=True, name="reader",
            num_shards=args.world, shard_id=args.rank,
        )  # fmt: skip
        images = fn.decoders.image(jpegs, device="mixed" if on_gpu else "cpu", **decoding)
        images = fn.random_resized_crop(images, size=_SIZE)
        return fn.crop_mirror_normalize(images, mean=MEAN, std=STD, mirror=fn.random.coin_flip()), labels

    pipe = body()
    pipe.build()
    iterator = DALIClassificationIterator(pipe, reader_name="reader", auto_reset=True)
    while True:
        for (batch,) in iterator:  # type: ignore[misc]
            yield batch["data"], batch["label"].flatten().long().to(args.place, non_blocking=True)


def _data_loader(args: Any, files: Folder) -> Iterator[tuple[Any, Any]]:
    """The usual torch program: torchvision decodes files, and its v2 transforms them in DataLoader's workers."""
    import torch
    from torch.utils.data import DataLoader, DistributedSampler

    from ndd.torchvision.installed import import_torchvision

    torchvision = import_torchvision()
    work, io = transforms(torchvision.transforms.v2, "random_resized_crop"), torchvision.io
    data = Files(files, lambda name: work(io.decode_jpeg(io.read_file(name), mode=io.ImageReadMode.RGB)))
    workers = max(1, min(args.threads - 1, _MOST_WORKERS // args.world))
    sampler: Any = DistributedSampler(data, args.world, args.rank) if args.world > 1 else None
    loader: Any = DataLoader(
        data, args.batch_size, shuffle=sampler is None, sampler=sampler, num_workers=workers, drop_last=True,
        persistent_workers=True, pin_memory=args.device == "gpu", prefetch_factor=4,
    )  # fmt: skip
    while True:
        for images, labels in loader:
            yield images.to(args.place, non_blocking=True), torch.as_tensor(labels).to(args.place, non_blocking=True)


if __name__ == "__main__":
    main()
