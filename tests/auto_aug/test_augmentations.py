"""The augmentations at every magnitude, beside DALI's pipeline; on a GPU as on the CPU."""

import numpy as np
import pytest

import ndd
from ndd.auto_aug import augmentations, auto_augment, rand_augment, signed_bin, trivial_augment

BINS = 11
EACH_BIN = np.repeat(np.arange(BINS), 2).astype(np.int32)  # as it is, and negated
SIGNS = np.tile([0, 1], BINS).astype(np.int32)
SUITES = {
    "rand_augment": lambda rand, trivial, auto: rand.get_rand_augment_suite(),
    "of a shape": lambda rand, trivial, auto: rand.get_rand_augment_non_monotonic_suite(True, None, (0.3, 0.6)),
    "trivial_augment": lambda rand, trivial, auto: trivial.get_trivial_augment_wide_suite(),
    "image_net": lambda rand, trivial, auto: list(auto.get_image_net_policy().augmentations.values()),
    "cifar10": lambda rand, trivial, auto: list(auto.get_reduced_cifar10_policy(False, 9).augmentations.values()),
}


def suite(name):
    return SUITES[name](rand_augment, trivial_augment, auto_augment)


def pictures(n=2 * BINS, frames=None, seed=0):
    """Smooth pictures of different sizes, of different ranges of values."""
    import cv2

    random = np.random.default_rng(seed)
    result = []
    for i in range(n):
        noise = random.integers(0, 256, (frames or 1, 12 + i % 5, 17 + i % 3, 3), np.uint8)
        soft = np.stack([cv2.GaussianBlur(f, (0, 0), 1.0) for f in noise]).astype(np.float32)
        picture = np.clip(soft * random.uniform(0.5, 2) + random.integers(-60, 60), 0, 255).astype(np.uint8)
        result.append(picture if frames else picture[0])
    result[-1][...] = 77  # of a single value
    result[0][..., 0] = 9
    return result


@pytest.fixture(scope="module")
def dali_modules():
    pytest.importorskip("nvidia.dali")
    from nvidia.dali.auto_aug import auto_augment, rand_augment, trivial_augment

    return rand_augment, trivial_augment, auto_augment


def of_dali(augmentations, images, layout):
    """What DALI's augmentations make of images with all bins and signs."""
    from nvidia.dali import fn, pipeline_def
    from nvidia.dali.auto_aug.core import signed_bin as signed_bin_of_dali

    axes = [i for i, c in enumerate(layout) if c in "HW"]
    shapes = [np.array([im.shape[a] for a in axes], np.int64) for im in images]

    @pipeline_def(batch_size=len(images), num_threads=1, device_id=None, prefetch_queue_depth=1)
    def pipe():
        x, bins, signs, shape = fn.external_source(
            source=lambda: (images, list(EACH_BIN), list(SIGNS), shapes),
            num_outputs=4,
            layout=[layout, None, None, None],
        )
        signed = signed_bin_of_dali(bins, signs)
        named = {"num_magnitude_bins": BINS, "shape": shape, "fill_value": 128}
        return tuple(a(x, magnitude_bin=signed, **named) for a in augmentations)

    return [[np.array(out.at(i)) for i in range(len(images))] for out in pipe().run()], shapes


def of_ndd(augmentation, batch, shapes):
    signed = signed_bin(ndd.batch(EACH_BIN), ndd.batch(SIGNS))
    named = {"num_magnitude_bins": BINS, "shape": ndd.batch(shapes), "fill_value": 128}
    return augmentation(batch, magnitude_bin=signed, **named)


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SUITES)
@pytest.mark.drawn(1)
def test_every_magnitude_is_as_in_dali(dali_modules, name):
    images = pictures()
    theirs = SUITES[name](*dali_modules)
    expected, shapes = of_dali(theirs, images, "HWC")
    batch = ndd.batch(images, layout="HWC")
    for own, their, wanted in zip(suite(name), theirs, expected, strict=True):
        assert own.name == their.name
        result = of_ndd(own, batch, shapes)
        assert result.dtype == ndd.uint8
        assert result.layout == "HWC"
        compare(own.name, result, wanted)


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
def test_videos_are_as_in_dali(dali_modules):
    """One decision for a video; means and counts are those of each frame."""
    images = pictures(frames=2)
    expected, shapes = of_dali(SUITES["rand_augment"](*dali_modules), images, "FHWC")
    batch = ndd.batch(images, layout="FHWC")
    for own, wanted in zip(suite("rand_augment"), expected, strict=True):
        compare(own.name, of_ndd(own, batch, shapes), wanted)


