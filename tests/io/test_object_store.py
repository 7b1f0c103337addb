"""Objects of an S3 server process on the loopback: listing, reading, failures, the local cache, other processes."""

from __future__ import annotations

import contextlib
import functools
import gzip
import http.server
import importlib.util
import io
import os
import pickle
import signal
import socketserver
import sys
import threading
import time
import zlib
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
import warm_interpreter
from encoded import made
from object_server import SETTINGS, Proxy, put, s3_server
from readers.datasets import bytes_list, example, recordio, tfrecord_frame
from readers.epochs import epoch_of, labels_of

import ndd
from ndd.io.object_cache import ObjectCache
from ndd.io.object_store import is_remote, list_folders, object_statuses, read_object_ranges

pytest.importorskip("obstore")
pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("moto") is None, reason="moto is not installed"),
    pytest.mark.filterwarnings("ignore:.*is left out", "ignore::DeprecationWarning"),
]
NAMES = [f"{kind}/{i}.jpg" for kind in ("cat", "dog", "x y%20é#") for i in range(4)]


def contents(name):
    return (name.encode() * 3000)[: 5000 + len(name)]


@pytest.fixture(scope="module")
def server():
    with s3_server() as port:
        proxy = Proxy(port)
        put(f"{proxy.url}/pets")
        for name in [*NAMES, "cat/deeper/9.jpg", "cat/notes.doc", "root.jpg"]:
            put(f"{proxy.url}/pets/train/{quote(name)}", contents(name))
        put(f"{proxy.url}/pets/train/", b"")
        put(f"{proxy.url}/pets/train/dog/", b"")
        yield proxy
        proxy.close()


@pytest.fixture
def s3(server, monkeypatch):
    for name, value in {**SETTINGS, "AWS_ENDPOINT_URL": server.url}.items():
        monkeypatch.setenv(name, value)
    server.faults.clear()
    server.seen.clear()
    with ndd.io.object_store(connections=8, retries=3, timeout=60):
        yield server
    server.faults.clear()
    server.broken.clear()


def bytes_of(reader, batch=5):
    return {
        source: np.asarray(sample).tobytes()
        for data, _ in reader.next_epoch(batch, last_batch="partial")
        for source, sample in zip(data.source_info, data.tensors, strict=True)
    }


EXPECTED = {f"s3://pets/train/{name}": contents(name) for name in NAMES}


def test_what_is_a_url():
    assert all(map(is_remote, ["s3://b/k", "gs://b/k", "az://c/k", "http://h/p", "https://h/p"]))
    assert not any(map(is_remote, ["/a/b", "a", "file:///a", "C://a", "s3:/b", "ftp://h/p"]))


def test_a_tree_of_classes(s3, tmp_path):
    for name in NAMES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(contents(name))
    there, here = ndd.readers.File(file_root="s3://pets/train"), ndd.readers.File(file_root=tmp_path)
    assert bytes_of(there) == EXPECTED
    assert epoch_of(there, 5) == epoch_of(here, 5)
    assert epoch_of(ndd.readers.File(file_root="s3://pets/train/", dir_filters="d*")) == [0] * 4
    assert len(ndd.readers.File(file_root="s3://pets/train", file_filters=["*.doc", "1.*"])) == 4
    shuffled = {"random_shuffle": True, "seed": 3}
    first, second = (ndd.readers.File(file_root=root, **shuffled) for root in ("s3://pets/train", tmp_path))
    assert epoch_of(first, 4) == epoch_of(second, 4)


@pytest.mark.oracle
def test_against_dali(server, s3, monkeypatch):
    """DALI makes a class of the files in the root itself, if there are any, as it does on no disk; so there are none."""
    dali = pytest.importorskip("nvidia.dali.experimental.dynamic")
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.target}")  # it wants its connections kept
    for name in ("b/2.jpg", "b/10.jpg", "a/1.jpg", "b/deeper/1.jpg", "c/1.txt"):
        put(f"{server.url}/pets/plain/{name}", contents(name))
    names = ["b/2.jpg", "a/1.jpg"]
    for options in ({"file_root": "s3://pets/plain"}, {"file_root": "s3://pets/plain", "files": names}):
        result = [
            [(np.asarray(data).tobytes(), labels_of((data, label))) for data, label in reader.next_epoch()]
            for reader in (library.readers.File(**options) for library in (ndd, dali))
        ]
        assert result[0] == result[1]


