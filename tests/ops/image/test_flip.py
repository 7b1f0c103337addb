"""`ndd.flip` beside DALI."""

import itertools

import numpy as np
import pytest
from cases import EachSample, each_of
from compare import check_same, value
from number_samples import random_array

import ndd

SIGNS = EachSample([1, 0, 1])
REGISTRY_CASES = {
    "flip": each_of({}, {"vertical": 1}, {"horizontal": 0, "vertical": 1}, {"horizontal": SIGNS, "depthwise": 1}),
}

TYPES = ["uint8", "int8", "uint16", "int16", "int32", "uint32", "int64", "uint64", "float32", "float64"]
EXTENTS = {"F": 2, "D": 3, "H": 4, "W": 5}
LAYOUTS = ["HWC", "CHW", "DHWC", "CDHW", "FHWC", "FCHW", "FDHWC", "FCDHW", "CFHW", "WHC", None]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.drawn(1)
def test_every_axis_as_dali(dali, layout):
    rng = np.random.default_rng(1)
    for letters in [layout] if layout else ["HWC", "FHWC", "FDHWC", "W"]:
        for channels in (1, 3, 4):
            samples = [random_array(rng, [EXTENTS.get(c, channels) + i for c in letters], "uint8") for i in range(2)]
            for h, v, d in itertools.product((0, 1, 2), (0, 1), (0, -1)):
                flags = {"horizontal": h, "vertical": v, "depthwise": d}
                call = lambda m, s=samples, f=flags: m.flip(m.batch(s, layout=layout), **f)  # noqa: E731
                check_same(dali, call, note=(letters, channels, flags))


@pytest.mark.parametrize("kind", TYPES)
def test_types_as_dali(dali, kind):
    rng = np.random.default_rng(2)
    for shape in ((3, 40, 1), (3, 41, 3), (1, 1, 3), (0, 3, 3), (2, 9, 2)):
        x = random_array(rng, shape, kind)
        check_same(dali, lambda m, x=x: m.flip(value(m, [x], "HWC", False), vertical=1), note=(kind, shape))


def test_per_sample_as_dali(dali):
    samples = [np.arange(h * 12, dtype=np.uint8).reshape(h, 4, 3) for h in (1, 2, 5)]
    for arguments in ([1, 0, 1], [0.4, 0.6, 1.0], [True, False, True]):
        call = lambda m, g=arguments: m.flip(m.batch(samples), horizontal=m.batch(g), vertical=m.batch([0, 1, 1]))  # noqa: E731
        check_same(dali, call)


def test_beyond_dali():
    for kind in ("float16", "bool"):
        x = random_array(np.random.default_rng(0), (3, 5, 3), kind)
        np.testing.assert_array_equal(np.asarray(ndd.flip(ndd.tensor(x))), x[:, ::-1])
    mask = np.arange(6).reshape(2, 3)
    np.testing.assert_array_equal(np.asarray(ndd.flip(ndd.tensor(mask, layout="HW"))), mask[:, ::-1])
