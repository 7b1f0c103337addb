"""One side of `bench mine`, in its own process: `python -m ndd.bench.mine_side SIDE SCRIPT ...` prints its numbers."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any

from ndd._execution.cpus import cpu_count
from ndd.bench.train_sides import cpu_seconds
from ndd.profiling import samples_of

_MODULE = "ndd_bench_mine"  # spawned workers find the script by its path, see `loaded`
_BATCH = 64


def main(argv: list[str] | None = None) -> None:
    """Loops over epochs of one side, and prints as JSON: the median of images a second without the first epoch, the busy cores,
    the images of an epoch, and the seconds to the first batch."""
    parser = argparse.ArgumentParser()
    parser.add_argument("side", choices=["ndd", "yours"])
    parser.add_argument("script", type=Path)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=0)
    parser.add_argument("--images", type=int, default=0)
    parser.add_argument("--loop", default="ndd_loop")
    args = parser.parse_args(argv)
    with contextlib.redirect_stdout(sys.stderr):  # the script's own output must not mix with the numbers
        try:
            script = loaded(args.script)
            epoch = ndd_loop(script, args) if args.side == "ndd" else own_loop(script, args)
            numbers = timed(epoch, args.rounds, args.images)
        except Exception as error:
            sys.exit(told(error, args.script))
    print(json.dumps(numbers))


def told(error: Exception, script: Path) -> str:
    """An error, with the lines that led to it from the script on, which are the user's."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != str(script):
        trace = trace.tb_next
    if trace is None and str(error).startswith("bench mine: "):
        return str(error).removeprefix("bench mine: ")
    return "".join(traceback.format_exception(type(error), error, trace)).strip()


def loaded(path: Path) -> ModuleType:
    """The script, run as a module: code under `if __name__ == "__main__":` does not run."""
    spec = importlib.util.spec_from_file_location(_MODULE, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"bench mine: expected the name of a Python script, which ends with .py, got {path}")
    module = sys.modules[_MODULE] = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    spec.loader.exec_module(module)
    return module


def ndd_loop(script: ModuleType, args: Any) -> Callable[..., Any]:
    """The script's function with ndd: it yields the batches of an epoch."""
    import ndd

    loop: Any = getattr(script, args.loop, None)
    if not callable(loop):
        raise AttributeError(
            f"bench mine: expected a function `{args.loop}` in {args.script} that gives the batches of an epoch, got "
            f"{'none' if loop is None else type(loop).__name__}"
        )
    ndd.set_num_threads(args.threads)
    return loop


def own_loop(script: ModuleType, args: Any) -> Callable[..., Any]:
    """The same for the user's `loader` or `dataset`."""
    loader: Any = getattr(script, "loader", None)
    if loader is not None:
        return loader if callable(loader) and not hasattr(loader, "__iter__") else lambda: loader
    dataset = getattr(script, "dataset", None)
    if dataset is None:
        raise AttributeError(f"bench mine: expected `dataset` or `loader` in {args.script}, got neither")
    from torch.utils.data import DataLoader, IterableDataset

    size = args.batch_size or getattr(script, "batch_size", _BATCH)
    shuffle = None if isinstance(dataset, IterableDataset) else True
    workers = min(args.threads, cpu_count())
    own = DataLoader(dataset, size, shuffle=shuffle, num_workers=workers, persistent_workers=True)
    return lambda: own


def timed(epoch: Callable[..., Any], rounds: int, most: int) -> dict[str, float]:
    """The numbers of `rounds` epochs after one that is not counted, with at most `most` images each (0: all)."""
    rates, cores, count, first = [], [], 0, None
    for k in range(rounds + 1):
        count, began, spent = 0, time.perf_counter(), cpu_seconds()
        for batch in epoch():
            _wait_for(batch)
            first = time.perf_counter() - began if first is None else first
            count += samples_of(batch)
            if most and count >= most:
                break
        seconds = time.perf_counter() - began
        if not count:
            raise ValueError("bench mine: the loop gave no batch, or nothing with samples in it")
        if k:
            rates.append(count / seconds)
            cores.append(max(0.0, cpu_seconds() - spent) / seconds)
    return {"rate": median(rates), "cores": median(cores), "images": count, "first": first or 0.0}


def _wait_for(batch: Any) -> None:
    """Waits for a batch of ndd, and for the GPU's work on it."""
    values = batch.values() if isinstance(batch, dict) else batch if isinstance(batch, tuple | list) else (batch,)
    for value in values:
        if hasattr(value, "evaluate"):
            value.evaluate()
        if str(getattr(value, "device", "cpu")).startswith(("cuda", "gpu")):
            import torch

            torch.cuda.synchronize()


if __name__ == "__main__":
    main()
