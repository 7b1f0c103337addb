"""`ndd.resize(rule="torchvision")` beside torch's and Pillow's own resampling, and on the emulated GPU."""

from __future__ import annotations

import numpy as np
import PIL.Image
import pytest
import torch

import ndd
from ndd.demo.folder import PHOTOS

FILTERS = {
    "bilinear": (ndd.types.INTERP_LINEAR, True), "bicubic": (ndd.types.INTERP_CUBIC, True),
    "nearest": (ndd.types.INTERP_NN, False), "nearest-exact": (ndd.types.INTERP_NN, True),
    "narrow bilinear": (ndd.types.INTERP_LINEAR, False), "narrow bicubic": (ndd.types.INTERP_CUBIC, False),
}  # fmt: skip
SIZES = [((37, 53), (11, 19)), ((37, 53), (64, 90)), ((20, 7), (9, 30)), ((5, 5), (5, 5)), ((1, 9), (4, 3))]


def pixels(shape, kind):
    values = np.random.default_rng(list(shape)).integers(0, 256, shape)
    return torch.from_numpy(values.astype(np.uint8) if kind == "u8" else (values / 255).astype(np.float32))


def by_torch(image, size, name):
    how = {"antialias": not name.startswith("narrow")} if "linear" in name or "cubic" in name else {}
    mode = name.removeprefix("narrow ")
    return torch.nn.functional.interpolate(image[None], size, mode=mode, **how)[0]


@pytest.mark.parametrize("kind", ["u8", "f32"])
@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize(("extents", "size"), SIZES)
def test_as_torch(extents, size, name, kind):
    image = pixels((3, *extents), kind)
    interp_type, antialias = FILTERS[name]
    result = ndd.resize(
        ndd.as_tensor(image, layout="CHW"), size=size, interp_type=interp_type, antialias=antialias, rule="torchvision"
    ).torch()
    wanted = by_torch(image, size, name)
    if "nearest" in name:
        assert torch.equal(result, wanted)
    elif kind == "f32":
        torch.testing.assert_close(result, wanted, atol=1e-5, rtol=0)
    else:
        assert (result.int() - wanted.int()).abs().max() <= 1


@pytest.mark.parametrize("name", ["BILINEAR", "BICUBIC", "LANCZOS", "NEAREST"])
@pytest.mark.parametrize(("extents", "size"), SIZES)
def test_as_pillow(extents, size, name):
    if size[0] < extents[0] and size[1] > extents[1]:
        pytest.skip("Pillow 13 goes down first here, torch and older releases across")
    image = pixels((*extents, 3), "u8").numpy()
    kinds = {"BILINEAR": ndd.types.INTERP_LINEAR, "BICUBIC": ndd.types.INTERP_CUBIC,
             "LANCZOS": ndd.types.INTERP_LANCZOS3, "NEAREST": ndd.types.INTERP_NN}  # fmt: skip
    result = ndd.resize(ndd.as_tensor(image, layout="HWC"), size=size, interp_type=kinds[name], rule="torchvision")
    wanted = np.asarray(PIL.Image.fromarray(image).resize(size[::-1], PIL.Image.Resampling[name]))
    assert abs(result.numpy().astype(int) - wanted).max() <= (0 if name == "NEAREST" else 1)


def test_a_region_is_cut_out_before():
    image = pixels((40, 60, 3), "u8")
    whole = {"size": [9, 14], "rule": "torchvision"}
    result = ndd.resize(ndd.as_tensor(image, layout="HWC"), roi_start=[8, 5], roi_end=[33, 47], **whole).torch()
    cut = ndd.as_tensor(image[8:33, 5:47].contiguous(), layout="HWC")
    assert torch.equal(result, ndd.resize(cut, **whole).torch())


@pytest.mark.parametrize(("extents", "shorter", "longer", "most", "size"), [
    ((375, 500), 256, None, None, (256, 341)), ((500, 375), 256, None, None, (341, 256)),
    ((333, 500), 256, None, 300, (200, 300)), ((300, 451), None, 100, None, (66, 100)),
    ((7, 7), 3, None, None, (3, 3)),
])  # fmt: skip
def test_sides_are_cut_down_to_whole_pixels(extents, shorter, longer, most, size):
    image = ndd.as_tensor(np.zeros((*extents, 1), np.uint8), layout="HWC")
    how = {} if most is None else {"max_size": [most]}
    result = ndd.resize(image, resize_shorter=shorter, resize_longer=longer, rule="torchvision", **how)
    assert result.shape[:2] == size


