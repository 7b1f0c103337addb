"""`pipeline_def` where code for DALI imports it from: `pipeline.experimental`."""

from ndd.pipeline.definition import pipeline_def

__all__ = ["pipeline_def"]
