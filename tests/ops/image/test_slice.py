"""`ndd.slice` beside DALI, and on the emulated GPU."""

import random

import numpy as np
import pytest
from cases import Case, each_of
from compare import check_same, value
from number_samples import random_array
from selection import drawn_types, repeated

import ndd

REGISTRY_INPUTS = {
    "anchor": (lambda rng, i, dtype: np.array([0.1, 0.2], np.float32), None),
    "extent": (lambda rng, i, dtype: np.array([0.5, 0.6], np.float32), None),
}
REGISTRY_CASES = {
    "slice": [
        *each_of(
            {"start": [1, 2], "shape": [5, 6], "axis_names": "HW"},
            {"rel_start": [0.1, 0.2], "rel_end": [0.6, 0.7], "axis_names": "HW"},
            layouts=("HWC", "CHW", "FHWC"),
        ),
        Case({}, inputs=("plane", "anchor", "extent")),
    ],
}

TYPES = [
    "uint8",
    "int8",
    "uint16",
    "int16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float16",
    "float32",
    "float64",
]


def random_call(pick, rng):
    """(call, note): a slice with random arguments, as a function of the module."""
    layout = pick.choice(["HWC", "CHW", "DHWC", "FHWC", None, "HW", "W", "ABC"])
    ndim = len(layout) if layout else pick.choice([1, 2, 3, 4])
    n, kind = pick.choice([None, 1, 2, 3]), pick.choice(drawn_types(TYPES, 2, "slice"))
    base = [pick.randint(1, 12) for _ in range(ndim)]
    samples = [
        random_array(rng, [b if pick.random() < 0.7 else pick.randint(1, 12) for b in base], kind)
        for _ in range(n or 1)
    ]
    arguments, per_sample = {}, {}
    count = pick.randint(1, min(ndim, 3))
    way = pick.random()
    if layout and way < 0.4:
        arguments["axis_names"] = "".join(pick.sample(layout, count))
    elif way < 0.85:
        arguments["axes"] = [a - (ndim if pick.random() < 0.2 else 0) for a in pick.sample(range(ndim), count)]
    else:
        count = 2
    if pick.random() < 0.75:
        arguments["out_of_bounds_policy"] = pick.choice(["pad", "constant", "trim_to_shape", "error"])
    dtype = (
        pick.choice(drawn_types(["uint8", "float16", "float32", "int32"], 2, "slice")) if pick.random() < 0.2 else None
    )
    if pick.random() < 0.3:
        arguments["fill_values"] = pick.choice([7, 300, -1.5] if dtype else [7, 300, -1.5, [3, 4, 5]])

    def whole(low, high):
        return [pick.randint(low, high) for _ in range(count)]

    def fractions(low, high):
        return [pick.choice([round(pick.uniform(low, high), 2), 0.5, 0.25, 0.35, 0.45, 0, 1]) for _ in range(count)]

    positional = None
    if pick.random() < 0.4:
        form = pick.choice(["int32", "int64", "float32", "absolute"])
        if form == "absolute":
            arguments |= {"normalized_anchor": False, "normalized_shape": pick.choice([True, False])}

        def numbers():
            if form.startswith("int"):
                return np.array(whole(0, 6), form)
            return np.array(fractions(0, 0.6), np.float32)

        each = n and pick.random() < 0.5
        positional = [[numbers() for _ in range(n)] if each else numbers() for _ in range(2)]
    else:
        makers = {
            "start": lambda: whole(-1, 10), "rel_start": lambda: fractions(-0.2, 1.1), "end": lambda: whole(-1, 10),
            "rel_end": lambda: fractions(-0.2, 1.1), "shape": lambda: whole(0, 7),
            "rel_shape": lambda: fractions(0, 0.7),
        }  # fmt: skip
        for names in (("start", "rel_start", None), ("end", "rel_end", "shape", "rel_shape", None)):
            name = pick.choice(names)
            if name and n and pick.random() < 0.4:
                kind_of = np.float32 if name.startswith("rel") else np.int32
                per_sample[name] = np.array([makers[name]() for _ in range(n)], kind_of)
            elif name:
                arguments[name] = makers[name]()

    def call(module):
        options = dict(arguments)
        options |= {name: module.batch(list(v)) for name, v in per_sample.items()}
        if dtype:
            options["dtype"] = getattr(module, dtype)
        window = [module.batch(v) if isinstance(v, list) else module.tensor(v) for v in positional or []]
        return module.slice(value(module, samples, layout, n is not None), *window, **options)

    return call, (layout, [s.shape for s in samples], kind, arguments, per_sample, positional, dtype)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.drawn(1)
def test_random_arguments_as_dali(dali, seed):
    pick, rng = random.Random(seed), np.random.default_rng(seed)
    good = 0
    trials = repeated(150, 30)
    for _ in trials:
        call, note = random_call(pick, rng)
        good += check_same(dali, call, note=note)
    assert good * 150 > 40 * len(trials)


