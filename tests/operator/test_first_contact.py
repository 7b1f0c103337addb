"""What a newcomer does in the first hour: errors say what to do, and what runs without meaning it warns once."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from calling import load_every_module
from compare import check_same

import ndd
from ndd._tensor import warn_once as traps

OPERATORS = load_every_module()
PHOTOS = ndd.demo.photos()
TALL, WIDE = np.arange(600, dtype=np.uint8).reshape(20, 10, 3), np.arange(360, dtype=np.uint8).reshape(10, 12, 3)
BATCH = ndd.batch([TALL, WIDE], layout="HWC")


@pytest.fixture(autouse=True)
def _untold():
    """Every test is the first to run into a trap, and its calls are looked up anew."""
    traps._told.clear()
    for name in ("resize", "crop", "flip", "rotate", "one_hot"):
        getattr(ndd, name).operator.forget()


@pytest.fixture
def images():
    return ndd.batch([TALL, WIDE], layout="HWC")


def warned(function, times=3):
    """The texts of the warnings of several calls at one line."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(times):
            actual = function()
            if isinstance(actual, ndd.Tensor | ndd.Batch):
                actual.evaluate()
    assert all(w.category is UserWarning and w.filename == __file__ for w in caught)
    return [str(w.message) for w in caught]


# ---- inputs


def test_a_list_of_arrays_is_told_to_be_a_batch():
    with pytest.raises(
        ValueError, match=r"resize: A list of samples whose shapes differ cannot be an array: ndd\.batch"
    ):
        ndd.resize([TALL, WIDE], size=[4, 4])
    (text,) = warned(lambda: ndd.flip([TALL[..., 0], TALL[..., 1]]))
    assert "flip: a list of arrays is taken as one array, not as a batch. ndd.batch" in text


def test_encoded_bytes_are_taken():
    cat, coffee = (Path(f"{PHOTOS}/{name}.jpg").read_bytes() for name in ("nature/cat", "things/coffee"))
    item = ndd.decoders.image(cat)
    several = ndd.decoders.image([cat, coffee])
    assert isinstance(item, ndd.Tensor)
    assert isinstance(several, ndd.Batch)
    np.testing.assert_array_equal(several.select(0).numpy(), item.numpy())
    assert ndd.decoders.image(ndd.batch([cat])).shape[0] == item.shape == (266, 400, 3)
    assert ndd.tensor(b"ab").numpy().tolist() == [97, 98]
    with pytest.raises(RuntimeError, match=r"image: Cannot make a tensor of str.* ndd\.io\.file\.read reads the files"):
        ndd.decoders.image("nature/cat.jpg")


