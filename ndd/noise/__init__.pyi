# Written by `python -m ndd stubs`. Do not edit.

from ndd._tensor import Batch, Tensor
from ndd._tensor.device import DeviceLike
from ndd._typing import Array, TensorLike
from ndd.random.rng import RNG
from typing import overload

__all__ = ['gaussian', 'salt_and_pepper', 'shot']

@overload
def gaussian(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None, mean: float | Array = 0.0,
    stddev: float | Array = 1.0, rng: RNG | None = None,
) -> Tensor: ...
@overload
def gaussian(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    mean: float | Array | Batch = 0.0, stddev: float | Array | Batch = 1.0, rng: RNG | None = None,
) -> Batch: ...
@overload
def gaussian(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    mean: float | Array | Batch = 0.0, stddev: float | Array | Batch = 1.0, rng: RNG | None = None,
) -> Batch: ...
@overload
def salt_and_pepper(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None,
    pepper_val: float | Array | None = None, per_channel: bool = False, prob: float | Array = 0.05,
    salt_val: float | Array | None = None, salt_vs_pepper: float | Array = 0.5, rng: RNG | None = None,
) -> Tensor: ...
@overload
def salt_and_pepper(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    pepper_val: float | Array | Batch | None = None, per_channel: bool = False, prob: float | Array | Batch = 0.05,
    salt_val: float | Array | Batch | None = None, salt_vs_pepper: float | Array | Batch = 0.5, rng: RNG | None = None,
) -> Batch: ...
@overload
def salt_and_pepper(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    pepper_val: float | Array | Batch | None = None, per_channel: bool = False, prob: float | Array | Batch = 0.05,
    salt_val: float | Array | Batch | None = None, salt_vs_pepper: float | Array | Batch = 0.5, rng: RNG | None = None,
) -> Batch: ...
@overload
def shot(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None,
    factor: float | Array | None = None, rng: RNG | None = None,
) -> Tensor: ...
@overload
def shot(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    factor: float | Array | Batch | None = None, rng: RNG | None = None,
) -> Batch: ...
@overload
def shot(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    factor: float | Array | Batch | None = None, rng: RNG | None = None,
) -> Batch: ...
