"""`ndd.optical_flow`: the motion of pixels from frame to frame."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import torch

from ndd._cpu.opencv import single_threaded
from ndd._operator import Plan, bad_sample, operator, output
from ndd._operator.deprecated import renamed
from ndd._tensor.dtype import float32
from ndd._tensor.warn_once import warn_once
from ndd.ops.video import _engine
from ndd.types import DALIImageType

_CHANNELS = {DALIImageType.RGB: 3, DALIImageType.BGR: 3, DALIImageType.GRAY: 1}
_AT_ONCE = 1 << 25  # bytes of frames that are converted to gray together, which takes six times the memory
_SMALLEST = 16  # pixels: DIS compares patches of 8; smaller frames are padded


@operator(layouts=("FHWC",), types=("u8",))
def optical_flow(
    input_0,
    input_1=None,
    /,
    *,
    enable_external_hints: bool = False,
    enable_temporal_hints: bool = False,
    hint_grid: int = 4,
    image_type: DALIImageType = DALIImageType.RGB,
    output_format: int | None = None,
    output_grid: int = 4,
    preset: float = 0.0,
):
    """Computes where each pixel of a video was in the frame before.

    Args:
        input_0: frames, u8, layout "FHWC".
        input_1: with `enable_external_hints`: estimates of the vectors, f32 `[F - 1, ceil(H / hint_grid), ceil(W /
            hint_grid), 2]`, layout "FHWC", x and y in pixels, one vector for each square of `hint_grid` pixels.
        output_grid: 1, 2 or 4: the side of the square of pixels that has one vector.
        hint_grid: 1, 2, 4 or 8, not below `output_grid`.
        preset: 0 (slow and exact) to 1 (fast).
        enable_temporal_hints: search near the motion of the frame before.
        enable_external_hints: search near the motion in `input_1`.
        image_type: the channels: RGB, BGR (3) or GRAY (1).
        output_format: old name of `output_grid`.

    Gives f32 `[F - 1, ceil(H / output_grid), ceil(W / output_grid), 2]`, layout "FHWC": x (to the right) and y (down) in
    pixels of the input. As in DALI the vectors point back: the content of (x, y) in frame i + 1 was at (x + out[i, y, x, 0],
    y + out[i, y, x, 1]) in frame i, so objects that move to the right have vectors to the left.

    On a GPU the driver's optical flow engine computes it, in steps of 1/32 pixel. If the engine is missing or refuses frames of
    this size, the CPU computes, with a warning. On the CPU, which DALI does not support, it is OpenCV's DIS (dense inverse
    search; Kroeger et al., ECCV 2016); the vector of a square is the mean of its pixels' vectors. The two agree where the
    motion is clear, but not to the last bit.

    Raises RuntimeError for videos of fewer than two frames, a channel count that does not fit `image_type`, invalid grids and
    presets, and hints that are missing or have another shape; ValueError for another layout.

    >>> import ndd, numpy as np
    >>> y, x = np.mgrid[:64, :64]
    >>> frames = [128 + 60 * (np.sin((x - 2 * i) / 5) + np.sin(y / 7)) for i in range(3)]  # moves right by 2 pixels a frame
    >>> video = ndd.tensor(np.stack(frames)[..., None].astype(np.uint8), layout="FHWC")
    >>> flow = ndd.optical_flow(video, image_type=ndd.types.GRAY)
    >>> flow.shape, np.abs(np.median(np.asarray(flow), axis=(0, 1, 2))).round().tolist()
    ((2, 16, 16, 2), [2.0, 0.0])
    """
    renamed("optical_flow", "output_format", output_format, "output_grid", None if output_grid == 4 else output_grid)
    grid = _grid(output_grid, output_format)
    if grid not in (1, 2, 4):
        raise RuntimeError(f"output_grid: expected 1, 2 or 4, got {grid}")
    if hint_grid not in (1, 2, 4, 8):
        raise RuntimeError(f"hint_grid: expected 1, 2, 4 or 8, got {hint_grid}")
    if not 0 <= preset <= 1:
        raise RuntimeError(f"preset: expected a number from 0 to 1, got {preset}")
    if image_type not in _CHANNELS:
        raise RuntimeError(f"image_type: expected RGB, BGR or GRAY, got {image_type!r}")
    if enable_external_hints != (input_1 is not None):
        raise RuntimeError("external hints need both: enable_external_hints=True and a second input")
    if enable_external_hints and hint_grid < grid:
        raise RuntimeError(f"hint_grid: expected at least the output_grid of {grid}, got {hint_grid}")
    if input_1 is not None and (input_1.dtype is not float32 or input_1.ndim != 4):
        raise RuntimeError(f"hints: expected f32 with 4 dimensions, got {input_1.dtype} with {input_1.ndim}")
    return output(float32, 4, "FHWC")


def _grid(output_grid: int, output_format: int | None) -> int:
    return output_grid if output_format is None else output_format


@optical_flow.plan
def _(input_0, input_1, *, output_grid, output_format, hint_grid, image_type, preset, enable_temporal_hints, **_):
    grid = _grid(output_grid, output_format)
    shapes = input_0.shapes
    wrong = (shapes[:, :3] < (2, 1, 1)).any(axis=1) | (shapes[:, 3] != _CHANNELS[image_type])
    if wrong.any():
        i = int(wrong.argmax())
        raise bad_sample(
            i,
            f"expected two or more frames with {_CHANNELS[image_type]} channel(s), got shape {tuple(shapes[i].tolist())}",
        )
    if input_1 is not None:
        expected = _vectors(shapes, hint_grid)
        differs = (input_1.shapes != expected).any(axis=1)
        if differs.any():
            i = int(differs.argmax())
            raise bad_sample(
                i, f"hints: expected shape {tuple(expected[i].tolist())}, got {tuple(input_1.shapes[i].tolist())}"
            )
    shared = {
        "grid": grid, "hint_grid": hint_grid, "image_type": image_type, "preset": preset, "temporal": enable_temporal_hints,
    }  # fmt: skip
    return Plan(_vectors(shapes, grid), shared=shared)


def _vectors(shapes: np.ndarray, grid: int) -> np.ndarray:
    """The shapes of the flow of videos, with one vector for each square of `grid` pixels."""
    vectors = shapes.copy()
    vectors[:, 0] -= 1
    vectors[:, 1:3] = -(-vectors[:, 1:3] // grid)
    vectors[:, 3] = 2
    return vectors


@optical_flow.cpu
def _(input_0, input_1, out, grid, hint_grid, image_type, preset, temporal):
    _search(input_0, input_1, out, grid, hint_grid, image_type, preset, temporal)


def _search(
    input_0: np.ndarray,
    input_1: Any,
    out: np.ndarray,
    grid: int,
    hint_grid: int,
    image_type: Any,
    preset: float,
    temporal: bool,
) -> None:
    """Computes the flow with OpenCV's DIS."""
    cv2 = single_threaded()
    height, width = input_0.shape[1:3]
    search = cv2.DISOpticalFlow_create(round(2 * (1 - preset)))  # 2: medium, 1: fast, 0: ultrafast
    beyond = (0, max(_SMALLEST - height, 0)), (0, max(_SMALLEST - width, 0))
    gray = [_gray(cv2, frame, image_type) for frame in input_0]
    if height < _SMALLEST or width < _SMALLEST:
        gray = [np.pad(plane, beyond, "edge") for plane in gray]
    flow: Any = None
    for i, (plane, two) in enumerate(pairwise(gray)):
        start = flow.copy() if temporal and flow is not None else None
        if input_1 is not None:
            wide = np.repeat(np.repeat(input_1[i], hint_grid, axis=0), hint_grid, axis=1)
            start = np.pad(wide[:height, :width], (*beyond, (0, 0)), "edge")
        flow = search.calc(two, plane, start)
        seen = flow[:height, :width]
        out[i] = seen if grid == 1 else _means(seen, grid)


