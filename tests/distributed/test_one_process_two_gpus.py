"""One process, two GPUs: the right values, on the GPU that was asked for, and no context on the other."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import ndd
from ndd.demo.folder import PHOTOS, scan

FILES = [str(PHOTOS / name) for name in scan(PHOTOS).files]


@pytest.fixture
def both(cuda):
    if cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    return [ndd.Device("gpu", 0), ndd.Device("gpu", 1)]


def augmented(data, device):
    images = ndd.decoders.image(data, device=device)
    images = ndd.resize(images, size=[96, 96])
    return ndd.crop_mirror_normalize(images, mean=[120.0] * 3, std=[60.0] * 3)


@pytest.mark.gpu
def test_each_gpu_gives_the_same_values(both):
    data = ndd.batch([np.fromfile(name, np.uint8) for name in FILES])
    first, second = [augmented(data, device).torch() for device in both]
    assert [first.device.index, second.device.index] == [0, 1]
    assert torch.equal(first.cpu(), second.cpu())


@pytest.mark.gpu
def test_a_batch_is_split_and_joined_over_both(both):
    data = [np.fromfile(name, np.uint8) for name in FILES]
    halves = [augmented(ndd.batch(data[k::2]), device) for k, device in enumerate(both)]
    moved = [half.to_device(both[0]).torch() for half in halves]  # from GPU 1 to GPU 0
    assert {part.device.index for part in moved} == {0}
    whole = augmented(ndd.batch(data), both[0]).torch()
    assert torch.equal(moved[0], whole[::2])
    assert torch.equal(moved[1], whole[1::2])
    back = halves[0].to_device(both[1]).torch()
    assert back.device.index == 1
    assert torch.equal(back.cpu(), moved[0].cpu())


@pytest.mark.gpu
def test_inputs_on_two_gpus_are_refused(both):
    image = np.zeros((4, 4, 3), np.uint8)
    with pytest.raises(ValueError, match="different device ids"):
        ndd.cat(ndd.as_tensor(image).to_device(both[0]), ndd.as_tensor(image).to_device(both[1])).evaluate()


ON_GPU_1 = """
import ctypes, sys, torch, numpy as np
torch.cuda.set_device(1) if sys.argv[1] == "current" else None
import ndd
device = "gpu" if sys.argv[1] == "current" else ndd.Device("gpu", 1)
reader = ndd.readers.File(files=sys.argv[2:])
for _ in range(6):
    for jpegs, labels in reader.next_epoch(batch_size=8):
        images = ndd.decoders.image(jpegs, device=device)
        images = ndd.random_resized_crop(images, size=[64, 64])
        made = ndd.crop_mirror_normalize(images, mean=[120.0] * 3, std=[60.0] * 3).torch()
        assert made.device.index == 1, made.device
torch.cuda.synchronize(1)
flags, active = ctypes.c_uint(), [ctypes.c_int(), ctypes.c_int()]
for k in range(2):
    status = ctypes.CDLL("libcuda.so.1").cuDevicePrimaryCtxGetState(k, ctypes.byref(flags), ctypes.byref(active[k]))
    assert status == 0, status
print([state.value for state in active])
"""


@pytest.mark.gpu
@pytest.mark.parametrize("how", ["named", "current"])
def test_no_context_where_nobody_asked_for_one(both, how):
    """The driver says which GPUs this process has a context on; one takes 300 to 500 MB of a GPU's memory."""
    places = os.pathsep.join([str(Path(ndd.__file__).parents[1]), *sys.path])
    ran = subprocess.run(
        [sys.executable, "-c", ON_GPU_1, how, *FILES], env={**os.environ, "PYTHONPATH": places}, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert ran.stdout.splitlines()[-1] == "[0, 1]"
