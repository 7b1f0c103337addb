"""A loader that is timed, and one whose batches are in memory, beside DALI's."""

from __future__ import annotations

import itertools
import json
import time

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from ndd.plugin.pytorch.loader_evaluator import LoaderEvaluator


def loader(count=20):
    return DataLoader(TensorDataset(torch.arange(count).float()), batch_size=4)


def passes(evaluator_class, **options):
    evaluator = evaluator_class(loader(), **options)
    before = evaluator.get_metrics()
    batches = [[batch.tolist() for (batch,) in evaluator] for _ in range(2)]
    metrics = evaluator.get_metrics()
    counts = [metrics[k] for k in ("mode", "total_batches", "cached_batches", "cache_ready")]
    return before, batches, list(metrics), counts, len(metrics["batch_times"]), len(evaluator)


@pytest.mark.oracle
@pytest.mark.parametrize(
    "options",
    [{}, *({"mode": "replay", "num_cached_batches": n} for n in (1, 2, 5, 99, None)), {"mode": "replay"}],
    ids=str,
)
def test_batches_and_counts_as_dali(options):
    theirs = pytest.importorskip("nvidia.dali.plugin.pytorch.loader_evaluator").LoaderEvaluator
    assert passes(LoaderEvaluator, **options) == passes(theirs, **options)


class Slow:
    def __len__(self):
        return 4

    def __iter__(self):
        for i in range(4):
            time.sleep(0.02)
            yield i


def test_waiting_is_what_replay_saves():
    logged, replayed = LoaderEvaluator(Slow()), LoaderEvaluator(Slow(), mode="replay", num_cached_batches=3)
    assert list(logged) == [0, 1, 2, 3]
    for _ in replayed:
        time.sleep(0.01)  # the step of a training is no wait for data
    assert logged.get_metrics()["min_batch_time"] >= 0.019
    assert replayed.get_metrics()["max_batch_time"] < 0.01
    assert replayed.get_metrics()["total_time"] >= 0.039


def test_an_epoch_that_is_left_counts_what_it_gave():
    evaluator = LoaderEvaluator(loader())
    assert len(list(itertools.islice(evaluator, 2))) == evaluator.get_metrics()["total_batches"] == 2
    assert len(list(evaluator)) == evaluator.get_metrics()["total_batches"] == 5


def test_metrics_go_to_a_file(tmp_path, capsys):
    evaluator = LoaderEvaluator(loader(), metrics_file=str(tmp_path / "own.json"))
    list(evaluator)
    evaluator.save_metrics()
    evaluator.save_metrics(str(tmp_path / "other.json"))
    written = [json.loads((tmp_path / name).read_text()) for name in ("own.json", "other.json")]
    assert written == [evaluator.get_metrics()] * 2
    evaluator.print_summary()
    summary = capsys.readouterr().out
    assert "Dataset size: 20" in summary
    assert "Batches given: 5" in summary


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (([1], "fast"), "mode='log' or mode='replay', got 'fast'"),
        (([1], "replay", 0), "num_cached_batches=0: keep at least 1"),
        (([1], "replay", -1), "num_cached_batches=-1"),
        (([], "replay"), "got none"),
    ],
)
def test_what_cannot_be_says_so(arguments, said):
    with pytest.raises(ValueError, match=said):
        LoaderEvaluator(*arguments)
    with pytest.raises(ValueError, match="there is no file"):
        LoaderEvaluator([1]).save_metrics()
