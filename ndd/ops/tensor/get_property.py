"""`ndd.get_property`: what is known of samples beside their numbers, as data."""

from __future__ import annotations

import numpy as np

from ndd._operator import operator, output
from ndd._tensor import Device, Store
from ndd._tensor.dtype import uint8


@operator(reads="anywhere")
def get_property(input, /, *, key: str):
    """The layout of the samples or where they came from, as bytes of text.

    Args:
        input: anything.
        key: "layout" or "source_info".

    The result is u8 of one axis for each sample; empty where nothing is known. A file is named by the path that its reader
    opens; DALI leaves the reader's `file_root` off.

    Raises RuntimeError for another key.

    >>> import ndd
    >>> bytes(ndd.get_property(ndd.tensor([[1]], layout="HW"), key="layout").torch().numpy())
    b'HW'
    """
    if key not in ("layout", "source_info"):
        raise RuntimeError(f'get_property: `key`: expected "layout" or "source_info", got {key!r}')
    return output(uint8, 1)


@get_property.batch
def _(call, input, *, key):
    texts = [input.layout] * call.n if key == "layout" else call.sources
    return [np.frombuffer(str(t or "").encode(), np.uint8).copy() for t in texts]


@get_property.cuda
def _(launch, input, *, key):
    from ndd._cuda import transfer

    parts = get_property.operator.batch(launch.call, input, key=key)
    return transfer.to_gpu(Store(uint8, None, Device.CPU, [p.shape for p in parts], parts=parts), launch.device)
