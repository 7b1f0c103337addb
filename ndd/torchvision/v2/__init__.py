"""`torchvision.transforms.v2` for batches: the transforms, and their functional forms."""

from ndd.torchvision.interpolation import InterpolationMode
from ndd.torchvision.v2 import functional

__all__ = ["InterpolationMode", "functional"]
