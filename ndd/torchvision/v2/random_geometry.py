"""Random rotation, affine, perspective and elastic maps, and random sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import torch

from ndd.torchvision.v2 import draws, functional as F
from ndd.torchvision.v2.arguments import check_sequence, fill_for, fills_by_type, range_of_angles, two_numbers
from ndd.torchvision.v2.functional.warps import perspective_coefficients
from ndd.torchvision.v2.inputs import per_group, query_size, samples_at
from ndd.torchvision.v2.transform import GEOMETRY, RandomApplyTransform, Transform


class RandomRotation(Transform):
    """Turns by a random angle.

    Args:
        degrees: range of the angle, counter-clockwise; a number x means (-x, x).
        interpolation: an `InterpolationMode`, its word, or a constant of Pillow.
        expand: make the result as large as the turned image.
        center: (x, y) to turn about; default: the middle.
        fill: the pixels from outside of the image, as for `Pad`.
        same_on_batch: one angle for all samples of a batch.

    >>> import torch
    >>> from ndd.torchvision import v2
    >>> v2.RandomRotation((90, 90))(torch.tensor([[[1.0, 2.0], [3.0, 4.0]]]))
    tensor([[[2., 4.],
             [1., 3.]]])
    """

    _kinds = GEOMETRY

    def __init__(
        self,
        degrees: Any,
        interpolation: Any = "nearest",
        expand: bool = False,
        center: list[float] | None = None,
        fill: Any = 0,
        *,
        same_on_batch: bool = False,
    ) -> None:
        super().__init__()
        self.degrees = range_of_angles(degrees, "degrees")
        self.interpolation = interpolation
        self.expand = expand
        self.fill = fill
        self._fill = fills_by_type(fill)
        if center is not None:
            check_sequence(center, "center", (2,))
        self.center = center
        self._same_on_batch = same_on_batch

    @staticmethod
    def get_params(degrees: Sequence[float]) -> float:
        """An angle from this range.

        Args:
            degrees: smallest and largest angle, in degrees.
        """
        return draws.uniform(float(degrees[0]), float(degrees[1]))

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """The `angle`."""
        return {"angle": draws.uniform(*self.degrees)}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One value, turned."""
        how = {"interpolation": self.interpolation, "expand": self.expand, "center": self.center}
        return F.rotate(inpt, **params, **how, fill=fill_for(self._fill, inpt))


