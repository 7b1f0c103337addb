"""Pictures of operators, made by the examples of their docstrings: what goes in, what comes out.

The last call of an operator in its own example is the one that shows. Photographs and videos are pictures, sounds are waves,
spectra are heat maps, everything else is a grid of numbers.
"""

from __future__ import annotations

import contextlib
import doctest
import html
import inspect
import io
import os
from typing import Any

import numpy as np
from PIL import Image

import ndd
from ndd._operator import Operator, all_operators
from ndd._tensor.picture import as_rgb

_SMALLEST_PICTURE = 16  # pixels: smaller images are grids of numbers
_WIDTH = 260
_MOST_CELLS = 12
_MOST_FRAMES = 4


class Gallery:
    """Before and after of every operator. `files` holds the pictures by their paths in the site."""

    def __init__(self):
        self.files: dict[str, bytes] = {}
        self.figures: dict[str, tuple[str, str]] = {}
        self.failed: dict[str, str] = {}
        documented: dict[str, str] = {}  # the name that an example is of: old names have the docstrings of the new ones
        ours = {p: o for p, o in all_operators().items() if o.module.startswith("ndd.") and not o.name.startswith("_")}
        for path, operator in sorted(ours.items(), key=lambda item: item[0].startswith("experimental")):
            text = inspect.getdoc(operator.function) or ""
            first = documented.setdefault(text, path)
            if text.startswith("The old name of"):
                first = path.removeprefix("experimental.")
            if first == path:
                self._add(path, operator)
            elif first in self.figures:
                self.figures[path] = self.figures[first]

    def figure(self, path: str) -> str:
        """Before and after side by side; "" of what is no operator."""
        if path not in self.figures:
            return ""
        before, after = self.figures[path]
        arrow = '<span class="arrow">→</span>' if before else ""
        return f'<div class="figure">{before}{arrow}{after}</div>\n'

    def thumbnail(self, path: str, link: str) -> str:
        """A tile of the gallery's page."""
        return f'<a class="tile" href="{link}">{self.figure(path)}<code>{path}</code></a>'

    def _add(self, path: str, operator: Operator) -> None:
        try:
            calls = recorded(path, operator)
        except Exception as error:
            self.failed[path] = f"{type(error).__name__}: {error}"
            return
        if not calls:
            self.failed[path] = "its example does not call it"
            return
        inputs, outputs = calls[-1]
        before = "".join(self._shown(f"{path}-in{i}", value) for i, value in enumerate(inputs[:2]))
        after = "".join(self._shown(f"{path}-out{i}", value) for i, value in enumerate(outputs[:2]))
        self.figures[path] = before, after

    def _shown(self, name: str, value: Any) -> str:
        samples = [np.asarray(t) for t in _tensors(value)]
        layout = getattr(value, "layout", None) or ""
        if not samples or not samples[0].size:
            return '<span class="numbers">empty</span>'
        pictures = [p for s in samples[:2] for p in _pictures(s, layout)]
        if pictures:
            return "".join(self._image(f"{name}-{k}", p) for k, p in enumerate(pictures))
        first = samples[0]
        if first.dtype == np.uint8 and first.ndim == 1 and first.size > _MOST_CELLS:
            return f'<span class="numbers">{first.size:,} bytes</span>'
        if first.ndim == 1 and first.size > 64:
            return _wave(first)
        if first.ndim == 2 and min(first.shape) > 8:
            return self._image(name, _heat(first))
        return "".join(_grid(s) for s in samples[:4])

    def _image(self, name: str, pixels: np.ndarray) -> str:
        image = Image.fromarray(np.ascontiguousarray(pixels))
        image.thumbnail((2 * _WIDTH, 2 * _WIDTH))
        file = io.BytesIO()
        image.save(file, "WEBP", quality=80)
        path = f"gallery/{name}.webp"
        self.files[path] = file.getvalue()
        return f'<img loading="lazy" src="/{path}" alt="{html.escape(name)}" width="{min(_WIDTH, image.width)}">'


