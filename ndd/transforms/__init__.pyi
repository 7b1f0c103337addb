# Written by `python -m ndd stubs`. Do not edit.

from collections.abc import Sequence
from ndd._tensor import Batch, Tensor
from ndd._tensor.device import DeviceLike
from ndd._typing import Array, TensorLike
from typing import overload

__all__ = ['combine', 'crop', 'rotation', 'scale', 'shear', 'translation']

@overload
def combine(
    input_0: TensorLike, input_1: TensorLike, /, *inputs: TensorLike, batch_size: None = None,
    device: DeviceLike | None = None, reverse_order: bool = False,
) -> Tensor: ...
@overload
def combine(
    input_0: Batch, input_1: TensorLike | Batch, /, *inputs: TensorLike | Batch, batch_size: int | None = None,
    device: DeviceLike | None = None, reverse_order: bool = False,
) -> Batch: ...
@overload
def combine(
    input_0: TensorLike, input_1: TensorLike | Batch, /, *inputs: TensorLike | Batch, batch_size: int | None = None,
    device: DeviceLike | None = None, reverse_order: bool = False,
) -> Batch: ...
@overload
def crop(
    input: TensorLike | None = None, /, *, batch_size: None = None, device: DeviceLike | None = None,
    absolute: bool = False, from_end: float | Sequence[float | Sequence[float]] | Array = (1.0,),
    from_start: float | Sequence[float | Sequence[float]] | Array = (0.0,), reverse_order: bool = False,
    to_end: float | Sequence[float | Sequence[float]] | Array = (1.0,),
    to_start: float | Sequence[float | Sequence[float]] | Array = (0.0,),
) -> Tensor: ...
@overload
def crop(
    input: TensorLike | Batch | None = None, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    absolute: bool = False, from_end: float | Sequence[float | Sequence[float]] | Array | Batch = (1.0,),
    from_start: float | Sequence[float | Sequence[float]] | Array | Batch = (0.0,), reverse_order: bool = False,
    to_end: float | Sequence[float | Sequence[float]] | Array | Batch = (1.0,),
    to_start: float | Sequence[float | Sequence[float]] | Array | Batch = (0.0,),
) -> Batch: ...
@overload
def rotation(
    input: TensorLike | None = None, /, *, batch_size: None = None, device: DeviceLike | None = None,
    angle: float | Sequence[float | Sequence[float]] | Array,
    axis: float | Sequence[float | Sequence[float]] | Array | None = None,
    center: float | Sequence[float | Sequence[float]] | Array | None = None, reverse_order: bool = False,
) -> Tensor: ...
@overload
def rotation(
    input: TensorLike | Batch | None = None, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    angle: float | Sequence[float | Sequence[float]] | Array | Batch,
    axis: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    center: float | Sequence[float | Sequence[float]] | Array | Batch | None = None, reverse_order: bool = False,
) -> Batch: ...
@overload
def scale(
    input: TensorLike | None = None, /, *, batch_size: None = None, device: DeviceLike | None = None,
    center: float | Sequence[float | Sequence[float]] | Array | None = None, ndim: int | None = None,
    reverse_order: bool = False, scale: float | Sequence[float | Sequence[float]] | Array,
) -> Tensor: ...
@overload
def scale(
    input: TensorLike | Batch | None = None, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    center: float | Sequence[float | Sequence[float]] | Array | Batch | None = None, ndim: int | None = None,
    reverse_order: bool = False, scale: float | Sequence[float | Sequence[float]] | Array | Batch,
) -> Batch: ...
@overload
def shear(
    input: TensorLike | None = None, /, *, batch_size: None = None, device: DeviceLike | None = None,
    angles: float | Sequence[float | Sequence[float]] | Array | None = None,
    center: float | Sequence[float | Sequence[float]] | Array | None = None, reverse_order: bool = False,
    shear: float | Sequence[float | Sequence[float]] | Array | None = None,
) -> Tensor: ...
@overload
def shear(
    input: TensorLike | Batch | None = None, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    angles: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    center: float | Sequence[float | Sequence[float]] | Array | Batch | None = None, reverse_order: bool = False,
    shear: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
) -> Batch: ...
@overload
def translation(
    input: TensorLike | None = None, /, *, batch_size: None = None, device: DeviceLike | None = None,
    offset: float | Sequence[float | Sequence[float]] | Array, reverse_order: bool = False,
) -> Tensor: ...
@overload
def translation(
    input: TensorLike | Batch | None = None, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    offset: float | Sequence[float | Sequence[float]] | Array | Batch, reverse_order: bool = False,
) -> Batch: ...
