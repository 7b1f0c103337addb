"""Chooses items of a table: the common part of `uniform(values=...)` and `choice`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ndd._cpu.draws import fill_index, fill_index_in_order, fill_weighted_index


class Table:
    """The choices of the samples.

    Args:
        items: `[rows, most]`, or `[rows, most, widest]` for items that are arrays themselves, flat; or None: an item
            is its own index.
        counts: the number of items of each row.
        cumulative: for weighted choice, `[1 or samples, most]` cumulative probabilities.
    """

    __slots__ = ("counts", "cumulative", "items")

    def __init__(self, items: np.ndarray | None, counts: np.ndarray, cumulative: np.ndarray | None = None):
        self.items = items
        self.counts = counts
        self.cumulative = cumulative

    def places(self, n: int) -> np.ndarray:
        """For each of `n` samples its row in the table and its row in `cumulative`: int64 `[n, 2]`."""
        pairs = np.zeros((n, 2), np.int64)
        if len(self.counts) > 1:
            pairs[:, 0] = np.arange(n)
        if self.cumulative is not None and len(self.cumulative) > 1:
            pairs[:, 1] = np.arange(n)
        return pairs

    @property
    def in_order(self) -> bool:
        """Whether a sample's draws take consecutive words, as DALI draws items of several numbers."""
        return self.items is not None and self.items.ndim > 2

    def indices(self, draws: int, streams: np.ndarray, places: np.ndarray) -> np.ndarray:
        """int64 `[n, draws]`: the choice of each draw of each sample in its row."""
        picked = np.empty((len(streams), draws), np.int64)
        counts = self.counts[places[:, 0]]
        if self.in_order:
            weights = np.empty((len(streams), 0)) if self.cumulative is None else self.cumulative[places[:, 1]]
            fill_index_in_order(picked, streams, weights, counts)
        elif self.cumulative is None:
            fill_index(picked, streams, counts)
        else:
            fill_weighted_index(picked, streams, self.cumulative[places[:, 1]], counts)
        return picked

    def fill(self, out: np.ndarray, streams: np.ndarray, places: np.ndarray) -> None:
        """Writes chosen items to `out` `[n, draws, ...]` for samples with these streams and places."""
        picked = self.indices(out.shape[1], streams, places)
        if self.items is None:
            out[...] = picked
        else:
            chosen = self.items[places[:, :1], picked]
            if chosen.ndim > 2:
                chosen = chosen[:, :, : math.prod(out.shape[2:])].reshape(out.shape)
            out[...] = chosen

    def launch(
        self, launch: Any, streams: np.ndarray, places: np.ndarray, draws: np.ndarray, sizes: np.ndarray
    ) -> None:
        """Does the same on a GPU for samples of this many `draws` of `sizes` numbers each, with one launch of `pick.cu`."""
        tables = {"table": self.items, "cumulative": self.cumulative, "chosen": None}
        if self.in_order:
            tables["chosen"] = self.indices(int(draws.max(initial=0)), streams, places)
        widest = 1 if self.items is None else math.prod(self.items.shape[2:])
        launch(
            "pick",
            file="pick.cu",
            per_sample={
                "limit": self.counts[places[:, 0]].astype(np.uint64),
                "item": np.maximum(sizes, 1).astype(np.int64),
                **{
                    name: np.zeros(len(draws), np.int64) if table is None else launch.table(table, each=len(table) > 1)
                    for name, table in tables.items()
                },
            },
            shared={"widest": np.int64(widest)},
        )


def padded(rows: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Rows of different lengths as the `items` of a `Table`, and their lengths."""
    counts = np.array([len(r) for r in rows], np.int64)
    if rows[0].ndim > 1:
        rows = [r.reshape(len(r), math.prod(r.shape[1:])) for r in rows]
    if len(rows) == 1:
        return rows[0][None], counts
    widest = [max(r.shape[1] for r in rows)] if rows[0].ndim > 1 else []
    items = np.zeros((len(rows), int(counts.max(initial=0)), *widest), rows[0].dtype)
    for i, r in enumerate(rows):
        items[i][tuple(map(slice, r.shape))] = r
    return items, counts
