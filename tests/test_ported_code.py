"""Programs written for DALI's dynamic mode, run with both packages: pipelines of some lines, and forms of arguments."""

from __future__ import annotations

import types

import numpy as np
import pytest
import torch
from compare import check_same, outcome

import ndd

pytestmark = pytest.mark.oracle
FLOAT, NN, CUBIC, RGB, GRAY, YCBCR = 9, 0, 2, 0, 2, 3
SHAPES = [(60, 80, 3), (45, 51, 3), (97, 64, 3), (50, 50, 3)]
N = len(SHAPES)


def photographs(module):
    """Smooth pictures, so that a rounding of the place does not change much."""
    samples = []
    for i, (h, w, _) in enumerate(SHAPES):
        y, x = np.mgrid[0:h, 0:w]
        samples.append(np.stack([x * 255 // w, y * 255 // h, (x * (i + 1) + y) % 256], axis=2).astype(np.uint8))
    return module.batch(samples, layout="HWC")


def video(module):
    rng = np.random.default_rng(5)
    frames = [rng.integers(0, 256, (4 + i, 24, 30, 3), dtype=np.uint8) for i in range(3)]
    return module.batch(frames, layout="FHWC")


def each_frame(module, low, high, kind=np.float32):
    return module.per_frame(module.batch([np.linspace(low, high, 4 + i).astype(kind) for i in range(3)]))


def scans(module):
    rng = np.random.default_rng(7)
    volumes = [rng.integers(-1000, 1000, (10 + i, 24, 26, 1)).astype(np.int16) for i in range(3)]
    return module.batch(volumes, layout="DHWC")


def draw(module, rng, *range_, **more):
    return module.random.uniform(batch_size=N, range=range_, rng=rng, **more)


def classification(m):
    rng = m.random.RNG(seed=5)
    x = m.resize(photographs(m), resize_shorter=draw(m, rng, 40, 60), interp_type=CUBIC)
    x = m.crop(x, crop=(32, 32), crop_pos_x=draw(m, rng, 0, 1), crop_pos_y=draw(m, rng, 0, 1))
    contrast = m.random.normal(mean=1, stddev=0.1, batch_size=N, rng=rng)
    x = m.color_twist(
        x, brightness=draw(m, rng, 0.6, 1.4), contrast=contrast, hue=draw(m, rng, -30, 30), saturation=1.2
    )
    x = m.gaussian_blur(x, sigma=draw(m, rng, 0.1, 2))
    mirror = m.random.coin_flip(batch_size=N, rng=rng)
    return x, m.crop_mirror_normalize(x, mean=[123.7, 116.3, 103.5], std=[58.4, 57.1, 57.4], mirror=mirror)


def grey_or_not(m):
    x = m.resize(photographs(m), size=(40, 40))
    grey = m.color_space_conversion(x, image_type=RGB, output_type=GRAY)
    grey = m.cat(grey, grey, grey, axis_name="C")
    chosen = m.cast(m.random.coin_flip(batch_size=N, rng=m.random.RNG(seed=1), dtype=m.bool), dtype=m.uint8)
    mask = x >= 128
    solarized = mask * m.cast(255 - x, dtype=m.uint8) + (mask ^ True) * x
    return chosen * grey + (chosen ^ 1) * x, m.cast(solarized, dtype=m.uint8)


def mixup(m):
    rng = m.random.RNG(seed=1)
    x = m.cast(m.resize(photographs(m), size=(30, 30)), dtype=m.float32)
    order = m.batch_permutation(batch_size=N, rng=rng)
    share = m.random.beta(alpha=0.2, beta=0.2, batch_size=N, rng=rng)
    y = m.one_hot(m.batch([0, 1, 2, 3]), num_classes=4)
    return (
        order,
        share,
        y * share + m.permute_batch(y, indices=order) * (1.0 - share),
        m.permute_batch(x, indices=order),
    )


def image_and_mask_through_one_geometry(m):
    rng = m.random.RNG(seed=11)
    x = m.resize(photographs(m), size=(60, 80))
    mask = m.reshape(m.cast(x.slice[:, :, 0:1] > 100, dtype=m.uint8), layout="HWC")
    angle, mirror = draw(m, rng, -30, 30), m.random.coin_flip(batch_size=N, rng=rng)
    matrix = m.transforms.rotation(angle=angle, center=[40, 30])
    matrix = m.transforms.scale(matrix, scale=draw(m, rng, 0.8, 1.2, shape=2), center=[40, 30])
    matrix = m.transforms.translation(matrix, offset=[3.0, -5.0])
    anchor, shape = draw(m, rng, 0, 0.3, shape=(2,)), m.batch([np.float32([0.5, 0.6])] * N)
    results = [matrix]
    for value, how in ((x, {"fill_value": 0}), (mask, {"interp_type": NN, "fill_value": 255})):
        turned = m.rotate(value, angle=angle, keep_size=True, **how)
        moved = m.flip(m.warp_affine(value, matrix, inverse_map=False, **how), horizontal=mirror)
        results += [turned, moved, m.slice(moved, anchor, shape, axis_names="HW")]
    return results


def detection(m):
    rng = m.random.RNG(seed=2)
    mirror, ratio, place = m.random.coin_flip(batch_size=N, rng=rng), draw(m, rng, 1, 2), draw(m, rng, 0, 1)
    points = m.reshape(m.batch([np.float32([[0.1, 0.2, 0.5, 0.6], [0.3, 0.3, 0.9, 0.8]])] * N), shape=[-1, 2])
    x = m.flip(photographs(m), horizontal=mirror)
    x = m.paste(x, ratio=ratio, paste_x=place, paste_y=place, fill_value=[1, 2, 3])
    x = m.resize(x, size=(60, 60))
    return m.coord_flip(points, flip_x=mirror, flip_y=0), m.crop_mirror_normalize(x, mean=[104.0, 117.0, 123.0])


def mosaic(m):
    x = m.resize(photographs(m), size=(40, 40))
    ids = m.batch([np.int32([(i + k) % N for k in range(4)]) for i in range(N)])
    return m.multi_paste(
        x,
        in_ids=ids,
        output_size=(60, 64),
        in_anchors=m.batch([np.int32([[0, 0], [5, 5], [8, 0], [0, 8]])] * N),
        shapes=m.batch([np.int32([[30, 32]] * 4)] * N),
        out_anchors=m.batch([np.int32([[0, 0], [0, 32], [30, 0], [30, 32]])] * N),
    )


def frames_with_arguments_of_their_own(m):
    v = video(m)
    windows = m.per_frame(m.batch([np.int32([3, 5, 7, 3, 5, 7][: 4 + i]) for i in range(3)]))
    return (
        m.rotate(v, angle=each_frame(m, -10, 10), keep_size=True, fill_value=0),
        m.brightness_contrast(v, brightness=each_frame(m, 0.5, 1.5), contrast=1.1),
        m.gaussian_blur(v, window_size=windows),
        m.crop(v, crop=(12, 12), crop_pos_x=m.batch([0.0, 0.5, 1.0])),
        m.hsv(v, hue=each_frame(m, 1, 40)),
        m.resize(v, size=(12, 15)),
        m.sequence_rearrange(v, new_order=m.batch([[0, 1], [1, 2, 0], [3]])),
        *m.element_extract(v, element_map=[0, 2]),
        m.crop_mirror_normalize(v, crop=(12, 12), mirror=m.batch([1, 0, 1]), output_layout="FCHW"),
        m.reductions.std_dev(v, m.reductions.mean(v, axis_names="HW"), axis_names="HW"),
        m.pad(v, axis_names="F", shape=[8], fill_value=3),
    )


def volumes(m):
    v = scans(m)
    wide = m.cast(v, dtype=m.float32)
    return (
        m.crop(v, crop=(8, 16, 16), crop_pos_z=m.batch([0.1, 0.5, 1.0])),
        m.resize(v, size=(6, 12, 13)),
        m.flip(v, depthwise=m.batch([1, 0, 1]), horizontal=0, vertical=1),
        m.rotate(wide, angle=m.batch([10.0, 20.0, -30.0]), axis=[0.0, 0.0, 1.0], keep_size=True, fill_value=-1000),
        m.warp_affine(wide, matrix=np.float32([[1, 0, 0, 1], [0, 1, 0.1, 0], [0, 0, 1, 2]]), fill_value=0),
        m.normalize(wide),
        m.gaussian_blur(wide, sigma=0.8),
        m.math.clamp(wide, -200, 300),
        m.transpose(v, perm=[3, 0, 1, 2]),
        m.pad(v, axis_names="DHW", align=[8, 8, 8]),
        m.erase(v, anchor=[2, 3, 4], shape=[3, 3, 3], axis_names="DHW", fill_value=[7]),
        m.slice(v, start=[1, 2, 3], shape=[5, 6, 7], axis_names="DHW"),
        m.squeeze(v, axis_names="C"),
        m.tensor_resize(v, sizes=[5, 6, 7], axes=[0, 1, 2]),
    )


# How far results may be apart, of the largest number: rounding, and what follows from an integer that is off by one.
PROGRAMS = {
    classification: 0.02,
    grey_or_not: 0,
    mixup: 0.005,
    image_and_mask_through_one_geometry: 1e-5,
    detection: 0.01,
    mosaic: 0,
    frames_with_arguments_of_their_own: 1e-5,
    volumes: 5e-5,
}


@pytest.mark.parametrize(("program", "tolerance"), PROGRAMS.items(), ids=lambda p: getattr(p, "__name__", ""))
@pytest.mark.drawn(2)
def test_a_program_gives_what_it_gives_with_dali(dali, program, tolerance):
    assert check_same(dali, program, tolerance or 1e-6)


# ---- forms of arguments


class OnlyDlpack:
    """A value of a library that is neither NumPy nor torch, handed over by DLPack."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack__(self, **more):
        return self.tensor.__dlpack__(**more)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


class OnlyArray:
    """A value that NumPy can read."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values, dtype)


ONE = {
    "int": 1, "float": 1.0, "bool": True, "np.int64": np.int64(1), "np.uint8": np.uint8(1), "np.float64": np.float64(1),
    "np.float16": np.float16(1), "0-d": np.array(1), "1-d": np.array([1]), "list": [1], "torch": torch.tensor(1),
    "torch float": torch.tensor(1.0), "torch 1-d": torch.tensor([1]), "text": "1", "none": None, "half": 1.5,
    "DLPack": OnlyDlpack(torch.tensor(1)), "array": OnlyArray(1), "Tensor": lambda m: m.tensor(1),
    "Tensor float": lambda m: m.tensor(1.0), "Tensor 1-d": lambda m: m.tensor([1]), "Batch": lambda m: m.batch([1, 0, 1]),
    "Batch f64": lambda m: m.batch([np.float64(1)] * 3), "Batch of vectors": lambda m: m.batch([[1], [0], [1]]),
    "Batch bool": lambda m: m.batch([True, False, True]), "Batch of two": lambda m: m.batch([1, 0]),
    "three": [1, 0, 1], "tuple": (1, 0, 1), "np three": np.array([1, 0, 1]), "torch three": torch.tensor([1, 0, 1]),
    "DLPack three": OnlyDlpack(torch.tensor([1, 0, 1])), "array three": OnlyArray([1, 0, 1]),
    "Tensor three": lambda m: m.tensor([1, 0, 1]), "dict": {}, "f32": np.float32(1),
}  # fmt: skip


def three(m):
    samples = [np.arange(60 + 12 * i, dtype=np.uint8).reshape(-1, 4, 3) for i in range(3)]
    return m.batch(samples, layout="HWC")


TAKES = {
    "flip": lambda m, v: m.flip(three(m), horizontal=v),
    "flip one": lambda m, v: m.flip(three(m).select(0), horizontal=v),
    "rotate": lambda m, v: m.rotate(three(m), angle=v, keep_size=True),
    "brightness": lambda m, v: m.brightness(three(m), brightness=v),
    "crop": lambda m, v: m.crop(three(m), crop=(2, 2), crop_pos_x=v),
    "mean": lambda m, v: m.crop_mirror_normalize(three(m), mean=v),
    "fill": lambda m, v: m.erase(three(m), anchor=[1.0, 1.0], shape=[2.0, 2.0], axis_names="HW", fill_value=v),
}


@pytest.mark.parametrize("form", ONE)
def test_an_argument_may_be_written_as_with_dali(dali, form):
    value = ONE[form]
    for name, call in TAKES.items():
        check_same(
            dali, lambda m, c=call: c(m, value(m) if isinstance(value, types.FunctionType) else value), 1e-5, name
        )


def test_integers_beyond_32_bits():
    for number in (2**31, 2**33, -(2**40)):
        with pytest.raises(OverflowError, match=r"flip: argument .horizontal.: .* does not fit in 32 bits"):
            ndd.flip(three(ndd), horizontal=number)


TYPES = {
    "of the package": lambda m: m.float32, "number": lambda m: FLOAT, "NumPy": lambda m: np.float32,
    "np.dtype": lambda m: np.dtype("float32"), "torch": lambda m: torch.float32, "short name": lambda m: "f32",
    "long name": lambda m: "float32", "no type": lambda m: 99, "none": lambda m: None, "Python": lambda m: float,
    "list": lambda m: [m.float32],
}  # fmt: skip
TYPED = {
    "cast": lambda m, d: m.cast(three(m), dtype=d),
    "resize": lambda m, d: m.resize(three(m), size=[3, 3], dtype=d),
    "sum": lambda m, d: m.reductions.sum(three(m), dtype=d),
    "zeros": lambda m, d: m.zeros(shape=[2], dtype=d),
    "tensor": lambda m, d: m.tensor([1.5, 2.0], dtype=d),
    "as_batch": lambda m, d: m.as_batch([np.float32([1.5])], dtype=d),
}


# What ndd takes wherever an element type is asked for, and DALI's operators do not.
WIDER = ("NumPy", "np.dtype", "torch", "short name", "long name", "Python")


@pytest.mark.parametrize("form", TYPES)
def test_an_element_type_may_be_written_as_with_dali(dali, form):
    for name, call in TYPED.items():
        if form in WIDER:
            result = call(ndd, TYPES[form](ndd))
            assert result.dtype is ndd.float32
            check_same(dali, lambda m, c=call: c(m, m.float32), 1e-5, name)
        else:
            check_same(dali, lambda m, c=call: c(m, TYPES[form](m)), 1e-5, name)


def test_dalis_own_enumerations(dali):
    theirs = pytest.importorskip("nvidia.dali.types")
    for arguments in (theirs.FLOAT, theirs.DALIDataType.UINT8, theirs.INT32):
        check_same(dali, lambda m, d=arguments: m.cast(three(m), dtype=d))
    check_same(dali, lambda m: m.resize(three(m), size=[3, 3], interp_type=theirs.INTERP_NN))
    check_same(
        dali, lambda m: m.color_space_conversion(three(m), image_type=theirs.RGB, output_type=theirs.YCbCr), 1e-5
    )


def test_an_argument_of_all_samples_is_no_batch(dali):
    for module in (dali, ndd):
        result = outcome(module, lambda m: m.one_hot(m.batch([0, 1]), num_classes=m.batch([2, 3])))
        assert isinstance(result, TypeError)
    assert isinstance(outcome(ndd, lambda m: m.rotate(three(m), angle=None)), ValueError)
    assert isinstance(outcome(dali, lambda m: m.rotate(three(m), angle=None)), ValueError)


def test_scalars_of_a_batch_make_a_tensor_with_a_layout(dali):
    check_same(dali, lambda m: m.tensor(m.batch([1, 2])))
    check_same(dali, lambda m: m.as_tensor(m.batch([1, 2]) + 1) * 2)
    check_same(dali, lambda m: m.as_tensor(m.random.uniform(batch_size=3, rng=m.random.RNG(seed=1))))
    labels = ndd.tensor(ndd.batch([1, 2]))
    assert labels.layout == "N"
    assert ndd.batch(labels).layout is None


MISFITS = {
    "two axes of a window": lambda m: m.slice(three(m), start=np.array([[1, 2], [3, 4]]), shape=[1, 1], axes=[0, 1]),
    "ragged matrices": lambda m: m.warp_affine(
        three(m), matrix=m.batch([np.float32([1]), np.float32([2, 3]), np.float32([])])
    ),
    "ragged sizes": lambda m: m.rotate(three(m), angle=3.0, size=m.batch([[1], [2, 3], [4]])),
    "axes of a shape": lambda m: m.zeros(shape=np.array([[1, 2], [3, 4]])),
    "NaN as an integer": lambda m: m.transpose(three(m), perm=[float("nan")]),
    "NaN as an extent": lambda m: m.zeros(shape=[float("nan")]),
}


@pytest.mark.parametrize("name", MISFITS)
def test_arguments_of_a_wrong_shape_are_refused_as_with_dali(dali, name):
    assert not check_same(dali, MISFITS[name])


def test_a_batch_size_is_an_integer():
    rng = ndd.random.RNG(seed=1)
    assert ndd.random.uniform(batch_size=np.int64(2), rng=rng).batch_size == 2
    for wrong in (2.5, "2", [2]):
        with pytest.raises(TypeError, match="uniform: batch_size must be an integer"):
            ndd.random.uniform(batch_size=wrong, rng=rng)
