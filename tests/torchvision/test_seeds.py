"""The same seed, the same batches; an interrupted program goes on with the same numbers; workers draw their own."""

from __future__ import annotations

import numpy as np
import PIL.Image
import pytest
import torch

import ndd
from ndd.demo.folder import PHOTOS
from ndd.torchvision import v2


def recipe():
    return v2.Compose([
        v2.RandomResizedCrop(32), v2.RandomHorizontalFlip(), v2.TrivialAugmentWide(), v2.ColorJitter(0.3, 0.3),
        v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5] * 3, [0.2] * 3), v2.RandomErasing(),
    ])  # fmt: skip


def batches(reader, work):
    for jpegs, _ in reader.next_epoch(batch_size=8):
        yield work(ndd.decoders.image(jpegs)).torch()


def test_the_same_seed_gives_the_same_batches():
    runs = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        reader = ndd.readers.File(file_root=str(PHOTOS))
        runs.append([batch for batch, _ in zip(batches(reader, recipe()), range(3), strict=False)])
    assert all(map(torch.equal, runs[0], runs[1]))
    assert not any(map(torch.equal, runs[0], runs[2]))


def test_an_interrupted_epoch_goes_on():
    """torch's state beside the reader's is all there is to keep."""
    torch.manual_seed(7)
    reader, work = ndd.readers.File(file_root=str(PHOTOS), random_shuffle=True, seed=3), recipe()
    whole = []
    for k, batch in enumerate(batches(reader, work)):
        whole.append(batch)
        if k == 1:
            kept = {"reader": reader.state_dict(), "torch": torch.get_rng_state()}
        if k == 3:
            break
    torch.manual_seed(99)
    other = ndd.readers.File(file_root=str(PHOTOS), random_shuffle=True, seed=11)
    other.load_state_dict(kept["reader"])
    torch.set_rng_state(kept["torch"])
    rest = [batch for batch, _ in zip(batches(other, recipe()), range(2), strict=False)]
    assert all(map(torch.equal, whole[2:], rest))


class Pictures:
    def __init__(self, kind):
        self.work = recipe()
        pixels = np.random.default_rng(0).integers(0, 256, (40, 50, 3), dtype=np.uint8)
        self.picture = (
            PIL.Image.fromarray(pixels) if kind == "PIL" else torch.from_numpy(pixels.transpose(2, 0, 1).copy())
        )

    def __len__(self):
        return 8

    def __getitem__(self, index):
        return self.work(self.picture)


@pytest.mark.parametrize(("start", "kind"), [("fork", "tensor"), ("spawn", "tensor"), ("fork", "PIL")])
@pytest.mark.drawn(1)
def test_in_workers_of_a_data_loader(start, kind):
    """As in torchvision, a worker's numbers follow from the loader's seed."""
    result = []
    for _ in range(2):
        output = torch.Generator().manual_seed(5)
        loader = torch.utils.data.DataLoader(
            Pictures(kind), batch_size=4, num_workers=2, generator=output, multiprocessing_context=start
        )
        result.append(torch.cat(list(loader)))
    assert torch.equal(*result)
    assert len({tuple(each.flatten()[:50].tolist()) for each in result[0]}) > 4
