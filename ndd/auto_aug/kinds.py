"""Augmentations that are a kind of `augment`: called separately, or all those of a suite together."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import ndd
from ndd.auto_aug.augment import MOVED, NUMBERS, augment
from ndd.auto_aug.declare import Augmentation
from ndd.auto_aug.nodes import batch_of, is_node, on_batches, value_of
from ndd.auto_aug.signed_bin import SignedMagnitudeBin

_FOR_ALL = ("fill_value", "interp_type", "rotate_keep_size", "shape")
"""Arguments of `augment` in addition to a kind and its numbers."""


def of_kind(
    kind: int, numbers: Callable[[np.ndarray], np.ndarray]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Turns a signature into the function of an augmentation that applies one kind of `augment` to all samples.

    `numbers` returns the numbers of the kind `[R, up to 9]` for parameters `[R, ...]`; `[R, 0]` if there are none.
    """

    def decorate(declared: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(declared)

        @on_batches
        def run(data: Any, parameter: Any, *values: Any) -> Any:
            for_all = {k: v for k, v in zip(names, values, strict=True) if v is not None}
            padded = _padded(numbers(_listed(parameter)))
            rows = batch_of(padded) if isinstance(parameter, ndd.Batch) else padded[0]
            return augment(data, kind=kind, numbers=rows, **for_all)

        names = list(signature.parameters)[2:]

        @functools.wraps(declared)
        def call(*args: Any, **named: Any) -> Any:
            bound = signature.bind(*args, **named)
            bound.apply_defaults()
            return run(*bound.args)

        call.of_kind = kind, numbers  # type: ignore[attr-defined]
        return call

    return decorate


def _listed(parameter: Any) -> np.ndarray:
    """Parameters [R, ...]; R is 1 if all samples have the same, or if there is none."""
    if parameter is None:
        return np.zeros((1, 0), np.float32)
    values = np.asarray(parameter.cpu().numpy() if isinstance(parameter, ndd.Batch | ndd.Tensor) else parameter)
    return values if isinstance(parameter, ndd.Batch) else values[None]


def _padded(numbers: np.ndarray) -> np.ndarray:
    padded = np.zeros((len(numbers), NUMBERS), np.float32)
    padded[:, : numbers.shape[1]] = numbers
    return padded


class Together(NamedTuple):
    """The augmentations of a suite that are a kind of `augment`."""

    kinds: np.ndarray
    """The kind of each augmentation, [K]; -1: it has its own function."""
    numbers: np.ndarray
    """float32 [K, 2 bins, 9]: bin 0, bin 0 negated, bin 1, ..."""

    def apply(self, data: Any, index: np.ndarray, bins: SignedMagnitudeBin, named: dict[str, Any]) -> Any:
        """Applies the augmentations `index` [N] to `data`, which may be a node with a value."""
        numbers = self.numbers[index, 2 * np.asarray(bins.bin) + bins.random_sign]
        for_all = {
            k: value_of(named[k])
            for k in _FOR_ALL
            if named.get(k) is not None and (k != "shape" or MOVED in self.kinds)
        }
        if "fill_value" not in named:
            for_all["fill_value"] = 128  # the default of the functions; None repeats the border
        augmented = augment(value_of(data), kind=batch_of(self.kinds[index]), numbers=batch_of(numbers), **for_all)
        return type(data)(augmented) if is_node(data) else augmented


@functools.lru_cache(64)
def together(augmentations: tuple[Augmentation, ...], bins: int, has_shape: bool) -> Together:
    """The augmentations of a suite together, cached like the parameters of their bins. Without the `shape` of images, shifts by
    a fraction of it are left to their own function, which raises the error."""
    group = Together(
        np.full(len(augmentations), -1, np.int32), np.zeros((len(augmentations), 2 * bins, NUMBERS), np.float32)
    )
    for k, augmentation in enumerate(augmentations):
        kind, numbers = getattr(augmentation.op, "of_kind", (MOVED, None))
        if (
            type(augmentation).__call__ is Augmentation.__call__
            and (has_shape or kind != MOVED)
            and numbers is not None
        ):
            rows = _padded(numbers(augmentation._parameter_table(bins)))
            group.kinds[k], group.numbers[k] = kind, np.repeat(rows, 2 * bins // len(rows), axis=0)
    return group


__all__ = ["Together", "of_kind", "together"]
