"""Affine maps as matrices [d, d + 1]: how the operators of this package make, combine and return them.

During the computation a map is a row: maps are float32 [R, d, d + 1] and vectors [R, d], where R is the number of samples, or
of the frames of all samples if any argument has frames, or 1 for values that apply to all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ndd._compiled.jit import kernel
from ndd._operator import Operand, Values, bad_sample
from ndd._tensor import Handle, Spec
from ndd._tensor.dtype import float32

_RADIANS = np.float32(np.pi / 180)


def matrix_spec(name: str, input: Spec | None, *values: Any) -> Spec:
    """The description of the output: float32 matrices of layout "**", or one for each frame ("F**") if any argument has
    frames."""
    layouts = [v.layout for v in values if isinstance(v, Handle)]
    if input is not None:
        check_matrices(name, input)
        if input.layout not in (None, "", "**", "F**"):
            raise ValueError(f'{name}: expected transform matrices of layout "**" or "F**", got {input.layout!r}')
        layouts.append(input.layout)
    frames = any((x or "")[:1] == "F" for x in layouts)
    return Spec.of(float32, 3 if frames else 2, "F**" if frames else "**", None)  # type: ignore[arg-type]


def check_matrices(name: str, input: Spec) -> None:
    """RuntimeError unless an input can be matrices."""
    if input.dtype != float32:
        raise RuntimeError(f"{name}: expected transform matrices of float32, got {input.dtype}")
    axes = 3 if (input.layout or "")[:1] == "F" else 2
    if input.ndim != axes:
        raise RuntimeError(
            f'{name}: expected transform matrices of shape (d, d + 1), or (frames, d, d + 1) with layout "F**", got '
            f"{input.ndim} axes and layout {input.layout!r}"
        )


class Rows:
    """The arguments of a call, and the number of rows of each sample: `counts` is None if no argument has frames."""

    def __init__(self, n: int, input: Operand | None, arguments: dict[str, Any]):
        self.n = n
        self.input = input
        self._arguments = arguments
        self.counts: np.ndarray | None = None
        if input is not None and (input.layout or "")[:1] == "F":
            self.counts = input.shapes[:, 0]
        for value in arguments.values():
            if _framed(value):
                own = np.array([len(a) for a in value.arrays()], np.int64)
                self.counts = own if self.counts is None else self._agreed(self.counts, own)

    def _agreed(self, counts: np.ndarray, own: np.ndarray) -> np.ndarray:
        wrong = (counts != own) & (own != 1)
        if wrong.any():
            i = int(wrong.argmax())
            raise bad_sample(i, f"expected the same number of frames everywhere, got {counts[i]} and {own[i]}")
        return counts

    def values(self, name: str, axes: int | None = 1) -> np.ndarray:
        """An argument as float32 [R, ...], with `axes` axes after the rows (None: any number)."""
        value = self._arguments[name]
        if not value.varies:
            numbers = value.constant[None]
        elif _framed(value):
            numbers = self._of_frames(name, value.arrays())
        else:
            numbers = value.whole
            if numbers is None:
                raise RuntimeError(f'Expected uniform shape for argument "{name}"')
            if self.counts is not None:
                numbers = np.repeat(numbers, self.counts, axis=0)
        if axes is not None and numbers.ndim != axes + 1:
            raise RuntimeError(f'Argument "{name}": expected {axes} axes, got shape {numbers.shape[1:]}')
        return numbers

    def _of_frames(self, name: str, parts: list[np.ndarray]) -> np.ndarray:
        if any(a.shape[1:] != parts[0].shape[1:] for a in parts):
            raise RuntimeError(f'Expected uniform shape for argument "{name}", got {[a.shape for a in parts]}')
        counts = self.counts.tolist()  # type: ignore[union-attr]
        return np.concatenate(
            [np.repeat(a, c, axis=0) if len(a) != c else a for a, c in zip(parts, counts, strict=True)]
        )

    def vectors(self, name: str, size: int) -> np.ndarray:
        """An argument as float32 [R, size]; one number applies to all axes."""
        numbers = self.values(name)
        if numbers.shape[1] not in (1, size) or not size:
            raise RuntimeError(
                f'Argument "{name}" expected shape {size} but got {numbers.shape[1]} values, which can\'t be interpreted '
                "as the expected shape."
            )
        return numbers if numbers.shape[1] == size else np.repeat(numbers, size, axis=1)

    def angles(self, name: str) -> np.ndarray:
        """An argument of one number for each row, in degrees, as radians [R]."""
        numbers = self.values(name, 0) if _framed(self._arguments[name]) else self.vectors(name, 1)[:, 0]
        return radians(numbers)

    def about(self, linear: np.ndarray) -> np.ndarray:
        """A linear map [R, d, d] with the fixed point `center` (default: the origin)."""
        d = linear.shape[-1]
        if self._arguments["center"] is None:
            return affine(linear, np.zeros((1, d), np.float32))
        center = self.vectors("center", d)
        return affine(linear, center - (linear * center[:, None]).sum(axis=2, dtype=np.float32))

    def samples(self, own: np.ndarray, reverse_order: bool) -> Any:
        """The matrices of the samples: the maps `own`, applied after those of the input if there is one."""
        counts = self.counts
        total = self.n if counts is None else int(counts.sum())
        maps = np.empty((1, total, *own.shape[1:]), np.float32)
        if self.input is None:
            maps[0] = own
        else:
            matrices = self._matrices(self.input, total)
            if matrices.shape[1] != own.shape[1]:
                raise RuntimeError(
                    f"The input describes a {matrices.shape[1]}D transform but other arguments suggest a "
                    f"{own.shape[1]}D transform"
                )
            compose(*((matrices[None], own[None]) if reverse_order else (own[None], matrices[None])), maps)
        return maps[0] if counts is None else np.split(maps[0], np.cumsum(counts)[:-1])

    def _matrices(self, input: Operand, total: int) -> np.ndarray:
        """The matrices of an input as [R, d, d + 1]."""
        check_shapes(input)
        d = int(input.shapes[0, -2])
        whole = input.whole
        flat = np.concatenate(input.arrays) if whole is None else whole
        flat = np.ascontiguousarray(flat, np.float32).reshape(-1, d, d + 1)
        if self.counts is None or len(flat) == total:
            return flat
        return np.repeat(flat, self.counts, axis=0)


def _framed(value: Any) -> bool:
    return value is not None and (value.layout or "")[:1] == "F"


def makes_maps(op: Any) -> Callable[[Callable[..., np.ndarray]], Any]:
    """Registers the function of an operator of this package: `f(rows, **arguments)` returns its maps, float32 [R, d, d + 1]."""

    def hook(function: Callable[..., np.ndarray]) -> None:
        # NumPy multiplies the matrices of the whole batch in one call: they have a few numbers each.
        @op.batch
        def _(call: Any, input: Any, *, reverse_order: bool, **arguments: Any) -> Any:
            rows = Rows(call.n, input, {k: v for k, v in arguments.items() if isinstance(v, Values | None)})
            return rows.samples(call.once(lambda: function(rows, **arguments)), reverse_order)

    return hook


def check_shapes(input: Operand) -> None:
    """RuntimeError unless all samples of an input are matrices of one size."""
    own = input.shapes[:, -2:]
    if (own[:, 1] != own[:, 0] + 1).any() or (own != own[0]).any():
        raise RuntimeError(
            f"expected transform matrices of shape (d, d + 1), got {sorted(set(map(tuple, own.tolist())))}"
        )


def radians(degrees: np.ndarray) -> np.ndarray:
    """Angles in float64 for `np.cos` and `np.sin`, whose float32 versions err in the last digit; the product is a float32."""
    return (degrees * _RADIANS).astype(np.float64)


def affine(linear: np.ndarray, offset: np.ndarray) -> np.ndarray:
    """[R, d, d] and [R, d] as [R, d, d + 1]."""
    rows, d = max(len(linear), len(offset)), linear.shape[1]
    matrices = np.empty((rows, d, d + 1), np.float32)
    matrices[:, :, :d] = linear
    matrices[:, :, d] = offset
    return matrices


def scaling(factors: np.ndarray) -> np.ndarray:
    """[R, d] as diagonal matrices [R, d, d]."""
    axes = factors.shape[1]
    matrices = np.zeros((len(factors), axes, axes), np.float32)
    for axis in range(axes):  # quicker than a list of indices
        matrices[:, axis, axis] = factors[:, axis]
    return matrices


@kernel(nogil=False)
def compose(second, first, out):
    """Writes the maps that apply `first`, then `second`: float32 [N, F, d, d + 1], where F may be 1 for maps that apply to
    all."""
    frames, rows, columns = out.shape[1:]
    for i in range(len(out)):
        for f in range(frames):
            a = second[i, f if second.shape[1] > 1 else 0]
            b = first[i, f if first.shape[1] > 1 else 0]
            for r in range(rows):
                for c in range(columns):
                    total = a[r, 0] * b[0, c]
                    for k in range(1, rows):
                        total += a[r, k] * b[k, c]
                    out[i, f, r, c] = total + a[r, rows] * np.float32(c == rows)
