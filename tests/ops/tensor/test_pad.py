"""`ndd.pad` beside DALI, and on the emulated GPU."""

import random

import numpy as np
import pytest
from cases import each_of
from compare import check_same, value
from selection import drawn_types, repeated

import ndd

REGISTRY_CASES = {
    "pad": each_of({}, {"fill_value": 3, "shape": [60, 61, 3]}, {"axes": [0], "align": [16]}, layouts=("HWC", "CHW")),
}

TYPES = ["uint8", "int8", "uint16", "int16", "int32", "uint32", "int64", "uint64", "float16", "float32", "bool"]


def random_call(pick, rng):
    layout = pick.choice(["HWC", "FHWC", None, "HW", "W", "ABC"])
    ndim = len(layout) if layout else pick.choice([1, 2, 3, 4, 5])
    kind, n = pick.choice(drawn_types(TYPES, 2, "pad")), pick.choice([None, 1, 2, 3])
    base = [pick.randint(0 if pick.random() < 0.1 else 1, 6) for _ in range(ndim)]
    samples = [
        rng.integers(0, 256, [b if pick.random() < 0.5 else pick.randint(1, 8) for b in base]).astype(kind)
        for _ in range(n or 1)
    ]
    arguments, per_sample = {}, {}
    count, way = pick.randint(1, ndim), pick.random()
    if layout and way < 0.3:
        arguments["axis_names"] = "".join(pick.sample(layout, count))
    elif way < 0.7:
        arguments["axes"] = [a - (ndim if pick.random() < 0.2 else 0) for a in pick.sample(range(ndim), count)]
    else:
        count = ndim
    for name, low, high in (("shape", -1, 9), ("align", 1 if pick.random() < 0.95 else 0, 5)):
        if pick.random() < 0.5:
            rows = [[pick.randint(low, high) for _ in range(count)] for _ in range(n or 1)]
            if n and pick.random() < 0.4:
                per_sample[name] = np.array(rows, np.int32)
            else:
                arguments[name] = rows[0]
    if pick.random() < 0.6:
        fills = [pick.choice([7, 300, -1, 1.5, -2.7]) for _ in range(n or 1)]
        if n and pick.random() < 0.4:
            per_sample["fill_value"] = np.array(fills, np.float32)
        else:
            arguments["fill_value"] = fills[0]

    def call(module):
        options = dict(arguments)
        options |= {name: module.batch(list(v)) for name, v in per_sample.items()}
        return module.pad(value(module, samples, layout, n is not None), **options)

    return call, (layout, [s.shape for s in samples], kind, arguments, per_sample)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.drawn(1)
def test_random_arguments_as_dali(dali, seed):
    pick, rng = random.Random(seed), np.random.default_rng(seed)
    for _ in repeated(150, 30):
        call, note = random_call(pick, rng)
        check_same(dali, call, note=note)


def test_beyond_dali():
    wide = ndd.pad(ndd.batch([np.ones(3), np.ones(1)]), fill_value=2.5)
    np.testing.assert_array_equal(wide.torch().numpy(), [[1, 1, 1], [1, 2.5, 2.5]])
    assert ndd.pad(ndd.tensor(np.ones((1,) * 6)), shape=[2] * 6).shape == (2,) * 6
    narrow = ndd.cast(ndd.batch([[1.0, 2.0], [3.0]]), dtype=ndd.bfloat16)
    assert narrow.torch(pad=True).float().tolist() == [[1, 2], [3, 0]]
    assert ndd.pad(narrow, fill_value=1.5).torch().float().tolist() == [[1, 2], [3, 1.5]]


@pytest.mark.parametrize(
    "arguments", [{"axes": [2]}, {"axes": [0, 0]}, {"axis_names": "Z"}, {"axis_names": "HH"}, {"align": 0}]
)
def test_misuse_as_dali(dali, arguments):
    check_same(dali, lambda m: m.pad(m.tensor(np.ones((2, 3), np.uint8), layout="HW"), **arguments), note=arguments)


@pytest.mark.parametrize("kind", ["uint8", "float16", "int64", "bool", "bfloat16"])
@pytest.mark.drawn(1)
def test_gpu_as_cpu(emulated_gpu, kind):
    samples = [np.arange(np.prod(s)).reshape(s) for s in ((2, 3, 1), (4, 1, 2), (1, 1, 1))]
    batch = ndd.cast(ndd.batch(samples), dtype=ndd.dtype(kind if kind == "bfloat16" else np.dtype(kind)))
    for arguments in ({"fill_value": ndd.batch([1.5, -1.0, 300.0])}, {"axes": [1], "align": 4}, {"shape": [5, 5, 5]}):
        on_cpu, on_gpu = ndd.pad(batch, **arguments), ndd.pad(batch.gpu(), **arguments)
        for a, b in zip(on_gpu.cpu(), on_cpu, strict=True):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
    assert emulated_gpu.launches[-3:] == ["window"] * 3


@pytest.mark.parametrize("given", [{"axes": []}, {"axis_names": ""}, {"shape": []}, {"align": []}])
def test_an_empty_list_counts_as_not_given(dali, given):
    def call(module):
        samples = [np.ones((2, 3), np.uint8), np.ones((4, 1), np.uint8)]
        return module.pad(module.batch(samples, layout="HW"), **given)

    assert check_same(dali, call)


@pytest.mark.parametrize(
    "dtype", [np.uint8, np.int16, np.float16, np.float32, np.int64, bool], ids=lambda d: d.__name__
)
@pytest.mark.parametrize("times", [1, 4])
def test_every_width_of_elements(dtype, times):
    """Rows and matrices of 1 to 8 bytes an element, one of them empty, one as large as the result; few, and several at once."""
    rng = np.random.default_rng(5)
    for shapes in (((3,), (17,), (0,)), ((3, 5), (2, 17), (9, 1), (9, 17), (0, 4), (4, 0))):
        arrays = [(rng.random(shape) * 100).astype(dtype) for shape in shapes] * times
        widest, fills = np.max(shapes, axis=0), np.arange(len(arrays)) + 7.9
        result = ndd.pad(ndd.batch(arrays), fill_value=ndd.batch(list(fills.astype(np.float32))))
        for array, out, fill in zip(arrays, result, fills, strict=True):
            expected = np.full(widest, np.float32(fill)).astype(dtype)
            expected[tuple(map(slice, array.shape))] = array
            np.testing.assert_array_equal(np.asarray(out), expected)