def test_files_and_lists(s3, tmp_path):
    names = ["dog/1.jpg", "cat/3.jpg"]
    put(f"{s3.url}/pets/train/list.txt", "".join(f"{name} {i + 5}\n" for i, name in enumerate(names)).encode())
    by_list = ndd.readers.File(file_list="s3://pets/train/list.txt")
    assert epoch_of(by_list) == [5, 6]
    expected = {f"s3://pets/train/{name}": contents(name) for name in names}
    by_list.reset()
    assert bytes_of(by_list) == expected
    assert bytes_of(ndd.readers.File(files=list(expected))) == expected
    assert bytes_of(ndd.readers.File(files=names, file_root="s3://pets/train")) == expected
    local = tmp_path / "here.jpg"
    local.write_bytes(b"here")
    mixed = ndd.readers.File(files=[*expected, str(local)])
    assert bytes_of(mixed) == {**expected, str(local): b"here"}


def test_containers_and_their_indices(s3, tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.import_module("ndd.readers.mxnet"), "LEAST_TEXT", 0)
    monkeypatch.setenv("NDD_CACHE_DIR", str(tmp_path / "indices"))
    arguments = recordio(tmp_path, 20)
    put(f"{s3.url}/pets/a.rec", Path(arguments["path"]).read_bytes())
    put(f"{s3.url}/pets/a.idx", Path(arguments["index_path"]).read_bytes())
    there = {"path": "s3://pets/a.rec", "index_path": "s3://pets/a.idx"}
    for _ in range(2):
        first, second = ndd.readers.MXNet(**there), ndd.readers.MXNet(**arguments)
        for (a, b), (c, d) in zip(first.next_epoch(7), second.next_epoch(7), strict=True):
            assert [np.asarray(t).tobytes() for t in a.tensors] == [np.asarray(t).tobytes() for t in c.tensors]
            assert [np.asarray(t).tolist() for t in b.tensors] == [np.asarray(t).tolist() for t in d.tensors]
    assert sum(count for line, count in s3.seen.items() if line.startswith("GET /pets/a.idx")) == 1
    arguments = recordio(tmp_path, 5)
    put(f"{s3.url}/pets/a.idx", Path(arguments["index_path"]).read_bytes())
    assert len(ndd.readers.MXNet(**there)) == 5
    assert np.asarray(ndd.readers.MXNet(**there)[4][1])[0] == 4
    put(f"{s3.url}/pets/a.rec", Path(arguments["path"]).read_bytes()[:-30])
    with pytest.raises(RuntimeError, match=r"sample 4 \(s3://pets/a.rec record 4\).*ends too early"):
        ndd.readers.MXNet(**there)[4]


def test_arrays(s3):
    for i in range(3):
        data = io.BytesIO()
        np.save(data, np.full((4, 5), i, np.int16))
        put(f"{s3.url}/pets/arrays/{i}.npy", data.getvalue())
    reader = ndd.readers.Numpy(file_root="s3://pets/arrays", roi_start=[1, 1], roi_shape=[2, 2])
    assert [np.asarray(a).tolist() for (a,) in reader.next_epoch()] == [[[i, i], [i, i]] for i in range(3)]
    put(f"{s3.url}/pets/arrays/3.npy", data.getvalue()[:-5])
    reader.close()  # it may read ahead
    s3.seen.clear()
    reader = ndd.readers.Numpy(file_root="s3://pets/arrays", on_error="skip")
    assert [np.asarray(a).tolist() for (a,) in reader.next_epoch()] == [[[i] * 5] * 4 for i in range(3)]
    assert "the file has" in reader.skipped[0].error
    assert not [line for line in s3.seen if line.startswith("HEAD")]  # each object in one request


def test_io_and_imread(s3):
    photo = (Path(ndd.__file__).parent / "demo" / "photos" / "nature" / "cat.jpg").read_bytes()
    put(f"{s3.url}/pets/photo.jpg", photo)
    path = np.frombuffer(b"s3://pets/photo.jpg", np.uint8)
    assert np.asarray(ndd.io.file.read(path)).tobytes() == photo
    assert ndd.imread(["s3://pets/photo.jpg"] * 2).batch_size == 2
    with pytest.raises(RuntimeError, match=r"s3://pets/nothing.*No such object"):
        ndd.imread(["s3://pets/photo.jpg", "s3://pets/nothing"]).evaluate()
    assert [bad.index for bad in ndd.imread(["s3://pets/nothing", "s3://pets/photo.jpg"], on_error="skip").dropped] == [
        0
    ]


