# Written by `python -m ndd stubs`. Do not edit.

from collections.abc import Callable, Iterable, Mapping, Sequence
from ndd._tensor.device import DeviceLike
from ndd._tensor.dtype import DType, float32, uint8
from ndd.readers.caffe import Caffe as _Caffe
from ndd.readers.caffe2 import Caffe2 as _Caffe2
from ndd.readers.coco import COCO as _COCO
from ndd.readers.epochs.broken_records import Skipped
from ndd.readers.epochs.epoch import Epoch
from ndd.readers.epochs.state import ReaderState
from ndd.readers.file import File as _File
from ndd.readers.hugging_face import Dataset, HuggingFace as _HuggingFace
from ndd.readers.litdata import LitData as _LitData
from ndd.readers.mds import MDS as _MDS
from ndd.readers.mix import Mix as _Mix
from ndd.readers.mxnet import MXNet as _MXNet
from ndd.readers.nemo_asr import NemoAsr as _NemoAsr
from ndd.readers.numpy import Numpy as _Numpy
from ndd.readers.output import Output
from ndd.readers.parquet import Parquet as _Parquet
from ndd.readers.reader import Reader
from ndd.readers.stores.container import ContainerStore
from ndd.readers.stores.records import RecordStore
from ndd.readers.table import Frame, Table as _Table
from ndd.readers.tfrecord import TFRecord as _TFRecord
from ndd.readers.video import Video as _Video
from ndd.readers.video_resize import VideoResize as _VideoResize
from ndd.readers.webdataset import Webdataset as _Webdataset
from ndd.readers.zip import Zip as _Zip
from ndd.tfrecord import Feature
from ndd.types import DALIDataType, DALIImageType, DALIInterpType
from os import PathLike
from typing import Any, Literal

__all__ = [
    'COCO', 'MDS', 'Caffe', 'Caffe2', 'ContainerStore', 'Epoch', 'File', 'HuggingFace', 'LitData', 'MXNet', 'Mix',
    'NemoAsr', 'Numpy', 'Output', 'Parquet', 'Reader', 'ReaderState', 'RecordStore', 'Skipped', 'TFRecord', 'Table',
    'Video', 'VideoResize', 'Webdataset', 'Zip',
]

class COCO(_COCO):
    def __init__(
        self, max_batch_size: int | None = None, name: str | None = None, device: DeviceLike = 'cpu',
        num_inputs: int | None = None, *, annotations_file: str | bytes | PathLike[str] | None = '',
        avoid_class_remapping: bool | None = False, dont_use_mmap: bool | None = False,
        dump_meta_files: bool | None = None, dump_meta_files_path: str | bytes | PathLike[str] | None = None,
        file_root: str | bytes | PathLike[str] | None = None, image_ids: bool | None = None,
        images: str | bytes | PathLike[str] | Sequence[str | bytes | PathLike[str]] | None = None,
        include_iscrowd: bool | None = True, initial_fill: int | None = 1024, lazy_init: bool | None = False,
        ltrb: bool | None = False, masks: bool | None = False, meta_files_path: str | bytes | PathLike[str] | None = None,
        num_shards: int | None = 1, pad_last_batch: bool | None = False, pixelwise_masks: bool | None = False,
        polygon_masks: bool | None = False, prefetch_queue_depth: int | None = 1,
        preprocessed_annotations: str | bytes | PathLike[str] | None = None, random_shuffle: bool | None = False,
        ratio: bool | None = False, read_ahead: bool | None = False, save_img_ids: bool | None = None,
        save_preprocessed_annotations: bool | None = None,
        save_preprocessed_annotations_dir: str | bytes | PathLike[str] | None = None, seed: int | None = -1,
        shard_id: int | None = 0, shuffle_after_epoch: bool | None = False, shuffle_after_epoch_seed: int | None = None,
        size_threshold: float | None = 0.1, skip_cached_images: bool | None = False, skip_empty: bool | None = False,
        stick_to_shard: bool | None = False, tensor_init_bytes: int | None = 1048576,
        enable_checkpointing: bool | None = False, shuffle: Literal['global'] | None = None,
        sampler: Iterable[int] | Callable[[int], Iterable[int]] | None = None, shard: Literal['auto'] | None = None,
        on_error: Literal['raise', 'skip'] | None = 'raise',
    ) -> None: ...
