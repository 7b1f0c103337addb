"""RandAugment, TrivialAugment, AutoAugment: who gets what, beside DALI's suites and policies, and in pipeline mode."""

import warnings

import numpy as np
import pytest

import ndd
from ndd.auto_aug import (
    Policy,
    augmentation,
    augmentations as a,
    auto_augment,
    rand_augment,
    select,
    signed_bin,
    trivial_augment,
)

pytestmark = pytest.mark.fast


def marker(number):
    """An augmentation that writes down its number, and the magnitude that it was called with."""

    def mark(data, parameter, note=0):
        marks = np.full((data.batch_size, 3), (number, 0, note), np.float32)
        marks[:, 1] = parameter.numpy()
        return data * 100 + ndd.batch(marks)

    return augmentation(mark, mag_range=(0, 30), randomly_negate=number == 1, name=f"mark {number}")


def zeros(n):
    return ndd.batch(np.zeros((n, 3), np.float32))


# ---- who gets what


def test_rand_augment_draws_each_step_for_each_sample():
    marks = [marker(0), marker(1), marker(2)]
    result = rand_augment.apply_rand_augment(marks, zeros(3000), n=2, m=10, rng=ndd.random.RNG(7), note=3).numpy()
    assert (result[:, 2] == 303).all()
    first, second = result[:, 0] // 100, result[:, 0] % 100
    for k in range(3):
        for j in range(3):
            assert abs(((first == k) & (second == j)).mean() - 1 / 9) < 0.02
    alone = result[second == 1][:, 1] - 100 * np.round(result[second == 1][:, 1] / 100)
    assert set(np.abs(alone).tolist()) == {10.0}  # bin 10 of 31 from 0 to 30
    assert abs((alone < 0).mean() - 0.5) < 0.05
    assert (result[(first != 1) & (second != 1)][:, 1] == 1010).all()


def test_trivial_augment_draws_a_magnitude_for_each_sample():
    result = trivial_augment.apply_trivial_augment([marker(0), marker(2)], zeros(3100), rng=ndd.random.RNG(8)).numpy()
    assert set(result[:, 0].tolist()) == {0.0, 2.0}
    counts = np.bincount(result[:, 1].astype(int), minlength=31)
    assert len(counts) == 31
    assert counts.min() > 50
    assert abs(np.corrcoef(result[:, 0], result[:, 1])[0, 1]) < 0.06


def test_auto_augment_runs_the_steps_of_one_sub_policy():
    zero, first, second = marker(0), marker(1), marker(2)
    policy = Policy("p", 31, [[(first, 0.25, 5)], [(zero, 1.0, 7), (second, 0.5, 30)]])
    result = auto_augment.apply_auto_augment(policy, zeros(4000), rng=ndd.random.RNG(9)).numpy()
    kinds, counts = np.unique(result[:, :2], axis=0, return_counts=True)
    shares = {tuple(k): c / 4000 for k, c in zip(kinds.tolist(), counts.tolist(), strict=True)}
    expected = {(0, 0): 0.375, (1, 5): 0.0625, (1, -5): 0.0625, (0, 7): 0.25, (2, 730): 0.25}
    assert shares.keys() == expected.keys()
    for key, share in expected.items():
        assert abs(shares[key] - share) < 0.03, key


def test_the_same_generator_decides_the_same_whatever_the_batch_device_and_mode():
    images = ndd.batch(np.random.default_rng(0).integers(0, 256, (12, 9, 8, 3), np.uint8), layout="HWC")
    arguments = {"n": 2, "m": 17}
    result = rand_augment.rand_augment(images, **arguments, rng=ndd.random.RNG(4)).numpy()
    some = rand_augment.rand_augment(images.select(slice(0, 5)), **arguments, rng=ndd.random.RNG(4)).numpy()
    assert (result[:5] == some).all()
    assert (result != rand_augment.rand_augment(images, **arguments, rng=ndd.random.RNG(5)).numpy()).any()
    assert (result == rand_augment.rand_augment(images, **arguments, seed=4).numpy()).all()
    with ndd.EvalMode.deferred:
        later = rand_augment.rand_augment(images, **arguments, rng=ndd.random.RNG(4))
    assert (result == later.numpy()).all()
    rng, other = ndd.random.RNG(4), ndd.random.RNG(4)
    rand_augment.rand_augment(images, **arguments, rng=rng)
    other.advance(7)
    assert rng.state == other.state
    ndd.random.set_seed(4)
    assert (result == rand_augment.rand_augment(images, **arguments).numpy()).all()


