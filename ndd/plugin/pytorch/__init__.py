"""DALI's PyTorch plugin: iterators, `feed_ndarray`, `torch_utils`, and the proxy under `experimental`."""

from ndd.plugin.base_iterator import LastBatchPolicy
from ndd.plugin.pytorch import fn, torch_utils
from ndd.plugin.pytorch.iterators import DALIClassificationIterator, DALIGenericIterator, DALIRaggedIterator
from ndd.plugin.pytorch.torch_utils import feed_ndarray, to_torch_tensor

__all__ = [
    "DALIClassificationIterator",
    "DALIGenericIterator",
    "DALIRaggedIterator",
    "LastBatchPolicy",
    "feed_ndarray",
    "fn",
    "to_torch_tensor",
    "torch_utils",
]
