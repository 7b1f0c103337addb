"""`Transform`, the base of all transforms: takes structures apart, draws parameters, changes values, and reassembles them."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils._pytree import tree_flatten, tree_unflatten

import ndd
from ndd.torchvision.v2 import draws
from ndd.torchvision.v2.arguments import check_probability
from ndd.torchvision.v2.functional.kinds import NoKernelError, is_of_own_class
from ndd.torchvision.v2.inputs import (
    PIXELS,
    copy_size,
    count_of,
    is_image_batch,
    is_masks_batch,
    is_pil_image,
    needs_transform,
    per_group,
    samples_at,
    stacked,
    unchanged,
)
from ndd.torchvision.v2.samples import one_by_one
from ndd.torchvision.values import kind_of

GEOMETRY = (*PIXELS, "targets", "mask", "boxes", "points")  # kinds of values that move
COLOURS = (*PIXELS, "targets")  # kinds of values that have colours


def in_order(transforms: Sequence[Callable] | nn.ModuleList, inputs: tuple[Any, ...]) -> Any:
    """The result of applying the transforms to `inputs` one after the other."""
    several = len(inputs) > 1
    for transform in transforms:
        outputs = transform(*inputs)
        inputs = outputs if several else (outputs,)
    return inputs if several else inputs[0]


class Transform(nn.Module):
    """Base of the transforms. A class of your own overrides `transform`, and `make_params` if it draws numbers.

    A transform takes any structure of tuples, lists and dicts (or several arguments) and returns the same structure. Images,
    videos, masks, boxes and key points go through `transform`; anything else is returned unchanged. They are torch tensors,
    `tv_tensors`, PIL images, or ndd's `Batch`, `Tensor` and `ndd.Targets`.

    **Batches.** An `ndd.Batch` is N samples. Parameters are drawn for each of them, as if each went through alone, or once for
    all with `same_on_batch=True`, which every random transform takes. The layout of a batch tells its kind: HWC, CHW, FHWC and
    FCHW are images and videos; HW beside images is their masks. A batch without a layout counts as images if it has three axes
    and no other value is an image; all others, such as labels, are not transformed. A class of your own gets the samples of a
    batch one after the other, as torch tensors CHW. With `takes_batches = True` its `transform` gets the batch, and `params`
    with a value for each sample (arrays whose first axis is N).

    **Random numbers** come from torch's generator in torchvision's order: after the same `torch.manual_seed`, the result for a
    tensor or PIL image is torchvision's. To resume a program with the same numbers, save `torch.get_rng_state()` together with
    the reader's state, and restore both with `torch.set_rng_state` and `reader.load_state_dict`.

    >>> import torch
    >>> from ndd.torchvision import v2
    >>> class Darker(v2.Transform):
    ...     def make_params(self, flat_inputs):
    ...         return {"factor": 0.5}
    ...     def transform(self, inpt, params):
    ...         return v2.functional.adjust_brightness(inpt, params["factor"])
    >>> Darker()(torch.full((3, 1, 1), 100, dtype=torch.uint8)).flatten()
    tensor([50, 50, 50], dtype=torch.uint8)
    """

    # As in torchvision: types, and functions that tell whether a value is transformed.
    _transformed_types: tuple[Any, ...] = (torch.Tensor, is_pil_image, ndd.Batch, ndd.Tensor, ndd.Targets)
    _kinds: tuple[str, ...] | None = None  # of the values that `transform` takes; None: all
    _keeps_size = False  # whether the result of an image has its size
    _same_on_batch = False
    takes_batches = False

    def __init__(self) -> None:
        super().__init__()

    def __init_subclass__(cls, **named: Any) -> None:
        """A class that overrides `transform` without `takes_batches` gets samples."""
        super().__init_subclass__(**named)
        if "transform" in cls.__dict__ and "takes_batches" not in cls.__dict__:
            cls.takes_batches = cls.__module__.startswith("ndd.torchvision.")

    def check_inputs(self, flat_inputs: list[Any]) -> None:
        """Raises an error for inputs that the transform does not take. To be overridden.

        Args:
            flat_inputs: the values of the structure, in order.
        """

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """The parameters of one call, the same for all values of the structure. To be overridden.

        Args:
            flat_inputs: the values that are transformed. `query_size` and `query_chw` return their size.
        """
        return {}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One value with these parameters. To be overridden.

        Args:
            inpt: one image, video, mask, set of boxes or of key points; a whole `ndd.Batch` where `takes_batches` is
                True.
            params: the result of `make_params` for this call.
        """
        raise NotImplementedError

    def forward(self, *inputs: Any) -> Any:
        """The structure with its values transformed. Override `transform` instead.

        Args:
            *inputs: a structure of tuples, lists and dicts, or several values.
        """
        flat, spec = tree_flatten(inputs[0] if len(inputs) == 1 else inputs)
        self.check_inputs(flat)
        return tree_unflatten(self._over(flat), spec)

    def _over(self, flat: list[Any]) -> list[Any]:
        """The values of a structure, transformed where they should be."""
        flat, separate = _with_masks(flat)
        needed = self._needs_transform_list(flat)
        chosen = iter(self._transformed([x for x, needs in zip(flat, needed, strict=True) if needs]))
        return separate([next(chosen) if needs else x for x, needs in zip(flat, needed, strict=True)])

    def _needs_transform_list(self, flat_inputs: list[Any]) -> list[bool]:
        return needs_transform(flat_inputs, self._transformed_types)

    def _transformed(self, chosen: list[Any]) -> list[Any]:
        n = count_of(chosen)
        if n is None or not self.takes_batches:
            return one_by_one(self._alone, chosen, n)
        return self._alone(chosen) if self._same_on_batch else self._apart(chosen, n)

    def _alone(self, chosen: list[Any]) -> list[Any]:
        """Values that share their parameters: those of one sample, or batches with `same_on_batch`."""
        return self._each(chosen, self.make_params(chosen))

    def _apart(self, chosen: list[Any], n: int) -> list[Any]:
        """Batches of `n` samples, each with its own parameters."""
        return self._each(chosen, self._params_of_batch(chosen, n))

    def _each(self, chosen: list[Any], params: dict[str, Any]) -> list[Any]:
        result = [self._transform_single(x, params) for x in chosen]
        return list(map(copy_size, chosen, result)) if self._keeps_size else result

    def _transform_single(self, value: Any, params: dict[str, Any]) -> Any:
        """A value transformed, if it is of a kind that moves, or of a class with a kernel of the user's."""
        kinds = self._kinds
        if is_of_own_class(value) and (kinds is None or "tensor" in kinds):
            try:
                return self.transform(value, params)
            except NoKernelError:
                return value
        return self.transform(value, params) if kinds is None or kind_of(value) in kinds else value

    def _params_of_batch(self, chosen: list[Any], n: int) -> dict[str, Any]:
        """Parameters with a value for each sample, in the order in which `make_params` draws them sample by sample."""
        if type(self).make_params is Transform.make_params or not n:
            return {}
        return stacked([self.make_params(sample) for sample in samples_at(chosen, n)])

    def extra_repr(self) -> str:
        """The arguments, as torchvision prints them."""
        shown = (bool, int, float, str, tuple, list, enum.Enum)
        mine = [f"{k}={v}" for k, v in vars(self).items() if k[0] != "_" and k != "training" and isinstance(v, shown)]
        return ", ".join(mine + (["same_on_batch=True"] if self._same_on_batch else []))

    def __prepare_scriptable__(self) -> nn.Module:
        raise RuntimeError(
            f"Transform {type(self).__name__} cannot be JIT scripted: it works with ndd's operators. For torchscript take "
            "torchvision's own transform."
        )


