"""Arguments for torchvision's functionals: what each test of `ndd.torchvision.v2.functional` walks over."""

from __future__ import annotations

import torch

START, END = [[0, 0], [22, 0], [22, 16], [0, 16]], [[2, 1], [20, 3], [21, 15], [-1, 14]]
TRIANGLE = torch.stack(torch.meshgrid(torch.linspace(-0.2, 0.3, 17), torch.linspace(0.1, -0.2, 23), indexing="ij"), -1)[
    None
]

# By functional: the arguments behind the value. Pictures are 17 x 23.
GEOMETRY = {
    "horizontal_flip": [{}],
    "vertical_flip": [{}],
    "crop": [
        {"top": 2, "left": 3, "height": 9, "width": 11},
        {"top": -3, "left": 18, "height": 30, "width": 11},
        {"top": -4, "left": 0, "height": 9, "width": 5},
    ],
    "center_crop": [{"output_size": s} for s in ([8, 9], [12, 12], 6, [20, 8], [40, 40], (17, 23), [11])],
    "pad": [
        {"padding": 3},
        {"padding": [1, 2], "fill": 7},
        {"padding": [1, 2, 3, 4], "padding_mode": "edge"},
        {"padding": [4, 0, 5, 2], "padding_mode": "reflect"},
        {"padding": [4, 0, 5, 2], "padding_mode": "symmetric"},
        {"padding": [5], "fill": 3},
    ],
    "resize": [
        {"size": [8, 9]},
        {"size": 11},
        {"size": [31, 40], "interpolation": "bicubic"},
        {"size": [11, 50], "antialias": False},
        {"size": [40, 12], "interpolation": "nearest"},
        {"size": [12], "interpolation": "nearest-exact"},
        {"size": 11, "max_size": 14},
        {"size": None, "max_size": 12},
        {"size": [17, 23]},
        {"size": [9, 8], "interpolation": "lanczos"},
    ],
    "resized_crop": [
        {"top": 2, "left": 3, "height": 9, "width": 11, "size": [8, 8]},
        {"top": 0, "left": 1, "height": 16, "width": 20, "size": [20, 31], "interpolation": "bicubic"},
        {"top": -2, "left": 3, "height": 9, "width": 31, "size": [8, 8], "interpolation": "nearest"},
        {"top": 4, "left": 3, "height": 9, "width": 11, "size": [5, 7], "interpolation": "nearest"},
    ],
    "affine": [
        {"angle": 30, "translate": [2, -3], "scale": 1.2, "shear": [5.0, -7.0]},
        {"angle": -70.5, "translate": [0, 1], "scale": 0.6, "shear": 10, "interpolation": "bilinear", "fill": 9},
        {"angle": 0, "translate": [0, 0], "scale": 1.0, "shear": [20.0], "center": [3, 4], "interpolation": "bilinear"},
    ],
    "rotate": [
        {"angle": a, "expand": e, "interpolation": i}
        for a in (0, 45, 90, 180, -270, 33.3)
        for e in (False, True)
        for i in ("nearest", "bilinear")
    ]
    + [{"angle": 20, "center": [1, 2], "fill": 5}],
    "perspective": [
        {"startpoints": START, "endpoints": END},
        {"startpoints": START, "endpoints": END, "interpolation": "nearest", "fill": 3},
        {"startpoints": None, "endpoints": None, "coefficients": [0.9, 0.1, 1, -0.1, 1.1, 2, 0.001, -0.002]},
    ],
    "elastic": [
        {"displacement": TRIANGLE},
        {"displacement": TRIANGLE, "interpolation": "nearest", "fill": 4},
        {"displacement": TRIANGLE, "interpolation": "bicubic", "fill": 4},
        {"displacement": TRIANGLE, "interpolation": "bicubic"},
    ],
}  # fmt: skip

# Those that are moved without mixing pixels, so that bytes are equal.
COPIES = ("horizontal_flip", "vertical_flip", "crop", "center_crop", "pad")

COLORS = {
    "adjust_brightness": [{"brightness_factor": f} for f in (0.0, 0.4, 1.7)],
    "adjust_contrast": [{"contrast_factor": f} for f in (0.0, 0.4, 1.7)],
    "adjust_saturation": [{"saturation_factor": f} for f in (0.0, 0.4, 1.7)],
    "adjust_hue": [{"hue_factor": f} for f in (-0.5, -0.2, 0.0, 0.1, 0.4)],
    "adjust_gamma": [{"gamma": 0.5}, {"gamma": 2.2, "gain": 1.3}],
    "adjust_sharpness": [{"sharpness_factor": f} for f in (0.0, 0.5, 2.0)],
    "rgb_to_grayscale": [{}, {"num_output_channels": 3}],
    "grayscale_to_rgb": [{}],
    "autocontrast": [{}],
    "equalize": [{}],
    "invert": [{}],
    "posterize": [{"bits": b} for b in (0, 1, 4, 8)],
    "solarize": [{"threshold": 0.3}],
    "gaussian_blur": [{"kernel_size": 3}, {"kernel_size": [5, 7], "sigma": [1.2, 0.4]}, {"kernel_size": 1}],
}  # fmt: skip
EXACT_COLORS = ("rgb_to_grayscale", "grayscale_to_rgb", "equalize", "invert", "posterize", "solarize")


def images(dtype: torch.dtype, channels: int = 3, outer: tuple[int, ...] = ()) -> torch.Tensor:
    """Noise over slopes, `[*outer, channels, 17, 23]`."""
    generator = torch.Generator().manual_seed(7)
    slope = torch.linspace(0, 0.6, 17)[:, None] + torch.linspace(0, 0.3, 23)
    values = (slope + 0.3 * torch.rand(*outer, channels, 17, 23, generator=generator)).clamp(0, 1)
    return values.to(dtype) if dtype.is_floating_point else (values * 255.99).to(dtype)


def boxes(dtype: torch.dtype, format: str) -> torch.Tensor:
    """Five boxes on 17 x 23, in `format`; one reaches outside, one has no area."""
    corners = torch.tensor([[1, 2, 7, 9], [0, 0, 23, 17], [10, 3, 30, 8], [5, 5, 5, 9], [3, 4, 4, 5]]).to(dtype)
    first, last = corners[:, :2], corners[:, 2:]
    if format == "XYXY":
        return corners
    extent = last - first
    return torch.cat([first, extent] if format == "XYWH" else [(first + last) / 2, extent], dim=1).to(dtype)