@pytest.mark.parametrize("fault", ["500", "cut", "slow"])
@pytest.mark.drawn(1)
def test_failures_lose_nothing_and_repeat_nothing(s3, fault):
    reader = ndd.readers.File(file_root="s3://pets/train")
    len(reader)
    s3.faults.extend([fault, "", fault, fault, "", fault])
    result = [label for batch in reader.next_epoch(5, last_batch="partial") for label in labels_of(batch)]
    assert result == [0] * 4 + [1] * 4 + [2] * 4
    reader.reset()  # what has been read ahead
    s3.faults.extend([fault] * 3)
    assert bytes_of(reader) == EXPECTED
    assert not s3.faults


def test_errors_name_the_object(s3):
    def error(**arguments):
        with pytest.raises(RuntimeError) as raised:
            ndd.readers.File(**arguments)[0]
        return str(raised.value)

    assert "s3://pets/nothing.jpg): expected a readable record, got FileNotFoundError" in error(
        files=["s3://pets/nothing.jpg"]
    )
    assert "No such bucket: nobody" in error(files=["s3://nobody/a.jpg"])
    assert "Failed to open s3://nobody/train: No such bucket" in error(file_root="s3://nobody/train")
    assert "Failed to open s3://pets/nowhere: No such folder" in error(file_root="s3://pets/nowhere")
    s3.broken["pets/train/cat/1.jpg"] = "403"
    assert "PermissionError: [Errno 13] Forbidden" in error(files=["s3://pets/train/cat/1.jpg"])
    s3.broken["pets/train/cat/1.jpg"] = "500"
    text = error(files=["s3://pets/train/cat/1.jpg"])
    assert "ConnectionError" in text
    assert "500" in text
    with ndd.io.object_store(timeout=0.3, retries=0):
        s3.broken["pets/train/cat/1.jpg"] = "hang"  # who waits for its end gets another error
        assert "TimeoutError" in error(files=["s3://pets/train/cat/1.jpg"])
    s3.broken.clear()
    with ndd.io.object_store(skip_signature=True):  # moto lets nobody read without a signature
        assert "PermissionError" in error(files=["s3://pets/train/cat/1.jpg"])
    for wrong in ({"connections": 0}, {"timeout": "1"}, {"retries": -1}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            ndd.io.object_store(**wrong)
    with pytest.raises(RuntimeError, match=r"(?i)nonsense"), ndd.io.object_store(nonsense=True):
        ndd.readers.File(files=["s3://pets/train/cat/1.jpg"])[0]


def test_a_store_that_does_not_answer_is_not_skipped(s3):
    reader = ndd.readers.File(files=[*list(EXPECTED)[:3], "s3://pets/nothing"], on_error="skip")
    epoch = reader.next_epoch(4)
    data, _ = next(epoch)
    assert (data.batch_size, [bad.index for bad in data.dropped]) == (3, [3])
    with ndd.io.object_store(retries=0, connections=1):
        reader.close()
        s3.broken |= {url.removeprefix("s3://"): "500" for url in list(EXPECTED)[:3]}
        with pytest.raises(RuntimeError, match="ConnectionError"):
            list(reader.next_epoch(4))


def test_a_store_that_does_not_answer_leaves_no_video_and_no_picture_out(s3, tmp_path):
    pytest.importorskip("av")
    ndd.io.video.write(str(tmp_path / "clip.mp4"), np.zeros((2, 32, 64, 3), np.uint8))
    put(f"{s3.url}/pets/clip.mp4", (tmp_path / "clip.mp4").read_bytes())
    put(f"{s3.url}/pets/one.jpg", made()["420.jpg"].tobytes())
    calls = [
        lambda: len(
            ndd.readers.Video(
                filenames=[str(tmp_path / "clip.mp4"), "s3://pets/clip.mp4"], sequence_length=1, on_error="skip"
            )
        ),
        lambda: ndd.imread(["s3://pets/one.jpg"] * 2, on_error="skip").evaluate().batch_size,
    ]
    assert [call() for call in calls] == [4, 2]
    s3.broken |= {"pets/clip.mp4": "500", "pets/one.jpg": "500"}
    with ndd.io.object_store(retries=0, connections=1):
        for call in calls:
            with pytest.raises((RuntimeError, ConnectionError), match="could not be read"):
                call()


def test_ranges(s3):
    url, whole = next(iter(EXPECTED.items()))
    pieces = read_object_ranges([url] * 5, [0, 7, 100, len(whole) - 3, 9], [10, 0, -1, 3, 1])
    assert [p.tobytes() for p in pieces] == [whole[:10], b"", whole[100:], whole[-3:], whole[9:10]]
    for offset, size in ((len(whole) - 2, 3), (len(whole), 1), (len(whole) + 50, 4)):
        (result,) = read_object_ranges([url], [offset], [size])
        assert isinstance(result, OSError), (offset, size)
        assert "ends too early" in str(result)
    assert [s.size for s in object_statuses([url])] == [len(whole)]


def test_an_object_that_is_replaced_between_two_ranges(s3):
    """Also by one of the same size: nothing of two objects is mixed. A reader made anew reads the new one."""
    url, old, new = f"{s3.url}/pets/part.bin", bytes(range(256)) * 40, bytes(256 * 40)
    put(url, old)
    version = object_statuses(["s3://pets/part.bin"])[0].version

    def ranges(version):
        return read_object_ranges(["s3://pets/part.bin"] * 2, [10, 5000], [100, -1], [version] * 2)

    assert [bytes(piece) for piece in ranges(version)] == [old[10:110], old[5000:]]
    put(url, new)
    assert all("replaced since it was opened" in str(error) for error in ranges(version))
    assert [bytes(piece) for piece in ranges('W/"weak"')] == [new[10:110], new[5000:]]
    assert [bytes(piece) for piece in ranges(object_statuses(["s3://pets/part.bin"])[0].version)] == [
        new[10:110],
        new[5000:],
    ]


def test_the_cache(s3, tmp_path):
    def gets():
        return sum(count for line, count in s3.seen.items() if "GET /pets/train/" in line)

    # One connection: what is read ahead for the next epoch is not requested while the same object still is.
    with ndd.io.object_store(cache_dir=tmp_path, connections=1):
        reader = ndd.readers.File(files=list(EXPECTED))
        assert bytes_of(reader) == EXPECTED
        assert gets() == 12
        assert bytes_of(ndd.readers.File(files=list(EXPECTED))) == EXPECTED
        assert gets() == 12
    kept = [p for p in tmp_path.rglob("*") if p.is_file()]
    assert len(kept) == 12
    with ndd.io.object_store(cache_dir="/proc/nowhere"):  # nothing can be written: no cache, no error
        assert bytes_of(ndd.readers.File(files=list(EXPECTED))) == EXPECTED


def test_the_cache_keeps_its_limit(tmp_path):
    def total():
        return sum(p.stat().st_size for p in tmp_path.rglob("*") if p.is_file())

    caches = [ObjectCache(str(tmp_path), 100_000) for _ in range(2)]  # as of two processes
    for i in range(60):
        caches[i % 2].put(f"key {i}", np.full(5000, i, np.uint8))
        assert caches[1].get("key 0") is not None  # what is in use stays
        os.utime(caches[0]._path("key 0"), (time.time() + i + 1,) * 2)
        assert total() <= 120_000
    assert caches[0].get("key 59").tolist() == [59] * 5000
    assert caches[0].get("key 3") is None
    caches[0].put("large", np.zeros(200_000, np.uint8))
    assert caches[0].get("large") is None


def test_other_processes(s3):
    """A forked child, while the parent's connections are open; a spawned one, and what is pickled."""
    reader = ndd.readers.File(files=list(EXPECTED))
    epoch = reader.next_epoch(4)
    first = labels_of(next(epoch))
    child = os.fork()
    if child == 0:
        signal.alarm(90)
        os._exit(0 if [labels_of(v) for v in epoch] == [[4, 5, 6, 7], [8, 9, 10, 11]] else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert [labels_of(v) for v in epoch] == [[4, 5, 6, 7], [8, 9, 10, 11]]
    assert first == [0, 1, 2, 3]
    text = (
        "import pickle, sys, ndd; ndd.readers.File(files=[ndd.__file__])[0]; print('obstore' in sys.modules);"
        f"print(len(pickle.loads({pickle.dumps(reader)!r}).fetch([1, 2])[1].tensors))"
    )  # reading local files loads no client
    result = warm_interpreter.run(text, has_ndd=True)
    assert result.stdout.split() == ["False", "2"], result.stderr


@pytest.mark.long
def test_ctrl_c_while_a_store_is_silent(s3):
    reader = ndd.readers.File(files=list(EXPECTED))
    s3.faults.extend(["hang"] * 12)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores Ctrl-C
    began = time.monotonic()

    def interrupted():  # the timer starts inside what catches it
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        next(reader.next_epoch(4))

    try:
        with pytest.raises(KeyboardInterrupt):
            interrupted()
    finally:
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - began < 6
    s3.faults.clear()
    assert labels_of(next(reader.next_epoch(4, last_batch="partial"))) == [0, 1, 2, 3]
    reader.close()


def test_a_web_server(tmp_path):
    (tmp_path / "a b.jpg").write_bytes(b"12345")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=tmp_path)) as web:
        threading.Thread(target=web.serve_forever, args=(0.01,), daemon=True).start()
        root = f"http://127.0.0.1:{web.server_address[1]}"
        assert np.asarray(ndd.readers.File(files=[f"{root}/a%20b.jpg"])[0][0]).tobytes() == b"12345"
        with pytest.raises(RuntimeError, match="No such object"):
            ndd.readers.File(files=[f"{root}/b.jpg"])[0]
        with pytest.raises(RuntimeError, match="web server cannot be asked"):
            len(ndd.readers.File(file_root=root))
        web.shutdown()


