"""Hostile pictures: thousands of mutated files through the decoders in processes of their own, none of which may die or hang.

Every file gives a picture, or an error that names operator, sample and file. `python tests/decoders/test_hostile.py 100000`
(or NDD_HOSTILE_FILES=100000 with pytest) tries more than CI does; `... 100000 50000` begins at the 50,000th, and what dies
or hangs is named by its number, so that `... 1 NUMBER` repeats it.
"""

from __future__ import annotations

import functools
import io
import os
import re
import signal
import struct
import sys
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[1]))
import warm_interpreter
from emulated_gpu import install
from encoded import KINDS, cmyk, made, photo, rare, read, real

import ndd

SEED = 20
FILES_IN_CI = 100
PATIENCE = 120  # seconds for one file: the slowest takes 0.3 of a free core, and there may be none
MAX_PIXELS = 1 << 20
MAX_GROWTH = 600 << 20  # bytes of memory that a process may take more at its end than after its first files

# ---- what is mutated


@functools.cache
def originals() -> list[tuple[str, bytes]]:
    """Good files and broken ones, small ones first made here; of large ones there are few, for they cost time."""
    rgb = np.ascontiguousarray(photo(24, 36)[..., :3])
    result = {name: data.tobytes() for name, data in (made() | rare() | {"cmyk.jpg": cmyk()}).items()}
    result["ascii.ppm"] = b"P3\n36 24\n65535\n" + b" ".join(b"%d" % v for v in rgb.ravel()) + b"\n"
    frames = [Image.fromarray(rgb).quantize(16), Image.fromarray(rgb[::-1]).quantize(7)]
    for kind in ("GIF", "WEBP", "TIFF", "PNG"):
        result[f"frames.{kind.lower()}"] = saved(kind, frames[0], save_all=True, append_images=frames[1:])
    try:
        result["still.avif"] = saved("AVIF", Image.fromarray(rgb))
    except (KeyError, OSError):  # this Pillow has no AVIF
        pass
    files = list(result.items()) * 3
    for path in real("formats/*/*") * 2 + real("broken/*") + real("imagenet/*/*")[::97]:
        files.append((path.name, read(path).tobytes()))
    return files


def saved(kind: str, picture: Image.Image, **options: object) -> bytes:
    held = io.BytesIO()
    picture.save(held, kind, **options)
    return held.getvalue()


