"""DALI's PyTorch plugin: iterators, `feed_ndarray`, `torch_utils`, `loader_evaluator`, and the proxy under `experimental`."""

from ndd.pipeline.operator_classes import operator_class
from ndd.plugin.base_iterator import LastBatchPolicy
from ndd.plugin.pytorch import fn, torch_utils
from ndd.plugin.pytorch.iterators import DALIClassificationIterator, DALIGenericIterator, DALIRaggedIterator
from ndd.plugin.pytorch.torch_utils import feed_ndarray, to_torch_tensor, to_torch_type

TorchPythonFunction = operator_class(fn.torch_python_function, "TorchPythonFunction")

__all__ = [
    "DALIClassificationIterator",
    "DALIGenericIterator",
    "DALIRaggedIterator",
    "LastBatchPolicy",
    "TorchPythonFunction",
    "feed_ndarray",
    "fn",
    "to_torch_tensor",
    "to_torch_type",
    "torch_utils",
]
