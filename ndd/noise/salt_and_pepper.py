"""`ndd.noise.salt_and_pepper`: makes random pixels white or black."""

from __future__ import annotations

import numpy as np

from ndd._compiled.intrinsics import each, empty
from ndd._compiled.jit import kernel
from ndd._cpu.philox import CHUNK, element_words
from ndd._operator import Operand, PerSample, Plan, Values, bad_sample, like, operator
from ndd._tensor import DType
from ndd._tensor.store import grouped
from ndd.ops.image.window import wrapped
from ndd.random.element_types import INTEGERS


@operator(random=True, types=(*INTEGERS, "f32"))
def salt_and_pepper(
    input,
    /,
    *,
    pepper_val: PerSample[float] = None,
    per_channel: bool = False,
    prob: PerSample[float] = 0.05,
    salt_val: PerSample[float] = None,
    salt_vs_pepper: PerSample[float] = 0.5,
):
    """Replaces random pixels, or random numbers, with a high value ("salt") or a low one ("pepper").

    Args:
        input: an integer type or f32. Type, shape and layout stay. All numbers of a pixel change together, so the
            layout needs a C; without a layout the last axis is the channels.
        per_channel: every number changes independently; any layout is accepted.
        prob: the share of pixels (or numbers) that change, 0 to 1.
        salt_vs_pepper: the share of these that become salt, 0 to 1.
        salt_val, pepper_val: the new values; default: the largest and smallest number of an integer type, 1 and -1 for f32. For
            integers the fraction is dropped, and numbers outside the type wrap around (300 becomes 44 in uint8).
        rng: an `RNG`; without it the thread's default one. A call advances it by seven words.

    A pixel changes if its word is below `prob * 2**32`, to salt below `prob * salt_vs_pepper * 2**32`. CPU and GPU
    change the same pixels, those that DALI changes on the CPU. Differences from DALI: channels may be anywhere in the layout.

    `skimage.util.random_noise(mode="s&p")` changes every number independently (`per_channel=True` here), and its "black" is
    0 for floats.

    Raises RuntimeError for other element types, for shares outside 0 to 1 and for layouts without channels.

    >>> import ndd, numpy as np
    >>> gray = ndd.tensor(np.full((1, 8, 1), 128, np.uint8), layout="HWC")
    >>> ndd.noise.salt_and_pepper(gray, prob=0.5, rng=ndd.random.RNG(5)).torch().flatten()
    tensor([255,   0, 255, 128, 128,   0, 128,   0], dtype=torch.uint8)
    >>> ndd.noise.salt_and_pepper(ndd.demo.photo("cat"), prob=0.08, rng=ndd.random.RNG(1)).shape
    (266, 400, 3)
    """
    return like(input)


@salt_and_pepper.plan
def _(call, input, *, pepper_val, per_channel, prob, salt_val, salt_vs_pepper):
    chance = _share(prob)
    salted = chance * _share(salt_vs_pepper)
    dtype = input.dtype
    limits = (-1, 1) if dtype.name == "f32" else (np.iinfo(dtype.numpy).min, np.iinfo(dtype.numpy).max)
    return Plan(
        input.shapes,
        {
            "stream": call.draws.streams(call.n),
            "changed": np.ceil(chance * 2.0**32).astype(np.uint64),
            "salted": np.ceil(salted * 2.0**32).astype(np.uint64),
            "pepper": _value(pepper_val, limits[0], call.n, dtype),
            "salt": _value(salt_val, limits[1], call.n, dtype),
            "extents": _extents(input, per_channel),
        },
        view="flat",
    )


def _share(values: Values) -> np.ndarray:
    shares = values.each().astype(np.float64)
    wrong = ~((shares >= 0) & (shares <= 1))
    if wrong.any():
        i = int(wrong.argmax())
        raise bad_sample(i, f"argument {values.name!r}: expected a number from 0 to 1, got {shares[i]:g}")
    return shares


def _value(given_values: Values | None, default: int, n: int, dtype: DType) -> np.ndarray:
    if given_values is None:
        return np.full(n, default, dtype.numpy)
    values = np.ascontiguousarray(given_values.each())
    return values if dtype.name == "f32" else wrapped(values, dtype.numpy)


def _extents(input: Operand, per_channel: bool) -> np.ndarray:
    """[outer, channels, inner] of each sample; a pixel is an outer and an inner index."""
    shapes = input.shapes
    if per_channel or not shapes.shape[1]:
        return grouped(shapes, input.ndim, input.ndim)
    layout = input.layout
    axis = shapes.shape[1] - 1 if not layout else layout.find("C")
    if axis < 0:
        raise RuntimeError(f"expected a layout with channels (C), or per_channel=True, got {layout!r}")
    return grouped(shapes, axis, axis + 1)


@salt_and_pepper.cpu
@kernel
def _strew(x, out, extents, stream, changed, salted, pepper, salt):
    """Adds the noise to elements [outer, channels, inner], in flat arrays."""
    for i in each(x.size):
        out[i] = x[i]
    channels, inner = extents[1], extents[2]
    pixels = extents[0] * inner
    words = empty((1, min(CHUNK, pixels)), np.uint32)
    for first in range(0, pixels, CHUNK):
        size = min(CHUNK, pixels - first)
        element_words(words[:, :size], stream, first)
        for i in range(size):
            word = np.uint64(words[0, i])
            if word < changed:
                value = salt if word < salted else pepper
                place = (first + i) * channels
                if inner > 1:  # a division takes as long as the other work
                    outer = (first + i) // inner
                    place = first + i + outer * inner * (channels - 1)
                for c in range(channels):
                    out[place + c * inner] = value


@_strew.fallback
def _(x, out, extents, stream, changed, salted, pepper, salt):
    outer, channels, inner = extents.tolist()
    words = np.empty((1, outer * inner), np.uint32)
    element_words.in_python()(words, stream, 0)
    word = words.reshape(outer, 1, inner)
    value = np.where(word < salted, salt, pepper)
    out[:] = np.where(word < changed, value, x.reshape(outer, channels, inner)).reshape(-1)


salt_and_pepper.cuda("salt_and_pepper.cu")
