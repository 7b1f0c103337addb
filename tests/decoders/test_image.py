"""decoders.image: pixels of every format against the oracle and Pillow, element types, orientation, arguments."""

from __future__ import annotations

import io
from fractions import Fraction

import numpy as np
import PIL
import pytest
from cases import each_of
from encoded import FOLDER, KINDS, cmyk, encode, made, needs_files, photo, read, real
from PIL import Image, ImageOps

import ndd

REGISTRY_CASES = {
    "decoders.image": each_of({}, {"output_type": 2}, inputs=("jpeg",), dtypes=("float32",)),
}

# What ndd decodes and DALI does not, or not without crashing the process.
BEYOND = {
    "still.gif": KINDS,
    "codestream_9bit.j2k": ("RGB", "BGR", "YCbCr"),
    "lossless_gray_8bit.jpg": ("RGB", "BGR", "YCbCr"),
    "gray.jpg": ("ANY_DATA",),
    # There gray is mixed in linear light if a file says what its gamma is.
    "palette.png": ("GRAY",),
    "rgb_128.png": ("GRAY",),
} | {f"webp_orientation_{k}.webp": KINDS for k in range(1, 9)}  # there a mark in front of EXIF makes it void


def oracle_pixels(dali, data, kind, **arguments):
    number = int(getattr(ndd.types, kind))
    with dali.EvalMode.sync_cpu:
        return np.asarray(dali.decoders.image(dali.tensor(data), output_type=number, **arguments)).copy()


def pixels(data, kind="RGB", **arguments):
    return np.asarray(ndd.decoders.image(ndd.tensor(data), output_type=getattr(ndd.types, kind), **arguments))


def assert_like_oracle(result, expected, kind):
    assert result.shape == expected.shape
    assert result.dtype == expected.dtype
    if kind == "YCbCr":  # a matrix in 32-bit floats: the order of additions decides ties
        off = np.abs(result.astype(np.float64) - expected.astype(np.float64))
        assert off.max() <= (3e-7 if result.dtype.kind == "f" else result.dtype != np.uint8)
    elif result.dtype.kind == "f":
        np.testing.assert_allclose(result, expected, atol=1e-7, rtol=0)
    else:
        np.testing.assert_array_equal(result, expected)


@pytest.mark.oracle
@pytest.mark.parametrize("kind", KINDS)
def test_made_files_against_the_oracle(dali, kind):
    for name, data in made().items():
        if kind not in BEYOND.get(name, ()):
            assert_like_oracle(pixels(data, kind), oracle_pixels(dali, data, kind), kind)


@pytest.mark.oracle
@needs_files
@pytest.mark.parametrize("path", real("formats/*/*"), ids=lambda p: p.name)
def test_real_files_against_the_oracle(dali, path):
    data = read(path)
    for kind in KINDS:
        if kind in BEYOND.get(path.name, ()):
            assert pixels(data, kind).ndim == 3
            continue
        try:
            expected = oracle_pixels(dali, data, kind)
        except RuntimeError:
            with pytest.raises(RuntimeError):
                pixels(data, kind)
        else:
            assert_like_oracle(pixels(data, kind), expected, kind)


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16", "uint32", "int32", "float32"])
@pytest.mark.parametrize("kind", ["RGB", "GRAY", "YCbCr"])
def test_element_types_against_the_oracle(dali, dtype, kind):
    for name in ("444.jpg", "gray_16.png", "gray_16.tif"):
        data = made()[name]
        expected = oracle_pixels(dali, data, kind, dtype=getattr(dali, dtype))
        result = pixels(data, kind, dtype=getattr(ndd, dtype))
        assert result.dtype == expected.dtype == np.dtype(dtype)
        off = np.abs(result.astype(np.float64) - expected.astype(np.float64)).max()
        if kind == "YCbCr":
            full = 1 if dtype == "float32" else float(np.iinfo(dtype).max)
            assert off <= max(3e-7 * full, dtype not in ("float32", "uint8"))
        else:
            assert off <= (1e-7 if dtype == "float32" else 0)


@pytest.mark.parametrize("dtype", ["int64", "uint64", "float16", "float64", "bool", "bfloat16"])
def test_other_element_types_are_refused(dtype):
    with pytest.raises(RuntimeError, match="Unsupported output type"):
        pixels(made()["444.jpg"], dtype=getattr(ndd, dtype))


def test_rgb_equals_pillow():
    for name, data in made().items():
        if "16" in name:
            continue
        picture = Image.open(io.BytesIO(data))
        if picture.format != "TIFF" or not PIL.__version__.startswith("10.0."):  # which turns those twice
            picture = ImageOps.exif_transpose(picture)
        np.testing.assert_array_equal(pixels(data), np.asarray(picture.convert("RGB")), err_msg=name)


