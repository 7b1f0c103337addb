"""`ndd.warp_affine` and `warp_perspective` with `rule="torchvision"` beside torchvision: the nearest pixel is the same one."""

import numpy as np
import pytest
import torch
from torchvision_rule import functional

import ndd

KINDS = {"nearest": ndd.types.INTERP_NN, "bilinear": ndd.types.INTERP_LINEAR}


def arguments(rng):
    """An angle, often one at which points lie between two pixels, a translation, a scale and shears."""
    return {
        "angle": float(rng.choice([0, 45, 90, 180, -270, rng.uniform(-180, 180)])),
        "translate": [int(v) for v in rng.integers(-9, 9, 2)],
        "scale": float(rng.choice([1.0, 0.5, 2.0, rng.uniform(0.4, 2.5)])),
        "shear": [float(v) for v in rng.choice([0.0, 45.0, rng.uniform(-50, 50)], 2)],
    }


def pictures(rng, dtype, n=6):
    sizes = rng.integers(1, 130, (n, 2))
    output = [torch.from_numpy(rng.integers(0, 256, (3, h, w)).astype(np.uint8)) for h, w in sizes]
    return [p if dtype is torch.uint8 else p.float() / 255 for p in output]


def mode_of(kind):
    from torchvision.transforms import InterpolationMode  # older releases take no string

    return InterpolationMode(kind)


def matrix_of(case):
    from torchvision.transforms.functional import _get_inverse_affine_matrix

    return _get_inverse_affine_matrix(
        [0.0, 0.0], case["angle"], [float(t) for t in case["translate"]], case["scale"], case["shear"]
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
@pytest.mark.parametrize("device", ["cpu", "gpu"])
@pytest.mark.drawn(1)
def test_affine_maps_of_a_ragged_batch(kind, dtype, device, request):
    if device == "gpu":
        request.getfixturevalue("emulated_gpu")
    affine = functional().affine
    for seed in range(6):
        rng = np.random.default_rng(seed)
        images = pictures(rng, dtype)
        cases = [arguments(rng) for _ in images]
        batch = ndd.batch([p.permute(1, 2, 0).contiguous() for p in images], layout="HWC")
        matrices = ndd.batch([np.reshape(matrix_of(case), (2, 3)).astype(np.float32) for case in cases])
        output = ndd.warp_affine(
            batch.gpu() if device == "gpu" else batch,
            matrix=matrices,
            fill_value=0,
            interp_type=KINDS[kind],
            rule="torchvision",
        )
        for image, case, result in zip(images, cases, output.cpu().tensors, strict=True):
            wanted = affine(image, interpolation=mode_of(kind), **case).permute(1, 2, 0)
            off = (result.torch().double() - wanted.double()).abs().max()
            assert off <= (0 if kind == "nearest" else 1 if dtype is torch.uint8 else 1e-5), (seed, case, off)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
@pytest.mark.parametrize("device", ["cpu", "gpu"])
@pytest.mark.drawn(1)
def test_perspectives_of_a_ragged_batch(kind, dtype, device, request):
    if device == "gpu":
        request.getfixturevalue("emulated_gpu")
    perspective = functional().perspective
    for seed in range(6):
        rng = np.random.default_rng(seed)
        images = pictures(rng, dtype)
        rows = np.eye(3)[None] + rng.normal(0, 1, (len(images), 3, 3)) * [[0.2, 0.2, 9], [0.2, 0.2, 9], [1e-3, 1e-3, 0]]
        if seed % 2:
            rows = np.round(rows * 4) / 4  # points between two pixels, and points that are nowhere
        rows = rows.astype(np.float32)
        batch = ndd.batch([p.permute(1, 2, 0).contiguous() for p in images], layout="HWC")
        output = ndd.experimental.warp_perspective(
            batch.gpu() if device == "gpu" else batch,
            matrix=ndd.batch(list(rows)),
            interp_type=KINDS[kind],
            rule="torchvision",
        )
        for image, row, result in zip(images, rows, output.cpu().tensors, strict=True):
            numbers = row.flatten().tolist()[:8]
            wanted = perspective(image, None, None, interpolation=mode_of(kind), coefficients=numbers).permute(1, 2, 0)
            off = (result.torch().double() - wanted.double()).abs().max()
            assert off <= (0 if kind == "nearest" else 1 if dtype is torch.uint8 else 2e-5), (seed, numbers, off)


def test_another_size_keeps_the_middle():
    image = torch.arange(35, dtype=torch.uint8).reshape(5, 7, 1)
    output = ndd.warp_affine(
        ndd.tensor(image, layout="HWC"), matrix=[1, 0, 0, 0, 1, 0], size=[3, 9], fill_value=99, rule="torchvision"
    )
    assert torch.equal(output.torch()[:, 1:8], image[1:4])
    assert (output.torch()[:, [0, 8]] == 99).all()


def test_errors():
    image = ndd.tensor(np.zeros((2, 3, 1), np.uint8), layout="HWC")
    with pytest.raises(RuntimeError, match="`rule` to be one of dali, torchvision"):
        ndd.warp_affine(image, matrix=[1, 0, 0, 0, 1, 0], rule="opencv")
    volume = ndd.tensor(np.zeros((2, 3, 4, 1), np.uint8), layout="DHWC")
    for wrong in ({"fill_value": [1, 2]}, {"interp_type": ndd.types.INTERP_CUBIC}):
        two = ndd.tensor(np.zeros((2, 3, 2), np.uint8), layout="HWC")
        output = ndd.experimental.warp_perspective(two, matrix=np.eye(3, dtype=np.float32), rule="torchvision", **wrong)
        with pytest.raises(RuntimeError, match="knows images HWC"):
            output.evaluate()
    with pytest.raises(RuntimeError, match="one for images"):
        ndd.warp_affine(volume, matrix=np.eye(3, 4, dtype=np.float32), rule="torchvision").evaluate()
