"""The proxy: a pipeline as a transform of torch's `Dataset`."""

from ndd.plugin.pytorch.experimental import proxy

__all__ = ["proxy"]
