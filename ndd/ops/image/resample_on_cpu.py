"""Resampling of a batch on the CPU: threads share its samples inside one compiled call."""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd._cpu.filter_taps import CUBIC, NN, NN_CENTRE, NN_CORNER, NN_FUSED, TRIANGULAR
from ndd._cpu.nearest_pixels import pick_image
from ndd._cpu.resample import MADE, exact_filter_loop, filter_loop, loop_fields, resample
from ndd._cpu.rgb_sampling import LEAST
from ndd._operator.naming import raise_first
from ndd._operator.partition import Rows, View, each_sample
from ndd._tensor import Store
from ndd._tensor.store import grouped, volumes

_AXIS = ("start", "end", "kind", "radius", "whole", "skip")  # rows of a `resample_plan`, in the kernels' order


def resample_on_cpu(call: Any, plan: Any, image: Store, out: Store) -> None:
    """Resamples a batch for `.batch`: in compiled loops, and sample by sample where these cannot."""
    left = _in_loops(call, plan, image, out)
    numbers = range(out.n) if left is None else left.tolist()
    arrays, results, axes = image.arrays() * (out.n if image.n != out.n else 1), out.arrays(), plan.shared["axes"]
    own = [plan.per_sample[name] for name in _AXIS]

    def work(k: int) -> None:
        i = numbers[k]
        resample(arrays[i], results[i], axes, *[values[i] for values in own])

    failed = call.spread(work, len(numbers), (image.nbytes() + out.nbytes()) * len(numbers) // out.n)
    raise_first({numbers[k]: error for k, error in failed.items()})


def _in_loops(call: Any, plan: Any, image: Store, out: Store) -> np.ndarray | None:
    """Calls `resample` for the samples of a batch that change along two neighbouring axes: those of bytes and float32, and with
    the nearest pixel those of all types. Returns the numbers of the other samples, None for all. Filters for more types would
    take seconds to compile."""
    kinds, y = (image.dtype.numpy, out.dtype.numpy), plan.shared["axes"][0]
    if out.n == 1 or len(plan.shared["axes"]) != 2 or y < 0:
        return None
    shapes, result_shapes = image.shape_array, out.shape_array
    if len(shapes) != len(result_shapes):
        shapes = np.broadcast_to(shapes, result_shapes.shape)
    rows = [plan.per_sample[name] for name in _AXIS]
    start, end, kind = rows[:3]
    places, sizes = shapes[:, y : y + 2], result_shapes[:, y : y + 2]
    extents = grouped(shapes, y, y + 1, y + 2)
    counts, all_made = volumes(shapes), volumes(result_shapes)
    near = (kind == NN) | (kind == NN_FUSED) | (kind == NN_CORNER) | (kind == NN_CENTRE)
    picked = near.all(axis=1) & (kinds[0] == kinds[1]) & (all_made > 0) & (counts > 0) & (counts < 1 << 31)
    same = (start == 0) & (end == places) & (places == sizes) & ((kind == CUBIC) | (kind == TRIANGULAR))
    fits = (~same & ~near).all(axis=1) & (counts > 0) & (all_made > 0) & (kinds[0] in MADE and kinds[1] in MADE)
    rgb = kinds[0] == np.uint8 and bool((extents[:, 3] == 3).all())
    if rgb:
        picked &= (counts >= LEAST) & (all_made >= LEAST)
    if picked.any():
        _pick_samples(call, image, out, extents, sizes, np.flatnonzero(picked), (*rows[:3], *rows[4:]), rgb)
    order = np.flatnonzero(fits)
    if not len(order):
        return np.flatnonzero(~picked)
    if not image.uniform():
        work = np.abs(end - start).prod(axis=1)
        order = order[np.argsort(-work[order], kind="stable")]
    sources = np.array(np.broadcast_to(image.pointers(), (len(result_shapes),)))
    numbers = loop_fields(order, sources, out.pointers(), kinds, extents, sizes, *rows)
    loop = exact_filter_loop if kind[0, 0] > NN_FUSED else filter_loop
    done = call.parallel_for(loop, numbers, len(order), image.nbytes() + out.nbytes(), (image, out))
    return np.flatnonzero(~(picked | fits) if done else ~picked)


def _pick_samples(
    call: Any, image: Any, out: Any, extents: np.ndarray, sizes: np.ndarray, order: np.ndarray, how: Any, rgb: bool
) -> None:
    """Calls `pick_image` for the samples `order`. Elements are moved as integers of their size."""
    element = np.dtype(f"u{image.dtype.numpy.itemsize}")
    channels = extents[:, 3]
    source = np.stack([extents[:, 0], extents[:, 1], extents[:, 2] * channels], axis=1)
    target = np.stack([extents[:, 0], sizes[:, 0], sizes[:, 1] * channels], axis=1)
    rows = [Rows(values) for values in (channels, *how)]
    seen = View(source, element).of(image), View(target, element).of(out)
    each_sample(call, pick_image, *seen, *rows, rgb or None, order=order)
