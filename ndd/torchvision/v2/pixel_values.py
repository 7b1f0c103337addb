"""Transforms of the values of pixels: normalising, blurring, noise, whitening, and user functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

import ndd
from ndd.torchvision.v2 import draws, functional as F
from ndd.torchvision.v2.arguments import pair_of_sizes, two_numbers
from ndd.torchvision.v2.inputs import has_kind
from ndd.torchvision.v2.transform import COLOURS, Transform
from ndd.torchvision.values import kind_of, plain, wrapped

_TENSORS = ("tensor", "image", "video", "ndd", "targets")


class Identity(Transform):
    """Changes nothing.

    >>> import torch
    >>> from ndd.torchvision import v2
    >>> v2.Identity()(torch.tensor([1, 2]))
    tensor([1, 2])
    """

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """The value."""
        return inpt


class Lambda(Transform):
    """Applies a user function to every value of some types.

    Args:
        lambd: the function. It gets a batch of ndd as a whole.
        types: types of the values. Default: all.

    >>> import torch
    >>> from ndd.torchvision import v2
    >>> v2.Lambda(lambda image: image + 1)(torch.zeros(1, 1, 2))
    tensor([[[1., 1.]]])
    """

    _transformed_types = (object,)

    def __init__(self, lambd: Callable[[Any], Any], *types: type):
        super().__init__()
        self.lambd = lambd
        self.types = types or self._transformed_types

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """The function's value."""
        return self.lambd(inpt) if isinstance(inpt, self.types) else inpt

    def extra_repr(self) -> str:
        """The function's name, and the types."""
        name = getattr(self.lambd, "__name__", None)
        return ", ".join([*([name] if name else []), f"types={[each.__name__ for each in self.types]}"])


class _OfTensors(Transform):
    _kinds = _TENSORS
    _keeps_size = True

    def check_inputs(self, flat_inputs: list[Any]) -> None:
        if has_kind(flat_inputs, "pil"):
            raise TypeError(f"{type(self).__name__}() does not support PIL images.")


class LinearTransformation(_OfTensors):
    """Flattens an image, subtracts a vector and multiplies by a matrix: whitening.

    Args:
        transformation_matrix: [D, D], where D is channels x height x width.
        mean_vector: [D].

    A batch of ndd is flattened in its layout.

    >>> import torch
    >>> from ndd.torchvision import v2
    >>> v2.LinearTransformation(2 * torch.eye(2), torch.tensor([1.0, 1.0]))(torch.tensor([[[3.0, 4.0]]]))
    tensor([[[4., 6.]]])
    """

    _kinds = ("tensor", "image", "video", "ndd")

    def __init__(self, transformation_matrix: torch.Tensor, mean_vector: torch.Tensor):
        super().__init__()
        matrix, mean = transformation_matrix, mean_vector
        if matrix.size(0) != matrix.size(1):
            raise ValueError(f"transformation_matrix should be square. Got {tuple(matrix.size())} rectangular matrix.")
        if mean.size(0) != matrix.size(0):
            raise ValueError(
                f"mean_vector should have the same length {mean.size(0)}"
                f" as any one of the dimensions of the transformation_matrix [{tuple(matrix.size())}]"
            )
        if matrix.device != mean.device:
            raise ValueError(f"Input tensors should be on the same device. Got {matrix.device} and {mean.device}")
        if matrix.dtype != mean.dtype:
            raise ValueError(f"Input tensors should have the same dtype. Got {matrix.dtype} and {mean.dtype}")
        self.transformation_matrix = matrix
        self.mean_vector = mean

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One image."""
        if kind_of(inpt) == "ndd":
            result = self._whitened(inpt.torch())
            return (ndd.as_batch if isinstance(inpt, ndd.Batch) else ndd.as_tensor)(result, layout=inpt.layout)
        return wrapped(self._whitened(plain(inpt)), inpt)

    def _whitened(self, pixels: torch.Tensor) -> torch.Tensor:
        shape, size = pixels.shape, self.transformation_matrix.shape[0]
        if shape[-3] * shape[-2] * shape[-1] != size:
            raise ValueError(
                "Input tensor and transformation matrix have incompatible shape."
                f"[{shape[-3]} x {shape[-2]} x {shape[-1]}] != {size}"
            )
        if pixels.device.type != self.mean_vector.device.type:
            raise ValueError(
                "Input tensor should be on the same device as transformation matrix and mean vector. "
                f"Got {pixels.device} vs {self.mean_vector.device}"
            )
        flat = pixels.reshape(-1, size) - self.mean_vector
        return torch.mm(flat, self.transformation_matrix.to(flat.dtype)).reshape(shape)


class Normalize(_OfTensors):
    """(pixel - mean) / std, for each channel of float images.

    Args:
        mean: one for each channel.
        std: one for each channel.
        inplace: write into the image (torch tensors alone).

    >>> import torch
    >>> from ndd.torchvision import v2
    >>> v2.Normalize(mean=[0.5], std=[0.25])(torch.tensor([[[0.5, 1.0]]]))
    tensor([[[0., 2.]]])
    """

    def __init__(self, mean: Sequence[float], std: Sequence[float], inplace: bool = False):
        super().__init__()
        self.mean = list(mean)
        self.std = list(std)
        self.inplace = inplace

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One image, normalised."""
        return F.normalize(inpt, mean=self.mean, std=self.std, inplace=self.inplace)


