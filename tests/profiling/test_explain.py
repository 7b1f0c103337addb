"""`ndd.explain`: what made a value, and how."""

from __future__ import annotations

import re

import numpy as np
import pytest
from encoded import encode, photo

import ndd
from ndd._compiled.background import background


@pytest.fixture(autouse=True)
def _compiled(monkeypatch):
    monkeypatch.setattr(background, "allowed", False)


def story(value):
    return ndd.explain(value).splitlines()


def test_from_the_reader_to_the_value():
    with ndd.profile() as p:
        jpegs, _ = next(ndd.readers.File(file_root=ndd.demo.photos()).next_epoch(batch_size=4))
        images = ndd.decoders.image(jpegs, device="cpu")
        small = ndd.resize(images, size=[32, 32])
        lines = story(small)
    names = [line.strip().split(":")[0] for line in lines if re.match(r" *[a-zA-Z.]+: \d", line)]
    assert names == ["resize", "decoders.image", "readers.File"]
    assert "4 samples" in lines[0]
    shares = [int(result) for line in lines for result in re.findall(r"\((\d+) %\)", line)]
    assert 98 <= sum(shares) <= 101
    assert p.explain(small) == "\n".join(story(small))  # after the profile as well


def test_which_decoder_took_which_picture():
    rgb = np.ascontiguousarray(photo(40, 50)[..., :3])
    turned = encode(rgb, "JPEG", orientation=6)
    data = [
        encode(rgb, "JPEG"),
        encode(rgb, "PNG"),
        encode(rgb, "WEBP"),
        turned,
        encode(rgb, "BMP"),
        encode(rgb, "PNG"),
    ]
    data.append(encode(rgb, "GIF"))
    with ndd.profile():
        images = ndd.decoders.image(ndd.batch(data), device="cpu")
        lines = story(images)
    told: list[tuple[str, str]] = re.findall(r"decoded by (.*): \d+ \(samples (.*)\)", "\n".join(lines))
    result = dict(told)
    assert result == {
        "ndd's JPEG kernel": "0, 3", "ndd's PNG kernel": "1, 5", "libwebp": "2", "ndd's BMP reader": "4", "Pillow": "6",
    }  # fmt: skip


def test_what_was_fused():
    with ndd.profile(), ndd.EvalMode.deferred:
        jpegs, _ = next(ndd.readers.File(file_root=ndd.demo.photos()).next_epoch(batch_size=4))
        crops = ndd.random_resized_crop(ndd.decoders.image(jpegs, device="cpu"), size=[16, 16])
        sound = ndd.batch([np.random.default_rng(k).random(80_000).astype(np.float32) for k in range(4)])
        bands = ndd.mel_filter_bank(ndd.spectrogram(sound, nfft=512, window_step=128), nfilter=20, sample_rate=16000.0)
        lines, others = story(crops), story(bands)
    assert "    fused: only what random_resized_crop looks at was decoded" in lines
    assert any("fused: made together with mel_filter_bank" in line for line in others)


@pytest.mark.parametrize(
    ("part", "first"),
    [
        (lambda batch: batch.tensors[1], "resize"),
        (lambda batch: batch.select([0, 2]), "select"),
        (lambda batch: batch.slice[:4], "slice"),
        (ndd.as_tensor, "as_tensor"),
        (lambda batch: batch * 2, "mul"),
        (lambda batch: batch.cpu(), "resize"),
    ],
)
@pytest.mark.parametrize("evaluated", [False, True])
def test_a_part_of_a_batch_is_told_from_the_reader_on(part, first, evaluated):
    with ndd.profile():
        jpegs, _ = next(ndd.readers.File(file_root=ndd.demo.photos()).next_epoch(batch_size=4))
        resized = ndd.resize(ndd.decoders.image(jpegs), size=[32, 32])
        resized = resized.evaluate() if evaluated else resized
        names = [line.strip().split(":")[0] for line in story(part(resized))]
    names = [name for name in names if name in (first, "select", "resize", "decoders.image", "readers.File")]
    whole = ["resize", "decoders.image", "readers.File"]
    assert names in ([first, *whole], ["select", *whole], whole)
    assert names[0] == first or not evaluated


def test_an_output_of_a_pipeline():
    @ndd.pipeline_def(batch_size=4, num_threads=2, device_id=None)
    def pipe():
        jpegs, _ = ndd.fn.readers.file(file_root=str(ndd.demo.photos()))
        return ndd.fn.resize(ndd.fn.decoders.image(jpegs), size=[32, 32])

    made = pipe()
    made.build()
    with ndd.profile():
        lines = story(made.run()[0])
    assert [line.split(":")[0].strip() for line in lines if "fused" not in line][:2] == ["resize", "decoders.image"]


def test_a_value_without_a_story():
    before = ndd.flip(np.zeros((4, 4, 3), np.uint8)).evaluate()
    with ndd.profile():
        with pytest.raises(RuntimeError, match="no profile was on"):
            ndd.explain(before)
        with pytest.raises(TypeError, match=r"expected a Tensor or Batch of ndd, got numpy\.ndarray"):
            ndd.explain(np.zeros(3))
        with pytest.raises(ZeroDivisionError):  # the error of the value itself
            ndd.explain(_failing(np.zeros(3)))


@ndd.operator
def _failing(x, /):
    return ndd.like(x)


@_failing.cpu
def _(x, out):
    raise ZeroDivisionError


def test_a_mean_that_runs_on_has_an_end():
    with ndd.profile():
        mean = ndd.as_tensor(np.zeros(3, np.float32)) + 1
        for _ in range(200):
            mean = mean * 0.9 + 0.1
        assert len(story(mean)) < 200
