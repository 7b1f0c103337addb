"""Old names of decoders: `ndd.decoders` has them."""

from ndd import decoders as _current
from ndd._operator.deprecated import old_name as _old_name

image = _old_name(_current.image, __name__)
image_crop = _old_name(_current.image_crop, __name__)
image_random_crop = _old_name(_current.image_random_crop, __name__)
image_slice = _old_name(_current.image_slice, __name__)

__all__ = ["image", "image_crop", "image_random_crop", "image_slice"]
