"""sequence_rearrange, element_extract and per_frame beside DALI, and on the emulated GPU."""

import numpy as np
import pytest
from cases import each_of
from compare import check_same
from number_samples import random_array

import ndd

REGISTRY_CASES = {
    "sequence_rearrange": each_of({"new_order": [2, 0, 1, 1]}, inputs=("video",)),
    "element_extract": each_of({"element_map": [0, 2]}, inputs=("video",)),
    "per_frame": each_of({}, inputs=("cube",)),
}


def v(m, layout="FX"):
    return m.tensor(np.arange(6, dtype=np.uint8).reshape(3, 2), layout=layout)


CASES = {
    f"{name} {number}": case
    for name, cases in {
        "sequence_rearrange": [
            *[lambda m, o=o: m.sequence_rearrange(v(m), new_order=o) for o in ([2, 0, 0], [3], [-1], [1])],
            *[lambda m, x=x: m.sequence_rearrange(v(m, x), new_order=[1]) for x in (None, "HW")],
            lambda m: m.sequence_rearrange(m.tensor(np.ones(3), layout="F"), new_order=[1]),
            lambda m: m.sequence_rearrange(m.tensor(1), new_order=[0]),
            lambda m: m.sequence_rearrange(v(m)),
            lambda m: m.sequence_rearrange(
                m.batch([np.arange(6).reshape(3, 2), np.arange(8).reshape(4, 2)], layout="FX"),
                new_order=m.batch([np.array([1, 2], np.int32), np.array([3], np.int32)]),
            ),
        ],
        "element_extract": [
            *[lambda m, o=o: m.element_extract(v(m), element_map=o) for o in ([2, 0], 1, [1], [3], [-1], [])],
            *[lambda m, x=x: m.element_extract(v(m, x), element_map=[1]) for x in (None, "HW")],
            lambda m: m.element_extract(m.tensor(np.ones(3), layout="F"), element_map=[1]),
            lambda m: m.element_extract(m.tensor(np.ones((3, 2, 2, 1)), layout="FHWC"), element_map=[1]),
            lambda m: m.element_extract(m.batch([np.ones((3, 2)), np.ones((4, 1))], layout="FX"), element_map=[1, 2]),
        ],
        "per_frame": [
            *[lambda m, x=x: m.per_frame(v(m, x)) for x in (None, "FX", "XY")],
            lambda m: m.per_frame(v(m, "XY"), replace=True),
            lambda m: m.per_frame(m.tensor(1)),
            lambda m: m.per_frame(m.tensor([1, 2])),
        ],
    }.items()
    for number, case in enumerate(cases)
}


@pytest.mark.parametrize("name", CASES)
def test_cases_as_dali(dali, name):
    check_same(dali, CASES[name], note=name)


@pytest.mark.parametrize("kind", ["uint8", "int16", "float16", "float32", "float64", "int64", "bool"])
def test_rearranged_types(kind):
    x = random_array(np.random.default_rng(0), (4, 3, 2), kind)
    np.testing.assert_array_equal(np.asarray(ndd.sequence_rearrange(ndd.tensor(x), new_order=[3, 3, 0])), x[[3, 3, 0]])


def test_frames_are_views():
    x = np.zeros((2, 3, 4), np.uint8)
    result = ndd.element_extract(ndd.as_batch(x), element_map=[2])
    assert np.shares_memory(np.asarray(result.select(1)), x)


def test_on_gpu(emulated_gpu):
    samples = [np.arange(n * 2).reshape(n, 2) for n in (3, 4)]
    batch = ndd.batch(samples, layout="FX").gpu()
    result = ndd.sequence_rearrange(batch, new_order=ndd.batch([np.array([1, 2]), np.array([3])])).cpu()
    for got, x, order in zip(result, samples, ([1, 2], [3]), strict=True):
        np.testing.assert_array_equal(np.asarray(got), x[order])
    second, first = ndd.element_extract(batch, element_map=[1, 0])
    assert second.cpu().torch().tolist() == [[2, 3], [2, 3]]
    assert (first.layout, first.device) == ("X", ndd.Device("gpu:0"))
    assert ndd.per_frame(batch).layout == "FX"


@pytest.mark.parametrize("name", ["brightness", "hsv", "gaussian_blur", "laplacian", "equalize"])
def test_a_video_without_frames_keeps_its_size(dali, name):
    videos = [np.zeros((0, 4, 5, 3), np.uint8), np.full((2, 6, 7, 3), 9, np.uint8)]
    arguments = {"window_size": 3} if name == "gaussian_blur" else {}
    for batch in (videos, videos[:1]):
        assert check_same(dali, lambda m, b=batch: getattr(m, name)(m.batch(b, layout="FHWC"), **arguments))