class MDS(_MDS):
    def __init__(
        self, max_batch_size: int | None = None, name: str | None = None, device: DeviceLike = 'cpu',
        num_inputs: int | None = None, *, columns: str | Sequence[str], dont_use_mmap: bool | None = False,
        initial_fill: int | None = 1024, lazy_init: bool | None = False, num_shards: int | None = 1,
        pad_last_batch: bool | None = False, path: str | bytes | PathLike[str] | Sequence[str | bytes | PathLike[str]],
        prefetch_queue_depth: int | None = 1, random_shuffle: bool | None = False, read_ahead: bool | None = False,
        seed: int | None = -1, shard_id: int | None = 0, shuffle_after_epoch: bool | None = False,
        shuffle_after_epoch_seed: int | None = None, skip_cached_images: bool | None = False,
        stick_to_shard: bool | None = False, tensor_init_bytes: int | None = 1048576,
        enable_checkpointing: bool | None = False, shuffle: Literal['global'] | None = None,
        sampler: Iterable[int] | Callable[[int], Iterable[int]] | None = None, shard: Literal['auto'] | None = None,
        on_error: Literal['raise', 'skip'] | None = 'raise',
    ) -> None: ...
class Caffe(_Caffe):
    def __init__(
        self, max_batch_size: int | None = None, name: str | None = None, device: DeviceLike = 'cpu',
        num_inputs: int | None = None, *, dont_use_mmap: bool | None = False, image_available: bool | None = True,
        initial_fill: int | None = 1024, label_available: bool | None = True, lazy_init: bool | None = False,
        num_shards: int | None = 1, pad_last_batch: bool | None = False,
        path: str | bytes | PathLike[str] | Sequence[str | bytes | PathLike[str]], prefetch_queue_depth: int | None = 1,
        random_shuffle: bool | None = False, read_ahead: bool | None = False, seed: int | None = -1,
        shard_id: int | None = 0, skip_cached_images: bool | None = False, stick_to_shard: bool | None = False,
        tensor_init_bytes: int | None = 1048576, enable_checkpointing: bool | None = False,
        shuffle: Literal['global'] | None = None, sampler: Iterable[int] | Callable[[int], Iterable[int]] | None = None,
        shard: Literal['auto'] | None = None, on_error: Literal['raise', 'skip'] | None = 'raise',
    ) -> None: ...
class Caffe2(_Caffe2):
    def __init__(
        self, max_batch_size: int | None = None, name: str | None = None, device: DeviceLike = 'cpu',
        num_inputs: int | None = None, *, additional_inputs: int | None = 0, bbox: bool | None = False,
        dont_use_mmap: bool | None = False, image_available: bool | None = True, initial_fill: int | None = 1024,
        label_type: int | None = 0, lazy_init: bool | None = False, num_labels: int | None = 1, num_shards: int | None = 1,
        pad_last_batch: bool | None = False, path: str | bytes | PathLike[str] | Sequence[str | bytes | PathLike[str]],
        prefetch_queue_depth: int | None = 1, random_shuffle: bool | None = False, read_ahead: bool | None = False,
        seed: int | None = -1, shard_id: int | None = 0, skip_cached_images: bool | None = False,
        stick_to_shard: bool | None = False, tensor_init_bytes: int | None = 1048576,
        enable_checkpointing: bool | None = False, shuffle: Literal['global'] | None = None,
        sampler: Iterable[int] | Callable[[int], Iterable[int]] | None = None, shard: Literal['auto'] | None = None,
        on_error: Literal['raise', 'skip'] | None = 'raise',
    ) -> None: ...
