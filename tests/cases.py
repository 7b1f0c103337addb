"""Typical inputs and arguments of every operator: what the registry-wide tests feed to ndd and to the oracle.

An operator that is not in `TABLE` gets a default by its declaration (images if it takes HWC, else float matrices), so a
new one is covered as it stands. One that needs arguments, or inputs of a certain kind, has an entry here; the test
of an operator that cannot be called with what there is says so.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

# DALI's numbers of element types: both packages take them as `dtype=`.
U8, I16, I32, I64, F16, F32, F64 = 0, 5, 6, 7, 8, 9, 10

DTYPES = (
    *("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
    *("float16", "float32", "float64", "bool"),
)
_SIZES = ((23, 31), (17, 40), (8, 9), (41, 20))


@dataclasses.dataclass(frozen=True)
class Case:
    """One way to call an operator. `inputs` names the kinds of its inputs (see `KINDS`)."""

    args: dict[str, Any] = dataclasses.field(default_factory=dict)
    inputs: tuple[str, ...] | None = None
    layouts: tuple[str, ...] = ()  # of image inputs; default: those of the declaration that are in IMAGE_LAYOUTS
    dtypes: tuple[str, ...] = ()  # of input 0 in the sweep over element types; default: all
    off_by_one: float = 0.02  # share of elements of an integer output that may differ from the oracle by 1
    relative: float = 1e-5  # tolerance of float outputs, relative to the largest number in the output
    uniform: bool = False  # samples of one shape only
    oracle: bool = True


@dataclasses.dataclass(frozen=True)
class EachSample:
    """An argument with a value for each sample."""

    values: list[Any]


IMAGE_LAYOUTS = ("HWC", "CHW", "HW", "FHWC", "FCHW", "DHWC")


def image(rng: np.random.Generator, i: int, layout: str, dtype: str) -> np.ndarray:
    """A random image or video; extents differ from sample to sample."""
    h, w = _SIZES[i % 4]
    extents = {"H": h, "W": w, "C": 3, "F": 2 + i % 2, "D": 3 + i % 2}
    return values(rng, tuple(extents[c] for c in layout), dtype)


def values(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Numbers of a plausible range for a type: 0..255 (less for int8), floats 0..1, so that no product overflows."""
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if kind.kind == "f":
        return rng.random(shape, np.float32).astype(kind)
    return rng.integers(0, 128 if dtype == "int8" else 256, shape).astype(kind)


def _float(make: Callable[[np.random.Generator, int], Any]) -> Callable[..., np.ndarray]:
    return lambda rng, i, dtype: np.asarray(make(rng, i), np.float32)


def _boxes(rng: np.random.Generator, i: int) -> np.ndarray:
    low = rng.random((3 + i, 2)) * 0.5
    return np.concatenate([low, low + 0.1 + 0.4 * rng.random((3 + i, 2))], axis=1)


def _triangles(rng: np.random.Generator, i: int) -> np.ndarray:
    count = 2 + i
    return np.stack([np.arange(count), np.arange(count) * 3, np.arange(count) * 3 + 3], axis=1).astype(np.int32)