def test_a_gpu_decides_the_same_with_few_launches(emulated_gpu):
    random = np.random.default_rng(1)
    images = [random.integers(0, 256, (9 + i % 3, 8, 3), np.uint8) for i in range(40)]
    batch = ndd.batch(images, layout="HWC")
    shapes = ndd.batch([np.array(i.shape) for i in images])
    wanted = auto_augment.auto_augment(batch, "svhn", shape=shapes, rng=ndd.random.RNG(4))
    before = len(emulated_gpu.launches)
    result = auto_augment.auto_augment(batch.gpu(), "svhn", shape=shapes, rng=ndd.random.RNG(4)).evaluate()
    assert len(emulated_gpu.launches) - before <= 6  # counts, tables, pixels, for each of two steps
    assert result.device.device_type == "gpu"
    for x, y in zip(result.cpu().tensors, wanted.tensors, strict=True):
        assert np.abs(np.asarray(x).astype(int) - np.asarray(y)).max() <= 1


def test_augmentations_of_ones_own_beside_those_that_are_done_together():
    random = np.random.default_rng(6)
    images = [random.integers(0, 256, (6 + i % 3, 7, 3), np.uint8) for i in range(30)]
    shapes = ndd.batch([np.array(i.shape) for i in images])
    sizes = []

    @augmentation(mag_range=(1, 5))
    def lighter(data, by, shape):
        sizes.append((data.batch_size, shape.batch_size, by.batch_size))
        return ndd.brightness(data, brightness_shift=by / 255)

    suite = [lighter, a.invert, a.translate_x, a.rotate]
    result = trivial_augment.apply_trivial_augment(
        suite, ndd.batch(images, layout="HWC"), 5, rng=ndd.random.RNG(8), shape=shapes, fill_value=0
    )
    draws = ndd.random.uniform(range=(0, 1), shape=[3], batch_size=30, rng=ndd.random.RNG(8)).numpy()
    which, bins, negative = (draws[:, 0] * 4).astype(int), (draws[:, 1] * 5).astype(int), draws[:, 2] < 0.5
    assert sizes == [((which == 0).sum(),) * 3]  # called once
    for i, image in enumerate(images):
        alone = ndd.batch([image], layout="HWC")
        signed = signed_bin(ndd.batch([bins[i]]), ndd.batch([int(negative[i])]))
        arguments = {
            "magnitude_bin": signed,
            "num_magnitude_bins": 5,
            "shape": ndd.batch([np.array(image.shape)]),
            "fill_value": 0,
        }
        assert (np.asarray(result.select(i)) == np.asarray(suite[which[i]](alone, **arguments).select(0))).all(), suite[
            which[i]
        ].name


def test_order_sources_layout_and_single_samples_stay():
    random = np.random.default_rng(2)
    images = [random.integers(0, 256, (1 + i, 7, 3), np.uint8) for i in range(20)]
    batch = ndd.batch(images, layout="HWC")
    result = trivial_augment.trivial_augment_wide(batch, rng=ndd.random.RNG(1))
    assert result.shape == [i.shape for i in images]
    assert result.layout == "HWC"
    assert (result.dtype, result.ndim, result.batch_size) == (ndd.uint8, 3, 20)
    item = ndd.tensor(images[4], layout="HWC")
    assert isinstance(trivial_augment.trivial_augment_wide(item), ndd.Tensor)
    video = ndd.batch([random.integers(0, 256, (2, 5, 6, 3), np.uint8)] * 3, layout="FHWC")
    assert rand_augment.rand_augment(video, 3, 30).shape == [(2, 5, 6, 3)] * 3
    assert rand_augment.rand_augment(batch.select([]), 2, 3).batch_size == 0
    plain = rand_augment.rand_augment(images * 3, 2, 9)  # arrays, and without a layout: HWC by rank
    assert plain.layout == "HWC"
    assert plain.shape == [i.shape for i in images] * 3
    same = rand_augment.apply_rand_augment([a.identity, a.identity.augmentation()], batch, 3, 0)
    for x, y in zip(same.tensors, images, strict=True):
        assert (np.asarray(x) == y).all()


