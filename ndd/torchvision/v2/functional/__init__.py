"""`torchvision.transforms.v2.functional`, by ndd's operators, for whole batches.

Every function takes what torchvision's takes (`torch.Tensor [..., C, H, W]`, `tv_tensors`, PIL images) and what ndd gives
(`Batch`, `Tensor`, `Targets`), on any device, and gives the same kind back. A `Batch` is N images, whose sizes may differ, HWC
or CHW (with an F before for video); its layout stays.

**Parameters for each sample.** For an `ndd.Batch` (or `ndd.Targets` of batches) of N samples every number and every list of
numbers may differ from sample to sample: given as an `ndd.Batch` of N values, or as a NumPy array or torch tensor whose first
axis is N. Lists and tuples are one value for all samples, as in torchvision.

The names that end in `_image`, `_mask`, `_video`, `_bounding_boxes` and `_keypoints` take plain tensors and treat them as
that.

>>> import ndd, torch
>>> from ndd.torchvision.v2 import functional as F
>>> images = ndd.batch([torch.zeros(40, 60, 3, dtype=torch.uint8), torch.zeros(30, 20, 3, dtype=torch.uint8)], layout="HWC")
>>> F.horizontal_flip(images).shape
[(40, 60, 3), (30, 20, 3)]
"""

from ndd.torchvision.interpolation import InterpolationMode
from ndd.torchvision.v2.functional.flips import hflip, horizontal_flip, vertical_flip, vflip
from ndd.torchvision.values import is_pure_tensor

__all__ = [
    "InterpolationMode",
    "hflip",
    "horizontal_flip",
    "is_pure_tensor",
    "vertical_flip",
    "vflip",
]
