"""decoders with device="gpu" on the emulated GPU: everything but nvImageCodec's own GPU work, which a stand-in does."""

from __future__ import annotations

import ctypes
import functools
import os

import numpy as np
import pytest
from encoded import KINDS, cmyk, made

import ndd
from ndd._compiled.sample_loops import _by_fallback
from ndd._lookahead.threads import gpu_threads
from ndd.decoders.backend import Options
from ndd.decoders.jpeg import batch_headers
from ndd.decoders.nvimgcodec import (
    c_api,
    calls,
    decoder_pool,
    gpu as _gpu,
    python_api,
)
from ndd.decoders.picture import decode

pytestmark = pytest.mark.skipif(python_api.folder() is None, reason="nvImageCodec is not installed")


class Wheel:
    """In place of the wheel's decoders: decodes on the CPU what a GPU would, to the address it is given."""

    def __init__(self, record):
        self.record = record

    def decode(self, encoded, windows, targets, output_type, adjust_orientation, stream):
        self.record.calls.append((len(encoded), stream))
        done = []
        for data, window, (address, shape) in zip(encoded, windows, targets, strict=True):
            done.append(bytes(data[:4]) not in self.record.refused)
            if done[-1]:
                options = Options(output_type, np.dtype(np.uint8), adjust_orientation, 1 << 28)
                image = decode(data, options, None, window)
                assert image.shape == shape
                ctypes.memmove(address, np.ascontiguousarray(image).ctypes.data, image.nbytes)
        return done


class Record:
    """What was asked of the decoders: (count, stream) of each batch, (GPU, threads, load, options) of each decoder. Those
    refuse the pictures that begin with one of `refused`."""

    def __init__(self):
        self.calls, self.made_for, self.refused, self.made_by_c = [], [], (), True


@pytest.fixture(params=["C library", "C library, while kernels are compiled", "wheel"])
def decoders(request, emulated_gpu, monkeypatch):
    if emulated_gpu.real:
        pytest.skip("the stand-in writes to host memory; test_gpu.py has the real decoders")
    record = Record()
    if "compiled" in request.param:
        monkeypatch.setattr(calls, "decode", calls.decode.run_fallback)
        monkeypatch.setattr(c_api, "_prepare", functools.partial(_by_fallback, calls.prepare))
        monkeypatch.setattr(decoder_pool, "_take", functools.partial(_by_fallback, batch_headers.take))
    if request.param == "wheel":
        if python_api.library() is None:
            pytest.skip("its module is too old")
        monkeypatch.setattr(c_api, "library", lambda: None)
        record.made_by_c = False

        def passed(device_id, num_threads, hw_decoder_load, options, count):
            record.made_for.append((device_id, num_threads, hw_decoder_load, options))
            return Wheel(record)

        monkeypatch.setattr(python_api, "gpu_decoders", passed)
        return record
    take, decoder, sound = c_api.Pictures.take, decoder_pool.Decoder, c_api.Pictures.decoded.fget

    def taken(self, addresses, *rest):
        self.wrong = [ctypes.string_at(address, 4) in record.refused for address in addresses.tolist()]
        record.calls.append((len(addresses), rest[-1]))
        take(self, addresses, *rest)

    def decoded(self):
        return sound(self) & ~np.array(self.wrong)

    def decoder_made(library, *rest):
        record.made_for.append(rest)
        return decoder(library, *rest)

    monkeypatch.setattr(c_api.Pictures, "take", taken)
    monkeypatch.setattr(c_api.Pictures, "decoded", property(decoded))
    monkeypatch.setattr(decoder_pool, "Decoder", decoder_made)
    return record


NAMES = ("420.jpg", "odd.jpg", "rgba.png", "turned_6.jpg", "gray.jpg", "gray_16.png", "lossy.webp", "rgb.tif")


