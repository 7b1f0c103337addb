"""One side of the loop benchmark, in a process of its own: `python -m ndd.bench.loop_sides SIDE LOOP ...` prints its rates.

Every side reads JPEG files in random order with their labels, and passes batches to torch on the device. Results differ only by
rounding and the random numbers.
"""

# The types in DALI's stubs and torch's data sets are narrower than necessary.
# pyright: reportPrivateImportUsage=false, reportArgumentType=false, reportCallIssue=false
from __future__ import annotations

import argparse
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ndd._execution.cpus import cpu_count
from ndd.bench.rounds import synchronize
from ndd.demo.folder import Folder, scan
from ndd.demo.loop import MEAN, STD

SIDES = ("ndd", "DALI dynamic", "DALI pipeline", "torchvision", "DataLoader")
LOOPS = ("random_resized_crop", "resize", "normalize", "decode", "read")
_SIZE = [224, 224]
_RAGGED = ("normalize", "decode")  # their samples differ in shape
_MOST_WORKERS = 16  # of DataLoader, a usual setting on such a machine; at most the number of CPUs


def main(argv: list[str] | None = None) -> None:
    """Runs epochs of one side. Prints as JSON, for each but the first: images a second, this thread's CPU time for a batch in
    ms, the process's for an image, and the CPU time of Python's other threads by their names."""
    parser = argparse.ArgumentParser()
    parser.add_argument("side", choices=SIDES)
    parser.add_argument("loop", choices=LOOPS)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--images", type=int, required=True)
    parser.add_argument("--batch-size", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--hw-load", type=float)
    args = parser.parse_args(argv)
    files = scan(args.data).repeated(args.images)
    more = {} if args.hw_load is None or args.device == "cpu" else {"hw_decoder_load": args.hw_load}
    make = {
        "ndd": dynamic, "DALI dynamic": dynamic, "DALI pipeline": _pipeline, "torchvision": _torchvision,
        "DataLoader": _data_loader,
    }[args.side]  # fmt: skip
    epochs = make(args, files, more)
    batches = max(1, len(files.files) // args.batch_size)
    rates, spent, whole = [], [], []
    before: dict[str, float] = {}
    for k in range(args.rounds + 1):
        synchronize(args.device)
        if k == 1:
            before = _cpu_of_threads()
        start, own, all_threads = time.perf_counter(), time.thread_time(), time.process_time()
        count = sum(next(epochs) for _ in range(batches))
        spent.append((time.thread_time() - own) / batches * 1000)
        synchronize(args.device)
        rates.append(count / (time.perf_counter() - start))
        whole.append((time.process_time() - all_threads) / count * 1000)
    each = args.rounds * batches / 1000
    others = {name: (seconds - before.get(name, 0.0)) / each for name, seconds in _cpu_of_threads().items()}
    print(json.dumps([rates[1:], spent[1:], whole[1:], others]))


def _cpu_of_threads() -> dict[str, float]:
    """CPU seconds of Python's other threads, summed by their purpose; empty if the system does not tell."""
    seconds: dict[str, float] = {}
    for thread in threading.enumerate():
        told = Path(f"/proc/self/task/{thread.native_id}/schedstat")
        if thread is not threading.current_thread() and told.exists():
            name = thread.name.rstrip("0123456789").rstrip("-_")
            seconds[name] = seconds.get(name, 0.0) + int(told.read_text().split()[0]) / 1e9
    return seconds


def dynamic(args: Any, files: Folder, more: dict[str, Any]) -> Iterator[int]:
    """Runs a library's loop, epoch after epoch; yields the number of samples of each batch when it is ready."""
    if args.side == "ndd":
        import ndd as library
    else:
        import nvidia.dali.experimental.dynamic as library
    library.set_num_threads(args.threads)
    reader = library.readers.File(
        file_root=str(files.root), files=files.files, labels=files.labels, random_shuffle=True
    )
    work = operators(library, args.loop, args.device, more)
    while True:
        for jpegs, labels in reader.next_epoch(batch_size=args.batch_size):
            work(jpegs)
            yield len(labels.torch())


def operators(library: Any, loop: str, device: str, more: dict[str, Any]) -> Callable[[Any], Any]:
    """The work of a loop of `LOOPS` on a batch of JPEG files."""

    def decoded(jpegs: Any) -> Any:
        return library.decoders.image(jpegs, device=device, **more)

    def normalised(images: Any) -> Any:
        mirror = library.random.coin_flip(batch_size=images.batch_size)
        return library.crop_mirror_normalize(images, mean=MEAN, std=STD, mirror=mirror).torch()

    return {
        "read": lambda jpegs: jpegs.evaluate(),
        "decode": lambda jpegs: decoded(jpegs).evaluate(),
        "normalize": lambda jpegs: library.crop_mirror_normalize(decoded(jpegs), mean=MEAN, std=STD).evaluate(),
        "resize": lambda jpegs: library.crop_mirror_normalize(
            library.resize(decoded(jpegs), size=_SIZE), mean=MEAN, std=STD
        ).torch(),
        "random_resized_crop": lambda jpegs: normalised(library.random_resized_crop(decoded(jpegs), size=_SIZE)),
    }[loop]


def _pipeline(args: Any, files: Folder, more: dict[str, Any]) -> Iterator[int]:
    from nvidia.dali import fn, pipeline_def
    from nvidia.dali.plugin.pytorch import DALIGenericIterator, LastBatchPolicy

    on_gpu = args.device == "gpu"

    @pipeline_def(batch_size=args.batch_size, num_threads=args.threads, device_id=0 if on_gpu else None)
    def body() -> Any:
        jpegs, labels = fn.readers.file(
            file_root=str(files.root), files=files.files, labels=files.labels, random_shuffle=True, name="reader"
        )
        if args.loop == "read":
            return jpegs, labels
        images = fn.decoders.image(jpegs, device="mixed" if on_gpu else "cpu", **more)
        if args.loop == "resize":
            images = fn.crop_mirror_normalize(fn.resize(images, size=_SIZE), mean=MEAN, std=STD)
        elif args.loop == "random_resized_crop":
            images = fn.random_resized_crop(images, size=_SIZE)
            images = fn.crop_mirror_normalize(images, mean=MEAN, std=STD, mirror=fn.random.coin_flip())
        elif args.loop == "normalize":
            images = fn.crop_mirror_normalize(images, mean=MEAN, std=STD)
        return images, labels

    pipe = body()
    pipe.build()
    if args.loop in ("read", "decode", "normalize"):  # iterators do not take samples of different shapes
        while True:
            pipe.run()
            yield args.batch_size
    iterator = DALIGenericIterator(
        pipe, ["images", "labels"], reader_name="reader", last_batch_policy=LastBatchPolicy.PARTIAL, auto_reset=True
    )
    while True:
        for (batch,) in iterator:  # type: ignore[misc]
            yield len(batch["labels"])


class Files:
    """A torch data set: the result of `load` for a file, and its label."""

    def __init__(self, files: Folder, load: Callable[[str], Any]):
        self._names = [str(files.root / name) for name in files.files]
        self._labels = files.labels
        self._load = load

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        return self._load(self._names[index]), self._labels[index]


def _torchvision(args: Any, files: Folder, more: dict[str, Any]) -> Iterator[int]:
    """Files read by DataLoader's workers, decoded in batches by torchvision on the device, then v2 transforms of each.

    The workers return bytes: 256 tensors a batch would each be transferred as an open file, more than a process may have.
    """
    import torch

    from ndd.torchvision.installed import import_torchvision

    torchvision = import_torchvision()
    io, v2 = torchvision.io, torchvision.transforms.v2
    device = "cuda" if args.device == "gpu" else "cpu"
    loader = torch.utils.data.DataLoader(
        Files(files, _bytes_of), args.batch_size, shuffle=True, num_workers=_workers(), collate_fn=list,
        persistent_workers=True, drop_last=True,
    )  # fmt: skip
    work = transforms(v2, args.loop)
    are_jpegs = all(name.lower().endswith((".jpg", ".jpeg", ".jpe")) for name in files.files)
    while True:
        for batch in loader:
            encoded = [torch.frombuffer(data, dtype=torch.uint8) for data, _ in batch]
            if are_jpegs:
                images = io.decode_jpeg(encoded, mode=io.ImageReadMode.RGB, device=device)
            else:  # on the CPU, one by one
                images = [io.decode_image(data, mode=io.ImageReadMode.RGB).to(device) for data in encoded]
            if args.loop == "normalize" and work is not None:
                for image in images:
                    work(image)
            elif work is not None:
                torch.stack([work(image) for image in images])
            yield len(batch)


def _bytes_of(name: str) -> bytearray:
    return bytearray(Path(name).read_bytes())


def _data_loader(args: Any, files: Folder, more: dict[str, Any]) -> Iterator[int]:
    """The loop of most users: Pillow and v2 transforms in DataLoader's workers."""
    import torch

    loader = torch.utils.data.DataLoader(
        Files(files, _Pillow(args.loop)), args.batch_size, shuffle=True, num_workers=_workers(), drop_last=True,
        persistent_workers=True, pin_memory=args.device == "gpu", **({"collate_fn": list} if args.loop in _RAGGED else {}),
    )  # fmt: skip
    while True:
        for batch in loader:
            if args.loop not in _RAGGED and args.device == "gpu":
                batch[0].to("cuda", non_blocking=True)
            yield args.batch_size


class _Pillow:
    def __init__(self, loop: str):
        from ndd.torchvision.installed import import_torchvision

        v2 = import_torchvision().transforms.v2
        self._work = transforms(v2, loop)
        self._to_tensor = v2.functional.pil_to_tensor

    def __call__(self, name: str) -> Any:
        from PIL import Image

        with Image.open(name) as image:
            tensor = self._to_tensor(image.convert("RGB"))
        return tensor if self._work is None else self._work(tensor)


def transforms(v2: Any, loop: str) -> Any:
    """The transforms of a typical torchvision user for a loop; None if it only decodes."""
    import torch

    mean, std = [m / 255 for m in MEAN], [s / 255 for s in STD]
    last = [v2.ToDtype(torch.float32, scale=True), v2.Normalize(mean, std)]
    if loop == "normalize":
        return v2.Compose(last)
    if loop == "resize":
        return v2.Compose([v2.Resize(_SIZE, antialias=True), *last])
    if loop == "random_resized_crop":
        return v2.Compose([v2.RandomResizedCrop(_SIZE, antialias=True), v2.RandomHorizontalFlip(), *last])
    return None


def _workers() -> int:
    return min(_MOST_WORKERS, cpu_count())


if __name__ == "__main__":
    main()