def test_samples_keep_their_sources(tmp_path):
    import cv2

    for i in range(6):
        cv2.imwrite(str(tmp_path / f"{i}.png"), np.full((4, 5, 3), 40 * i, np.uint8))
    reader = ndd.readers.File(files=[str(tmp_path / f"{i}.png") for i in range(6)])
    files, _ = reader(batch_size=6)
    images = ndd.decoders.image(files)
    result = trivial_augment.trivial_augment_wide(images, rng=ndd.random.RNG(3))
    assert [t.source_info for t in result.tensors] == [t.source_info for t in images.tensors]

    @augmentation
    def picky(data, _):
        return ndd.rotate(data, angle=1, size=[-1, 1])

    with pytest.raises(RuntimeError, match="rotate"):
        rand_augment.apply_rand_augment([picky, a.invert], images, 1, 0, rng=ndd.random.RNG(3)).evaluate()


# ---- suites and policies are DALI's


@pytest.fixture(scope="module")
def dali_auto_aug():
    pytest.importorskip("nvidia.dali")
    import nvidia.dali.auto_aug as package
    from nvidia.dali.auto_aug import auto_augment, rand_augment, trivial_augment  # noqa: F401

    return package


def described(x):
    parameter = None if x.mag_range is None else [np.array(x.mag_to_param(np.float32(m))) for m in (0.25, 3.75)]
    return x.name, None if x.mag_range is None else tuple(map(float, x.mag_range)), bool(x.randomly_negate), parameter


def same(own, their):
    (*item, parameter), (*other, theirs) = described(own), described(their)
    assert item == other
    assert (parameter is None) == (theirs is None)
    for p, q in zip(parameter or (), theirs or (), strict=True):
        assert p.shape == q.shape
        assert np.allclose(p, q)


@pytest.mark.oracle
def test_suites_are_those_of_dali(dali_auto_aug):
    for module, name in (
        ("rand_augment", "get_rand_augment_suite"),
        ("rand_augment", "get_rand_augment_non_monotonic_suite"),
        ("trivial_augment", "get_trivial_augment_wide_suite"),
    ):
        for arguments in ((), (True,), (False, 12), (False, (10, 20)), (True, None, 0.3), (True, None, (0.1, 0.7))):
            own, their = (
                getattr(getattr(package, module), name)(*arguments) for package in (ndd.auto_aug, dali_auto_aug)
            )
            assert len(own) == len(their) == 14
            for x, y in zip(own, their, strict=True):
                same(x, y)


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["image_net", "reduced_image_net", "svhn", "reduced_cifar10"])
def test_policies_are_those_of_dali(dali_auto_aug, name):
    for arguments in ((),) if name == "reduced_image_net" else ((), (True, None, (0.3, 0.4)), (False, 9)):
        own, their = (
            getattr(package.auto_augment, f"get_{name}_policy")(*arguments) for package in (ndd.auto_aug, dali_auto_aug)
        )
        assert own.name == their.name
        assert own.num_magnitude_bins == their.num_magnitude_bins
        assert list(own.augmentations) == list(their.augmentations)
        for x, y in zip(own.sub_policies, their.sub_policies, strict=True):
            assert [(s[0].name, *s[1:]) for s in x] == [(s[0].name, *s[1:]) for s in y]
        for x, y in zip(own.augmentations.values(), their.augmentations.values(), strict=True):
            same(x, y)


