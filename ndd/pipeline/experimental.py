"""`pipeline_def` under the name that code for DALI imports it from: `pipeline.experimental`."""

from ndd.pipeline.definition import pipeline_def

__all__ = ["pipeline_def"]