@functools.cache
def handmade() -> list[tuple[str, bytes]]:
    """Files that somebody would send to do harm; the first numbers are theirs."""
    jpeg, png, webp = (bytearray(made()[n].tobytes()) for n in ("422_progressive.jpg", "rgb.png", "turned_6.webp"))
    gif = dict(originals())["frames.gif"]
    signatures = [
        b"", b"\xff", b"\xff\xd8\xff", bytes(png[:8]), b"BM", b"GIF89a", b"II*\0", b"MM\0*", b"II+\0", b"RIFF\0\0\0\0WEBP",
        b"\0\0\0\x0cjP  \r\n\x87\n", b"\xff\x4f\xff\x51", b"P6 ", b"\0\0\0\x1cftypavif", b"%!PS-Adobe-3.0",
    ]  # fmt: skip
    result = {str(s): s for s in signatures} | {f"{s!r} and zeros": s + bytes(200) for s in signatures}
    siz = struct.pack(">HHHH", 0xFF4F, 0xFF51, 41, 0)
    for size in (60000, 2**31 - 1, 2**32 - 1):
        two = struct.pack(">II", size, size)
        result[f"{size} png"] = bytes(with_checksums(png[:16] + two + png[24:]))
        header = struct.pack("<IIIIiiHHIIiiII", 99, 0, 54, 40, -1, size & 0x7FFFFFFF, 1, 24, *[0] * 6)
        result[f"{size} bmp"] = b"BM" + header + bytes(60)
        result[f"{size} pnm"] = b"P6 %d %d 255 " % (size, size) + bytes(60)
        result[f"{size} ascii pnm"] = b"P3 %d %d 255 1 2 3 4 5 6" % (size, size)
        numbers = {256: size, 257: size, 258: 8, 259: 1, 262: 1, 273: 8, 277: 1, 278: size, 279: 2**32 - 1}
        result[f"{size} tiff"] = tiff(numbers)
        stream = siz + two + bytes(8) + struct.pack(">IIIIH", size, size, 0, 0, 1) + b"\7\1\1"
        result[f"{size} jpeg 2000"] = stream + bytes(100)
        result[f"{size} jpeg 2000, subsampling 0"] = stream[:-2] + b"\0\0" + bytes(100)
    thousand = struct.pack(">IIIIIIIIH", 1000, 1000, 0, 0, 1, 1, 0, 0, 1) + b"\7\1\1"
    result["jpeg 2000, a tile for each pixel"] = siz + thousand + bytes(60)
    # An EXIF of 65 entries, the first with 131073 orientations: nvImageCodec's parser writes behind its memory.
    many = b"MM\0*\0\0\0\x08\0A\x01\x12\0\3\0\2\0\1\0\6\x80\0\0\0\0\0"
    for name in ("turned_6.jpg", "turned_6.png", "turned_6.webp"):
        turned = bytearray(made()[name].tobytes())
        place = turned.index(b"MM\0*")
        turned[place : place + len(many)] = many
        result[f"{name}, too many orientations"] = bytes(with_checksums(turned) if name[-3:] == "png" else turned)
    back = struct.pack(">I4s", 2**32 - 12, b"eXIf")
    result["png, a chunk that ends where it begins"] = bytes(png[:33] + back + png[33:])
    back = struct.pack("<4sI", b"ICCP", 2**32 - 8)
    result["webp, a chunk that ends where it begins"] = bytes(webp[:30] + back + webp[30:])
    result["60000 gif"] = gif[:6] + struct.pack("<HH", 60000, 60000) + gif[10:]
    result["16384 webp"] = (
        b"RIFF" + struct.pack("<I", 22) + b"WEBPVP8X" + struct.pack("<II", 10, 16) + b"\xff\x3f\0" * 2
    )
    place = jpeg.index(b"\xff\xc2") + 5
    result["65500 jpeg"] = bytes(jpeg[:place] + struct.pack(">HH", 65500, 65500) + jpeg[place + 4 :])
    scan = jpeg.rindex(b"\xff\xda")
    result["5000 scans"] = bytes(jpeg[:scan] + jpeg[scan:-2] * 5000 + jpeg[-2:])
    thousand = jpeg[:place] + struct.pack(">HH", 1000, 1000) + jpeg[place + 4 : scan]
    result["5000 scans of 1000x1000"] = bytes(thousand + jpeg[scan:-2] * 5000 + jpeg[-2:])
    for name, head in {"zTXt": b"a\0\0", "iCCP": b"a\0\0", "iTXt": b"a\0\1\0\0\0"}.items():
        body = name.encode() + head + zlib.compress(bytes(1 << 25), 9)
        chunk = struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))
        result[f"{name} of 32 MB"] = bytes(png[:33]) + chunk + bytes(png[33:])
    result["1000 text chunks"] = bytes(with_checksums(png[:33] + b"\0\0\0\3tEXta\0b\0\0\0\0" * 1000 + png[33:]))
    square = {256: 8, 257: 8, 258: 8, 259: 1, 262: 1, 273: 8, 277: 1, 278: 8, 279: 64}
    result["tiff, directories in a circle"] = tiff(square, following=8)
    result["tiff, its own EXIF directory"] = tiff({**square, 34665: 8, 330: 8})
    result["tiff, 65535 channels"] = tiff({**square, 277: 65535})
    result["tiff, one strip a row of 2^31"] = tiff({**square, 278: 2**31})
    tiles = {256: 8, 257: 8, 258: 8, 259: 5, 262: 1, 277: 1, 322: 1 << 30, 323: 1 << 30, 324: 8, 325: 64}
    result["tiff, tiles of 2^30"] = tiff(tiles)
    result["20 MB of zeros behind"] = bytes(png) + bytes(20 << 20)
    result["gif behind gif"] = gif * 200
    return list(result.items())


def tiff(tags: dict[int, int], following: int = 0) -> bytes:
    """A TIFF of one directory at byte 8, with numbers of 32 bits; the offset of its pixels is wrong."""
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in sorted(tags.items()))
    return b"II*\0" + struct.pack("<IH", 8, len(tags)) + entries + struct.pack("<I", following) + bytes(200)


# ---- mutations: (random numbers, the file, all files) to the file


def somewhere(rng, data, lead=512) -> int:
    """A place in the file, two times of three in its beginning, where the headers are."""
    end = min(lead, len(data)) if rng.random() < 0.67 else len(data)
    return int(rng.integers(max(end, 1)))


def flipped_bits(rng, data, _):
    for _i in range(rng.integers(1, 9)):
        data[somewhere(rng, data)] ^= 1 << int(rng.integers(8))
    return data


def other_bytes(rng, data, _):
    place = somewhere(rng, data)
    count = int(rng.integers(1, 17))
    data[place : place + count] = rng.bytes(count)
    return data


def cut(rng, data, _):
    return data[: somewhere(rng, data)]


def joined(rng, data, files):
    other = files[rng.integers(len(files))][1]
    return data[: somewhere(rng, data)] + other[somewhere(rng, other) :]


EXTREMES = (0, 1, 2, 3, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)


