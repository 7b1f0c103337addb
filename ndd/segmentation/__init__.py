"""Operators on segmentation masks: random pixels, objects and polygons."""

from ndd.segmentation.random_mask_pixel import random_mask_pixel
from ndd.segmentation.random_object_bbox import random_object_bbox
from ndd.segmentation.select_masks import select_masks

__all__ = ["random_mask_pixel", "random_object_bbox", "select_masks"]