class File(_File):
    def __init__(
        self, max_batch_size: int | None = None, name: str | None = None, device: DeviceLike = 'cpu',
        num_inputs: int | None = None, *, case_sensitive_filter: bool | None = False,
        dir_filters: str | Sequence[str] | None = None, dont_use_mmap: bool | None = False,
        file_filters: str | Sequence[str] | None = ..., file_list: str | bytes | PathLike[str] | None = None,
        file_root: str | bytes | PathLike[str] | None = None,
        files: str | bytes | PathLike[str] | Sequence[str | bytes | PathLike[str]] | None = None,
        initial_fill: int | None = 1024, labels: int | Sequence[int] | None = None, lazy_init: bool | None = False,
        num_shards: int | None = 1, pad_last_batch: bool | None = False, prefetch_queue_depth: int | None = 1,
        random_shuffle: bool | None = False, read_ahead: bool | None = False, seed: int | None = -1,
        shard_id: int | None = 0, shuffle_after_epoch: bool | None = False, shuffle_after_epoch_seed: int | None = None,
        skip_cached_images: bool | None = False, stick_to_shard: bool | None = False,
        tensor_init_bytes: int | None = 1048576, enable_checkpointing: bool | None = False,
        shuffle: Literal['global'] | None = None, sampler: Iterable[int] | Callable[[int], Iterable[int]] | None = None,
        shard: Literal['auto'] | None = None, on_error: Literal['raise', 'skip'] | None = 'raise',
    ) -> None: ...
class HuggingFace(_HuggingFace):
    def __init__(
        self, dataset: Dataset | str | bytes | PathLike[str] | Sequence[str | bytes | PathLike[str]],
        max_batch_size: int | None = None, name: str | None = None, device: DeviceLike = 'cpu',
        num_inputs: int | None = None, *, columns: str | Sequence[str], dont_use_mmap: bool | None = False,
        initial_fill: int | None = 1024, lazy_init: bool | None = False, num_shards: int | None = 1,
        pad_last_batch: bool | None = False, prefetch_queue_depth: int | None = 1, random_shuffle: bool | None = False,
        read_ahead: bool | None = False, seed: int | None = -1, shard_id: int | None = 0,
        shuffle_after_epoch: bool | None = False, shuffle_after_epoch_seed: int | None = None,
        skip_cached_images: bool | None = False, stick_to_shard: bool | None = False,
        tensor_init_bytes: int | None = 1048576, enable_checkpointing: bool | None = False,
        shuffle: Literal['global'] | None = None, sampler: Iterable[int] | Callable[[int], Iterable[int]] | None = None,
        shard: Literal['auto'] | None = None, on_error: Literal['raise', 'skip'] | None = 'raise',
    ) -> None: ...
class LitData(_LitData):
    def __init__(
        self, max_batch_size: int | None = None, name: str | None = None, device: DeviceLike = 'cpu',
        num_inputs: int | None = None, *, columns: str | Sequence[str], dont_use_mmap: bool | None = False,
        initial_fill: int | None = 1024, lazy_init: bool | None = False, num_shards: int | None = 1,
        pad_last_batch: bool | None = False, path: str | bytes | PathLike[str] | Sequence[str | bytes | PathLike[str]],
        prefetch_queue_depth: int | None = 1, random_shuffle: bool | None = False, read_ahead: bool | None = False,
        seed: int | None = -1, shard_id: int | None = 0, shuffle_after_epoch: bool | None = False,
        shuffle_after_epoch_seed: int | None = None, skip_cached_images: bool | None = False,
        stick_to_shard: bool | None = False, tensor_init_bytes: int | None = 1048576,
        enable_checkpointing: bool | None = False, shuffle: Literal['global'] | None = None,
        sampler: Iterable[int] | Callable[[int], Iterable[int]] | None = None, shard: Literal['auto'] | None = None,
        on_error: Literal['raise', 'skip'] | None = 'raise',
    ) -> None: ...
