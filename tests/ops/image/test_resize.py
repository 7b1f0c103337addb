"""`ndd.resize` beside DALI, by hand-made examples, and on the emulated GPU."""

import random

import numpy as np
import pytest
from cases import each_of
from compare import arrays_of, assert_same_values, outcome
from resize_calls import Draw, given, interpolation
from selection import drawn, repeated

import ndd

REGISTRY_CASES = {
    "resize": each_of(
        {"size": [12, 15]},
        {"resize_shorter": 20, "save_attrs": True},
        {"resize_x": 13.3, "interp_type": 0},
        {"size": [40, 60], "interp_type": 2},
        layouts=("HWC", "CHW", "FHWC"),
        dtypes=("uint8", "int16", "uint16", "float32"),
    ),
}

LAYOUTS = ("HWC", "FHWC", "CHW", "FCHW", "CFHW", "DHWC", "FDHWC", "CDHW", "FCDHW", "CFDHW")
TYPES = ("uint8", "int16", "uint16", "float32")


def both(dali, samples, layout, arguments, name="resize"):
    """The outputs of ndd and of DALI, each a tuple of lists of arrays."""
    result = []
    for module in (ndd, dali):
        out = outcome(module, lambda m: getattr(m, name)(m.batch(samples, layout=layout), **given(m, arguments)))
        assert not isinstance(out, Exception), f"{module.__name__}: {out!r} for {arguments}"
        result.append(out if isinstance(out, tuple) else (out,))
    return result


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", drawn(TYPES, 1, "resize"))  # the next test has floats
@pytest.mark.drawn(2)
def test_random_arguments_as_dali(dali, layout, dtype):
    for seed in range(6):
        draw = Draw(100 * LAYOUTS.index(layout) + 10 * TYPES.index(dtype) + seed, layout, dtype, 1 + seed % 3)
        arguments = draw.size()
        with_region = draw.pick.random() < 0.4
        if with_region:
            arguments |= draw.region()
        arguments |= draw.filters()
        if draw.pick.random() < 0.3:
            arguments["dtype"] = "float32"
        if draw.pick.random() < 0.3:
            arguments["save_attrs"] = True
        ours, theirs = both(dali, draw.samples, layout, arguments)
        assert [o.layout for o in ours] == [o.layout for o in theirs]
        for a, b in zip(ours, theirs, strict=True):
            for x, y in zip(arrays_of(a), arrays_of(b), strict=True):
                # DALI rounds ties to even but for the last few elements of a row: much of a tiny image.
                assert_same_values([x], [y], relative=3e-5, off_by_one=0.03 + 24 / max(x.size, 1))


@pytest.mark.parametrize("layout", ["HWC", "CHW", "DHWC"])
@pytest.mark.drawn(1)
def test_floats_are_those_of_dali_to_the_last_bit(dali, layout):
    """Sizes that follow from others, regions, limits, every filter."""
    equal, count = 0, 40
    for seed in range(count):
        draw = Draw(seed, layout, "float32", 2)
        arguments = draw.size() | (draw.region() if seed % 2 else {}) | draw.filters()
        ours, theirs = (arrays_of(result[0]) for result in both(dali, draw.samples, layout, arguments))
        equal += all(np.array_equal(x, y) for x, y in zip(ours, theirs, strict=True))
    # What is left has a Gaussian of few taps in a region, or two orders of passes that cost the same.
    assert equal >= count - 1


@pytest.mark.parametrize("filter_", [0, 2, 3, 4, 5])
@pytest.mark.drawn(1)
def test_regions_on_quarters_of_pixels_are_exactly_those_of_dali(dali, filter_):
    """Where a filter begins near a whole pixel the last bits of its taps show in which order they were computed, and the
    nearest of two pixels as near."""
    pick = np.random.default_rng(5)
    sizes = range(1, 41)
    for _ in range(12):
        along, part = int(pick.integers(2)), pick.choice([1, 0.5, 0.25])
        extents = [3, 3]
        extents[along] = n = int(pick.integers(4, 41))
        image = pick.integers(0, 256, (*extents, 1)).astype(np.float32)
        region = pick.choice(int(n / part) + 1, 2, replace=False) * part
        start, end, antialias = [0.0, 0.0], [3.0, 3.0], bool(pick.integers(2))
        start[along], end[along] = region
        ours, theirs = [], []
        for module, result in ((ndd, ours), (dali, theirs)):
            wanted = np.full((len(sizes), 2), 3, np.float32)
            wanted[:, along] = sizes
            batch = module.batch([image] * len(sizes), layout="HWC")
            how = given(module, {"roi_start": start, "roi_end": end, "interp_type": filter_, "antialias": antialias})
            out = module.resize(batch, size=module.batch(list(wanted)), **how)
            result += arrays_of(out)
        for x, y in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(x, y, err_msg=f"{extents} {region} to {x.shape}")


