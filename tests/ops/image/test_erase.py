"""`ndd.erase` and `ndd.paste` beside DALI, and on the emulated GPU."""

import random

import numpy as np
import pytest
from cases import each_of
from compare import check_same, value
from selection import drawn_types, repeated

import ndd

REGISTRY_CASES = {
    "erase": each_of({"anchor": [3.0, 2.0], "shape": [4.0, 5.0], "axis_names": "HW"}, layouts=("HWC",)),
}

TYPES = ["uint8", "int8", "uint16", "int16", "int32", "uint32", "int64", "uint64", "float16", "float32"]


def random_erase(pick, rng):
    layout = pick.choice(["HWC", "CHW", "FHWC", "HW", "DHWC"])
    kind, n = pick.choice(drawn_types(TYPES, 2, "erase")), pick.choice([None, 1, 2, 3])
    base = [pick.randint(1, 8) for _ in layout]
    samples = [rng.integers(1, 100, [b + pick.randint(0, 2) * (c in "HW") for b, c in zip(base, layout, strict=True)])
               .astype(kind) for _ in range(n or 1)]  # fmt: skip
    arguments, per_sample = {}, {}
    count = len(layout.replace("C", ""))
    way = pick.random()
    if way < 0.4:
        count = pick.randint(1, len(layout))
        arguments["axis_names"] = "".join(pick.sample(layout, count))
    elif way < 0.7:
        count = pick.randint(1, len(layout))
        arguments["axes"] = pick.sample(range(len(layout)), count)
    relative = pick.random() < 0.4
    if relative:
        arguments["normalized"] = True
    for name, low in (("anchor", -1), ("shape", 0)):
        regions = 2 if "regions" in per_sample else pick.choice([1, 2])
        rows = [
            [pick.uniform(low / 4, 0.8) if relative else pick.choice([pick.randint(low, 6), pick.uniform(low, 6)])
             for _ in range(count * regions)] for _ in range(n or 1)
        ]  # fmt: skip
        if n and pick.random() < 0.5:
            per_sample[name] = np.array(rows, np.float32)
        else:
            arguments[name] = rows[0]
    if pick.random() < 0.3:
        arguments["centered_anchor"] = True
    if pick.random() < 0.6:
        arguments["fill_value"] = pick.choice([7, 300, -1, 1.5])

    def call(module):
        options = dict(arguments)
        options |= {name: module.batch(list(v)) for name, v in per_sample.items()}
        return module.erase(value(module, samples, layout, n is not None), **options)

    return call, (layout, [s.shape for s in samples], kind, arguments, per_sample)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.drawn(1)
def test_erase_as_dali(dali, seed):
    pick, rng = random.Random(seed), np.random.default_rng(seed)
    good = 0
    trials = repeated(150, 26)
    for _ in trials:
        call, note = random_erase(pick, rng)
        good += check_same(dali, call, note=note)
    assert good * 150 > 40 * len(trials)


def image(m, kind=np.uint8, layout="HWC"):
    return m.tensor(np.arange(1, 25).astype(kind).reshape(2, 4, 3), layout=layout)


ERASES = [
    {}, {"anchor": [1, 2]}, {"anchor": [0, 0, 2], "shape": [1, 1, 1]},
    {"anchor": [1, 1], "shape": [1, 2], "fill_value": [7, 8, 9]}, {"anchor": [1, 1], "shape": [1, 2], "fill_value": [7, 8]},
    {"anchor": [0.3, 0.4], "shape": [1, 2], "normalized_anchor": True},
    {"anchor": [1, 0], "shape": [0.3, 0.6], "normalized_shape": True},
    {"anchor": [0.1, 0], "shape": [0.3, 0.6], "normalized": True, "normalized_anchor": False},
    {"anchor": [1], "shape": [2], "axes": [2], "fill_value": [7, 8, 9]},
    {"anchor": [1, 0], "shape": [1, 1], "axes": [2, 1], "fill_value": [7, 8, 9]},
    {"anchor": [1], "shape": [1], "axis_names": "H", "axes": [1]}, {"anchor": [1], "shape": [1], "axis_names": "Z"},
]  # fmt: skip


@pytest.mark.parametrize("arguments", ERASES)
def test_erase_cases_as_dali(dali, arguments):
    check_same(dali, lambda m: m.erase(image(m), **arguments), note=arguments)


@pytest.mark.parametrize("each", [False, True])
def test_erase_in_batches_of_one_shape(dali, each):
    """The same regions and values for all, or other ones for each sample."""
    samples = [np.arange(i, i + 60).astype(np.uint8).reshape(4, 5, 3) for i in range(40)]
    anchors = np.array([[i % 3, i % 4, 0, 0] if each else [1, 2, 0, 0] for i in range(40)], np.float32)
    fills = np.array([[i, 7, 9] if each else [5, 7, 9] for i in range(40)], np.float32)
    for fill in (fills, fills[:, :1]):

        def call(m, fill=fill):
            own = {"anchor": m.batch(list(anchors)), "fill_value": m.batch(list(fill))} if each else {
                "anchor": anchors[0].tolist(), "fill_value": fill[0].tolist()}  # fmt: skip
            return m.erase(m.batch(samples, layout="HWC"), shape=[2, 2, 1, 1], **own)

        assert check_same(dali, call)


