"""Batches of no samples keep their rank, and the extents that do not depend on samples, through operators."""

import copy
import pickle

import numpy as np
import pytest

import ndd

BROKEN = [np.frombuffer(b"no picture", np.uint8)] * 2


def no_pictures(**arguments):
    return ndd.decoders.image(ndd.batch(BROKEN), on_error="skip", **arguments)


@pytest.mark.parametrize("device", ["cpu", "gpu"])
@pytest.mark.drawn(1)
def test_decoders_that_leave_nothing(device, emulated_gpu):
    def shape(decoder, **arguments):
        out = decoder(ndd.batch(BROKEN), on_error="skip", device=device, **arguments)
        assert (out.batch_size, len(out.dropped), out.device.device_type) == (0, 2, device)
        assert out.cpu().torch().shape == out.torch().shape
        return tuple(out.torch().shape)

    decoders = ndd.decoders
    assert shape(decoders.image) == (0, 0, 0, 3)
    assert shape(decoders.image, output_type=ndd.types.GRAY) == (0, 0, 0, 1)
    assert shape(decoders.image, output_type=ndd.types.ANY_DATA) == (0, 0, 0, 0)
    assert shape(decoders.image_crop, crop=[4, 5]) == (0, 4, 5, 3)
    assert shape(decoders.image_slice, rel_start=[0.5, 0.5], rel_shape=[0.25, 0.5]) == (0, 0, 0, 3)
    assert shape(decoders.image_random_crop) == (0, 0, 0, 3)


def test_sounds_that_leave_nothing():
    for downmix, shape in ((False, (0, 0, 0)), (True, (0, 0))):
        sounds, rates = ndd.decoders.audio(ndd.batch(BROKEN), on_error="skip", downmix=downmix)
        assert (tuple(sounds.torch().shape), len(sounds.dropped)) == (shape, 2)
        assert tuple(rates.torch().shape) == (0,)
    assert ndd.spectrogram(sounds, nfft=512).torch().shape == (0, 257, 0)


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_through_a_pipeline(device, emulated_gpu):
    images = no_pictures(device=device)
    images = ndd.resize(images, size=[8, 8])
    assert images.torch().shape == (0, 8, 8, 3)
    images = ndd.flip(images, horizontal=1)
    images = ndd.crop_mirror_normalize(images, crop=[6, 7], mean=[1, 2, 3], std=[4, 5, 6])
    assert images.torch().shape == (0, 3, 6, 7)
    assert (images * 2 + 1).torch().shape == (0, 3, 6, 7)
    assert images.slice[1:, 0].torch().shape == (0, 2, 7)
    assert images.to_device("gpu").cpu().torch().shape == (0, 3, 6, 7)
    assert images.numpy().shape == (0, 3, 6, 7)
    assert (images.ndim, images.layout, images.shape) == (3, "CHW", [])


RESULTS = {
    "cast": ((0, 8, 8, 3), lambda x: ndd.cast(x, dtype=ndd.float32)),
    "transpose": ((0, 3, 8, 8), lambda x: ndd.transpose(x, perm=[2, 0, 1])),
    "expand_dims": ((0, 1, 8, 8, 3), lambda x: ndd.expand_dims(x, axes=[0])),
    "reshape": ((0, 64, 3), lambda x: ndd.reshape(x, shape=[64, 3])),
    "hsv, which takes RGB only": ((0, 8, 8, 3), lambda x: ndd.hsv(x, hue=3.0)),
    "color_space_conversion": (
        (0, 8, 8, 1),
        lambda x: ndd.color_space_conversion(x, image_type=ndd.types.RGB, output_type=ndd.types.GRAY),
    ),
    "reductions": ((0, 3), lambda x: ndd.reductions.mean(x, axes=[0, 1])),
    "stack": ((0, 2, 8, 8, 3), lambda x: ndd.stack(x, x)),
    "cat": ((0, 16, 8, 3), lambda x: ndd.cat(x, x, axis=0)),
    "random_resized_crop": ((0, 6, 7, 3), lambda x: ndd.random_resized_crop(x, size=[6, 7])),
    "warp_affine": ((0, 5, 6, 3), lambda x: ndd.warp_affine(x, matrix=[1.0, 0, 0, 0, 1, 0], size=[5, 6])),
    "zeros_like": ((0, 8, 8, 3), lambda x: ndd.zeros_like(x)),
    "select": ((0, 8, 8, 3), lambda x: x.select([])),
    "as_tensor": ((0, 8, 8, 3), lambda x: ndd.as_tensor(x)),
    "one that depends on the picture": ((0, 0, 8, 3), lambda x: ndd.resize(no_pictures(), resize_x=8)),
    "samples that agree in part": (
        (0, 5, 0, 3),
        lambda x: ndd.batch([np.zeros((5, 6, 3)), np.zeros((5, 7, 3))]).select([]),
    ),
}


@pytest.mark.parametrize("name", RESULTS)
def test_operators(name):
    expected, result = RESULTS[name]
    out = result(ndd.resize(no_pictures(), size=[8, 8]))
    assert tuple(out.torch().shape) == expected
    assert out.ndim == len(expected) - isinstance(out, ndd.Batch)


def test_copies_and_pickles():
    images = ndd.resize(no_pictures(), size=[8, 8])
    for other in (pickle.loads(pickle.dumps(images)), copy.copy(images), copy.deepcopy(images)):
        assert (tuple(other.torch().shape), other.ndim, other.layout) == ((0, 8, 8, 3), 3, "HWC")


def test_videos():
    videos = ndd.batch([np.zeros((4, 9, 9, 3), np.uint8)], layout="FHWC").select([])
    assert ndd.resize(videos, size=[5, 6]).torch().shape == (0, 4, 5, 6, 3)


def test_nothing_is_written_and_no_user_is_asked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ndd.dump_image(no_pictures()).evaluate()
    assert not list(tmp_path.iterdir())

    @ndd.operator
    def never(x, /):
        return ndd.like(x)

    @never.plan
    def _(x):
        raise AssertionError

    assert never(no_pictures()).torch().shape == (0, 0, 0, 0)


def test_empty_lists_say_no_more_than_they_know():
    assert ndd.batch([], dtype=ndd.uint8).torch().shape == (0,)
    assert ndd.decoders.image(ndd.batch([], dtype=ndd.uint8)).torch().shape[0] == 0
    assert ndd.decoders.image(ndd.batch([], dtype=ndd.uint8)).torch().ndim == 4
