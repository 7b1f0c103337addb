"""The `demo` command: arguments, epochs, and output."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

_LEAST_PER_EPOCH = 512  # a handful of photographs is repeated, differently cropped each time, to make an epoch


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `python -m ndd demo`."""
    parser.add_argument("--data", type=Path, metavar="DIR", help="a folder with one folder of images for each class")
    parser.add_argument("--device", choices=["auto", "cpu", "gpu"], default="auto", help="where to decode and train")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--threads", type=int, help="CPU threads (default: the CPUs this process may use)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--save-grid", type=Path, metavar="FILE.png", help="write one augmented batch as a contact sheet"
    )


def run(args: argparse.Namespace) -> int:
    """Trains, prints, and returns the exit code. Errors that the user can fix say how."""
    import ndd
    from ndd.demo.classifier import one_torch_thread
    from ndd.demo.folder import PHOTOS, scan
    from ndd.demo.loop import augmented, open_reader

    _check(args)
    files = scan(args.data or PHOTOS)
    device, place = _place(args.device)
    if args.threads is not None:
        ndd.set_num_threads(args.threads)
    ndd.random.set_seed(args.seed)
    folder = files.repeated(max(_LEAST_PER_EPOCH, args.batch_size))
    source = "the embedded set" if args.data is None else args.data
    print(f"{len(files.files)} images in {len(files.classes)} classes from {source}")
    if len(folder.files) > len(files.files):
        print(f"each is used {len(folder.files) // len(files.files)} times an epoch, cropped and mirrored differently")
    print(f"running on {place}")

    start = time.perf_counter()
    if args.save_grid is not None:
        _save_grid(open_reader(folder, args.seed), args, device)
    with one_torch_thread():
        losses = _epochs(folder, args, device)
    print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}")
    rate = _loop_rate(augmented(open_reader(folder.first(1024), args.seed), args.batch_size, device))
    print(f"the loop without training: {rate:,.0f} images/s on {place}")
    print(f"{time.perf_counter() - start:.1f} s in all")
    return 0


def _epochs(folder: Any, args: argparse.Namespace, device: str) -> list[float]:
    """Trains; the mean loss of each epoch."""
    from ndd.demo.classifier import Trainer
    from ndd.demo.loop import augmented, open_reader

    trainer = Trainer(len(folder.classes), device, args.seed)
    reader = open_reader(folder, args.seed)
    steps = -(-len(folder.files) // args.batch_size)
    losses = []
    for epoch in range(args.epochs):
        batches = augmented(reader, args.batch_size, device)
        losses.append(_train(trainer, batches, steps, f"epoch {epoch + 1}/{args.epochs}"))
    return losses


def _check(args: argparse.Namespace) -> None:
    for name in ("epochs", "batch_size", "threads"):
        value = getattr(args, name)
        if value is not None and value < 1:
            raise ValueError(f"--{name.replace('_', '-')} must be at least 1, got {value}.")
    grid = args.save_grid
    if grid is not None and grid.suffix.lower() != ".png":
        raise ValueError(f"--save-grid writes a PNG: give a name that ends in .png, not {grid}.")
    if grid is not None and not grid.absolute().parent.is_dir():
        raise FileNotFoundError(f"--save-grid: the folder {grid.absolute().parent} does not exist.")


def _place(wanted: str) -> tuple[str, str]:
    """The device to run on, and its name for people."""
    import ndd

    threads = ndd.get_num_threads()
    on_cpu = ("cpu", f"the CPU, {threads} thread{'s' if threads > 1 else ''}")
    if wanted == "cpu":
        return on_cpu
    obstacle, name = _gpu()
    if not obstacle:
        return "gpu", f"the GPU ({name}) and {threads} CPU threads"
    if wanted == "gpu":
        raise RuntimeError(f"--device gpu: {obstacle} `python -m ndd doctor` says what to install.")
    return on_cpu


def _gpu() -> tuple[str, str]:
    """The reason why the GPU cannot be used ("" if it can), and its name."""
    import importlib.util

    import torch

    if not torch.cuda.is_available():
        return "torch sees no GPU.", ""
    if importlib.util.find_spec("cupy") is None:
        return "cupy is not installed.", ""
    return "", torch.cuda.get_device_name()


def _save_grid(reader: Any, args: argparse.Namespace, device: str) -> None:
    from ndd.demo.contact_sheet import save
    from ndd.demo.loop import augmented

    images, _ = next(augmented(reader, args.batch_size, device))
    width, height = save(images, args.save_grid)
    print(f"wrote {args.save_grid} ({width} x {height}): one augmented batch")


def _train(trainer: Any, batches: Any, total: int, title: str) -> float:
    """One epoch; the mean loss."""
    from ndd.demo.progress import Bar

    bar = Bar(title, total)
    start = time.perf_counter()
    images_seen, right, losses = 0, 0, 0.0
    for images, labels in batches:
        loss, correct = trainer.step(images, labels)
        images_seen += len(labels)
        right += correct
        losses += loss * len(labels)
        rate = images_seen / (time.perf_counter() - start)
        bar(f"loss {losses / images_seen:.3f}  right {right / images_seen:4.0%}  {rate:,.0f} images/s")
    bar.done()
    return losses / max(images_seen, 1)


def _loop_rate(batches: Any) -> float:
    """Images a second that the loop alone delivers; the first batch, which opens the reader, is not counted."""
    import torch

    next(batches)
    start = time.perf_counter()
    count = 0
    for images, _ in batches:
        count += len(images)
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return count / (time.perf_counter() - start)
