"""Reading files and ranges: what is no regular file, files that change, ranges that are joined."""

import os
import sys
import threading

import numpy as np
import pytest

from ndd.readers import ContainerStore, File
from ndd.readers.files import file_reading
from ndd.readers.files.file_reading import OpenFiles, read_files, read_slowly, statuses
from ndd.readers.stores.container import _KEPT_OPEN
from ndd.readers.stores.records import Records, samples_of

posix = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs POSIX")


@pytest.fixture(params=["compiled", "before it is compiled", "slow"])
def way(request, monkeypatch):
    if request.param == "slow":
        monkeypatch.setattr(file_reading.compiled, "AVAILABLE", False)
    elif not file_reading.compiled.AVAILABLE:
        pytest.skip("no compiled reading here")
    elif request.param != "compiled":
        for name in ("open_files", "read_ranges", "close_files", "read_files"):
            monkeypatch.setattr(file_reading.compiled, name, getattr(file_reading.compiled, name)._fallback)


def texts(result):
    return [type(f).__name__ if isinstance(f, OSError) else bytes(f) for f in result]


@posix
def test_what_is_no_file_is_an_error_in_its_place(tmp_path, way):
    (tmp_path / "x").write_bytes(b"abc")
    (tmp_path / "empty").write_bytes(b"")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "link").symlink_to(tmp_path / "x")
    names = ["x", "fifo", "empty", "none", "", "link", "loop", "x/y"]
    paths = [str(tmp_path / name) for name in names] + ["/dev/zero", "/dev/null"]
    expected = [
        b"abc", "OSError", b"", "FileNotFoundError", "IsADirectoryError", b"abc", "OSError", "NotADirectoryError",
        "OSError", "OSError",
    ]  # fmt: skip
    result, errors = read_files(paths)
    assert texts([errors.get(place, piece) for place, piece in enumerate(result)]) == expected
    assert "Not a regular file" in str(errors[1])
    result, errors = read_files([str(tmp_path / name) for name in ("x", "empty", "link")])
    assert (texts(Records.from_columns([result])[k][0] for k in range(3)), errors) == ([b"abc", b"", b"abc"], {})


@pytest.mark.parametrize("size", [8, 10**15, 2**62, 2**63 - 1])
@pytest.mark.parametrize("offset", [0, 3, 10**17, 2**63 - 64, -5])
def test_ranges_that_lie_outside_take_no_memory(tmp_path, way, offset, size):
    (tmp_path / "x").write_bytes(b"abcdef")
    with OpenFiles([str(tmp_path / "x")]) as files:
        result = files.read([0, 0, 0], [1, offset, 2], [2, size, 3])
        assert texts(result) == [b"bc", "OSError", b"cde"]
        buffer, starts, errors = files.read_packed([0, 0, 0], [1, offset, 2], [2, size, 3])
        assert list(errors) == [1]
        assert bytes(buffer[starts[0] :][:2]) + bytes(buffer[starts[2] :][:3]) == b"bccde"


@posix
def test_a_fifo_among_the_files_of_a_reader(tmp_path):
    (tmp_path / "a.bin").write_bytes(b"a")
    os.mkfifo(tmp_path / "b.bin")
    epoch = File(files=["a.bin", "b.bin", "a.bin"], file_root=tmp_path).next_epoch()
    assert next(epoch)[0].shape == (1,)
    with pytest.raises(RuntimeError, match=r"sample 1 \(.*b\.bin\): .*Not a regular file"):
        next(epoch)
    assert next(epoch)[0].shape == (1,)


def test_a_file_that_shrinks_is_an_error(tmp_path, way):
    path = tmp_path / "x"
    path.write_bytes(b"0123456789")
    with OpenFiles([str(path)]) as files:
        os.truncate(path, 4)
        result = files.read([0, 0, 0], [0, 0, 2], [10, 4, 2])
    assert texts(result) == ["OSError", b"0123", b"23"]
    assert "ends too early (expected 10 bytes, got 4)" in str(result[0])
    assert "expected 5 bytes at 2, got 2" in str(read_slowly(str(path), 2, 5))


def test_a_file_that_vanishes_is_read_to_its_end(tmp_path):
    """An open file stays, whatever happens to its name."""
    if not file_reading.compiled.AVAILABLE:
        pytest.skip("files are not kept open here")
    path = tmp_path / "x"
    path.write_bytes(b"0123456789")
    with OpenFiles([str(path)]) as files:
        path.unlink()
        path.write_bytes(b"another file")
        assert texts(files.read([0], [0], [10])) == [b"0123456789"]


def test_more_files_than_a_process_may_open(tmp_path):
    resource = pytest.importorskip("resource")
    (tmp_path / "x").write_bytes(b"abc")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 8, hard))
    try:
        result, errors = read_files([str(tmp_path / "x")] * 32)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert (texts(samples_of(result)), errors) == ([b"abc"] * 32, {})