def _jpeg(rng: np.random.Generator, i: int) -> np.ndarray:
    import io

    from PIL import Image

    h, w = _SIZES[i % 4]
    y, x = np.mgrid[0:h, 0:w]
    pixels = np.stack([x * 255 // w, y * 255 // h, (x + y) % 256], axis=2).astype(np.uint8)
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "JPEG", quality=90)
    return np.frombuffer(stream.getvalue(), np.uint8)


def _npy(rng: np.random.Generator, i: int) -> np.ndarray:
    import io

    stream = io.BytesIO()
    np.save(stream, rng.random((2 + i, 3)).astype(np.float32))
    return np.frombuffer(stream.getvalue(), np.uint8)


def _labels(rng: np.random.Generator, i: int) -> np.ndarray:
    return rng.integers(0, 5, 3 + i).astype(np.int32)


# What an input may be: a function of (rng, sample number, element type) that gives a NumPy array, and its layout.
KINDS: dict[str, tuple[Callable[..., np.ndarray], str | None]] = {
    "matrix": (lambda rng, i, dtype: values(rng, (3 + i, 4), dtype), None),
    "same matrix": (lambda rng, i, dtype: values(rng, (3, 4), dtype), None),
    "cube": (lambda rng, i, dtype: values(rng, (2 + i, 3, 4), dtype), None),
    "mean of cube": (lambda rng, i, dtype: np.float32(0.5), None),
    "thin": (lambda rng, i, dtype: values(rng, (2 + i, 1, 4), dtype), "HWC"),
    "plane": (lambda rng, i, dtype: image(rng, i, "HW", dtype), "HW"),
    "bayer": (lambda rng, i, dtype: values(rng, (2 * (5 + i), 2 * (4 + i)), dtype), "HW"),
    "one channel": (lambda rng, i, dtype: image(rng, i, "HW", dtype)[..., None], "HWC"),
    "video": (lambda rng, i, dtype: values(rng, (4, *_SIZES[i % 4], 3), dtype), "FHWC"),
    "vector": (lambda rng, i, dtype: values(rng, (5 + i,), dtype), None),
    "scalar": (lambda rng, i, dtype: values(rng, (), dtype), None),
    "bytes": (lambda rng, i, dtype: rng.integers(0, 256, 24).astype(np.uint8), None),
    "classes": (lambda rng, i, dtype: rng.integers(0, 6, (4 + i,)).astype(np.int32), None),
    "keys": (lambda rng, i, dtype: rng.integers(0, 6, (4 + i, 3)).astype(np.uint8), None),
    "wave": (
        _float(lambda rng, i: np.sin(np.arange(900 + 70 * i) * 0.05) + 0.1 * rng.standard_normal(900 + 70 * i)),
        None,
    ),
    "spectrum": (_float(lambda rng, i: rng.random((65, 7 + i)) + 0.01), "ft"),
    "boxes": (_float(_boxes), None),
    "labels": (lambda rng, i, dtype: _labels(rng, i), None),
    "points": (_float(lambda rng, i: rng.random((4 + i, 2))), None),
    "matrix 2x3": (_float(lambda rng, i: [[1, 0.1 * i, 2], [-0.1, 0.9, 1]]), None),
    "matrix 3x3": (_float(lambda rng, i: [[1, 0.1 * i, 2], [-0.1, 0.9, 1], [0, 0.001, 1]]), None),
    "shape": (lambda rng, i, dtype: np.array([3 + i, 2], np.int32), None),
    "image size": (lambda rng, i, dtype: np.array([40 + i, 30, 3], np.int64), None),
    "anchor": (_float(lambda rng, i: [0.1, 0.2]), None),
    "extent": (_float(lambda rng, i: [0.5, 0.6]), None),
    "filter": (_float(lambda rng, i: rng.random((3, 3))), None),
    "jpeg": (lambda rng, i, dtype: _jpeg(rng, i), None),
    "npy": (lambda rng, i, dtype: _npy(rng, i), None),
    "mask": (lambda rng, i, dtype: (rng.random((12, 14 + i)) > 0.5).astype(np.int32), None),
    "mask ids": (lambda rng, i, dtype: np.array([1, 0], np.int32), None),
    "polygons": (lambda rng, i, dtype: _triangles(rng, i), None),
    "vertices": (_float(lambda rng, i: rng.random(((2 + i) * 3, 2))), None),
    "map x": (_float(lambda rng, i: rng.random((9, 8)) * 8), None),
}

_COLOR = ("HWC", "FHWC")
_IMAGE_TYPES = ("uint8", "int16", "int32", "float32")
_MORPHOLOGY = ("uint8", "uint16", "float32")


def _all(*args: dict[str, Any], **more: Any) -> list[Case]:
    return [Case(a, **more) for a in args]


def _color(*args: dict[str, Any]) -> list[Case]:
    return _all(*args, layouts=_COLOR, dtypes=_IMAGE_TYPES)


def _vectors(*args: dict[str, Any], kind: str = "boxes", **more: Any) -> list[Case]:
    return _all(*args, inputs=(kind,), dtypes=("float32",), **more)


def _random(*args: dict[str, Any], **more: Any) -> list[Case]:
    return _all(*args, inputs=(), **more)


_CUBE = {"inputs": ("cube",), "dtypes": ("uint8", "int16", "int32", "int64", "float32")}

TABLE: dict[str, list[Case]] = {
    # geometry
    "resize": _all(
        {"size": [12, 15]},
        {"resize_shorter": 20, "save_attrs": True},
        {"resize_x": 13.3, "interp_type": 0},
        {"size": [40, 60], "interp_type": 2},
        layouts=("HWC", "CHW", "FHWC"),
        dtypes=("uint8", "int16", "uint16", "float32"),
    ),
    "tensor_resize": _all(
        {"sizes": [12, 15], "axes": [0, 1]},
        {"scales": [1.5, 0.5], "axes": [0, 1]},
        layouts=("HWC",),
        dtypes=("uint8", "int16", "uint16", "float32"),
        # Halves are frequent here; DALI rounds those of the last elements of a row away from zero, others to even.
        off_by_one=0.08,
    ),
    "resize_crop_mirror": [
        Case({"resize_shorter": 30, "crop": [12, 12]}, layouts=("HWC", "CHW", "FHWC"), dtypes=("uint8", "float32")),
        # In other layouts DALI mirrors another axis, or none.
        Case({"size": [30, 32], "crop": [12, 12], "mirror": 1}, layouts=("HWC",), dtypes=("uint8", "float32")),
    ],
    # Random windows have DALI's rules and distribution, not its numbers: the tests of these operators compare both.
    "random_resized_crop": _all({"size": [12, 15]}, layouts=("HWC", "FHWC"), dtypes=("uint8", "float32"), oracle=False),
    "random_crop_generator": _all({}, inputs=("image size",), dtypes=("int64",), oracle=False),
    "crop": _all(
        {"crop": [6, 7]},
        {"crop": [6, 7], "crop_pos_x": 0.0, "crop_pos_y": 0.9},
        {"crop_w": 50, "crop_h": 60, "out_of_bounds_policy": "pad"},
        layouts=("HWC", "CHW", "FHWC", "DHWC"),
    ),
    "crop_mirror_normalize": _all(
        {},
        {"mean": [0.3, 0.4, 0.5], "std": [0.2, 0.3, 0.4], "crop": [6, 7], "mirror": 1},
        {"dtype": F16, "output_layout": "HWC"},
        layouts=("HWC", "CHW", "FHWC"),
        dtypes=("uint8", "int16", "uint16", "int32", "float16", "float32"),
    ),
    "slice": [
        *_all(
            {"start": [1, 2], "shape": [5, 6], "axis_names": "HW"},
            {"rel_start": [0.1, 0.2], "rel_end": [0.6, 0.7], "axis_names": "HW"},
            layouts=("HWC", "CHW", "FHWC"),
        ),
        Case({}, inputs=("plane", "anchor", "extent")),
    ],
    "flip": _all({}, {"vertical": 1}, {"horizontal": 0, "vertical": 1}),
    "rotate": _all(
        {"angle": 30.0},
        {"angle": 33.0, "interp_type": 0},  # no points between two pixels: the choice may differ on a GPU
        {"angle": -100.0, "keep_size": True, "fill_value": 7.0},
        layouts=("HWC", "FHWC"),
        dtypes=_IMAGE_TYPES,
    )
    + _all({"angle": 30.0, "axis": [1.0, 2.0, 3.0]}, layouts=("DHWC",), dtypes=_IMAGE_TYPES),
    "warp_affine": _all(
        {"matrix": [[1.0, 0.213, 3.0], [-0.117, 0.907, 1.0]]},
        {"matrix": [[1.0, 0.213, 3.0], [-0.117, 0.907, 1.0]], "interp_type": 0, "fill_value": 9.0, "size": [30, 20]},
        # Halves: points between two pixels and numbers between two whole ones.
        {"matrix": [[1.0, 0.25, -2.5], [0.25, 0.75, 0.5]], "fill_value": 300.5},
        {"matrix": [[1.0, 0.25, -2.5], [0.25, 0.75, 0.5]], "interp_type": 0, "fill_value": -2.5},
        layouts=("HWC", "FHWC"),
        dtypes=_IMAGE_TYPES,
    ),
    "experimental.warp_perspective": _all(
        {"matrix": [[1.0, 0.2, 3.0], [-0.1, 0.9, 1.0], [0.0, 0.001, 1.0]]},
        {"matrix": [[1.0, 0.213, 3.0], [-0.117, 0.907, 1.0], [0.0, 0.001, 1.0]], "interp_type": 0, "fill_value": [9.0]},
        {"matrix": [[1.0, 0.2, 3.0], [-0.1, 0.9, 1.0], [0.0, 0.001, 1.0]], "interp_type": 2, "border_mode": "reflect"},
        layouts=("HWC", "FHWC", "CHW"),
        dtypes=("uint8", "uint16", "int16", "float32"),
    ),
    "experimental.remap": [
        Case({}, inputs=("one channel", "map x", "map x"), dtypes=("uint8", "uint16", "int16", "float32"), oracle=False)
    ],
    "experimental.resize": _all(
        {"size": [12, 15]},
        {"size": [12, 40], "interp_type": 0},
        layouts=("HWC", "CHW"),
        dtypes=("uint8", "float32"),
        oracle=False,
    ),
    "pad": _all({}, {"fill_value": 3, "shape": [60, 61, 3]}, {"axes": [0], "align": [16]}, layouts=("HWC", "CHW")),
    "paste": _all(
        {"ratio": 1.5, "fill_value": [1, 2, 3]},
        {"ratio": 1.2, "fill_value": [0, 0, 0], "paste_x": 0.1, "paste_y": 0.9},
        layouts=("HWC",),
        dtypes=("uint8",),
    ),
    "multi_paste": _all({"in_ids": [0], "output_size": [50, 60]}, layouts=("HWC",), dtypes=("uint8",), oracle=False),
    "water": _all({}, {"ampl_x": 3.0, "freq_y": 0.2}, layouts=("HWC",), dtypes=("uint8", "float32")),
    "sphere": _all({}, layouts=("HWC",), dtypes=("uint8", "float32")),
    "jitter": _all({}, layouts=("HWC",), dtypes=("uint8",), oracle=False),
    "erase": _all({"anchor": [3.0, 2.0], "shape": [4.0, 5.0], "axis_names": "HW"}, layouts=("HWC",)),
    # colour
    "color_space_conversion": _all(
        {"image_type": 0, "output_type": 3},
        {"image_type": 0, "output_type": 2},
        {"image_type": 3, "output_type": 0},
        layouts=_COLOR,
        dtypes=("uint8",),
    ),
    "hsv": _color({}, {"hue": 30.0, "saturation": 0.7, "value": 1.2}),
    "hue": _color({}, {"hue": 40.0}),
    "saturation": _color({}, {"saturation": 0.4}),
    "brightness": _color({}, {"brightness": 1.3, "brightness_shift": 0.1}),
    "contrast": _color({}, {"contrast": 0.6}),
    "brightness_contrast": _color({}, {"brightness": 1.2, "contrast": 0.7, "brightness_shift": -0.05}),
    "color_twist": _color({}, {"hue": 30.0, "saturation": 0.7, "brightness": 1.1, "contrast": 0.9}),
    "equalize": _all({}, layouts=("HWC", "CHW", "HW", "FHWC", "FCHW"), dtypes=("uint8",), off_by_one=0.0),
    "clahe": _all(
        {"tiles_x": 4, "tiles_y": 4, "clip_limit": 2.0},
        {"tiles_x": 3, "tiles_y": 5, "clip_limit": 1.5, "luma_only": False},
        layouts=("HWC",),
        dtypes=("uint8",),
        off_by_one=0.0,
    ),
    "debayer": [
        *_all({"blue_position": [0, 0]}, {"blue_position": [1, 0]}, inputs=("bayer",), dtypes=("uint8", "uint16")),
        *_all(
            {"blue_position": [0, 1], "algorithm": "edgeaware_ocv"},
            {"blue_position": [1, 1], "algorithm": "vng_ocv"},
            {"blue_position": [0, 0], "algorithm": "gray_ocv"},
            inputs=("bayer",),
            dtypes=("uint8",),
        ),
    ],
    "jpeg_compression_distortion": _all({}, {"quality": 4}, layouts=_COLOR, dtypes=("uint8",), off_by_one=0.0),
    "lookup_table": _all(
        {"keys": [1, 3], "values": [10.0, 30.5]},
        {"keys": [1, 3], "values": [10.0, 30.5], "dtype": U8, "default_value": 7.0},
        inputs=("keys",),
        dtypes=("uint8",),
    ),
    "grid_mask": _all(
        {},
        {"tile": 9, "ratio": 0.4, "angle": 0.3, "shift_x": 2.0},
        {"tile": EachSample([5, 9, 3]), "angle": EachSample([0.1, 2.0, -1.0]), "shift_y": EachSample([0.0, 2.5, -7.0])},
        layouts=("HWC",),
        dtypes=("uint8", "int16", "float32"),
    ),
    # filters and noise
    "gaussian_blur": _all(
        {"sigma": 1.2},
        {"window_size": 5},
        {"sigma": [0.5, 3.5]},
        layouts=("HWC", "CHW", "FHWC"),
        dtypes=("uint8", "int16", "float32"),
    ),
    "laplacian": _all(
        {}, {"window_size": 5, "scale": 0.5}, layouts=("HWC", "CHW", "DHWC"), dtypes=("uint8", "float32")
    ),
    "filter": _all(
        {},
        {"border": "constant", "anchor": [0, 2]},
        {"mode": "valid"},
        inputs=("plane", "filter"),
        dtypes=("uint8", "float32"),
    ),
    "experimental.median_blur": _all({}, {"window_size": [5, 7]}, dtypes=_MORPHOLOGY, oracle=False),
    "experimental.dilate": _all(
        {},
        {"mask_size": [5, 2], "iterations": 2, "border_mode": "reflect"},
        {"mask_size": 11, "anchor": [0, 3]},
        dtypes=_MORPHOLOGY,
        oracle=False,
    ),
    "experimental.erode": _all(
        {},
        {"mask_size": [5, 2], "iterations": 2, "border_mode": "wrap"},
        {"mask_size": 11, "anchor": [0, 3]},
        dtypes=_MORPHOLOGY,
        oracle=False,
    ),
    "noise.gaussian": _all({}, {"mean": 1.0, "stddev": 3.0}, layouts=("HWC",), dtypes=("uint8", "float32")),
    "noise.salt_and_pepper": _all(
        {}, {"prob": 0.3, "per_channel": True}, layouts=("HWC",), dtypes=("uint8", "float32")
    ),
    "noise.shot": _all({}, {"factor": 5.0}, layouts=("HWC",), dtypes=("uint8", "float32")),
    # audio
    "audio_resample": _vectors({"scale": 0.5}, {"in_rate": 16000.0, "out_rate": 22050.0}, kind="wave", relative=1e-4),
    "spectrogram": _vectors(
        {"nfft": 64, "window_length": 64, "window_step": 32},
        {"nfft": 128, "window_length": 96, "power": 1},
        kind="wave",
        relative=1e-4,
    ),
    "power_spectrum": _vectors({}, {"nfft": 1200, "power": 1}, kind="wave", relative=1e-4),
    "mel_filter_bank": _vectors(
        {"nfilter": 12}, {"nfilter": 12, "mel_formula": "htk", "normalize": False}, kind="spectrum"
    ),
    "mfcc": _vectors({"n_mfcc": 10}, {"n_mfcc": 10, "lifter": 5.0, "normalize": True}, kind="spectrum"),
    "to_decibels": _vectors({}, {"reference": 1.0, "cutoff_db": -40.0}, kind="spectrum"),
    "preemphasis_filter": _vectors({}, {"preemph_coeff": 0.5, "border": "zero"}, kind="wave"),
    "nonsilent_region": _vectors({}, {"window_length": 64, "cutoff_db": -20.0}, kind="wave"),
    "normalize": _all(
        {},
        {"axes": [0]},
        {"axes": [0, 1], "shift": 1.0, "scale": 2.0},
        inputs=("cube",),
        dtypes=("uint8", "int16", "int32", "float32"),
    ),
    # elementwise
    "cast": _all({"dtype": F32}, {"dtype": U8}, {"dtype": I16}, {"dtype": F16}, inputs=("matrix",)),
    "cast_like": [Case({}, inputs=("matrix", "wave"))],
    # reductions
    "reductions.std_dev": _all({}, inputs=("cube", "mean of cube"), dtypes=("uint8", "int16", "float32")),
    "reductions.variance": _all({}, inputs=("cube", "mean of cube"), dtypes=("uint8", "int16", "float32")),
    **{
        f"reductions.{name}": _all({}, {"axes": [0]}, {"axes": [0, 2], "keep_dims": True}, **_CUBE)
        for name in ("sum", "mean", "mean_square", "rms", "min", "max")
    },
    # random
    "random.uniform": _random({}, {"range": [2.0, 5.0], "shape": [4, 3]}, {"range": [0.0, 9.0], "dtype": I32}),
    "random.normal": _random({}, {"mean": 2.0, "stddev": 3.0, "shape": [4, 3]}),
    "random.coin_flip": _random({}, {"probability": 0.2, "shape": [20]}),
    "random.beta": _random({}, {"alpha": 0.5, "beta": 2.0, "shape": [9]}),
    "random.choice": _all({}, {"shape": [7]}, inputs=("vector",)),
    "batch_permutation": _random({}),
    "permute_batch": _all({"indices": EachSample([2, 0, 1])}, inputs=("matrix",)),
    "roi_random_crop": _random({"crop_shape": [4, 5], "roi_start": [2, 3], "roi_shape": [8, 9]}),
    # boxes, masks, coordinates
    "bb_flip": _vectors({}, {"vertical": 1, "ltrb": True}),
    "bbox_paste": _vectors({"ratio": 1.5}, {"ratio": 2.0, "ltrb": True, "paste_x": 0.2}),
    "bbox_rotate": [Case({"angle": 30.0, "input_shape": [40, 50]}, inputs=("boxes",), dtypes=("float32",))],
    "box_encoder": [
        Case({"anchors": [0.1, 0.1, 0.4, 0.4, 0.3, 0.2, 0.8, 0.9]}, inputs=("boxes", "labels"), dtypes=("float32",))
    ],
    "coord_flip": _vectors({}, {"flip_y": 1, "center_x": 0.4}, kind="points"),
    "coord_transform": _vectors(
        {},
        {"M": EachSample([[[0.5, 0.1], [0.2, 0.9]]] * 3), "T": EachSample([[1.0, 2.0]] * 3)},
        {"MT": EachSample([[[0.5, 0.1, 0.2]]] * 3), "dtype": F32},
        kind="points",
    ),
    "random_bbox_crop": _vectors({"num_attempts": 20, "total_num_attempts": 40}, oracle=False),
    "segmentation.random_mask_pixel": _all({}, {"foreground": 1}, inputs=("mask",), dtypes=("int32",)),
    "segmentation.random_object_bbox": _all({}, {"format": "box"}, inputs=("mask",), dtypes=("int32",)),
    "segmentation.select_masks": [Case({}, inputs=("mask ids", "polygons", "vertices"), dtypes=("int32",))],
    "transforms.translation": _random({"offset": [2.0, 3.0]}),
    "transforms.scale": _random({"scale": [2.0, 3.0], "center": [1.0, 1.0]}),
    "transforms.rotation": _random({"angle": 30.0}, {"angle": 30.0, "axis": [1.0, 2.0, 3.0]}),
    "transforms.shear": _random({"shear": [0.1, 0.3]}, {"angles": [10.0, 20.0]}),
    "transforms.crop": _random({}, {"from_start": [0.1, 0.2], "from_end": [0.9, 0.7]}),
    "transforms.combine": [Case({}, inputs=("matrix 2x3", "matrix 2x3"), dtypes=("float32",))],
    # form
    "reshape": [
        *_all({"shape": [4, -1]}, {"rel_shape": [0.5, 2.0]}, inputs=("same matrix",))[:1],
        Case({"layout": "HW"}, inputs=("matrix",)),
    ],
    "reinterpret": _all({"dtype": U8}, inputs=("matrix",), dtypes=DTYPES),
    "expand_dims": _all({"axes": [0]}, {"axes": [1], "new_axis_names": "X"}, inputs=("plane",)),
    "squeeze": [
        Case({"axis_names": "W"}, inputs=("thin",)),
        Case({"axes": [1]}, inputs=("thin",), oracle=False),  # DALI 2.4.0 does not see `axes` in dynamic mode
    ],
    "transpose": _all({}, {"perm": [2, 0, 1]}, {"perm": [1, 0, 2], "transpose_layout": False}, layouts=("HWC",)),
    "cat": _all({}, {"axis": 1}, inputs=("matrix", "matrix")),
    "stack": _all({}, {"axis": 1, "axis_name": "N"}, inputs=("plane", "plane")),
    "one_hot": _all(
        {"num_classes": 6},
        {"num_classes": 6, "on_value": 2.0, "dtype": I32, "axis": 0},
        inputs=("classes",),
        dtypes=("int32",),
    ),
    "full": _all({"shape": [3, 4]}, inputs=("scalar",)),
    "full_like": [Case({}, inputs=("matrix", "scalar"))],
    "ones": _random({}, {"shape": [3, 4], "dtype": F32}),
    "zeros": _random({}, {"shape": [3, 4], "dtype": U8}),
    "ones_like": _all({}, inputs=("matrix",)),
    "zeros_like": _all({}, {"dtype": F32}, inputs=("matrix",)),
    "get_property": _all({"key": "layout"}, layouts=("HWC",), dtypes=("uint8",)),
    # video
    "sequence_rearrange": _all({"new_order": [2, 0, 1, 1]}, inputs=("video",)),
    "element_extract": _all({"element_map": [0, 2]}, inputs=("video",)),
    "per_frame": _all({}, inputs=("cube",)),
    "optical_flow": _all({}, inputs=("video",), oracle=False),
    # encoded data
    "decoders.image": _vectors({}, {"output_type": 2}, kind="jpeg"),
    "decoders.image_crop": _vectors({"crop": [6, 7]}, kind="jpeg"),
    "decoders.image_random_crop": _vectors({}, kind="jpeg", oracle=False),
    "decoders.image_slice": _vectors({"start": [1, 2], "shape": [5, 6], "axes": [0, 1]}, kind="jpeg"),
    "decoders.numpy": _vectors({}, kind="npy"),
    "peek_image_shape": _vectors({}, kind="jpeg"),
}
for _name in ("image", "image_crop", "image_random_crop", "image_slice"):
    TABLE[f"experimental.decoders.{_name}"] = TABLE[f"decoders.{_name}"]
TABLE["experimental.peek_image_shape"] = TABLE["peek_image_shape"]

# Operators of which the generic calls make no sense, and where they are tested instead.
ELSEWHERE = {
    "decoders.audio": "tests/decoders",
    "decoders.video": "tests/decoders",
    "decoders.inflate": "tests/decoders",
    "dump_image": "tests/ops/image",  # it writes to the working directory
    "io.file.read": "tests/io",
}
