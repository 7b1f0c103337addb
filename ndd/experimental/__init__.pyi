# Written by `python -m ndd stubs`. Do not edit.

from collections.abc import Sequence
from ndd._tensor import Batch, Tensor
from ndd._tensor.device import DeviceLike
from ndd._tensor.dtype import int64
from ndd._typing import Array, DTypeLike, TensorLike
from ndd.experimental import decoders, readers
from ndd.types import DALIImageType, DALIInterpType
from typing import Literal, overload

__all__ = [
    'decoders', 'dilate', 'erode', 'median_blur', 'peek_image_shape', 'readers', 'remap', 'resize', 'warp_perspective',
]

@overload
def dilate(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None,
    anchor: int | Sequence[int] | Array = (-1, -1), border_mode: str = 'constant', iterations: int = 1,
    mask_size: int | Sequence[int] | Array = (3, 3),
) -> Tensor: ...
@overload
def dilate(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    anchor: int | Sequence[int] | Array | Batch = (-1, -1), border_mode: str = 'constant', iterations: int = 1,
    mask_size: int | Sequence[int] | Array | Batch = (3, 3),
) -> Batch: ...
@overload
def dilate(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    anchor: int | Sequence[int] | Array | Batch = (-1, -1), border_mode: str = 'constant', iterations: int = 1,
    mask_size: int | Sequence[int] | Array | Batch = (3, 3),
) -> Batch: ...
@overload
def erode(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None,
    anchor: int | Sequence[int] | Array = (-1, -1), border_mode: str = 'constant', iterations: int = 1,
    mask_size: int | Sequence[int] | Array = (3, 3),
) -> Tensor: ...
@overload
def erode(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    anchor: int | Sequence[int] | Array | Batch = (-1, -1), border_mode: str = 'constant', iterations: int = 1,
    mask_size: int | Sequence[int] | Array | Batch = (3, 3),
) -> Batch: ...
@overload
def erode(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    anchor: int | Sequence[int] | Array | Batch = (-1, -1), border_mode: str = 'constant', iterations: int = 1,
    mask_size: int | Sequence[int] | Array | Batch = (3, 3),
) -> Batch: ...
@overload
def median_blur(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None,
    window_size: int | Sequence[int] | Array = (3, 3),
) -> Tensor: ...
@overload
def median_blur(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    window_size: int | Sequence[int] | Array | Batch = (3, 3),
) -> Batch: ...
@overload
def median_blur(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    window_size: int | Sequence[int] | Array | Batch = (3, 3),
) -> Batch: ...
@overload
def peek_image_shape(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None,
    adjust_orientation: bool = True, dtype: DTypeLike = int64, image_type: DALIImageType | int = DALIImageType.RGB,
) -> Tensor: ...
@overload
def peek_image_shape(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    adjust_orientation: bool = True, dtype: DTypeLike = int64, image_type: DALIImageType | int = DALIImageType.RGB,
) -> Batch: ...
@overload
def peek_image_shape(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    adjust_orientation: bool = True, dtype: DTypeLike = int64, image_type: DALIImageType | int = DALIImageType.RGB,
) -> Batch: ...
@overload
def remap(
    input: TensorLike, mapx: TensorLike, mapy: TensorLike, /, *, batch_size: None = None,
    device: DeviceLike | None = None, interp: DALIInterpType | int = DALIInterpType.INTERP_LINEAR,
    pixel_origin: str = 'corner',
) -> Tensor: ...
@overload
def remap(
    input: Batch, mapx: TensorLike | Batch, mapy: TensorLike | Batch, /, *, batch_size: int | None = None,
    device: DeviceLike | None = None, interp: DALIInterpType | int = DALIInterpType.INTERP_LINEAR,
    pixel_origin: str = 'corner',
) -> Batch: ...
@overload
def remap(
    input: TensorLike, mapx: TensorLike | Batch, mapy: TensorLike | Batch, /, *, batch_size: int | None = None,
    device: DeviceLike | None = None, interp: DALIInterpType | int = DALIInterpType.INTERP_LINEAR,
    pixel_origin: str = 'corner',
) -> Batch: ...
@overload
def resize(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None, antialias: bool = True,
    dtype: DTypeLike | None = None, image_type: DALIImageType | int | None = None,
    interp_type: DALIInterpType | int | Array | None = None, mag_filter: DALIInterpType | int | Array | None = None,
    max_size: float | Sequence[float | Sequence[float]] | Array | None = None,
    min_filter: DALIInterpType | int | Array | None = None, minibatch_size: int = 32, mode: str | None = None,
    resize_longer: float | Array | None = None, resize_shorter: float | Array | None = None,
    resize_x: float | Array | None = None, resize_y: float | Array | None = None,
    resize_z: float | Array | None = None, roi_end: float | Sequence[float | Sequence[float]] | Array | None = None,
    roi_relative: bool = False, roi_start: float | Sequence[float | Sequence[float]] | Array | None = None,
    save_attrs: Literal[False] = False, size: float | Sequence[float | Sequence[float]] | Array | None = None,
    subpixel_scale: bool = True, temp_buffer_hint: int = 0,
) -> Tensor: ...
@overload
def resize(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None, antialias: bool = True,
    dtype: DTypeLike | None = None, image_type: DALIImageType | int | None = None,
    interp_type: DALIInterpType | int | Array | Batch | None = None,
    mag_filter: DALIInterpType | int | Array | Batch | None = None,
    max_size: float | Sequence[float | Sequence[float]] | Array | None = None,
    min_filter: DALIInterpType | int | Array | Batch | None = None, minibatch_size: int = 32, mode: str | None = None,
    resize_longer: float | Array | Batch | None = None, resize_shorter: float | Array | Batch | None = None,
    resize_x: float | Array | Batch | None = None, resize_y: float | Array | Batch | None = None,
    resize_z: float | Array | Batch | None = None,
    roi_end: float | Sequence[float | Sequence[float]] | Array | Batch | None = None, roi_relative: bool = False,
    roi_start: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    save_attrs: Literal[False] = False, size: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    subpixel_scale: bool = True, temp_buffer_hint: int = 0,
) -> Batch: ...
@overload
def resize(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None, antialias: bool = True,
    dtype: DTypeLike | None = None, image_type: DALIImageType | int | None = None,
    interp_type: DALIInterpType | int | Array | Batch | None = None,
    mag_filter: DALIInterpType | int | Array | Batch | None = None,
    max_size: float | Sequence[float | Sequence[float]] | Array | None = None,
    min_filter: DALIInterpType | int | Array | Batch | None = None, minibatch_size: int = 32, mode: str | None = None,
    resize_longer: float | Array | Batch | None = None, resize_shorter: float | Array | Batch | None = None,
    resize_x: float | Array | Batch | None = None, resize_y: float | Array | Batch | None = None,
    resize_z: float | Array | Batch | None = None,
    roi_end: float | Sequence[float | Sequence[float]] | Array | Batch | None = None, roi_relative: bool = False,
    roi_start: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    save_attrs: Literal[False] = False, size: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    subpixel_scale: bool = True, temp_buffer_hint: int = 0,
) -> Batch: ...
@overload
def resize(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None, antialias: bool = True,
    dtype: DTypeLike | None = None, image_type: DALIImageType | int | None = None,
    interp_type: DALIInterpType | int | Array | None = None, mag_filter: DALIInterpType | int | Array | None = None,
    max_size: float | Sequence[float | Sequence[float]] | Array | None = None,
    min_filter: DALIInterpType | int | Array | None = None, minibatch_size: int = 32, mode: str | None = None,
    resize_longer: float | Array | None = None, resize_shorter: float | Array | None = None,
    resize_x: float | Array | None = None, resize_y: float | Array | None = None,
    resize_z: float | Array | None = None, roi_end: float | Sequence[float | Sequence[float]] | Array | None = None,
    roi_relative: bool = False, roi_start: float | Sequence[float | Sequence[float]] | Array | None = None,
    save_attrs: Literal[True], size: float | Sequence[float | Sequence[float]] | Array | None = None,
    subpixel_scale: bool = True, temp_buffer_hint: int = 0,
) -> tuple[Tensor, Tensor]: ...
@overload
def resize(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None, antialias: bool = True,
    dtype: DTypeLike | None = None, image_type: DALIImageType | int | None = None,
    interp_type: DALIInterpType | int | Array | Batch | None = None,
    mag_filter: DALIInterpType | int | Array | Batch | None = None,
    max_size: float | Sequence[float | Sequence[float]] | Array | None = None,
    min_filter: DALIInterpType | int | Array | Batch | None = None, minibatch_size: int = 32, mode: str | None = None,
    resize_longer: float | Array | Batch | None = None, resize_shorter: float | Array | Batch | None = None,
    resize_x: float | Array | Batch | None = None, resize_y: float | Array | Batch | None = None,
    resize_z: float | Array | Batch | None = None,
    roi_end: float | Sequence[float | Sequence[float]] | Array | Batch | None = None, roi_relative: bool = False,
    roi_start: float | Sequence[float | Sequence[float]] | Array | Batch | None = None, save_attrs: Literal[True],
    size: float | Sequence[float | Sequence[float]] | Array | Batch | None = None, subpixel_scale: bool = True,
    temp_buffer_hint: int = 0,
) -> tuple[Batch, Batch]: ...
@overload
def resize(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None, antialias: bool = True,
    dtype: DTypeLike | None = None, image_type: DALIImageType | int | None = None,
    interp_type: DALIInterpType | int | Array | Batch | None = None,
    mag_filter: DALIInterpType | int | Array | Batch | None = None,
    max_size: float | Sequence[float | Sequence[float]] | Array | None = None,
    min_filter: DALIInterpType | int | Array | Batch | None = None, minibatch_size: int = 32, mode: str | None = None,
    resize_longer: float | Array | Batch | None = None, resize_shorter: float | Array | Batch | None = None,
    resize_x: float | Array | Batch | None = None, resize_y: float | Array | Batch | None = None,
    resize_z: float | Array | Batch | None = None,
    roi_end: float | Sequence[float | Sequence[float]] | Array | Batch | None = None, roi_relative: bool = False,
    roi_start: float | Sequence[float | Sequence[float]] | Array | Batch | None = None, save_attrs: Literal[True],
    size: float | Sequence[float | Sequence[float]] | Array | Batch | None = None, subpixel_scale: bool = True,
    temp_buffer_hint: int = 0,
) -> tuple[Batch, Batch]: ...
@overload
def warp_perspective(
    input: TensorLike, matrix_input: TensorLike | None = None, /, *, batch_size: None = None,
    device: DeviceLike | None = None, border_mode: str = 'constant',
    fill_value: float | Sequence[float | Sequence[float]] | Array = (),
    interp_type: DALIInterpType | int = DALIInterpType.INTERP_LINEAR, inverse_map: bool = True,
    matrix: float | Sequence[float | Sequence[float]] | Array | None = None, pixel_origin: str = 'corner',
    rule: str = 'dali', size: float | Sequence[float | Sequence[float]] | Array | None = None,
) -> Tensor: ...
@overload
def warp_perspective(
    input: Batch, matrix_input: TensorLike | Batch | None = None, /, *, batch_size: int | None = None,
    device: DeviceLike | None = None, border_mode: str = 'constant',
    fill_value: float | Sequence[float | Sequence[float]] | Array = (),
    interp_type: DALIInterpType | int = DALIInterpType.INTERP_LINEAR, inverse_map: bool = True,
    matrix: float | Sequence[float | Sequence[float]] | Array | Batch | None = None, pixel_origin: str = 'corner',
    rule: str = 'dali', size: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
) -> Batch: ...
@overload
def warp_perspective(
    input: TensorLike, matrix_input: TensorLike | Batch | None = None, /, *, batch_size: int | None = None,
    device: DeviceLike | None = None, border_mode: str = 'constant',
    fill_value: float | Sequence[float | Sequence[float]] | Array = (),
    interp_type: DALIInterpType | int = DALIInterpType.INTERP_LINEAR, inverse_map: bool = True,
    matrix: float | Sequence[float | Sequence[float]] | Array | Batch | None = None, pixel_origin: str = 'corner',
    rule: str = 'dali', size: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
) -> Batch: ...
