"""Zip archives: classes and filters as `File` has them, forms of the format, damage."""

import struct
import zipfile
import zlib

import numpy as np
import pytest

import ndd
from ndd.readers import File, Zip

NAMES = [
    "cat/2.jpg",
    "cat/1.JPG",
    "dog/1.png",
    "dog/deeper/2.jpg",
    ".hidden/3.jpg",
    "loose.jpg",
    "cat/notes.txt",
    "empty/",
]


def make(path, names=NAMES, method=zipfile.ZIP_DEFLATED, before=""):
    with zipfile.ZipFile(path, "w", method) as archive:
        for name in names:
            archive.writestr(before + name, b"" if name.endswith("/") else f"{name} ".encode() * 100)
    return path


def content(reader):
    return [(bytes(np.asarray(data)), label.torch().item()) for data, label in reader.next_epoch()]


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize(
    "filters",
    [
        {}, {"file_filters": "*.txt"}, {"file_filters": None}, {"dir_filters": ["d*", "e*"]},
        {"file_filters": "*.jpg", "case_sensitive_filter": True}, {"dir_filters": "*t"},
    ],
)  # fmt: skip
@pytest.mark.drawn(3)
def test_the_same_files_and_labels_as_in_a_folder(tmp_path, method, filters):
    with zipfile.ZipFile(make(tmp_path / "a.zip", method=method)) as archive:
        archive.extractall(tmp_path / "folder")
    expected = content(File(file_root=tmp_path / "folder", **filters))
    assert content(Zip(path=tmp_path / "a.zip", **filters)) == expected
    make(tmp_path / "b.zip", method=method, before="photos/train/")
    assert content(Zip(path=tmp_path / "b.zip", file_root="photos/train", **filters)) == expected


def test_several_archives_have_their_classes_together(tmp_path):
    make(tmp_path / "a.zip", ["b/1.jpg", "d/1.jpg"])
    make(tmp_path / "c.zip", ["a/1.jpg", "b/1.jpg"])
    reader = Zip(path=tmp_path)
    assert [label for _, label in content(reader)] == [0, 1, 1, 2]
    assert [data.source_info for data, _ in reader.next_epoch()] == [
        f"{tmp_path}/{name}" for name in ("c.zip a/1.jpg", "a.zip b/1.jpg", "c.zip b/1.jpg", "a.zip d/1.jpg")
    ]


def test_without_folders(tmp_path):
    assert [label for _, label in content(Zip(path=make(tmp_path / "a.zip", ["2.jpg", "1.jpg"])))] == [0, 0]


def test_forms_of_the_format(tmp_path):
    """Zip64, long extra fields, sizes after the data, something before the archive."""
    path = tmp_path / "a.zip"
    with open(path, "wb") as file:
        file.write(b"a program that unpacks itself")
        with zipfile.ZipFile(file, "w") as archive:
            with archive.open("a/1.jpg", "w", force_zip64=True) as member:
                member.write(b"one")
            info = zipfile.ZipInfo("a/2.jpg")
            info.extra = struct.pack("<HH", 0x9999, 60_000) + bytes(60_000)
            archive.writestr(info, b"two")
            archive.writestr("a/é.jpg", b"three", zipfile.ZIP_DEFLATED)
    assert [data for data, _ in content(Zip(path=path))] == [b"one", b"two", b"three"]
    with open(tmp_path / "b.zip", "wb") as file:

        class Pipe:
            def write(self, data):
                return file.write(data)

            def flush(self):
                pass

        with zipfile.ZipFile(Pipe(), "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a/1.jpg", b"streamed" * 50)
    assert content(Zip(path=tmp_path / "b.zip")) == [(b"streamed" * 50, 0)]


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_damaged_member(tmp_path, method):
    path = make(tmp_path / "a.zip", ["a/1.jpg", "a/2.jpg"], method)
    with zipfile.ZipFile(path) as archive:
        second = archive.infolist()[1]
    data = bytearray(path.read_bytes())
    at = second.header_offset + 30 + len(second.filename) + second.compress_size // 2
    data[at] ^= 0xFF
    path.write_bytes(data)
    reader = Zip(path=path)
    assert bytes(np.asarray(reader[0][0])).startswith(b"a/1.jpg")
    with pytest.raises(RuntimeError, match=r"sample 1 .*a\.zip a/2\.jpg.* damaged"):
        reader[1]


@pytest.mark.parametrize(
    ("method", "said"), [(zipfile.ZIP_BZIP2, "compression 12"), (zipfile.ZIP_LZMA, "compression 14")]
)
def test_other_compressions(tmp_path, method, said):
    with pytest.raises(RuntimeError, match=said):
        Zip(path=make(tmp_path / "a.zip", ["a/1.jpg"], method))[0]


def test_what_unpacks_to_more_than_it_says(tmp_path):
    packed = zlib.compressobj(9, wbits=-15)
    bomb = packed.compress(bytes(50_000_000)) + packed.flush()
    path = make(tmp_path / "a.zip", ["a/1.jpg"])
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/1.jpg", bomb)
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        start = archive.start_dir
    struct.pack_into("<H", data, 8, zipfile.ZIP_DEFLATED)
    struct.pack_into("<H", data, start + 10, zipfile.ZIP_DEFLATED)
    path.write_bytes(data)
    with pytest.raises(RuntimeError, match="it is damaged"):
        Zip(path=path)[0]


@pytest.mark.parametrize("offset", [2**63, 2**64 - 1])
def test_an_offset_that_no_file_has(tmp_path, offset):
    path, name = tmp_path / "a.zip", b"a/1.jpg"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(name.decode(), b"one")
        extra = struct.pack("<HHQ", 1, 8, offset)
    data = path.read_bytes()
    start = data.index(b"PK\1\2")
    entry = bytearray(data[start : start + 46])
    struct.pack_into("<H", entry, 30, len(extra))
    struct.pack_into("<I", entry, 42, 0xFFFFFFFF)
    directory = bytes(entry) + name + extra
    path.write_bytes(
        data[:start] + directory + struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 1, 1, len(directory), start, 0)
    )
    with pytest.raises(RuntimeError, match=r"a\.zip: expected a zip archive: 'a/1\.jpg' has the offset and sizes"):
        len(Zip(path=path))


def test_what_cannot_be_opened(tmp_path):
    (tmp_path / "none.zip").write_bytes(b"no archive")
    with pytest.raises(RuntimeError, match="expected a zip archive"):
        len(Zip(path=tmp_path / "none.zip"))
    with pytest.raises(RuntimeError, match="Cannot open"):
        len(Zip(path=tmp_path / "nobody.zip"))
    with pytest.raises(RuntimeError, match="No files found in 'elsewhere/'"):
        len(Zip(path=make(tmp_path / "a.zip"), file_root="elsewhere"))
    assert ndd.readers.Zip.outputs() == ndd.readers.File.outputs()
