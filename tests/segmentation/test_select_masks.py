"""segmentation.select_masks beside DALI; objects of several polygons; misuse."""

# ruff: noqa: B023  (every closure runs before the loop goes on)
from __future__ import annotations

import numpy as np
import pytest
from cases import each_of
from compare import check_same

import ndd

REGISTRY_INPUTS = {
    "mask ids": (lambda rng, i, dtype: np.array([3, 1][: 1 + i], np.int32), None),
    "polygons": (lambda rng, i, dtype: np.array([[0, 0, 3], [1, 3, 7], [3, 2, 6]], np.int32), None),
    "vertices": (lambda rng, i, dtype: rng.random((7 + i, 2)).astype(np.float32), None),
}
REGISTRY_CASES = {
    "segmentation.select_masks": each_of(
        {}, {"reindex_masks": True}, inputs=("mask ids", "polygons", "vertices"), dtypes=("int32",)
    ),
}


@pytest.mark.oracle
def test_as_dali(dali):
    """One polygon an object: of several DALI loses all but the last."""
    rng = np.random.default_rng(11)
    for i in range(30):
        ids, polygons, vertices = [], [], []
        for count in (0, 1, 4, 7):
            objects = rng.permutation(20)[:count]
            ranges = np.sort(rng.integers(0, 31, (count, 2)), axis=1)
            polygons.append(np.concatenate([objects[:, None], ranges], axis=1).astype(np.int32))
            ids.append(rng.permutation(objects)[: rng.integers(0, count + 1)].astype(np.int32))
            vertices.append(rng.random((30, 2 + i % 2)).astype((np.float32, np.float64, np.int16)[i % 3]))

        def call(m):
            arguments = [m.batch(v) for v in (ids, polygons, vertices)]
            return m.segmentation.select_masks(*arguments, reindex_masks=bool(i % 2))

        assert check_same(dali, call, note=i)


def test_all_polygons_of_an_object():
    polygons = np.int32([[5, 0, 3], [2, 3, 7], [5, 7, 10]])
    vertices = np.arange(20, dtype=np.float32).reshape(10, 2)
    result, points = ndd.segmentation.select_masks(np.int32([5, 2]), polygons, vertices, reindex_masks=True)
    assert np.asarray(result).tolist() == [[0, 0, 3], [0, 3, 6], [1, 6, 10]]
    assert (np.asarray(points)[:, 0] / 2).tolist() == [0, 1, 2, 7, 8, 9, 3, 4, 5, 6]


def test_as_a_plain_loop():
    """Numbers of any size and sign, in batches of uneven samples, some of them empty."""
    rng = np.random.default_rng(3)
    limits = np.iinfo(np.int32)
    known = np.unique(np.concatenate([rng.integers(limits.min, limits.max, 300), np.arange(-50, 50) << 17]))
    ids, polygons, vertices = [], [], []
    for count in (0, 1, 3, 60, 250):
        objects = rng.permutation(known)[:count].astype(np.int32)
        ranges = np.sort(rng.integers(0, 41, (2 * count, 2)), axis=1)
        polygons.append(np.int32(np.concatenate([rng.permutation(np.tile(objects, 2))[:, None], ranges], axis=1)))
        ids.append(rng.permutation(objects)[: (count + 1) // 2])
        vertices.append(rng.random((40, 3)))
    result = ndd.segmentation.select_masks(ndd.batch(ids), ndd.batch(polygons), ndd.batch(vertices))
    for i, points in enumerate(vertices):
        wanted, expected = [], [np.empty((0, 3))]
        for number in ids[i]:
            for _, start, end in polygons[i][polygons[i][:, 0] == number]:
                before = sum(map(len, expected))
                wanted.append([number, before, before + end - start])
                expected.append(points[start:end])
        np.testing.assert_array_equal(np.asarray(result[0].tensors[i]), np.reshape(wanted, (-1, 3)))
        np.testing.assert_array_equal(np.asarray(result[1].tensors[i]), np.concatenate(expected))


def test_misuse():
    ids, polygons, vertices = np.int32([1]), np.int32([[1, 0, 3]]), np.zeros((5, 2), np.float32)
    for arguments, said in (
        ((ids[None], polygons, vertices), "mask_ids: expected 1 axes"),
        ((ids.astype(np.int64), polygons, vertices), "mask_ids: expected int32"),
        ((ids, polygons.astype(np.int64), vertices), "polygons: expected int32"),
        ((ids, polygons[:, :2], vertices), "polygons: expected shape"),
        ((ids, polygons, vertices[:, 0]), "vertices: expected 2 axes"),
        ((np.int32([1, 1]), polygons, vertices), "expected 1 once"),
        ((np.int32([1, -7]), polygons, vertices), "expected -7 to be"),
        ((ids, polygons + np.int32([[0, 0, 9]]), vertices), r"expected vertices within 0\.\.5, got 0\.\.12"),
        ((ids, polygons - np.int32([[0, 1, 0]]), vertices), "got -1"),
        ((ids, polygons * np.int32([[1, 1, 0]]) + np.int32([[0, 2, 0]]), vertices), r"got 2\.\.0"),
    ):
        with pytest.raises(RuntimeError, match=f"select_masks: .*{said}"):
            ndd.segmentation.select_masks(*arguments)[0].evaluate()
