"""Measures the share of a training's time that is spent waiting for data: times a loader, or replaces it by batches in
memory."""

from __future__ import annotations

import itertools
import json
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

__all__ = ["LoaderEvaluator"]


class LoaderEvaluator:
    """Wraps a loader: "log" measures the time of each batch, "replay" returns batches that are in memory already.

    Train an epoch with the loader and one with `mode="replay"`: the difference is what waiting for data costs.

    Args:
        dataloader: torch's `DataLoader`, or anything else with a length that is iterated again for each epoch.
        mode: "log" or "replay".
        num_cached_batches: for "replay", the number of batches that are kept: the last ones of an epoch, which is read when the
            object is made. They are repeated until an epoch is full. None keeps all.
        metrics_file: where `save_metrics` writes.

    Raises ValueError for another mode, fewer than one batch to keep, and a loader without batches to replay. (DALI takes
    any mode for "log", and raises RuntimeError when the epoch begins.)

    >>> from ndd.plugin.pytorch.loader_evaluator import LoaderEvaluator
    >>> replayed = LoaderEvaluator([1, 2, 3, 4, 5], mode="replay", num_cached_batches=2)
    >>> list(replayed)
    [4, 5, 4, 5, 4]
    >>> replayed.get_metrics()["total_batches"]
    5
    """

    def __init__(
        self, dataloader: Any, mode: str = "log", num_cached_batches: int | None = 20, metrics_file: str | None = None
    ):
        if mode not in ("log", "replay"):
            raise ValueError(f"LoaderEvaluator: expected mode='log' or mode='replay', got {mode!r}")
        if num_cached_batches is not None and num_cached_batches < 1:
            raise ValueError(f"LoaderEvaluator: num_cached_batches={num_cached_batches}: keep at least 1 batch")
        self.dataloader, self.mode = dataloader, mode
        self.num_cached_batches, self.metrics_file = num_cached_batches, metrics_file
        self._cached = list(deque(dataloader, maxlen=num_cached_batches)) if mode == "replay" else []
        if mode == "replay" and not self._cached:
            raise ValueError("LoaderEvaluator: mode='replay' needs a loader that gives at least 1 batch, got none")
        self._batch_times: list[float] = []
        self._total_time = 0.0

    def __len__(self) -> int:
        return len(self.dataloader)

    def __iter__(self) -> Iterator[Any]:
        batches: Iterable[Any] = self.dataloader
        if self.mode == "replay":
            batches = itertools.islice(itertools.cycle(self._cached), len(self))
        times: list[float] = []
        self._batch_times = times
        begin = start = time.perf_counter()
        try:
            for batch in batches:
                times.append(time.perf_counter() - start)
                yield batch
                start = time.perf_counter()
        finally:
            self._total_time = time.perf_counter() - begin

    def get_metrics(self) -> dict[str, Any]:
        """Seconds and counts of the latest epoch, also of one that is not finished; empty before the first batch.

        The keys are `mode`, `total_batches`, `total_time` (from the start to the end of the epoch, training included),
        `avg_batch_time`, `min_batch_time`, `max_batch_time`, `batch_times` (each is the wait for a batch), `cached_batches`
        and `cache_ready`.

        >>> from ndd.plugin.pytorch.loader_evaluator import LoaderEvaluator
        >>> LoaderEvaluator([1, 2]).get_metrics()
        {}
        """
        times = list(self._batch_times)
        if not times:
            return {}
        return {
            "mode": self.mode,
            "total_batches": len(times),
            "total_time": self._total_time,
            "avg_batch_time": sum(times) / len(times),
            "min_batch_time": min(times),
            "max_batch_time": max(times),
            "batch_times": times,
            "cached_batches": len(self._cached),
            "cache_ready": bool(self._cached),
        }

    def save_metrics(self, filename: str | None = None) -> None:
        """Writes `get_metrics()` to a JSON file.

        Args:
            filename: the file; default the `metrics_file` of the object.

        Raises ValueError without either (DALI prints a line).

        >>> import tempfile, pathlib
        >>> from ndd.plugin.pytorch.loader_evaluator import LoaderEvaluator
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder, "metrics.json")
        ...     LoaderEvaluator([1, 2], metrics_file=str(file)).save_metrics()
        ...     file.read_text()
        '{}'
        """
        target = filename or self.metrics_file
        if not target:
            raise ValueError(
                "LoaderEvaluator.save_metrics: there is no file: give filename=, or metrics_file= at the start"
            )
        Path(target).write_text(json.dumps(self.get_metrics(), indent=2), encoding="utf-8")

    def print_summary(self) -> None:
        """Prints the wrapped loader, and the counts and times of the latest epoch.

        >>> from ndd.plugin.pytorch.loader_evaluator import LoaderEvaluator
        >>> LoaderEvaluator([1, 2]).print_summary()
        Loader Evaluator Summary:
          Mode: log
          Number of batches: 2
        """
        lines = ["Loader Evaluator Summary:", f"  Mode: {self.mode}"]
        if hasattr(self.dataloader, "dataset"):
            lines.append(f"  Dataset size: {len(self.dataloader.dataset)}")
        lines.append(f"  Number of batches: {len(self)}")
        if self.mode == "replay":
            lines.append(f"  Batches in memory: {len(self._cached)}")
        metrics = self.get_metrics()
        if metrics:
            lines.append(f"  Batches given: {metrics['total_batches']}")
            lines.append(f"  Time of the epoch: {metrics['total_time']:.2f} s")
            lines.extend(
                f"  Wait for a batch, {kind}: {metrics[f'{kind}_batch_time']:.4f} s" for kind in ("avg", "min", "max")
            )
        sys.stdout.write("\n".join(lines) + "\n")
