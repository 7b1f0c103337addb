"""Images from FITS files against astropy (DALI reads none without a GPU), mistakes against DALI, and broken files."""

import gzip
import io
import os
from pathlib import Path

import numpy as np
import pytest

import ndd
from ndd.experimental.readers import Fits

REAL = Path(__file__).parents[3] / "shared" / "data" / "fits"


@pytest.fixture
def fits():
    return pytest.importorskip("astropy.io.fits")


def write(fits, path, *images, **cards):
    """A file of these images, the first one in the primary HDU; `cards` go to the header of the last."""
    hdus = [fits.PrimaryHDU(images[0]), *map(fits.ImageHDU, images[1:])]
    for keyword, value in cards.items():
        hdus[-1].header[keyword] = value
    fits.HDUList(hdus).writeto(path)
    return str(path)


def same(one, two):
    return one.dtype == two.dtype.newbyteorder("=") and one.shape == two.shape and np.array_equal(one, two)


def read(path, *indices, **more):
    return [np.asarray(image) for image in Fits(files=path, hdu_indices=indices, **more)[0]]


@pytest.mark.parametrize("kind", ["u1", "i1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"])
def test_types_and_shapes(tmp_path, fits, kind):
    """FITS has no i1, u2, u4 and u8: they are stored with a BZERO."""
    rng, info = np.random.default_rng(0), np.iinfo(kind) if kind[0] != "f" else None
    images = []
    for shape in [(7,), (3, 5), (2, 3, 4), (1, 2, 1, 3)]:
        image = (
            rng.integers(info.min, info.max, shape, np.dtype(kind), endpoint=True) if info else rng.normal(size=shape)
        )
        images.append(image.astype(kind))
    path = write(fits, tmp_path / "a.fits", *images)
    result = read(path, 4, 1, 2, 3, 1)
    assert all(same(a, images[k]) for a, k in zip(result, (3, 0, 1, 2, 0), strict=True))
    assert all(a.flags.c_contiguous for a in result)
    declared = [str(image.dtype) for image in ndd.as_batch(images[:1])]
    assert same(read(path, 2, dtypes=declared)[0], images[1])
    with pytest.raises(
        RuntimeError, match=rf"sample 0 \({path}\): expected 'image\[0\]' as bool .* got {np.dtype(kind)}"
    ):
        read(path, 1, dtypes=[ndd.bool])


@pytest.mark.parametrize("kind", ["u1", "i2", "i4", "i8", "f4", "f8"])
@pytest.mark.parametrize(
    "cards",
    [
        {"BSCALE": 0.5}, {"BZERO": 10}, {"BSCALE": 2, "BZERO": -1.5, "BLANK": 3}, {"BLANK": 3}, {"BLANK": 77}, {"BLANK": "3.5"},
        {"BLANK": 3, "BZERO": 7},
    ],
    ids=str,
)  # fmt: skip
def test_scaled_numbers(tmp_path, fits, kind, cards):
    path = str(tmp_path / "a.fits")
    hdu = fits.PrimaryHDU(np.arange(12).reshape(3, 4).astype(kind))
    hdu.writeto(path)
    content = bytearray(Path(path).read_bytes())
    end = content.index(b"END" + b" " * 77)
    added = b"".join(f"{k:<8}= {v:>20}".encode().ljust(80) for k, v in cards.items() if k != "BLANK" or kind[0] != "f")
    content[end : end + len(added) + 80] = added + b"END".ljust(80)
    Path(path).write_bytes(content)
    with fits.open(path) as hdus:
        expected = hdus[0].data
    (result,) = read(path, 1)
    assert result.dtype == expected.dtype.newbyteorder("=")
    assert np.array_equal(result, expected, equal_nan=True)


@pytest.mark.skipif(not REAL.exists(), reason="needs real data")
def test_real_files(fits):
    count = 0
    for path in sorted(REAL.rglob("*.fits")):
        with fits.open(path) as hdus:
            for index, hdu in enumerate(hdus, 1):
                if hdu.is_image and hdu.data is not None:
                    assert same(read(path, index)[0], np.asarray(hdu.data)), (path, index)
                    count += 1
                else:
                    with pytest.raises(RuntimeError, match=r"got 'BINTABLE'|NAXIS is 0"):
                        read(path, index)
    assert count == 11


