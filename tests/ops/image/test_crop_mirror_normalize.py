"""`ndd.crop_mirror_normalize` beside DALI, and on the emulated GPU."""

import random

import numpy as np
import pytest
import torch
from cases import F16, each_of
from compare import check_same, value
from number_samples import random_array
from selection import drawn, drawn_types

import ndd

REGISTRY_CASES = {
    "crop_mirror_normalize": each_of(
        {},
        {"mean": [0.3, 0.4, 0.5], "std": [0.2, 0.3, 0.4], "crop": [6, 7], "mirror": 1},
        {"dtype": F16, "output_layout": "HWC"},
        layouts=("HWC", "CHW", "FHWC"),
        dtypes=("uint8", "int16", "uint16", "int32", "float16", "float32"),
    ),
}

TYPES = ["uint8", "int16", "uint16", "int32", "float16", "float32"]
LAYOUTS = ["HWC", "CHW", "DHWC", "CDHW", "FHWC", "FCHW", "CFHW", None]


def random_call(pick, rng):
    """(call, note): random arguments, as a function of the module."""
    layout = pick.choice(LAYOUTS)
    letters = layout or pick.choice(["HWC", "DHWC"])
    n, kind = pick.choice([None, 1, 2, 3]), pick.choice([*drawn_types(TYPES, 2, "crop_mirror_normalize"), "uint8"])
    channels = pick.choice([1, 2, 3, 3, 3, 4, 5])
    base = {"F": pick.randint(1, 3), "D": pick.randint(1, 3), "H": pick.randint(1, 9), "W": pick.randint(1, 20)}
    base["C"] = channels
    samples = []
    for _ in range(n or 1):
        extents = dict(base)
        if pick.random() < 0.5:
            extents |= {"H": pick.randint(1, 9), "W": pick.randint(1, 20)}
        samples.append(random_array(rng, [extents[c] for c in letters], kind))
    order = "".join(pick.sample(letters, len(letters)))
    arguments = {"output_layout": pick.choice([order, letters, "", "C" + letters.replace("C", ""), "CHW"])}
    if pick.random() < 0.6:
        arguments["crop"] = [pick.randint(1, 9), pick.randint(1, 20)]
    if pick.random() < 0.7:
        arguments["out_of_bounds_policy"] = pick.choice(["pad", "trim_to_shape", "error"])
    # Under this policy DALI reads past the end of fill_values, mean or std if they have different numbers of elements.
    one_count = 1 if arguments.get("out_of_bounds_policy") == "pad" else None
    for name in ("mean", "std"):
        if pick.random() < 0.7:
            count = one_count or pick.choice([1, channels])
            arguments[name] = [round(pick.uniform(0.5, 100), 3) for _ in range(count)]
    if pick.random() < 0.5:
        arguments["mirror"] = pick.choice([0, 1, 2])
    if pick.random() < 0.3:
        arguments |= {"scale": 1.5, "shift": -3.25}
    arguments["pad_output"] = pick.random() < 0.3
    if pick.random() < 0.4:
        arguments["fill_values"] = pick.choice([7, 300, -1.5])
    per_sample = {}
    for name in ("mean", "std", "mirror", "crop"):
        if n and name in arguments and pick.random() < 0.4:
            first = arguments.pop(name)
            kind_of = np.int32 if name == "mirror" else np.float32
            per_sample[name] = np.array([pick.choice([first, np.asarray(first) + 1]) for _ in range(n)], kind_of)
    dtype = (
        pick.choice(drawn_types(["float32", "uint8", "float16", "int8", "int32"], 1, "crop_mirror_normalize"))
        if pick.random() < 0.5
        else None
    )

    def call(module):
        options = dict(arguments)
        options |= {name: module.batch(list(v)) for name, v in per_sample.items()}
        if dtype:
            options["dtype"] = getattr(module, dtype)
        return module.crop_mirror_normalize(value(module, samples, layout, n is not None), **options)

    return call, (layout, [s.shape for s in samples], kind, arguments, per_sample, dtype)


