"""Kept indexes that somebody has changed: they are built anew, and never lead to other data; index files of a user's that
are wrong are told in a sentence."""

import functools
import json
import struct

import numpy as np
import pytest

import ndd
from ndd import tfrecord
from ndd.__main__ import main
from ndd.readers import mxnet
from ndd.readers.files import index_cache
from ndd.readers.files.index_cache import cached
from ndd.readers.formats import coco_annotations, lmdb_file
from ndd.readers.stores import video_clips
from readers.datasets import DATASETS, FEATURES, example, int64_list, tfrecord_frame, write_tar

COUNT = 6


def listed_tars(folder, count):
    """With index files."""
    arguments = DATASETS["Webdataset"].make(folder, count)
    for path in arguments["paths"]:
        assert main(["index", path]) == 0
    return {**arguments, "index_paths": [path.replace(".tar", ".idx") for path in arguments["paths"]]}


def unlisted_tfrecords(folder, count):
    return {**DATASETS["TFRecord"].make(folder, count), "index_path": None}


KINDS = {
    "tfrecord": ("TFRecord", unlisted_tfrecords),
    "tfrecord index": ("TFRecord", DATASETS["TFRecord"].make),
    "webdataset": ("Webdataset", DATASETS["Webdataset"].make),
    "webdataset index": ("Webdataset", listed_tars),
    "mxnet": ("MXNet", DATASETS["MXNet"].make),
    "lmdb": ("Caffe", DATASETS["Caffe"].make),
    "coco": ("COCO", DATASETS["COCO"].make),
    "coco-places": ("COCO", lambda folder, count: {**DATASETS["COCO"].make(folder, count), "polygon_masks": True}),
    "video": ("Video", functools.partial(DATASETS["Video"].make)),
}
# Columns of which an index with a right digest can say something else that nothing in the container contradicts.
FREE = {
    "mxnet": ["offsets"], "lmdb": ["marks"], "tfrecord index": ["offsets", "sizes"],
    "webdataset": ["count", "sample", "extension", "extensions"],
    "coco": [
        "image_ids", "sizes", "names", "name_ends", "categories", "owners", "boxes", "labels", "crowds",
    ],
    "video": [
        "times", "decode_times", "keys", "marks", "time_base", "size", "untimed", "picture", "codec", "extradata", "packets",
        "sent",
    ],
}  # fmt: skip
FREE["webdataset index"] = FREE["webdataset"]
FREE["coco-places"] = FREE["coco"] + ["numbers", "starts", "lengths"]

WAYS = {
    "cut": lambda a: a[:-1],
    "none left": lambda a: a[:0],
    "longer": lambda a: np.concatenate([a, a[-1:]]),
    "other numbers": lambda a: a + 1 if a.dtype.kind in "iuf" else ~a,
    "huge": lambda a: np.where(np.arange(len(a)).reshape(-1, *[1] * (a.ndim - 1)) == 0, _most(a), a).astype(a.dtype),
    "huge last": lambda a: np.where(np.arange(len(a)).reshape(-1, *[1] * (a.ndim - 1)) == len(a) - 1, _most(a), a).astype(a.dtype),
    "negative": lambda a: -1 - a if a.dtype.kind in "if" else ~a,
    "least": lambda a: np.full_like(a, np.iinfo(a.dtype).min) if a.dtype.kind in "iu" else ~a if a.dtype.kind == "b" else -a,
    "other type": lambda a: a.astype(np.float16),
    "bytes": lambda a: np.ascontiguousarray(a).reshape(-1).view(np.uint8),
    "a dimension more": lambda a: a[..., None],
    "one number": lambda a: np.int64(3),
    "text": lambda a: np.array(["a"] * len(a)),
}  # fmt: skip


def _most(array):
    return (
        True
        if array.dtype.kind == "b"
        else np.finfo(array.dtype).max
        if array.dtype.kind == "f"
        else np.iinfo(array.dtype).max
    )


@pytest.fixture
def all_kept(tmp_path, monkeypatch):
    """Indexes of small containers too."""
    monkeypatch.setenv("NDD_CACHE_DIR", str(tmp_path / "cache"))

    def small(container, kind, version, build, least=0, check=None, statuses=None):
        return cached(container, kind, version, build, 0, check, statuses)

    for module in (index_cache, mxnet, lmdb_file, coco_annotations, video_clips):
        monkeypatch.setattr(module, "cached", small)
    return tmp_path / "cache"


