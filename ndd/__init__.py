"""ndd: imperative data loading and augmentation for deep learning on torch."""

from ndd import math, types
from ndd._execution import (
    EvalContext,
    EvalMode,
    Stream,
    ThreadPool,
    get_current_stream,
    get_default_stream,
    get_num_threads,
    set_current_stream,
    set_default_stream,
    set_num_threads,
    stream,
)
from ndd._operator import PerSample, Plan, like, operator, output
from ndd._tensor import Batch, Device, DType, Tensor, as_batch, as_tensor, batch, device, dtype, tensor, type_id
from ndd._tensor.device import DeviceLike
from ndd._tensor.dtype import (
    DataType,
    ImageType,
    InterpType,
    bfloat16,
    bool_ as bool,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from ndd.ops.image.crop import crop
from ndd.ops.image.flip import flip
from ndd.ops.image.slice import slice
from ndd.ops.tensor.cast import cast, cast_like
from ndd.ops.tensor.copy import copy
from ndd.pipeline import Pipeline, pipeline_def
from ndd import fn, random, readers  # noqa: E402