@pytest.mark.parametrize("method", ["RICE_1", "GZIP_1", "GZIP_2", "PLIO_1", "HCOMPRESS_1"])
@pytest.mark.drawn(2)
def test_compressed_images(tmp_path, fits, method):
    image = np.random.default_rng(0).integers(0, 200, (40, 50)).astype(np.int16)
    hdu = fits.CompImageHDU(image, compression_type=method, tile_shape=(20, 25))
    fits.HDUList([fits.PrimaryHDU(image), hdu, fits.ImageHDU(image + 1)]).writeto(tmp_path / "a.fits")
    result = read(tmp_path / "a.fits", 2, 3, 1)
    assert all(same(a, b) for a, b in zip(result, (image, image + 1, image), strict=True))
    content = bytearray((tmp_path / "a.fits").read_bytes())
    os.truncate(tmp_path / "a.fits", content.index(b"XTENSION", 9000) + 100)
    assert same(read(tmp_path / "a.fits", 2)[0], image)


COMPRESSED = ("RICE_1", "GZIP_1", "GZIP_2", "PLIO_1", "HCOMPRESS_1")


def compressed(fits, method, image=None, **more):
    """A file whose second HDU is compressed, and where its header ends."""
    image = np.random.default_rng(0).integers(0, 200, (40, 54)).astype(np.int16) if image is None else image
    hdu = fits.CompImageHDU(image, compression_type=method, tile_shape=(20, 25), **more)
    file = io.BytesIO()
    fits.HDUList([fits.PrimaryHDU(), hdu]).writeto(file)
    return bytearray(file.getvalue()), image


def with_card(content, keyword, value):
    """The file with another value of a card of its second header."""
    at = content.index(f"{keyword:<8}=".encode(), 2880)
    return content[:at] + f"{keyword:<8}= {value:>20}".encode().ljust(80) + content[at + 80 :]


@pytest.mark.parametrize(
    ("method", "keyword", "value", "said"),
    [
        ("RICE_1", "TFIELDS", 300000000, "expected 1 to 999 as TFIELDS"),
        ("RICE_1", "TFIELDS", 2, "TFORM2"),
        ("RICE_1", "TFIELDS", -1, "TFIELDS"),
        ("RICE_1", "NAXIS1", 2**31, r"NAXIS1|cut off"),
        ("RICE_1", "NAXIS2", 2**62, "NAXIS2|cut off"),
        ("RICE_1", "NAXIS", 999, "NAXIS"),
        ("RICE_1", "PCOUNT", 2**63 - 1, "cut off"),
        ("RICE_1", "GCOUNT", 2, "GCOUNT|cut off"),
        ("RICE_1", "GCOUNT", 0, "GCOUNT"),
        ("RICE_1", "ZNAXIS", 300000000, "ZNAXIS"),
        ("RICE_1", "ZNAXIS1", 2**31 - 1, "claims"),
        ("RICE_1", "ZNAXIS2", 2**40, "ZNAXIS2"),
        ("RICE_1", "ZTILE1", 0, "ZTILE1"),
        ("RICE_1", "ZTILE1", 1, "tiles"),
        ("RICE_1", "ZBITPIX", 17, "astropy"),
        ("RICE_1", "ZVAL1", 0, "ZVAL1"),
        ("RICE_1", "TFORM1", "'1PB(4)   '", None),
        ("RICE_1", "TFORM1", "'999999999PB'", "rows of"),
        ("RICE_1", "ZCMPTYPE", "'RICE_7  '", "ZCMPTYPE"),
        ("HCOMPRESS_1", "ZTILE1", 20, "tile"),
        ("HCOMPRESS_1", "ZVAL1", "0.", None),
        ("HCOMPRESS_1", "ZVAL1", 2**31, "astropy"),
    ],
)
def test_counts_of_a_compressed_image_that_cannot_be(tmp_path, fits, method, keyword, value, said):
    content, image = compressed(fits, method)
    path = tmp_path / "a.fits"
    path.write_bytes(with_card(content, keyword, value))
    if said is None:
        assert same(read(path, 2)[0], image)
        return
    with pytest.raises(RuntimeError, match=said):
        read(path, 2)


