"""`ndd.optical_flow`: sequences whose motion is known."""

import numpy as np
import pytest
from cases import each_of

import ndd

REGISTRY_CASES = {
    "optical_flow": each_of({}, {"output_grid": 2, "preset": 1.0}, inputs=("video",), dtypes=("uint8",), oracle=False)
}


def scene(height=120, width=160, seed=0):
    """Smooth noise: every place can be told from its neighbours."""
    import cv2

    noise = np.random.default_rng(seed).integers(0, 256, (height // 4, width // 4)).astype(np.float32)
    return cv2.resize(noise, (width, height), interpolation=cv2.INTER_CUBIC).clip(0, 255).astype(np.uint8)


def moving(dx, dy, frames=3, height=64, width=96, channels=3):
    """A scene that moves by whole pixels a frame."""
    whole = scene()
    found = [whole[20 - dy * i : 20 - dy * i + height, 30 - dx * i : 30 - dx * i + width] for i in range(frames)]
    return ndd.tensor(np.repeat(np.stack(found)[..., None], channels, axis=3), layout="FHWC")


@pytest.mark.parametrize("grid", [1, 2, 4])
@pytest.mark.parametrize("motion", [(3, 0), (0, -2), (-2, 3), (0, 0)])
def test_the_motion_of_a_scene_is_found(grid, motion):
    flow = ndd.optical_flow(moving(*motion), output_grid=grid)
    assert flow.shape == (2, 64 // grid, 96 // grid, 2)
    assert flow.layout == "FHWC"
    inside = np.asarray(flow)[:, 12 // grid : -12 // grid, 12 // grid : -12 // grid]
    assert np.abs(np.median(inside, axis=(0, 1, 2)) - motion).max() < 0.1
    assert np.abs(inside - motion).mean() < 0.25


@pytest.mark.parametrize("preset", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("kind", [ndd.types.RGB, ndd.types.BGR, ndd.types.GRAY])
def test_presets_and_colours(preset, kind):
    video = moving(2, 1, channels=1 if kind == ndd.types.GRAY else 3)
    flow = np.asarray(ndd.optical_flow(video, preset=preset, image_type=kind))
    assert np.abs(np.median(flow, axis=(0, 1, 2)) - (2, 1)).max() < 0.3


def test_hints_lead_to_a_motion_that_is_too_large_to_be_found():
    video = moving(14, 0, frames=2)
    hints = ndd.tensor(np.full((1, 8, 12, 2), (14, 0), np.float32), layout="FHWC")
    led = np.asarray(ndd.optical_flow(video, hints, enable_external_hints=True, hint_grid=8))
    assert np.abs(np.median(led[:, 3:-3, 5:-5], axis=(0, 1, 2)) - (14, 0)).max() < 0.3


def test_temporal_hints_and_ragged_batches():
    videos = ndd.batch([moving(3, 0, 4), moving(0, 2, 2, 50, 70)])
    for how in ({}, {"enable_temporal_hints": True}):
        flow = ndd.optical_flow(videos, **how)
        assert [f.shape for f in flow] == [(3, 16, 24, 2), (1, 13, 18, 2)]
        assert np.abs(np.median(np.asarray(flow.tensors[0])[:, 3:-3, 3:-3], axis=(0, 1, 2)) - (3, 0)).max() < 0.2


def test_what_cannot_be_is_an_error():
    video = moving(1, 0)
    for how, said in [
        ({"output_grid": 3}, "output_grid"), ({"hint_grid": 16}, "hint_grid"), ({"preset": 2.0}, "preset"),
        ({"image_type": ndd.types.GRAY}, "1 channel"), ({"enable_external_hints": True}, "second input"),
    ]:  # fmt: skip
        with pytest.raises(RuntimeError, match=said):
            ndd.optical_flow(video, **how).evaluate()
    with pytest.raises(RuntimeError, match="two or more frames"):
        ndd.optical_flow(moving(1, 0, frames=1)).evaluate()
    hints = ndd.tensor(np.zeros((2, 3, 3, 2), np.float32), layout="FHWC")
    with pytest.raises(RuntimeError, match="hints: expected shape"):
        ndd.optical_flow(video, hints, enable_external_hints=True).evaluate()
