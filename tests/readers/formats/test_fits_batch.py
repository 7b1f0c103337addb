"""Files of a batch that compiled code reads: the same as Python reads from each of them, and where it lies."""

import os
import random
from pathlib import Path

import numpy as np
import pytest

import ndd
from ndd.experimental.readers import Fits
from ndd.readers.formats import fits_batch, fits_images as images
from ndd.readers.formats.fits_batch import FitsBatch, FitsNames
from ndd.readers.formats.fits_file import read_images

pytestmark = pytest.mark.skipif(not fits_batch.AVAILABLE, reason="no compiled reading here")

WIDTHS = {8: 1, 16: 2, 32: 4, 64: 8, -32: 4, -64: 8}


def card(keyword, value, comment=""):
    return f"{keyword:<8}= {value:>20}{comment}"[:80]


def header(*cards):
    text = "".join(f"{line:<80}" for line in (*cards, "END"))
    return text.encode("latin-1").ljust(-(-len(text) // 2880) * 2880)


def hdu(rng, bits, shape, *more, first=True, kind="'IMAGE   '", data=None):
    """A header with `more` cards, and noise behind it."""
    axes = [card(f"NAXIS{k}", n) for k, n in enumerate(reversed(shape), 1)]
    start = card("SIMPLE", "T") if first else f"XTENSION= {kind}"
    size = int(np.prod(shape)) * WIDTHS.get(bits, 1) if shape else 0
    data = rng.bytes(size) if data is None else data
    return (
        header(start, card("BITPIX", bits), card("NAXIS", len(shape)), *axes, *more) + data + bytes(-len(data) % 2880)
    )


def facts_of(folder, names, indices):
    """What compiled code says of files, in buffers that hold them, and the arrays that it read."""
    known = FitsNames(str(folder), names, indices)
    buffer = np.zeros((len(indices), 1 << 22), np.uint8)
    rooms = np.array([(row.ctypes.data, 0, row.nbytes) for row in buffer], np.int64)
    facts = known.read(np.arange(len(names)), rooms)
    result = []
    for of_file in facts.tolist():
        arrays = None
        if all(row[images.STATE] == images.DONE for row in of_file):
            arrays = []
            for memory, row in zip(buffer, of_file, strict=True):
                piece = memory[row[images.PLACE] : row[images.PLACE] + row[images.BYTES]]
                shape = row[images.SHAPE : images.SHAPE + row[images.NDIM]]
                arrays.append(piece.copy().view(images.KINDS[row[images.KIND]]).reshape(shape))
        result.append(arrays)
    return result


def same(one, two):
    return (one.dtype, one.shape) == (two.dtype, two.shape) and one.tobytes() == two.tobytes()


def agree(folder, files, indices):
    """Writes files, and compares what compiled code reads with what Python does; how many it left to Python."""
    names = [f"{k}.fits" for k in range(len(files))]
    for name, content in zip(names, files, strict=True):
        (folder / name).write_bytes(content)
    compiled = facts_of(folder, names, indices)
    with np.errstate(all="ignore"):
        python = read_images([str(folder / name) for name in names], indices)
    left = 0
    for place, (ours, theirs) in enumerate(zip(compiled, python, strict=True)):
        if ours is None:
            left += 1
        else:
            assert not isinstance(theirs, Exception), (place, theirs)
            assert all(same(a, b) for a, b in zip(ours, theirs, strict=True)), (place, ours, theirs)
    return left


PLAIN = [
    (), ("BZERO", "32768"), ("BZERO", "2147483648.0"), ("BZERO", "-128"), ("BSCALE", "1", "BZERO", "-0"), ("BSCALE", "1.00"),
]  # fmt: skip
SCALED = [
    ("BSCALE", "2"), ("BZERO", "10.5"), ("BSCALE", "0.1", "BZERO", "-3.25E-2"), ("BZERO", "9223372036854775808"),
    ("BSCALE", "1.0D0", "BZERO", "32768.000"), ("BSCALE", "-1.5e+3", "BLANK", "7"), ("BZERO", "1", "BLANK", "-32768"),
    ("BLANK", "0"), ("BSCALE", ".5", "BLANK", "70000"),
]  # fmt: skip


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.drawn(2)
def test_numbers_of_every_kind(tmp_path, bits):
    """Compiled code reads what is stored as it is meant, and types that FITS lacks; it leaves to Python what is scaled."""
    rng = np.random.default_rng(0)

    def files(*scales):
        cards = [[card(*pair, " / a comment") for pair in zip(s[::2], s[1::2], strict=True)] for s in scales]
        shapes = (5,), (3, 40), (2, 1, 3, 4), (9000,)
        return [hdu(rng, bits, shape, *of_one) for of_one in cards for shape in shapes]

    lacking = {8: 3, 16: 1, 32: 2}.get(bits, 0)  # the place in PLAIN of the BZERO that these bits have
    meant = [scale for k, scale in enumerate(PLAIN) if k in (0, lacking, 4, 5)]
    assert agree(tmp_path, files(*meant), [1]) == 0
    scaled = files(*SCALED, *[scale for scale in PLAIN if scale not in meant])
    assert agree(tmp_path, scaled, [1]) == len(scaled)


def test_files_of_several_hdus(tmp_path):
    rng = np.random.default_rng(0)
    history = ["HISTORY of what was done"] * 36
    more = "PCOUNT  = 5", "GCOUNT  = 1"
    empty, table = hdu(rng, 8, ()), hdu(rng, 8, (20, 7), *more, first=False, kind="'BINTABLE'", data=b"x" * 145)
    parts = [hdu(rng, 16, (30, 20), *history[:n], first=False) for n in (0, 30, 31, 36 * 20)]
    large = hdu(rng, -32, (60, 1000), first=False)
    files = [
        empty + parts[0] + table + parts[1],
        empty + table + parts[2] + parts[3],
        empty + parts[3] + table + large,
        empty + large + table + parts[0],
        (empty + large + table + parts[0])[: -2880 + 1200],
        hdu(rng, 8, (), *history * 15) + large + table + large,
    ]
    assert agree(tmp_path, files, [2]) == 1  # the table
    assert agree(tmp_path, files, [4, 2, 4]) == 1
    assert agree(tmp_path, files, [4]) == 0
    assert agree(tmp_path, files, [1]) == agree(tmp_path, files, [5]) == len(files)
    assert agree(tmp_path, [file[:-2880] for file in files], [4]) == len(files)  # cut off


TOKENS = (
    "8|16|-32|+16|016|1_6|16.0|T||'x'|1e1|1D1|1d1| 2 / c|2/c|2 c|-1|0|3|.|1.|-.5E-3|1E400|1e-400|12345678901234567890|"
    "0.1234567890123456789|1E22|1E23|9007199254740993|9007199254740993E1|nan|inf|00000000000000000001|4|- 1|1 E3|1E|"
    "0.00000000000000000000000001|\xa02|\t2|100000000000000000000|1099511627777|0x10|'IMAGE'|'IMAGE   '|'BINTABLE'|F"
)
KEYWORDS = (
    "BITPIX|NAXIS|NAXIS1|NAXIS2|NAXIS3|NAXIS9|NAXIS01|PCOUNT|GCOUNT|GROUPS|BSCALE|BZERO|BLANK|ZIMAGE|XTENSION|SIMPLE|END|"
    "COMMENT|CONTINUE|BITPIX\t|bitpix| BZERO|BZERO\0|NAXISX|BLANKS|NAXIS1\t|\tNAXIS1"
)


def test_odd_headers(tmp_path):
    """Whatever a header looks like: it is read as Python does, or left to it."""
    draw, rng = random.Random(0), np.random.default_rng(0)
    tokens, keywords = TOKENS.split("|"), KEYWORDS.split("|")
    files = []
    for _ in range(600):
        bits, shape = draw.choice([8, 16, 32, 64, -32, -64]), draw.choice([(3,), (2, 3), (2, 2, 3)])
        content = bytearray(
            hdu(rng, bits, shape, *[card("BSCALE", "1.5")] * draw.choice([0, 0, 1]), "", "", data=rng.bytes(400))
        )
        for _ in range(draw.choice([1, 1, 2])):
            marks = draw.choice(["= ", "= ", "= ", "=", "  "]), draw.choice(["", " " * 10])
            line = f"{draw.choice(keywords):<8}{''.join(marks)}{draw.choice(tokens)}"
            at = 80 * draw.randrange(0, 11)
            content[at : at + 80] = line.encode("latin-1").ljust(80)[:80]
        if draw.random() < 0.2:
            at = draw.randrange(0, 800)
            content[at] = draw.randrange(256)
        files.append(bytes(content))
    left = agree(tmp_path, files, [1])
    assert 100 < left < 500


def batch_of(reader, numbers):
    """The records of a batch as a thread of a reader reads them."""
    return reader._session.opened()[0].records(list(numbers))


def write_all(folder, files):
    paths = [folder / f"{k:03}.fits" for k in range(len(files))]
    for path, content in zip(paths, files, strict=True):
        path.write_bytes(content)
    return [str(path) for path in paths]


def test_images_of_one_shape_are_one_array(tmp_path, monkeypatch):
    """Whatever the number of threads that read them."""
    rng = np.random.default_rng(0)
    paths = write_all(tmp_path, [hdu(rng, 16, (6, 5)) + hdu(rng, -64, (7,), first=False) for _ in range(20)])
    expected = read_images(paths, [1, 2])
    for count in (1, 2, 4):
        monkeypatch.setattr(FitsNames, "share_count", lambda self, files, count=count: count)
        reader = Fits(files=paths, hdu_indices=[1, 2])
        for batches in (reader.next_epoch(batch_size=20), [reader.fetch(range(20))]):
            for batch in batches:
                for k, part in enumerate(batch):
                    whole = part.torch()
                    assert whole.data_ptr() == part._value().whole.ctypes.data
                    assert same(np.asarray(whole), np.stack([of_file[k] for of_file in expected]))


def test_images_of_many_shapes(tmp_path):
    """Larger ones than those before find no room at first; several kinds in a batch are told, each record is right."""
    rng = np.random.default_rng(0)
    shapes = [(2, 3), (100, 90), (4, 4), (1, 1), (700, 800), (3, 2), (2, 3), (50, 60)]
    paths = write_all(tmp_path, [hdu(rng, 32, shape) for shape in shapes])
    expected = read_images(paths, [1])
    reader = Fits(files=paths, hdu_indices=1)
    for _ in range(3):
        for result, (image,) in zip(batch_of(reader, range(8)), expected, strict=True):
            assert same(result[0], image)
        (batch,) = reader.fetch(range(8))
        assert all(same(np.asarray(a), b[0]) for a, b in zip(batch.tensors, expected, strict=True))
    write_all(tmp_path, [hdu(rng, -32, (2, 3)), hdu(rng, 16, (6,), first=True)])
    with pytest.raises(RuntimeError, match=r"sample 1 .*Inconsistent data: a batch holds one kind"):
        Fits(files=paths, hdu_indices=1).fetch(range(3))
    assert [result[0].ndim for result in batch_of(reader, range(3))] == [2, 1, 2]


def test_python_reads_while_it_is_compiled(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    paths = write_all(tmp_path, [hdu(rng, 16, (10, 20)) for _ in range(40)] + [b""])
    reader = Fits(files=paths, hdu_indices=1)
    store = reader._session.opened()[0]
    monkeypatch.setattr(images, "read_images", images.read_images._fallback)
    before = store.records(range(41))
    monkeypatch.undo()
    after = store.records(range(41))
    assert list(before.faults) == list(after.faults) == [40]
    assert (type(before.columns[0]), type(after.columns[0])) == (list, np.ndarray)
    assert all(same(before[place][0], after[place][0]) for place in range(40))


def test_much_is_read_to_several_arrays(tmp_path, monkeypatch):
    """Also where there is no room for as much as the files before would make of it."""
    rng = np.random.default_rng(0)
    paths = write_all(tmp_path, [hdu(rng, 16, (10, 20)) + hdu(rng, 8, (9, 9), first=False) for _ in range(9)])
    expected = read_images(paths, [2, 1])
    monkeypatch.setattr(fits_batch, "_ONE_ARRAY", 1000)
    reader = Fits(files=paths, hdu_indices=[2, 1])
    real = fits_batch.host_empty
    for most in (1 << 20, 1000):
        monkeypatch.setattr(
            fits_batch, "host_empty", lambda n, kind, most=most: real(n if n <= most else 1 << 60, kind)
        )
        for numbers in (range(9), range(2), range(8, -1, -1)):
            result = batch_of(reader, numbers)
            sound = [place for place in range(len(numbers)) if place not in result.faults]
            assert len(sound) == len(numbers) or most == 1000
            for place in sound:
                assert all(same(a, b) for a, b in zip(result[place], expected[numbers[place]], strict=True))
            assert all("no room for" in str(error) for error in result.faults.values())


def handles(folder):
    """What is open in the folder; other tests' connections may end meanwhile."""
    open_files = Path("/proc/self/fd").glob("*")
    return sorted(link for file in open_files if (link := os.path.realpath(file)).startswith(str(folder)))


def test_what_is_left_to_python_among_others(tmp_path):
    rng = np.random.default_rng(0)
    good, odd = hdu(rng, 16, (2, 3)), hdu(rng, 16, (2, 3), card("GROUPS", "F"))
    paths = write_all(tmp_path, [good, odd, good[:2885], good, b"no FITS".ljust(2880), odd])
    os.remove(paths[3])
    os.mkfifo(paths[3])
    reader = Fits(files=[*paths, str(tmp_path / "none")], hdu_indices=1)
    result = batch_of(reader, range(7))
    assert list(result.faults) == [2, 3, 4, 6]
    texts = ["was cut off", "Not a regular file", "begins with 'SIMPLE", "No such file"]
    assert all(text in str(error) for text, error in zip(texts, result.faults.values(), strict=True))
    assert all(same(result[k][0], read_images([paths[k]], [1])[0][0]) for k in (0, 1, 5))
    sound = batch_of(reader, [0, 0, 2, 0])
    assert [place for place in range(4) if place not in sound.faults] == [0, 1, 3]
    opened = handles(tmp_path)
    for _ in range(5):
        batch_of(reader, range(7))
    assert handles(tmp_path) == opened


def test_names(tmp_path, monkeypatch):
    """Relative to a folder, to the current one, or to none; any characters."""
    rng = np.random.default_rng(0)
    (tmp_path / "déep er").mkdir()
    names = ["a b.fits", "ü:x.fits", "déep er/c.fits", os.fsdecode(b"\xff\xfe.fits")]
    for k, name in enumerate(names):
        (tmp_path / name).write_bytes(hdu(rng, 8, (3,), data=bytes([k] * 3)))
    monkeypatch.setattr(fits_batch, "read_images", lambda *_: pytest.fail("left to Python"))
    whole = [str(tmp_path / name) for name in names]
    monkeypatch.chdir(tmp_path)
    for arguments in ({"file_root": tmp_path}, {"file_root": ""}, {"file_root": "."}, {}):
        reader = Fits(files=names, hdu_indices=1, **arguments)
        assert [int(result[0][0]) for result in batch_of(reader, range(4))] == [0, 1, 2, 3]
    reader = Fits(files=[names[2], *whole], file_root=tmp_path, hdu_indices=1)
    assert [int(result[0][0]) for result in batch_of(reader, range(5))] == [2, 0, 1, 2, 3]


def test_shares(tmp_path, monkeypatch):
    """As many as the time that files took is worth; a share that fails harms no other one."""
    rng = np.random.default_rng(0)
    names = [Path(path).name for path in write_all(tmp_path, [hdu(rng, 8, (3,))] * 8)]
    known = FitsNames(str(tmp_path), names, [1])
    counts = []
    for seconds in (0.0, 1e-6, 2.1e-4 * 2, 1.0):
        known.seconds = seconds
        counts.append(known.share_count(8))
    assert counts == [1, 1, 2, 4]
    batch = FitsBatch(known, range(8), lambda numbers: [])
    assert batch.count == 4
    for job in (3, 1, 0):
        batch.run(job)
    with monkeypatch.context() as patched:
        patched.setattr(known, "read", lambda *_: 1 // 0)
        batch.run(2)
    result = batch.records()
    assert list(result.faults) == [4, 5]
    assert len(result.columns[0]) == 6


@pytest.mark.parametrize("name", ["{}\0x", "\ud800"])
def test_names_that_no_file_has(tmp_path, name):
    """A zero byte would end a name where compiled code opens files, and be taken for the next one."""
    (path,) = write_all(tmp_path, [hdu(np.random.default_rng(0), 8, (3,))])
    assert FitsNames.of("", [name.format(path), path], [1]) is None
    reader = Fits(files=[name.format(path), path], hdu_indices=1)
    store = reader._session.opened()[0]
    assert store.jobs([0, 1]) is None
    assert same(store.records([1])[0][0], read_images([path], [1])[0][0])


def test_a_gpu_is_given_the_same(tmp_path, emulated_gpu):
    rng = np.random.default_rng(0)
    paths = write_all(tmp_path, [hdu(rng, 16, (4, 5)) for _ in range(6)] + [hdu(rng, 16, (2, 3))])
    expected = read_images(paths, [1])
    reader = Fits(files=paths, hdu_indices=1, device="gpu")
    for numbers in (range(6), range(7)):
        (batch,) = reader.fetch(numbers)
        assert str(batch.device).startswith("gpu")
        assert all(same(np.asarray(a.cpu()), expected[k][0]) for a, k in zip(batch.tensors, numbers, strict=True))
    assert ndd.as_batch([expected[0][0]]).dtype == batch.dtype