def extreme_numbers(rng, data, _):
    """Widths, heights, lengths, offsets and counts, wherever they may be."""
    for _i in range(rng.integers(1, 4)):
        code = "BHHIIIIQ"[rng.integers(8)]
        size = struct.calcsize("=" + code)
        number = EXTREMES[rng.integers(len(EXTREMES))] & ((1 << 8 * size) - 1)
        place = somewhere(rng, data, 256)
        data[place : place + size] = struct.pack("<>"[rng.integers(2)] + code, number)
    return data


WORDS = (
    b"0",
    b"-1",
    b"1",
    b"65535",
    b"65536",
    b"2147483647",
    b"4294967297",
    b"99999999999999999999",
    b"",
    b"1e9",
    b"#",
)


def extreme_words(rng, data, _):
    """Numbers written as text, as in PNM."""
    result = [*re.finditer(rb"\d+", bytes(data[:64]))]
    if result:
        item = result[rng.integers(len(result))]
        data[item.start() : item.end()] = WORDS[rng.integers(len(WORDS))]
    return data


def swapped_parts(rng, data, _):
    a, b, c = sorted(somewhere(rng, data, 2048) for _ in range(3))
    return data[:a] + data[b:c] + data[a:b] + data[c:]


def repeated_part(rng, data, _):
    a, b = sorted((somewhere(rng, data, 2048), somewhere(rng, data, 2048)))
    return data[:b] + data[a:b] * int(rng.integers(1, 4)) + data[b:]


def removed_part(rng, data, _):
    a, b = sorted((somewhere(rng, data), somewhere(rng, data)))
    return data[:a] + data[b:]


def chunks(data, big_endian, start) -> Iterator[tuple[int, int]]:
    """Where the bodies of PNG chunks, RIFF chunks and JPEG 2000 boxes begin and end."""
    place = start
    while place + 8 <= len(data):
        length = struct.unpack_from(">I" if big_endian else "<I", data, place + (0 if big_endian else 4))[0]
        yield place + 8, min(place + 8 + length, len(data))
        place += 8 + length + (4 if start == 8 else length & 1)


def inside_a_chunk(rng, data, files):
    """A change that keeps the structure: PNG with right checksums, RIFF; of other files some bytes."""
    is_png = data[:4] == b"\x89PNG"
    if not is_png and data[:4] != b"RIFF":
        return other_bytes(rng, data, files)
    result = list(chunks(data, is_png, 8 if is_png else 12))
    if not result:
        return data
    start, end = result[rng.integers(len(result))]
    if end > start:
        body = (
            extreme_numbers(rng, data[start:end], files)
            if rng.random() < 0.5
            else flipped_bits(rng, data[start:end], files)
        )
        data[start:end] = body[: end - start]
    if is_png:
        return with_checksums(data)
    return data


def swapped_chunks(rng, data, files):
    if data[:4] != b"\x89PNG":
        return swapped_parts(rng, data, files)
    parts = [data[start - 8 : end + 4] for start, end in chunks(data, True, 8)]
    if parts:
        a, b = (int(rng.integers(len(parts))) for _ in range(2))
        parts[a], parts[b] = parts[b], parts[a]
        if rng.random() < 0.3:
            parts.insert(a, parts[b])
    return data[:8] + b"".join(parts)


def with_checksums(data: bytearray) -> bytearray:
    for start, end in list(chunks(data, True, 8)):
        if end + 4 <= len(data):
            struct.pack_into(">I", data, end, zlib.crc32(data[start - 4 : end]))
    return data


MUTATIONS = (
    flipped_bits, flipped_bits, other_bytes, cut, joined, extreme_numbers, extreme_numbers, extreme_numbers, extreme_words,
    swapped_parts, repeated_part, removed_part, inside_a_chunk, inside_a_chunk, swapped_chunks,
)  # fmt: skip


def mutated(number: int) -> tuple[str, np.ndarray]:
    """File `number`: the name of what it was, and its bytes."""
    if number < len(handmade()):
        name, data = handmade()[number]
        return name, np.frombuffer(data, np.uint8)
    rng = np.random.default_rng([SEED, number])
    files = originals()
    name, original = files[rng.integers(len(files))]
    data = bytearray(original)
    for _ in range(1 + (rng.random() < 0.3) + (rng.random() < 0.1)):
        if data:
            data = MUTATIONS[rng.integers(len(MUTATIONS))](rng, data, files)
    return name, np.frombuffer(bytes(data), np.uint8)


# ---- what is done with one, in a process that may die of it


def try_one(number: int, folder: str) -> None:
    """Decodes a file. AssertionError if anything but a picture or a proper error comes out."""
    _, data = mutated(number)
    for way in range(WAYS) if number < len(handmade()) else [number % WAYS]:
        try_in_one_way(number, way, data, folder)


