"""Sizes of pictures; formats and borders of boxes and points."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import torch

import ndd
from ndd.torchvision.v2.functional import boxes as box, rotated
from ndd.torchvision.v2.functional.kinds import clamping_of, format_of, functional, kernel_of
from ndd.torchvision.values import is_pure_tensor, kind_of, layout_of, plain, tv_tensors, wrapped

Size = tuple[int, int]


def _extents(inpt: Any, letters: str, name: str, served: tuple[str, ...]) -> list[int]:
    """The extents of the axes named by `letters` (of "CHW"); 1 for an axis that the layout does not have."""
    kind = kind_of(inpt)
    if kind == "targets":
        return _extents(inpt.images, letters, name, served)
    if kind in ("boxes", "points") and "size" in served:
        return list(inpt.canvas_size)
    if kind == "pil":
        sides = {"C": len(inpt.getbands()), "H": inpt.height, "W": inpt.width}
        return [sides[c] for c in letters]
    if kind == "ndd":
        layout, shapes = layout_of(inpt), inpt.shape if isinstance(inpt, ndd.Batch) else [inpt.shape]
        extents = {tuple(s[layout.index(c)] if c in layout else 1 for c in letters) for s in shapes}
        if len(extents) != 1:
            raise ValueError(f"{name}: the pictures of the batch differ, {sorted(extents)}: ask for `shape`")
        return list(extents.pop())
    if kind in ("tensor", "image", "video") or (kind == "mask" and "size" in served):
        shape = plain(inpt).shape
        if len(shape) < 2:
            raise TypeError(f"Input tensor should have at least two dimensions, but got {len(shape)}")
        sides = dict(zip("CHW", (1, *shape) if len(shape) == 2 else shape[-3:], strict=True))
        return [sides[c] for c in letters]
    raise TypeError(f"Functional F.{name} does not support inputs of type {type(inpt)}.")


@functional
def get_dimensions(inpt: Any) -> list[int]:
    """Channels, height and width; for an `ndd.Batch`, the same for all its pictures.

    Args:
        inpt: images, video, a PIL image, an `ndd.Batch` or `ndd.Targets`.

    >>> import torch
    >>> from ndd.torchvision.v2 import functional as F
    >>> F.get_dimensions(torch.zeros(8, 3, 4, 5))
    [3, 4, 5]
    """
    return _extents(inpt, "CHW", "get_dimensions", ())


@functional
def get_num_channels(inpt: Any) -> int:
    """The number of channels of a picture.

    Args:
        inpt: images, video, a PIL image, an `ndd.Batch` or `ndd.Targets`.

    >>> import torch
    >>> from ndd.torchvision.v2 import functional as F
    >>> F.get_num_channels(torch.zeros(4, 5))
    1
    """
    return _extents(inpt, "C", "get_num_channels", ())[0]


get_image_num_channels = get_num_channels


@functional
def get_size(inpt: Any) -> list[int]:
    """Height and width of a picture, or of the picture that boxes and points belong to.

    Args:
        inpt: images, video, masks, boxes, points, a PIL image, an `ndd.Batch` or `ndd.Targets`.

    >>> import torch
    >>> from ndd.torchvision.v2 import functional as F
    >>> F.get_size(torch.zeros(3, 4, 5))
    [4, 5]
    """
    return _extents(inpt, "HW", "get_size", ("size",))


def get_image_size(inpt: Any) -> list[int]:
    """Width and height. torchvision advises `get_size`, which has the height first.

    Args:
        inpt: images, video, masks, a PIL image, an `ndd.Batch` or `ndd.Targets`. As in torchvision, the extents of any other
            tensor count, also of boxes.

    >>> import torch, warnings
    >>> from ndd.torchvision.v2 import functional as F
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     F.get_image_size(torch.zeros(3, 4, 5))
    [5, 4]
    """
    warnings.warn(
        "The function `get_image_size(...)` is deprecated and will be removed in a future release. "
        "Instead, please use `get_size(...)` which returns `[h, w]` instead of `[w, h]`.",
        stacklevel=2,
    )
    return _extents(plain(inpt) if isinstance(inpt, torch.Tensor) else inpt, "WH", "get_image_size", ())


@functional
def get_num_frames(inpt: Any) -> int:
    """The number of frames of a video.

    Args:
        inpt: video `[..., F, C, H, W]`.

    >>> import torch
    >>> from ndd.torchvision.v2 import functional as F
    >>> F.get_num_frames(torch.zeros(7, 3, 4, 5))
    7
    """
    if kind_of(inpt) == "ndd" and "F" in layout_of(inpt):
        return _extents(inpt, "F", "get_num_frames", ())[0]
    if kind_of(inpt) not in ("tensor", "video"):
        raise TypeError(f"Functional F.get_num_frames supports video, but got {type(inpt)} instead.")
    return plain(inpt).shape[-4]


def convert_bounding_box_format(
    inpt: torch.Tensor, old_format: Any = None, new_format: Any = None, inplace: bool = False
) -> torch.Tensor:
    """Boxes in another format, a string or a member of torchvision's enum: XYXY, XYWH or CXCYWH; XYWHR, CXCYWHR or XYXYXYXY for
    rotated boxes.

    Args:
        inpt: a tensor, whose format is `old_format`, or `tv_tensors.BoundingBoxes`, which know theirs.
        old_format, new_format: the formats.
        inplace: write into the tensor that came, if the formats have as many numbers.

    >>> import torch
    >>> from ndd.torchvision.v2 import functional as F
    >>> F.convert_bounding_box_format(torch.tensor([[1, 2, 5, 8]]), "XYXY", "CXCYWH")
    tensor([[3, 5, 4, 6]])
    """
    if new_format is None:
        raise TypeError("convert_bounding_box_format() missing 1 required argument: 'new_format'")
    pure, kind = is_pure_tensor(inpt), kind_of(inpt)
    if not pure and kind != "boxes":
        raise TypeError(
            f"Input can either be a plain tensor or a bounding box tv_tensor, but got {type(inpt)} instead."
        )
    if pure and old_format is None:
        raise ValueError("For pure tensor inputs, `old_format` has to be passed.")
    if not pure and old_format is not None:
        raise ValueError("For bounding box tv_tensor inputs, `old_format` must not be passed.")
    old = old_format if pure else format_of(inpt)
    result = box.converted(plain(inpt), old, new_format)
    if inplace and result.shape == inpt.shape:
        result = plain(inpt).copy_(result)
    return result if pure else wrapped(result, inpt, format=_member(inpt, new_format))


def _member(like: Any, format: Any) -> Any:
    """A format as a member of the enum that `like` uses."""
    return type(like.format)(box.format_name(format))


_NOT_SAID = "auto"


def clamp_bounding_boxes(
    inpt: torch.Tensor, format: Any = None, canvas_size: Size | None = None, clamping_mode: str | None = "auto"
) -> torch.Tensor:
    """Cuts boxes off at the border of their picture.

    Args:
        inpt: a tensor with the other arguments, or `tv_tensors.BoundingBoxes` without.
        format: XYXY, XYWH or CXCYWH, or of rotated boxes XYWHR, CXCYWHR or XYXYXYXY.
        canvas_size: height and width of the picture.
        clamping_mode: "soft" or "hard", which are the same for upright boxes. Of a rotated box, "hard" keeps the largest box
            that is inside, "soft" the smallest one around the part that is inside. None: no clamping; "auto": the mode of the
            `tv_tensors`.

    >>> import torch
    >>> from ndd.torchvision.v2 import functional as F
    >>> F.clamp_bounding_boxes(torch.tensor([[-1, 2, 5, 8]]), "XYXY", (6, 4), "soft")
    tensor([[0, 2, 4, 6]])
    """
    if clamping_mode not in (None, "soft", "hard", _NOT_SAID):
        raise ValueError(f"clamping_mode must be soft, hard, auto or None, got {clamping_mode}")
    if is_pure_tensor(inpt):
        if format is None or canvas_size is None or clamping_mode == _NOT_SAID:
            raise ValueError("For pure tensor inputs, `format`, `canvas_size` and `clamping_mode` have to be passed.")
        return box.clamped(inpt, format, canvas_size, clamping_mode)
    if kind_of(inpt) != "boxes":
        raise TypeError(
            f"Input can either be a plain tensor or a bounding box tv_tensor, but got {type(inpt)} instead."
        )
    if format is not None or canvas_size is not None:
        raise ValueError("For bounding box tv_tensor inputs, `format` and `canvas_size` must not be passed.")
    mode = clamping_of(inpt) if clamping_mode == _NOT_SAID else clamping_mode
    boxes: Any = inpt
    return wrapped(box.clamped(plain(inpt), format_of(inpt), boxes.canvas_size, mode), inpt)


def clamp_keypoints(inpt: torch.Tensor, canvas_size: Size | None = None) -> torch.Tensor:
    """Moves points that are outside of their picture onto its outermost pixels.

    Args:
        inpt: a tensor `[..., 2]`, x before y, with `canvas_size`, or `tv_tensors.KeyPoints` without.
        canvas_size: (H, W) of the picture in pixels.

    >>> import torch
    >>> from ndd.torchvision.v2 import functional as F
    >>> F.clamp_keypoints(torch.tensor([[-1, 9]]), (6, 4))
    tensor([[0, 5]])
    """
    if not is_pure_tensor(inpt) and kind_of(inpt) != "points":
        raise TypeError(f"Input can either be a plain tensor or a keypoints tv_tensor, but got {type(inpt)} instead.")
    if is_pure_tensor(inpt) and canvas_size is None:
        raise ValueError("For pure tensor inputs, `canvas_size` has to be passed.")
    if not is_pure_tensor(inpt) and canvas_size is not None:
        raise ValueError("For keypoints tv_tensor inputs, `canvas_size` must not be passed.")
    height, width = inpt.canvas_size if canvas_size is None else canvas_size  # type: ignore[attr-defined]
    points = plain(inpt)
    sides = [points[..., 0].clamp(0, width - 1), points[..., 1].clamp(0, height - 1)]
    return wrapped(torch.stack(sides, dim=-1), inpt)


def sanitize_bounding_boxes(
    bounding_boxes: torch.Tensor,
    format: Any = None,
    canvas_size: Size | None = None,
    min_size: float = 1.0,
    min_area: float = 1.0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The boxes that are inside of their picture and large enough, and the mask that selects them.

    Args:
        bounding_boxes: a tensor [N, 4] with `format` and `canvas_size`, or `tv_tensors.BoundingBoxes` without.
        format, canvas_size: as in `clamp_bounding_boxes`.
        min_size: the least width and height.
        min_area: the least area.

    >>> import torch
    >>> from ndd.torchvision.v2 import functional as F
    >>> F.sanitize_bounding_boxes(torch.tensor([[0, 0, 2, 2], [3, 3, 3, 5]]), "XYXY", (9, 9))
    (tensor([[0, 0, 2, 2]]), tensor([ True, False]))
    """
    if is_pure_tensor(bounding_boxes):
        if format is None or canvas_size is None:
            raise ValueError(
                "format and canvas_size cannot be None if bounding_boxes is a pure tensor. "
                f"Got format={format} and canvas_size={canvas_size}."
                "Set those to appropriate values or pass bounding_boxes as a tv_tensors.BoundingBoxes object."
            )
    elif kind_of(bounding_boxes) != "boxes":
        raise ValueError("bounding_boxes must be a tv_tensors.BoundingBoxes instance or a pure tensor.")
    elif format is not None or canvas_size is not None:
        raise ValueError(
            "format and canvas_size must be None when bounding_boxes is a tv_tensors.BoundingBoxes instance. "
            f"Got format={format} and canvas_size={canvas_size}. "
            "Leave those to None or pass bounding_boxes as a pure tensor."
        )
    else:
        format, canvas_size = format_of(bounding_boxes), bounding_boxes.canvas_size  # type: ignore[attr-defined]
    boxes = plain(bounding_boxes)
    turned = box.is_rotated(format)
    corners = box.converted(boxes, format, "XYXYXYXY" if turned else "XYXY")
    widths, heights = rotated.sides(corners) if turned else (corners[..., 2:] - corners[..., :2]).unbind(-1)
    height, width = canvas_size  # type: ignore[misc]
    valid = (widths >= min_size) & (heights >= min_size) & (widths * heights >= min_area) & (corners >= 0).all(-1)
    valid &= (corners[..., 0::2] <= width).all(-1) & (corners[..., 1::2] <= height).all(-1)
    return wrapped(boxes[valid], bounding_boxes), valid