class MXNet(_MXNet):
    def __init__(
        self, max_batch_size: int | None = None, name: str | None = None, device: DeviceLike = 'cpu',
        num_inputs: int | None = None, *, dont_use_mmap: bool | None = False,
        index_path: str | bytes | PathLike[str] | Sequence[str | bytes | PathLike[str]], initial_fill: int | None = 1024,
        lazy_init: bool | None = False, num_shards: int | None = 1, pad_last_batch: bool | None = False,
        path: str | bytes | PathLike[str] | Sequence[str | bytes | PathLike[str]], prefetch_queue_depth: int | None = 1,
        random_shuffle: bool | None = False, read_ahead: bool | None = False, seed: int | None = -1,
        shard_id: int | None = 0, shuffle_after_epoch: bool | None = False, shuffle_after_epoch_seed: int | None = None,
        skip_cached_images: bool | None = False, stick_to_shard: bool | None = False,
        tensor_init_bytes: int | None = 1048576, enable_checkpointing: bool | None = False,
        shuffle: Literal['global'] | None = None, sampler: Iterable[int] | Callable[[int], Iterable[int]] | None = None,
        shard: Literal['auto'] | None = None, on_error: Literal['raise', 'skip'] | None = 'raise',
    ) -> None: ...
class Mix(_Mix):
    def __init__(
        self, readers: Sequence[Reader], max_batch_size: int | None = None, name: str | None = None,
        device: DeviceLike = 'cpu', num_inputs: int | None = None, *, dont_use_mmap: bool | None = False,
        epoch_size: int | None = None, initial_fill: int | None = 1024, lazy_init: bool | None = False,
        num_shards: int | None = 1, pad_last_batch: bool | None = False, prefetch_queue_depth: int | None = 1,
        random_shuffle: bool | None = False, read_ahead: bool | None = False, seed: int | None = -1,
        shard_id: int | None = 0, shuffle_after_epoch: bool | None = False, shuffle_after_epoch_seed: int | None = None,
        skip_cached_images: bool | None = False, stick_to_shard: bool | None = False,
        tensor_init_bytes: int | None = 1048576, weights: Sequence[float] | None = None,
        enable_checkpointing: bool | None = False, shuffle: Literal['global'] | None = None,
        sampler: Iterable[int] | Callable[[int], Iterable[int]] | None = None, shard: Literal['auto'] | None = None,
        on_error: Literal['raise', 'skip'] | None = 'raise',
    ) -> None: ...
class NemoAsr(_NemoAsr):
    def __init__(
        self, max_batch_size: int | None = None, name: str | None = None, device: DeviceLike = 'cpu',
        num_inputs: int | None = None, *, dont_use_mmap: bool | None = False, downmix: bool | None = True,
        dtype: DType | None = float32, initial_fill: int | None = 1024, lazy_init: bool | None = False,
        manifest_filepaths: str | bytes | PathLike[str] | Sequence[str | bytes | PathLike[str]],
        max_duration: float | None = 0.0, min_duration: float | None = 0.0, normalize_text: bool | None = None,
        num_shards: int | None = 1, pad_last_batch: bool | None = False, prefetch_queue_depth: int | None = 1,
        quality: float | None = 50.0, random_shuffle: bool | None = False, read_ahead: bool | None = False,
        read_idxs: bool | None = False, read_sample_rate: bool | None = True, read_text: bool | None = True,
        sample_rate: float | None = -1.0, seed: int | None = -1, shard_id: int | None = 0,
        shuffle_after_epoch: bool | None = False, shuffle_after_epoch_seed: int | None = None,
        skip_cached_images: bool | None = False, stick_to_shard: bool | None = False,
        tensor_init_bytes: int | None = 1048576, enable_checkpointing: bool | None = False,
        shuffle: Literal['global'] | None = None, sampler: Iterable[int] | Callable[[int], Iterable[int]] | None = None,
        shard: Literal['auto'] | None = None, on_error: Literal['raise', 'skip'] | None = 'raise',
    ) -> None: ...
