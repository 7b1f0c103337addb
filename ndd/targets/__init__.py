"""`ndd.Targets`: images with all that belongs to them, from and to what other libraries have."""

from ndd.targets.targets import Targets

__all__ = ["Targets"]
