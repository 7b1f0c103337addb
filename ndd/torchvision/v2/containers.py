"""Transforms made of transforms: all in order, all or none, one of them, or all in random order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils._pytree import tree_flatten, tree_unflatten

from ndd.torchvision.v2 import draws
from ndd.torchvision.v2.arguments import check_probability, check_transforms
from ndd.torchvision.v2.inputs import count_of, per_group, unchanged
from ndd.torchvision.v2.one_pass import steps_for_batches
from ndd.torchvision.v2.resized_windows import with_resized_windows
from ndd.torchvision.v2.transform import Transform, in_order


class Compose(Transform):
    """Transforms one after the other.

    A batch goes through as a whole. If it comes from `ndd.decoders.image`, only the window that the first transform needs is
    decoded. A resize followed by a crop computes only the crop's pixels, and `ToDtype(torch.float32, scale=True)` and
    `Normalize` are one pass.

    Args:
        transforms: callables; each gets the result of the one before.

    >>> import ndd, torch
    >>> from ndd.torchvision import v2
    >>> images = ndd.batch([torch.zeros(40, 60, 3, dtype=torch.uint8)], layout="HWC")
    >>> v2.Compose([v2.Resize(20), v2.CenterCrop(16)])(images).shape
    [(16, 16, 3)]
    """

    def __init__(self, transforms: Sequence[Callable]) -> None:
        super().__init__()
        check_transforms(transforms)
        self.transforms = transforms

    def forward(self, *inputs: Any) -> Any:
        """All transforms, in order."""
        batches = count_of(tree_flatten(inputs)[0]) is not None
        return in_order(
            with_resized_windows(steps_for_batches(self.transforms)) if batches else self.transforms, inputs
        )

    def extra_repr(self) -> str:
        """The transforms, a line each."""
        return _lines(self.transforms)


class _RandomContainer(Transform):
    """The base of transforms that draw which transforms a sample goes through."""

    def forward(self, *inputs: Any) -> Any:
        """The structure, through the transforms that are drawn."""
        flat, spec = tree_flatten(inputs[0] if len(inputs) == 1 else inputs)
        n = count_of(flat)
        if n is None or self._same_on_batch:
            return self._alone_through(inputs)
        if not n:
            return inputs[0] if len(inputs) == 1 else inputs

        def through(transforms: Sequence[Callable]) -> Callable[[list[Any], np.ndarray], list[Any]]:
            def work(some: list[Any], _: np.ndarray) -> list[Any]:
                part = tree_unflatten(some, spec)
                return tree_flatten(in_order(transforms, part if len(inputs) > 1 else (part,)))[0]

            return work

        for group, choices in self._steps(n):
            flat = per_group(group, [through(some) if some else unchanged for some in choices], flat)
        return tree_unflatten(flat, spec)

    def _alone_through(self, inputs: tuple[Any, ...]) -> Any:
        """Inputs that go through the same transforms."""
        raise NotImplementedError

    def _steps(self, n: int) -> list[tuple[np.ndarray, list[Sequence[Callable]]]]:
        """For each step: the number of the choice of each of `n` samples, and the choices."""
        raise NotImplementedError


class RandomApply(_RandomContainer):
    """Applies all transforms of a list with probability `p`, otherwise none.

    Args:
        transforms: callables, or `nn.ModuleList`.
        p: the probability.
        same_on_batch: decide once for a batch instead of for each sample.

    The samples of a batch that go through the transforms must come out with the type, rank and layout of the others.

    >>> import torch
    >>> from ndd.torchvision import v2
    >>> v2.RandomApply([v2.RandomHorizontalFlip(p=1.0)], p=1.0)(torch.tensor([[[1, 2, 3]]]))
    tensor([[[3, 2, 1]]])
    """

    def __init__(
        self, transforms: Sequence[Callable] | nn.ModuleList, p: float = 0.5, *, same_on_batch: bool = False
    ) -> None:
        super().__init__()
        check_transforms(transforms, (nn.ModuleList,))
        self.transforms = transforms
        check_probability(p)
        self.p = p
        self._same_on_batch = same_on_batch

    def _alone_through(self, inputs: tuple[Any, ...]) -> Any:
        return in_order(self.transforms if draws.happens(self.p) else (), inputs)

    def _steps(self, n: int) -> list[tuple[np.ndarray, list[Any]]]:
        return [(draws.which_happen(n, self.p).astype(np.int64), [(), self.transforms])]

    def extra_repr(self) -> str:
        """The transforms, a line each."""
        return _lines(self.transforms)


class RandomChoice(_RandomContainer):
    """One of the transforms.

    Args:
        transforms: callables.
        p: how likely each is; brought to the sum 1. Default: all equally.
        same_on_batch: choose once for a batch instead of for each sample.

    >>> import torch
    >>> from ndd.torchvision import v2
    >>> v2.RandomChoice([v2.Resize(8), v2.CenterCrop(8)])(torch.zeros(3, 16, 16)).shape
    torch.Size([3, 8, 8])
    """

    def __init__(
        self, transforms: Sequence[Callable], p: list[float] | None = None, *, same_on_batch: bool = False
    ) -> None:
        check_transforms(transforms)
        shares = [1.0] * len(transforms) if p is None else p
        if len(shares) != len(transforms):
            raise ValueError(f"Length of p doesn't match the number of transforms: {len(shares)} != {len(transforms)}")
        super().__init__()
        self.transforms = transforms
        total = sum(shares)
        self.p = [each / total for each in shares]
        self._same_on_batch = same_on_batch

    def _drawn(self) -> int:
        return int(torch.multinomial(torch.tensor(self.p), 1))

    def _alone_through(self, inputs: tuple[Any, ...]) -> Any:
        return self.transforms[self._drawn()](*inputs)

    def _steps(self, n: int) -> list[tuple[np.ndarray, list[Any]]]:
        return [(np.array([self._drawn() for _ in range(n)]), [(each,) for each in self.transforms])]


class RandomOrder(_RandomContainer):
    """All of the transforms, in random order.

    Args:
        transforms: callables.
        same_on_batch: one order for all samples of a batch.

    >>> import torch
    >>> from ndd.torchvision import v2
    >>> v2.RandomOrder([v2.Resize(8), v2.CenterCrop(8)])(torch.zeros(3, 16, 16)).shape
    torch.Size([3, 8, 8])
    """

    def __init__(self, transforms: Sequence[Callable], *, same_on_batch: bool = False) -> None:
        check_transforms(transforms)
        super().__init__()
        self.transforms = transforms
        self._same_on_batch = same_on_batch

    def _alone_through(self, inputs: tuple[Any, ...]) -> Any:
        return in_order([self.transforms[i] for i in torch.randperm(len(self.transforms)).tolist()], inputs)

    def _steps(self, n: int) -> list[tuple[np.ndarray, list[Any]]]:
        orders = np.array([torch.randperm(len(self.transforms)).numpy() for _ in range(n)])
        return [(step, [(each,) for each in self.transforms]) for step in orders.T]


def _lines(transforms: Sequence[Callable] | nn.ModuleList) -> str:
    return "\n".join(f"    {each}" for each in transforms)
