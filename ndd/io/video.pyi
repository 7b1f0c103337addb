# Written by `python -m ndd stubs`. Do not edit.

from collections.abc import Iterator
from ndd._tensor.device import DeviceLike
from numpy import ndarray
from os import PathLike
from typing import Any

__all__ = ['encode', 'sequences', 'write']

def encode(
    frames: Any, *, rate: float = 25, format: str = 'mp4', codec: str | None = None, quality: int = 23,
    key_interval: int | None = None,
) -> ndarray: ...
def sequences(
    video: Any, sequence_length: int, *, batch_size: int | None = None, device: DeviceLike = 'cpu',
    pad_sequences: bool = False, threads: int = 1,
) -> Iterator[Any]: ...
def write(
    path: str | PathLike[str], frames: Any, *, rate: float = 25, codec: str | None = None, quality: int = 23,
    key_interval: int | None = None,
) -> None: ...