@pytest.mark.parametrize("method", COMPRESSED)
@pytest.mark.drawn(1)
def test_damaged_tiles_are_an_error_or_the_same_at_each_read(tmp_path, fits, method):
    content, _ = compressed(fits, method)
    first = content.index(b"END" + b" " * 77, 2880) // 2880 * 2880 + 2880
    rng, path, refused = np.random.default_rng(1), tmp_path / "a.fits", 0
    for k in range(60):
        spoilt = content.copy()
        for place in rng.integers(first + 48 if k % 2 else first, len(content.rstrip(b"\0")), 3):
            spoilt[place] = rng.integers(256)
        path.write_bytes(spoilt)
        result = []
        for _ in range(2):
            garbage = [np.full(int(n), 0xA5, np.uint8) for n in rng.integers(100, 40000, 20)]  # what freed memory holds
            del garbage
            try:
                result.append(read(path, 2)[0].tobytes())
            except RuntimeError:
                result.append(None)
        assert result[0] == result[1]
        refused += result[0] is None
    assert refused or method in ("PLIO_1", "RICE_1")


def test_a_tile_of_another_size_is_refused(tmp_path, fits):
    """Whose other pixels would be what memory held before."""
    content, _ = compressed(fits, "HCOMPRESS_1")
    at = content.index(b"\xdd\x99")
    assert content[at + 2 : at + 10] == bytes([0, 0, 0, 20, 0, 0, 0, 25])
    for place, extent in ((at + 5, 19), (at + 9, 2), (at + 2, 0xFF)):
        path = tmp_path / "a.fits"
        path.write_bytes(content[:place] + bytes([extent]) + content[place + 1 :])
        with pytest.raises(
            RuntimeError, match=r"expected tile 0 of a compressed FITS image as HCOMPRESS_1 of .20, 25. pixels"
        ):
            read(path, 2)


@pytest.mark.parametrize("shape", [(4, 4), (5, 7), (17, 64), (1, 40, 33), (65, 4)], ids=str)
@pytest.mark.parametrize("amplitude", [0, 1, 30000], ids=str)
@pytest.mark.drawn(1)
def test_whole_tiles_of_hcompress_are_read(tmp_path, fits, shape, amplitude):
    rng = np.random.default_rng(amplitude)
    image = (rng.normal(size=shape) * amplitude).clip(-32768, 32767).astype(np.int16)
    for more in ({}, {"hcomp_scale": 2, "hcomp_smooth": 1}):
        hdu = fits.CompImageHDU(image, compression_type="HCOMPRESS_1", tile_shape=shape, **more)
        fits.HDUList([fits.PrimaryHDU(), hdu]).writeto(tmp_path / "a.fits", overwrite=True)
        with fits.open(tmp_path / "a.fits") as hdus:
            expected = np.array(hdus[1].data)
        assert same(read(tmp_path / "a.fits", 2)[0], expected)


@pytest.mark.parametrize("method", ["RICE_1", "GZIP_2", "HCOMPRESS_1"])
@pytest.mark.parametrize("quantised", [{}, {"quantize_method": 1, "dither_seed": 7}, {"quantize_level": 0.0}], ids=str)
@pytest.mark.drawn(2)
def test_compressed_floats_are_as_astropy_has_them(tmp_path, fits, method, quantised):
    if method != "GZIP_2" and quantised == {"quantize_level": 0.0}:
        pytest.skip("the others pack integers")
    image = np.random.default_rng(0).normal(size=(40, 50)).astype(np.float32)
    image[3, 4] = np.nan
    content, _ = compressed(fits, method, image, **quantised)
    (tmp_path / "a.fits").write_bytes(content)
    with fits.open(tmp_path / "a.fits") as hdus:
        expected = np.array(hdus[1].data)
    assert np.array_equal(read(tmp_path / "a.fits", 2)[0], expected, equal_nan=True)


