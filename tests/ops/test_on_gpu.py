"""Operators whose own tests have no GPU, on the emulated one: `test_registry.py` takes a few operators there by default."""

import numpy as np
import pytest
from compare import arrays_of

import ndd

RNG = np.random.default_rng(4)
VOLUMES = [RNG.integers(0, 256, (2, h, 5, 3), np.uint8) for h in (1, 4)]
IMAGES = [RNG.integers(0, 256, (h, 30, 3), np.uint8) for h in (20, 7)]
BOXES = [np.sort(RNG.random((n, 2, 2)), axis=1).reshape(n, 4).astype(np.float32) for n in (1, 3)]
SOUNDS = [RNG.random(n, np.float32) for n in (100, 31)]
CALLS = {
    "flip horizontally": (VOLUMES, "DHWC", lambda x: ndd.flip(x)),
    "flip vertically": (VOLUMES, "DHWC", lambda x: ndd.flip(x, horizontal=0, vertical=1)),
    "flip all": (VOLUMES, "DHWC", lambda x: ndd.flip(x, vertical=1, depthwise=1)),
    "grid_mask": (IMAGES, "HWC", lambda x: ndd.grid_mask(x, tile=7, ratio=0.4, angle=0.3, shift_x=2.0)),
    "bb_flip": (BOXES, "", lambda x: ndd.bb_flip(x, ltrb=True, horizontal=1, vertical=1)),
    "bbox_paste": (BOXES, "", lambda x: ndd.bbox_paste(x, ltrb=True, paste_x=0.2, paste_y=0.7, ratio=2.0)),
    "audio_resample": (SOUNDS, "", lambda x: ndd.audio_resample(x, scale=0.71)),
}


@pytest.mark.parametrize("name", CALLS)
def test_gpu_as_cpu(name, emulated_gpu):
    arrays, layout, call = CALLS[name]
    batch = ndd.batch(arrays, layout=layout or None)
    for here, there in zip(arrays_of(call(batch)), arrays_of(call(batch.gpu())), strict=True):
        np.testing.assert_allclose(there, here, rtol=1e-5, atol=1e-6)
    assert emulated_gpu.launches
