"""Values: Tensor and Batch, their element types, devices, memory, slicing and display."""

from ndd._tensor.batch import Batch
from ndd._tensor.construct import as_batch, as_tensor, batch, make_batch, make_tensor, tensor
from ndd._tensor.device import Device, device
from ndd._tensor.dtype import DType, dtype, type_id
from ndd._tensor.handle import Handle, Spec
from ndd._tensor.operations import bind_operations
from ndd._tensor.packed import Packed
from ndd._tensor.store import Store
from ndd._tensor.tensor import Tensor

__all__ = [
    "Batch",
    "DType",
    "Device",
    "Handle",
    "Packed",
    "Spec",
    "Store",
    "Tensor",
    "as_batch",
    "as_tensor",
    "batch",
    "bind_operations",
    "device",
    "dtype",
    "make_batch",
    "make_tensor",
    "tensor",
    "type_id",
]
