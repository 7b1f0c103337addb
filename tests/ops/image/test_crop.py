"""`ndd.crop` beside DALI, and on the emulated GPU."""

import random

import numpy as np
import pytest
from cases import each_of
from compare import check_same, value
from number_samples import random_array
from selection import drawn, drawn_types, repeated

import ndd

REGISTRY_CASES = {
    "crop": each_of(
        {"crop": [6, 7]},
        {"crop": [6, 7], "crop_pos_x": 0.0, "crop_pos_y": 0.9},
        {"crop_w": 50, "crop_h": 60, "out_of_bounds_policy": "pad"},
        layouts=("HWC", "CHW", "FHWC", "DHWC"),
    ),
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
EXTENTS = {"F": 3, "D": 4, "H": 9, "W": 9, "C": 4}


def random_call(pick, rng):
    """(call, note): a crop with random arguments, as a function of the module."""
    layout = pick.choice(["HWC", "CHW", "DHWC", "CDHW", "FHWC", "FCHW", "CFHW", None])
    letters = layout or pick.choice(["HWC", "DHWC"])
    n = pick.choice([None, 1, 2, 3])
    base = {c: pick.randint(1, m) for c, m in EXTENTS.items()}
    kind = pick.choice(drawn_types(TYPES, 2, "crop"))
    samples = []
    for _ in range(n or 1):
        extents = dict(base)
        if pick.random() < 0.5:
            extents |= {"H": pick.randint(1, 9), "W": pick.randint(1, 9)}
        samples.append(random_array(rng, [extents[c] for c in letters], kind))

    def number(low, high):
        return pick.choice([pick.randint(int(low), int(high)), round(pick.uniform(low, high), pick.choice([1, 2, 5]))])

    arguments = {}
    way = pick.random()
    if way < 0.45:
        arguments["crop"] = [number(0, 10) for _ in range(pick.choice([2, 2, 2, 3]))]
    elif way < 0.8:
        arguments |= {"crop_h": number(0, 10), "crop_w": number(0, 10)}
        if pick.random() < 0.3:
            arguments["crop_d"] = number(0, 4)
    elif way < 0.85:
        arguments[pick.choice(["crop_h", "crop_w", "crop_d"])] = number(0, 5)
    elif way < 0.9:
        arguments |= {"crop": [2, 2], pick.choice(["crop_h", "crop_w", "crop_d"]): 2}
    for axis in "xyz":
        if pick.random() < 0.6:
            arguments[f"crop_pos_{axis}"] = pick.choice([0, 1, 0.5, round(pick.random(), 2), pick.random(), 0.25, 1.01])
    if pick.random() < 0.4:
        arguments["rounding"] = pick.choice(["round", "truncate", "nearest"])
    if pick.random() < 0.75:
        arguments["out_of_bounds_policy"] = pick.choice(["pad", "constant", "trim_to_shape", "error", "PAD", "zero"])
    if pick.random() < 0.3:
        arguments["fill_values"] = pick.choice([7, 300, -1.5])
    per_sample = {}
    for name in list(arguments):
        if n and name.startswith("crop") and pick.random() < 0.4:
            first = arguments.pop(name)
            rest = [
                [number(1, 9) for _ in first] if name == "crop" else number(0, 1) if "pos" in name else number(1, 9)
                for _ in range(n - 1)
            ]
            per_sample[name] = np.array([first, *rest], np.float32)
    dtype = (
        pick.choice(drawn_types(["uint8", "float16", "float32", "int32"], 2, "crop")) if pick.random() < 0.3 else None
    )

    def call(module):
        options = dict(arguments)
        options |= {name: module.batch(list(v)) for name, v in per_sample.items()}
        if dtype:
            options["dtype"] = getattr(module, dtype)
        return module.crop(value(module, samples, layout, n is not None), **options)

    return call, (layout, [s.shape for s in samples], kind, arguments, per_sample, dtype)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.drawn(1)
def test_random_arguments_as_dali(dali, seed):
    pick, rng = random.Random(seed), np.random.default_rng(seed)
    good = 0
    trials = repeated(120, 24)
    for _ in trials:
        call, note = random_call(pick, rng)
        good += check_same(dali, call, note=note)
    assert good * 120 > 25 * len(trials)


def test_one_fill_value_for_each_channel(dali):
    for layout, shape in (("HWC", (3, 2, 3)), ("CHW", (3, 3, 2)), ("FHWC", (2, 3, 2, 3))):
        image = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
        for fill in ([5, 6, 7], [1.9, 300, -1], [1, 2]):
            check_same(
                dali,
                lambda m, image=image, layout=layout, fill=fill: m.crop(
                    m.tensor(image, layout=layout), crop=(5, 4), out_of_bounds_policy="pad", fill_values=fill
                ),
                note=(layout, fill),
            )


def test_empty_images(dali):
    image = np.zeros((0, 5, 1), np.uint8)
    for arguments in (
        {},
        {"crop": (0, 2)},
        {"crop": (2, 2), "out_of_bounds_policy": "pad"},
        {"crop": (2, 2)},
    ):
        check_same(dali, lambda m, a=arguments: m.crop(m.tensor(image, layout="HWC"), **a), note=arguments)


def test_old_arguments():
    image = ndd.tensor(np.zeros((4, 4, 1), np.uint8))
    with pytest.warns(DeprecationWarning, match="old name of `dtype`"):
        assert ndd.crop(image, crop=(2, 2), output_dtype=ndd.float32).dtype == ndd.float32
    with pytest.raises(TypeError, match="output_dtype"):
        ndd.crop(image, output_dtype=ndd.float32, dtype=ndd.float32)
    with pytest.warns(DeprecationWarning, match="no effect"):
        ndd.crop(image, crop=(2, 2), image_type=0)


def test_five_axes():
    video = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5, 1)
    result = ndd.crop(ndd.tensor(video, layout="FDHWC"), crop=(2, 2, 2), crop_pos_x=0, crop_pos_y=1, crop_pos_z=1)
    np.testing.assert_array_equal(np.asarray(result), video[:, 1:, 2:, :2])