WAYS = 8


def try_in_one_way(number: int, way: int, data: np.ndarray, folder: str) -> None:
    kind = getattr(ndd.types, KINDS[number % 5])
    dtype = (ndd.uint8, ndd.uint8, ndd.float32)[number % 3]
    options = {"output_type": kind, "dtype": dtype, "max_pixels": MAX_PIXELS}
    if way == 0:
        path = os.path.join(folder, f"picture_{number % 16}.jpg")
        data.tofile(path)
        expect(lambda: ndd.imread(path, **options), "sample 0", path)
    elif way == 1:
        expect(lambda: ndd.decoders.image_crop(data, crop=(5, 7), **options), "image_crop", "sample 0")
    elif way in (2, 3, 4):  # the last one by the C library, on the GPU or what emulates one
        policy, device = ("skip", "fill", "skip")[way - 2], ("cpu", "cpu", "gpu")[way - 2]
        batch = ndd.batch([good(), data, good()])
        result = ndd.decoders.image(batch, on_error=policy, device=device, **options).evaluate()
        assert result.batch_size + (len(result.dropped) if policy == "skip" else 0) == 3
        assert [b.index for b in result.dropped] in ([], [1])
        assert all(np.asarray(t.cpu()).size for t in result.tensors)
    else:
        expect(lambda: ndd.decoders.image(data, **options), "image", "sample 0")
    expect(lambda: ndd.peek_image_shape(data), "peek_image_shape", "sample 0")


def expect(call, *named: str) -> None:
    wrong = ""
    try:
        result = np.asarray(call().evaluate())
    except (RuntimeError, ValueError) as error:
        wrong = str(error)
    if wrong:
        assert all(n in wrong for n in named), f"{named} are not in {wrong}"
        assert len(wrong) < 1000, f"an error of {len(wrong)} letters"
    else:
        assert result.size
        assert result.ndim == 1 or result.shape[0] * result.shape[1] <= MAX_PIXELS, f"a picture of {result.shape}"


@functools.cache
def good() -> np.ndarray:
    return made()["gray.jpg"]


def resident() -> int:
    """Bytes of memory that this process has."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def work(start: int, stop: int) -> None:
    """The child: writes the number of each file before it tries it, and FAILED lines."""
    import resource

    at_first = None
    install(pytest.MonkeyPatch())
    np.asarray(ndd.decoders.image(good()))  # imports, which may take longer than a file may
    originals()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(start, stop):
            os.write(1, b"%d\n" % number)
            signal.alarm(PATIENCE)
            try:
                try_one(number, folder)
            except Exception as error:
                os.write(1, f"FAILED {number} ({mutated(number)[0]}): {type(error).__name__} {error}\n".encode())
            if number == start + 100:
                at_first = resident()
    if at_first is not None:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        os.write(1, b"MEMORY %d %d\n" % (resident() - at_first, peak))


def watched(start: int, stop: int) -> list[str]:
    """Tries files in a process; starts another one behind each that dies or hangs. What went wrong, a line for each."""
    wrong: list[str] = []
    child = f"import runpy; runpy.run_path({__file__!r}, run_name='__main__')"
    while start < stop:
        done = warm_interpreter.run(child, "child", str(start), str(stop), timeout=3600, has_ndd=True)
        at = start
        for line in done.stdout.splitlines():
            if line.isdigit():
                at = int(line)
            elif line.startswith("MEMORY"):
                growth, _peak = map(int, line.split()[1:])
                if growth > MAX_GROWTH:
                    wrong.append(f"MEMORY: {growth >> 20} MB more at the end")
            else:
                wrong.append(line)
        if done.returncode == 0:
            break
        how = "HANGS" if done.returncode == -signal.SIGALRM else "DIES"
        wrong.append(f"{how} {at} ({mutated(at)[0]}): status {done.returncode} {done.stderr[-200:].strip()}")
        start = at + 1
    return wrong


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="watches processes as Linux has them")
@pytest.mark.timeout(3600)
def test_mutated_pictures():
    wrong = watched(0, int(os.environ.get("NDD_HOSTILE_FILES", FILES_IN_CI)))
    assert not wrong, f"{len(wrong)} files, seed {SEED}:\n" + "\n".join(wrong[:50])


if __name__ == "__main__":
    if sys.argv[1] == "child":
        work(int(sys.argv[2]), int(sys.argv[3]))
    else:
        first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
        count = int(sys.argv[1])
        for begin in range(first, first + count, 2000):
            for problem in watched(begin, min(begin + 2000, first + count)):
                print(problem, flush=True)
            print(f"... {min(begin + 2000, first + count)}", flush=True)