DEFINED = [f"nvidia.dali.auto_aug.core.{m}" for m in ("_augmentation", "_select", "decorator", "policy")]


@pytest.mark.oracle
def test_signatures_are_those_of_dali(dali_auto_aug):
    """And every augmentation takes what DALI's does."""
    import importlib
    import inspect

    from nvidia.dali.auto_aug import augmentations, core

    assert importlib.import_module("ndd.auto_aug.core") is ndd.auto_aug.core  # DALI's name, with the import changed
    modules = ("auto_augment", "rand_augment", "trivial_augment")
    rooms = [(getattr(ndd.auto_aug, m), getattr(dali_auto_aug, m), None) for m in modules]
    rooms += [(ndd.auto_aug.core, core, core.__all__), (a, augmentations, None)]
    count = 0
    for own, their, names in rooms:
        for name, theirs in vars(their).items():
            if name not in (names or vars(their)) or getattr(theirs, "__module__", "") not in (
                their.__name__,
                *DEFINED,
            ):
                continue
            if names is None and (name.startswith("_") or theirs is core.signed_bin or theirs is core.augmentation):
                continue
            ours = getattr(own, name)
            if not isinstance(theirs, type):
                theirs, ours = getattr(theirs, "op", theirs), getattr(ours, "op", ours)
            expected, result = inspect.signature(theirs).parameters, inspect.signature(ours).parameters
            known = {k: p.default for k, p in result.items()}
            for k, p in expected.items():
                assert k in known, f"{name}: {k}"
                assert known[k] == p.default or getattr(known[k], "name", 0) == getattr(p.default, "name", 1), (
                    f"{name}: {k}"
                )
            assert [k for k in known if k in expected] == list(expected), name
            count += 1
    assert count >= 37, count


# ---- pipeline mode


def test_a_pipeline_written_for_dali():
    random = np.random.default_rng(3)
    images = [random.integers(0, 256, (8 + i, 9, 3), np.uint8) for i in range(6)]
    fn, types = ndd.fn, ndd.types

    @augmentation(mag_range=(0, 60), randomly_negate=True)
    def turn(data, angle, fill_value=128):
        return fn.rotate(data, angle=angle, fill_value=fill_value, keep_size=True)

    @ndd.pipeline_def(batch_size=6, num_threads=1, enable_conditionals=True, seed=5)
    def pipe(scheme):
        data = fn.external_source(source=lambda: images, layout="HWC")
        shapes = data.shape()
        if scheme == "rand":
            return rand_augment.rand_augment(data, n=2, m=17, shape=shapes, fill_value=None)
        if scheme == "trivial":
            return trivial_augment.trivial_augment_wide(data, interp_type=types.INTERP_NN)
        if scheme == "auto":
            return auto_augment.auto_augment(data, "image_net", shape=shapes), fn.cast(data, dtype=types.FLOAT)
        return rand_augment.apply_rand_augment([turn, a.identity, a.rotate], data, 2, 3, fill_value=0)

    for scheme in ("rand", "trivial", "auto", "own"):
        (first, *_), (again, *_) = pipe(scheme).run(), pipe(scheme).run()
        result = pipe(scheme)
        runs = [np.array(result.run()[0].at(3)) for _ in range(6)]
        assert any((r != runs[0]).any() for r in runs[1:]), scheme
        assert [np.array(first.at(i)).shape for i in range(6)] == [i.shape for i in images]
        assert first.layout() == "HWC"
        assert all((np.array(first.at(i)) == np.array(again.at(i))).all() for i in range(6)), scheme