def test_ties_are_rounded_exactly_as_by_dali(dali):
    rng, pick = np.random.default_rng(0), random.Random(1)
    for _ in repeated(60, 20):
        channels, dtype = pick.choice([1, 2, 3, 4, 5]), pick.choice(drawn(["uint8", "uint16", "int16"], 1, "ties"))
        h, w = pick.randint(1, 60), pick.randint(1, 60)
        flip = pick.random() < 0.3
        size = [
            pick.choice([h, 2 * h, 4 * h, max(h // 2, 1)]),
            pick.choice([w, 2 * w, 4 * w, max(w // 2, 1)]) * (-1 if flip else 1),
        ]
        image = rng.integers(0, 256, (h, w, channels)).astype(dtype)
        ours, theirs = both(dali, [image], "HWC", {"size": size, "antialias": False})
        assert_same_values(arrays_of(ours[0]), arrays_of(theirs[0]))


def test_nearest_pixels_are_exactly_those_of_dali(dali):
    pick = np.random.default_rng(3)
    for _ in repeated(150, 50):
        height, width = (int(v) for v in pick.integers(1, 60, 2))
        image = np.stack(np.mgrid[:height, :width], -1).astype(np.float32)
        ways = [{"resize_shorter": 7.3}, {"resize_longer": 33.0}, {"resize_x": 20.6}, {"size": [31.0, 0.0]}]
        arguments = {**ways[pick.integers(4)], "interp_type": 0}
        ours, theirs = both(dali, [image], "HWC", arguments)
        np.testing.assert_array_equal(arrays_of(ours[0])[0], arrays_of(theirs[0])[0])


@pytest.mark.parametrize("layout", ["HWC", "DHWC"])
def test_nearest_along_one_axis_and_a_filter_along_another(dali, layout):
    """Which pixel is nearest, and how ties are rounded by the last pass, is the same as in DALI to the last bit."""
    pick, rng = random.Random(8), np.random.default_rng(8)
    for _ in repeated(60, 20):
        extents = [pick.randint(1, 9 if i < len(layout) - 3 else 40) for i in range(len(layout) - 1)]
        image = rng.integers(0, 256, (*extents, pick.choice([1, 3, 4]))).astype(
            pick.choice(drawn(("uint8", "float32"), 1))
        )
        size = [pick.choice([2 * e, max(e // 2, 1), 3 * e // 2, pick.randint(1, 60)]) for e in extents]
        small, large = pick.choice([(0, 1), (1, 0), (0, 2)])
        arguments = {"size": size, "min_filter": small, "mag_filter": large}
        ours, theirs = both(dali, [image], layout, arguments)
        np.testing.assert_array_equal(arrays_of(ours[0])[0], arrays_of(theirs[0])[0], err_msg=str((extents, arguments)))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"size": (30, 0)}, (30, 45)),
        ({"size": 50}, (50, 50)),
        ({"resize_x": 50}, (33, 50)),
        ({"size": (30.5, 40.5)}, (31, 41)),
        ({"size": -50}, (50, 50)),
        ({"size": (0.2, 3)}, (1, 3)),
        ({"size": (0, 0)}, (100, 151)),
        ({"resize_shorter": 37}, (37, 56)),
        ({"resize_longer": 37}, (25, 37)),
        ({"resize_shorter": 37, "max_size": 40}, (26, 40)),
        ({"resize_shorter": 0}, (100, 151)),
        ({"size": (50, 50), "mode": "not_larger"}, (33, 50)),
        ({"size": (50, 50), "mode": "not_smaller"}, (50, 76)),
        ({"size": (50, 50), "mode": "not_smaller", "max_size": 60}, (40, 60)),
        ({"size": (50, 0), "mode": "stretch"}, (50, 151)),
        ({"resize_z": 7}, (100, 151)),
        ({"resize_shorter": 20, "roi_start": (0, 0), "roi_end": (50, 100)}, (20, 40)),
    ],
)
def test_sizes(arguments, expected):
    image = ndd.tensor(np.zeros((100, 151, 3), np.uint8), layout="HWC")
    assert ndd.resize(image, **arguments).shape == (*expected, 3)


ERRORS = [
    {},
    {"size": [3, 4], "resize_x": 3},
    {"resize_shorter": 3, "resize_longer": 3},
    {"resize_shorter": 3, "mode": "default"},
    {"size": [3, 4, 5]},
    {"size": []},
    {"size": [3, 4], "mode": "larger"},
    {"size": [3, 4], "max_size": [1, 2, 3]},
    {"size": [3, 4], "roi_start": [0, 0]},
    {"size": [3, 4], "roi_end": [5, 5]},
    {"size": [3, 4], "roi_start": [0, 0, 0], "roi_end": [5, 5, 5]},
    {"size": [3, 4], "dtype": "int32"},
    {"size": [3, 4], "dtype": "float16"},
]


@pytest.mark.parametrize("arguments", ERRORS)
def test_errors_as_dali(dali, arguments):
    image = np.zeros((10, 12, 3), np.uint8)
    ours, theirs = (
        outcome(m, lambda m: m.resize(m.tensor(image, layout="HWC"), **given(m, arguments))) for m in (ndd, dali)
    )
    assert isinstance(theirs, Exception)
    assert type(ours) is type(theirs)
    assert str(ours).startswith("resize: ")


@pytest.mark.parametrize("name", ["resize", "resize_crop_mirror"])
@pytest.mark.parametrize(
    "arguments",
    [
        {}, {"size": 3, "resize_x": 3}, {"resize_shorter": 3, "mode": "default"}, {"size": 3, "mode": "larger"},
        {"size": 3, "max_size": [1, 2, 3]}, {"size": 3, "roi_start": [0, 0]}, {"size": 3, "dtype": ndd.float16},
    ],
)  # fmt: skip
def test_constants_are_checked_at_the_call(name, arguments):
    image = ndd.tensor(np.zeros((4, 5, 3), np.uint8), layout="HWC")
    with ndd.EvalMode.deferred, pytest.raises(RuntimeError, match=f"{name}: "):
        getattr(ndd, name)(image, **arguments)


def test_the_number_of_outputs_is_known():
    for function in (ndd.resize, ndd.experimental.resize):
        assert function.operator.outputs() == 1
        assert function.operator.outputs(size=3, save_attrs=True) == 2


@pytest.mark.parametrize("dtype", ["int32", "int8", "float64", "float16", "bool"])
def test_other_types_are_refused(dtype):
    with ndd.EvalMode.sync_cpu, pytest.raises(RuntimeError, match="resize: Unsupported input type"):
        ndd.resize(np.zeros((4, 5, 3), dtype), size=3)


@pytest.mark.parametrize("size", [[float("nan"), 3], [float("inf"), 3], [1e10, 3]])
def test_absurd_sizes_are_refused(size):
    with ndd.EvalMode.sync_cpu, pytest.raises(RuntimeError, match="sample 0: expected finite output extents"):
        ndd.resize(np.zeros((4, 5, 3), np.uint8), size=size)


@pytest.mark.parametrize("places", [(float("inf"), 9.0), (0.0, 1e30), (float("nan"), 5.0), (-1e12, 3.0)])
def test_regions_out_of_all_reason_are_refused(places):
    image = ndd.tensor(np.zeros((4, 5, 1), np.uint8), layout="HWC")
    for operator in (ndd.resize, ndd.tensor_resize, ndd.resize_crop_mirror):
        how = {"sizes": [2, 2], "axes": [0, 1]} if operator is ndd.tensor_resize else {"size": [2, 2]}
        with pytest.raises(
            RuntimeError, match=r"`roi_.*`: expected a place at most 10,000,000 pixels outside the 4 x 5"
        ):
            operator(image, roi_start=[places[0]] * 2, roi_end=[places[1]] * 2, **how).evaluate()


def test_a_reversed_region_mirrors():
    image = np.random.default_rng(0).integers(0, 256, (20, 30, 3), dtype=np.uint8)
    plain = ndd.resize(image, size=(13, 17), roi_start=(2, 3.5), roi_end=(18, 25))
    mirrored = ndd.resize(image, size=(13, 17), roi_start=(18, 25), roi_end=(2, 3.5))
    np.testing.assert_array_equal(np.asarray(mirrored), np.asarray(plain)[::-1, ::-1])


def test_what_lies_outside_is_the_edge():
    image = np.array([[[10.0], [20.0]]], np.float32)
    wide = ndd.resize(image, size=(1, 6), roi_start=(0, -2), roi_end=(1, 4), interp_type=ndd.types.INTERP_NN)
    assert np.asarray(wide).ravel().tolist() == [10, 10, 10, 20, 20, 20]


@pytest.mark.parametrize("shape", [(0, 5, 3), (5, 0, 3), (5, 4, 0)])
def test_empty_images(shape):
    result = ndd.resize(np.zeros(shape, np.uint8), size=(3, 2))
    assert result.shape == tuple(n if s else 0 for s, n in zip(shape, (3, 2, 3), strict=True))


def test_the_old_argument_warns():
    with pytest.warns(DeprecationWarning, match="image_type"):
        ndd.resize(np.zeros((4, 5, 3), np.uint8), size=3, image_type=ndd.types.RGB)


GPU_CASES = [
    ("HWC", (20, 30, 3), {"size": [11, 17]}, ["resample_plane"]),
    ("HWC", (20, 30, 3), {"size": [11, 17], "interp_type": 0}, ["resample_plane"]),
    ("CHW", (3, 20, 30), {"size": [41, 17], "interp_type": 2}, ["resample_plane"]),
    ("FHWC", (2, 20, 30, 1), {"size": [30, 9], "interp_type": 5}, ["resample_plane"]),
    ("HWC", (20, 30, 4), {"size": [30, 45], "interp_type": 3, "dtype": "float32"}, ["resample_plane"]),
    ("HWC", (9, 13, 7), {"size": [5, 9]}, ["resample_plane"]),
    ("HWC", (200, 30, 5), {"size": [3, 17], "save_attrs": True}, ["resample_line", "resample_line", "save_extents"]),
    ("HWC", (9, 300, 2), {"size": [30, 4]}, ["resample_plane"]),
    ("HWC", (90, 100, 3), {"size": [20, -11], "interp_type": 3}, ["resample_plane"]),
    ("HWC", (90, 300, 2), {"size": [3, 4]}, ["resample_line", "resample_line"]),
    ("DHWC", (6, 20, 30, 3), {"size": [3, 9, 40]}, ["resample_line", "resample_plane"]),
    ("CDHW", (2, 6, 20, 30), {"size": [9, 9, 14], "interp_type": 2}, ["resample_plane", "resample_line"]),
]


@pytest.mark.drawn(1)
@pytest.mark.parametrize(("layout", "shape", "arguments", "launches"), GPU_CASES)
@pytest.mark.parametrize("dtype", TYPES)
def test_gpu_as_cpu(emulated_gpu, layout, shape, arguments, launches, dtype):
    rng = np.random.default_rng(1)
    larger = tuple(n + 3 * (c in "HW") for n, c in zip(shape, layout, strict=True))
    samples = [(rng.random(s) * 255).astype(dtype) for s in (shape, larger, shape)]
    batch = ndd.batch(samples, layout=layout)
    on_cpu, on_gpu = (ndd.resize(b, **given(ndd, arguments)) for b in (batch, batch.gpu()))
    if not isinstance(on_cpu, tuple):
        on_cpu, on_gpu = (on_cpu,), (on_gpu,)
    for a, b in zip(on_gpu, on_cpu, strict=True):
        assert_same_values(arrays_of(a), arrays_of(b), relative=1e-5, off_by_one=0.01)
    assert emulated_gpu.launches == launches


def test_one_filter_for_each_sample(emulated_gpu):
    image = np.random.default_rng(2).integers(0, 256, (12, 14, 3), dtype=np.uint8)
    kinds = [interpolation(ndd, k) for k in range(6)]
    batch = ndd.batch([image] * 6, layout="HWC")
    sizes = ndd.batch([np.array([5 + k, 20 - k], np.float32) for k in range(6)])
    each = ndd.resize(batch, size=sizes, interp_type=ndd.batch(kinds))
    # The GPU rounds every tie to even, the CPU as DALI: some up. Where 12 pixels become 6 there are many.
    exact = arrays_of(ndd.resize(batch, size=sizes, interp_type=ndd.batch(kinds), dtype=ndd.float32))
    on_gpu = arrays_of(ndd.resize(batch.gpu(), size=sizes, interp_type=ndd.batch(kinds)))
    for result, wanted, values in zip(on_gpu, arrays_of(each), exact, strict=True):
        assert_same_values([result], [wanted], off_by_one=0.01 + np.mean(values % 1 == 0.5))
    for k, kind in enumerate(kinds):
        alone = ndd.resize(image, size=(5 + k, 20 - k), interp_type=kind)
        np.testing.assert_array_equal(np.asarray(each.select(k)), np.asarray(alone))


@pytest.mark.parametrize("kind", [1, 2])
@pytest.mark.parametrize(
    ("size", "rows", "columns"), [((24, 9), {12}, {4}), ((24, 18), {12}, None), ((48, 9), None, {4})]
)
@pytest.mark.drawn(1)
def test_gpu_taps_of_no_weight_leave_no_trace(emulated_gpu, kind, size, rows, columns):
    image = np.ones((24, 9, 3), np.float32)
    image[12, 4, 1] = np.nan
    result = ndd.resize(ndd.batch([image], layout="HWC").gpu(), size=size, interp_type=interpolation(ndd, kind))
    y, x, c = np.isnan(arrays_of(result)[0]).nonzero()
    assert set(c) == {1}
    assert (rows or set(y)) == set(y)
    assert (columns or set(x)) == set(x)
    assert max(len(set(y)), len(set(x))) <= 8
