# Written by `python -m ndd stubs`. Do not edit.

from collections.abc import Sequence
from ndd._tensor import Batch, Tensor
from ndd._tensor.device import DeviceLike
from ndd._typing import Array, DTypeLike, TensorLike
from ndd.random.rng import RNG, get_default_rng, set_seed
from typing import overload

__all__ = ['RNG', 'beta', 'choice', 'coin_flip', 'get_default_rng', 'normal', 'set_seed', 'uniform']

@overload
def beta(
    shape_like: TensorLike | None = None, /, *, batch_size: None = None, device: DeviceLike | None = None,
    alpha: float | Array = 1.0, beta: float | Array = 1.0, dtype: DTypeLike | None = None,
    shape: int | Sequence[int] | Array | None = None, rng: RNG | None = None,
) -> Tensor: ...
@overload
def beta(
    shape_like: TensorLike | Batch | None = None, /, *, batch_size: int | None = None,
    device: DeviceLike | None = None, alpha: float | Array | Batch = 1.0, beta: float | Array | Batch = 1.0,
    dtype: DTypeLike | None = None, shape: int | Sequence[int] | Array | Batch | None = None, rng: RNG | None = None,
) -> Batch: ...
@overload
def choice(
    a: TensorLike, shape_like: TensorLike | None = None, /, *, batch_size: None = None,
    device: DeviceLike | None = None, p: float | Sequence[float | Sequence[float]] | Array | None = None,
    shape: int | Sequence[int] | Array | None = None, rng: RNG | None = None,
) -> Tensor: ...
@overload
def choice(
    a: Batch, shape_like: TensorLike | Batch | None = None, /, *, batch_size: int | None = None,
    device: DeviceLike | None = None, p: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    shape: int | Sequence[int] | Array | Batch | None = None, rng: RNG | None = None,
) -> Batch: ...
@overload
def choice(
    a: TensorLike, shape_like: TensorLike | Batch | None = None, /, *, batch_size: int | None = None,
    device: DeviceLike | None = None, p: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    shape: int | Sequence[int] | Array | Batch | None = None, rng: RNG | None = None,
) -> Batch: ...
@overload
def coin_flip(
    shape_like: TensorLike | None = None, /, *, batch_size: None = None, device: DeviceLike | None = None,
    dtype: DTypeLike | None = None, probability: float | Array = 0.5, shape: int | Sequence[int] | Array | None = None,
    rng: RNG | None = None,
) -> Tensor: ...
@overload
def coin_flip(
    shape_like: TensorLike | Batch | None = None, /, *, batch_size: int | None = None,
    device: DeviceLike | None = None, dtype: DTypeLike | None = None, probability: float | Array | Batch = 0.5,
    shape: int | Sequence[int] | Array | Batch | None = None, rng: RNG | None = None,
) -> Batch: ...
@overload
def normal(
    shape_like: TensorLike | None = None, /, *, batch_size: None = None, device: DeviceLike | None = None,
    dtype: DTypeLike | None = None, mean: float | Array = 0.0, shape: int | Sequence[int] | Array | None = None,
    stddev: float | Array = 1.0, rng: RNG | None = None,
) -> Tensor: ...
@overload
def normal(
    shape_like: TensorLike | Batch | None = None, /, *, batch_size: int | None = None,
    device: DeviceLike | None = None, dtype: DTypeLike | None = None, mean: float | Array | Batch = 0.0,
    shape: int | Sequence[int] | Array | Batch | None = None, stddev: float | Array | Batch = 1.0,
    rng: RNG | None = None,
) -> Batch: ...
@overload
def uniform(
    shape_like: TensorLike | None = None, /, *, batch_size: None = None, device: DeviceLike | None = None,
    dtype: DTypeLike | None = None, range: float | Sequence[float | Sequence[float]] | Array = (-1.0, 1.0),
    shape: int | Sequence[int] | Array | None = None,
    values: float | Sequence[float | Sequence[float]] | Array | None = None, rng: RNG | None = None,
) -> Tensor: ...
@overload
def uniform(
    shape_like: TensorLike | Batch | None = None, /, *, batch_size: int | None = None,
    device: DeviceLike | None = None, dtype: DTypeLike | None = None,
    range: float | Sequence[float | Sequence[float]] | Array | Batch = (-1.0, 1.0),
    shape: int | Sequence[int] | Array | Batch | None = None,
    values: float | Sequence[float | Sequence[float]] | Array | Batch | None = None, rng: RNG | None = None,
) -> Batch: ...