def test_augmentations_and_select_in_a_pipeline():
    images = [np.full((4, 5, 3), 10 * i, np.uint8) for i in range(8)]
    fn = ndd.fn

    @ndd.pipeline_def(batch_size=8, num_threads=1)
    def pipe():
        data = fn.external_source(source=lambda: images, layout="HWC")
        which = fn.external_source(source=lambda: [np.int32(i % 3) for i in range(8)])
        bins = signed_bin(which * 2)
        turned = a.rotate(data, magnitude_bin=bins, num_magnitude_bins=5)
        inverted = a.invert(data)
        mixed = select([a.identity, a.invert, lambda x: fn.brightness(x, brightness=0)], which, data)
        return turned, inverted, mixed, bins.random_sign

    turned, inverted, mixed, signs = pipe().run()
    for i in range(8):
        assert (np.array(inverted.at(i)) == 255 - images[i]).all()
        assert (np.array(mixed.at(i)) == [images[i], 255 - images[i], 0 * images[i]][i % 3]).all()
    assert set(np.array(signs.as_array()).ravel().tolist()) <= {0, 1}
    assert (np.array(turned.at(3)) == images[3]).all()  # bin 0


def test_own_augmentations_of_a_pipeline_get_a_parameter_for_each_of_their_samples():
    images = [np.full((4, 5, 3), 10 * i, np.uint8) for i in range(8)]
    fn, types = ndd.fn, ndd.types

    @augmentation(mag_range=(0, 20), mag_to_param=lambda m: np.array([m, 2 * m], np.int32))
    def lighter(data, parameter):
        return fn.cast(data + fn.cast(parameter, dtype=types.UINT8)[1], dtype=types.UINT8)

    @ndd.pipeline_def(batch_size=8, num_threads=1, seed=3)
    def pipe():
        data = fn.external_source(source=lambda: images, layout="HWC")
        alone = lighter(data, magnitude_bin=1, num_magnitude_bins=3)
        return alone, rand_augment.apply_rand_augment([lighter, a.invert], data, n=1, m=1, num_magnitude_bins=3)

    alone, drawn = pipe().run()
    assert all((np.array(alone.at(i)) == images[i] + 20).all() for i in range(8))
    kinds = ["lighter" if (np.array(drawn.at(i)) == images[i] + 20).all() else "inverted" for i in range(8)]
    assert set(kinds) == {"lighter", "inverted"}
    assert all((np.array(drawn.at(i)) == 255 - images[i]).all() for i in range(8) if kinds[i] == "inverted")


def test_a_pipeline_of_recorded_steps():
    """`with pipe:` records steps: a scheme is one of them."""
    images = [np.full((4, 5, 3), 10 * i, np.uint8) for i in range(8)]
    pipe = ndd.Pipeline(batch_size=8, num_threads=1)
    with pipe:
        data = ndd.fn.external_source(source=lambda: images, layout="HWC")
        shapes = data.shape()
        item = rand_augment.apply_rand_augment([a.invert], data, 1, 0)
        pipe.set_outputs(
            item,
            rand_augment.rand_augment(data, 2, 9, shape=shapes),
            a.posterize(data, magnitude_bin=0, num_magnitude_bins=2),
        )
    for _ in range(2):
        inverted, augmented, posterized = pipe.run()
        assert (np.array(inverted.at(2)) == 235).all()
        assert np.array(augmented.at(2)).shape == (4, 5, 3)
        assert (np.array(posterized.at(2)) == 0).all()


# ---- augmentations of one's own


def test_an_augmentation_gets_the_parameters_of_its_samples():
    seen = []

    @augmentation(mag_range=(0, 10), mag_to_param=lambda m: [m, 1], randomly_negate=True)
    def own(data, parameter, shape, *, extra=1):
        seen.append((parameter.numpy().tolist(), extra))
        return data

    data = zeros(4)
    signed = signed_bin(ndd.batch([0, 1, 2, 5]), random_sign=ndd.batch([0, 1, 1, 0]))
    own(data, magnitude_bin=signed, num_magnitude_bins=6, shape=3, extra=2, other=5)
    assert seen == [([[0, 1], [-2, 1], [-4, 1], [10, 1]], 2)]
    again = own.augmentation(mag_range=np.array([1.0, 5.0]), randomly_negate=False, mag_to_param=None, name="again")
    again(data, magnitude_bin=signed_bin(1, ndd.batch([1] * 4)), shape=3)
    assert seen[1] == (5.0, 1)
    assert (again.name, own.name, again.op) == ("again", "own", own.op)
    assert repr(own).startswith("Augmentation(<function")
    assert "randomly_negate=True" in repr(own)
    with pytest.warns(UserWarning, match="without a sign"):
        own(data, magnitude_bin=5, num_magnitude_bins=6, shape=1)
    assert {abs(p[0]) for p in seen[2][0]} == {10.0}


