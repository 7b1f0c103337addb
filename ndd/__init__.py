"""ndd: imperative data loading and augmentation for deep learning on torch.

Code for DALI's dynamic mode runs with `import ndd` instead of `import nvidia.dali.experimental.dynamic as ndd`.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ndd import (
    _absent_modules as _absent_modules,
    _bare_packages,
    _before_torch as _before_torch,
    _required_torch as _required_torch,
    capture,
    checkpoint,
    decoders,
    demo,
    experimental,
    io,
    math,
    noise,
    pytorch,
    random,
    readers,
    reductions,
    segmentation,
    tfrecord,
    transforms,
    types,
)
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
from ndd._execution.dynamo import keep_dynamo_out as _keep_dynamo_out
from ndd._execution.hardware_queues import ask_for_hardware_queues as _ask_for_hardware_queues
from ndd._operator import PerSample, Plan, bad_sample, like, operator, output
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
from ndd.external_source import ExternalSource
from ndd.imread import imread
from ndd.names import __dir__ as __dir__, __getattr__ as __getattr__, mark_ranges_if_asked as _mark_ranges_if_asked
from ndd.ops.audio.audio_resample import audio_resample
from ndd.ops.audio.mel_filter_bank import mel_filter_bank
from ndd.ops.audio.mfcc import mfcc
from ndd.ops.audio.nonsilent_region import nonsilent_region
from ndd.ops.audio.power_spectrum import power_spectrum
from ndd.ops.audio.preemphasis_filter import preemphasis_filter
from ndd.ops.audio.spectrogram import spectrogram
from ndd.ops.audio.to_decibels import to_decibels
from ndd.ops.boxes.bb_flip import bb_flip
from ndd.ops.boxes.bbox_paste import bbox_paste
from ndd.ops.boxes.bbox_rotate import bbox_rotate
from ndd.ops.boxes.bbox_transform import bbox_transform
from ndd.ops.boxes.box_encoder import box_encoder
from ndd.ops.boxes.random_bbox_crop import random_bbox_crop
from ndd.ops.color.brightness import brightness
from ndd.ops.color.brightness_contrast import brightness_contrast
from ndd.ops.color.clahe import clahe
from ndd.ops.color.color_jitter import color_jitter
from ndd.ops.color.color_space_conversion import color_space_conversion
from ndd.ops.color.color_twist import color_twist
from ndd.ops.color.contrast import contrast
from ndd.ops.color.debayer import debayer
from ndd.ops.color.equalize import equalize
from ndd.ops.color.hsv import hsv
from ndd.ops.color.hue import hue
from ndd.ops.color.jpeg_compression_distortion import jpeg_compression_distortion
from ndd.ops.color.lookup_table import lookup_table
from ndd.ops.color.saturation import saturation
from ndd.ops.filter.filter import filter
from ndd.ops.filter.gaussian_blur import gaussian_blur
from ndd.ops.filter.laplacian import laplacian
from ndd.ops.image.crop import crop
from ndd.ops.image.crop_mirror_normalize import crop_mirror_normalize
from ndd.ops.image.cutmix import cutmix
from ndd.ops.image.dump_image import dump_image
from ndd.ops.image.erase import erase
from ndd.ops.image.flip import flip
from ndd.ops.image.grid_mask import grid_mask
from ndd.ops.image.jitter import jitter
from ndd.ops.image.mixup import mixup
from ndd.ops.image.multi_paste import multi_paste
from ndd.ops.image.paste import paste
from ndd.ops.image.peek_image_shape import peek_image_shape
from ndd.ops.image.random_crop_generator import random_crop_generator
from ndd.ops.image.random_erasing import random_erasing
from ndd.ops.image.random_resized_crop import random_resized_crop
from ndd.ops.image.resize import resize
from ndd.ops.image.resize_crop_mirror import resize_crop_mirror
from ndd.ops.image.roi_random_crop import roi_random_crop
from ndd.ops.image.rotate import rotate
from ndd.ops.image.slice import slice
from ndd.ops.image.sphere import sphere
from ndd.ops.image.warp_affine import warp_affine
from ndd.ops.image.water import water
from ndd.ops.tensor.batch_permutation import batch_permutation
from ndd.ops.tensor.cast import cast, cast_like
from ndd.ops.tensor.cat import cat, stack
from ndd.ops.tensor.coord_flip import coord_flip
from ndd.ops.tensor.coord_transform import coord_transform
from ndd.ops.tensor.copy import copy
from ndd.ops.tensor.expand_dims import expand_dims, squeeze
from ndd.ops.tensor.frames import element_extract, per_frame, sequence_rearrange
from ndd.ops.tensor.full import full, full_like, ones, ones_like, zeros, zeros_like
from ndd.ops.tensor.get_property import get_property
from ndd.ops.tensor.normalize import normalize
from ndd.ops.tensor.one_hot import one_hot
from ndd.ops.tensor.pad import pad
from ndd.ops.tensor.permute_batch import permute_batch
from ndd.ops.tensor.reshape import reinterpret, reshape
from ndd.ops.tensor.tensor_resize import tensor_resize
from ndd.ops.tensor.transpose import transpose
from ndd.ops.video.optical_flow import optical_flow
from ndd.picture import picture
from ndd.show import show
from ndd.targets import Targets

if _TYPE_CHECKING:  # `names.py` imports these when they are used
    from ndd import (
        auto_aug,
        backend as backend,
        data_node as data_node,
        fn,
        recipes,
        tensors as tensors,
        torchvision as torchvision,
    )
    from ndd.pipeline import OperatorConcurrency, Pipeline, StreamPolicy, newaxis, pipeline_def
    from ndd.profiling import explain, profile, progress

    __version__: str

_keep_dynamo_out()
_ask_for_hardware_queues()
_mark_ranges_if_asked()

__all__ = [
    "Batch",
    "DType",
    "DataType",
    "Device",
    "DeviceLike",
    "EvalContext",
    "EvalMode",
    "ExternalSource",
    "ImageType",
    "InterpType",
    "OperatorConcurrency",
    "PerSample",
    "Pipeline",
    "Plan",
    "Stream",
    "StreamPolicy",
    "Targets",
    "Tensor",
    "ThreadPool",
    "__version__",
    "as_batch",
    "as_tensor",
    "audio_resample",
    "auto_aug",
    "bad_sample",
    "batch",
    "batch_permutation",
    "bb_flip",
    "bbox_paste",
    "bbox_rotate",
    "bbox_transform",
    "bfloat16",
    "bool",
    "box_encoder",
    "brightness",
    "brightness_contrast",
    "capture",
    "cast",
    "cast_like",
    "cat",
    "checkpoint",
    "clahe",
    "color_jitter",
    "color_space_conversion",
    "color_twist",
    "contrast",
    "coord_flip",
    "coord_transform",
    "copy",
    "crop",
    "crop_mirror_normalize",
    "cutmix",
    "debayer",
    "decoders",
    "demo",
    "device",
    "dtype",
    "dump_image",
    "element_extract",
    "equalize",
    "erase",
    "expand_dims",
    "experimental",
    "explain",
    "filter",
    "flip",
    "float16",
    "float32",
    "float64",
    "fn",
    "full",
    "full_like",
    "gaussian_blur",
    "get_current_stream",
    "get_default_stream",
    "get_num_threads",
    "get_property",
    "grid_mask",
    "hsv",
    "hue",
    "imread",
    "int8",
    "int16",
    "int32",
    "int64",
    "io",
    "jitter",
    "jpeg_compression_distortion",
    "laplacian",
    "like",
    "lookup_table",
    "math",
    "mel_filter_bank",
    "mfcc",
    "mixup",
    "multi_paste",
    "newaxis",
    "noise",
    "nonsilent_region",
    "normalize",
    "one_hot",
    "ones",
    "ones_like",
    "operator",
    "optical_flow",
    "output",
    "pad",
    "paste",
    "peek_image_shape",
    "per_frame",
    "permute_batch",
    "picture",
    "pipeline_def",
    "power_spectrum",
    "preemphasis_filter",
    "profile",
    "progress",
    "pytorch",
    "random",
    "random_bbox_crop",
    "random_crop_generator",
    "random_erasing",
    "random_resized_crop",
    "readers",
    "recipes",
    "reductions",
    "reinterpret",
    "reshape",
    "resize",
    "resize_crop_mirror",
    "roi_random_crop",
    "rotate",
    "saturation",
    "segmentation",
    "sequence_rearrange",
    "set_current_stream",
    "set_default_stream",
    "set_num_threads",
    "show",
    "slice",
    "spectrogram",
    "sphere",
    "squeeze",
    "stack",
    "stream",
    "tensor",
    "tensor_resize",
    "tfrecord",
    "to_decibels",
    "transforms",
    "transpose",
    "type_id",
    "types",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "warp_affine",
    "water",
    "zeros",
    "zeros_like",
]

_bare_packages.name_modules()
