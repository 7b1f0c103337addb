"""Batches for transforms that only accept torch's tensors: one sample after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import ndd
from ndd.torchvision import values
from ndd.torchvision.v2.inputs import over_batches, over_parts


def one_by_one(work: Callable[[list[Any]], list[Any]], flat: list[Any], n: int | None) -> list[Any]:
    """Calls `work` for each sample of the batches among these values, as torch tensors, with images CHW. Without batches (`n`
    is None), calls it for the values themselves."""
    if n is None:
        return work(flat)
    rows = [work([_sample(x, i) for x in flat]) for i in range(n)]
    if not rows:
        return flat
    return [_together(x, list(column)) for x, column in zip(flat, zip(*rows, strict=True), strict=True)]


def _sample(value: Any, i: int) -> Any:
    if values.count_of(value) is None:
        return value
    if isinstance(value, ndd.Targets):
        return over_batches(value, lambda batch: batch.select(i))
    return _channels_first(value.layout, value.select(i).torch())


def _channels_first(layout: str | None, tensor: torch.Tensor) -> torch.Tensor:
    return tensor.movedim(-1, -3) if (layout or "").endswith("HWC") else tensor


def _together(value: Any, column: list[Any]) -> Any:
    """The results of all samples as the kind of value that they came from; a list if they are not tensors."""
    first = column[0]
    if values.count_of(value) is None:
        return first
    if isinstance(first, ndd.Targets):
        return over_parts(column, ndd.Tensor, ndd.batch)
    if not isinstance(first, torch.Tensor):
        return column
    layout, last = value.layout, value.layout and value.layout.endswith("HWC") and first.ndim == value.ndim
    samples = [t.movedim(-3, -1).contiguous() if last else t for t in column]
    return ndd.as_batch(samples, layout=layout if first.ndim == value.ndim else None)