class RandomApplyTransform(Transform):
    """Base of the transforms that are applied with probability `p`, to each sample of a batch or to none."""

    def __init__(self, p: float = 0.5, *, same_on_batch: bool = False) -> None:
        check_probability(p)
        super().__init__()
        self.p = p
        self._same_on_batch = same_on_batch

    def _alone(self, chosen: list[Any]) -> list[Any]:
        return super()._alone(chosen) if draws.happens(self.p) else chosen

    def _apart(self, chosen: list[Any], n: int) -> list[Any]:
        if type(self).make_params is Transform.make_params:
            applied, params = draws.which_happen(n, self.p), {}
        else:
            drawn = [self.make_params(each) if draws.happens(self.p) else None for each in samples_at(chosen, n)]
            applied = np.array([each is not None for each in drawn], bool)
            params = stacked([each for each in drawn if each is not None]) if applied.any() else {}
        result = per_group(applied.astype(np.int64), [unchanged, lambda some, _: self._each(some, params)], chosen)
        return list(map(copy_size, chosen, result)) if self._keeps_size else result


def _with_masks(flat: list[Any]) -> tuple[list[Any], Callable[[list[Any]], list[Any]]]:
    """A structure whose batch of images and masks HW are combined into one `ndd.Targets`; and the function that splits them
    again."""
    images = [i for i, x in enumerate(flat) if is_image_batch(x)]
    masks = [i for i, x in enumerate(flat) if is_masks_batch(x)]
    if len(images) != 1 or len(masks) != 1:
        return flat, lambda result: result
    image, mask = images[0], masks[0]
    together = list(flat)
    together[image] = ndd.Targets(flat[image], masks=flat[mask])
    together[mask] = None

    def separate(result: list[Any]) -> list[Any]:
        moved = result[image]
        if isinstance(moved, ndd.Targets):
            result[image], result[mask] = moved.images, moved.masks
        return result

    return together, separate
