"""Captured loops: `next_epoch(batch_size, capture=True)`, `ExternalSource.captured(batch_size)`, and `invariant`."""

from ndd._tensor.invariant import invariant

__all__ = ["invariant"]