@needs_files
def test_photographs_equal_the_oracle(dali):
    paths = real("imagenet/*/*")[::8]
    files = [read(p) for p in paths]
    result = ndd.decoders.image(ndd.batch(files))
    with dali.EvalMode.sync_cpu:
        expected = [np.asarray(t).copy() for t in dali.decoders.image(dali.batch(files)).tensors]
    for mine, theirs in zip(result.tensors, expected, strict=True):
        np.testing.assert_array_equal(np.asarray(mine), theirs)


@pytest.mark.oracle
def test_fast_idct_against_the_oracle(dali):
    different = 0
    for name, data in made().items():
        if not name.endswith(".jpg") or name in BEYOND or "lossless" in name:
            continue
        result = pixels(data, use_fast_idct=True)
        np.testing.assert_array_equal(result, oracle_pixels(dali, data, "RGB", use_fast_idct=True), err_msg=name)
        half = {"start": [3, 5], "shape": [20, 25], "use_fast_idct": True}
        window = np.asarray(ndd.decoders.image_slice(ndd.tensor(data), **half))
        np.testing.assert_array_equal(window, result[5:30, 3:23], err_msg=name)
        different += not np.array_equal(result, pixels(data))
    assert different, "no file shows the difference"


@pytest.mark.parametrize("orientation", range(1, 9))
def test_orientation(orientation):
    data = made()[f"turned_{orientation}.jpg"]
    stored = pixels(data, adjust_orientation=False)
    assert stored.shape == (40, 56, 3)
    np.testing.assert_array_equal(stored, pixels(made()["turned_1.jpg"]))
    upright = pixels(data)
    assert upright.shape == ((56, 40, 3) if orientation >= 5 else (40, 56, 3))
    expected = {
        1: stored, 2: stored[:, ::-1], 3: stored[::-1, ::-1], 4: stored[::-1],
        5: stored.transpose(1, 0, 2), 6: stored.transpose(1, 0, 2)[:, ::-1],
        7: stored.transpose(1, 0, 2)[::-1, ::-1], 8: stored.transpose(1, 0, 2)[::-1],
    }[orientation]  # fmt: skip
    np.testing.assert_array_equal(upright, expected)


def test_a_broken_exif_segment_does_not_cost_the_picture():
    data = bytearray(made()["turned_6.jpg"].tobytes())
    place = data.index(b"Exif\0\0") + 6
    data[place : place + 8] = b"\xff" * 8
    assert pixels(np.frombuffer(bytes(data), np.uint8)).shape == (40, 56, 3)


def four_inks():
    """CMYK as Adobe writes it, the same with YCCK's mark, without a mark, and turned."""
    plain = cmyk().tobytes()
    adobe, ink = plain.index(b"\xff\xee"), plain.index(b"Adobe") + 11
    yield "CMYK", plain
    yield "YCCK", plain[:ink] + b"\2" + plain[ink + 1 :]
    yield "unmarked", plain[:adobe] + plain[adobe + 16 :]
    tiff = b"MM\0*\0\0\0\x08\0\1\1\x12\0\3\0\0\0\1\0\6\0\0\0\0\0\0"
    yield "turned", plain[:2] + b"\xff\xe1\0\x22Exif\0\0" + tiff + plain[2:]


@pytest.mark.oracle
@pytest.mark.parametrize(("name", "data"), list(four_inks()), ids=[name for name, _ in four_inks()])
def test_gray_of_four_inks(dali, name, data):
    file = np.frombuffer(data, np.uint8)
    expected = oracle_pixels(dali, file, "GRAY")
    np.testing.assert_array_equal(pixels(file, "GRAY"), expected)
    part = ndd.decoders.image_slice(
        ndd.tensor(file), [3, 5], [20, 30], axes=[0, 1], normalized_anchor=False, normalized_shape=False,
        output_type=ndd.types.GRAY,
    )  # fmt: skip
    np.testing.assert_array_equal(np.asarray(part), expected[3:23, 5:35])


def test_gray_of_lossless_colours():
    """Which DALI refuses."""
    av = pytest.importorskip("av")
    codec = av.CodecContext.create("ljpeg", "w")
    codec.width, codec.height, codec.pix_fmt, codec.time_base = 56, 40, "yuvj444p", Fraction(1, 25)
    frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(photo()[..., :3]), "rgb24").reformat(format="yuvj444p")
    file = np.frombuffer(bytes([*codec.encode(frame), *codec.encode(None)][0]), np.uint8)
    rgb = pixels(file).astype(np.float32)
    np.testing.assert_allclose(pixels(file, "GRAY")[..., 0], rgb @ np.array([0.299, 0.587, 0.114], np.float32), atol=1)