class GaussianBlur(Transform):
    """Blurs by a Gaussian of random width.

    Args:
        kernel_size: (width, height) of the kernel, odd, or one number for both.
        sigma: range of the standard deviation, or one number.
        same_on_batch: one width for all samples of a batch.

    >>> import torch
    >>> from ndd.torchvision import v2
    >>> v2.GaussianBlur(3, sigma=1.0)(torch.eye(3)[None])[0, 1]
    tensor([0.3715, 0.3544, 0.3715])
    """

    _kinds = COLOURS
    _keeps_size = True

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        sigma: int | float | Sequence[float] = (0.1, 2.0),
        *,
        same_on_batch: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = pair_of_sizes(kernel_size, "Kernel size should be a tuple/list of two integers")
        if any(size <= 0 or size % 2 == 0 for size in self.kernel_size):
            raise ValueError("Kernel size value should be an odd and positive number.")
        self.sigma = two_numbers(sigma, "sigma")
        if not 0.0 < self.sigma[0] <= self.sigma[1]:
            raise ValueError(f"sigma values should be positive and of the form (min, max). Got {self.sigma}")
        self._same_on_batch = same_on_batch

    @staticmethod
    def get_params(sigma_min: float, sigma_max: float) -> float:
        """A standard deviation of this range.

        Args:
            sigma_min, sigma_max: the ends of the range, in pixels.
        """
        return draws.uniform(sigma_min, sigma_max)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """The standard deviation along x and y: `sigma`."""
        sigma = draws.uniform(*self.sigma)
        return {"sigma": [sigma, sigma]}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One image, blurred."""
        return F.gaussian_blur(inpt, list(self.kernel_size), **params)


class GaussianNoise(_OfTensors):
    """Adds normal noise to float images.

    Args:
        mean, sigma: of the noise.
        clip: clip the result to 0 to 1.
        same_on_batch: has no effect: each pixel of each sample has its own noise.

    >>> import torch
    >>> from ndd.torchvision import v2
    >>> v2.GaussianNoise(sigma=0.1)(torch.zeros(3, 4, 5)).shape
    torch.Size([3, 4, 5])
    """

    _kinds = COLOURS
    _keeps_size = True

    def __init__(
        self, mean: float = 0.0, sigma: float = 0.1, clip: bool = True, *, same_on_batch: bool = False
    ) -> None:
        super().__init__()
        self.mean = mean
        self.sigma = sigma
        self.clip = clip

    def check_inputs(self, flat_inputs: list[Any]) -> None:
        """True for any value: kinds without noise raise their own errors."""

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One image with noise."""
        return F.gaussian_noise(inpt, mean=self.mean, sigma=self.sigma, clip=self.clip)