class Numpy(_Numpy):
    def __init__(
        self, max_batch_size: int | None = None, name: str | None = None, device: DeviceLike = 'cpu',
        num_inputs: int | None = None, *, cache_header_information: bool | None = False,
        dont_use_mmap: bool | None = False, file_filter: str | None = '*.npy',
        file_list: str | bytes | PathLike[str] | None = None, file_root: str | bytes | PathLike[str] | None = None,
        files: str | bytes | PathLike[str] | Sequence[str | bytes | PathLike[str]] | None = None,
        fill_value: float | None = 0.0, initial_fill: int | None = 1024, lazy_init: bool | None = False,
        num_shards: int | None = 1, out_of_bounds_policy: Literal['error', 'pad', 'trim_to_shape'] | None = 'error',
        pad_last_batch: bool | None = False, prefetch_queue_depth: int | None = 1, random_shuffle: bool | None = False,
        read_ahead: bool | None = False, register_buffers: bool | None = True,
        rel_roi_end: float | Sequence[float] | None = None, rel_roi_shape: float | Sequence[float] | None = None,
        rel_roi_start: float | Sequence[float] | None = None, roi_axes: int | Sequence[int] | None = (),
        roi_end: int | Sequence[int] | None = None, roi_shape: int | Sequence[int] | None = None,
        roi_start: int | Sequence[int] | None = None, seed: int | None = -1, shard_id: int | None = 0,
        shuffle_after_epoch: bool | None = False, shuffle_after_epoch_seed: int | None = None,
        skip_cached_images: bool | None = False, stick_to_shard: bool | None = False,
        tensor_init_bytes: int | None = 1048576, use_o_direct: bool | None = False,
        enable_checkpointing: bool | None = False, labels: int | Sequence[int] | None = None,
        shuffle: Literal['global'] | None = None, sampler: Iterable[int] | Callable[[int], Iterable[int]] | None = None,
        shard: Literal['auto'] | None = None, on_error: Literal['raise', 'skip'] | None = 'raise',
    ) -> None: ...
class Parquet(_Parquet):
    def __init__(
        self, max_batch_size: int | None = None, name: str | None = None, device: DeviceLike = 'cpu',
        num_inputs: int | None = None, *, columns: str | Sequence[str], dont_use_mmap: bool | None = False,
        initial_fill: int | None = 1024, lazy_init: bool | None = False, num_shards: int | None = 1,
        pad_last_batch: bool | None = False, path: str | bytes | PathLike[str] | Sequence[str | bytes | PathLike[str]],
        predicate: Sequence[tuple[str, str, object]] | None = None, prefetch_queue_depth: int | None = 1,
        random_shuffle: bool | None = False, read_ahead: bool | None = False, seed: int | None = -1,
        shard_id: int | None = 0, shuffle_after_epoch: bool | None = False, shuffle_after_epoch_seed: int | None = None,
        skip_cached_images: bool | None = False, stick_to_shard: bool | None = False,
        tensor_init_bytes: int | None = 1048576, enable_checkpointing: bool | None = False,
        shuffle: Literal['global'] | None = None, sampler: Iterable[int] | Callable[[int], Iterable[int]] | None = None,
        shard: Literal['auto'] | None = None, on_error: Literal['raise', 'skip'] | None = 'raise',
    ) -> None: ...
class TFRecord(_TFRecord):
    def __init__(
        self, max_batch_size: int | None = None, name: str | None = None, device: DeviceLike = 'cpu',
        num_inputs: int | None = None, *, dont_use_mmap: bool | None = False, features: Mapping[str, Feature],
        index_path: str | bytes | PathLike[str] | Sequence[str | bytes | PathLike[str]] | None = None,
        initial_fill: int | None = 1024, lazy_init: bool | None = False, num_shards: int | None = 1,
        pad_last_batch: bool | None = False, path: str | bytes | PathLike[str] | Sequence[str | bytes | PathLike[str]],
        prefetch_queue_depth: int | None = 1, random_shuffle: bool | None = False, read_ahead: bool | None = False,
        seed: int | None = -1, shard_id: int | None = 0, shuffle_after_epoch: bool | None = False,
        shuffle_after_epoch_seed: int | None = None, skip_cached_images: bool | None = False,
        stick_to_shard: bool | None = False, tensor_init_bytes: int | None = 1048576, use_o_direct: bool | None = False,
        enable_checkpointing: bool | None = False, shuffle: Literal['global'] | None = None,
        sampler: Iterable[int] | Callable[[int], Iterable[int]] | None = None, shard: Literal['auto'] | None = None,
        on_error: Literal['raise', 'skip'] | None = 'raise',
    ) -> None: ...
