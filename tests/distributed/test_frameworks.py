"""Tools that keep checkpoints take readers, epochs and generators as they are, and go on in the middle of an epoch."""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import json
import multiprocessing
import os

import pytest

import ndd
from ndd.torchvision.installed import import_torchvision


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Twenty small files."""
    folder = tmp_path_factory.mktemp("kept")
    (folder / "files").mkdir()
    for i in range(20):
        (folder / "files" / f"{i:02}.bin").write_bytes(bytes([i]))
    return folder


def made(folder, **arguments):
    return ndd.readers.File(files=sorted(str(p) for p in (folder / "files").iterdir()), shuffle="global", **arguments)


def labels(batches):
    return [batch[1].torch().flatten().tolist() for batch in batches]


@pytest.mark.parametrize("last", ["fill", "partial", "drop"])
@pytest.mark.drawn(1)
def test_stateful_data_loader(folder, last):
    """An epoch as data set: its state in every place of two epochs, also at the end of one."""
    loader = pytest.importorskip("torchdata.stateful_dataloader")

    def loading():
        return loader.StatefulDataLoader(made(folder).next_epoch(3, last_batch=last), batch_size=None)

    whole = loading()
    expected = [labels(whole) for _ in range(3)]
    assert len(whole) == len(expected[0])
    item = loading()
    for number in range(2):
        epoch = iter(item)
        for place in range(len(expected[0]) + 1):
            if place:
                next(epoch)
            other = loading()
            other.load_state_dict(item.state_dict())
            assert len(other) == len(whole)
            result = labels(other) + labels(other)  # after the last batch of an epoch the next one comes at once
            assert result[: len(expected[0])] == [*expected[number][place:], *expected[number + 1]][: len(expected[0])]
        assert next(epoch, None) is None


def test_stateful_data_loader_of_samples(folder):
    """A reader as data set with numbers: the sampler's place and the generator's."""
    loader = pytest.importorskip("torchdata.stateful_dataloader")

    def loading():
        return loader.StatefulDataLoader(
            made(folder), batch_size=4, collate_fn=lambda s: [label.torch().item() for _, label in s]
        )

    item = loading()
    epoch = iter(item)
    assert [next(epoch) for _ in range(2)] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    other = loading()
    other.load_state_dict(item.state_dict())
    assert list(other) == list(epoch)


def test_lightning(folder):
    """Three steps, a checkpoint in mid-epoch, and a new trainer that goes on to the middle of the next epoch."""
    with contextlib.suppress(ImportError):  # lightning imports it, which fails beside a CPU build of torch
        import_torchvision()
    lightning = pytest.importorskip("lightning")
    import torch

    seen = []

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(1))

        def training_step(self, batch, number):
            seen.append(batch[1].torch().flatten().tolist())
            return self.weight * 1

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=1e-3)

        def transfer_batch_to_device(self, batch, device, number):
            return batch

    def run(steps, **how):
        trainer = lightning.Trainer(
            max_steps=steps, accelerator="cpu", devices=1, use_distributed_sampler=False, logger=False,
            enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
        )  # fmt: skip
        trainer.fit(Module(), made(folder).next_epoch(3, last_batch="partial"), **how)
        return trainer

    run(10)
    whole, seen[:] = list(seen), []
    run(3).save_checkpoint(folder / "lightning.ckpt")
    run(10, ckpt_path=folder / "lightning.ckpt", weights_only=False)
    assert seen == whole
    assert len(whole) == 10


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_two_ranks(folder):
    """torch.distributed.checkpoint keeps one of the values that ranks save under one name, and accelerate what the first rank
    has: both tell where all were. Then three ranks finish what two began."""
    import torch.distributed.checkpoint as dcp
    from distributed import kept_by_ranks

    more = ["accelerate"] if importlib.util.find_spec("accelerate") else []
    for name in more:
        importlib.import_module(name)
    forks = multiprocessing.get_context("fork")
    ranks = [forks.Process(target=kept_by_ranks.main, args=(folder, rank, 2, bool(more))) for rank in range(2)]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join(90)
        rank.kill()
    assert [rank.exitcode for rank in ranks] == [0, 0]
    arguments = []
    for rank in range(2):
        before, expected, result = json.loads((folder / f"rank{rank}.json").read_text())
        assert list(result) == ["dcp", *more]
        for tool, rest in result.items():
            assert rest == expected, (tool, rank)
        arguments += itertools.chain(*before)
    for rank in range(3):
        reader = made(folder, shard="auto", seed=5)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("RANK", str(rank))
            patch.setenv("WORLD_SIZE", "3")
            dcp.load({"reader": reader}, checkpoint_id=folder / "dcp", no_dist=True)
            arguments += itertools.chain(*labels(reader.next_epoch(2, last_batch="partial")))
    assert sorted(arguments) == list(range(20))