@pytest.mark.parametrize("seed", range(2))
def test_random_arguments_as_dali(dali, seed):
    pick, rng = random.Random(seed), np.random.default_rng(seed)
    good = 0
    for _ in range(60):
        call, note = random_call(pick, rng)
        good += check_same(dali, call, tolerance=2e-5, note=note)
    assert good > 15


IMAGE = np.arange(6, dtype=np.uint8).reshape(1, 2, 3)
MISUSES = {
    "two means": {"mean": [1, 2]},
    "four means": {"mean": [1, 2, 3, 4]},
    "other axes": {"output_layout": "HW"},
    "f64": {"dtype": "float64"},
    "i32": {"dtype": "int32"},
    "outside": {"crop": [1, 5]},
    "size": {"crop": 2},
    "policy": {"out_of_bounds_policy": "zero"},
    "two fills": {"crop": [1, 4], "out_of_bounds_policy": "pad", "fill_values": [5, 6]},
    "good": {"std": [1, 2, 4], "mirror": True},
    "zero std": {"std": 0},
    "neither mean nor std": {"mean": [], "std": []},
    "fill": {
        "fill_values": [5, 6, 7],
        "crop": [1, 4],
        "out_of_bounds_policy": "pad",
        "mean": [1, 2, 3],
        "std": [1, 2, 3],
    },
    "pad channel": {"pad_output": True, "fill_values": 5, "out_of_bounds_policy": "pad", "output_layout": "HWC"},
    "pad channel no policy": {"pad_output": True, "fill_values": 5, "shift": 3},
    "crop mirror pad": {"crop": [1, 3], "mirror": 1, "out_of_bounds_policy": "pad", "output_layout": "HWC"},
    "ties": {"std": 2, "dtype": "uint8"},
    "negative ties": {"std": -2, "dtype": "int8"},
}


@pytest.mark.parametrize("name", MISUSES)
@pytest.mark.drawn(3)
def test_cases_as_dali(dali, name):
    def call(module):
        options = dict(MISUSES[name])
        if "dtype" in options:
            options["dtype"] = getattr(module, options["dtype"])
        return module.crop_mirror_normalize(module.tensor(IMAGE, layout="HWC"), **options)

    check_same(dali, call, note=name)


@pytest.mark.parametrize("kind", ["int8", "uint32", "int64", "uint64", "float64", "bool"])
def test_refused_inputs_as_dali(dali, kind):
    check_same(dali, lambda m: m.crop_mirror_normalize(m.tensor(IMAGE.astype(kind), layout="HWC")), note=kind)


def test_mixed_numbers_of_channels():
    batch = ndd.batch([np.ones((1, 2, 3), np.uint8), np.ones((1, 2, 1), np.uint8)], layout="HWC")
    assert ndd.crop_mirror_normalize(batch, pad_output=True).shape == [(4, 1, 2), (1, 1, 2)]
    with ndd.EvalMode.sync_cpu, pytest.raises(RuntimeError, match="sample 1: `mean`: expected 1 number or 1"):
        ndd.crop_mirror_normalize(batch, mean=[1, 2, 3])


@pytest.mark.parametrize("empty", ["mean", "std"])
def test_one_empty_list_is_an_error(empty):
    """DALI 2.4.0 divides by its length, and the process ends."""
    with ndd.EvalMode.sync_cpu, pytest.raises(RuntimeError, match=f"`{empty}`: expected 1 number or 3, .* got 0"):
        ndd.crop_mirror_normalize(ndd.tensor(IMAGE, layout="HWC"), **{empty: []})


def test_the_error_names_a_layout_that_fits():
    with pytest.raises(RuntimeError, match='output_layout="FCHW"'):
        ndd.crop_mirror_normalize(ndd.tensor(np.zeros((2, 3, 4, 1), np.uint8), layout="FHWC"))