IMAGE = np.arange(20, dtype=np.uint8).reshape(4, 5, 1)
MISUSES = {
    "anchor alone": lambda m, x: m.slice(x, [1, 0]),
    "anchor and shape=": lambda m, x: m.slice(x, [1, 0], shape=[2, 3]),
    "types differ": lambda m, x: m.slice(x, [1, 0], [0.5, 0.5]),
    "float64 anchor": lambda m, x: m.slice(x, np.array([0.5, 0]), np.array([0.5, 0.5])),
    "uint8 anchor": lambda m, x: m.slice(x, np.array([1, 0], np.uint8), np.array([1, 1], np.uint8)),
    "one number for two axes": lambda m, x: m.slice(x, [1], [2]),
    "a name for all axes": lambda m, x: m.slice(x, start=[1], shape=[2]),
    "three numbers for two axes": lambda m, x: m.slice(x, [1, 0, 0], [2, 3, 1]),
    "axes twice": lambda m, x: m.slice(x, [0, 0], [1, 1], axes=[0, 0]),
    "axes and names": lambda m, x: m.slice(x, [1, 0], [2, 3], axes=[0, 1], axis_names="WH"),
    "no such axis": lambda m, x: m.slice(x, [0], [1], axes=[3]),
    "no such letter": lambda m, x: m.slice(x, [0], [1], axis_names="Z"),
    "nothing": lambda m, x: m.slice(x),
    "two starts": lambda m, x: m.slice(x, start=[1, 1], rel_start=[0.3, 0.3]),
    "a name twice": lambda m, x: m.slice(x, start=[1, 1], axis_names="HH"),
    "two numbers for all axes": lambda m, x: m.slice(x, start=[1, 1], axis_names=""),
    "two ends": lambda m, x: m.slice(x, end=[1, 1], shape=[1, 1]),
    "end before start": lambda m, x: m.slice(x, start=[3, 1], end=[1, 3]),
    "negative size": lambda m, x: m.slice(x, start=[1, 1], shape=[-1, 2]),
    "bool": lambda m, x: m.slice(m.tensor(np.ones(4, bool)), start=[1], axes=[0]),
    "no W in one axis": lambda m, x: m.slice(m.tensor(np.ones(4)), start=[1]),
    "scalar": lambda m, x: m.slice(m.tensor(3), start=[]),
    "fill of wrong length": lambda m, x: m.slice(x, start=[-1, 0], out_of_bounds_policy="pad", fill_values=[1, 2]),
    "float start": lambda m, x: m.slice(x, start=[1.5, 1]),
    "float start in a tensor": lambda m, x: m.slice(x, start=m.tensor([1.5, 1])),
}


@pytest.mark.read_by_dali  # else it asks for as many places as axes
@pytest.mark.parametrize("name", MISUSES)
def test_misuse_as_dali(dali, name):
    check_same(dali, lambda m: MISUSES[name](m, m.tensor(IMAGE, layout="HWC")), note=name)


@pytest.mark.parametrize("axes", [{"axes": []}, {"axis_names": ""}])
def test_an_empty_list_means_all_axes(dali, axes):
    assert check_same(dali, lambda m: m.slice(m.tensor(IMAGE, layout="HWC"), start=[1, 2, 0], **axes))


@pytest.mark.oracle
@pytest.mark.parametrize("window", [{"start": [], "shape": [2, 3]}, {"rel_start": [], "rel_shape": [0.5, 0.5]}])
def test_an_empty_list_for_a_place_is_as_none_at_all(dali, window):
    image = np.arange(6 * 7 * 3, dtype=np.uint8).reshape(6, 7, 3)
    result, expected = (np.asarray(p.slice(p.tensor(image, layout="HWC"), **window)) for p in (ndd, dali))
    np.testing.assert_array_equal(result, expected)


def test_gpu_as_cpu(emulated_gpu):
    rng = np.random.default_rng(5)
    for kind in ("uint8", "float16", "int64"):
        batch = ndd.batch([random_array(rng, (h, 5, 4, 3, 2), kind) for h in (3, 1, 6)], layout="ABCDE")
        for arguments in (
            {
                "axes": [0, 2, 4],
                "rel_start": [0.3, -0.2, 0.0],
                "rel_shape": [0.5, 1.0, 2.0],
                "fill_values": 9,
            },
            {"axes": [1, 3], "start": ndd.batch([[0, 1], [1, 0], [2, 2]]), "shape": [7, 1]},
        ):
            on_cpu = ndd.slice(batch, out_of_bounds_policy="pad", **arguments)
            on_gpu = ndd.slice(batch.gpu(), out_of_bounds_policy="pad", **arguments).cpu()
            for a, b in zip(on_gpu, on_cpu, strict=True):
                np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
    by_input = ndd.slice(batch.gpu(), ndd.batch([[0], [0], [1]]).gpu(), ndd.batch([[1], [1], [2]]), axes=[0])
    assert by_input.shape == [(1, 5, 4, 3, 2), (1, 5, 4, 3, 2), (2, 5, 4, 3, 2)]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("slice", {"start": []}),
        ("slice", {"start": [2, 1], "shape": [9, 9], "fill_values": [], "out_of_bounds_policy": "pad"}),
        ("crop", {"crop": [9, 9], "fill_values": [], "out_of_bounds_policy": "pad"}),
        ("crop_mirror_normalize", {"crop": [9, 9], "fill_values": [], "out_of_bounds_policy": "pad"}),
    ],
)
def test_an_empty_list_means_the_default_as_in_dali(dali, name, arguments):
    image = np.arange(5 * 6 * 3, dtype=np.uint8).reshape(5, 6, 3)
    assert check_same(dali, lambda m: getattr(m, name)(m.batch([image], layout="HWC"), **arguments), note=arguments)


@pytest.mark.parametrize("far", [float("nan"), float("inf"), 1e30, -1e30])
@pytest.mark.parametrize("name", ["rel_end", "rel_shape", "rel_start", "anchor"])
def test_places_that_no_window_has(far, name):
    image = ndd.tensor(IMAGE, layout="HWC")
    inputs, named = ((np.float32([far]), np.float32([1])), {}) if name == "anchor" else ((), {name: [far]})
    with ndd.EvalMode.sync_cpu, pytest.raises(RuntimeError, match=r"slice: sample 0: (expected places|`rel_shape`)"):
        ndd.slice(image, *inputs, axes=[0], out_of_bounds_policy="pad", **named)
