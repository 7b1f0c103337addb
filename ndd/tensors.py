"""The outputs of pipelines, where code for DALI imports them from: `TensorCPU`, `TensorListCPU`, `TensorGPU`, `TensorListGPU`."""

from ndd.pipeline.outputs import TensorCPU, TensorGPU, TensorListCPU, TensorListGPU

__all__ = ["TensorCPU", "TensorGPU", "TensorListCPU", "TensorListGPU"]
