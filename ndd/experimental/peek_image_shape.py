"""`ndd.experimental.peek_image_shape`: the old name of `ndd.peek_image_shape`."""

from __future__ import annotations

from ndd._operator.deprecated import old_name
from ndd.ops.image.peek_image_shape import peek_image_shape as _current

peek_image_shape = old_name(_current, __name__)
