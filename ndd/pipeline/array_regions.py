"""Regions of `fn.readers.numpy` that are nodes: `slice` cuts each sample's region from the whole array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import ndd

REGION_ARGUMENTS = ("roi_start", "rel_roi_start", "roi_end", "rel_roi_end", "roi_shape", "rel_roi_shape")
_SLICE_ARGUMENTS = ("roi_axes", "out_of_bounds_policy", "fill_value")


def regions_of_samples(arguments: dict[str, Any]) -> tuple[dict[str, Any], Callable[..., Any]]:
    """The arguments of a reader of whole arrays, and the function that cuts the regions out of them.

    The function takes the reader's outputs and a function that gives the batch of a node.
    """
    whole = {name: value for name, value in arguments.items() if name not in (*REGION_ARGUMENTS, *_SLICE_ARGUMENTS)}
    bounds = {name: value for name, value in arguments.items() if name in REGION_ARGUMENTS and value is not None}
    axes = np.atleast_1d(arguments.get("roi_axes", ())).astype(int).tolist()
    policy, fill = arguments.get("out_of_bounds_policy"), arguments.get("fill_value")

    def cut(outputs: Any, batch_of: Callable[[Any], Any]) -> Any:
        array, *labels = outputs if isinstance(outputs, tuple) else (outputs,)
        window = ndd.slice(
            array,
            **{name.replace("roi_", ""): batch_of(value) for name, value in bounds.items()},
            axes=axes or range(array.ndim),
            out_of_bounds_policy=policy or "error",
            fill_values=fill or 0.0,
        )
        return (window, *labels) if labels else window

    return whole, cut
