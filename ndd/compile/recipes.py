"""Small versions of the recipes of `ndd.recipes` and of torchvision's references, and pictures of all formats, see
`programs.py`."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from ndd.bench.loop_pictures import PICTURES, convert_pictures
from ndd.bench.loop_sides import LOOPS, operators
from ndd.bench.operator_inputs import arrays
from ndd.bench.torchvision_sides import RECIPES as REFERENCES, boxes_of, of_ndd
from ndd.demo.folder import PHOTOS, scan
from ndd.demo.loop import open_reader

_FEW, _MANY = 4, 64  # of many, each kind of change is drawn for some
_CLIP = (8, 48, 64, 3)
_LABELS = 21  # of pixels
RECIPES: dict[str, list[dict[str, Any]]] = {
    "detection": [{}, {"train": False}],
    "dino_multicrop": [{}],
    "imagenet_eval": [{}],
    "imagenet_train": [{}, *[{"augment": name, "random_erase": 1.0} for name in ("trivial", "rand", "auto")]],
    "segmentation": [{}, {"train": False}],
    "simclr": [{}],
    "speech": [{}],
    "video_clips": [{}, {"train": False}],
}
"""The recipes of `ndd.recipes`, with settings that lead to different operators."""


def run_pictures(folder: Path) -> None:
    """The loop with pictures of each kind that `bench loop` has."""
    import ndd

    for name in scan(PHOTOS).files[:_FEW]:
        copy = folder / "originals" / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes((PHOTOS / name).read_bytes())
    for name in PICTURES:
        root = convert_pictures(folder / name, folder / "originals", name)
        for files, _ in ndd.readers.File(file_root=str(root)).next_epoch(batch_size=_FEW):
            operators(ndd, LOOPS[0], "cpu", {})(files)


def run_rarer_pictures(folder: Path) -> None:
    """JPEGs as BGR; and what Python reads with kernels of its own: TIFFs and BMPs alone, and 16 bits, of which OpenCV stores
    differences."""
    import cv2

    import ndd

    noise = np.random.default_rng(0).integers(0, 1 << 16, (32, 32, 3), np.uint16)
    (folder / "originals" / "a").mkdir(parents=True)
    (folder / "originals" / "a" / "noise.png").write_bytes(cv2.imencode(".png", noise.astype(np.uint8))[1].tobytes())
    for name in [name for name, kind in PICTURES.items() if kind.ending in (".tif", ".bmp")]:
        root = convert_pictures(folder / name, folder / "originals", name)
        for files, _ in ndd.readers.File(file_root=str(root)).next_epoch(batch_size=_FEW):
            ndd.decoders.image(files.tensors[0], device="cpu").evaluate()
    photos = [np.fromfile(PHOTOS / name, np.uint8) for name in scan(PHOTOS).files[:_FEW]]
    ndd.decoders.image(ndd.batch(photos), device="cpu", output_type=ndd.types.BGR).evaluate()
    deep = cv2.imencode(".tif", noise)[1].reshape(-1)
    ndd.decoders.image(ndd.batch([deep] * _FEW), device="cpu").evaluate()


def _run_torchvision(folder: Path, device: str = "cpu", seed: int = 0) -> None:
    """The recipes of `bench torchvision`."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for recipe in REFERENCES:
            args = SimpleNamespace(recipe=recipe, threads=2, device=device, batch_size=_MANY)
            next(of_ndd(args, scan(PHOTOS).repeated(_MANY).first(_MANY)))


def _runs_recipe(name: str) -> Callable[..., None]:
    """The functions that run a recipe with each of its settings."""

    def run(folder: Path, device: str = "cpu", seed: int = 0) -> None:
        import ndd

        ndd.random.set_seed(seed)
        for settings in RECIPES[name]:
            recipe = getattr(ndd.recipes, name)(**settings, device=device)
            for batches in _INPUTS.get(name, _few)(ndd):
                results = recipe(*batches)
                for result in results if isinstance(results, tuple) else (results,):
                    result.evaluate()

    return run


def _photographs(count: int) -> Any:
    jpegs, _ = open_reader(scan(PHOTOS).repeated(count), seed=1).fetch(list(range(count)))
    return jpegs


def _many(ndd: Any) -> Iterator[tuple[Any, ...]]:
    yield (_photographs(_MANY),)


def _few(ndd: Any) -> Iterator[tuple[Any, ...]]:
    yield (_photographs(_FEW),)


def _with_boxes(ndd: Any) -> Iterator[tuple[Any, ...]]:
    boxes = [boxes_of(k) for k in range(_FEW)]
    yield _photographs(_FEW), ndd.batch(boxes), ndd.batch([np.arange(len(each), dtype=np.int32) for each in boxes])


def _with_masks(ndd: Any) -> Iterator[tuple[Any, ...]]:
    """As arrays, and as PNGs."""
    from PIL import Image

    jpegs, rng = _photographs(_FEW), np.random.default_rng(0)
    masks = [rng.integers(0, _LABELS, np.asarray(shape)[:2], np.uint8) for shape in ndd.peek_image_shape(jpegs)]
    files = []
    for mask in masks:
        file = io.BytesIO()
        Image.fromarray(mask).save(file, "PNG")
        files.append(np.frombuffer(file.getvalue(), np.uint8))
    yield jpegs, ndd.batch(masks, layout="HW")
    yield jpegs, ndd.batch(files)


def _sounds(ndd: Any) -> Iterator[tuple[Any, ...]]:
    values = arrays(None, _FEW)
    for kind in ("wavs", "flacs", "oggs"):
        yield (ndd.batch(values[kind][0]),)


def _clips(ndd: Any) -> Iterator[tuple[Any, ...]]:
    rng = np.random.default_rng(0)
    yield (ndd.batch([rng.integers(0, 256, _CLIP, np.uint8) for _ in range(2)], layout="FHWC"),)


OF_BOTH: dict[str, Callable[..., None]] = {
    "torchvision": _run_torchvision,
    **{f"recipes.{name}": _runs_recipe(name) for name in RECIPES},
}
"""By name: functions that run recipes on a device, with a seed for random numbers."""
_INPUTS = {
    "imagenet_train": _many,
    "detection": _with_boxes,
    "segmentation": _with_masks,
    "speech": _sounds,
    "video_clips": _clips,
}
