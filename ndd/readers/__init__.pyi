# Written by `python -m ndd stubs`. Do not edit.

from collections.abc import Sequence
from ndd.readers.base import Reader
from ndd.readers.epoch import Epoch
from ndd.readers.file import File as _File
from ndd.readers.records import RecordStore
from ndd.readers.state import ReaderState
from typing import Any

__all__ = ['Epoch', 'File', 'Reader', 'ReaderState', 'RecordStore']

class File(_File):
    def __init__(
        self, max_batch_size: int | None = None, name: str | None = None, device: Any = 'cpu',
        num_inputs: int | None = None, *, case_sensitive_filter: bool | None = False,
        dir_filters: Sequence[str] | str | None = None, dont_use_mmap: bool | None = False,
        file_filters: Sequence[str] | str | None = ..., file_list: Any = None, file_root: Any = None, files: Any = None,
        initial_fill: int | None = 1024, labels: Any = None, lazy_init: bool | None = False, num_shards: int | None = 1,
        pad_last_batch: bool | None = False, prefetch_queue_depth: int | None = 1, random_shuffle: bool | None = False,
        read_ahead: bool | None = False, seed: int | None = -1, shard_id: int | None = 0,
        shuffle_after_epoch: bool | None = False, shuffle_after_epoch_seed: int | None = None,
        skip_cached_images: bool | None = False, stick_to_shard: bool | None = False,
        tensor_init_bytes: int | None = 1048576, enable_checkpointing: bool = False, shuffle: str | None = None,
        sampler: Any = None, shard: str | None = None,
    ) -> None: ...
