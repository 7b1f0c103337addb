# Written by `python -m ndd stubs`. Do not edit.

from collections.abc import Sequence
from ndd._tensor import Batch, Tensor
from ndd._tensor.device import DeviceLike
from ndd._tensor.dtype import float32, uint8
from ndd._typing import Array, DTypeLike, TensorLike
from ndd.decoders.on_error import BadSample
from ndd.decoders.size_limits import get_max_pixels, set_max_pixels
from ndd.random.rng import RNG
from ndd.types import DALIImageType
from typing import Literal, overload

__all__ = [
    'BadSample', 'audio', 'get_max_pixels', 'image', 'image_crop', 'image_random_crop', 'image_slice', 'inflate',
    'numpy', 'set_max_pixels', 'video',
]

@overload
def audio(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None, downmix: bool = False,
    dtype: DTypeLike = float32, duration: float | Array | None = None,
    on_error: Literal['raise', 'skip', 'fill'] = 'raise', quality: float = 50.0, sample_rate: float | Array = 0.0,
    start: float | Array = 0.0,
) -> tuple[Tensor, Tensor]: ...
@overload
def audio(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None, downmix: bool = False,
    dtype: DTypeLike = float32, duration: float | Array | Batch | None = None,
    on_error: Literal['raise', 'skip', 'fill'] = 'raise', quality: float = 50.0,
    sample_rate: float | Array | Batch = 0.0, start: float | Array | Batch = 0.0,
) -> tuple[Batch, Batch]: ...
@overload
def audio(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None, downmix: bool = False,
    dtype: DTypeLike = float32, duration: float | Array | Batch | None = None,
    on_error: Literal['raise', 'skip', 'fill'] = 'raise', quality: float = 50.0,
    sample_rate: float | Array | Batch = 0.0, start: float | Array | Batch = 0.0,
) -> tuple[Batch, Batch]: ...
@overload
def image(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None,
    adjust_orientation: bool = True, affine: bool = True, cache_batch_copy: bool = True, cache_debug: bool = False,
    cache_size: int = 0, cache_threshold: int = 0, cache_type: str = '', device_memory_padding: int = 16777216,
    device_memory_padding_jpeg2k: int = 0, dtype: DTypeLike = uint8, host_memory_padding: int = 8388608,
    host_memory_padding_jpeg2k: int = 0, hw_decoder_load: float = 0.65, hybrid_huffman_threshold: int = 1000000,
    jpeg_fancy_upsampling: bool = False, max_pixels: int | None = None, memory_stats: bool | None = None,
    on_error: Literal['raise', 'skip', 'fill'] = 'raise', output_type: DALIImageType | int = DALIImageType.RGB,
    preallocate_height_hint: int = 0, preallocate_width_hint: int = 0, split_stages: bool | None = None,
    use_chunk_allocator: bool | None = None, use_fast_idct: bool = False,
) -> Tensor: ...
@overload
def image(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    adjust_orientation: bool = True, affine: bool = True, cache_batch_copy: bool = True, cache_debug: bool = False,
    cache_size: int = 0, cache_threshold: int = 0, cache_type: str = '', device_memory_padding: int = 16777216,
    device_memory_padding_jpeg2k: int = 0, dtype: DTypeLike = uint8, host_memory_padding: int = 8388608,
    host_memory_padding_jpeg2k: int = 0, hw_decoder_load: float = 0.65, hybrid_huffman_threshold: int = 1000000,
    jpeg_fancy_upsampling: bool = False, max_pixels: int | None = None, memory_stats: bool | None = None,
    on_error: Literal['raise', 'skip', 'fill'] = 'raise', output_type: DALIImageType | int = DALIImageType.RGB,
    preallocate_height_hint: int = 0, preallocate_width_hint: int = 0, split_stages: bool | None = None,
    use_chunk_allocator: bool | None = None, use_fast_idct: bool = False,
) -> Batch: ...
@overload
def image(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    adjust_orientation: bool = True, affine: bool = True, cache_batch_copy: bool = True, cache_debug: bool = False,
    cache_size: int = 0, cache_threshold: int = 0, cache_type: str = '', device_memory_padding: int = 16777216,
    device_memory_padding_jpeg2k: int = 0, dtype: DTypeLike = uint8, host_memory_padding: int = 8388608,
    host_memory_padding_jpeg2k: int = 0, hw_decoder_load: float = 0.65, hybrid_huffman_threshold: int = 1000000,
    jpeg_fancy_upsampling: bool = False, max_pixels: int | None = None, memory_stats: bool | None = None,
    on_error: Literal['raise', 'skip', 'fill'] = 'raise', output_type: DALIImageType | int = DALIImageType.RGB,
    preallocate_height_hint: int = 0, preallocate_width_hint: int = 0, split_stages: bool | None = None,
    use_chunk_allocator: bool | None = None, use_fast_idct: bool = False,
) -> Batch: ...
@overload
def image_crop(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None,
    adjust_orientation: bool = True, affine: bool = True,
    crop: float | Sequence[float | Sequence[float]] | Array | None = None, crop_d: float | Array | None = None,
    crop_h: float | Array | None = None, crop_pos_x: float | Array = 0.5, crop_pos_y: float | Array = 0.5,
    crop_pos_z: float | Array = 0.5, crop_w: float | Array | None = None, device_memory_padding: int = 16777216,
    device_memory_padding_jpeg2k: int = 0, dtype: DTypeLike = uint8, host_memory_padding: int = 8388608,
    host_memory_padding_jpeg2k: int = 0, hw_decoder_load: float = 0.65, hybrid_huffman_threshold: int = 1000000,
    jpeg_fancy_upsampling: bool = False, max_pixels: int | None = None, memory_stats: bool | None = None,
    on_error: Literal['raise', 'skip', 'fill'] = 'raise', output_type: DALIImageType | int = DALIImageType.RGB,
    preallocate_height_hint: int = 0, preallocate_width_hint: int = 0, rounding: str = 'round',
    split_stages: bool | None = None, use_chunk_allocator: bool | None = None, use_fast_idct: bool = False,
) -> Tensor: ...
@overload
def image_crop(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    adjust_orientation: bool = True, affine: bool = True,
    crop: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    crop_d: float | Array | Batch | None = None, crop_h: float | Array | Batch | None = None,
    crop_pos_x: float | Array | Batch = 0.5, crop_pos_y: float | Array | Batch = 0.5,
    crop_pos_z: float | Array | Batch = 0.5, crop_w: float | Array | Batch | None = None,
    device_memory_padding: int = 16777216, device_memory_padding_jpeg2k: int = 0, dtype: DTypeLike = uint8,
    host_memory_padding: int = 8388608, host_memory_padding_jpeg2k: int = 0, hw_decoder_load: float = 0.65,
    hybrid_huffman_threshold: int = 1000000, jpeg_fancy_upsampling: bool = False, max_pixels: int | None = None,
    memory_stats: bool | None = None, on_error: Literal['raise', 'skip', 'fill'] = 'raise',
    output_type: DALIImageType | int = DALIImageType.RGB, preallocate_height_hint: int = 0,
    preallocate_width_hint: int = 0, rounding: str = 'round', split_stages: bool | None = None,
    use_chunk_allocator: bool | None = None, use_fast_idct: bool = False,
) -> Batch: ...
@overload
def image_crop(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    adjust_orientation: bool = True, affine: bool = True,
    crop: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    crop_d: float | Array | Batch | None = None, crop_h: float | Array | Batch | None = None,
    crop_pos_x: float | Array | Batch = 0.5, crop_pos_y: float | Array | Batch = 0.5,
    crop_pos_z: float | Array | Batch = 0.5, crop_w: float | Array | Batch | None = None,
    device_memory_padding: int = 16777216, device_memory_padding_jpeg2k: int = 0, dtype: DTypeLike = uint8,
    host_memory_padding: int = 8388608, host_memory_padding_jpeg2k: int = 0, hw_decoder_load: float = 0.65,
    hybrid_huffman_threshold: int = 1000000, jpeg_fancy_upsampling: bool = False, max_pixels: int | None = None,
    memory_stats: bool | None = None, on_error: Literal['raise', 'skip', 'fill'] = 'raise',
    output_type: DALIImageType | int = DALIImageType.RGB, preallocate_height_hint: int = 0,
    preallocate_width_hint: int = 0, rounding: str = 'round', split_stages: bool | None = None,
    use_chunk_allocator: bool | None = None, use_fast_idct: bool = False,
) -> Batch: ...
@overload
def image_random_crop(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None,
    adjust_orientation: bool = True, affine: bool = True, device_memory_padding: int = 16777216,
    device_memory_padding_jpeg2k: int = 0, dtype: DTypeLike = uint8, host_memory_padding: int = 8388608,
    host_memory_padding_jpeg2k: int = 0, hw_decoder_load: float = 0.65, hybrid_huffman_threshold: int = 1000000,
    jpeg_fancy_upsampling: bool = False, max_pixels: int | None = None, memory_stats: bool | None = None,
    num_attempts: int = 10, on_error: Literal['raise', 'skip', 'fill'] = 'raise',
    output_type: DALIImageType | int = DALIImageType.RGB, preallocate_height_hint: int = 0,
    preallocate_width_hint: int = 0, random_area: float | Sequence[float | Sequence[float]] | Array = (0.08, 1.0),
    random_aspect_ratio: float | Sequence[float | Sequence[float]] | Array = (0.75, 1.3333333333333333),
    split_stages: bool | None = None, use_chunk_allocator: bool | None = None, use_fast_idct: bool = False,
    rng: RNG | None = None,
) -> Tensor: ...
@overload
def image_random_crop(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    adjust_orientation: bool = True, affine: bool = True, device_memory_padding: int = 16777216,
    device_memory_padding_jpeg2k: int = 0, dtype: DTypeLike = uint8, host_memory_padding: int = 8388608,
    host_memory_padding_jpeg2k: int = 0, hw_decoder_load: float = 0.65, hybrid_huffman_threshold: int = 1000000,
    jpeg_fancy_upsampling: bool = False, max_pixels: int | None = None, memory_stats: bool | None = None,
    num_attempts: int = 10, on_error: Literal['raise', 'skip', 'fill'] = 'raise',
    output_type: DALIImageType | int = DALIImageType.RGB, preallocate_height_hint: int = 0,
    preallocate_width_hint: int = 0, random_area: float | Sequence[float | Sequence[float]] | Array = (0.08, 1.0),
    random_aspect_ratio: float | Sequence[float | Sequence[float]] | Array = (0.75, 1.3333333333333333),
    split_stages: bool | None = None, use_chunk_allocator: bool | None = None, use_fast_idct: bool = False,
    rng: RNG | None = None,
) -> Batch: ...
@overload
def image_random_crop(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    adjust_orientation: bool = True, affine: bool = True, device_memory_padding: int = 16777216,
    device_memory_padding_jpeg2k: int = 0, dtype: DTypeLike = uint8, host_memory_padding: int = 8388608,
    host_memory_padding_jpeg2k: int = 0, hw_decoder_load: float = 0.65, hybrid_huffman_threshold: int = 1000000,
    jpeg_fancy_upsampling: bool = False, max_pixels: int | None = None, memory_stats: bool | None = None,
    num_attempts: int = 10, on_error: Literal['raise', 'skip', 'fill'] = 'raise',
    output_type: DALIImageType | int = DALIImageType.RGB, preallocate_height_hint: int = 0,
    preallocate_width_hint: int = 0, random_area: float | Sequence[float | Sequence[float]] | Array = (0.08, 1.0),
    random_aspect_ratio: float | Sequence[float | Sequence[float]] | Array = (0.75, 1.3333333333333333),
    split_stages: bool | None = None, use_chunk_allocator: bool | None = None, use_fast_idct: bool = False,
    rng: RNG | None = None,
) -> Batch: ...
@overload
def image_slice(
    data: TensorLike, anchor: TensorLike | None = None, shape_input: TensorLike | None = None, /, *,
    batch_size: None = None, device: DeviceLike | None = None, adjust_orientation: bool = True, affine: bool = True,
    axes: int | Sequence[int] | Array | None = None, axis_names: str | None = None,
    device_memory_padding: int = 16777216, device_memory_padding_jpeg2k: int = 0, dtype: DTypeLike = uint8,
    end: int | Sequence[int] | Array | None = None, host_memory_padding: int = 8388608,
    host_memory_padding_jpeg2k: int = 0, hw_decoder_load: float = 0.65, hybrid_huffman_threshold: int = 1000000,
    jpeg_fancy_upsampling: bool = False, max_pixels: int | None = None, memory_stats: bool | None = None,
    normalized_anchor: bool = True, normalized_shape: bool = True,
    on_error: Literal['raise', 'skip', 'fill'] = 'raise', output_type: DALIImageType | int = DALIImageType.RGB,
    preallocate_height_hint: int = 0, preallocate_width_hint: int = 0,
    rel_end: float | Sequence[float | Sequence[float]] | Array | None = None,
    rel_shape: float | Sequence[float | Sequence[float]] | Array | None = None,
    rel_start: float | Sequence[float | Sequence[float]] | Array | None = None,
    shape: int | Sequence[int] | Array | None = None, split_stages: bool | None = None,
    start: int | Sequence[int] | Array | None = None, use_chunk_allocator: bool | None = None,
    use_fast_idct: bool = False,
) -> Tensor: ...
@overload
def image_slice(
    data: Batch, anchor: TensorLike | Batch | None = None, shape_input: TensorLike | Batch | None = None, /, *,
    batch_size: int | None = None, device: DeviceLike | None = None, adjust_orientation: bool = True,
    affine: bool = True, axes: int | Sequence[int] | Array | Batch | None = None, axis_names: str | None = None,
    device_memory_padding: int = 16777216, device_memory_padding_jpeg2k: int = 0, dtype: DTypeLike = uint8,
    end: int | Sequence[int] | Array | Batch | None = None, host_memory_padding: int = 8388608,
    host_memory_padding_jpeg2k: int = 0, hw_decoder_load: float = 0.65, hybrid_huffman_threshold: int = 1000000,
    jpeg_fancy_upsampling: bool = False, max_pixels: int | None = None, memory_stats: bool | None = None,
    normalized_anchor: bool = True, normalized_shape: bool = True,
    on_error: Literal['raise', 'skip', 'fill'] = 'raise', output_type: DALIImageType | int = DALIImageType.RGB,
    preallocate_height_hint: int = 0, preallocate_width_hint: int = 0,
    rel_end: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    rel_shape: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    rel_start: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    shape: int | Sequence[int] | Array | Batch | None = None, split_stages: bool | None = None,
    start: int | Sequence[int] | Array | Batch | None = None, use_chunk_allocator: bool | None = None,
    use_fast_idct: bool = False,
) -> Batch: ...
@overload
def image_slice(
    data: TensorLike, anchor: TensorLike | Batch | None = None, shape_input: TensorLike | Batch | None = None, /, *,
    batch_size: int | None = None, device: DeviceLike | None = None, adjust_orientation: bool = True,
    affine: bool = True, axes: int | Sequence[int] | Array | Batch | None = None, axis_names: str | None = None,
    device_memory_padding: int = 16777216, device_memory_padding_jpeg2k: int = 0, dtype: DTypeLike = uint8,
    end: int | Sequence[int] | Array | Batch | None = None, host_memory_padding: int = 8388608,
    host_memory_padding_jpeg2k: int = 0, hw_decoder_load: float = 0.65, hybrid_huffman_threshold: int = 1000000,
    jpeg_fancy_upsampling: bool = False, max_pixels: int | None = None, memory_stats: bool | None = None,
    normalized_anchor: bool = True, normalized_shape: bool = True,
    on_error: Literal['raise', 'skip', 'fill'] = 'raise', output_type: DALIImageType | int = DALIImageType.RGB,
    preallocate_height_hint: int = 0, preallocate_width_hint: int = 0,
    rel_end: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    rel_shape: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    rel_start: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
    shape: int | Sequence[int] | Array | Batch | None = None, split_stages: bool | None = None,
    start: int | Sequence[int] | Array | Batch | None = None, use_chunk_allocator: bool | None = None,
    use_fast_idct: bool = False,
) -> Batch: ...
@overload
def inflate(
    input: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None,
    algorithm: Literal['LZ4'] = 'LZ4', check_output_size: bool = False,
    chunk_offsets: int | Sequence[int] | Array | None = None, chunk_sizes: int | Sequence[int] | Array | None = None,
    dtype: DTypeLike = uint8, layout: str = '', sequence_axis_name: str = 'F', shape: int | Sequence[int] | Array,
) -> Tensor: ...
@overload
def inflate(
    input: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    algorithm: Literal['LZ4'] = 'LZ4', check_output_size: bool = False,
    chunk_offsets: int | Sequence[int] | Array | Batch | None = None,
    chunk_sizes: int | Sequence[int] | Array | Batch | None = None, dtype: DTypeLike = uint8, layout: str = '',
    sequence_axis_name: str = 'F', shape: int | Sequence[int] | Array | Batch,
) -> Batch: ...
@overload
def inflate(
    input: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    algorithm: Literal['LZ4'] = 'LZ4', check_output_size: bool = False,
    chunk_offsets: int | Sequence[int] | Array | Batch | None = None,
    chunk_sizes: int | Sequence[int] | Array | Batch | None = None, dtype: DTypeLike = uint8, layout: str = '',
    sequence_axis_name: str = 'F', shape: int | Sequence[int] | Array | Batch,
) -> Batch: ...
@overload
def numpy(
    data: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None, dtype: DTypeLike | None = None,
) -> Tensor: ...
@overload
def numpy(
    data: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None, dtype: DTypeLike | None = None,
) -> Batch: ...
@overload
def numpy(
    data: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    dtype: DTypeLike | None = None,
) -> Batch: ...
@overload
def video(
    encoded: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None, affine: bool = True,
    build_index: bool = True, end_frame: int | Array | None = None, fill_value: int | Sequence[int] | Array = (0,),
    frames: int | Sequence[int] | Array | None = None, pad_mode: str = 'constant',
    sequence_length: int | Array | None = None, start_frame: int | Array | None = None,
    stride: int | Array | None = None, times: float | Sequence[float | Sequence[float]] | Array | None = None,
) -> Tensor: ...
@overload
def video(
    encoded: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None, affine: bool = True,
    build_index: bool = True, end_frame: int | Array | Batch | None = None,
    fill_value: int | Sequence[int] | Array = (0,), frames: int | Sequence[int] | Array | Batch | None = None,
    pad_mode: str = 'constant', sequence_length: int | Array | Batch | None = None,
    start_frame: int | Array | Batch | None = None, stride: int | Array | Batch | None = None,
    times: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
) -> Batch: ...
@overload
def video(
    encoded: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None, affine: bool = True,
    build_index: bool = True, end_frame: int | Array | Batch | None = None,
    fill_value: int | Sequence[int] | Array = (0,), frames: int | Sequence[int] | Array | Batch | None = None,
    pad_mode: str = 'constant', sequence_length: int | Array | Batch | None = None,
    start_frame: int | Array | Batch | None = None, stride: int | Array | Batch | None = None,
    times: float | Sequence[float | Sequence[float]] | Array | Batch | None = None,
) -> Batch: ...
