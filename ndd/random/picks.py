"""Choosing items of a table: what `uniform(values=...)` and `choice` have in common."""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd._cpu.draws import fill_index, fill_weighted_index


class Table:
    """What samples choose from.

    Args:
        items: `[rows, most, ...]`, or None: an item is its own index.
        counts: how many items each row has.
        cumulative: for weighted choice, `[1 or samples, most]` cumulative probabilities.
    """

    __slots__ = ("counts", "cumulative", "items")

    def __init__(self, items: np.ndarray | None, counts: np.ndarray, cumulative: np.ndarray | None = None):
        self.items = items
        self.counts = counts
        self.cumulative = cumulative

    def places(self, n: int) -> np.ndarray:
        """For each of `n` samples its row in the table and its row in `cumulative`: int64 `[n, 2]`."""
        found = np.zeros((n, 2), np.int64)
        if len(self.counts) > 1:
            found[:, 0] = np.arange(n)
        if self.cumulative is not None and len(self.cumulative) > 1:
            found[:, 1] = np.arange(n)
        return found

    def fill(self, out: np.ndarray, streams: np.ndarray, places: np.ndarray) -> None:
        """Chosen items into `out` `[n, draws, ...]` for samples with these streams and places."""
        rows, weights = places[:, 0], places[:, 1]
        found = np.empty(out.shape[:2], np.int64)
        if self.cumulative is None:
            fill_index(found, streams, self.counts[rows])
        else:
            fill_weighted_index(found, streams, self.cumulative[weights], self.counts[rows])
        if self.items is None:
            out[...] = found
        else:
            out[...] = self.items[rows[:, None], found]

    def launch(self, launch: Any, places: np.ndarray) -> None:
        """The same on a GPU: one launch of `pick.cu` with the table uploaded."""
        rows, weights = places[:, 0], places[:, 1]
        tables = [self.items, self.cumulative]
        held = [None if t is None else launch.upload(np.ascontiguousarray(t)) for t in tables]
        width = [0 if t is None else t.shape[1] for t in tables]
        launch(
            "pick",
            file="pick.cu",
            per_sample={
                "limit": self.counts[rows].astype(np.uint64),
                "offset": rows * width[0],
                "weights": weights * width[1],
            },
            shared={
                "items": np.uint64(0 if held[0] is None else held[0].data_ptr()),
                "cumulative": np.uint64(0 if held[1] is None else held[1].data_ptr()),
                "item": np.int64(1 if self.items is None else np.prod(self.items.shape[2:], dtype=np.int64)),
            },
        )


def padded(rows: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Rows of different lengths as one array `[rows, most, ...]`, and their lengths."""
    counts = np.array([len(r) for r in rows], np.int64)
    if len(rows) == 1:
        return rows[0][None], counts
    items = np.zeros((len(rows), int(counts.max(initial=0)), *rows[0].shape[1:]), rows[0].dtype)
    for i, r in enumerate(rows):
        items[i, : len(r)] = r
    return items, counts