def test_a_window_outside_names_the_sample():
    images = ndd.batch([np.zeros((4, 4, 1), np.uint8), np.zeros((2, 4, 1), np.uint8)], layout="HWC")
    with (
        ndd.EvalMode.sync_cpu,
        pytest.raises(RuntimeError, match=r"crop: sample 1: the window at .* reaches outside"),
    ):
        ndd.crop(images, crop=(3, 3))


@pytest.mark.parametrize("dtype", [None, "uint8", "float16", "float32"])
@pytest.mark.drawn(1)
def test_gpu_as_cpu(emulated_gpu, dtype):
    rng, pick = np.random.default_rng(5), random.Random(5)
    kinds = drawn(("uint8", "float32", "int16", "float16"), 2, dtype)
    for kind in kinds:
        for layout, shape in (("HWC", (5, 6, 3)), ("CHW", (3, 5, 6)), ("FCHW", (2, 3, 5, 6))):
            samples = [random_array(rng, shape, kind) for _ in range(3)]
            arguments = {"crop": (pick.choice([3, 7]), 4), "crop_pos_x": 0.3, "out_of_bounds_policy": "pad"}
            arguments["fill_values"] = pick.choice([[1.5], [1, 2, 3]])
            if dtype:
                arguments["dtype"] = getattr(ndd, dtype)
            batch = ndd.batch(samples, layout=layout)
            on_gpu = ndd.crop(batch.gpu(), crop_pos_y=ndd.batch([0.0, 0.5, 1.0]), **arguments)
            on_cpu = ndd.crop(batch, crop_pos_y=ndd.batch([0.0, 0.5, 1.0]), **arguments)
            np.testing.assert_array_equal(on_gpu.cpu().torch().float(), on_cpu.torch().float())
    assert set(emulated_gpu.launches) == {"window"}
    assert len(emulated_gpu.launches) == 3 * len(kinds)


@pytest.mark.parametrize(
    "arguments",
    [
        {"out_of_bounds_policy": "wrap"}, {"rounding": "floor"}, {"dtype": "int32"}, {"crop_h": 2},
        {"crop": [2, 2], "crop_h": 2},
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["crop", "crop_mirror_normalize"])
def test_constants_are_checked_at_the_call(name, arguments):
    options = {k: getattr(ndd, v) if k == "dtype" else v for k, v in arguments.items()}
    image = ndd.tensor(np.zeros((4, 5, 3), np.uint8), layout="HWC")
    with ndd.EvalMode.deferred, pytest.raises(RuntimeError, match=f"{name}: "):
        getattr(ndd, name)(image, **options)


def test_a_fill_of_bfloat16_is_a_number(emulated_gpu):
    image = ndd.cast(ndd.tensor(np.ones((1, 1, 1), np.float32), layout="HWC"), dtype=ndd.bfloat16)
    for x in (image, image.gpu()):
        wide = ndd.crop(x, crop=[1, 3], out_of_bounds_policy="pad", fill_values=2.0)
        assert ndd.cast(wide, dtype=ndd.float32).cpu().torch().flatten().tolist() == [2, 1, 2]


def test_a_window_that_no_memory_holds():
    image = ndd.tensor(np.zeros((5, 6, 3), np.uint8), layout="HWC")
    with pytest.raises(RuntimeError, match=r"crop: expected a window of fewer than 2\*\*31 elements .* got 1e\+30"):
        ndd.crop(image, crop_w=5, crop_h=1e30, out_of_bounds_policy="pad").evaluate()
