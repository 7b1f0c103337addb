"""Random arguments of the resizing operators, for ndd and DALI alike."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

# Interpolation types by number. NN is left out where a region may reach outside: DALI then reads beyond the row.
FILTERS = (1, 2, 3, 4, 5)
EXTENTS = {"H": 40, "W": 40, "D": 11, "C": 5, "F": 3}


class Draw:
    """Draws samples and arguments for one call."""

    def __init__(self, seed: int, layout: str, dtype: str, n: int):
        self.pick = random.Random(seed)
        self.rng = np.random.default_rng(seed)
        self.layout, self.n = layout, n
        self.spatial = [i for i, c in enumerate(layout) if c in "DHW"]
        self.largest = 14 if "D" in layout else 45
        self.fixed = {c: self.pick.randint(1, m) for c, m in EXTENTS.items() if c not in "DHW"}
        self.samples = [self._image(dtype) for _ in range(n)]

    def _image(self, dtype: str) -> np.ndarray:
        most = {c: 11 if "D" in self.layout else m for c, m in EXTENTS.items()}
        shape = [self.fixed.get(c) or self.pick.randint(1, most[c]) for c in self.layout]
        if dtype == "float32":
            return self.rng.standard_normal(shape).astype(np.float32)
        # DALI rounds negative int16 numbers above -0.5 to -1.
        high = min(np.iinfo(dtype).max, 60000)
        return self.rng.integers(0, high, shape, dtype=dtype, endpoint=True)

    def extent(self) -> float:
        """An extent, whole or not, sometimes mirrored or missing."""
        value = self.pick.choice([self.pick.randint(1, self.largest), round(self.pick.uniform(0.4, self.largest), 2)])
        return float(value) * self.pick.choice([1, 1, 1, 1, 1, -1, 0])

    def size(self) -> dict[str, Any]:
        """One of the ways to give the size."""
        pick, way = self.pick, self.pick.randrange(5)
        if way < 2:
            options: dict[str, Any] = {"size": self.vector(self.extent)}
        elif way == 2:
            options = {f"resize_{a}": self.scalar(self.extent) for a in pick.choice(["x", "y", "xy", "xyz", "z"])}
        else:
            options = {pick.choice(["resize_shorter", "resize_longer"]): self.scalar(lambda: abs(self.extent()))}
        if way < 3 and pick.random() < 0.6:
            options["mode"] = pick.choice(["default", "stretch", "not_larger", "not_smaller"])
        options["max_size"] = float(pick.randint(5, 60))
        if pick.random() < 0.3:
            options["max_size"] = [float(pick.randint(5, 60)) for _ in self.spatial]
        if pick.random() < 0.3:
            options["subpixel_scale"] = False
        return options

    def region(self) -> dict[str, Any]:
        """A region of interest, absolute or relative, possibly reversed and partly outside."""
        relative = self.pick.random() < 0.5
        scale = 1 if relative else min(min(s.shape[a] for a in self.spatial) for s in self.samples)
        low = self.vector(lambda: round(self.pick.uniform(-0.1, 0.45) * scale, 3))
        high = self.vector(lambda: round(self.pick.uniform(0.55, 1.1) * scale, 3))
        if self.pick.random() < 0.3:
            low, high = high, low
        return {"roi_start": low, "roi_end": high, "roi_relative": relative}

    def filters(self, nearest: bool = False) -> dict[str, Any]:
        """Interpolation types and antialiasing."""
        choice = (0, *FILTERS) if nearest else FILTERS
        options: dict[str, Any] = {}
        if self.pick.random() < 0.7:
            options["interp_type"] = self.scalar(lambda: self.pick.choice(choice))
        for name in ("min_filter", "mag_filter"):
            if self.pick.random() < 0.2:
                options[name] = self.pick.choice(choice)
        if self.pick.random() < 0.3:
            options["antialias"] = False
        return options

    def scalar(self, item: Callable[[], Any]) -> Any:
        """A number, or one for each sample."""
        if self.pick.random() < 0.5:
            return item()
        return EachSample(
            [np.array(item(), np.float32 if isinstance(item(), float) else np.int32) for _ in range(self.n)]
        )

    def vector(self, item: Callable[[], float]) -> Any:
        """A number for each axis, for all samples or for each."""
        row = lambda: [item() for _ in self.spatial]  # noqa: E731
        if self.pick.random() < 0.5:
            return row()
        return EachSample([np.array(row(), np.float32) for _ in range(self.n)])


class EachSample:
    """Values of an argument for each sample."""

    def __init__(self, values: list[np.ndarray]):
        self.values = values

    def __repr__(self) -> str:
        return f"each({[v.tolist() for v in self.values]})"


def interpolation(module: Any, number: int) -> Any:
    """A filter by number, as the module wants it."""
    if module.__name__ == "ndd":
        return module.types.DALIInterpType(number)
    from nvidia.dali.types import DALIInterpType

    return DALIInterpType(number)


def given(module: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments as objects of the module."""
    result = {}
    for name, value in arguments.items():
        if name in ("interp_type", "min_filter", "mag_filter"):
            if isinstance(value, EachSample):
                value = module.batch([interpolation(module, int(v)) for v in value.values])
            else:
                value = interpolation(module, value)
        elif isinstance(value, EachSample):
            value = module.batch(value.values)
        elif name == "dtype":
            value = getattr(module, value)
        result[name] = value
    return result
