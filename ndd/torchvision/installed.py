"""The installed torchvision, for code that compares ndd with it; ndd's own functions do not need it."""

from __future__ import annotations

import functools
import importlib
from typing import Any

import torch

# Declared by torchvision's C++ library, and needed by its Python files.
_SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)
_WANTED = "torchvision.transforms.v2"
_declared: list[torch.library.Library] = []


@functools.cache
def import_torchvision() -> Any:
    """The module `torchvision`, even with a CPU build of torch, with which its library does not load.

    Raises ImportError where it is not installed.
    """
    try:
        importlib.import_module(_WANTED)
    except RuntimeError:  # "operator torchvision::nms does not exist"
        library = torch.library.Library("torchvision", "FRAGMENT")
        for schema in _SCHEMAS:
            library.define(schema)
        _declared.append(library)  # the declarations last as long as it
        importlib.import_module(_WANTED)
    return importlib.import_module("torchvision")
