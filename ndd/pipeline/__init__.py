"""Pipeline mode, traced once and replayed: `pipeline_def`, `Pipeline`, `fn`, `types`."""

from ndd import types
from ndd.pipeline import (  # noqa: F401  (add functions to fn, and to constants)
    compositions as _compositions,
    constant_nodes as _constant_nodes,
    experimental,
    video_inputs as _video_inputs,
)
from ndd.pipeline.condition_rewriting import do_not_convert
from ndd.pipeline.definition import pipeline_def
from ndd.pipeline.functions import fn
from ndd.pipeline.node import DataNode, newaxis
from ndd.pipeline.options import OperatorConcurrency, StreamPolicy
from ndd.pipeline.pipeline import Pipeline

__all__ = [
    "DataNode",
    "OperatorConcurrency",
    "Pipeline",
    "StreamPolicy",
    "do_not_convert",
    "experimental",
    "fn",
    "newaxis",
    "pipeline_def",
    "types",
]
