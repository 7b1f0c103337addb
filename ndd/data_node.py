"""`DataNode`, where code for DALI imports it from."""

from ndd.pipeline.node import DataNode, newaxis

__all__ = ["DataNode", "newaxis"]
