"""The lengths of the signals of a batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd._operator import bad_sample
from ndd._tensor.store import volumes


def lengths_of(signal: Any) -> np.ndarray:
    """Samples of each signal, int64 `[N]`; RuntimeError for one that has several channels."""
    shapes, lengths = signal.shapes, volumes(signal.shapes)
    if shapes.shape[1] > 1:
        for i in np.flatnonzero((shapes != 1).sum(axis=1) > 1)[:1].tolist():
            if lengths[i]:
                shape = tuple(shapes[i].tolist())
                raise bad_sample(
                    i,
                    f"expected one signal, 1-D or with further extents of 1, got shape {shape}: take one channel "
                    "(`.slice[:, 0]`), or decode with `downmix=True`",
                )
    return lengths