def test_large_files_are_read_in_parts(tmp_path, fits, monkeypatch):
    from ndd.readers.formats import fits_file

    read_bytes = []
    real = fits_file.OpenFiles.read

    def noting(self, numbers, offsets, sizes):
        read_bytes.append(int(np.sum(sizes)))
        return real(self, numbers, offsets, sizes)

    monkeypatch.setattr(fits_file.OpenFiles, "read", noting)
    images = [np.full((300, 1000), k, np.float32) for k in range(3)]
    assert same(read(write(fits, tmp_path / "a.fits", *images), 2)[0], images[1])
    assert sum(read_bytes) < 1.1 * images[0].nbytes


def test_sources(tmp_path, fits):
    (tmp_path / "deep").mkdir()
    for k, name in enumerate(["b.fits", "a.fits", "deep/c.fits", "x.FITS"]):
        write(fits, tmp_path / name, np.full(3, k))
    (tmp_path / "list.txt").write_text("b.fits\ndeep/c.fits\n")

    def firsts(**arguments):
        return [int(np.asarray(values[0])[0]) for values in Fits(hdu_indices=1, **arguments).next_epoch()]

    assert firsts(file_root=tmp_path) == [1, 0, 2]
    assert firsts(file_root=tmp_path, file_filter="*.FITS") == [3]
    assert firsts(file_list=tmp_path / "list.txt") == [0, 2]
    assert firsts(files=["a.fits", "x.FITS"], file_root=tmp_path) == [1, 3]


@pytest.mark.oracle
@pytest.mark.parametrize(
    "change",
    [
        {"files": None}, {"files": []}, {"file_list": "x"}, {"hdu_indices": 0}, {"hdu_indices": -1}, {"hdu_indices": 3},
        {"hdu_indices": 2}, {"hdu_indices": []}, {"files": ["/nonexistent/a.fits"]}, {"dtypes": []}, {"foo": 1},
        {"files": None, "file_root": "/", "file_filter": "*.none"}, {"num_shards": 2},
    ],
    ids=str,
)  # fmt: skip
def test_mistakes(tmp_path, fits, change):
    """HDU 2 is a table."""
    dali = pytest.importorskip("nvidia.dali.experimental.dynamic")
    table = fits.BinTableHDU.from_columns([fits.Column("a", "J", array=[1, 2])])
    fits.HDUList([fits.PrimaryHDU(np.zeros((2, 3))), table]).writeto(tmp_path / "a.fits")
    arguments = {
        k: v for k, v in {"files": [str(tmp_path / "a.fits")], "hdu_indices": [1], **change}.items() if v is not None
    }
    errors = []
    for package in (dali, ndd):
        with pytest.raises((RuntimeError, TypeError, ValueError, IndexError)) as raised:
            next(iter(package.experimental.readers.Fits(**arguments).next_epoch()))
        errors.append(raised.type)
    assert errors[0] is errors[1]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (b"SIMPLE  =", b"PK", "begins with 'SIMPLE  ='"),
        (b"END     ", b"DNE     ", "at least 8640 bytes"),
        (b"                   16", b"                   17", "BITPIX 8, 16, 32, 64, -32, -64 .* got 17"),
        (b"NAXIS2  =", b"NAXIS9  =", "as NAXIS2, got None"),
        (b"NAXIS1  =                    3", b"NAXIS1  =                   -3", "axes from 0"),
        (b"NAXIS1  =                    3", b"NAXIS1  =           9999999999", r"at least \d+ bytes .* cut off"),
        (b"NAXIS1  =                    3", b"NAXIS1  = 'three'             ", "a number .* as NAXIS1"),
        (b"NAXIS   =                    2", b"NAXIS   =              9999999", "NAXIS 0 to 999"),
        (b"NAXIS   =                    2", b"NAXIS   =                    0", "NAXIS is 0"),
    ],
)
def test_broken_files(tmp_path, fits, old, new, said):
    path = write(fits, tmp_path / "a.fits", np.zeros((2, 3), np.int16))
    good = write(fits, tmp_path / "b.fits", np.ones((2, 3), np.int16))
    content = Path(path).read_bytes()
    assert old in content
    Path(path).write_bytes(content.replace(old, new, 1))
    epoch = Fits(files=[path, good], hdu_indices=1).next_epoch()
    with pytest.raises(RuntimeError, match=rf"experimental.readers.Fits: sample 0 \({path}\): .*{said}"):
        next(epoch)
    assert np.asarray(next(epoch)[0]).tolist() == [[1, 1, 1], [1, 1, 1]]


