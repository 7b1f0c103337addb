"""`ndd.Targets`: images with their boxes, masks, labels and points, and conversions from and to other libraries."""

from ndd.targets.targets import Targets

__all__ = ["Targets"]
