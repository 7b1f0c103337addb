"""Windows that reach outside, with a border of the image's own pixels, beside NumPy's; the rounding of centre crops."""

from __future__ import annotations

import numpy as np
import pytest

import ndd


@pytest.mark.parametrize("policy", ["edge", "reflect", "symmetric"])
@pytest.mark.parametrize(("layout", "shape"), [("HWC", (5, 7, 3)), ("CHW", (2, 4, 6)), ("HW", (1, 3))])
@pytest.mark.parametrize("device", ["cpu", "gpu"])
@pytest.mark.drawn(1)
def test_as_numpy_pads(emulated_gpu, device, layout, shape, policy):
    images = [np.arange(np.prod(s)).reshape(s).astype(np.int16) for s in (shape, tuple(n + 1 for n in shape))]
    batch = ndd.batch(images, layout=layout)
    batch = batch.gpu() if device == "gpu" else batch
    starts = [[-3, -2], [-1, 2]]
    ends = [[2, 9], [6, 4]]
    sizes = [[i.shape[layout.index(c)] for c in "HW"] for i in images]
    output = ndd.slice(
        batch,
        start=ndd.batch(starts),
        end=ndd.batch([[h + e[0], w + e[1]] for (h, w), e in zip(sizes, ends, strict=True)]),
        axis_names="HW",
        out_of_bounds_policy=policy,
    )
    for image, result, start, end in zip(images, output.cpu(), starts, ends, strict=True):
        around = [(0, 0)] * image.ndim
        for c, s, e in zip("HW", start, end, strict=True):
            around[layout.index(c)] = (max(-s, 0), e)
        wanted = np.pad(image, around, mode=policy)
        cut = [slice(None)] * image.ndim
        for c, s in zip("HW", start, strict=True):
            cut[layout.index(c)] = slice(max(s, 0), None)
        assert np.array_equal(result.numpy(), wanted[tuple(cut)])


def test_an_empty_image_has_no_border():
    with pytest.raises(RuntimeError, match="with elements"):
        ndd.slice(
            np.zeros((0, 3, 1), np.uint8), start=[-1, 0], shape=[2, 3], axes=[0, 1], out_of_bounds_policy="edge"
        ).evaluate()


@pytest.mark.parametrize(("extent", "window", "start"), [
    (5, 2, 2), (7, 2, 2), (4, 1, 2), (6, 1, 2), (9, 4, 2), (8, 8, 0), (3, 6, -1), (3, 5, -1), (2, 5, -1), (3, 10, -3),
])  # fmt: skip
def test_centres_are_rounded_to_even(extent, window, start):
    image = np.arange(1, extent + 1, dtype=np.uint8)[None, :, None]
    output = ndd.crop(image, crop_h=1, crop_w=window, rounding="even", out_of_bounds_policy="pad").numpy()[0, :, 0]
    wanted = [i + 1 if 0 <= i < extent else 0 for i in range(start, start + window)]
    assert output.tolist() == wanted