def test_files_compressed_by_gzip(tmp_path, fits):
    images = [np.arange(6, dtype=np.int16).reshape(2, 3), np.random.default_rng(0).random((400, 500))]
    path = write(fits, tmp_path / "a.fits", *images)
    packed = gzip.compress(Path(path).read_bytes(), 1)
    assert len(packed) > 1 << 20  # more than is read at first
    (tmp_path / "a.fits.gz").write_bytes(packed)
    result = read(tmp_path / "a.fits.gz", 2, 1)
    assert all(same(first, second) for first, second in zip(result, read(path, 2, 1), strict=True))
    for wrong in (packed[:-9], packed[:5000], packed[:200] + b"?" * 50 + packed[250:]):
        (tmp_path / "a.fits.gz").write_bytes(wrong)
        with pytest.raises(
            RuntimeError, match=r"sample 0 \(.*a\.fits\.gz\): .* complete gzip file, it is cut off or damaged"
        ):
            read(tmp_path / "a.fits.gz", 1)


@pytest.mark.parametrize("length", [0, 9, 80, 2879, 2880, 2891])
def test_files_that_were_cut_off(tmp_path, fits, length):
    path = write(fits, tmp_path / "a.fits", np.zeros((2, 3), np.int16))
    os.truncate(path, length)
    with pytest.raises(RuntimeError, match=r"sample 0 \(.*a\.fits\): .*expected at least \d+ bytes .* was cut off"):
        read(path, 1)


def test_damaged_tiles_are_an_error_or_an_image(tmp_path, fits):
    """astropy tells by many types of exceptions; here it is always one sentence."""
    image = np.random.default_rng(0).integers(0, 200, (40, 50)).astype(np.int16)
    fits.HDUList([fits.PrimaryHDU(), fits.CompImageHDU(image)]).writeto(tmp_path / "a.fits")
    whole, rng, refused = (tmp_path / "a.fits").read_bytes(), np.random.default_rng(0), 0
    for _ in range(20):
        damaged = bytearray(whole)
        at = int(rng.integers(2880, len(whole) - 20))
        damaged[at : at + 20] = rng.bytes(20)
        (tmp_path / "a.fits").write_bytes(damaged)
        reader = Fits(files=tmp_path / "a.fits")
        try:
            reader[0]
        except RuntimeError as error:
            refused += str(error).startswith("experimental.readers.Fits: sample 0 (")
    assert refused


def test_what_is_no_regular_file(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", "/dev/zero", tmp_path):
        with pytest.raises(RuntimeError, match=r"sample 0 \(.*Not a regular file|Is a directory"):
            read(path, 1)


def test_files_of_one_batch_that_begin_alike(tmp_path, fits):
    """What was learned of one file's headers holds for the next one only as far as they are the same."""
    small, other = np.arange(6, dtype=np.int16).reshape(2, 3), np.arange(8, dtype=np.int16)
    images = [(small, small), (small, small + 1), (small, other), (small, other.astype("f4")), (other, small), (small,)]
    paths = [write(fits, tmp_path / f"{i}.fits", *some) for i, some in enumerate([*images, *images[:2]])]
    scaled = write(fits, tmp_path / "scaled.fits", small, small, BZERO=32768)
    cut = tmp_path / "cut.fits"
    cut.write_bytes(Path(paths[0]).read_bytes()[: 2880 * 3])
    paths = [*paths[:3], scaled, *paths[3:], str(cut), paths[0]]
    reader = Fits(files=paths, hdu_indices=[1, 2])
    result = reader._session.opened()[0].records(range(len(paths)))
    for place, path in enumerate(paths):
        item = Fits(files=path, hdu_indices=[1, 2])
        alone = item._session.opened()[0].records([0])
        if alone.faults:
            assert str(result[place]) == str(alone[0])
        else:
            assert all(same(a, b) for a, b in zip(result[place], alone[0], strict=True))
    assert list(result.faults) == [6, 9]