def _gray(cv2: Any, frame: np.ndarray, image_type: DALIImageType) -> np.ndarray:
    if image_type == DALIImageType.GRAY:
        return frame[..., 0]
    return cv2.cvtColor(frame, cv2.COLOR_RGB2GRAY if image_type == DALIImageType.RGB else cv2.COLOR_BGR2GRAY)


def _means(flow: np.ndarray, grid: int) -> np.ndarray:
    """The mean of each square of `grid` pixels; those at the edges may be smaller."""
    height, width = flow.shape[:2]
    padded = np.pad(flow, ((0, -height % grid), (0, -width % grid), (0, 0)), "edge")
    return padded.reshape(padded.shape[0] // grid, grid, padded.shape[1] // grid, grid, 2).mean(axis=(1, 3))


@optical_flow.cuda
def _(launch, input_0, input_1, out, grid, hint_grid, image_type, preset, temporal):
    videos, flows = input_0.arrays, out.arrays
    hints = [None] * len(videos) if input_1 is None else input_1.arrays
    of_one_size: dict[tuple[int, ...], list[int]] = {}
    for i, video in enumerate(videos):
        of_one_size.setdefault(tuple(video.shape[1:3]), []).append(i)
    gray = _luma(input_0, image_type)
    for size, members in of_one_size.items():
        key = (*size, grid, None if input_1 is None else hint_grid, round(2 * preset))
        try:
            _by_engine(launch, key, [(gray[i], hints[i], flows[i]) for i in members], temporal)
        except _engine.Refused as error:
            warn_once("optical_flow", f"the GPU's engine is not used, the CPU computes: {error}")
            for i in members:
                _by_cpu(videos[i], hints[i], flows[i], grid, hint_grid, image_type, preset, temporal)


def _by_engine(launch: Any, key: tuple[Any, ...], videos: list[tuple[Any, Any, Any]], temporal: bool) -> None:
    """Computes on the optical flow engine, in the order of the stream. `videos`: gray frames, hints and flow, of one size."""
    _engine.functions()
    with (
        _engine.sessions.using(launch.device.device_id, *key, _engine.current_context()) as session,
        session.on(launch.stream),
    ):
        for gray, hints, flow in videos:
            session.run(gray, hints, flow, temporal)


def _luma(videos: Any, kind: DALIImageType) -> list[Any]:
    """Gray frames of each sample on the GPU, u8 `[F, H, W]` (BT.601's weights). Small contiguous samples are converted together:
    the 400 launches for 64 videos took a third of the operator's time."""
    if kind == DALIImageType.GRAY:
        return [video[..., 0] for video in videos.arrays]
    flat = videos.flat
    if flat is None or len(flat) > _AT_ONCE:
        return [_gray_of(video, kind) for video in videos.arrays]
    shapes = videos.shapes[:, :3].tolist()
    parts = _gray_of(flat.view(-1, 3), kind).split([frames * height * width for frames, height, width in shapes])
    return [part.view(shape) for part, shape in zip(parts, shapes, strict=True)]


def _gray_of(pixels: Any, kind: DALIImageType) -> Any:
    red, blue = (0, 2) if kind == DALIImageType.RGB else (2, 0)
    luma = pixels[..., red] * 0.299 + pixels[..., 1] * 0.587 + pixels[..., blue] * 0.114
    return luma.round().to(torch.uint8)


def _by_cpu(video: Any, hints: Any, flow: Any, *options: Any) -> None:
    host = np.empty(tuple(flow.shape), np.float32)
    _search(video.cpu().numpy(), None if hints is None else hints.cpu().numpy(), host, *options)
    flow.copy_(torch.from_numpy(host))
