"""paste beside DALI and beside slicing in NumPy, on the emulated GPU, misuse."""

from __future__ import annotations

import numpy as np
import pytest
from cases import each_of
from compare import check_same

import ndd

REGISTRY_CASES = {
    "paste": each_of(
        {"ratio": 1.5, "fill_value": [1, 2, 3]},
        {"ratio": 1.2, "fill_value": [0, 0, 0], "paste_x": 0.1, "paste_y": 0.9},
        layouts=("HWC",),
        dtypes=("uint8",),
    ),
}

SHAPES = [(5, 7, 3), (1, 1, 3), (8, 4, 3)]


def images(shapes=SHAPES, dtype="uint8"):
    rng = np.random.default_rng(1)
    return [rng.integers(0, 255, s).astype(dtype) for s in shapes]


def call(each=(), batched=True, arrays=None, layout="HWC", **arguments):
    def run(module):
        options = {k: module.batch(v) if k in each else v for k, v in arguments.items()}
        own = images() if arrays is None else arrays
        return module.paste(
            module.batch(own, layout=layout) if batched else module.tensor(own[0], layout=layout), **options
        )

    return run


GOOD = [
    {"ratio": 2, "fill_value": 7},
    {"ratio": 2.5, "fill_value": [1, 2, 3]},
    {"ratio": 2.5, "fill_value": [9]},
    {"ratio": 1.7, "fill_value": [-1, 300, 3]},
    {"ratio": 1.7, "fill_value": [1.5, 2.7, 3]},
    {"ratio": 1, "fill_value": 0},
    {"ratio": 1.999, "fill_value": 0, "paste_x": 0, "paste_y": 1.0},
    {"ratio": 1.3, "fill_value": [5, 6, 7], "paste_x": 0.9, "paste_y": 0.123},
    {"ratio": 1.1, "fill_value": 4, "min_canvas_size": 20},
    {"ratio": 3.0, "fill_value": 4, "min_canvas_size": 6.9},
    {"ratio": np.float32(2), "fill_value": (1, 2, 3)},
]
EACH = [
    {"ratio": [1.0, 2.0, 3.3], "fill_value": 0},
    {"ratio": [1.5, 1.5, 1.7], "paste_x": [0.0, 0.4, 0.9], "paste_y": [1.0, 0.7, 0.2], "fill_value": [1, 2, 3]},
    {"ratio": [1.5, 1.5, 1.7], "min_canvas_size": [3.0, 6.7, 19.0], "fill_value": [1, 2, 3]},
]


@pytest.mark.oracle
@pytest.mark.parametrize("batched", [True, False])
def test_as_dali(dali, batched):
    for arguments in GOOD:
        assert check_same(dali, call(batched=batched, **arguments), note=arguments)


@pytest.mark.oracle
def test_values_of_samples_as_dali(dali):
    for arguments in EACH:
        each = [k for k in arguments if k != "fill_value"]
        assert check_same(dali, call(each, **arguments), note=arguments)
    assert check_same(dali, lambda m: m.paste(images()[0], ratio=m.tensor(3.0), paste_x=m.tensor(0.2), fill_value=0))


@pytest.mark.oracle
def test_misuse_as_dali(dali):
    for i, item in enumerate(
        [
            call(fill_value=0),
            call(ratio=2),
            call(ratio="a", fill_value=0),
            call(ratio=2, fill_value=[1, 2]),
            call(ratio=2, fill_value=0, paste_x=1.5),
            call(ratio=2, fill_value=0, paste_y=-0.1),
            call(["paste_y"], ratio=2, fill_value=0, paste_y=[0.1, 0.2, 1.1]),
            call(ratio=2, fill_value=0, arrays=images(dtype="float32")),
            call(ratio=2, fill_value=0, arrays=images(dtype="int16")),
            call(ratio=2, fill_value=0, layout="CHW"),
            call(ratio=2, fill_value=0, arrays=[np.ones((1, 3, 3, 3), np.uint8)], layout="FHWC"),
        ]
    ):
        assert not check_same(dali, item, note=i)


def test_other_numbers_of_channels():
    """DALI writes three channels whatever the image has."""
    for channels, fill in ((1, [9]), (4, [1, 2, 3, 4])):
        image = images([(3, 2, channels)])[0]
        result = np.asarray(ndd.paste(image, ratio=2, fill_value=fill, n_channels=channels, paste_x=1, paste_y=0))
        expected = np.tile(np.uint8(fill), (6, 4, 1))
        expected[:3, 2:] = image
        np.testing.assert_array_equal(result, expected)


def test_refused_where_dali_reads_or_writes_elsewhere():
    for arguments in (
        {"ratio": 0.5, "fill_value": 0},
        {"ratio": 2, "fill_value": [1, 2, 3, 4], "n_channels": 4},
        {"ratio": ndd.batch([2.0, 0.9, 2.0]), "fill_value": 0},
    ):
        with pytest.raises(RuntimeError, match="paste: "):
            ndd.paste(ndd.batch(images(), layout="HWC"), **arguments).evaluate()


def test_gpu_as_cpu(emulated_gpu):
    batch = ndd.batch(images(), layout="HWC")
    for arguments in [*GOOD, {"ratio": ndd.batch([1.0, 2.0, 3.3]), "fill_value": [1, 2, 3]}]:
        on_gpu, on_cpu = ndd.paste(batch.gpu(), **arguments).cpu(), ndd.paste(batch, **arguments)
        for a, b in zip(on_gpu, on_cpu, strict=True):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
