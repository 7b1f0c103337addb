"""The recipes of `bench torchvision` on a GPU: what comes out on the CPU, and no image leaves the GPU on its way."""

from __future__ import annotations

import sys

import numpy as np
import PIL.Image
import pytest
import torch
from torchvision_classes import batch_of
from waiting import let_read_on

import ndd
from ndd._lookahead import matching, prefetch
from ndd.bench.torchvision_sides import RECIPES, boxes_of, transforms
from ndd.torchvision import v2

SIZES = [(290, 330), (300, 280), (270, 350)]
MADE = torch.Generator().manual_seed(4)
IMAGES = [torch.randint(0, 256, (3, h // 10, w // 10), dtype=torch.uint8, generator=MADE) for h, w in SIZES]
MOST = 1000  # elements that may be copied to the host: numbers, and no images


def images_on(device):
    return ndd.resize(batch_of(IMAGES, "HWC"), size=np.array(SIZES, np.float32)).evaluate().to_device(device)


def result_of(recipe, images):
    work = transforms(v2, recipe)
    torch.manual_seed(3)
    if recipe == "SSDlite":
        made = work(ndd.Targets(images, ndd.batch([boxes_of(i) for i in range(len(SIZES))])))
        return [made.images, made.boxes]
    if recipe == "segmentation":
        masks = ndd.color_space_conversion(images, image_type=ndd.types.RGB, output_type=ndd.types.GRAY)
        return [*work((images, ndd.reshape(masks, src_dims=[0, 1], layout="HW")))]
    return [work(images)]


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.drawn(1)
def test_as_on_the_cpu(recipe, emulated_gpu, monkeypatch):
    wanted = [value.evaluate() for value in result_of(recipe, images_on("cpu"))]
    images, copied = images_on("gpu"), []
    of_torch, of_batches = torch.Tensor.cpu, ndd.Batch.cpu

    def noted(batch):
        if batch.device.device_type == "gpu":
            copied.append(sum(map(np.prod, batch.shape)))
        return of_batches(batch)

    with monkeypatch.context() as patched:
        patched.setattr(torch.Tensor, "cpu", lambda tensor: copied.append(tensor.numel()) or of_torch(tensor))
        patched.setattr(ndd.Batch, "cpu", noted)
        made = [value.evaluate() for value in result_of(recipe, images)]
    assert max(copied, default=0) <= MOST
    for a, b in zip(made, wanted, strict=True):
        assert (a.layout, a.dtype, b.device.device_type) == (b.layout, b.dtype, "cpu")
        assert a.device.device_type == "gpu" or a is not made[0]  # boxes, which come from a reader, stay with it
        for x, y in zip(a.cpu().tensors, b.tensors, strict=True):
            difference = (x.torch().float() - y.torch().float()).abs()
            assert (difference > 0.02 * y.torch().float().abs().max()).float().mean() < 0.01


FIRST = [v2.RandomResizedCrop(16), v2.RandomHorizontalFlip()]
LAST = [v2.PILToTensor(), v2.ToDtype(torch.float32, scale=True), v2.Normalize((0.4, 0.5, 0.6), (0.2, 0.3, 0.4))]
WHOLE = {
    "val": [v2.Resize(18), v2.CenterCrop(16), *LAST],
    "train": [*FIRST, *LAST],
    "TrivialAugment": [*FIRST, v2.TrivialAugmentWide(), *LAST, v2.RandomErasing(0.4)],
    "RandAugment": [*FIRST, v2.RandAugment(), *LAST],
    "AutoAugment": [*FIRST, v2.AutoAugment(), *LAST],
    "segmentation": [
        v2.RandomResize(10, 40), v2.RandomHorizontalFlip(), v2.RandomVerticalFlip(), v2.RandomCrop(24, pad_if_needed=True), *LAST,
    ],
}  # fmt: skip
NORMALIZED = "crop_mirror_normalize"
WINDOWS, STEP = ["image", "random_resized_crop", "torch_numbers"], ["torch_numbers", "torch_numbers", "augment"]
CALLS = {
    "val": ["image", "resize_crop_mirror", NORMALIZED],
    "train": [*WINDOWS, NORMALIZED],
    "TrivialAugment": [*WINDOWS, "flip", *STEP, NORMALIZED, "torch_numbers", "torch_numbers", "erase"],
    "RandAugment": [*WINDOWS, "flip", *STEP, *STEP, NORMALIZED],
    "AutoAugment": [*WINDOWS, "flip", *STEP, *STEP, NORMALIZED],
    "segmentation": [
        "image", "color_space_conversion", "reshape", *["torch_numbers"] * 3, "mul", "bitxor", "torch_numbers",
        "resized_crops", "resize_crop_mirror", "reshape", "resize_crop_mirror", "reshape", "slice", "slice", NORMALIZED,
    ],
}  # fmt: skip


def whole(recipe):
    """From encoded pictures to the recipe's batches."""
    if recipe == "ndd.recipes":
        own = ndd.recipes.segmentation(24, base=30, device="gpu", rng=ndd.random.RNG(2))
        return lambda encoded: own(encoded, encoded)
    steps = v2.Compose(WHOLE[recipe])

    def work(encoded):
        images = ndd.decoders.image(encoded, device="gpu")
        if recipe != "segmentation":
            return [steps(images)]
        masks = ndd.color_space_conversion(images, image_type=ndd.types.RGB, output_type=ndd.types.GRAY)
        return steps(images, ndd.reshape(masks, src_dims=[0, 1], layout="HW"))

    return work


@pytest.mark.parametrize("recipe", [*WHOLE, "ndd.recipes"])
@pytest.mark.drawn(1)
def test_a_recipe_is_worked_on_ahead_as_a_whole(recipe, tmp_path, monkeypatch, emulated_gpu):
    """No argument is a value made for the batch, which would be another one each time; numbers of torch's generator are foreseen.
    What comes out is what comes out without lookahead."""
    expected, failed, taken = [], [], []
    real, agree = prefetch.expected_calls, matching._agree

    def recorded(loop, *others):
        expected.append([call.op.name for call in loop.expected])
        calls = real(loop, *others)
        failed.append([call is None for call in calls])
        return calls

    monkeypatch.setattr(prefetch, "expected_calls", recorded)
    monkeypatch.setattr(matching, "_agree", lambda *args: taken.append(agree(*args)) or taken[-1])
    rng = np.random.default_rng(0)
    for i in range(32):
        PIL.Image.fromarray(rng.integers(0, 255, (20 + i, 30, 3), np.uint8)).save(tmp_path / f"{i:02}.png")
    made = {}
    for ahead in ("1", "0"):
        monkeypatch.setenv("NDD_LOOKAHEAD", ahead)
        torch.manual_seed(3)
        work = whole(recipe)
        reader, made[ahead] = ndd.readers.File(files=sorted(map(str, tmp_path.iterdir()))), []
        for _ in range(2):
            for encoded, _ in reader.next_epoch(batch_size=4):
                made[ahead] += [batch.evaluate() for batch in work(encoded)]
                let_read_on(reader)
        made[ahead] = [*[batch.cpu().torch() for batch in made[ahead]], torch.rand(3)]
    assert all(map(torch.equal, made["1"], made["0"]))
    calls = CALLS.get(recipe, ["image", *expected[-1][1:]])
    assert expected[-1] == calls
    assert not any(failed[-1])
    assert sum(taken) > 8 * len(calls)


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.drawn(1)
def test_no_call_waits_for_memory_that_is_shared(recipe, emulated_gpu, monkeypatch):
    """Numbers made for a batch are nobody else's: a call that takes them is handed over, and torch's stream does not wait."""
    waited = []
    monkeypatch.setattr(sys.modules["ndd._execution.schedule"], "order_after", waited.append)
    images = images_on("gpu")
    waited.clear()
    for value in result_of(recipe, images):
        value.evaluate()
    assert not waited
