"""Typical inputs and arguments of every operator: what the registry-wide tests feed to ndd and to the oracle.

They stand in the operator's own test file, as `REGISTRY_CASES = {"flip": each_of({}, {"vertical": 1})}`; where it needs
inputs of a kind that is not in `KINDS`, as `REGISTRY_INPUTS = {"bayer": (make, layout)}`. An operator that says nothing
gets a default by its declaration (images if it takes HWC, else float matrices), so a new one is covered as it stands;
one that cannot be called with that fails and says so. An empty list says that the generic calls make no sense for it.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

# DALI's numbers of element types: both packages take them as `dtype=`.
U8, I16, I32, I64, F16, F32, F64 = 0, 5, 6, 7, 8, 9, 10

DTYPES = (
    *("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
    *("float16", "float32", "float64", "bool"),
)
_TESTS = Path(__file__).parent
_SIZES = ((23, 31), (17, 40), (8, 9), (41, 20))


@dataclasses.dataclass(frozen=True)
class Case:
    """One way to call an operator. `inputs` names the kinds of its inputs (`KINDS`); None: an image."""

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


def _floats(make: Callable[[np.random.Generator, int], Any]) -> Callable[..., np.ndarray]:
    return lambda rng, i, dtype: np.asarray(make(rng, i), np.float32)


def _jpeg(rng: np.random.Generator, i: int, dtype: str) -> np.ndarray:
    import io

    from PIL import Image

    h, w = _SIZES[i % 4]
    y, x = np.mgrid[0:h, 0:w]
    pixels = np.stack([x * 255 // w, y * 255 // h, (x + y) % 256], axis=2).astype(np.uint8)
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "JPEG", quality=90)
    return np.frombuffer(stream.getvalue(), np.uint8)


# What inputs may be: a function of (rng, sample number, element type) that gives a NumPy array, and its layout.
KINDS: dict[str, tuple[Callable[..., np.ndarray], str | None]] = {
    "matrix": (lambda rng, i, dtype: values(rng, (3 + i, 4), dtype), None),
    "same matrix": (lambda rng, i, dtype: values(rng, (3, 4), dtype), None),
    "cube": (lambda rng, i, dtype: values(rng, (2 + i, 3, 4), dtype), None),
    "mean of cube": (lambda rng, i, dtype: np.float32(0.5), None),
    "plane": (lambda rng, i, dtype: image(rng, i, "HW", dtype), "HW"),
    "video": (lambda rng, i, dtype: values(rng, (4, *_SIZES[i % 4], 3), dtype), "FHWC"),
    "vector": (lambda rng, i, dtype: values(rng, (5 + i,), dtype), None),
    "scalar": (lambda rng, i, dtype: values(rng, (), dtype), None),
    "wave": (
        _floats(lambda rng, i: np.sin(np.arange(900 + 70 * i) * 0.05) + 0.1 * rng.standard_normal(900 + 70 * i)),
        None,
    ),
    "points": (_floats(lambda rng, i: rng.random((4 + i, 2))), None),
    "jpeg": (_jpeg, None),
}


def each_of(*args: dict[str, Any], **more: Any) -> list[Case]:
    """A case for each of these arguments."""
    return [Case(a, **more) for a in args]


def drawn_arguments(rng: np.random.Generator, ranges: dict[str, tuple[Any, Any]], n: int | None) -> dict[str, Any]:
    """Some of these arguments, from `low` to below `high`: as a number, an array, or a number for each of `n` samples."""
    arguments: dict[str, Any] = {}
    for name, (low, high) in ranges.items():
        kind, draw = (np.int32, rng.integers) if isinstance(low, int) else (np.float32, rng.uniform)
        values = draw(low, high, n or 1).astype(kind)
        forms = [None, values[0].item(), np.array(values[0]), *([EachSample(list(values))] if n else [])]
        arguments[name] = forms[rng.integers(len(forms))]
    return {name: value for name, value in arguments.items() if value is not None}


@functools.cache
def table() -> dict[str, list[Case]]:
    """The cases of each operator that has some of its own, of all test files; the kinds of their inputs join `KINDS`."""
    result: dict[str, list[Case]] = {}
    for file in sorted(_TESTS.rglob("test_*.py")):
        if re.search("^REGISTRY_CASES ", file.read_text(encoding="utf-8"), re.MULTILINE):
            module = _imported(file)
            inputs = getattr(module, "REGISTRY_INPUTS", {})
            twice = result.keys() & module.REGISTRY_CASES.keys() | KINDS.keys() & inputs.keys()
            assert not twice, f"{file}: {sorted(twice)} stand in another file too"
            result.update(module.REGISTRY_CASES)
            KINDS.update(inputs)
    return result


def _imported(file: Path) -> Any:
    """A test file as a module of its own, beside the one that pytest makes of it."""
    name = ".".join(("registry_cases", *file.relative_to(_TESTS).with_suffix("").parts))
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