def recorded(path: str, operator: Operator) -> list[tuple[list[Any], list[Any]]]:
    """Inputs and outputs of each call of an operator in its docstring's example."""
    calls: list[tuple[list[Any], list[Any]]] = []
    call = Operator.call

    def watched(self: Operator, inputs: Any, *rest: Any, **more: Any) -> Any:
        result = call(self, inputs, *rest, **more)
        if self is operator:
            outputs = list(result) if isinstance(result, (tuple, list)) else [result]
            calls.append((_handles(inputs), outputs))
        return result

    scope: dict[str, Any] = {}
    Operator.call = watched
    try:
        # What it prints is tested elsewhere: here it is run for its values.
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
            for example in doctest.DocTestParser().get_examples(inspect.getdoc(operator.function) or ""):
                exec(compile(example.source, path, "exec"), scope)
    finally:
        Operator.call = call
    return calls


def _handles(inputs: Any) -> list[Any]:
    values = []
    for value in inputs:
        if hasattr(value, "torch"):
            values.append(value)
        elif isinstance(value, (list, np.ndarray, float, int)):
            values.append(ndd.as_tensor(value))
    return values


def _tensors(value: Any) -> list[Any]:
    return list(value.cpu().tensors) if isinstance(value, ndd.Batch) else [value.cpu()]


def _pictures(sample: np.ndarray, layout: str) -> list[np.ndarray]:
    """u8 RGB pictures of an image, or of the frames of a video; none of what is no picture."""
    if layout[:1] == "F" and sample.ndim == len(layout):
        frames = sample[:_MOST_FRAMES]
        return [p for frame in frames for p in _pictures(frame, layout[1:])]
    if layout == "CHW" or (not layout and sample.ndim == 3 and sample.shape[0] == 3 and sample.shape[2] != 3):
        sample, layout = np.moveaxis(sample, 0, -1), "HWC"
    if layout == "HW":
        sample, layout = sample[..., None], "HWC"
    if sample.ndim != 3 or sample.shape[2] not in (1, 2, 3, 4) or min(sample.shape[:2]) < _SMALLEST_PICTURE:
        return []
    if sample.shape[2] == 2:  # a flow: direction by two colours
        sample = np.concatenate([sample, np.zeros_like(sample[..., :1])], axis=2)
    return [as_rgb(sample)]


def _heat(values: np.ndarray) -> np.ndarray:
    """A matrix as a picture: dark is low; the first row is at the bottom, as spectrograms are drawn."""
    x = values.astype(np.float64)
    x = (x - x.min()) / max(x.max() - x.min(), 1e-12)
    colors = np.array([[13, 8, 60], [120, 30, 110], [230, 90, 60], [252, 230, 140]], np.float64)
    place = x[::-1] * 3
    low = np.minimum(place.astype(int), 2)
    mixed = colors[low] + (colors[low + 1] - colors[low]) * (place - low)[..., None]
    scale = max(1, _WIDTH // max(values.shape))
    return np.kron(mixed.round().astype(np.uint8), np.ones((scale, scale, 1), np.uint8))


def _wave(values: np.ndarray) -> str:
    """A line as SVG: the least and the largest value in each of 130 columns."""
    columns = [c for c in np.array_split(values.astype(np.float64), 130) if c.size]
    low, high = min(c.min() for c in columns), max(c.max() for c in columns)
    scale = 80 / max(high - low, 1e-12)
    lines = "".join(
        f"M{2 * i} {82 - (c.max() - low) * scale:.1f}L{2 * i} {83 - (c.min() - low) * scale:.1f}"
        for i, c in enumerate(columns)
    )
    return f'<svg class="wave" viewBox="-2 0 264 86" width="{_WIDTH}"><path d="{lines}"/></svg>'


def _grid(values: np.ndarray) -> str:
    """Numbers in cells, shaded by size."""
    table = values.reshape(-1, values.shape[-1]) if values.ndim else values.reshape(1, 1)
    shown = table[:_MOST_CELLS, :_MOST_CELLS]
    size = np.abs(shown.astype(np.float64))
    top = float(size.max()) if np.isfinite(size).all() and size.max() > 0 else 1.0
    rows = []
    for row, strength in zip(shown.tolist(), np.nan_to_num(size / top).tolist(), strict=True):
        cells = [f'<td style="--s:{min(s, 1) * 60:.0f}%">{_number(v)}</td>' for v, s in zip(row, strength, strict=True)]
        rows.append("<tr>" + "".join(cells) + "</tr>")
    return f'<table class="numbers">{"".join(rows)}</table>'


def _number(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else html.escape(str(value))