def both(names, function, **arguments):
    batch = ndd.batch([made()[n] for n in names])
    here, there = function(batch, **arguments), function(batch, device="gpu", **arguments)
    assert there.device.device_type == "gpu"
    assert (there.dtype, there.ndim, there.layout) == (here.dtype, here.ndim, here.layout)
    assert there.shape == here.shape
    return [np.asarray(t) for t in here.tensors], [np.asarray(t.cpu()) for t in there.tensors]


@pytest.mark.parametrize("dtype", [ndd.uint8, ndd.float32, ndd.uint16, ndd.int16, ndd.int8, ndd.int32])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.drawn(1)
def test_like_the_cpu(decoders, kind, dtype):
    here, there = both(NAMES, ndd.decoders.image, output_type=getattr(ndd.types, kind), dtype=dtype)
    full = 1 if dtype == ndd.float32 else np.iinfo(here[0].dtype).max
    for name, a, b in zip(NAMES, here, there, strict=True):
        off = np.abs(a.astype(np.float64) - b.astype(np.float64)).max()
        allowed = 2e-7 * full if full < 128 or full > 1 << 20 else (1 if kind == "YCbCr" else 0)
        assert off <= max(allowed, 1 if kind == "YCbCr" and full > 1 else 0), name


def test_a_call_that_nobody_foresaw_has_the_threads_of_all_decoders(emulated_gpu, monkeypatch):
    made = []
    monkeypatch.setattr(decoder_pool._pools, "using", lambda *key: made.append(key))

    def asked(count, nbytes):
        decoder_pool.decoders(0, count, nbytes, 16, 0.65, "")

    for work in (asked, lambda *a: gpu_threads().submit(asked, *a).result()):
        for count, nbytes in ((8, 1 << 20), (64, 1 << 23), (256, 1 << 25), (64, 1 << 28)):
            work(count, nbytes)
    pair, item = decoder_pool._PAIR, decoder_pool._ONE
    assert [key[2] for key in made] == [pair, item, item, item, pair, pair, item, item]


@pytest.mark.drawn(1)
def test_the_share_of_the_engines_is_measured_where_nobody_says_it(decoders):
    passed, large = np.float32(0.65), 1 << 28
    threads = (1, 2, 3, 4, 5, 8, 9, 64)

    def of(load):
        return {
            (n, nbytes, t): decoder_pool.share(load, n, nbytes, t)
            for n in (8, 32, 33, 64, 65, 256)
            for nbytes in (1 << 20, large)
            for t in threads
        }

    unforeseen, ahead = of(passed), gpu_threads().submit(of, passed).result()
    for asked in (unforeseen, ahead):
        assert [asked[n, large, t] for n in (8, 64, 256) for t in threads] == [1, 1, 0.8, 0.8, 0.65, 0.65, 0.4, 0.4] * 3
        small = {key: share for key, share in asked.items() if key[1] != large}
        assert {share for (n, _, t), share in small.items() if n <= 32 or t <= 4} == {1}
        assert {share for (n, _, t), share in small.items() if n > 32 and 4 < t <= 8} == {0.85}
        assert {share for (n, _, t), share in small.items() if n > 64 and t > 8} == {passed}
    assert {unforeseen[n, 1 << 20, t] for n in (33, 64) for t in (9, 64)} == {0.75}
    assert {ahead[n, 1 << 20, t] for n in (33, 64) for t in (9, 64)} == {passed}
    for load in (0.0, 0.6, 0.7, 1.0):
        assert set(of(load).values()) == {load}

    def used(**arguments):
        ndd.decoders.image(ndd.batch([made()["420.jpg"]] * 2), device="gpu", **arguments).evaluate()
        return decoders.made_for[-1][2]

    assert used() == used(hw_decoder_load=0.65) == 1
    assert used(hw_decoder_load=0.25) == 0.25


