# Written by `python -m ndd stubs`. Do not edit.

from collections.abc import Callable, Iterable, Sequence
from ndd._tensor.device import DeviceLike
from ndd._tensor.dtype import DType
from ndd.readers.fits import Fits as _Fits
from ndd.readers.video_sequences import Video as _Video
from ndd.types import DALIImageType
from os import PathLike
from typing import Any, Literal

__all__ = ['Fits', 'Video']

class Fits(_Fits):
    def __init__(
        self, max_batch_size: int | None = None, name: str | None = None, device: DeviceLike = 'cpu',
        num_inputs: int | None = None, *, dont_use_mmap: bool | None = False,
        dtypes: DType | type | str | Sequence[DType | type | str] | None = None, file_filter: str | None = '*.fits',
        file_list: str | bytes | PathLike[str] | None = None, file_root: str | bytes | PathLike[str] | None = None,
        files: str | bytes | PathLike[str] | Sequence[str | bytes | PathLike[str]] | None = None,
        hdu_indices: int | Sequence[int] | None = (2,), initial_fill: int | None = 1024, lazy_init: bool | None = False,
        num_shards: int | None = 1, pad_last_batch: bool | None = False, prefetch_queue_depth: int | None = 1,
        random_shuffle: bool | None = False, read_ahead: bool | None = False, seed: int | None = -1,
        shard_id: int | None = 0, shuffle_after_epoch: bool | None = False, shuffle_after_epoch_seed: int | None = None,
        skip_cached_images: bool | None = False, stick_to_shard: bool | None = False,
        tensor_init_bytes: int | None = 1048576, enable_checkpointing: bool | None = False,
        shuffle: Literal['global'] | None = None, sampler: Iterable[int] | Callable[[int], Iterable[int]] | None = None,
        shard: Literal['auto'] | None = None, on_error: Literal['raise', 'skip'] | None = 'raise',
    ) -> None: ...
class Video(_Video):
    def __init__(
        self, max_batch_size: int | None = None, name: str | None = None, device: DeviceLike = 'cpu',
        num_inputs: int | None = None, *, dont_use_mmap: bool | None = False, enable_frame_num: str | bool | None = 'none',
        enable_timestamps: bool | None = False, file_list: str | bytes | PathLike[str] | None = '',
        file_list_format: Literal['timestamps', 'frames'] | None = 'timestamps', file_list_include_end: bool | None = True,
        file_list_rounding: Literal['start_down_end_up', 'start_up_end_down', 'all_up', 'all_down'] | None = 'start_down_end_up',
        file_root: str | bytes | PathLike[str] | None = '',
        filenames: str | bytes | PathLike[str] | Sequence[str | bytes | PathLike[str]] | None = (),
        fill_value: int | Sequence[int] | None = (0,), image_type: DALIImageType | None = DALIImageType.RGB,
        initial_fill: int | None = 1024, labels: int | Sequence[int] | None = None, lazy_init: bool | None = False,
        num_shards: int | None = 1, pad_last_batch: bool | None = False, pad_mode: str | None = 'none',
        prefetch_queue_depth: int | None = 1, random_shuffle: bool | None = False, read_ahead: bool | None = False,
        seed: int | None = -1, sequence_length: int, shard_id: int | None = 0, skip_cached_images: bool | None = False,
        step: int | None = -1, stick_to_shard: bool | None = False, stride: int | None = 1,
        tensor_init_bytes: int | None = 1048576, uniform_sample: bool | None = False,
        enable_checkpointing: bool | None = False, shuffle: Literal['global'] | None = None,
        sampler: Iterable[int] | Callable[[int], Iterable[int]] | None = None, shard: Literal['auto'] | None = None,
        on_error: Literal['raise', 'skip'] | None = 'raise',
    ) -> None: ...
