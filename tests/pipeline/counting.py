"""A pipeline that counts, and what its outputs hold."""

from __future__ import annotations

import numpy as np

import ndd
from ndd import fn


def values(output):
    return [np.asarray(t).tolist() for t in output]


@ndd.pipeline_def(batch_size=2)
def counter(start=0):
    return fn.external_source(source=lambda i: [np.int32(start + 2 * i), np.int32(start + 2 * i + 1)])
