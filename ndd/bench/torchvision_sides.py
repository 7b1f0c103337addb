"""One side of the torchvision benchmark, in its own process: `python -m ndd.bench.torchvision_sides SIDE RECIPE`.

Both sides run the recipe of torchvision's references, the same code with their own `v2`: `ndd` on batches of its readers,
`torchvision` on PIL images in a DataLoader with a worker for each thread. Both yield tensors of the same type and size.
"""

# The types of torch's data sets are narrower than necessary.
# pyright: reportPrivateImportUsage=false, reportArgumentType=false, reportCallIssue=false
from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ndd.bench.rounds import synchronize
from ndd.demo.folder import Folder, scan

SIDES = ("ndd", "torchvision")
RECIPES = ("imagenet train", "imagenet train, TrivialAugment", "imagenet val", "SSDlite", "segmentation")
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_BOXES = 8  # of each image


def main(argv: list[str] | None = None) -> None:
    """Runs epochs of one side; prints images a second of each but the first, as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("side", choices=SIDES)
    parser.add_argument("recipe", choices=RECIPES)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--images", type=int, required=True)
    parser.add_argument("--batch-size", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args(argv)
    files = scan(args.data).repeated(args.images).first(args.images // args.batch_size * args.batch_size or 1)
    epochs = of_ndd(args, files) if args.side == "ndd" else _of_torchvision(args, files)
    batches, rates = max(1, len(files.files) // args.batch_size), []
    for _ in range(args.rounds + 1):
        synchronize(args.device)
        start = time.perf_counter()
        count = sum(next(epochs) for _ in range(batches))
        synchronize(args.device)
        rates.append(count / (time.perf_counter() - start))
    print(json.dumps(rates[1:]))


def transforms(v2: Any, recipe: str) -> Any:
    """The recipe of torchvision's references, with the classes of a `v2`."""
    import torch

    last = [v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]
    first = [v2.RandomResizedCrop(224, antialias=True), v2.RandomHorizontalFlip()]
    if recipe == "imagenet train":
        return v2.Compose([*first, v2.PILToTensor(), *last])
    if recipe == "imagenet train, TrivialAugment":
        augmented = [*first, v2.TrivialAugmentWide(), v2.PILToTensor(), *last, v2.RandomErasing(0.1)]
        return v2.Compose(augmented)
    if recipe == "imagenet val":
        return v2.Compose([v2.Resize(256, antialias=True), v2.CenterCrop(224), v2.PILToTensor(), *last])
    if recipe == "SSDlite":
        return v2.Compose([v2.RandomIoUCrop(), v2.RandomHorizontalFlip(), v2.ToImage(), last[0]])
    moved = [v2.RandomResize(260, 1040), v2.RandomHorizontalFlip(), v2.RandomCrop(480, pad_if_needed=True)]
    return v2.Compose([*moved, v2.ToImage(), *last])


def boxes_of(index: int) -> np.ndarray:
    """Artificial boxes of image `index`: left, top, right, bottom, as fractions, float32."""
    rng = np.random.default_rng(index)
    sides = rng.uniform(0.1, 0.6, (_BOXES, 2))
    places = rng.uniform(0, 1, (_BOXES, 2)) * (1 - sides)
    return np.concatenate((places, places + sides), 1).astype(np.float32)


# ---- ndd


def of_ndd(args: Any, files: Folder) -> Iterator[int]:
    """Runs epochs of ndd's side without end; yields the sizes of its batches."""
    import ndd
    from ndd._compiled.background import background
    from ndd.torchvision import v2

    background.forbid()  # measures kernels instead of their fallbacks
    ndd.set_num_threads(args.threads)
    recipe, work = args.recipe, transforms(v2, args.recipe)
    numbers = list(range(len(files.files)))
    named: dict[str, Any] = {"random_shuffle": recipe != "imagenet val"}
    reader = ndd.readers.File(file_root=str(files.root), files=files.files, labels=numbers, **named)
    boxes = [boxes_of(number) for number in numbers] if recipe == "SSDlite" else []
    while True:
        for jpegs, labels in reader.next_epoch(batch_size=args.batch_size):
            images = ndd.decoders.image(jpegs, device=args.device)
            if recipe == "SSDlite":
                own = ndd.batch([boxes[k] for k in labels.torch().flatten().tolist()])
                result = work(ndd.Targets(images, own))
                result.boxes.evaluate()
                result.images.evaluate()
            elif recipe == "segmentation":
                # The mask is computed from the picture: only its geometry matters here, not its classes.
                masks = ndd.color_space_conversion(images, image_type=ndd.types.RGB, output_type=ndd.types.GRAY)
                images, masks = work((images, ndd.reshape(masks, src_dims=[0, 1], layout="HW")))
                masks.torch()
                images.torch()
            else:
                work(images).torch()
            yield labels.batch_size


# ---- torchvision


class _Pictures:
    """A data set of PIL images with their targets, transformed."""

    def __init__(self, files: Folder, recipe: str):
        self._names = [str(files.root / name) for name in files.files]
        self._recipe, self._work = recipe, None

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, index: int) -> Any:
        from PIL import Image

        from ndd.torchvision.installed import import_torchvision

        import_torchvision()
        import torch
        from torchvision import tv_tensors
        from torchvision.transforms import v2

        if self._work is None:
            self._work = transforms(v2, self._recipe)
        with Image.open(self._names[index]) as file:
            image = file.convert("RGB")
            grey = file.convert("L") if self._recipe == "segmentation" else None
        if grey is not None:
            return self._work(image, tv_tensors.Mask(torch.from_numpy(np.array(grey))))
        if self._recipe != "SSDlite":
            return self._work(image)
        boxes = torch.from_numpy(boxes_of(index)) * torch.tensor([image.width, image.height] * 2)
        size = (image.height, image.width)
        return self._work(image, tv_tensors.BoundingBoxes(boxes, format="XYXY", canvas_size=size))  # type: ignore[call-arg]


def _of_torchvision(args: Any, files: Folder) -> Iterator[int]:
    import torch
    from torch.utils._pytree import tree_leaves

    from ndd.torchvision.installed import import_torchvision

    import_torchvision()  # workers may send values of its classes
    torch.set_num_threads(1)  # as in the workers, which use the cores
    collate = {"collate_fn": list} if args.recipe == "SSDlite" else {}
    loader = torch.utils.data.DataLoader(
        _Pictures(files, args.recipe), args.batch_size, shuffle=args.recipe != "imagenet val", num_workers=args.threads,
        persistent_workers=True, drop_last=True, pin_memory=args.device == "gpu", **collate,
    )  # fmt: skip
    while True:
        for batch in loader:
            if args.device == "gpu":
                for value in tree_leaves(batch):
                    value.to("cuda", non_blocking=True)
            yield args.batch_size


if __name__ == "__main__":
    main()