def test_ranges_are_joined(tmp_path, way, monkeypatch):
    rng = np.random.default_rng(0)
    content = rng.integers(0, 256, 300_000, np.uint8).tobytes()
    (tmp_path / "x").write_bytes(content)
    (tmp_path / "y").write_bytes(content[::-1])
    monkeypatch.setattr(file_reading, "_RUN", 50_000)
    with OpenFiles([str(tmp_path / "x"), str(tmp_path / "y")]) as files:
        for _ in range(20):
            count = int(rng.integers(1, 40))
            numbers, sizes = rng.integers(0, 2, count), rng.integers(0, 2000, count)
            offsets = rng.integers(0, 200_000, count)
            if rng.integers(0, 2):  # neighbours, some with gaps
                numbers[:] = 0
                offsets = np.cumsum(sizes) - sizes + 10 * np.arange(count)
            result = files.read_joined(numbers, offsets, sizes)
            sides = content, content[::-1]
            assert texts(result) == [
                sides[n][o : o + s] for n, o, s in zip(numbers.tolist(), offsets.tolist(), sizes.tolist(), strict=True)
            ]
        first, _, sizes = file_reading._runs(np.zeros(10), np.arange(10) * 1000, np.full(10, 990), 50_000)
        assert (first.tolist(), sizes.tolist()) == ([0], [9990])
        result = files.read_joined([0, 0, 0], [299_000, 299_900, 299_950], [500, 100, 51])
        assert texts(result) == [content[299_000:299_500], content[299_900:], "OSError"]


class Numbers(ContainerStore):
    """Records of four bytes."""

    def __init__(self, paths, count):
        containers = np.repeat(np.arange(len(paths)), count)
        super().__init__(paths, containers, np.tile(np.arange(count) * 4, len(paths)), np.full(len(containers), 4))

    def parse(self, number, data):
        return (np.frombuffer(data.tobytes(), np.int32),)


def containers(tmp_path, files, count):
    paths = [str(tmp_path / f"{i}.bin") for i in range(files)]
    for i, path in enumerate(paths):
        (np.arange(count, dtype=np.int32) + i * count).tofile(path)
    return Numbers(paths, count)


def test_few_of_many_containers_are_open(tmp_path):
    store = containers(tmp_path, _KEPT_OPEN * 2, 3)
    order = np.random.default_rng(0).permutation(len(store)).tolist()
    assert [int(record[0][0]) for record in store.records(order)] == order
    assert store.source(7) == f"{tmp_path / '2.bin'} record 1"
    if os.path.exists("/proc/self/fd"):
        links = [os.path.realpath(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")]
        assert sum(str(tmp_path) in link for link in links) == _KEPT_OPEN
        store.close()
        links = [os.path.realpath(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")]
        assert not any(str(tmp_path) in link for link in links)
    assert int(store.record(5)[0][0]) == 5


def test_a_store_may_be_closed_while_it_is_read(tmp_path):
    """Nothing is closed under a thread that reads; a handle's number is never somebody else's file."""
    store = containers(tmp_path, 4, 50)
    wrong, stop = [], threading.Event()

    def read():
        while not stop.is_set():
            result = store.records(list(range(200)))
            wrong.extend(r for i, r in enumerate(result) if isinstance(r, Exception) or int(r[0][0]) != i)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(200):
        store.close()
        with open(tmp_path / "0.bin", "rb"), open(tmp_path / "other", "wb") as other:
            other.write(b"x" * 1000)
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_reading_releases_the_gil(tmp_path):
    """Other threads run while a long read does: a counter moves on in steps far below the reading time."""
    (tmp_path / "x").write_bytes(bytes(1 << 20))
    read_files([str(tmp_path / "x")])  # compiled
    paths = [str(tmp_path / "x")] * 200
    done, ticks = threading.Event(), [0]

    def count():
        while not done.is_set():
            ticks[0] += 1

    interval = sys.getswitchinterval()
    sys.setswitchinterval(0.5)  # a thread that keeps the GIL keeps it
    thread = threading.Thread(target=count)
    try:
        thread.start()
        before = ticks[0]
        read_files(paths)
        during = ticks[0] - before
    finally:
        done.set()
        sys.setswitchinterval(interval)
        thread.join()
    assert during > 1000


def test_a_zero_in_a_path_is_an_error_and_does_not_end_it(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    for names in (["a\0b"], ["a", "a\0b"]):
        paths = [str(tmp_path / name) for name in names]
        contents, errors = read_files(paths)
        assert list(errors) == [len(names) - 1]
        assert isinstance(errors[len(names) - 1], OSError)
        assert "null" in str(errors[len(names) - 1])
        if len(names) > 1:
            assert bytes(contents[0]) == b"abc"
    assert isinstance(statuses([str(tmp_path / "a\0b")])[0], OSError)
    with pytest.raises(RuntimeError, match="sample 0"):
        list(File(files=[str(tmp_path / "a\0b")]).next_epoch(batch_size=1))
