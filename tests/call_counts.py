"""A program that counts Python calls into ndd, and the modules that `import ndd` loads; it prints JSON for `test_costs.py`.

Counted are functions of ndd that the calling thread runs. Comprehensions and generator expressions are left out: whether
they are calls depends on Python's version. A count is the least of several runs, since other threads may take over work.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

RUNS = 12
MEAN, STD = [123.7, 116.3, 103.5], [58.4, 57.1, 57.4]


def modules_of_import() -> dict[str, int]:
    """How many modules `import ndd` adds to those of torch: ndd's own, Python's, and others'."""
    for name in ("numpy", "torch", "torch.utils.dlpack"):
        importlib.import_module(name)
    before = set(sys.modules)
    importlib.import_module("ndd")
    counts = {"ndd": 0, "Python": 0, "others": 0}
    for name in set(sys.modules) - before:
        package = name.partition(".")[0]
        if package in ("ndd", "numpy", "torch"):
            counts["ndd"] += package == "ndd"
        else:
            counts["Python" if package in sys.stdlib_module_names else "others"] += not package.startswith("_sysconfig")
    return counts


def calls(function: Callable[[], Any]) -> int:
    """How many Python functions of ndd the calling thread enters when `function` runs, at least."""
    import ndd

    folder = str(Path(ndd.__file__).parent)
    count = 0

    def note(frame: FrameType, event: str, arg: Any) -> None:
        nonlocal count
        if event == "call" and frame.f_code.co_filename.startswith((folder, "<ndd operator")):
            name = frame.f_code.co_name
            count += not name.startswith("<") or name == "<lambda>"

    counts = []
    for _ in range(RUNS):
        count = 0
        sys.setprofile(note)
        try:
            function()
        finally:
            sys.setprofile(None)
        counts.append(count)
    return min(counts)


def main() -> None:
    counts = {f"import: modules of {name}": count for name, count in modules_of_import().items()}
    import ndd
    from ndd._compiled.background import background

    background.forbid()
    with ndd.EvalContext(num_threads=1):
        for name, function in {**operators(), **batches()}.items():
            for _ in range(3):
                function()
            counts[name] = calls(function)
    json.dump(counts, sys.stdout)


def operators() -> dict[str, Callable[[], Any]]:
    """Calls of operators: all of each, which `sync_cpu` runs on the calling thread, and the share of the caller."""
    import numpy as np

    import ndd

    jpegs, _ = ndd.readers.File(file_root=ndd.demo.photos()).fetch(range(8))
    tiny = ndd.batch([np.zeros((8, 8, 3), np.uint8)] * 4, layout="HWC")
    images = ndd.decoders.image(jpegs, device="cpu").evaluate()
    crops = ndd.resize(images, size=[224, 224]).evaluate()
    mirror = ndd.random.coin_flip(batch_size=8).evaluate()
    measured = {
        "flip": lambda: ndd.flip(tiny, horizontal=1),
        "decoders.image": lambda: ndd.decoders.image(jpegs, device="cpu"),
        "random_resized_crop": lambda: ndd.random_resized_crop(images, size=[224, 224]),
        "resize": lambda: ndd.resize(images, size=[224, 224]),
        "random.coin_flip": lambda: ndd.random.coin_flip(batch_size=8),
        "crop_mirror_normalize": lambda: ndd.crop_mirror_normalize(crops, mean=MEAN, std=STD, mirror=mirror),
        "flip by a batch": lambda: ndd.flip(crops, horizontal=mirror),
    }
    as_tuples = {
        "resize": lambda: ndd.resize(images, size=(224, 224)),
        "crop_mirror_normalize": lambda: ndd.crop_mirror_normalize(crops, mean=(*MEAN,), std=(*STD,), mirror=mirror),
    }
    kinds = {
        "": (ndd.EvalMode.sync_cpu, measured),
        ", caller": (ndd.EvalMode.deferred, measured),
        ", caller, tuples": (ndd.EvalMode.deferred, as_tuples),
    }
    return {name + kind: _in(mode, f) for kind, (mode, some) in kinds.items() for name, f in some.items()}


def _in(mode: Any, function: Callable[[], Any]) -> Callable[[], Any]:
    def run() -> Any:
        with mode:
            return function()

    return run


def _rested(function: Callable[[], Any]) -> Callable[[], Any]:
    """The function after a moment in which other threads work ahead: to wait for them takes more calls."""

    def run() -> Any:
        time.sleep(0.1)
        return function()

    return run


def batches() -> dict[str, Callable[[], Any]]:
    """Batches of a reader, and of a pipeline that is replayed."""
    import ndd
    from ndd.pipeline import fn, pipeline_def

    reader = ndd.readers.File(files=[str(p) for p in sorted(Path(ndd.demo.photos()).rglob("*.jpg"))] * 100)
    epoch = reader.next_epoch(batch_size=8)

    @pipeline_def(batch_size=8, num_threads=1, device_id=None)
    def pipeline():  # pyright: ignore
        jpegs, labels = fn.readers.file(file_root=ndd.demo.photos(), random_shuffle=True)
        images = fn.decoders.image(jpegs)
        images = fn.random_resized_crop(images, size=[224, 224])
        images = fn.crop_mirror_normalize(images, mean=MEAN, std=STD, mirror=fn.random.coin_flip())
        return images, labels

    ahead = pipeline()
    here = pipeline(exec_async=False, exec_pipelined=False, prefetch_queue_depth=1)
    return {
        "reader: batch": _rested(lambda: next(epoch)),
        "reader: batch, fetched here": lambda: reader.fetch(range(8)),
        "pipeline: batch": _rested(ahead.run),
        "pipeline: batch, computed here": _in(ndd.EvalMode.sync_cpu, here.run),
    }


if __name__ == "__main__":
    main()
