"""Decoders: encoded files to arrays."""

from ndd.decoders.audio import audio
from ndd.decoders.image import image
from ndd.decoders.image_crop import image_crop
from ndd.decoders.image_random_crop import image_random_crop
from ndd.decoders.image_slice import image_slice
from ndd.decoders.inflate import inflate
from ndd.decoders.numpy import numpy
from ndd.decoders.on_error import BadSample
from ndd.decoders.size_limits import get_max_pixels, set_max_pixels
from ndd.decoders.video import video

__all__ = [
    "BadSample",
    "audio",
    "get_max_pixels",
    "image",
    "image_crop",
    "image_random_crop",
    "image_slice",
    "inflate",
    "numpy",
    "set_max_pixels",
    "video",
]
