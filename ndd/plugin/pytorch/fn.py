"""`torch_python_function`, where DALI's PyTorch plugin has it."""

from ndd.fn import torch_python_function

__all__ = ["torch_python_function"]
