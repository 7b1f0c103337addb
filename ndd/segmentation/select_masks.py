"""`ndd.segmentation.select_masks`: some of an image's polygons."""

from __future__ import annotations

import numpy as np

from ndd._operator import Operand, bad_sample, computed_on_host, operator, output
from ndd._tensor.dtype import int32
from ndd.ops.boxes.columns import divided, joined


@operator(reads="cpu", outputs=2)
def select_masks(mask_ids, polygons, vertices, /, *, reindex_masks: bool = False):
    """Takes the polygons of some objects, as `readers.COCO(polygon_masks=True)` gives them.

    Args:
        mask_ids: int32 (M,): numbers of objects, in the order in which they are wanted.
        polygons: int32 (P, 3): the number of the object, the polygon's first vertex, the one after its last.
        vertices: (V, d) of any type: the coordinates of all vertices.
        reindex_masks: the objects get the numbers 0, 1, ... in the order of `mask_ids`.

    Two results: the chosen polygons, int32 (Q, 3), in the order of `mask_ids` and for each object as they came; their
    vertices behind each other, (W, d). With the box numbers that `random_bbox_crop(output_bbox_indices=True)` gives as
    `mask_ids`, boxes and polygons stay together; an object without polygons cannot be chosen. Of an object with several
    polygons all are given (DALI 2.4.0 loses all but the last).

    Raises RuntimeError for other types and shapes, for a number in `mask_ids` that comes twice or that no polygon has, and
    for a chosen polygon whose vertices lie beyond the given ones.

    >>> import ndd
    >>> polygons, vertices = ndd.tensor([[0, 0, 3], [1, 3, 5]]), ndd.tensor([[1], [2], [3], [4], [5]])
    >>> polygons, vertices = ndd.segmentation.select_masks(ndd.tensor([1]), polygons, vertices)
    >>> polygons.torch(), vertices.torch()[:, 0]
    (tensor([[1, 0, 2]], dtype=torch.int32), tensor([4, 5], dtype=torch.int32))
    """
    for name, spec, axes in (("mask_ids", mask_ids, 1), ("polygons", polygons, 2), ("vertices", vertices, 2)):
        if spec.ndim != axes:
            raise RuntimeError(f"{name}: expected {axes} axes, got {spec.ndim}")
        if spec.dtype is not int32 and name != "vertices":
            raise RuntimeError(f"{name}: expected int32, got {spec.dtype}")
    return output(int32, 2), output(vertices.dtype, 2)


@select_masks.batch
def _(call, mask_ids, polygons, vertices, *, reindex_masks):
    columns = polygons.shapes[:, 1]
    if (columns != 3).any():
        i = int((columns != 3).argmax())
        raise bad_sample(i, f"polygons: expected shape (P, 3), got {tuple(polygons.shapes[i].tolist())}")
    # int64: the sample in the high half, the object's number in the low one: unlike for all objects of a batch.
    samples = (np.arange(call.n, dtype=np.int64) << 32) + (1 << 31)
    rows, id_counts = joined(polygons), mask_ids.sizes
    wanted = samples.repeat(id_counts) + joined(mask_ids)
    given = samples.repeat(polygons.shapes[:, 0]) + rows[:, 0]
    order = wanted.argsort(kind="stable")
    ranked = wanted[order]
    place = ranked.searchsorted(given)
    chosen = (np.concatenate((ranked, _NONE))[place] == given).nonzero()[0]
    met = place[chosen]
    _check_wanted(ranked, met)
    rank = order[met]  # the place in all `mask_ids` of each chosen polygon: these are in the order of samples
    by_rank = rank.argsort(kind="stable")
    chosen, rank = chosen[by_rank], rank[by_rank]
    owner, picked = given[chosen] >> 32, rows[chosen]
    starts, ends = picked[:, 1].astype(np.int64), picked[:, 2].astype(np.int64)
    counts = vertices.shapes[:, 0]
    _check_vertices(owner, starts, ends, counts)
    lengths, polygon_counts = ends - starts, np.bincount(owner, minlength=call.n)
    total = lengths.cumsum()
    vertex_counts = np.bincount(owner, lengths, call.n).astype(np.int64)
    before = total - lengths
    where = ((counts.cumsum() - counts)[owner] + starts - before).repeat(lengths)
    where += np.arange(len(where))
    own_start = before - (vertex_counts.cumsum() - vertex_counts)[owner]
    if reindex_masks:
        picked[:, 0] = rank - (id_counts.cumsum() - id_counts)[owner]
    picked[:, 1], picked[:, 2] = own_start, own_start + lengths
    return divided(picked, polygon_counts), divided(_joined_points(vertices).take(where, axis=0), vertex_counts)


_NONE = np.array([-1])  # stands behind all objects


def _check_wanted(ranked: np.ndarray, met: np.ndarray) -> None:
    """`met`: the places in `ranked` whose objects have polygons; of equals the first."""
    twice, without = ranked[1:] == ranked[:-1], np.ones(len(ranked), np.bool_)
    without[met] = False
    for found, what in (
        (twice, "once, got it twice"),
        (without, "to be the number of a polygon's object, which it is not"),
    ):
        if found.any():
            key = int(ranked[found.argmax()])
            raise bad_sample(key >> 32, f"mask_ids: expected {(key & 0xFFFFFFFF) - (1 << 31)} {what}")


def _check_vertices(owner: np.ndarray, starts: np.ndarray, ends: np.ndarray, counts: np.ndarray) -> None:
    outside = (starts < 0) | (ends < starts) | (ends > counts[owner])
    if outside.any():
        k = outside.argmax()
        i = int(owner[k])
        raise bad_sample(i, f"polygons: expected vertices within 0..{counts[i]}, got {starts[k]}..{ends[k]}")


def _joined_points(vertices: Operand) -> np.ndarray:
    columns = vertices.shapes[:, 1]
    if (columns != columns[0]).any():
        i = int((columns != columns[0]).argmax())
        raise bad_sample(i, f"vertices: expected {columns[0]} coordinates as in sample 0, got {columns[i]}")
    return joined(vertices)


select_masks.cuda(computed_on_host)