def sanitize_keypoints(key_points: torch.Tensor, canvas_size: Size | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """The points that are inside of their picture, and the mask that selects them. Groups of points stay or go together.

    Args:
        key_points: a tensor [N, ..., 2] with `canvas_size`, or `tv_tensors.KeyPoints` without.
        canvas_size: height and width of the picture.

    >>> import torch
    >>> from ndd.torchvision.v2 import functional as F
    >>> F.sanitize_keypoints(torch.tensor([[0, 2], [9, 3]]), (9, 9))
    (tensor([[0, 2]]), tensor([ True, False]))
    """
    if is_pure_tensor(key_points):
        if canvas_size is None:
            raise ValueError(
                "canvas_size cannot be None if key_points is a pure tensor. "
                "Set it to an appropriate value or pass key_points as a tv_tensors.KeyPoints object."
            )
    elif kind_of(key_points) != "points":
        raise ValueError("key_points must be a tv_tensors.KeyPoints instance or a pure tensor.")
    elif canvas_size is not None:
        raise ValueError(
            "canvas_size must be None when key_points is a tv_tensors.KeyPoints instance. "
            f"Got canvas_size={canvas_size}. Leave it to None or pass key_points as a pure tensor."
        )
    points = plain(key_points)
    height, width = canvas_size or key_points.canvas_size  # type: ignore[attr-defined]
    x, y = points[..., 0], points[..., 1]
    valid = (x >= 0) & (x < width) & (y >= 0) & (y < height)
    valid = valid.flatten(start_dim=1).all(dim=1) if valid.ndim > 1 else valid
    return wrapped(points[valid], key_points), valid


def register_kernel(functional: Any, tv_tensor_cls: Any) -> Any:
    """A decorator: registers the function for your own class of `tv_tensors`.

    Transforms call it too. Values of a class without a registered function pass through transforms unchanged.

    Args:
        functional: one of these functions, or its name.
        tv_tensor_cls: a subclass of `torchvision.tv_tensors.TVTensor` other than torchvision's.

    The kernel gets the value, and the arguments of the function by name; its result is returned. Raises ValueError for other
    functions and classes, and for a second kernel.

    >>> from ndd.torchvision.installed import import_torchvision
    >>> tv_tensors = import_torchvision().tv_tensors
    >>> from ndd.torchvision.v2 import functional as F
    >>> class Angles(tv_tensors.TVTensor):
    ...     pass
    >>> @F.register_kernel(F.rotate, Angles)
    ... def turned(angles, angle, **others):
    ...     return tv_tensors.wrap(angles + angle, like=angles)
    >>> F.rotate(torch.tensor([10.0]).as_subclass(Angles), 45)
    Angles([55.])
    """
    public = sys.modules[__package__ or ""]
    if isinstance(functional, str):
        functional = getattr(public, functional, None) or functional
    if not callable(functional) or getattr(public, getattr(functional, "__name__", ""), None) is not functional:
        raise ValueError(f"Kernels can only be registered on the functions of {__package__}, but got {functional}.")
    module = tv_tensors()
    base = () if module is None else module.TVTensor
    if not (isinstance(tv_tensor_cls, type) and issubclass(tv_tensor_cls, base)):
        raise ValueError(
            "Kernels can only be registered for subclasses of torchvision.tv_tensors.TVTensor, "
            f"but got {tv_tensor_cls}."
        )
    if tv_tensor_cls in vars(module).values():
        raise ValueError(f"Kernels cannot be registered for the builtin tv_tensor classes, but got {tv_tensor_cls}")
    return kernel_of(functional, tv_tensor_cls)
