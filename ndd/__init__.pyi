# Written by `python -m ndd stubs`. Do not edit.

from builtins import bool as _bool
from collections.abc import Callable, Sequence
from ndd import (
    auto_aug,
    capture,
    checkpoint,
    decoders,
    demo,
    experimental,
    fn,
    io,
    math,
    noise,
    pytorch,
    random,
    readers,
    recipes,
    reductions,
    segmentation,
    tfrecord,
    transforms,
    types,
)
from ndd._execution import (
    EvalContext,
    EvalMode,
    Stream,
    ThreadPool,
    get_current_stream,
    get_default_stream,
    get_num_threads,
    set_current_stream,
    set_default_stream,
    set_num_threads,
    stream,
)
from ndd._operator import Plan, bad_sample, like, output
from ndd._tensor import Batch, DType, Device, Tensor, as_batch, as_tensor, batch, device, dtype, tensor, type_id
from ndd._tensor.device import DeviceLike
from ndd._tensor.dtype import (
    DataType,
    ImageType,
    InterpType,
    bfloat16,
    bool_ as bool,
    float16,
    float32,
    float64,
    int16,
    int32,
    int64,
    int8,
    uint16,
    uint32,
    uint64,
    uint8,
)
from ndd._typing import Array, DTypeLike, Declared, P, PerSample, TensorLike
from ndd.external_source import ExternalSource
from ndd.picture import picture
from ndd.pipeline import OperatorConcurrency, Pipeline, StreamPolicy, newaxis, pipeline_def
from ndd.profiling import explain, profile, progress
from ndd.random.rng import RNG
from ndd.show import show
from ndd.targets import Targets
from ndd.types import DALIImageType, DALIInterpType
from os import PathLike
from typing import Any, Literal, overload

__all__ = [
    'Batch', 'DType', 'DataType', 'Device', 'DeviceLike', 'EvalContext', 'EvalMode', 'ExternalSource', 'ImageType',
    'InterpType', 'OperatorConcurrency', 'PerSample', 'Pipeline', 'Plan', 'Stream', 'StreamPolicy', 'Targets',
    'Tensor', 'ThreadPool', '__version__', 'as_batch', 'as_tensor', 'audio_resample', 'auto_aug', 'bad_sample',
    'batch', 'batch_permutation', 'bb_flip', 'bbox_paste', 'bbox_rotate', 'bbox_transform', 'bfloat16', 'bool',
    'box_encoder', 'brightness', 'brightness_contrast', 'capture', 'cast', 'cast_like', 'cat', 'checkpoint', 'clahe',
    'color_jitter', 'color_space_conversion', 'color_twist', 'contrast', 'coord_flip', 'coord_transform', 'copy',
    'crop', 'crop_mirror_normalize', 'cutmix', 'debayer', 'decoders', 'demo', 'device', 'dtype', 'dump_image',
    'element_extract', 'equalize', 'erase', 'expand_dims', 'experimental', 'explain', 'filter', 'flip', 'float16',
    'float32', 'float64', 'fn', 'full', 'full_like', 'gaussian_blur', 'get_current_stream', 'get_default_stream',
    'get_num_threads', 'get_property', 'grid_mask', 'hsv', 'hue', 'imread', 'int8', 'int16', 'int32', 'int64', 'io',
    'jitter', 'jpeg_compression_distortion', 'laplacian', 'like', 'lookup_table', 'math', 'mel_filter_bank', 'mfcc',
    'mixup', 'multi_paste', 'newaxis', 'noise', 'nonsilent_region', 'normalize', 'one_hot', 'ones', 'ones_like',
    'operator', 'optical_flow', 'output', 'pad', 'paste', 'peek_image_shape', 'per_frame', 'permute_batch', 'picture',
    'pipeline_def', 'power_spectrum', 'preemphasis_filter', 'profile', 'progress', 'pytorch', 'random',
    'random_bbox_crop', 'random_crop_generator', 'random_erasing', 'random_resized_crop', 'readers', 'recipes',
    'reductions', 'reinterpret', 'reshape', 'resize', 'resize_crop_mirror', 'roi_random_crop', 'rotate', 'saturation',
    'segmentation', 'sequence_rearrange', 'set_current_stream', 'set_default_stream', 'set_num_threads', 'show',
    'slice', 'spectrogram', 'sphere', 'squeeze', 'stack', 'stream', 'tensor', 'tensor_resize', 'tfrecord',
    'to_decibels', 'transforms', 'transpose', 'type_id', 'types', 'uint8', 'uint16', 'uint32', 'uint64', 'warp_affine',
    'water', 'zeros', 'zeros_like',
]

