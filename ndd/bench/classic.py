"""Classic loops: DALI's iterators and proxy over a pipeline, beside the bare loop of ndd, DALI's own, and torch's."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import ndd
from ndd.bench.libraries import Setting
from ndd.bench.photographs import folder
from ndd.bench.rounds import Result, interleaved, rate_of
from ndd.demo.folder import Folder
from ndd.demo.loop import MEAN, STD

_MODULES = {
    "ndd": ("ndd", "ndd.fn", "ndd.plugin.pytorch", "ndd.plugin.pytorch.experimental.proxy"),
    "DALI": (
        "nvidia.dali",
        "nvidia.dali.fn",
        "nvidia.dali.plugin.pytorch",
        "nvidia.dali.plugin.pytorch.experimental.proxy",
    ),
}
_WORKERS = 2


def measure(
    setting: Setting, data: Path | None, batch_size: int | None = None, images: int | None = None
) -> Iterator[Result]:
    """Images a second of an epoch, with the same operators and files everywhere."""
    files = folder(data, images or (256 if setting.device == "cpu" else 4096))
    batch = batch_size or 64
    place = f"batch {batch}, {setting.device.upper()}, {setting.threads} threads"
    iterators = {name: _iterator(name, setting, files, batch) for name in setting.libraries}
    rates = _rates({**iterators, "bare": _bare(setting, files, batch)}, setting)
    title = f"DALIClassificationIterator; {place}"
    yield Result("classic", title, "images/s", rates["ndd"], rates.get("DALI"), "ratio >= 1.0")
    title = "  beside the bare loop of ndd (second column)"
    yield Result("classic", title, "images/s", rates["ndd"], rates["bare"], "ratio >= 0.95")
    rates = _rates({"ndd": _proxy("ndd", setting, files, batch), **_others(setting, files, batch)}, setting)
    title = f"proxy DataLoader, {_WORKERS} workers; {place}"
    yield Result("classic", title, "images/s", rates["ndd"], rates.get("DALI"), "")
    title = f"  beside torch's DataLoader with Pillow, {_WORKERS} workers (second column)"
    yield Result("classic", title, "images/s", rates["ndd"], rates["torch"], "")


def _rates(sides: dict[str, Callable[[], float]], setting: Setting) -> dict[str, float]:
    for side in sides.values():
        side()
    return interleaved(sides, setting.rounds)


def _picture(fn: Any, device: str, jpegs: Any) -> Any:
    images = fn.decoders.image(jpegs, device="mixed" if device == "gpu" else "cpu")
    images = fn.resize(images, size=[224, 224])
    return fn.crop_mirror_normalize(images, mean=MEAN, std=STD)


def _pipeline(name: str, setting: Setting, batch: int, body: Callable[[Any], Any]) -> Any:
    """A pipeline of one of the libraries; `body` gets its `fn`."""
    library, fn = (importlib.import_module(m) for m in _MODULES[name][:2])
    return library.pipeline_def(
        lambda: body(fn),
        batch_size=batch,
        num_threads=setting.threads,
        device_id=0 if setting.device == "gpu" else None,
    )()


def _iterator(name: str, setting: Setting, files: Folder, batch: int) -> Callable[[], float]:
    def body(fn: Any) -> Any:
        jpegs, labels = fn.readers.file(
            file_root=str(files.root), files=files.files, labels=files.labels, pad_last_batch=True, name="Reader"
        )
        return _picture(fn, setting.device, jpegs), labels

    plugin = importlib.import_module(_MODULES[name][2])
    iterator = plugin.DALIClassificationIterator(
        _pipeline(name, setting, batch, body),
        reader_name="Reader",
        last_batch_policy=plugin.LastBatchPolicy.PARTIAL,
        auto_reset=True,
    )
    return partial(rate_of, lambda: sum(len(step[0]["label"]) for step in iterator), setting.device)


def _bare(setting: Setting, files: Folder, batch: int) -> Callable[[], float]:
    reader = ndd.readers.File(file_root=str(files.root), files=files.files, labels=files.labels, pad_last_batch=True)

    def loop() -> int:
        count = 0
        for jpegs, labels in reader.next_epoch(batch_size=batch):
            images = ndd.decoders.image(jpegs, device=setting.device)
            images = ndd.resize(images, size=[224, 224])
            ndd.crop_mirror_normalize(images, mean=MEAN, std=STD).torch()
            count += len(labels.torch())
        return min(count, len(files.files))

    return partial(rate_of, loop, setting.device)


class Files:
    """A data set of the files' bytes (or pictures, by Pillow) for torch's loaders."""

    def __init__(self, files: Folder, transform: Callable[[Any], Any]):
        self.paths = [str(Path(files.root) / f) for f in files.files]
        self.labels = list(files.labels)
        self.transform = transform

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        """The transformed bytes, and the label."""
        import numpy as np

        return self.transform(np.fromfile(self.paths[index], np.uint8)), self.labels[index]


def _proxy(name: str, setting: Setting, files: Folder, batch: int) -> Callable[[], float]:
    proxy = importlib.import_module(_MODULES[name][3])
    pipe = _pipeline(
        name, setting, batch, lambda fn: _picture(fn, setting.device, fn.external_source(name="jpegs", no_copy=True))
    )

    server = proxy.DALIServer(pipe)  # not a `with` for each epoch: leaving DALI's takes seconds
    loader = proxy.DataLoader(server, Files(files, server.proxy), batch_size=batch, num_workers=_WORKERS)

    def loop() -> int:
        return sum(len(labels) for _, labels in loader)

    return partial(rate_of, loop, setting.device)


def _pillow(data: Any) -> Any:
    """The equivalent of torchvision's transforms: decode, resize, normalise."""
    import io

    import torch
    from PIL import Image

    picture = Image.open(io.BytesIO(data)).convert("RGB").resize((224, 224), Image.Resampling.BILINEAR)
    pixels = torch.frombuffer(bytearray(picture.tobytes()), dtype=torch.uint8).view(224, 224, 3).permute(2, 0, 1)
    mean, std = (torch.tensor(v)[:, None, None] for v in (MEAN, STD))
    return (pixels.float() - mean) / std


def _others(setting: Setting, files: Folder, batch: int) -> dict[str, Callable[[], float]]:
    from torch.utils.data import DataLoader

    def loop() -> int:
        count = 0
        for pictures, labels in DataLoader(Files(files, _pillow), batch_size=batch, num_workers=_WORKERS):  # type: ignore[arg-type]
            if setting.device == "gpu":
                pictures.cuda()
            count += len(labels)
        return count

    sides: dict[str, Callable[[], float]] = {"torch": partial(rate_of, loop, setting.device)}
    if "DALI" in setting.libraries:
        _silence_marks()
        sides["DALI"] = _proxy("DALI", setting, files, batch)
    return sides


def _silence_marks() -> None:
    """Disables the profiler marks of DALI's proxy, which fail with a CPU build of torch."""
    import torch

    if torch.version.cuda is None:
        torch.cuda.nvtx.range_push = torch.cuda.nvtx.range_pop = lambda *_: 0  # type: ignore[assignment]
