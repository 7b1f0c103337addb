"""Numbers that show where conversion and arithmetic go wrong: extremes, halves, signs, NaN."""

from __future__ import annotations

from typing import Any

import numpy as np

NUMPY = {
    "bool": "bool", "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64", "i8": "int8", "i16": "int16",
    "i32": "int32", "i64": "int64", "f16": "float16", "f32": "float32", "f64": "float64",
}  # fmt: skip
NAMES = tuple(NUMPY)


def samples(name: str, count: int = 200, seed: int = 0) -> np.ndarray:
    """Random bit patterns mixed with small numbers and the extremes of the type."""
    kind = np.dtype(NUMPY[name])
    rng = np.random.default_rng([seed, NAMES.index(name)])
    if kind.kind == "b":
        return rng.integers(0, 2, count).astype(bool)
    result = rng.integers(0, 256, count * kind.itemsize, dtype=np.uint8).view(kind).copy()
    small = rng.integers(0, 20, count).astype(kind)
    if kind.kind in "iu":
        info = np.iinfo(kind)
        special = np.array([info.min, info.max, 0, 1, 2, 3], kind)
        if kind.kind == "i":
            small = rng.integers(-20, 20, count).astype(kind)
    else:
        special = np.array([0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 0.5, 2, 2.0**15], kind)
        small = (rng.standard_normal(count) * 10).astype(kind)
        result[3::5] = rng.integers(-20, 20, len(result[3::5]))
    result[::5] = rng.choice(special, len(result[::5]))
    result[1::5] = small[1::5]
    return result


def borders(name: str) -> np.ndarray:
    """Values at which a conversion to some other type rounds, saturates or overflows."""
    kind = np.dtype(NUMPY[name])
    if kind.kind != "f":
        return samples(name)
    values = [0, -0.0, 0.5, -0.5, 0.49999997, 0.49999999999999994, 1.5, 2.5, -2.5, 254.5, 255.5, 65504, 65519, 65520]
    values += [np.inf, -np.inf, np.nan, 1e-8, 6e-8, 2.98e-8, -3e-5, 1e20, -1e20]
    for bits in (7, 8, 15, 16, 31, 32, 63, 64):
        for step in (-1, -0.5, 0, 0.5, 1):
            values += [2.0**bits + step, -(2.0**bits) + step]
        values += [float(np.nextafter(np.float32(2.0**bits), np.float32(0))), float(np.nextafter(2.0**bits, 0))]
    with np.errstate(all="ignore"):
        return np.concatenate([np.array(values).astype(kind), samples(name)])


def random_array(rng: np.random.Generator, shape: Any, dtype: Any) -> np.ndarray:
    """Any numbers of a type."""
    kind = np.dtype(dtype)
    if kind.kind == "f":
        return (rng.standard_normal(shape) * 200).astype(kind)
    if kind.kind == "b":
        return rng.random(shape) < 0.5
    limits = np.iinfo(kind)
    return rng.integers(limits.min, limits.max, shape, dtype=kind, endpoint=True)
