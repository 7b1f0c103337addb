"""What pipelines give, where code for DALI imports it from: `TensorCPU`, `TensorListCPU`, `TensorGPU`, `TensorListGPU`."""

from ndd.pipeline.outputs import TensorCPU, TensorGPU, TensorListCPU, TensorListGPU

__all__ = ["TensorCPU", "TensorGPU", "TensorListCPU", "TensorListGPU"]