def test_a_class_of_ones_own():
    class Loud(ndd.auto_aug.Augmentation):
        pass

    @augmentation(augmentation_cls=Loud)
    def own(data, _):
        return data

    assert type(own) is Loud
    assert type(own.augmentation(name="x")) is Loud


def test_parameters_are_on_the_device_that_was_asked_for(emulated_gpu):
    places = []

    def own(data, parameter):
        places.append(parameter.device.device_type)
        return data

    data = zeros(2)
    for asked in ("cpu", "gpu", "auto"):
        result = augmentation(own, mag_range=(0, 1), param_device=asked)
        for x in (data, data.gpu()):
            result(x, magnitude_bin=ndd.batch([0, 1]), num_magnitude_bins=2)
    assert places == ["cpu", "cpu", "gpu", "gpu", "cpu", "gpu"]


# ---- errors are sentences


def raises(kind, text, call):
    with pytest.raises(kind, match=text):
        call()


def test_errors_of_schemes():
    images = ndd.batch(np.zeros((2, 4, 4, 3), np.uint8), layout="HWC")
    apply_rand, apply_trivial = rand_augment.apply_rand_augment, trivial_augment.apply_trivial_augment
    raises(ValueError, "`n` is to be an integer from 0, got -1", lambda: rand_augment.rand_augment(images, -1, 3))
    raises(ValueError, "`m` is to be an integer from 0 to 30, got 31", lambda: rand_augment.rand_augment(images, 1, 31))
    raises(ValueError, "positive integer, got 0", lambda: rand_augment.rand_augment(images, 1, 0, 0))
    raises(ValueError, "is empty", lambda: apply_rand([], images, 1, 0))
    raises(ValueError, "is empty", lambda: apply_trivial([], images))
    raises(TypeError, "no augmentation takes `bogus`", lambda: apply_trivial([a.invert], images, bogus=1))
    raises(
        ValueError,
        "excluded: expected some of .*, got `flip`",
        lambda: trivial_augment.trivial_augment_wide(images, excluded=["flip"]),
    )
    raises(ValueError, "one of `image_net`", lambda: auto_augment.auto_augment(images, "imagenet"))
    raises(
        ValueError, "`shape` says nothing", lambda: auto_augment.auto_augment(images, "reduced_image_net", shape=(4, 4))
    )
    raises(ValueError, "`max_translate_rel`", lambda: rand_augment.rand_augment(images, 1, 0, max_translate_rel=0.5))
    raises(
        ValueError,
        "`max_translate_abs`",
        lambda: rand_augment.rand_augment(images, 1, 0, shape=(4, 4), max_translate_abs=5),
    )
    raises(TypeError, "True or False, got 1", lambda: rand_augment.get_rand_augment_suite(1))
    raises(ValueError, "needs the shape of the images", lambda: apply_rand([a.translate_x], images, 1, 0))
    raises(RuntimeError, "expected uint8 images", lambda: rand_augment.rand_augment(zeros(2), 1, 0))
    raises(
        ValueError, "exclude each other", lambda: rand_augment.rand_augment(images, 1, 0, seed=1, rng=ndd.random.RNG(1))
    )
    raises(ValueError, "no sub-policies", lambda: auto_augment.apply_auto_augment(Policy("p", 1, []), images))
    cubic = ndd.types.INTERP_CUBIC
    raises(RuntimeError, "nearest and linear", lambda: rand_augment.rand_augment(images, 1, 0, interp_type=cubic))
    with pytest.warns(UserWarning, match="n=0"):
        assert rand_augment.rand_augment(images, 0, 3) is images
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        suite = [x.name for x in rand_augment.get_rand_augment_suite()]
        rand_augment.rand_augment(images, 1, 0, excluded=[x for x in suite if x != "invert" and x != "equalize"])


