"""RandAugment in the main job and alone: ndd's loop beside DALI's pipeline mode, the only mode of DALI that has it."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import ndd
from ndd.auto_aug import rand_augment
from ndd.bench.libraries import Setting
from ndd.bench.photographs import decoded, folder
from ndd.bench.rounds import Result, interleaved, rate_of
from ndd.demo.folder import Folder
from ndd.demo.loop import MEAN, STD

_N, _M = 2, 17
_RUNS = 4  # of RandAugment alone, in a round


def measure(
    setting: Setting, data: Path | None, batch_size: int | None = None, images: int | None = None
) -> Iterator[Result]:
    """Images a second: an epoch of the loop, and RandAugment of decoded pictures of 224 x 224."""
    batch = batch_size or (64 if setting.device == "cpu" else 256)
    files = folder(data, images or (256 if setting.device == "cpu" else 8192))
    pictures = [np.resize(i, (224, 224, 3)) for i in decoded(data, batch)]
    place = f"batch {batch}, {setting.device.upper()}, {setting.threads} threads"
    target = "ratio >= 2.0" if setting.device == "cpu" else "ratio >= 1.2"
    loops = {"ndd": _loop(setting, files, batch)}
    alone = {"ndd": _alone(setting, pictures)}
    if "DALI" in setting.libraries:
        loops["DALI"] = _dali_loop(setting, files, batch)
        alone["DALI"] = _dali_alone(setting, pictures)
    for title, sides in (
        (f"decode, resize 224, RandAugment {_N} {_M}, normalise", loops),
        ("  RandAugment alone", alone),
    ):
        for side in sides.values():
            side()
        timed = {name: partial(rate_of, side, setting.device) for name, side in sides.items()}
        rates = interleaved(timed, setting.rounds)
        yield Result("augment", f"{title}; {place}", "images/s", rates["ndd"], rates.get("DALI"), target)


def _loop(setting: Setting, files: Folder, batch: int) -> Callable[[], int]:
    reader = ndd.readers.File(file_root=str(files.root), files=files.files, labels=files.labels, pad_last_batch=True)

    def epoch() -> int:
        count = 0
        for jpegs, labels in reader.next_epoch(batch_size=batch):
            images = ndd.decoders.image(jpegs, device=setting.device)
            images = ndd.resize(images, size=[224, 224])
            images = rand_augment.rand_augment(images, _N, _M)
            ndd.crop_mirror_normalize(images, mean=MEAN, std=STD).torch()
            count += len(labels.torch())
        return count

    return epoch


def _alone(setting: Setting, pictures: list[Any]) -> Callable[[], int]:
    images = ndd.batch(pictures, layout="HWC", device=setting.device).evaluate()

    def runs() -> int:
        for _ in range(_RUNS):
            rand_augment.rand_augment(images, _N, _M).evaluate()
        return _RUNS * len(pictures)

    return runs


def _dali_pipeline(setting: Setting, batch: int, body: Callable[..., Any]) -> Any:
    """On the CPU it prepares nothing ahead: batches would be computed while ndd is timed."""
    from_dali = importlib.import_module("nvidia.dali").pipeline_def
    if setting.device == "gpu":
        return from_dali(body, batch_size=batch, num_threads=setting.threads, device_id=0, enable_conditionals=True)()
    at_once = {"prefetch_queue_depth": 1, "exec_async": False, "exec_pipelined": False}
    threads = setting.threads
    return from_dali(body, batch_size=batch, num_threads=threads, device_id=None, enable_conditionals=True, **at_once)()


def _dali_loop(setting: Setting, files: Folder, batch: int) -> Callable[[], int]:
    fn, theirs, plugin = (
        importlib.import_module(f"nvidia.dali.{m}") for m in ("fn", "auto_aug.rand_augment", "plugin.pytorch")
    )

    def body() -> Any:
        jpegs, labels = fn.readers.file(
            file_root=str(files.root), files=files.files, labels=files.labels, pad_last_batch=True, name="Reader"
        )
        images = fn.decoders.image(jpegs, device="mixed" if setting.device == "gpu" else "cpu")
        images = fn.resize(images, size=[224, 224])
        images = theirs.rand_augment(images, _N, _M)
        return fn.crop_mirror_normalize(images, mean=MEAN, std=STD), labels

    policy = plugin.LastBatchPolicy.FILL
    iterator = plugin.DALIClassificationIterator(
        _dali_pipeline(setting, batch, body), reader_name="Reader", last_batch_policy=policy, auto_reset=True
    )
    return lambda: sum(len(step[0]["label"]) for step in iterator)


def _dali_alone(setting: Setting, pictures: list[Any]) -> Callable[[], int]:
    fn, theirs = (importlib.import_module(f"nvidia.dali.{m}") for m in ("fn", "auto_aug.rand_augment"))
    device = setting.device

    def body() -> Any:
        images = fn.external_source(source=lambda: pictures, layout="HWC", no_copy=device == "cpu", device="cpu")
        return theirs.rand_augment(images.gpu() if device == "gpu" else images, _N, _M)

    pipe = _dali_pipeline(setting, len(pictures), body)

    def runs() -> int:
        for _ in range(_RUNS):
            pipe.run()
        return _RUNS * len(pictures)

    return runs