def test_without_the_client(monkeypatch, s3):
    object_store = sys.modules["ndd.io.object_store"]

    monkeypatch.setitem(sys.modules, "obstore", None)
    object_store._client.clear()
    with (
        contextlib.closing(ndd.readers.File(files=["s3://pets/x.jpg"])) as reader,
        pytest.raises(RuntimeError, match=r"\[remote\]"),
    ):
        reader[0]
    monkeypatch.undo()
    object_store._client.clear()


def test_folders(s3):
    (result,) = list_folders(["s3://pets/train/"])
    assert result.folders == ["cat", "dog", "x y%20é#"]
    assert result.files == ["root.jpg"] or result.files == ["list.txt", "root.jpg"]


@pytest.mark.parametrize("packer", [gzip.compress, zlib.compress])
def test_compressed_tfrecords(s3, packer):
    """Records in their order are requested and unpacked once."""
    from ndd import tfrecord as tfrec

    texts = [np.random.default_rng(k).integers(0, 256, 1000 * k, np.uint8).tobytes() for k in range(100)]
    content = packer(b"".join(tfrecord_frame(example(("text", bytes_list(text)))) for text in texts))
    put(f"{s3.url}/pets/records.gz", content)
    reader = ndd.readers.TFRecord(
        path="s3://pets/records.gz", features={"text": tfrec.FixedLenFeature((), tfrec.string, "")}
    )
    assert [bytes(np.asarray(sample["text"])) for sample in reader.next_epoch()] == texts
    assert bytes(np.asarray(reader[50]["text"])) == texts[50]