def compare(name, result, expected):
    for i, (a, b) in enumerate(zip(result.tensors, expected, strict=True)):
        apart = np.abs(np.asarray(a).astype(int) - b.astype(int))
        most, share = (1, 0.002) if name == "rotate" else (0, 0)  # a cosine's last bit
        assert apart.max() <= most, f"{name}, bin {EACH_BIN[i]}, sign {SIGNS[i]}: {apart.max()}"
        assert (apart > 0).mean() <= share, f"{name}, bin {EACH_BIN[i]}, sign {SIGNS[i]}"


@pytest.mark.parametrize("layout", ["HWC", "FHWC"])
@pytest.mark.drawn(1)
def test_a_gpu_gives_the_same(emulated_gpu, layout):
    images = pictures(frames=2 if layout == "FHWC" else None)
    batch = ndd.batch(images, layout=layout)
    shapes = [np.array(im.shape[-3:-1]) for im in images]
    policy = auto_augment.get_image_net_policy().augmentations
    for augmentation in [*rand_augment.get_rand_augment_suite(), policy["invert"], policy["solarize_add"]]:
        before = len(emulated_gpu.launches)
        result = of_ndd(augmentation, batch.gpu(), shapes)
        assert result.device.device_type == "gpu"
        wanted = of_ndd(augmentation, batch, shapes)
        pairs = zip(result.cpu().tensors, wanted.tensors, strict=True)
        apart = np.concatenate([np.asarray(a).ravel().astype(int) - np.asarray(b).ravel() for a, b in pairs])
        assert np.abs(apart).max() <= 1, augmentation.name
        assert (apart != 0).mean() <= 0.01, augmentation.name  # steep edges, small images
        assert len(emulated_gpu.launches) - before <= 3, augmentation.name  # whatever the size of the batch


@pytest.mark.parametrize("device", ["cpu", "gpu"])
@pytest.mark.drawn(1)
def test_without_a_fill_value_the_border_is_repeated(emulated_gpu, device):
    moved = augmentations.translate_x_no_shape.augmentation(mag_range=(3, 3), randomly_negate=False)
    image = pictures(1)[0]
    batch = ndd.batch([image], layout="HWC")
    batch = batch.gpu() if device == "gpu" else batch
    for named, border in (({"fill_value": None}, image[:, :1]), ({"fill_value": 5}, 5), ({}, 128)):
        wanted = np.roll(image, 3, axis=1)
        wanted[:, :3] = border
        for result in (
            moved(batch, magnitude_bin=0, num_magnitude_bins=2, **named),
            rand_augment.apply_rand_augment([moved], batch, n=1, m=0, **named),
        ):
            np.testing.assert_array_equal(np.asarray(result.cpu().select(0)), wanted, err_msg=str(named))


@pytest.mark.long
def test_the_kernels_compile_for_every_gpu(emulated_gpu):
    """The operator `augment` is no name of `ndd`: test_nvrtc.py does not walk it."""
    pytest.importorskip("cupy")
    nvrtc = pytest.importorskip("cupy_backends.cuda.libs.nvrtc")
    from ndd._cuda import compile

    try:
        nvrtc.getVersion()
    except Exception as error:
        pytest.skip(f"NVRTC cannot be loaded: {error}")
    batch = ndd.batch(pictures(2), layout="HWC").gpu()
    suite = {a.name: a for a in rand_augment.get_rand_augment_suite()}
    for name in ("posterize", "contrast", "auto_contrast"):
        suite[name](batch, magnitude_bin=signed_bin(2, ndd.batch([0, 1])), num_magnitude_bins=3).evaluate()
    assert len(emulated_gpu.texts) >= 2
    for text, architecture in zip(emulated_gpu.texts, (75, 120, 90, 80), strict=False):
        assert compile._compiled(text, f"sm_{architecture}")


@pytest.mark.parametrize("channels", [1, 2])
def test_images_without_three_channels(channels):
    image = np.arange(24, dtype=np.uint8).reshape(3, -1, channels)
    batch = ndd.batch([image], layout="HWC")
    suite = {a.name: a for a in rand_augment.get_rand_augment_suite()}
    signed = signed_bin(10, ndd.batch([0]))
    stretched = suite["auto_contrast"](batch, magnitude_bin=signed, num_magnitude_bins=11)
    assert np.asarray(stretched.select(0)).max() == 255
    contrasted = suite["contrast"](batch, magnitude_bin=signed, num_magnitude_bins=11)
    if channels == 1:
        center = image.mean()
        wanted = np.clip(np.round(center + (image - center) * 1.9), 0, 255)
        assert np.abs(np.asarray(contrasted.select(0)) - wanted).max() <= 1
    else:
        with pytest.raises(RuntimeError, match="expected an image of 3 channels"):
            contrasted.evaluate()