class RandomAffine(Transform):
    """Applies a random affine map, which moves the middle by `translate` only.

    Args:
        degrees: range of the angle; a number x means (-x, x).
        translate: the greatest shift, as shares of width and height.
        scale: range of the scale.
        shear: range of the angle of shear along x; a number x means (-x, x); four numbers are the ranges along x and y.
        interpolation, fill, center: as for `RandomRotation`.
        same_on_batch: one map for all samples of a batch.

    >>> import torch
    >>> from ndd.torchvision import v2
    >>> v2.RandomAffine(degrees=0, translate=(0.1, 0.1))(torch.zeros(3, 20, 30)).shape
    torch.Size([3, 20, 30])
    """

    _kinds = GEOMETRY

    def __init__(
        self,
        degrees: Any,
        translate: Sequence[float] | None = None,
        scale: Sequence[float] | None = None,
        shear: int | float | Sequence[float] | None = None,
        interpolation: Any = "nearest",
        fill: Any = 0,
        center: list[float] | None = None,
        *,
        same_on_batch: bool = False,
    ) -> None:
        super().__init__()
        self.degrees = range_of_angles(degrees, "degrees")
        if translate is not None:
            check_sequence(translate, "translate", (2,))
            if not all(0.0 <= t <= 1.0 for t in translate):
                raise ValueError("translation values should be between 0 and 1")
        self.translate = translate
        if scale is not None:
            check_sequence(scale, "scale", (2,))
            if any(s <= 0 for s in scale):
                raise ValueError("scale values should be positive")
        self.scale = scale
        self.shear = shear if shear is None else range_of_angles(shear, "shear", (2, 4))
        self.interpolation = interpolation
        self.fill = fill
        self._fill = fills_by_type(fill)
        if center is not None:
            check_sequence(center, "center", (2,))
        self.center = center
        self._same_on_batch = same_on_batch

    @staticmethod
    def get_params(
        degrees: Sequence[float],
        translate: Sequence[float] | None,
        scale_ranges: Sequence[float] | None,
        shears: Sequence[float] | None,
        img_size: Sequence[int],
    ) -> tuple[float, tuple[int, int], float, tuple[float, float]]:
        """Angle, translation, scale and shear for an image of `img_size` (width, height).

        Args:
            degrees: smallest and largest angle, in degrees.
            translate: largest shift along x and y as shares of width and height; None: no shift.
            scale_ranges: smallest and largest factor; None: 1.
            shears: smallest and largest angle along x, in degrees, then the same along y; None: no shear.
            img_size: (width, height) in pixels.
        """
        angle = draws.uniform(float(degrees[0]), float(degrees[1]))
        moved = (0, 0)
        if translate is not None:
            most = [float(share * extent) for share, extent in zip(translate, img_size, strict=True)]
            moved = (round(draws.uniform(-most[0], most[0])), round(draws.uniform(-most[1], most[1])))
        scale = 1.0 if scale_ranges is None else draws.uniform(scale_ranges[0], scale_ranges[1])
        along_x = 0.0 if shears is None else draws.uniform(shears[0], shears[1])
        along_y = 0.0 if shears is None or len(shears) != 4 else draws.uniform(shears[2], shears[3])
        return angle, moved, scale, (along_x, along_y)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """`angle`, `translate`, `scale` and `shear`."""
        size = query_size(flat_inputs)[::-1] if self.translate is not None else (0, 0)
        drawn = self.get_params(self.degrees, self.translate, self.scale, self.shear, size)
        return dict(zip(("angle", "translate", "scale", "shear"), drawn, strict=True))

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One value, moved."""
        how = {"interpolation": self.interpolation, "center": self.center, "fill": fill_for(self._fill, inpt)}
        return F.affine(inpt, **params, **how)


class RandomPerspective(RandomApplyTransform):
    """Applies a random perspective, with probability `p`.

    Args:
        distortion_scale: how far the corners move, 0 to 1: half of width and height at most.
        p: the probability.
        interpolation, fill: as for `RandomRotation`.
        same_on_batch: one perspective for all samples of a batch, which then have one size.

    >>> import torch
    >>> from ndd.torchvision import v2
    >>> v2.RandomPerspective(p=1.0)(torch.zeros(3, 20, 30)).shape
    torch.Size([3, 20, 30])
    """

    _kinds = GEOMETRY

    def __init__(
        self,
        distortion_scale: float = 0.5,
        p: float = 0.5,
        interpolation: Any = "bilinear",
        fill: Any = 0,
        *,
        same_on_batch: bool = False,
    ) -> None:
        super().__init__(p=p, same_on_batch=same_on_batch)
        if not 0 <= distortion_scale <= 1:
            raise ValueError("Argument distortion_scale value should be between 0 and 1")
        self.distortion_scale = distortion_scale
        self.interpolation = interpolation
        self.fill = fill
        self._fill = fills_by_type(fill)

    @staticmethod
    def get_params(width: int, height: int, distortion_scale: float) -> tuple[list[list[int]], list[list[int]]]:
        """The corners, and the points to which they move.

        Args:
            width, height: of the image, in pixels.
            distortion_scale: 0 to 1: how far corners move towards the middle, as a share of half the side.
        """
        return draws.corners((height, width), distortion_scale)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """The eight `coefficients` of the perspective."""
        start, end = draws.corners(query_size(flat_inputs), self.distortion_scale)
        return {"coefficients": perspective_coefficients(start, end, None)}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One value in perspective."""
        how = {"interpolation": self.interpolation, "fill": fill_for(self._fill, inpt)}
        return F.perspective(inpt, startpoints=None, endpoints=None, **how, **params)


