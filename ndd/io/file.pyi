# Written by `python -m ndd stubs`. Do not edit.

from ndd._tensor import Batch, Tensor
from ndd._tensor.device import DeviceLike
from ndd._typing import TensorLike
from numpy import ndarray
from typing import overload

@overload
def read(
    filepaths: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None,
    dont_use_mmap: bool = False, use_o_direct: bool = False,
) -> Tensor: ...
@overload
def read(
    filepaths: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    dont_use_mmap: bool = False, use_o_direct: bool = False,
) -> Batch: ...
@overload
def read(
    filepaths: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
    dont_use_mmap: bool = False, use_o_direct: bool = False,
) -> Batch: ...
@overload
def read_if_there(filepaths: TensorLike, /, *, batch_size: None = None, device: DeviceLike | None = None) -> Tensor: ...
@overload
def read_if_there(filepaths: Batch, /, *, batch_size: int | None = None, device: DeviceLike | None = None) -> Batch: ...
@overload
def read_if_there(
    filepaths: TensorLike, /, *, batch_size: int | None = None, device: DeviceLike | None = None,
) -> Batch: ...
def contents(path: str) -> ndarray: ...
def local_name(path: str) -> str: ...
def from_where(path: str) -> str: ...
