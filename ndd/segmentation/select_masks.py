"""`ndd.segmentation.select_masks`: selects polygons of an image."""

from __future__ import annotations

import numpy as np

from ndd._compiled.intrinsics import each, empty
from ndd._compiled.jit import kernel
from ndd._operator import bad_sample, computed_on_host, operator, output
from ndd._tensor.dtype import int32
from ndd._tensor.memory import host_empty
from ndd.ops.boxes.box_columns import divided

_TWICE, _WITHOUT, _OUTSIDE = 1, 2, 3  # faults of a sample


@operator(reads="cpu", outputs=2)
def select_masks(mask_ids, polygons, vertices, /, *, reindex_masks: bool = False):
    """Selects the polygons of some objects, in the form of `readers.COCO(polygon_masks=True)`.

    Args:
        mask_ids: int32 (M,): numbers of objects, in the order of the result.
        polygons: int32 (P, 3): the number of the object, the polygon's first vertex, the one after its last.
        vertices: (V, d) of any type: the coordinates of all vertices.
        reindex_masks: the objects get the numbers 0, 1, ... in the order of `mask_ids`.

    Returns the chosen polygons, int32 (Q, 3), in the order of `mask_ids` and for each object in their original order; and their
    vertices one after the other, (W, d). With the box numbers of `random_bbox_crop(output_bbox_indices=True)` as `mask_ids`,
    polygons correspond to boxes; an object without polygons cannot be chosen. All polygons of an object are returned (DALI
    2.4.0 loses all but the last).

    Raises RuntimeError for other types and shapes, for a number in `mask_ids` that is repeated or that no polygon has, and for
    a chosen polygon with vertices outside `vertices`.

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


# A batch: the shapes follow from the data.
@select_masks.batch
def _(call, mask_ids, polygons, vertices, *, reindex_masks):
    columns = polygons.shapes[:, 1]
    if (columns != 3).any():
        i = int((columns != 3).argmax())
        raise bad_sample(i, f"polygons: expected shape (P, 3), got {tuple(polygons.shapes[i].tolist())}")
    columns = vertices.shapes[:, 1]
    if (columns != columns[0]).any():
        i = int((columns != columns[0]).argmax())
        raise bad_sample(i, f"vertices: expected {columns[0]} coordinates as in sample 0, got {columns[i]}")
    width = int(columns[0])
    id_counts, polygon_counts, vertex_counts = mask_ids.shapes[:, 0], polygons.shapes[:, 0], vertices.shapes[:, 0]
    # (numbers, first elements, counts) of each sample, because samples may not be adjacent.
    ids, rows = (*mask_ids.elements(), id_counts), (*polygons.elements(), polygon_counts)
    points, starts = vertices.elements()
    most = int(polygon_counts.sum())
    picked, places = np.empty((most, 3), np.int32), np.empty(most, np.int64)
    counts, wrong = np.empty((2, call.n), np.int64), np.empty(4, np.int64)
    if not choose(*ids, *rows, starts, vertex_counts, width, bool(reindex_masks), picked, places, counts, wrong):
        raise _error(wrong.tolist(), vertex_counts)
    polygon_total, vertex_total = counts.sum(axis=1).tolist()
    picked = picked[:polygon_total]
    chosen = host_empty((vertex_total, width), points.dtype)
    if chosen.size:
        gather(picked, places, points.view(np.uint8), chosen.reshape(-1).view(np.uint8), points.itemsize, width)
    return divided(picked, counts[0]), divided(chosen, counts[1])


def _error(wrong: list[int], vertex_counts: np.ndarray) -> Exception:
    fault, i, *numbers = wrong
    if fault == _OUTSIDE:
        start, end = numbers
        return bad_sample(i, f"polygons: expected vertices within 0..{vertex_counts[i]}, got {start}..{end}")
    expected = "once, got it twice" if fault == _TWICE else "to be the number of a polygon's object, which it is not"
    return bad_sample(i, f"mask_ids: expected {numbers[0]} {expected}")


@kernel
def choose(
    ids, id_starts, id_counts, polygons, polygon_starts, polygon_counts, vertex_starts, vertex_counts, width, reindex, picked,
    places, counts, wrong,
):  # fmt: skip
    """Writes the chosen polygons of all samples, (number, first vertex, vertex after the last) of the output, and the places of
    their vertices in the input. `counts` receives the numbers of polygons and vertices of each sample. Returns False for a bad
    sample, with the fault, the sample and numbers in `wrong`.

    The numbers of objects are in a hash table for each sample, and the polygons sorted by counting those of each object.
    """
    most_ids, most_polygons = 0, 0
    for s in range(id_counts.size):
        most_ids, most_polygons = max(most_ids, id_counts[s]), max(most_polygons, polygon_counts[s])
    table, ranks, ends = (
        empty(4 * most_ids + 1, np.int64),
        empty(most_polygons, np.int64),
        empty(most_ids + 1, np.int64),
    )
    at = 0
    for s in range(id_counts.size):
        wanted, available, id_start, row_start = id_counts[s], polygon_counts[s], id_starts[s], polygon_starts[s]
        mask = 1
        while mask < 2 * wanted:
            mask *= 2
        mask -= 1
        table[: mask + 1] = -1
        ends[: wanted + 1] = 0
        for i in range(wanted):
            number = ids[id_start + i]
            k = _slot(table, mask, ids, id_start, number)
            if table[k] >= 0:
                wrong[0], wrong[1], wrong[2] = _TWICE, s, number
                return False
            table[k] = i
        for j in range(available):
            rank = table[_slot(table, mask, ids, id_start, polygons[row_start + 3 * j])]
            ranks[j] = rank
            if rank >= 0:
                ends[rank + 1] += 1
        for i in range(wanted):
            if ends[i + 1] == 0:
                wrong[0], wrong[1], wrong[2] = _WITHOUT, s, ids[id_start + i]
                return False
            ends[i + 1] += ends[i]
        for j in range(available):
            rank = ranks[j]
            if rank >= 0:
                place = at + ends[rank]
                ends[rank] += 1
                places[place] = row_start + 3 * j
                picked[place, 0] = rank if reindex else ids[id_start + rank]
        total = 0
        for place in range(at, at + ends[wanted]):
            start, end = np.int64(polygons[places[place] + 1]), np.int64(polygons[places[place] + 2])
            if start < 0 or end < start or end > vertex_counts[s]:
                wrong[0], wrong[1], wrong[2], wrong[3] = _OUTSIDE, s, start, end
                return False
            places[place] = vertex_starts[s] + start * width
            picked[place, 1] = total
            total += end - start
            picked[place, 2] = total
        counts[0, s], counts[1, s] = ends[wanted], total
        at += ends[wanted]
    return True


choose.fallback()


@kernel
def _slot(table, mask, ids, start, number):
    """The place of `number` in the hash table, or the free place for it."""
    k = ((np.int64(number) * np.int64(2654435761)) >> 16) & mask
    while table[k] >= 0 and ids[start + table[k]] != number:
        k = (k + 1) & mask
    return k


@kernel
def gather(picked, places, points, out, itemsize, width):
    """Copies the vertices of the picked polygons one after the other, as bytes."""
    at = 0
    for k in range(len(picked)):
        start, size = places[k] * itemsize, np.int64(picked[k, 2] - picked[k, 1]) * width * itemsize
        source, target = points[start : start + size], out[at : at + size]
        for i in each(size):
            target[i] = source[i]
        at += size


select_masks.cuda(computed_on_host)