def outcome(name, arguments):
    """All samples, or the error."""
    try:
        reader = getattr(ndd.readers, name)(**arguments)
        samples = [sample.values() if isinstance(sample, dict) else sample for sample in reader.next_epoch()]
        return [[(np.asarray(output).shape, np.asarray(output).tobytes()) for output in sample] for sample in samples]
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def changed(file, change, told):
    """A file whose index is another one; `told`, whether its digest is that of the new one."""
    with np.load(file) as arrays:
        state = json.loads(bytes(arrays["_state"]))
        index = {name: arrays[name] for name in arrays.files if name != "_state"}
    index = change(index)
    if told:
        state["digest"] = index_cache._digest(index)
    np.savez(file, _state=np.frombuffer(json.dumps(state).encode(), np.uint8), **index)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.drawn(1)
def test_changed_indexes_are_built_anew(all_kept, tmp_path, kind):
    """Whoever changes an array and no digest; and those who know how to make one, where the index cannot be that of the
    container. Where it could be, nothing but an error of a reader comes of it."""
    name, make = KINDS[kind]
    (tmp_path / "data").mkdir()
    count = 2 if kind == "video" else COUNT  # it takes long to look at these
    arguments = make(tmp_path / "data", count)
    right = outcome(name, arguments)
    assert isinstance(right, list), right
    assert len(right) == count
    (file, *more) = sorted(all_kept.glob("*.npz"))
    written = [each.stat().st_ino for each in (file, *more)]
    assert outcome(name, arguments) == right
    assert [each.stat().st_ino for each in (file, *more)] == written, "what is right is not built anew"
    whole = [each.read_bytes() for each in (file, *more)]
    with np.load(file) as arrays:
        names = [each for each in arrays.files if each != "_state"]
    changes = [(column, way, functools.partial(_with, column, WAYS[way])) for column in names for way in WAYS]
    changes += [(column, "left out", functools.partial(_without, column)) for column in names]
    changes += [("more", "more", lambda index: {**index, "more": np.arange(3)})]
    for column, way, change in changes:
        for told in (False, True) if way in ("other numbers", "left out", "more") else (True,):
            for each, content in zip((file, *more), whole, strict=True):
                each.write_bytes(content)
            changed(file, change, told)
            got = outcome(name, arguments)
            if got != right:
                assert told, (column, way, got)
                assert way == "other numbers" or column in FREE.get(kind, ()), (column, way, got)
                assert column in FREE.get(kind, ()) or isinstance(got, str), (column, way)
                assert isinstance(got, list) or got.startswith(("RuntimeError: readers.", "ValueError: readers.")), (
                    column,
                    way,
                    got,
                )
                assert not any(word in str(got) for word in ("IndexError", "KeyError", "MemoryError", "dimension")), (
                    column,
                    way,
                    got,
                )


def _with(column, way, index):
    return {**index, column: way(index[column])}


def _without(column, index):
    return {name: array for name, array in index.items() if name != column}


def test_an_index_of_other_records_is_not_that_of_the_file(all_kept, tmp_path):
    """Offsets and sizes that lie in the file, and would give whole records: but not all of it, in its order."""
    arguments = unlisted_tfrecords(tmp_path, COUNT)
    right = outcome("TFRecord", arguments)
    (file,) = all_kept.glob("*.npz")
    whole = file.read_bytes()
    for chosen in ([0, 1, 2], [5, 4, 3, 2, 1, 0], [0, 0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5]):
        file.write_bytes(whole)
        changed(file, lambda index, chosen=chosen: {name: array[chosen] for name, array in index.items()}, told=True)
        assert outcome("TFRecord", arguments) == right


def test_an_lmdb_counts_its_records(all_kept, tmp_path):
    arguments = DATASETS["Caffe"].make(tmp_path, COUNT)
    right = outcome("Caffe", arguments)
    (file,) = all_kept.glob("*.npz")
    changed(file, lambda index: {name: array[:-1] for name, array in index.items()}, told=True)
    assert outcome("Caffe", arguments) == right


def test_a_file_that_unfolds_is_not_read(all_kept, tmp_path, monkeypatch):
    """Compressed arrays can be of any size."""
    arguments = unlisted_tfrecords(tmp_path, COUNT)
    right = outcome("TFRecord", arguments)
    (file,) = all_kept.glob("*.npz")
    with np.load(file) as arrays:
        np.savez_compressed(tmp_path / "small.npz", **{**arrays, "offsets": np.zeros(5_000_000, np.int64)})
    (tmp_path / "small.npz").replace(file)
    wide = []
    real = index_cache._digest
    monkeypatch.setattr(
        index_cache, "_digest", lambda index: wide.append(max(a.nbytes for a in index.values())) or real(index)
    )
    assert outcome("TFRecord", arguments) == right
    assert max(wide) < 1000


