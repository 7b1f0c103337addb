"""The installed torchvision, for code that compares ndd with it; ndd's own functions do not need it."""

from ndd.targets.tv_tensors import import_torchvision

__all__ = ["import_torchvision"]