class ElasticTransform(Transform):
    """Moves pixels by smooth random noise.

    Args:
        alpha: how far pixels move along x and y.
        sigma: standard deviation of the Gaussian that smooths the noise.
        interpolation, fill: as for `RandomRotation`.
        same_on_batch: the same noise for all samples of a batch, which then have one size.

    >>> import torch
    >>> from ndd.torchvision import v2
    >>> v2.ElasticTransform(alpha=20.0, sigma=2.0)(torch.zeros(3, 20, 30)).shape
    torch.Size([3, 20, 30])
    """

    _kinds = GEOMETRY

    def __init__(
        self,
        alpha: float | Sequence[float] = 50.0,
        sigma: float | Sequence[float] = 5.0,
        interpolation: Any = "bilinear",
        fill: Any = 0,
        *,
        same_on_batch: bool = False,
    ) -> None:
        super().__init__()
        self.alpha = two_numbers(alpha, "alpha")
        self.sigma = two_numbers(sigma, "sigma")
        self.interpolation = interpolation
        self.fill = fill
        self._fill = fills_by_type(fill)
        self._same_on_batch = same_on_batch

    @staticmethod
    def get_params(alpha: Sequence[float], sigma: Sequence[float], size: Sequence[int]) -> torch.Tensor:
        """How far each pixel of an image of `size` moves along x and y, in halves of the side: float32 `[1, H, W, 2]`.

        Args:
            alpha: how far noise of 1 moves along x and y, in halves of a pixel.
            sigma: standard deviation along x and y of the Gaussian that smooths the noise, in pixels.
            size: (H, W) in pixels.
        """
        return _displacements(torch.rand(1, 2, *size), alpha, sigma)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """The `displacement`."""
        return {"displacement": self.get_params(self.alpha, self.sigma, query_size(flat_inputs))}

    def _apart(self, chosen: list[Any], n: int) -> list[Any]:
        """One call for each size of images, with the noise that the images would draw one after the other."""
        sizes = [query_size(each) for each in samples_at(chosen, n)]
        noise = torch.rand(sum([2 * h * w for h, w in sizes])).split([2 * h * w for h, w in sizes])
        distinct = sorted(set(sizes))

        def work(some: list[Any], places: np.ndarray) -> list[Any]:
            mine = torch.cat([noise[i] for i in places.tolist()]).reshape(-1, 2, *sizes[places[0]])
            return self._each(some, {"displacement": _displacements(mine, self.alpha, self.sigma)})

        group = np.array([distinct.index(size) for size in sizes])
        return per_group(group, [work] * len(distinct), chosen) if n else chosen

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One value, moved."""
        return F.elastic(inpt, **params, fill=fill_for(self._fill, inpt), interpolation=self.interpolation)


def _displacements(noise: torch.Tensor, alpha: Sequence[float], sigma: Sequence[float]) -> torch.Tensor:
    """Noise from 0 to 1 `[N, 2, H, W]` as displacements `[N, H, W, 2]`, see `ElasticTransform.get_params`."""
    planes = []
    for axis in (0, 1):
        plane = noise[:, axis : axis + 1] * 2 - 1
        if sigma[axis] > 0.0:
            width = int(8 * sigma[axis] + 1) | 1
            plane = F.gaussian_blur(plane, [width, width], list(sigma))
        planes.append(plane * alpha[axis] / noise.shape[3 - axis])
    return torch.concat(planes, 1).permute(0, 2, 3, 1)


class _RandomSize(Transform):
    """The base of transforms that draw a size."""

    _kinds = GEOMETRY
    interpolation: Any
    antialias: bool | None

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One value, resized."""
        size: Any = params["size"]
        if isinstance(size, np.ndarray) and size.ndim == 2 and size.shape[1] == 1:
            size = cast(Any, size[:, 0])  # the shorter side of each sample
        return F.resize(inpt, cast(Any, size), interpolation=self.interpolation, antialias=self.antialias)