@pytest.mark.skipif(not hasattr(index_cache.os, "geteuid"), reason="needs modes")
def test_indexes_of_others_are_not_read(all_kept, tmp_path, monkeypatch):
    arguments = unlisted_tfrecords(tmp_path, COUNT)
    right = outcome("TFRecord", arguments)
    (file,) = all_kept.glob("*.npz")
    monkeypatch.setattr(ndd.readers.tfrecord, "scan_tfrecord", None)
    assert outcome("TFRecord", arguments) == right
    file.chmod(0o666)
    assert outcome("TFRecord", arguments).startswith("TypeError")  # scanned anew


# ---- index files that a user gives


def record(number):
    return tfrecord_frame(example(("number", int64_list(number))))


def tfrecord_with(folder, text):
    (folder / "a").write_bytes(b"".join(map(record, range(3))))
    (folder / "a.idx").write_text(text)
    return ndd.readers.TFRecord(
        path=folder / "a",
        index_path=folder / "a.idx",
        features={"number": FEATURES.of(tfrecord)["number"]},
        on_error="skip",
    )


def webdataset_with(folder, text):
    write_tar(folder / "a.tar", [("0.a", b"0"), ("1.a", b"1"), ("2.a", b"2")])
    (folder / "a.idx").write_text("v1.1 3\n" + text)
    return ndd.readers.Webdataset(paths=folder / "a.tar", index_paths=folder / "a.idx", ext="a", on_error="skip")


def mxnet_with(folder, text):
    item = struct.pack("<IfQQ", 0, 1.0, 0, 0)
    (folder / "a.rec").write_bytes((struct.pack("<II", 0xCED7230A, len(item)) + item) * 3)
    (folder / "a.idx").write_text(text)
    return ndd.readers.MXNet(path=folder / "a.rec", index_path=folder / "a.idx", on_error="skip")


MOST = "9" * 18
SIZE = len(record(0))
BEYOND = [
    (tfrecord_with, f"0 {SIZE}\n{SIZE} {MOST}\n{2 * SIZE} {SIZE}", 1),
    (tfrecord_with, f"0 {SIZE}\n{MOST} {SIZE}\n{2 * SIZE} {SIZE}", 1),
    (tfrecord_with, f"0 {SIZE}\n{MOST} {MOST}\n{2 * SIZE} {SIZE}", 1),
    (tfrecord_with, f"0 {SIZE}\n{SIZE} 10000000000\n{2 * SIZE} {SIZE}", 1),
    (tfrecord_with, f"0 {SIZE}\n{SIZE} {2 * SIZE + 1}\n{2 * SIZE} {SIZE}", 1),
    (webdataset_with, f"a 512 1\na 1536 {MOST}\na 2560 1\n", 1),
    (webdataset_with, f"a 512 1\na {10**18 - 512} 1\na 2560 1\n", 1),
    (webdataset_with, "a 512 1\na 1536 10000000000\na 2560 1\n", 1),
    (mxnet_with, f"0 0\n1 32\n2 {MOST}\n", 2),
]


@pytest.mark.parametrize(("make", "text", "wrong"), BEYOND, ids=range(len(BEYOND)))
@pytest.mark.filterwarnings("ignore:readers")
def test_a_range_behind_the_end_harms_its_own_record(tmp_path, make, text, wrong):
    """And asks for no memory of its size: it was a MemoryError of the batch, or "negative dimensions", where sizes had no sum."""
    for batch_size in (1, 3):
        reader = make(tmp_path, text)
        epoch = reader.next_epoch(batch_size=batch_size)
        assert sum((next(iter(b.values())) if isinstance(b, dict) else b[0]).batch_size for b in epoch) == 2
    (skipped, *_) = reader.skipped
    assert f"record {wrong}" in skipped.source
    assert "The file ends too early" in skipped.error


@pytest.mark.parametrize(
    "word", ["-1", "1" * 19, "1e3", "0x10", "1_0", "\N{ARABIC-INDIC DIGIT THREE}", "nan", "1.5", "+1"]
)
def test_what_is_no_offset_is_told_with_file_and_line(tmp_path, word):
    for make, line in ((tfrecord_with, f"0 {SIZE}\n{word} {SIZE}"), (tfrecord_with, f"0 {SIZE}\n0 {word}"),
                       (webdataset_with, f"a 512 1\na {word} 1\na 2560 1"), (mxnet_with, f"0 0\n1 {word}")):  # fmt: skip
        with pytest.raises(RuntimeError, match=r"readers\.\w+: .*a\.idx\"(:| line )\d"):
            len(make(tmp_path, line))
