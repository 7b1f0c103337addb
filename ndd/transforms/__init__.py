"""Affine maps as matrices, for `warp_affine` and `coord_transform`."""

from typing import Any

from ndd._operator.name_hints import missing_name
from ndd.transforms.combine import combine
from ndd.transforms.crop import crop
from ndd.transforms.rotation import rotation
from ndd.transforms.scale import scale
from ndd.transforms.shear import shear
from ndd.transforms.translation import translation

__all__ = ["combine", "crop", "rotation", "scale", "shear", "translation"]


def __getattr__(name: str) -> Any:
    raise missing_name("ndd.transforms", name, __all__)