def test_paths_are_taken(tmp_path):
    for name in "ab":
        (tmp_path / name).write_text(name * 3)
    item = ndd.io.file.read(str(tmp_path / "a"))
    assert (item.numpy().tobytes(), item.source_info) == (b"aaa", str(tmp_path / "a"))
    several = ndd.io.file.read([tmp_path / "a", str(tmp_path / "b")])
    assert [s.numpy().tobytes() for s in several] == [b"aaa", b"bbb"]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: ndd.stack([BATCH, BATCH]), TypeError, r"list of Batch: .* one by one, as in ndd\.stack\(a, b\)"),
        (lambda: ndd.decoders.image(["a.jpg"]), RuntimeError, r"a tensor of list of str: .* ndd\.io\.file\.read"),
        (lambda: ndd.tensor([TALL, None]), ValueError, "A list that contains None cannot be an array"),
        (lambda: ndd.tensor(TALL)[None], ValueError, r"got None\. ndd\.expand_dims makes a new axis"),
        (lambda: ndd.resize(BATCH, size="big"), ValueError, "'size': expected numbers, got 'big'"),
        (lambda: ndd.flip(BATCH, horizontal="yes"), ValueError, "'horizontal': expected an integer, got 'yes'"),
        (lambda: ndd.rotate(BATCH, angle="right"), ValueError, "'angle': expected a number, got 'right'"),
        (lambda: BATCH.mean(), AttributeError, r"'Batch' object has no attribute 'mean': \.torch\(\) gives"),
        (lambda: BATCH.no_such_name, AttributeError, "'Batch' object has no attribute 'no_such_name'$"),
        (lambda: ndd.readers.File("photos"), ValueError, r"got 'photos', the first argument; .* file_root="),
    ],
)
def test_an_error_says_what_to_do(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_texts_are_no_elements():
    with pytest.raises(RuntimeError, match=r"`names\.index\(text\)` numbers texts"):
        ndd.batch(["cat", "dog"])


@pytest.mark.parametrize("path", sorted(p for p, op in OPERATORS.items() if op.layouts))
def test_docstrings_name_the_error_for_a_layout(path):
    document = OPERATORS[path].function.__doc__
    assert "ValueError" in document
    if OPERATORS[path].masks:
        assert "HW" in document


MASKS = {
    "resize": {"size": [4, 5]}, "resize_crop_mirror": {"size": [8, 9], "crop": [4, 5]}, "crop": {"crop": [4, 5]},
    "random_resized_crop": {"size": [4, 5]}, "crop_mirror_normalize": {"mean": [3], "pad_output": True},
    "rotate": {"angle": 10.0}, "warp_affine": {"matrix": [1, 0, 3, 0, 1, 0]}, "paste": {"ratio": 2, "fill_value": [7]},
    "jitter": {}, "water": {}, "sphere": {}, "brightness": {"brightness": 0.5}, "contrast": {"contrast": 0.5},
    "color_jitter": {"brightness": 0.5}, "brightness_contrast": {"contrast": 0.5},
    "experimental.resize": {"size": [4, 5]}, "experimental.remap": None,
}  # fmt: skip


@pytest.mark.parametrize(
    "path", sorted(p for p, op in OPERATORS.items() if op.masks and "old name" not in op.function.__doc__)
)
@pytest.mark.drawn(4)
def test_a_mask_is_an_image_of_one_channel(path):
    function = ndd
    for part in path.split("."):
        function = getattr(function, part)
    options, maps = MASKS[path], ()
    if options is None:
        options = {}
        maps = tuple(np.broadcast_to(np.array(v, np.float32), (6, 5)) for v in (np.arange(5), np.arange(6)[:, None]))
    planes = [TALL[..., 0], WIDE[..., 1]]

    def result(values):
        more = {"rng": ndd.random.RNG(3)} if function.operator.random else {}
        return function(values, *maps, **options, **more)

    for layout in (None, "HW"):
        expected = result(ndd.batch([p[..., None] for p in planes], layout="HWC"))
        channel = expected.layout.index("C")
        actual = result(ndd.batch(planes, layout=layout))
        assert (actual.layout, actual.dtype) == ("HW", expected.dtype)
        for a, b in zip(actual, expected, strict=True):
            np.testing.assert_array_equal(a.numpy(), b.numpy().squeeze(channel))
    assert isinstance(result(planes[0]), ndd.Tensor)


@pytest.mark.oracle
def test_a_mask_of_a_type_that_is_not_taken(dali):
    """DALI says no to masks first, and so with a ValueError."""
    for m in (ndd, dali):
        with pytest.raises(ValueError):
            m.resize(np.zeros((4, 5)), size=[2, 2])
    with pytest.raises(ValueError, match="Unsupported input type: f64"):
        ndd.resize(ndd.zeros(shape=(4, 5), dtype=ndd.float64), size=[2, 2])


def test_a_mask_on_the_gpu(emulated_gpu):
    actual = ndd.rotate(ndd.batch([TALL[..., 0], WIDE[..., 0]]).gpu(), angle=90)
    assert (actual.layout, actual.device.device_type, actual.shape) == ("HW", "gpu", [(10, 20), (12, 10)])
    np.testing.assert_array_equal(actual.select(0).numpy(), np.rot90(TALL[..., 0]))


def test_a_mask_that_the_user_changes_after_the_call():
    mask = np.zeros((4, 4), np.uint8)
    actual = ndd.crop(ndd.as_tensor(mask), crop=[2, 2])
    mask[...] = 9
    assert actual.numpy().tolist() == [[0, 0], [0, 0]]


# ---- arguments


def test_a_list_for_an_argument_of_samples_is_told_to_be_a_batch(images):
    for name, call in {
        "angle": lambda v: ndd.rotate(images, angle=v),
        "resize_x": lambda v: ndd.resize(images, resize_x=v),
    }.items():
        with pytest.raises(
            RuntimeError, match=rf"argument '{name}': expected one value .*\[10, 20\]. Wrap it in ndd\.batch"
        ):
            call([10, 20])
        with pytest.raises(RuntimeError, match=rf"argument '{name}': .* Wrap it in ndd\.batch"):
            call(np.array([10, 20])).evaluate()
    with pytest.raises(ValueError, match=r"argument 'size': expected numbers, got \[\[4, 4\], \[5\]\].* ndd\.batch"):
        ndd.resize(images, size=[[4, 4], [5]])


def test_a_list_of_batches_for_an_argument_is_told_to_be_stacked(images):
    side = ndd.batch([4.0] * images.batch_size)
    with pytest.raises(ValueError, match=r"crop: argument 'crop': .* ndd\.stack\(a, b\)"):
        ndd.crop(images, crop=[side, side])


def test_misspelt_arguments(images):
    with pytest.raises(TypeError, match=r"resize\(\) got an unexpected keyword argument 'sise': did you mean 'size'\?"):
        ndd.resize(images, sise=[4, 4])
    with pytest.raises(TypeError, match="did you mean 'batch_size'"):
        ndd.random.uniform(batchsize=3)
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'zzz'$"):
        ndd.resize(images, zzz=1)
    with pytest.raises(TypeError, match="takes its input 'shape_like' by position"):
        ndd.random.uniform(shape_like=images)
    with pytest.raises(TypeError, match="'file_rot': did you mean 'file_root'"):
        ndd.readers.File(file_rot="x")


def test_batch_sizes_that_differ_name_who_has_which(images):
    with pytest.raises(
        ValueError, match=r"rotate: Inconsistent batch size: 3 != 2: input 0 has 2 .*, argument 'angle' has 3"
    ):
        ndd.rotate(images, angle=ndd.batch([1, 2, 3]))
    with pytest.raises(ValueError, match=r"add: Inconsistent .*: input 0 has 2 samples, input 1 has 3 samples"):
        images + ndd.batch([1, 2, 3])


def test_enumerations_list_their_members(images):
    with pytest.raises(
        ValueError, match=r"expected one of ndd\.types\.INTERP_NN, .*INTERP_GAUSSIAN.*, got the text 'linear'"
    ):
        ndd.resize(images, size=[4, 4], interp_type="linear")


@pytest.mark.oracle
@pytest.mark.parametrize(
    "call",
    [
        lambda m, x: m.resize(x, size=[4, 4], interp_type=9),
        lambda m, x: m.resize(x, size=[4, 4], min_filter=9),
        lambda m, x: m.rotate(x, angle=30, interp_type=9),
        lambda m, x: m.color_space_conversion(x, image_type=0, output_type=9),
    ],
)
def test_a_number_that_no_enumeration_has(dali, call):
    image = np.zeros((8, 8, 3), np.uint8)
    for module in (ndd, dali):
        with module.EvalMode.sync_cpu, pytest.raises(RuntimeError):
            call(module, module.tensor(image, layout="HWC"))
    with pytest.raises(RuntimeError, match=r"resize: argument 'interp_type': expected one of ndd\.types.*, got 9"):
        ndd.resize(ndd.tensor(image, layout="HWC"), size=[4, 4], interp_type=9)


# ---- traps


def test_planes_taken_as_rows(images):
    planes = np.zeros((3, 64, 65), np.uint8)
    (text,) = warned(lambda: ndd.flip(planes))
    assert "flip: an array of shape (3, 64, 65) without a layout is taken as HWC, an image of 65 channels" in text
    assert len(warned(lambda: ndd.flip(ndd.batch([planes]) + 0))) == 1  # not known before it has run
    assert not warned(lambda: ndd.flip(ndd.as_tensor(planes, layout="CHW")))
    assert not warned(lambda: ndd.flip(np.zeros((64, 65, 3), np.uint8)))
    assert not warned(lambda: ndd.flip(np.zeros((3, 4, 4), np.uint8)))
    with ndd.EvalMode.sync_cpu:
        assert len(warned(lambda: ndd.flip(planes))) == 1


def test_an_array_of_images_taken_as_a_video():
    (text,) = warned(lambda: ndd.resize(torch.zeros(2, 8, 8, 3, dtype=torch.uint8), size=[4, 4]))
    assert "resize: an array of 4 axes without a layout is taken for one video, FHWC. ndd.batch(...) makes" in text
    ndd.resize.operator.forget()
    assert not warned(lambda: ndd.resize(ndd.as_tensor(np.zeros((2, 8, 8, 3), np.uint8), layout="FHWC"), size=[4, 4]))
    assert not warned(lambda: ndd.resize(ndd.batch(np.zeros((2, 8, 8, 3), np.uint8)), size=[4, 4]))


def test_texts_and_fractions_as_numbers(images):
    (text,) = warned(lambda: ndd.resize(images, size="22"))
    assert "resize: argument 'size': the text is taken as the number that it spells: got '22'" in text
    assert ndd.resize(images, size="22").shape == [(22, 22, 3)] * 2
    (text,) = warned(lambda: ndd.flip(images, horizontal=0.5))
    assert "flip: argument 'horizontal': an integer is expected, the fraction is dropped: got 0.5" in text
    (text,) = warned(lambda: ndd.one_hot(ndd.tensor(1), num_classes=np.float64(2.5)))
    assert "num_classes" in text
    assert not warned(lambda: ndd.flip(images, horizontal=1.0))
    assert not warned(lambda: ndd.rotate(images, angle=0.5))


def test_the_truth_of_a_comparison(images):
    for value in (images, ndd.tensor([1, 2])):
        (text,) = warned(lambda value=value: bool(value == value))
        assert "always true, even the result of a comparison: `if a == b:` compares nothing" in text
        assert bool(value == value + 1)  # as in DALI
        assert not warned(lambda value=value: bool(value))


def test_negative_crops(images):
    (text,) = warned(lambda: ndd.crop(images, crop=[-4, 4]))
    assert "crop: `crop` [-4" in text
    assert len(warned(lambda: ndd.crop(images, crop_h=-4, crop_w=4))) == 1
    assert not warned(lambda: ndd.crop(images, crop=[0, 4]))


def test_where_warnings_are_errors_each_call_is_one(images):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            with pytest.raises(UserWarning, match="keeps the whole extent"):
                ndd.crop(images, crop=[-4, 4])


@pytest.mark.parametrize("start", [1.5, np.float64(1.5), np.float16(2.5), np.array(1.5), np.array([2.5]), [1.5]])
def test_fractions_for_integers_are_as_in_dali(dali, start):
    check_same(dali, lambda m: m.slice(m.tensor(np.arange(9)), start=start, axes=[0]))


@pytest.mark.parametrize("batch_size", [1, 2, 3])
def test_batches_overrule_batch_size(dali, batch_size):
    samples = [np.arange(4), np.arange(5)]
    check_same(dali, lambda m: m.flip(m.batch([TALL, WIDE], layout="HWC"), batch_size=batch_size))
    check_same(dali, lambda m: m.cat(m.batch(samples), m.tensor(samples[0]), batch_size=batch_size))
    check_same(dali, lambda m: m.transforms.rotation(angle=m.batch([5.0, 4.0]), batch_size=batch_size))


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (
            lambda: ndd.resize(BATCH, size=[2, 2], device="tpu"),
            ValueError,
            "resize: argument 'device': Invalid device type",
        ),
        (lambda: ndd.random.uniform(rng=5), ValueError, "uniform: argument 'rng': expected an ndd.random.RNG, got int"),
        (lambda: ndd.random.RNG(seed="a"), TypeError, "seed: expected an integer, got 'a'"),
        (lambda: ndd.random.set_seed(1.5), TypeError, "seed: expected an integer, got 1.5"),
        (lambda: ndd.tensor([1, "a"]), RuntimeError, "Cannot make a tensor of list of str"),
        (lambda: ndd.batch({"a": 1}), TypeError, "Cannot make a batch of dict, whose keys would be the samples"),
        (lambda: ndd.ExternalSource([1])(batch_size="a"), TypeError, "ExternalSource: batch_size: expected an integer"),
        (lambda: ndd.picture(5), TypeError, "picture: expected a Batch, a Tensor or an ndd.Targets, got int"),
        (lambda: ndd.flip(ndd.readers.File(file_root=PHOTOS)), TypeError, "flip: Expected data, got a reader"),
    ],
)
def test_who_and_what_is_wrong(call, error, said):
    with pytest.raises(error, match=said):
        call()


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("warp_affine", {"matrix": np.eye(2, 3, dtype=np.float32), "fill_value": torch.tensor([0.7])}),
        ("normalize", {"epsilon": torch.tensor(0.7, requires_grad=True)}),
        ("normalize", {"ddof": torch.tensor([1])}),
        ("expand_dims", {"axes": torch.tensor(1.0, requires_grad=True)}),
    ],
)
def test_torch_numbers_for_all_samples(dali, name, arguments):
    image = np.arange(60, dtype=np.uint8).reshape(4, 5, 3)
    assert check_same(dali, lambda m: getattr(m, name)(m.batch([image], layout="HWC"), **arguments), 1e-6)


@pytest.mark.parametrize("call", [lambda i: ndd.resize(i, size=[1j, 5]), lambda i: ndd.slice(i, start=1j, axes=[0])])
def test_complex_numbers_are_refused(images, call):
    with pytest.raises(TypeError, match="expected numbers"):
        call(images)