class Table(_Table):
    def __init__(
        self, data: Frame | Sequence[object], max_batch_size: int | None = None, name: str | None = None,
        device: DeviceLike = 'cpu', num_inputs: int | None = None, *, columns: str | Sequence[str],
        dont_use_mmap: bool | None = False, file_root: str | bytes | PathLike[str] | None = None,
        files: str | Sequence[str] | None = None, initial_fill: int | None = 1024, lazy_init: bool | None = False,
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
        num_inputs: int | None = None, *, additional_decode_surfaces: int | None = 2, channels: int | None = 3,
        dont_use_mmap: bool | None = False, dtype: DType | type | str | None = uint8,
        enable_frame_num: str | bool | None = 'none', enable_timestamps: bool | None = False,
        file_list: str | bytes | PathLike[str] | None = '', file_list_frame_num: bool | None = False,
        file_list_include_preceding_frame: bool | None = False, file_root: str | bytes | PathLike[str] | None = '',
        filenames: str | bytes | PathLike[str] | Sequence[str | bytes | PathLike[str]] | None = (),
        image_type: DALIImageType | None = DALIImageType.RGB, initial_fill: int | None = 1024,
        labels: int | Sequence[int] | None = None, lazy_init: bool | None = False, normalized: bool | None = False,
        num_shards: int | None = 1, pad_last_batch: bool | None = False, pad_sequences: bool | None = False,
        prefetch_queue_depth: int | None = 1, random_shuffle: bool | None = False, read_ahead: bool | None = False,
        seed: int | None = -1, sequence_length: int, shard_id: int | None = 0, skip_cached_images: bool | None = False,
        skip_vfr_check: bool | None = False, step: int | None = -1, stick_to_shard: bool | None = False,
        stride: int | None = 1, tensor_init_bytes: int | None = 1048576, enable_checkpointing: bool | None = False,
        shuffle: Literal['global'] | None = None, sampler: Iterable[int] | Callable[[int], Iterable[int]] | None = None,
        shard: Literal['auto'] | None = None, on_error: Literal['raise', 'skip'] | None = 'raise',
    ) -> None: ...
class VideoResize(_VideoResize):
    def __init__(
        self, max_batch_size: int | None = None, name: str | None = None, device: DeviceLike = 'cpu',
        num_inputs: int | None = None, *, additional_decode_surfaces: int | None = 2, antialias: bool | None = True,
        channels: int | None = 3, dont_use_mmap: bool | None = False, dtype: DType | type | str | None = uint8,
        enable_frame_num: str | bool | None = 'none', enable_timestamps: bool | None = False,
        file_list: str | bytes | PathLike[str] | None = '', file_list_frame_num: bool | None = False,
        file_list_include_preceding_frame: bool | None = False, file_root: str | bytes | PathLike[str] | None = '',
        filenames: str | bytes | PathLike[str] | Sequence[str | bytes | PathLike[str]] | None = (),
        image_type: DALIImageType | None = DALIImageType.RGB, initial_fill: int | None = 1024,
        interp_type: DALIInterpType | None = None, labels: int | Sequence[int] | None = None,
        lazy_init: bool | None = False, mag_filter: DALIInterpType | None = None,
        max_size: float | Sequence[float] | None = None, min_filter: DALIInterpType | None = None,
        minibatch_size: int | None = 32, mode: str | None = None, normalized: bool | None = False,
        num_shards: int | None = 1, pad_last_batch: bool | None = False, pad_sequences: bool | None = False,
        prefetch_queue_depth: int | None = 1, random_shuffle: bool | None = False, read_ahead: bool | None = False,
        resize_longer: float | None = None, resize_shorter: float | None = None, resize_x: float | None = None,
        resize_y: float | None = None, resize_z: float | None = None, roi_end: float | Sequence[float] | None = None,
        roi_relative: bool | None = False, roi_start: float | Sequence[float] | None = None, seed: int | None = -1,
        sequence_length: int, shard_id: int | None = 0, size: float | Sequence[float] | None = None,
        skip_cached_images: bool | None = False, skip_vfr_check: bool | None = False, step: int | None = -1,
        stick_to_shard: bool | None = False, stride: int | None = 1, subpixel_scale: bool | None = True,
        temp_buffer_hint: int | None = 0, tensor_init_bytes: int | None = 1048576,
        enable_checkpointing: bool | None = False, shuffle: Literal['global'] | None = None,
        sampler: Iterable[int] | Callable[[int], Iterable[int]] | None = None, shard: Literal['auto'] | None = None,
        on_error: Literal['raise', 'skip'] | None = 'raise',
    ) -> None: ...
