# Written by `python -m ndd stubs`. Do not edit.

from collections.abc import Sequence
from ndd._tensor import Batch, Tensor
from ndd._tensor.device import DeviceLike
from ndd._typing import Array, DTypeLike, TensorLike
from typing import overload

__all__ = ['max', 'mean', 'mean_square', 'min', 'rms', 'std_dev', 'sum', 'variance']

@overload
def max(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None,
    axes: int | Sequence[int] | Array | None = None, axis_names: str | None = None, keep_dims: bool = False,
) -> Tensor: ...
@overload
def max(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    axes: int | Sequence[int] | Array | None = None, axis_names: str | None = None, keep_dims: bool = False,
) -> Batch: ...
@overload
def max(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    axes: int | Sequence[int] | Array | None = None, axis_names: str | None = None, keep_dims: bool = False,
) -> Batch: ...
@overload
def mean(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None,
    axes: int | Sequence[int] | Array | None = None, axis_names: str | None = None, dtype: DTypeLike | None = None,
    keep_dims: bool = False,
) -> Tensor: ...
@overload
def mean(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    axes: int | Sequence[int] | Array | None = None, axis_names: str | None = None, dtype: DTypeLike | None = None,
    keep_dims: bool = False,
) -> Batch: ...
@overload
def mean(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    axes: int | Sequence[int] | Array | None = None, axis_names: str | None = None, dtype: DTypeLike | None = None,
    keep_dims: bool = False,
) -> Batch: ...
@overload
def mean_square(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None,
    axes: int | Sequence[int] | Array | None = None, axis_names: str | None = None, dtype: DTypeLike | None = None,
    keep_dims: bool = False,
) -> Tensor: ...
@overload
def mean_square(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    axes: int | Sequence[int] | Array | None = None, axis_names: str | None = None, dtype: DTypeLike | None = None,
    keep_dims: bool = False,
) -> Batch: ...
@overload
def mean_square(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    axes: int | Sequence[int] | Array | None = None, axis_names: str | None = None, dtype: DTypeLike | None = None,
    keep_dims: bool = False,
) -> Batch: ...
@overload
def min(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None,
    axes: int | Sequence[int] | Array | None = None, axis_names: str | None = None, keep_dims: bool = False,
) -> Tensor: ...
@overload
def min(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    axes: int | Sequence[int] | Array | None = None, axis_names: str | None = None, keep_dims: bool = False,
) -> Batch: ...
@overload
def min(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    axes: int | Sequence[int] | Array | None = None, axis_names: str | None = None, keep_dims: bool = False,
) -> Batch: ...
@overload
def rms(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None,
    axes: int | Sequence[int] | Array | None = None, axis_names: str | None = None, dtype: DTypeLike | None = None,
    keep_dims: bool = False,
) -> Tensor: ...
@overload
def rms(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    axes: int | Sequence[int] | Array | None = None, axis_names: str | None = None, dtype: DTypeLike | None = None,
    keep_dims: bool = False,
) -> Batch: ...
@overload
def rms(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    axes: int | Sequence[int] | Array | None = None, axis_names: str | None = None, dtype: DTypeLike | None = None,
    keep_dims: bool = False,
) -> Batch: ...
@overload
def std_dev(
    data: TensorLike, mean: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None,
    axes: int | Sequence[int] | Array | None = None, axis_names: str | None = None, ddof: int = 0,
    keep_dims: bool = False,
) -> Tensor: ...
@overload
def std_dev(
    data: Batch, mean: TensorLike | Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    axes: int | Sequence[int] | Array | None = None, axis_names: str | None = None, ddof: int = 0,
    keep_dims: bool = False,
) -> Batch: ...
@overload
def std_dev(
    data: TensorLike, mean: TensorLike | Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    axes: int | Sequence[int] | Array | None = None, axis_names: str | None = None, ddof: int = 0,
    keep_dims: bool = False,
) -> Batch: ...
@overload
def sum(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None,
    axes: int | Sequence[int] | Array | None = None, axis_names: str | None = None, dtype: DTypeLike | None = None,
    keep_dims: bool = False,
) -> Tensor: ...
@overload
def sum(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    axes: int | Sequence[int] | Array | None = None, axis_names: str | None = None, dtype: DTypeLike | None = None,
    keep_dims: bool = False,
) -> Batch: ...
@overload
def sum(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    axes: int | Sequence[int] | Array | None = None, axis_names: str | None = None, dtype: DTypeLike | None = None,
    keep_dims: bool = False,
) -> Batch: ...
@overload
def variance(
    data: TensorLike, mean: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None,
    axes: int | Sequence[int] | Array | None = None, axis_names: str | None = None, ddof: int = 0,
    keep_dims: bool = False,
) -> Tensor: ...
@overload
def variance(
    data: Batch, mean: TensorLike | Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    axes: int | Sequence[int] | Array | None = None, axis_names: str | None = None, ddof: int = 0,
    keep_dims: bool = False,
) -> Batch: ...
@overload
def variance(
    data: TensorLike, mean: TensorLike | Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    axes: int | Sequence[int] | Array | None = None, axis_names: str | None = None, ddof: int = 0,
    keep_dims: bool = False,
) -> Batch: ...