@pytest.mark.parametrize("seed", range(3))
def test_gpu_as_cpu(emulated_gpu, seed):
    pick, rng = random.Random(seed), np.random.default_rng(seed)
    good = 0
    while good < 5:
        call, note = random_call(pick, rng)

        def on_gpu(module, call=call):
            class Gpu:
                def __getattr__(self, name):
                    return getattr(ndd, name)

                def batch(self, data, layout=None):
                    return ndd.batch(data, layout=layout).gpu() if layout else ndd.batch(data)

                def tensor(self, data, layout=None):
                    return ndd.tensor(data, layout=layout).gpu()

            return call(Gpu())

        with ndd.EvalMode.sync_cpu:
            try:
                expected = call(ndd)
            except RuntimeError:
                continue
            result = on_gpu(ndd).cpu()
        good += 1
        for a, b in zip(list(result), list(expected), strict=True):
            a, b = np.asarray(a).astype(np.float64), np.asarray(b).astype(np.float64)
            np.testing.assert_allclose(
                a, b, rtol=1e-3 if "float16" in str(note) else 1e-6, atol=1e-3, err_msg=str(note)
            )


@pytest.mark.parametrize("kind", drawn(("uint8", "int16", "float16", "float32"), 1, "bfloat16"))
@pytest.mark.parametrize("output_layout", drawn(("CHW", "HWC"), 1, "bfloat16"))
def test_bfloat16_is_float32_rounded(emulated_gpu, kind, output_layout):
    """Ragged, mirrored, padded, on both devices: what torch makes of the float32 result; also behind a resize."""
    rng = np.random.default_rng(3)
    images = ndd.batch(
        [rng.integers(0, 250, (h, w, 3)).astype(kind) for h, w in ((5, 7), (9, 4), (1, 1))], layout="HWC"
    )
    more = {"mean": [100.3, 90.1, 80.7], "std": [57.3, 58.1, 59.9], "crop": [6, 6], "mirror": ndd.batch([0, 1, 1])}
    more |= {
        "out_of_bounds_policy": "pad",
        "fill_values": [1.3, 2.7, 3.1],
        "pad_output": True,
        "output_layout": output_layout,
    }
    expected = ndd.crop_mirror_normalize(images, **more).torch().to(torch.bfloat16)
    for source in (images, images.gpu()):
        result = ndd.crop_mirror_normalize(source, dtype=ndd.bfloat16, **more).cpu().torch()
        assert result.dtype == torch.bfloat16
        assert torch.equal(result, expected)
        if kind == "float16":
            continue  # resize does not take it
        resized = ndd.crop_mirror_normalize(ndd.resize(source, size=[6, 6]), mean=7, std=3, dtype=ndd.bfloat16)
        whole = ndd.crop_mirror_normalize(ndd.resize(source, size=[6, 6]), mean=7, std=3).cpu().torch()
        assert torch.equal(resized.cpu().torch(), whole.to(torch.bfloat16))
    values = np.array([[[np.nan], [np.inf], [-np.inf], [3.4e38], [1e-40]]], np.float32)
    result = ndd.crop_mirror_normalize(ndd.tensor(values, layout="HWC"), dtype=torch.bfloat16).torch().float().ravel()
    assert result[0].isnan()
    assert torch.equal(result[1:], torch.from_numpy(values).bfloat16().float().ravel()[1:])


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "uint8"])
@pytest.mark.drawn(1)
def test_gpu_pixels_of_all_channels(emulated_gpu, dtype):
    """Widths beside the four pixels of a thread, channels that lie together, mirrored, padded and not."""
    for channels, padded in ((3, False), (3, True), (4, False), (1, False), (2, False)):
        batch = ndd.batch(
            [np.arange(2 * w * channels, dtype=np.uint8).reshape(2, w, channels) for w in (1, 4, 7, 13)], layout="HWC"
        )
        for crop in (None, [3, 6]):
            arguments = {"output_layout": "HWC", "pad_output": padded, "mirror": ndd.batch([0, 1, 0, 1]), "crop": crop}
            arguments |= {"out_of_bounds_policy": "pad", "fill_values": 5, "dtype": getattr(ndd, dtype), "mean": 3}
            on_cpu = ndd.crop_mirror_normalize(batch, **arguments)
            on_gpu = ndd.crop_mirror_normalize(batch.gpu(), **arguments).cpu()
            for a, b in zip(on_gpu, on_cpu, strict=True):
                assert torch.equal(a.torch(), b.torch()), (channels, padded, crop)