__version__: str
@overload
def audio_resample(
    signal: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None,
    dtype: DTypeLike | None = None, in_rate: float | Array | None = None, out_length: int | Array | None = None,
    out_rate: float | Array | None = None, quality: float = 50.0, scale: float | Array | None = None,
) -> Tensor: ...
@overload
def audio_resample(
    signal: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    dtype: DTypeLike | None = None, in_rate: float | Array | Batch | None = None,
    out_length: int | Array | Batch | None = None, out_rate: float | Array | Batch | None = None,
    quality: float = 50.0, scale: float | Array | Batch | None = None,
) -> Batch: ...
@overload
def audio_resample(
    signal: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    dtype: DTypeLike | None = None, in_rate: float | Array | Batch | None = None,
    out_length: int | Array | Batch | None = None, out_rate: float | Array | Batch | None = None,
    quality: float = 50.0, scale: float | Array | Batch | None = None,
) -> Batch: ...
def batch_permutation(
    *, batch_size: int, device: DeviceLike | None = None, allow_repetitions: _bool = False,
    no_fixed_points: _bool = False, rng: RNG | None = None,
) -> Batch: ...
@overload
def bb_flip(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None, horizontal: int | Array = 1,
    ltrb: _bool = False, vertical: int | Array = 0,
) -> Tensor: ...
@overload
def bb_flip(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    horizontal: int | Array | Batch = 1, ltrb: _bool = False, vertical: int | Array | Batch = 0,
) -> Batch: ...
@overload
def bb_flip(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    horizontal: int | Array | Batch = 1, ltrb: _bool = False, vertical: int | Array | Batch = 0,
) -> Batch: ...
@overload
def bbox_paste(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None, ltrb: _bool = False,
    paste_x: float | Array = 0.5, paste_y: float | Array = 0.5, ratio: float | Array,
) -> Tensor: ...
@overload
def bbox_paste(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None, ltrb: _bool = False,
    paste_x: float | Array | Batch = 0.5, paste_y: float | Array | Batch = 0.5, ratio: float | Array | Batch,
) -> Batch: ...
@overload
def bbox_paste(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None, ltrb: _bool = False,
    paste_x: float | Array | Batch = 0.5, paste_y: float | Array | Batch = 0.5, ratio: float | Array | Batch,
) -> Batch: ...
@overload
def bbox_rotate(
    bboxes: TensorLike, labels: None = None, /, *, batch_size: None = None, device: DeviceLike | None = None,
    angle: float | Array, bbox_layout: str = 'xyXY', bbox_normalized: _bool = True,
    input_shape: int | Sequence[int] | Array, keep_size: _bool = False, mode: str = 'expand',
    remove_threshold: float = 0.1, shape_layout: str = 'HW',
    size: float | Sequence[float | Sequence[float]] | Array | None = None,
) -> Tensor: ...
@overload
def bbox_rotate(
    bboxes: Batch, labels: None = None, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    angle: float | Array | Batch, bbox_layout: str = 'xyXY', bbox_normalized: _bool = True,
    input_shape: int | Sequence[int] | Array | Batch, keep_size: _bool = False, mode: str = 'expand',
    remove_threshold: float = 0.1, shape_layout: str = 'HW',
    size: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
) -> Batch: ...
@overload
def bbox_rotate(
    bboxes: TensorLike, labels: None = None, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    angle: float | Array | Batch, bbox_layout: str = 'xyXY', bbox_normalized: _bool = True,
    input_shape: int | Sequence[int] | Array | Batch, keep_size: _bool = False, mode: str = 'expand',
    remove_threshold: float = 0.1, shape_layout: str = 'HW',
    size: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
) -> Batch: ...
@overload
def bbox_rotate(
    bboxes: TensorLike, labels: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None,
    angle: float | Array, bbox_layout: str = 'xyXY', bbox_normalized: _bool = True,
    input_shape: int | Sequence[int] | Array, keep_size: _bool = False, mode: str = 'expand',
    remove_threshold: float = 0.1, shape_layout: str = 'HW',
    size: float | Sequence[float | Sequence[float]] | Array | None = None,
) -> tuple[Tensor, Tensor]: ...
@overload
def bbox_rotate(
    bboxes: Batch, labels: TensorLike | Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    angle: float | Array | Batch, bbox_layout: str = 'xyXY', bbox_normalized: _bool = True,
    input_shape: int | Sequence[int] | Array | Batch, keep_size: _bool = False, mode: str = 'expand',
    remove_threshold: float = 0.1, shape_layout: str = 'HW',
    size: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
) -> tuple[Batch, Batch]: ...
@overload
def bbox_rotate(
    bboxes: TensorLike, labels: TensorLike | Batch, /, *, batch_size: int | None = None,
    device: DeviceLike | None = None, angle: float | Array | Batch, bbox_layout: str = 'xyXY',
    bbox_normalized: _bool = True, input_shape: int | Sequence[int] | Array | Batch, keep_size: _bool = False,
    mode: str = 'expand', remove_threshold: float = 0.1, shape_layout: str = 'HW',
    size: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
) -> tuple[Batch, Batch]: ...
@overload
def bbox_transform(
    boxes: TensorLike, labels: None = None, /, *, batch_size: None = None, device: DeviceLike | None = None,
    MT: float | Sequence[float | Sequence[float]] | Array, output_bbox_indices: Literal[False] = False,
    remove_threshold: float = 0.1,
) -> Tensor: ...
@overload
def bbox_transform(
    boxes: Batch, labels: None = None, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    MT: float | Sequence[float | Sequence[float]] | Array | Batch, output_bbox_indices: Literal[False] = False,
    remove_threshold: float = 0.1,
) -> Batch: ...
@overload
def bbox_transform(
    boxes: TensorLike, labels: None = None, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    MT: float | Sequence[float | Sequence[float]] | Array | Batch, output_bbox_indices: Literal[False] = False,
    remove_threshold: float = 0.1,
) -> Batch: ...
@overload
def bbox_transform(
    boxes: TensorLike, labels: None = None, /, *, batch_size: None = None, device: DeviceLike | None = None,
    MT: float | Sequence[float | Sequence[float]] | Array, output_bbox_indices: Literal[True],
    remove_threshold: float = 0.1,
) -> tuple[Tensor, Tensor]: ...
@overload
def bbox_transform(
    boxes: Batch, labels: None = None, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    MT: float | Sequence[float | Sequence[float]] | Array | Batch, output_bbox_indices: Literal[True],
    remove_threshold: float = 0.1,
) -> tuple[Batch, Batch]: ...
@overload
def bbox_transform(
    boxes: TensorLike, labels: None = None, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    MT: float | Sequence[float | Sequence[float]] | Array | Batch, output_bbox_indices: Literal[True],
    remove_threshold: float = 0.1,
) -> tuple[Batch, Batch]: ...
@overload
def bbox_transform(
    boxes: TensorLike, labels: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None,
    MT: float | Sequence[float | Sequence[float]] | Array, output_bbox_indices: Literal[False] = False,
    remove_threshold: float = 0.1,
) -> tuple[Tensor, Tensor]: ...
@overload
def bbox_transform(
    boxes: Batch, labels: TensorLike | Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    MT: float | Sequence[float | Sequence[float]] | Array | Batch, output_bbox_indices: Literal[False] = False,
    remove_threshold: float = 0.1,
) -> tuple[Batch, Batch]: ...
@overload
def bbox_transform(
    boxes: TensorLike, labels: TensorLike | Batch, /, *, batch_size: int | None = None,
    device: DeviceLike | None = None, MT: float | Sequence[float | Sequence[float]] | Array | Batch,
    output_bbox_indices: Literal[False] = False, remove_threshold: float = 0.1,
) -> tuple[Batch, Batch]: ...
@overload
def bbox_transform(
    boxes: TensorLike, labels: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None,
    MT: float | Sequence[float | Sequence[float]] | Array, output_bbox_indices: Literal[True],
    remove_threshold: float = 0.1,
) -> tuple[Tensor, Tensor, Tensor]: ...
@overload
def bbox_transform(
    boxes: Batch, labels: TensorLike | Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    MT: float | Sequence[float | Sequence[float]] | Array | Batch, output_bbox_indices: Literal[True],
    remove_threshold: float = 0.1,
) -> tuple[Batch, Batch, Batch]: ...
@overload
def bbox_transform(
    boxes: TensorLike, labels: TensorLike | Batch, /, *, batch_size: int | None = None,
    device: DeviceLike | None = None, MT: float | Sequence[float | Sequence[float]] | Array | Batch,
    output_bbox_indices: Literal[True], remove_threshold: float = 0.1,
) -> tuple[Batch, Batch, Batch]: ...
@overload
def box_encoder(
    boxes: TensorLike, labels: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None,
    anchors: float | Sequence[float | Sequence[float]] | Array, criteria: float = 0.5,
    means: float | Sequence[float | Sequence[float]] | Array = (0.0, 0.0, 0.0, 0.0), offset: _bool = False,
    scale: float = 1.0, stds: float | Sequence[float | Sequence[float]] | Array = (1.0, 1.0, 1.0, 1.0),
) -> tuple[Tensor, Tensor]: ...
@overload
def box_encoder(
    boxes: Batch, labels: TensorLike | Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    anchors: float | Sequence[float | Sequence[float]] | Array, criteria: float = 0.5,
    means: float | Sequence[float | Sequence[float]] | Array = (0.0, 0.0, 0.0, 0.0), offset: _bool = False,
    scale: float = 1.0, stds: float | Sequence[float | Sequence[float]] | Array = (1.0, 1.0, 1.0, 1.0),
) -> tuple[Batch, Batch]: ...
@overload
def box_encoder(
    boxes: TensorLike, labels: TensorLike | Batch, /, *, batch_size: int | None = None,
    device: DeviceLike | None = None, anchors: float | Sequence[float | Sequence[float]] | Array,
    criteria: float = 0.5, means: float | Sequence[float | Sequence[float]] | Array = (0.0, 0.0, 0.0, 0.0),
    offset: _bool = False, scale: float = 1.0,
    stds: float | Sequence[float | Sequence[float]] | Array = (1.0, 1.0, 1.0, 1.0),
) -> tuple[Batch, Batch]: ...
@overload
def brightness(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None,
    brightness: float | Array = 1.0, brightness_shift: float | Array = 0.0, dtype: DTypeLike | None = None,
) -> Tensor: ...
@overload
def brightness(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    brightness: float | Array | Batch = 1.0, brightness_shift: float | Array | Batch = 0.0,
    dtype: DTypeLike | None = None,
) -> Batch: ...
@overload
def brightness(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    brightness: float | Array | Batch = 1.0, brightness_shift: float | Array | Batch = 0.0,
    dtype: DTypeLike | None = None,
) -> Batch: ...
@overload
def brightness_contrast(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None,
    brightness: float | Array = 1.0, brightness_shift: float | Array = 0.0, contrast: float | Array = 1.0,
    contrast_center: float | Array | None = None, dtype: DTypeLike | None = None,
) -> Tensor: ...
@overload
def brightness_contrast(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    brightness: float | Array | Batch = 1.0, brightness_shift: float | Array | Batch = 0.0,
    contrast: float | Array | Batch = 1.0, contrast_center: float | Array | Batch | None = None,
    dtype: DTypeLike | None = None,
) -> Batch: ...
@overload
def brightness_contrast(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    brightness: float | Array | Batch = 1.0, brightness_shift: float | Array | Batch = 0.0,
    contrast: float | Array | Batch = 1.0, contrast_center: float | Array | Batch | None = None,
    dtype: DTypeLike | None = None,
) -> Batch: ...
@overload
def cast(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None, dtype: DTypeLike,
) -> Tensor: ...
@overload
def cast(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None, dtype: DTypeLike,
) -> Batch: ...
@overload
def cast(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None, dtype: DTypeLike,
) -> Batch: ...
@overload
def cast_like(
    input_0: TensorLike, input_1: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None,
) -> Tensor: ...
@overload
def cast_like(
    input_0: Batch, input_1: TensorLike | Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
) -> Batch: ...
@overload
def cast_like(
    input_0: TensorLike, input_1: TensorLike | Batch, /, *, batch_size: int | None = None,
    device: DeviceLike | None = None,
) -> Batch: ...
@overload
def cat(
    input_0: TensorLike, /, *inputs: TensorLike, batch_size: None = None, device: DeviceLike | None = None,
    axis: int | None = None, axis_name: str | None = None,
) -> Tensor: ...
@overload
def cat(
    input_0: Batch, /, *inputs: TensorLike | Batch, batch_size: int | None = None, device: DeviceLike | None = None,
    axis: int | None = None, axis_name: str | None = None,
) -> Batch: ...
@overload
def cat(
    input_0: TensorLike, /, *inputs: TensorLike | Batch, batch_size: int | None = None,
    device: DeviceLike | None = None, axis: int | None = None, axis_name: str | None = None,
) -> Batch: ...
@overload
def clahe(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None, bins: int = 256,
    clip_limit: float, luma_only: _bool = True, tiles_x: int, tiles_y: int,
) -> Tensor: ...
@overload
def clahe(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None, bins: int = 256,
    clip_limit: float, luma_only: _bool = True, tiles_x: int, tiles_y: int,
) -> Batch: ...
@overload
def clahe(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None, bins: int = 256,
    clip_limit: float, luma_only: _bool = True, tiles_x: int, tiles_y: int,
) -> Batch: ...
@overload
def color_jitter(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None,
    brightness: float | Sequence[float | Sequence[float]] | Array | None = None,
    contrast: float | Sequence[float | Sequence[float]] | Array | None = None,
    hue: float | Sequence[float | Sequence[float]] | Array | None = None,
    order: int | Sequence[int] | Array | None = None,
    saturation: float | Sequence[float | Sequence[float]] | Array | None = None, rng: RNG | None = None,
) -> Tensor: ...
@overload
def color_jitter(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    brightness: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    contrast: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    hue: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    order: int | Sequence[int] | Array | Batch | None = None,
    saturation: float | Sequence[float | Sequence[float]] | Array | Batch | None = None, rng: RNG | None = None,
) -> Batch: ...
@overload
def color_jitter(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    brightness: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    contrast: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    hue: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    order: int | Sequence[int] | Array | Batch | None = None,
    saturation: float | Sequence[float | Sequence[float]] | Array | Batch | None = None, rng: RNG | None = None,
) -> Batch: ...
@overload
def color_space_conversion(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None,
    image_type: DALIImageType | int, output_type: DALIImageType | int,
) -> Tensor: ...
@overload
def color_space_conversion(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    image_type: DALIImageType | int, output_type: DALIImageType | int,
) -> Batch: ...
@overload
def color_space_conversion(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    image_type: DALIImageType | int, output_type: DALIImageType | int,
) -> Batch: ...
@overload
def color_twist(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None,
    brightness: float | Array = 1.0, contrast: float | Array = 1.0, dtype: DTypeLike | None = None,
    hue: float | Array = 0.0, image_type: DALIImageType | int | None = None, saturation: float | Array = 1.0,
) -> Tensor: ...
@overload
def color_twist(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    brightness: float | Array | Batch = 1.0, contrast: float | Array | Batch = 1.0, dtype: DTypeLike | None = None,
    hue: float | Array | Batch = 0.0, image_type: DALIImageType | int | None = None,
    saturation: float | Array | Batch = 1.0,
) -> Batch: ...
@overload
def color_twist(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    brightness: float | Array | Batch = 1.0, contrast: float | Array | Batch = 1.0, dtype: DTypeLike | None = None,
    hue: float | Array | Batch = 0.0, image_type: DALIImageType | int | None = None,
    saturation: float | Array | Batch = 1.0,
) -> Batch: ...
@overload
def contrast(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None, contrast: float | Array = 1.0,
    contrast_center: float | Array | None = None, dtype: DTypeLike | None = None,
) -> Tensor: ...
@overload
def contrast(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    contrast: float | Array | Batch = 1.0, contrast_center: float | Array | Batch | None = None,
    dtype: DTypeLike | None = None,
) -> Batch: ...
@overload
def contrast(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    contrast: float | Array | Batch = 1.0, contrast_center: float | Array | Batch | None = None,
    dtype: DTypeLike | None = None,
) -> Batch: ...
@overload
def coord_flip(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None, center_x: float | Array = 0.5,
    center_y: float | Array = 0.5, center_z: float | Array = 0.5, flip_x: int | Array = 1, flip_y: int | Array = 0,
    flip_z: int | Array = 0, layout: str = '',
) -> Tensor: ...
@overload
def coord_flip(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    center_x: float | Array | Batch = 0.5, center_y: float | Array | Batch = 0.5,
    center_z: float | Array | Batch = 0.5, flip_x: int | Array | Batch = 1, flip_y: int | Array | Batch = 0,
    flip_z: int | Array | Batch = 0, layout: str = '',
) -> Batch: ...
@overload
def coord_flip(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    center_x: float | Array | Batch = 0.5, center_y: float | Array | Batch = 0.5,
    center_z: float | Array | Batch = 0.5, flip_x: int | Array | Batch = 1, flip_y: int | Array | Batch = 0,
    flip_z: int | Array | Batch = 0, layout: str = '',
) -> Batch: ...
@overload
def coord_transform(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None,
    M: float | Sequence[float | Sequence[float]] | Array | None = None,
    MT: float | Sequence[float | Sequence[float]] | Array | None = None,
    T: float | Sequence[float | Sequence[float]] | Array | None = None, dtype: DTypeLike = float32,
) -> Tensor: ...
@overload
def coord_transform(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    M: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    MT: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    T: float | Sequence[float | Sequence[float]] | Array | Batch | None = None, dtype: DTypeLike = float32,
) -> Batch: ...
@overload
def coord_transform(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    M: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    MT: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    T: float | Sequence[float | Sequence[float]] | Array | Batch | None = None, dtype: DTypeLike = float32,
) -> Batch: ...
@overload
def copy(input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None) -> Tensor: ...
@overload
def copy(input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None) -> Batch: ...
@overload
def copy(input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None) -> Batch: ...
@overload
def crop(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None,
    crop: float | Sequence[float | Sequence[float]] | Array | None = None, crop_d: float | Array | None = None,
    crop_h: float | Array | None = None, crop_pos_x: float | Array = 0.5, crop_pos_y: float | Array = 0.5,
    crop_pos_z: float | Array = 0.5, crop_w: float | Array | None = None, dtype: DTypeLike | None = None,
    fill_values: float | Sequence[float | Sequence[float]] | Array = (0.0,), image_type: Any = None,
    out_of_bounds_policy: str = 'error', output_dtype: DTypeLike | None = None, rounding: str = 'round',
) -> Tensor: ...
@overload
def crop(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    crop: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    crop_d: float | Array | Batch | None = None, crop_h: float | Array | Batch | None = None,
    crop_pos_x: float | Array | Batch = 0.5, crop_pos_y: float | Array | Batch = 0.5,
    crop_pos_z: float | Array | Batch = 0.5, crop_w: float | Array | Batch | None = None,
    dtype: DTypeLike | None = None, fill_values: float | Sequence[float | Sequence[float]] | Array = (0.0,),
    image_type: Any = None, out_of_bounds_policy: str = 'error', output_dtype: DTypeLike | None = None,
    rounding: str = 'round',
) -> Batch: ...
@overload
def crop(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    crop: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    crop_d: float | Array | Batch | None = None, crop_h: float | Array | Batch | None = None,
    crop_pos_x: float | Array | Batch = 0.5, crop_pos_y: float | Array | Batch = 0.5,
    crop_pos_z: float | Array | Batch = 0.5, crop_w: float | Array | Batch | None = None,
    dtype: DTypeLike | None = None, fill_values: float | Sequence[float | Sequence[float]] | Array = (0.0,),
    image_type: Any = None, out_of_bounds_policy: str = 'error', output_dtype: DTypeLike | None = None,
    rounding: str = 'round',
) -> Batch: ...
@overload
def crop_mirror_normalize(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None,
    crop: float | Sequence[float | Sequence[float]] | Array | None = None, crop_d: float | Array | None = None,
    crop_h: float | Array | None = None, crop_pos_x: float | Array = 0.5, crop_pos_y: float | Array = 0.5,
    crop_pos_z: float | Array = 0.5, crop_w: float | Array | None = None, dtype: DTypeLike | None = None,
    fill_values: float | Sequence[float | Sequence[float]] | Array = (0.0,), image_type: Any = None,
    mean: float | Sequence[float | Sequence[float]] | Array = (0.0,), mirror: int | Array = 0,
    out_of_bounds_policy: str = 'error', output_dtype: DTypeLike | None = None, output_layout: str = 'CHW',
    pad_output: _bool = False, rounding: str = 'round', scale: float = 1.0, shift: float = 0.0,
    std: float | Sequence[float | Sequence[float]] | Array = (1.0,),
) -> Tensor: ...
@overload
def crop_mirror_normalize(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    crop: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    crop_d: float | Array | Batch | None = None, crop_h: float | Array | Batch | None = None,
    crop_pos_x: float | Array | Batch = 0.5, crop_pos_y: float | Array | Batch = 0.5,
    crop_pos_z: float | Array | Batch = 0.5, crop_w: float | Array | Batch | None = None,
    dtype: DTypeLike | None = None, fill_values: float | Sequence[float | Sequence[float]] | Array = (0.0,),
    image_type: Any = None, mean: float | Sequence[float | Sequence[float]] | Array | Batch = (0.0,),
    mirror: int | Array | Batch = 0, out_of_bounds_policy: str = 'error', output_dtype: DTypeLike | None = None,
    output_layout: str = 'CHW', pad_output: _bool = False, rounding: str = 'round', scale: float = 1.0,
    shift: float = 0.0, std: float | Sequence[float | Sequence[float]] | Array | Batch = (1.0,),
) -> Batch: ...
@overload
def crop_mirror_normalize(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    crop: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    crop_d: float | Array | Batch | None = None, crop_h: float | Array | Batch | None = None,
    crop_pos_x: float | Array | Batch = 0.5, crop_pos_y: float | Array | Batch = 0.5,
    crop_pos_z: float | Array | Batch = 0.5, crop_w: float | Array | Batch | None = None,
    dtype: DTypeLike | None = None, fill_values: float | Sequence[float | Sequence[float]] | Array = (0.0,),
    image_type: Any = None, mean: float | Sequence[float | Sequence[float]] | Array | Batch = (0.0,),
    mirror: int | Array | Batch = 0, out_of_bounds_policy: str = 'error', output_dtype: DTypeLike | None = None,
    output_layout: str = 'CHW', pad_output: _bool = False, rounding: str = 'round', scale: float = 1.0,
    shift: float = 0.0, std: float | Sequence[float | Sequence[float]] | Array | Batch = (1.0,),
) -> Batch: ...
@overload
def cutmix(
    images: TensorLike, labels: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None,
    alpha: float | Array = 1.0, center: float | Sequence[float | Sequence[float]] | Array | None = None,
    num_classes: int | None = None, partners: int | Array | None = None, weight: float | Array | None = None,
    rng: RNG | None = None,
) -> tuple[Tensor, Tensor]: ...
@overload
def cutmix(
    images: Batch, labels: TensorLike | Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    alpha: float | Array | Batch = 1.0,
    center: float | Sequence[float | Sequence[float]] | Array | Batch | None = None, num_classes: int | None = None,
    partners: int | Array | Batch | None = None, weight: float | Array | Batch | None = None, rng: RNG | None = None,
) -> tuple[Batch, Batch]: ...
@overload
def cutmix(
    images: TensorLike, labels: TensorLike | Batch, /, *, batch_size: int | None = None,
    device: DeviceLike | None = None, alpha: float | Array | Batch = 1.0,
    center: float | Sequence[float | Sequence[float]] | Array | Batch | None = None, num_classes: int | None = None,
    partners: int | Array | Batch | None = None, weight: float | Array | Batch | None = None, rng: RNG | None = None,
) -> tuple[Batch, Batch]: ...
@overload
def debayer(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None, algorithm: str | None = None,
    blue_position: int | Sequence[int] | Array,
) -> Tensor: ...
@overload
def debayer(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None, algorithm: str | None = None,
    blue_position: int | Sequence[int] | Array | Batch,
) -> Batch: ...
@overload
def debayer(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    algorithm: str | None = None, blue_position: int | Sequence[int] | Array | Batch,
) -> Batch: ...
@overload
def dump_image(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None, input_layout: str = 'HWC',
    suffix: str = '',
) -> Tensor: ...
@overload
def dump_image(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None, input_layout: str = 'HWC',
    suffix: str = '',
) -> Batch: ...
@overload
def dump_image(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    input_layout: str = 'HWC', suffix: str = '',
) -> Batch: ...
@overload
def element_extract(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None,
    element_map: int | Sequence[int] | Array,
) -> Any: ...
@overload
def element_extract(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    element_map: int | Sequence[int] | Array,
) -> Any: ...
@overload
def element_extract(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    element_map: int | Sequence[int] | Array,
) -> Any: ...
@overload
def equalize(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None, rule: str = 'opencv',
) -> Tensor: ...
@overload
def equalize(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None, rule: str = 'opencv',
) -> Batch: ...
@overload
def equalize(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None, rule: str = 'opencv',
) -> Batch: ...
@overload
def erase(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None,
    anchor: float | Sequence[float | Sequence[float]] | Array | None = None,
    axes: int | Sequence[int] | Array | None = None, axis_names: str | None = None, centered_anchor: _bool = False,
    fill_value: float | Sequence[float | Sequence[float]] | Array = (0.0,), normalized: _bool | None = None,
    normalized_anchor: _bool | None = None, normalized_shape: _bool | None = None,
    shape: float | Sequence[float | Sequence[float]] | Array | None = None,
) -> Tensor: ...
@overload
def erase(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    anchor: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    axes: int | Sequence[int] | Array | None = None, axis_names: str | None = None, centered_anchor: _bool = False,
    fill_value: float | Sequence[float | Sequence[float]] | Array | Batch = (0.0,), normalized: _bool | None = None,
    normalized_anchor: _bool | None = None, normalized_shape: _bool | None = None,
    shape: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
) -> Batch: ...
@overload
def erase(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    anchor: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    axes: int | Sequence[int] | Array | None = None, axis_names: str | None = None, centered_anchor: _bool = False,
    fill_value: float | Sequence[float | Sequence[float]] | Array | Batch = (0.0,), normalized: _bool | None = None,
    normalized_anchor: _bool | None = None, normalized_shape: _bool | None = None,
    shape: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
) -> Batch: ...
@overload
def expand_dims(
    data: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None,
    axes: int | Sequence[int] | Array, new_axis_names: str | None = None,
) -> Tensor: ...
@overload
def expand_dims(
    data: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    axes: int | Sequence[int] | Array, new_axis_names: str | None = None,
) -> Batch: ...
@overload
def expand_dims(
    data: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    axes: int | Sequence[int] | Array, new_axis_names: str | None = None,
) -> Batch: ...
@overload
def filter(
    data: TensorLike, filter: TensorLike, fill_value: TensorLike | None = None, /, *, batch_size: None = None,
    device: DeviceLike | None = None, anchor: int | Sequence[int] | Array = (-1,), border: str = 'reflect_101',
    dtype: DTypeLike | None = None, mode: str = 'same',
) -> Tensor: ...
@overload
def filter(
    data: Batch, filter: TensorLike | Batch, fill_value: TensorLike | Batch | None = None, /, *,
    batch_size: int | None = None, device: DeviceLike | None = None,
    anchor: int | Sequence[int] | Array | Batch = (-1,), border: str = 'reflect_101', dtype: DTypeLike | None = None,
    mode: str = 'same',
) -> Batch: ...
@overload
def filter(
    data: TensorLike, filter: TensorLike | Batch, fill_value: TensorLike | Batch | None = None, /, *,
    batch_size: int | None = None, device: DeviceLike | None = None,
    anchor: int | Sequence[int] | Array | Batch = (-1,), border: str = 'reflect_101', dtype: DTypeLike | None = None,
    mode: str = 'same',
) -> Batch: ...
@overload
def flip(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None, depthwise: int | Array = 0,
    horizontal: int | Array = 1, vertical: int | Array = 0,
) -> Tensor: ...
@overload
def flip(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    depthwise: int | Array | Batch = 0, horizontal: int | Array | Batch = 1, vertical: int | Array | Batch = 0,
) -> Batch: ...
@overload
def flip(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    depthwise: int | Array | Batch = 0, horizontal: int | Array | Batch = 1, vertical: int | Array | Batch = 0,
) -> Batch: ...
@overload
def full(
    fill_value: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None, layout: str | None = None,
    shape: int | Sequence[int] | Array | None = None,
) -> Tensor: ...
@overload
def full(
    fill_value: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    layout: str | None = None, shape: int | Sequence[int] | Array | Batch | None = None,
) -> Batch: ...
@overload
def full(
    fill_value: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    layout: str | None = None, shape: int | Sequence[int] | Array | Batch | None = None,
) -> Batch: ...
@overload
def full_like(
    data_like: TensorLike, fill_value: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None,
) -> Tensor: ...
@overload
def full_like(
    data_like: Batch, fill_value: TensorLike | Batch, /, *, batch_size: int | None = None,
    device: DeviceLike | None = None,
) -> Batch: ...
@overload
def full_like(
    data_like: TensorLike, fill_value: TensorLike | Batch, /, *, batch_size: int | None = None,
    device: DeviceLike | None = None,
) -> Batch: ...
@overload
def gaussian_blur(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None, dtype: DTypeLike | None = None,
    sigma: float | Sequence[float | Sequence[float]] | Array = (0.0,), window_size: int | Sequence[int] | Array = (0,),
) -> Tensor: ...
@overload
def gaussian_blur(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    dtype: DTypeLike | None = None, sigma: float | Sequence[float | Sequence[float]] | Array | Batch = (0.0,),
    window_size: int | Sequence[int] | Array | Batch = (0,),
) -> Batch: ...
@overload
def gaussian_blur(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    dtype: DTypeLike | None = None, sigma: float | Sequence[float | Sequence[float]] | Array | Batch = (0.0,),
    window_size: int | Sequence[int] | Array | Batch = (0,),
) -> Batch: ...
@overload
def get_property(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None, key: str,
) -> Tensor: ...
@overload
def get_property(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None, key: str,
) -> Batch: ...
@overload
def get_property(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None, key: str,
) -> Batch: ...
@overload
def grid_mask(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None, angle: float | Array = 0.0,
    ratio: float | Array = 0.5, shift_x: float | Array = 0.0, shift_y: float | Array = 0.0, tile: int | Array = 100,
) -> Tensor: ...
@overload
def grid_mask(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    angle: float | Array | Batch = 0.0, ratio: float | Array | Batch = 0.5, shift_x: float | Array | Batch = 0.0,
    shift_y: float | Array | Batch = 0.0, tile: int | Array | Batch = 100,
) -> Batch: ...
@overload
def grid_mask(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    angle: float | Array | Batch = 0.0, ratio: float | Array | Batch = 0.5, shift_x: float | Array | Batch = 0.0,
    shift_y: float | Array | Batch = 0.0, tile: int | Array | Batch = 100,
) -> Batch: ...
@overload
def hsv(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None, dtype: DTypeLike = uint8,
    hue: float | Array = 0.0, saturation: float | Array = 1.0, value: float | Array = 1.0,
) -> Tensor: ...
@overload
def hsv(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None, dtype: DTypeLike = uint8,
    hue: float | Array | Batch = 0.0, saturation: float | Array | Batch = 1.0, value: float | Array | Batch = 1.0,
) -> Batch: ...
@overload
def hsv(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None, dtype: DTypeLike = uint8,
    hue: float | Array | Batch = 0.0, saturation: float | Array | Batch = 1.0, value: float | Array | Batch = 1.0,
) -> Batch: ...
@overload
def hue(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None, dtype: DTypeLike | None = None,
    hue: float | Array = 0.0, image_type: DALIImageType | int | None = None,
) -> Tensor: ...
@overload
def hue(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    dtype: DTypeLike | None = None, hue: float | Array | Batch = 0.0, image_type: DALIImageType | int | None = None,
) -> Batch: ...
@overload
def hue(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    dtype: DTypeLike | None = None, hue: float | Array | Batch = 0.0, image_type: DALIImageType | int | None = None,
) -> Batch: ...
@overload
def imread(
    filepaths: str | bytes | PathLike[Any] | Array, /, *, device: DeviceLike = 'cpu',
    adjust_orientation: _bool | None = None, affine: _bool | None = None, cache_batch_copy: _bool | None = None,
    cache_debug: _bool | None = None, cache_size: int | None = None, cache_threshold: int | None = None,
    cache_type: str | None = None, device_memory_padding: int | None = None,
    device_memory_padding_jpeg2k: int | None = None, dtype: DTypeLike | None = None,
    host_memory_padding: int | None = None, host_memory_padding_jpeg2k: int | None = None,
    hw_decoder_load: float | None = None, hybrid_huffman_threshold: int | None = None,
    jpeg_fancy_upsampling: _bool | None = None, max_pixels: int | None = None, memory_stats: _bool | None = None,
    on_error: Literal['raise', 'skip', 'fill'] = 'raise', output_type: DALIImageType | int | None = None,
    preallocate_height_hint: int | None = None, preallocate_width_hint: int | None = None,
    split_stages: _bool | None = None, use_chunk_allocator: _bool | None = None, use_fast_idct: _bool | None = None,
) -> Tensor: ...
@overload
def imread(
    filepaths: Sequence[str | bytes | PathLike[Any]] | Batch, /, *, device: DeviceLike = 'cpu',
    adjust_orientation: _bool | None = None, affine: _bool | None = None, cache_batch_copy: _bool | None = None,
    cache_debug: _bool | None = None, cache_size: int | None = None, cache_threshold: int | None = None,
    cache_type: str | None = None, device_memory_padding: int | None = None,
    device_memory_padding_jpeg2k: int | None = None, dtype: DTypeLike | None = None,
    host_memory_padding: int | None = None, host_memory_padding_jpeg2k: int | None = None,
    hw_decoder_load: float | None = None, hybrid_huffman_threshold: int | None = None,
    jpeg_fancy_upsampling: _bool | None = None, max_pixels: int | None = None, memory_stats: _bool | None = None,
    on_error: Literal['raise', 'skip', 'fill'] = 'raise', output_type: DALIImageType | int | None = None,
    preallocate_height_hint: int | None = None, preallocate_width_hint: int | None = None,
    split_stages: _bool | None = None, use_chunk_allocator: _bool | None = None, use_fast_idct: _bool | None = None,
) -> Batch: ...
@overload
def jitter(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None, fill_value: float = 0.0,
    interp_type: DALIInterpType | int = DALIInterpType.INTERP_NN, mask: int | Array = 1, nDegree: int = 2,
    rng: RNG | None = None,
) -> Tensor: ...
@overload
def jitter(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None, fill_value: float = 0.0,
    interp_type: DALIInterpType | int = DALIInterpType.INTERP_NN, mask: int | Array | Batch = 1, nDegree: int = 2,
    rng: RNG | None = None,
) -> Batch: ...
@overload
def jitter(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None, fill_value: float = 0.0,
    interp_type: DALIInterpType | int = DALIInterpType.INTERP_NN, mask: int | Array | Batch = 1, nDegree: int = 2,
    rng: RNG | None = None,
) -> Batch: ...
@overload
def jpeg_compression_distortion(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None, quality: int | Array = 50,
) -> Tensor: ...
@overload
def jpeg_compression_distortion(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    quality: int | Array | Batch = 50,
) -> Batch: ...
@overload
def jpeg_compression_distortion(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    quality: int | Array | Batch = 50,
) -> Batch: ...
@overload
def laplacian(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None, dtype: DTypeLike | None = None,
    normalized_kernel: _bool = False, scale: float | Sequence[float | Sequence[float]] | Array | None = None,
    smoothing_size: int | Sequence[int] | Array | None = None, window_size: int | Sequence[int] | Array = (3,),
) -> Tensor: ...
@overload
def laplacian(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    dtype: DTypeLike | None = None, normalized_kernel: _bool = False,
    scale: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    smoothing_size: int | Sequence[int] | Array | Batch | None = None,
    window_size: int | Sequence[int] | Array | Batch = (3,),
) -> Batch: ...
@overload
def laplacian(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    dtype: DTypeLike | None = None, normalized_kernel: _bool = False,
    scale: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    smoothing_size: int | Sequence[int] | Array | Batch | None = None,
    window_size: int | Sequence[int] | Array | Batch = (3,),
) -> Batch: ...
@overload
def lookup_table(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None, default_value: float = 0.0,
    dtype: DTypeLike | None = None, keys: int | Sequence[int] | Array | None = None,
    output_dtype: DTypeLike | None = None, values: float | Sequence[float | Sequence[float]] | Array | None = None,
) -> Tensor: ...
@overload
def lookup_table(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None, default_value: float = 0.0,
    dtype: DTypeLike | None = None, keys: int | Sequence[int] | Array | None = None,
    output_dtype: DTypeLike | None = None, values: float | Sequence[float | Sequence[float]] | Array | None = None,
) -> Batch: ...
@overload
def lookup_table(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    default_value: float = 0.0, dtype: DTypeLike | None = None, keys: int | Sequence[int] | Array | None = None,
    output_dtype: DTypeLike | None = None, values: float | Sequence[float | Sequence[float]] | Array | None = None,
) -> Batch: ...
@overload
def mel_filter_bank(
    spectrogram: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None, freq_high: float = 0.0,
    freq_low: float = 0.0, mel_formula: str = 'slaney', nfilter: int = 128, normalize: _bool = True,
    sample_rate: float = 44100.0,
) -> Tensor: ...
@overload
def mel_filter_bank(
    spectrogram: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None, freq_high: float = 0.0,
    freq_low: float = 0.0, mel_formula: str = 'slaney', nfilter: int = 128, normalize: _bool = True,
    sample_rate: float = 44100.0,
) -> Batch: ...
@overload
def mel_filter_bank(
    spectrogram: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    freq_high: float = 0.0, freq_low: float = 0.0, mel_formula: str = 'slaney', nfilter: int = 128,
    normalize: _bool = True, sample_rate: float = 44100.0,
) -> Batch: ...
@overload
def mfcc(
    spectrogram: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None, axis: int = 0,
    dct_type: int = 2, lifter: float = 0.0, n_mfcc: int = 20, normalize: _bool = False,
) -> Tensor: ...
@overload
def mfcc(
    spectrogram: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None, axis: int = 0,
    dct_type: int = 2, lifter: float = 0.0, n_mfcc: int = 20, normalize: _bool = False,
) -> Batch: ...
@overload
def mfcc(
    spectrogram: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None, axis: int = 0,
    dct_type: int = 2, lifter: float = 0.0, n_mfcc: int = 20, normalize: _bool = False,
) -> Batch: ...
@overload
def mixup(
    images: TensorLike, labels: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None,
    alpha: float | Array = 1.0, num_classes: int | None = None, partners: int | Array | None = None,
    weight: float | Array | None = None, rng: RNG | None = None,
) -> tuple[Tensor, Tensor]: ...
@overload
def mixup(
    images: Batch, labels: TensorLike | Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    alpha: float | Array | Batch = 1.0, num_classes: int | None = None, partners: int | Array | Batch | None = None,
    weight: float | Array | Batch | None = None, rng: RNG | None = None,
) -> tuple[Batch, Batch]: ...
@overload
def mixup(
    images: TensorLike, labels: TensorLike | Batch, /, *, batch_size: int | None = None,
    device: DeviceLike | None = None, alpha: float | Array | Batch = 1.0, num_classes: int | None = None,
    partners: int | Array | Batch | None = None, weight: float | Array | Batch | None = None, rng: RNG | None = None,
) -> tuple[Batch, Batch]: ...
@overload
def multi_paste(
    input_0: TensorLike, /, *inputs: TensorLike, batch_size: None = None, device: DeviceLike | None = None,
    dtype: DTypeLike | None = None, in_anchors: int | Sequence[int] | Array | None = None,
    in_anchors_rel: float | Sequence[float | Sequence[float]] | Array | None = None,
    in_ids: int | Sequence[int] | Array | None = None, out_anchors: int | Sequence[int] | Array | None = None,
    out_anchors_rel: float | Sequence[float | Sequence[float]] | Array | None = None,
    output_size: int | Sequence[int] | Array | None = None, shapes: int | Sequence[int] | Array | None = None,
    shapes_rel: float | Sequence[float | Sequence[float]] | Array | None = None,
) -> Tensor: ...
@overload
def multi_paste(
    input_0: Batch, /, *inputs: TensorLike | Batch, batch_size: int | None = None, device: DeviceLike | None = None,
    dtype: DTypeLike | None = None, in_anchors: int | Sequence[int] | Array | Batch | None = None,
    in_anchors_rel: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    in_ids: int | Sequence[int] | Array | Batch | None = None,
    out_anchors: int | Sequence[int] | Array | Batch | None = None,
    out_anchors_rel: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    output_size: int | Sequence[int] | Array | Batch | None = None,
    shapes: int | Sequence[int] | Array | Batch | None = None,
    shapes_rel: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
) -> Batch: ...
@overload
def multi_paste(
    input_0: TensorLike, /, *inputs: TensorLike | Batch, batch_size: int | None = None,
    device: DeviceLike | None = None, dtype: DTypeLike | None = None,
    in_anchors: int | Sequence[int] | Array | Batch | None = None,
    in_anchors_rel: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    in_ids: int | Sequence[int] | Array | Batch | None = None,
    out_anchors: int | Sequence[int] | Array | Batch | None = None,
    out_anchors_rel: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    output_size: int | Sequence[int] | Array | Batch | None = None,
    shapes: int | Sequence[int] | Array | Batch | None = None,
    shapes_rel: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
) -> Batch: ...
@overload
def nonsilent_region(
    signal: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None, cutoff_db: float = -60.0,
    reference_power: float | None = None, reset_interval: int = 8192, window_length: int = 2048,
) -> tuple[Tensor, Tensor]: ...
@overload
def nonsilent_region(
    signal: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None, cutoff_db: float = -60.0,
    reference_power: float | None = None, reset_interval: int = 8192, window_length: int = 2048,
) -> tuple[Batch, Batch]: ...
@overload
def nonsilent_region(
    signal: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    cutoff_db: float = -60.0, reference_power: float | None = None, reset_interval: int = 8192,
    window_length: int = 2048,
) -> tuple[Batch, Batch]: ...
@overload
def normalize(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None,
    axes: int | Sequence[int] | Array | None = None, axis_names: str | None = None, batch: _bool = False,
    ddof: int = 0, dtype: DTypeLike | None = None, epsilon: float = 0.0,
    mean: float | Sequence[float | Sequence[float]] | Array | None = None, scale: float = 1.0, shift: float = 0.0,
    stddev: float | Sequence[float | Sequence[float]] | Array | None = None,
) -> Tensor: ...
@overload
def normalize(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    axes: int | Sequence[int] | Array | None = None, axis_names: str | None = None, batch: _bool = False,
    ddof: int = 0, dtype: DTypeLike | None = None, epsilon: float = 0.0,
    mean: float | Sequence[float | Sequence[float]] | Array | Batch | None = None, scale: float = 1.0,
    shift: float = 0.0, stddev: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
) -> Batch: ...
@overload
def normalize(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    axes: int | Sequence[int] | Array | None = None, axis_names: str | None = None, batch: _bool = False,
    ddof: int = 0, dtype: DTypeLike | None = None, epsilon: float = 0.0,
    mean: float | Sequence[float | Sequence[float]] | Array | Batch | None = None, scale: float = 1.0,
    shift: float = 0.0, stddev: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
) -> Batch: ...
@overload
def one_hot(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None, axis: int | None = None,
    axis_name: str | None = None, dtype: DTypeLike | None = None, num_classes: int = 0, off_value: float = 0.0,
    on_value: float = 1.0,
) -> Tensor: ...
@overload
def one_hot(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None, axis: int | None = None,
    axis_name: str | None = None, dtype: DTypeLike | None = None, num_classes: int = 0, off_value: float = 0.0,
    on_value: float = 1.0,
) -> Batch: ...
@overload
def one_hot(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None, axis: int | None = None,
    axis_name: str | None = None, dtype: DTypeLike | None = None, num_classes: int = 0, off_value: float = 0.0,
    on_value: float = 1.0,
) -> Batch: ...
@overload
def ones(
    *, batch_size: None = None, device: DeviceLike | None = None, dtype: DTypeLike | None = None,
    layout: str | None = None, shape: int | Sequence[int] | Array | None = None,
) -> Tensor: ...
@overload
def ones(
    *, batch_size: int | None = None, device: DeviceLike | None = None, dtype: DTypeLike | None = None,
    layout: str | None = None, shape: int | Sequence[int] | Array | Batch | None = None,
) -> Batch: ...
@overload
def ones_like(
    data_like: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None,
    dtype: DTypeLike | None = None,
) -> Tensor: ...
@overload
def ones_like(
    data_like: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    dtype: DTypeLike | None = None,
) -> Batch: ...
@overload
def ones_like(
    data_like: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    dtype: DTypeLike | None = None,
) -> Batch: ...
@overload
def operator(function: Callable[P, Any], /) -> Declared[P]: ...
@overload
def operator(
    *, layouts: tuple[str, ...] | None = None, types: tuple[str, ...] | None = None,
    dtypes: tuple[str, ...] | None = None, frames: _bool = False, random: _bool = False,
    reads: str | dict[str, str] = 'device', outputs: int | Callable[..., int] = 1, cut: str = 'whole',
    elementwise: _bool = False, masks: _bool = False, paths: _bool = False, argument_shapes: _bool = True,
    register: _bool = True,
) -> Callable[[Callable[P, Any]], Declared[P]]: ...
@overload
def optical_flow(
    input_0: TensorLike, input_1: TensorLike | None = None, /, *, batch_size: None = None,
    device: DeviceLike | None = None, enable_external_hints: _bool = False, enable_temporal_hints: _bool = False,
    hint_grid: int = 4, image_type: DALIImageType | int = DALIImageType.RGB, output_format: int | None = None,
    output_grid: int = 4, preset: float = 0.0,
) -> Tensor: ...
@overload
def optical_flow(
    input_0: Batch, input_1: TensorLike | Batch | None = None, /, *, batch_size: int | None = None,
    device: DeviceLike | None = None, enable_external_hints: _bool = False, enable_temporal_hints: _bool = False,
    hint_grid: int = 4, image_type: DALIImageType | int = DALIImageType.RGB, output_format: int | None = None,
    output_grid: int = 4, preset: float = 0.0,
) -> Batch: ...
@overload
def optical_flow(
    input_0: TensorLike, input_1: TensorLike | Batch | None = None, /, *, batch_size: int | None = None,
    device: DeviceLike | None = None, enable_external_hints: _bool = False, enable_temporal_hints: _bool = False,
    hint_grid: int = 4, image_type: DALIImageType | int = DALIImageType.RGB, output_format: int | None = None,
    output_grid: int = 4, preset: float = 0.0,
) -> Batch: ...
@overload
def pad(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None,
    align: int | Sequence[int] | Array | None = None, axes: int | Sequence[int] | Array | None = None,
    axis_names: str | None = None, fill_value: float | Array = 0.0, shape: int | Sequence[int] | Array | None = None,
) -> Tensor: ...
@overload
def pad(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    align: int | Sequence[int] | Array | Batch | None = None, axes: int | Sequence[int] | Array | Batch | None = None,
    axis_names: str | None = None, fill_value: float | Array | Batch = 0.0,
    shape: int | Sequence[int] | Array | Batch | None = None,
) -> Batch: ...
@overload
def pad(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    align: int | Sequence[int] | Array | Batch | None = None, axes: int | Sequence[int] | Array | Batch | None = None,
    axis_names: str | None = None, fill_value: float | Array | Batch = 0.0,
    shape: int | Sequence[int] | Array | Batch | None = None,
) -> Batch: ...
@overload
def paste(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None,
    fill_value: int | Sequence[int] | Array, min_canvas_size: float | Array = 0.0, n_channels: int = 3,
    paste_x: float | Array = 0.5, paste_y: float | Array = 0.5, ratio: float | Array,
) -> Tensor: ...
@overload
def paste(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    fill_value: int | Sequence[int] | Array, min_canvas_size: float | Array | Batch = 0.0, n_channels: int = 3,
    paste_x: float | Array | Batch = 0.5, paste_y: float | Array | Batch = 0.5, ratio: float | Array | Batch,
) -> Batch: ...
@overload
def paste(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    fill_value: int | Sequence[int] | Array, min_canvas_size: float | Array | Batch = 0.0, n_channels: int = 3,
    paste_x: float | Array | Batch = 0.5, paste_y: float | Array | Batch = 0.5, ratio: float | Array | Batch,
) -> Batch: ...
@overload
def peek_image_shape(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None,
    adjust_orientation: _bool = True, dtype: DTypeLike = int64, image_type: DALIImageType | int = DALIImageType.RGB,
) -> Tensor: ...
@overload
def peek_image_shape(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    adjust_orientation: _bool = True, dtype: DTypeLike = int64, image_type: DALIImageType | int = DALIImageType.RGB,
) -> Batch: ...
@overload
def peek_image_shape(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    adjust_orientation: _bool = True, dtype: DTypeLike = int64, image_type: DALIImageType | int = DALIImageType.RGB,
) -> Batch: ...
@overload
def per_frame(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None, replace: _bool = False,
) -> Tensor: ...
@overload
def per_frame(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None, replace: _bool = False,
) -> Batch: ...
@overload
def per_frame(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None, replace: _bool = False,
) -> Batch: ...
@overload
def permute_batch(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None,
    indices: int | Sequence[int] | Array,
) -> Tensor: ...
@overload
def permute_batch(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    indices: int | Sequence[int] | Array | Batch,
) -> Batch: ...
@overload
def permute_batch(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    indices: int | Sequence[int] | Array | Batch,
) -> Batch: ...
@overload
def power_spectrum(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None, axis: int = -1,
    nfft: int | None = None, power: int = 2,
) -> Tensor: ...
@overload
def power_spectrum(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None, axis: int = -1,
    nfft: int | None = None, power: int = 2,
) -> Batch: ...
@overload
def power_spectrum(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None, axis: int = -1,
    nfft: int | None = None, power: int = 2,
) -> Batch: ...
@overload
def preemphasis_filter(
    signal: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None, border: str = 'clamp',
    dtype: DTypeLike = float32, preemph_coeff: float | Array = 0.97,
) -> Tensor: ...
@overload
def preemphasis_filter(
    signal: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None, border: str = 'clamp',
    dtype: DTypeLike = float32, preemph_coeff: float | Array | Batch = 0.97,
) -> Batch: ...
@overload
def preemphasis_filter(
    signal: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None, border: str = 'clamp',
    dtype: DTypeLike = float32, preemph_coeff: float | Array | Batch = 0.97,
) -> Batch: ...
@overload
def random_bbox_crop(
    boxes: TensorLike, labels: None = None, /, *, batch_size: None = None, device: DeviceLike | None = None,
    all_boxes_above_threshold: _bool = True, allow_no_crop: _bool = True,
    aspect_ratio: float | Sequence[float | Sequence[float]] | Array | None = None, bbox_layout: str | None = None,
    bbox_prune_threshold: float | None = None, crop_shape: int | Sequence[int] | Array | None = None,
    input_shape: int | Sequence[int] | Array | None = None, ltrb: _bool | None = None, num_attempts: int = 1,
    output_bbox_indices: Literal[False] = False, quiet: _bool = False,
    scaling: float | Sequence[float | Sequence[float]] | Array | None = None, shape_layout: str | None = None,
    threshold_type: str = 'iou', thresholds: float | Sequence[float | Sequence[float]] | Array = (0.0,),
    total_num_attempts: int = -1, rng: RNG | None = None,
) -> tuple[Tensor, Tensor, Tensor]: ...
@overload
def random_bbox_crop(
    boxes: Batch, labels: None = None, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    all_boxes_above_threshold: _bool = True, allow_no_crop: _bool = True,
    aspect_ratio: float | Sequence[float | Sequence[float]] | Array | None = None, bbox_layout: str | None = None,
    bbox_prune_threshold: float | None = None, crop_shape: int | Sequence[int] | Array | Batch | None = None,
    input_shape: int | Sequence[int] | Array | Batch | None = None, ltrb: _bool | None = None, num_attempts: int = 1,
    output_bbox_indices: Literal[False] = False, quiet: _bool = False,
    scaling: float | Sequence[float | Sequence[float]] | Array | None = None, shape_layout: str | None = None,
    threshold_type: str = 'iou', thresholds: float | Sequence[float | Sequence[float]] | Array = (0.0,),
    total_num_attempts: int = -1, rng: RNG | None = None,
) -> tuple[Batch, Batch, Batch]: ...
@overload
def random_bbox_crop(
    boxes: TensorLike, labels: None = None, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    all_boxes_above_threshold: _bool = True, allow_no_crop: _bool = True,
    aspect_ratio: float | Sequence[float | Sequence[float]] | Array | None = None, bbox_layout: str | None = None,
    bbox_prune_threshold: float | None = None, crop_shape: int | Sequence[int] | Array | Batch | None = None,
    input_shape: int | Sequence[int] | Array | Batch | None = None, ltrb: _bool | None = None, num_attempts: int = 1,
    output_bbox_indices: Literal[False] = False, quiet: _bool = False,
    scaling: float | Sequence[float | Sequence[float]] | Array | None = None, shape_layout: str | None = None,
    threshold_type: str = 'iou', thresholds: float | Sequence[float | Sequence[float]] | Array = (0.0,),
    total_num_attempts: int = -1, rng: RNG | None = None,
) -> tuple[Batch, Batch, Batch]: ...
@overload
def random_bbox_crop(
    boxes: TensorLike, labels: None = None, /, *, batch_size: None = None, device: DeviceLike | None = None,
    all_boxes_above_threshold: _bool = True, allow_no_crop: _bool = True,
    aspect_ratio: float | Sequence[float | Sequence[float]] | Array | None = None, bbox_layout: str | None = None,
    bbox_prune_threshold: float | None = None, crop_shape: int | Sequence[int] | Array | None = None,
    input_shape: int | Sequence[int] | Array | None = None, ltrb: _bool | None = None, num_attempts: int = 1,
    output_bbox_indices: Literal[True], quiet: _bool = False,
    scaling: float | Sequence[float | Sequence[float]] | Array | None = None, shape_layout: str | None = None,
    threshold_type: str = 'iou', thresholds: float | Sequence[float | Sequence[float]] | Array = (0.0,),
    total_num_attempts: int = -1, rng: RNG | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]: ...