@pytest.mark.drawn(1)
def test_threads_share_what_the_library_is_told_of_a_batch_that_nobody_foresaw(decoders, monkeypatch):
    if not decoders.made_by_c:
        pytest.skip("Python tells the wheel's module")
    names = [n for n in made() if n.endswith((".jpg", ".png", ".webp"))] * 4
    batch = ndd.batch([made()[n] for n in names])
    for function, arguments in (
        (ndd.decoders.image, {}),
        (ndd.decoders.image, {"adjust_orientation": False}),
        (ndd.decoders.image_crop, {"crop": (17, 19)}),
        (ndd.decoders.image_slice, {"rel_start": (0.3, 0.1), "rel_end": (0.9, 0.8)}),
    ):
        result = function(batch, device="gpu", **arguments).evaluate()
        with monkeypatch.context() as foreseen:
            foreseen.setattr(c_api, "is_ahead", lambda: True)
            known = function(batch, device="gpu", **arguments).evaluate()
        for name, a, b in zip(names, result.cpu(), known.cpu(), strict=True):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b), err_msg=name)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 64, 257])
def test_pictures_go_to_the_library_the_largest_first(count):
    sizes = np.random.default_rng(count).integers(0, max(1, count // 2), 2 * count)
    numbers = np.sort(np.random.default_rng(0).permutation(2 * count)[:count])
    wanted = numbers[np.argsort(-sizes[numbers], kind="stable")]
    again = numbers.copy()
    calls._largest_first(numbers, sizes)
    calls._largest_first.in_python()(again, sizes)
    np.testing.assert_array_equal(again, numbers)
    np.testing.assert_array_equal(numbers, wanted)


@pytest.mark.drawn(1)
def test_one_call_for_the_batch_and_one_block(decoders):
    names = ("420.jpg", "odd.jpg", "turned_6.jpg")
    out = ndd.decoders.image(ndd.batch([made()[n] for n in names]), device="gpu", hw_decoder_load=0.5)
    store = out._value()
    assert store.flat is not None
    assert [c[0] for c in decoders.calls] == [3]
    assert decoders.calls[0][1] == ndd.EvalContext.current()._stream_on(0).handle
    assert decoders.made_for[0][0] == 0
    load, text = decoders.made_for[0][2:]
    assert load == 0.5
    wanted = {":fancy_upsampling=0"} | {
        f"nvjpeg_{kind}_decoder:{name}"
        for kind in ("cuda", "hw")
        for name in ("device_memory_padding=16777216", "host_memory_padding=8388608")
    }
    assert set(text.split()) == wanted | {"nvjpeg_cuda_decoder:hybrid_huffman_threshold=1000000"}
    same = ndd.decoders.image(ndd.batch([made()["420.jpg"]] * 2), device="gpu")
    assert same._value().whole is not None
    assert same.torch().shape == (2, 40, 56, 3)


@pytest.mark.drawn(1)
def test_who_reads_huffman_codes(decoders):
    """The GPU, from as many pixels on as the user says; with no engines at work from as many as was measured."""

    def threshold(**arguments):
        ndd.decoders.image(ndd.batch([made()["420.jpg"]] * 2), device="gpu", **arguments).evaluate()
        (result,) = [text for text in decoders.made_for[-1][-1].split() if "huffman" in text]
        return int(result.rpartition("=")[2])

    default = decoder_pool._UNSAID_PIXELS
    assert threshold() == threshold(hybrid_huffman_threshold=default) == default
    assert threshold(hybrid_huffman_threshold=5000) == 5000
    assert threshold(hw_decoder_load=0.5) == default
    assert threshold(hw_decoder_load=0) == decoder_pool._PIXELS_WITHOUT_ENGINES
    assert threshold(hw_decoder_load=0, hybrid_huffman_threshold=5000) == 5000


@pytest.mark.drawn(1)
def test_a_larger_batch_makes_decoders_anew(decoders):
    def decoded(count):
        out = ndd.decoders.image(ndd.batch([made()["420.jpg"]] * count), device="gpu", hw_decoder_load=0.375)
        assert out.torch().shape == (count, 40, 56, 3)

    for count in (17, 32, 31, 17, 32):  # one kind of decoders, of which there is one
        decoded(count)
    assert len(decoders.made_for) == (2 if c_api.library() else 5)  # the wheel's are asked for by each call


@pytest.mark.drawn(1)
def test_large_batches_have_few_sizes(decoders, monkeypatch):
    monkeypatch.setattr(_gpu, "_LARGE", 1000)
    sizes = set()
    for count in range(8, 16):
        out = ndd.decoders.image(ndd.batch([made()["420.jpg"]] * count + [made()["odd.jpg"]]), device="gpu")
        flat = out._value().flat
        assert flat.numel() == sum(int(np.prod(shape)) for shape in out.shape)
        sizes.add(flat.untyped_storage().nbytes())
        np.testing.assert_array_equal(*(np.asarray(x.cpu()) for x in (out.tensors[0], out.tensors[count - 1])))
        assert ndd.cast(out, dtype=ndd.float32).tensors[-1].shape == out.shape[-1]
    assert len(sizes) < 8
    same = ndd.decoders.image(ndd.batch([made()["420.jpg"]] * 9), device="gpu", dtype=ndd.float32)
    assert same.torch().shape == (9, 40, 56, 3)


@pytest.mark.drawn(1)
def test_what_the_gpu_refuses_is_decoded_on_the_cpu(decoders):
    decoders.refused = (b"\x89PNG", b"RIFF")
    here, there = both(NAMES, ndd.decoders.image)
    for a, b in zip(here, there, strict=True):
        np.testing.assert_array_equal(a, b)
    here, there = both(NAMES, ndd.decoders.image, dtype=ndd.float32)
    for a, b in zip(here, there, strict=True):
        np.testing.assert_allclose(a, b, atol=2e-7)


@pytest.mark.drawn(1)
def test_windows(decoders):
    for function, arguments in (
        (ndd.decoders.image_crop, {"crop": [20, 30], "crop_pos_x": 0.2}),
        (ndd.decoders.image_slice, {"rel_start": [0.1, 0.2], "rel_shape": [0.5, 0.5]}),
        (ndd.decoders.image_random_crop, {}),
    ):
        for refused in ((), (b"\x89PNG",)):
            decoders.refused = refused
            more = {}
            if function is ndd.decoders.image_random_crop:
                batch = ndd.batch([made()[n] for n in NAMES])
                a = function(batch, rng=ndd.random.RNG(seed=4))
                b = function(batch, device="gpu", rng=ndd.random.RNG(seed=4))
                here, there = [np.asarray(t) for t in a.tensors], [np.asarray(t.cpu()) for t in b.tensors]
            else:
                here, there = both(NAMES, function, **arguments, **more)
            for x, y in zip(here, there, strict=True):
                np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("dtype", [ndd.uint8, ndd.float32])
@pytest.mark.drawn(1)
def test_bad_samples(decoders, dtype):
    half = made()["420.jpg"][:600]
    decoders.refused = (b"\x89PNG", bytes(half[:4]))
    datas = [made()["rgb.png"], half, np.zeros(50, np.uint8), made()["odd.jpg"]]
    batch = ndd.batch(datas)
    out = ndd.decoders.image(batch, device="gpu", on_error="skip", dtype=dtype)
    expected = ndd.decoders.image(batch, on_error="skip", dtype=dtype)
    assert [b.index for b in out.dropped] == [1, 2] == [b.index for b in expected.dropped]
    assert out.shape == expected.shape
    for a, b in zip(out.tensors, expected.tensors, strict=True):
        np.testing.assert_allclose(np.asarray(a.cpu()), np.asarray(b), atol=2e-7)
    out = ndd.decoders.image(batch, device="gpu", on_error="fill", dtype=dtype)
    expected = ndd.decoders.image(batch, on_error="fill", dtype=dtype)
    assert out.shape == expected.shape == [(40, 56, 3), (40, 56, 3), (1, 1, 3), (33, 47, 3)]
    for a, b in zip(out.tensors, expected.tensors, strict=True):
        np.testing.assert_allclose(np.asarray(a.cpu()), np.asarray(b), atol=2e-7)
    with pytest.raises(RuntimeError, match="2 of 4 samples cannot be decoded"):
        ndd.decoders.image(batch, device="gpu").evaluate()


@pytest.mark.drawn(1)
def test_a_decoder_that_fails_is_replaced(decoders, monkeypatch):
    if not c_api.library():
        pytest.skip("about the C library")
    real, failures = c_api.Pictures.decode, [2]

    def failing(self, *arguments):
        status, number = real(self, *arguments)
        if status or not failures[0]:
            return status, number
        failures[0] -= 1
        reading, writing = arguments[2]
        os.write(writing, os.read(reading, 100).replace(bytes([number]), b""))  # the kernel keeps one that fails
        return 5, number

    monkeypatch.setattr(c_api.Pictures, "decode", failing)
    for made_in_all in (2, 3):  # both fail: decoded on the CPU; then one more is made
        here, there = both(NAMES, ndd.decoders.image)
        for a, b in zip(here, there, strict=True):
            np.testing.assert_array_equal(a, b)
        assert len(decoders.made_for) == made_in_all


def test_a_library_that_does_not_fit_is_told_once(emulated_gpu, monkeypatch):
    monkeypatch.setattr(c_api, "_VERSIONS", (700,))
    monkeypatch.setattr(c_api, "library", type(c_api.library)(c_api._loaded))
    with pytest.warns(RuntimeWarning, match="cannot be used; its Python module decodes"):
        assert c_api.library() is None
    assert c_api.library() is None


@pytest.mark.drawn(1)
def test_a_module_that_is_too_old_is_told_once(emulated_gpu, decoders, monkeypatch):
    """Before 0.9: on the CPU other libraries decode, on a GPU the C library."""
    if not decoders.made_by_c:
        pytest.skip("about the C library")
    from nvidia import nvimgcodec

    there = ndd.decoders.image(ndd.batch([made()[n] for n in NAMES]), device="gpu").evaluate()
    by_library = [count for count, _ in decoders.calls]

    monkeypatch.delattr(nvimgcodec, "NVIMGCODEC_DEVICE_CPU_ONLY", raising=False)
    monkeypatch.setattr(python_api, "_module", [])
    batch = ndd.batch([made()[n] for n in NAMES] + [cmyk()])
    with pytest.warns(RuntimeWarning, match="is too old to decode on the CPU") as told:
        here = ndd.decoders.image(batch, output_type=ndd.types.GRAY).evaluate()  # no kernel of ours makes inks gray
    assert len(told) == 1
    assert here.shape == [(*shape[:2], 1) for shape in [*there.shape, (40, 56)]]
    decoders.calls.clear()
    again = ndd.decoders.image(ndd.batch([made()[n] for n in NAMES]), device="gpu")
    for a, b in zip(there.tensors, again.tensors, strict=True):
        np.testing.assert_array_equal(np.asarray(a.cpu()), np.asarray(b.cpu()))
    assert [count for count, _ in decoders.calls] == by_library


def test_without_nvimgcodec(emulated_gpu, monkeypatch):
    expected = np.asarray(ndd.decoders.image(made()["420.jpg"]))
    monkeypatch.setattr(c_api, "library", lambda: None)
    monkeypatch.setattr(python_api, "_module", [None])
    out = ndd.decoders.image(ndd.batch([made()["420.jpg"], made()["rgb.png"]]), device="gpu")
    np.testing.assert_array_equal(np.asarray(out.tensors[0].cpu()), expected)


@pytest.mark.drawn(1)
def test_imread(decoders, tmp_path):
    (tmp_path / "a.jpg").write_bytes(made()["420.jpg"].tobytes())
    out = ndd.imread([tmp_path / "a.jpg"], device="gpu")
    assert out.device.device_type == "gpu"
    assert out.shape == [(40, 56, 3)]