def test_cmyk_becomes_rgb_and_stays_four_channels_unchanged():
    expected = np.asarray(Image.open(io.BytesIO(cmyk())).convert("RGB")).astype(int)
    assert np.abs(pixels(cmyk()).astype(int) - expected).max() <= 1
    assert pixels(cmyk(), "ANY_DATA").shape == (40, 56, 4)


def test_alpha_is_dropped_or_kept():
    rgba = photo()
    data = encode(rgba, "PNG")
    np.testing.assert_array_equal(pixels(data), rgba[..., :3])
    np.testing.assert_array_equal(pixels(data, "BGR"), rgba[..., 2::-1])
    np.testing.assert_array_equal(pixels(data, "ANY_DATA"), rgba)
    two = encode(np.ascontiguousarray(rgba[..., :2]), "PNG")
    np.testing.assert_array_equal(pixels(two, "ANY_DATA"), rgba[..., :2])


def test_sixteen_bits_are_kept():
    gray = photo()[..., :1].astype(np.uint16) * 251
    data = encode(gray[..., 0], "PNG")
    np.testing.assert_array_equal(pixels(data, "GRAY", dtype=ndd.uint16), gray)
    np.testing.assert_allclose(pixels(data, "GRAY", dtype=ndd.float32), gray / 65535, atol=1e-7)


def test_metadata_is_known_before_it_runs():
    with ndd.EvalMode.deferred:
        out = ndd.decoders.image(ndd.tensor(np.zeros(9, np.uint8)), dtype=ndd.float32)
        assert (out.dtype, out.ndim, out.layout) == (ndd.float32, 3, "HWC")


def test_ragged_batches_and_read_only_bytes():
    names = ["420.jpg", "gray_16.png", "odd.jpg", "turned_6.jpg", "rgba.webp", "lzw.tif"]
    out = ndd.decoders.image(ndd.batch([made()[n] for n in names]))
    assert out.shape == [pixels(made()[n]).shape for n in names]
    frozen = made()["420.jpg"].copy()
    frozen.flags.writeable = False
    np.testing.assert_array_equal(pixels(frozen), pixels(made()["420.jpg"]))
    np.testing.assert_array_equal(pixels(frozen[None]), pixels(frozen))  # bytes in any shape, as in DALI


def test_what_is_no_bytes_is_refused():
    for wrong in (np.uint8(4), np.zeros(4, np.int32)):
        with pytest.raises(RuntimeError, match="expected the bytes"):
            ndd.decoders.image(wrong)


@pytest.mark.parametrize("device", ["cpu", "gpu"])
@pytest.mark.drawn(1)
def test_an_empty_batch_gives_an_empty_batch(device, emulated_gpu):
    """DALI gives one of its image decoder; others of its decoders raise, or end the process."""
    none = ndd.batch([], dtype=ndd.uint8)
    cut = {"start": [0, 0], "shape": [1, 1], "axes": [0, 1]}
    result = [
        ndd.decoders.image(none, device=device),
        ndd.decoders.image_crop(none, crop=[4, 4], device=device),
        ndd.decoders.image_slice(none, **cut, device=device),
        ndd.decoders.image_random_crop(none, device=device),
    ]
    for images in result:
        assert (images.batch_size, images.shape, images.ndim, images.layout) == (0, [], 3, "HWC")
        assert images.device == ndd.Device(device)
    assert ndd.peek_image_shape(none).shape == []
    samples, rates = ndd.decoders.audio(none)
    assert (samples.shape, rates.shape) == ([], [])
    assert ndd.decoders.video(none).shape == []
    assert none.ndim == 0
    with pytest.raises(RuntimeError, match="expected the bytes"):  # an empty batch before it does not let a number in
        ndd.decoders.image(np.uint8(4))


def test_hints_change_nothing_and_old_arguments_warn():
    data = made()["420.jpg"]
    hints = {
        "affine": False, "cache_size": 10, "cache_type": "threshold", "cache_threshold": 5, "cache_debug": True,
        "cache_batch_copy": False, "device_memory_padding": 0, "device_memory_padding_jpeg2k": 1,
        "host_memory_padding": 0, "host_memory_padding_jpeg2k": 1, "hw_decoder_load": 0.3,
        "hybrid_huffman_threshold": 10, "jpeg_fancy_upsampling": True, "preallocate_height_hint": 10,
        "preallocate_width_hint": 10,
    }  # fmt: skip
    np.testing.assert_array_equal(pixels(data, **hints), pixels(data))
    for old in ("memory_stats", "split_stages", "use_chunk_allocator"):
        with pytest.warns(DeprecationWarning, match=old):
            ndd.decoders.image(data, **{old: True})


def test_misnamed_files_are_told_by_their_contents():
    if FOLDER.is_dir():
        for path in real("formats/missnamed/*"):
            assert pixels(read(path)).ndim == 3
