"""`pipeline_def` for code that imports it from DALI's `pipeline.experimental`."""

from ndd.pipeline.definition import pipeline_def

__all__ = ["pipeline_def"]