class Webdataset(_Webdataset):
    def __init__(
        self, max_batch_size: int | None = None, name: str | None = None, device: DeviceLike = 'cpu',
        num_inputs: int | None = None, *, case_sensitive_extensions: bool | None = True,
        dont_use_mmap: bool | None = False, dtypes: DType | DALIDataType | Sequence[DType | DALIDataType] | None = None,
        ext: str | Sequence[str],
        index_paths: str | bytes | PathLike[str] | Sequence[str | bytes | PathLike[str]] | None = None,
        initial_fill: int | None = 1024, lazy_init: bool | None = False, missing_component_behavior: str | None = '',
        num_shards: int | None = 1, pad_last_batch: bool | None = False,
        paths: str | bytes | PathLike[str] | Sequence[str | bytes | PathLike[str]], prefetch_queue_depth: int | None = 1,
        random_shuffle: bool | None = False, read_ahead: bool | None = False, seed: int | None = -1,
        shard_id: int | None = 0, shuffle_after_epoch: bool | None = False, shuffle_after_epoch_seed: int | None = None,
        skip_cached_images: bool | None = False, stick_to_shard: bool | None = False,
        tensor_init_bytes: int | None = 1048576, enable_checkpointing: bool | None = False,
        shuffle: Literal['global'] | None = None, sampler: Iterable[int] | Callable[[int], Iterable[int]] | None = None,
        shard: Literal['auto'] | None = None, on_error: Literal['raise', 'skip'] | None = 'raise',
    ) -> None: ...
class Zip(_Zip):
    def __init__(
        self, max_batch_size: int | None = None, name: str | None = None, device: DeviceLike = 'cpu',
        num_inputs: int | None = None, *, case_sensitive_filter: bool | None = False,
        dir_filters: str | Sequence[str] | None = None, dont_use_mmap: bool | None = False,
        file_filters: str | Sequence[str] | None = ..., file_root: str | None = None, initial_fill: int | None = 1024,
        lazy_init: bool | None = False, num_shards: int | None = 1, pad_last_batch: bool | None = False,
        path: str | bytes | PathLike[str] | Sequence[str | bytes | PathLike[str]], prefetch_queue_depth: int | None = 1,
        random_shuffle: bool | None = False, read_ahead: bool | None = False, seed: int | None = -1,
        shard_id: int | None = 0, shuffle_after_epoch: bool | None = False, shuffle_after_epoch_seed: int | None = None,
        skip_cached_images: bool | None = False, stick_to_shard: bool | None = False,
        tensor_init_bytes: int | None = 1048576, enable_checkpointing: bool | None = False,
        shuffle: Literal['global'] | None = None, sampler: Iterable[int] | Callable[[int], Iterable[int]] | None = None,
        shard: Literal['auto'] | None = None, on_error: Literal['raise', 'skip'] | None = 'raise',
    ) -> None: ...