@pytest.mark.parametrize(
    "key",
    ["a//b.jpg", "/lead.jpg", "//two.jpg", "a///t.jpg", "a//b//c d%20é#?.jpg", "sp ace.jpg", "p%2Fc.jpg", "q?m=1&n.jpg",
     "pl+us.jpg", "ü.jpg", "til~de*('!).jpg", "a=b&c;d,e:@$.jpg"],
)  # fmt: skip
@pytest.mark.drawn(1)
def test_names_of_any_form(s3, key):
    """Also those with empty parts, which DALI reads as well."""
    data = contents(key)
    put(f"{s3.url}/pets/{quote(key)}", data)
    url = f"s3://pets/{key}"
    assert np.asarray(ndd.readers.File(files=[url])[0][0]).tobytes() == data
    assert [p.tobytes() for p in read_object_ranges([url], [3], [5])] == [data[3:8]]
    assert object_statuses([url])[0].size == len(data)
    with pytest.raises(RuntimeError, match="No such object"):
        ndd.io.file.read(f"{url}.none").evaluate()


def test_names_that_no_url_has(s3):
    for key in ("a/../b.jpg", "./b.jpg", "a/./b"):
        (result,) = object_statuses([f"s3://pets/{key}"])
        assert isinstance(result, OSError)
        assert "cannot ask for a name" in str(result)
    put(f"{s3.url}/pets/odd/a.jpg", b"1")
    put(f"{s3.url}/pets/odd/{quote('//b.jpg')}", b"1")
    (result,) = list_folders(["s3://pets/odd"])
    assert not isinstance(result, ConnectionError)
    for scheme in ("gs", "az"):
        (result,) = object_statuses([f"{scheme}://pets/a//b.jpg"])
        assert "from S3 only" in str(result)


@pytest.mark.skipif(os.name != "posix", reason="needs modes")
def test_what_others_could_have_written_is_not_taken_from_the_cache(tmp_path):
    cache = ObjectCache(str(tmp_path), 100_000)
    cache.put("key", np.arange(9, dtype=np.uint8))
    assert cache.get("key").tolist() == list(range(9))
    (file,) = tmp_path.glob("??/*")
    file.chmod(0o666)
    assert cache.get("key") is None
    cache.put("key", np.arange(9, dtype=np.uint8))
    assert cache.get("key").tolist() == list(range(9))
