"""The outputs of pipelines, under the names that code for DALI imports: `TensorCPU`, `TensorListCPU`, `TensorGPU`,
`TensorListGPU`."""

from ndd.pipeline.outputs import TensorCPU, TensorGPU, TensorListCPU, TensorListGPU

__all__ = ["TensorCPU", "TensorGPU", "TensorListCPU", "TensorListGPU"]
