"""The input of DALI's EfficientNet example with the import changed: automatic augmentation chosen when the pipeline is built,
conditions on what was drawn; in pipeline mode and in a loop, on the CPU and on a GPU."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest

import ndd
import ndd.auto_aug
import ndd.fn
import ndd.types
from ndd.plugin.pytorch import DALIClassificationIterator, LastBatchPolicy

PHOTOS = Path(ndd.__file__).parent / "demo" / "photos"
SIZE = 32
MEAN, STD = [0.485 * 255, 0.456 * 255, 0.406 * 255], [0.229 * 255, 0.224 * 255, 0.225 * 255]
SCHEMES = ("disabled", "autoaugment", "trivialaugment", "randaugment")


@pytest.fixture(scope="module")
def photos():
    """Five pictures, of which one is small."""
    return [str(p) for p in sorted(PHOTOS.rglob("*.jp*g"))[:5]]


def augmented(auto_aug, images, automatic_augmentation, **arguments):
    """As the example chooses: a condition on a constant, with the extents that images have after `resize`."""
    shape = [SIZE, SIZE]
    if automatic_augmentation == "autoaugment":
        return auto_aug.auto_augment.auto_augment_image_net(images, shape=shape, **arguments)
    if automatic_augmentation == "trivialaugment":
        return auto_aug.trivial_augment.trivial_augment_wide(images, shape=shape, **arguments)
    if automatic_augmentation == "randaugment":
        return auto_aug.rand_augment.rand_augment(images, n=2, m=17, shape=shape, **arguments)
    return images


def training(dali, files, automatic_augmentation, dali_device="cpu", **arguments):
    """The pipeline of a package: `ndd` or `nvidia.dali`."""
    fn, types = dali.fn, dali.types

    @dali.pipeline_def(enable_conditionals=True, batch_size=2, num_threads=2, seed=3)
    def training_pipe():
        jpegs, labels = fn.readers.file(
            name="Reader", files=files, random_shuffle=True, pad_last_batch=True, shard_id=0, num_shards=1
        )
        decoder_device, resize_device = ("mixed", "gpu") if dali_device == "gpu" else ("cpu", "cpu")
        images = fn.decoders.image(jpegs, device=decoder_device, output_type=types.RGB)
        images = fn.random_resized_crop(
            images, device=resize_device, size=[SIZE, SIZE], random_aspect_ratio=[0.75, 4.0 / 3.0], random_area=[0.08, 1.0],
            interp_type=types.INTERP_CUBIC, antialias=False,
        )  # fmt: skip
        if dali_device == "gpu":
            images = images.gpu()
        images = fn.flip(images, horizontal=fn.random.coin_flip(probability=0.5))
        images = augmented(dali.auto_aug, images, automatic_augmentation, **arguments)
        if fn.random.coin_flip(probability=0.5, dtype=types.BOOL):
            images = fn.gaussian_blur(images, window_size=3)
        output = fn.crop_mirror_normalize(
            images, dtype=types.FLOAT, output_layout="CHW", crop=(SIZE, SIZE), mean=MEAN, std=STD
        )
        return output, labels

    return training_pipe(device_id=None if dali_device == "cpu" else 0)


@pytest.mark.parametrize("device", ["cpu", pytest.param("gpu", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_an_epoch_in_pipeline_mode(photos, scheme, device):
    def epoch():
        pipe = training(ndd, photos, scheme, device)
        steps = DALIClassificationIterator(pipe, reader_name="Reader", last_batch_policy=LastBatchPolicy.PARTIAL)
        return [(step[0]["data"].cpu().numpy(), step[0]["label"].numpy()) for step in steps]

    result, again = epoch(), epoch()
    assert [x.shape for x, _ in result] == [(2, 3, SIZE, SIZE)] * 2 + [(1, 3, SIZE, SIZE)]
    for (x, label), (y, other) in zip(result, again, strict=True):
        assert (label == other).all()
        assert (x == y).all()  # one seed, one epoch
        assert np.isfinite(x).all()
        assert x.std() > 0.1


@pytest.mark.parametrize("scheme", SCHEMES[1:])
@pytest.mark.drawn(1)
def test_an_epoch_in_a_loop_on_both_devices(emulated_gpu, photos, scheme):
    """The same numbers are drawn on a GPU, and a step of a scheme is three kernels however many kinds it drew."""
    result = {}
    for device in ("cpu", "gpu"):
        reader, rng = ndd.readers.File(files=photos), ndd.random.RNG(5)
        for jpegs, _ in reader.next_epoch(batch_size=5):
            images = ndd.decoders.image(jpegs)  # one decoder: JPEG decoders differ in the last bits
            images = ndd.random_resized_crop(images.to_device(device), size=[SIZE, SIZE], rng=rng)
            images = ndd.flip(images, horizontal=ndd.random.coin_flip(batch_size=5, rng=rng)).evaluate()
            before = len(emulated_gpu.launches)
            images = augmented(ndd.auto_aug, images, scheme, rng=rng).evaluate()
            assert len(emulated_gpu.launches) - before <= (6 if device == "gpu" else 0)
            images = ndd.crop_mirror_normalize(images, mean=MEAN, std=STD)
            result[device] = images.cpu().numpy()
            assert images.device.device_type == device
    apart = np.abs(result["cpu"] - result["gpu"]) * 0.225 * 255
    assert (apart > 3).mean() < 0.02  # a step at a threshold, a mean grey, between rounded numbers


@pytest.mark.oracle
@pytest.mark.long
def test_it_is_code_for_dali(photos):
    """What these tests run in pipeline mode, DALI runs; it draws other numbers (see `rand_augment`)."""
    dali = pytest.importorskip("nvidia.dali")
    for module in ("fn", "types", "auto_aug.trivial_augment"):
        importlib.import_module(f"nvidia.dali.{module}")

    result = []
    # DALI builds 14 for seconds.
    few = [a.name for a in ndd.auto_aug.trivial_augment.get_trivial_augment_wide_suite()][3:]
    for package in (ndd, dali):
        pipe = training(package, photos, "trivialaugment", excluded=few)
        pipe.build()
        result.append([[np.asarray(out.at(i)) for i in range(2)] for out in pipe.run()])
    for mine, theirs in zip(*result, strict=True):
        assert [(x.dtype, x.shape) for x in mine] == [(x.dtype, x.shape) for x in theirs]