class ScaleJitter(_RandomSize):
    """Resizes to a random scale, as large scale jitter does, keeping the ratio.

    Args:
        target_size: the size that scale 1 fits into.
        scale_range: range of the scale.
        interpolation, antialias: as for `Resize`.
        same_on_batch: one size for all samples of a batch, which then have one size.

    >>> import torch
    >>> from ndd.torchvision import v2
    >>> v2.ScaleJitter(target_size=(8, 8), scale_range=(1.0, 1.0))(torch.zeros(3, 16, 16)).shape
    torch.Size([3, 8, 8])
    """

    def __init__(
        self,
        target_size: tuple[int, int],
        scale_range: tuple[float, float] = (0.1, 2.0),
        interpolation: Any = "bilinear",
        antialias: bool | None = True,
        *,
        same_on_batch: bool = False,
    ):
        super().__init__()
        self.target_size = target_size
        self.scale_range = scale_range
        self.interpolation = interpolation
        self.antialias = antialias
        self._same_on_batch = same_on_batch

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """The `size`."""
        height, width = query_size(flat_inputs)
        scale = self.scale_range[0] + torch.rand(1) * (self.scale_range[1] - self.scale_range[0])
        # As in torchvision, the second number of `target_size` is used for the height.
        times = min(self.target_size[1] / height, self.target_size[0] / width) * scale
        return {"size": (int(height * times), int(width * times))}


class RandomShortestSize(_RandomSize):
    """Resizes to a random length of the shorter side, keeping the ratio.

    Args:
        min_size: a length, or a list of lengths, one of which is drawn.
        max_size: the greatest length of the longer side.
        interpolation, antialias: as for `Resize`.
        same_on_batch: one size for all samples of a batch, which then have one size.

    >>> import torch
    >>> from ndd.torchvision import v2
    >>> v2.RandomShortestSize(min_size=8)(torch.zeros(3, 16, 20)).shape
    torch.Size([3, 8, 10])
    """

    def __init__(
        self,
        min_size: list[int] | tuple[int] | int,
        max_size: int | None = None,
        interpolation: Any = "bilinear",
        antialias: bool | None = True,
        *,
        same_on_batch: bool = False,
    ):
        super().__init__()
        self.min_size = [min_size] if isinstance(min_size, int) else list(min_size)
        self.max_size = max_size
        self.interpolation = interpolation
        self.antialias = antialias
        self._same_on_batch = same_on_batch

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """The `size`."""
        height, width = query_size(flat_inputs)
        times = self.min_size[int(torch.randint(len(self.min_size), ()))] / min(height, width)
        if self.max_size is not None:
            times = min(times, self.max_size / max(height, width))
        return {"size": (int(height * times), int(width * times))}


class RandomResize(_RandomSize):
    """Resizes the shorter side to a random length, keeping the ratio.

    Args:
        min_size: the least length.
        max_size: one more than the greatest.
        interpolation, antialias: as for `Resize`.
        same_on_batch: one length for all samples of a batch.

    >>> import torch
    >>> from ndd.torchvision import v2
    >>> v2.RandomResize(8, 9)(torch.zeros(3, 16, 20)).shape
    torch.Size([3, 8, 10])
    """

    def __init__(
        self,
        min_size: int,
        max_size: int,
        interpolation: Any = "bilinear",
        antialias: bool | None = True,
        *,
        same_on_batch: bool = False,
    ) -> None:
        super().__init__()
        self.min_size = min_size
        self.max_size = max_size
        self.interpolation = interpolation
        self.antialias = antialias
        self._same_on_batch = same_on_batch

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """The `size`: a list of one number."""
        return {"size": [draws.integer(self.min_size, self.max_size)]}

    def _params_of_batch(self, chosen: list[Any], n: int) -> dict[str, Any]:
        if type(self).make_params is not RandomResize.make_params:
            return super()._params_of_batch(chosen, n)
        return {"size": draws.integers(n, self.min_size, self.max_size).streams(n)}
