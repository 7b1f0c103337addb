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
    """A scene that moves by whole pixels a frame: by (-dx, -dy), so that each pixel comes from (dx, dy) beside it."""
    whole = scene(140, 200)
    result = [whole[20 + dy * i : 20 + dy * i + height, 30 + dx * i : 30 + dx * i + width] for i in range(frames)]
    return ndd.tensor(np.repeat(np.stack(result)[..., None], channels, axis=3), layout="FHWC")


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


@pytest.mark.filterwarnings("ignore:.*engine is not used")
def test_on_a_gpu_the_motion_is_the_same(emulated_gpu):
    """By the engine where there is one, else by the CPU."""
    videos = ndd.batch([moving(3, -2, 3), moving(0, 2, 2, 50, 70)])
    there = ndd.optical_flow(videos, device="gpu")
    assert there.device.device_type == "gpu"
    for first, second in zip(there.cpu().tensors, ndd.optical_flow(videos).tensors, strict=True):
        assert first.shape == second.shape
        middles = [np.median(np.asarray(flow)[:, 3:-3, 3:-3], axis=(0, 1, 2)) for flow in (first, second)]
        assert np.abs(middles[0] - middles[1]).max() < 0.3


def test_structures_of_the_engine_are_those_of_the_c_header():
    """Sizes and places by the rules of C for 64-bit machines."""
    import ctypes

    from ndd.ops.video import _engine

    assert ctypes.sizeof(_engine._Functions) == 12 * 8
    assert ctypes.sizeof(_engine._Init) == 64
    assert (_engine._Init.private.offset, _engine._Init.input_format.offset) == (32, 56)
    assert ctypes.sizeof(_engine._Inputs) == 56
    assert (_engine._Inputs.private.offset, _engine._Inputs.rois.offset) == (32, 48)
    assert ctypes.sizeof(_engine._Strides) == 28


@pytest.mark.gpu
@pytest.mark.parametrize("grid", [1, 2, 4])
@pytest.mark.parametrize("hints", [False, True])
def test_the_engine_finds_known_motion(cuda, grid, hints):
    from ndd.ops.video._engine import functions

    functions()  # fails where the driver has no engine: then nothing below would test it
    video = moving(3, -2, 4, 96, 128).to_device("gpu")
    arguments = ndd.tensor(np.full((3, 24, 32, 2), (3, -2), np.float32), layout="FHWC", device="gpu")
    flow = ndd.optical_flow(video, *([arguments] if hints else []), output_grid=grid, enable_external_hints=hints)
    result = np.asarray(flow.cpu())
    assert result.shape == (3, 96 // grid, 128 // grid, 2)
    assert np.abs(np.median(result, axis=(0, 1, 2)) - (3, -2)).max() < 0.2


@pytest.mark.gpu
@pytest.mark.parametrize("hints", [False, True])
def test_videos_one_behind_the_other_are_as_each_alone(cuda, hints):
    """Of two frames and more, in one call, which share a session of the engine."""
    videos = [
        moving(dx, dy, frames, 96, 128) for dx, dy, frames in ((3, -2, 2), (0, 2, 2), (-2, 1, 5), (1, 3, 2), (2, 2, 9))
    ]
    arguments = [np.zeros((len(v.torch()) - 1, 24, 32, 2), np.float32) for v in videos]
    on_gpu = [v.to_device("gpu") for v in videos]

    def flow(video, hint):
        more = [hint] if hints else []
        return ndd.optical_flow(video, *more, enable_external_hints=hints)

    alone = [
        np.asarray(flow(v, ndd.tensor(h, layout="FHWC", device="gpu")).cpu())
        for v, h in zip(on_gpu, arguments, strict=True)
    ]
    for _ in range(5):
        result = flow(ndd.batch(on_gpu), ndd.batch(arguments, layout="FHWC", device="gpu")).cpu()
        for item, other in zip(result.tensors, alone, strict=True):
            np.testing.assert_array_equal(np.asarray(item), other)


@pytest.mark.gpu
def test_threads_share_the_engine(cuda):
    """On streams of their own, videos of one size."""
    from concurrent.futures import ThreadPoolExecutor

    motions = [(3, -2), (0, 2), (-2, 1), (1, 3)]

    def middles(motion):
        with ndd.EvalContext(cuda_stream=ndd.stream()):
            flows = [ndd.optical_flow(moving(*motion, 4, 96, 128).to_device("gpu")).cpu() for _ in range(6)]
        return [np.median(np.asarray(flow), axis=(0, 1, 2)) for flow in flows]

    with ThreadPoolExecutor(len(motions)) as pool:
        for motion, result in zip(motions, pool.map(middles, motions), strict=True):
            assert np.abs(np.array(result) - motion).max() < 0.2


@pytest.mark.gpu
@pytest.mark.oracle
def test_the_engine_against_dali(cuda, dali):
    frames = np.asarray(moving(3, -2, 4, 96, 128))
    ours = np.asarray(ndd.optical_flow(ndd.tensor(frames, layout="FHWC", device="gpu")).cpu())
    theirs = np.asarray(dali.optical_flow(dali.tensor(frames, layout="FHWC", device="gpu")).cpu())
    assert ours.shape == theirs.shape
    assert np.abs(ours - theirs).mean() < 0.1