@overload
def random_bbox_crop(
    boxes: Batch, labels: None = None, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    all_boxes_above_threshold: _bool = True, allow_no_crop: _bool = True,
    aspect_ratio: float | Sequence[float | Sequence[float]] | Array | None = None, bbox_layout: str | None = None,
    bbox_prune_threshold: float | None = None, crop_shape: int | Sequence[int] | Array | Batch | None = None,
    input_shape: int | Sequence[int] | Array | Batch | None = None, ltrb: _bool | None = None, num_attempts: int = 1,
    output_bbox_indices: Literal[True], quiet: _bool = False,
    scaling: float | Sequence[float | Sequence[float]] | Array | None = None, shape_layout: str | None = None,
    threshold_type: str = 'iou', thresholds: float | Sequence[float | Sequence[float]] | Array = (0.0,),
    total_num_attempts: int = -1, rng: RNG | None = None,
) -> tuple[Batch, Batch, Batch, Batch]: ...
@overload
def random_bbox_crop(
    boxes: TensorLike, labels: None = None, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    all_boxes_above_threshold: _bool = True, allow_no_crop: _bool = True,
    aspect_ratio: float | Sequence[float | Sequence[float]] | Array | None = None, bbox_layout: str | None = None,
    bbox_prune_threshold: float | None = None, crop_shape: int | Sequence[int] | Array | Batch | None = None,
    input_shape: int | Sequence[int] | Array | Batch | None = None, ltrb: _bool | None = None, num_attempts: int = 1,
    output_bbox_indices: Literal[True], quiet: _bool = False,
    scaling: float | Sequence[float | Sequence[float]] | Array | None = None, shape_layout: str | None = None,
    threshold_type: str = 'iou', thresholds: float | Sequence[float | Sequence[float]] | Array = (0.0,),
    total_num_attempts: int = -1, rng: RNG | None = None,
) -> tuple[Batch, Batch, Batch, Batch]: ...
@overload
def random_bbox_crop(
    boxes: TensorLike, labels: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None,
    all_boxes_above_threshold: _bool = True, allow_no_crop: _bool = True,
    aspect_ratio: float | Sequence[float | Sequence[float]] | Array | None = None, bbox_layout: str | None = None,
    bbox_prune_threshold: float | None = None, crop_shape: int | Sequence[int] | Array | None = None,
    input_shape: int | Sequence[int] | Array | None = None, ltrb: _bool | None = None, num_attempts: int = 1,
    output_bbox_indices: Literal[False] = False, quiet: _bool = False,
    scaling: float | Sequence[float | Sequence[float]] | Array | None = None, shape_layout: str | None = None,
    threshold_type: str = 'iou', thresholds: float | Sequence[float | Sequence[float]] | Array = (0.0,),
    total_num_attempts: int = -1, rng: RNG | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]: ...
