# Written by `python -m ndd stubs`. Do not edit.

from collections.abc import Sequence
from ndd._tensor import Batch, Tensor
from ndd._tensor.device import DeviceLike
from ndd._typing import Array, TensorLike
from ndd.random.rng import RNG
from typing import Any, overload

__all__ = ['random_mask_pixel', 'random_object_bbox', 'select_masks']

@overload
def random_mask_pixel(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None, foreground: int | Array = 0,
    threshold: float | Array | None = None, value: int | Array | None = None, rng: RNG | None = None,
) -> Tensor: ...
@overload
def random_mask_pixel(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    foreground: int | Array | Batch = 0, threshold: float | Array | Batch | None = None,
    value: int | Array | Batch | None = None, rng: RNG | None = None,
) -> Batch: ...
@overload
def random_mask_pixel(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    foreground: int | Array | Batch = 0, threshold: float | Array | Batch | None = None,
    value: int | Array | Batch | None = None, rng: RNG | None = None,
) -> Batch: ...
@overload
def random_object_bbox(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None,
    background: int | Array | None = None, cache_objects: bool = False,
    class_weights: float | Sequence[float | Sequence[float]] | Array | None = None,
    classes: int | Sequence[int] | Array | None = None, foreground_prob: float | Array = 1.0,
    format: str = 'anchor_shape', ignore_class: bool = False, k_largest: int | None = None, output_class: bool = False,
    threshold: int | Sequence[int] | Array | None = None, rng: RNG | None = None,
) -> Any: ...
@overload
def random_object_bbox(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    background: int | Array | Batch | None = None, cache_objects: bool = False,
    class_weights: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    classes: int | Sequence[int] | Array | Batch | None = None, foreground_prob: float | Array | Batch = 1.0,
    format: str = 'anchor_shape', ignore_class: bool = False, k_largest: int | None = None, output_class: bool = False,
    threshold: int | Sequence[int] | Array | Batch | None = None, rng: RNG | None = None,
) -> Any: ...
@overload
def random_object_bbox(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    background: int | Array | Batch | None = None, cache_objects: bool = False,
    class_weights: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    classes: int | Sequence[int] | Array | Batch | None = None, foreground_prob: float | Array | Batch = 1.0,
    format: str = 'anchor_shape', ignore_class: bool = False, k_largest: int | None = None, output_class: bool = False,
    threshold: int | Sequence[int] | Array | Batch | None = None, rng: RNG | None = None,
) -> Any: ...
@overload
def select_masks(
    mask_ids: TensorLike, polygons: TensorLike, vertices: TensorLike, /, *, batch_size: None = None,
    device: DeviceLike | None = None, reindex_masks: bool = False,
) -> tuple[Tensor, Tensor]: ...
@overload
def select_masks(
    mask_ids: Batch, polygons: TensorLike | Batch, vertices: TensorLike | Batch, /, *, batch_size: int | None = None,
    device: DeviceLike | None = None, reindex_masks: bool = False,
) -> tuple[Batch, Batch]: ...
@overload
def select_masks(
    mask_ids: TensorLike, polygons: TensorLike | Batch, vertices: TensorLike | Batch, /, *,
    batch_size: int | None = None, device: DeviceLike | None = None, reindex_masks: bool = False,
) -> tuple[Batch, Batch]: ...
