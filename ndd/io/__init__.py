"""Reads and writes files as tensors."""

from ndd.io import file, video
from ndd.io.object_store import object_store

__all__ = ["file", "object_store", "video"]