@overload
def random_bbox_crop(
    boxes: Batch, labels: TensorLike | Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    all_boxes_above_threshold: _bool = True, allow_no_crop: _bool = True,
    aspect_ratio: float | Sequence[float | Sequence[float]] | Array | None = None, bbox_layout: str | None = None,
    bbox_prune_threshold: float | None = None, crop_shape: int | Sequence[int] | Array | Batch | None = None,
    input_shape: int | Sequence[int] | Array | Batch | None = None, ltrb: _bool | None = None, num_attempts: int = 1,
    output_bbox_indices: Literal[False] = False, quiet: _bool = False,
    scaling: float | Sequence[float | Sequence[float]] | Array | None = None, shape_layout: str | None = None,
    threshold_type: str = 'iou', thresholds: float | Sequence[float | Sequence[float]] | Array = (0.0,),
    total_num_attempts: int = -1, rng: RNG | None = None,
) -> tuple[Batch, Batch, Batch, Batch]: ...
@overload
def random_bbox_crop(
    boxes: TensorLike, labels: TensorLike | Batch, /, *, batch_size: int | None = None,
    device: DeviceLike | None = None, all_boxes_above_threshold: _bool = True, allow_no_crop: _bool = True,
    aspect_ratio: float | Sequence[float | Sequence[float]] | Array | None = None, bbox_layout: str | None = None,
    bbox_prune_threshold: float | None = None, crop_shape: int | Sequence[int] | Array | Batch | None = None,
    input_shape: int | Sequence[int] | Array | Batch | None = None, ltrb: _bool | None = None, num_attempts: int = 1,
    output_bbox_indices: Literal[False] = False, quiet: _bool = False,
    scaling: float | Sequence[float | Sequence[float]] | Array | None = None, shape_layout: str | None = None,
    threshold_type: str = 'iou', thresholds: float | Sequence[float | Sequence[float]] | Array = (0.0,),
    total_num_attempts: int = -1, rng: RNG | None = None,
) -> tuple[Batch, Batch, Batch, Batch]: ...
@overload
def random_bbox_crop(
    boxes: TensorLike, labels: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None,
    all_boxes_above_threshold: _bool = True, allow_no_crop: _bool = True,
    aspect_ratio: float | Sequence[float | Sequence[float]] | Array | None = None, bbox_layout: str | None = None,
    bbox_prune_threshold: float | None = None, crop_shape: int | Sequence[int] | Array | None = None,
    input_shape: int | Sequence[int] | Array | None = None, ltrb: _bool | None = None, num_attempts: int = 1,
    output_bbox_indices: Literal[True], quiet: _bool = False,
    scaling: float | Sequence[float | Sequence[float]] | Array | None = None, shape_layout: str | None = None,
    threshold_type: str = 'iou', thresholds: float | Sequence[float | Sequence[float]] | Array = (0.0,),
    total_num_attempts: int = -1, rng: RNG | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]: ...
