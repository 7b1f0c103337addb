"""Hints for users who try names of torchvision, albumentations, OpenCV and Pillow."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from difflib import get_close_matches

from ndd._operator.naming import did_you_mean
from ndd._tensor.type_guards import is_list, is_tuple

# Arguments of other libraries, and their names here; the first that an operator has is suggested.
_ARGUMENTS = {
    "kernel_size": ("window_size", "mask_size"), "ksize": ("window_size", "mask_size"), "blur_limit": ("window_size", "sigma"),
    "scale": ("random_area", "size", "scale"), "ratio": ("random_aspect_ratio", "ratio"),
    "height": ("crop_h", "resize_y"), "width": ("crop_w", "resize_x"), "output_size": ("size", "crop"),
    "degrees": ("angle",), "theta": ("angle",), "limit": ("angle", "brightness"), "translate": ("offset", "matrix"),
    "fill": ("fill_value", "fill_values", "value"), "cval": ("fill_value",), "value": ("fill_value", "fill_values"),
    "padding": ("shape",), "pad_width": ("shape",), "border_mode": ("border",), "padding_mode": ("border_mode", "border"),
    "interpolation": ("interp_type",), "resample": ("interp_type",), "std": ("stddev",), "dim": ("axes", "axis"),
    "axis": ("axes",), "keepdim": ("keep_dims",), "keepdims": ("keep_dims",), "dims": ("perm", "axes"),
    "brightness_factor": ("brightness",), "contrast_factor": ("contrast",), "saturation_factor": ("saturation",),
    "hue_factor": ("hue",), "brightness_limit": ("brightness",), "n_mels": ("nfilter",), "n_fft": ("nfft",),
    "hop_length": ("window_step",), "win_length": ("window_length",), "top_db": ("cutoff_db",), "coef": ("preemph_coeff",),
}  # fmt: skip
_CHANCE = ("p", "prob", "probability", "always_apply")
_BY_CHANCE = (
    "an operator changes every sample, and arguments may differ from sample to sample: draw them, as in "
    "ndd.flip(x, horizontal=ndd.random.coin_flip(batch_size=n, probability={value}))"
)
# The argument that comes first in other libraries. For other operators it is the first that has no default, or has the
# operator's name.
_FIRST = {
    "resize": "size=[height, width], or resize_shorter=256 for the shorter side",
    "flip": "horizontal={value!r}",
    "pad": "shape=",
    "gaussian_blur": "window_size={value!r}",
    "erase": "anchor=, shape=",
}

# Names of other libraries' modules, in lower case and without underscores, and what does the same here.
_NAMES = {
    ("compose", "sequential", "oneof", "someof", "lambda", "randomapply", "randomchoice"):
        "operators are functions: call one after the other, images = ndd.resize(images, size=[224, 224])",
    ("centercrop",): "ndd.crop(images, crop=[height, width]) cuts out the middle",
    ("randomcrop",):
        "ndd.crop(images, crop=[height, width], crop_pos_x=ndd.random.uniform(range=[0, 1], batch_size=n), crop_pos_y=)",
    ("horizontalflip", "hflip", "randomhorizontalflip", "fliplr", "mirror"):
        "ndd.flip(images, horizontal=ndd.random.coin_flip(batch_size=n))",
    ("verticalflip", "vflip", "randomverticalflip", "flipud"):
        "ndd.flip(images, horizontal=0, vertical=ndd.random.coin_flip(batch_size=n))",
    ("totensor", "totensorv2", "pil2tensor", "piltotensor", "fromnumpy"):
        "images.torch() gives a torch tensor, ndd.crop_mirror_normalize(images, mean=, std=) floats in CHW before",
    ("toimage", "topilimage"): "images.torch() gives a torch tensor, images.numpy() an array",
    ("todtype", "convertimagedtype", "convertdtype", "tofloat", "astype", "float"): "ndd.cast(x, dtype=ndd.float32)",
    ("normalizeimage",): "ndd.crop_mirror_normalize(images, mean=, std=)",
    ("colorjitter",): "ndd.color_jitter(images, brightness=0.4, contrast=0.4, saturation=0.4, hue=0.1)",
    ("randombrightnesscontrast", "adjustbrightness", "adjustcontrast", "huesaturationvalue", "adjusthue"):
        "ndd.color_twist(images, brightness=ndd.random.uniform(range=[0.8, 1.2], batch_size=n), contrast=, saturation=, hue=)",
    ("grayscale", "randomgrayscale", "togray", "rgbtograyscale", "cvtcolor"):
        "ndd.color_space_conversion(images, image_type=ndd.types.RGB, output_type=ndd.types.GRAY)",
    ("randomrotation", "affinerotate"): "ndd.rotate(images, angle=ndd.random.uniform(range=[-30, 30], batch_size=n))",
    ("affine", "randomaffine", "shiftscalerotate", "warpaffine"): "ndd.warp_affine(images, matrix=...), ndd.transforms",
    ("perspective", "randomperspective"): "ndd.experimental.warp_perspective(images, matrix=...)",
    ("randomerasing",): "ndd.random_erasing(images, p=0.5)",
    ("coarsedropout", "cutout"): "ndd.erase(images, anchor=, shape=), or ndd.grid_mask(images)",
    ("medianblur",): "ndd.experimental.median_blur(images, window_size=)",
    ("autoaugment", "randaugment", "trivialaugment", "trivialaugmentwide", "augmix"): "ndd.auto_aug has these schemes",
    ("readimage", "readfile", "open", "load", "imdecode", "decodeimage", "decodejpeg", "decodepng"):
        "ndd.imread(path) reads and decodes, ndd.decoders.image(data) decodes bytes",
    ("imagefolder", "datasetfolder", "dataloader", "dataset"):
        "ndd.readers.File(file_root=...).next_epoch(batch_size=64) gives batches of files and their labels",
    ("array", "asarray", "fromarray"): "ndd.tensor(array) and ndd.as_tensor(array) make values",
    ("melspectrogram",): "ndd.mel_filter_bank(ndd.spectrogram(sounds, nfft=, window_length=, window_step=), sample_rate=)",
    ("uniform", "normal", "coinflip", "rand", "randn"): "ndd.random has the distributions",
}  # fmt: skip
_OF_NAME = {name: text for names, text in _NAMES.items() for name in names}


def keyword_hint(operator: str, name: str, value: object, known: list[str]) -> str:
    """The hint in the error for an argument that an operator does not have."""
    if name in _CHANCE and name not in known:
        return f": {_BY_CHANCE.format(value=value if isinstance(value, float) else 0.5)}"
    here = next((other for other in _ARGUMENTS.get(name, ()) if other in known and other != name), None)
    return did_you_mean(name, known) if here is None else f": {operator}() has {here!r} for that"


def position_hint(operator: str, value: object, arguments: list[str], required: list[str]) -> str:
    """The hint in the error for an argument that is passed by position."""
    first = next((a for a in (operator, "size", *required) if a in arguments), next(iter(arguments), ""))
    text = _FIRST.get(operator, f"{first}=" if required or first in (operator, "size") else "")
    value = list(value) if is_tuple(value) else value
    short = (isinstance(value, int | float | str) or is_list(value)) and len(repr(value)) < 40
    named = text.format(value=value if short else Ellipsis) if text else f"{first}=" if first else ""
    return f": arguments are passed by name{f', such as {named}' if named else ''}"


# Test runners and IDEs ask modules for missing names thousands of times, and difflib takes 2 ms.
@functools.lru_cache(256)
def _hint(module: str, name: str, known: tuple[str, ...]) -> str:
    plain = name.lower().replace("_", "")
    names = {other.lower().replace("_", ""): other for other in known if not other.startswith("_")}
    text = _OF_NAME.get(plain)
    if plain in names or text is None:
        close = get_close_matches(plain, list(names), 1, 0.75)
        text = f"did you mean {module}.{names[close[0]]}?" if close and not name.startswith("_") else None
    return f": {text}" if text else ""


def missing_name(module: str, name: str, known: Iterable[str]) -> AttributeError:
    """The error for a name that a module does not have."""
    return AttributeError(f"module {module!r} has no attribute {name!r}{_hint(module, name, tuple(known))}")