@pytest.mark.parametrize("kind", ["u8", "f32"])
@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.drawn(1)
def test_gpu_as_cpu(emulated_gpu, name, kind):
    images = [pixels((37, 53, 3), kind), pixels((9, 70, 3), kind)]
    interp_type, antialias = FILTERS[name]
    batch = ndd.batch(images, layout="HWC")
    how = {"size": [19, 31], "interp_type": interp_type, "antialias": antialias, "rule": "torchvision"}
    for region in ({}, {"roi_start": [2, 40], "roi_end": [8, 5]}):
        on_cpu, on_gpu = (ndd.resize(b, **how, **region) for b in (batch, batch.gpu()))
        difference = (on_gpu.cpu().torch().float() - on_cpu.torch().float()).abs().max()
        assert difference <= (0 if "nearest" in name else 1 if kind == "u8" else 1e-5)


def test_what_torch_has_not():
    image = ndd.as_tensor(np.zeros((4, 4, 1), np.uint8), layout="HWC")
    with pytest.raises(RuntimeError, match="`rule`"):
        ndd.resize(image, size=[2, 2], rule="pillow").evaluate()
    for interp_type, antialias in ((ndd.types.INTERP_GAUSSIAN, True), (ndd.types.INTERP_LANCZOS3, False)):
        with pytest.raises(RuntimeError, match="INTERP_LANCZOS3"):
            ndd.resize(image, size=[2, 2], interp_type=interp_type, antialias=antialias, rule="torchvision").evaluate()


@pytest.mark.parametrize("device", ["cpu", "gpu"])
@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.drawn(1)
def test_a_window_is_that_of_the_whole_result(request, name, device):
    """`resize_crop_mirror` gives the bits of `resize`, `crop` and `flip`, mirrored or not, for a batch and for one image."""
    if device == "gpu":
        request.getfixturevalue("emulated_gpu")
    interp_type, antialias = FILTERS[name]
    how = {"interp_type": interp_type, "antialias": antialias, "rule": "torchvision"}
    window = {"crop": [11, 17], "crop_pos_y": 0.3, "crop_pos_x": 0.8}
    for kind, size in (("u8", [19, 31]), ("f32", [45, 90])):
        images = ndd.batch([pixels((37, 53, 3), kind), pixels((9, 70, 3), kind)], layout="HWC", device=device)
        whole = ndd.crop(ndd.resize(images, size=size, **how), **window)
        for mirror in (0, 1, 3):
            wanted = ndd.flip(whole, horizontal=mirror & 1, vertical=mirror >> 1).cpu()
            result = ndd.resize_crop_mirror(images, size=size, mirror=mirror, **window, **how).cpu()
            alone = ndd.resize_crop_mirror(images.select(1), size=size, mirror=mirror, **window, **how).cpu()
            assert torch.equal(result.torch(), wanted.torch()), (kind, mirror)
            assert torch.equal(alone.torch(), wanted.select(1).torch()), (kind, mirror)


def test_a_window_larger_than_the_result_repeats_its_edge():
    image = ndd.as_tensor(pixels((9, 8, 3), "u8"), layout="HWC")
    result = ndd.resize_crop_mirror(image, size=[4, 5], crop=[6, 5], crop_pos_y=0.5, rule="torchvision").torch()
    whole = ndd.resize(image, size=[4, 5], rule="torchvision").torch()
    assert torch.equal(result, whole[[0, 0, 1, 2, 3, 3]])


def test_only_what_a_window_needs_is_decoded():
    jpeg = np.fromfile(PHOTOS / "nature" / "flower.jpg", np.uint8)
    how = {"resize_shorter": 64, "rule": "torchvision"}
    whole = ndd.resize(ndd.decoders.image(ndd.batch([jpeg] * 2)), **how)
    for position in (0.0, 0.4, 1.0):
        window = {"crop": [40, 30], "crop_pos_x": position, "crop_pos_y": 1 - position}
        result = ndd.resize_crop_mirror(ndd.decoders.image(ndd.batch([jpeg] * 2)), **how, **window, mirror=1)
        wanted = ndd.flip(ndd.crop(whole, **window))
        assert torch.equal(result.torch(), wanted.torch())