@overload
def random_bbox_crop(
    boxes: Batch, labels: TensorLike | Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    all_boxes_above_threshold: _bool = True, allow_no_crop: _bool = True,
    aspect_ratio: float | Sequence[float | Sequence[float]] | Array | None = None, bbox_layout: str | None = None,
    bbox_prune_threshold: float | None = None, crop_shape: int | Sequence[int] | Array | Batch | None = None,
    input_shape: int | Sequence[int] | Array | Batch | None = None, ltrb: _bool | None = None, num_attempts: int = 1,
    output_bbox_indices: Literal[True], quiet: _bool = False,
    scaling: float | Sequence[float | Sequence[float]] | Array | None = None, shape_layout: str | None = None,
    threshold_type: str = 'iou', thresholds: float | Sequence[float | Sequence[float]] | Array = (0.0,),
    total_num_attempts: int = -1, rng: RNG | None = None,
) -> tuple[Batch, Batch, Batch, Batch, Batch]: ...
@overload
def random_bbox_crop(
    boxes: TensorLike, labels: TensorLike | Batch, /, *, batch_size: int | None = None,
    device: DeviceLike | None = None, all_boxes_above_threshold: _bool = True, allow_no_crop: _bool = True,
    aspect_ratio: float | Sequence[float | Sequence[float]] | Array | None = None, bbox_layout: str | None = None,
    bbox_prune_threshold: float | None = None, crop_shape: int | Sequence[int] | Array | Batch | None = None,
    input_shape: int | Sequence[int] | Array | Batch | None = None, ltrb: _bool | None = None, num_attempts: int = 1,
    output_bbox_indices: Literal[True], quiet: _bool = False,
    scaling: float | Sequence[float | Sequence[float]] | Array | None = None, shape_layout: str | None = None,
    threshold_type: str = 'iou', thresholds: float | Sequence[float | Sequence[float]] | Array = (0.0,),
    total_num_attempts: int = -1, rng: RNG | None = None,
) -> tuple[Batch, Batch, Batch, Batch, Batch]: ...
@overload
def random_crop_generator(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None, num_attempts: int = 10,
    random_area: float | Sequence[float | Sequence[float]] | Array = (0.08, 1.0),
    random_aspect_ratio: float | Sequence[float | Sequence[float]] | Array = (0.75, 1.3333333333333333),
    rng: RNG | None = None,
) -> tuple[Tensor, Tensor]: ...
@overload
def random_crop_generator(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None, num_attempts: int = 10,
    random_area: float | Sequence[float | Sequence[float]] | Array = (0.08, 1.0),
    random_aspect_ratio: float | Sequence[float | Sequence[float]] | Array = (0.75, 1.3333333333333333),
    rng: RNG | None = None,
) -> tuple[Batch, Batch]: ...
@overload
def random_crop_generator(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None, num_attempts: int = 10,
    random_area: float | Sequence[float | Sequence[float]] | Array = (0.08, 1.0),
    random_aspect_ratio: float | Sequence[float | Sequence[float]] | Array = (0.75, 1.3333333333333333),
    rng: RNG | None = None,
) -> tuple[Batch, Batch]: ...
@overload
def random_erasing(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None, p: float | Array = 0.5,
    ratio: float | Sequence[float | Sequence[float]] | Array = (0.3, 3.3),
    scale: float | Sequence[float | Sequence[float]] | Array = (0.02, 0.33),
    value: float | Sequence[float | Sequence[float]] | Array | Literal['random'] = (0.0,), rng: RNG | None = None,
) -> Tensor: ...
@overload
def random_erasing(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    p: float | Array | Batch = 0.5, ratio: float | Sequence[float | Sequence[float]] | Array | Batch = (0.3, 3.3),
    scale: float | Sequence[float | Sequence[float]] | Array | Batch = (0.02, 0.33),
    value: float | Sequence[float | Sequence[float]] | Array | Literal['random'] | Batch = (0.0,),
    rng: RNG | None = None,
) -> Batch: ...
@overload
def random_erasing(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    p: float | Array | Batch = 0.5, ratio: float | Sequence[float | Sequence[float]] | Array | Batch = (0.3, 3.3),
    scale: float | Sequence[float | Sequence[float]] | Array | Batch = (0.02, 0.33),
    value: float | Sequence[float | Sequence[float]] | Array | Literal['random'] | Batch = (0.0,),
    rng: RNG | None = None,
) -> Batch: ...
@overload
def random_resized_crop(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None, antialias: _bool = True,
    dtype: DTypeLike | None = None, interp_type: DALIInterpType | int | Array | None = None,
    mag_filter: DALIInterpType | int | Array | None = None, min_filter: DALIInterpType | int | Array | None = None,
    minibatch_size: int = 32, num_attempts: int = 10,
    random_area: float | Sequence[float | Sequence[float]] | Array = (0.08, 1.0),
    random_aspect_ratio: float | Sequence[float | Sequence[float]] | Array = (0.75, 1.3333333333333333),
    rule: str = 'dali', size: int | Sequence[int] | Array, temp_buffer_hint: int = 0, rng: RNG | None = None,
) -> Tensor: ...
@overload
def random_resized_crop(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None, antialias: _bool = True,
    dtype: DTypeLike | None = None, interp_type: DALIInterpType | int | Array | Batch | None = None,
    mag_filter: DALIInterpType | int | Array | Batch | None = None,
    min_filter: DALIInterpType | int | Array | Batch | None = None, minibatch_size: int = 32, num_attempts: int = 10,
    random_area: float | Sequence[float | Sequence[float]] | Array = (0.08, 1.0),
    random_aspect_ratio: float | Sequence[float | Sequence[float]] | Array = (0.75, 1.3333333333333333),
    rule: str = 'dali', size: int | Sequence[int] | Array, temp_buffer_hint: int = 0, rng: RNG | None = None,
) -> Batch: ...
@overload
def random_resized_crop(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None, antialias: _bool = True,
    dtype: DTypeLike | None = None, interp_type: DALIInterpType | int | Array | Batch | None = None,
    mag_filter: DALIInterpType | int | Array | Batch | None = None,
    min_filter: DALIInterpType | int | Array | Batch | None = None, minibatch_size: int = 32, num_attempts: int = 10,
    random_area: float | Sequence[float | Sequence[float]] | Array = (0.08, 1.0),
    random_aspect_ratio: float | Sequence[float | Sequence[float]] | Array = (0.75, 1.3333333333333333),
    rule: str = 'dali', size: int | Sequence[int] | Array, temp_buffer_hint: int = 0, rng: RNG | None = None,
) -> Batch: ...
@overload
def reinterpret(
    data: TensorLike, shape_input: TensorLike | None = None, /, *, batch_size: None = None,
    device: DeviceLike | None = None, dtype: DTypeLike | None = None, layout: str | None = None,
    rel_shape: float | Sequence[float | Sequence[float]] | Array | None = None,
    shape: int | Sequence[int] | Array | None = None, src_dims: int | Sequence[int] | Array | None = None,
) -> Tensor: ...
@overload
def reinterpret(
    data: Batch, shape_input: TensorLike | Batch | None = None, /, *, batch_size: int | None = None,
    device: DeviceLike | None = None, dtype: DTypeLike | None = None, layout: str | None = None,
    rel_shape: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    shape: int | Sequence[int] | Array | Batch | None = None,
    src_dims: int | Sequence[int] | Array | Batch | None = None,
) -> Batch: ...
@overload
def reinterpret(
    data: TensorLike, shape_input: TensorLike | Batch | None = None, /, *, batch_size: int | None = None,
    device: DeviceLike | None = None, dtype: DTypeLike | None = None, layout: str | None = None,
    rel_shape: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    shape: int | Sequence[int] | Array | Batch | None = None,
    src_dims: int | Sequence[int] | Array | Batch | None = None,
) -> Batch: ...
@overload
def reshape(
    data: TensorLike, shape_input: TensorLike | None = None, /, *, batch_size: None = None,
    device: DeviceLike | None = None, layout: str | None = None,
    rel_shape: float | Sequence[float | Sequence[float]] | Array | None = None,
    shape: int | Sequence[int] | Array | None = None, src_dims: int | Sequence[int] | Array | None = None,
) -> Tensor: ...
@overload
def reshape(
    data: Batch, shape_input: TensorLike | Batch | None = None, /, *, batch_size: int | None = None,
    device: DeviceLike | None = None, layout: str | None = None,
    rel_shape: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    shape: int | Sequence[int] | Array | Batch | None = None,
    src_dims: int | Sequence[int] | Array | Batch | None = None,
) -> Batch: ...
@overload
def reshape(
    data: TensorLike, shape_input: TensorLike | Batch | None = None, /, *, batch_size: int | None = None,
    device: DeviceLike | None = None, layout: str | None = None,
    rel_shape: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    shape: int | Sequence[int] | Array | Batch | None = None,
    src_dims: int | Sequence[int] | Array | Batch | None = None,
) -> Batch: ...
@overload
def resize(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None, antialias: _bool = True,
    dtype: DTypeLike | None = None, image_type: DALIImageType | int | None = None,
    interp_type: DALIInterpType | int | Array | None = None, mag_filter: DALIInterpType | int | Array | None = None,
    max_size: float | Sequence[float | Sequence[float]] | Array | None = None,
    min_filter: DALIInterpType | int | Array | None = None, minibatch_size: int = 32, mode: str | None = None,
    resize_longer: float | Array | None = None, resize_shorter: float | Array | None = None,
    resize_x: float | Array | None = None, resize_y: float | Array | None = None,
    resize_z: float | Array | None = None, roi_end: float | Sequence[float | Sequence[float]] | Array | None = None,
    roi_relative: _bool = False, roi_start: float | Sequence[float | Sequence[float]] | Array | None = None,
    rule: str = 'dali', save_attrs: Literal[False] = False,
    size: float | Sequence[float | Sequence[float]] | Array | None = None, subpixel_scale: _bool = True,
    temp_buffer_hint: int = 0,
) -> Tensor: ...
@overload
def resize(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None, antialias: _bool = True,
    dtype: DTypeLike | None = None, image_type: DALIImageType | int | None = None,
    interp_type: DALIInterpType | int | Array | Batch | None = None,
    mag_filter: DALIInterpType | int | Array | Batch | None = None,
    max_size: float | Sequence[float | Sequence[float]] | Array | None = None,
    min_filter: DALIInterpType | int | Array | Batch | None = None, minibatch_size: int = 32, mode: str | None = None,
    resize_longer: float | Array | Batch | None = None, resize_shorter: float | Array | Batch | None = None,
    resize_x: float | Array | Batch | None = None, resize_y: float | Array | Batch | None = None,
    resize_z: float | Array | Batch | None = None,
    roi_end: float | Sequence[float | Sequence[float]] | Array | Batch | None = None, roi_relative: _bool = False,
    roi_start: float | Sequence[float | Sequence[float]] | Array | Batch | None = None, rule: str = 'dali',
    save_attrs: Literal[False] = False, size: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    subpixel_scale: _bool = True, temp_buffer_hint: int = 0,
) -> Batch: ...
@overload
def resize(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None, antialias: _bool = True,
    dtype: DTypeLike | None = None, image_type: DALIImageType | int | None = None,
    interp_type: DALIInterpType | int | Array | Batch | None = None,
    mag_filter: DALIInterpType | int | Array | Batch | None = None,
    max_size: float | Sequence[float | Sequence[float]] | Array | None = None,
    min_filter: DALIInterpType | int | Array | Batch | None = None, minibatch_size: int = 32, mode: str | None = None,
    resize_longer: float | Array | Batch | None = None, resize_shorter: float | Array | Batch | None = None,
    resize_x: float | Array | Batch | None = None, resize_y: float | Array | Batch | None = None,
    resize_z: float | Array | Batch | None = None,
    roi_end: float | Sequence[float | Sequence[float]] | Array | Batch | None = None, roi_relative: _bool = False,
    roi_start: float | Sequence[float | Sequence[float]] | Array | Batch | None = None, rule: str = 'dali',
    save_attrs: Literal[False] = False, size: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    subpixel_scale: _bool = True, temp_buffer_hint: int = 0,
) -> Batch: ...
@overload
def resize(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None, antialias: _bool = True,
    dtype: DTypeLike | None = None, image_type: DALIImageType | int | None = None,
    interp_type: DALIInterpType | int | Array | None = None, mag_filter: DALIInterpType | int | Array | None = None,
    max_size: float | Sequence[float | Sequence[float]] | Array | None = None,
    min_filter: DALIInterpType | int | Array | None = None, minibatch_size: int = 32, mode: str | None = None,
    resize_longer: float | Array | None = None, resize_shorter: float | Array | None = None,
    resize_x: float | Array | None = None, resize_y: float | Array | None = None,
    resize_z: float | Array | None = None, roi_end: float | Sequence[float | Sequence[float]] | Array | None = None,
    roi_relative: _bool = False, roi_start: float | Sequence[float | Sequence[float]] | Array | None = None,
    rule: str = 'dali', save_attrs: Literal[True],
    size: float | Sequence[float | Sequence[float]] | Array | None = None, subpixel_scale: _bool = True,
    temp_buffer_hint: int = 0,
) -> tuple[Tensor, Tensor]: ...
@overload
def resize(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None, antialias: _bool = True,
    dtype: DTypeLike | None = None, image_type: DALIImageType | int | None = None,
    interp_type: DALIInterpType | int | Array | Batch | None = None,
    mag_filter: DALIInterpType | int | Array | Batch | None = None,
    max_size: float | Sequence[float | Sequence[float]] | Array | None = None,
    min_filter: DALIInterpType | int | Array | Batch | None = None, minibatch_size: int = 32, mode: str | None = None,
    resize_longer: float | Array | Batch | None = None, resize_shorter: float | Array | Batch | None = None,
    resize_x: float | Array | Batch | None = None, resize_y: float | Array | Batch | None = None,
    resize_z: float | Array | Batch | None = None,
    roi_end: float | Sequence[float | Sequence[float]] | Array | Batch | None = None, roi_relative: _bool = False,
    roi_start: float | Sequence[float | Sequence[float]] | Array | Batch | None = None, rule: str = 'dali',
    save_attrs: Literal[True], size: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    subpixel_scale: _bool = True, temp_buffer_hint: int = 0,
) -> tuple[Batch, Batch]: ...
@overload
def resize(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None, antialias: _bool = True,
    dtype: DTypeLike | None = None, image_type: DALIImageType | int | None = None,
    interp_type: DALIInterpType | int | Array | Batch | None = None,
    mag_filter: DALIInterpType | int | Array | Batch | None = None,
    max_size: float | Sequence[float | Sequence[float]] | Array | None = None,
    min_filter: DALIInterpType | int | Array | Batch | None = None, minibatch_size: int = 32, mode: str | None = None,
    resize_longer: float | Array | Batch | None = None, resize_shorter: float | Array | Batch | None = None,
    resize_x: float | Array | Batch | None = None, resize_y: float | Array | Batch | None = None,
    resize_z: float | Array | Batch | None = None,
    roi_end: float | Sequence[float | Sequence[float]] | Array | Batch | None = None, roi_relative: _bool = False,
    roi_start: float | Sequence[float | Sequence[float]] | Array | Batch | None = None, rule: str = 'dali',
    save_attrs: Literal[True], size: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    subpixel_scale: _bool = True, temp_buffer_hint: int = 0,
) -> tuple[Batch, Batch]: ...
@overload
def resize_crop_mirror(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None, antialias: _bool = True,
    crop: float | Sequence[float | Sequence[float]] | Array | None = None, crop_d: float | Array | None = None,
    crop_h: float | Array | None = None, crop_pos_x: float | Array = 0.5, crop_pos_y: float | Array = 0.5,
    crop_pos_z: float | Array = 0.5, crop_w: float | Array | None = None, dtype: DTypeLike | None = None,
    interp_type: DALIInterpType | int | Array | None = None, mag_filter: DALIInterpType | int | Array | None = None,
    max_size: float | Sequence[float | Sequence[float]] | Array | None = None,
    min_filter: DALIInterpType | int | Array | None = None, minibatch_size: int = 32, mirror: int | Array = 0,
    mode: str | None = None, resize_longer: float | Array | None = None, resize_shorter: float | Array | None = None,
    resize_x: float | Array | None = None, resize_y: float | Array | None = None,
    resize_z: float | Array | None = None, roi_end: float | Sequence[float | Sequence[float]] | Array | None = None,
    roi_relative: _bool = False, roi_start: float | Sequence[float | Sequence[float]] | Array | None = None,
    rounding: str = 'round', rule: str = 'dali', size: float | Sequence[float | Sequence[float]] | Array | None = None,
    subpixel_scale: _bool = True, temp_buffer_hint: int = 0,
) -> Tensor: ...
@overload
def resize_crop_mirror(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None, antialias: _bool = True,
    crop: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    crop_d: float | Array | Batch | None = None, crop_h: float | Array | Batch | None = None,
    crop_pos_x: float | Array | Batch = 0.5, crop_pos_y: float | Array | Batch = 0.5,
    crop_pos_z: float | Array | Batch = 0.5, crop_w: float | Array | Batch | None = None,
    dtype: DTypeLike | None = None, interp_type: DALIInterpType | int | Array | Batch | None = None,
    mag_filter: DALIInterpType | int | Array | Batch | None = None,
    max_size: float | Sequence[float | Sequence[float]] | Array | None = None,
    min_filter: DALIInterpType | int | Array | Batch | None = None, minibatch_size: int = 32,
    mirror: int | Array | Batch = 0, mode: str | None = None, resize_longer: float | Array | Batch | None = None,
    resize_shorter: float | Array | Batch | None = None, resize_x: float | Array | Batch | None = None,
    resize_y: float | Array | Batch | None = None, resize_z: float | Array | Batch | None = None,
    roi_end: float | Sequence[float | Sequence[float]] | Array | Batch | None = None, roi_relative: _bool = False,
    roi_start: float | Sequence[float | Sequence[float]] | Array | Batch | None = None, rounding: str = 'round',
    rule: str = 'dali', size: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    subpixel_scale: _bool = True, temp_buffer_hint: int = 0,
) -> Batch: ...
@overload
def resize_crop_mirror(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None, antialias: _bool = True,
    crop: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    crop_d: float | Array | Batch | None = None, crop_h: float | Array | Batch | None = None,
    crop_pos_x: float | Array | Batch = 0.5, crop_pos_y: float | Array | Batch = 0.5,
    crop_pos_z: float | Array | Batch = 0.5, crop_w: float | Array | Batch | None = None,
    dtype: DTypeLike | None = None, interp_type: DALIInterpType | int | Array | Batch | None = None,
    mag_filter: DALIInterpType | int | Array | Batch | None = None,
    max_size: float | Sequence[float | Sequence[float]] | Array | None = None,
    min_filter: DALIInterpType | int | Array | Batch | None = None, minibatch_size: int = 32,
    mirror: int | Array | Batch = 0, mode: str | None = None, resize_longer: float | Array | Batch | None = None,
    resize_shorter: float | Array | Batch | None = None, resize_x: float | Array | Batch | None = None,
    resize_y: float | Array | Batch | None = None, resize_z: float | Array | Batch | None = None,
    roi_end: float | Sequence[float | Sequence[float]] | Array | Batch | None = None, roi_relative: _bool = False,
    roi_start: float | Sequence[float | Sequence[float]] | Array | Batch | None = None, rounding: str = 'round',
    rule: str = 'dali', size: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    subpixel_scale: _bool = True, temp_buffer_hint: int = 0,
) -> Batch: ...
@overload
def roi_random_crop(
    input: TensorLike | None = None, /, *, batch_size: None = None, device: DeviceLike | None = None,
    crop_shape: int | Sequence[int] | Array, in_shape: int | Sequence[int] | Array | None = None,
    roi_end: int | Sequence[int] | Array | None = None, roi_shape: int | Sequence[int] | Array | None = None,
    roi_start: int | Sequence[int] | Array, rng: RNG | None = None,
) -> Tensor: ...
@overload
def roi_random_crop(
    input: TensorLike | Batch | None = None, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    crop_shape: int | Sequence[int] | Array | Batch, in_shape: int | Sequence[int] | Array | Batch | None = None,
    roi_end: int | Sequence[int] | Array | Batch | None = None,
    roi_shape: int | Sequence[int] | Array | Batch | None = None, roi_start: int | Sequence[int] | Array | Batch,
    rng: RNG | None = None,
) -> Batch: ...
@overload
def rotate(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None, angle: float | Array,
    axis: float | Sequence[float | Sequence[float]] | Array | None = None, dtype: DTypeLike | None = None,
    fill_value: float | None = None, interp_type: DALIInterpType | int = DALIInterpType.INTERP_LINEAR,
    keep_size: _bool = False, output_dtype: DTypeLike | None = None,
    size: float | Sequence[float | Sequence[float]] | Array | None = None,
) -> Tensor: ...
@overload
def rotate(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None, angle: float | Array | Batch,
    axis: float | Sequence[float | Sequence[float]] | Array | Batch | None = None, dtype: DTypeLike | None = None,
    fill_value: float | None = None, interp_type: DALIInterpType | int = DALIInterpType.INTERP_LINEAR,
    keep_size: _bool = False, output_dtype: DTypeLike | None = None,
    size: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
) -> Batch: ...
@overload
def rotate(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    angle: float | Array | Batch, axis: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    dtype: DTypeLike | None = None, fill_value: float | None = None,
    interp_type: DALIInterpType | int = DALIInterpType.INTERP_LINEAR, keep_size: _bool = False,
    output_dtype: DTypeLike | None = None,
    size: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
) -> Batch: ...
@overload
def saturation(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None, dtype: DTypeLike | None = None,
    image_type: DALIImageType | int | None = None, saturation: float | Array = 1.0,
) -> Tensor: ...
@overload
def saturation(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    dtype: DTypeLike | None = None, image_type: DALIImageType | int | None = None,
    saturation: float | Array | Batch = 1.0,
) -> Batch: ...
@overload
def saturation(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    dtype: DTypeLike | None = None, image_type: DALIImageType | int | None = None,
    saturation: float | Array | Batch = 1.0,
) -> Batch: ...
@overload
def sequence_rearrange(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None,
    new_order: int | Sequence[int] | Array,
) -> Tensor: ...
@overload
def sequence_rearrange(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    new_order: int | Sequence[int] | Array | Batch,
) -> Batch: ...
@overload
def sequence_rearrange(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    new_order: int | Sequence[int] | Array | Batch,
) -> Batch: ...
@overload
def slice(
    data: TensorLike, anchor: TensorLike | None = None, shape_input: TensorLike | None = None, /, *,
    batch_size: None = None, device: DeviceLike | None = None, axes: int | Sequence[int] | Array | None = None,
    axis_names: str | None = None, dtype: DTypeLike | None = None, end: int | Sequence[int] | Array | None = None,
    fill_values: float | Sequence[float | Sequence[float]] | Array = (0.0,), image_type: Any = None,
    normalized_anchor: _bool = True, normalized_shape: _bool = True, out_of_bounds_policy: str = 'error',
    output_dtype: DTypeLike | None = None, rel_end: float | Sequence[float | Sequence[float]] | Array | None = None,
    rel_shape: float | Sequence[float | Sequence[float]] | Array | None = None,
    rel_start: float | Sequence[float | Sequence[float]] | Array | None = None,
    shape: int | Sequence[int] | Array | None = None, start: int | Sequence[int] | Array | None = None,
) -> Tensor: ...
@overload
def slice(
    data: Batch, anchor: TensorLike | Batch | None = None, shape_input: TensorLike | Batch | None = None, /, *,
    batch_size: int | None = None, device: DeviceLike | None = None,
    axes: int | Sequence[int] | Array | Batch | None = None, axis_names: str | None = None,
    dtype: DTypeLike | None = None, end: int | Sequence[int] | Array | Batch | None = None,
    fill_values: float | Sequence[float | Sequence[float]] | Array = (0.0,), image_type: Any = None,
    normalized_anchor: _bool = True, normalized_shape: _bool = True, out_of_bounds_policy: str = 'error',
    output_dtype: DTypeLike | None = None,
    rel_end: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    rel_shape: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    rel_start: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    shape: int | Sequence[int] | Array | Batch | None = None, start: int | Sequence[int] | Array | Batch | None = None,
) -> Batch: ...
@overload
def slice(
    data: TensorLike, anchor: TensorLike | Batch | None = None, shape_input: TensorLike | Batch | None = None, /, *,
    batch_size: int | None = None, device: DeviceLike | None = None,
    axes: int | Sequence[int] | Array | Batch | None = None, axis_names: str | None = None,
    dtype: DTypeLike | None = None, end: int | Sequence[int] | Array | Batch | None = None,
    fill_values: float | Sequence[float | Sequence[float]] | Array = (0.0,), image_type: Any = None,
    normalized_anchor: _bool = True, normalized_shape: _bool = True, out_of_bounds_policy: str = 'error',
    output_dtype: DTypeLike | None = None,
    rel_end: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    rel_shape: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    rel_start: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    shape: int | Sequence[int] | Array | Batch | None = None, start: int | Sequence[int] | Array | Batch | None = None,
) -> Batch: ...
@overload
def spectrogram(
    signal: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None, center_windows: _bool = True,
    layout: str = 'ft', nfft: int | None = None, power: int = 2, reflect_padding: _bool = True,
    window_fn: float | Sequence[float | Sequence[float]] | Array | None = None, window_length: int = 512,
    window_step: int = 256,
) -> Tensor: ...
@overload
def spectrogram(
    signal: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None, center_windows: _bool = True,
    layout: str = 'ft', nfft: int | None = None, power: int = 2, reflect_padding: _bool = True,
    window_fn: float | Sequence[float | Sequence[float]] | Array | None = None, window_length: int = 512,
    window_step: int = 256,
) -> Batch: ...
@overload
def spectrogram(
    signal: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    center_windows: _bool = True, layout: str = 'ft', nfft: int | None = None, power: int = 2,
    reflect_padding: _bool = True, window_fn: float | Sequence[float | Sequence[float]] | Array | None = None,
    window_length: int = 512, window_step: int = 256,
) -> Batch: ...
@overload
def sphere(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None, fill_value: float = 0.0,
    interp_type: DALIInterpType | int = DALIInterpType.INTERP_NN, mask: int | Array = 1,
) -> Tensor: ...
@overload
def sphere(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None, fill_value: float = 0.0,
    interp_type: DALIInterpType | int = DALIInterpType.INTERP_NN, mask: int | Array | Batch = 1,
) -> Batch: ...
@overload
def sphere(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None, fill_value: float = 0.0,
    interp_type: DALIInterpType | int = DALIInterpType.INTERP_NN, mask: int | Array | Batch = 1,
) -> Batch: ...
@overload
def squeeze(
    data: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None,
    axes: int | Sequence[int] | Array | None = None, axis_names: str | None = None,
) -> Tensor: ...
@overload
def squeeze(
    data: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    axes: int | Sequence[int] | Array | None = None, axis_names: str | None = None,
) -> Batch: ...
@overload
def squeeze(
    data: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    axes: int | Sequence[int] | Array | None = None, axis_names: str | None = None,
) -> Batch: ...
@overload
def stack(
    input_0: TensorLike, /, *inputs: TensorLike, batch_size: None = None, device: DeviceLike | None = None,
    axis: int = 0, axis_name: str | None = None,
) -> Tensor: ...
@overload
def stack(
    input_0: Batch, /, *inputs: TensorLike | Batch, batch_size: int | None = None, device: DeviceLike | None = None,
    axis: int = 0, axis_name: str | None = None,
) -> Batch: ...
@overload
def stack(
    input_0: TensorLike, /, *inputs: TensorLike | Batch, batch_size: int | None = None,
    device: DeviceLike | None = None, axis: int = 0, axis_name: str | None = None,
) -> Batch: ...
@overload
def tensor_resize(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None,
    alignment: float | Sequence[float | Sequence[float]] | Array = (0.5,), antialias: _bool = True,
    axes: int | Sequence[int] | Array | None = None, axis_names: str | None = None, dtype: DTypeLike | None = None,
    interp_type: DALIInterpType | int | Array | None = None, mag_filter: DALIInterpType | int | Array | None = None,
    max_size: float | Sequence[float | Sequence[float]] | Array | None = None,
    min_filter: DALIInterpType | int | Array | None = None, minibatch_size: int = 32, mode: str | None = None,
    roi_end: float | Sequence[float | Sequence[float]] | Array | None = None, roi_relative: _bool = False,
    roi_start: float | Sequence[float | Sequence[float]] | Array | None = None,
    scales: float | Sequence[float | Sequence[float]] | Array | None = None, size_rounding: str = 'round',
    sizes: float | Sequence[float | Sequence[float]] | Array | None = None, subpixel_scale: _bool = True,
    temp_buffer_hint: int = 0,
) -> Tensor: ...
@overload
def tensor_resize(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    alignment: float | Sequence[float | Sequence[float]] | Array | Batch = (0.5,), antialias: _bool = True,
    axes: int | Sequence[int] | Array | None = None, axis_names: str | None = None, dtype: DTypeLike | None = None,
    interp_type: DALIInterpType | int | Array | Batch | None = None,
    mag_filter: DALIInterpType | int | Array | Batch | None = None,
    max_size: float | Sequence[float | Sequence[float]] | Array | None = None,
    min_filter: DALIInterpType | int | Array | Batch | None = None, minibatch_size: int = 32, mode: str | None = None,
    roi_end: float | Sequence[float | Sequence[float]] | Array | Batch | None = None, roi_relative: _bool = False,
    roi_start: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    scales: float | Sequence[float | Sequence[float]] | Array | Batch | None = None, size_rounding: str = 'round',
    sizes: float | Sequence[float | Sequence[float]] | Array | Batch | None = None, subpixel_scale: _bool = True,
    temp_buffer_hint: int = 0,
) -> Batch: ...
@overload
def tensor_resize(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    alignment: float | Sequence[float | Sequence[float]] | Array | Batch = (0.5,), antialias: _bool = True,
    axes: int | Sequence[int] | Array | None = None, axis_names: str | None = None, dtype: DTypeLike | None = None,
    interp_type: DALIInterpType | int | Array | Batch | None = None,
    mag_filter: DALIInterpType | int | Array | Batch | None = None,
    max_size: float | Sequence[float | Sequence[float]] | Array | None = None,
    min_filter: DALIInterpType | int | Array | Batch | None = None, minibatch_size: int = 32, mode: str | None = None,
    roi_end: float | Sequence[float | Sequence[float]] | Array | Batch | None = None, roi_relative: _bool = False,
    roi_start: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    scales: float | Sequence[float | Sequence[float]] | Array | Batch | None = None, size_rounding: str = 'round',
    sizes: float | Sequence[float | Sequence[float]] | Array | Batch | None = None, subpixel_scale: _bool = True,
    temp_buffer_hint: int = 0,
) -> Batch: ...
@overload
def to_decibels(
    magnitude: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None, cutoff_db: float = -200.0,
    multiplier: float = 10.0, reference: float | None = None,
) -> Tensor: ...
@overload
def to_decibels(
    magnitude: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None, cutoff_db: float = -200.0,
    multiplier: float = 10.0, reference: float | None = None,
) -> Batch: ...
@overload
def to_decibels(
    magnitude: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    cutoff_db: float = -200.0, multiplier: float = 10.0, reference: float | None = None,
) -> Batch: ...
@overload
def transpose(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None,
    output_layout: str | None = None, perm: int | Sequence[int] | Array | None = None, transpose_layout: _bool = True,
) -> Tensor: ...
@overload
def transpose(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    output_layout: str | None = None, perm: int | Sequence[int] | Array | None = None, transpose_layout: _bool = True,
) -> Batch: ...
@overload
def transpose(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    output_layout: str | None = None, perm: int | Sequence[int] | Array | None = None, transpose_layout: _bool = True,
) -> Batch: ...
@overload
def warp_affine(
    data: TensorLike, mtx: TensorLike | None = None, /, *, batch_size: None = None, device: DeviceLike | None = None,
    dtype: DTypeLike | None = None, fill_value: float | None = None,
    interp_type: DALIInterpType | int = DALIInterpType.INTERP_LINEAR, inverse_map: _bool = True,
    matrix: float | Sequence[float | Sequence[float]] | Array | None = None, output_dtype: DTypeLike | None = None,
    rule: str = 'dali', size: float | Sequence[float | Sequence[float]] | Array | None = None,
) -> Tensor: ...
@overload
def warp_affine(
    data: Batch, mtx: TensorLike | Batch | None = None, /, *, batch_size: int | None = None,
    device: DeviceLike | None = None, dtype: DTypeLike | None = None, fill_value: float | None = None,
    interp_type: DALIInterpType | int = DALIInterpType.INTERP_LINEAR, inverse_map: _bool = True,
    matrix: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    output_dtype: DTypeLike | None = None, rule: str = 'dali',
    size: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
) -> Batch: ...
@overload
def warp_affine(
    data: TensorLike, mtx: TensorLike | Batch | None = None, /, *, batch_size: int | None = None,
    device: DeviceLike | None = None, dtype: DTypeLike | None = None, fill_value: float | None = None,
    interp_type: DALIInterpType | int = DALIInterpType.INTERP_LINEAR, inverse_map: _bool = True,
    matrix: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    output_dtype: DTypeLike | None = None, rule: str = 'dali',
    size: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
) -> Batch: ...
@overload
def water(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None, ampl_x: float = 10.0,
    ampl_y: float = 10.0, fill_value: float = 0.0, freq_x: float = 0.04908738521, freq_y: float = 0.04908738521,
    interp_type: DALIInterpType | int = DALIInterpType.INTERP_NN, mask: int | Array = 1, phase_x: float = 0.0,
    phase_y: float = 0.0,
) -> Tensor: ...
@overload
def water(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None, ampl_x: float = 10.0,
    ampl_y: float = 10.0, fill_value: float = 0.0, freq_x: float = 0.04908738521, freq_y: float = 0.04908738521,
    interp_type: DALIInterpType | int = DALIInterpType.INTERP_NN, mask: int | Array | Batch = 1, phase_x: float = 0.0,
    phase_y: float = 0.0,
) -> Batch: ...
@overload
def water(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None, ampl_x: float = 10.0,
    ampl_y: float = 10.0, fill_value: float = 0.0, freq_x: float = 0.04908738521, freq_y: float = 0.04908738521,
    interp_type: DALIInterpType | int = DALIInterpType.INTERP_NN, mask: int | Array | Batch = 1, phase_x: float = 0.0,
    phase_y: float = 0.0,
) -> Batch: ...
@overload
def zeros(
    *, batch_size: None = None, device: DeviceLike | None = None, dtype: DTypeLike | None = None,
    layout: str | None = None, shape: int | Sequence[int] | Array | None = None,
) -> Tensor: ...
@overload
def zeros(
    *, batch_size: int | None = None, device: DeviceLike | None = None, dtype: DTypeLike | None = None,
    layout: str | None = None, shape: int | Sequence[int] | Array | Batch | None = None,
) -> Batch: ...
@overload
def zeros_like(
    data_like: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None,
    dtype: DTypeLike | None = None,
) -> Tensor: ...
@overload
def zeros_like(
    data_like: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    dtype: DTypeLike | None = None,
) -> Batch: ...
@overload
def zeros_like(
    data_like: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    dtype: DTypeLike | None = None,
) -> Batch: ...
