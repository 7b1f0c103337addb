"""What `ndd.recipes` gives whatever the recipe: settings, printing, pickling, what is passed through, errors, both devices."""

from __future__ import annotations

import inspect
import io
import pickle

import numpy as np
import pytest

import ndd

Image = pytest.importorskip("PIL.Image")
RECIPES = {
    "imagenet_train": {"size": 32, "augment": "trivial", "random_erase": 0.5},
    "imagenet_eval": {"size": 32, "resize": 40},
    "simclr": {"size": 32, "views": 3},
    "dino_multicrop": {"size": 32, "local_size": 16, "local_crops": 2},
    "detection": {"size": 32},
    "segmentation": {"size": 32, "base": 40},
    "speech": {"mels": 16},
    "video_clips": {"size": 16, "resize": (20, 24)},
}
RESULTS = {
    "simclr": [(3, 32, 32)] * 3,
    "dino_multicrop": [(3, 32, 32)] * 2 + [(3, 16, 16)] * 2,
    "video_clips": [(3, 4, 16, 16)],
}
COUNT = 4


def encoded(kind="JPEG", channels=3):
    rng = np.random.default_rng(3)
    files = []
    for k in range(COUNT):
        coarse = rng.integers(0, 256, (6, 8 + k, 3), np.uint8)
        picture = Image.fromarray(coarse).resize((80 + 9 * k, 60), Image.Resampling.BICUBIC)
        file = io.BytesIO()
        (picture if channels == 3 else picture.convert("L")).save(file, kind)
        files.append(np.frombuffer(file.getvalue(), np.uint8))
    return ndd.batch(files)


def sounds():
    soundfile = pytest.importorskip("soundfile")
    files = []
    for k in range(COUNT):
        file = io.BytesIO()
        soundfile.write(file, np.sin(np.arange(9000 + 700 * k) * 0.05 * (k + 1)), 16000, format="WAV")
        files.append(np.frombuffer(file.getvalue(), np.uint8))
    return ndd.batch(files)


def inputs_of(name):
    if name == "speech":
        return (sounds(),)
    if name == "video_clips":
        return (ndd.batch(np.random.default_rng(0).integers(0, 256, (COUNT, 4, 30, 40, 3), np.uint8), layout="FHWC"),)
    if name == "detection":
        boxes = [np.float32([[0.1, 0.1, 0.6, 0.7], [0.5, 0.4, 0.9, 0.9]])] * COUNT
        return encoded(), ndd.batch(boxes), ndd.batch([np.int32([1, 2])] * COUNT)
    if name == "segmentation":
        return encoded(), encoded("PNG", 1)
    return (encoded(),)


def results(result):
    return result if isinstance(result, tuple) else (result,)


def arrays(result):
    return [[np.asarray(t.cpu()) for t in batch.tensors] for batch in results(result)]


def with_rng(name, seed=5):
    factory = getattr(ndd.recipes, name)
    random = "rng" in inspect.signature(factory).parameters
    return factory(**RECIPES[name], **({"rng": ndd.random.RNG(seed)} if random else {}))


def test_all_are_here():
    assert {n for n in ndd.recipes.__all__ if n not in ("Recipe", "recipe")} == set(RECIPES)


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.drawn(2)
def test_results(name):
    result = results(with_rng(name)(*inputs_of(name)))
    wanted = RESULTS.get(name, [(3, 32, 32)])
    if name != "speech":
        assert [tuple(set(v.shape)) for v in result[: len(wanted)]] == [(shape,) for shape in wanted]
        assert all(v.dtype == ndd.float32 for v in result[: len(wanted)])
        assert all(np.isfinite(np.asarray(t)).all() for v in result for t in v.tensors)


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.drawn(2)
def test_the_same_again_from_a_pickle_and_with_a_generator(name):
    recipe, inputs = with_rng(name), inputs_of(name)
    again = pickle.loads(pickle.dumps(recipe))
    assert repr(again) == repr(recipe)
    first, second = arrays(recipe(*inputs)), arrays(again(*inputs))
    for a, b in zip(first, second, strict=True):
        for x, y in zip(a, b, strict=True):
            np.testing.assert_array_equal(x, y)
    if "rng" in recipe.settings and name != "imagenet_eval":
        other = arrays(with_rng(name, 6)(*inputs))
        assert any(
            not np.array_equal(x, y) for a, b in zip(first, other, strict=True) for x, y in zip(a, b, strict=True)
        )


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.drawn(1)
def test_on_a_gpu(name, emulated_gpu):
    inputs = inputs_of(name)
    recipe = with_rng(name)
    on_gpu = getattr(ndd.recipes, name)(**pickle.loads(pickle.dumps(recipe)).settings | {"device": "gpu"})
    here, there = recipe(*inputs), on_gpu(*inputs)
    assert results(there)[0].device.device_type == "gpu"
    for a, b in zip(arrays(here), arrays(there), strict=True):
        for x, y in zip(a, b, strict=True):
            assert x.shape == y.shape
            difference = np.abs(x.astype(np.float64) - y.astype(np.float64))
            assert (difference > 0.2).mean() < 0.02, difference.max()


@pytest.mark.parametrize("name", RECIPES)
def test_printing_shows_the_steps(name):
    recipe = with_rng(name)
    text = str(recipe)
    assert text.startswith(
        f"{name}(size={RECIPES[name].get('size', 16000)}" if name != "speech" else "speech(sample_rate=16000"
    )
    assert '"""' not in recipe.source
    assert recipe.source.startswith(f"def {name}(")
    assert "return " in recipe.source
    assert 2 <= len(recipe.source.splitlines()) <= 50
    compile(recipe.source, name, "exec")
    document = getattr(ndd.recipes, name).__doc__
    assert "Equals" in document or "that of" in document
    assert ("rng" in recipe.settings) == ("\n    rng: " in inspect.cleandoc(document))


def test_what_is_not_its_own_comes_out_as_it_was():
    labels, names = ndd.batch(np.arange(COUNT)), ["a", "b", "c", "d"]
    images, same, too = ndd.recipes.imagenet_eval(32, resize=40)(encoded(), labels, names)
    assert images.batch_size == COUNT
    assert same is labels
    assert too is names
    *views, last = ndd.recipes.simclr(32)(encoded(), labels)
    assert (len(views), last is labels) == (2, True)


def test_a_function_of_your_own():
    assert ndd.recipes.imagenet_eval(32) == ndd.recipes.imagenet_eval(size=32) != ndd.recipes.imagenet_eval(33)

    @ndd.recipes.recipe
    def darker(images, weights, /, *, by: int = 2):
        return images // by, weights

    result = darker(by=4)(ndd.batch([[8, 12]]), ndd.batch([1]), "more")
    assert result[0].torch().tolist() == [[2, 3]]
    assert result[2] == "more"


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda r: r.imagenet_train(augment="randaugment"), ValueError, "imagenet_train: augment: expected one of .trivial"),
        (lambda r: r.imagenet_train(crop=3), TypeError, "imagenet_train: got an unexpected keyword argument 'crop'"),
        (lambda r: r.detection()(encoded()), TypeError, "detection: expected batches of jpegs, boxes, labels, got 1 of them"),
        (lambda r: r.imagenet_eval()([b"abc"]), TypeError, "imagenet_eval: jpegs: expected an ndd.Batch, got list"),
    ],
)  # fmt: skip
def test_mistakes_are_sentences(call, error, text):
    with pytest.raises(error, match=text):
        call(ndd.recipes)