def test_erase_regions_may_differ_in_number():
    batch = ndd.batch([np.ones((2, 2, 1), np.uint8), np.ones((1, 3, 1), np.uint8)], layout="HWC")
    result = ndd.erase(
        batch,
        anchor=ndd.batch([np.array([0.0, 0]), np.array([0.0, 1, 0, 2])]),
        shape=ndd.batch([np.array([1.0, 1]), np.array([1.0, 1, 1, 1])]),
    )
    assert [np.asarray(t)[..., 0].tolist() for t in result] == [[[0, 1], [1, 1]], [[1, 0, 0]]]


def test_erase_gpu_as_cpu(emulated_gpu):
    pick, rng = random.Random(9), np.random.default_rng(9)
    good = 0
    while good < 10:
        call, note = random_erase(pick, rng)
        gpu = type("Gpu", (), {"__getattr__": lambda self, name: getattr(ndd, name)})()
        gpu.tensor = lambda x, layout=None: ndd.tensor(x, layout=layout).gpu()
        gpu.batch = lambda x, layout=None: ndd.batch(x, layout=layout).gpu() if layout else ndd.batch(x)
        with ndd.EvalMode.sync_cpu:
            try:
                expected = call(ndd)
            except RuntimeError:
                continue
            result = call(gpu).cpu()
        good += 1
        batched = isinstance(result, ndd.Batch)
        for a, b in zip(result if batched else [result], expected if batched else [expected], strict=True):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b), err_msg=str(note))
    batch = ndd.batch([np.ones((2, 3, 3), np.float16)], layout="HWC")
    arguments = {"anchor": [0, 1], "shape": [1, 1], "fill_value": [1.5, 2, 3]}
    np.testing.assert_array_equal(
        ndd.erase(batch.gpu(), **arguments).cpu().torch(), ndd.erase(batch, **arguments).torch()
    )


PASTES = [
    {"ratio": 2, "fill_value": [100, 101, 102]}, {"ratio": 1, "fill_value": 9}, {"ratio": 1.49, "fill_value": [9]},
    {"ratio": 2.5, "fill_value": [1, 2, 3], "paste_x": 0.3, "paste_y": 0.7}, {"ratio": 1.75, "fill_value": [300, -1, 2]},
    {"ratio": 1, "fill_value": 1, "min_canvas_size": 5}, {"ratio": 3, "fill_value": 1, "min_canvas_size": 5.7},
    {"ratio": 2, "fill_value": 1, "paste_x": 1.5}, {"ratio": 2, "fill_value": 1, "paste_y": -0.1},
    {"ratio": 2, "fill_value": [1, 2]}, {"fill_value": 1}, {"ratio": 2}, {"ratio": 1.3, "fill_value": 4, "paste_x": 1},
    {"ratio": 3.3, "fill_value": 4, "paste_x": 0.99, "paste_y": 0.01},
]  # fmt: skip


@pytest.mark.parametrize("arguments", PASTES)
def test_paste_cases_as_dali(dali, arguments):
    check_same(dali, lambda m: m.paste(image(m), **arguments), note=arguments)


def test_paste_per_sample_as_dali(dali):
    samples = [np.arange(h * w * 3, dtype=np.uint8).reshape(h, w, 3) for h, w in ((2, 3), (5, 1), (7, 9))]
    for seed in range(20):
        rng = np.random.default_rng(seed)
        ratio, x, y = 1 + 3 * rng.random(3), rng.random(3), rng.random(3)

        def call(m, ratio=ratio, x=x, y=y):
            batch = [m.batch([np.float32(v) for v in values]) for values in (ratio, x, y)]
            return m.paste(
                m.batch(samples, layout="HWC"), ratio=batch[0], paste_x=batch[1], paste_y=batch[2], fill_value=3
            )

        check_same(dali, call, note=(ratio, x, y))


@pytest.mark.parametrize("layout", ["CHW", "WHC"])
def test_paste_refuses(dali, layout):
    x = np.ones((2, 2, 2)[: len(layout)], np.uint8)
    check_same(dali, lambda m: m.paste(m.tensor(x, layout=layout), ratio=2, fill_value=1))
    check_same(dali, lambda m: m.paste(image(m, np.float32), ratio=2, fill_value=1))
    with ndd.EvalMode.sync_cpu, pytest.raises(RuntimeError, match="`ratio`"):
        ndd.paste(image(ndd), ratio=0.5, fill_value=1)


def test_paste_gpu_as_cpu(emulated_gpu):
    for fill in (5, [1, 2, 3]):
        arguments = {"ratio": 2.2, "fill_value": fill, "paste_x": 0.2}
        result = ndd.paste(image(ndd).gpu(), **arguments).cpu()
        np.testing.assert_array_equal(np.asarray(result), np.asarray(ndd.paste(image(ndd), **arguments)))
