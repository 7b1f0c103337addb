"""`ndd.multi_paste` beside DALI, and on the emulated GPU."""

import random

import numpy as np
import pytest
from cases import each_of
from compare import arrays_of, assert_same_values, check_same
from selection import drawn_types, repeated

import ndd

REGISTRY_CASES = {
    "multi_paste": each_of({"in_ids": [0], "output_size": [50, 60]}, layouts=("HWC",), dtypes=("uint8",), oracle=False),
}


def random_call(pick, rng, high=3):
    n, by_ids = pick.randint(1, 3), pick.random() < 0.5
    count, channels = 1 if by_ids else pick.randint(1, 3), pick.choice([1, 3])
    kind = pick.choice(drawn_types(["uint8", "int16", "int32", "float32"], 2, "multi_paste"))
    same = pick.random() < 0.3
    first = (pick.randint(3, 6), pick.randint(3, 6))

    def image():
        size = first if same else (pick.randint(3, 6), pick.randint(3, 6))
        return (rng.random((*size, channels)) * 300 - 20).astype(kind)

    inputs = [[image() for _ in range(n)] for _ in range(count)]
    arguments, per_sample = {}, {}
    if not same or pick.random() < 0.5:
        arguments["output_size"] = [pick.randint(6, 12), pick.randint(6, 12)]
    regions = [count] * n
    if by_ids:
        regions = [pick.randint(1, 3) for _ in range(n)]
        per_sample["in_ids"] = [np.array([pick.randrange(n) for _ in range(r)], np.int32) for r in regions]
    for name, top, share in (("in_anchors", 2, 0.5), ("shapes", high, 0.5), ("out_anchors", high + 1, 0.3)):
        form = pick.choice(["default", "default", "pixels", "shares"])
        if form == "pixels":
            per_sample[name] = [rng.integers(0, top, (r, 2)).astype(np.int32) for r in regions]
        elif form == "shares":
            per_sample[f"{name}_rel"] = [rng.random((r, 2), np.float32) * share for r in regions]
    dtype = pick.choice([None, *drawn_types(["uint8", "int16", "float32", "int64"], 2, "multi_paste")])

    def call(module, place=lambda x: x):
        kind = {"dtype": getattr(module, dtype)} if dtype else {}
        options = {**arguments, **kind, **{name: module.batch(v) for name, v in per_sample.items()}}
        return module.multi_paste(*[place(module.batch(x, layout="HWC")) for x in inputs], **options)

    return call, ([[x.shape for x in row] for row in inputs], kind, arguments, per_sample, dtype)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.drawn(1)
def test_random_arguments_as_dali(dali, seed):
    pick, rng = random.Random(seed), np.random.default_rng(seed)
    good = 0
    trials = repeated(80, 26)
    for _ in trials:
        call, note = random_call(pick, rng)
        good += check_same(dali, call, note=note)
    assert good * 80 > 15 * len(trials)


def images(m):
    return m.batch([np.full((1, 2, 1), k, np.uint8) for k in (1, 2)], layout="HWC")


MISUSES = [
    lambda m: m.multi_paste(images(m), in_ids=[2]),
    lambda m: m.multi_paste(images(m), in_ids=[-1]),
    lambda m: m.multi_paste(images(m), images(m), in_ids=[0]),
    lambda m: m.multi_paste(images(m), in_ids=[0]),
    lambda m: m.multi_paste(images(m)),
    lambda m: m.multi_paste(images(m), output_size=[1, 1]),
    lambda m: m.multi_paste(images(m), out_anchors=m.tensor(np.array([[0, 0], [1, 1]], np.int32))),
    lambda m: m.multi_paste(m.tensor(np.ones((1, 2, 2), np.uint8), layout="CHW")),
    lambda m: m.multi_paste(m.tensor(np.ones((1, 2, 2), np.float16), layout="HWC")),
    lambda m: m.multi_paste(images(m), m.batch([np.ones((1, 2, 3), np.uint8)] * 2, layout="HWC")),
    lambda m: m.multi_paste(images(m), m.batch([np.ones((1, 2, 1), np.float32)] * 2, layout="HWC")),
]


@pytest.mark.parametrize("number", range(len(MISUSES)))
def test_misuse_as_dali(dali, number):
    check_same(dali, MISUSES[number])


def test_video_takes_an_anchor_for_each_frame():
    video = ndd.tensor(np.ones((2, 1, 1, 1), np.uint8), layout="FHWC")
    anchors = ndd.per_frame(ndd.tensor(np.array([[[0, 0]], [[1, 1]]], np.int32)))
    result = ndd.multi_paste(video, output_size=[2, 2], out_anchors=anchors)
    assert np.asarray(result)[..., 0].tolist() == [[[1, 0], [0, 0]], [[0, 0], [0, 1]]]


def test_gpu_as_cpu(emulated_gpu):
    pick, rng = random.Random(4), np.random.default_rng(4)
    good = 0
    while good < 8:
        call, _ = random_call(pick, rng, high=1)
        with ndd.EvalMode.sync_cpu:
            try:
                expected = call(ndd)
            except RuntimeError:
                continue
            result = call(ndd, lambda x: x.gpu()).cpu()
        good += 1
        assert_same_values(arrays_of(result), arrays_of(expected), 0)
