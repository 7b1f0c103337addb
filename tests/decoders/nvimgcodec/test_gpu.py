"""decoders with device="gpu" on a real GPU: near the CPU's pixels, formats it cannot decode, windows, bad samples."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from encoded import made, read, real

import ndd

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU"),
]

LOSSY = ("jpg", "webp", "jp2")


def pairs(names, function, **arguments):
    batch = ndd.batch([made()[n] for n in names])
    here, there = function(batch, **arguments), function(batch, device="gpu", **arguments)
    assert there.device.device_type == "gpu"
    assert there.shape == here.shape
    return zip(names, (np.asarray(t) for t in here.tensors), (np.asarray(t.cpu()) for t in there.tensors), strict=True)


def assert_near(name, here, there, full=255.0):
    assert there.dtype == here.dtype, name
    off = np.abs(here.astype(np.float64) - there.astype(np.float64)) / full
    if name.rsplit(".", 1)[-1] in LOSSY:  # another inverse cosine transform, plainer chroma
        assert off.mean() < 0.03, name
    else:
        assert off.max() <= 1.01 / 255, name


@pytest.mark.parametrize("kind", ["RGB", "BGR", "GRAY", "YCbCr"])
def test_near_the_cpu(kind):
    for name, here, there in pairs(sorted(made()), ndd.decoders.image, output_type=getattr(ndd.types, kind)):
        assert_near(name, here, there)


@pytest.mark.parametrize("dtype", [ndd.float32, ndd.uint16, ndd.int16])
def test_element_types(dtype):
    full = 1.0 if dtype == ndd.float32 else float(np.iinfo(dtype.numpy).max)
    for name, here, there in pairs(sorted(made()), ndd.decoders.image, dtype=dtype):
        assert_near(name, here, there, full)


def test_channels_of_the_file():
    names = ["420.jpg", "rgba.png", "gray.png", "rgba.webp", "rgba.tif", "gray.jpg"]
    for name, here, there in pairs(names, ndd.decoders.image, output_type=ndd.types.ANY_DATA):
        assert_near(name, here, there)


def test_windows():
    names = ["420.jpg", "odd.jpg", "turned_6.jpg", "turned_7.jpg", "rgb.png", "rgb.tif", "gray_16.png"]
    arguments = {"crop": [20, 24], "crop_pos_x": 0.3, "crop_pos_y": 0.8}
    for name, here, there in pairs(names, ndd.decoders.image_crop, **arguments):
        assert_near(name, here, there)
    for name, here, there in pairs(names, ndd.decoders.image_slice, rel_start=[0.1, 0.2], rel_shape=[0.5, 0.6]):
        assert_near(name, here, there)
    batch = ndd.batch([made()[n] for n in names])
    a = ndd.decoders.image_random_crop(batch, rng=ndd.random.RNG(seed=2))
    b = ndd.decoders.image_random_crop(batch, rng=ndd.random.RNG(seed=2), device="gpu")
    assert a.shape == b.shape


def test_bad_samples():
    half = made()["420.jpg"][:600]
    batch = ndd.batch([made()["rgb.png"], half, np.zeros(50, np.uint8), made()["odd.jpg"]])
    with pytest.raises(RuntimeError, match="2 of 4 samples cannot be decoded"):
        ndd.decoders.image(batch, device="gpu").evaluate()
    out = ndd.decoders.image(batch, device="gpu", on_error="skip")
    assert out.shape == [(40, 56, 3), (33, 47, 3)]
    assert [b.index for b in out.dropped] == [1, 2]
    out = ndd.decoders.image(batch, device="gpu", on_error="fill")
    assert out.shape == [(40, 56, 3), (40, 56, 3), (1, 1, 3), (33, 47, 3)]


def test_memory_that_is_still_being_read_is_not_written():
    """The block of a batch comes from torch's allocator and may have been another tensor's a moment ago."""
    batch = ndd.batch([made()["420.jpg"]] * 32)
    expected = ndd.decoders.image(batch, device="gpu").torch().clone()
    for _ in range(50):
        busy = ndd.decoders.image(batch, device="gpu").torch()
        total = busy.double().sum()
        del busy
        result = ndd.decoders.image(batch, device="gpu").torch()
        assert torch.equal(result, expected)
        assert total.item() == expected.double().sum().item()


def damaged(count):
    """JPEGs that are cut off, or have wrong bytes among their codes or anywhere."""
    rng = np.random.default_rng(11)
    sound = [made()[n] for n in sorted(made()) if n.endswith(".jpg")]
    for i in range(count):
        data = sound[i % len(sound)].copy()
        if i % 3 == 0:
            data = np.append(data[: rng.integers(200, len(data))], np.array([0xFF, 0xD9], np.uint8))
        else:
            first = 2 if i % 3 == 1 else len(data) // 2
            data[rng.integers(first, len(data) - 2, rng.integers(1, 20))] = rng.integers(0, 256)
        yield data


@pytest.mark.parametrize("pixels", [0, 1 << 30])
def test_whoever_reads_huffman_codes(pixels):
    """No pixel depends on it, and damaged codes do no harm."""
    names = sorted(n for n in made() if n.endswith(".jpg"))
    batch = ndd.batch([made()[n] for n in names])

    def decoded(**arguments):
        return ndd.decoders.image(batch, device="gpu", hw_decoder_load=0, **arguments)

    expected = [t.cpu() for t in decoded().tensors]
    for _ in range(4):
        bad = ndd.batch(list(damaged(64)))
        ndd.decoders.image(
            bad, device="gpu", hw_decoder_load=0, hybrid_huffman_threshold=pixels, on_error="fill"
        ).evaluate()
        torch.cuda.synchronize()
        for name, a, b in zip(names, expected, decoded(hybrid_huffman_threshold=pixels).tensors, strict=True):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b.cpu()), err_msg=name)


@pytest.mark.skipif(not real("imagenet/*/*"), reason="there is no folder of real images (NDD_TEST_DATA)")
def test_photographs():
    files = [read(p) for p in real("imagenet/*/*")[::4]]
    here = ndd.decoders.image(ndd.batch(files))
    there = ndd.decoders.image(ndd.batch(files), device="gpu", jpeg_fancy_upsampling=True)
    for a, b in zip(here.tensors, there.tensors, strict=True):
        assert np.abs(np.asarray(a).astype(int) - np.asarray(b.cpu()).astype(int)).mean() < 1.5


WITH_LITTLE_MEMORY = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np, torch
import ndd
from encoded import made

batch = ndd.batch([made()[n] for n in sorted(made()) if n.endswith(".jpg")])
expected = [np.asarray(t).astype(float) for t in ndd.decoders.image(batch).tensors]
noise = torch.randint(0, 255, (50_000_000,), dtype=torch.uint8, device="cuda")  # torch keeps its memory for the pixels
del noise
held = []
while (size := torch.cuda.mem_get_info()[0] - (int(sys.argv[2]) << 20)) >= 2 << 20:
    try:
        held.append(torch.empty(size // 2 if size > 64 << 20 else size, dtype=torch.uint8, device="cuda"))
    except torch.cuda.OutOfMemoryError:
        break
try:
    pixels = [np.asarray(t.cpu()).astype(float) for t in ndd.decoders.image(batch, device="gpu").tensors]
except Exception as error:
    print("out of memory" in str(error))
else:
    print(all(np.abs(a - b).mean() < 8 for a, b in zip(expected, pixels, strict=True)))
"""


@pytest.mark.skipif(int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")) > 1, reason="fills the memory of the GPU")
@pytest.mark.parametrize("left", [150, 100, 70])
def test_with_little_memory_left_pixels_are_right_or_an_error_says_so(left):
    tests = Path(__file__).parents[2]
    command = [sys.executable, "-c", WITH_LITTLE_MEMORY, str(tests), str(left)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tests.parent), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.split() == ["True"], done.stderr[-2000:]
