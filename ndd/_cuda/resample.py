"""Resampling of a batch on the GPU: the choice of passes, and the scratch memory between them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ndd._cpu.filter_taps import NN, NN_CENTRE, NN_FUSED, TRIANGULAR
from ndd._tensor.small_arrays import columns

if TYPE_CHECKING:
    from ndd._cuda.launch import Launch, Memory
    from ndd._operator import Operand

_FEW_TAPS = 8  # along x, by the kernel for triangles
_MOST_READS = 512  # of one thread; with more, two passes with an image in between are cheaper: triangles
_MOST_SHARED_READS = 4096  # the same for other filters, where 8 output rows share their input rows


def resample_batch(
    launch: Launch,
    input: Operand,
    out: Operand,
    *,
    axes: tuple[int, ...],
    kind: np.ndarray,
    radius: np.ndarray,
    moved: tuple[int, ...] = (),
) -> None:
    """Resamples input 0 to output 0 along `axes` (ascending) with the kernels of resize.cu. The number of launches does not
    depend on the batch. `moved` lists the axes that need a pass, if not all do.

    The last two axes are resampled in one pass where that is cheap. Other passes are along one axis each, the axis that shrinks
    most first, with float32 scratch memory in between.
    """
    shapes, out_shapes = input.shapes, out.shapes
    if kind.size and kind.max() > NN_FUSED:
        _exact_passes(launch, input, out, axes, kind)
        return
    taps: list[int] = [max(math.ceil(2 * r), 1) for r in np.maximum.reduce(radius).tolist()]
    numbers = list(moved or range(len(axes)))
    pair = numbers[-2:]
    neighbours = len(pair) == 2 and axes[pair[0]] + 1 == axes[pair[1]]
    macros = _plane_macros(columns(kind, pair), taps[pair[1]]) if neighbours else {}
    at_once = neighbours and taps[pair[0]] * taps[pair[1]] <= (_MOST_SHARED_READS if macros else _MOST_READS)
    if at_once:
        view = _plane_view(shapes, out_shapes, axes[pair[0]])
        largest = np.maximum.reduce(view).tolist()
        planes, height, width, channels, *_ = largest
        work = _strips(largest)
        at_once = planes * height * width * channels < 2**31 and work < 2**28
        if at_once and len(numbers) == 2:  # the usual case
            _plane_pass(launch, view, work, pair, {}, macros)
            return
    if at_once:
        at_once = np.maximum(shapes, out_shapes).prod(axis=1).max() < 2**31
    passes = _passes(shapes, out_shapes, axes, numbers, at_once)
    source = None
    for number, group in enumerate(passes):
        own = [axes[i] for i in group]
        reached = shapes.copy()
        reached[:, own] = out_shapes[:, own]
        target = None if number == len(passes) - 1 else launch.scratch(reached.prod(axis=1), np.float32)
        _pass(launch, shapes, reached, group, axes, source, target, macros if len(group) == 2 else {})
        shapes, source = reached, target


def _exact_passes(launch: Launch, input: Operand, out: Operand, axes: tuple[int, ...], kind: np.ndarray) -> None:
    """Resamples by torch's rule: along the last axis first, with bytes rounded in between."""
    shapes, source = input.shapes, None
    more = {"EXACT": "1"}
    for number, i in enumerate(reversed(range(len(axes)))):
        reached = shapes.copy()
        reached[:, axes[i]] = out.shapes[:, axes[i]]
        last = number == len(axes) - 1
        target = None if last else launch.scratch(reached.prod(axis=1), np.float32)
        bounded = not last and out.dtype.name == "u8" and kind.max() > NN_CENTRE
        _pass(launch, shapes, reached, [i], axes, source, target, {**more, "IN_BYTES": "1"} if bounded else more)
        shapes, source = reached, target


def _plane_macros(kind: np.ndarray, across: int) -> dict[str, str]:
    """The macros of a plane's kernel; none for NN and narrow triangles with `across` taps along x, for which the default kernel
    handles both axes."""
    kinds = int(kind.min()), int(kind.max())
    narrow = kinds == (TRIANGULAR, TRIANGULAR) and across <= _FEW_TAPS
    return {} if narrow or kinds in ((NN, NN), (NN_FUSED, NN_FUSED)) else {"FILTERS": "1"}


def _passes(
    shapes: np.ndarray, out_shapes: np.ndarray, axes: tuple[int, ...], numbers: list[int], at_once: bool
) -> list[list[int]]:
    """Numbers of the axes, grouped by pass; the last two together if `at_once`."""
    groups: list[list[int]] = []
    if at_once:
        groups, numbers = [numbers[-2:]], numbers[:-2]
    growth = [out_shapes[:, a].sum() / max(shapes[:, a].sum(), 1) for a in axes]
    return sorted([*([i] for i in numbers), *groups], key=lambda group: math.prod(growth[i] for i in group))


def _pass(
    launch: Launch,
    shapes: np.ndarray,
    reached: np.ndarray,
    group: list[int],
    axes: tuple[int, ...],
    source: Memory | None,
    target: Memory | None,
    macros: dict[str, str],
) -> None:
    fields: dict[str, Any] = {}
    macros = dict(macros)
    for name, memory, kind in (("source", source, "const float*"), ("target", target, "float*")):
        if memory is not None:
            fields[name] = memory
            macros[name.upper()] = f"(({kind})s.{name})"
            macros[f"{name.upper()}_TYPE"] = "float"
    axis = axes[group[0]]
    if len(group) == 2:
        view = _plane_view(shapes, reached, axis)
        _plane_pass(launch, view, _strips(view.max(axis=0).tolist()), group, fields, macros)
    else:
        before, behind = shapes[:, :axis].prod(axis=1), shapes[:, axis + 1 :].prod(axis=1)
        fields["line"] = np.stack([before, shapes[:, axis], behind, reached[:, axis]], axis=1)
        macros["LINE"] = "1"
        launch("resample_line", reached.prod(axis=1), per_sample=fields, shared={"axis": group[0]}, macros=macros)


def _plane_pass(
    launch: Launch, view: np.ndarray, work: int, group: list[int], fields: dict[str, Any], macros: dict[str, str]
) -> None:
    shared = {"pair": np.array(group, np.int32)}
    launch("resample_plane", work, per_sample={**fields, "view": view}, shared=shared, macros=macros)


def _strips(view: list[int]) -> int:
    """The number of threads of `resample_plane`: each computes 4 rows of a pixel with 3 or 4 channels, or of 1 channel."""
    planes, _, _, channels, rows, columns = view
    return planes * -(-rows // 4) * columns * (1 if channels in (3, 4) else channels)


def _plane_view(shapes: np.ndarray, out_shapes: np.ndarray, axis: int) -> np.ndarray:
    """`[planes, h, w, channels, h_out, w_out]` of each sample, for axes `axis` and `axis + 1`."""
    view = np.empty((len(shapes), 6), np.int64)
    view[:, 0] = shapes[:, :axis].prod(axis=1) if axis else 1
    view[:, 1:3] = shapes[:, axis : axis + 2]
    view[:, 3] = shapes[:, axis + 2] if shapes.shape[1] == axis + 3 else shapes[:, axis + 2 :].prod(axis=1)
    view[:, 4:] = out_shapes[:, axis : axis + 2]
    return view