def test_errors_of_augmentations():
    images = ndd.batch(np.zeros((2, 4, 4, 3), np.uint8), layout="HWC")
    raises(TypeError, "decorates a function, got 3", lambda: augmentation(3))
    raises(TypeError, r"already|got the augmentation `invert`", lambda: augmentation(a.invert))
    raises(TypeError, "takes 1 positional", lambda: augmentation(lambda data: data))
    raises(
        TypeError,
        "needs `shape`",
        lambda: a.translate_x(images, magnitude_bin=signed_bin(0, ndd.batch([0, 0])), num_magnitude_bins=2),
    )
    raises(ValueError, "needs `magnitude_bin`", lambda: a.posterize(images, num_magnitude_bins=2))
    raises(ValueError, "needs `num_magnitude_bins`", lambda: a.posterize(images, magnitude_bin=1))
    raises(ValueError, "bins 0 to 1", lambda: a.posterize(images, magnitude_bin=2, num_magnitude_bins=2))
    uneven = augmentation(
        lambda data, p: data, mag_range=(0, 1), mag_to_param=lambda m: [m] * int(1 + m), name="uneven"
    )
    raises(ValueError, "arrays of one type and shape", lambda: uneven(images, magnitude_bin=0, num_magnitude_bins=2))
    listed = augmentation(lambda data, p: data, mag_range=np.arange(3.0), name="listed")
    raises(ValueError, "3 magnitudes", lambda: listed(images, magnitude_bin=0, num_magnitude_bins=2))
    bad = augmentation(lambda data, p: data, mag_range=(1, 2, 3), name="bad")
    raises(ValueError, r"\(low, high\)", lambda: bad(images, magnitude_bin=0, num_magnitude_bins=2))
    raises(TypeError, "an integer or a batch", lambda: signed_bin("1"))
    raises(ValueError, "`random_sign` is given", lambda: signed_bin(1, ndd.batch([0]), seed=2))
    raises(ValueError, "`batch_size=`", lambda: signed_bin(1))
    raises(IndexError, "index 2 of 2", lambda: select([a.invert, a.identity], ndd.batch([0, 2]), images))
    shrink = augmentation(lambda data, p: ndd.cast(data, dtype=ndd.float32), name="shrink")
    raises(ValueError, "can be joined", lambda: select([a.invert, shrink], ndd.batch([0, 1]), images))


def test_errors_of_policies():
    raises(ValueError, "positive integer, got 0", lambda: Policy("p", 0, []))
    raises(TypeError, "a list or a tuple, got int", lambda: Policy("p", 1, 3))
    raises(TypeError, "sub-policy is to be", lambda: Policy("p", 1, [a.invert]))
    raises(TypeError, r"is \(augmentation", lambda: Policy("p", 1, [[(a.invert, 1)]]))
    raises(TypeError, "decorate it", lambda: Policy("p", 1, [[(len, 1, None)]]))
    raises(ValueError, "probability from 0 to 1, got 2", lambda: Policy("p", 1, [[(a.invert, 2, None)]]))
    raises(ValueError, "needs a magnitude bin", lambda: Policy("p", 1, [[(a.rotate, 1, None)]]))
    raises(ValueError, "from 0 to 4, got 5", lambda: Policy("p", 5, [[(a.rotate, 1, 5)]]))
    with pytest.warns(UserWarning, match="probability 0"):
        Policy("p", 1, [[(a.invert, 0, None)]])
    with pytest.warns(UserWarning, match="says nothing"):
        Policy("p", 1, [[(a.invert, 0.5, 0)]])
    both = Policy("p", 2, [[(a.rotate, 1, 0), (a.rotate.augmentation((0, 5)), 1, 1)]])
    assert list(both.augmentations) == ["0__rotate", "1__rotate"]
    assert "num_magnitude_bins=2" in repr(both)
